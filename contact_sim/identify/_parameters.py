"""What can be identified: names of parameters, their bounds, and the setup with other values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked_fields
from contact_sim.collision._terrain import TerrainLike
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel, TimeSteppingModel
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.parameters import declared_parameters
from contact_sim.robot._model import RobotModel


@checked_fields
@dataclass(frozen=True, eq=False)
class Setup:
    """Robot, ground and contact model of a simulation that shall repeat a log.

    Raises:
        InvalidInput: a robot with closed loops, a contact model without compiled steps, values
            that are not allowed.
    """

    robot: RobotModel
    contact_model: str | ContactModel = 'ncp'
    terrain: TerrainLike = 'plane'
    friction: float = 0.8
    """μ of all contacts [-]."""
    restitution: float = 0.0
    """e of all contacts [-]."""
    delay: float = 0.0
    """Time from a logged effort to its effect [s], besides those of the actuators."""
    torque_constant: Mapping[str, float] = field(default_factory=dict)
    """Effort on a joint over the logged one [-], by joint; those left out have 1."""

    def __post_init__(self) -> None:
        if self.robot.constraints:
            raise InvalidInput(f'robot {self.robot.name!r}: closed loops cannot be identified')
        model = as_contact_model(self.contact_model)
        if not isinstance(model, TimeSteppingModel):
            raise InvalidInput(f'contact model {model.name!r}: it has no compiled step')
        object.__setattr__(self, 'contact_model', model)
        for name, largest in (('friction', np.inf), ('restitution', 1.0), ('delay', np.inf)):
            value = getattr(self, name)
            if not 0.0 <= value <= largest or not np.isfinite(value):
                raise InvalidInput(f'{name} = {value}: expected a number in [0, {largest:g}]')

    @property
    def law(self) -> ContactModel:
        """The contact model as an instance."""
        return as_contact_model(self.contact_model)

    def effort_scale(self) -> Array:
        """Return the factor of each joint's effort, shape (n_joints,)."""
        return np.array([self.torque_constant.get(name, 1.0) for name in self.robot.joint_names])


JOINT_QUANTITIES = {
    'armature': ('kg m²', 0.0, 10.0), 'dry_friction': ('N m', 0.0, 100.0),
    'viscous_friction': ('N m s/rad', 0.0, 100.0), 'torque_constant': ('', 0.05, 5.0),
}  # fmt: skip
"""Of joints: unit and bounds; `:joint` or a pattern after the name chooses joints."""
ALIASES = {'joint_friction': 'dry_friction', 'damping': 'viscous_friction'}
"""Other names, and what they stand for."""
WORLD_QUANTITIES = {
    'friction': ('', 0.01, 3.0), 'restitution': ('', 0.0, 1.0), 'delay': ('s', 0.0, 0.1),
}  # fmt: skip
BODY_QUANTITIES = {
    'mass': 'kg', 'com_x': 'm', 'com_y': 'm', 'com_z': 'm', 'ixx': 'kg m²', 'iyy': 'kg m²',
    'izz': 'kg m²', 'ixy': 'kg m²', 'ixz': 'kg m²', 'iyz': 'kg m²',
}  # fmt: skip
"""Of one body, that of the root joint or of the joint after the colon, in the joint's frame; the
moments are about the centre of mass. A mass takes its moments along."""
MOMENTS = {
    'ixx': (0, 0),
    'iyy': (1, 1),
    'izz': (2, 2),
    'ixy': (0, 1),
    'ixz': (0, 2),
    'iyz': (1, 2),
}
WIDE = 1e3
"""Parameters of contact models may be this many times larger or smaller than their start."""


@dataclass(frozen=True)
class Parameter:
    """One number that a fit may change."""

    name: str
    quantity: str
    unit: str
    start: float
    """Its value in the setup."""
    low: float
    high: float
    scale: float
    """A change of it that matters, in the numbers of the fit."""
    log: bool = False
    """Whether the fit works on its logarithm."""
    joints: tuple[str, ...] = ()
    """Of a quantity of joints or of a body."""

    def internal(self, value: float) -> float:
        """Return the number of the fit for a value."""
        return float((np.log(value) if self.log else value) / self.scale)

    def value(self, number: float) -> float:
        """Return the value for a number of the fit."""
        return float(np.exp(number * self.scale) if self.log else number * self.scale)


def parameter_of(name: str, setup: Setup) -> Parameter:
    """Return what a name stands for in a setup.

    Raises:
        UnknownName: a parameter, joint or body that does not exist.
        InvalidInput: a parameter of the contact model that is no positive number.
    """
    head, _, place = name.partition(':')
    quantity = ALIASES.get(head, head)
    if quantity in WORLD_QUANTITIES and not place:
        unit, low, high = WORLD_QUANTITIES[quantity]
        start = float(getattr(setup, quantity))
        log = quantity == 'friction' and start > 0.0
        scale = 1.0 if log else {'restitution': 1.0, 'delay': 0.01}.get(quantity, 1.0)
        return Parameter(name, quantity, unit, start, low, high, scale, log)
    if quantity in JOINT_QUANTITIES:
        return _of_joints(name, quantity, place, setup)
    if quantity in BODY_QUANTITIES:
        return _of_body(name, quantity, place, setup)
    kind: Any = setup.law.parameter_class
    declared = {one.name: one for one in declared_parameters(kind)}
    numbers = [key for key, one in declared.items() if one.type is float or one.type == 'float']
    if quantity not in numbers or place:
        known = (*WORLD_QUANTITIES, *JOINT_QUANTITIES, *ALIASES, *BODY_QUANTITIES, *numbers)
        raise UnknownName('parameter to fit', name, known)
    start = float(getattr(setup.law.parameters, quantity))
    if start <= 0.0:
        raise InvalidInput(
            f'{quantity} of {setup.law.name!r} = {start:g}: its fit needs a start > 0; give the '
            'contact model one'
        )
    info = declared[quantity].info
    low, high = start / WIDE, start * WIDE
    for bound in (info.below, info.at_most):
        high = high if bound is None else min(high, bound * (1.0 - 1e-9))
    for bound in (info.above, info.at_least):
        low = low if bound is None else max(low, bound * (1.0 + 1e-9))
    return Parameter(name, quantity, info.unit, start, low, high, 1.0, True)


