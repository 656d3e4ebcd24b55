"""A controller manager in lockstep with contact_sim, with two controllers of ros2_controllers.

ros2 launch ros2_control_lockstep quadruped.launch.py
ros2 launch ros2_control_lockstep quadruped.launch.py controller:=effort_controller
ros2 launch ros2_control_lockstep quadruped.launch.py simulation:=false

The last form is for a simulation that runs already, or a trial of contact_sim.verdict: it takes
states from joint_states and answers on joint_commands. What joint_state_broadcaster publishes goes
to the namespace `ros2_control` then, and there is no robot_state_publisher.
"""

import os
import tempfile
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
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node, SetParameter, SetRemap
from launch_ros.parameter_descriptions import ParameterValue

from contact_sim.ros.launching import installed

SHARE = Path(get_package_share_directory('ros2_control_lockstep'))
CONTROLLERS = str(SHARE / 'config' / 'controllers.yaml')
STEPS = 1000
"""Steps per second of the simulation, 1 / time_step in config/simulation.yaml."""
START_TIMEOUT = 60.0
"""Wall seconds for which the hardware waits for the simulation to listen."""
OWN, NONE = 'own', 'none'
ARGUMENTS = {
    'simulation': ('true', 'false: the controller manager alone, beside a simulation that runs'),
    'controller': ('joint_trajectory_controller', 'one of config/controllers.yaml'),
    'rate': ('1000', 'cycles of the controller manager per simulated second; it divides 1000'),
    'record': ('', 'file in which the simulation records the run'),
    'socket': (
        OWN,
        'path of a Unix socket, as in the parameter lockstep.socket of the simulation; none: '
        'topics; own: a new one for the simulation that is started here, else topics',
    ),
}
BESIDE = [
    ('robot_joint_states', 'joint_states'),
    ('robot_joint_commands', 'joint_commands'),
    ('joint_states', 'ros2_control/joint_states'),
]
"""Remappings of the controller manager beside a simulation that has the usual topics."""
OWN_DESCRIPTION = [('robot_description', 'ros2_control/robot_description')]
"""The controller manager gets it as a parameter."""
NO_CLOCK = [('/clock', '/controller_manager/no_clock')]
"""The state itself sets the clocks of the controller manager and its controllers."""


def generate_launch_description() -> LaunchDescription:
    """Return the simulation, the controller manager and what loads the controllers."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=processes)])


def processes(context: LaunchContext) -> list:
    """Return all processes; the arguments have their values now."""
    given = context.launch_configurations
    with_simulation = given['simulation'] == 'true'
    rate, socket, controller = int(given['rate']), given['socket'], given['controller']
    if rate < 1 or STEPS % rate:
        raise ValueError(f'rate:={rate}: expected a divisor of {STEPS}, the steps per second')
    if socket == OWN:
        own = Path(tempfile.gettempdir(), f'contact_sim_lockstep_{os.getpid()}')
        socket = str(own) if with_simulation else NONE
    socket = '' if socket == NONE else socket
    description = xacro.process_file(
        str(SHARE / 'urdf' / 'quadruped.urdf.xacro'),
        mappings={'socket': socket, 'timeout': str(START_TIMEOUT)} if socket else {},
    ).toxml()
    of_robot = {'robot_description': ParameterValue(description, value_type=str)}
    loaded = ['joint_state_broadcaster', controller]
    manager = Node(
        package='ros2_control_lockstep',
        executable='lockstep_control_node',
        parameters=[
            CONTROLLERS,
            {
                'update_rate': rate,
                # simulated time begins when these are active
                'wait_for_controllers': loaded,
            },
            of_robot,
        ],
        remappings=[
            *OWN_DESCRIPTION,
            *([] if with_simulation else BESIDE),
            *NO_CLOCK,
        ],
        output='screen',
    )
    spawner = Node(
        package='controller_manager',
        executable='spawner',
        arguments=[*loaded, '-p', CONTROLLERS],
        output='screen',
    )
    ends = RegisterEventHandler(OnProcessExit(target_action=manager, on_exit=[Shutdown()]))
    if not with_simulation:
        return [manager, spawner, ends]
    started = [simulated(rate, socket, given['record']), manager, spawner, ends]
    if installed('robot_state_publisher', 'robot_state_publisher'):
        started.append(
            Node(
                package='robot_state_publisher',
                executable='robot_state_publisher',
                parameters=[of_robot | {'use_sim_time': True}],
                output='screen',
            )
        )
    return started


def simulated(rate: int, socket: str, record: str) -> GroupAction:
    """Return the simulation, with other topics than joint_state_broadcaster has."""
    launch = Path(get_package_share_directory('contact_sim'), 'launch', 'simulation.launch.py')
    simulation = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(launch)),
        launch_arguments={
            'robot': 'quadruped',
            'params_file': str(SHARE / 'config' / 'simulation.yaml'),
            'record': record,
            'robot_state_publisher': 'false',  # the one below knows ros2_control
            'publish_robot_description': 'false',
        }.items(),
    )
    settings = [
        SetRemap('joint_states', 'robot_joint_states'),
        SetRemap('joint_commands', 'robot_joint_commands'),
        SetParameter('lockstep.period', STEPS // rate),
        SetParameter('publish_rate.joint_states', float(rate)),  # at the instants only
    ]
    if socket:
        settings.append(SetParameter('lockstep.socket', socket))
    return GroupAction([*settings, simulation])
