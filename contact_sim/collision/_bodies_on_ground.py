"""Contacts of convex bodies with the ground: corners, edges and faces (theory 4.8).

A body is a solid: the convex hull of its corners and everything within a radius of it, a cylinder
or an ellipsoid. It touches the ground in two ways:

    corner of the body    with the facets nearest to it, as a sphere does; exact
    edge of the ground    a convex edge between two facets, with the face or edge of the body
                          through which it would leave the body soonest

Edges of the ground are in _ground_edges.py.

A cylinder on planes touches with its rims: at the lowest point of each and seven others, at four
where it lies flat. On facets it is a prism, which lies flat on four corners as well. An ellipsoid
touches planes only, at its point farthest against the normal.
"""

from __future__ import annotations

import math

import numpy as np

from contact_sim._types import Array, Indices
from contact_sim.arrays._fields import (
    CARRIER_NUMBERS,
    CARRIER_SIZES,
    CLEARANCE,
    FLAT_FACET,
    LIST_RADIUS,
    MOST_EDGES,
    PAIR_NUMBERS,
    WAIT,
)
from contact_sim.collision._clearance import (
    GAIN,
    MOST,
    ROUNDED,
    any_not_clear,
    clearance_left,
    clearance_over_facets,
    corner_rooms,
    distance_to_listed,
    is_triangle,
    moved_at_most,
    note_clearance,
    plane_of_triangle,
    touch_flat_ground,
)
from contact_sim.collision._contact_slots import (
    CONTACTS,
    NO_FEATURE,
    keep_pair_contact,
)
from contact_sim.collision._facets import DEEP
from contact_sim.collision._ground_edges import (
    CROSSING,
    FACETS,
    FIRST_END,
    FLAT_EDGE,
    is_beside,
    keep_edge,
    keep_segment,
)
from contact_sim.collision._height_field_contacts import top_of_field
from contact_sim.collision._mesh_contacts import top_of_mesh
from contact_sim.collision._shapes import CORNER, ELLIPSOID, HEADER, corner_of, edge_place, face_of
from contact_sim.collision._solid_contacts import (
    in_axes,
    place_solid,
    solid_at,
    to_local,
    to_world,
)
from contact_sim.collision._surface import (
    FIELD,
    MESH,
    PLANES,
    distance_and_normal,
    find_contacts,
    find_listed,
    plane_of,
)
from contact_sim.dynamics._vectors import add, dot, scaled, sub, vec
from contact_sim.robot._collision_pairs import RIM_CORNERS, Collisions
from contact_sim.solvers._jit import ITEM, call_find_edges, kernel

# Contacts of one solid.

POINT_SHAPE = np.zeros(HEADER + CORNER)
POINT_SHAPE[0] = 1.0
MORE = 0.01  # by how much a clearance may be larger than the last one, or the largest gap [m]
SPOT_SIZE = 0.02  # how far flat ground near a solid is looked for beyond what is needed [m]
CORNER_SLOTS = 4  # contacts that one corner may have at once
ON_RIM, FEW_ON_RIM = 8, 4  # contacts of a rim with a plane: tilted, and flat
AROUND = tuple(
    (math.cos(k * math.pi / (0.5 * ON_RIM)), math.sin(k * math.pi / (0.5 * ON_RIM)))
    for k in range(ON_RIM)
)
"""Directions around a rim."""
FLAT_RIM = 1e-5  # height of the higher side of a rim that counts as flat [m]
UPRIGHT_RIM = 1e-9  # sine of the tilt of a cylinder below which its rim has no lowest point


@kernel
def keep_contacts_with_ground(ground, solid, shape, top, near, scratch, pool, key):
    """Store the contacts of a solid with the ground.

    Args:
        ground: a `Ground`.
        solid: its axes and centre in world, see `solid_at`.
        shape: its numbers, see `shape_numbers`, shape (any,).
        top: height that no ground with facets under the solid exceeds, or infinity [m].
        near: largest gap [m].
        scratch: edges of the ground within its bounding sphere, see `find_edges`; slots of a
            corner, see `corner_slots`; the list of facets near the solid, see _facets.py, of
            length 0 without one; distances of its corners and how far it moved, see
            `corner_rooms`.
        pool: the slots, see `clear_pool`.
        key: number of the first feature of the pair.
    """
    if ground.find_facets != 0:
        keep_on_facets(ground, solid, shape, top, near, scratch, pool, key)
    else:
        keep_without_facets(ground, solid, shape, near, pool, key)


