"""Contacts of spheres, capsules and boxes with each other (theory 4.4); others: _hull_contacts.py.

A solid is a core, a point, a segment along its z axis or a box, and everything within `radius` of
it. In kernels it is a tuple (x, y, z, centre, half, radius): its axes and centre in world, and the
half sizes of its core. The distance of two solids is that of their cores minus their radii; the
normal is the line between the nearest points. A capsule on a face touches at both ends of the
part over the face, two parallel capsules at both ends of the part that they share.

Of the fifteen axes that can separate two boxes, three of each and the products of their edges, the
one with the largest distance, or the least overlap, is the normal. On a face the contacts are
corners of the other box, corners of the face itself, and crossings of their edges. For separate
boxes the distance is that along the axis; it is exact where they touch. Two boxes that lie nearly
flat on each other touch with faces also where a product of edges separates them better: one
contact would let them turn into each other within a step.

[Gottschalk 1996] OBBTree, section 5; [Ericson 2005] Real-Time Collision Detection, section 4.4.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision._contact_slots import DROPPED, KEPT, keep_pair_contact
from contact_sim.dynamics._vectors import add, cross, dot, scaled, sub
from contact_sim.solvers._jit import kernel

# Solids.

POINT, SEGMENT, BOX, HULL, CYLINDER = range(5)  # kinds, see `Solid.kind`
PLACE, SIZE = 12, 4
"""Numbers of a placement, rotation by columns and centre, and of half sizes and radius."""


@kernel
def place_solids(pose, body, place, out):
    """Fill the placements of all solids in world.

    Args:
        pose: rotation by columns and position of each body in world, shape (nb, 12).
        body: body that carries each solid, shape (n,).
        place: placement of each solid in the axes of its body, shape (n, 12).
        out: out, placement in world, shape (n, 12).
    """
    for i in range(body.shape[0]):
        place_solid(pose[body[i]], place[i], out[i])


@kernel
def place_solid(pose, place, out):
    """Fill the placement of one solid in world, shape (12,); `pose` is that of its body."""
    for c in range(0, PLACE, 3):
        x, y, z = place[c], place[c + 1], place[c + 2]
        for k in range(3):
            out[c + k] = pose[k] * x + pose[3 + k] * y + pose[6 + k] * z
    for k in range(3):
        out[9 + k] += pose[9 + k]


@kernel
def solid_at(place, size, i):
    """Return solid i as a tuple."""
    return (
        (place[i, 0], place[i, 1], place[i, 2]),
        (place[i, 3], place[i, 4], place[i, 5]),
        (place[i, 6], place[i, 7], place[i, 8]),
        (place[i, 9], place[i, 10], place[i, 11]),
        (size[i, 0], size[i, 1], size[i, 2]),
        size[i, 3],
    )


@kernel
def in_axes(solid, a):
    """Return a world vector in the axes of a solid."""
    return dot(solid[0], a), dot(solid[1], a), dot(solid[2], a)


@kernel
def to_local(solid, point):
    """Return a point of the world in the axes of a solid, from its centre."""
    d = sub(point, solid[3])
    return dot(solid[0], d), dot(solid[1], d), dot(solid[2], d)


@kernel
def to_world(solid, a):
    """Return the world vector whose components in the axes of a solid are `a`."""
    return add(add(scaled(a[0], solid[0]), scaled(a[1], solid[1])), scaled(a[2], solid[2]))


@kernel
def axis_of(solid, k):
    """Return axis k of a solid."""
    if k == 0:
        return solid[0]
    return solid[1] if k == 1 else solid[2]


@kernel
def half_of(solid, k):
    """Return half size k of the core of a solid."""
    half = solid[4]
    if k == 0:
        return half[0]
    return half[1] if k == 1 else half[2]


@kernel
def clamped(x, half):
    """Return x within [−half, half]."""
    return min(max(x, -half), half)


@kernel
def nearest_in_core(a, half):
    """Return the point of a core nearest to the point `a`, both in its axes."""
    return clamped(a[0], half[0]), clamped(a[1], half[1]), clamped(a[2], half[2])


# Spheres and capsules.

TOUCHING = 1e-12  # distance of cores below which they meet [m]
SIDE_BY_SIDE = 0.1  # sine of the angle below which two capsules, or two faces, are parallel
EXACTLY_PARALLEL = 1e-3  # sine below which their nearest points are undetermined
UPRIGHT = 1.0 - 1e-12  # cosine above which a normal is that of a face
SEARCHES = 40  # Newton steps to the nearest point of a segment, each exact on one parabola
NEGLIGIBLE_STEP = 1e-14  # such a step, which has rounding alone, is the last


@kernel
def sphere_on_core(a, b, near, pool, key):
    """Store the contact of a sphere with any solid."""
    local = to_local(b, a[3])
    nearest = nearest_in_core(local, b[4])
    away = sub(local, nearest)
    distance = np.sqrt(dot(away, away))
    # centre outside the core, or inside
    if distance > TOUCHING:
        normal = scaled(1.0 / distance, away)
    else:
        distance, normal = way_out(local, b[4])
    gap = distance - a[5] - b[5]
    if gap <= near:
        n = to_world(b, normal)
        keep_pair_contact(pool, key, gap, n, sub(a[3], scaled(a[5], n)))


@kernel
def way_out(a, half):
    """Return the distance, at most 0, and the normal from a point `a` in a core to its surface."""
    least, k = half[0] - abs(a[0]), 0
    if half[1] - abs(a[1]) < least:
        least, k = half[1] - abs(a[1]), 1
    if half[2] - abs(a[2]) < least:
        least, k = half[2] - abs(a[2]), 2
    if k == 0:
        return -least, (1.0 if a[0] >= 0.0 else -1.0, 0.0, 0.0)
    if k == 1:
        return -least, (0.0, 1.0 if a[1] >= 0.0 else -1.0, 0.0)
    return -least, (0.0, 0.0, 1.0 if a[2] >= 0.0 else -1.0)


@kernel
def capsules(a, b, near, pool, key):
    """Store the contacts of two capsules: the nearest points, or both ends if parallel."""
    u, w, c = a[2], b[2], dot(a[2], b[2])
    sine = np.sqrt(max(0.0, 1.0 - c * c))
    away = sub(a[3], b[3])
    if sine < SIDE_BY_SIDE:
        # parallel: the part of a along which both lie
        middle, reach = -dot(away, u), half_of(b, 2) * abs(c)
        low, high = max(-half_of(a, 2), middle - reach), min(half_of(a, 2), middle + reach)
        if low < high:
            keep_round(a, b, low, near, pool, key + 1.0)
            keep_round(a, b, high, near, pool, key + 2.0)
            if sine < EXACTLY_PARALLEL:
                return
    keep_round(a, b, nearest_on_segment(u, w, c, away, a[4][2], b[4][2]), near, pool, key)


@kernel
def nearest_on_segment(u, w, c, away, half_a, half_b):
    """Return where, from the middle, segment a along u is nearest to segment b along w.

    [Ericson 2005] Real-Time Collision Detection, section 5.1.9.
    """
    p, q, sine = dot(u, away), dot(w, away), 1.0 - c * c
    s = clamped((c * q - p) / sine, half_a) if sine > 0.0 else 0.0
    t = clamped(q + c * s, half_b)
    return clamped(c * t - p, half_a)


@kernel
def keep_round(a, b, s, near, pool, key):
    """Store the contact of the point at `s` on the axis of capsule a with capsule b."""
    point = add(a[3], scaled(s, a[2]))
    local = to_local(b, point)
    on_axis = clamped(local[2], half_of(b, 2))
    away = sub(point, add(b[3], scaled(on_axis, b[2])))
    distance = np.sqrt(dot(away, away))
    n = scaled(1.0 / distance, away) if distance > TOUCHING else crossing(a[2], b[2])
    gap = distance - a[5] - b[5]
    if gap <= near:
        keep_pair_contact(pool, key, gap, n, sub(point, scaled(a[5], n)))


@kernel
def crossing(u, w):
    """Return a unit normal of two crossing directions, of u alone where they are parallel."""
    n = cross(u, w)
    size = np.sqrt(dot(n, n))
    if size < EXACTLY_PARALLEL:
        n = cross(u, (1.0, 0.0, 0.0) if abs(u[0]) < 0.6 else (0.0, 1.0, 0.0))
        size = np.sqrt(dot(n, n))
    return scaled(1.0 / size, n)


@kernel
def capsule_on_box(a, b, near, pool, key):
    """Store the contacts of a capsule with a box."""
    middle, end = to_local(b, a[3]), to_local(b, add(a[3], scaled(a[4][2], a[2])))
    along = sub(end, middle)
    # nearest point of the axis
    t = nearest_on_line(middle, along, b[4])
    point = add(middle, scaled(t, along))
    away = sub(point, nearest_in_core(point, b[4]))
    distance = np.sqrt(dot(away, away))
    # the axis is in the box: push it out of the nearest face
    if distance <= TOUCHING:
        keep_lying(a, b, shortest_way_out(middle, along, b[4]), middle, along, (near, pool, key))
        return
    normal = scaled(1.0 / distance, away)
    if distance - a[5] - b[5] > near:
        return
    # along a face: both ends
    for k in range(3):
        if abs(component(normal, k)) > UPRIGHT:
            face = (k, 1.0 if component(normal, k) > 0.0 else -1.0)
            if keep_lying(a, b, face, middle, along, (near, pool, key)):
                return
    # at an edge or corner: one point
    n = to_world(b, normal)
    place = add(a[3], scaled(t * a[4][2], a[2]))
    gap = distance - a[5] - b[5]
    keep_pair_contact(pool, key, gap, n, sub(place, scaled(a[5], n)))


@kernel
def shortest_way_out(middle, along, half):
    """Return the face, (axis, side), through which a segment leaves a box soonest."""
    face, largest = (0, 1.0), -np.inf
    for k in range(3):
        x = component(middle, k)
        away = abs(x) - abs(component(along, k)) - component(half, k)
        if away > largest:
            face, largest = (k, 1.0 if x >= 0.0 else -1.0), away
    return face


@kernel
def component(a, k):
    """Return component k of a vector."""
    if k == 0:
        return a[0]
    return a[1] if k == 1 else a[2]


@kernel
def nearest_on_line(middle, along, half):
    """Return t in [−1, 1] at which middle + t · along is nearest to a core.

    The squared distance is convex and piecewise quadratic: Newton steps between bounds.
    """
    low, high, t = -1.0, 1.0, 0.0
    for _ in range(SEARCHES):
        slope = bend = 0.0
        for k in range(3):
            x, d = component(middle, k) + t * component(along, k), component(along, k)
            out = x - clamped(x, component(half, k))
            slope += out * d
            bend += d * d if out != 0.0 else 0.0
        if slope > 0.0:
            high = t
        elif slope < 0.0:
            low = t
        else:
            return t
        step = t - slope / bend if bend > 0.0 else t
        if abs(step - t) <= NEGLIGIBLE_STEP:  # only rounding is left, whatever its sign
            return t
        following = step if low < step < high else bound_or_middle(step, low, high)
        if following == t:
            return t
        t = following
    return t


@kernel
def bound_or_middle(step, low, high):
    """Return an end of the segment where the step leads there, else the middle of the bounds."""
    if step <= -1.0 and low == -1.0:
        return low
    if step >= 1.0 and high == 1.0:
        return high
    return 0.5 * (low + high)


@kernel
def keep_lying(a, b, face, middle, along, into):
    """Store both ends of the part over a face, (axis, side); return False if that is a point."""
    near, pool, key = into
    k, side = face
    low, high = -1.0, 1.0
    for e in range(3):
        x, d, half = component(middle, e), component(along, e), half_of(b, e)
        if e == k:
            continue
        if abs(d) > TOUCHING:
            first, last = (-half - x) / d, (half - x) / d
            low, high = max(low, min(first, last)), min(high, max(first, last))
        elif abs(x) > half:
            high = low
    if high - low < 1e-6:
        return False
    n = scaled(side, axis_of(b, k))
    for i in range(2):
        t = low if i == 0 else high
        over = side * (component(middle, k) + t * component(along, k)) - half_of(b, k)
        gap = over - a[5] - b[5]
        if gap <= near:
            place = add(a[3], scaled(t * a[4][2], a[2]))
            keep_pair_contact(pool, key + 1.0 + i, gap, n, sub(place, scaled(a[5], n)))
    return True


# Two boxes.

MARGIN = 1e-4
"""Share of the smallest half size by which edges must be better than faces, and a face of the
second box than one of the first: otherwise nearly parallel boxes would switch often."""
PARALLEL = 1e-6  # sine below which two edges have no product
SHRINK = 1.0 - 1e-9  # factor on the other face, so that coinciding rims count as inside
FIRST, SECOND = 0, 1  # whose face it is
CORNERS, OWN_CORNERS, CROSSINGS, EDGES, SECOND_FACE = 0, 4, 8, 24, 32
"""Keys of contacts: corners of the other box, of the face itself, crossings of edges, two edges;
added to those on a face of the second box."""


@kernel
def boxes(a, b, near, pool, key):
    """Store the contacts of two boxes."""
    away = sub(a[3], b[3])
    margin = MARGIN * min(min(a[4][0], a[4][1], a[4][2]), min(b[4][0], b[4][1], b[4][2]))
    # separating axes: faces, then products of edges
    whose, k, face = best_face(a, b, away, margin)
    if face > near:
        return
    i, j, edge = best_edges(a, b, away)
    if edge > near:
        return
    crossing = edge > face + margin
    n = axis_of(a, k) if whose == FIRST else axis_of(b, k)
    if crossing and not is_flat(n, axis_of(a, i), axis_of(b, j), -edge / margin):
        keep_edges(a, b, (i, j), away, pool, key + EDGES)
        return
    before = pool[1][KEPT] + pool[1][DROPPED]
    if whose == FIRST:
        n = outwards(n, scaled(-1.0, away))
        keep_over_face(a, b, (FIRST, k), n, (near, pool, key))
    else:
        n = outwards(n, away)
        keep_over_face(b, a, (SECOND, k), n, (near, pool, key + SECOND_FACE))
    if crossing and pool[1][KEPT] + pool[1][DROPPED] == before:
        keep_edges(a, b, (i, j), away, pool, key + EDGES)


@kernel
def is_flat(n, u, w, depth):
    """Return whether the product of two edges is nearly along the normal of a face.

    And whether an overlap, `depth` times the margin, is the same along both up to the margin.
    """
    product = cross(u, w)
    if 0.5 * SIDE_BY_SIDE * SIDE_BY_SIDE * depth > 1.0:
        return False
    along = dot(n, product)
    return along * along > (1.0 - SIDE_BY_SIDE * SIDE_BY_SIDE) * dot(product, product)


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
    whose, axis, largest = FIRST, 0, -np.inf
    for k in range(3):
        n = axis_of(a, k)
        apart = abs(dot(n, away)) - half_of(a, k) - reach_along(b, n)
        if apart > largest:
            axis, largest = k, apart
    largest += margin
    for k in range(3):
        n = axis_of(b, k)
        apart = abs(dot(n, away)) - half_of(b, k) - reach_along(a, n)
        if apart > largest:
            whose, axis, largest = SECOND, k, apart
    return whose, axis, largest if whose == SECOND else largest - margin


@kernel
def best_edges(a, b, away):
    """Return the axes of the two edges and the distance along their product [m]."""
    first, second, largest = 0, 0, -np.inf
    for i in range(3):
        for j in range(3):
            n = cross(axis_of(a, i), axis_of(b, j))
            size = np.sqrt(dot(n, n))
            if size > PARALLEL:
                n = scaled(1.0 / size, n)
                apart = abs(dot(n, away)) - reach_along(a, n) - reach_along(b, n)
                if apart > largest:
                    first, second, largest = i, j, apart
    return first, second, largest


@kernel
def keep_edges(a, b, edges, away, pool, key):
    """Store the contact of the edges along axis i of the first and axis j of the second box."""
    u, w = axis_of(a, edges[0]), axis_of(b, edges[1])
    n = cross(u, w)
    n = outwards(scaled(1.0 / np.sqrt(dot(n, n)), n), away)
    p = sub(a[3], to_edge(a, edges[0], n))
    q = add(b[3], to_edge(b, edges[1], n))
    c, apart = dot(u, w), sub(p, q)
    s = (c * dot(w, apart) - dot(u, apart)) / (1.0 - c * c)
    keep_pair_contact(pool, key, dot(n, apart), n, add(p, scaled(s, u)))


@kernel
def to_edge(solid, along, n):
    """Return the way from the centre to the middle of the edge farthest along n."""
    way = (0.0, 0.0, 0.0)
    for k in range(3):
        if k != along:
            axis = axis_of(solid, k)
            way = add(way, scaled(half_of(solid, k), outwards(axis, n)))
    return way


@kernel
def keep_over_face(own, other, face, n, into):
    """Store the contacts of `other` over a face of `own`, whose outward normal is n.

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
    # corners of the other face over this one
    for corner in range(4):
        s, t = 1.0 - 2.0 * (corner & 1), 1.0 - (corner & 2)
        x, y = m[0] + s * p[0] + t * q[0], m[1] + s * p[1] + t * q[1]
        if abs(x) < hx and abs(y) < hy:
            keep_point(onto, x, y, m[2] + s * p[2] + t * q[2], CORNERS + corner, into)
    keep_own_corners(onto, (hx, hy), (m, p, q), into)
    keep_crossings(onto, (hx, hy), (m, p, q), into)


