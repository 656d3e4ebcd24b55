"""Steep steps of a height field become walls: its vertices move by whole cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.terrain.walls import expanded

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]
Shifts = NDArray[np.int8]

LONGEST = 3
"""Cells along x or y between two corners of a triangle that have moved, at most."""


def wall_shifts(heights: Array, step: float) -> Shifts:
    """Return by how many cells each vertex moves in x and y, −1, 0 or 1, shape (nx, ny, 2).

    Args:
        heights: [m], shape (nx, ny).
        step: rise from a vertex to the next above which it is a wall [m].
    """
    step = step * (1.0 + 1e-9)  # a rise of just the step is none
    (x, top_x), (y, top_y), (diagonal, top) = (
        _feet_and_tops(heights, direction, step) for direction in ((1, 0), (0, 1), (1, 1))
    )
    beside = (x != 0) | (y != 0)
    shift = np.stack([np.where(beside, x, diagonal), np.where(beside, y, diagonal)], axis=2)
    shift[top_x | top_y | top] = 0
    shift[[0, -1], :, 0] = 0
    shift[:, [0, -1], 1] = 0
    return _settled(heights, shift)


def _feet_and_tops(
    heights: Array, direction: tuple[int, int], step: float
) -> tuple[Shifts, Flags]:
    """Return where a top is near in a direction, 1 ahead, −1 behind, 0 none or both; and tops."""
    behind = tuple(slice(None, -1) if d else slice(None) for d in direction)
    ahead = tuple(slice(1, None) if d else slice(None) for d in direction)
    rise = heights[ahead] - heights[behind]
    side = np.zeros(heights.shape, dtype=np.int8)
    top = np.zeros(heights.shape, dtype=bool)
    side[behind] += rise > step
    side[ahead] -= rise < -step
    top[ahead] |= rise > step
    top[behind] |= rise < -step
    return side, top


def _settled(heights: Array, shift: Shifts) -> Shifts:
    """Return the shifts without those that fold the surface or leave a solid no thickness."""
    nx, ny = heights.shape
    start = np.stack(np.meshgrid(np.arange(nx), np.arange(ny), indexing='ij'), axis=2)
    number = np.arange(nx * ny).reshape(nx, ny)
    low, right, high, left = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    corners = np.stack([low, right, high, low, high, left], axis=2).reshape(-1, 3)
    moved = shift.reshape(-1, 2)
    while True:
        corners = corners[moved[corners].any(axis=(1, 2))]  # all others lie as they did
        place = (start.reshape(-1, 2) + moved)[corners]
        area = _cross(place[:, 1] - place[:, 0], place[:, 2] - place[:, 0])
        apart = (place != np.roll(place, -1, axis=1)).any(axis=2).sum(axis=1)
        bad = (area < 0) | ((area == 0) & (apart == 3))
        wall = np.flatnonzero((area == 0) & (apart == 2))
        bad[wall[_back_to_back(place[wall], heights.reshape(-1)[corners[wall]])]] = True
        if not bad.any():
            return shift
        moved[corners[bad]] = 0


def _back_to_back(place: Indices, z: Array) -> Flags:
    """Return which triangles of walls have one that faces the other way over the same line.

    Args:
        place: where the corners stand, two of them at one place, in cells, shape (n, 3, 2).
        z: heights of the corners, shape (n, 3).
    """
    row = np.arange(len(place))
    order = np.lexsort((place[..., 1], place[..., 0]), axis=1)
    first, last = place[row, order[:, 0]], place[row, order[:, 2]]
    corner = np.stack([(place == last[:, None]).all(axis=2), z], axis=2)
    facing = _cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    pieces = np.gcd.reduce(last - first, axis=1)  # from one vertex of the grid to the next
    step = (last - first) // pieces[:, None]
    wall, k = expanded(np.zeros_like(pieces), pieces)
    start = first[wall] + k[:, None] * step[wall]
    piece = np.ravel_multi_index(
        (*start.T, *(step[wall].T + LONGEST)),
        (*place.max(axis=(0, 1), initial=0) + 1, 2 * LONGEST + 1, 2 * LONGEST + 1),
    )
    line = np.unique(piece, return_inverse=True)[1]
    both = np.ones(line.max(initial=-1) + 1, dtype=bool)
    for sign in (1.0, -1.0):
        both &= np.bincount(line, weights=sign * facing[wall] > 0.0, minlength=len(both)) > 0.0
    result = np.zeros(len(place), dtype=bool)
    result[wall[both[line] & (facing[wall] != 0.0)]] = True
    return result


def _cross(a: NDArray, b: NDArray) -> NDArray:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])
