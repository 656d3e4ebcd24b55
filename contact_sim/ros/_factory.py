"""From settings to a simulator and a recorder; imports no ROS."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.collision._terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
    Terrain,
    as_terrain,
)
from contact_sim.constraints._table import (
    KINDS,
    constraint_from_dict,
    constraint_table,
    with_reference_pose,
)
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import ContactModel
from contact_sim.dynamics._tree import tree_of
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.parameters import ParameterField, Parameters, Settings, declared_parameters
from contact_sim.replay._recorder import Recorder
from contact_sim.robot._actuators import quantities
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import SEPARATOR, RobotPart, joined, with_each
from contact_sim.robot._standing_pose import STANDING
from contact_sim.robot._urdf import as_number
from contact_sim.ros._parameters import NOT_SET, ConstraintNames, ConstraintParameters
from contact_sim.ros._robot_parameters import named_robot
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import lift, standing_on
from contact_sim.terrain._generator import READY_MADE, ground_from_file, ready_made
from contact_sim.topics._sensor_set import RECORDED_AS

# --- Which robots there are, from settings; imports no ROS.
#
# Wherever a parameter names something of one of several robots, it says `robot/name`.

ALL = 'all'
"""In `contact_links`: every link that moves and has collision geometry."""
NAMING = (
    *('feet', 'contact_links', 'self_collision', 'actuated_joints', 'effort_joints'),
    'poses',
)
"""Parameters that name something of a robot."""
NONE_AT_ZERO = 'velocity_limit', 'saturation_effort'
"""Quantities of an actuator that 0 switches off."""
ROBOT_FORM = "expected name=robot or name=robot@x,y,yaw, such as 'a=go1' or 'b=anymal_b@1.5,0,0.3'"
NAME = re.compile('[A-Za-z][A-Za-z0-9_]*')
"""What may be a namespace in ROS and the beginning of a frame."""


@dataclass(frozen=True)
class RobotEntry:
    """One entry of the parameter `robots`."""

    name: str
    """Namespace and prefix of the frames."""
    source: str
    """Robot of the catalogue, path of a URDF or xacro file, or a loose body, see `loose_body`."""
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """x [m], y [m] and yaw [rad] of its reference poses in the world."""


def robot_entries(entries: Iterable[str]) -> tuple[RobotEntry, ...]:
    """Return the robots that the parameter `robots` lists.

    Raises:
        InvalidInput: an entry of another form, a name that ROS does not take or that is taken.
    """
    read: dict[str, RobotEntry] = {}
    for entry in entries:
        one = _entry(entry)
        if one.name in read:
            raise InvalidInput(
                f'robots: {entry!r}: the name {one.name!r} is taken by '
                f'{read[one.name].source!r}; give every robot a name of its own'
            )
        read[one.name] = one
    return tuple(read.values())


def entries_in(text: str) -> list[str]:
    """Return the entries of a text such as 'a=go1, b=anymal_b@1.5,0,0.3'."""
    return [entry for entry in re.split(r'[\s,]+(?=[^\s,=@]+\s*=)', text.strip(' ,')) if entry]


def _entry(entry: str) -> RobotEntry:
    name, equals, rest = (word.strip() for word in entry.partition('='))
    source, at, place = (word.strip() for word in rest.partition('@'))
    if not equals or not source or (at and not place):
        raise InvalidInput(f'robots: {entry!r}: {ROBOT_FORM}')
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f'robots: {entry!r}: {name!r} cannot be a namespace; expected a letter, then letters, '
            'digits and underscores'
        )
    return RobotEntry(name, source, _place(entry, place) if at else (0.0, 0.0, 0.0))


def _place(entry: str, text: str) -> tuple[float, float, float]:
    try:
        numbers = [float(word) for word in text.split(',')]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not np.isfinite(numbers).all():
        raise InvalidInput(
            f'robots: {entry!r}: the place {text!r} is no x,y or x,y,yaw [m, m, rad]; {ROBOT_FORM}'
        )
    x, y, yaw = (*numbers, 0.0)[:3]
    return x, y, yaw


def loaded_robot(settings: Settings) -> RobotModel:
    """Return the robot that the settings name, or all of `robots` as one.

    Raises:
        ContactSimError: a robot that cannot be loaded, or an entry of `robots` that says nothing.
    """
    common = settings['']
    entries = robot_entries(common.robots)
    if not entries:
        return _loaded(common.source, {name: getattr(common, name) for name in NAMING}, settings)
    if common.srdf_path:
        raise InvalidInput(
            f'srdf_path = {common.srdf_path!r} is of one robot alone; expected none beside robots'
        )
    for parameter in NAMING:
        _check_owners(parameter, getattr(common, parameter), entries)
    robots = {}
    for entry in entries:
        names = {name: _own_names(entry, getattr(common, name)) for name in NAMING}
        try:
            robots[entry.name] = _loaded(entry.source, names, settings)
        except ContactSimError as error:
            raise InvalidInput(f'robots: {entry.name}={entry.source}: {error}') from error
    places = {entry.name: entry.place for entry in entries}
    touch, most = common.robots_touch, common.pair_contacts
    return joined(robots, places, ' + '.join(robots), against_each_other=touch, most=most)


def _own_names(entry: RobotEntry, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that are of one robot, as it has them alone."""
    before = f'{entry.name}{SEPARATOR}'
    own = (name for name in names if name == ALL or name.startswith(before))
    return tuple(':'.join(word.removeprefix(before) for word in name.split(':')) for name in own)


