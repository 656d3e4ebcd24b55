"""Contact with cones and intervals, solved as fast as the problem allows.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

per contact and w ⊥ [lower, upper] per scalar row; κ = 0: Signorini and Coulomb, κ = 1: the minimum
of ½ λᵀ G λ + gᵀ λ. In this order, each as far as the natural map is not yet small enough:

1. the guess, as it is
2. Newton steps on the modes of the guess (solvers/cone_active_set.py)
3. rows that are in the wrong mode are released by an update of their own, then Newton again
4. proximal points, with sweeps of Gauss-Seidel in between (solvers/cone_proximal.py), from the
   guess and from nothing
5. a fixed point of convex problems (solvers/cone_fixed_point.py); 4 and 5 from other starts
6. block Gauss-Seidel, then ADMM

One and the same measure ends all of them. 1 to 3 do not allocate.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.cone import (
    fill_rho,
    fill_velocity_symmetric,
    impulse_scale_at,
    natural_map_at,
)
from contact_sim.solvers.cone_active_set import (
    KEEN,
    ON_THE_CONE,
    newton_on_modes,
    newton_step,
    rest_of_equations,
)
from contact_sim.solvers.cone_admm import admm
from contact_sim.solvers.cone_block import block_gauss_seidel, frozen_contact, solve_contact
from contact_sim.solvers.cone_fixed_point import slip_fixed_point
from contact_sim.solvers.cone_proximal import proximal_points
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.status import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    INCONSISTENT,
    MAX_ITERATIONS,
    NONFINITE,
)

MOST_RELEASES = 4
SOLVED = 0.1
"""Rest of the equations of the modes over the natural map, from which on rows are released [-]."""
PATIENCE = 15
"""Proximal points after which the fixed point is looked for."""


@kernel
def in_wrong_mode(impulse, w, r, mu, associated):
    """Return True where an open contact approaches, or one slips the way friction pushes it."""
    w1, w2, wn = w[r], w[r + 1], w[r + 2]
    if impulse[r + 2] <= 0.0:
        return wn < associated * mu * np.sqrt(w1 * w1 + w2 * w2)
    t1, t2, radius = impulse[r], impulse[r + 1], ON_THE_CONE * mu * impulse[r + 2]
    return mu > 0.0 and t1 * t1 + t2 * t2 >= radius * radius and t1 * w1 + t2 * w2 > 0.0


@kernel
def release(rows, impulse, w, associated):
    """Update the rows that cannot stay in their modes, each as if alone; return their number.

    These are contacts in the wrong mode, and scalar rows at a bound that they are pulled from.
    """
    changed, mu, lower, upper = 0, rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        if in_wrong_mode(impulse, w, r, mu[i], associated):
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
def solve_by_modes(rows, impulse, work, tolerance, associated):
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
                if residual > KEEN * goal:
                    residual = newton_on_modes(
                        rows, impulse, work, residual, KEEN * goal, associated, True
                    )
                return releases, residual, True
            careful = True
            last, rest = rest, rest_of_equations(rows, impulse, w, work, m, associated)
            if SOLVED * residual < rest < 0.5 * last:
                continue  # the pulls on bounds and slips are not those of these modes yet
        rest = np.inf
        if release(rows, impulse, w, associated) > 0:
            if releases == MOST_RELEASES:
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
def drop_pulls(nc, impulse):
    """Make impulses zero whose normal part is below zero by rounding."""
    for r in range(0, 3 * nc, 3):
        if impulse[r + 2] < 0.0:
            impulse[r] = impulse[r + 1] = impulse[r + 2] = 0.0


@kernel
def press(rows, impulse):
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
    patience = min(max_points, PATIENCE)
    count, residual, code = proximal_points(rows, impulse, work, tolerance, patience, associated)
    for attempt in range(4):
        if code in (CONVERGED, NONFINITE) or (code == INCONSISTENT and associated == 1.0):
            break
        if attempt in (0, 2):
            for r in range(rows.g.shape[0]):
                impulse[r] = 0.0
        elif attempt == 3:
            press(rows, impulse)
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
    releases, residual, converged = solve_by_modes(rows, impulse, work, tolerance, associated)
    if converged:
        drop_pulls(rows.friction.shape[0], impulse)
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
