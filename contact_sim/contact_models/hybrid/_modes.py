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

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers._cone_methods import active_set_newton, block_gauss_seidel
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    INCONSISTENT,
    MAX_ITERATIONS,
    Rows,
    cone_work,
    fill_rho,
    fill_velocity,
    fill_velocity_symmetric,
    row_velocity,
)
from contact_sim.solvers._cone_solver import solve_cones
from contact_sim.solvers._dense import assign, solve_eliminated, solve_symmetric
from contact_sim.solvers._jit import kernel

OPEN, STICK, SLIP = 0, 1, 2
FORCE, NORMAL = 0, 1  # kinds of unknowns
AWAY = 2  # mode of a limit that is not touched; 0 and ±1 are those of the other interval rows
SMALLEST_PIVOT = 1e-7
REGULAR_PIVOT = 1e-5  # pivot in any order, over the diagonal, from which no row is redundant
TOLERANCE, MAX_SWEEPS = 1e-10, 400
LIMITS = (50, 50, 1000)  # proximal points, sweeps and iterations of ADMM, see `solve_cones`
ACCEPTED_RESIDUAL = 1e-8
"""Natural map, relative to the largest force, with which a solve that stalls is good enough."""
ROUNDING = 1e-15  # natural map, relative to the largest force, from which no more steps are taken
LEAVING_ACCELERATION = 1e-8
"""Acceleration, relative to the largest free one, from which a contact leaves its mode."""
TIGHTENING = 1e-6  # share by which the bound of a contact at the end of its mode is tightened
REFINEMENTS, SMALL_CHANGE = 2, 0.1
"""Steps of refinement; change of the forces by a step, relative to them, after which none follows:
what it leaves is rounding [-]."""
ON_THE_CONE = 1.0 - 1e-9
PROXIMAL = 1e-6  # share of the diagonal that singles out the least of redundant forces
PROXIMAL_STEPS = 3
DISTRIBUTIONS = 5  # largest number of distributions of redundant forces that are tried


class Modes(NamedTuple):
    """Modes of the closed contacts and of the interval rows."""

    contact: Any  # OPEN, STICK or SLIP, integers, shape (na,)
    direction: Any  # direction of slip, shape (na, 2)
    interval: Any  # 0 held, ±1 direction in which the row moves, integers, shape (ns,)


class Unknowns(NamedTuple):
    """The unknown forces, m of them."""

    kind: Any  # FORCE or NORMAL, integers, shape (m,)
    row: Any  # row of each; of a slipping contact the normal row, integers, shape (m,)


# --- The choice of the modes.


