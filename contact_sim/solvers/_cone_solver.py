"""Contact with cones and intervals, solved as fast as the problem allows.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

per contact and w ⊥ [lower, upper] per scalar row; κ = 0: Signorini and Coulomb, κ = 1: the minimum
of ½ λᵀ G λ + gᵀ λ. In this order, each as far as the natural map is not yet small enough:

1. the guess, as it is
2. Newton steps on the modes of the guess (solvers/_cone_active_set.py)
3. rows that are in the wrong mode are released by an update of their own, then Newton again
4. proximal points, with sweeps of Gauss-Seidel in between (solvers/_cone_solver.py), from the
   guess and from nothing
5. a fixed point of convex problems (solvers/_cone_solver.py); 4 and 5 from other starts
6. block Gauss-Seidel, then ADMM

One and the same measure ends all of them. 1 to 3 do not allocate.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._cone_active_set import (
    NEWTON_GOAL,
    SLIP_SHARE,
    active_set_newton,
    active_set_residual,
    newton_step,
)
from contact_sim.solvers._cone_admm import admm
from contact_sim.solvers._cone_gauss_seidel import (
    block_gauss_seidel,
    frozen_contact,
    solve_contact,
    sweep,
)
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    INCONSISTENT,
    MAX_ITERATIONS,
    NONFINITE,
    fill_rho,
    fill_velocity_symmetric,
    impulse_scale_at,
    natural_map_at,
)
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import (
    COARSE,
    linear_law,
    minimise,
    minimise_linear,
    newton_work,
)

# --- Contact with cones as a few problems with a little compliance: proximal points.
#
#     λ' = Proj_K(λ − R⁻¹ (G λ' + g + (1 − κ) Γ)),   R = ε / ρ
#
# Each point is the minimum of a strictly convex function, found by Newton with line search
# (solvers/_soft_newton.py), however many rows are redundant. R is taken back through λ: a fixed
# point
# is one of the problem without compliance, redundant impulses stay where they are, and ε may fall
# from point to point. Γ = (0, 0, μ |w_t|) is that of λ (De Saxcé), so that at a fixed point
# Coulomb
# and Signorini hold. Sweeps of Gauss-Seidel in between follow Γ in each contact alone, which the
# points do not, and Newton on the modes ends the iteration once these are the right ones.

FIRST_SOFTNESS, LAST_SOFTNESS, HARDENING = 1e-2, 1e-13, 0.1
"""ε of the first point, of the last, and what it is multiplied by from one to the next [-]."""
SWEEPS = 3
"""Sweeps before each point."""
NEWTON_STEPS = 15
NEWTON_TOLERANCE = 1e-8
DIVERGENCE_RATIO = 1e8
"""Impulses over those of rows alone, from which on they have left for infinity [-]."""
GROWTH_RATIO = 2.0
"""Impulses over those of the guess, below which they have not left for infinity [-]."""


@kernel
def proximal_points(rows, impulse, work, tolerance, max_points, associated):
    """Improve `impulse` in place; return (points, natural map [N s], status code).

    Arguments as in `cone_block.block_gauss_seidel`, and scratch as in `cones.solve_cones`.
    Allocates scratch of its own. The best impulse is kept.
    """
    n, best, softness, code = rows.g.shape[0], np.inf, FIRST_SOFTNESS, MAX_ITERATIONS
    R, v_hat, x, soft = np.empty(n), np.empty(n), np.empty(n), newton_work(n)
    guess = impulse.copy()
    rho, w, shift = work.rho, work.velocity, np.empty(rows.friction.shape[0])
    assign(x, impulse)
    fill_rho(rows, rho)
    for count in range(max_points + 1):
        for _ in range(SWEEPS):
            sweep(rows, x, associated)
        fill_velocity_symmetric(rows, x, w)
        residual = natural_map_at(rows, x, w, rho, associated)
        goal = tolerance * impulse_scale_at(rows, x, rho)
        if residual > NEWTON_GOAL * goal:  # what sweeps leave depends on their order
            residual = active_set_newton(
                rows, x, work, residual, NEWTON_GOAL * goal, associated, False
            )
            goal = tolerance * impulse_scale_at(rows, x, rho)
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
        fill_velocity_symmetric(rows, x, w)
        fill_shift(rows, w, associated, shift)
        fill_compliance(rows, x, shift, rho, softness, R, v_hat)
        law = linear_law(v_hat, R, False)
        minimise(rows, law, x, soft, NEWTON_TOLERANCE, NEWTON_STEPS, COARSE)
        softness = max(HARDENING * softness, LAST_SOFTNESS)
    return max_points, best, code


@kernel
def diverges(rows, impulse, rho, guess):
    """Return whether G cannot bring about what g asks for: impulses grow without end.

    Those of the guess need not fit to g at all: with g = 0 any are too large.
    """
    alone = largest = begun = 0.0
    for r in range(rows.g.shape[0]):
        alone = max(alone, abs(rows.g[r]) * rho[r])
        largest = max(largest, abs(impulse[r]))
        begun = max(begun, abs(guess[r]))
    return largest > DIVERGENCE_RATIO * alone and largest > GROWTH_RATIO * begun


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


# --- Coulomb's law as a fixed point of convex problems, for friction that nothing else can follow.
#
# With De Saxcé's shift s_i = μ_i |w_t,i| held, contact is a convex problem with a unique velocity
# w(s); where s = μ |w_t(s)| it obeys Signorini and Coulomb. Each w(s) is found with proximal
# points
# (solvers/_cone_solver.py), from anywhere, and s with Anderson's acceleration: from the last
# shifts
# and their defects r = μ |w_t(s)| − s, the combination whose defect is least. Where modes change
# from one shift to the next it may circle, with any number of shifts but not with all of them: it
# starts anew after some shifts, with another number of them, later with smaller steps.
#
# [Acary et al. 2011] A formulation of the linear discrete Coulomb friction problem via convex
# optimization.
# [Anderson 1965] Iterative procedures for nonlinear integral equations.

ANDERSON_DEPTHS, RESTART_PERIOD = (2, 1, 6), 40
"""Changes of shifts that are combined, one number after the other, for so many shifts each."""
MIXING_SHARES = (1.0, 0.2)
"""Shares of the combined defect that are added, one after the other, for all MEMORIES each [-]."""
HISTORY = 7
"""Shifts that are kept: one more than the largest of MEMORIES."""
RANK_TOLERANCE = 1e-10
"""Share of a change of defects that must be new for it to count."""
FIXED_POINT_STAGES, FIXED_POINT_FIRST_SOFTNESS, FIXED_POINT_HARDENING = 9, 1e-2, 0.1
FIXED_POINT_NEWTON_STEPS = 30
FIXED_POINT_NEWTON_TOLERANCE = 1e-10


@kernel
def slip_fixed_point(rows, impulse, work, tolerance, max_iterations, associated):
    """Improve `impulse` in place; return (iterations, natural map [N s], status code).

    Arguments as in `cone_proximal.proximal_points`.
    """
    n, nc, best, code = rows.g.shape[0], rows.friction.shape[0], np.inf, MAX_ITERATIONS
    rho, w, soft = work.rho, work.velocity[:n], newton_work(n)
    x, y, w_x = np.empty(n), np.empty(n), np.empty(n)
    scratch, shift = np.empty((2, n)), np.empty(nc)
    shifts, defects = np.empty((HISTORY, nc)), np.empty((HISTORY, nc))
    basis = np.empty((2, HISTORY, nc))
    assign(x, impulse)
    guess = impulse.copy()
    fill_rho(rows, rho)
    fill_velocity_symmetric(rows, x, w_x)
    fill_shift(rows, w_x, associated, shift)
    for count in range(max_iterations):
        solve_convex(rows, shift, rho, x, soft, scratch)
        fill_velocity_symmetric(rows, x, w_x)
        assign(y, x)
        assign(w, w_x)
        residual = natural_map_at(rows, y, w, rho, associated)
        goal = tolerance * impulse_scale_at(rows, y, rho)
        residual = active_set_newton(
            rows, y, work, residual, NEWTON_GOAL * goal, associated, False
        )
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
        k = count % HISTORY
        assign(shifts[k], shift)
        fill_shift(rows, w_x, associated, defects[k])
        for i in range(nc):
            defects[k, i] -= shift[i]
        turn = count // RESTART_PERIOD
        changes = min(count % RESTART_PERIOD, ANDERSON_DEPTHS[turn % len(ANDERSON_DEPTHS)])
        share = MIXING_SHARES[turn // len(ANDERSON_DEPTHS) % len(MIXING_SHARES)]
        anderson_step(shifts, defects, (count, changes, share), basis, shift)
    return max_iterations, best, code


@kernel
def solve_convex(rows, shift, rho, x, soft, scratch):
    """Solve with De Saxcé's shift held, in place."""
    softness, R, v_hat = FIXED_POINT_FIRST_SOFTNESS, scratch[0], scratch[1]
    for _ in range(FIXED_POINT_STAGES):
        fill_compliance(rows, x, shift, rho, softness, R, v_hat)
        minimise_linear(
            rows, v_hat, R, x, soft, FIXED_POINT_NEWTON_TOLERANCE, FIXED_POINT_NEWTON_STEPS, False
        )
        softness *= FIXED_POINT_HARDENING


