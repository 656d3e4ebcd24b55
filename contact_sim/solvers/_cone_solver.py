"""Contact with friction cones and intervals: a cascade of solvers, the fastest first.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

per contact and w ⊥ [lower, upper] per scalar row; κ = 0: Signorini and Coulomb, κ = 1: the minimum
of ½ λᵀ G λ + gᵀ λ. The natural map decides after every stage whether the next one is needed:

1. the guess, as it is, where it solves the problem to rounding
2. active-set Newton in the modes of the guess (it and stage 6: _cone_methods.py)
3. rows that violate their mode are updated alone, then Newton again
4. proximal points with Gauss-Seidel sweeps in between, from several starts
5. a fixed point of convex problems over De Saxcé's shift, in turn with 4
6. block Gauss-Seidel, then ADMM

Stages 1 to 3 do not allocate, nor does the first part of 4. The rest, which few steps need, is
compiled when one first does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types

from contact_sim.solvers._cone_methods import (
    NEWTON_GOAL,
    SLIP_SHARE,
    active_set_newton,
    active_set_residual,
    admm,
    block_gauss_seidel,
    frozen_contact,
    newton_step,
    solve_contact,
    sweep,
)
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    INCONSISTENT,
    MAX_ITERATIONS,
    NONFINITE,
    Rows,
    cone_work,
    fill_rho,
    fill_velocity_symmetric,
    impulse_scale_at,
    natural_map_at,
)
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import call_with_rows, kernel, on_demand
from contact_sim.solvers._soft_newton import (
    COARSE,
    linear_law,
    minimise,
    minimise_linear,
    newton_work,
)

MAX_PROXIMAL_POINTS = 15  # proximal points before the fixed point is tried


@kernel
def solve_cones(rows, impulse, work, tolerance, limits, associated):
    """Solve in place; return (status code, iterations, natural map [N s]).

    Args:
        rows: the problem, n rows; G symmetric and positive semidefinite.
        impulse: the guess and the answer [N s], shape (n,).
        work: scratch for n rows or more, see `cone_work`.
        tolerance: on the natural map, relative to the largest impulse [-].
        limits: largest numbers of proximal points, of Gauss-Seidel sweeps and of iterations of
            ADMM, 0: none [-].
        associated: κ, 0.0 or 1.0.
    """
    # stages 1 to 3
    releases, residual, converged = solve_active_set(rows, impulse, work, tolerance, associated)
    if converged:
        for r in range(0, 3 * rows.friction.shape[0], 3):
            if impulse[r + 2] < 0.0:  # by rounding
                impulse[r] = impulse[r + 1] = impulse[r + 2] = 0.0
        return CONVERGED, releases, residual
    # first part of stage 4: sweeps and Newton, which are enough for contacts that just closed
    if limits[0] > 0:
        for r in range(rows.g.shape[0]):
            work.best[r] = impulse[r]
        residual, goal = sweep_and_polish(rows, work.best, work, tolerance, associated)
        if residual <= goal:
            assign(impulse, work.best)
            return CONVERGED, releases, residual
    # the rest of stage 4, 5 and 6
    numbers = np.empty(NUMBERS_OF_REST)
    numbers[0], numbers[1] = tolerance, associated
    numbers[2], numbers[3], numbers[4] = limits
    numbers[5], numbers[6], numbers[7] = NONFINITE, 0.0, np.inf  # where it does not compile
    call_with_rows(address_of_rest(), rows, impulse, numbers)
    return int(numbers[5]), releases + int(numbers[6]), numbers[7]


NUMBERS_OF_REST = 8
REALS = types.CPointer(types.double)


@on_demand(types.void(types.intp, types.intp, *7 * [REALS]))
def solve_rest(
    n: Any, nc: Any, delassus: Any, g: Any, friction: Any, lower: Any, upper: Any, impulse: Any,
    numbers: Any,
) -> None:  # fmt: skip
    """Run the stages 4 to 6 on arrays by their addresses.

    `numbers`: in tolerance, κ and the limits of `solve_cones`; out status code, iterations and
    natural map [N s].
    """
    ns = n - 3 * nc
    rows = Rows(
        carray(delassus, (n, n)), carray(g, n), carray(friction, nc), carray(lower, ns),
        carray(upper, ns),
    )  # fmt: skip
    values = carray(numbers, NUMBERS_OF_REST)
    limits = int(values[2]), int(values[3]), int(values[4])
    values[5], values[6], values[7] = run_rest(
        rows, carray(impulse, n), cone_work(n), values[0], limits, values[1]
    )


address_of_rest = solve_rest.current_address


@kernel
def run_rest(rows, impulse, work, tolerance, limits, associated):
    """Run the stages 4 to 6; return (status code, iterations, natural map [N s])."""
    max_points, max_sweeps, max_admm_iterations = limits
    points = 0
    # stages 4 and 5
    if max_points > 0:
        points, residual, code = solve_redundant(
            rows, impulse, work, tolerance, max_points, associated
        )
        if code in (CONVERGED, INCONSISTENT):
            return code, points, residual
    # stage 6: Gauss-Seidel, then ADMM; the better of both is kept
    sweeps, residual, converged = block_gauss_seidel(
        rows, impulse, tolerance, max_sweeps, associated
    )
    sweeps += points
    if converged:
        return CONVERGED, sweeps, residual
    n, best = rows.g.shape[0], work.best
    if not np.isfinite(residual):
        for r in range(n):
            impulse[r] = 0.0
        return NONFINITE, sweeps, residual
    if max_admm_iterations == 0:
        return MAX_ITERATIONS, sweeps, residual
    for r in range(n):
        best[r] = impulse[r]
    iterations, admm_residual, converged = admm(
        rows, impulse, tolerance, max_admm_iterations, associated
    )
    if converged:
        return CONVERGED_BY_FALLBACK, sweeps + iterations, admm_residual
    if not admm_residual < residual:
        assign(impulse, best)
    return MAX_ITERATIONS, sweeps + iterations, min(residual, admm_residual)


@kernel
def solve_redundant(rows, impulse, work, tolerance, max_points, associated):
    """Run the stages 4 and 5; return (iterations, natural map [N s], status code)."""
    # the start matters; proximal points come first, because they need few iterations
    limit = min(max_points, MAX_PROXIMAL_POINTS)
    count, residual, code = proximal_points(rows, impulse, work, tolerance, limit, associated)
    for attempt in range(4):
        if code in (CONVERGED, NONFINITE) or (code == INCONSISTENT and associated == 1.0):
            break
        # attempts: points from zero; fixed point as it is; fixed point from zero; points from one
        # large impulse in every row: from there sweeps converge where friction wedges
        start = 0.0
        if attempt == 3:
            for r in range(rows.g.shape[0]):
                start = max(start, abs(rows.g[r]) / rows.delassus[r, r])
        if attempt != 1:
            for r in range(rows.g.shape[0]):
                impulse[r] = start
        if attempt in (0, 3):
            points, residual, code = proximal_points(
                rows, impulse, work, tolerance, limit, associated
            )
        else:
            points, residual, code = slip_fixed_point(
                rows, impulse, work, tolerance, max_points, associated
            )
        count += points
    return count, residual, code


# Stages 1 to 3: active-set Newton from the guess.

EXACT = 1e-4
"""Share of the tolerance within which a guess is kept. One that is worse is improved, for what a
step leaves is found again in the next one (contact_models/_kept_impulses.py)."""
MAX_RELEASES = 4
MODE_SOLVED_SHARE = 0.1
"""Residual of the mode equations over the natural map, below which rows are released [-]."""


@kernel
def solve_active_set(rows, impulse, work, tolerance, associated):
    """Run stages 1 to 3 or keep the guess; return (releases, natural map [N s], converged)."""
    rho, w, guess = work.rho, work.velocity, work.best
    # stage 1: the guess
    fill_rho(rows, rho)
    fill_velocity_symmetric(rows, impulse, w)
    first = natural_map_at(rows, impulse, w, rho, associated)
    if first <= EXACT * tolerance * impulse_scale_at(rows, impulse, rho):
        return 0, first, True
    n, releases, before, known = rows.g.shape[0], 0, np.inf, False
    careful, rest = False, np.inf
    for r in range(n):
        guess[r] = impulse[r]
        known = known or impulse[r] != 0.0
    if not known:  # no modes to start from
        return 0, first, False
    for _ in range(2 * n):
        # stage 2: Newton step in the present modes
        share, m = newton_step(rows, impulse, w, work, associated, True, careful)
        if share < 1.0 and not careful:  # impulses left their sets: once more, weighed
            careful = True
            assign(impulse, guess)
            continue
        if share >= 0.0:
            fill_velocity_symmetric(rows, impulse, w)
            if share < 1.0:
                rest = np.inf
                continue
            # the full step was taken: acceptance
            residual = natural_map_at(rows, impulse, w, rho, associated)
            goal = tolerance * impulse_scale_at(rows, impulse, rho)
            if residual <= goal:
                if residual > NEWTON_GOAL * goal:
                    residual = active_set_newton(
                        rows, impulse, work, residual, NEWTON_GOAL * goal, associated, True
                    )
                return releases, residual, True
            careful = True
            last, rest = rest, active_set_residual(rows, impulse, w, work, m, associated)
            if MODE_SOLVED_SHARE * residual < rest < 0.5 * last:
                continue  # the modes are not solved yet, so their violations are not known
        # stage 3: the modes are solved, but wrong; release rows, or stop where nothing helps
        rest = np.inf
        if release_rows(rows, impulse, w, associated) > 0:
            if releases == MAX_RELEASES:
                break
            releases, before = releases + 1, np.inf
            fill_velocity_symmetric(rows, impulse, w)
        elif share < 0.0 or not residual < 0.5 * before:
            break
        else:
            before = residual
    assign(impulse, guess)
    return releases, first, False


@kernel
def release_rows(rows, impulse, w, associated):
    """Update rows that violate their modes, each with the others frozen; return how many."""
    # contacts in the wrong mode, and scalar rows whose velocity leads off their bound
    changed, mu, lower, upper = 0, rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        if violates_mode(impulse, w, r, mu[i], associated):
            contact = frozen_contact(rows, i, impulse, (w[r], w[r + 1], w[r + 2]), associated)
            t1, t2, n = solve_contact(contact, impulse[r], impulse[r + 1])
            if t1 != impulse[r] or t2 != impulse[r + 1] or n != impulse[r + 2]:
                impulse[r], impulse[r + 1], impulse[r + 2] = t1, t2, n
                changed += 1
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if not lower[k] < impulse[r] < upper[k]:
            new = impulse[r] - w[r] / rows.delassus[r, r]
            new = min(max(new, lower[k]), upper[k])
            if new != impulse[r]:
                impulse[r] = new
                changed += 1
    return changed


@kernel
def violates_mode(impulse, w, r, mu, associated):
    """Return True where an open contact approaches, or friction drives the slip of another."""
    w1, w2, wn = w[r], w[r + 1], w[r + 2]
    if impulse[r + 2] <= 0.0:
        return wn < associated * mu * np.sqrt(w1 * w1 + w2 * w2)
    t1, t2, radius = impulse[r], impulse[r + 1], SLIP_SHARE * mu * impulse[r + 2]
    return mu > 0.0 and t1 * t1 + t2 * t2 >= radius * radius and t1 * w1 + t2 * w2 > 0.0


# Stage 4, proximal points:
#
#     λ' = Proj_K(λ − R⁻¹ (G λ' + g + (1 − κ) Γ)),   R = ε / ρ
#
# Each point is the minimum of a strictly convex function, found by Newton with line search
# (_soft_newton.py), however many rows are redundant. R is compensated through λ: a fixed point is
# one of the problem without compliance, redundant impulses stay where they are, and ε may decrease
# from point to point. Γ = (0, 0, μ |w_t|) is that of λ (De Saxcé), so that at a fixed point
# Coulomb and Signorini hold. Gauss-Seidel sweeps in between update Γ contact by contact, and
# active-set Newton ends the iteration once the modes are right.

FIRST_SOFTNESS, LAST_SOFTNESS, HARDENING = 1e-2, 1e-13, 0.1
"""ε of the first point, of the last, and what it is multiplied by from one to the next [-]."""
SWEEPS = 3  # Gauss-Seidel sweeps before each point
NEWTON_STEPS, NEWTON_TOLERANCE = 15, 1e-8
DIVERGENCE_RATIO = 1e8  # impulses over those of single rows, above which they diverge [-]
GROWTH_RATIO = 2.0  # impulses over those of the guess, below which they do not diverge [-]


@kernel
def proximal_points(rows, impulse, work, tolerance, max_points, associated):
    """Improve `impulse`; return (points, natural map [N s], status code); see `solve_cones`."""
    n, best, softness, code = rows.g.shape[0], np.inf, FIRST_SOFTNESS, MAX_ITERATIONS
    R, v_hat, x, soft = np.empty(n), np.empty(n), np.empty(n), newton_work(n)
    guess = impulse.copy()
    rho, w, shift = work.rho, work.velocity, np.empty(rows.friction.shape[0])
    assign(x, impulse)
    fill_rho(rows, rho)
    for count in range(max_points + 1):
        residual, goal = sweep_and_polish(rows, x, work, tolerance, associated)
        # acceptance
        if residual < best:
            best = residual
            assign(impulse, x)
        if residual <= goal:
            return count, residual, CONVERGED
        if not np.isfinite(residual):
            return count, residual, NONFINITE
        if diverges(rows, x, rho, guess):
            code = INCONSISTENT
            break
        # next proximal point, harder than the one before
        fill_velocity_symmetric(rows, x, w)
        fill_shift(rows, w, associated, shift)
        fill_compliance(rows, x, shift, rho, softness, R, v_hat)
        law = linear_law(v_hat, R, False)
        minimise(rows, law, x, soft, NEWTON_TOLERANCE, NEWTON_STEPS, COARSE)
        softness = max(HARDENING * softness, LAST_SOFTNESS)
    return max_points, best, code


@kernel
def sweep_and_polish(rows, impulse, work, tolerance, associated):
    """Take Gauss-Seidel sweeps, then active-set Newton; return (natural map, its goal) [N s].

    `work.rho` holds the step lengths.
    """
    for _ in range(SWEEPS):
        sweep(rows, impulse, associated)
    fill_velocity_symmetric(rows, impulse, work.velocity)
    residual = natural_map_at(rows, impulse, work.velocity, work.rho, associated)
    goal = tolerance * impulse_scale_at(rows, impulse, work.rho)
    if residual > NEWTON_GOAL * goal:  # the error that sweeps leave depends on their order
        residual = active_set_newton(
            rows, impulse, work, residual, NEWTON_GOAL * goal, associated, False
        )
        goal = tolerance * impulse_scale_at(rows, impulse, work.rho)
    return residual, goal


@kernel
def diverges(rows, impulse, rho, guess):
    """Return whether impulses grow without end: no impulse can cancel g."""
    # they must also exceed the guess, which need not fit g: with g = 0 any guess is too large
    single = largest = initial = 0.0
    for r in range(rows.g.shape[0]):
        single = max(single, abs(rows.g[r]) * rho[r])
        largest = max(largest, abs(impulse[r]))
        initial = max(initial, abs(guess[r]))
    return largest > DIVERGENCE_RATIO * single and largest > GROWTH_RATIO * initial


@kernel
def fill_shift(rows, w, associated, shift):
    """Fill De Saxcé's shift (1 − κ) μ |w_t| of every contact [m/s], shape (nc,)."""
    mu = rows.friction
    for i in range(mu.shape[0]):
        w1, w2 = w[3 * i], w[3 * i + 1]
        shift[i] = (1.0 - associated) * mu[i] * np.sqrt(w1 * w1 + w2 * w2)


