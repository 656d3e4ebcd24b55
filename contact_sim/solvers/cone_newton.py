"""Newton with exact line search on the unconstrained convex cost of compliant contact.

    min_v ½ |v − v_f|²_A + Σ_i ½ |P_i(y_i)|²_{R_i},   y = R⁻¹ (v̂ − J v),   γ = P(y)

P projects on the friction cone (intervals for scalar rows) in the norm of R. Every iterate has the
form v = v_f + A⁻¹ Jᵀ x, so the iteration runs on x and on G = J A⁻¹ Jᵀ alone: u = u_f + G x,

    Newton step   (I + H G) Δx = γ(u) − x,   H = −∂γ/∂u
    line search   root of (G Δx)·(x + α Δx − γ(u + α G Δx)) over α

and at the solution x = γ. The same iterates as Newton's in v, in rows instead of dofs.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.dense import eliminate
from contact_sim.solvers.jit import kernel

LARGEST_STEP = 1.5
LINE_SEARCH_ITERATIONS = 50
LINE_SEARCH_TOLERANCE = 1e-8


@kernel
def project_compliant(y1, y2, yn, mu, rt, rn):
    """Return (γ_t1, γ_t2, γ_n, region): P(y) in the norm of R; region 0 open, 1 stick, 2 slide."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    if size <= mu * yn and yn >= 0.0:  # without friction μ y_n is −0 for a pull
        return y1, y2, yn, 1
    weak = mu * rt / rn
    if yn <= -weak * size or size == 0.0:
        return 0.0, 0.0, 0.0, 0
    normal = (yn + weak * size) / (1.0 + mu * weak)
    return mu * normal * y1 / size, mu * normal * y2 / size, normal, 2


@kernel
def fill_impulse(rows, u, v_hat, R, gamma):
    """γ ← P(R⁻¹ (v̂ − u))."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        gamma[r], gamma[r + 1], gamma[r + 2], _ = project_compliant(
            (v_hat[r] - u[r]) / R[r],
            (v_hat[r + 1] - u[r + 1]) / R[r + 1],
            (v_hat[r + 2] - u[r + 2]) / R[r + 2],
            mu[i],
            R[r],
            R[r + 2],
        )
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        gamma[r] = min(max((v_hat[r] - u[r]) / R[r], lower[k]), upper[k])


@kernel
def fill_stiffness(rows, u, v_hat, R, H):
    """Fill H = −∂γ/∂u, block by block: columns 0–2 of row r hold its 3x3 block, (n, 3)."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    H[:] = 0.0
    for i in range(nc):
        r = 3 * i
        y1, y2 = (v_hat[r] - u[r]) / R[r], (v_hat[r + 1] - u[r + 1]) / R[r + 1]
        yn = (v_hat[r + 2] - u[r + 2]) / R[r + 2]
        _, _, normal, region = project_compliant(y1, y2, yn, mu[i], R[r], R[r + 2])
        if region == 1:
            for k in range(3):
                H[r + k, k] = 1.0 / R[r + k]
        elif region == 2:
            size = np.sqrt(y1 * y1 + y2 * y2)
            d1, d2 = y1 / size, y2 / size
            weak = mu[i] * R[r] / R[r + 2]
            share = 1.0 / (1.0 + mu[i] * weak)
            along, across = mu[i] * weak * share, mu[i] * normal / size
            H[r, 0] = (along * d1 * d1 + across * d2 * d2) / R[r]
            H[r, 1] = (along - across) * d1 * d2 / R[r + 1]
            H[r + 1, 0] = (along - across) * d1 * d2 / R[r]
            H[r + 1, 1] = (along * d2 * d2 + across * d1 * d1) / R[r + 1]
            H[r, 2], H[r + 1, 2] = mu[i] * share * d1 / R[r + 2], mu[i] * share * d2 / R[r + 2]
            H[r + 2, 0], H[r + 2, 1] = weak * share * d1 / R[r], weak * share * d2 / R[r + 1]
            H[r + 2, 2] = share / R[r + 2]
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        y = (v_hat[r] - u[r]) / R[r]
        if lower[k] < y < upper[k]:
            H[r, 0] = 1.0 / R[r]


