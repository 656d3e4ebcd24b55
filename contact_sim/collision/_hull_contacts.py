"""Contacts of convex polyhedra and cylinders between bodies (theory 4.4).

A polyhedron is the convex hull of its corners and everything within a radius of it: a mesh, a box
with rounded edges, and a capsule, whose core is one edge without faces.
Their distance is the largest along the separating axes: normals of faces, and products of two
edges whose faces' normals span arcs that cross on the Gauss map, so that the edges can be nearest
to each other. Depth and distance are exact but for MARGIN:

    overlap along the normal of a face    the facing face, clipped by the sides of that face
    overlap along the product of edges    the point where they cross
    apart                                 the facing face where it is over that face, else the
                                          nearest points of two edges

A cylinder that lies on a face or beside another one is everything within its radius of its axis.
Else it is a prism, turned so that one of its edges is the lowest line of its side: its lowest
point over a face is exact at every tilt.

[Gregorius 2013] The separating axis test between convex polyhedra; [Ericson 2005] Real-Time
Collision Detection, sections 5.1.9 and 5.2.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision._bodies_on_ground import FLAT_RIM, is_over_face
from contact_sim.collision._contact_slots import keep_pair_contact
from contact_sim.collision._ground_edges import crossing_places, over_face
from contact_sim.collision._shapes import corner_of, edge_place, face_of
from contact_sim.collision._solid_contacts import (
    EXACTLY_PARALLEL,
    FIRST,
    MARGIN,
    SECOND,
    SIDE_BY_SIDE,
    TOUCHING,
    best_face,
    capsules,
    clamped,
    half_of,
    in_axes,
    nearest_on_segment,
    to_local,
    to_world,
)
from contact_sim.collision._surface import tangents
from contact_sim.dynamics._vectors import (
    add,
    cross,
    dot,
    put,
    rotated,
    scaled,
    sub,
    turned,
    vec,
)
from contact_sim.solvers._jit import kernel

# Numbers of contacts within a pair: one of a sphere; corners and both ends of edges of the facing
# face, corners of the face itself, and its deepest corner; two edges that cross, or are nearest.

EDGES = 2**14  # of one solid, at most
ENDS, OWN, DEEPEST, OF_SECOND = EDGES, 3 * EDGES, 4 * EDGES, 5 * EDGES
CROSSINGS, NEAREST = 2**28, 2**30
SAME_PLACE = 1e-7  # distance up to which two contacts on a face are one [m]
RIM = 1e-10  # distance from its rim up to which a point counts as over a face [m]
MOST_ON_FACE = 8
"""Contacts of a pair on one face: of more, the deepest and those farthest in seven directions."""
FLAT = 1e-6  # sine below which two edges have no product, and a face no height over another one


@kernel
def relative(own, other):
    """Return the axes and the centre of a solid in the axes of another one, `own`."""
    return (
        in_axes(own, other[0]), in_axes(own, other[1]), in_axes(own, other[2]),
        to_local(own, other[3]),
    )  # fmt: skip


@kernel
def placed(at, p):
    """Return a point of a solid placed as `relative` says."""
    return add(at[3], rotated(at[0], at[1], at[2], p))


@kernel
def hulls(a, b, shapes, near, scratch, pool, key):
    """Store the contacts of two polyhedra; the first may be a capsule.

    `shapes` are their numbers, see `shape_numbers`; `scratch` holds candidates, shape
    (any, CANDIDATE_NUMBERS).
    """
    first, second = shapes
    limit = near + a[5] + b[5]
    # the boxes about them, then the faces of both
    if best_face(a, b, sub(a[3], b[3]), 0.0)[2] > limit:
        return
    at, back = relative(b, a), relative(a, b)
    f, of_first = farthest_face(first, second, back, limit)
    if of_first > limit:
        return
    g, of_second = farthest_face(second, first, at, limit)
    if of_second > limit:
        return
    margin = MARGIN * min(thickness(a), thickness(b))
    whose, apart = (SECOND, of_second) if of_second > of_first + margin else (FIRST, of_first)
    # edges that cross: while a face separates the bodies, their distance says the same
    if apart <= 0.0:
        i, j, of_edges, n = farthest_edges(first, second, at, limit)
        if of_edges > limit:
            return
        if of_edges > apart + margin:
            keep_crossing(a, b, shapes, at, (i, j, of_edges, n), near, scratch, pool, key)
            return
    bodies, onto = (a, b), (first, second)
    face = f
    if whose == SECOND:
        bodies, onto, face = (b, a), (second, first), g
    on_face = keep_over_face(bodies, onto, (whose, face, apart, margin), near, scratch, pool, key)
    if not on_face:
        keep_nearest_edges(a, b, shapes, at, near, pool, key)


@kernel
def thickness(solid):
    """Return the smallest half size of a solid; of a capsule its radius."""
    half = solid[4]
    return min(half[0], half[1], half[2]) if half[0] > 0.0 else solid[5]


# Separating axes.


@kernel
def farthest_face(own, other, at, limit):
    """Return the face of a shape from which another one, placed as `at`, is farthest.

    And how far [m], negative of overlap; the first one found beyond `limit` ends the search.
    """
    face, largest = -1, -np.inf
    for f in range(int(own[2])):
        n, offset = face_of(own, f)
        apart = dot(n, at[3]) - offset + lowest(other, in_axes(at, n))
        if apart > largest:
            face, largest = f, apart
            if largest > limit:
                break
    return face, largest


@kernel
def lowest(shape, n):
    """Return the least component of the corners of a shape along n [m]."""
    least = np.inf
    for i in range(int(shape[0])):
        least = min(least, dot(n, corner_of(shape, i)))
    return least


@kernel
def farthest_edges(first, second, at, limit):
    """Return two edges, how far the shapes are apart along their product, and that.

    In the axes of the second shape, out of which the normal points; `at` places the first one.
    """
    best_i, best_j, largest, normal = -1, -1, -np.inf, (0.0, 0.0, 1.0)
    for i in range(int(first[1])):
        k = edge_place(first, i)
        p = placed(at, vec(first, k))
        u = sub(placed(at, vec(first, k + 3)), p)
        left = rotated(at[0], at[1], at[2], vec(first, k + 6))
        right = rotated(at[0], at[1], at[2], vec(first, k + 9))
        uu = FLAT * FLAT * dot(u, u)
        for j in range(int(second[1])):
            m = edge_place(second, j)
            q = vec(second, m)
            w = sub(vec(second, m + 3), q)
            n = cross(u, w)
            # both faces of the second body are below its edge, those of the first above
            below, other = dot(n, vec(second, m + 6)), dot(n, vec(second, m + 9))
            above, beyond = dot(n, left), dot(n, right)
            if below * other < 0.0 or above * beyond < 0.0:
                continue
            below, above = below + other, above + beyond
            square = dot(n, n)
            if below * above > 0.0 or square <= uu * dot(w, w):
                continue
            n = scaled((1.0 if above >= below else -1.0) / np.sqrt(square), n)
            apart = dot(n, sub(p, q))
            if apart > largest:
                best_i, best_j, largest, normal = i, j, apart, n
                if largest > limit:
                    return best_i, best_j, largest, normal
    return best_i, best_j, largest, normal


# Contacts of two edges.


@kernel
def keep_crossing(a, b, shapes, at, edges, near, scratch, pool, key):
    """Store the contact of two edges, (i, j, distance, normal), where they cross.

    Beyond their ends, that of the nearest edges.
    """
    i, j, apart, normal = edges
    k, m = edge_place(shapes[0], i), edge_place(shapes[1], j)
    p, q = placed(at, vec(shapes[0], k)), vec(shapes[1], m)
    d, e = sub(placed(at, vec(shapes[0], k + 3)), p), sub(vec(shapes[1], m + 3), q)
    s, t = crossing_places(p, d, q, e)
    if apart > 0.0 and not (0.0 <= s <= 1.0 and 0.0 <= t <= 1.0):
        keep_nearest_edges(a, b, shapes, at, near, pool, key)
        return
    p = add(p, scaled(min(max(s, 0.0), 1.0), d))
    number = float(CROSSINGS) + EDGES * i + j
    keep_between(a, b, p, normal, apart, (near, pool, key + number))


@kernel
def keep_between(a, b, p, normal, apart, into):
    """Store the contact of a point of the core of the first body, in the axes of the second."""
    gap = apart - a[5] - b[5]
    if gap <= into[0]:
        n, place = to_world(b, normal), add(b[3], to_world(b, p))
        keep_pair_contact(into[1], into[2], gap, n, sub(place, scaled(a[5], n)))


@kernel
def keep_nearest_edges(a, b, shapes, at, near, pool, key):
    """Store the contact of the two edges nearest to each other of bodies that are apart.

    Edges side by side have one at both ends of their common length.
    """
    first, second = shapes
    least, best_i, best_j, longest = near + a[5] + b[5], -1, -1, -1.0
    for i in range(int(first[1])):
        p, d = edge_at(first, edge_place(first, i), at)
        for j in range(int(second[1])):
            m = edge_place(second, j)
            q = vec(second, m)
            e = sub(vec(second, m + 3), q)
            s, t = nearest_shares(p, d, q, e)
            off = sub(add(p, scaled(s, d)), add(q, scaled(t, e)))
            square = dot(off, off)
            if square > (least + SAME_PLACE) ** 2:
                continue
            # of edges as near as each other, such as those of one corner, those side by side
            low, high, _ = common_part(p, d, q, e)
            if high - low > longest or square < (least - SAME_PLACE) ** 2:
                best_i, best_j, longest = i, j, high - low
            least = min(least, np.sqrt(square))
    if best_i < 0:
        return
    p, d = edge_at(first, edge_place(first, best_i), at)
    m = edge_place(second, best_j)
    q = vec(second, m)
    e = sub(vec(second, m + 3), q)
    number = float(NEAREST) + 3.0 * (EDGES * best_i + best_j)
    low, high, sine = common_part(p, d, q, e)
    if low < high:
        keep_from_edge(a, b, add(p, scaled(low, d)), q, e, (near, pool, key + number + 1.0))
        keep_from_edge(a, b, add(p, scaled(high, d)), q, e, (near, pool, key + number + 2.0))
        if sine < EXACTLY_PARALLEL:
            return
    s = nearest_shares(p, d, q, e)[0]
    keep_from_edge(a, b, add(p, scaled(s, d)), q, e, (near, pool, key + number))


@kernel
def common_part(p, d, q, e):
    """Return between which shares p + s d lies beside q + t e, 0 and 0 if nowhere; their sine."""
    n = cross(d, e)
    sine = np.sqrt(dot(n, n) / (dot(d, d) * dot(e, e)))
    if sine >= SIDE_BY_SIDE:
        return 0.0, 0.0, sine
    off, size = sub(q, p), dot(d, d)
    start, end = dot(off, d) / size, dot(add(off, e), d) / size
    low, high = max(0.0, min(start, end)), min(1.0, max(start, end))
    return (low, high, sine) if low < high else (0.0, 0.0, sine)


@kernel
def edge_at(shape, k, at):
    """Return the start and the direction of the edge at place k of a shape, placed as `at`."""
    p = placed(at, vec(shape, k))
    return p, sub(placed(at, vec(shape, k + 3)), p)


@kernel
def keep_from_edge(a, b, p, q, e, into):
    """Store the contact of a point with the edge from q along e."""
    away = sub(p, add(q, scaled(min(max(dot(sub(p, q), e) / dot(e, e), 0.0), 1.0), e)))
    distance = np.sqrt(dot(away, away))
    if distance > TOUCHING:
        keep_between(a, b, p, scaled(1.0 / distance, away), distance, into)


@kernel
def nearest_shares(p, d, q, e):
    """Return the shares s, t in [0, 1] at which p + s d and q + t e are nearest to each other.

    [Ericson 2005] Real-Time Collision Detection, section 5.1.9.
    """
    off = sub(p, q)
    dd, ee, de, dr, er = dot(d, d), dot(e, e), dot(d, e), dot(d, off), dot(e, off)
    determinant = dd * ee - de * de
    s = 0.0
    if determinant > FLAT * FLAT * dd * ee:
        s = min(max((de * er - dr * ee) / determinant, 0.0), 1.0)
    t = (de * s + er) / ee
    if t < 0.0:
        return min(max(-dr / dd, 0.0), 1.0), 0.0
    if t > 1.0:
        return min(max((de - dr) / dd, 0.0), 1.0), 1.0
    return s, t


# Contacts over a face.


@kernel
def keep_over_face(bodies, shapes, face, near, scratch, pool, key):
    """Store the contacts of a body over a face of another one, where it is nearest there.

    Return whether it is: bodies that are apart may be nearer to each other beside the face.

    Args:
        bodies: the one with the face, and the other one.
        shapes: their numbers.
        face: (FIRST where the face is that of the first body of the pair, else SECOND; the face;
            distance along its normal [m]; by how much more a contact may be away [m]).
        near: largest gap [m].
        scratch: as in `hulls`.
        pool: the slots.
        key: number of the first feature of the pair.
    """
    own, other = bodies
    whose, f, apart, margin = face
    n, offset = face_of(shapes[0], f)
    at = relative(own, other)
    radii = own[5] + other[5]
    count = candidates_over(shapes, at, f, near + radii, scratch)
    if count == 0:
        if apart > 0.0:
            return False
        # rounding: its deepest corner
        p = deepest_corner(shapes[1], at, n)
        put(scratch[0], 0, sub(p, scaled(dot(n, p) - offset, n)))
        scratch[0, 3], scratch[0, 4], count = dot(n, p) - offset, DEEPEST, 1
    deepest = 0
    for c in range(count):
        scratch[c, 5] = 1.0
        if scratch[c, 3] < scratch[deepest, 3] - SAME_PLACE:
            deepest = c
    if apart > 0.0 and scratch[deepest, 3] > apart + margin + SAME_PLACE:
        return False
    if count > MOST_ON_FACE:
        choose(scratch, count, deepest, n)
    normal = to_world(own, n)
    for c in range(count):
        if scratch[c, 5] > 0.0:
            p, height, number = vec(scratch[c], 0), scratch[c, 3], key + scratch[c, 4]
            on_face = add(own[3], to_world(own, p))
            if whose == FIRST:
                on_face = add(on_face, scaled(own[5], normal))
                keep_pair_contact(pool, number, height - radii, scaled(-1.0, normal), on_face)
            else:
                p = add(on_face, scaled(height - other[5], normal))
                keep_pair_contact(pool, number + OF_SECOND, height - radii, normal, p)
    return True


@kernel
def candidates_over(shapes, at, f, limit, scratch):
    """Fill `scratch` with contacts of the second shape over face f of the first; return how many.

    Corners and edges of the facing face, clipped by the sides of the face; corners of the face
    within the other one.
    """
    mine, its = shapes
    n, offset = face_of(mine, f)
    toward = in_axes(at, n)
    facing = facing_face(its, toward)
    m, level = (0.0, 0.0, 0.0), 0.0
    if facing >= 0:
        m, level = face_of(its, facing)
    count = 0
    for e in range(int(its[1])):
        k = edge_place(its, e)
        if facing >= 0 and its[k + 12] != facing and its[k + 13] != facing:
            continue
        start, end, _ = around_face(its, k, facing, m)
        a = placed(at, start)
        along = sub(placed(at, end), a)
        low, high = over_face(mine, f, a, along, RIM)
        if low >= high:
            continue
        height, slope = dot(n, a) - offset, dot(n, along)
        number = float(e) if low == 0.0 else float(ENDS + e)
        p = add(a, scaled(low, along))
        count = add_candidate(scratch, count, n, p, height + low * slope, number, limit)
        if high < 1.0 or facing < 0:  # else the next edge begins there
            p = add(a, scaled(high, along))
            number = float(ENDS + EDGES + e)
            count = add_candidate(scratch, count, n, p, height + high * slope, number, limit)
    steep = dot(m, toward)
    if steep > -FLAT:
        return count
    for e in range(int(mine[1])):
        k = edge_place(mine, e)
        if mine[k + 12] == f or mine[k + 13] == f:
            p = around_face(mine, k, f, n)[0]
            local = in_axes(at, sub(p, at[3]))
            if is_within(its, facing, m, toward, local):
                height = (level - dot(m, local)) / steep
                p = add(p, scaled(height, n))
                count = add_candidate(scratch, count, n, p, height, float(OWN + e), limit)
    return count


@kernel
def facing_face(shape, n):
    """Return the face most opposed to n among those at the corners lowest along n, −1 if none."""
    if shape[2] == 0.0:
        return -1
    least = np.inf
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        least = min(least, dot(n, vec(shape, k)), dot(n, vec(shape, k + 3)))
    face, opposed = -1, np.inf
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        if min(dot(n, vec(shape, k)), dot(n, vec(shape, k + 3))) <= least + SAME_PLACE:
            for side in range(2):
                g = int(shape[k + 12 + side])
                along = dot(n, face_of(shape, g)[0])
                if along < opposed:
                    face, opposed = g, along
    return face


@kernel
def around_face(shape, k, face, m):
    """Return both ends of the edge at place k, anticlockwise about a face, and the way into it.

    `m` is the normal of the face; a segment has none.
    """
    a, b = vec(shape, k), vec(shape, k + 3)
    into = vec(shape, k + 6) if shape[k + 12] == face else vec(shape, k + 9)
    if face < 0 or dot(cross(m, sub(b, a)), into) > 0.0:
        return a, b, into
    return b, a, into


@kernel
def is_within(shape, face, m, n, p):
    """Return whether the line through p along n meets a face of normal m inside of its rim."""
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        if shape[k + 12] == face or shape[k + 13] == face:
            a, b, into = around_face(shape, k, face, m)
            side = cross(n, sub(b, a))
            if dot(side, into) < 0.0:
                side = scaled(-1.0, side)
            if dot(side, sub(p, a)) <= RIM * np.sqrt(dot(side, side)):
                return False
    return True


@kernel
def add_candidate(scratch, count, n, p, height, number, limit):
    """Store a point that is `height` above a face, and return how many there are.

    Of points at one place the lowest is kept.
    """
    if height > limit or count == scratch.shape[0]:
        return count
    foot = sub(p, scaled(height, n))
    for c in range(count):
        off = sub(vec(scratch[c], 0), foot)
        if dot(off, off) < SAME_PLACE * SAME_PLACE:
            if height < scratch[c, 3]:
                scratch[c, 3], scratch[c, 4] = height, number
            return count
    put(scratch[count], 0, foot)
    scratch[count, 3], scratch[count, 4] = height, number
    return count + 1


@kernel
def deepest_corner(shape, at, n):
    """Return the corner of a shape, placed as `at`, that is lowest along n."""
    best, least = (0.0, 0.0, 0.0), np.inf
    for i in range(int(shape[0])):
        p = placed(at, corner_of(shape, i))
        if dot(n, p) < least:
            best, least = p, dot(n, p)
    return best


@kernel
def choose(scratch, count, deepest, n):
    """Mark the deepest candidate, and those farthest in seven directions along the face."""
    for c in range(count):
        scratch[c, 5] = 0.0
    scratch[deepest, 5] = 1.0
    x, y = tangents(n[0], n[1], n[2])
    for k in range(MOST_ON_FACE - 1):
        angle = 2.0 * np.pi * k / (MOST_ON_FACE - 1)
        direction = add(scaled(np.cos(angle), x), scaled(np.sin(angle), y))
        best, largest = 0, -np.inf
        for c in range(count):
            along = dot(direction, vec(scratch[c], 0))
            if along > largest + SAME_PLACE:
                best, largest = c, along
        scratch[best, 5] = 1.0


# Spheres and cylinders.


@kernel
def sphere_on_hull(a, b, shape, near, pool, key):
    """Store the contact of a sphere with a polyhedron: exact."""
    p, face, apart = to_local(b, a[3]), -1, -np.inf
    for f in range(int(shape[2])):
        n, offset = face_of(shape, f)
        if dot(n, p) - offset > apart:
            face, apart = f, dot(n, p) - offset
    if apart - a[5] - b[5] > near:
        return
    n = face_of(shape, face)[0]
    if apart > 0.0 and not is_over_face(shape, face, sub(p, scaled(apart, n))):
        # the nearest point of the edges
        least, away = np.inf, n
        for i in range(int(shape[1])):
            k = edge_place(shape, i)
            q = vec(shape, k)
            e = sub(vec(shape, k + 3), q)
            share = min(max(dot(sub(p, q), e) / dot(e, e), 0.0), 1.0)
            off = sub(p, add(q, scaled(share, e)))
            if dot(off, off) < least:
                least, away = dot(off, off), off
        apart = np.sqrt(least)
        if apart > TOUCHING:
            n = scaled(1.0 / apart, away)
    keep_between(a, b, p, n, apart, (near, pool, key))


@kernel
def sphere_on_cylinder(a, b, shape, near, pool, key):
    """Store the contact of a sphere with a cylinder: exact."""
    p, rim, half = to_local(b, a[3]), shape[4], shape[5]
    size = np.sqrt(p[0] * p[0] + p[1] * p[1])
    out = (p[0] / size, p[1] / size, 0.0) if size > TOUCHING else (1.0, 0.0, 0.0)
    up = (0.0, 0.0, 1.0 if p[2] >= 0.0 else -1.0)
    beside, above = size - rim, abs(p[2]) - half
    if beside > 0.0 and above > 0.0:
        apart = np.sqrt(beside * beside + above * above)
        n = add(scaled(beside / apart, out), scaled(above / apart, up))
    elif beside > above:
        apart, n = beside, out
    else:
        apart, n = above, up
    keep_between(a, b, p, n, apart, (near, pool, key))


LYING = 1e-3  # cosine between a normal and the axis of a cylinder below which its side touches


@kernel
def rod_of(solid, shape):
    """Return a cylinder as everything within its radius of its axis; others as they are."""
    if shape[4] == 0.0:
        return solid
    return solid[0], solid[1], solid[2], solid[3], (0.0, 0.0, shape[5]), shape[4]


@kernel
def faced(solid, shape, direction):
    """Return a cylinder, turned about its axis so that an edge of its prism is farthest along it.

    Other solids as they are, and cylinders that stand along the direction.
    """
    x, y = dot(solid[0], direction), dot(solid[1], direction)
    size = np.sqrt(x * x + y * y)
    if shape[4] * size <= FLAT_RIM:
        return solid
    first, second = turned(x / size, y / size, solid[0], solid[1])
    return first, second, solid[2], solid[3], solid[4], solid[5]


@kernel
def cylinder_on_hull(a, b, shapes, near, scratch, pool, key):
    """Store the contacts of a polyhedron, the first, with a cylinder."""
    rim, half = shapes[1][4], shapes[1][5]
    back = relative(a, b)
    face, apart, normal = -1, -np.inf, (0.0, 0.0, 1.0)
    for f in range(int(shapes[0][2])):
        n, offset = face_of(shapes[0], f)
        local = in_axes(back, n)
        sine = np.sqrt(local[0] * local[0] + local[1] * local[1])
        above = dot(n, back[3]) - offset - rim * sine - half * abs(local[2])
        if above > apart:
            face, apart, normal = f, above, n
    if apart > near + a[5]:
        return
    local = in_axes(back, normal)
    if abs(local[2]) < LYING and apart + rim > 0.0:
        both = shapes[0], shapes[1][edge_place(shapes[1], int(shapes[1][1])) :]  # that of its axis
        on = FIRST, face, apart + rim, 0.0
        if keep_over_face((a, rod_of(b, shapes[1])), both, on, near, scratch, pool, key):
            return
    down = scaled(-1.0, to_world(a, normal))
    hulls(a, faced(b, shapes[1], down), shapes, near, scratch, pool, key)


@kernel
def cylinders(a, b, shapes, near, scratch, pool, key):
    """Store the contacts of a capsule or cylinder, the first, with a cylinder."""
    one, other = rod_of(a, shapes[0]), rod_of(b, shapes[1])
    u, w = a[2], b[2]
    s = nearest_on_segment(u, w, dot(u, w), sub(a[3], b[3]), half_of(one, 2), half_of(other, 2))
    p = add(a[3], scaled(s, u))
    on_axis = clamped(dot(w, sub(p, b[3])), half_of(other, 2))
    away = sub(p, add(b[3], scaled(on_axis, w)))
    distance = np.sqrt(dot(away, away))
    if distance > TOUCHING:
        n = scaled(1.0 / distance, away)
        if abs(dot(n, w)) < LYING and (shapes[0][4] == 0.0 or abs(dot(n, u)) < LYING):
            capsules(one, other, near, pool, key)
            return
        a, b = faced(a, shapes[0], scaled(-1.0, n)), faced(b, shapes[1], n)
    hulls(a, b, shapes, near, scratch, pool, key)
