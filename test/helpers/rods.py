"""A rod on its end: T8, T12, T13, X15, X16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from robots import rigid_body, world_velocity

from contact_sim import Simulator


def leaning_rod(
    angle: float,
    length: float = 1.0,
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0),
    **settings: Any,
) -> Simulator:
    """Return a uniform rod of 1 kg whose end stands on the ground, turned by `angle` about −y.

    `velocity` is (v_x, v_z, ω) of its middle, ω counted like the angle.
    """
    inertia = length**2 / 12 * np.diag([1e-3, 1.0, 1.0])
    body = rigid_body('rod', 1.0, inertia, [([-length / 2, 0.0, 0.0], 0.0)])
    sim = Simulator(body, **settings)
    half = angle / 2
    height = length / 2 * np.sin(angle)
    q = np.array([0.0, 0.0, height, 0.0, -np.sin(half), 0.0, np.cos(half)])
    turn = pin.Quaternion(*q[[6, 3, 4, 5]]).matrix()
    v_x, v_z, omega = velocity
    sim.reset(q, np.concatenate([turn.T @ [v_x, 0.0, v_z], [0.0, -omega, 0.0]]))
    return sim


def planar(sim: Simulator) -> np.ndarray:
    """Return (v_x, v_z, ω) of a leaning rod."""
    v = world_velocity(sim)
    return np.array([v[0], v[2], -sim.v[4]])


def tip_velocity(
    middle: tuple[float, float, float], angle: float, half: float = 0.5
) -> np.ndarray:
    """Return the velocity (x, z) of the lower end from (v_x, v_z, ω) of the middle."""
    v_x, v_z, omega = middle
    return np.array([v_x + half * np.sin(angle) * omega, v_z - half * np.cos(angle) * omega])