@kernel
def block_times_row(H, G, r, nc, column):
    """Return (H G)_{r, column}."""
    if r >= 3 * nc:
        return H[r, 0] * G[r, column]
    first = 3 * (r // 3)
    return (
        H[r, 0] * G[first, column]
        + H[r, 1] * G[first + 1, column]
        + H[r, 2] * G[first + 2, column]
    )


@kernel
def block_times(H, vector, r, nc):
    """Return (H vector)_r."""
    if r >= 3 * nc:
        return H[r, 0] * vector[r]
    first = 3 * (r // 3)
    return H[r, 0] * vector[first] + H[r, 1] * vector[first + 1] + H[r, 2] * vector[first + 2]


@kernel
def line_search(rows, v_hat, R, point, way, scratch):
    """Return the α in (0, 1.5] at which the cost along the step is smallest.

    `point` is (u, x), `way` (Δu, Δx), `scratch` (γ, H, u of the trial).
    """
    (u, x), (du, dx), (gamma, H, trial) = point, way, scratch
    nc = rows.friction.shape[0]
    low, high, alpha = 0.0, LARGEST_STEP, 1.0
    for _ in range(LINE_SEARCH_ITERATIONS):
        trial[:] = u + alpha * du
        fill_impulse(rows, trial, v_hat, R, gamma)
        slope, curvature = 0.0, 0.0
        fill_stiffness(rows, trial, v_hat, R, H)
        for r in range(u.shape[0]):
            slope += du[r] * (x[r] + alpha * dx[r] - gamma[r])
            curvature += du[r] * (dx[r] + block_times(H, du, r, nc))
        if abs(slope) <= LINE_SEARCH_TOLERANCE * curvature * alpha or curvature <= 0.0:
            return alpha
        if slope > 0.0:
            high = alpha
        else:
            low = alpha
            if alpha >= LARGEST_STEP:
                return alpha
        following = alpha - slope / curvature
        alpha = following if low < following < high else 0.5 * (low + high)
        if high - low <= 1e-12:
            return alpha
    return alpha


@kernel
def newton(rows, v_hat, R, impulse, tolerance, max_iterations):
    """Solve from the guess `impulse`; return (iterations, residual, converged).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s].
        v_hat: v̂ [m/s], shape (n,).
        R: compliance of every row [1/kg], > 0; both tangential rows of a contact alike, (n,).
        impulse: in and out: γ [N s], shape (n,).
        tolerance: on |x − γ| relative to |x| and |γ|, in the norm of G [-].
        max_iterations: largest number of Newton steps.
    """
    G, u_free, nc = rows.delassus, rows.g, rows.friction.shape[0]
    n = G.shape[0]
    x, dx, gamma = impulse.copy(), np.empty(n), np.empty(n)
    A, H, trial, scratch = np.empty((n, n)), np.empty((n, 3)), np.empty(n), np.empty(n)
    u = u_free + np.dot(G, x)
    residual = np.inf
    for count in range(max_iterations + 1):
        fill_impulse(rows, u, v_hat, R, gamma)
        scratch[:] = x - gamma
        error = np.sqrt(abs(np.dot(scratch, np.dot(G, scratch))))
        size = np.sqrt(abs(np.dot(x, np.dot(G, x)))) + np.sqrt(
            abs(np.dot(gamma, np.dot(G, gamma)))
        )
        residual = np.abs(scratch).max()
        if not np.isfinite(error):
            return count, residual, False
        if error <= tolerance * size:
            impulse[:] = gamma
            return count, residual, True
        if count == max_iterations:
            break
        fill_stiffness(rows, u, v_hat, R, H)
        for r in range(n):
            dx[r] = gamma[r] - x[r]
            for c in range(n):
                A[r, c] = block_times_row(H, G, r, nc, c)
            A[r, r] += 1.0
        if not eliminate(A, dx, n):
            break
        du = np.dot(G, dx)
        alpha = line_search(rows, v_hat, R, (u, x), (du, dx), (gamma, H, trial))
        x += alpha * dx
        u += alpha * du
    impulse[:] = gamma
    return max_iterations, residual, False
