"""A controller manager in lockstep with contact_sim, with two controllers of ros2_controllers.

ros2 launch ros2_control_lockstep quadruped.launch.py
ros2 launch ros2_control_lockstep quadruped.launch.py simulation:=false

The second form is for a simulation that runs already, or a trial of contact_sim.verdict: it takes
states from joint_states and answers on joint_commands. What joint_state_broadcaster publishes goes
to the namespace `ros2_control` then, and there is no robot_state_publisher: the controller manager
gets the description as a parameter.
"""

from pathlib import Path

import xacro
from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, SetRemap
from launch_ros.parameter_descriptions import ParameterValue

SHARE = Path(get_package_share_directory('ros2_control_lockstep'))
CONTROLLERS = str(SHARE / 'config' / 'controllers.yaml')
BESIDE = [
    ('robot_joint_states', 'joint_states'),
    ('robot_joint_commands', 'joint_commands'),
    ('joint_states', 'ros2_control/joint_states'),
    ('robot_description', 'ros2_control/robot_description'),
]
"""Remappings of the controller manager beside a simulation that has the usual topics."""


def generate_launch_description() -> LaunchDescription:
    """Return the simulation, the controller manager and what loads the controllers."""
    simulation = DeclareLaunchArgument(
        'simulation', default_value='true', choices=['true', 'false'],
        description='false: the controller manager alone, beside a simulation that runs already',
    )  # fmt: skip
    return LaunchDescription([simulation, OpaqueFunction(function=processes)])


def processes(context: LaunchContext) -> list:
    """Return all processes; the argument has its value now."""
    with_simulation = IfCondition(LaunchConfiguration('simulation')).evaluate(context)
    description = xacro.process_file(str(SHARE / 'urdf' / 'quadruped.urdf.xacro')).toxml()
    of_robot = {'robot_description': ParameterValue(description, value_type=str)}
    manager = Node(
        package='ros2_control_lockstep',
        executable='lockstep_control_node',
        parameters=[CONTROLLERS] if with_simulation else [CONTROLLERS, of_robot],
        remappings=[] if with_simulation else BESIDE,
        output='screen',
    )
    spawner = Node(
        package='controller_manager',
        executable='spawner',
        arguments=['joint_state_broadcaster', 'joint_trajectory_controller', '-p', CONTROLLERS],
        output='screen',
    )
    ends = RegisterEventHandler(OnProcessExit(target_action=manager, on_exit=[Shutdown()]))
    if not with_simulation:
        return [manager, spawner, ends]
    state_publisher = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        parameters=[of_robot | {'use_sim_time': True}],
        output='screen',
    )
    return [simulated(), state_publisher, manager, spawner, ends]


def simulated() -> GroupAction:
    """Return the simulation, with other topics than joint_state_broadcaster has."""
    launch = Path(get_package_share_directory('contact_sim'), 'launch', 'simulation.launch.py')
    simulation = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(launch)),
        launch_arguments={
            'robot': 'quadruped',
            'params_file': str(SHARE / 'config' / 'simulation.yaml'),
            'robot_state_publisher': 'false',  # the one below knows ros2_control
            'publish_robot_description': 'false',
        }.items(),
    )
    topics = [
        SetRemap('joint_states', 'robot_joint_states'),
        SetRemap('joint_commands', 'robot_joint_commands'),
    ]
    return GroupAction([*topics, simulation])