@kernel
def axis_along(solid, n):
    """Return the axis of a solid that is most along n, or against it."""
    k, largest = 0, -1.0
    for e in range(3):
        along = abs(dot(axis_of(solid, e), n))
        if along > largest:
            k, largest = e, along
    return k


@kernel
def facing(solid, n):
    """Return the middle of the face that is most opposed to n, and its half edges."""
    k = axis_along(solid, n)
    out = outwards(axis_of(solid, k), scaled(-1.0, n))
    i, j = (k + 1) % 3, (k + 2) % 3
    return (
        add(solid[3], scaled(half_of(solid, k), out)),
        scaled(half_of(solid, i), axis_of(solid, i)),
        scaled(half_of(solid, j), axis_of(solid, j)),
    )


@kernel
def keep_own_corners(onto, half, other, into):
    """Store the corners of the face that lie within the other one."""
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
    """Store the crossings of the edges of both faces."""
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
    """Store a contact at x, y of a face if it is near; it is `gap` above the face."""
    whose, centre, ex, ey, n = onto
    near, pool, key = into
    if gap > near:
        return
    on_face = add(centre, add(scaled(x, ex), scaled(y, ey)))
    if whose == FIRST:  # the first body is the one with the face
        keep_pair_contact(pool, key + number, gap, scaled(-1.0, n), on_face)
    else:
        keep_pair_contact(pool, key + number, gap, n, add(on_face, scaled(gap, n)))