@kernel
def fill_compliance(rows, impulse, shift, rho, softness, R, v_hat):
    """Fill R = ε / ρ and v̂ = R λ − s, with the shift s in the normal rows."""
    for r in range(rows.g.shape[0]):
        R[r] = softness / rho[r]
        v_hat[r] = R[r] * impulse[r]
    for i in range(shift.shape[0]):
        v_hat[3 * i + 2] -= shift[i]


# Stage 5, Coulomb's law as a fixed point of convex problems. For a fixed shift s_i = μ_i |w_t,i|
# (De Saxcé) contact is a convex problem with a unique velocity w(s); where s = μ |w_t(s)| it obeys
# Signorini and Coulomb. Each w(s) is found with proximal points, and s with Anderson's
# acceleration: of the last shifts and their defects r = μ |w_t(s)| − s, the combination with the
# smallest defect. Where modes change from one shift to the next the iteration may cycle, but not
# for every history length: it restarts after a number of shifts with another length, later with
# smaller steps.
#
# [Acary et al. 2011] A formulation of the linear discrete Coulomb friction problem via convex
# optimization.
# [Anderson 1965] Iterative procedures for nonlinear integral equations.

ANDERSON_DEPTHS, RESTART_PERIOD = (2, 1, 6), 40
"""History lengths, one after the other, and the number of shifts with each."""
MIXING_SHARES = (1.0, 0.2)
"""Shares of the combined defect that are added, each for all ANDERSON_DEPTHS [-]."""
HISTORY = 7  # shifts that are stored: one more than the largest of ANDERSON_DEPTHS
RANK_TOLERANCE = 1e-10
"""Part of a change of defects orthogonal to the others, below which it is dropped [-]."""
FIXED_POINT_STAGES, FIXED_POINT_FIRST_SOFTNESS, FIXED_POINT_HARDENING = 9, 1e-2, 0.1
FIXED_POINT_NEWTON_STEPS, FIXED_POINT_NEWTON_TOLERANCE = 30, 1e-10


