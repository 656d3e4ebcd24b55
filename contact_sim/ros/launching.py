"""Functions shared by the launch files: arguments, processes, simulation and controller, RViz."""

from __future__ import annotations

import copy
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
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

from contact_sim import _reading
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName, shown
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import share_path
from contact_sim.ros._processes import bound_to_this_process
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
"""Port of the page with `viewer:=true`."""
VIEWER = (
    '',
    f'true: a page in the browser at port {VIEWER_PORT}, or the port; empty: as in params_file',
)
"""Default and description of the launch argument `viewer`."""
AUTO = 'auto'
"""Value of an argument that asks for a program where it is installed."""
STATE_PUBLISHER = (
    AUTO,
    'true; false: the transforms of the links come from elsewhere; auto: true where it is '
    'installed',
)
"""Default and description of the launch argument `robot_state_publisher`."""
OF_LAUNCH = ('launch-prefix', 'launch-prefix-filter')
"""Arguments that launch itself takes."""
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
    'robot_state_publisher': STATE_PUBLISHER,
    'rviz': ('false', 'true: show the robot, forces and friction cones in RViz'),
    'viewer': VIEWER,
}
"""Arguments of simulation.launch.py that every demo has, too."""


def launch_description(
    arguments: Arguments, parts: Callable[[LaunchContext], list[Any]]
) -> LaunchDescription:
    """Return declared arguments, with COMMON, and what `parts` returns for their values."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in {**arguments, **COMMON}.items()
    ]

    def everything(context: LaunchContext) -> list[Any]:
        check_command_line(context, [*arguments, *COMMON])
        local = is_true(context, 'localhost_only')
        network = SetEnvironmentVariable('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        return [*([network] if local else []), *parts(context)]

    return LaunchDescription([*declared, OpaqueFunction(function=everything)])


def check_command_line(context: LaunchContext, known: Collection[str]) -> None:
    """Raise UnknownName for an argument of the command line that nobody takes.

    Arguments of a launch file that includes ours are its own affair.
    """
    path = context.get_locals_as_dict().get('current_launch_file_path', '')
    if Path(path).name not in {Path(word).name for word in sys.argv}:
        return
    for word in sys.argv:
        name, sign, _ = word.partition(':=')
        if sign and name not in (*known, *OF_LAUNCH):
            raise UnknownName(f'argument of {Path(path).name}', name, known)


def is_true(context: LaunchContext, argument: str) -> bool:
    """Return whether an argument says true; raise if it says neither true nor false."""
    return bool(IfCondition(LaunchConfiguration(argument)).evaluate(context))


def wanted(context: LaunchContext, argument: str, package: str) -> bool:
    """Return whether an argument asks for the executable of the package that has its name.

    It says true, false, or auto: where it is installed.
    """
    if context.launch_configurations[argument].lower() == AUTO:
        return installed(package, package)
    return is_true(context, argument)


def left_out(context: LaunchContext, argument: str, package: str, what: str) -> list[LogInfo]:
    """Return a line that says what is missing where `auto` does not find an executable."""
    missing = context.launch_configurations[argument].lower() == AUTO
    if not missing or installed(package, package):
        return []
    return [LogInfo(msg=f'{package} is not installed ({installation(package)}): {what}')]


def check_params_file(path: str, node: str) -> None:
    """Check that a file of parameters is for a node, given by its full name.

    ROS ignores all sections whose key is the name of another node.

    Raises:
        InvalidInput: a file without a section for this node, or one that cannot be read.
    """
    try:
        content = _reading.yaml_value(path)
    except _reading.Unreadable as error:
        raise InvalidInput(f'params_file:={shown(path)}: cannot be read: {error}') from error
    if not isinstance(content, dict) or not content:
        raise InvalidInput(
            f'params_file:={shown(path)}: expected sections of nodes, such as /**: with '
            'ros__parameters: in it'
        )
    keys = _section_names(content)
    if not any(_names(key, node) for key in keys):
        raise InvalidInput(
            f'params_file:={shown(path)}: {", ".join(keys) or "no section"} is not the name of '
            f'the node {node}, so ROS would ignore it; write {node}: or /**: instead'
        )


def _section_names(content: Mapping[Any, Any]) -> list[str]:
    """Return the names of nodes in a file of parameters; namespaces may be keys around them."""
    names = []
    for key, value in content.items():
        inner = value if isinstance(value, dict) else {}
        if 'ros__parameters' in inner:
            names.append(str(key))
        else:
            names += [f'{key}/{name.lstrip("/")}' for name in _section_names(inner)]
    return names


def _names(key: str, node: str) -> bool:
    """Return whether a key of a file of parameters stands for a node, as rcl compares them."""
    pattern = re.escape('/' + key.lstrip('/')).replace(r'/\*\*', r'(/\w+)*')
    return re.fullmatch(pattern.replace(r'/\*', r'/\w+'), node) is not None


class NotInstalled(ContactSimError):
    """A launch needs a program that is not on this machine."""


def process(package: str, executable: str, without: str = '', **settings: Any) -> Node:
    """Return a node whose process ends when the launch ends, even if the launch is killed.

    It is called before any process starts: an exception after that would leave processes behind.
    NotInstalled names the launch argument that does `without` the program.
    """
    if not installed(package, executable):
        rather = f', or launch with {without}' if without else ''
        raise NotInstalled(
            f'no executable {executable!r} of the ROS package {package!r} in AMENT_PREFIX_PATH; '
            f'{installation(package)}{rather}'
        )
    bound = shlex.join(bound_to_this_process()) + ' '
    prefix = LaunchConfiguration('launch-prefix', default='')
    return Node(
        package=package, executable=executable, exec_name=executable, prefix=[bound, prefix],
        **settings,
    )  # fmt: skip


def installation(package: str) -> str:
    """Return the command that installs a package of ROS."""
    distribution = os.environ.get('ROS_DISTRO', '<distribution>')
    return f'apt install ros-{distribution}-{package.replace("_", "-")}'


def installed(package: str, executable: str) -> bool:
    """Return whether ROS finds an executable."""
    try:
        return Path(get_package_prefix(package), 'lib', package, executable).is_file()
    except PackageNotFoundError:
        return False


def required_process(package: str, executable: str, **settings: Any) -> Node:
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

    The launch ends with the first of them. `arguments` are those of simulation.launch.py.
    """
    values = context.launch_configurations
    named = {} if values['robots'] else robot_parameters(values)
    controllers = [
        required_process(
            'contact_sim', controller, namespace=robot.name, output='screen',
            parameters=[{**named, 'robot': robot.source, **(parameters or {})}],
        )
        for robot in launched_robots(values)
    ]  # fmt: skip
    common = {name: values[name] for name in DEMO_ARGUMENTS}
    return [simulation({**common, **(arguments or {})}), *controllers]


