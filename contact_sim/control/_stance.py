"""Stance controller: the base stands still, squats or sways on fixed feet."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import atan2, cos, pi, sin

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import LARGEST, checked, checked_fields, closed_attributes, within
from contact_sim.control._inverse_dynamics import (
    BASE,
    JOINTS,
    Answer,
    InverseDynamicsQP,
    LeggedDynamics,
)
from contact_sim.dynamics._vectors import cross
from contact_sim.errors import (
    InvalidInput,
    SingularLegs,
    UnknownName,
    of_type,
    one_line,
    shown,
    summary,
)
from contact_sim.robot._model import RobotModel
from contact_sim.solvers._jit import kernel

# --- Reference of the base, and the acceleration that follows it


@dataclass(frozen=True, eq=False)
class BaseReference:
    """Desired motion of the base; all vectors in world axes, shape (3,)."""

    position: Array
    """Of the base's origin [m]."""
    yaw: float
    """Heading [rad]; the desired roll and pitch are zero."""
    velocity: Array = field(default_factory=lambda: np.zeros(3))
    """[m/s]."""
    acceleration: Array = field(default_factory=lambda: np.zeros(3))
    """[m/s²]."""
    yaw_rate: float = 0.0
    """[rad/s]."""

    __repr__ = one_line


@checked_fields
@dataclass(frozen=True)
class BaseGains:
    """PD on the base: desired acceleration per error; critically damped at d = 2 √p."""

    p: tuple[float, float, float] = (100.0, 100.0, 100.0)
    """[1/s²] along x, y of the heading and z."""
    d: tuple[float, float, float] = (20.0, 20.0, 20.0)
    """[1/s]."""
    p_turn: float = 100.0
    """[1/s²] for rotations."""
    d_turn: float = 20.0
    """[1/s]."""

    def __post_init__(self) -> None:
        within('BaseGains', self.numbers, LARGEST)

    @cached_property
    def numbers(self) -> Array:
        """p, d, p_turn and d_turn, shape (8,)."""
        return np.array([*self.p, *self.d, self.p_turn, self.d_turn])


def yaw_of(rotation: Array) -> float:
    """Return the heading of axes in world, shape (3, 3) [rad]."""
    return atan2(rotation[1, 0], rotation[0, 0])


