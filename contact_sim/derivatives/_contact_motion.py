"""How contact points, frames, velocities and forces change with q.

A sphere with centre c and radius r touches ground of normal n and curvature H = ∂n/∂x. For a
change dc = S_j (at c) of dof j on its branch,

    dφ = n·dc,   dn = H dc,   dp = dc − (r + φ/2) dn − ½ n dφ            p: where J is taken

and with the rows F = (t1, t2, n), the twist (ν, ω) of the body and of the parent of joint j,

    d(J v) = F (dν + dω × p + ω × dp) + dF (ν + ω × p),   d(ν, ω) = S_j × (V − V_parent)
    d(Jᵀ λ)_k = S_k·(d(f, p × f) − [joint k not before joint j] S_j ×* (f, p × f)),   f = Fᵀ λ

The point p travels over the sphere as the foot rolls, and over the ground as n turns. Of a contact
of two bodies J v is that of the first less that of the second, and Jᵀλ is on both branches; how p
and n change with each body is in _pair_geometry.py.
"""

from __future__ import annotations

from typing import Any

from contact_sim.arrays import _fields as f
from contact_sim.arrays._fields import PAIR_NUMBERS
from contact_sim.arrays._views import frames, integers, matrix, vector
from contact_sim.collision._body_pairs import two_branches
from contact_sim.collision._contact_slots import CONTACTS, pair_of
from contact_sim.collision._ground_edges import FACETS, FIRST_END
from contact_sim.collision._shapes import ELLIPSOID
from contact_sim.collision._surface import PLANES, ROUND, curvature, tangent_rates
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._inverse_dynamics import cross_linear
from contact_sim.derivatives._on_demand import linear_part_on_demand
from contact_sim.derivatives._pair_geometry import (
    SPHERE,
    UNKNOWN,
    middle_of,
    surface_change,
    surface_of,
    times,
)
from contact_sim.dynamics._vectors import add, cross, dot, rotated, scaled, sub, vec
from contact_sim.solvers._jit import kernel
from contact_sim.step._workspace import ground_of

RADIUS, RIM = 3, 4
"""Places in the numbers of a shape, see collision/_shapes.py."""


