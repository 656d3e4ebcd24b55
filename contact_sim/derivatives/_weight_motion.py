"""How the effective masses of soft laws change with q.

sap        w = |A|_F/3,   A = J D⁻¹ Jᵀ,   D the diagonal of M̂
compliant  w = G_aa,      G = J M̂⁻¹ Jᵀ

A turn of the contact frame does not change |A|, so J is taken in world axes: of dof k it is the
velocity J_k of the contact point p under S_k. For a change of q_m that moves p by dp,

    dJ_k = ω_m × J_k + ω_k × (dp − J_m)    k not before the joint of m: S_k turns along
    dJ_k = ω_k × dp                        else
    dD_k = −2 (S_m × S_k)·(I_m S_k)        k before the joint of m; else 0

with the inertia I_m of the body of m and all behind it. With x = M̂⁻¹ J_aᵀ, twists V = Σ S_k x_k
and the momentum h_m of that body and all behind it,

    dG_aa = 2 d(J_a x) − 2 d(½ xᵀ M x),   d(½ xᵀ M x) = −(S_m × V_before)·h_m

with the twist of the body before the joint of m (_contact_motion.py has d(J x)). Other effective
masses are differenced (_differences.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, front, integers, matrix, vector
from contact_sim.collision._body_pairs import two_branches
from contact_sim.collision._surface import tangent_rates
from contact_sim.contact_models import _sap as sap
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._contact_motion import (
    bodies_of,
    pair_change,
    point_change,
    relative_velocity_change,
    sphere_of,
    velocity_change,
)
from contact_sim.derivatives._inverse_dynamics import cross_linear, fill_motion, inertia_of
from contact_sim.derivatives._on_demand import linear_part_on_demand
from contact_sim.derivatives._pair_geometry import SPHERE, UNKNOWN, middle_of, surface_of
from contact_sim.dynamics._vectors import add, cross, dot, put, scaled, sub, vec
from contact_sim.solvers._jit import kernel


@kernel
def matters(linear, a, count):
    """Return whether an effective mass of one of the rows from `a` on matters."""
    on_weight, any_one = matrix(linear, d.D_ON_WEIGHT), False
    for r in range(a, a + count):
        any_one = any_one or on_weight[r, 0] != 0.0 or on_weight[r, 1] != 0.0
    return any_one


# --- sap


@kernel
def fill_diagonal_weight_slopes(data, linear):
    """Fill ∂w/∂q of the effective masses from the diagonal of M̂."""
    counts, slope = integers(linear, d.D_COUNTS), matrix(linear, d.D_WEIGHT_SLOPE)
    if counts[d.GIVEN] != 0 or vector(data, f.LAW)[sap.EXACT_WEIGHT] != 0.0:
        return
    diagonal, inertia = matrix(linear, d.D_DQ_UNDAMPED), matrix(data, f.INERTIA)
    rows, nv, contacts = matrix(linear, d.D_ROWS_JACOBIAN), inertia.shape[0], counts[d.CONTACTS]
    fill_diagonal_slopes(data, linear, diagonal)
    others = False
    for a in range(0, 3 * contacts, 3):
        if matters(linear, a, 3):
            if surface_at(linear, a) == SPHERE:
                fill_contact_slope(data, linear, a, diagonal)
            else:
                others = True
    if others:
        fill_pair_slopes(data, linear)
    for a in range(3 * contacts, counts[d.ROWS] - counts[d.BILATERAL]):
        slope[a, :] = 0.0
        for k in range(nv if matters(linear, a, 1) else 0):
            share = rows[a, k] / inertia[k, k]
            for m in range(nv if share != 0.0 else 0):
                slope[a, m] -= share * share * diagonal[k, m]


@kernel
def fill_diagonal_slopes(data, linear, diagonal):
    """Fill ∂M_kk/∂q_m, shape (nv, nv)."""
    v_index, dof_parent = integers(data, f.V_INDEX), integers(data, f.DOF_PARENT)
    columns, inertia = matrix(linear, d.D_COLUMNS), matrix(linear, d.D_INERTIA)  # of all behind
    diagonal[:] = 0.0
    for body in range(1, inertia.shape[0]):
        for m in range(v_index[body], v_index[body + 1]):
            s = vec(columns[m], 0), vec(columns[m], 3)
            k = dof_parent[v_index[body]]
            while k >= 0:
                own = vec(columns[k], 0), vec(columns[k], 3)
                momentum = inertia_of(inertia[body], own[0], own[1])
                diagonal[k, m] = -2.0 * (
                    dot(cross_linear(s, own), momentum[0]) + dot(cross(s[1], own[1]), momentum[1])
                )
                k = dof_parent[k]


@kernel
def fill_contact_slope(data, linear, a, diagonal):
    """Fill ∂w/∂q of the contact in the rows from `a` on."""
    i, slope = integers(linear, d.D_ROW_OF)[a] // 3, matrix(linear, d.D_WEIGHT_SLOPE)
    columns, dof_parent = matrix(linear, d.D_COLUMNS), integers(data, f.DOF_PARENT)
    inertia, first = matrix(data, f.INERTIA), integers(linear, d.D_DOF_FIRST)
    sphere, p, _, leaf = sphere_of(data, linear, i)
    n = vec(frames(data, f.FRAME_START)[i, 2], 0)
    A1 = A2 = A3 = (0.0, 0.0, 0.0)
    k = leaf
    while k >= 0:
        J = point_column(columns[k], p)
        over = scaled(1.0 / inertia[k, k], J)
        A1, A2 = add(A1, scaled(J[0], over)), add(A2, scaled(J[1], over))
        A3, k = add(A3, scaled(J[2], over)), dof_parent[k]
    slope[a, :] = 0.0
    size = np.sqrt(dot(A1, A1) + dot(A2, A2) + dot(A3, A3))
    if size == 0.0:
        return
    # dw = A : dA / (3 |A|_F)
    k = leaf
    while k >= 0:
        J = point_column(columns[k], p)
        along = scaled(1.0 / (3.0 * size * inertia[k, k]), (dot(A1, J), dot(A2, J), dot(A3, J)))
        share = dot(along, J) / inertia[k, k]
        for m in range(inertia.shape[0]):
            slope[a, m] -= share * diagonal[k, m]
        m, w = leaf, vec(columns[k], 3)
        while m >= 0:
            s = vec(columns[m], 0), vec(columns[m], 3)
            dp, _, _ = point_change(sphere, n, s)
            change = cross(w, dp)
            if k >= first[m]:
                change = add(cross(s[1], J), cross(w, sub(dp, point_column(columns[m], p))))
            slope[a, m] += 2.0 * dot(along, change)
            m = dof_parent[m]
        k = dof_parent[k]


@kernel
def surface_at(linear, a):
    """Return what c of the contact in the rows from `a` on is, see _pair_geometry.py."""
    return integers(linear, d.D_SURFACE)[integers(linear, d.D_ROW_OF)[a] // 3]


@kernel
def pair_matters(linear, a):
    """Return whether the rows from `a` on are a contact of bodies with a formula, and matter."""
    kind = surface_at(linear, a)
    return kind != UNKNOWN and kind != SPHERE and matters(linear, a, 3)


@linear_part_on_demand
def fill_pair_slopes(data: Any, linear: Any) -> None:
    """Fill ∂w/∂q of the contacts of bodies that have a formula."""
    for a in range(0, 3 * integers(linear, d.D_COUNTS)[d.CONTACTS], 3):
        if pair_matters(linear, a):
            fill_pair_slope(data, linear, a, matrix(linear, d.D_DQ_UNDAMPED))


@kernel
def fill_pair_slope(data, linear, a, diagonal):
    """Fill ∂w/∂q of the contact of bodies in the rows from `a` on: J_k of the first on the second.

    As in `fill_contact_slope`, with the sign of the body that k moves.
    """
    i, slope = integers(linear, d.D_ROW_OF)[a] // 3, matrix(linear, d.D_WEIGHT_SLOPE)
    columns, inertia = matrix(linear, d.D_COLUMNS), matrix(data, f.INERTIA)
    first, nv = integers(linear, d.D_DOF_FIRST), inertia.shape[0]
    surface, p, F = surface_of(data, linear, i), middle_of(data, linear, i), frame_of(data, i)
    branches = two_branches(integers(data, f.PAIRS), vector(data, f.FEATURE_START)[i])
    A1 = A2 = A3 = (0.0, 0.0, 0.0)
    for k in range(nv):
        if one_moves(data, branches, k):
            J = point_column(columns[k], p)
            over = scaled(1.0 / inertia[k, k], J)
            A1, A2 = add(A1, scaled(J[0], over)), add(A2, scaled(J[1], over))
            A3 = add(A3, scaled(J[2], over))
    slope[a, :] = 0.0
    size = np.sqrt(dot(A1, A1) + dot(A2, A2) + dot(A3, A3))
    if size == 0.0:
        return
    for m in range(nv):
        moves = on_branch(data, branches[0], m), on_branch(data, branches[1], m)
        s = vec(columns[m], 0), vec(columns[m], 3)
        _, dp, _ = pair_change(surface, p, F, s, moves)
        J_m = point_column(columns[m], p)
        for k in range(nv):
            if not one_moves(data, branches, k):
                continue
            J, w = point_column(columns[k], p), vec(columns[k], 3)
            along = scaled(
                1.0 / (3.0 * size * inertia[k, k]), (dot(A1, J), dot(A2, J), dot(A3, J))
            )
            slope[a, m] -= dot(along, J) / inertia[k, k] * diagonal[k, m]
            change = cross(w, dp)
            if first[m] <= k < m or on_branch(data, k, m):
                change = add(cross(s[1], J), cross(w, sub(dp, J_m)))
            if moves[0] or moves[1]:
                slope[a, m] += 2.0 * dot(along, change)


@kernel
def on_branch(data, leaf, k):
    """Return whether dof k is on the branch that ends at the dof `leaf`."""
    dof_parent = integers(data, f.DOF_PARENT)
    while leaf > k:
        leaf = dof_parent[leaf]
    return leaf == k


@kernel
def one_moves(data, branches, k):
    """Return whether dof k moves one body of a contact and not the other."""
    if k <= branches[2] and on_branch(data, branches[2], k):
        return False
    return on_branch(data, branches[0], k) or on_branch(data, branches[1], k)


@kernel
def frame_of(data, i):
    """Return t1, t2 and n of contact i at the start of the step."""
    F = frames(data, f.FRAME_START)[i]
    return vec(F[0], 0), vec(F[1], 0), vec(F[2], 0)


@kernel
def point_column(column, p):
    """Return the velocity at p under a motion subspace (linear at the origin, angular)."""
    return add(vec(column, 0), cross(vec(column, 3), p))


# --- compliant


@kernel
def fill_delassus_weight_slopes(data, linear):
    """Fill ∂G_nn/∂q and ½ ∂(G_11 + G_22)/∂q of contacts, and ∂G_aa/∂q of scalar rows."""
    counts, slope = integers(linear, d.D_COUNTS), matrix(linear, d.D_WEIGHT_SLOPE)
    if counts[d.GIVEN] != 0:
        return
    nv, contacts, others = matrix(linear, d.D_DQ).shape[0], counts[d.CONTACTS], False
    for a in range(0, 3 * contacts, 3):
        slope[a, :] = 0.0
        if matters(linear, a, 3):
            if surface_at(linear, a) == SPHERE:
                add_row_slope(data, linear, (a, 0), nv, 0.5)
                add_row_slope(data, linear, (a, 1), nv, 0.5)
                add_row_slope(data, linear, (a, 2), 0, 1.0)
            else:
                others = True
    if others:
        add_pair_row_slopes(data, linear)
    for place in range(3 * contacts, counts[d.SOLVED] - counts[d.BILATERAL]):
        a = integers(linear, d.D_SOLVED)[place]
        slope[a, :] = 0.0
        if matters(linear, a, 1):
            add_inertia_slope(data, linear, a, place, 0, 1.0)


@kernel
def add_row_slope(data, linear, row, first, share):
    """Add `share` ∂G_aa/∂q of row (a, e) of a contact, a + e, to the columns from `first` on."""
    a, e = row
    add_inertia_slope(data, linear, a, a + e, first, share)
    i, slope = integers(linear, d.D_ROW_OF)[a] // 3, matrix(linear, d.D_WEIGHT_SLOPE)
    columns, dof_parent = matrix(linear, d.D_COLUMNS), integers(data, f.DOF_PARENT)
    sphere, p, body, leaf = sphere_of(data, linear, i)
    F, twist = frames(data, f.FRAME_START)[i], matrix(linear, d.D_RATE)
    t1, n, axis = vec(F[0], 0), vec(F[2], 0), vec(F[e], 0)
    m = leaf
    while m >= 0:
        s = vec(columns[m], 0), vec(columns[m], 3)
        dp, dn, _ = point_change(sphere, n, s)
        d1, d2 = tangent_rates(n, t1, dn)
        turn = d1 if e == 0 else d2 if e == 1 else dn
        w, dw = velocity_change(linear, twist, (body, m), p, dp)
        slope[a, first + m] += 2.0 * share * (dot(axis, dw) + dot(turn, w))
        m = dof_parent[m]


@linear_part_on_demand
def add_pair_row_slopes(data: Any, linear: Any) -> None:
    """Add ∂G_nn/∂q and ½ ∂(G_11 + G_22)/∂q of the contacts of bodies that have a formula."""
    nv = matrix(linear, d.D_DQ).shape[0]
    for a in range(0, 3 * integers(linear, d.D_COUNTS)[d.CONTACTS], 3):
        if pair_matters(linear, a):
            add_pair_row_slope(data, linear, (a, 0), nv, 0.5)
            add_pair_row_slope(data, linear, (a, 1), nv, 0.5)
            add_pair_row_slope(data, linear, (a, 2), 0, 1.0)


@kernel
def add_pair_row_slope(data, linear, row, first, share):
    """Add as `add_row_slope`, of a contact of bodies."""
    a, e = row
    add_inertia_slope(data, linear, a, a + e, first, share)
    i, slope = integers(linear, d.D_ROW_OF)[a] // 3, matrix(linear, d.D_WEIGHT_SLOPE)
    columns, twist = matrix(linear, d.D_COLUMNS), matrix(linear, d.D_RATE)
    surface, p, F = surface_of(data, linear, i), middle_of(data, linear, i), frame_of(data, i)
    branches = two_branches(integers(data, f.PAIRS), vector(data, f.FEATURE_START)[i])
    bodies, axis = bodies_of(data, i), F[e]
    for m in range(columns.shape[0]):
        moves = on_branch(data, branches[0], m), on_branch(data, branches[1], m)
        if not (moves[0] or moves[1]):
            continue
        s = vec(columns[m], 0), vec(columns[m], 3)
        turns, dp, _ = pair_change(surface, p, F, s, moves)
        w, dw = relative_velocity_change(linear, twist, bodies, m, moves, p, dp)
        slope[a, first + m] += 2.0 * share * (dot(axis, dw) + dot(turns[e], w))


@kernel
def add_inertia_slope(data, linear, a, place, first, share):
    """Add −2 `share` ∂(½ xᵀ M x)/∂q of a solved row to row a, from `first` on.

    `place` is that of the row among the solved ones; its twists are left in `rate`.
    """
    parent, v_index = integers(data, f.PARENT), integers(data, f.V_INDEX)
    columns, inertia = matrix(linear, d.D_COLUMNS), matrix(linear, d.D_INERTIA)  # of all behind
    twist, momentum, x = (
        matrix(linear, d.D_RATE),
        matrix(linear, d.D_WRENCH),
        vector(data, f.MOMENTUM),
    )
    nv, m = columns.shape[0], matrix(linear, d.D_FREE).shape[1]
    X = front(linear, d.D_RIGHT, nv, m + integers(linear, d.D_COUNTS)[d.SOLVED])
    for k in range(nv):
        x[k] = X[k, m + place]
    fill_motion(parent, v_index, columns, x, twist)
    # h_j = I_j V_j + Σ over the bodies c on it of h_c − I_c V_j, I of each body and all behind it
    for j in range(1, inertia.shape[0]):
        own = inertia_of(inertia[j], vec(twist[j], 0), vec(twist[j], 3))
        put(momentum[j], 0, own[0])
        put(momentum[j], 3, own[1])
    slope = matrix(linear, d.D_WEIGHT_SLOPE)
    for j in range(inertia.shape[0] - 1, 0, -1):
        up, h = parent[j], (vec(momentum[j], 0), vec(momentum[j], 3))
        before = vec(twist[up], 0), vec(twist[up], 3)
        if up > 0:
            carried = inertia_of(inertia[j], before[0], before[1])
            put(momentum[up], 0, add(vec(momentum[up], 0), sub(h[0], carried[0])))
            put(momentum[up], 3, add(vec(momentum[up], 3), sub(h[1], carried[1])))
        for k in range(v_index[j], v_index[j + 1]):
            s = vec(columns[k], 0), vec(columns[k], 3)
            turned = cross_linear(s, before), cross(s[1], before[1])
            slope[a, first + k] += 2.0 * share * (dot(turned[0], h[0]) + dot(turned[1], h[1]))
