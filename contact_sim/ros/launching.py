"""Parts shared by the launch files: arguments, processes, a simulation with its controller."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    SetEnvironmentVariable,
    Shutdown,
)
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from contact_sim.errors import ContactSimError, InvalidInput, shown
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import share_path
from contact_sim.ros._robots import RobotEntry, entries_in, robot_entries

Arguments = Mapping[str, tuple[str, str]]
"""Launch argument: default, description."""

ROBOTS = (
    '',
    'several robots in one world instead, each name=robot or name=robot@x,y,yaw in the namespace '
    "of its name, for example 'a=go1 b=anymal_b@1.5,0,0.3'",
)
"""Default and description of the launch argument `robots`."""
VIEWER_PORT = 8080
"""Of the page where only `viewer:=true` is said."""
VIEWER = (
    '',
    f'true: a page in the browser at port {VIEWER_PORT}, or the port; empty: as in params_file',
)
"""Default and description of the launch argument `viewer`."""
COMMON: Arguments = {
    'localhost_only': ('false', 'true: the nodes talk to others on this machine only'),
}
"""Arguments of every launch file."""
ROBOT_ARGUMENTS: Arguments = {
    'robot': (
        default_robot(),
        'robot of the catalogue, for example anymal_b; params_file cannot change it',
    ),
    'urdf': ('', 'path of a URDF or xacro file; wins over robot'),
    'feet': ('', 'frames of the feet with blanks between them; empty: as found'),
    'poses': ('', 'reference poses, name: joint=value joint=value; a semicolon between two'),
    'check_meshes': ('', 'false: the robot may have meshes that are not on this machine'),
    'xacro_arguments': ('', 'arguments of a xacro with blanks between them: mass:=3 arm:=true'),
}
"""Arguments that name a robot, see `robot_parameters`."""
DEMO_ARGUMENTS: Arguments = {
    **ROBOT_ARGUMENTS,
    'robots': ROBOTS,
    'contact_model': ('ncp', 'contact model, e.g. sap'),
    'robot_state_publisher': ('true', 'false: the transforms of the links come from elsewhere'),
    'rviz': ('false', 'true: show the robot, forces and friction cones in RViz'),
    'viewer': VIEWER,
}
"""Arguments of simulation.launch.py that every demo has, too."""


def described(
    arguments: Arguments, parts: Callable[[LaunchContext], list[Any]]
) -> LaunchDescription:
    """Return declared arguments, and what `parts` makes of them once they have their values.

    Those in COMMON are added, and done here.
    """
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in {**arguments, **COMMON}.items()
    ]

    def everything(context: LaunchContext) -> list[Any]:
        return [*network(context), *parts(context)]

    return LaunchDescription([*declared, OpaqueFunction(function=everything)])


def network(context: LaunchContext) -> list[SetEnvironmentVariable]:
    """Return what keeps the nodes behind it on this machine, where `localhost_only` says so."""
    if not IfCondition(LaunchConfiguration('localhost_only')).evaluate(context):
        return []
    return [SetEnvironmentVariable('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')]


class NotInstalled(ContactSimError):
    """A launch needs a program that is not on this machine."""


def process(package: str, executable: str, without: str = '', **settings: Any) -> Node:
    """Return a node whose process ends when the launch ends, even if the launch is killed.

    Made by a function of `described`, it is looked for before any process starts: an exception
    after that would leave processes behind.

    Args:
        package: where ROS finds it.
        executable: in the package.
        without: launch argument that does without it.
        settings: further arguments of `Node`.

    Raises:
        NotInstalled: there is no such executable; names `without`.
    """
    if not installed(package, executable):
        distribution = os.environ.get('ROS_DISTRO', '<distribution>')
        rather = f', or launch with {without}' if without else ''
        raise NotInstalled(
            f'no executable {executable!r} of the ROS package {package!r} in AMENT_PREFIX_PATH; '
            f'apt install ros-{distribution}-{package.replace("_", "-")}{rather}'
        )
    setpriv = shutil.which('setpriv')  # part of util-linux
    bound = f'{setpriv} --pdeathsig TERM -- ' if setpriv else ''
    given = LaunchConfiguration('launch-prefix', default='')
    return Node(package=package, executable=executable, prefix=[bound, given], **settings)


def installed(package: str, executable: str) -> bool:
    """Return whether ROS finds an executable."""
    try:
        return Path(get_package_prefix(package), 'lib', package, executable).is_file()
    except PackageNotFoundError:
        return False


def needed(package: str, executable: str, **settings: Any) -> Node:
    """Return a `process` with which everything ends; its failure is that of the launch."""

    def ended(event: Any, context: LaunchContext) -> list[Any] | None:
        if context.is_shutdown:
            return None
        if event.returncode:  # launch returns 1 after an exception, and only then
            raise RuntimeError(f'the {executable} ended with exit code {event.returncode}')
        reason = f'the {executable} ended'
        return [LogInfo(msg=reason), Shutdown(reason=reason)]

    return process(package, executable, on_exit=ended, **settings)


def simulation(arguments: Mapping[str, str]) -> IncludeLaunchDescription:
    """Return simulation.launch.py with values for its arguments."""
    source = PythonLaunchDescriptionSource(str(share_path('launch', 'simulation.launch.py')))
    return IncludeLaunchDescription(source, launch_arguments=list(arguments.items()))


def controlled_simulation(
    context: LaunchContext,
    controller: str,
    parameters: Mapping[str, Any] | None = None,
    arguments: Mapping[str, str] | None = None,
) -> list[IncludeLaunchDescription | Node]:
    """Return a simulation with the DEMO_ARGUMENTS in force, and a controller of each robot.

    The demo ends with the first of them.

    Args:
        context: where the arguments have their values.
        controller: executable of this package.
        parameters: of the controller, besides the robot.
        arguments: of simulation.launch.py, besides DEMO_ARGUMENTS.
    """
    given = context.launch_configurations
    named = {} if given['robots'] else robot_parameters(given)
    controllers = [
        needed(
            'contact_sim',
            controller,
            namespace=robot.name,
            parameters=[{**named, 'robot': robot.source, **(parameters or {})}],
            output='screen',
        )
        for robot in launched_robots(given)
    ]
    common = {name: given[name] for name in DEMO_ARGUMENTS}
    return [simulation({**common, **(arguments or {})}), *controllers]


def robot_parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a node that ROBOT_ARGUMENTS set; those that are empty are left."""
    named: dict[str, Any] = {'robot': given['robot'], 'urdf_path': given['urdf']}
    for name, separator in (('feet', None), ('poses', ';'), ('xacro_arguments', None)):
        if given[name]:
            named[name] = given[name].split(separator)
    if given['check_meshes']:
        named['check_meshes'] = ParameterValue(
            LaunchConfiguration('check_meshes'), value_type=bool
        )
    return named