@kernel
def fill_contact_motion(data, linear):
    """Fill the motion of all contacts that carry, and add ∂(Jᵀ λ)/∂q to `dq`."""
    row_of, counts = integers(linear, d.D_ROW_OF), integers(linear, d.D_COUNTS)
    on_ground, surface = integers(data, f.LEAF_DOF).shape[0], integers(linear, d.D_SURFACE)
    others = False
    for a in range(0, 3 * counts[d.CONTACTS], 3):
        i = row_of[a] // 3
        surface[i] = UNKNOWN
        if i < on_ground or is_corner_on_ground(data, i):
            surface[i] = SPHERE
            fill_sphere_motion(data, linear, i, a)
        else:
            others = True
    if others:
        fill_motion_of_pairs(data, linear)
        for a in range(0, 3 * counts[d.CONTACTS], 3):
            if surface[row_of[a] // 3] == UNKNOWN:
                counts[d.NEEDS_GIVEN] = 1
                copy_given(data, linear, row_of[a], a, 3)
    jacobian, rows = matrix(data, f.JACOBIAN_TRANSPOSED), matrix(linear, d.D_ROWS_JACOBIAN)
    bilateral = counts[d.ROWS] - counts[d.BILATERAL]
    for a in range(bilateral):
        for k in range(rows.shape[1]):
            rows[a, k] = jacobian[k, row_of[a]]
    for a in range(3 * counts[d.CONTACTS], bilateral):
        copy_given(data, linear, row_of[a], a, 1)
    fill_bilateral_rows(data, linear, bilateral)


@kernel
def fill_bilateral_rows(data, linear, first):
    """Fill J and the motion of the bilateral rows, whose differences are given."""
    H, rows = matrix(data, f.BILATERAL_JACOBIAN), matrix(linear, d.D_ROWS_JACOBIAN)
    given = matrix(linear, d.D_GIVEN_BILATERAL)
    motion, start = matrix(linear, d.D_MOTION_NEXT), matrix(linear, d.D_MOTION_START)
    nv = rows.shape[1]
    for r in range(H.shape[0]):
        for k in range(nv):
            rows[first + r, k] = H[r, k]
            motion[first + r, k], start[first + r, k] = given[r, k], 0.0


@kernel
def copy_given(data, linear, row, a, count):
    """Copy the motion of `count` rows that is given, or that of rows with constant J."""
    nxt, start = matrix(linear, d.D_MOTION_NEXT), matrix(linear, d.D_MOTION_START)
    gap, jacobian = matrix(linear, d.D_GAP_SLOPE), matrix(data, f.JACOBIAN_TRANSPOSED)
    force, given = matrix(linear, d.D_FORCE_SLOPE), count == 3
    limits = integers(data, f.LIMIT_Q).shape[0]  # the last rows; dry friction has no gap
    has_gap = row >= jacobian.shape[1] - limits
    for e in range(count):
        for k in range(nxt.shape[1]):
            force[a + e, k] = 0.0
            if given:
                force[a + e, k] = matrix(linear, d.D_GIVEN_TURN)[row + e, k]
                nxt[a + e, k] = matrix(linear, d.D_GIVEN_NEXT)[row + e, k]
                start[a + e, k] = matrix(linear, d.D_GIVEN_START)[row + e, k]
                gap[a + e, k] = matrix(linear, d.D_GIVEN_GAP)[row + e, k]
            else:
                nxt[a + e, k] = start[a + e, k] = 0.0
                gap[a + e, k] = jacobian[k, row + e] if has_gap else 0.0


@kernel
def shape_of(data, i):
    """Return the solid of contact i of a body, and where its shape begins; −1 of a pair of two."""
    pairs = integers(data, f.PAIRS)
    k = PAIR_NUMBERS * pair_of(vector(data, f.FEATURE_START)[i])
    if k < 0 or pairs[k + 1] >= 0:
        return -1, -1
    return pairs[k], integers(data, f.SHAPE_BEGIN)[pairs[k]]


@kernel
def is_corner_on_ground(data, i):
    """Return whether contact i is one of a corner, with a radius, of a body with smooth ground."""
    ground, shapes = ground_of(data), vector(data, f.SHAPES)
    solid, first = shape_of(data, i)
    if solid < 0:
        return False
    if ground.kind == ROUND:  # others are edges and faces
        number = vector(data, f.FEATURE_START)[i] % CONTACTS
        return shapes[first + ELLIPSOID] == 0.0 and number < float(FACETS) * FIRST_END
    rim = shapes[first + RIM] != 0.0 or shapes[first + RIM + 1] != 0.0
    return ground.kind == PLANES and not rim and shapes[first + ELLIPSOID] == 0.0


@kernel
def centre_of(data, linear, i):
    """Return centre [m] and radius of the sphere of contact i, its body and last dof."""
    leaves = integers(data, f.LEAF_DOF)
    if i >= leaves.shape[0]:
        solid, first = shape_of(data, i)
        radius, n = (
            vector(data, f.SHAPES)[first + RADIUS],
            vec(frames(data, f.FRAME_START)[i, 2], 0),
        )
        place = add(vec(matrix(data, f.POSITION_START)[i], 0), scaled(radius, n))
        leaf = integers(data, f.PAIRS)[
            PAIR_NUMBERS * pair_of(vector(data, f.FEATURE_START)[i]) + 2
        ]
        return place, radius, integers(data, f.SOLID_BODY)[solid], leaf
    c = i // integers(data, f.GROUND)[1]
    body = integers(data, f.CANDIDATE_BODY)[c]
    R, o = matrix(linear, d.D_POSE)[body], matrix(data, f.OFFSET)[c]
    place = add(vec(R, 9), rotated(vec(R, 0), vec(R, 3), vec(R, 6), vec(o, 0)))
    return place, vector(data, f.RADIUS)[c], body, leaves[i]


@kernel
def fill_sphere_motion(data, linear, i, a):
    """Fill the motion of a contact of a sphere in rows a to a + 2, and add ∂(Jᵀ λ)/∂q."""
    F, impulse = frames(data, f.FRAME_START)[i], vector(data, f.IMPULSE)
    t1, t2, n = vec(F[0], 0), vec(F[1], 0), vec(F[2], 0)
    sphere, p, body, leaf = sphere_of(data, linear, i)
    l1, l2, ln = impulse[3 * i], impulse[3 * i + 1], impulse[3 * i + 2]
    force = add(add(scaled(l1, t1), scaled(l2, t2)), scaled(ln, n))
    pull = force, cross(p, force)
    columns, dof_parent = matrix(linear, d.D_COLUMNS), integers(data, f.DOF_PARENT)
    j = leaf
    while j >= 0:
        s = vec(columns[j], 0), vec(columns[j], 3)
        dp, dn, dgap = point_change(sphere, n, s)
        d1, d2 = tangent_rates(n, t1, dn)
        turns = d1, d2, dn
        fill_row_motion(linear, (body, j, a), (t1, t2, n), turns, p, dp, dgap)
        df = add(add(scaled(l1, d1), scaled(l2, d2)), scaled(ln, dn))
        change = df, add(cross(dp, force), cross(p, df))
        add_force_motion(data, linear, (leaf, j, a), s, pull, change)
        j = dof_parent[j]
    clear_other_dofs(data, linear, leaf, a)


@kernel
def sphere_of(data, linear, i):
    """Return (centre, r + φ/2, H) of the sphere of contact i, p, its body and last dof."""
    place, radius, body, leaf = centre_of(data, linear, i)
    H = curvature(ground_of(data), vector(data, f.FEATURE_START)[i], place[0], place[1], place[2])
    centre = sub(place, vec(vector(linear, d.D_ORIGIN), 0))
    reach = radius + 0.5 * vector(data, f.GAP_START)[i]
    p = sub(centre, scaled(reach, vec(frames(data, f.FRAME_START)[i, 2], 0)))
    return (centre, reach, H), p, body, leaf


@kernel
def point_change(sphere, n, s):
    """Return dp, dn and dφ for a motion s of the sphere (linear at the origin, angular)."""
    centre, reach, H = sphere
    dc = add(s[0], cross(s[1], centre))
    dgap = dot(n, dc)
    dn = times(H, dc)
    dp = sub(sub(dc, scaled(0.5 * dgap, n)), scaled(reach, dn))
    return dp, dn, dgap


@kernel
def fill_row_motion(linear, place, frame, turns, p, dp, dgap):
    """Fill ∂(J v⁺), ∂(J v) and ∂φ to q_j; `place` is (body, j, first row)."""
    body, j, a = place
    for end in range(2):
        twist = matrix(linear, d.D_TWIST_NEXT if end else d.D_TWIST)
        out = matrix(linear, d.D_MOTION_NEXT if end else d.D_MOTION_START)
        w, dw = velocity_change(linear, twist, (body, j), p, dp)
        for e in range(3):
            out[a + e, j] = dot(frame[e], dw) + dot(turns[e], w)
    gap = matrix(linear, d.D_GAP_SLOPE)
    gap[a, j] = gap[a + 1, j] = gap[a + 2, j] = dgap


@kernel
def velocity_change(linear, twist, place, p, dp):
    """Return the velocity at p, and its change with q_j, of bodies with these twists (nb, 6).

    `place` is (body, j), j on the branch of the body.
    """
    body, j = place
    s = vec(matrix(linear, d.D_COLUMNS)[j], 0), vec(matrix(linear, d.D_COLUMNS)[j], 3)
    before, own = integers(linear, d.D_DOF_BODY)[j], (vec(twist[body], 0), vec(twist[body], 3))
    rest = sub(own[0], vec(twist[before], 0)), sub(own[1], vec(twist[before], 3))
    turn = cross(s[1], rest[1])
    dw = add(add(cross_linear(s, rest), cross(turn, p)), cross(own[1], dp))
    return add(own[0], cross(own[1], p)), dw


@kernel
def add_force_motion(data, linear, place, s, pull, change):
    """Add ∂(Jᵀ λ)/∂q_j to column j of `dq`, fill ∂f/∂q_j; `place` is (leaf, j, first row)."""
    leaf, j, a = place
    columns, dof_parent = matrix(linear, d.D_COLUMNS), integers(data, f.DOF_PARENT)
    dq, slope = matrix(linear, d.D_DQ), matrix(linear, d.D_FORCE_SLOPE)
    first = integers(linear, d.D_DOF_FIRST)[j]
    slope[a, j], slope[a + 1, j], slope[a + 2, j] = change[0]
    turned = cross(s[1], pull[0]), add(cross(s[1], pull[1]), cross(s[0], pull[0]))
    moved = sub(change[0], turned[0]), sub(change[1], turned[1])
    k = leaf
    while k >= 0:
        own = vec(columns[k], 0), vec(columns[k], 3)
        if k >= first:
            dq[k, j] += dot(own[0], moved[0]) + dot(own[1], moved[1])
        else:
            dq[k, j] += dot(own[0], change[0]) + dot(own[1], change[1])
        k = dof_parent[k]


@kernel
def clear_other_dofs(data, linear, leaf, a):
    """Make the motion of three rows zero for the dofs that are not on their branch."""
    dof_parent, k = integers(data, f.DOF_PARENT), leaf
    j = dof_parent.shape[0] - 1
    while j >= 0:
        if j == k:
            k = dof_parent[k]
        else:
            clear_motion(linear, a, j)
        j -= 1


@kernel
def clear_motion(linear, a, j):
    """Make the motion of three rows zero for dof j."""
    for r in range(a, a + 3):
        matrix(linear, d.D_MOTION_NEXT)[r, j] = 0.0
        matrix(linear, d.D_MOTION_START)[r, j] = 0.0
        matrix(linear, d.D_GAP_SLOPE)[r, j] = 0.0
        matrix(linear, d.D_FORCE_SLOPE)[r, j] = 0.0


# --- Contacts of two bodies, and of other surfaces


@kernel
def fill_pair_motion(data, linear, i, a):
    """Fill the motion of contact i of a body as `fill_sphere_motion`; return what its c is."""
    surface = surface_of(data, linear, i)
    if surface[0] == UNKNOWN:
        return UNKNOWN
    F, p = frames(data, f.FRAME_START)[i], middle_of(data, linear, i)
    feature = vector(data, f.FEATURE_START)[i]
    branches = two_branches(integers(data, f.PAIRS), feature)
    dof_parent = integers(data, f.DOF_PARENT)
    on_first, on_second = branches[0], branches[1]
    for j in range(dof_parent.shape[0] - 1, -1, -1):
        moves = j == on_first, j == on_second
        if moves[0]:
            on_first = dof_parent[j]
        if moves[1]:
            on_second = dof_parent[j]
        if moves[0] or moves[1]:
            fill_pair_column(data, linear, (i, j, a), surface, p, F, branches, moves)
        else:
            clear_motion(linear, a, j)
    return surface[0]


@linear_part_on_demand
def fill_motion_of_pairs(data: Any, linear: Any) -> None:
    """Fill the motion of all contacts that carry and are not of spheres on the ground."""
    row_of, surface = integers(linear, d.D_ROW_OF), integers(linear, d.D_SURFACE)
    for a in range(0, 3 * integers(linear, d.D_COUNTS)[d.CONTACTS], 3):
        i = row_of[a] // 3
        if surface[i] != SPHERE:
            surface[i] = fill_pair_motion(data, linear, i, a)


@kernel
def pair_change(surface, p, frame, s, moves):
    """Return the changes of t1, t2, n, of p and of φ for a motion s, which moves both or one.

    `frame` is (t1, t2, n), n out of the second body; `moves` is whether the first, the second.
    """
    sign, both = 1.0 if surface[1] else -1.0, moves if surface[1] else (moves[1], moves[0])
    dn, dp, gap = surface_change(surface, scaled(sign, frame[2]), p, s, both)
    dn = scaled(sign, dn)
    d1, d2 = tangent_rates(frame[2], frame[0], dn)
    return (d1, d2, dn), dp, gap


@kernel
def fill_pair_column(data, linear, place, surface, p, F, branches, moves):
    """Fill the motion with q_j of contact i of a body; `place` is (i, j, first row)."""
    i, j, a = place
    column, impulse = matrix(linear, d.D_COLUMNS)[j], vector(data, f.IMPULSE)
    s, frame = (vec(column, 0), vec(column, 3)), (vec(F[0], 0), vec(F[1], 0), vec(F[2], 0))
    turns, dp, dgap = pair_change(surface, p, frame, s, moves)
    bodies = bodies_of(data, i)
    for end in range(2):
        twist = matrix(linear, d.D_TWIST_NEXT if end else d.D_TWIST)
        out = matrix(linear, d.D_MOTION_NEXT if end else d.D_MOTION_START)
        w, dw = relative_velocity_change(linear, twist, bodies, j, moves, p, dp)
        for e in range(3):
            out[a + e, j] = dot(frame[e], dw) + dot(turns[e], w)
    gap = matrix(linear, d.D_GAP_SLOPE)
    gap[a, j] = gap[a + 1, j] = gap[a + 2, j] = dgap
    # of Jᵀ λ, on both branches
    force, df = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for e in range(3):
        force = add(force, scaled(impulse[3 * i + e], frame[e]))
        df = add(df, scaled(impulse[3 * i + e], turns[e]))
    pull = force, cross(p, force)
    change = df, add(cross(dp, force), cross(p, df))
    slope, own = matrix(linear, d.D_FORCE_SLOPE), (branches[0], branches[2], j, moves[0])
    slope[a, j], slope[a + 1, j], slope[a + 2, j] = df
    add_branch_motion(data, linear, own, s, pull, change, 1.0)
    own = branches[1], branches[2], j, moves[1]
    add_branch_motion(data, linear, own, s, pull, change, -1.0)


@kernel
def bodies_of(data, i):
    """Return both bodies of contact i of bodies; 0 is the world."""
    pairs, body = integers(data, f.PAIRS), integers(data, f.SOLID_BODY)
    k = PAIR_NUMBERS * pair_of(vector(data, f.FEATURE_START)[i])
    return body[pairs[k]], body[pairs[k + 1]] if pairs[k + 1] >= 0 else 0


@kernel
def relative_velocity_change(linear, twist, bodies, j, moves, p, dp):
    """Return the velocity at p of the first body on the second, and its change with q_j."""
    first, d_first = velocity_and_change(linear, twist, (bodies[0], j), moves[0], p, dp)
    second, d_second = velocity_and_change(linear, twist, (bodies[1], j), moves[1], p, dp)
    return sub(first, second), sub(d_first, d_second)


@kernel
def velocity_and_change(linear, twist, place, moves, p, dp):
    """Return the velocity of a body (body, j) at p, and its change, where q_j moves it or not."""
    if moves:
        return velocity_change(linear, twist, place, p, dp)
    own = vec(twist[place[0]], 0), vec(twist[place[0]], 3)
    return add(own[0], cross(own[1], p)), cross(own[1], dp)


@kernel
def add_branch_motion(data, linear, branch, s, pull, change, sign):
    """Add `sign` ∂(Jᵀ λ)/∂q_j of a branch to column j of `dq`.

    `branch` is (last dof, dof past its end, j, whether j is on it or before).
    """
    leaf, end, j, moves = branch
    columns, dof_parent = matrix(linear, d.D_COLUMNS), integers(data, f.DOF_PARENT)
    dq, first = matrix(linear, d.D_DQ), integers(linear, d.D_DOF_FIRST)[j]
    turned = cross(s[1], pull[0]), add(cross(s[1], pull[1]), cross(s[0], pull[0]))
    moved = sub(change[0], turned[0]), sub(change[1], turned[1])
    k = leaf
    while k > end:
        own = vec(columns[k], 0), vec(columns[k], 3)
        along = moved if moves and k >= first else change
        dq[k, j] += sign * (dot(own[0], along[0]) + dot(own[1], along[1]))
        k = dof_parent[k]
