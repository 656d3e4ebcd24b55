"""Steep steps of a height field become walls: its vertices move by whole cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Shifts = NDArray[np.int8]


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
    return _unfolded(shift)


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


def _unfolded(shift: Shifts) -> Shifts:
    """Return the shifts without those of triangles that would face down."""
    nx, ny = shift.shape[:2]
    start = np.stack(np.meshgrid(np.arange(nx), np.arange(ny), indexing='ij'), axis=2)
    while True:
        place = start + shift
        origin, far = place[:-1, :-1], place[1:, 1:]
        low = _cross(place[1:, :-1] - origin, far - origin) < 0
        high = _cross(far - origin, place[:-1, 1:] - origin) < 0
        if not (low.any() or high.any()):
            return shift
        shift[:-1, :-1][low | high] = 0
        shift[1:, 1:][low | high] = 0
        shift[1:, :-1][low] = 0
        shift[:-1, 1:][high] = 0


def _cross(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])
