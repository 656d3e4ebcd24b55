"""Contact modes: which closed contacts open, stick or slip, and the forces that follow.

Everything here is a function of values at one instant, with the `Rows` of the closed contacts,
(t1, t2, n) each, then of the intervals: G = J M⁻¹ Jᵀ, the accelerations of the rows without
contact forces a = J M⁻¹ (τ − nle) + J̇ v in the place of g, and bounds of forces [N, N m].

`select_modes` decides by the contact problem at acceleration level (theory 2.6, 2.7):

    at rest    K*_μ ∋ w + Γ(w) ⊥ f ∈ K_μ                       w = G f + a
    slipping   0 ≤ f_n ⊥ w_n ≥ 0,   f_t = −μ f_n d,  d the direction of the slip
    intervals  w ⊥ [lower, upper] at rest, f at the bound that opposes a row that moves

Friction of slipping contacts is eliminated, which leaves columns G (n − μ d): no longer symmetric,
and with p = n·G (n − μ d) ≤ 0 possibly without solution (Painlevé). A row without bounds is a
bilateral constraint: it is always held.

`mode_forces` then holds the modes: w = 0 for what sticks, w_n = 0 for what slips (theory T8).
"""

from __future__ import annotations

import numpy as np

from contact_sim.contact_models.hybrid.mode_elimination import (
    FORCE,
    NORMAL,
    OPEN,
    SLIP,
    STICK,
    Unknowns,
    eliminate_friction,
    factor_in_place,
    held_unknowns,
    refine,
    restore_friction,
)
from contact_sim.solvers.cone import fill_rho, fill_velocity, row_velocity
from contact_sim.solvers.cone_active_set import newton_on_modes
from contact_sim.solvers.cone_block import block_gauss_seidel
from contact_sim.solvers.cones import solve_cones
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows, cone_work
from contact_sim.solvers.status import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    INCONSISTENT,
    MAX_ITERATIONS,
)

TOLERANCE = 1e-10
ACCEPTED_RESIDUAL = 1e-8
"""Natural map, relative to the largest force, with which a solve that stalls is good enough."""
ROUNDING = 1e-15
"""Natural map, relative to the largest force, from which no more steps are taken."""
MAX_SWEEPS = 400
LIMITS = (50, 50, 1000)
"""Proximal points, sweeps and iterations of ADMM, see `cones.solve_cones`."""
LEAVING_ACCELERATION = 1e-8
"""Acceleration, relative to the largest free one, from which a contact leaves its mode."""
TIGHTENING = 1e-6
"""Share by which the bound of a contact at the end of its mode is tightened."""
REFINEMENTS = 2
ON_THE_CONE = 1.0 - 1e-9


@kernel
def is_bilateral(lower, upper, k):
    """Return True if interval row k has no bounds."""
    return lower[k] == -np.inf and upper[k] == np.inf


@kernel
def is_limit(lower, upper, k):
    """Return True if the force of interval row k has one bound."""
    return (lower[k] == -np.inf) != (upper[k] == np.inf)


@kernel
def slip_direction(u1, u2, d1, d2, frozen):
    """Return the direction of slip: ±u_t on the side of (d1, d2); if frozen, (d1, d2) itself."""
    speed = np.sqrt(u1 * u1 + u2 * u2)
    if frozen == 1 or speed == 0.0:
        return d1, d2
    side = -1.0 if u1 * d1 + u2 * d2 < 0.0 else 1.0
    return side * u1 / speed, side * u2 / speed


@kernel
def mode_forces(rows, modes, reference, force):
    """Fill the forces that hold the modes; return False where they do not exist.

    Redundant forces stay as they are in `reference`.

    Args:
        rows: the equations at this instant, n rows, see above.
        modes: of the contacts and intervals.
        reference: forces to start from [N], shape (n,).
        force: out [N], shape (n,).
    """
    unknowns = held_unknowns(modes)
    row, m, first = unknowns.row, unknowns.row.shape[0], 0
    A, b = np.empty((m, m)), np.empty(m)
    eliminate_friction(rows, modes, unknowns, A, b)
    x, scale = np.empty(m), np.empty(m)
    for e in range(m):
        scale[e], x[e] = rows.delassus[row[e], row[e]], reference[row[e]]
        first += row[e] < 3 * modes.contact.shape[0]
    F, order = A.copy(), np.empty(m, np.int64)
    rank = factor_in_place(F, scale, first, order)
    for _ in range(REFINEMENTS):
        refine(A, b, F, order, rank, x)
    restore_friction(rows, modes, unknowns, x, force)
    return bool(np.isfinite(np.sum(force)))


