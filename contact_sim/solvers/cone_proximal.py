"""Contact with cones as a few problems with a little compliance: proximal points.

    λ' = Proj_K(λ − R⁻¹ (G λ' + g + (1 − κ) Γ)),   R = ε / ρ

Each point is the minimum of a strictly convex function, found by Newton with line search
(solvers/cone_newton.py), however many rows are redundant. R is taken back through λ: a fixed point
is one of the problem without compliance, redundant impulses stay where they are, and ε may fall
from point to point. Γ = (0, 0, μ |w_t|) is that of λ (De Saxcé), so that at a fixed point Coulomb
and Signorini hold. Sweeps of Gauss-Seidel in between follow Γ in each contact alone, which the
points do not, and Newton on the modes ends the iteration once these are the right ones.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.cone import (
    fill_rho,
    fill_velocity_symmetric,
    impulse_scale_at,
    natural_map_at,
)
from contact_sim.solvers.cone_active_set import KEEN, newton_on_modes
from contact_sim.solvers.cone_block import sweep
from contact_sim.solvers.cone_newton import COARSE, minimise
from contact_sim.solvers.dense import assign
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import newton_work
from contact_sim.solvers.soft_law import linear_law
from contact_sim.solvers.status import CONVERGED, INCONSISTENT, MAX_ITERATIONS, NONFINITE

FIRST_SOFTNESS, LEAST_SOFTNESS, HARDENING = 1e-2, 1e-13, 0.1
"""ε of the first point, of the last, and what it is multiplied by from one to the next [-]."""
SWEEPS = 3
"""Sweeps before each point."""
NEWTON_STEPS = 15
NEWTON_TOLERANCE = 1e-8
DIVERGED = 1e8
"""Impulses over those of rows alone, from which on they have left for infinity [-]."""
GROWN = 2.0
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
        if residual > KEEN * goal:  # what sweeps leave depends on their order
            residual = newton_on_modes(rows, x, work, residual, KEEN * goal, associated, False)
            goal = tolerance * impulse_scale_at(rows, x, rho)
        if residual < best:
            best = residual
            assign(impulse, x)
        if residual <= goal:
            return count, residual, CONVERGED
        if not np.isfinite(residual):
            return count, residual, NONFINITE
        if left_for_infinity(rows, x, rho, guess):
            code = INCONSISTENT
            break
        fill_velocity_symmetric(rows, x, w)
        fill_shift(rows, w, associated, shift)
        fill_compliance(rows, x, shift, rho, softness, R, v_hat)
        law = linear_law(v_hat, R, False)
        minimise(rows, law, x, soft, NEWTON_TOLERANCE, NEWTON_STEPS, COARSE)
        softness = max(HARDENING * softness, LEAST_SOFTNESS)
    return max_points, best, code


@kernel
def left_for_infinity(rows, impulse, rho, guess):
    """Return whether G cannot bring about what g asks for: impulses grow without end.

    Those of the guess need not fit to g at all: with g = 0 any are too large.
    """
    alone = largest = begun = 0.0
    for r in range(rows.g.shape[0]):
        alone = max(alone, abs(rows.g[r]) * rho[r])
        largest = max(largest, abs(impulse[r]))
        begun = max(begun, abs(guess[r]))
    return largest > DIVERGED * alone and largest > GROWN * begun


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