@kernel
def keep_without_facets(ground, solid, shape, near, pool, key):
    """Store the contacts of a solid with planes, a sphere or a cylinder."""
    if ground.kind == PLANES:
        keep_on_planes(ground, solid, shape, near, pool, key)
    else:
        keep_on_round(ground, solid, shape, near, pool, key)


@kernel
def keep_on_facets(ground, solid, shape, top, near, scratch, pool, key):
    """Store the contacts of a solid with facets; arguments as `keep_contacts_with_ground`."""
    edges = scratch[0]
    keep_corners(ground, solid, shape, top, near, scratch, pool, key)
    # a sphere has no edges: its centre finds those of the ground
    for e in range(int(edges[MOST_EDGES, 0]) if shape[1] > 0.0 else 0):
        if is_beside(solid, edges[e], near + shape[3]):
            continue
        if shape[2] > 0.0:
            keep_edge(solid, shape, edges[e], near, pool, key)
        else:
            keep_segment(solid, shape, edges[e], near, pool, key)


@kernel
def keep_on_planes(ground, solid, shape, near, pool, key):
    """Store the contacts of a solid with planes; return its gap to the nearest, −∞: not known."""
    if shape[4] > 0.0:
        keep_rims(ground, solid, shape, near, pool, key)
    elif shape[ELLIPSOID] > 0.0:
        keep_ellipsoid(ground, solid, shape, near, pool, key)
    else:
        return keep_corners_on_planes(ground, solid, shape, near, pool, key)
    return -np.inf


@kernel
def keep_corners_on_planes(ground, solid, shape, near, pool, key):
    """Store the contacts of the corners with planes; return the least gap."""
    radius, least = shape[3], np.inf
    for f in range(ground.features):
        n, offset = plane_of(ground.data, f)
        local = (dot(solid[0], n), dot(solid[1], n), dot(solid[2], n))
        above = dot(n, solid[3]) - offset - radius
        for i in range(int(shape[0])):
            gap = above + dot(local, corner_of(shape, i))
            least = min(least, gap)
            if gap <= near:
                p = add(solid[3], to_world(solid, corner_of(shape, i)))
                keep_pair_contact(
                    pool, key + float(FACETS) * i + f, gap, n, sub(p, scaled(radius, n))
                )
    return least


