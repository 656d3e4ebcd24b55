"""Redundant contact forces: of all that hold the modes, some well inside their bounds."""

from __future__ import annotations

import numpy as np

from contact_sim.contact_models.hybrid.mode_elimination import (
    OPEN,
    STICK,
    eliminate_friction,
    factor_in_place,
    list_held,
    restore_friction,
    solve_factored,
)
from contact_sim.solvers.jit import kernel

PROXIMAL = 1e-6
"""Share of the diagonal that singles out the least of redundant forces."""
LIFTS = 5
"""How many distributions of redundant forces are tried."""


@kernel
def spread_redundant(G, a, mu, mode, direction, joint_friction, joint_mode, force):
    """Move redundant forces away from their bounds where others hold the modes as well.

    Pivoting leaves them at their bounds, which they would leave at once. Tried are the forces of
    least norm, Σ G_rr f_r², then those nearest to the ones at hand with the weakest contacts
    lifted. Arguments as in `mode_forces`; `force`: in and out [N], shape (n,).
    """
    na, n = mode.shape[0], a.shape[0]
    kind, row = np.empty(n, np.int64), np.empty(n, np.int64)
    m = list_held(mode, joint_mode, kind, row)
    A, b = np.empty((m, m)), np.empty(m)
    eliminate_friction(G, a, mu, direction, joint_friction, joint_mode, kind, row, m, A, b)
    F, order, scale = A.copy(), np.empty(m, np.int64), np.empty(m)
    for e in range(m):
        scale[e] = G[row[e], row[e]]
    if factor_in_place(F, scale, m, order) == m:
        return
    F[:] = A
    for e in range(m):
        F[e, e] += PROXIMAL * scale[e]
    rank, x = factor_in_place(F, scale, m, order), np.zeros(m)
    step, trial = np.empty(m), force.copy()
    lift = 0.25 * np.abs(force).max()
    for attempt in range(LIFTS):
        for e in range(m):
            r = row[e]
            x[e] = force[r] if attempt > 0 else 0.0
            if attempt > 0 and r < 3 * na and r % 3 == 2:
                x[e] = max(x[e], lift)
        lift *= 0.25 if attempt > 0 else 1.0
        for _ in range(3):
            for e in range(m):
                step[e] = -b[e]
                for c in range(m):
                    step[e] -= A[e, c] * x[c]
            solve_factored(F, order, rank, step)
            x += step
        restore_friction(mu, direction, joint_friction, joint_mode, kind, row, m, x, trial)
        if inside_bounds(mu, mode, joint_friction, trial):
            force[:] = trial
            return


@kernel
def inside_bounds(mu, mode, joint_friction, force):
    """Return True if held contacts press, stuck ones inside their cones, joints in their boxes."""
    na = mode.shape[0]
    for i in range(na):
        r = 3 * i
        if mode[i] != OPEN and not force[r + 2] > 0.0:
            return False
        tangential = np.sqrt(force[r] ** 2 + force[r + 1] ** 2)
        if mode[i] == STICK and not tangential <= mu[i] * force[r + 2]:
            return False
    outside = 0
    for k in range(joint_friction.shape[0]):
        outside += abs(force[3 * na + k]) > joint_friction[k]
    return outside == 0