@kernel
def select_modes(rows, u, stiction_speed, at_end, force, modes, frozen):
    """Choose the modes; return (status code, sweeps, natural map [N]).

    Rows that move faster than `stiction_speed` slip. `at_end` is 1 where a normal, friction or
    interval force has reached its bound, (2 na + ns,): such a bound is tightened a little, so that
    a mode that ends does end. `force` (n,) is guess and answer. `frozen` (na,) is 1 where the
    direction of slip in `modes` is kept; out also where a slip starts.
    """
    # the contact problem at acceleration level, in the unknowns of the rows at rest and in motion
    first_interval = 3 * modes.contact.shape[0]
    classify(rows, u, stiction_speed, frozen, modes)
    unknowns, nr = unknown_forces(modes, True), 0
    for i in range(modes.contact.shape[0]):
        nr += modes.contact[i] == STICK
    row, m = unknowns.row, unknowns.row.shape[0]
    A, b, x = np.empty((m, m)), np.empty(m), np.empty(m)
    eliminate_friction(rows, modes, unknowns, A, b)
    sets = Rows(A, b, np.empty(nr), np.zeros(m - 3 * nr), np.empty(m - 3 * nr))
    fill_sets(rows, at_end, unknowns, sets)
    # guess; a force at the end of its mode gets a bound a little tighter, so that it lets go
    scale = np.abs(b).max() if m else 0.0
    for e in range(m):
        x[e] = force[row[e]]
        if row[e] < first_interval and row[e] % 3 == 2 and at_end[row[e] // 3] == 1:
            b[e] += TIGHTENING * scale
        k = row[e] - first_interval
        if k >= 0 and at_end[2 * frozen.shape[0] + k] == 1 and is_limit(rows.lower, rows.upper, k):
            b[e] += TIGHTENING * scale * (1.0 if rows.upper[k] > 0.0 else -1.0)
    # without eliminated friction A is symmetric: the cone solvers apply
    symmetric = 3 * nr == m or unknowns.kind[3 * nr] != NORMAL
    if symmetric:
        sweeps, residual, converged = solve_symmetric_sets(sets, x)
    else:
        sweeps, residual, converged = block_gauss_seidel(sets, x, TOLERANCE, MAX_SWEEPS, 0.0)
        if not converged:
            x[:] = 0.0
            again, residual, converged = block_gauss_seidel(sets, x, TOLERANCE, MAX_SWEEPS, 0.0)
            sweeps += again
    if not np.isfinite(residual):
        x[:] = 0.0
    # modes from the sign of forces and accelerations, then the forces of all rows
    leaves = LEAVING_ACCELERATION * scale
    consistent = read_modes(sets, x, unknowns, leaves, rows.friction, modes, frozen)
    restore_friction(rows, modes, unknowns, x, force)
    if not consistent:
        return INCONSISTENT, sweeps, residual
    enough = residual <= ACCEPTED_RESIDUAL * (np.abs(x).max() if m else 0.0)
    return (CONVERGED if converged or enough else MAX_ITERATIONS), sweeps, residual


@kernel
def classify(rows, u, stiction_speed, frozen, modes):
    """Divide the contacts: SLIP with its direction where they move, STICK where they are at rest.

    Interval rows are at rest: those that move are none of the unknowns.
    """
    na, mu, direction = rows.friction.shape[0], rows.friction, modes.direction
    for i in range(na):
        speed = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
        modes.contact[i] = SLIP if speed > stiction_speed or mu[i] == 0.0 else STICK
        if frozen[i] == 1:
            continue
        direction[i] = 0.0
        if speed > stiction_speed:
            direction[i, 0], direction[i, 1] = u[3 * i] / speed, u[3 * i + 1] / speed
    modes.interval[:] = 0


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
            impulse_sign = sets.delassus[e, e] > TOLERANCE * rows.delassus[row[e], row[e]]
            sets.lower[s], sets.upper[s] = 0.0, np.inf if impulse_sign else 0.0
        else:
            k = row[e] - 3 * na
            share = tighter if at_end[2 * na + k] == 1 else 1.0
            sets.lower[s], sets.upper[s] = share * rows.lower[k], share * rows.upper[k]


@kernel
def solve_symmetric_sets(sets, x):
    """Solve in place without eliminated friction; return (iterations, natural map [N], converged).

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
        residual = active_set_newton(sets, x, work, residual, goal, 0.0, True)
    return count, residual, converged


@kernel
def read_modes(sets, x, unknowns, leaves, mu, modes, frozen):
    """Read the modes off the answer `x` (m,); return False where a contact can find no force.

    `leaves` is the acceleration from which a row leaves its mode [m/s²].
    """
    A, b, row, direction = sets.delassus, sets.g, unknowns.row, modes.direction
    na, nr, consistent = mu.shape[0], sets.friction.shape[0], True
    for c in range(nr):
        e = 3 * c
        i = row[e] // 3
        w1, w2 = row_velocity(A, b, x, e), row_velocity(A, b, x, e + 1)
        size, friction = np.sqrt(w1 * w1 + w2 * w2), np.sqrt(x[e] ** 2 + x[e + 1] ** 2)
        # no force and the contact accelerates away: it opens
        if x[e + 2] <= 0.0 and row_velocity(A, b, x, e + 2) > leaves:
            modes.contact[i] = OPEN
        # force on the cone and acceleration along the ground: it starts to slip
        elif size > leaves and friction >= ON_THE_CONE * (1.0 - TIGHTENING) * mu[i] * x[e + 2]:
            modes.contact[i] = SLIP
            direction[i, 0], direction[i, 1], frozen[i] = w1 / size, w2 / size, 1
    for e in range(3 * nr, row.shape[0]):
        w, s = row_velocity(A, b, x, e), e - 3 * nr
        if unknowns.kind[e] == NORMAL:
            if x[e] <= 0.0 and w > leaves:
                modes.contact[row[e] // 3] = OPEN
            # p ≤ 0 allows no force, yet the contact accelerates into the ground: Painlevé
            elif sets.upper[s] == 0.0 and w < -leaves:
                consistent = False
        elif x[e] >= sets.upper[s] and w < -leaves:
            modes.interval[row[e] - 3 * na] = -1
        elif x[e] <= sets.lower[s] and w > leaves:
            modes.interval[row[e] - 3 * na] = 1
    return consistent


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


# --- The forces that hold the modes.


@kernel
def mode_forces(rows, modes, reference, dofs, force, scratch, refinements):
    """Fill the forces (n,) that hold the modes; return False where they do not exist.

    Redundant forces stay as they are in `reference` (n,); more rows than `dofs` are redundant.
    `scratch`: a matrix (n, n) and a vector (n,); `refinements`: steps, the first one is the solve.
    """
    regular = reference.shape[0] <= dofs and none_moves(modes)
    if regular and held_forces(rows, reference, force, scratch, refinements):
        return bool(np.isfinite(np.sum(force)))
    unknowns = unknown_forces(modes, False)
    row, m, first = unknowns.row, unknowns.row.shape[0], 0
    A, b = np.empty((m, m)), np.empty(m)
    eliminate_friction(rows, modes, unknowns, A, b)
    x, scale = np.empty(m), np.empty(m)
    for e in range(m):
        scale[e], x[e] = rows.delassus[row[e], row[e]], reference[row[e]]
        first += row[e] < 3 * modes.contact.shape[0]
    # A x + b = 0 by refinement from `reference`: what is redundant stays as it is there
    F, order = A.copy(), np.empty(m, np.int64)
    rank = factor_in_place(F, scale, first, order)
    for _ in range(refinements):
        refine(A, b, F, order, rank, x)
    restore_friction(rows, modes, unknowns, x, force)
    return bool(np.isfinite(np.sum(force)))


@kernel
def none_moves(modes):
    """Return True if all contacts stick and all intervals are held."""
    moving = 0
    for mode in modes.contact:
        moving += mode != STICK
    for mode in modes.interval:
        moving += mode != 0
    return moving == 0


@kernel
def held_forces(rows, reference, force, scratch, refinements):
    """Fill the forces (n,) with G f + a = 0; return False if G is close to singular."""
    # refinement from `reference`, as in `mode_forces`, with G = L D Lᵀ
    G, n = rows.delassus, reference.shape[0]
    F, step = scratch[0], scratch[1][:n]
    for r in range(n):
        assign(F[r], G[r])
    assign(force, reference)
    for refinement in range(refinements):
        fill_velocity_symmetric(rows, force, step)
        if refinement == 0:
            solve_symmetric(F, step, n)
            for r in range(n):  # 1 / D is on the diagonal
                if not 0.0 < F[r, r] * G[r, r] * REGULAR_PIVOT < 1.0:
                    return False
        else:
            solve_eliminated(F, step, n)
        largest = change = 0.0
        for r in range(n):
            force[r] -= step[r]
            largest, change = max(largest, abs(force[r])), max(change, abs(step[r]))
        if change <= SMALL_CHANGE * largest:  # which left no error but rounding
            break
    return True


# --- Redundant contact forces: of all that hold the modes, some well inside their bounds.


@kernel
def spread_redundant(rows, modes, force):
    """Move redundant forces away from their bounds where others hold the modes as well."""
    # pivoting leaves them at their bounds, which they would leave at once; tried are the forces of
    # least norm, Σ G_rr f_r², then those nearest to the ones at hand with the weakest lifted
    unknowns = unknown_forces(modes, False)
    m, first_interval = unknowns.row.shape[0], 3 * modes.contact.shape[0]
    A, b = np.empty((m, m)), np.empty(m)
    eliminate_friction(rows, modes, unknowns, A, b)
    # full rank: the forces are unique
    F, order, scale = A.copy(), np.empty(m, np.int64), np.empty(m)
    for e in range(m):
        scale[e] = rows.delassus[unknowns.row[e], unknowns.row[e]]
    if factor_in_place(F, scale, m, order) == m:
        return
    # proximal steps with A + 1e-6 diag(G): the solution nearest to x
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
        # first from zero (least norm), then from the present forces with weak contacts lifted
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


# --- The unknowns of contacts whose modes are known: friction of what slips is eliminated.
#
# An unknown is the force in one row, or (kind NORMAL) the normal force of a slipping contact,
# which carries its friction −μ f_n d with it. The force of an interval row that moves is at its
# bound.


@kernel
def unknown_forces(modes, sticking_first):
    """Return the unknown forces of held contacts, then of held interval rows.

    With `sticking_first` the contacts that stick come before those that slip.
    """
    na, ns, m = modes.contact.shape[0], modes.interval.shape[0], 0
    kind, row = np.empty(3 * na + ns, np.int64), np.empty(3 * na + ns, np.int64)
    for turn in range(2 if sticking_first else 1):
        for i in range(na):
            if modes.contact[i] == SLIP and (turn == 1 or not sticking_first):
                kind[m], row[m] = NORMAL, 3 * i + 2
                m += 1
            elif modes.contact[i] == STICK and turn == 0:
                for k in range(3):
                    kind[m + k], row[m + k] = FORCE, 3 * i + k
                m += 3
    for k in range(ns):
        if modes.interval[k] == 0:
            kind[m], row[m] = FORCE, 3 * na + k
            m += 1
    return Unknowns(kind[:m], row[:m])


@kernel
def bound_force(lower, upper, modes, k):
    """Return the force of interval row k that moves: the bound that opposes it; 0 if held."""
    if modes.interval[k] == 0:
        return 0.0
    return lower[k] if modes.interval[k] > 0 else upper[k]


@kernel
def eliminate_friction(rows, modes, unknowns, A, b):
    """Fill A (m, m) and b (m,) with w = A x + b for the unknowns x."""
    G, a, mu, direction = rows.delassus, rows.g, rows.friction, modes.direction
    na, row, kind = mu.shape[0], unknowns.row, unknowns.kind
    for e in range(row.shape[0]):
        r = row[e]
        b[e] = a[r]
        # b = a + G f of interval rows that move, whose force is known
        for k in range(modes.interval.shape[0]):
            if modes.interval[k] != 0:
                b[e] += G[r, 3 * na + k] * bound_force(rows.lower, rows.upper, modes, k)
        for c in range(row.shape[0]):
            s = row[c]
            # column of a slipping contact: G (n − μ d)
            A[e, c] = G[r, s]
            if kind[c] == NORMAL:
                i = s // 3
                A[e, c] -= mu[i] * (direction[i, 0] * G[r, s - 2] + direction[i, 1] * G[r, s - 1])


@kernel
def restore_friction(rows, modes, unknowns, x, force):
    """Fill all forces (n,) from the unknowns `x` (m,): friction of what slips follows."""
    ns, mu, direction = modes.interval.shape[0], rows.friction, modes.direction
    first = force.shape[0] - ns
    force[:] = 0.0
    for k in range(ns):
        force[first + k] = bound_force(rows.lower, rows.upper, modes, k)
    for e in range(x.shape[0]):
        r = unknowns.row[e]
        force[r] = x[e]
        if unknowns.kind[e] == NORMAL:
            i = r // 3
            force[r - 2] = -mu[i] * x[e] * direction[i, 0]
            force[r - 1] = -mu[i] * x[e] * direction[i, 1]


# --- LU factors of matrices that need not be symmetric nor regular.


@kernel
def factor_in_place(F, scale, first, order):
    """Overwrite `F` (m, m) with LU factors of its independent rows; return their number.

    Pivots lie on the diagonal: of the first `first` rows the largest, then of the others. Rows and
    columns are moved to where they are eliminated: F[i, j] belongs to the unknowns order[i] and
    order[j]. Rows that depend on the ones before them, to SMALLEST_PIVOT of `scale` (m,), are left
    out: redundant feet, a joint that cannot turn because the feet stand still.
    """
    m, begin, end = order.shape[0], 0, first
    for i in range(m):
        order[i] = i
    for k in range(m):
        best = largest_pivot(F, scale, order, k, begin, end)
        if best < 0:
            begin, end = first, m
            best = largest_pivot(F, scale, order, k, begin, end)
            if best < 0:
                return k
        if best != k:
            for j in range(m):
                F[k, j], F[best, j] = F[best, j], F[k, j]
            for j in range(m):
                F[j, k], F[j, best] = F[j, best], F[j, k]
            order[k], order[best] = order[best], order[k]
        eliminate_unknown(F, k, m)
    return m


@kernel
def eliminate_unknown(F, k, m):
    """Subtract row k from the rows below it in `F` (m, m), four at a time."""
    inverse, done = 1.0 / F[k, k], k + 1
    for i in range(k + 1, m - 3, 4):
        a, b, c, d = F[i, k], F[i + 1, k], F[i + 2, k], F[i + 3, k]
        a, b, c, d = inverse * a, inverse * b, inverse * c, inverse * d
        F[i, k], F[i + 1, k], F[i + 2, k], F[i + 3, k] = a, b, c, d
        for j in range(k + 1, m):
            x = F[k, j]
            F[i, j] -= a * x
            F[i + 1, j] -= b * x
            F[i + 2, j] -= c * x
            F[i + 3, j] -= d * x
        done = i + 4
    for i in range(done, m):
        a = inverse * F[i, k]
        F[i, k] = a
        for j in range(k + 1, m):
            F[i, j] -= a * F[k, j]


@kernel
def largest_pivot(F, scale, order, k, begin, end):
    """Return where, from k on, an unknown in [begin, end) has the largest pivot; −1: none has."""
    best, largest = -1, SMALLEST_PIVOT
    for i in range(k, order.shape[0]):
        e = order[i]
        if begin <= e < end and abs(F[i, i]) > largest * scale[e]:
            best, largest = i, abs(F[i, i]) / scale[e]
    return best


@kernel
def solve_factored(F, order, rank, x):
    """Overwrite `x` (m,) with the solution in the independent rows; zero in the others."""
    y = np.empty(rank)
    for i in range(rank):
        y[i] = x[order[i]]
    for k in range(rank):
        for i in range(k + 1, rank):
            y[i] -= F[i, k] * y[k]
    x[:] = 0.0
    for k in range(rank - 1, -1, -1):
        y[k] /= F[k, k]
        x[order[k]] = y[k]
        for i in range(k):
            y[i] -= F[i, k] * y[k]


@kernel
def refine(A, b, F, order, rank, x):
    """Move the unknowns `x` (m,) by one solve with the factored F towards A x + b = 0."""
    m = x.shape[0]
    step = np.empty(m)
    for e in range(m):
        step[e] = -b[e]
    for c in range(m):
        for e in range(m):
            step[e] -= A[e, c] * x[c]
    solve_factored(F, order, rank, step)
    for e in range(m):
        x[e] += step[e]
