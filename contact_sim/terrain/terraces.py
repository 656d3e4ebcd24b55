"""Level ground with vertical walls: rectangles at heights, and the surface over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked, checked_fields
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import coordinates, finite, pair
from contact_sim.terrain.rectangles import UNITS_PER_METRE, rectangles_mesh
from contact_sim.terrain.triangle_mesh import FARTHEST, TriangleMesh

Array = NDArray[np.float64]
Interval = tuple[float, float]
MOST_CELLS = 1_000_000


@checked_fields
@dataclass(frozen=True, eq=False)
class Terraces:
    """Level cells between lines along x and y, a height each; neighbours are joined by walls.

    All numbers are rounded to nanometres, so that equal places are equal numbers.

    Raises:
        InvalidInput: cuts that are not finite and increasing, heights of another shape or not
            finite.
    """

    x_cuts: Array
    """Lines between cells [m], increasing, shape (nx + 1,), read-only."""
    y_cuts: Array
    """Lines between cells [m], increasing, shape (ny + 1,), read-only."""
    heights: Array
    """Height of each cell [m], shape (nx, ny), read-only."""

    def __post_init__(self) -> None:
        for name in ('x_cuts', 'y_cuts', 'heights'):
            values = _rounded(getattr(self, name))
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        for name in ('x_cuts', 'y_cuts'):
            cuts = getattr(self, name)
            near = cuts.ndim == 1 and len(cuts) > 1 and (np.abs(cuts) <= FARTHEST).all()
            if not (near and (np.diff(cuts) > 0.0).all()):
                raise InvalidInput(f'Terraces.{name} = {cuts} m: expected 2 or more, increasing')
        shape = (len(self.x_cuts) - 1, len(self.y_cuts) - 1)
        if self.heights.shape != shape or not (np.abs(self.heights) <= FARTHEST).all():
            raise InvalidInput(
                f'Terraces.heights of shape {self.heights.shape}: expected {shape} finite numbers'
            )

    @property
    def is_ground_level(self) -> bool:
        """Whether all of it lies at height 0."""
        return not self.heights.any()

    @checked
    def height_at(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the height at points [m], the cell above or right of a line; outside 0.

        Args:
            x: [m], any shape.
            y: [m], same shape.
        """
        x, y = coordinates(x, y)
        i = np.searchsorted(self.x_cuts, x, side='right') - 1
        j = np.searchsorted(self.y_cuts, y, side='right') - 1
        rows, columns = self.heights.shape
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        found = self.heights[np.clip(i, 0, rows - 1), np.clip(j, 0, columns - 1)]
        return np.where(inside, found, 0.0)

    @checked
    def moved(self, x: float, y: float) -> Terraces:
        """Return the same ground elsewhere [m]."""
        return Terraces(self.x_cuts + x, self.y_cuts + y, self.heights)

    def rectangles(self) -> Array:
        """Return the cells, columns x low, x high, y low, y high, z [m], shape (nx ny, 5)."""
        x_low, y_low = np.meshgrid(self.x_cuts[:-1], self.y_cuts[:-1], indexing='ij')
        x_high, y_high = np.meshgrid(self.x_cuts[1:], self.y_cuts[1:], indexing='ij')
        columns = (x_low, x_high, y_low, y_high, self.heights)
        return np.stack([column.ravel() for column in columns], axis=1)

    def as_mesh(self) -> TriangleMesh:
        """Return the surface; at the rim a wall joins it to land around at height 0."""
        return rectangles_mesh(self.rectangles())


@checked
def blocks_on(
    size: tuple[float, float], blocks: Iterable[tuple[Interval, Interval, float]]
) -> Terraces:
    """Return level ground from (0, 0) to `size` at height 0 with blocks, later ones on top.

    Args:
        size: along x and y [m].
        blocks: (x range, y range, height) of each [m]; what lies outside `size` is cut off.

    Raises:
        InvalidInput: numbers that are not finite, edges that make more than MOST_CELLS cells.
    """
    blocks = [_block(block) for block in blocks]
    laid = [(np.clip(x, 0.0, size[0]), np.clip(y, 0.0, size[1]), z) for x, y, z in blocks]
    x_cuts = _cuts([0.0, size[0], *(end for x, _, _ in laid for end in x)])
    y_cuts = _cuts([0.0, size[1], *(end for _, y, _ in laid for end in y)])
    cells = (len(x_cuts) - 1) * (len(y_cuts) - 1)
    if cells > MOST_CELLS:
        raise InvalidInput(
            f'blocks: their edges make {cells} cells, expected at most {MOST_CELLS}'
        )
    heights = np.zeros((len(x_cuts) - 1, len(y_cuts) - 1))
    for x, y, z in laid:
        (i, i_end), (j, j_end) = (
            np.searchsorted(cuts, _rounded(ends)) for cuts, ends in ((x_cuts, x), (y_cuts, y))
        )
        heights[i:i_end, j:j_end] = z
    return Terraces(x_cuts, y_cuts, heights)


def _block(block: Any) -> tuple[Interval, Interval, float]:
    """Return a block whose numbers are finite, or raise InvalidInput."""
    if not isinstance(block, tuple | list) or len(block) != 3:
        raise InvalidInput(f'blocks: {shown(block)}: expected x range, y range, height')
    x, y, z = block
    return pair('x range', x, 'm'), pair('y range', y, 'm'), finite('height', z)


def _cuts(values: Iterable[float]) -> Array:
    """Return the values in order, those that differ by rounding once."""
    return np.unique(_rounded(list(values)))


def _rounded(values: ArrayLike) -> Array:
    return np.asarray(np.rint(np.asarray(values, dtype=float) * UNITS_PER_METRE) / UNITS_PER_METRE)