@kernel
def slip_fixed_point(rows, impulse, work, tolerance, max_iterations, associated):
    """Improve `impulse`; return (iterations, natural map [N s], status code)."""
    n, nc, best, code = rows.g.shape[0], rows.friction.shape[0], np.inf, MAX_ITERATIONS
    rho, w, soft = work.rho, work.velocity[:n], newton_work(n)
    x, y, w_x = np.empty(n), np.empty(n), np.empty(n)
    R, v_hat, shift = np.empty(n), np.empty(n), np.empty(nc)
    shifts, defects = np.empty((HISTORY, nc)), np.empty((HISTORY, nc))
    basis = np.empty((2, HISTORY, nc))
    assign(x, impulse)
    guess = impulse.copy()
    fill_rho(rows, rho)
    fill_velocity_symmetric(rows, x, w_x)
    fill_shift(rows, w_x, associated, shift)
    for count in range(max_iterations):
        # w(s) of the present shift, by proximal points of decreasing softness
        softness = FIXED_POINT_FIRST_SOFTNESS
        for _ in range(FIXED_POINT_STAGES):
            fill_compliance(rows, x, shift, rho, softness, R, v_hat)
            minimise_linear(
                rows, v_hat, R, x, soft, FIXED_POINT_NEWTON_TOLERANCE, FIXED_POINT_NEWTON_STEPS,
                False,
            )  # fmt: skip
            softness *= FIXED_POINT_HARDENING
        fill_velocity_symmetric(rows, x, w_x)
        # active-set Newton from there, on a copy
        assign(y, x)
        assign(w, w_x)
        residual = natural_map_at(rows, y, w, rho, associated)
        goal = tolerance * impulse_scale_at(rows, y, rho)
        residual = active_set_newton(
            rows, y, work, residual, NEWTON_GOAL * goal, associated, False
        )
        # acceptance
        if residual < best:
            best = residual
            assign(impulse, y)
        goal = tolerance * impulse_scale_at(rows, y, rho)
        if residual <= goal:
            return count, residual, CONVERGED
        if not np.isfinite(residual):
            return count, residual, NONFINITE
        if diverges(rows, x, rho, guess):
            code = INCONSISTENT
            break
        # store shift and defect
        k = count % HISTORY
        assign(shifts[k], shift)
        fill_shift(rows, w_x, associated, defects[k])
        for i in range(nc):
            defects[k, i] -= shift[i]
        # next shift; history length and share change at restarts
        cycle = count // RESTART_PERIOD
        changes = min(count % RESTART_PERIOD, ANDERSON_DEPTHS[cycle % len(ANDERSON_DEPTHS)])
        share = MIXING_SHARES[cycle // len(ANDERSON_DEPTHS) % len(MIXING_SHARES)]
        anderson_step(shifts, defects, (count, changes, share), basis, shift)
    return max_iterations, best, code


@kernel
def anderson_step(shifts, defects, last, basis, shift):
    """Fill the next shift; `last`: count of the latest, history length, share."""
    # the changes of defects are made orthonormal, the latest first, and those of the shifts too
    Q, P, nc, rank = basis[0], basis[1], shift.shape[0], 0
    count, changes, share = last
    now = count % HISTORY
    # without history: s + share · r
    for i in range(nc):
        shift[i] = shifts[now, i] + share * defects[now, i]
    for back in range(changes):
        later, earlier = (count - back) % HISTORY, (count - back - 1) % HISTORY
        size = 0.0
        for i in range(nc):
            Q[rank, i] = defects[later, i] - defects[earlier, i]
            P[rank, i] = shifts[later, i] - shifts[earlier, i]
            size += Q[rank, i] ** 2
        # Gram-Schmidt against the later changes
        for j in range(rank):
            along = 0.0
            for i in range(nc):
                along += Q[j, i] * Q[rank, i]
            for i in range(nc):
                Q[rank, i] -= along * Q[j, i]
                P[rank, i] -= along * P[j, i]
        # drop a dependent change; remove the component of the defect along this one
        rest = along = 0.0
        for i in range(nc):
            rest += Q[rank, i] ** 2
            along += Q[rank, i] * defects[now, i]
        if rest <= RANK_TOLERANCE * RANK_TOLERANCE * size:
            continue
        for i in range(nc):
            shift[i] -= along / rest * (P[rank, i] + share * Q[rank, i])
            Q[rank, i] /= np.sqrt(rest)
            P[rank, i] /= np.sqrt(rest)
        rank += 1
    for i in range(nc):
        shift[i] = max(shift[i], 0.0)
