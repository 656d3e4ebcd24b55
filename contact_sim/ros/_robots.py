"""Parameters that describe robots, and the robot models made from them; imports no ROS.

Controllers use RobotParameters and `named_robot`, the simulation everything. Where a
parameter names something of one of several robots, it is `robot/name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.parameters import Parameters, Settings, parameter
from contact_sim.robot._actuators import quantities
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import xacro_arguments
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import (
    SEPARATOR,
    RobotPart,
    joined,
    loose_ball,
    loose_box,
    map_robots,
    parts_of,
)
from contact_sim.robot._trees import MOST_FREEDOMS
from contact_sim.robot._urdf import parse_number

LOOSE = {'box': 4, 'ball': 2}
"""Numbers of a loose body: its sizes and its mass."""
ALL = 'all'
"""In `contact_links`: every link that moves and has collision geometry."""
NONE = 'none'
"""In `contact_links`: no link but the feet."""
NAMING = (
    'feet', 'contact_links', 'self_collision', 'actuated_joints', 'effort_joints', 'poses',
)  # fmt: skip
"""Parameters that name something of a robot."""
NONE_AT_ZERO = 'velocity_limit', 'saturation_effort'
"""Quantities of an actuator that 0 switches off."""
ROBOT_FORM = "expected name=robot or name=robot@x,y,yaw, such as 'a=go1' or 'b=anymal_b@1.5,0,0.3'"
NAME = re.compile('[A-Za-z][A-Za-z0-9_]*')
"""What may be a namespace in ROS and the beginning of a frame."""
NOT_SET = -1.0
"""Of numbers that are at least 0: none."""
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
        (), '', 'driven joints; empty: all with one degree of freedom, but for those that follow '
        'others and passive joints of the SRDF',
    )  # fmt: skip
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
    source: str, parameters: RobotParameters, names: Mapping[str, Sequence[str]] | None = None
) -> RobotModel:
    """Return a robot of the catalogue, of a file or of a text, or a loose body."""
    # feet, actuated_joints and poses: of one robot of several they are not those in `parameters`
    own = vars(parameters) if names is None else names
    return loose_body(source) or load_robot(
        source, floating_base=parameters.floating_base, feet=own['feet'] or None,
        actuated_joints=own['actuated_joints'] or None, srdf=parameters.srdf_path or None,
        poses=poses_in(own['poses']), check_meshes=parameters.check_meshes,
        xacro_arguments=xacro_arguments(parameters.xacro_arguments),
    )  # fmt: skip


def poses_in(texts: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the poses in texts like 'crouched: hip=0.5 knee=-1'."""
    poses: dict[str, dict[str, float]] = {}
    for text in texts:
        name, colon, rest = text.partition(':')
        name, values = name.strip(), {}
        for word in rest.split():
            joint, _, value = word.rpartition('=')
            if joint in values:
                raise InvalidInput(f'poses: {text!r}: joint {joint!r} is listed more than once')
            values[joint] = parse_number(value)
        if not colon or not name or not values or '' in values or name in poses:
            twice = 'the pose is listed more than once' if name in poses else POSE_FORM
            raise InvalidInput(f'poses: {text!r}: {twice}')
        poses[name] = values
    return poses


def loose_body(source: str) -> RobotModel | None:
    """Return a body written as box:x:y:z:mass or ball:radius:mass [m, kg]; None for others."""
    kind, *words = source.split(':')
    if kind not in LOOSE:
        return None
    numbers = _numbers(words)
    if len(numbers) != LOOSE[kind]:
        raise InvalidInput(f'{source!r}: expected box:x:y:z:mass or ball:radius:mass [m, kg]')
    *sizes, mass = numbers
    return loose_box(sizes, mass) if kind == 'box' else loose_ball(sizes[0], mass)


def _numbers(words: Iterable[str]) -> list[float]:
    """Return words as numbers, an empty list where one of them is none."""
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


# -------------------------------------------------------------------- several robots


@dataclass(frozen=True)
class RobotEntry:
    """One entry of the parameter `robots`."""

    name: str  # namespace and prefix of the frames
    source: str  # robot of the catalogue, path of a URDF or xacro file, or a loose body
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """x [m], y [m] and yaw [rad] of its reference poses in the world."""


