"""The surface over level rectangles: their tops, and walls between different heights.

No vertex lies inside the edge of a triangle: a side is divided where a corner of another rectangle
touches it, and a wall at every height that meets it in its ends. So every edge has its two
triangles, and those on one plane are recognisable as such.

Coordinates are counted in nanometres, as integers: equal places are equal numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput
from contact_sim.terrain.triangle_mesh import TriangleMesh
from contact_sim.terrain.walls import divided_walls, expanded

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

UNITS_PER_METRE = 1e9
"""A power of ten: whole units divided by it are the decimal numbers one writes."""


class Sides(NamedTuple):
    """The sides of all rectangles along one axis, divided into segments between points."""

    begin: Indices
    """Point at which each segment begins, shape (s,)."""
    end: Indices
    """Point at which it ends, shape (s,)."""
    before: Indices
    """Rectangle on the side of smaller coordinates, −1 for none, shape (s,)."""
    after: Indices
    """Rectangle on the side of larger coordinates, −1 for none, shape (s,)."""


def rectangles_mesh(rectangles: Array) -> TriangleMesh:
    """Return the surface over rectangles that do not overlap; around them lies land at height 0.

    Args:
        rectangles: columns x low, x high, y low, y high, z [m], shape (n, 5).

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

    Args:
        points: [nm], shape (n, 2).
        z: height of each rectangle [nm].
        sides: along one axis.
        facing_back: whether a wall that has its end on the right faces `before`.
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
