"""Create a simulator from parameters: constraints, terrain, models, recorder; imports no ROS."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contact_sim._types import Array
from contact_sim.collision._terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    SphereGround,
    Terrain,
    as_terrain,
    groove,
)
from contact_sim.constraints._constraint_rows import (
    KINDS,
    constraint_from_dict,
    constraint_table,
    with_reference_pose,
)
from contact_sim.contact_models import CONTACT_MODELS, as_contact_model
from contact_sim.contact_models._base import ContactModel
from contact_sim.dynamics._tree import tree_of
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.parameters import ParameterField, Parameters, Settings, declared_parameters
from contact_sim.replay._recorder import Recorder
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart
from contact_sim.robot._standing_pose import STANDING
from contact_sim.robot._urdf import parse_number
from contact_sim.ros._parameters import (
    ActuatorParameters,
    ConstraintNames,
    ConstraintParameters,
    ControllerParameters,
    JointGainParameters,
)
from contact_sim.ros._robots import NAME
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import lift, standing_on
from contact_sim.solvers._jit import compile_what_is_rare
from contact_sim.terrain._generator import READY_MADE, ground_from_file, ready_made
from contact_sim.topics._robot_topics import RECORDED_AS, check_sensors
from contact_sim.topics._table import publish_periods

GROUP = 'constraints'
FEEDBACK = 'alpha', 'kp', 'kd'
OF_EVERY_KIND = 'kind', 'enabled'
FIELDS: tuple[ParameterField, ...] = declared_parameters(ConstraintParameters)
CONSTRAINT_FORM = (
    "expected name: field=value field=value, such as 'stand: kind=frame_anchor frame=trunk'"
)


def groups_by_name(settings: Settings, joints: Iterable[str]) -> dict[str, type[Parameters]]:
    """Return the parameter groups that exist per joint, controller and constraint."""
    return (
        joint_groups(joints)
        | {f'lockstep.{name}': ControllerParameters for name in settings['lockstep'].controllers}
        | constraint_groups(settings[GROUP].names)
    )


def joint_groups(joints: Iterable[str]) -> dict[str, type[Parameters]]:
    """Return the parameter groups that exist per joint."""
    names = list(joints)
    gains: dict[str, type[Parameters]] = {f'gains.{name}': JointGainParameters for name in names}
    return gains | {f'actuators.{name}': ActuatorParameters for name in names}


def check_settings(robot: RobotModel, settings: Settings) -> None:
    """Refuse settings that do not go together."""
    publish_periods(settings['publish_rate'], settings[''].time_step)
    chosen_contact_model(settings)
    robot.reference_configuration(settings[''].reference_pose)
    chosen_shadows(settings)
    check_sensors(robot, settings)
    check_constraints(robot, settings)


def loaded_simulator(robot: RobotModel, settings: Settings) -> Simulator:
    """Return the simulator of `robot` under the settings."""
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
        torsional_friction=settings['friction'].torsional,
        rolling_friction=settings['friction'].rolling,
    )
    sim.baumgarte = contact.baumgarte
    sim.restitution_threshold = contact.restitution_threshold
    sim.shadow = chosen_shadows(settings)
    # a node in real time must not wait in a step for what is otherwise compiled when it is needed
    compile_what_is_rare()
    sim.last_report.read()
    return sim


def recorder_of(
    sim: Simulator, settings: Settings, report_failure: Callable[[str], None]
) -> Recorder | None:
    """Return a recorder where the parameter `record` names a file."""
    name = settings[''].record
    if not name:
        return None
    parameters = {prefix or RECORDED_AS: dict(vars(group)) for prefix, group in settings.items()}
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # there is no home folder
        raise InvalidInput(f'record = {name!r}: {error}') from error
    return Recorder(sim, path, parameters=parameters, on_error=report_failure)


def start_configuration(
    sim: Simulator, settings: Settings, terrain: Terrain | None = None
) -> Array:
    """Return the reference pose of every robot on the ground and the constraints, shape (nq,)."""
    common, ground = settings[''], terrain or sim.terrain
    where = common.initial_x, common.initial_y
    q = standing_on(sim.robot, ground, common.reference_pose, *where).copy()
    lift(sim.robot, q, ground, common.initial_height)
    return sim.assembled(q)


def standing_at(
    part: RobotPart, settings: Settings, terrain: Terrain, x: float, y: float, yaw: float
) -> Array:
    """Return the reference pose of one robot above the ground at x, y [m], yaw [rad], its q."""
    common, robot = settings[''], part.robot
    pose = common.reference_pose if common.reference_pose in robot.references else STANDING
    q = standing_on(robot, terrain, pose, x, y, yaw).copy()
    lift(part.robot, q, terrain, common.initial_height)
    return q


# -------------------------------------------------------------------- terrain, contact models


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


def chosen_contact_model(settings: Settings, name: str = '') -> ContactModel:
    """Return the contact model in the settings, or that of a name, with its parameters."""
    chosen = name or settings['contact'].model
    if chosen not in CONTACT_MODELS:  # a preset has parameters of its own
        return as_contact_model(chosen)
    return CONTACT_MODELS[chosen](**vars(settings[f'contact.{chosen}']))


def chosen_shadows(settings: Settings) -> list[ContactModel]:
    """Return the contact models of contact.shadow, with their parameters."""
    names = settings['contact'].shadow
    if len(set(names)) < len(names):
        raise InvalidInput(f'contact.shadow = {list(names)}: every contact model only once')
    return [chosen_contact_model(settings, name) for name in names]


# -------------------------------------------------------------------- bilateral constraints


def constraint_groups(names: Iterable[str]) -> dict[str, type[Parameters]]:
    """Return the groups of parameters of constraints."""
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
    """Return all constraints, in force or not, in the order of `constraints.names`."""
    return tuple(_described(name, settings) for name in settings[GROUP].names)


def chosen_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """Return the constraints in force."""
    return tuple(
        constraint
        for constraint in described_constraints(settings)
        if settings[f'{GROUP}.{constraint.name}'].enabled
    )


def check_constraints(robot: RobotModel, settings: Settings) -> None:
    """Refuse constraints that the robot cannot have, in force or not."""
    constraints = described_constraints(settings)
    if not constraints:
        return
    tree, q = tree_of(robot.pinocchio_model), robot.reference_configuration()
    for constraint in constraints:
        with _about(constraint.name):
            constraint_table(robot, tree, [with_reference_pose(robot, constraint, q)])


def constraints_in(text: str) -> dict[str, Any]:
    """Return parameters from a text like 'stand: kind=frame_anchor frame=trunk; lock: ...'."""
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
    numbers = [parse_number(word) for word in text.split(',')]
    if any(number != number for number in numbers) or (field.type is float and len(numbers) > 1):
        what = 'a number' if field.type is float else 'numbers with commas between them'
        raise InvalidInput(f'{field.name} = {text!r}: expected {what}')
    return numbers[0] if field.type is float else numbers


def _described(name: str, settings: Settings) -> Constraint:
    """Return the constraint that the parameters constraints.<name>.* describe."""
    parameters = settings[f'{GROUP}.{name}']
    with _about(name):
        if parameters.kind not in KINDS:
            raise UnknownName('kind', parameters.kind, KINDS)
        fields = {field.name: field for field in dataclasses.fields(KINDS[parameters.kind])}
        takes = {*fields, *FEEDBACK} if 'stabilisation' in fields else set(fields)
        needed = {
            field.name
            for field in fields.values()
            if field.default is field.default_factory is dataclasses.MISSING
        }
        words: dict[str, Any] = {'kind': parameters.kind, 'name': name}
        for field in FIELDS:
            value = getattr(parameters, field.name)
            if field.name in OF_EVERY_KIND or (
                value == field.default and field.name not in needed
            ):
                continue
            if field.name not in takes:
                has = {field.name for field in FIELDS} & takes
                raise InvalidInput(
                    f'{field.name}: a {parameters.kind} has none; it has {", ".join(sorted(has))}'
                )
            if value == '':
                raise InvalidInput(f'{field.name} is not set: a {parameters.kind} needs it')
            words[field.name] = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        if 'stabilisation' in fields:
            feedback = {key: words.pop(key) for key in FEEDBACK if key in words}
            words |= {'stabilisation': feedback} if feedback else {}
        return constraint_from_dict(words)


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Let messages begin with the constraint that they are about."""
    try:
        yield
    except ContactSimError as error:
        raise InvalidInput(f'{GROUP}.{name}: {error}') from error
