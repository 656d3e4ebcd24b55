"""Kinds of generated ground: on a height grid, and as terraces."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.errors import InvalidInput, known_name, shown
from contact_sim.parameters import Parameters, from_mapping, parameter, required
from contact_sim.terrain._height_field import HeightField, cells_of
from contact_sim.terrain._terraces import Interval, Terraces, blocks_on
from contact_sim.terrain._triangle_mesh import MAX_COORDINATE

GroundPatch = HeightField | Terraces
Pair = tuple[float, float]
MAX_BLOCKS = 10_000


def between(ends: Pair, difficulty: float) -> float:
    """Return the value at a difficulty from 0 to 1: the first end, the second, or between."""
    return ends[0] + difficulty * (ends[1] - ends[0])


@dataclass(frozen=True, kw_only=True)
class SubTerrain(Parameters, ABC):
    """One kind of ground; names, defaults and units of parameters are those of Isaac Lab."""

    proportion: float = parameter(1.0, '-', 'share among the sub-terrains', at_least=0.0)
    friction: float | None = parameter(
        None, '-', 'friction coefficient on it; none: that of the world', at_least=0.0
    )
    restitution: float | None = parameter(
        None, '-', 'restitution on it; none: that of the world', at_least=0.0, at_most=1.0
    )

    @checked
    def build(self, size: Pair, difficulty: float, rng: np.random.Generator) -> GroundPatch:
        """Return the ground from (0, 0) to `size`, with height 0 at its rim.

        Args:
            size: extent along x and y [m].
            difficulty: from 0 to 1.
            rng: source of all randomness.

        Raises:
            InvalidInput: a size or difficulty that makes no sense, no room for what is asked.
        """
        if len(size) != 2 or not all(0.0 < side <= MAX_COORDINATE for side in size):
            raise InvalidInput(
                f'size = {shown(size)} m: expected two numbers > 0, at most {MAX_COORDINATE:g}'
            )
        if not 0.0 <= difficulty <= 1.0:
            raise InvalidInput(f'difficulty = {difficulty!r}: expected a number from 0 to 1')
        return self.ground((float(size[0]), float(size[1])), difficulty, rng)

    @abstractmethod
    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> GroundPatch:
        """Return what `build` returns, its arguments checked."""

    @checked
    def check_room(self, needed: float, size: Pair) -> None:
        """Raise InvalidInput unless a square of side `needed` [m] fits in `size` [m]."""
        if needed > min(size) * (1.0 + 1e-9):
            raise InvalidInput(
                f'{type(self).__name__}: needs {needed:g} m, but size = '
                f'({size[0]:g}, {size[1]:g}) m'
            )

    @checked
    def check_blocks(self, number: float, size: Pair) -> None:
        """Raise InvalidInput for more than MAX_BLOCKS steps or cells."""
        if number > MAX_BLOCKS:
            raise InvalidInput(
                f'{type(self).__name__}: {number:g} blocks with size = ({size[0]:g}, {size[1]:g}) '
                f'm, expected at most {MAX_BLOCKS}'
            )


# Ground on a height grid.

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
        plane = scipy.interpolate.RectBivariateSpline(*places, random, kx=1, ky=1)
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
        'choice', '', 'choice: h, h/2, −h/2 or −h at random; fixed: h', choices=('choice', 'fixed')
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


# Ground of level steps and vertical walls.

HOLE = -10.0  # height of the bottom of gaps and holes [m]
SECOND_RING = 0.6  # where a second ring lies, from the platform, 0, to the rim, 1

Block = tuple[Interval, Interval, float]


def centred(size: Pair, width: Pair | float, height: float) -> Block:
    """Return a block in the middle: its sides [m], one number for a square, and height [m]."""
    wide = np.broadcast_to(np.asarray(width, dtype=float), (2,))
    x, y = ((0.5 * (s - w), 0.5 * (s + w)) for s, w in zip(size, wide, strict=True))
    return x, y, height


def second_ring(size: Pair, platform_width: float) -> Pair:
    """Return the sides of the second ring [m]."""
    x, y = (platform_width + SECOND_RING * (s - platform_width) for s in size)
    return x, y


@dataclass(frozen=True, kw_only=True)
class PyramidStairs(SubTerrain):
    """Stairs from all sides up to a platform, at least `platform_width` wide."""

    border_width: float = parameter(0.0, 'm', 'level rim around the stairs', at_least=0.0)
    step_height_range: Pair = required('m', 'height of a step, easiest and hardest', at_least=0.0)
    step_width: float = required('m', 'depth of a step', above=0.0)
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)
    holes: bool = parameter(
        False, '', 'stairs as wide as the platform along x and y only, holes between, no rim'
    )

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return the stairs, see `build`."""
        self.check_room(2.0 * self.border_width + self.platform_width, size)
        self.check_blocks(0.5 * min(size) / self.step_width, size)
        step = self._direction * between(self.step_height_range, difficulty)
        return blocks_on(size, self._blocks(size, step))

    _direction = 1.0

    def _blocks(self, size: Pair, step: float) -> Iterator[Block]:
        inner = (size[0] - 2.0 * self.border_width, size[1] - 2.0 * self.border_width)
        rings = math.floor((min(inner) - self.platform_width) / (2.0 * self.step_width) + 1e-9)
        if self.holes:
            yield centred(size, size, HOLE)
        for k in range(rings + 1):
            x, y = (side - 2.0 * k * self.step_width for side in inner)
            if self.holes and k < rings:
                yield centred(size, (self.platform_width, y), (k + 1) * step)
                yield centred(size, (x, self.platform_width), (k + 1) * step)
            else:
                yield centred(size, (x, y), (k + 1) * step)