def _check_owners(parameter: str, names: Sequence[str], entries: Sequence[RobotEntry]) -> None:
    """Refuse names that do not begin with the name of a robot."""
    known = [f'{entry.name}{SEPARATOR}' for entry in entries]
    for name in names:
        if name != ALL and not name.startswith(tuple(known)):
            raise UnknownName(f'robot before a name in {parameter}', name, known)


def _loaded(source: str, names: Mapping[str, Sequence[str]], settings: Settings) -> RobotModel:
    """Return a robot as the parameters say; `names` are its own in those of NAMING."""
    common, links, pairs = settings[''], names['contact_links'], names['self_collision']
    robot = named_robot(source, common, names)
    robot = robot.with_position_limits(
        replace(limit, restitution=0.0 if limit.holds else common.joint_limit_restitution)
        for limit in (robot.position_limits if common.joint_limits else ())
    )
    if links:
        chosen = None if ALL in links else links
        robot = robot.with_body_contacts(chosen, edge_radius=common.contact_edge_radius)
    if pairs:
        touching = None if ALL in pairs else [_link_pair(pair) for pair in pairs]
        srdf = common.srdf_path or None
        robot = robot.with_self_collision(touching, srdf, common.pair_contacts)
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
    """Return the joints of a robot, among all, whose unnamed efforts come, in their order.

    Raises:
        UnknownName: a joint that no robot has.
        InvalidInput: a joint named twice.
    """
    robot, named = part.robot, settings[''].effort_joints
    own = part.own(named) or robot.joint_names
    for joint in own:
        if joint not in robot.joint_names:
            known = map(part.called, robot.joint_names)
            raise UnknownName('joint in effort_joints', part.called(joint), known)
    if len(set(own)) < len(own):
        raise InvalidInput(f'effort_joints = {list(named)}: one is twice')
    first = part.joints.start
    return np.array([first + robot.joint_names.index(joint) for joint in own], dtype=np.intp)


def driven_robot(robot: RobotModel, settings: Settings) -> RobotModel:
    """Return the robot with the actuators of the settings.

    A joint's own number wins over that of `actuators`, and that over the description.

    Raises:
        InvalidInput: a number that is not allowed, see `Actuators`.
    """
    return with_each(robot, lambda part: _driven(part, settings))


def _driven(part: RobotPart, settings: Settings) -> RobotModel:
    robot, shared = part.robot, settings['actuators']
    of_joints = [settings[f'actuators.{part.called(joint)}'] for joint in robot.joint_names]
    changes: dict[str, Array] = {}
    for name in quantities():
        own = np.array([getattr(one, name) for one in of_joints])
        chosen = np.where(own == NOT_SET, getattr(shared, name), own)
        if np.any(chosen != NOT_SET):
            off = (chosen == 0.0) & (name in NONE_AT_ZERO)
            given = np.where(off, np.inf, chosen)
            changes[name] = np.where(chosen == NOT_SET, getattr(robot.actuators, name), given)
    return robot.with_actuators(None, **changes) if changes else robot


# --- Bilateral constraints from settings; imports no ROS.

GROUP = 'constraints'
FEEDBACK = 'alpha', 'kp', 'kd'
NOT_OF_A_KIND = 'kind', 'enabled'
FIELDS: tuple[ParameterField, ...] = declared_parameters(ConstraintParameters)
CONSTRAINT_FORM = (
    "expected name: field=value field=value, such as 'stand: kind=frame_anchor frame=trunk'"
)


def constraint_groups(names: Iterable[str]) -> dict[str, type[Parameters]]:
    """Return the groups of parameters of constraints.

    Raises:
        InvalidInput: a name that cannot be part of a topic, that is taken or listed twice.
    """
    listed = list(names)
    taken = {field.name for field in declared_parameters(ConstraintNames)}  # type: ignore[arg-type]
    for name in listed:
        where = f'{GROUP}.names: {name!r}'
        if not NAME.fullmatch(name):
            raise InvalidInput(
                f'{where} cannot be part of a topic; expected a letter, then letters, digits and '
                'underscores'
            )
        if name in taken:
            raise InvalidInput(f'{where}: {GROUP}.{name} is this list; choose another name')
        if listed.count(name) > 1:
            raise InvalidInput(f'{where} is listed more than once')
    return {f'{GROUP}.{name}': ConstraintParameters for name in listed}


