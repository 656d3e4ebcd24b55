"""Grounds of many facets: height fields."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arrays.fields import TERRAIN_DATA
from contact_sim.collision.field import BLOCK, field_distance
from contact_sim.collision.ground import Surface
from contact_sim.collision.surface import FIELD

Array = NDArray[np.float64]
FACETS = 3
"""Contacts that a sphere may have at once: as many as hold it in a corner."""


class FieldGround(Surface):
    """A height field as ground: below it all is ground, beside it there is none.

    Args:
        field: its heights.
    """

    def __init__(self, field: Any) -> None:
        self.field = field
        heights = np.asarray(field.heights, dtype=float)
        highest = block_maxima(heights)
        self._relief = np.concatenate([heights.ravel(), highest.ravel()])
        numbers = *heights.shape, field.horizontal_scale, *field.origin, highest.shape[1]
        self._data = np.zeros(TERRAIN_DATA)
        self._data[: len(numbers)] = numbers

    def __repr__(self) -> str:
        return f'FieldGround({self.field!r})'

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return FIELD

    @property
    def data(self) -> Array:
        """Size, scale and place of the grid, shape (TERRAIN_DATA,)."""
        return self._data.copy()

    @property
    def relief(self) -> Array:
        """Heights, and the highest of every block of cells [m]."""
        return self._relief

    def distances(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the surface [m], shape (n,).

        Raises:
            InvalidInput: points of another shape.
        """
        distances = super().distances(points)
        ground = self.ground
        for i in np.flatnonzero(distances < 0.0):
            distances[i] = field_distance(ground, *np.asarray(points, dtype=float)[i])
        return distances

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return FACETS


def block_maxima(heights: Array) -> Array:
    """Return the highest corner of the cells of every block of BLOCK x BLOCK grid points."""
    nx, ny = heights.shape
    cells = np.full((-(-nx // BLOCK) * BLOCK, -(-ny // BLOCK) * BLOCK), -np.inf)
    cells[:nx, :ny] = heights
    cells[: nx - 1, :ny] = np.maximum(cells[: nx - 1, :ny], heights[1:])
    cells[:nx, : ny - 1] = np.maximum(cells[:nx, : ny - 1], cells[:nx, 1:ny].copy())
    blocks = cells.reshape(cells.shape[0] // BLOCK, BLOCK, cells.shape[1] // BLOCK, BLOCK)
    return np.asarray(blocks.max(axis=(1, 3)))
