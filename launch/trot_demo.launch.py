"""A robot trots as fast as cmd_vel says: the simulation in lockstep with the trot controller.

ros2 launch contact_sim trot_demo.launch.py robot:=anymal_b rviz:=true
ros2 topic pub -r 1 /cmd_vel geometry_msgs/Twist '{linear: {x: 0.3}, angular: {z: 0.3}}'
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
        launch_arguments=[
            *((name, given[name]) for name in ('robot', 'contact_model', 'rviz')),
            ('params_file', str(share_path('config', 'trot_demo.yaml'))),
        ],
    )
    controller = Node(
        package='contact_sim',
        executable='trot_controller',
        parameters=[{'robot': given['robot']}],
        output='screen',
    )
    return [simulation, controller]
