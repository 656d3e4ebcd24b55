"""Contact of a point with one facet of faceted ground: a triangle, an edge or a corner.

A point in front of the ground has a contact with every facet to which it is nearer than to the
neighbours of that facet: with the inside of a triangle, with a convex edge between the normals of
its two triangles, with a corner within the cone of its normals. So edges inside a plane are not
felt, and in a concave corner both sides are (theory 4.2).

A point behind the ground has a contact with the nearest triangle, and near a concave edge with
both its triangles, each of which then extends behind the other.

Rounding must neither lose nor invent a contact. So a triangle is a little larger than it is and
has the points a little behind it, by `room`: TOLERANCE times its size. A point that near to an
edge or corner touches the triangles there, and no direction is made of the difference of two
places that are equal but for rounding.

Vectors are tuples of three numbers [m].
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays._fields import (
    LIST_COUNT,
    LIST_RADIUS,
    LISTED,
    MOST_LISTED,
    SPOT,
    SPOT_FACET,
    SPOT_ROOM,
    SPOT_WAIT,
)
from contact_sim.dynamics._vectors import cross, dot, put, scaled, sub, vec
from contact_sim.solvers._jit import kernel
from contact_sim.terrain import SEAM

INSIDE, NONE = -1, 3
"""Where a point lies over a triangle: inside, or outside of more than one edge."""
TOLERANCE = 1e-9  # rounding of positions over the size of a facet [-]
ANGLE = 1e-6
"""By how much a direction may leave the cone of the normals of an edge or corner [rad]."""
DEEP = 0.02  # depth up to which a corner of a body is searched in a mesh, at least [m]
EXTENSION = 0.01  # how far a triangle extends behind its neighbour at a concave edge [m]


@kernel
def plane_through(a, b, c):
    """Return the unit normal of the triangle a, b, c, counter-clockwise seen from its front."""
    n = cross(sub(b, a), sub(c, a))
    return scaled(1.0 / np.sqrt(dot(n, n)), n)


@kernel
def near_plane(p, a, b, c, limit):
    """Return whether p is within `limit` of the plane through a, b, c."""
    n = cross(sub(b, a), sub(c, a))
    away = dot(n, sub(p, a))
    return away * away <= limit * limit * dot(n, n)


@kernel
def side_of_edges(p, n, a, b, c):
    """Return (where p lies over the triangle a, b, c of unit normal n, distance outside [m]).

    Where: INSIDE, or outside of edge 0 (a to b), 1 (b to c) or 2 (c to a) alone, or NONE.
    """
    where, outside = INSIDE, 0.0
    for edge in range(3):
        first, second = a, b
        if edge == 1:
            first, second = b, c
        elif edge == 2:
            first, second = c, a
        along = sub(second, first)
        inwards = dot(cross(n, along), sub(p, first))
        length = dot(along, along)
        if inwards < -TOLERANCE * length:
            if where != INSIDE:
                return NONE, 0.0
            where, outside = edge, -inwards / np.sqrt(length)
    return where, outside


@kernel
def is_over_triangle(p, n, a, b, c):
    """Return whether p lies over the triangle a, b, c of unit normal n; as `side_of_edges`."""
    return is_left_of(p, n, a, b) and is_left_of(p, n, b, c) and is_left_of(p, n, c, a)


@kernel
def is_left_of(p, n, a, b):
    """Return whether p lies on the inner side of the edge from a to b, or on it."""
    along = sub(b, a)
    return dot(cross(n, along), sub(p, a)) >= -TOLERANCE * dot(along, along)


@kernel
def distance_to_triangle(p, a, b, c):
    """Return the distance of p from the nearest point of a triangle [m]."""
    n = plane_through(a, b, c)
    if is_over_triangle(p, n, a, b, c):
        return abs(dot(n, sub(p, a)))
    return min(distance_to_edge(p, a, b), distance_to_edge(p, b, c), distance_to_edge(p, c, a))


@kernel
def distance_to_edge(p, a, b):
    """Return the distance of p from the nearest point between a and b [m]."""
    along, off = sub(b, a), sub(p, a)
    place = min(max(dot(along, off) / dot(along, along), 0.0), 1.0)
    off = sub(off, scaled(place, along))
    return np.sqrt(dot(off, off))


@kernel
def extends_behind(p, n, edge, neighbour):
    """Return whether a triangle extends behind its neighbour at a concave edge, down to p.

    Args:
        p: a point outside of the edge alone.
        n: unit normal of the triangle.
        edge: its ends (a, b), with the triangle on the left.
        neighbour: third corner of the triangle on the other side.
    """
    a, b = edge
    above = dot(n, sub(neighbour, a))
    span = sub(neighbour, a)
    if above <= TOLERANCE * np.sqrt(dot(span, span)):
        return False  # flat or convex
    return dot(plane_through(b, a, neighbour), sub(p, a)) < 0.0


@kernel
def nearest_on_edge(p, a, b, left, right, limit):
    """Return (distance, direction to p) if p is nearest to the convex edge from a to b.

    The distance is infinite if p is nearer to something else, or farther than `limit` [m]. `left`
    and `right` are the third corners of the triangles on either side of the edge, seen from the
    front, NaN at a border.
    """
    along, off = sub(b, a), sub(p, a)
    length, place = dot(along, along), dot(sub(b, a), sub(p, a))
    # between the ends?
    if not 0.0 <= place <= length:
        return np.inf, off
    # between the normals of both triangles?
    off = sub(off, scaled(place / length, along))
    square = dot(off, off)
    if not TOLERANCE * TOLERANCE * length < square <= limit * limit:
        return np.inf, off
    if beyond(off, square, sub(left, a)) or beyond(off, square, sub(right, a)):
        return np.inf, off
    distance = np.sqrt(square)
    return distance, scaled(1.0 / distance, off)


@kernel
def beyond(off, square, along):
    """Return whether a place `off` from an edge or corner is nearer to the ground `along` it.

    `square` is |off|²; NaN in `along`, beyond a border, is no ground.
    """
    ahead = dot(off, along)
    return ahead > 0.0 and ahead * ahead > ANGLE * ANGLE * square * dot(along, along)


@kernel
def is_convex(a, b, left, right):
    """Return whether the ground is convex at an edge, or ends there; see `nearest_on_edge`."""
    span = sub(right, a)
    n = cross(sub(b, a), sub(left, a))
    return not dot(n, span) >= -TOLERANCE * np.sqrt(dot(n, n) * dot(span, span))


# Edges that a body may lie on: both ends, two directions to which no normal of the edge leans,
# and the number of the feature.


@kernel
def store_edge(edges, count, a, b, left, right, number):
    """Store a convex edge in row `count`; see `nearest_on_edge`. Return the new number of rows."""
    if count >= edges.shape[0] - 1:
        return count
    row, along = edges[count], sub(b, a)
    e = scaled(1.0 / np.sqrt(dot(along, along)), along)
    # into the two facets, at right angles to the edge; beyond a border, away from the front
    first = sub(left, a)
    first = sub(first, scaled(dot(first, e), e))
    width = np.sqrt(dot(first, first))
    second = sub(right, a)
    second = sub(second, scaled(dot(second, e), e))
    size = np.sqrt(dot(second, second))
    if width < SEAM or size < SEAM:
        return count  # of a step that is too low to be felt
    first = scaled(1.0 / width, first)
    second = scaled(1.0 / size, second) if size > 0.0 else cross(first, e)
    put(row, 0, a)
    put(row, 3, b)
    put(row, 6, first)
    put(row, 9, second)
    row[12] = number
    return count + 1


# Lists of the facets near a point: place of the point when the list was made, radius of the ball
# around it that the listed facets touch, number of facets, facets in an order that does not depend
# on the point. A list serves every point whose search stays in that ball. What a point touches
# depends on the facets within the limit of its search and on their order, so the same contacts
# come of every list that serves it.

LIST_REACH = 0.5  # largest distance of a search that makes a list [m]
LIST_SLACK = 0.02  # by how much a list reaches farther than the search that needs it [m]
ROUNDED = 1e-6  # by how much it reaches farther than it says, for facets at its border [m]


@kernel
def serves(known, p, limit):
    """Return whether a list contains all facets within `limit` of p."""
    off = sub(p, vec(known, 0))
    room = known[LIST_RADIUS] - limit
    return room > 0.0 and dot(off, off) <= room * room


@kernel
def was_too_long(known, p):
    """Return whether facets were too many for a list, at p or not far from it."""
    off = sub(p, vec(known, 0))
    full = known[LIST_RADIUS] == 0.0 and known[LIST_COUNT] == MOST_LISTED
    return full and dot(off, off) <= 0.25 * LIST_SLACK * LIST_SLACK


@kernel
def begin_list(known, p, radius):
    """Empty a list and give it another place and radius."""
    put(known, 0, p)
    known[LIST_RADIUS], known[LIST_COUNT] = radius, 0.0
    known[SPOT_ROOM] = known[SPOT_WAIT] = 0.0


@kernel
def add_to_list(known, facet):
    """Put a facet into an ascending list unless it is there; return as `append_to_list`."""
    last = LISTED + int(known[LIST_COUNT])
    place = last
    while place > LISTED and known[place - 1] > facet:
        place -= 1
    if place > LISTED and known[place - 1] == facet:
        return True
    if not append_to_list(known, facet):
        return False
    for k in range(last, place, -1):
        known[k] = known[k - 1]
    known[place] = facet
    return True


@kernel
def append_to_list(known, facet):
    """Put a facet behind the others of a list; return False if it is full, of no use then."""
    last = LISTED + int(known[LIST_COUNT])
    if last == LISTED + MOST_LISTED:
        known[LIST_RADIUS] = 0.0
        return False
    known[last] = facet
    known[LIST_COUNT] += 1.0
    return True


# A flat spot is a place around which all ground within some room is one triangle, and others that
# continue its plane. What stays in the room and is over that triangle touches nothing else, so
# nothing else is looked at. A list keeps the last place that was looked at.

SPOT_GAIN = 0.001  # by how much a place moves at least between two looks [m]
INNER = 1e-6  # how far inside of a triangle a point over it alone is, at least [m]


@kernel
def on_spot(known, p, limit):
    """Return whether the ground within `limit` of p is in the room of a flat spot."""
    off, room = sub(p, vec(known, SPOT)), known[SPOT_ROOM] - limit
    return room > 0.0 and dot(off, off) <= room * room


@kernel
def looks_for_spot(known, p):
    """Return whether a spot may have been left, or found, since the last look."""
    off, wait = sub(p, vec(known, SPOT)), known[SPOT_WAIT]
    return dot(off, off) >= wait * wait


@kernel
def note_spot(known, p, room, facet, limit):
    """Note what was found around p: `room` [m] with the triangle `facet` alone in it.

    Rooms less than `limit` are of no use; a place has no more room than another and the way to it.
    """
    put(known, SPOT, p)
    known[SPOT_ROOM], known[SPOT_FACET] = room - ROUNDED, facet
    known[SPOT_WAIT] = SPOT_GAIN + max(limit - room, 0.0)


@kernel
def is_well_over(p, a, b, c):
    """Return whether p lies over the triangle a, b, c and INNER or more from its edges."""
    n = cross(sub(b, a), sub(c, a))
    least = INNER * INNER * dot(n, n)
    return is_off_edge(p, n, a, b, least) and is_off_edge(p, n, b, c, least) and (
        is_off_edge(p, n, c, a, least)
    )  # fmt: skip


@kernel
def is_off_edge(p, n, a, b, least):
    """Return whether p is on the left of an edge, with a squared distance of least/n² or more."""
    along = sub(b, a)
    inwards = dot(cross(n, along), sub(p, a))
    return inwards > 0.0 and inwards * inwards >= least * dot(along, along)


@kernel
def continues(triangle, other):
    """Return whether a triangle lies in the plane of another, beyond one of its edges."""
    a, b, c = triangle
    n, n_other = plane_through(a, b, c), plane_through(other[0], other[1], other[2])
    if not dot(n, n_other) > 0.0:
        return False
    for v in other:
        if not lies_in_plane(n, a, v):
            return False
    for ends in ((a, b), (b, c), (c, a)):
        along = sub(ends[1], ends[0])
        across, room = cross(n, along), TOLERANCE * dot(along, along)
        if (
            dot(across, sub(other[0], ends[0])) <= room
            and dot(across, sub(other[1], ends[0])) <= room
            and dot(across, sub(other[2], ends[0])) <= room
        ):
            return True
    return False


@kernel
def lies_in_plane(n, a, p):
    """Return whether p lies in the plane through a with the unit normal n; NaN does not."""
    off = sub(p, a)
    return abs(dot(n, off)) <= TOLERANCE * np.sqrt(dot(off, off))


@kernel
def outside_bounds(p, a, b, c, limit):
    """Return whether p is farther than `limit` from the box about a triangle along the axes."""
    square = 0.0
    for k in range(3):
        low, high = min(a[k], b[k], c[k]), max(a[k], b[k], c[k])
        off = max(low - p[k], p[k] - high, 0.0)
        square += off * off
    return square > limit * limit * (1.0 + 2.0 * TOLERANCE)


@kernel
def edge_curvature(p, a, b):
    """Return H = ∂n/∂p [1/m] of the distance from an edge, as `curvature`."""
    along, off = sub(b, a), sub(p, a)
    e = scaled(1.0 / np.sqrt(dot(along, along)), along)
    return radial_curvature(sub(off, scaled(dot(off, e), e)), e)


@kernel
def radial_curvature(off, axis):
    """Return (1 − n nᵀ − e eᵀ)/ρ for off = ρ n; n is constant along the unit vector e, `axis`."""
    distance = np.sqrt(dot(off, off))
    if distance < TOLERANCE:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s, n, e = 1.0 / distance, scaled(1.0 / distance, off), axis
    return (
        s * (1.0 - n[0] * n[0] - e[0] * e[0]),
        s * (-n[0] * n[1] - e[0] * e[1]),
        s * (-n[0] * n[2] - e[0] * e[2]),
        s * (1.0 - n[1] * n[1] - e[1] * e[1]),
        s * (-n[1] * n[2] - e[1] * e[2]),
        s * (1.0 - n[2] * n[2] - e[2] * e[2]),
    )
