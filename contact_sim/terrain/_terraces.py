"""Level ground with vertical walls: rectangles at heights, and the surface over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array, Indices
from contact_sim._validation import checked, checked_fields, coordinates, finite, pair
from contact_sim.errors import InvalidInput, shown
from contact_sim.terrain._height_field import divided_walls, expanded
from contact_sim.terrain._triangle_mesh import MAX_COORDINATE, TriangleMesh

UNITS_PER_METRE = 1e9
"""A power of ten: whole units divided by it are the decimal numbers one writes."""
Interval = tuple[float, float]
MAX_CELLS = 1_000_000


@checked_fields
@dataclass(frozen=True, eq=False)
class Terraces:
    """Grid of level cells with one height each, joined by vertical walls.

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
            near = cuts.ndim == 1 and len(cuts) > 1 and (np.abs(cuts) <= MAX_COORDINATE).all()
            if not (near and (np.diff(cuts) > 0.0).all()):
                raise InvalidInput(f'Terraces.{name} = {cuts} m: expected 2 or more, increasing')
        shape = (len(self.x_cuts) - 1, len(self.y_cuts) - 1)
        if self.heights.shape != shape or not (np.abs(self.heights) <= MAX_COORDINATE).all():
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
    """Return level ground at height 0 with blocks; later blocks cover earlier ones.

    Args:
        size: along x and y [m].
        blocks: (x range, y range, height) of each [m]; what lies outside `size` is cut off.

    Raises:
        InvalidInput: numbers that are not finite, edges that make more than MAX_CELLS cells.
    """
    blocks = [_block(block) for block in blocks]
    laid = [(np.clip(x, 0.0, size[0]), np.clip(y, 0.0, size[1]), z) for x, y, z in blocks]
    x_cuts = _cuts([0.0, size[0], *(end for x, _, _ in laid for end in x)])
    y_cuts = _cuts([0.0, size[1], *(end for _, y, _ in laid for end in y)])
    cells = (len(x_cuts) - 1) * (len(y_cuts) - 1)
    if cells > MAX_CELLS:
        raise InvalidInput(f'blocks: their edges make {cells} cells, expected at most {MAX_CELLS}')
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


# The surface over level rectangles: their tops, and walls between different heights. No vertex
# lies inside the edge of a triangle: a side is divided where a corner of another rectangle touches
# it, and a wall at every height that meets it in its ends. So every edge has its two triangles,
# and those on one plane are recognisable as such. Coordinates are integer nanometres: equal places
# are equal numbers.


class Sides(NamedTuple):
    """The sides of all rectangles along one axis, divided into segments between points."""

    begin: Indices  # point at which each segment begins, shape (s,)
    end: Indices  # point at which it ends, shape (s,)
    before: Indices  # rectangle on the side of smaller coordinates, −1 for none, shape (s,)
    after: Indices  # rectangle on the side of larger coordinates, −1 for none, shape (s,)


def rectangles_mesh(rectangles: Array) -> TriangleMesh:
    """Return the surface over rectangles that do not overlap; the land around is at height 0.

    `rectangles` has the columns x low, x high, y low, y high, z [m], shape (n, 5).

    Raises:
        InvalidInput: rectangles that overlap at a side.
    """
    box = np.rint(rectangles * UNITS_PER_METRE).astype(np.int64)
    z = box[:, 4]
    corners = np.concatenate([box[:, [i, j]] for i in (0, 1) for j in (2, 3)])
    points = np.unique(corners, axis=0)
    along_x, along_y = _sides(points, box, axis=0), _sides(points, box, axis=1)
    parts = [
        *_tops(points, box, along_x, along_y),
        *_walls(points, z, along_x, facing_back=True),
        *_walls(points, z, along_y, facing_back=False),
    ]
    corners = np.concatenate(parts).reshape(-1, 3) / UNITS_PER_METRE
    return TriangleMesh(*divided_walls(corners, np.arange(len(corners)).reshape(-1, 3)))


def _sides(points: Indices, box: Indices, axis: int) -> Sides:
    """Return the sides along `axis`, 0 for x, divided at all points."""
    along, across = 2 * axis, 2 - 2 * axis  # first of the two columns of each in box
    lines, line = np.unique(points[:, 1 - axis], return_inverse=True)
    places, place = np.unique(points[:, axis], return_inverse=True)
    key = line * len(places) + place
    order = np.argsort(key)

    def rank(column: int, end: int) -> Indices:
        """Return where the ends of sides stand in `order`."""
        on_line = np.searchsorted(lines, box[:, column]) * len(places)
        return np.searchsorted(key[order], on_line + np.searchsorted(places, box[:, end]))

    owner = {}
    for name, column in (('after', across), ('before', across + 1)):
        rectangle, segment = expanded(rank(column, along), rank(column, along + 1))
        owner[name] = np.full(len(points), -1)
        owner[name][segment] = rectangle
        if len(np.unique(segment)) < len(segment):
            raise InvalidInput('rectangles overlap')
    used = np.flatnonzero((owner['before'] >= 0) | (owner['after'] >= 0))
    return Sides(order[used], order[used + 1], owner['before'][used], owner['after'][used])


def _tops(points: Indices, box: Indices, along_x: Sides, along_y: Sides) -> tuple[Array, ...]:
    """Return the corners of the tops [nm], shapes (m, 3, 3).

    Two triangles where nothing divides a side of the rectangle, else a fan round its middle.
    """
    owner, begin, end = (
        np.concatenate(values)
        for values in zip(
            _own(along_x.after, along_x.begin, along_x.end),  # counter-clockwise from low y
            _own(along_y.before, along_y.begin, along_y.end),
            _own(along_x.before, along_x.end, along_x.begin),
            _own(along_y.after, along_y.end, along_y.begin),
            strict=True,
        )
    )
    z = box[:, 4][owner]
    first, second = (np.column_stack([points[point], z]) for point in (begin, end))
    middle = np.column_stack([box[:, [0, 2]] + box[:, [1, 3]], 2 * box[:, 4]])[owner] / 2.0
    plain = np.bincount(owner)[owner] == 4
    corner = first[plain][np.argsort(owner[plain], kind='stable')].reshape(-1, 4, 3)
    fans = np.stack([middle, first, second], axis=1)[~plain]
    return corner[:, [0, 1, 2]], corner[:, [0, 2, 3]], fans


def _own(rectangle: Indices, begin: Indices, end: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the segments that have a rectangle."""
    some = rectangle >= 0
    return rectangle[some], begin[some], end[some]


def _walls(points: Indices, z: Indices, sides: Sides, facing_back: bool) -> tuple[Array, ...]:
    """Return the corners of walls between different heights [nm], shapes (m, 3, 3).

    `z` is the height of each rectangle [nm]; with `facing_back` a wall that has its end on the
    right faces `before`.
    """
    before, after = _height(z, sides.before), _height(z, sides.after)
    turned = (before < after) != facing_back
    left = points[np.where(turned, sides.end, sides.begin)]
    right = points[np.where(turned, sides.begin, sides.end)]
    wall = before != after
    left_low, left_high, right_low, right_high = (
        np.column_stack([place, height])[wall]
        for place in (left, right)
        for height in (np.minimum(before, after), np.maximum(before, after))
    )
    return (
        np.stack([left_low, right_low, right_high], axis=1),
        np.stack([left_low, right_high, left_high], axis=1),
    )


def _height(z: Indices, rectangle: Indices) -> Indices:
    """Return the heights of rectangles, 0 for none [nm]."""
    return np.where(rectangle >= 0, z[rectangle], 0)
