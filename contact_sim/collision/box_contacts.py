"""Contacts of two boxes: a face of one and what of the other lies over it, or two edges.

Of the fifteen axes that can part two boxes, three of each and the products of their edges, the one
along which they are farthest apart, or overlap least, is the normal. Over a face touch: corners of
the other box, corners of the face itself, and crossings of their edges.
Boxes that are apart have the distance along that axis, which is theirs where they touch.

[Gottschalk 1996] OBBTree, section 5; [Ericson 2005] Real-Time Collision Detection, section 4.4.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision.pool import keep_contact
from contact_sim.collision.solids import axis_of, half_of
from contact_sim.dynamics.vectors import add, cross, dot, scaled, sub
from contact_sim.solvers.jit import kernel

MARGIN = 1e-4
"""Share of the smallest half size by which edges must be better than faces, and a face of the
second box than one of the first: between nearly parallel boxes the choice would change often."""
PARALLEL = 1e-6
"""Sine below which two edges have no product."""
SHRINK = 1.0 - 1e-9
"""Share of the other face that counts: where rims lie on each other, it is within."""
FIRST, SECOND = 0, 1
"""Whose face it is."""
CORNERS, OWN_CORNERS, CROSSINGS, EDGES, SECOND_FACE = 0, 4, 8, 24, 32
"""Keys of contacts: corners of the other box, of the face itself, crossings of edges, two edges;
added to those on a face of the second box."""


@kernel
def boxes(a, b, near, pool, key):
    """Keep the contacts of two boxes."""
    away = sub(a[3], b[3])
    margin = MARGIN * min(min(a[4][0], a[4][1], a[4][2]), min(b[4][0], b[4][1], b[4][2]))
    whose, k, face = best_face(a, b, away, margin)
    if face > near:
        return
    i, j, edge = best_edges(a, b, away)
    if edge > near:
        return
    if edge > face + margin:
        keep_edges(a, b, (i, j), away, pool, key + EDGES)
    elif whose == FIRST:
        n = outwards(axis_of(a, k), scaled(-1.0, away))
        keep_over_face(a, b, (FIRST, k), n, (near, pool, key))
    else:
        n = outwards(axis_of(b, k), away)
        keep_over_face(b, a, (SECOND, k), n, (near, pool, key + SECOND_FACE))


@kernel
def outwards(axis, direction):
    """Return the axis, turned round where it points against the direction."""
    return axis if dot(axis, direction) >= 0.0 else scaled(-1.0, axis)


@kernel
def reach_along(solid, n):
    """Return how far the core of a solid reaches along a unit vector, from its centre."""
    half = solid[4]
    return (
        half[0] * abs(dot(solid[0], n)) + half[1] * abs(dot(solid[1], n))
        + half[2] * abs(dot(solid[2], n))
    )  # fmt: skip


@kernel
def best_face(a, b, away, margin):
    """Return whose face, which axis, and the distance along it [m], negative of overlap."""
    whose, axis, most = FIRST, 0, -np.inf
    for k in range(3):
        n = axis_of(a, k)
        apart = abs(dot(n, away)) - half_of(a, k) - reach_along(b, n)
        if apart > most:
            axis, most = k, apart
    most += margin
    for k in range(3):
        n = axis_of(b, k)
        apart = abs(dot(n, away)) - half_of(b, k) - reach_along(a, n)
        if apart > most:
            whose, axis, most = SECOND, k, apart
    return whose, axis, most if whose == SECOND else most - margin


@kernel
def best_edges(a, b, away):
    """Return the axes of the two edges and the distance along their product [m]."""
    first, second, most = 0, 0, -np.inf
    for i in range(3):
        for j in range(3):
            n = cross(axis_of(a, i), axis_of(b, j))
            size = np.sqrt(dot(n, n))
            if size > PARALLEL:
                n = scaled(1.0 / size, n)
                apart = abs(dot(n, away)) - reach_along(a, n) - reach_along(b, n)
                if apart > most:
                    first, second, most = i, j, apart
    return first, second, most


@kernel
def keep_edges(a, b, edges, away, pool, key):
    """Keep the contact of the edges along axis i of the first and axis j of the second box."""
    u, w = axis_of(a, edges[0]), axis_of(b, edges[1])
    n = cross(u, w)
    n = outwards(scaled(1.0 / np.sqrt(dot(n, n)), n), away)
    p = sub(a[3], to_edge(a, edges[0], n))
    q = add(b[3], to_edge(b, edges[1], n))
    c, apart = dot(u, w), sub(p, q)
    s = (c * dot(w, apart) - dot(u, apart)) / (1.0 - c * c)
    keep_contact(pool, key, dot(n, apart), n, add(p, scaled(s, u)))


@kernel
def to_edge(solid, along, n):
    """Return the way from the centre to the middle of the edge farthest along n."""
    way = (0.0, 0.0, 0.0)
    for k in range(3):
        if k != along:
            axis = axis_of(solid, k)
            way = add(way, scaled(half_of(solid, k), outwards(axis, n)))
    return way


# ---------------------------------------------------------------- over a face


@kernel
def keep_over_face(own, other, face, n, into):
    """Keep what of `other` lies over a face of `own`, whose outward normal is n.

    `face`: FIRST where `own` is the first body, else SECOND, and the axis of the face. `into` is
    (near, pool, key).
    """
    k = face[1]
    ex, ey = axis_of(own, (k + 1) % 3), axis_of(own, (k + 2) % 3)
    hx, hy = half_of(own, (k + 1) % 3), half_of(own, (k + 2) % 3)
    centre = add(own[3], scaled(half_of(own, k), n))
    middle, u, w = facing(other, n)
    from_centre = sub(middle, centre)
    # the other face over this one: (x, y, height) of its middle and of its half edges
    m = (dot(ex, from_centre), dot(ey, from_centre), dot(n, from_centre))
    p = scaled(SHRINK, (dot(ex, u), dot(ey, u), dot(n, u)))
    q = scaled(SHRINK, (dot(ex, w), dot(ey, w), dot(n, w)))
    onto = (face[0], centre, ex, ey, n)
    for corner in range(4):
        s, t = 1.0 - 2.0 * (corner & 1), 1.0 - (corner & 2)
        x, y = m[0] + s * p[0] + t * q[0], m[1] + s * p[1] + t * q[1]
        if abs(x) < hx and abs(y) < hy:
            keep_point(onto, x, y, m[2] + s * p[2] + t * q[2], CORNERS + corner, into)
    keep_own_corners(onto, (hx, hy), (m, p, q), into)
    keep_crossings(onto, (hx, hy), (m, p, q), into)


@kernel
def facing(solid, n):
    """Return the middle of the face that looks most against n, and its half edges."""
    k, most = 0, -1.0
    for e in range(3):
        along = abs(dot(axis_of(solid, e), n))
        if along > most:
            k, most = e, along
    out = outwards(axis_of(solid, k), scaled(-1.0, n))
    i, j = (k + 1) % 3, (k + 2) % 3
    return (
        add(solid[3], scaled(half_of(solid, k), out)),
        scaled(half_of(solid, i), axis_of(solid, i)),
        scaled(half_of(solid, j), axis_of(solid, j)),
    )


@kernel
def keep_own_corners(onto, half, other, into):
    """Keep the corners of the face that lie within the other one."""
    m, p, q = other
    area = p[0] * q[1] - p[1] * q[0]
    if area == 0.0:
        return
    for corner in range(4):
        x, y = (1.0 - 2.0 * (corner & 1)) * half[0], (1.0 - (corner & 2)) * half[1]
        s = ((x - m[0]) * q[1] - (y - m[1]) * q[0]) / area
        t = (p[0] * (y - m[1]) - p[1] * (x - m[0])) / area
        if abs(s) < 1.0 and abs(t) < 1.0:
            keep_point(onto, x, y, m[2] + s * p[2] + t * q[2], OWN_CORNERS + corner, into)


@kernel
def keep_crossings(onto, half, other, into):
    """Keep where the edges of the other face cross those of the face."""
    m, p, q = other
    for e in range(4):  # middle and half length of an edge of the other face
        side = 1.0 - 2.0 * (e & 1)
        o = add(m, scaled(side, q if e < 2 else p))
        d = p if e < 2 else q
        for rim in range(4):
            at = 1.0 - 2.0 * (rim & 1)
            if rim < 2:
                s = (at * half[0] - o[0]) / d[0] if d[0] != 0.0 else 2.0
                within = abs(o[1] + s * d[1]) < half[1]
            else:
                s = (at * half[1] - o[1]) / d[1] if d[1] != 0.0 else 2.0
                within = abs(o[0] + s * d[0]) < half[0]
            if within and abs(s) < 1.0:
                x, y, z = o[0] + s * d[0], o[1] + s * d[1], o[2] + s * d[2]
                keep_point(onto, x, y, z, CROSSINGS + 4 * e + rim, into)


@kernel
def keep_point(onto, x, y, gap, number, into):
    """Keep a contact at x, y of a face if it is near; it is `gap` above the face."""
    whose, centre, ex, ey, n = onto
    near, pool, key = into
    if gap > near:
        return
    on_face = add(centre, add(scaled(x, ex), scaled(y, ey)))
    if whose == FIRST:  # the first body is the one with the face
        keep_contact(pool, key + number, gap, scaled(-1.0, n), on_face)
    else:
        keep_contact(pool, key + number, gap, n, add(on_face, scaled(gap, n)))
