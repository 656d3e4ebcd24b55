"""Wanted placement of the base, and the acceleration that leads there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import atan2

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.arguments import checked_fields
from contact_sim.control.legs import LeggedDynamics, cross
from contact_sim.numbers import LARGEST, within
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]


def _zeros() -> Array:
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class BaseReference:
    """Wanted motion of the base; all vectors in world axes, shape (3,)."""

    position: Array
    """Of the base's origin [m]."""
    yaw: float
    """Heading [rad]; roll and pitch are wanted zero."""
    velocity: Array = field(default_factory=_zeros)
    """[m/s]."""
    acceleration: Array = field(default_factory=_zeros)
    """[m/s²]."""
    yaw_rate: float = 0.0
    """[rad/s]."""


@checked_fields
@dataclass(frozen=True)
class BaseGains:
    """PD on the base: wanted acceleration per error; critically damped at d = 2 √p."""

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
    r, R = reference, dynamics.rotation
    heading = turned(r.yaw)
    turn = pin.log3(R.T @ heading)
    feedback: Array = corrected(
        R, dynamics.q, dynamics.v, heading, r.position, r.velocity, r.acceleration,
        turn, float(r.yaw_rate), gains.numbers,
    )  # fmt: skip
    return feedback


@kernel
def corrected(R, q, v, heading, position, velocity, acceleration, turn, yaw_rate, gains):
    """Return a*, see `base_acceleration`, shape (6,).

    Args:
        R: axes of the base in world, shape (3, 3).
        q: shape (nq,).
        v: shape (nv,).
        heading: wanted axes of the base in world, shape (3, 3).
        position: wanted, in world [m], shape (3,).
        velocity: wanted, in world [m/s], shape (3,).
        acceleration: wanted, in world [m/s²], shape (3,).
        turn: rotation vector from R to the heading in the base's axes [rad], shape (3,).
        yaw_rate: [rad/s].
        gains: `BaseGains.numbers`.
    """
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
