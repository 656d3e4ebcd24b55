"""Grids on a ground seen from above: points of a height scan, and the layers of a grid_map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import LARGEST_COUNT, checked_fields, finite_array, shaped
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.terrain._generator import Region


class SeenFromAbove(Protocol):
    """A ground whose heights are known."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """Regions with their own friction or restitution; the last one has priority."""

    def heights(self, points: ArrayLike) -> Array:
        """Return the heights at points (n, 2) [m], shape (n,), NaN where there are none."""


# --- Points of a height scan

FASTEST = 'y', 'x'


@checked_fields
@dataclass(frozen=True)
class ScanGrid:
    """Points of a height scan around a frame, level, turned with the frame about the vertical.

    The default is that of policies for rough ground: 17 x 11 points.

    Raises:
        InvalidInput: a size < 0, a resolution that is not > 0, numbers that are not finite, more
            points than fit into memory.
        UnknownName: another order of the points.
    """

    size: tuple[float, float] = (1.6, 1.0)
    """Extent along x and y of the frame [m]: points are at both ends of it."""
    resolution: float = 0.1
    """Distance of neighbouring points [m]."""
    centre: tuple[float, float] = (0.0, 0.0)
    """In the axes of the frame [m]."""
    fastest: str = 'y'
    """Coordinate that runs from one point to the next: y as in legged_gym, x as in Isaac Lab."""

    def __post_init__(self) -> None:
        numbers = (*self.size, self.resolution, *self.centre)
        if not np.isfinite(numbers).all() or min(self.size) < 0.0 or self.resolution <= 0.0:
            raise InvalidInput(
                f'ScanGrid: size = {self.size} m, resolution = {self.resolution} m: expected '
                'finite numbers, a size >= 0 and a resolution > 0'
            )
        if self.fastest not in FASTEST:
            raise UnknownName('fastest coordinate', self.fastest, FASTEST)
        number = np.prod([side / self.resolution + 1.0 for side in self.size])
        if number > LARGEST_COUNT:
            raise InvalidInput(f'ScanGrid: {number:.0f} points, expected at most {LARGEST_COUNT}')

    @cached_property
    def points(self) -> Array:
        """The points in the axes of the frame, (n, 2) [m], read-only."""
        x, y = (
            middle + self.resolution * (np.arange(count) - 0.5 * (count - 1))
            for middle, count in zip(self.centre, self.shape, strict=True)
        )
        across = np.stack(np.meshgrid(x, y, indexing='ij'), axis=-1)
        points = (across if self.fastest == 'y' else across.swapaxes(0, 1)).reshape(-1, 2)
        points.setflags(write=False)
        return points

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of points along x and y."""
        x, y = (int(side / self.resolution + 1e-9) + 1 for side in self.size)
        return x, y

    def __len__(self) -> int:
        return int(np.prod(self.shape))

    def around(self, places: ArrayLike, headings: ArrayLike) -> Array:
        """Return the points around frames at places (m, 2 or 3) [m] and headings (m,) [rad].

        Returns:
            Shape (m, n, 2) in world [m].

        Raises:
            InvalidInput: places or headings of other shapes, or not finite.
        """
        headings = finite_array('headings', headings).ravel()
        places = finite_array('places', places)
        if places.ndim != 2 or len(places) != len(headings) or places.shape[1] not in (2, 3):
            raise InvalidInput(
                f'places: shape {places.shape}, expected ({len(headings)}, 3) as of headings'
            )
        x, y = self.points.T
        cosine, sine = np.cos(headings)[:, None], np.sin(headings)[:, None]
        points = np.empty((len(headings), len(x), 2))
        points[..., 0] = places[:, :1] + cosine * x - sine * y
        points[..., 1] = places[:, 1:2] + sine * x + cosine * y
        return points

    def below(
        self,
        ground: SeenFromAbove | Sequence[SeenFromAbove],
        places: ArrayLike,
        headings: ArrayLike,
    ) -> Array:
        """Return how far the ground is below frames [m]; negative above, inf where there is none.

        Args:
            ground: one for all frames, or one for each.
            places: of the frames in world [m], shape (m, 3).
            headings: angles of their x axes about the vertical [rad], shape (m,).

        Returns:
            Height of the frame minus that of the ground at each point, shape (m, n). Under a
            bridge or a roof that is negative, as the highest ground counts.

        Raises:
            InvalidInput: places or headings of other shapes, or not finite; as many grounds as
                there are no frames.
        """
        points = self.around(places, headings)
        places = shaped('places', places, len(points), 3)
        for one in ground if isinstance(ground, Sequence) else (ground,):
            if not callable(getattr(one, 'heights', None)):
                raise InvalidInput(f'ground = {shown(one)}: expected a ground, as sim.terrain')
        if not isinstance(ground, Sequence):
            heights = ground.heights(points.reshape(-1, 2)).reshape(points.shape[:2])
        elif len(ground) != len(places):
            raise InvalidInput(f'ground: {len(ground)} given, expected 1 or {len(places)}')
        else:
            heights = np.empty(points.shape[:2])
            frames: dict[int, list[int]] = {}
            for k, own in enumerate(ground):
                frames.setdefault(id(own), []).append(k)
            for several in frames.values():
                over = points[several].reshape(-1, 2)
                heights[several] = ground[several[0]].heights(over).reshape(len(several), -1)
        below: Array = places[:, 2:] - heights
        below[np.isnan(below)] = np.inf
        return below