def robot_parameters(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a node that ROBOT_ARGUMENTS set; empty ones are left out."""
    named: dict[str, Any] = {'robot': values['robot'], 'urdf_path': values['urdf']}
    for name, separator in (('feet', None), ('poses', ';'), ('xacro_arguments', None)):
        if values[name]:
            named[name] = values[name].split(separator)
    if values['check_meshes']:
        named['check_meshes'] = ParameterValue(
            LaunchConfiguration('check_meshes'), value_type=bool
        )
    return named


def viewer_port(text: str) -> int | None:
    """Return the port in the argument `viewer`, 0 for no page, None where it is empty."""
    words = {'': None, 'true': VIEWER_PORT, 'false': 0}
    if text.lower() in words:
        return words[text.lower()]
    if text.isdecimal() and int(text) < 2**16:
        return int(text)
    raise InvalidInput(f'viewer:={shown(text)}: expected true, false, or a port below 65536')


def launched_robots(values: Mapping[str, str]) -> tuple[RobotEntry, ...]:
    """Return the robots that the arguments name; a single robot has no name."""
    alone = RobotEntry('', values.get('urdf') or values['robot'])
    return robot_entries(entries_in(values['robots'])) or (alone,)


def with_displays(
    config: Mapping[str, Any],
    owners: Callable[[Mapping[str, Any]], Sequence[str]],
    frame_prefix: str = '',
) -> dict[str, Any]:
    """Return an RViz configuration in which each owner of a display has one of its own.

    The displays of `config` have absolute topics. `owners` returns the namespaces into which the
    topic of a display moves; with none it stays. `frame_prefix` comes before these in frames.
    """
    result = copy.deepcopy(dict(config))
    displays = []
    for display in result['Visualization Manager']['Displays']:
        names = owners(display)
        for name in names:
            own = copy.deepcopy(display)
            own['Name'] = f'{display["Name"]} {name}'
            topic = own.get('Description Topic') or own['Topic']
            topic['Value'] = f'/{name}{topic["Value"]}'
            if 'Description Topic' in own:
                own['TF Prefix'] = frame_prefix + name
            displays.append(own)
        if not names:
            displays.append(display)
    result['Visualization Manager']['Displays'] = displays
    return result


def rviz_config() -> dict[str, Any]:
    """Return the RViz configuration of this package."""
    text = share_path('config', 'contact_sim.rviz').read_text(encoding='utf-8')
    return dict(yaml.safe_load(text))


def saved_rviz_config(config: Mapping[str, Any], name: str) -> str:
    """Return the path of a file, called `name`, with an RViz configuration."""
    path = Path(tempfile.mkdtemp(prefix='contact_sim_')) / name
    path.write_text(yaml.safe_dump(dict(config)), encoding='utf-8')
    return str(path)
