"""ADMM with a spectral penalty for contact with dry friction (theory 2.11, `ncp_admm`).

The fallback: slower per iteration than Gauss-Seidel, but converges at mass ratios where
Gauss-Seidel does not.

    s ← (1 − κ) (0, 0, μ |z_t|)
    x ← (G + (ρ + η) I)⁻¹ (−(g + s) + z + ρ y + η x)
    y ← Proj_K(x − z/ρ)
    z ← z − ρ (x − y)

ρ starts at √(m L) (L/m)^0.05 with L, m the extreme eigenvalues of G and moves by (L/m)^0.05 every
10 iterations while one residual exceeds the other tenfold. The answer is y: always inside the
cones. Other than in the theory, η is relative to L, so that the solver does not depend on units.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._cone_problem import (
    fill_rho,
    fill_velocity,
    impulse_scale_at,
    natural_map_at,
    project_cone,
)
from contact_sim.solvers._dense import assign, cholesky, cholesky_solve
from contact_sim.solvers._jit import kernel

PROXIMAL_SHARE = 1e-8  # η over the largest eigenvalue [-]
PENALTY_PERIOD, PENALTY_IMBALANCE = 10, 10.0
"""Iterations between changes of ρ, and ratio of the residuals that causes one."""


@kernel
def admm(rows, impulse, tolerance, max_iterations, associated):
    """Improve `impulse` in place; return (iterations, natural map [N s], converged).

    Arguments as in `block_gauss_seidel`. Allocates scratch.
    """
    G, g, mu = rows.delassus, rows.g, rows.friction
    n, nc, shift = g.shape[0], mu.shape[0], 1.0 - associated
    # penalty ρ and proximal weight η from the spectrum of G
    eigenvalues = np.linalg.eigvalsh(G)
    largest = eigenvalues[n - 1]
    eta = PROXIMAL_SHARE * largest
    smallest = max(eigenvalues[0], 0.0) + eta
    factor = (largest / smallest) ** 0.05
    rho = np.sqrt(smallest * largest) * factor
    L = np.zeros((n, n))
    cholesky(G, rho + eta, L)
    # start: x = y = λ, dual z = w + (1 − κ) Γ(w)
    x, y, z = impulse.copy(), impulse.copy(), np.empty(n)
    w, steps, residual = np.empty(n), np.empty(n), np.inf
    fill_rho(rows, steps)
    fill_velocity(rows, impulse, z)
    for i in range(nc):
        z[3 * i + 2] += shift * mu[i] * np.sqrt(z[3 * i] ** 2 + z[3 * i + 1] ** 2)
    for count in range(1, max_iterations + 1):
        # x: quadratic program, with the De Saxcé shift of z
        for r in range(n):
            x[r] = -g[r] + z[r] + rho * y[r] + eta * x[r]
        for i in range(nc):
            x[3 * i + 2] -= shift * mu[i] * np.sqrt(z[3 * i] ** 2 + z[3 * i + 1] ** 2)
        cholesky_solve(L, x)
        # y: projection; z: dual ascent
        change = project(rows, x, z, rho, y)
        gap = 0.0
        for r in range(n):
            gap = max(gap, abs(x[r] - y[r]))
            z[r] -= rho * (x[r] - y[r])
        # acceptance by the natural map of y
        goal = tolerance * impulse_scale_at(rows, y, steps)
        if gap <= 10.0 * goal or count == max_iterations:
            fill_velocity(rows, y, w)
            residual = natural_map_at(rows, y, w, steps, associated)
            if residual <= goal:
                assign(impulse, y)
                return count, residual, True
        # balance primal and dual residual
        if count % PENALTY_PERIOD == 0:
            old = rho
            if gap > PENALTY_IMBALANCE * change:
                rho *= factor
            elif change > PENALTY_IMBALANCE * gap:
                rho /= factor
            if rho != old:
                cholesky(G, rho + eta, L)
    assign(impulse, y)
    return max_iterations, residual, False


@kernel
def project(rows, x, z, rho, y):
    """Fill y = Proj_K(x − z/ρ), block by block; return the largest change of y."""
    change, mu, lower, upper = 0.0, rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        t1, t2, n = project_cone(
            x[r] - z[r] / rho, x[r + 1] - z[r + 1] / rho, x[r + 2] - z[r + 2] / rho, mu[i]
        )
        change = max(change, abs(t1 - y[r]), abs(t2 - y[r + 1]), abs(n - y[r + 2]))
        y[r], y[r + 1], y[r + 2] = t1, t2, n
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        value = min(max(x[r] - z[r] / rho, lower[k]), upper[k])
        change = max(change, abs(value - y[r]))
        y[r] = value
    return change
