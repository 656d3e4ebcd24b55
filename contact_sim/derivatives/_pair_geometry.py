"""How the gap, normal and point of a contact of bodies change where they move on each other.

One of the two surfaces has a point c that is the next to the other one, a distance `reach` before
the middle of the gap: p = c − reach n, n from the other surface to it. For a motion of its body
relative to the other one, e at c and ω, c travels by t:

    FIXED      dn = H e,   t = e                      in its body: a corner, a centre;
                                                      H = (E − n nᵀ)/D, see below
    SUPPORT    dn = 0,     t = e + C (ω × n)          on an ellipsoid of support h(n), C = ∇²h
    CROSSED    dn = α u + β w,   t = e + ds u         on a line along u, next to one along w
    IN_PLANE   dn = 0,     t = e − u (m·e)/(m·u)      on a line along u, in a plane of the other
    ON_LINE    dn = 0,     t = n (m·e)/(m·n)          in a plane, on a line of the other along n
    SHARED     dn = H t,   t = e + u (k·(ω × u) − u·e)    on the axis u of a capsule, where a
                                                      parallel one ends
    ON_RIM     dn = 0,     t = e − (k·ω) a × ρ        at ρ on the rim of a cylinder with axis a

    dφ = n·t,   dp = t − reach dn − ½ n dφ

D is the distance from c to the nearest point of the other core, E are the directions in which
that stays behind. α, β and ds follow from n ⊥ u, w and from the distance of two lines. On a plane
k = a + (n·a) d/|a × n|, with d to the lowest point of the rim. Lines, planes and ends are edges,
faces and corners of boxes and capsules (collision/_solid_contacts.py). Of a face or edge on round
ground c is the centre of that. What is not here (hulls and cylinders on others than spheres,
edges of ground with facets) is differenced (_differences.py).
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._fields import PAIR_NUMBERS
from contact_sim.arrays._views import frames, integers, matrix, vector
from contact_sim.collision._bodies_on_ground import FLAT_RIM, is_over_face
from contact_sim.collision._bodies_on_ground import ON_RIM as AROUND_RIM
from contact_sim.collision._contact_slots import CONTACTS, pair_of
from contact_sim.collision._ground_edges import CROSSING, FACETS, FIRST_END
from contact_sim.collision._shapes import ELLIPSOID, KIND, edge_place, face_of
from contact_sim.collision._solid_contacts import (
    BOX,
    CORNERS,
    CROSSINGS,
    CYLINDER,
    EDGES,
    HULL,
    OWN_CORNERS,
    POINT,
    SECOND_FACE,
    SEGMENT,
    TOUCHING,
    axis_along,
    axis_of,
    best_edges,
    clamped,
    facing,
    half_of,
    nearest_on_line,
    nearest_on_segment,
    place_solid,
    to_local,
    to_world,
)
from contact_sim.collision._surface import PLANES, ROUND
from contact_sim.derivatives import _fields as d
from contact_sim.dynamics._vectors import add, cross, dot, scaled, sub, vec
from contact_sim.solvers._jit import kernel
from contact_sim.step._workspace import ground_of

UNKNOWN, FIXED, SUPPORT, CROSSED, IN_PLANE, ON_LINE, SHARED, ON_RIM, SPHERE = range(9)
"""What c is: the cases above. SPHERE: of a sphere on the ground, see _contact_motion.py."""
NO_CURVATURE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
ZERO = (0.0, 0.0, 0.0)
AT_END = 1e-9
"""Distance from the end of a capsule up to which a contact is at it [m]."""

# A surface is (what c is, whether c is of the first body, c, reach, H or C, u, w or m or k, D); H
# is symmetric: xx, xy, xz, yy, yz, zz. Places are from the origin of the twists.


@kernel
def times(H, e):
    """Return H e."""
    return (
        H[0] * e[0] + H[1] * e[1] + H[2] * e[2],
        H[1] * e[0] + H[3] * e[1] + H[4] * e[2],
        H[2] * e[0] + H[4] * e[1] + H[5] * e[2],
    )


@kernel
def relative_change(surface, n, e, turn):
    """Return dn and t for a motion, e at c and `turn`, of the body of c."""
    kind, _, _, _, H, u, w, distance = surface
    if kind == FIXED:
        return times(H, e), e
    if kind == SUPPORT:
        return ZERO, add(e, times(H, cross(turn, n)))
    if kind == CROSSED:
        # dn·u = −n·du, dn·w = 0; u and w stay next to each other
        c, k = dot(u, w), -dot(n, cross(turn, u))
        square = 1.0 - c * c
        dn = scaled(k / square, sub(u, scaled(c, w)))
        ds = (distance * k - dot(u, e) + c * dot(w, e)) / square
        return dn, add(e, scaled(ds, u))
    if kind == IN_PLANE:
        return ZERO, sub(e, scaled(dot(w, e) / dot(w, u), u))
    if kind == ON_RIM:
        return ZERO, sub(e, scaled(dot(w, turn), u))
    if kind == SHARED:
        travel = add(e, scaled(dot(w, cross(turn, u)) - dot(u, e), u))
        return times(H, travel), travel
    return ZERO, scaled(dot(w, e) / dot(w, n), n)


@kernel
def surface_change(surface, n, p, s, moves):
    """Return dn, dp and dφ for a motion s (linear at the origin, angular).

    `n` is out of the other surface; `moves` says whether s moves the body of c, and the other.
    """
    sign = (1.0 if moves[0] else 0.0) - (1.0 if moves[1] else 0.0)
    e = scaled(sign, add(s[0], cross(s[1], surface[2])))
    dn, travel = relative_change(surface, n, e, scaled(sign, s[1]))
    gap = dot(n, travel)
    dp = sub(sub(travel, scaled(surface[3], dn)), scaled(0.5 * gap, n))
    if moves[1]:  # all together
        dn, dp = add(dn, cross(s[1], n)), add(dp, add(s[0], cross(s[1], p)))
    return dn, dp, gap


# --- What c is


@kernel
def unknown():
    """Return a surface of which there is no formula."""
    return UNKNOWN, True, ZERO, 0.0, NO_CURVATURE, ZERO, ZERO, 0.0


@kernel
def fixed(first, c, reach, H):
    """Return a surface with a fixed c."""
    return FIXED, first, c, reach, H, ZERO, ZERO, 0.0


@kernel
def placed(data, linear, i):
    """Return solid i as a tuple, see _solid_contacts.py, from the origin of the twists."""
    place, size = np.empty(12), matrix(data, f.SOLID_SIZE)[i]
    body = integers(data, f.SOLID_BODY)[i]
    place_solid(matrix(linear, d.D_POSE)[body], matrix(data, f.SOLID_PLACE)[i], place)
    centre = sub(vec(place, 9), vec(vector(linear, d.D_ORIGIN), 0))
    return vec(place, 0), vec(place, 3), vec(place, 6), centre, vec(size, 0), size[3]


@kernel
def middle_of(data, linear, i):
    """Return the middle of the gap of contact i of a body, from the origin of the twists."""
    n, half = vec(frames(data, f.FRAME_START)[i, 2], 0), 0.5 * vector(data, f.GAP_START)[i]
    on_first = vec(matrix(data, f.POSITION_START)[i], 0)
    return sub(sub(on_first, scaled(half, n)), vec(vector(linear, d.D_ORIGIN), 0))


@kernel
def surface_of(data, linear, i):
    """Return the surface of contact i of a body, UNKNOWN where there is no formula."""
    pairs, begin = integers(data, f.PAIRS), integers(data, f.SHAPE_BEGIN)
    feature, shapes = vector(data, f.FEATURE_START)[i], vector(data, f.SHAPES)
    k = PAIR_NUMBERS * pair_of(feature)
    if k < 0:
        return unknown()
    n, gap = vec(frames(data, f.FRAME_START)[i, 2], 0), vector(data, f.GAP_START)[i]
    p, a = middle_of(data, linear, i), placed(data, linear, pairs[k])
    if pairs[k + 1] < 0:
        shape = shapes[begin[pairs[k]] :]
        ground = ground_of(data)
        if ground.kind == PLANES and shape[ELLIPSOID] > 0.0:
            return support(a, n, gap, p)
        if ground.kind == PLANES and shape[4] > 0.0:
            return on_rim(a, shape, n, gap, p, int(feature % CONTACTS) // FACETS)
        if ground.kind == ROUND:
            centre = sub(vec(ground.data, 0), vec(vector(linear, d.D_ORIGIN), 0))
            of_ground = centre, ground.data[3], vec(ground.data, 5)
            return on_round_ground(a, shape, of_ground, n, gap, p, int(feature % CONTACTS))
        return unknown()
    b = placed(data, linear, pairs[k + 1])
    first, second = int(shapes[begin[pairs[k]] + KIND]), int(shapes[begin[pairs[k + 1]] + KIND])
    key = int(feature % CONTACTS)
    if first == POINT and second <= BOX:
        return next_to_core(True, a[3], a[5], b, n, gap)
    other = shapes[begin[pairs[k + 1]] :]
    if first == POINT and second == CYLINDER:
        return next_to_cylinder(a[3], a[5], b, other, n, gap)
    if first == POINT and second == HULL:
        return next_to_hull(a[3], a[5], b, other, n, gap)
    if first == SEGMENT and second == SEGMENT:
        return of_capsules(a, b, n, gap, key)
    if first == SEGMENT and second == BOX:
        return of_capsule_and_box(a, b, n, gap, p, key)
    if first == BOX and second == BOX and a[5] == 0.0 and b[5] == 0.0:
        return of_boxes(a, b, n, gap, p, key)
    return unknown()


@kernel
def support(a, n, gap, p):
    """Return the surface of an ellipsoid: C = (Q − Q n nᵀ Q/h²)/h, Q = R A² Rᵀ, h² = nᵀ Q n."""
    x, y, z = scaled(a[4][0], a[0]), scaled(a[4][1], a[1]), scaled(a[4][2], a[2])
    Qn = add(scaled(dot(x, n), x), add(scaled(dot(y, n), y), scaled(dot(z, n), z)))
    h = np.sqrt(dot(n, Qn))
    g, half = scaled(1.0 / h, Qn), 0.5 * gap
    C = (
        (x[0] * x[0] + y[0] * y[0] + z[0] * z[0] - g[0] * g[0]) / h,
        (x[0] * x[1] + y[0] * y[1] + z[0] * z[1] - g[0] * g[1]) / h,
        (x[0] * x[2] + y[0] * y[2] + z[0] * z[2] - g[0] * g[2]) / h,
        (x[1] * x[1] + y[1] * y[1] + z[1] * z[1] - g[1] * g[1]) / h,
        (x[1] * x[2] + y[1] * y[2] + z[1] * z[2] - g[1] * g[2]) / h,
        (x[2] * x[2] + y[2] * y[2] + z[2] * z[2] - g[2] * g[2]) / h,
    )
    return SUPPORT, True, add(p, scaled(half, n)), half, C, ZERO, ZERO, 0.0


@kernel
def on_rim(a, shape, n, gap, p, number):
    """Return the surface of a cylinder on a plane.

    Upright, any points of its face have the same motion as these, held fixed.
    """
    half, axis = 0.5 * gap, a[2]
    c, cosine = add(p, scaled(half, n)), dot(a[2], n)
    sine = np.sqrt(max(0.0, 1.0 - cosine * cosine))
    if shape[4] * sine <= FLAT_RIM:
        return fixed(True, c, half, NO_CURVATURE)
    middle = on_axis(a, shape[5] if number < AROUND_RIM else -shape[5])
    down = scaled(1.0 / sine, sub(scaled(cosine, axis), n))
    k = add(axis, scaled(cosine / sine, down))
    return ON_RIM, True, c, half, NO_CURVATURE, cross(axis, sub(c, middle)), k, 0.0


@kernel
def next_to_core(first, c, radius, other, n, gap):
    """Return the surface of a sphere about c, which is next to a point of the core of `other`."""
    local, H, out = to_local(other, c), NO_CURVATURE, 0
    over = 1.0 / (gap + radius + other[5])
    for k in range(3):
        x, reach = local[0] if k == 0 else local[1] if k == 1 else local[2], half_of(other, k)
        if abs(x) > reach or reach == 0.0:
            out, H = out + 1, plus_square(H, axis_of(other, k), over)
    # next to a face it does not turn
    H = plus_square(H, n, -over) if out > 1 else NO_CURVATURE
    return fixed(first, c, radius + 0.5 * gap, H)


@kernel
def next_to_cylinder(c, radius, other, shape, n, gap):
    """Return the surface of a sphere about c, next to the side, rim or face of a cylinder.

    The nearest point of the rim moves along it by the share of its radius in that of c.
    """
    p, axis, over = to_local(other, c), other[2], 1.0 / (gap + radius + other[5])
    size = np.sqrt(p[0] * p[0] + p[1] * p[1])
    beside, above = size - shape[4], abs(p[2]) - shape[5]
    if beside > 0.0 and above > 0.0:
        along = unit(cross(axis, n))
        H = plus_square(across(n, over), along, -over * shape[4] / size)
    elif beside > above and size > TOUCHING:
        H = plus_square(across(n, 1.0 / size), axis, -1.0 / size)
    else:
        H = NO_CURVATURE
    return fixed(True, c, radius + 0.5 * gap, H)


@kernel
def next_to_hull(c, radius, other, shape, n, gap):
    """Return the surface of a sphere about c, next to a face, edge or corner of a hull."""
    p, apart, face = to_local(other, c), -np.inf, 0
    for i in range(int(shape[2])):
        normal, offset = face_of(shape, i)
        if dot(normal, p) - offset > apart:
            face, apart = i, dot(normal, p) - offset
    foot = sub(p, scaled(apart, face_of(shape, face)[0]))
    H, over, least = NO_CURVATURE, 1.0 / (gap + radius + other[5]), np.inf
    for i in range(int(shape[1]) if apart > 0.0 and not is_over_face(shape, face, foot) else 0):
        k = edge_place(shape, i)
        q, e = vec(shape, k), sub(vec(shape, k + 3), vec(shape, k))
        share = dot(sub(p, q), e) / dot(e, e)
        off = sub(p, add(q, scaled(min(max(share, 0.0), 1.0), e)))
        if dot(off, off) < least:
            least, H = dot(off, off), across(n, over)
            if 0.0 < share < 1.0:
                H = plus_square(H, unit(to_world(other, e)), -over)
    return fixed(True, c, radius + 0.5 * gap, H)


@kernel
def across(n, share):
    """Return share (1 − n nᵀ)."""
    return plus_square((share, 0.0, 0.0, share, 0.0, share), n, -share)


@kernel
def plus_square(H, x, share):
    """Return H + share x xᵀ."""
    return (
        H[0] + share * x[0] * x[0], H[1] + share * x[0] * x[1], H[2] + share * x[0] * x[2],
        H[3] + share * x[1] * x[1], H[4] + share * x[1] * x[2], H[5] + share * x[2] * x[2],
    )  # fmt: skip


@kernel
def next_to_line(first, c, radius, line, n, gap):
    """Return the surface of a sphere about c, which is next to a line (direction, radius)."""
    over = 1.0 / (gap + radius + line[1])
    H = plus_square(across(n, over), line[0], -over)
    return fixed(first, c, radius + 0.5 * gap, H)


@kernel
def on_round_ground(a, shape, ground, n, gap, p, key):
    """Return the surface of a face or an edge of a body on a ball or cylinder of ground.

    `ground` is (centre, radius, axis).
    """
    centre, radius, axis = ground
    if key // FACETS == FIRST_END:  # c is the centre of the ground, and its body the ground
        return fixed(False, centre, radius + 0.5 * gap, NO_CURVATURE)
    if key // FACETS != CROSSING:
        return unknown()
    k = edge_place(shape, key % FACETS)
    u = unit(to_world(a, sub(vec(shape, k + 3), vec(shape, k))))
    if dot(axis, axis) == 0.0:
        return next_to_line(False, centre, radius, (u, shape[3]), scaled(-1.0, n), gap)
    reach = shape[3] + 0.5 * gap
    c, distance = add(p, scaled(reach, n)), gap + radius + shape[3]
    return CROSSED, True, c, reach, NO_CURVATURE, u, axis, distance


@kernel
def on_axis(a, s):
    """Return the point of the axis of a capsule at s [m] from its middle."""
    return add(a[3], scaled(s, a[2]))


@kernel
def of_capsules(a, b, n, gap, key):
    """Return the surface of two capsules: ends, and axes that cross."""
    u, w, away = a[2], b[2], sub(a[3], b[3])
    s = nearest_on_segment(u, w, dot(u, w), away, a[4][2], b[4][2])
    if key != 0:  # an end of what parallel ones share: one of the first, or where the second ends
        half = b[4][2] if key == 2 else -b[4][2]
        k = sub(scaled(half if dot(u, w) > 0.0 else -half, w), away)
        s = clamped(dot(k, u), a[4][2])
        if abs(s) < a[4][2]:
            c = on_axis(a, s)
            _, _, _, reach, H, _, _, _ = next_to_core(True, c, a[5], b, n, gap)
            return SHARED, True, c, reach, H, u, k, 0.0
    t = to_local(b, on_axis(a, s))[2]
    if abs(s) >= a[4][2]:
        return next_to_core(True, on_axis(a, s), a[5], b, n, gap)
    if abs(t) >= b[4][2]:
        end = on_axis(b, clamped(t, b[4][2]))
        return next_to_line(False, end, b[5], (u, a[5]), scaled(-1.0, n), gap)
    reach = a[5] + 0.5 * gap
    return CROSSED, True, on_axis(a, s), reach, NO_CURVATURE, u, w, gap + a[5] + b[5]


@kernel
def of_capsule_and_box(a, b, n, gap, p, key):
    """Return the surface of a capsule and a box: ends, a side of the face, an edge or corner."""
    reach = a[5] + 0.5 * gap
    c = add(p, scaled(reach, n))
    s = dot(a[2], sub(c, a[3]))
    end = abs(s) > a[4][2] - AT_END
    if key != 0:  # along a face: an end, or where the axis passes a side of the face
        if end:
            return fixed(True, c, reach, NO_CURVATURE)
        side, least = ZERO, np.inf
        local = to_local(b, c)
        for k in range(3):
            axis = axis_of(b, k)
            x = local[0] if k == 0 else local[1] if k == 1 else local[2]
            off = abs(abs(x) - half_of(b, k))
            if abs(dot(axis, n)) < 0.5 and off < least and abs(dot(axis, a[2])) > AT_END:
                side, least = axis, off
        if least > AT_END:
            return unknown()
        return IN_PLANE, True, c, reach, NO_CURVATURE, a[2], side, 0.0
    middle, tip = to_local(b, a[3]), to_local(b, on_axis(a, a[4][2]))
    t = nearest_on_line(middle, sub(tip, middle), b[4])
    c = on_axis(a, t * a[4][2])
    if abs(t) >= 1.0:
        return next_to_core(True, c, a[5], b, n, gap)
    local, out, edge = to_local(b, c), 0, 0
    for k in range(3):
        x = local[0] if k == 0 else local[1] if k == 1 else local[2]
        if abs(x) > half_of(b, k):
            out += 1
        else:
            edge = k
    if out == 2:
        w = axis_of(b, edge)
        return CROSSED, True, c, reach, NO_CURVATURE, a[2], w, gap + a[5] + b[5]
    if out == 3:
        corner = sub(c, scaled(gap + a[5] + b[5], n))
        return next_to_line(False, corner, b[5], (a[2], a[5]), scaled(-1.0, n), gap)
    return unknown()


@kernel
def of_boxes(a, b, n, gap, p, key):
    """Return the surface of two boxes: corners over a face, its own, crossings, two edges."""
    half = 0.5 * gap
    if key == EDGES:
        i, j, _ = best_edges(a, b, sub(a[3], b[3]))
        c = add(p, scaled(half, n))
        return CROSSED, True, c, half, NO_CURVATURE, axis_of(a, i), axis_of(b, j), gap
    # c is of the body over the face
    first = key >= SECOND_FACE
    own, other, number = (b, a, key - SECOND_FACE) if first else (a, b, key)
    out = n if first else scaled(-1.0, n)
    c = add(p, scaled(half, out))
    if CORNERS <= number < OWN_CORNERS:
        return fixed(first, c, half, NO_CURVATURE)
    _, u, w = facing(other, out)
    if number < CROSSINGS:
        return ON_LINE, first, c, half, NO_CURVATURE, ZERO, unit(cross(u, w)), 0.0
    edge, rim = (number - CROSSINGS) // 4, (number - CROSSINGS) % 4
    k = axis_along(own, out)
    side = axis_of(own, (k + 1) % 3 if rim < 2 else (k + 2) % 3)
    return IN_PLANE, first, c, half, NO_CURVATURE, unit(u if edge < 2 else w), side, 0.0


@kernel
def unit(x):
    """Return x/|x|."""
    return scaled(1.0 / np.sqrt(dot(x, x)), x)