@kernel
def keep_rims(ground, solid, shape, near, pool, key):
    """Store the contacts of the rims of a cylinder with planes: exact at every tilt."""
    radius, half = shape[4], shape[5]
    for f in range(ground.features):
        n, offset = plane_of(ground.data, f)
        local = (dot(solid[0], n), dot(solid[1], n), dot(solid[2], n))
        sine = np.sqrt(local[0] ** 2 + local[1] ** 2)
        down = (1.0, 0.0)
        if sine > UPRIGHT_RIM:
            down = (-local[0] / sine, -local[1] / sine)
        count = ON_RIM if radius * sine > FLAT_RIM else FEW_ON_RIM
        for cap in range(2):
            side = half if cap == 0 else -half
            middle = dot(n, solid[3]) - offset + side * local[2]
            if middle - radius * sine > near:
                continue
            # the lowest point of the rim, and others in equal distances from it
            for k in range(count):
                c, s = AROUND[ON_RIM // count * k]
                gap = middle - radius * c * sine
                if gap <= near:
                    x, y = c * down[0] - s * down[1], s * down[0] + c * down[1]
                    p = add(solid[3], to_world(solid, (radius * x, radius * y, side)))
                    keep_pair_contact(
                        pool, key + float(FACETS) * (ON_RIM * cap + k) + f, gap, n, p
                    )


@kernel
def keep_ellipsoid(ground, solid, shape, near, pool, key):
    """Store the contacts of an ellipsoid with planes.

    With semi-axes A = diag(a, b, c) its point farthest against n is −A² n/|A n| from the centre.
    """
    axes = vec(shape, ELLIPSOID)
    for f in range(ground.features):
        n, offset = plane_of(ground.data, f)
        local = in_axes(solid, n)
        down = (axes[0] ** 2 * local[0], axes[1] ** 2 * local[1], axes[2] ** 2 * local[2])
        reach = np.sqrt(dot(down, local))
        gap = dot(n, solid[3]) - offset - reach
        if gap <= near:
            p = sub(solid[3], to_world(solid, scaled(1.0 / reach, down)))
            keep_pair_contact(pool, key + f, gap, n, p)


@kernel
def corner_slots():
    """Return room for the contacts of a corner: distances, frames and features."""
    return np.empty(CORNER_SLOTS), np.empty((CORNER_SLOTS, 3, 3)), np.empty(CORNER_SLOTS)


@kernel
def keep_corners(ground, solid, shape, top, near, scratch, pool, key):
    """Store the contacts of the corners, spheres of the radius of the solid, with facets."""
    # most corners of a body that lies are above all ground: up in its axes, and how far up
    up, above = (solid[0][2], solid[1][2], solid[2][2]), top - solid[3][2] + shape[3] + near
    radius, (_, found, known, rooms, moved) = shape[3], scratch
    for i in range(int(shape[0])):
        if i < rooms.shape[0] and rooms[i] - moved > near:
            continue
        corner = corner_of(shape, i)
        if dot(up, corner) > above:
            continue
        p = add(solid[3], to_world(solid, corner))
        if p[2] - radius - near > top_of_ground(ground, p, (radius, radius), near):
            continue
        keep_corner(ground, solid, shape, i, p, near, known, found, pool, key)
        if i < rooms.shape[0] and rooms[i] >= 0.0:
            rooms[i] = corner_room(ground, solid, p, radius, near, known, found) - moved
            if rooms[i] - moved <= near:
                rooms[i] = -1.0  # of no use before the solid has moved


@kernel
def keep_corner(ground, solid, shape, i, p, near, known, found, pool, key):
    """Store the contacts of corner i, at p, with facets."""
    (distance, frame, feature), slots = found, min(ground.features, CORNER_SLOTS)
    radius, key = shape[3], key + float(FACETS) * i
    listed = int(known.ctypes.data) if known.shape[0] > 0 else 0
    find_listed(ground, p[0], p[1], p[2], -(radius + max(near, DEEP)), listed, found, 0, slots)
    for s in range(slots):
        gap, n = distance[s] - radius, vec(frame[s, 2], 0)
        if gap <= near and touches_with(solid, shape, i, n):
            keep_pair_contact(pool, key + feature[s] % FACETS, gap, n, sub(p, scaled(radius, n)))


@kernel
def touches_with(solid, shape, i, n):
    """Return whether corner i may touch along n: a cylinder that lies flat does so with a few."""
    if shape[4] <= 0.0 or i % (RIM_CORNERS // FEW_ON_RIM) == 0:
        return True
    x, y = dot(solid[0], n), dot(solid[1], n)
    return shape[4] * np.sqrt(x * x + y * y) > FLAT_RIM


@kernel
def keep_corners_on_triangle(ground, solid, shape, facet, near, found, pool, key):
    """Store the contacts of the corners with flat ground, see `facet_below`."""
    (a, n), radius = plane_of_triangle(ground, facet), shape[3]
    local, above = in_axes(solid, n), dot(n, sub(solid[3], a)) - radius
    limit = radius + max(near, DEEP)
    for i in range(int(shape[0])):
        corner = corner_of(shape, i)
        if above + dot(local, corner) > near + ROUNDED or not touches_with(solid, shape, i, n):
            continue
        p = add(solid[3], to_world(solid, corner))
        away, normal, triangle = touch_flat_ground(ground, facet, p, limit)
        if not abs(away) <= limit:
            keep_corner(ground, solid, shape, i, p, near, found[0][:0], found, pool, key)
        elif away - radius <= near:
            number = key + float(FACETS) * i + float(triangle % FACETS)
            p = sub(p, scaled(radius, normal))
            keep_pair_contact(pool, number, away - radius, normal, p)


@kernel
def corner_room(ground, solid, p, radius, near, known, found):
    """Return a bound on the distance of a corner at p from facets [m], 0 without one of use.

    `found` is what it touches up to DEEP, and scratch; `known` is a list of facets, or empty.
    """
    in_front = found[2][0] != NO_FEATURE
    if in_front and found[0][0] - radius <= near + GAIN:
        return 0.0
    if known.shape[0] > 0:
        # without a contact it may be deep in a mesh, where it touches from DEEP on
        unseen = 0.0 if in_front else max(near, DEEP) - near
        room = distance_to_listed(ground, p, known) - radius - unseen - ROUNDED
        if room > near + GAIN:
            return room
    if not in_front:
        find_contacts(ground, p[0], p[1], p[2], 0.0, found, 0, 1)
        if found[0][0] - radius <= near + GAIN:
            return 0.0
    half = radius, radius, radius
    point = solid[0], solid[1], solid[2], p, (0.0, 0.0, 0.0), radius
    return clearance_over_facets(ground, point, POINT_SHAPE, half, DEEP, near, -1) - ROUNDED


@kernel
def keep_on_round(ground, solid, shape, near, pool, key):
    """Store the contacts with a sphere or cylinder.

    Those of corners, and where that is solid of edges and faces, each at its point nearest to the
    centre or the axis.
    """
    data, radius = ground.data, shape[3]
    for i in range(int(shape[0])):
        keep_round_point(ground, solid, corner_of(shape, i), radius, near, pool,
                         key + float(FACETS) * i)  # fmt: skip
    if data[4] < 0.0:
        return  # in a hollow a convex body touches with its corners
    centre, axis = to_local(solid, vec(data, 0)), vec(data, 5)
    along = (dot(solid[0], axis), dot(solid[1], axis), dot(solid[2], axis))
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        a, d = vec(shape, k), sub(vec(shape, k + 3), vec(shape, k))
        # nearest point of the edge: off the axis, both without their parts along it
        off = sub(centre, a)
        off = sub(off, scaled(dot(off, along), along))
        across = sub(d, scaled(dot(d, along), along))
        size = dot(across, across)
        t = dot(off, across) / size if size > FLAT_EDGE**2 * dot(d, d) else 0.5
        if 0.0 < t < 1.0:
            keep_round_point(ground, solid, add(a, scaled(t, d)), radius, near, pool,
                             key + float(FACETS) * CROSSING + i)  # fmt: skip
    if dot(axis, axis) > 0.0:
        return  # a cylinder under a face touches at two of its edges
    for i in range(int(shape[2])):
        n, offset = face_of(shape, i)
        foot = sub(centre, scaled(dot(n, centre) - offset, n))
        if is_over_face(shape, i, foot):
            keep_round_point(ground, solid, foot, radius, near, pool,
                             key + float(FACETS) * FIRST_END + i)  # fmt: skip


@kernel
def keep_round_point(ground, solid, local, radius, near, pool, key):
    """Store the contact of a point of a solid with a sphere or cylinder."""
    p = add(solid[3], to_world(solid, local))
    distance, n = distance_and_normal(ground, 0, p[0], p[1], p[2])
    if distance - radius <= near:
        keep_pair_contact(pool, key, distance - radius, n, sub(p, scaled(radius, n)))


@kernel
def is_over_face(shape, face, p):
    """Return whether a point is over a face, within the sides of its polygon."""
    for i in range(int(shape[1])):
        k = edge_place(shape, i)
        off = sub(p, vec(shape, k))
        if shape[k + 12] == face and dot(off, vec(shape, k + 6)) < 0.0:
            return False
        if shape[k + 13] == face and dot(off, vec(shape, k + 9)) < 0.0:
            return False
    return True


# All solids that may touch the ground.


@kernel
def detect_on_ground(ground, pose, solids, pairs, carriers, near, pool):
    """Fill slots of the contacts of solids with the ground.

    Args:
        ground: a `Ground`.
        pose: rotation by columns and position of each body in world, shape (nb, 12).
        solids: (body, place in its axes, half sizes and radius, placement in world, reach, shapes,
            first number of each shape, scratch for edges): as in `detect_pairs`; then what is
            kept of each: its clearance, see CLEARANCE_NUMBERS, the distances of its corners, see
            `corner_rooms`, its list of near facets, see _facets.py, and its flat spot, see
            `facet_below`.
        pairs: see PAIR_NUMBERS, shape (any,).
        carriers: the bodies with such solids, the boxes about these, see `carriers_of`, and their
            clearances, see CLEARANCE_NUMBERS.
        near: largest gap [m].
        pool: the slots, see `clear_pool`.
    """
    if ground.kind == PLANES and ground.features == 1:
        detect_on_plane(ground, pose, solids, pairs, carriers, near, pool)
    elif ground.find_facets != 0:
        detect_on_facets(ground, pose, solids, pairs, carriers, near, pool)
    else:
        detect_on_round(ground, pose, solids, pairs, carriers, near, pool)


@kernel
def any_near_ground(ground, pose, carriers, near):
    """Return False where no contact of a solid with the ground can be within `near` [m]."""
    (bodies, boxes, known), near_any = carriers, False
    if ground.find_facets != 0:
        return any_not_clear(pose, bodies, boxes, known, near)
    if ground.kind != PLANES or ground.features > 1:
        return True
    n, offset = plane_of(ground.data, 0)
    for carrier in range(boxes.shape[0]):
        axes = pose[bodies[CARRIER_NUMBERS * carrier]]
        near_any = near_any or not (
            clears_plane(axes, boxes[carrier], n, offset + near)
            or clearance_left(axes, boxes[carrier], known[carrier]) > near
        )
    return near_any


@kernel
def clears_plane(axes, box, n, offset):
    """Return whether the box about the solids of a body is above the plane n·x = `offset`."""
    height = dot(vec(axes, 9), n) - offset
    if height > box[6]:  # most bodies, however they are turned
        return True
    up = (dot(vec(axes, 0), n), dot(vec(axes, 3), n), dot(vec(axes, 6), n))
    side = abs(up[0]) * box[3] + abs(up[1]) * box[4] + abs(up[2]) * box[5]
    return height + dot(up, vec(box, 0)) > side


@kernel
def detect_on_plane(ground, pose, solids, pairs, carriers, near, pool):
    """Fill slots of the contacts of solids with one plane; arguments as `detect_on_ground`."""
    (bodies, boxes, known), (n, offset) = carriers, plane_of(ground.data, 0)
    own, size, place, reach, shapes, begin = solids[1:7]
    for carrier in range(boxes.shape[0]):
        c, box = CARRIER_NUMBERS * carrier, boxes[carrier]
        axes, least = pose[bodies[c]], MOST
        if clears_plane(axes, box, n, offset + near):
            continue
        if clearance_left(axes, box, known[carrier]) > near:
            continue
        # n·(R c + p) − d = (Rᵀ n)·c + n·p − d: in the axes of the body
        up = (dot(vec(axes, 0), n), dot(vec(axes, 3), n), dot(vec(axes, 6), n))
        height = dot(vec(axes, 9), n) - offset
        for k in range(bodies[c + 1], bodies[c + 2]):
            i = pairs[PAIR_NUMBERS * k]
            above, shape = height + dot(up, vec(own[i], 9)), shapes[begin[i] :]
            clearance = above - reach[i]
            if clearance <= near:
                clearance = above - extent_along(own[i], size[i], shape, up)
            if clearance <= near:
                place_solid(axes, own[i], place[i])
                solid = solid_at(place, size, i)
                clearance = keep_on_planes(ground, solid, shape, near, pool, float(CONTACTS) * k)
            least = min(least, clearance)
        if least > near:
            note_clearance(axes, least, near, known[carrier])


@kernel
def detect_on_round(ground, pose, solids, pairs, carriers, near, pool):
    """Fill slots of the contacts with ground without facets; arguments as `detect_on_ground`."""
    bodies, boxes, _ = carriers
    own, size, place, reach, shapes, begin, edges = solids[1:8]
    for carrier in range(boxes.shape[0]):
        c = CARRIER_NUMBERS * carrier
        for k in range(bodies[c + 1], bodies[c + 2]):
            i = pairs[PAIR_NUMBERS * k]
            place_solid(pose[bodies[c]], own[i], place[i])
            if reaches_ground(ground, vec(place[i], 9), reach[i] + near, 0, edges):
                solid, shape = solid_at(place, size, i), shapes[begin[i] :]
                keep_without_facets(ground, solid, shape, near, pool, float(CONTACTS) * k)


@kernel
def detect_on_facets(ground, pose, solids, pairs, carriers, near, pool):
    """Fill slots of the contacts with ground with facets; arguments as `detect_on_ground`."""
    bodies, boxes, known_bodies = carriers
    _, own, size, place, reach, shapes, begin, edges, (known, rooms, lists, spots) = solids
    found = corner_slots()
    for carrier in range(boxes.shape[0]):
        c, box = CARRIER_NUMBERS * carrier, boxes[carrier]
        axes = pose[bodies[c]]
        if clearance_left(axes, box, known_bodies[carrier]) > near:
            continue
        # most bodies are above all ground with the box about them
        middle, least = add(vec(axes, 9), to_outer(axes, vec(box, 0))), MOST
        over = height_over(ground, middle, half_outer(axes, vec(box, 3)))
        if over > near:
            note_clearance(axes, over, near, known_bodies[carrier])
            continue
        for k in range(bodies[c + 1], bodies[c + 2]):
            i = pairs[PAIR_NUMBERS * k]
            about = vec(own[i], 9) + (reach[i], reach[i], reach[i])  # its sphere as a box
            left = clearance_left(axes, about, known[i])
            if left <= near:
                place_solid(axes, own[i], place[i])
                solid, shape = solid_at(place, size, i), shapes[begin[i] :]
                half = half_of_solid(place[i], size[i])
                body, flat = (solid, shape, half), flat_ground(place[i], solid, near, spots[i])
                # what was near the ground may be so still: over flat ground that is known fast
                if known[i, CLEARANCE] <= near:
                    flat = facet_below(ground, place[i], body, flat, found, near, spots[i])
                if known[i, CLEARANCE] - left >= known[i, WAIT]:
                    before = left, min(max(known[i, CLEARANCE], near) + MORE, MOST)
                    left = clearance_of(ground, body, flat, found, before, near)
                    note_clearance(axes, left, near, known[i])
            least = min(least, left)
            if left > near:
                continue
            key = float(CONTACTS) * k
            flat = facet_below(ground, place[i], body, flat, found, near, spots[i])
            if flat[0] >= 0:
                keep_corners_on_triangle(ground, solid, shape, flat[0], near, found, pool, key)
                continue
            top = top_of_ground(ground, solid[3], half, near)
            if solid[3][2] - half[2] - near > top:
                continue
            listed = int(lists.ctypes.data) + ITEM * lists.shape[1] * i
            reaches_ground(ground, solid[3], reach[i] + near, listed, edges)
            length = lists.shape[1] if lists[i, LIST_RADIUS] > 0.0 else 0
            scratch = (
                edges, found, lists[i, :length], rooms[i, 12:],
                corner_rooms(place[i], size[i], rooms[i]),
            )  # fmt: skip
            keep_on_facets(ground, solid, shape, top, near, scratch, pool, key)
        if least > near:
            note_clearance(axes, least, near, known_bodies[carrier])


@kernel
def clearance_of(ground, body, flat, found, before, near):
    """Return a bound on the distance of a solid from ground with facets [m], see _clearance.py.

    At most MOST; 0 where it may be no more than `near`.

    Args:
        ground: a `Ground` with facets.
        body: the solid, its axes and centre in world, see `solid_at`; its numbers, see _shapes.py,
            shape (any,); half sizes of the box about it along the axes of the world [m].
        flat: what is known of flat ground near it, see `facet_below`.
        found: slots of a corner, see `corner_slots`.
        before: what is left of the clearance before, and how far facets are looked for [m].
        near: largest gap [m].
    """
    solid, shape, half = body
    if flat[0] >= 0:
        return min(flat[1], height_over_triangle(ground, solid, shape, flat[0]))
    over = height_over(ground, solid[3], half)
    if over >= MOST:
        return MOST
    clearance = max(over, clearance_over_facets(ground, solid, shape, half, before[1], near, -1))
    if before[0] <= 0.0 and over <= near < clearance:
        # with no facet in it a solid is in front of the ground if one of its points is, and as
        # long as something is left of its clearance
        p = add(solid[3], to_world(solid, corner_of(shape, 0)))
        find_contacts(ground, p[0], p[1], p[2], 0.0, found, 0, 1)
        if found[0][0] < 0.0:
            return 0.0
    return clearance


@kernel
def flat_ground(axes, solid, near, spot):
    """Return the triangle of `facet_below` and its room [m] if they still hold.

    Else −1, and how far the solid has moved at most since they were found [m].
    """
    x, y, z = solid[4]
    moved = moved_at_most(axes, (0.0, 0.0, 0.0, x, y, z), spot)
    if spot[CLEARANCE] - moved > max(near, DEEP):
        return int(spot[FLAT_FACET]), spot[CLEARANCE] - moved
    return -1, moved


@kernel
def facet_below(ground, axes, body, flat, found, near, spot):
    """Return the triangle that with what continues its plane is all ground near a solid, or −1.

    And a bound on the distance of the solid from other ground [m]. Both are `flat`, what
    `flat_ground` returned, while that holds or is not worth another look; else they are noted in
    `spot`, see FLAT_NUMBERS. `axes` is the placement of the solid, other arguments are those of
    `clearance_of`.
    """
    if flat[0] >= 0 or flat[1] < spot[WAIT]:
        return flat
    (solid, shape, half), limit = body, max(near, DEEP)
    # what is below the lowest corner
    up, low, lowest = (solid[0][2], solid[1][2], solid[2][2]), np.inf, 0
    for i in range(int(shape[0])):
        height = dot(up, corner_of(shape, i))
        if height < low:
            low, lowest = height, i
    p = add(solid[3], to_world(solid, corner_of(shape, lowest)))
    find_contacts(ground, p[0], p[1], p[2], 0.0, found, 0, 1)
    facet, room = int(found[2][0]), 0.0
    if is_triangle(ground, facet):
        most = limit + SPOT_SIZE
        room = clearance_over_facets(ground, solid, shape, half, most, limit, facet)
    note_clearance(axes, room, limit, spot)
    spot[FLAT_FACET] = facet
    if spot[CLEARANCE] > limit:
        return facet, spot[CLEARANCE]
    return -1, 0.0


@kernel
def height_over_triangle(ground, solid, shape, facet):
    """Return the height of a solid over the plane of a triangle [m]."""
    a, n = plane_of_triangle(ground, facet)
    local, low = in_axes(solid, n), np.inf
    for i in range(int(shape[0])):
        low = min(low, dot(local, corner_of(shape, i)))
    return dot(n, sub(solid[3], a)) + low - shape[3]


@kernel
def height_over(ground, middle, half):
    """Return how high a box along the axes of the world is over all ground within MOST [m]."""
    return middle[2] - half[2] - top_of_ground(ground, middle, half, MOST)


@kernel
def half_of_solid(axes, size):
    """Return the half sizes of the box about a solid along the axes of the world [m]."""
    half = half_outer(axes, (size[0], size[1], size[2]))
    return half[0] + size[3], half[1] + size[3], half[2] + size[3]


@kernel
def to_outer(axes, a):
    """Return a vector in axes, given by columns, as one in what these axes are given in."""
    return add(
        scaled(a[0], vec(axes, 0)), add(scaled(a[1], vec(axes, 3)), scaled(a[2], vec(axes, 6)))
    )


@kernel
def half_outer(axes, half):
    """Return the half sizes, in what `axes` are given in, of the box about a box in them [m]."""
    return (
        abs(axes[0]) * half[0] + abs(axes[3]) * half[1] + abs(axes[6]) * half[2],
        abs(axes[1]) * half[0] + abs(axes[4]) * half[1] + abs(axes[7]) * half[2],
        abs(axes[2]) * half[0] + abs(axes[5]) * half[1] + abs(axes[8]) * half[2],
    )


@kernel
def top_of_ground(ground, middle, half, near):
    """Return a height that nothing exceeds of ground with facets within a rectangle [m].

    `middle` and `half` sizes of the rectangle, at least (x, y); it grows by `near` on each side.
    −inf beside the ground, and infinity on ground without facets.
    """
    wide = (half[0] + near, half[1] + near)
    if ground.kind == FIELD:
        return top_of_field(ground, middle, wide)
    if ground.kind == MESH:
        return top_of_mesh(ground, middle, wide)
    return np.inf


@kernel
def extent_along(own, size, shape, n):
    """Return how far the box, cylinder or ellipsoid about a solid reaches along n [m]."""
    x, y, z = abs(dot(vec(own, 0), n)), abs(dot(vec(own, 3), n)), abs(dot(vec(own, 6), n))
    if shape[4] > 0.0:
        return shape[4] * np.sqrt(x * x + y * y) + shape[5] * z
    if shape[ELLIPSOID] > 0.0:
        a, b, c = vec(shape, ELLIPSOID)
        return np.sqrt((a * x) ** 2 + (b * y) ** 2 + (c * z) ** 2)
    return size[0] * x + size[1] * y + size[2] * z + size[3]


@kernel
def reaches_ground(ground, centre, reach, listed, edges):
    """Return whether ground without facets is within `reach` of a point [m].

    On ground with facets its convex edges within `reach` fill `edges`, the list at the address
    `listed`, if not 0, serves all corners within, and the result is True.
    """
    x, y, z = centre
    if ground.find_edges != 0:
        call_find_edges(ground, x, y, z, reach, listed, edges)
        return True
    nearest = np.inf
    for f in range(ground.features):
        nearest = min(nearest, distance_and_normal(ground, f, x, y, z)[0])
    return nearest <= reach


def carriers_of(
    body: Indices, place: Array, size: Array, collisions: Collisions
) -> tuple[Indices, Array]:
    """Return the bodies with solids on the ground, and the box about these in the body's axes.

    Args:
        body: the body that carries each solid, shape (n,).
        place: axes and centre of each in the axes of the body, shape (n, 12).
        size: half sizes and radius of each [m], shape (n, 4).
        collisions: which of them may touch the ground.

    Returns:
        (body, first pair, one past its last pair) of each, see CARRIER_NUMBERS, and centre and
        half sizes of the box and the farthest point of it from the body's origin [m], shape
        (bodies, 7).
    """
    places, rows, boxes = collisions.grounded_places, [], []
    _, starts, counts = np.unique(body[places], return_index=True, return_counts=True)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        own = places[start : start + count]
        half = np.einsum('iab,ia->ib', abs(place[own, :9].reshape(-1, 3, 3)), size[own, :3])
        half += size[own, 3:]
        low, high = (place[own, 9:] - half).min(axis=0), (place[own, 9:] + half).max(axis=0)
        first = len(collisions.pairs) + start
        rows.append((body[own[0]], first, first + count))
        reach = np.linalg.norm(np.maximum(abs(low), abs(high)))
        boxes.append([*(0.5 * (low + high)), *(0.5 * (high - low)), reach])
    return np.array(rows, dtype=np.int64).ravel(), np.array(boxes).reshape(-1, CARRIER_SIZES)
