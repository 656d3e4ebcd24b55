"""The interface of a ground, and its part that the kernels of `surface` answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.collision.surface import height, nearest
from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]


class Terrain(Protocol):
    """Interface of a ground: kind and numbers for kernels, distances and normals for people."""

    @property
    def kind(self) -> int:
        """Kind of surface, one of `surface.KINDS`."""
        ...

    @property
    def data(self) -> Array:
        """Numbers of the surface in the order of its kind, shape (TERRAIN_DATA,)."""
        ...

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once, 1 to MOST_FEATURES."""
        ...

    def distances(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the ground [m], shape (n,)."""
        ...

    def normals(self, points: ArrayLike) -> Array:
        """Return unit normals out of the ground at points (n, 3), shape (n, 3)."""
        ...

    def height(self, x: float, y: float) -> float:
        """Return where the vertical through x, y meets the ground from above [m], or NaN."""
        ...


class Surface(ABC):
    """A ground of one of the kinds of `surface`; subclasses say which, and its numbers."""

    @property
    @abstractmethod
    def kind(self) -> int:
        """Kind of surface."""

    @property
    @abstractmethod
    def data(self) -> Array:
        """Numbers of the surface in the order of its kind, shape (TERRAIN_DATA,)."""

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return 1

    def distances(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the nearest feature [m], shape (n,).

        Raises:
            InvalidInput: points of another shape.
        """
        return self._nearest(points)[0]

    def normals(self, points: ArrayLike) -> Array:
        """Return unit normals out of the nearest feature at points (n, 3), shape (n, 3).

        Raises:
            InvalidInput: points of another shape.
        """
        return self._nearest(points)[1]

    def height(self, x: float, y: float) -> float:
        """Return where the vertical through x, y meets the ground from above [m].

        Of several features the highest counts; NaN where the vertical meets none, or only walls.
        """
        return float(height(self.kind, self.data, self.features, float(x), float(y)))

    def _nearest(self, points: ArrayLike) -> tuple[Array, Array]:
        points = np.array(points, dtype=float)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InvalidInput(f'points: shape {points.shape}, expected (n, 3)')
        distance, normal = np.zeros(len(points)), np.zeros(points.shape)
        nearest(self.kind, self.data, self.features, points, distance, normal)
        return distance, normal
