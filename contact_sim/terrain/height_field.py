"""Ground as heights on a grid: two triangles per cell, and walls where it is steep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked, checked_fields
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import coordinates, real_array
from contact_sim.terrain.height_files import heights_from_file
from contact_sim.terrain.triangle_mesh import FARTHEST, TriangleMesh
from contact_sim.terrain.wall_shifts import Shifts, wall_shifts
from contact_sim.terrain.walls import divided_walls

Array = NDArray[np.float64]
MOST_CELLS = 20_000_000


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
        if not (np.abs(heights) <= FARTHEST).all():
            bad = np.argwhere(~(np.abs(heights) <= FARTHEST))
            i, j = bad[0]
            raise InvalidInput(
                f'HeightField.heights[{i}, {j}] = {heights[i, j]} m: not finite, or more than '
                f'{FARTHEST:g} m ({len(bad)} such)'
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
    if count.prod() > MOST_CELLS:
        raise InvalidInput(
            f'size = ({size[0]:g}, {size[1]:g}) m with horizontal_scale = {horizontal_scale:g} m: '
            f'{count.prod():g} cells, expected at most {MOST_CELLS}'
        )
    return int(count[0]), int(count[1])


def _cell(p: Array, start: float, scale: float, count: int) -> tuple[NDArray[np.int64], Array]:
    """Return the cell of coordinates along one axis and the place in it, 0 to 1."""
    u = np.clip((p - start) / scale, 0.0, count - 1.0)
    i = np.minimum(u.astype(np.int64), count - 2)
    return i, u - i


def _pair(name: str, value: Any) -> tuple[float, float]:
    pair = real_array(name, value)
    if pair.shape != (2,) or not (np.abs(pair) <= FARTHEST).all():
        raise InvalidInput(
            f'HeightField: {name} = {shown(value)} m: expected two finite numbers, at most '
            f'{FARTHEST:g}'
        )
    return float(pair[0]), float(pair[1])


def _check_positive(name: str, value: Any, unit: str) -> None:
    if not (isinstance(value, int | float | np.integer | np.floating) and 0.0 < value <= FARTHEST):
        raise InvalidInput(
            f'HeightField: {name} = {shown(value)}{unit}: expected a finite number > 0'
        )
