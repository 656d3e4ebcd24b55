"""Start the simulation node, robot_state_publisher and, if asked for, RViz.

ros2 launch contact_sim simulation.launch.py robot:=go1 contact_model:=ncp rviz:=true
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import Shutdown
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from contact_sim import load_robot
from contact_sim.robot.share import mesh_prefixes, share_path
from contact_sim.robot.xacro_program import xacro_arguments
from contact_sim.ros.launching import described

LINK_TRANSFORM_RATE = 100.0
"""Transforms of the links per second; the default of robot_state_publisher looks jerky."""

ARGUMENTS = {
    'robot': ('go1', 'robot of the catalogue, for example anymal_b; params_file cannot change it'),
    'urdf': ('', 'path of a URDF or xacro file; wins over robot'),
    'xacro_arguments': ('', 'arguments of a xacro with blanks between them: mass:=3 arm:=true'),
    'contact_model': ('', 'contact model, e.g. ncp; empty: as in params_file'),
    'terrain': ('', 'ground, e.g. plane or stairs; empty: as in params_file'),
    'terrain_file': ('', 'YAML, heights or mesh of terrain:=file; empty: as in params_file'),
    'x': ('', 'where the robot starts, along x [m]; empty: as in params_file'),
    'y': ('', 'where the robot starts, along y [m]; empty: as in params_file'),
    'height': ('', 'gap below its lowest foot at the start [m]; empty: as in params_file'),
    'paused': ('', 'true: wait for the service ~/pause before the first step'),
    'rate': ('', 'real-time factor; 0: as fast as possible; empty: as in params_file'),
    'record': ('', 'file to record the run in, for python -m contact_sim.replay'),
    'namespace': ('', 'namespace of nodes and topics (not of /tf and /clock)'),
    'frame_prefix': ('', 'put before the names of all links in TF, for example left/'),
    'params_file': ('', 'YAML file with parameters, see config/contact_sim.yaml'),
    'robot_state_publisher': ('true', 'false: the transforms of the links come from elsewhere'),
    'rviz': ('false', 'true: show the robot, forces and friction cones in RViz'),
    'rviz_config': ('', 'RViz configuration; empty: config/contact_sim.rviz'),
}
"""Launch argument: default, description."""

PARAMETERS = {
    'contact_model': ('contact.model', str),
    'terrain': ('terrain.type', str),
    'terrain_file': ('terrain.file', str),
    'x': ('initial_x', float),
    'y': ('initial_y', float),
    'height': ('initial_height', float),
    'paused': ('start_paused', bool),
    'rate': ('real_time_factor', float),
    'record': ('record', str),
    'frame_prefix': ('frame_prefix', str),
}
"""Launch argument: parameter of the node that it overrides unless it is empty, and its type."""

TOPICS_IN_RVIZ = ('robot_description', 'odom', 'contact_sim/contact_markers',
                  'contact_sim/terrain')  # fmt: skip
"""Absolute in the RViz configuration: remapped into the namespace."""


def generate_launch_description() -> LaunchDescription:
    """Return the declared arguments, and the nodes that they ask for."""
    return described(ARGUMENTS, nodes)


def nodes(context: LaunchContext) -> list[Node]:
    """Return the nodes that are wanted; the arguments have their values now."""
    started = [simulation(context)]
    if is_true(context, 'robot_state_publisher'):
        started.append(state_publisher(context))
    if is_true(context, 'rviz'):
        started.append(rviz(context))
    return started


def simulation(context: LaunchContext) -> Node:
    """Return the simulation node; when it ends, everything ends."""
    given = context.launch_configurations
    robot = {'robot': given['robot'], 'urdf_path': given['urdf'], 'robot_description': ''}
    if given['xacro_arguments']:
        robot['xacro_arguments'] = given['xacro_arguments'].split()
    overrides = {
        parameter: ParameterValue(LaunchConfiguration(argument), value_type=kind)
        for argument, (parameter, kind) in PARAMETERS.items()
        if given[argument]
    }
    return Node(
        package='contact_sim',
        executable='simulation',
        name='contact_sim',
        namespace=given['namespace'],
        parameters=[*([given['params_file']] if given['params_file'] else []), robot, overrides],
        output='screen',
        on_exit=Shutdown(reason='the simulation ended'),
    )


def state_publisher(context: LaunchContext) -> Node:
    """Return robot_state_publisher with the description that the simulation uses."""
    given = context.launch_configurations
    arguments = xacro_arguments(given['xacro_arguments'].split())
    robot = load_robot(given['urdf'] or given['robot'], xacro_arguments=arguments)
    return Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        namespace=given['namespace'],
        parameters=[
            {
                'robot_description': robot.description,
                'frame_prefix': given['frame_prefix'],
                'publish_frequency': LINK_TRANSFORM_RATE,
                'use_sim_time': True,
            }
        ],
        output='screen',
    )


def rviz(context: LaunchContext) -> Node:
    """Return RViz; it finds the meshes of pip packages like those of ROS packages."""
    given = context.launch_configurations
    return Node(
        package='rviz2',
        executable='rviz2',
        namespace=given['namespace'],
        arguments=['-d', given['rviz_config'] or str(share_path('config', 'contact_sim.rviz'))],
        remappings=[(f'/{topic}', topic) for topic in TOPICS_IN_RVIZ],
        parameters=[{'use_sim_time': True}],
        additional_env={'AMENT_PREFIX_PATH': mesh_prefixes()},
        output='log',
    )


def is_true(context: LaunchContext, argument: str) -> bool:
    """Return whether an argument says true; raise if it says neither true nor false."""
    return IfCondition(LaunchConfiguration(argument)).evaluate(context)
