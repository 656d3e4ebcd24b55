"""Contacts of one convex edge of the ground with a convex body (theory 4.8).

The direction of the least overlap of an edge of the ground with a body is normal to a face of the
body or to both edges (the separating axes of a segment and a polyhedron). A face that lies along
the edge has a contact at both ends of the part over it, so that neither a body on a rail nor one
on a stair tips. A direction counts if it points out of the ground, between the normals of the two
facets: any other belongs to another feature of the ground. [Gottschalk 1996] OBBTree, section 5;
[Gregorius 2013] The separating axis test between convex polyhedra: which pairs of edges can be
nearest to each other.

An edge is a row of `store_edge` (_facets.py): its ends, and two directions that normals of its
cone do not lean to.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision._contact_slots import KEPT, keep_pair_contact, pair_of, write_frame
from contact_sim.collision._facets import ROUNDED
from contact_sim.collision._shapes import edge_place, face_of
from contact_sim.collision._solid_contacts import in_axes, to_local, to_world
from contact_sim.dynamics._vectors import add, cross, dot, put, scaled, sub, vec
from contact_sim.solvers._jit import kernel

# Features of a solid are numbered within its pair (see _contact_slots.py): FACETS numbers for each
# corner, one per facet of the ground; then those of edges of the ground.

FACETS = 2**23
FIRST_END, SECOND_END, CROSSING = 1021, 1022, 1023
"""Numbers, in place of a corner, of both ends of an edge of the ground, and of two edges."""
MOST_OF_PAIR = 20  # contacts of one solid with edges of the ground
SAME_PLACE = 1e-7  # distance up to which two contacts of a body with one normal are one [m]
BEYOND = 0.1  # sine by which a normal may leave the cone of an edge of the ground
PASSED = 0.5  # share of the radius of a capsule by which its axis may be behind an edge
FLAT_EDGE = 1e-4  # sine below which two edges are parallel
DEEPER = 2.0  # overlap along two edges that counts in place of that of a face, over the latter
SAME_SIDE = 0.9  # cosine of normals above which a face and one of its edges are one side
LYING = 0.2  # sine up to which an edge of the ground lies along a face


@kernel
def is_beside(solid, row, limit):
    """Return whether an edge of the ground is beside the box about the corners of a body.

    By more than `limit` [m], which is exact for what `keep_edge` and `keep_segment` find.
    """
    a, b = to_local(solid, vec(row, 0)), to_local(solid, vec(row, 3))
    for k in range(3):
        reach = solid[4][k] + limit + ROUNDED
        if min(a[k], b[k]) > reach or max(a[k], b[k]) < -reach:
            return True
    return False


@kernel
def keep_edge(solid, shape, row, near, pool, key):
    """Store the contacts of an edge of the ground with a polyhedron."""
    a, b = to_local(solid, vec(row, 0)), to_local(solid, vec(row, 3))
    left, right = in_axes(solid, vec(row, 6)), in_axes(solid, vec(row, 9))
    along, limit = sub(b, a), near + shape[3]
    length = np.sqrt(dot(along, along))
    # the part of the edge in the body, or near it
    low, high = part_within(shape, a, along, 0.0)
    if low >= high:
        low, high = part_within(shape, a, along, limit)
        if low >= high:
            return
    # the face through which that part leaves the body soonest
    best, face, normal = -np.inf, -1, (0.0, 0.0, 0.0)
    for i in range(int(shape[2])):
        n, offset = face_of(shape, i)
        first, slope = dot(n, a) - offset, dot(n, along)
        apart = min(first + low * slope, first + high * slope)
        if apart > best:
            best, face = apart, i
    out = scaled(-1.0, face_of(shape, face)[0])
    lying = best <= limit and abs(dot(out, along)) < LYING * length
    part = (0.0, 0.0)
    if lying and dot(out, left) <= BEYOND and dot(out, right) <= BEYOND:
        part = over_face(shape, face, a, along, 0.0)
    over = part[0] < part[1]
    # an edge of the body that it crosses, along a normal out of the ground: through which it would
    # leave the body sooner than through a face along it, or a little later than through another
    crossing, place = -1, 0.0
    if not over:
        best = min(best, DEEPER * best)
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        first = vec(shape, k)
        d = sub(vec(shape, k + 3), first)
        n = cross(along, d)
        square = dot(n, n)
        if square <= (FLAT_EDGE * length) ** 2 * dot(d, d):
            continue
        into, other = dot(n, vec(shape, k + 6)), dot(n, vec(shape, k + 9))
        if into * other < 0.0:
            continue  # the body is on both sides
        n = scaled((1.0 if into + other >= 0.0 else -1.0) / np.sqrt(square), n)
        apart = dot(n, sub(first, a))
        if apart > limit:
            return
        if over and dot(n, out) > SAME_SIDE:
            continue  # an end of the part over the face
        if apart > best and dot(n, left) <= BEYOND and dot(n, right) <= BEYOND:
            t, s = crossing_places(first, d, a, along)
            if 0.0 <= t <= 1.0 and 0.0 <= s <= 1.0:
                best, crossing, normal, place = apart, i, n, t
    if crossing >= 0:
        k = edge_place(shape, crossing)
        p = add(vec(shape, k), scaled(place, sub(vec(shape, k + 3), vec(shape, k))))
        p, n = sub(p, scaled(shape[3], normal)), to_world(solid, normal)
        number = float(FACETS) * CROSSING + (64.0 * row[12] + crossing) % FACETS
        gap = best - shape[3]
        keep_new_contact(pool, key + number, gap, n, add(solid[3], to_world(solid, p)))
    elif over:
        keep_on_face(solid, shape, face, (a, along, length), part, row[12], near, pool, key)


@kernel
def crossing_places(p, d, q, e):
    """Return the shares t, s at which the lines p + t d and q + s e are nearest to each other."""
    off, dd, ee, de = sub(q, p), dot(d, d), dot(e, e), dot(d, e)
    determinant = dd * ee - de * de
    return (
        (dot(off, d) * ee - dot(off, e) * de) / determinant,
        (dot(off, d) * de - dot(off, e) * dd) / determinant,
    )


@kernel
def part_within(shape, a, along, grow):
    """Return between which shares t the line a + t along, 0 ≤ t ≤ 1, is in the body.

    `grow` is by how much its faces are moved outwards [m].
    """
    low, high = 0.0, 1.0
    for i in range(int(shape[2])):
        n, offset = face_of(shape, i)
        outside, slope = dot(n, a) - offset - grow, dot(n, along)
        if slope > 0.0:
            high = min(high, -outside / slope)
        elif slope < 0.0:
            low = max(low, -outside / slope)
        elif outside > 0.0:
            return 0.0, 0.0
    return low, high


@kernel
def over_face(shape, face, a, along, grow):
    """Return between which shares t the line a + t along, 0 ≤ t ≤ 1, is over a face.

    `grow` is by how much its sides are moved outwards [m].
    """
    low, high = 0.0, 1.0
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        if shape[k + 12] == face:
            into = vec(shape, k + 6)
        elif shape[k + 13] == face:
            into = vec(shape, k + 9)
        else:
            continue
        # inside where into · (a + t along − end) ≥ 0
        start, slope = dot(into, sub(a, vec(shape, k))) + grow, dot(into, along)
        if slope > 0.0:
            low = max(low, -start / slope)
        elif slope < 0.0:
            high = min(high, -start / slope)
        elif start < 0.0:
            return 0.0, 0.0
    return low, high


@kernel
def keep_on_face(solid, shape, face, edge, part, number, near, pool, key):
    """Store both ends of the part of an edge of the ground, (a, along, length), over a face.

    An end of the edge that has entered from the side is no deeper than it has come: it would be
    pushed out by a depth that it never had before.
    """
    outwards, offset = face_of(shape, face)
    n, deepest = to_world(solid, scaled(-1.0, outwards)), (part[0] - part[1]) * edge[2]
    for k in range(2):
        place = add(edge[0], scaled(part[k], edge[1]))
        gap = max(dot(outwards, place) - offset, deepest) - shape[3]
        if gap <= near:
            # on the body: from the edge of the ground to the face
            p = add(solid[3], to_world(solid, sub(place, scaled(gap, outwards))))
            feature = key + float(FACETS) * (FIRST_END + k) + number % FACETS
            keep_new_contact(pool, feature, gap, n, p)


@kernel
def keep_segment(solid, shape, row, near, pool, key):
    """Store the contacts of an edge of the ground with a capsule, between the ends of both.

    And those of the ends of the edge with the side of the capsule.
    """
    a, b = to_local(solid, vec(row, 0)), to_local(solid, vec(row, 3))
    k, radius = edge_place(shape, 0), shape[3]
    first, along = vec(shape, k), sub(b, a)
    d = sub(vec(shape, k + 3), first)
    left, right = in_axes(solid, vec(row, 6)), in_axes(solid, vec(row, 9))
    number = row[12] % FACETS
    for end in range(2):
        tip, inwards = (a, along) if end == 0 else (b, scaled(-1.0, along))
        keep_tip(solid, (first, d, radius), (tip, inwards), (left, right), near, pool,
                 key + float(FACETS) * (FIRST_END + end) + number)  # fmt: skip
    n = cross(along, d)
    square = dot(n, n)
    if square <= FLAT_EDGE * FLAT_EDGE * dot(along, along) * dot(d, d):
        return  # parallel: the ends of the capsule touch
    t, s = crossing_places(first, d, a, along)
    if not (0.0 <= t <= 1.0 and 0.0 <= s <= 1.0):
        return
    n = scaled(1.0 / np.sqrt(square), n)
    if dot(n, left) + dot(n, right) > 0.0:  # out of the ground
        n = scaled(-1.0, n)
    p = add(first, scaled(t, d))
    gap = dot(n, sub(p, a)) - radius
    if gap < -(1.0 + PASSED) * radius:
        return  # on the other side of a thin part of the ground
    if gap <= near and dot(n, left) <= BEYOND and dot(n, right) <= BEYOND:
        p = add(solid[3], to_world(solid, sub(p, scaled(radius, n))))
        crossing = key + float(FACETS) * CROSSING + number
        keep_new_contact(pool, crossing, gap, to_world(solid, n), p)


@kernel
def keep_tip(solid, capsule, end, sides, near, pool, key):
    """Store the contact of an end of an edge of the ground with the side of a capsule.

    `capsule` is (first end, to the second, radius); `end` is (place, along the edge); `sides` are
    the directions that normals of the edge do not lean to.
    """
    (first, d, radius), (tip, along) = capsule, end
    t = dot(d, sub(tip, first)) / dot(d, d)
    if not 0.0 < t < 1.0:
        return  # the end of the capsule touches
    on_axis = add(first, scaled(t, d))
    n = sub(on_axis, tip)
    distance = np.sqrt(dot(n, n))
    if distance - radius > near or distance <= SAME_PLACE:
        return
    if dot(n, sides[0]) + dot(n, sides[1]) > 0.0:  # out of the ground
        distance = -distance
    n = scaled(1.0 / distance, n)
    gap = distance - radius
    if gap < -(1.0 + PASSED) * radius or dot(n, along) > LYING * np.sqrt(dot(along, along)):
        return  # behind the ground, or the edge itself is nearer
    if dot(n, sides[0]) <= BEYOND and dot(n, sides[1]) <= BEYOND:
        p = add(solid[3], to_world(solid, sub(on_axis, scaled(radius, n))))
        keep_new_contact(pool, key, gap, to_world(solid, n), p)


@kernel
def keep_new_contact(pool, key, gap, normal, point):
    """Store a contact unless its pair has one at the same place with the same normal.

    A pair keeps the nearest of many.
    """
    first, counts, position, frame, gaps, feature = pool
    pair, own, farthest = pair_of(key), 0, -1
    for i in range(first, first + counts[KEPT]):
        if pair_of(feature[i]) == pair:
            off = sub(vec(position[i], 0), point)
            turn = sub(vec(frame[i, 2], 0), normal)
            if dot(off, off) < SAME_PLACE**2 and dot(turn, turn) < SAME_PLACE**2:
                return
            own += 1
            if farthest < 0 or gaps[i] > gaps[farthest]:
                farthest = i
    if own < MOST_OF_PAIR:
        keep_pair_contact(pool, key, gap, normal, point)
    elif gap < gaps[farthest]:
        gaps[farthest], feature[farthest] = gap, key
        put(position[farthest], 0, point)
        write_frame(frame, farthest, normal)