def _of_joints(name: str, quantity: str, place: str, setup: Setup) -> Parameter:
    known = setup.robot.joint_names
    joints = tuple(joint for joint in known if not place or fnmatchcase(joint, place))
    if not joints:
        raise UnknownName('actuated joint', place or 'any', known)
    unit, low, high = JOINT_QUANTITIES[quantity]
    if quantity == 'torque_constant':
        values = np.array([setup.torque_constant.get(joint, 1.0) for joint in joints])
    else:
        values = getattr(setup.robot.actuators, quantity)[[known.index(one) for one in joints]]
    start = float(np.mean(values))
    scale = 1.0
    if quantity != 'torque_constant':
        scale = max(start, {'armature': 0.01}.get(quantity, 0.1))
    return Parameter(name, quantity, unit, start, low, high, scale, False, joints)


def _of_body(name: str, quantity: str, place: str, setup: Setup) -> Parameter:
    model = setup.robot.pinocchio_model
    names = list(model.names)[1:]
    joint = place or names[0]
    if joint not in names:
        frames = {frame.name: names[frame.parentJoint - 1] for frame in model.frames
                  if frame.parentJoint}  # fmt: skip
        if joint not in frames:
            raise UnknownName('body', joint, [*names, *frames])
        joint = frames[joint]
    inertia = model.inertias[model.getJointId(joint)]
    mass = float(inertia.mass)
    if mass <= 0.0:
        raise InvalidInput(f'{name}: the body of joint {joint!r} has no mass')
    size = float(np.sqrt(np.trace(inertia.inertia) / (2.0 * mass)))  # radius of gyration
    unit = BODY_QUANTITIES[quantity]
    if quantity == 'mass':
        return Parameter(
            name, quantity, unit, mass, 0.1 * mass, 10.0 * mass, mass, False, (joint,)
        )
    if quantity.startswith('com'):
        start = float(inertia.lever['xyz'.index(quantity[-1])])
        return Parameter(
            name, quantity, unit, start, start - 5 * size, start + 5 * size, size, False, (joint,)
        )
    start = float(inertia.inertia[MOMENTS[quantity]])
    moment = mass * size**2
    low = 0.02 * start if quantity in ('ixx', 'iyy', 'izz') else start - moment
    return Parameter(name, quantity, unit, start, low, start + 5 * moment, moment, False, (joint,))


def changed(setup: Setup, parameters: Sequence[Parameter], values: Sequence[float]) -> Setup:
    """Return the setup with values of parameters.

    Raises:
        InvalidInput: values that robot or contact model refuse.
    """
    world: dict[str, Any] = {}
    law: dict[str, float] = {}
    drives: dict[str, dict[str, float]] = {}
    constants = dict(setup.torque_constant)
    masses: dict[str, float] = {}
    bodies: list[tuple[str, str, float]] = []
    for one, value in zip(parameters, map(float, values), strict=True):
        if one.quantity in WORLD_QUANTITIES:
            world[one.quantity] = value
        elif one.quantity == 'torque_constant':
            constants.update(dict.fromkeys(one.joints, value))
        elif one.quantity in JOINT_QUANTITIES:
            drives.setdefault(one.quantity, {}).update(dict.fromkeys(one.joints, value))
        elif one.quantity == 'mass':
            masses[one.joints[0]] = value
        elif one.quantity in BODY_QUANTITIES:
            bodies.append((one.joints[0], one.quantity, value))
        else:
            law[one.quantity] = value
    robot = setup.robot
    if 'armature' in drives:  # the fit is about all of it: gear and rotor included
        drives['rotor_inertia'] = dict.fromkeys(drives['armature'], 0.0)
    if drives:
        robot = robot.with_actuators(None, **drives)
    if masses or bodies:
        robot = replace(robot, pinocchio_model=_with_bodies(robot, masses, bodies))
    model = setup.law
    if law:
        model = type(model)(**{**vars(model.parameters), **law})
    return replace(setup, robot=robot, contact_model=model, torque_constant=constants, **world)


def _with_bodies(
    robot: RobotModel, masses: Mapping[str, float], bodies: Sequence[tuple[str, str, float]]
) -> pin.Model:
    model = robot.pinocchio_model.copy()
    for joint, mass in masses.items():
        index = model.getJointId(joint)
        old = model.inertias[index]
        model.inertias[index] = pin.Inertia(mass, old.lever, old.inertia * (mass / old.mass))
    for joint, quantity, value in bodies:
        index = model.getJointId(joint)
        old = model.inertias[index]
        lever, moments = np.array(old.lever), np.array(old.inertia)
        if quantity.startswith('com'):
            lever['xyz'.index(quantity[-1])] = value
        else:
            i, j = MOMENTS[quantity]
            moments[i, j] = moments[j, i] = value
        model.inertias[index] = pin.Inertia(old.mass, lever, moments)
    return model
