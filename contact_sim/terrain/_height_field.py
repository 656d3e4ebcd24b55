"""Ground as heights on a grid: two triangles per cell, and vertical walls where it is steep."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim import _reading
from contact_sim._types import Array, Indices, Mask
from contact_sim._validation import checked, checked_fields, coordinates, real_array
from contact_sim.errors import InvalidInput, shown
from contact_sim.terrain._triangle_mesh import MAX_COORDINATE, TriangleMesh, merged

MAX_CELLS = 20_000_000


@checked_fields
@dataclass(frozen=True, eq=False)
class HeightField:
    """Heights on a square grid.

    Cell (i, j) is the triangles (i, j), (i+1, j), (i+1, j+1) and (i, j), (i+1, j+1), (i, j+1).

    Raises:
        InvalidInput: fewer than 2 x 2 heights, heights that are not finite, a scale or threshold
            that is not positive.
    """

    heights: Array
    """Height at x = origin[0] + i horizontal_scale, y = origin[1] + j horizontal_scale [m], shape
    (nx, ny), read-only."""
    horizontal_scale: float
    """Distance between neighbours [m]."""
    origin: tuple[float, float] = (0.0, 0.0)
    """Place of heights[0, 0] [m]."""
    slope_threshold: float | None = None
    """Slope above which a step becomes a vertical wall; None: never."""

    def __post_init__(self) -> None:
        heights = np.asarray(self.heights)
        if heights.ndim != 2 or min(heights.shape) < 2 or heights.dtype.kind not in 'fiu':
            raise InvalidInput(
                f'HeightField.heights: {heights.dtype} of shape {heights.shape}, expected '
                'numbers, at least 2 x 2'
            )
        heights = np.array(heights, dtype=float, order='C')
        if not (np.abs(heights) <= MAX_COORDINATE).all():
            bad = np.argwhere(~(np.abs(heights) <= MAX_COORDINATE))
            i, j = bad[0]
            raise InvalidInput(
                f'HeightField.heights[{i}, {j}] = {heights[i, j]} m: not finite, or more than '
                f'{MAX_COORDINATE:g} m ({len(bad)} such)'
            )
        heights.flags.writeable = False
        object.__setattr__(self, 'heights', heights)
        object.__setattr__(self, 'origin', _pair('origin', self.origin))
        _check_positive('horizontal_scale', self.horizontal_scale, ' m')
        if self.slope_threshold is not None:
            _check_positive('slope_threshold', self.slope_threshold, '')

    @classmethod
    @checked
    def of_function(
        cls,
        function: Callable[[Any, Any], ArrayLike],
        size: tuple[float, float],
        horizontal_scale: float,
        origin: tuple[float, float] = (0.0, 0.0),
    ) -> HeightField:
        """Return samples of z = function(x, y).

        Args:
            function: takes x and y [m] as arrays of shapes (nx, 1) and (1, ny), returns z [m].
            size: extent along x and y [m], multiples of horizontal_scale.
            horizontal_scale: distance between samples [m].
            origin: where the samples begin [m].
        """
        _check_positive('horizontal_scale', horizontal_scale, ' m')
        nx, ny = cells_of(_pair('size', size), horizontal_scale)
        start = _pair('origin', origin)
        x = start[0] + horizontal_scale * np.arange(nx + 1)[:, None]
        y = start[1] + horizontal_scale * np.arange(ny + 1)[None, :]
        z = np.asarray(function(x, y), dtype=float)
        try:
            heights = np.broadcast_to(z, (nx + 1, ny + 1))
        except ValueError as error:
            raise InvalidInput(
                f'HeightField.of_function: the function returned shape {z.shape}, expected '
                f'{(nx + 1, ny + 1)}'
            ) from error
        return cls(heights, horizontal_scale, start)

    @classmethod
    @checked
    def from_file(
        cls,
        path: str | Path,
        horizontal_scale: float,
        vertical_scale: float | None = None,
        base: float = 0.0,
    ) -> HeightField:
        """Return the heights in a .npy file or in a grey image of 16 bits, base + scale · value.

        An array is taken as it is, first index along x. In an image x runs to the right and y up:
        heights[0, 0] is its lower left pixel.

        Args:
            path: the file.
            horizontal_scale: distance between values or pixels [m].
            vertical_scale: metres per unit; must be given for an image and for integers.
            base: height of the value 0 [m].

        Raises:
            InvalidInput: no such file, not readable, no vertical_scale where it is needed, an
                image in colour, heights that are not finite.
        """
        _check_positive('horizontal_scale', horizontal_scale, ' m')
        if vertical_scale is not None:
            _check_positive('vertical_scale', vertical_scale, ' m')
        heights = heights_from_file(Path(path), vertical_scale, base)
        try:
            return cls(heights, horizontal_scale)
        except InvalidInput as error:
            raise InvalidInput(f'{path}: {error}') from error

    @property
    def size(self) -> tuple[float, float]:
        """Extent along x and y [m]."""
        nx, ny = self.heights.shape
        return ((nx - 1) * self.horizontal_scale, (ny - 1) * self.horizontal_scale)

    @checked
    def moved(self, x: float, y: float) -> HeightField:
        """Return the same ground elsewhere [m]."""
        return replace(self, origin=(self.origin[0] + x, self.origin[1] + y))

    @checked
    def height_at(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the height at points [m], on the triangles before any become walls.

        Args:
            x: [m], any shape; beyond the rim the height there.
            y: [m], same shape.
        """
        z = self.heights
        (i, u), (j, v) = (
            _cell(p, start, self.horizontal_scale, count)
            for p, start, count in zip(coordinates(x, y), self.origin, z.shape, strict=True)
        )
        low = z[i, j] + u * (z[i + 1, j] - z[i, j]) + v * (z[i + 1, j + 1] - z[i + 1, j])
        high = z[i, j] + v * (z[i, j + 1] - z[i, j]) + u * (z[i + 1, j + 1] - z[i, j + 1])
        return np.where(u >= v, low, high)

    def shifts(self) -> Shifts:
        """Return by how many cells each vertex moves in x and y, −1, 0 or 1, shape (nx, ny, 2).

        The foot of a step steeper than the threshold moves under its top, so that the step becomes
        a wall; along the diagonal of a cell only if no step is beside it. Tops stay, and the rim
        stays on the rim. Vertices also stay, and leave a slope, where the surface would fold or
        two walls would stand back to back: seen from above the triangles cover the rectangle
        exactly once, and nothing is without thickness.
        """
        if self.slope_threshold is None:
            return np.zeros((*self.heights.shape, 2), dtype=np.int8)
        return wall_shifts(self.heights, self.slope_threshold * self.horizontal_scale)

    def as_mesh(self) -> TriangleMesh:
        """Return the triangles with their walls; those that the walls close up are dropped.

        Raises:
            InvalidInput: walls that meet on the rim of the field in a way that is no surface.
        """
        nx, ny = self.heights.shape
        place = np.stack(np.meshgrid(np.arange(nx), np.arange(ny), indexing='ij'), axis=2)
        ground = np.array(self.origin) + self.horizontal_scale * (place + self.shifts())
        number = np.arange(nx * ny).reshape(nx, ny)
        low, right = number[:-1, :-1].ravel(), number[1:, :-1].ravel()
        high, left = number[1:, 1:].ravel(), number[:-1, 1:].ravel()
        triangles = np.stack([low, right, high, low, high, left], axis=1).reshape(-1, 3)
        vertices = np.concatenate([ground, self.heights[..., None]], axis=2).reshape(-1, 3)
        return TriangleMesh(*divided_walls(vertices, triangles))


