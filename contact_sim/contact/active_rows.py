"""Which blocks take part in the contact problem, and velocities u = J v of all rows.

Only contacts that could carry an impulse take part. The selection is exact: after the solve every
contact left out is checked (`apply_impulses` in time_stepping/stages.py), and the problem is
solved again with those that would have closed.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision.pair_rows import add_pair_impulse, add_pair_velocity, two_branches
from contact_sim.solvers.delassus import EVERYWHERE
from contact_sim.solvers.jit import kernel

ALL = -1
"""Stands for the rows of all islands."""


@kernel
def row_velocities(jacobian_transposed, contacts, intervals, dof_parent, v, u):
    """Fill u = J v, along the branch of each row.

    Args:
        jacobian_transposed: Jᵀ, shape (nv, 3 nc + ns).
        contacts: (leaf_dof, feature, pairs): last dof of the joint that carries each contact with
            the ground; what each slot holds, shape (nc,); the two branches of each pair, see
            collision.pair_rows.
        intervals: last dof of every interval row, EVERYWHERE if it has entries on several
            branches, and the dof at which its entries have ended, shape (ns,) each.
        dof_parent: dof before each dof, −1 at the root, shape (nv,).
        v: velocity, shape (nv,).
        u: out, rows (t1, t2, n) per contact, then the interval rows [m/s, rad/s].
    """
    (leaf_dof, feature, pairs), (interval_dof, interval_end) = contacts, intervals
    nc = feature.shape[0]
    for i in range(leaf_dof.shape[0]):
        k, r = leaf_dof[i], 3 * i
        a = b = c = 0.0
        while k >= 0:
            speed = v[k]
            a += jacobian_transposed[k, r] * speed
            b += jacobian_transposed[k, r + 1] * speed
            c += jacobian_transposed[k, r + 2] * speed
            k = dof_parent[k]
        u[r], u[r + 1], u[r + 2] = a, b, c
    for i in range(leaf_dof.shape[0], nc):
        a, b, meet = two_branches(pairs, feature[i])
        u[3 * i] = u[3 * i + 1] = u[3 * i + 2] = 0.0
        add_pair_velocity(jacobian_transposed, (a, meet), dof_parent, v, i, u)
        add_pair_velocity(jacobian_transposed, (b, meet), dof_parent, v, i, u)
    for s in range(interval_dof.shape[0]):
        k, total = last_dof(interval_dof[s], dof_parent), 0.0
        while k > interval_end[s]:
            total += jacobian_transposed[k, 3 * nc + s] * v[k]
            k = k - 1 if interval_dof[s] == EVERYWHERE else dof_parent[k]
        u[3 * nc + s] = total


@kernel
def last_dof(leaf, dof_parent):
    """Return where to begin with the entries of a row whose last dof is `leaf`."""
    return dof_parent.shape[0] - 1 if leaf == EVERYWHERE else leaf


@kernel
def generalized_impulse(jacobian_transposed, contacts, intervals, dof_parent, impulse, out):
    """Fill out = Jᵀ λ, shape (nv,); arguments as in `row_velocities`, λ in place of u."""
    (leaf_dof, feature, pairs), (interval_dof, interval_end) = contacts, intervals
    nc = feature.shape[0]
    for k in range(out.shape[0]):
        out[k] = 0.0
    for i in range(leaf_dof.shape[0]):
        k, r = leaf_dof[i], 3 * i
        a, b, c = impulse[r], impulse[r + 1], impulse[r + 2]
        if a == 0.0 and b == 0.0 and c == 0.0:
            continue
        while k >= 0:
            out[k] += (
                jacobian_transposed[k, r] * a
                + jacobian_transposed[k, r + 1] * b
                + jacobian_transposed[k, r + 2] * c
            )
            k = dof_parent[k]
    for i in range(leaf_dof.shape[0], nc):
        a, b, meet = two_branches(pairs, feature[i])
        add_pair_impulse(jacobian_transposed, (a, meet), dof_parent, impulse, i, out)
        add_pair_impulse(jacobian_transposed, (b, meet), dof_parent, impulse, i, out)
    for s in range(interval_dof.shape[0]):
        x = impulse[3 * nc + s]
        if x == 0.0:
            continue
        k = last_dof(interval_dof[s], dof_parent)
        while k > interval_end[s]:
            out[k] += jacobian_transposed[k, 3 * nc + s] * x
            k = k - 1 if interval_dof[s] == EVERYWHERE else dof_parent[k]


@kernel
def within_reach(gap, u, i, mu, reach):
    """Return φ + T (u_n − κ μ |u_t|) of contact `i`: negative where the law may act on it.

    `reach` is (T, κ, margin): T = h, κ = 0 for a law without force at a distance.
    """
    slip = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
    return gap[i] + reach[0] * (u[3 * i + 2] - reach[1] * mu[i] * slip)


@kernel
def select_active(gap, u_free, impulse, mu, reach, active):
    """Mark the contacts in the margin, in reach of the law, or that carried an impulse before."""
    for i in range(gap.shape[0]):
        near = gap[i] <= reach[2] or within_reach(gap, u_free, i, mu, reach) <= 0.0
        active[i] = 1.0 if near or impulse[3 * i + 2] > 0.0 else 0.0


@kernel
def collect_rows(active, interval_active, contacts, interval_dof, island, row_of, row_leaf):
    """List the rows of the active contacts, then those of the active intervals.

    Args:
        active: > 0 for the contacts that take part, shape (nc,).
        interval_active: 1 for the interval rows that take part, shape (ns,).
        contacts: as in `row_velocities`.
        interval_dof: last dof of each interval row, shape (ns,).
        island: island of each contact (nc,) and of each interval row (ns,), and the one whose rows
            are listed, or ALL.
        row_of: out, row of the step data behind each problem row.
        row_leaf: out, last dof of that row, EVERYWHERE where it has entries on two branches.

    Returns:
        Number of active contacts and of problem rows.
    """
    of_contact, of_interval, chosen = island
    nc, n, leaf_dof = active.shape[0], 0, contacts[0]
    for i in range(nc):
        if active[i] > 0.0 and (chosen == ALL or of_contact[i] == chosen):
            leaf = leaf_dof[i] if i < leaf_dof.shape[0] else EVERYWHERE
            for row in range(3):
                row_of[n + row] = 3 * i + row
                row_leaf[n + row] = leaf
            n += 3
    na = n // 3
    for k in range(interval_active.shape[0]):
        if interval_active[k] != 0.0 and (chosen == ALL or of_interval[k] == chosen):
            row_of[n] = 3 * nc + k
            row_leaf[n] = interval_dof[k]
            n += 1
    return na, n