def viewer_port(said: str) -> int | None:
    """Return the port of the page that the argument `viewer` asks for, 0 for no page.

    None: it says nothing.

    Raises:
        InvalidInput: neither true, false nor a port.
    """
    words = {'': None, 'true': VIEWER_PORT, 'false': 0}
    if said.lower() in words:
        return words[said.lower()]
    if said.isdecimal() and int(said) < 2**16:
        return int(said)
    raise InvalidInput(f'viewer:={shown(said)}: expected true, false, or a port below 65536')


def launched_robots(given: Mapping[str, str]) -> tuple[RobotEntry, ...]:
    """Return the robots that the arguments name, the one that is alone without a name.

    Raises:
        InvalidInput: an entry of `robots` that says nothing.
    """
    alone = RobotEntry('', given.get('urdf') or given['robot'])
    return robot_entries(entries_in(given['robots'])) or (alone,)


def with_displays(
    config: Mapping[str, Any],
    owners: Callable[[Mapping[str, Any]], Sequence[str]],
    frame_prefix: str = '',
) -> dict[str, Any]:
    """Return an RViz configuration in which each owner of a display has one of its own.

    Args:
        config: whose displays have absolute topics.
        owners: namespaces into which the topic of a display moves; none: it stays as it is.
        frame_prefix: what stands before these in the names of frames.
    """
    result = copy.deepcopy(dict(config))
    displays = []
    for display in result['Visualization Manager']['Displays']:
        names = owners(display)
        displays += [_display_of(name, display, frame_prefix) for name in names] or [display]
    result['Visualization Manager']['Displays'] = displays
    return result


def _display_of(name: str, display: Mapping[str, Any], frame_prefix: str) -> dict[str, Any]:
    own = copy.deepcopy(dict(display))
    own['Name'] = f'{display["Name"]} {name}'
    topic = own.get('Description Topic') or own['Topic']
    topic['Value'] = f'/{name}{topic["Value"]}'
    if 'Description Topic' in own:
        own['TF Prefix'] = frame_prefix + name
    return own


def rviz_config() -> dict[str, Any]:
    """Return the RViz configuration of this package."""
    text = share_path('config', 'contact_sim.rviz').read_text(encoding='utf-8')
    return dict(yaml.safe_load(text))


def saved(config: Mapping[str, Any], name: str) -> str:
    """Return the path of a file, called `name`, with an RViz configuration."""
    path = Path(tempfile.mkdtemp(prefix='contact_sim_')) / name
    path.write_text(yaml.safe_dump(dict(config)), encoding='utf-8')
    return str(path)
