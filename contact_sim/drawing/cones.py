"""Friction cones, and rotations that take the vertical to a normal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.drawing.style import CONE_HEIGHT, CONE_SIDES

Array = NDArray[np.float64]


def cone_triangles(friction: float) -> Array:
    """Return the corners of a friction cone about z, its tip at the origin, shape (3·sides, 3).

    The angle between its axis and its sides is atan(friction).
    """
    angles = np.linspace(0.0, 2.0 * np.pi, CONE_SIDES + 1)
    circle = friction * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rim = CONE_HEIGHT * np.column_stack([circle, np.ones_like(angles)])
    tips = np.zeros((CONE_SIDES, 3))
    return np.stack([tips, rim[:-1], rim[1:]], axis=1).reshape(-1, 3)


def turned_to(normals: Array) -> Array:
    """Return the shortest rotations that take z to unit normals (n, 3) as x, y, z, w, (n, 4).

    Half a turn about x for what points straight down.
    """
    x, y, z = normals.T
    quaternion = np.stack([-y, x, np.zeros_like(x), 1.0 + z], axis=1)  # (z × n, 1 + z·n)
    down = 1.0 + z < 1e-12
    quaternion[down] = (1.0, 0.0, 0.0, 0.0)
    return np.asarray(quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True))
