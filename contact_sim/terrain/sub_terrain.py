"""What every kind of generated ground shares: parameters, size, difficulty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput, shown
from contact_sim.parameters import Parameters, parameter
from contact_sim.terrain.height_field import HeightField
from contact_sim.terrain.terraces import Terraces
from contact_sim.terrain.triangle_mesh import FARTHEST

Ground = HeightField | Terraces
Pair = tuple[float, float]
MOST_BLOCKS = 10_000


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
    def build(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Ground:
        """Return the ground from (0, 0) to `size`; at its rim it lies at height 0.

        Args:
            size: extent along x and y [m].
            difficulty: from 0 to 1.
            rng: source of all randomness.

        Raises:
            InvalidInput: a size or difficulty that makes no sense, no room for what is asked.
        """
        if len(size) != 2 or not all(0.0 < side <= FARTHEST for side in size):
            raise InvalidInput(
                f'size = {shown(size)} m: expected two numbers > 0, at most {FARTHEST:g}'
            )
        if not 0.0 <= difficulty <= 1.0:
            raise InvalidInput(f'difficulty = {difficulty!r}: expected a number from 0 to 1')
        return self.ground((float(size[0]), float(size[1])), difficulty, rng)

    @abstractmethod
    def ground(self, size: Pair, difficulty: float, rng: np.random.Generator) -> Ground:
        """Return what `build` returns, its arguments checked."""

    @checked
    def check_room(self, needed: float, size: Pair) -> None:
        """Raise InvalidInput unless a square fits.

        Args:
            needed: side of the square [m].
            size: of the sub-terrain [m].
        """
        if needed > min(size) * (1.0 + 1e-9):
            raise InvalidInput(
                f'{type(self).__name__}: needs {needed:g} m, but size = '
                f'({size[0]:g}, {size[1]:g}) m'
            )

    @checked
    def check_blocks(self, number: float, size: Pair) -> None:
        """Raise InvalidInput for more than MOST_BLOCKS steps or cells."""
        if number > MOST_BLOCKS:
            raise InvalidInput(
                f'{type(self).__name__}: {number:g} blocks with size = ({size[0]:g}, {size[1]:g}) '
                f'm, expected at most {MOST_BLOCKS}'
            )
