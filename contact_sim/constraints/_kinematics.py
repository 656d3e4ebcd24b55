"""Errors h, Jacobians H and Ḣ v of constraints on frames and joints (theory 4.6).

    point    h = p_A − p_B                       H = J_A − J_B
    frame    then the angle of R_A R_Bᵀ          H = ω_A − ω_B
    joints   h = Σ coefficient q − value

in world axes. H of the angle is exact at angle zero. Constraints that are Python functions
(FUNCTION) are evaluated in step/_bilateral_rows.py; the kernels here skip their rows.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays._fields import CONSTRAINT_INDICES
from contact_sim.dynamics._rigid_body import point_bias
from contact_sim.dynamics._vectors import add, cross, put, rotated, scaled, sub, vec
from contact_sim.solvers._jit import kernel

POINT, FRAME, JOINTS, FUNCTION = range(4)
"""Kinds of rows: relative position (3), relative placement (6), a sum over joints (1), h(q)."""
PROJECTED, DAMPED, DRIVEN, DRIVEN_SLOWLY = range(4)
"""Laws: position by projection or Baumgarte feedback, velocity at once or with rate α."""
KIND, FIRST, COUNT, UNBOUNDED, A, B, DOF_A, DOF_B = range(8)
"""Indices: kind, first row, rows, whether the first joint has no bounds, then two bodies and their
last dofs, or coordinates and dofs of two joints."""
LAW, KP, KD, VALUE, COEFFICIENT_A, COEFFICIENT_B = range(6)
"""Numbers: law, its feedback, position or velocity of a joint, coefficients of two joints."""


@kernel
def fill_errors(table, pose, q, error):
    """Fill h [m, rad] of all rows but those of FUNCTION, shape (nb,).

    `table` is (indices, places, laws), see `ConstraintTable`; `pose` the rotation by columns and
    the position of each body in world, (bodies, 12).
    """
    indices, places, laws = table
    for i in range(places.shape[0]):
        entry = indices[CONSTRAINT_INDICES * i : CONSTRAINT_INDICES * (i + 1)]
        row = entry[FIRST]
        if entry[KIND] == JOINTS:
            value = laws[i, COEFFICIENT_A] * joint_position(q, entry)
            error[row] = value + laws[i, COEFFICIENT_B] * q[entry[B]] - laws[i, VALUE]
            # driven joints have no position error
            if laws[i, LAW] >= DRIVEN:
                error[row] = 0.0
            if entry[UNBOUNDED]:  # continuous joint: the shorter way round
                error[row] = np.arctan2(np.sin(error[row]), np.cos(error[row]))
        elif entry[KIND] != FUNCTION:
            # point and frame: p_A − p_B, then the angle
            p, r = (
                world_point(pose, entry[A], places[i], 0),
                world_point(pose, entry[B], places[i], 12),
            )
            put(error, row, sub(p, r))
            if entry[KIND] == FRAME:
                put(error, row + 3, angle_between(pose, entry, places[i]))


@kernel
def joint_position(q, entry):
    """Return the position of the first joint of a constraint [rad or m]."""
    k = entry[A]
    return np.arctan2(q[k + 1], q[k]) if entry[UNBOUNDED] else q[k]


@kernel
def world_point(pose, body, place, first):
    """Return a point of a body in world; its place in the axes of the body from `first` on."""
    P = pose[body]
    return add(rotated(vec(P, 0), vec(P, 3), vec(P, 6), vec(place, first + 9)), vec(P, 9))


@kernel
def angle_between(pose, entry, place):
    """Return the angle vector of R_A R_Bᵀ in world axes [rad]."""
    P, Q = pose[entry[A]], pose[entry[B]]
    w, trace = (0.0, 0.0, 0.0), 0.0
    for c in range(0, 9, 3):
        x = rotated(vec(P, 0), vec(P, 3), vec(P, 6), vec(place, c))
        y = rotated(vec(Q, 0), vec(Q, 3), vec(Q, 6), vec(place, 12 + c))
        w = add(w, cross(y, x))
        trace += x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
    sine = 0.5 * np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    angle = np.arctan2(sine, 0.5 * (trace - 1.0))
    return scaled(0.5 * (angle / sine if sine > 0.0 else 1.0), w)


@kernel
def fill_jacobian(table, pose, columns, origin, dof_parent, H):
    """Fill H (nb, nv) of all rows but those of FUNCTION.

    `columns` are the twists of unit joint speeds about `origin` [m], world axes, (nv, 6); the
    others as in `fill_errors`.
    """
    indices, places, laws = table
    for i in range(places.shape[0]):
        entry = indices[CONSTRAINT_INDICES * i : CONSTRAINT_INDICES * (i + 1)]
        row = entry[FIRST]
        if entry[KIND] == FUNCTION:
            continue
        for r in range(row, row + entry[COUNT]):
            for k in range(H.shape[1]):
                H[r, k] = 0.0
        # joints: the coefficients
        # joints: the coefficients at their dofs
        if entry[KIND] == JOINTS:
            H[row, entry[DOF_A]] = laws[i, COEFFICIENT_A]
            if laws[i, COEFFICIENT_B] != 0.0:
                H[row, entry[DOF_B]] = laws[i, COEFFICIENT_B]
            continue
        # point and frame: + along the branch of A, − along that of B
        angles = entry[KIND] == FRAME
        p = sub(world_point(pose, entry[A], places[i], 0), vec(origin, 0))
        add_branch_rows(columns, entry[DOF_A], dof_parent, p, 1.0, row, angles, H)
        p = sub(world_point(pose, entry[B], places[i], 12), vec(origin, 0))
        add_branch_rows(columns, entry[DOF_B], dof_parent, p, -1.0, row, angles, H)


@kernel
def add_branch_rows(columns, last, dof_parent, p, sign, row, angles, H):
    """Add `sign` times the velocity of the point p, and with `angles` ω, along a branch."""
    k = last
    while k >= 0:
        w = vec(columns[k], 3)
        v = add(vec(columns[k], 0), cross(w, p))
        for e in range(3):
            H[row + e, k] += sign * v[e]
            if angles:
                H[row + 3 + e, k] += sign * w[e]
        k = dof_parent[k]


@kernel
def fill_drift(table, pose, motion, drift):
    """Fill Ḣ v [m/s², rad/s²] of all rows but those of FUNCTION, shape (nb,).

    `motion` is (twist, bias, origin, gravity), see `bias_forces`; the others as in `fill_errors`.
    """
    indices, places, _ = table
    twist, bias, origin, gravity = motion
    for i in range(places.shape[0]):
        entry = indices[CONSTRAINT_INDICES * i : CONSTRAINT_INDICES * (i + 1)]
        row = entry[FIRST]
        if entry[KIND] == JOINTS:
            drift[row] = 0.0
        elif entry[KIND] != FUNCTION:
            put(drift, row, (0.0, 0.0, 0.0))
            if entry[KIND] == FRAME:
                put(drift, row + 3, (0.0, 0.0, 0.0))
            # J̇ v of the point on A minus that on B; of a frame also ω̇
            for body, first, sign in ((entry[A], 0, 1.0), (entry[B], 12, -1.0)):
                if body > 0:
                    p = sub(world_point(pose, body, places[i], first), vec(origin, 0))
                    a = point_bias(twist[body], bias[body], gravity, p)
                    put(drift, row, add(vec(drift, row), scaled(sign, a)))
                    if entry[KIND] == FRAME:
                        angular = scaled(sign, vec(bias[body], 3))
                        put(drift, row + 3, add(vec(drift, row + 3), angular))