def cells_of(size: tuple[float, float], horizontal_scale: float) -> tuple[int, int]:
    """Return the cells along x and y.

    Raises:
        InvalidInput: a size that is no positive multiple of the horizontal scale, too many cells.
    """
    cells = np.array(size) / horizontal_scale
    count = np.rint(cells)
    if not ((count >= 1) & (np.abs(cells - count) < 1e-6)).all():
        raise InvalidInput(
            f'size = ({size[0]:g}, {size[1]:g}) m: expected multiples of horizontal_scale = '
            f'{horizontal_scale:g} m'
        )
    if count.prod() > MAX_CELLS:
        raise InvalidInput(
            f'size = ({size[0]:g}, {size[1]:g}) m with horizontal_scale = {horizontal_scale:g} m: '
            f'{count.prod():g} cells, expected at most {MAX_CELLS}'
        )
    return int(count[0]), int(count[1])


def _cell(p: Array, start: float, scale: float, count: int) -> tuple[NDArray[np.int64], Array]:
    """Return the cell of coordinates along one axis and the place in it, 0 to 1."""
    u = np.clip((p - start) / scale, 0.0, count - 1.0)
    i = np.minimum(u.astype(np.int64), count - 2)
    return i, u - i


def _pair(name: str, value: Any) -> tuple[float, float]:
    pair = real_array(name, value)
    if pair.shape != (2,) or not (np.abs(pair) <= MAX_COORDINATE).all():
        raise InvalidInput(
            f'HeightField: {name} = {shown(value)} m: expected two finite numbers, at most '
            f'{MAX_COORDINATE:g}'
        )
    return float(pair[0]), float(pair[1])


