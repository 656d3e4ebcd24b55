"""Contact with cones and intervals, solved as fast as the problem allows.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

per contact and w ⊥ [lower, upper] per scalar row; κ = 0: Signorini and Coulomb, κ = 1: the minimum
of ½ λᵀ G λ + gᵀ λ. In this order, each as far as the natural map is not yet small enough:

1. the guess, as it is
2. Newton steps on the modes of the guess (solvers/cone_active_set.py)
3. rows that are in the wrong mode are released by an update of their own, then Newton again
4. block Gauss-Seidel, then ADMM

One and the same measure ends all of them. 1 to 3 do not allocate.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.cone import (
    fill_rho,
    fill_velocity,
    impulse_scale_at,
    natural_map_at,
)
from contact_sim.solvers.cone_active_set import newton_on_modes
from contact_sim.solvers.cone_admm import admm
from contact_sim.solvers.cone_block import block_gauss_seidel, frozen_contact, solve_contact
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.status import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    MAX_ITERATIONS,
    NONFINITE,
)

RELEASES = 4


@kernel
def release(rows, impulse, w, associated):
    """Update the rows that cannot stay in their modes, each as if alone; return their number.

    These are open contacts that approach, and scalar rows at a bound that they are pulled from.
    """
    changed, mu, lower, upper = 0, rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        if impulse[r + 2] > 0.0:
            continue
        w1, w2, wn = w[r], w[r + 1], w[r + 2]
        if wn < associated * mu[i] * np.sqrt(w1 * w1 + w2 * w2):
            contact = frozen_contact(rows, i, impulse, (w1, w2, wn), associated)
            t1, t2, n = solve_contact(contact, 0.0, 0.0)
            if n > 0.0:
                impulse[r], impulse[r + 1], impulse[r + 2] = t1, t2, n
                changed += 1
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if not lower[k] < impulse[r] < upper[k]:
            new = impulse[r] - w[r] / rows.delassus[r, r]
            if lower[k] < new < upper[k]:
                impulse[r] = new
                changed += 1
    return changed


@kernel
def solve_by_modes(rows, impulse, work, tolerance, associated):
    """Try the steps 1 to 3 in place; return (releases, natural map [N s], converged)."""
    rho, w = work.rho, work.velocity
    fill_rho(rows, rho)
    fill_velocity(rows, impulse, w)
    residual = natural_map_at(rows, impulse, w, rho, associated)
    goal = tolerance * impulse_scale_at(rows, impulse, rho)
    if residual <= goal:
        return 0, residual, True
    for count in range(RELEASES + 1):
        if count > 0:
            if release(rows, impulse, w, associated) == 0:
                return count, residual, False
            fill_velocity(rows, impulse, w)
            residual = natural_map_at(rows, impulse, w, rho, associated)
            goal = tolerance * impulse_scale_at(rows, impulse, rho)
        if residual > goal:
            residual = newton_on_modes(rows, impulse, work, residual, goal, associated, True)
            # the guess may have been larger than the answer
            goal = tolerance * impulse_scale_at(rows, impulse, rho)
        if residual <= goal:
            return count, residual, True
        if not np.isfinite(residual):
            break
    return RELEASES, residual, False


@kernel
def solve_cones(rows, impulse, work, tolerance, max_sweeps, max_admm_iterations, associated):
    """Solve in place; return (status code, iterations, natural map [N s]).

    Args:
        rows: the problem, n rows; G symmetric and positive semidefinite.
        impulse: the guess and the answer [N s], shape (n,).
        work: scratch for n rows or more, see `rows.cone_work`.
        tolerance: on the natural map, relative to the largest impulse [-].
        max_sweeps: largest number of Gauss-Seidel sweeps [-].
        max_admm_iterations: largest number of iterations of ADMM, 0: none [-].
        associated: κ, 0.0 or 1.0.
    """
    releases, residual, converged = solve_by_modes(rows, impulse, work, tolerance, associated)
    if converged:
        return CONVERGED, releases, residual
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