@kernel
def anderson_step(shifts, defects, last, basis, shift):
    """Fill the next shift from the last ones.

    `last`: count of the latest, how many changes are combined, share of the defect that is added.
    The changes of defects are made orthonormal, the latest first, those of the shifts with them.
    """
    Q, P, nc, found = basis[0], basis[1], shift.shape[0], 0
    count, changes, share = last
    now = count % HISTORY
    for i in range(nc):
        shift[i] = shifts[now, i] + share * defects[now, i]
    for back in range(changes):
        later, earlier = (count - back) % HISTORY, (count - back - 1) % HISTORY
        size = 0.0
        for i in range(nc):
            Q[found, i] = defects[later, i] - defects[earlier, i]
            P[found, i] = shifts[later, i] - shifts[earlier, i]
            size += Q[found, i] ** 2
        for j in range(found):
            along = 0.0
            for i in range(nc):
                along += Q[j, i] * Q[found, i]
            for i in range(nc):
                Q[found, i] -= along * Q[j, i]
                P[found, i] -= along * P[j, i]
        rest = along = 0.0
        for i in range(nc):
            rest += Q[found, i] ** 2
            along += Q[found, i] * defects[now, i]
        if rest <= RANK_TOLERANCE * RANK_TOLERANCE * size:
            continue
        for i in range(nc):
            shift[i] -= along / rest * (P[found, i] + share * Q[found, i])
            Q[found, i] /= np.sqrt(rest)
            P[found, i] /= np.sqrt(rest)
        found += 1
    for i in range(nc):
        shift[i] = max(shift[i], 0.0)


