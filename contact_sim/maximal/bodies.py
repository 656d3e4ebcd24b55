"""States of free bodies: where each is, how it is turned, and how it moves; all in world axes.

Row 0 is the world, at rest; body j is tree body j (dynamics/tree.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TINY = np.finfo(float).tiny
FOLLOWING, BEFORE = np.array([1, 2, 0]), np.array([2, 0, 1])


@dataclass(frozen=True, eq=False)
class BodyState:
    """Positions and velocities of nb bodies, the world included."""

    position: Array
    """Centres of mass [m], shape (nb, 3)."""
    rotation: Array
    """Axes of the bodies as columns, shape (nb, 3, 3)."""
    velocity: Array
    """Of the centres of mass [m/s], then angular [rad/s], shape (nb, 6)."""

    def moved(self, displacement: Array) -> BodyState:
        """Return the state after translations and rotation vectors (nb, 6), velocities kept."""
        return BodyState(
            self.position + displacement[:, :3],
            orthonormal(rotations(displacement[:, 3:]) @ self.rotation),
            self.velocity,
        )


def cross(a: Array, b: Array) -> Array:
    """Return a × b for vectors in the last axis; np.cross takes five times as long."""
    return np.asarray(a[..., FOLLOWING] * b[..., BEFORE] - a[..., BEFORE] * b[..., FOLLOWING])


def turned(rotation: Array, vector: Array) -> Array:
    """Return R a for rotations (n, 3, 3) and vectors (n, 3)."""
    return np.asarray((rotation @ vector[:, :, None])[:, :, 0])


def rotations(vectors: Array) -> Array:
    """Return exp([θ]×) of rotation vectors (n, 3) [rad], shape (n, 3, 3)."""
    angle = np.sqrt((vectors**2).sum(axis=1))[:, None, None]
    axis = vectors / np.maximum(angle[:, 0], TINY)
    skew = np.zeros((len(vectors), 3, 3))
    skew[:, BEFORE, FOLLOWING] = axis
    skew[:, FOLLOWING, BEFORE] = -axis
    return np.asarray(np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * (skew @ skew))


def orthonormal(rotation: Array) -> Array:
    """Return rotations without the rounding errors that products of many gather."""
    product = rotation.transpose(0, 2, 1) @ rotation
    return np.asarray(rotation @ (1.5 * np.eye(3) - 0.5 * product))