@dataclass(frozen=True, kw_only=True)
class PyramidStairsInv(PyramidStairs):
    """Stairs from all sides down to a platform, at least `platform_width` wide."""

    _direction = -1.0


@dataclass(frozen=True, kw_only=True)
class RandomGrid(SubTerrain):
    """Square cells at random heights around a platform that is as high as the highest may be."""

    grid_width: float = required('m', 'side of a cell', above=0.0)
    grid_height_range: Pair = required(
        'm', 'largest height and depth of cells, easiest and hardest', at_least=0.0
    )
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)
    holes: bool = parameter(
        False, '', 'cells in line with the platform along x and y only, holes between, no rim'
    )

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return the cells, see `build`."""
        self.check_room(max(self.platform_width, self.grid_width), size)
        self.check_blocks(size[0] / self.grid_width * (size[1] / self.grid_width), size)
        height = between(self.grid_height_range, difficulty)
        counts = [math.floor(side / self.grid_width + 1e-9) for side in size]
        z = rng.uniform(-height, height, counts)
        x, y = (
            0.5 * side + self.grid_width * (np.arange(count) - 0.5 * count)
            for side, count in zip(size, counts, strict=True)
        )
        if self.holes:
            off_x, off_y = (
                np.abs(low + 0.5 * self.grid_width - 0.5 * side) > 0.5 * self.platform_width
                for low, side in zip((x, y), size, strict=True)
            )
            z[off_x[:, None] & off_y] = HOLE
        cells = [
            ((a, a + self.grid_width), (b, b + self.grid_width), z[i, j])
            for i, a in enumerate(x)
            for j, b in enumerate(y)
        ]
        rim = [centred(size, size, HOLE)] if self.holes else []
        return blocks_on(size, [*rim, *cells, centred(size, self.platform_width, height)])


@dataclass(frozen=True, kw_only=True)
class Rails(SubTerrain):
    """Two square rails around the middle."""

    rail_thickness_range: Pair = required('m', 'thickness of inner and outer rail', above=0.0)
    rail_height_range: Pair = required('m', 'height of the rails, easiest and hardest')
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return the rails, see `build`."""
        height = between(self.rail_height_range, difficulty)
        inner, outer = self.rail_thickness_range
        wide = second_ring(size, self.platform_width)
        self.check_room(min(wide) + 2.0 * outer, size)
        if self.platform_width + 2.0 * inner > min(wide):
            raise InvalidInput(f'Rails: an inner rail of {inner:g} m reaches the outer one')
        return blocks_on(
            size,
            [
                centred(size, (wide[0] + 2.0 * outer, wide[1] + 2.0 * outer), height),
                centred(size, wide, 0.0),
                centred(size, self.platform_width + 2.0 * inner, height),
                centred(size, self.platform_width, 0.0),
            ],
        )


