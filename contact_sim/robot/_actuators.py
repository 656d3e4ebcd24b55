"""Joint commands, actuators, and PD gains for standing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, IndexArray
from contact_sim._validation import is_finite, real_array
from contact_sim.errors import InvalidInput, UnknownName, one_line
from contact_sim.robot._constraints import ClosedLoops
from contact_sim.robot._contact_points import ContactPoint, feet_of
from contact_sim.robot._coordinates import checked_vector, frozen
from contact_sim.robot._trees import data_of

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
        values = self.position, self.velocity, self.effort, self.stiffness, self.damping
        plain = (type(value) is np.ndarray and value.dtype == np.float64 for value in values)
        if all(plain) and all(value.shape == (length,) for value in values):  # the usual case
            rows = np.array(values)
            if is_finite(rows.ravel()) and rows[3:].min(initial=0.0) >= 0.0:
                rows.setflags(write=False)
                for name, row in zip(COMMAND_FIELDS, rows, strict=True):
                    object.__setattr__(self, name, row)
                return
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

    __repr__ = one_line


COMMAND_FIELDS = tuple(field.name for field in fields(JointCommand))


def holding(position: Array, stiffness: Array, damping: Array) -> JointCommand:
    """Return the command that holds `position` (n_joints,) at rest."""
    zero = np.zeros_like(real_array('position', position))
    return JointCommand(position, zero, zero, stiffness, damping)


# --------------------------------------------------------------------------------------- actuators
#
#     command → delay → effort limit → first-order lag → torque-speed curve → effort on the joint
#
# and, on the joint, n² J_r + armature, viscous and dry friction. All values are those of the
# joint's side of the gear. The formulas, and what is not modelled (backlash): docs/actuators.md.

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
        n = len(self.joint_names)
        for quantity in quantities():
            place = f'Actuators.{quantity}'
            numbers = real_array(place, getattr(self, quantity))
            if numbers.shape not in ((), (n,)):
                raise InvalidInput(
                    f'{place}: shape {numbers.shape}, expected one number or ({n},)'
                )
            values = frozen(np.broadcast_to(numbers, (n,)))
            positive, endless = quantity in POSITIVE, quantity in ENDLESS
            enough = values > 0.0 if positive else values >= 0.0
            wrong = ~(enough & (np.isfinite(values) | endless))
            if wrong.any():
                i = int(np.argmax(wrong))
                raise InvalidInput(
                    f'{place} of joint {self.joint_names[i]!r} = {values[i]:g}: expected a '
                    f'{"" if endless else "finite "}number {"> 0" if positive else ">= 0"}'
                )
            object.__setattr__(self, quantity, values)
        unbounded = np.isfinite(self.saturation_effort) & ~np.isfinite(self.velocity_limit)
        if unbounded.any():
            joint = self.joint_names[np.argmax(unbounded)]
            raise InvalidInput(
                f'Actuators.saturation_effort of joint {joint!r}: '
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
            values[quantity] = value
            if isinstance(value, Mapping):
                values[quantity] = getattr(self, quantity).tolist()
                for name, number in value.items():
                    if name not in self.joint_names:
                        raise UnknownName('actuated joint', name, self.joint_names)
                    values[quantity][self.joint_names.index(name)] = number
        return replace(self, **values)

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
        """Return exp(−h/T), the share of an effort after h [s], 0 if T = 0; (n_joints,)."""
        lags = self.time_constant > 0.0
        return np.where(lags, np.exp(-h / np.where(lags, self.time_constant, 1.0)), 0.0)

    __repr__ = one_line


def quantities() -> tuple[str, ...]:
    """Return the names of the quantities that every actuator has."""
    return tuple(entry.name for entry in fields(Actuators) if entry.name != 'joint_names')


def actuators_of(
    model: pin.Model,
    joint_names: tuple[str, ...],
    dofs: IndexArray,
    gear_ratios: Mapping[str, float],
) -> Actuators:
    """Return the actuators that a model and gear ratios by joint describe."""
    speed = model.velocityLimit[dofs]  # 0 is no limit: it is written where nobody has entered one
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
    """Return a copy of a model with limits, friction and inertia of actuators at `dofs`."""
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


# ------------------------------------- PD gains with which a robot stands stably (theory 4.5)
#
# Explicit PD under semi-implicit Euler with time step h, in joint space with mass matrix M,
#
#     v_next = v - h M^-1 (K q + D v),    q_next = q + h v_next
#
# is stable if a + 2 b < 4 with a = h^2 max eig(M^-1 K) and b = h max eig(M^-1 D): multiply the
# quadratic eigenvalue problem by the eigenvector and each root is that of a scalar with a' <= a,
# b' <= b. M^-1 here is S M^-1 S^T of the robot in the air, where its legs are lightest, with the
# part that its constraints leave, M^-1 - M^-1 H^T (H M^-1 H^T)^+ H M^-1. On the ground the slow
# sway of the trunk needs damping above all, so b is large, and each joint is damped in proportion
# to the inertia that it moves.
#
# K is diagonal, and shared between two that are stable: one in proportion to the stiffness that
# standing needs, one in proportion to the inertia that it moves. The set of stable K, those with
# K <= a/h^2 M as quadratic forms, is convex: between two of them all are stable.

SAG = 0.5
"""Deflection of a joint under the weight that it carries, at the required stiffness [rad]."""
LEVEL = 0.1
"""A foot stands if it is within this share of the height of the centre of mass of the lowest."""


def required_stiffness(
    model: pin.Model,
    dofs: IndexArray,
    q: Array,
    points: Sequence[ContactPoint],
    loops: ClosedLoops,
) -> Array:
    """Return the stiffness that standing at q needs of the joints at `dofs` [N m/rad or N/m].

    Every foot that stands carries an equal share W of the weight. A joint between it and the rest
    of the robot has to keep the weight from tipping over the foot, and the foot from giving way:

        k = W max(r² / l) + |W ∂z/∂q| / SAG      over the foot and the centre of mass

    where l is the distance of that point from the joint, r = |∂x/∂q| its speed for unit speed of
    the joint, and W/l the stiffness of a pendulum of this length. A joint with no foot beyond it
    has 0. The stiffness of a passive joint is added to those that move it, times the square of the
    gear ratio at q.
    """
    if not len(loops):
        return _unconstrained_stiffness(model, dofs, q, points)
    single = np.array([joint.idx_v for joint in list(model.joints)[1:] if joint.nv == 1])
    motion, _ = loops.motion(loops.jacobian(q), dofs)
    return np.asarray((motion[single] ** 2).T @ _unconstrained_stiffness(model, single, q, points))


def _unconstrained_stiffness(
    model: pin.Model, dofs: IndexArray, q: Array, points: Sequence[ContactPoint]
) -> Array:
    data = data_of(model)
    pin.computeJointJacobians(model, data, q)
    centre = np.array(pin.centerOfMass(model, data, q))
    feet = _standing_feet(model, data, points, centre)
    weight = float(pin.computeTotalMass(model)) * float(np.linalg.norm(model.gravity.linear))
    of_dof = {int(joint.idx_v): i for i, joint in enumerate(model.joints) if i}
    joints = [of_dof[int(dof)] for dof in dofs]
    origins = np.array([data.oMi[joint].translation for joint in joints]).reshape(-1, 3)
    columns = np.reshape(data.J, (6, model.nv))[:, dofs].T  # a vector if nv = 1
    stiffness = np.zeros(len(joints))
    for carrier, place in feet:
        # r: speed ∂x/∂q of foot and centre of mass, from twists about the origin of the world
        speeds = [columns[:, :3] + np.cross(columns[:, 3:], point) for point in (place, centre)]
        tipping = []
        for speed, point in zip(speeds, (place, centre), strict=True):
            square, length = np.sum(speed**2, axis=1), np.linalg.norm(point - origins, axis=1)
            none = np.zeros_like(square)
            tipping.append(np.divide(square, length, out=none, where=length > 0.0))
        required = weight / len(feet) * (np.max(tipping, axis=0) + np.abs(speeds[0][:, 2]) / SAG)
        stiffness += np.where(np.isin(joints, list(model.supports[carrier])), required, 0.0)
    return stiffness


def _standing_feet(
    model: pin.Model, data: pin.Data, points: Sequence[ContactPoint], centre: Array
) -> list[tuple[int, Array]]:
    """Return the joint that carries each foot on which the robot stands, and the foot's place."""
    joints = [model.getJointId(point.joint) for point in points]
    low = [
        data.oMi[joint].act(point.offset) - np.array([0.0, 0.0, point.radius])
        for joint, point in zip(joints, points, strict=True)
    ]
    feet = [
        (joints[foot.points[0]], np.array([low[i] for i in foot.points]))
        for foot in feet_of(points)
    ]
    ground = min((places[:, 2].min() for _, places in feet), default=0.0)
    reach = ground + LEVEL * abs(float(centre[2]) - ground)
    return [(joint, places.mean(axis=0)) for joint, places in feet if places[:, 2].min() <= reach]


