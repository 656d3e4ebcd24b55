"""Redundant contact forces: of all that hold the modes, some well inside their bounds."""

from __future__ import annotations

import numpy as np

from contact_sim.contact_models.hybrid.mode_elimination import (
    OPEN,
    STICK,
    eliminate_friction,
    factor_in_place,
    held_unknowns,
    refine,
    restore_friction,
)
from contact_sim.solvers.dense import assign
from contact_sim.solvers.jit import kernel

PROXIMAL = 1e-6
"""Share of the diagonal that singles out the least of redundant forces."""
DISTRIBUTIONS = 5
"""Largest number of distributions of redundant forces that are tried."""
PROXIMAL_STEPS = 3


@kernel
def spread_redundant(rows, modes, force):
    """Move redundant forces away from their bounds where others hold the modes as well.

    Pivoting leaves them at their bounds, which they would leave at once. Tried are the forces of
    least norm, Σ G_rr f_r², then those nearest to the ones at hand with the weakest contacts
    lifted. Arguments as in `mode_forces`; `force`: in and out [N], shape (n,).
    """
    unknowns = held_unknowns(modes)
    m, first_interval = unknowns.row.shape[0], 3 * modes.contact.shape[0]
    A, b = np.empty((m, m)), np.empty(m)
    eliminate_friction(rows, modes, unknowns, A, b)
    F, order, scale = A.copy(), np.empty(m, np.int64), np.empty(m)
    for e in range(m):
        scale[e] = rows.delassus[unknowns.row[e], unknowns.row[e]]
    if factor_in_place(F, scale, m, order) == m:
        return
    F[:] = A
    for e in range(m):
        F[e, e] += PROXIMAL * scale[e]
    rank, x, trial = factor_in_place(F, scale, m, order), np.zeros(m), force.copy()
    lift = 0.25 * np.abs(force).max()
    for attempt in range(DISTRIBUTIONS):
        for e in range(m):
            r = unknowns.row[e]
            x[e] = force[r] if attempt > 0 else 0.0
            if attempt > 0 and r < first_interval and r % 3 == 2:
                x[e] = max(x[e], lift)
        lift *= 0.25 if attempt > 0 else 1.0
        for _ in range(PROXIMAL_STEPS):
            refine(A, b, F, order, rank, x)
        restore_friction(rows, modes, unknowns, x, trial)
        if inside_bounds(rows, modes, trial):
            assign(force, trial)
            return


@kernel
def inside_bounds(rows, modes, force):
    """Return True if held contacts press, stuck ones in their cones, intervals in their bounds."""
    na, mu = modes.contact.shape[0], rows.friction
    for i in range(na):
        r = 3 * i
        if modes.contact[i] != OPEN and not force[r + 2] > 0.0:
            return False
        tangential = np.sqrt(force[r] ** 2 + force[r + 1] ** 2)
        if modes.contact[i] == STICK and not tangential <= mu[i] * force[r + 2]:
            return False
    outside = 0
    for k in range(rows.lower.shape[0]):
        x = force[3 * na + k]
        outside += x < rows.lower[k] or x > rows.upper[k]
    return outside == 0
