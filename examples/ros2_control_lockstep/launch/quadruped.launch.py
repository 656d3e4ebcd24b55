"""contact_sim and a controller manager in lockstep, with two controllers of ros2_controllers."""

from pathlib import Path

import xacro
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node, SetRemap

SHARE = Path(get_package_share_directory('ros2_control_lockstep'))
SIMULATION = Path(get_package_share_directory('contact_sim'), 'launch', 'simulation.launch.py')
CONTROLLERS = str(SHARE / 'config' / 'controllers.yaml')


def generate_launch_description() -> LaunchDescription:
    """Return the simulation, the controller manager and what loads the controllers."""
    simulation = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(SIMULATION)),
        launch_arguments={
            'robot': 'quadruped',
            'params_file': str(SHARE / 'config' / 'simulation.yaml'),
            'robot_state_publisher': 'false',  # the one below knows ros2_control
            'publish_robot_description': 'false',
        }.items(),
    )
    description = xacro.process_file(str(SHARE / 'urdf' / 'quadruped.urdf.xacro')).toxml()
    state_publisher = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        parameters=[{'robot_description': description, 'use_sim_time': True}],
        output='screen',
    )
    topics = [
        SetRemap('joint_states', 'robot_joint_states'),
        SetRemap('joint_commands', 'robot_joint_commands'),
    ]
    manager = Node(
        package='ros2_control_lockstep',
        executable='lockstep_control_node',
        parameters=[CONTROLLERS],
        output='screen',
    )
    spawner = Node(
        package='controller_manager',
        executable='spawner',
        arguments=['joint_state_broadcaster', 'joint_trajectory_controller', '-p', CONTROLLERS],
        output='screen',
    )
    simulated = GroupAction([*topics, simulation])
    return LaunchDescription([simulated, state_publisher, manager, spawner])
