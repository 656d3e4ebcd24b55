"""Clearance of bodies over ground with facets: how far they may move before they touch it.

A body whose points were all farther than c from the ground, and have moved by m at most since, is
still farther than c − m: no search for contacts within `near` is needed while c − m > near. Both c
and m are bounds, so a search that is left out would have found nothing.

c is the least over the facets near a solid of a separation along some direction: the axes of the
world and of the solid for the boxes about both, and the normal of the facet. m is that of the
corners of the box about the solids of the body.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays._fields import (
    CARRIER_NUMBERS,
    CLEARANCE,
    LIST_COUNT,
    LIST_RADIUS,
    LISTED,
    WAIT,
)
from contact_sim.collision._facets import DEEP, continues, distance_to_triangle, plane_through
from contact_sim.collision._height_field_contacts import (
    LOWER,
    PER_POINT,
    UPPER,
    corners_of,
    grid_range,
    patch_at,
    size_of,
    top_of,
    touch_on_field,
    triangle_of_field,
)
from contact_sim.collision._height_field_contacts import SCALE as FIELD_SCALE
from contact_sim.collision._height_field_contacts import X0 as FIELD_X0
from contact_sim.collision._height_field_contacts import Y0 as FIELD_Y0
from contact_sim.collision._mesh_contacts import (
    BINS_Y,
    EDGE_NUMBERS,
    EDGES,
    EDGES_FROM,
    ENTRIES_FROM,
    SIDE,
    STARTS_FROM,
    TRIANGLES,
    X0,
    Y0,
    bin_range,
    touch_on_mesh,
    triangle_at,
    triangle_of_mesh,
)
from contact_sim.collision._shapes import corner_of
from contact_sim.collision._solid_contacts import to_local
from contact_sim.collision._surface import FIELD
from contact_sim.dynamics._vectors import add, dot, sub, vec
from contact_sim.solvers._jit import kernel

MOST = 0.1  # largest clearance of a body [m]
RENEWED = 0.002  # way of a solid after which the distances of its corners are found anew [m]
GAIN = 0.001  # by how much a body moves at least between two looks at its clearance [m]
ROUNDED = 1e-6  # by how much a clearance is less than what is found [m]


@kernel
def moved_at_most(axes, box, known):
    """Return how far a point of the box about the solids of a body has moved at most [m].

    Args:
        axes: rotation by columns and position of the body, shape (12,).
        box: centre and half sizes of the box in these axes, six numbers.
        known: the axes before, shape (any,).
    """
    # sum over the coordinates: an upper bound of the length, and faster
    x, y, z = abs(box[0]) + box[3], abs(box[1]) + box[4], abs(box[2]) + box[5]
    moved = 0.0
    for k in range(3):
        moved += x * abs(axes[k] - known[k]) + y * abs(axes[3 + k] - known[3 + k])
        moved += z * abs(axes[6 + k] - known[6 + k]) + abs(axes[9 + k] - known[9 + k])
    return moved


@kernel
def clearance_left(axes, box, known):
    """Return what is left of a clearance after the way that a body moved since [m]."""
    return known[CLEARANCE] - moved_at_most(axes, box, known)


@kernel
def any_not_clear(pose, bodies, boxes, known, near):
    """Return whether a body may have come nearer to the ground than `near`.

    Args:
        pose: rotation by columns and position of each body in world, shape (nb, 12).
        bodies: see CARRIER_NUMBERS, shape (any,).
        boxes: about their solids, shape (bodies, any).
        known: their clearances, see CLEARANCE_NUMBERS, shape (bodies, any).
        near: largest gap [m].
    """
    for k in range(boxes.shape[0]):
        axes = pose[bodies[CARRIER_NUMBERS * k]]
        if not clearance_left(axes, boxes[k], known[k]) > near:
            return True
    return False


@kernel
def corner_rooms(axes, size, rooms):
    """Return how far a point of a solid has moved at most since its corners were looked at [m].

    Args:
        axes: placement of the solid in world, shape (12,).
        size: half sizes of the box about its corners [m], shape (any,).
        rooms: its placement then, and how far each corner was from the ground at least, less what
            the solid had moved when that was found, negative where that is of no use, shape
            (12 + MOST_ROOMS,). After a long way they start anew.
    """
    moved = moved_at_most(axes, (0.0, 0.0, 0.0, size[0], size[1], size[2]), rooms)
    if moved > RENEWED:
        rooms[12:] = 0.0
        for k in range(12):
            rooms[k] = axes[k]
        moved = 0.0
    return moved


@kernel
def note_clearance(axes, clearance, near, known):
    """Note the clearance of a body [m], and how far it moves at least before the next look."""
    for k in range(12):
        known[k] = axes[k]
    known[CLEARANCE] = min(clearance, MOST) - ROUNDED
    known[WAIT] = GAIN + max(near - clearance, 0.0)


@kernel
def clearance_over_facets(ground, solid, shape, half, most, near, but):
    """Return a bound on the distance of a solid from the facets of a ground [m].

    0 if its parts may be on several sides of the ground: where that has a border; and wherever it
    is no larger than `near`.

    Args:
        ground: a `Ground` with facets.
        solid: its axes and centre in world, see `solid_at`.
        shape: its numbers, see _shapes.py, shape (any,).
        half: half sizes of the box about it along the axes of the world, (x, y, z) [m].
        most: largest distance of interest [m].
        near: distance of no use [m].
        but: a triangle that does not count, nor those that continue its plane; −1 for none.
    """
    room = (half[0] + most, half[1] + most, half[2] + most)
    if ground.kind == FIELD:
        return clearance_over_field(ground, solid, shape, half, room, most, near, but)
    return clearance_over_mesh(ground, solid, shape, half, room, most, near, but)


@kernel
def is_triangle(ground, feature):
    """Return whether a feature of a ground with facets is a triangle, no edge or corner."""
    if ground.kind == FIELD:
        return feature >= 0 and feature % PER_POINT <= UPPER
    return 0 <= feature < int(ground.data[TRIANGLES])


@kernel
def plane_of_triangle(ground, facet):
    """Return a corner of a triangle in world and its unit normal."""
    if ground.kind == FIELD:
        a, b, c = triangle_of_field(ground, facet)
        base = (ground.data[FIELD_X0], ground.data[FIELD_Y0], 0.0)
        return add(a, base), plane_through(a, b, c)
    t = triangle_at(ground.relief, facet)
    return t.a, t.n


@kernel
def touch_flat_ground(ground, facet, p, limit):
    """Return height of p over flat ground [m], negative behind it, the normal and the triangle.

    All are those of a contact. On a mesh only the triangle `facet` is looked at. The height is
    infinite if p is near an edge of the triangle, not over it, and perhaps above `limit`.
    """
    if ground.kind == FIELD:
        p = sub(p, (ground.data[FIELD_X0], ground.data[FIELD_Y0], 0.0))
        return touch_on_field(ground, p, limit)
    return touch_on_mesh(ground, facet, p)


@kernel
def clearance_over_field(ground, solid, shape, half, room, clearance, near, but):
    """Return the clearance over a height field; `room` is the half size of the box searched."""
    nx, ny = size_of(ground)
    scale, base = ground.data[FIELD_SCALE], (ground.data[FIELD_X0], ground.data[FIELD_Y0], 0.0)
    middle = sub(solid[3], base)
    inside = middle[0] >= room[0] and middle[0] + room[0] <= scale * (nx - 1)
    if not inside or middle[1] < room[1] or middle[1] + room[1] > scale * (ny - 1):
        return 0.0
    plane = triangle_of_field(ground, max(but, 0))
    first_i, last_i = grid_range(ground, middle[0], room[0], nx - 1)
    first_j, last_j = grid_range(ground, middle[1], room[1], ny - 1)
    for i in range(first_i, last_i + 1):
        for j in range(first_j, last_j + 1):
            top = top_of(patch_at(ground.relief, nx, ny, i, j))
            if solid[3][2] - half[2] - top >= clearance:
                continue
            for triangle in (LOWER, UPPER):
                number = PER_POINT * (ny * i + j) + triangle
                a, b, c = corners_of(ground, i, j, triangle)
                if but >= 0 and (number == but or continues(plane, (a, b, c))):
                    continue
                n, corners = plane_through(a, b, c), (add(a, base), add(b, base), add(c, base))
                clearance = min(clearance, apart(solid, shape, half, corners, n, clearance))
                if clearance <= near:
                    return 0.0
    return clearance


@kernel
def clearance_over_mesh(ground, solid, shape, half, room, clearance, near, but):
    """Return the clearance over a mesh; `room` is the half size of the box searched."""
    data, relief, plane = ground.data, ground.relief, triangle_of_mesh(ground, max(but, 0))
    triangles, last = int(data[TRIANGLES]), int(data[TRIANGLES]) + int(data[EDGES])
    starts, entries = int(data[STARTS_FROM]), int(data[ENTRIES_FROM])
    # under a border ground begins, and is felt up to DEEP below
    beyond = (room[0] + DEEP, room[1] + DEEP, room[2] + DEEP)
    low_x, high_x = bin_range(ground, solid[3][0], beyond[0], 0)
    low_y, high_y = bin_range(ground, solid[3][1], beyond[1], 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            k = starts + int(data[BINS_Y]) * bx + by
            for place in range(entries + int(relief[k]), entries + int(relief[k + 1])):
                entry = int(relief[place])
                if entry < triangles:
                    t = triangle_at(relief, entry)
                    # once, in the first of its bins, found as `Bins` does
                    if bx > low_x and (min(t.a[0], t.b[0], t.c[0]) - data[X0]) / data[SIDE] < bx:
                        continue
                    if by > low_y and (min(t.a[1], t.b[1], t.c[1]) - data[Y0]) / data[SIDE] < by:
                        continue
                    if entry == but or (but >= 0 and continues(plane, (t.a, t.b, t.c))):
                        continue
                    away = apart(solid, shape, half, (t.a, t.b, t.c), t.n, clearance)
                    clearance = min(clearance, away)
                elif entry < last:
                    row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (entry - triangles)
                    if relief[row + 9] != relief[row + 9]:  # a border
                        clearance = 0.0 if in_box(relief, row, solid[3], beyond) else clearance
                else:
                    break
                if clearance <= near:
                    return 0.0
    return clearance


@kernel
def distance_to_listed(ground, p, known):
    """Return a bound on the distance of p from the triangles of a mesh [m], found in a list."""
    off = sub(p, vec(known, 0))
    least = known[LIST_RADIUS] - np.sqrt(dot(off, off))
    for k in range(LISTED, LISTED + int(known[LIST_COUNT])):
        entry = int(known[k])
        if entry < int(ground.data[TRIANGLES]):
            t = triangle_at(ground.relief, entry)
            if abs(dot(t.n, sub(p, t.a))) < least:  # no nearer than its plane
                least = min(least, distance_to_triangle(p, t.a, t.b, t.c))
    return least


@kernel
def in_box(relief, row, middle, half):
    """Return whether the box about an edge and one about `middle` have a point in common."""
    common = True
    for k in range(3):
        low, high = relief[row + k], relief[row + 3 + k]
        low, high = min(low, high), max(low, high)
        common = common and low <= middle[k] + half[k] and high >= middle[k] - half[k]
    return common


@kernel
def apart(solid, shape, half, corners, n, most):
    """Return a bound on the distance of a solid from a triangle [m], 0 if they may meet.

    Not exact where it is at least `most`. `n` is the unit normal of the triangle.
    """
    radius, (a, b, c) = solid[5], corners
    # between the boxes along the axes of the world: that of the solid includes its radius
    square = 0.0
    for k in range(3):
        low, high = min(a[k], b[k], c[k]), max(a[k], b[k], c[k])
        off = max(solid[3][k] - half[k] - high, low - solid[3][k] - half[k], 0.0)
        square += off * off
    best = np.sqrt(square)
    if best >= most:
        return best
    # along the axes of the solid
    p, q, r = to_local(solid, a), to_local(solid, b), to_local(solid, c)
    square = 0.0
    for k in range(3):
        low, high = min(p[k], q[k], r[k]), max(p[k], q[k], r[k])
        off = max(low - solid[4][k], -solid[4][k] - high, 0.0)
        square += off * off
    best = max(best, np.sqrt(square) - radius)
    if best >= most:
        return best
    # along the normal
    local = (dot(solid[0], n), dot(solid[1], n), dot(solid[2], n))
    low, high = np.inf, -np.inf
    for i in range(int(shape[0])):
        along = dot(local, corner_of(shape, i))
        low, high = min(low, along), max(high, along)
    off = dot(n, sub(solid[3], a))
    best = max(best, off + low - radius, -off - high - radius)
    if best >= most:
        return best
    # at right angles to an axis of the solid and an edge of the triangle
    for e in (sub(q, p), sub(r, q), sub(p, r)):
        for d in ((0.0, -e[2], e[1]), (e[2], 0.0, -e[0]), (-e[1], e[0], 0.0)):
            size = np.sqrt(dot(d, d))
            if size > 0.0:
                x, y, z = dot(d, p), dot(d, q), dot(d, r)
                extent = dot((abs(d[0]), abs(d[1]), abs(d[2])), solid[4])
                off = max(min(x, y, z) - extent, -extent - max(x, y, z))
                best = max(best, off / size - radius)
    return best
