"""Parts shared by the launch files: described arguments, a simulation with its controller."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    SetEnvironmentVariable,
)
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from contact_sim.robot.share import share_path
from contact_sim.ros.settings.robots import RobotEntry, entries_in, robot_entries

Arguments = Mapping[str, tuple[str, str]]
"""Launch argument: default, description."""

ROBOTS = (
    '',
    'several robots in one world instead, each name=robot or name=robot@x,y,yaw in the namespace '
    "of its name, for example 'a=go1 b=anymal_b@1.5,0,0.3'",
)
"""Default and description of the launch argument `robots`."""
COMMON: Arguments = {
    'localhost_only': ('false', 'true: the nodes talk to others on this machine only'),
}
"""Arguments of every launch file."""
DEMO_ARGUMENTS: Arguments = {
    'robot': ('go1', 'robot of the catalogue, for example anymal_b'),
    'robots': ROBOTS,
    'contact_model': ('ncp', 'contact model, e.g. sap'),
    'rviz': ('false', 'true: show the robot, forces and friction cones in RViz'),
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

    Args:
        context: where the arguments have their values.
        controller: executable of this package.
        parameters: of the controller, besides the robot.
        arguments: of simulation.launch.py, besides DEMO_ARGUMENTS.
    """
    given = context.launch_configurations
    controllers = [
        Node(
            package='contact_sim',
            executable=controller,
            namespace=robot.name,
            parameters=[{'robot': robot.source, **(parameters or {})}],
            output='screen',
        )
        for robot in launched_robots(given)
    ]
    common = {name: given[name] for name in DEMO_ARGUMENTS}
    return [simulation({**common, **(arguments or {})}), *controllers]


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
