"""Where the base should be, and the acceleration that takes it there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.control.legs import LeggedDynamics

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


def yaw_of(rotation: Array) -> float:
    """Return the heading of axes in world, shape (3, 3) [rad]."""
    return float(np.arctan2(rotation[1, 0], rotation[0, 0]))


def turned(yaw: float) -> Array:
    """Return the rotation about world z, shape (3, 3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def base_acceleration(
    dynamics: LeggedDynamics, reference: BaseReference, gains: BaseGains
) -> Array:
    """Return a*, spatial acceleration of the base in its own axes, linear first, shape (6,).

    Feed-forward and PD: p̈* + p (p* − p) + d (ṗ* − ṗ), and likewise for rotations. The velocity
    coordinates of the base turn with it, so the linear part is Rᵀ p̈ − ω × v (physics.md 0).
    """
    R, v = dynamics.rotation, dynamics.v
    heading = turned(reference.yaw)
    error = heading.T @ (reference.position - dynamics.q[:3])
    rate = heading.T @ (reference.velocity - R @ v[:3])
    wanted = reference.acceleration + heading @ (np.array(gains.p) * error + gains.d * rate)
    turn = pin.log3(R.T @ heading)
    spin = R.T @ np.array([0.0, 0.0, reference.yaw_rate]) - v[3:6]
    return np.concatenate(
        [R.T @ wanted - pin.skew(v[3:6]) @ v[:3], gains.p_turn * turn + gains.d_turn * spin]
    )