@kernel
def select_modes(rows, u, stiction_speed, at_end, force, modes, frozen):
    """Choose the modes; return (status code, sweeps, natural map [N]).

    Args:
        rows: the equations at this instant, n rows, see above.
        u: velocities of the rows [m/s, rad/s], shape (n,).
        stiction_speed: speed up to which a row counts as at rest [m/s, rad/s].
        at_end: 1 where a normal force, then 1 where a friction force, then 1 where an interval
            force has reached its bound: these bounds are tightened a little, so that a mode that
            ends does end, shape (2 na + ns,).
        force: guess and answer [N], shape (n,).
        modes: out; the direction of slip also in, where it is frozen.
        frozen: in and out, 1 where the direction of slip is given and kept, shape (na,); out also
            where a slip starts.
    """
    first_interval = 3 * modes.contact.shape[0]
    classify(rows, u, stiction_speed, frozen, modes)
    unknowns, nr = resting_unknowns(modes)
    row, m = unknowns.row, unknowns.row.shape[0]
    A, b, x = np.empty((m, m)), np.empty(m), np.empty(m)
    eliminate_friction(rows, modes, unknowns, A, b)
    sets = Rows(A, b, np.empty(nr), np.zeros(m - 3 * nr), np.empty(m - 3 * nr))
    fill_sets(rows, at_end, unknowns, sets)
    scale = np.abs(b).max() if m else 0.0
    for e in range(m):
        x[e] = force[row[e]]
        if row[e] < first_interval and row[e] % 3 == 2 and at_end[row[e] // 3] == 1:
            b[e] += TIGHTENING * scale
        k = row[e] - first_interval
        if k >= 0 and at_end[2 * frozen.shape[0] + k] == 1 and is_limit(rows.lower, rows.upper, k):
            b[e] += TIGHTENING * scale * (1.0 if rows.upper[k] > 0.0 else -1.0)
    symmetric = 3 * nr == m or unknowns.kind[3 * nr] != NORMAL
    sweeps, residual, converged = solve_sets(sets, x, symmetric)
    if not np.isfinite(residual):
        x[:] = 0.0
    leaves = LEAVING_ACCELERATION * scale
    consistent = read_modes(sets, x, unknowns, leaves, rows.friction, modes, frozen)
    restore_friction(rows, modes, unknowns, x, force)
    if not consistent:
        return INCONSISTENT, sweeps, residual
    enough = residual <= ACCEPTED_RESIDUAL * (np.abs(x).max() if m else 0.0)
    return (CONVERGED if converged or enough else MAX_ITERATIONS), sweeps, residual


@kernel
def solve_sets(sets, x, symmetric):
    """Solve in place; return (iterations, natural map [N], converged)."""
    if symmetric:
        return solve_symmetric_sets(sets, x)
    sweeps, residual, converged = block_gauss_seidel(sets, x, TOLERANCE, MAX_SWEEPS, 0.0)
    if not converged:
        x[:] = 0.0
        again, residual, converged = block_gauss_seidel(sets, x, TOLERANCE, MAX_SWEEPS, 0.0)
        sweeps += again
    return sweeps, residual, converged


@kernel
def solve_symmetric_sets(sets, x):
    """Solve in place where no friction is eliminated; return what `solve_sets` does.

    Sweeps come first: they keep what is redundant in x, where Newton would share the load anew at
    every event. Then to rounding where possible: close to the edge of the cone what is left of a
    pull is small beside the forces, and so is the acceleration that tells the direction of slip.
    """
    work = cone_work(x.shape[0])
    count, residual, converged = block_gauss_seidel(sets, x, TOLERANCE, MAX_SWEEPS, 0.0)
    if not converged:
        code, more, residual = solve_cones(sets, x, work, TOLERANCE, LIMITS, 0.0)
        count, converged = count + more, code in (CONVERGED, CONVERGED_BY_FALLBACK)
    goal = ROUNDING * np.abs(x).max() if x.shape[0] else 0.0
    if residual > goal:
        fill_rho(sets, work.rho)
        fill_velocity(sets, x, work.velocity)
        residual = newton_on_modes(sets, x, work, residual, goal, 0.0, True)
    return count, residual, converged


@kernel
def classify(rows, u, stiction_speed, frozen, modes):
    """Tell rows at rest from rows in motion: SLIP with its direction, or STICK for now."""
    na, mu, direction = rows.friction.shape[0], rows.friction, modes.direction
    for i in range(na):
        speed = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
        modes.contact[i] = SLIP if speed > stiction_speed or mu[i] == 0.0 else STICK
        if frozen[i] == 1:
            continue
        direction[i] = 0.0
        if speed > stiction_speed:
            direction[i, 0], direction[i, 1] = u[3 * i] / speed, u[3 * i + 1] / speed
    for k in range(modes.interval.shape[0]):
        speed = u[3 * na + k]
        touched = is_limit(rows.lower, rows.upper, k) or is_bilateral(rows.lower, rows.upper, k)
        at_rest = touched or abs(speed) <= stiction_speed
        modes.interval[k] = 0 if at_rest else (1 if speed > 0.0 else -1)


@kernel
def resting_unknowns(modes):
    """Return the unknowns of contacts at rest, slipping contacts, intervals at rest.

    Also the number of contacts at rest.
    """
    na, ns, m = modes.contact.shape[0], modes.interval.shape[0], 0
    kind, row = np.empty(3 * na + ns, np.int64), np.empty(3 * na + ns, np.int64)
    for i in range(na):
        if modes.contact[i] == STICK:
            for k in range(3):
                kind[m + k], row[m + k] = FORCE, 3 * i + k
            m += 3
    nr = m // 3
    for i in range(na):
        if modes.contact[i] == SLIP:
            kind[m], row[m] = NORMAL, 3 * i + 2
            m += 1
    for k in range(ns):
        if modes.interval[k] == 0:
            kind[m], row[m] = FORCE, 3 * na + k
            m += 1
    return Unknowns(kind[:m], row[:m]), nr


@kernel
def fill_sets(rows, at_end, unknowns, sets):
    """Fill the cones of the contacts at rest, and the intervals of all other unknowns."""
    mu, kind, row = rows.friction, unknowns.kind, unknowns.row
    na, nr, tighter = mu.shape[0], sets.friction.shape[0], 1.0 - TIGHTENING
    for c in range(nr):
        i = row[3 * c] // 3
        sets.friction[c] = mu[i] * tighter if at_end[na + i] == 1 else mu[i]
    for s in range(sets.lower.shape[0]):
        e = 3 * nr + s
        if kind[e] == NORMAL:  # p ≤ 0: no force along this slip; see read_modes
            pushes = sets.delassus[e, e] > TOLERANCE * rows.delassus[row[e], row[e]]
            sets.lower[s], sets.upper[s] = 0.0, np.inf if pushes else 0.0
        else:
            k = row[e] - 3 * na
            share = tighter if at_end[2 * na + k] == 1 else 1.0
            sets.lower[s], sets.upper[s] = share * rows.lower[k], share * rows.upper[k]


@kernel
def read_modes(sets, x, unknowns, leaves, mu, modes, frozen):
    """Read the modes off the answer `x`; return False where a contact can find no force.

    Args:
        sets: the problem that x answers.
        x: forces of the unknowns [N], shape (m,).
        unknowns: m of them.
        leaves: acceleration from which a row leaves its mode [m/s²].
        mu: friction coefficients of all contacts [-], shape (na,).
        modes: out.
        frozen: out, 1 where a slip starts, shape (na,).
    """
    A, b, row, direction = sets.delassus, sets.g, unknowns.row, modes.direction
    na, nr, consistent = mu.shape[0], sets.friction.shape[0], True
    for c in range(nr):
        e = 3 * c
        i = row[e] // 3
        w1, w2 = row_velocity(A, b, x, e), row_velocity(A, b, x, e + 1)
        size, friction = np.sqrt(w1 * w1 + w2 * w2), np.sqrt(x[e] ** 2 + x[e + 1] ** 2)
        if x[e + 2] <= 0.0 and row_velocity(A, b, x, e + 2) > leaves:
            modes.contact[i] = OPEN
        elif size > leaves and friction >= ON_THE_CONE * (1.0 - TIGHTENING) * mu[i] * x[e + 2]:
            modes.contact[i] = SLIP
            direction[i, 0], direction[i, 1], frozen[i] = w1 / size, w2 / size, 1
    for e in range(3 * nr, row.shape[0]):
        w, s = row_velocity(A, b, x, e), e - 3 * nr
        if unknowns.kind[e] == NORMAL:
            if x[e] <= 0.0 and w > leaves:
                modes.contact[row[e] // 3] = OPEN
            elif sets.upper[s] == 0.0 and w < -leaves:
                consistent = False
        elif x[e] >= sets.upper[s] and w < -leaves:
            modes.interval[row[e] - 3 * na] = -1
        elif x[e] <= sets.lower[s] and w > leaves:
            modes.interval[row[e] - 3 * na] = 1
    return consistent