@dataclass(frozen=True, kw_only=True)
class Pit(SubTerrain):
    """A pit with the platform at its bottom, in one or two steps."""

    pit_depth_range: Pair = required('m', 'depth of a step, easiest and hardest', at_least=0.0)
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)
    double_pit: bool = parameter(False, '', 'whether the pit has two steps')

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return the pit, see `build`."""
        self.check_room(self.platform_width, size)
        step = -between(self.pit_depth_range, difficulty)
        return blocks_on(size, steps_to_platform(size, self.platform_width, step, self.double_pit))


@dataclass(frozen=True, kw_only=True)
class Boxes(SubTerrain):
    """A box with the platform on top, or two of them on each other."""

    box_height_range: Pair = required('m', 'height of a box, easiest and hardest', at_least=0.0)
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)
    double_box: bool = parameter(False, '', 'whether there are two boxes')

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return the boxes, see `build`."""
        self.check_room(self.platform_width, size)
        step = between(self.box_height_range, difficulty)
        return blocks_on(size, steps_to_platform(size, self.platform_width, step, self.double_box))


def steps_to_platform(size: Pair, platform_width: float, step: float, double: bool) -> list[Block]:
    """Return one step, or two, up to the platform; down where `step` [m] is negative."""
    platform = centred(size, platform_width, 2.0 * step if double else step)
    return [centred(size, second_ring(size, platform_width), step), platform][not double :]


@dataclass(frozen=True, kw_only=True)
class Gap(SubTerrain):
    """A deep gap around the platform."""

    gap_width_range: Pair = required('m', 'width of the gap, easiest and hardest', at_least=0.0)
    platform_width: float = parameter(1.0, 'm', PLATFORM, above=0.0)

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return platform and gap, see `build`."""
        width = self.platform_width + 2.0 * between(self.gap_width_range, difficulty)
        self.check_room(width, size)
        blocks = [centred(size, width, HOLE), centred(size, self.platform_width, 0.0)]
        return blocks_on(size, blocks)


@dataclass(frozen=True, kw_only=True)
class FlatGround(SubTerrain):
    """Level ground."""

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return one cell, see `build`."""
        return blocks_on(size, [])


# Kinds by name.

SUB_TERRAINS: dict[str, type[SubTerrain]] = {
    'plane': FlatGround,
    'pyramid_stairs': PyramidStairs,
    'pyramid_stairs_inv': PyramidStairsInv,
    'pyramid_slope': PyramidSlope,
    'pyramid_slope_inv': PyramidSlopeInv,
    'random_uniform': RandomUniform,
    'random_grid': RandomGrid,
    'stepping_stones': SteppingStones,
    'discrete_obstacles': DiscreteObstacles,
    'wave': Wave,
    'gap': Gap,
    'pit': Pit,
    'rails': Rails,
    'boxes': Boxes,
}
ALIASES = {
    'flat': 'plane',
    'random_rough': 'random_uniform',
    'hf_pyramid_slope': 'pyramid_slope',
    'hf_pyramid_slope_inv': 'pyramid_slope_inv',
}
"""Other names by which users know them."""


def sub_terrain(name: str, values: SubTerrain | Mapping[str, Any] | None = None) -> SubTerrain:
    """Return a kind of ground from plain values, as in a YAML file.

    Args:
        name: what it is called. It is also its kind, unless `values` has a `type`: so one kind can
            stand twice among the sub-terrains.
        values: parameters by name, or the object itself, which is returned.

    Raises:
        UnknownName: no such kind or parameter; the message names the nearest.
        InvalidInput: a parameter that is missing or not allowed.
    """
    if isinstance(values, SubTerrain):
        return values
    if not isinstance(name, str):
        raise InvalidInput(f'sub-terrain {shown(name)}: expected a name')
    if not isinstance(values, Mapping | None):
        raise InvalidInput(f'sub-terrain {name!r} = {shown(values)}: expected parameters by name')
    given = dict(values or {})
    kind = given.pop('type', name)
    known = known_name('sub-terrain', ALIASES.get(kind, kind), SUB_TERRAINS)
    return from_mapping(SUB_TERRAINS[known], given)
