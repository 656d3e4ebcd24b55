"""The rows of the contacts between bodies: velocity of the first body on the second.

A row has entries at the dofs that move one body of its pair and not the other: on two branches of
the tree, from the bodies to where the branches meet.
"""

from __future__ import annotations

from typing import Any

from contact_sim.arrays.fields import PAIR_NUMBERS
from contact_sim.collision.pool import pair_of
from contact_sim.solvers.jit import kernel

FIRST_LEAF, SECOND_LEAF, MEET = 2, 3, 4
"""Columns of the field `pairs`, behind the two solids."""


@kernel
def two_branches(pairs, feature):
    """Return both last dofs of the pair that a slot holds, −1 without any, and where they meet.

    `pairs`: (n * PAIR_NUMBERS,). An unused slot has no dofs.
    """
    k = PAIR_NUMBERS * pair_of(feature)
    if k < 0:
        return -1, -1, -1
    return pairs[k + FIRST_LEAF], pairs[k + SECOND_LEAF], pairs[k + MEET]


@kernel
def fill_pair_rows(columns, origin, slots, dof_parent, position, frame, gap, jacobian_transposed):
    """Fill Jᵀ of the contacts between bodies: velocity of the first body on the second [m/s].

    Taken halfway between their surfaces. As `detect.contact_rows`, whose arguments these are, for
    the slots behind those of the ground.
    """
    leaf_dof, feature, pairs = slots
    first, nc = leaf_dof.shape[0], feature.shape[0]
    for k in range(dof_parent.shape[0]):
        for row in range(3 * first, 3 * nc):
            jacobian_transposed[k, row] = 0.0
    for i in range(first, nc):
        if feature[i] < 0.0:
            continue
        a, b, meeting = two_branches(pairs, feature[i])
        n, half = frame[i, 2], 0.5 * gap[i]
        p = (
            position[i, 0] - half * n[0] - origin[0],
            position[i, 1] - half * n[1] - origin[1],
            position[i, 2] - half * n[2] - origin[2],
        )
        for last, sign in ((a, 1.0), (b, -1.0)):
            fill_branch(
                columns, (last, meeting), dof_parent, p, frame[i], sign, 3 * i, jacobian_transposed
            )


@kernel
def fill_branch(columns, branch, dof_parent, p, axes, sign, row, jacobian_transposed):
    """Fill three rows along a branch, (last dof, dof behind its end), at the point p."""
    k = branch[0]
    while k > branch[1]:
        wx, wy, wz = columns[k, 3], columns[k, 4], columns[k, 5]
        vx = columns[k, 0] + wy * p[2] - wz * p[1]
        vy = columns[k, 1] + wz * p[0] - wx * p[2]
        vz = columns[k, 2] + wx * p[1] - wy * p[0]
        for e in range(3):
            along = axes[e, 0] * vx + axes[e, 1] * vy + axes[e, 2] * vz
            jacobian_transposed[k, row + e] = sign * along
        k = dof_parent[k]


@kernel
def add_pair_velocity(jacobian_transposed, branch, dof_parent, v, i, u):
    """Add J v of contact i along a branch, (last dof, dof behind its end), to u."""
    k = branch[0]
    while k > branch[1]:
        for e in range(3 * i, 3 * i + 3):
            u[e] += jacobian_transposed[k, e] * v[k]
        k = dof_parent[k]


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