def described_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """Return all constraints, in force or not, in the order of `constraints.names`.

    Raises:
        InvalidInput: one that says too little, or what its kind does not have.
    """
    return tuple(_described(name, settings) for name in settings[GROUP].names)


def chosen_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """Return the constraints in force.

    Raises:
        InvalidInput: see `described_constraints`.
    """
    return tuple(
        constraint
        for constraint in described_constraints(settings)
        if settings[f'{GROUP}.{constraint.name}'].enabled
    )


def check_constraints(robot: RobotModel, settings: Settings) -> None:
    """Refuse constraints that the robot cannot have, in force or not.

    Raises:
        InvalidInput: a frame or joint that does not exist, a joint of another kind.
    """
    constraints = described_constraints(settings)
    if not constraints:
        return
    tree, q = tree_of(robot.pinocchio_model), robot.reference_configuration()
    for constraint in constraints:
        with _about(constraint.name):
            constraint_table(robot, tree, [with_reference_pose(robot, constraint, q)])


def constraints_in(text: str) -> dict[str, Any]:
    """Return parameters from a text like 'stand: kind=frame_anchor frame=trunk; lock: ...'.

    Raises:
        InvalidInput: a text of another form, or a value of another type.
        UnknownName: a field that constraints do not have.
    """
    known = {field.name: field for field in FIELDS}
    values: dict[str, Any] = {}
    names = []
    for part in filter(None, map(str.strip, text.split(';'))):
        name, colon, rest = (word.strip() for word in part.partition(':'))
        if not colon or not name or not rest:
            raise InvalidInput(f'{GROUP}: {part!r}: {CONSTRAINT_FORM}')
        names.append(name)
        for word in rest.split():
            field, equals, value = word.partition('=')
            if not equals or not value:
                raise InvalidInput(f'{GROUP}: {part!r}: {word!r}: {CONSTRAINT_FORM}')
            if field not in known:
                raise UnknownName(f'field of {GROUP}.{name}:', field, known)
            with _about(name):
                values[f'{GROUP}.{name}.{field}'] = _value(known[field], value)
    constraint_groups(names)
    return {f'{GROUP}.names': names, **values} if names else {}


def _value(field: ParameterField, text: str) -> Any:
    """Return a value of the declared type from a text."""
    if field.type is str:
        return text
    if field.type is bool:
        if text not in ('true', 'false'):
            raise InvalidInput(f'{field.name} = {text!r}: expected true or false')
        return text == 'true'
    numbers = [as_number(word) for word in text.split(',')]
    if any(number != number for number in numbers) or (field.type is float and len(numbers) > 1):
        what = 'a number' if field.type is float else 'numbers with commas between them'
        raise InvalidInput(f'{field.name} = {text!r}: expected {what}')
    return numbers[0] if field.type is float else numbers


