"""Ground given by heights on a grid: rough, sloped, wavy, with obstacles and stones."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RectBivariateSpline

from contact_sim.errors import InvalidInput
from contact_sim.parameters import parameter, required
from contact_sim.terrain.height_field import HeightField, cells_of
from contact_sim.terrain.sub_terrain import Pair, SubTerrain, between

Array = NDArray[np.float64]
Cells = tuple[int, int]
PLATFORM = 'side of the square platform in the middle'


@dataclass(frozen=True, kw_only=True)
class HeightFieldTerrain(SubTerrain):
    """Base of ground on a grid; heights are multiples of vertical_scale, at the rim 0."""

    border_width: float = parameter(0.0, 'm', 'level rim around it', at_least=0.0)
    horizontal_scale: float = parameter(0.1, 'm', 'distance between heights', above=0.0)
    vertical_scale: float = parameter(0.005, 'm', 'steps in which heights differ', above=0.0)
    slope_threshold: float | None = parameter(
        None, '-', 'slope above which a step becomes a wall; none: never', above=0.0
    )

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> HeightField:
        """Return the heights, see `build`."""
        nx, ny = cells_of(size, self.horizontal_scale)
        border = round(self.border_width / self.horizontal_scale)
        inner = (nx - 2 * border, ny - 2 * border)
        self.check_room(2.0 * self.border_width + 2.0 * self.horizontal_scale, size)
        heights = np.zeros((nx + 1, ny + 1))
        x, y = slice(border + 1, nx - border), slice(border + 1, ny - border)
        relief = np.broadcast_to(self.relief(inner, difficulty, rng), (inner[0] + 1, inner[1] + 1))
        heights[x, y] = relief[1:-1, 1:-1]
        heights = np.rint(heights / self.vertical_scale) * self.vertical_scale
        return HeightField(heights, self.horizontal_scale, slope_threshold=self.slope_threshold)

    @abstractmethod
    def relief(self, cells: Cells, difficulty: float, rng: np.random.Generator) -> Array:
        """Return heights inside the border [m], shape cells + 1; the rim will be put to 0."""

    def in_cells(self, length: float) -> int:
        """Return a length [m] in whole cells."""
        return round(length / self.horizontal_scale)

    def from_middle(self, cells: Cells) -> Array:
        """Return the larger distance to the middle lines along x and y [m], shape cells + 1."""
        x, y = (self.horizontal_scale * np.abs(np.arange(n + 1) - 0.5 * n) for n in cells)
        return np.asarray(np.maximum(x[:, None], y))


@dataclass(frozen=True, kw_only=True)
class RandomUniform(HeightFieldTerrain):
    """Random heights, the same at every difficulty; straight between random ones."""

    noise_range: Pair = required('m', 'smallest and largest height')
    noise_step: float = required('m', 'steps in which random heights differ', above=0.0)
    downsampled_scale: float | None = parameter(
        None, 'm', 'distance between random heights; none: horizontal_scale', above=0.0
    )

    def relief(self, cells: Cells, difficulty: float, rng: np.random.Generator) -> Array:
        """Return random heights, see the base class."""
        low, high = self.noise_range
        if not low <= high:
            raise InvalidInput(f'RandomUniform.noise_range = {self.noise_range} m: not in order')
        scale = self.downsampled_scale or self.horizontal_scale
        if scale < self.horizontal_scale:
            raise InvalidInput(
                f'RandomUniform.downsampled_scale = {scale:g} m: expected at least '
                f'horizontal_scale = {self.horizontal_scale:g} m'
            )
        levels = int((high - low) / self.noise_step + 1e-9) + 1
        counts = [max(1, int(n * self.horizontal_scale / scale + 1e-9)) + 1 for n in cells]
        random = low + self.noise_step * rng.integers(0, levels, counts)
        places = (np.linspace(0.0, n, count) for n, count in zip(cells, counts, strict=True))
        plane = RectBivariateSpline(*places, random, kx=1, ky=1)
        return np.asarray(plane(np.arange(cells[0] + 1), np.arange(cells[1] + 1)))


@dataclass(frozen=True, kw_only=True)
class PyramidSlope(HeightFieldTerrain):
    """Slopes from all sides up to a platform."""

    slope_range: Pair = required('-', 'rise per length, easiest and hardest', at_least=0.0)
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)

    def relief(self, cells: Cells, difficulty: float, rng: np.random.Generator) -> Array:
        """Return the four slopes, see the base class."""
        slope = self._direction * between(self.slope_range, difficulty)
        size = (cells[0] * self.horizontal_scale, cells[1] * self.horizontal_scale)
        self.check_room(self.platform_width, size)
        x, y = (np.minimum(np.arange(n + 1), n - np.arange(n + 1)) for n in cells)
        from_rim = self.horizontal_scale * np.minimum(x[:, None], y)
        return slope * np.minimum(from_rim, 0.5 * (min(size) - self.platform_width))

    _direction = 1.0


@dataclass(frozen=True, kw_only=True)
class PyramidSlopeInv(PyramidSlope):
    """Slopes from all sides down to a platform."""

    _direction = -1.0


@dataclass(frozen=True, kw_only=True)
class DiscreteObstacles(HeightFieldTerrain):
    """Blocks and pits at random places around a platform."""

    obstacle_height_mode: str = parameter(
        'choice',
        '',
        'choice: h, h/2, −h/2 or −h at random; fixed: h',
        choices=('choice', 'fixed'),
    )
    obstacle_width_range: Pair = required('m', 'smallest and largest side', above=0.0)
    obstacle_height_range: Pair = required('m', 'height h, easiest and hardest')
    num_obstacles: int = required('', 'number of blocks', at_least=0)
    platform_width: float = parameter(1.0, 'm', PLATFORM, at_least=0.0)

    def relief(self, cells: Cells, difficulty: float, rng: np.random.Generator) -> Array:
        """Return the blocks, see the base class."""
        smallest, largest = (max(1, self.in_cells(w)) for w in self.obstacle_width_range)
        if not smallest <= largest <= min(cells):
            raise InvalidInput(
                f'DiscreteObstacles.obstacle_width_range = {self.obstacle_width_range} m: '
                f'expected a smaller, then a larger one, at most {min(cells)} cells'
            )
        height = between(self.obstacle_height_range, difficulty)
        shares = (-1.0, -0.5, 0.5, 1.0) if self.obstacle_height_mode == 'choice' else (1.0,)
        z = height * rng.choice(shares, self.num_obstacles)
        width = rng.integers(smallest, largest + 1, (self.num_obstacles, 2))
        first = rng.integers(0, np.array(cells) - width + 1)
        heights = np.zeros((cells[0] + 1, cells[1] + 1))
        for (i, j), (nx, ny), top in zip(first, width, z, strict=True):
            heights[i : i + nx + 1, j : j + ny + 1] = top
        heights[self.from_middle(cells) <= 0.5 * self.platform_width + 1e-9] = 0.0
        return heights


@dataclass(frozen=True, kw_only=True)
class Wave(HeightFieldTerrain):
    """A / 2 (sin(2π x / λ) + cos(2π y / λ)), λ = length along y / num_waves."""

    amplitude_range: Pair = required('m', 'amplitude A, easiest and hardest', at_least=0.0)
    num_waves: int = parameter(1, '', 'waves along y', at_least=1)

    def relief(self, cells: Cells, difficulty: float, rng: np.random.Generator) -> Array:
        """Return the waves, see the base class."""
        x, y = (2.0 * np.pi * self.num_waves / cells[1] * np.arange(n + 1) for n in cells)
        half = 0.5 * between(self.amplitude_range, difficulty)
        return np.asarray(half * (np.sin(x)[:, None] + np.cos(y)))


@dataclass(frozen=True, kw_only=True)
class SteppingStones(HeightFieldTerrain):
    """Rows of square stones over holes, each row shifted at random, around a platform."""

    stone_height_max: float = required('m', 'largest height and depth of a stone', at_least=0.0)
    stone_width_range: Pair = required('m', 'side of a stone, hardest and easiest', above=0.0)
    stone_distance_range: Pair = required(
        'm', 'gap between stones, easiest and hardest; of one cell it closes', at_least=0.0
    )
    holes_depth: float = parameter(-10.0, 'm', 'height of the bottom of the holes')
    platform_width: float = parameter(1.0, 'm', PLATFORM, at_least=0.0)

    def relief(self, cells: Cells, difficulty: float, rng: np.random.Generator) -> Array:
        """Return the stones, see the base class."""
        width = max(1, self.in_cells(between(self.stone_width_range, 1.0 - difficulty)))
        period = width + self.in_cells(between(self.stone_distance_range, difficulty))
        along, across = max(cells), min(cells)  # a row of stones runs along the shorter side
        start = rng.integers(0, width, along // period + 1)
        row, in_row = np.divmod(np.arange(along + 1), period)
        column, in_column = np.divmod(np.arange(across + 1) - start[row, None], period)
        steps = int(self.stone_height_max / self.vertical_scale + 1e-9)
        tops = rng.integers(-steps, steps + 1, (len(start), across // period + 2))
        # a stone has one more height than cells: its top is as wide as it should be
        stone = (in_row[:, None] <= width) & (in_column <= width)
        z = np.where(stone, self.vertical_scale * tops[row[:, None], column + 1], self.holes_depth)
        heights = z if cells[0] > cells[1] else z.T
        return np.where(self.from_middle(cells) <= 0.5 * self.platform_width + 1e-9, 0.0, heights)