Gains = tuple[Array, Array]
"""kp [N m/rad], kd [N m s/rad], each of shape (n_joints,)."""

TIME_STEP = 5e-3
"""Time step of the gains where joints are heavy enough for what they carry [s]."""
SHORTEST = 1e-3
"""Least time step of the gains of other robots: the simulator's own [s]."""
STIFFNESS_NUMBER = 1.0
"""a at the time step of the gains [-]."""
DAMPING_NUMBER = 1.4
"""b at TIME_STEP [-]; a + 2 b = 3.8 leaves 5 % for the poses around the standing one."""
LOAD_SHARE = 0.7
"""Share of the stiffness that goes by what joints carry, the rest by the inertia they move [-]."""
MARGIN = 4.0
"""Least ratio of kp to the required stiffness [-], where a time step of SHORTEST allows it."""


def standing_gains(
    model: pin.Model,
    dofs: IndexArray,
    q: Array,
    points: Sequence[ContactPoint],
    loops: ClosedLoops,
) -> tuple[Array, Array, float]:
    """Return kp, kd with which the robot stands at `q` (nq,), and their largest time step [s].

    They are stable up to TIME_STEP, and up to less where joints are light for what they carry:
    then up to the time step, not below SHORTEST, that allows MARGIN. The damping is the same.
    """
    mobility = joint_mobility(model, dofs, q, loops)
    required = required_stiffness(model, dofs, q, points, loops)
    inertia = 1.0 / np.diagonal(mobility)
    of_load, of_inertia = _largest(required, mobility), _largest(inertia, mobility)
    shared = LOAD_SHARE * of_load + (1.0 - LOAD_SHARE) * of_inertia
    stiffness = STIFFNESS_NUMBER * _largest(shared, mobility)
    # the largest time step at which stiffness / h² has the margin over what is required
    carrying = required > 0.0
    ratio = np.min(stiffness[carrying] / required[carrying], initial=np.inf)
    h = float(np.clip(np.sqrt(ratio / MARGIN), SHORTEST, TIME_STEP))
    return stiffness / h**2, DAMPING_NUMBER / TIME_STEP * of_inertia, h