def _check_positive(name: str, value: Any, unit: str) -> None:
    if not (
        isinstance(value, int | float | np.integer | np.floating) and 0.0 < value <= MAX_COORDINATE
    ):
        raise InvalidInput(
            f'HeightField: {name} = {shown(value)}{unit}: expected a finite number > 0'
        )


# Heights from files: arrays of NumPy and grey images.

GREY_16_BIT = ('I;16', 'I;16B', 'I;16L', 'I;16N', 'I')
"""Pillow's names; older ones read 16 bits into 32."""


def heights_from_file(path: Path, vertical_scale: float | None, base: float) -> Array:
    """Return base + vertical_scale · value of a .npy file or an image [m], shape (nx, ny).

    Raises:
        InvalidInput: no such file, not readable, of the wrong kind, no vertical_scale where values
            are no metres.
    """
    with _reading.reading(path):
        values = _array(path) if path.suffix == '.npy' else _image(path)
    if values.size > MAX_CELLS:
        raise InvalidInput(f'{path}: {values.shape} values, expected at most {MAX_CELLS}')
    if vertical_scale is None and values.dtype.kind != 'f':
        raise InvalidInput(
            f'{path}: vertical_scale is missing: metres per unit of values in {values.dtype}'
        )
    return base + (1.0 if vertical_scale is None else vertical_scale) * values.astype(float)


def _array(path: Path) -> NDArray:
    values = _reading.npy_file(path)
    if values.dtype.kind not in 'fiu':
        raise InvalidInput(f'{path}: {values.dtype} values: expected numbers')
    return np.asarray(values)


def _image(path: Path) -> NDArray:
    """Return the pixels, x to the right and y up."""
    image = _reading.image_file(path)
    mode, pixels = image.mode, np.asarray(image)
    if mode == 'L':
        warnings.warn(
            f'{path}: 8 bits per pixel: heights in steps of 1/255 of the range; 16 bits are '
            'smooth ground',
            stacklevel=4,
        )
    elif mode not in GREY_16_BIT:
        raise InvalidInput(f'{path}: an image of mode {mode}: expected grey, 16 bits per pixel')
    return pixels[::-1].T


# Steep steps become walls: vertices move by whole cells.

Shifts = NDArray[np.int8]
MAX_SPAN = 3  # largest number of cells along x or y between two moved corners of a triangle


def wall_shifts(heights: Array, step: float) -> Shifts:
    """Return by how many cells each vertex moves in x and y, −1, 0 or 1, shape (nx, ny, 2).

    A rise of more than `step` [m] from a vertex to the next becomes a wall.
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


def _feet_and_tops(heights: Array, direction: tuple[int, int], step: float) -> tuple[Shifts, Mask]:
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


def _back_to_back(place: Indices, z: Array) -> Mask:
    """Return which triangles of walls have one that faces the other way over the same line.

    `place` is where the corners stand, two of them at one place, in cells, (n, 3, 2); `z` their
    heights, (n, 3).
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
        (*start.T, *(step[wall].T + MAX_SPAN)),
        (*place.max(axis=(0, 1), initial=0) + 1, 2 * MAX_SPAN + 1, 2 * MAX_SPAN + 1),
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


# Walls that meet in one vertical line are divided at all heights that meet there.


def divided_walls(vertices: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return a surface in which no vertex lies inside a vertical side of a triangle.

    A triangle with such a side becomes several with the same third corner; one that lies in a
    vertical line is dropped. Vertices [m], (n, 3), that stand above each other have equal x and y.
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
