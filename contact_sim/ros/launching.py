"""Parts shared by the launch files: described arguments, a simulation with its controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from contact_sim.robot.share import share_path

Arguments = Mapping[str, tuple[str, str]]
"""Launch argument: default, description."""

DEMO_ARGUMENTS: Arguments = {
    'robot': ('go1', 'robot of the catalogue, for example anymal_b'),
    'contact_model': ('ncp', 'contact model, e.g. sap'),
    'rviz': ('false', 'true: show the robot, forces and friction cones in RViz'),
}
"""Arguments of simulation.launch.py that every demo has, too."""


def described(
    arguments: Arguments, parts: Callable[[LaunchContext], list[Any]]
) -> LaunchDescription:
    """Return declared arguments, and what `parts` makes of them once they have their values."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in arguments.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=parts)])


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
    """Return a simulation with the DEMO_ARGUMENTS in force, and the controller of its robot.

    Args:
        context: where the arguments have their values.
        controller: executable of this package.
        parameters: of the controller, besides the robot.
        arguments: of simulation.launch.py, besides DEMO_ARGUMENTS.
    """
    given = context.launch_configurations
    node = Node(
        package='contact_sim',
        executable=controller,
        parameters=[{'robot': given['robot'], **(parameters or {})}],
        output='screen',
    )
    common = {name: given[name] for name in DEMO_ARGUMENTS}
    return [simulation({**common, **(arguments or {})}), node]
