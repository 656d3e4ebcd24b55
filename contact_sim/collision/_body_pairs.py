"""Contacts between bodies: detection, Jacobian rows over two branches, acceleration (theory 4.4).

Pairs come in groups, of one island with another or with itself. Groups of islands whose boxes do
not overlap are skipped, so that the search over many robots grows linearly with their number. A
row has entries at the dofs that move one body of its pair and not the other: on two branches of
the tree, from the bodies to where the branches meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_sim.arrays._fields import CANDIDATE_NUMBERS, GROUP_NUMBERS, PAIR_NUMBERS
from contact_sim.collision._bodies_on_ground import (
    corner_slots,
    keep_contacts_with_ground,
    reaches_ground,
)
from contact_sim.collision._contact_slots import CONTACTS, KEPT, clear_pool, pair_of
from contact_sim.collision._hull_contacts import (
    cylinder_on_hull,
    cylinders,
    hulls,
    sphere_on_cylinder,
    sphere_on_hull,
)
from contact_sim.collision._shapes import KIND
from contact_sim.collision._solid_contacts import (
    BOX,
    CYLINDER,
    HULL,
    POINT,
    SEGMENT,
    boxes,
    capsule_on_box,
    capsules,
    solid_at,
    sphere_on_core,
)
from contact_sim.collision._surface import NEAR
from contact_sim.dynamics._vectors import add, cross, dot, put, scaled, sub, vec
from contact_sim.solvers._jit import kernel

# Rows: velocity of the first body relative to the second.

FIRST_LEAF, SECOND_LEAF, MEET = 2, 3, 4  # columns of the field `pairs`, behind the two solids


@kernel
def two_branches(pairs, feature):
    """Return both last dofs of the pair of a slot, −1 without any, and where they meet.

    `pairs`: (n * PAIR_NUMBERS,). An empty slot has no dofs.
    """
    k = PAIR_NUMBERS * pair_of(feature)
    if k < 0:
        return -1, -1, -1
    return pairs[k + FIRST_LEAF], pairs[k + SECOND_LEAF], pairs[k + MEET]


@kernel
def fill_pair_rows(columns, origin, slots, dof_parent, position, frame, gap, jacobian_transposed):
    """Fill Jᵀ of the contacts between bodies: velocity of the first body on the second [m/s].

    That of the midpoint between their surfaces. Arguments as in `contact_rows`, for the slots
    after those of the ground.
    """
    leaf_dof, feature, pairs, last = slots
    first = leaf_dof.shape[0]
    for k in range(dof_parent.shape[0]):
        for row in range(3 * first, 3 * last):
            jacobian_transposed[k, row] = 0.0
    for i in range(first, last):
        if feature[i] < 0.0:
            continue
        a, b, meeting = two_branches(pairs, feature[i])
        axes = vec(frame[i, 0], 0), vec(frame[i, 1], 0), vec(frame[i, 2], 0)
        n, half = axes[2], 0.5 * gap[i]
        p = (
            position[i, 0] - half * n[0] - origin[0],
            position[i, 1] - half * n[1] - origin[1],
            position[i, 2] - half * n[2] - origin[2],
        )
        for end, sign in ((a, 1.0), (b, -1.0)):
            fill_branch(
                columns, (end, meeting), dof_parent, p, axes, sign, 3 * i, jacobian_transposed
            )


@kernel
def fill_branch(columns, branch, dof_parent, p, axes, sign, row, jacobian_transposed):
    """Fill three rows along a branch, (last dof, dof past its end), at the point p."""
    k = branch[0]
    while k > branch[1]:
        wx, wy, wz = columns[k, 3], columns[k, 4], columns[k, 5]
        vx = columns[k, 0] + wy * p[2] - wz * p[1]
        vy = columns[k, 1] + wz * p[0] - wx * p[2]
        vz = columns[k, 2] + wx * p[1] - wy * p[0]
        for e in range(3):
            along = axes[e][0] * vx + axes[e][1] * vy + axes[e][2] * vz
            jacobian_transposed[k, row + e] = sign * along
        k = dof_parent[k]


@kernel
def pair_velocity(jacobian_transposed, branches, dof_parent, v, row):
    """Return J v of a contact of a pair; `branches` as of `two_branches`, `row` its first one."""
    a = b = c = 0.0
    for k in branches[:2]:
        while k > branches[2]:
            a += jacobian_transposed[k, row] * v[k]
            b += jacobian_transposed[k, row + 1] * v[k]
            c += jacobian_transposed[k, row + 2] * v[k]
            k = dof_parent[k]
    return a, b, c


@kernel
def add_pair_impulse(jacobian_transposed, branch, dof_parent, impulse, i, out):
    """Add Jᵀ λ of contact i along a branch to `out` (nv,)."""
    k = branch[0]
    while k > branch[1]:
        for e in range(3 * i, 3 * i + 3):
            out[k] += jacobian_transposed[k, e] * impulse[e]
        k = dof_parent[k]


def meeting_dof(dof_parent: Any, a: int, b: int) -> int:
    """Return the last dof that the branches of dofs a and b share, −1 if they share none."""
    above = set()
    while a >= 0:
        above.add(a)
        a = int(dof_parent[a])
    while b >= 0 and b not in above:
        b = int(dof_parent[b])
    return b


# Detection.


@kernel
def detect_pairs(solids, pairs, groups, boxes, pool):
    """Fill the slots of the contacts between bodies.

    Args:
        solids: (place, size, reach, island, shapes, begin, scratch): placement of each in world,
            see `place_solids`, (n, 12); half sizes of its core and radius [m], (n, 4); radius of
            its bounding sphere [m], (n,); its island, (n,); numbers of all shapes, see
            `shape_numbers`, (any,); the first of each, (n,); scratch for contacts on a face, see
            `hulls`.
        pairs: see PAIR_NUMBERS, the simpler core first, shape (any,).
        groups: see GROUP_NUMBERS, shape (any,).
        boxes: scratch, lower and upper corner of the box of each island, shape (islands, 6).
        pool: the slots, empty, see `clear_pool`.
    """
    enclose(solids, boxes)
    for g in range(0, groups.shape[0], GROUP_NUMBERS):
        one, other = groups[g], groups[g + 1]
        if one == other or overlap(boxes[one], boxes[other]):
            for k in range(groups[g + 2], groups[g + 3]):
                search_pair(solids, pairs, k, pool)


@kernel
def enclose(solids, boxes):
    """Fill the boxes of the islands, along the axes of the world, NEAR wider than the solids."""
    place, reach, island = solids[0], solids[2], solids[3]
    for i in range(boxes.shape[0]):
        for e in range(3):
            boxes[i, e], boxes[i, 3 + e] = np.inf, -np.inf
    for i in range(reach.shape[0]):
        box = boxes[island[i]]
        for e in range(3):
            box[e] = min(box[e], place[i, 9 + e] - reach[i] - NEAR)
            box[3 + e] = max(box[3 + e], place[i, 9 + e] + reach[i] + NEAR)


@kernel
def overlap(a, b):
    """Return whether two boxes have a point in common."""
    apart = False
    for e in range(3):
        apart = apart or a[e] > b[3 + e] or b[e] > a[3 + e]
    return not apart


@kernel
def search_pair(solids, pairs, k, pool):
    """Store the contacts of pair k if its bounding spheres are near each other."""
    place, size, reach, _, shapes, begin, scratch = solids
    a, b = pairs[PAIR_NUMBERS * k], pairs[PAIR_NUMBERS * k + 1]
    bound, distance = reach[a] + reach[b] + NEAR, 0.0
    for e in range(9, 12):
        distance += (place[a, e] - place[b, e]) ** 2
    if distance < bound * bound:
        of_both = shapes[begin[a] :], shapes[begin[b] :]
        keep_contacts_of(place, size, a, b, of_both, scratch, pool, float(CONTACTS * k))


@kernel
def keep_contacts_of(place, size, i, j, shapes, scratch, pool, key):
    """Store the contacts of solids i and j in the order of their kinds; `shapes` are of both."""
    a, b = solid_at(place, size, i), solid_at(place, size, j)
    first, second = int(shapes[0][KIND]), int(shapes[1][KIND])
    if first == POINT and second == HULL:
        sphere_on_hull(a, b, shapes[1], NEAR, pool, key)
    elif first == POINT and second == CYLINDER:
        sphere_on_cylinder(a, b, shapes[1], NEAR, pool, key)
    elif first == POINT:
        sphere_on_core(a, b, NEAR, pool, key)
    elif second == SEGMENT:
        capsules(a, b, NEAR, pool, key)
    elif first == SEGMENT and second == BOX:
        capsule_on_box(a, b, NEAR, pool, key)
    elif second == CYLINDER and (first in (SEGMENT, CYLINDER)):
        cylinders(a, b, shapes, NEAR, scratch, pool, key)
    elif second == CYLINDER:
        cylinder_on_hull(a, b, shapes, NEAR, scratch, pool, key)
    elif second == BOX and a[5] == 0.0 and b[5] == 0.0:
        boxes(a, b, NEAR, pool, key)
    else:  # hulls, and boxes with rounded edges
        hulls(a, b, shapes, NEAR, scratch, pool, key)


# J̇ v, for laws at acceleration level: the rate of u = C (v_A(p) − v_B(p)) at v̇ = 0, with the
# frame C and the point p of the moving contact, by a central difference in time.

AT_ONCE = 256  # contacts of one pair that the difference looks at
CLOSED_GAP = 1e-3  # gap from which no contact is closed [m], a hundred times what laws allow
DIFFERENCE_STEP = 1e-5
"""Step of the difference [s]: exact to 1e-8 at 10 rad/s, and rounding is smaller."""


@kernel
def pair_drift(solids, motion, pairs, terrain, slots, drift):
    """Fill J̇ v of every slot, rows (t1, t2, n); 0 where the contact is not closed.

    Args:
        solids: (place, size, body): placements in world (n, 12), half sizes and radius (n, 4),
            body that carries each (n,).
        motion: (twist, bias, origin, gravity), see `contact_drift`.
        pairs: see PAIR_NUMBERS, shape (any,).
        terrain: (ground, shapes, first number of each, scratch for edges, reach of each solid,
            largest gap): as in `detect_on_ground`.
        slots: (feature, gap) of each, shape (slots,).
        drift: out, shape (3 slots,).
    """
    place, size = np.empty((2, 12)), np.empty((2, 4))
    ground, shapes, begin, edges, reach, near = terrain
    scratch, found = np.empty((AT_ONCE, CANDIDATE_NUMBERS)), corner_slots()
    of_ground = edges, found, np.empty(0), np.empty(0), 0.0
    pool = (
        0, np.zeros(2, np.int64), np.empty((AT_ONCE, 3)), np.empty((AT_ONCE, 3, 3)),
        np.empty(AT_ONCE), np.empty(AT_ONCE),
    )  # fmt: skip
    feature, gap = slots
    for i in range(feature.shape[0]):
        put(drift, 3 * i, (0.0, 0.0, 0.0))
        k = PAIR_NUMBERS * pair_of(feature[i])
        if k < 0 or gap[i] > CLOSED_GAP:
            continue
        pair, key = (pairs[k], pairs[k + 1]), feature[i] % CONTACTS
        size[0], size[1] = solids[1][pair[0]], solids[1][max(pair[1], 0)]
        u, seen = (0.0, 0.0, 0.0), 0
        # the same contact an instant later and earlier
        for side in (1.0, -1.0):
            place_after(solids, motion, pair, side * DIFFERENCE_STEP, place)
            clear_pool(pool)
            if pair[1] >= 0:
                of_both = shapes[begin[pair[0]] :], shapes[begin[pair[1]] :]
                keep_contacts_of(place, size, 0, 1, of_both, scratch, pool, 0.0)
            else:
                centre, bound = vec(place[0], 9), reach[pair[0]] + near
                solid, shape = solid_at(place, size, 0), shapes[begin[pair[0]] :]
                if reaches_ground(ground, centre, bound, 0, edges):
                    keep_contacts_with_ground(
                        ground, solid, shape, np.inf, near, of_ground, pool, 0.0
                    )
            for c in range(pool[1][KEPT]):
                if pool[5][c] == key:
                    at = velocity_at(solids, motion, pair, side * DIFFERENCE_STEP, pool, c)
                    u, seen = add(u, scaled(side / (2.0 * DIFFERENCE_STEP), at)), seen + 1
        if seen == 2:  # else the contact is about to open or close
            put(drift, 3 * i, u)


@kernel
def place_after(solids, motion, pair, time, place):
    """Fill the placements of both solids of a pair after a time [s]."""
    twist, origin = motion[0], vec(motion[2], 0)
    for s in range(2 if pair[1] >= 0 else 1):
        i, j = pair[s], solids[2][pair[s]]
        v, w = vec(twist[j], 0), vec(twist[j], 3)
        rotate_axes(solids[0][i], scaled(time, w), place[s])
        centre = vec(solids[0][i], 9)
        speed = add(v, cross(w, sub(centre, origin)))
        put(place[s], 9, add(centre, scaled(time, speed)))


@kernel
def rotate_axes(axes, angle, out):
    """Fill three axes rotated by a small rotation vector [rad], by Rodrigues' formula."""
    size = np.sqrt(dot(angle, angle))
    s = np.sin(size) / size if size > 0.0 else 1.0
    c = 2.0 * (np.sin(0.5 * size) / size) ** 2 if size > 0.0 else 0.5
    for k in range(0, 9, 3):
        a = vec(axes, k)
        first = cross(angle, a)
        put(out, k, add(a, add(scaled(s, first), scaled(c, cross(angle, first)))))


@kernel
def velocity_at(solids, motion, pair, time, pool, c):
    """Return u of contact c of a pool, its bodies moving as after a time [s] with v̇ = 0."""
    twist, bias, origin, gravity = motion
    i, j = solids[2][pair[0]], solids[2][pair[1]] if pair[1] >= 0 else 0
    arm = sub(vec(pool[2][c], 0), vec(origin, 0))
    v = sub(velocity_of(twist, bias, gravity, i, time, arm),
            velocity_of(twist, bias, gravity, j, time, arm))  # fmt: skip
    frame = pool[3][c]
    return dot(vec(frame[0], 0), v), dot(vec(frame[1], 0), v), dot(vec(frame[2], 0), v)


@kernel
def velocity_of(twist, bias, gravity, j, time, arm):
    """Return the velocity of a point of body j, `arm` from the origin of the twists."""
    if j == 0:
        return 0.0, 0.0, 0.0
    linear = add(vec(bias[j], 0), vec(gravity, 0))
    v = add(vec(twist[j], 0), scaled(time, linear))
    w = add(vec(twist[j], 3), scaled(time, vec(bias[j], 3)))
    return add(v, cross(w, arm))