# --- Contact with cones and intervals, solved as fast as the problem allows.

MAX_RELEASES = 4
MODE_SOLVED_SHARE = 0.1
"""Rest of the equations of the modes over the natural map, from which on rows are released [-]."""
MAX_PROXIMAL_POINTS = 15
"""Proximal points after which the fixed point is looked for."""


@kernel
def violates_mode(impulse, w, r, mu, associated):
    """Return True where an open contact approaches, or one slips the way friction pushes it."""
    w1, w2, wn = w[r], w[r + 1], w[r + 2]
    if impulse[r + 2] <= 0.0:
        return wn < associated * mu * np.sqrt(w1 * w1 + w2 * w2)
    t1, t2, radius = impulse[r], impulse[r + 1], SLIP_SHARE * mu * impulse[r + 2]
    return mu > 0.0 and t1 * t1 + t2 * t2 >= radius * radius and t1 * w1 + t2 * w2 > 0.0


@kernel
def release_rows(rows, impulse, w, associated):
    """Update the rows that cannot stay in their modes, each as if alone; return their number.

    These are contacts in the wrong mode, and scalar rows at a bound that they are pulled from.
    """
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
def solve_active_set(rows, impulse, work, tolerance, associated):
    """Try the steps 1 to 3; return (releases, natural map [N s], converged).

    Only an impulse that converged is kept.
    """
    rho, w, guess = work.rho, work.velocity, work.best
    fill_rho(rows, rho)
    fill_velocity_symmetric(rows, impulse, w)
    first = natural_map_at(rows, impulse, w, rho, associated)
    if first <= tolerance * impulse_scale_at(rows, impulse, rho):
        return 0, first, True
    n, releases, before, known = rows.g.shape[0], 0, np.inf, False
    careful, rest = False, np.inf
    for r in range(n):
        guess[r] = impulse[r]
        known = known or impulse[r] != 0.0
    if not known:  # there are no modes to start from
        return 0, first, False
    for _ in range(2 * n):
        share, m = newton_step(rows, impulse, w, work, associated, True, careful)
        if share < 1.0 and not careful:  # impulses left their sets: once more, with care
            careful = True
            for r in range(n):
                impulse[r] = guess[r]
            continue
        if share >= 0.0:
            fill_velocity_symmetric(rows, impulse, w)
            if share < 1.0:
                rest = np.inf
                continue
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
                continue  # the pulls on bounds and slips are not those of these modes yet
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
    for r in range(n):
        impulse[r] = guess[r]
    return releases, first, False