def robot_entries(entries: Iterable[str]) -> tuple[RobotEntry, ...]:
    """Return the robots that the parameter `robots` lists."""
    robots: dict[str, RobotEntry] = {}
    for text in entries:
        name, equals, rest = (word.strip() for word in text.partition('='))
        source, at, place = (word.strip() for word in rest.partition('@'))
        if not equals or not source or (at and not place):
            raise InvalidInput(f'robots: {text!r}: {ROBOT_FORM}')
        if not NAME.fullmatch(name):
            raise InvalidInput(
                f'robots: {text!r}: {name!r} cannot be a namespace; expected a letter, then '
                'letters, digits and underscores'
            )
        robot = RobotEntry(name, source, _place(text, place) if at else (0.0, 0.0, 0.0))
        if name in robots:
            raise InvalidInput(
                f'robots: {text!r}: the name {name!r} is taken by {robots[name].source!r}; '
                'give every robot a name of its own'
            )
        robots[name] = robot
    return tuple(robots.values())


def entries_in(text: str) -> list[str]:
    """Return the entries of a text such as 'a=go1, b=anymal_b@1.5,0,0.3'."""
    return [entry for entry in re.split(r'[\s,]+(?=[^\s,=@]+\s*=)', text.strip(' ,')) if entry]


def _place(entry: str, text: str) -> tuple[float, float, float]:
    numbers = _numbers(text.split(','))
    if len(numbers) not in (2, 3) or not np.isfinite(numbers).all():
        raise InvalidInput(
            f'robots: {entry!r}: the place {text!r} is no x,y or x,y,yaw [m, m, rad]; {ROBOT_FORM}'
        )
    x, y, yaw = (*numbers, 0.0)[:3]
    return x, y, yaw


def loaded_robot(settings: Settings) -> RobotModel:
    """Return the robot that the settings name, or all of `robots` as one."""
    common = settings['']
    entries = robot_entries(common.robots)
    if not entries:
        return _loaded(common.source, {name: getattr(common, name) for name in NAMING}, settings)
    if common.srdf_path:
        raise InvalidInput(
            f'srdf_path = {common.srdf_path!r} is of one robot alone; expected none beside robots'
        )
    known = [f'{entry.name}{SEPARATOR}' for entry in entries]
    for parameter_name in NAMING:
        for name in getattr(common, parameter_name):
            if name not in (ALL, NONE) and not name.startswith(tuple(known)):
                raise UnknownName(f'robot before a name in {parameter_name}', name, known)
    robots = {}
    for entry in entries:
        names = {name: _own_names(entry, getattr(common, name)) for name in NAMING}
        try:
            robots[entry.name] = _loaded(entry.source, names, settings)
        except ContactSimError as error:
            raise InvalidInput(f'robots: {entry.name}={entry.source}: {error}') from error
    places = {entry.name: entry.place for entry in entries}
    return joined_in_node(robots, places, common.robots_touch, common.pair_contacts)


def joined_in_node(
    robots: Mapping[str, RobotModel],
    places: Mapping[str, Sequence[float]],
    touching: bool,
    most: int,
    name: str = '',
) -> RobotModel:
    """Return robots as one model, see `joined`.

    Raises:
        InvalidInput: more degrees of freedom than the topics of a node can have.
    """
    dofs = sum(robot.nv for robot in robots.values())
    if dofs > MOST_FREEDOMS:
        raise InvalidInput(
            f'{len(robots)} robots with {dofs} degrees of freedom: a node has at most '
            f'{MOST_FREEDOMS}, because its transforms and sensors need data of Pinocchio, whose '
            'memory grows with the cube of the number; start several nodes, or use joined(...) '
            'in Python'
        )
    name = name or ' + '.join(robots)
    return joined(robots, places, name, against_each_other=touching, most=most)


def spawned_robot(source: str, settings: Settings) -> RobotModel:
    """Return a robot that comes while others move; what parameters name is not of it."""
    common = replace(settings[''], srdf_path='', xacro_arguments=())
    return _loaded(source, dict.fromkeys(NAMING, ()), settings | {'': common})


def driven_as(name: str, robot: RobotModel, settings: Settings) -> RobotModel:
    """Return a robot with the actuators of the settings for its joints among others."""
    (alone,) = parts_of(robot)
    return _driven(replace(alone, name=name), settings)