def _described(name: str, settings: Settings) -> Constraint:
    """Return a constraint as its words describe it."""
    said = settings[f'{GROUP}.{name}']
    with _about(name):
        if said.kind not in KINDS:
            raise UnknownName('kind', said.kind, KINDS)
        fields = {field.name: field for field in dataclasses.fields(KINDS[said.kind])}
        takes = {*fields, *FEEDBACK} if 'stabilisation' in fields else set(fields)
        words: dict[str, Any] = {'kind': said.kind, 'name': name}
        for field in FIELDS:
            value = getattr(said, field.name)
            required = field.name in fields and _is_required(fields[field.name])
            if field.name in NOT_OF_A_KIND or (value == field.default and not required):
                continue
            if field.name not in takes:
                has = {one.name for one in FIELDS} & takes
                raise InvalidInput(
                    f'{field.name}: a {said.kind} has none; it has {", ".join(sorted(has))}'
                )
            if value == '':
                raise InvalidInput(f'{field.name} is not set: a {said.kind} needs it')
            words[field.name] = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        if 'stabilisation' in fields:
            feedback = {key: words.pop(key) for key in FEEDBACK if key in words}
            words |= {'stabilisation': feedback} if feedback else {}
        return constraint_from_dict(words)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Let messages begin with the constraint that they are about."""
    try:
        yield
    except ContactSimError as error:
        raise InvalidInput(f'{GROUP}.{name}: {error}') from error


# --- From settings to a simulator and a recorder; imports no ROS.


def loaded_simulator(robot: RobotModel, settings: Settings) -> Simulator:
    """Return the simulator of `robot` under the settings.

    Raises:
        ContactSimError: settings that cannot be, constraints that the robot cannot have.
    """
    check_constraints(robot, settings)
    common, contact = settings[''], settings['contact']
    sim = Simulator(
        robot,
        contact_model=chosen_contact_model(settings),
        terrain=chosen_terrain(settings),
        friction=settings['friction'].mu,
        restitution=common.restitution,
        time_step=common.time_step,
        gravity=common.gravity,
        integrator=common.integrator,
        constraints=chosen_constraints(settings),
    )
    sim.baumgarte = contact.baumgarte
    sim.restitution_threshold = contact.restitution_threshold
    sim.shadow = chosen_shadows(settings)
    return sim


def start_configuration(
    sim: Simulator, settings: Settings, terrain: Terrain | None = None
) -> Array:
    """Return the reference pose of every robot above the ground, at its place, q of shape (nq,).

    Moved onto the constraints that hold.

    Args:
        sim: what is simulated.
        settings: reference_pose, initial_x, initial_y, initial_height.
        terrain: the ground; None: that of `sim`.

    Raises:
        ContactSimError: the pose or ground there does not exist, or no constraint can hold there.
    """
    common, ground = settings[''], terrain or sim.terrain
    where = common.initial_x, common.initial_y
    q = standing_on(sim.robot, ground, common.reference_pose, *where).copy()
    lift(sim.robot, q, ground, common.initial_height)
    return sim.assembled(q)


def standing_at(
    part: RobotPart, settings: Settings, terrain: Terrain, x: float, y: float, yaw: float
) -> Array:
    """Return the reference pose of one robot above the ground at x, y [m], yaw [rad], its q.

    Raises:
        ContactSimError: there is no ground.
    """
    common, robot = settings[''], part.robot
    pose = common.reference_pose if common.reference_pose in robot.references else STANDING
    q = standing_on(robot, terrain, pose, x, y, yaw).copy()
    lift(part.robot, q, terrain, common.initial_height)
    return q


def chosen_terrain(settings: Settings) -> Terrain:
    """Return the ground that the settings name."""
    ground = settings['terrain']
    along = (math.cos(ground.heading), math.sin(ground.heading), 0.0)
    centre = (0.0, 0.0, ground.radius if ground.hollow else -ground.radius)
    if ground.type in READY_MADE:
        return as_terrain(ready_made(ground.type, ground.difficulty, ground.seed))
    if ground.type == 'file':
        if not ground.file:
            raise InvalidInput("terrain.file is empty: terrain.type = 'file' needs a path")
        scales = ground.horizontal_scale, ground.vertical_scale or None
        return as_terrain(ground_from_file(ground.file, *scales))
    if ground.type == 'inclined_plane':
        return InclinedPlane(ground.angle, ground.heading)
    if ground.type == 'groove':
        return groove(ground.angle, ground.heading)
    if ground.type == 'sphere':
        return SphereGround(centre, ground.radius, ground.hollow)
    if ground.type == 'cylinder':
        return CylinderGround(centre, along, ground.radius, ground.hollow)
    return Plane()


def groove(angle: float, heading: float) -> Planes:
    """Return two planes that fall towards a level line through the origin.

    Args:
        angle: slope of both [rad].
        heading: direction of the line about the world z axis [rad], 0 = +x.
    """
    across = (-math.sin(angle) * math.sin(heading), math.sin(angle) * math.cos(heading))
    up = math.cos(angle)
    return Planes((((*across, up), 0.0), ((-across[0], -across[1], up), 0.0)))


def chosen_contact_model(settings: Settings) -> ContactModel:
    """Return the contact model that the settings name, with its parameters."""
    return _contact_model(settings['contact'].model, settings)


def chosen_shadows(settings: Settings) -> list[ContactModel]:
    """Return the contact models of contact.shadow, with their parameters.

    Raises:
        InvalidInput: a model named twice.
    """
    names = settings['contact'].shadow
    if len(set(names)) < len(names):
        raise InvalidInput(f'contact.shadow = {list(names)}: every contact model only once')
    return [_contact_model(name, settings) for name in names]


def _contact_model(name: str, settings: Settings) -> ContactModel:
    return CONTACT_MODELS[name](**vars(settings[f'contact.{name}']))


def recorder_of(
    sim: Simulator, settings: Settings, report_failure: Callable[[str], None]
) -> Recorder | None:
    """Return a recorder where the parameter `record` names a file.

    Raises:
        InvalidInput: a file that cannot be written.
    """
    name = settings[''].record
    if not name:
        return None
    parameters = {prefix or RECORDED_AS: dict(vars(group)) for prefix, group in settings.items()}
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # somebody without a home
        raise InvalidInput(f'record = {name!r}: {error}') from error
    return Recorder(sim, path, parameters=parameters, on_error=report_failure)