@kernel
def clear_tensile_impulses(nc, impulse):
    """Make impulses zero whose normal part is below zero by rounding."""
    for r in range(0, 3 * nc, 3):
        if impulse[r + 2] < 0.0:
            impulse[r] = impulse[r + 1] = impulse[r + 2] = 0.0


@kernel
def fill_compressive_guess(rows, impulse):
    """Press every row: where friction wedges, sweeps find a solution from here, not from rest."""
    largest, n = 0.0, rows.g.shape[0]
    for r in range(n):
        largest = max(largest, abs(rows.g[r]) / rows.delassus[r, r])
    for r in range(n):
        impulse[r] = largest


@kernel
def solve_redundant(rows, impulse, work, tolerance, max_points, associated):
    """Try the steps 4 and 5; return (iterations, natural map [N s], status code).

    The way to a solution matters: from the guess, from nothing, and from rows that are pressed.
    Proximal points come first, because they are few.
    """
    patience = min(max_points, MAX_PROXIMAL_POINTS)
    count, residual, code = proximal_points(rows, impulse, work, tolerance, patience, associated)
    for attempt in range(4):
        if code in (CONVERGED, NONFINITE) or (code == INCONSISTENT and associated == 1.0):
            break
        if attempt in (0, 2):
            for r in range(rows.g.shape[0]):
                impulse[r] = 0.0
        elif attempt == 3:
            fill_compressive_guess(rows, impulse)
        if attempt in (0, 3):
            points, residual, code = proximal_points(
                rows, impulse, work, tolerance, patience, associated
            )
        else:
            points, residual, code = slip_fixed_point(
                rows, impulse, work, tolerance, max_points, associated
            )
        count += points
    return count, residual, code


@kernel
def solve_cones(rows, impulse, work, tolerance, limits, associated):
    """Solve in place; return (status code, iterations, natural map [N s]).

    Args:
        rows: the problem, n rows; G symmetric and positive semidefinite.
        impulse: the guess and the answer [N s], shape (n,).
        work: scratch for n rows or more, see `rows.cone_work`.
        tolerance: on the natural map, relative to the largest impulse [-].
        limits: largest numbers of proximal points, of Gauss-Seidel sweeps and of iterations of
            ADMM, 0: none [-].
        associated: κ, 0.0 or 1.0.
    """
    releases, residual, converged = solve_active_set(rows, impulse, work, tolerance, associated)
    if converged:
        clear_tensile_impulses(rows.friction.shape[0], impulse)
        return CONVERGED, releases, residual
    max_points, max_sweeps, max_admm_iterations = limits
    if max_points > 0:
        points, residual, code = solve_redundant(
            rows, impulse, work, tolerance, max_points, associated
        )
        releases += points
        if code == CONVERGED:
            return code, releases, residual
        if code == INCONSISTENT:
            return code, releases, residual
    sweeps, residual, converged = block_gauss_seidel(
        rows, impulse, tolerance, max_sweeps, associated
    )
    sweeps += releases
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
        for r in range(n):
            impulse[r] = best[r]
    return MAX_ITERATIONS, sweeps + iterations, min(residual, admm_residual)
