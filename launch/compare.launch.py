"""One robot per contact model, side by side in RViz, in namespaces named after the models.

ros2 launch contact_sim compare.launch.py robot:=go1 models:='ncp sap todorov' height:=0.2
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import GroupAction
from launch_ros.actions import Node, SetRemap

from contact_sim import contact_models
from contact_sim.contact_models import as_contact_model
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import mesh_prefixes
from contact_sim.ros import launching

ARGUMENTS = {
    'models': (' '.join(contact_models()), 'contact models, separated by spaces'),
    'robot': (default_robot(), 'robot of the catalogue, for example anymal_b'),
    'urdf': ('', 'path of a URDF or xacro file; wins over robot'),
    'feet': ('', 'frames of the feet with blanks between them; empty: as in params_file'),
    'poses': ('', 'reference poses, name: joint=value joint=value; a semicolon between two'),
    'constraints': ('', 'bilateral constraints, stand: kind=frame_anchor frame=trunk; and so on'),
    'check_meshes': ('', 'false: the robot may have meshes that are not on this machine'),
    'xacro_arguments': ('', 'arguments of a xacro with blanks between them: mass:=3 arm:=true'),
    'spacing': ('1.0', 'distance between two robots along y [m]'),
    'height': ('', 'gap below the lowest foot at the start [m]; empty: as in params_file'),
    'terrain': ('', 'terrain, e.g. plane; empty: as in params_file'),
    'paused': ('', 'true: wait for the service ~/pause of each before the first step'),
    'rate': ('', 'real-time factor; 0: as fast as possible; empty: as in params_file'),
    'params_file': ('', 'YAML file with parameters, see config/contact_sim.yaml'),
    'robot_state_publisher': launching.STATE_PUBLISHER,
    'publish_robot_description': ('true', 'false: without the former, it comes from elsewhere'),
    'rviz': ('auto', 'true; false: no RViz; auto: true where it is installed'),
    'viewer': ('', 'true: pages in the browser, of the first model at port 8080; or that port'),
}
"""Launch argument: default, description."""

PASSED_ON = (
    *('robot', 'urdf', 'height', 'terrain', 'paused', 'rate', 'params_file'),
    *('feet', 'poses', 'constraints', 'check_meshes', 'xacro_arguments'),
    *('robot_state_publisher', 'publish_robot_description'),
)
"""Arguments of simulation.launch.py that all simulations get as they are."""

PER_ROBOT = ('rviz_default_plugins/RobotModel', 'rviz_default_plugins/MarkerArray')
"""Displays of config/contact_sim.rviz of which every robot gets one."""
GROUND = 'Terrain'
"""Name of the display of the ground."""


def generate_launch_description() -> LaunchDescription:
    """Return the declared arguments, and the simulations that they ask for."""
    return launching.launch_description(ARGUMENTS, everything)


def everything(context: LaunchContext) -> list[object]:
    """Return one simulation per model, and RViz; the arguments have their values now."""
    values = context.launch_configurations
    models = list(dict.fromkeys(values['models'].replace(',', ' ').split()))
    for model in models:
        as_contact_model(model)  # an unknown name ends the launch with the known ones
    spacing = float(values['spacing'])
    port = launching.viewer_port(values['viewer'])
    pages = [str(port + k) if port else values['viewer'] for k in range(len(models))]
    started: list[object] = [
        simulation(values, model, spacing * (k - 0.5 * (len(models) - 1)), k > 0, pages[k])
        for k, model in enumerate(models)
    ]
    if launching.wanted(context, 'rviz', 'rviz2'):
        started.append(rviz(models))
    started += launching.left_out(context, 'rviz', 'rviz2', 'nothing is shown; see viewer:=true')
    return started


def simulation(
    values: dict[str, str], model: str, y: float, own_clock: bool, viewer: str
) -> GroupAction:
    """Return the simulation of one model at y [m]; all but the first have clocks of their own."""
    arguments = {name: values[name] for name in PASSED_ON}
    arguments |= {
        'contact_model': model,
        'namespace': model,
        'frame_prefix': f'{model}/',
        'y': repr(y),
        'rviz': 'false',
        'viewer': viewer,
    }
    clock = [SetRemap('/clock', 'clock')] if own_clock else []
    return GroupAction([*clock, launching.simulation(arguments)])


def rviz(models: list[str]) -> Node:
    """Return RViz with the displays of every robot."""
    config = with_displays_of(models, launching.rviz_config())
    return launching.process(
        'rviz2',
        'rviz2',
        without='rviz:=false',
        arguments=['-d', launching.saved_rviz_config(config, 'compare.rviz')],
        parameters=[{'use_sim_time': True}],
        additional_env={'AMENT_PREFIX_PATH': mesh_prefixes()},
        output='log',
    )


def with_displays_of(models: list[str], config: dict) -> dict:
    """Return an RViz configuration in which every robot has its model and its contacts.

    They stand on the same ground, which is shown once.
    """

    def owners(display: dict) -> list[str]:
        if display['Class'] not in PER_ROBOT:
            return []
        return models[:1] if display['Name'] == GROUND else models

    return launching.with_displays(config, owners)