# --- Layers of a grid_map

ELEVATION, FRICTION, RESTITUTION = 'elevation', 'friction', 'restitution'


@dataclass(frozen=True, eq=False)
class GroundGrid:
    """Layers of a ground around a point; rows run against x, columns against y, as in grid_map."""

    resolution: float
    """Side of a cell [m]."""
    centre: tuple[float, float]
    """Of the grid, in world [m]."""
    layers: dict[str, Array]
    """By name, at the middle of the cells, shape (rows, columns); NaN where there is no ground."""

    @property
    def length(self) -> tuple[float, float]:
        """Extent along x and y [m]."""
        rows, columns = self.layers[ELEVATION].shape
        return rows * self.resolution, columns * self.resolution


def ground_grid(
    terrain: SeenFromAbove,
    friction: float,
    restitution: float,
    length: tuple[float, float] = (10.0, 10.0),
    resolution: float = 0.1,
    centre: tuple[float, float] = (0.0, 0.0),
) -> GroundGrid:
    """Return the layers of a ground.

    Args:
        terrain: the ground.
        friction: Coulomb coefficient outside of regions [-].
        restitution: coefficient of restitution outside of regions [-].
        length: extent along x and y [m], rounded up to whole cells.
        resolution: side of a cell [m].
        centre: of the grid, in world [m].

    Raises:
        InvalidInput: a length or resolution that is not > 0.
    """
    if not (resolution > 0.0 and min(length) > 0.0):
        raise InvalidInput(f'length = {length} m, resolution = {resolution} m: expected > 0')
    counts = [int(np.ceil(side / resolution - 1e-9)) for side in length]
    x, y = (
        middle + resolution * (0.5 * (count - 1) - np.arange(count))
        for middle, count in zip(centre, counts, strict=True)
    )
    middles = np.stack(np.meshgrid(x, y, indexing='ij'), axis=-1).reshape(-1, 2)
    layers = {
        ELEVATION: terrain.heights(middles).reshape(counts),
        FRICTION: np.full(counts, float(friction)),
        RESTITUTION: np.full(counts, float(restitution)),
    }
    for region in terrain.regions:
        inside = _within(x, region.x_range)[:, None] & _within(y, region.y_range)
        for name in (FRICTION, RESTITUTION):
            value = getattr(region, name)
            if value is not None:
                layers[name][inside] = value
    return GroundGrid(resolution, centre, layers)


def _within(values: NDArray[Any], ends: tuple[float, float]) -> NDArray[np.bool_]:
    return np.asarray((ends[0] <= values) & (values < ends[1]))
