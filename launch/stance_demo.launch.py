"""A robot holds still, squats or sways: the simulation and the stance controller.

ros2 launch contact_sim stance_demo.launch.py robot:=anymal_b motion:=sway rviz:=true
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from contact_sim.robot.share import share_path

ARGUMENTS = {
    'robot': ('go1', 'robot of the catalogue, for example anymal_b'),
    'contact_model': ('ncp', 'contact model, e.g. sap'),
    'rviz': ('false', 'true: show the robot, forces and friction cones in RViz'),
    'motion': ('sway', 'what the base does: hold, squat or sway'),
    'amplitude': ('0.03', 'of the motion [m]'),
    'frequency': ('0.5', 'of the motion [Hz]'),
}
"""Launch argument: default, description."""


def generate_launch_description() -> LaunchDescription:
    """Return the declared arguments, the simulation and its controller."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=parts)])


def parts(context: LaunchContext) -> list[IncludeLaunchDescription | Node]:
    """Return the simulation and the controller; the arguments have their values now."""
    given = context.launch_configurations
    simulation = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(share_path('launch', 'simulation.launch.py'))),
        launch_arguments=[(name, given[name]) for name in ('robot', 'contact_model', 'rviz')],
    )
    controller = Node(
        package='contact_sim',
        executable='stance_controller',
        parameters=[
            {
                'robot': given['robot'],
                'motion': given['motion'],
                'amplitude': float(given['amplitude']),
                'frequency': float(given['frequency']),
            }
        ],
        output='screen',
    )
    return [simulation, controller]
