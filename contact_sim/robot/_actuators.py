"""Actuators: what stands between the commanded efforts and the joints.

    command → delay → effort limit → first-order lag → torque-speed curve → effort on the joint

and, on the joint, n² J_r + armature, viscous and dry friction. All values are those of the joint's
side of the gear. The formulas, and what is not modelled (backlash): docs/actuators.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, IndexArray
from contact_sim._validation import real_array
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.robot._coordinates import checked_vector

# ---------------------------------------------------------------------------------- joint commands
#
# A motor controller with PD gains and feed-forward effort applies
#
#     τ = τ_ff + k_p (q* − q) + k_d (q̇* − q̇)
#
# evaluated every physics step, not when a message arrives. Saturation is the simulator's.


@dataclass(frozen=True, eq=False)
class JointCommand:
    """Targets and gains of all actuated joints, each of shape (n_joints,), copied and read-only.

    Raises:
        InvalidInput: arrays of different lengths, values that are not finite, negative gains.
    """

    position: Array
    """q* [rad] or [m]."""
    velocity: Array
    """q̇* [rad/s] or [m/s]."""
    effort: Array
    """Feed-forward τ_ff [N m] or [N]."""
    stiffness: Array
    """k_p [N m/rad], at least 0; 0 where no position is commanded."""
    damping: Array
    """k_d [N m s/rad], at least 0; 0 where neither position nor velocity is commanded."""

    def __post_init__(self) -> None:
        length = real_array('JointCommand.position', self.position).size
        for field in fields(self):
            place = f'JointCommand.{field.name}'
            value = checked_vector(place, getattr(self, field.name), length)
            if field.name in ('stiffness', 'damping') and value.min(initial=0.0) < 0.0:
                raise InvalidInput(f'{place} = {value.tolist()}: expected gains of at least 0')
            value.setflags(write=False)
            object.__setattr__(self, field.name, value)

    def effort_at(
        self, position: Array, velocity: Array, continuous: NDArray[np.bool_] | None = None
    ) -> Array:
        """Return the effort at the joint positions and velocities (n_joints,), unsaturated.

        `continuous` (n_joints,) says which joints turn without end, robot.continuous_joints:
        they go to their target the short way round.
        """
        error = self.position - position
        if continuous is not None and continuous.any():
            error = np.where(continuous, np.mod(error + np.pi, 2 * np.pi) - np.pi, error)
        return self.effort + self.stiffness * error + self.damping * (self.velocity - velocity)


def holding(position: Array, stiffness: Array, damping: Array) -> JointCommand:
    """Return the command that holds `position` (n_joints,) at rest."""
    zero = np.zeros_like(real_array('position', position))
    return JointCommand(position, zero, zero, stiffness, damping)


# --------------------------------------------------------------------------------------- actuators

Values = npt.ArrayLike | Mapping[str, float]
"""One number for all joints, one per joint, or numbers by joint."""
POSITIVE = ('velocity_limit', 'saturation_effort', 'gear_ratio')
"""Quantities above 0; the others are at least 0."""
ENDLESS = ('effort_limit', 'velocity_limit', 'saturation_effort')
"""Quantities that may be infinite."""
MULTIPLE_TOLERANCE = 1e-5
"""Relative error of a delay that still counts as a multiple of the time step."""


MOST_DELAY = 100_000
"""Steps of delay of an actuator: each is kept for every joint."""


@dataclass(frozen=True, eq=False)
class Actuators:
    """The actuators of a robot: every field but the names is an array (n_joints,), read-only.

    Where one number is given it stands for all joints. `RobotModel.with_actuators` makes them.

    Raises:
        InvalidInput: an array of another length, a value that is not allowed, by the name of the
            joint; a torque-speed curve without the speed at which it ends.
    """

    joint_names: tuple[str, ...]
    """Actuated joints in Pinocchio order, length n_joints."""
    effort_limit: Array
    """Largest effort in both directions [N m or N]; inf: none."""
    velocity_limit: Array
    """Speed from which on nothing is driven faster [rad/s or m/s]; inf: none."""
    saturation_effort: Array
    """Effort at standstill of a torque-speed line that is zero at velocity_limit; inf: no line."""
    gear_ratio: Array
    """n, turns of the rotor per turn of the joint [-]; of a sliding joint [rad/m]."""
    rotor_inertia: Array
    """J_r of the rotor about its own axis [kg m²]; the joint feels n² J_r."""
    armature: Array
    """Inertia of the drive besides n² J_r, seen from the joint [kg m² or kg]."""
    viscous_friction: Array
    """b [N m s/rad or N s/m]."""
    dry_friction: Array
    """τ_d [N m or N]."""
    delay: Array
    """Time from a command to the beginning of its effect [s], a multiple of the time step."""
    time_constant: Array
    """T of the first-order lag from the delayed command to the effort [s]."""

    def __post_init__(self) -> None:
        for quantity in quantities():
            value = _checked(quantity, getattr(self, quantity), self.joint_names)
            object.__setattr__(self, quantity, value)
        endless = np.isfinite(self.saturation_effort) & ~np.isfinite(self.velocity_limit)
        if endless.any():
            raise InvalidInput(
                f'Actuators.saturation_effort of joint {self.joint_names[np.argmax(endless)]!r}: '
                'its torque-speed line needs a finite velocity_limit, where it is zero'
            )

    @property
    def total_armature(self) -> Array:
        """n² J_r + armature [kg m² or kg], shape (n_joints,)."""
        return self.gear_ratio**2 * self.rotor_inertia + self.armature

    def changed(self, **changes: Values) -> Actuators:
        """Return actuators with other values, by the names of the fields.

        Where numbers are given by joint the other joints keep theirs.

        Raises:
            UnknownName: a field or joint that does not exist.
            InvalidInput: as of the class.
        """
        values: dict[str, Any] = {}
        for quantity, value in changes.items():
            if quantity not in quantities():
                raise UnknownName('quantity of an actuator', quantity, quantities())
            if isinstance(value, Mapping):
                value = self._replaced(quantity, value)
            values[quantity] = value
        return replace(self, **values)

    def _replaced(self, quantity: str, by_joint: Mapping[str, float]) -> list[float]:
        values: list[float] = getattr(self, quantity).tolist()
        for name, value in by_joint.items():
            if name not in self.joint_names:
                raise UnknownName('actuated joint', name, self.joint_names)
            values[self.joint_names.index(name)] = value
        return values

    def delay_steps(self, h: float) -> npt.NDArray[np.int64]:
        """Return the delays in time steps of h [s], shape (n_joints,).

        Raises:
            InvalidInput: a delay of too many steps, or no multiple of h; names the nearest.
        """
        steps = np.rint(self.delay / h)
        if (steps > MOST_DELAY).any():
            raise InvalidInput(
                f'delay of an actuator = {self.delay.max():g} s: expected at most {MOST_DELAY} '
                f'time steps of {h:g} s'
            )
        wrong = np.abs(self.delay - steps * h) > MULTIPLE_TOLERANCE * self.delay
        if wrong.any():
            i = int(np.argmax(wrong))
            below = np.floor(self.delay[i] / h)
            near = ' and '.join(f'{n * h:.6g}' for n in (below, below + 1.0))
            raise InvalidInput(
                f'delay of the actuator of joint {self.joint_names[i]!r} = {self.delay[i]:g} s: '
                f'must be a multiple of the time step {h:g} s; nearest: {near} s'
            )
        return np.asarray(steps, dtype=np.int64)

    def lag_decay(self, h: float) -> Array:
        """Return exp(−h/T), what is left of an effort after h [s], 0 where T is; (n_joints,)."""
        lags = self.time_constant > 0.0
        return np.where(lags, np.exp(-h / np.where(lags, self.time_constant, 1.0)), 0.0)


def quantities() -> tuple[str, ...]:
    """Return the names of the quantities that every actuator has."""
    return tuple(entry.name for entry in fields(Actuators) if entry.name != 'joint_names')


def actuators_of(
    model: pin.Model,
    joint_names: tuple[str, ...],
    dofs: IndexArray,
    gear_ratios: Mapping[str, float],
) -> Actuators:
    """Return the actuators that a Pinocchio model and gear ratios by joint describe.

    A velocity limit of 0 is none: programs write it where nobody has entered one.

    Args:
        model: has limits, damping, friction and armature.
        joint_names: actuated joints, length n_joints.
        dofs: index into v of each, shape (n_joints,).
        gear_ratios: n of the joints that are not 1 [-].
    """
    speed = model.velocityLimit[dofs]
    return Actuators(
        joint_names,
        effort_limit=model.effortLimit[dofs],
        velocity_limit=np.where(speed > 0.0, speed, np.inf),
        saturation_effort=np.array(np.inf),
        gear_ratio=np.array([gear_ratios.get(name, 1.0) for name in joint_names]),
        rotor_inertia=np.array(0.0),
        armature=np.reshape(model.armature, -1)[dofs],
        viscous_friction=model.damping[dofs],
        dry_friction=model.friction[dofs],
        delay=np.array(0.0),
        time_constant=np.array(0.0),
    )


def driven_model(
    model: pin.Model, joint_names: tuple[str, ...], dofs: IndexArray, actuators: Actuators
) -> pin.Model:
    """Return a copy of a model with limits, friction and inertia of these actuators at `dofs`.

    Raises:
        InvalidInput: actuators of other joints than `joint_names`.
    """
    if actuators.joint_names != joint_names:
        raise InvalidInput(f'actuators of joints {actuators.joint_names}: expected {joint_names}')
    driven = pin.Model(model)
    for name, values in (
        ('effortLimit', actuators.effort_limit), ('velocityLimit', actuators.velocity_limit),
        ('damping', actuators.viscous_friction), ('friction', actuators.dry_friction),
        ('armature', actuators.total_armature),
    ):  # fmt: skip
        numbers = np.reshape(getattr(model, name), -1).copy()
        numbers[dofs] = values
        setattr(driven, name, numbers)
    return driven


def _checked(quantity: str, given: Values, joint_names: tuple[str, ...]) -> Array:
    """Return values of all joints, read-only, shape (n_joints,)."""
    place, n = f'Actuators.{quantity}', len(joint_names)
    numbers = real_array(place, given)
    if numbers.shape not in ((), (n,)):
        raise InvalidInput(f'{place}: shape {numbers.shape}, expected one number or ({n},)')
    values = np.array(np.broadcast_to(numbers, (n,)))
    positive, endless = quantity in POSITIVE, quantity in ENDLESS
    enough = values > 0.0 if positive else values >= 0.0
    wrong = ~(enough & (np.isfinite(values) | endless))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidInput(
            f'{place} of joint {joint_names[i]!r} = {values[i]:g}: expected a '
            f'{"" if endless else "finite "}number {"> 0" if positive else ">= 0"}'
        )
    values.setflags(write=False)
    return values
