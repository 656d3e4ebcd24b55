"""Coulomb's law as a fixed point of convex problems, for friction that nothing else can follow.

With De Saxcé's shift s_i = μ_i |w_t,i| held, contact is a convex problem with a unique velocity
w(s); where s = μ |w_t(s)| it obeys Signorini and Coulomb. Each w(s) is found with proximal points
(solvers/cone_proximal.py), from anywhere, and s with Anderson's acceleration: from the last shifts
and their defects r = μ |w_t(s)| − s, the combination whose defect is least. Where modes change
from one shift to the next it may circle, with any number of shifts but not with all of them: it
starts anew after some shifts, with another number of them, later with smaller steps.

[Acary et al. 2011] A formulation of the linear discrete Coulomb friction problem via convex
optimization.
[Anderson 1965] Iterative procedures for nonlinear integral equations.
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
from contact_sim.solvers.cone_newton import newton
from contact_sim.solvers.cone_proximal import fill_compliance, fill_shift, left_for_infinity
from contact_sim.solvers.dense import assign
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import newton_work
from contact_sim.solvers.status import CONVERGED, INCONSISTENT, MAX_ITERATIONS, NONFINITE

MEMORIES, PERIOD = (2, 1, 6), 40
"""Changes of shifts that are combined, one number after the other, for so many shifts each."""
SHARES = (1.0, 0.2)
"""Shares of the combined defect that are added, one after the other, for all MEMORIES each [-]."""
LONGEST = 7
"""Shifts that are kept: one more than the largest of MEMORIES."""
INDEPENDENT = 1e-10
"""Share of a change of defects that must be new for it to count."""
POINTS, FIRST_SOFTNESS, HARDENING = 9, 1e-2, 0.1
NEWTON_STEPS = 30
NEWTON_TOLERANCE = 1e-10


@kernel
def slip_fixed_point(rows, impulse, work, tolerance, max_iterations, associated):
    """Improve `impulse` in place; return (iterations, natural map [N s], status code).

    Arguments as in `cone_proximal.proximal_points`.
    """
    n, nc, best, code = rows.g.shape[0], rows.friction.shape[0], np.inf, MAX_ITERATIONS
    rho, w, soft = work.rho, work.velocity[:n], newton_work(n)
    x, y, w_x = np.empty(n), np.empty(n), np.empty(n)
    scratch, shift = np.empty((2, n)), np.empty(nc)
    shifts, defects = np.empty((LONGEST, nc)), np.empty((LONGEST, nc))
    basis = np.empty((2, LONGEST, nc))
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
        residual = newton_on_modes(rows, y, work, residual, KEEN * goal, associated, False)
        if residual < best:
            best = residual
            assign(impulse, y)
        goal = tolerance * impulse_scale_at(rows, y, rho)
        if residual <= goal:
            return count, residual, CONVERGED
        if not np.isfinite(residual):
            return count, residual, NONFINITE
        if left_for_infinity(rows, x, rho, guess):
            code = INCONSISTENT
            break
        k = count % LONGEST
        assign(shifts[k], shift)
        fill_shift(rows, w_x, associated, defects[k])
        for i in range(nc):
            defects[k, i] -= shift[i]
        turn = count // PERIOD
        changes = min(count % PERIOD, MEMORIES[turn % len(MEMORIES)])
        share = SHARES[turn // len(MEMORIES) % len(SHARES)]
        combine(shifts, defects, (count, changes, share), basis, shift)
    return max_iterations, best, code


@kernel
def solve_convex(rows, shift, rho, x, soft, scratch):
    """Solve with De Saxcé's shift held, in place."""
    softness, R, v_hat = FIRST_SOFTNESS, scratch[0], scratch[1]
    for _ in range(POINTS):
        fill_compliance(rows, x, shift, rho, softness, R, v_hat)
        newton(rows, v_hat, R, x, soft, NEWTON_TOLERANCE, NEWTON_STEPS, False)
        softness *= HARDENING


@kernel
def combine(shifts, defects, last, basis, shift):
    """Fill the next shift from the last ones.

    `last`: count of the latest, how many changes are combined, share of the defect that is added.
    The changes of defects are made orthonormal, the latest first, those of the shifts with them.
    """
    Q, P, nc, found = basis[0], basis[1], shift.shape[0], 0
    count, changes, share = last
    now = count % LONGEST
    for i in range(nc):
        shift[i] = shifts[now, i] + share * defects[now, i]
    for back in range(changes):
        later, earlier = (count - back) % LONGEST, (count - back - 1) % LONGEST
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
        if rest <= INDEPENDENT * INDEPENDENT * size:
            continue
        for i in range(nc):
            shift[i] -= along / rest * (P[found, i] + share * Q[found, i])
            Q[found, i] /= np.sqrt(rest)
            P[found, i] /= np.sqrt(rest)
        found += 1
    for i in range(nc):
        shift[i] = max(shift[i], 0.0)
