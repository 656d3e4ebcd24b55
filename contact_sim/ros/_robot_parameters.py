"""The parameters that name a robot, of the simulation and of every controller; imports no ROS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import xacro_arguments
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import loose_ball, loose_box
from contact_sim.robot._urdf import as_number

LOOSE = {'box': 4, 'ball': 2}
"""Numbers of a loose body: its sizes and its mass."""
POSE_FORM = "expected name: joint=value joint=value, such as 'crouched: hip=0.5 knee=-1'"


@dataclass(frozen=True)
class RobotParameters(Parameters):
    """Which robot it is, and what its files leave out."""

    robot: str = parameter(
        default_robot(), '', 'robot of the catalogue, by default quadruped where the robots of '
        'example-robot-data are not installed; ignored when robots, urdf_path or '
        'robot_description is set',
    )  # fmt: skip
    urdf_path: str = parameter('', '', 'URDF of the robot, or .xacro: a program that runs')
    srdf_path: str = parameter('', '', 'SRDF with reference poses and end effectors')
    xacro_arguments: tuple[str, ...] = parameter(
        (), '', 'arguments of a xacro, name:=value each; given, robot_description may be one'
    )
    floating_base: bool = parameter(True, '', 'false: the root link is fixed to the world')
    actuated_joints: tuple[str, ...] = parameter(
        (),
        '',
        'driven joints; empty: all with one degree of freedom, but for those that follow '
        'others and passive joints of the SRDF',
    )
    check_meshes: bool = parameter(True, '', 'refuse a robot whose meshes are not on this machine')
    robot_description: str = parameter('', '', 'URDF text of the robot; wins over urdf_path')
    feet: tuple[str, ...] = parameter(
        (), '', 'frames of the feet; empty: from the catalogue or the SRDF'
    )
    poses: tuple[str, ...] = parameter(
        (), '', 'reference poses, each name: joint=value joint=value [rad or m]; they win over '
        'those of the SRDF',
    )  # fmt: skip

    @property
    def source(self) -> str:
        """Return the text, the path or the name in the catalogue, whichever wins."""
        return self.robot_description or self.urdf_path or self.robot


def named_robot(
    source: str, said: RobotParameters, names: Mapping[str, Sequence[str]] | None = None
) -> RobotModel:
    """Return a robot of the catalogue, of a file or of a text, or a loose body.

    Args:
        source: as in `RobotEntry`.
        said: how it is loaded; a loose body takes nothing of it.
        names: feet, actuated_joints and poses where they are not those in `said`.

    Raises:
        ContactSimError: see `load_robot` and `loose_body`.
    """
    own = vars(said) if names is None else names
    return loose_body(source) or load_robot(
        source, floating_base=said.floating_base, feet=own['feet'] or None,
        actuated_joints=own['actuated_joints'] or None, srdf=said.srdf_path or None,
        poses=poses_in(own['poses']), check_meshes=said.check_meshes,
        xacro_arguments=xacro_arguments(said.xacro_arguments),
    )  # fmt: skip


def poses_in(texts: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the poses in texts like 'crouched: hip=0.5 knee=-1'.

    Raises:
        InvalidInput: a text of another form, a pose or a joint in it that is named twice.
    """
    poses: dict[str, dict[str, float]] = {}
    for text in texts:
        name, colon, rest = text.partition(':')
        name, values = name.strip(), {}
        for word in rest.split():
            joint, _, value = word.rpartition('=')
            if joint in values:
                raise InvalidInput(f'poses: {text!r}: joint {joint!r} is listed more than once')
            values[joint] = as_number(value)
        if not colon or not name or not values or '' in values or name in poses:
            twice = 'the pose is listed more than once' if name in poses else POSE_FORM
            raise InvalidInput(f'poses: {text!r}: {twice}')
        poses[name] = values
    return poses


def loose_body(source: str) -> RobotModel | None:
    """Return a body written as box:x:y:z:mass or ball:radius:mass [m, kg]; None for others.

    Raises:
        InvalidInput: numbers of another number, or that are none.
    """
    kind, *words = source.split(':')
    if kind not in LOOSE:
        return None
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != LOOSE[kind]:
        raise InvalidInput(f'{source!r}: expected box:x:y:z:mass or ball:radius:mass [m, kg]')
    *sizes, mass = numbers
    return loose_box(sizes, mass) if kind == 'box' else loose_ball(sizes[0], mass)
