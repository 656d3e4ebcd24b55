"""Free bodies in the x-z plane. Angles and rates are counted about −y: from x towards z."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim import Simulator

Array = NDArray[np.float64]


def place(
    sim: Simulator,
    at: Sequence[float],
    angle: float = 0.0,
    velocity: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Reset a free body: its origin at (x, z) [m], turned by `angle` [rad].

    `velocity` is (v_x, v_z, ω) [m/s, rad/s].
    """
    half = 0.5 * angle
    q = np.array([at[0], 0.0, at[1], 0.0, -np.sin(half), 0.0, np.cos(half)])
    linear = _axes(q).T @ [velocity[0], 0.0, velocity[1]]
    sim.reset(q, [*linear, 0.0, -velocity[2], 0.0])


def velocity(sim: Simulator) -> Array:
    """Return (v_x, v_z, ω) of a free body [m/s, rad/s]."""
    x, _, z = _axes(sim.q) @ sim.v[:3]
    return np.array([x, z, -sim.v[4]])


def angle(sim: Simulator) -> float:
    """Return by how much a free body is turned [rad], in (−π, π]."""
    x, _, z = _axes(sim.q)[:, 0]
    return float(np.arctan2(z, x))


def run(sim: Simulator, seconds: float) -> Array:
    """Step a free body without efforts; return rows of (t, x, z, angle, v_x, v_z, ω)."""
    rows = []
    for _ in range(round(seconds / sim.time_step)):
        sim.step([])
        rows.append([sim.time, sim.q[0], sim.q[2], angle(sim), *velocity(sim)])
    return np.array(rows)


def _axes(q: Array) -> Array:
    return np.asarray(pin.Quaternion(*q[[6, 3, 4, 5]]).matrix())