def joint_mobility(model: pin.Model, dofs: IndexArray, q: Array, loops: ClosedLoops) -> Array:
    """Return S M(q)^-1 S^T under the constraints [1/(kg m^2)], shape (n_joints, n_joints)."""
    upper = np.triu(pin.computeMinverse(model, data_of(model), q))
    inverse: Array = upper + np.triu(upper, 1).T
    if len(loops):
        rows = loops.jacobian(q)
        response = inverse @ rows.T
        inverse = inverse - response @ np.linalg.pinv(rows @ response, rcond=1e-9) @ response.T
    return inverse[np.ix_(dofs, dofs)]


def stability_number(mobility: Array, kp: Array, kd: Array, h: float) -> tuple[float, float]:
    """Return a = h² max eig(M⁻¹ K) and b = h max eig(M⁻¹ D) of joints of this mobility [-]."""
    a, b = (_largest_eigenvalue(np.sqrt(np.outer(gain, gain)) * mobility) for gain in (kp, kd))
    return h * h * a, h * b


def largest_time_step(mobility: Array, kp: Array, kd: Array) -> float:
    """Return h [s] with a + 2 b = 4, below which these gains are stable; inf without gains."""
    a, b = stability_number(mobility, kp, kd, 1.0)
    return float(4.0 / (b + np.sqrt(b * b + 4.0 * a))) if a > 0.0 or b > 0.0 else np.inf


def _largest(gain: Array, mobility: Array) -> Array:
    """Return `gain` scaled to max eig(M⁻¹ K) = 1; gains that are all zero remain so."""
    largest = _largest_eigenvalue(np.sqrt(np.outer(gain, gain)) * mobility)
    return gain / largest if largest > 0.0 else gain


def _largest_eigenvalue(matrix: Array) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else 0.0
