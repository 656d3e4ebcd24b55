"""Ground of level steps and vertical walls, as exact terraces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from contact_sim.errors import InvalidInput
from contact_sim.parameters import parameter, required
from contact_sim.terrain.sub_terrain import Pair, SubTerrain, between
from contact_sim.terrain.sub_terrains_height_field import PLATFORM
from contact_sim.terrain.terraces import Interval, Terraces, blocks_on

HOLE = -10.0
"""Height of the bottom of gaps and holes [m]."""
SECOND_RING = 0.6
"""Where a second ring lies, from the platform, 0, to the rim, 1."""

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
class Plane(SubTerrain):
    """Level ground."""

    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Terraces:
        """Return one cell, see `build`."""
        return blocks_on(size, [])