def _own_names(entry: RobotEntry, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that are of one robot, as it has them alone."""
    before = f'{entry.name}{SEPARATOR}'
    own = (name for name in names if name in (ALL, NONE) or name.startswith(before))
    return tuple(':'.join(word.removeprefix(before) for word in name.split(':')) for name in own)


def _loaded(source: str, names: Mapping[str, Sequence[str]], settings: Settings) -> RobotModel:
    """Return a robot as the parameters say; `names` are its own in those of NAMING."""
    common, links, pairs = settings[''], names['contact_links'], names['self_collision']
    robot = named_robot(source, common, names)
    robot = robot.with_position_limits(
        replace(limit, restitution=0.0 if limit.holds else common.joint_limit_restitution)
        for limit in (robot.position_limits if common.joint_limits else ())
    )
    solids, published = robot.collisions.solids, robot.collisions.published
    chosen = [solids[k].frame for k in robot.collisions.grounded_places]
    if links or (chosen and common.contact_edge_radius > 0.0):
        touching: Sequence[str] | None = links or list(dict.fromkeys(chosen))
        if ALL in links or NONE in links:
            touching = None if ALL in links else ()
        robot = robot.with_body_contacts(touching, edge_radius=common.contact_edge_radius)
        if links:  # only these have topics of their own
            published = robot.collisions.published
    robot = replace(
        robot,
        collisions=replace(robot.collisions, most=common.pair_contacts, published=published),
    )
    if pairs:
        meeting = None if ALL in pairs else [_link_pair(pair) for pair in pairs]
        srdf = common.srdf_path or None
        robot = robot.with_self_collision(meeting, srdf, common.pair_contacts)
    return robot


def _link_pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition(':')
    if not first or not second or ':' in second:
        raise InvalidInput(f'self_collision: {text!r}: expected link:link, or all')
    return first, second


def joint_gains(robot: RobotModel, settings: Settings) -> tuple[Array, Array]:
    """Return kp and kd per joint; a joint's own gain wins over the common one."""
    common = settings['gains']
    gains = []
    for name, fallback in zip(('p', 'd'), robot.default_gains, strict=True):
        of_joints = np.array([getattr(settings[f'gains.{j}'], name) for j in robot.joint_names])
        shared = getattr(common, name) or fallback
        gains.append(np.where(of_joints > 0.0, of_joints, shared))
    return gains[0], gains[1]


def effort_order(part: RobotPart, settings: Settings) -> NDArray[np.intp]:
    """Return the joints of a robot, among all, whose unnamed efforts come, in their order."""
    robot, named = part.robot, settings[''].effort_joints
    own = part.own(named) or robot.joint_names
    for joint in own:
        if joint not in robot.joint_names:
            known = map(part.qualified_name, robot.joint_names)
            raise UnknownName('joint in effort_joints', part.qualified_name(joint), known)
    if len(set(own)) < len(own):
        raise InvalidInput(f'effort_joints = {list(named)}: one is twice')
    first = part.joints.start
    return np.array([first + robot.joint_names.index(joint) for joint in own], dtype=np.intp)


def driven_robot(robot: RobotModel, settings: Settings) -> RobotModel:
    """Return the robot with the actuators of the settings."""
    return map_robots(robot, lambda part: _driven(part, settings))


def _driven(part: RobotPart, settings: Settings) -> RobotModel:
    robot, shared = part.robot, settings['actuators']
    names = map(part.qualified_name, robot.joint_names)
    of_joints = [settings[f'actuators.{name}'] for name in names]
    changes: dict[str, Array] = {}
    for name in quantities():
        own = np.array([getattr(joint, name) for joint in of_joints])
        # a joint's own number wins over that of `actuators`, and that over the description
        chosen = np.where(own == NOT_SET, getattr(shared, name), own)
        if np.any(chosen != NOT_SET):
            off = (chosen == 0.0) & (name in NONE_AT_ZERO)
            value = np.where(off, np.inf, chosen)
            changes[name] = np.where(chosen == NOT_SET, getattr(robot.actuators, name), value)
    return robot.with_actuators(None, **changes) if changes else robot
