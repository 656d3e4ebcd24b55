"""Walls that meet in one vertical line, divided at all heights that meet there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.terrain.manifold import merged

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def divided_walls(vertices: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return a surface in which no vertex lies inside a vertical side of a triangle.

    A triangle with such a side becomes several with the same third corner; one that lies in a
    vertical line goes.

    Args:
        vertices: [m], shape (n, 3); what stands above each other has equal x and y.
        triangles: shape (m, 3).
    """
    vertices, triangles = merged(vertices, triangles)  # sorted: those above a place are a range
    beside = (np.abs(np.diff(vertices[:, :2], axis=0)) > 0.0).any(axis=1)
    place = np.concatenate([[0], np.cumsum(beside)])[triangles]
    upright = place == np.roll(place, -1, axis=1)
    sides = upright.sum(axis=1)
    one = triangles[sides == 1]
    k = np.argmax(upright[sides == 1], axis=1)
    row = np.arange(len(one))
    begin, end, apex = one[row, k], one[row, (k + 1) % 3], one[row, (k + 2) % 3]
    row, low = expanded(np.minimum(begin, end), np.maximum(begin, end))
    upward = (begin < end)[row]
    parts = [np.where(upward, low, low + 1), np.where(upward, low + 1, low), apex[row]]
    return vertices, np.concatenate([triangles[sides == 0], np.stack(parts, axis=1)])


def expanded(first: Indices, last: Indices) -> tuple[Indices, Indices]:
    """Return rows i and numbers k for all first[i] ≤ k < last[i]."""
    count = last - first
    row = np.repeat(np.arange(len(first)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count - first, count)
