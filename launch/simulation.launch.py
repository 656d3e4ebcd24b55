"""Start the simulation node, robot_state_publisher and, if asked for, RViz.

ros2 launch contact_sim simulation.launch.py robot:=go1 contact_model:=ncp rviz:=true
ros2 launch contact_sim simulation.launch.py robots:='a=go1 b=anymal_b@1.5,0,0.3'
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import LogInfo
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from contact_sim.robot._files import mesh_prefixes, share_path, xacro_arguments
from contact_sim.robot._loading import load_robot
from contact_sim.ros._factory import constraints_in
from contact_sim.ros._robots import RobotEntry, entries_in, loose_body
from contact_sim.ros.launching import (
    ROBOT_ARGUMENTS,
    ROBOTS,
    STATE_PUBLISHER,
    VIEWER,
    check_params_file,
    is_true,
    launch_description,
    launched_robots,
    left_out,
    process,
    required_process,
    robot_parameters,
    rviz_config,
    saved_rviz_config,
    viewer_port,
    wanted,
    with_displays,
)

LINK_TRANSFORM_RATE = 100.0
"""Transforms of the links per second; the default of robot_state_publisher looks jerky."""

ARGUMENTS = {
    **ROBOT_ARGUMENTS,
    'robots': ROBOTS,
    'robots_touch': ('', 'true: the robots may touch each other'),
    'self_collision': ('', 'links that may touch each other, link:link,link:link, or all'),
    'constraints': ('', 'bilateral constraints, stand: kind=frame_anchor frame=trunk; and so on'),
    'contact_model': ('', 'contact model, e.g. ncp; empty: as in params_file'),
    'terrain': ('', 'ground, e.g. plane or stairs; empty: as in params_file'),
    'terrain_file': ('', 'YAML, heights or mesh of terrain:=file; empty: as in params_file'),
    'x': ('', 'where the robot starts, along x [m]; empty: as in params_file'),
    'y': ('', 'where the robot starts, along y [m]; empty: as in params_file'),
    'height': ('', 'gap below its lowest foot at the start [m]; empty: as in params_file'),
    'paused': ('', 'true: wait for the service ~/pause before the first step'),
    'rate': ('', 'real-time factor; 0: as fast as possible; empty: as in params_file'),
    'clock': ('', 'publish, follow (that of another simulation) or none; empty: publish'),
    'record': ('', 'file to record the run in, for python -m contact_sim.replay'),
    'namespace': ('', 'namespace of nodes and topics (not of /tf and /clock)'),
    'frame_prefix': ('', 'put before the names of all links in TF, for example left/'),
    'params_file': ('', 'YAML file with parameters, see config/contact_sim.yaml'),
    'robot_state_publisher': STATE_PUBLISHER,
    'publish_robot_description': (
        'true',
        'false: without robot_state_publisher, too, robot_description comes from elsewhere',
    ),
    'viewer': VIEWER,
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
    'robots_touch': ('robots_touch', bool),
    'clock': ('clock', str),
    'record': ('record', str),
    'frame_prefix': ('frame_prefix', str),
}
"""Launch argument: parameter of the node that it overrides unless it is empty, and its type."""

TOPICS_OF_ROBOT = ('robot_description', 'odom')
TOPICS_OF_WORLD = ('contact_sim/contact_markers', 'contact_sim/terrain')
"""Absolute in the RViz configuration: remapped into the namespace."""
OF_ROBOT = ('rviz_default_plugins/RobotModel', 'rviz_default_plugins/Odometry')
"""Displays of config/contact_sim.rviz of which each of several robots gets one."""


def generate_launch_description() -> LaunchDescription:
    """Return the declared arguments, and the nodes that they ask for."""
    return launch_description(ARGUMENTS, nodes)


def nodes(context: LaunchContext) -> list[Node | LogInfo]:
    """Return the nodes that are wanted; the arguments have their values now."""
    started: list[Node | LogInfo] = [simulation(context)]
    if has_state_publisher(context):
        started += [state_publisher(context, robot) for robot in robots_of(context)]
    started += left_out(
        context, 'robot_state_publisher', 'robot_state_publisher',
        'no transforms of the links on /tf; the simulation publishes robot_description',
    )  # fmt: skip
    if is_true(context, 'rviz'):
        started.append(rviz(context))
    return started


def has_state_publisher(context: LaunchContext) -> bool:
    """Return whether robot_state_publisher is started."""
    return wanted(context, 'robot_state_publisher', 'robot_state_publisher')


def robots_of(context: LaunchContext) -> tuple[RobotEntry, ...]:
    """Return the robots that are simulated."""
    return launched_robots(context.launch_configurations)


def simulation(context: LaunchContext) -> Node:
    """Return the simulation node; when it ends, everything ends."""
    values = context.launch_configurations
    robot = {**robot_parameters(values), 'robot_description': ''}
    robot['robots'] = entries_in(values['robots']) or ['']  # which is how ROS says none
    robot['publish_robot_description'] = is_true(context, 'publish_robot_description') and (
        not has_state_publisher(context)  # which does, and never two of them
    )
    if values['self_collision']:
        robot['self_collision'] = values['self_collision'].split(',')
    robot |= constraints_in(values['constraints'])
    port = viewer_port(values['viewer'])
    robot |= {} if port is None else {'viewer.port': port}
    overrides = {
        parameter: ParameterValue(LaunchConfiguration(argument), value_type=kind)
        for argument, (parameter, kind) in PARAMETERS.items()
        if values[argument]
    }
    if values['params_file']:
        parts = ['', *filter(None, values['namespace'].split('/')), 'contact_sim']
        check_params_file(values['params_file'], '/'.join(parts))
    return required_process(
        'contact_sim',
        'simulation',
        name='contact_sim',
        namespace=values['namespace'],
        parameters=[*([values['params_file']] if values['params_file'] else []), robot, overrides],
        output='screen',
    )


def state_publisher(context: LaunchContext, robot: RobotEntry) -> Node:
    """Return robot_state_publisher with the description that the simulation uses."""
    values = context.launch_configurations
    arguments = xacro_arguments(values['xacro_arguments'].split())
    shown = loose_body(robot.source) or load_robot(
        robot.source, feet=(), check_meshes=False, xacro_arguments=arguments
    )  # the simulation looks for feet and meshes
    return required_process(
        'robot_state_publisher',
        'robot_state_publisher',
        without='robot_state_publisher:=false',
        namespace='/'.join(filter(None, (values['namespace'], robot.name))),
        parameters=[
            {
                'robot_description': shown.description,
                'frame_prefix': values['frame_prefix'] + (f'{robot.name}/' if robot.name else ''),
                'publish_frequency': LINK_TRANSFORM_RATE,
                'use_sim_time': True,
            }
        ],
        output='screen',
    )


def rviz(context: LaunchContext) -> Node:
    """Return RViz; it finds the meshes of pip packages like those of ROS packages."""
    values, names = context.launch_configurations, [robot.name for robot in robots_of(context)]
    own = [f'{name}/{topic}'.lstrip('/') for name in names for topic in TOPICS_OF_ROBOT]
    return process(
        'rviz2',
        'rviz2',
        without='rviz:=false',
        namespace=values['namespace'],
        arguments=['-d', values['rviz_config'] or rviz_file(names, values['frame_prefix'])],
        remappings=[(f'/{topic}', topic) for topic in (*own, *TOPICS_OF_WORLD)],
        parameters=[{'use_sim_time': True}],
        additional_env={'AMENT_PREFIX_PATH': mesh_prefixes()},
        output='log',
    )


def rviz_file(names: list[str], frame_prefix: str) -> str:
    """Return the RViz configuration that shows robots of these names, or the one without one."""
    if names == ['']:
        return str(share_path('config', 'contact_sim.rviz'))

    def owners(display: dict) -> list[str]:
        return names if display['Class'] in OF_ROBOT else []

    return saved_rviz_config(with_displays(rviz_config(), owners, frame_prefix), 'robots.rviz')