@kernel
def turned(yaw):
    """Return the rotation about world z, shape (3, 3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))


def base_acceleration(
    dynamics: LeggedDynamics, reference: BaseReference, gains: BaseGains
) -> Array:
    """Return a*, spatial acceleration of the base in its own axes, linear first, shape (6,).

    Feed-forward and PD: p̈* + p (p* − p) + d (ṗ* − ṗ), and likewise for rotations. The velocity
    coordinates of the base turn with it, so the linear part is Rᵀ p̈ − ω × v (theory 0).
    """
    r = reference
    wanted: Array = wanted_acceleration(
        dynamics.rotation, dynamics.q, dynamics.v, float(r.yaw), r.position, r.velocity,
        r.acceleration, float(r.yaw_rate), gains.numbers,
    )  # fmt: skip
    return wanted


@kernel
def rotation_vector(R):
    """Return the rotation vector θ of R = exp(θ×), (3, 3), as a tuple [rad]; |θ| ≤ π."""
    # the quaternion, from its largest part, as w and the vector part
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    k = 0
    for i in range(1, 3):
        if R[i, i] > R[k, k]:
            k = i
    vector = np.empty(3)
    if trace >= R[k, k]:
        w = 1.0 + trace
        vector[0], vector[1] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0]
        vector[2] = R[1, 0] - R[0, 1]
    else:
        i, j = (k + 1) % 3, (k + 2) % 3
        w = R[j, i] - R[i, j]
        vector[k] = 1.0 + R[k, k] - R[i, i] - R[j, j]
        vector[i], vector[j] = R[i, k] + R[k, i], R[j, k] + R[k, j]
    size = np.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    if size == 0.0:
        return 0.0, 0.0, 0.0
    scale = 2.0 * np.arctan2(size, abs(w)) / size * (1.0 if w >= 0.0 else -1.0)
    return scale * vector[0], scale * vector[1], scale * vector[2]


@kernel
def wanted_acceleration(R, q, v, yaw, position, velocity, acceleration, yaw_rate, gains):
    """Return a*, see `base_acceleration`, shape (6,).

    R (3, 3): axes of the base in world; the other vectors, in world, are desired.
    """
    heading = turned(yaw)
    turn = rotation_vector(R.T @ heading)
    error, linear, answer = np.zeros(3), np.zeros(3), np.zeros(6)
    for i in range(3):
        present = R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2]
        for k in range(3):
            error[k] += gains[k] * heading[i, k] * (position[i] - q[i])
            error[k] += gains[3 + k] * heading[i, k] * (velocity[i] - present)
    for i in range(3):
        linear[i] = acceleration[i]
        for k in range(3):
            linear[i] += heading[i, k] * error[k]
    transport = cross(v[3:6], v[:3])
    for i in range(3):
        spin = R[2, i] * yaw_rate - v[3 + i]
        along = R[0, i] * linear[0] + R[1, i] * linear[1] + R[2, i] * linear[2]
        answer[i] = along - transport[i]
        answer[3 + i] = gains[6] * turn[i] + gains[7] * spin
    return answer


# --- The controller

MOTIONS = ('hold', 'squat', 'sway')
GAINS = BaseGains((400.0, 400.0, 400.0), (40.0, 40.0, 40.0), 400.0, 40.0)
FADE_TIME = 1.0
"""Seconds in which a motion grows to its amplitude."""
SHORT_AXIS = 0.5
"""Extent of the ellipse of `sway` fore and aft over its extent to the sides."""


@checked_fields
@dataclass(frozen=True)
class BaseMotion:
    """Periodic motion of the base about its initial pose.

    Raises:
        UnknownName: a motion that does not exist.
        InvalidInput: numbers that are not finite and at least zero.
    """

    name: str = 'hold'
    """hold; squat: down by 2 amplitudes and up; sway: an ellipse in the horizontal plane."""
    amplitude: float = 0.03
    """[m]."""
    frequency: float = 0.5
    """[Hz]."""

    def __post_init__(self) -> None:
        if self.name not in MOTIONS:
            raise UnknownName('motion', self.name, MOTIONS)
        for what in ('amplitude', 'frequency'):
            if not 0.0 <= getattr(self, what) < np.inf:
                raise InvalidInput(
                    f'{what} = {shown(getattr(self, what))}: expected a finite value of at least 0'
                )

    def at(self, time: float) -> tuple[Array, Array, Array]:
        """Return offset [m], velocity and acceleration of the base `time` s after the start."""
        if self.name == 'hold':
            return np.zeros(3), np.zeros(3), np.zeros(3)
        w = 2.0 * pi * self.frequency
        c, s = cos(w * time), sin(w * time)
        a, b = self.amplitude, SHORT_AXIS * self.amplitude
        if self.name == 'sway':
            curve = ((b * c, a * s, 0.0), (-b * s * w, a * c * w, 0.0),
                     (-b * c * w**2, -a * s * w**2, 0.0))  # fmt: skip
        else:
            curve = ((0.0, 0.0, a * (c - 1.0)), (0.0, 0.0, -a * s * w),
                     (0.0, 0.0, -a * c * w**2))  # fmt: skip
        share, rate, bend = _fade(time)
        product_rule = ((share, 0.0, 0.0), (rate, share, 0.0), (bend, 2.0 * rate, share))
        x, dx, ddx = np.array(product_rule) @ np.array(curve)
        return x, dx, ddx


@closed_attributes(friction='give it to Stance(robot, friction=...)')
class Stance:
    """Inverse dynamics of a robot on all its feet, with feed-forward and PD on the base.

    Args:
        robot: with three driven joints per leg.
        motion: what the base does, a name or a BaseMotion.
        friction: μ that it assumes [-].
        gains: of the base.

    Raises:
        InvalidInput: a robot whose legs cannot move their feet in all directions.
        UnknownName: a motion that does not exist.
    """

    motion: BaseMotion
    """What the base does."""
    dynamics: LeggedDynamics
    """Of the robot."""

    def __init__(
        self,
        robot: RobotModel,
        motion: str | BaseMotion = 'hold',
        friction: float = 0.5,
        gains: BaseGains = GAINS,
    ) -> None:
        chosen = BaseMotion(motion) if isinstance(motion, str) else motion
        self.motion = of_type('motion', chosen, BaseMotion)
        self.dynamics = LeggedDynamics(robot)
        self._inverse = InverseDynamicsQP(self.dynamics, friction)
        self._gains = of_type('gains', gains, BaseGains)
        self._standing = np.ones(self.dynamics.n_feet, dtype=bool)
        self._still = np.zeros((self.dynamics.n_feet, 3))
        self._height = float(robot.reference_configuration()[2])
        self._begin: tuple[float, Array, float] | None = None
        with suppress(SingularLegs):  # compiles kernels where that is still to be done
            self.answer(0.0, self.dynamics.q, self.dynamics.v)
        self._begin = None

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m] for the state q (nq,), v (nv,) at `time` [s].

        The first call decides where on the ground the robot stands.
        """
        return self.answer(time, q, v).effort

    @checked
    def answer(self, time: float, q: Array, v: Array) -> Answer:
        """Return efforts, forces and acceleration for the state at `time` [s]."""
        self.dynamics.update(q, v)
        base = base_acceleration(self.dynamics, self.reference(time), self._gains)
        return self._inverse.solve(base, self._still, self._standing)

    @checked
    def reference(self, time: float) -> BaseReference:
        """Return the desired base motion at `time` [s]; the first call starts the motion."""
        if self._begin is None:
            height = self.dynamics.foot[:, 2].mean() + self._height
            place = np.array([*self.dynamics.q[:2], height])
            self._begin = time, place, yaw_of(self.dynamics.rotation)
        begin, place, yaw = self._begin
        offset, velocity, acceleration = self.motion.at(time - begin)
        return BaseReference(place + offset, yaw, velocity, acceleration)

    @checked
    def joint_targets(self, time: float) -> tuple[Array, Array]:
        """Return joint positions and velocities for the desired base motion.

        To first order from the state of the last `effort`, with the feet where they are:
        q_j − J_j⁻¹ J_b ξ with ξ the way of the base, in its own axes. Shapes (n_joints,).
        """
        d, reference = self.dynamics, self.reference(time)
        heading, R = turned(reference.yaw), d.rotation
        way = np.concatenate([R.T @ (reference.position - d.q[:3]), pin.log3(R.T @ heading)])
        rate = np.concatenate([R.T @ reference.velocity, np.zeros(3)])
        moves = -np.linalg.solve(
            d.jacobian[:, JOINTS], d.jacobian[:, BASE] @ np.column_stack([way, rate])
        )
        return d.robot.joint_positions(d.q) + moves[:, 0], moves[:, 1]

    def __repr__(self) -> str:
        return summary(self, robot=self.dynamics.robot.name, motion=self.motion.name)


def _fade(time: float) -> tuple[float, float, float]:
    """Return a share that grows from 0 to 1, with its first two derivatives."""
    s = min(max(time / FADE_TIME, 0.0), 1.0)
    if s >= 1.0:
        return 1.0, 0.0, 0.0
    return (
        s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
        30.0 * s**2 * (1.0 - s) ** 2 / FADE_TIME,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / FADE_TIME**2,
    )
