"""A compliant contact whose friction cone is the pyramid of the edges n ± μ t_i.

    γ = D β,   β_j = max(0, s_j)/R,   s = Dᵀ (v̂ − u),   D = [n ± μ t1, n ± μ t2]

Every edge is a spring with compliance R that only pushes. The edges are combinations of the three
rows of the contact, so that the problem stays one of rows: β is never asked for, nor its matrix.
H = −∂γ/∂u = D_a D_aᵀ/R over the edges D_a that push. Both of one axis have (t_i, 0) with
h = 2 μ²/R, and since s_{+i} + s_{−i} = 2 (v̂_n − u_n), the edges of the other axis cannot both rest
while they push.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import add_direction, add_row


@kernel
def edge_speeds(u, v_hat, mu, r):
    """Return s of the edges n + μ t1, n − μ t1, n + μ t2, n − μ t2 of the contact at row r."""
    n = v_hat[r + 2] - u[r + 2]
    t1, t2 = mu * (v_hat[r] - u[r]), mu * (v_hat[r + 1] - u[r + 1])
    return n + t1, n - t1, n + t2, n - t2


@kernel
def pyramid_impulse(u, v_hat, mu, R, r):
    """Return γ of the contact at row r in its rows t1, t2, n."""
    a, b, c, d = edge_speeds(u, v_hat, mu, r)
    a, b, c, d = max(a, 0.0), max(b, 0.0), max(c, 0.0), max(d, 0.0)
    return mu * (a - b) / R, mu * (c - d) / R, (a + b + c + d) / R


@kernel
def pyramid_stiffness_along(u, v_hat, mu, R, r, way):
    """Return wayᵀ H(u) way of the contact at row r [J]; `way` is a change of u [m/s], (n,)."""
    a, b, c, d = edge_speeds(u, v_hat, mu, r)
    n, t1, t2, total = way[r + 2], mu * way[r], mu * way[r + 1], 0.0
    if a > 0.0:
        total += (n + t1) ** 2
    if b > 0.0:
        total += (n - t1) ** 2
    if c > 0.0:
        total += (n + t2) ** 2
    if d > 0.0:
        total += (n - t2) ** 2
    return total / R


@kernel
def pyramid_directions(u, v_hat, mu, R, r, m, work):
    """Fill e_k and 1/h_k of the contact at row r from k = m on; return the number of them.

    Args:
        u: velocity of the rows [m/s], shape (n,).
        v_hat: v̂ [m/s], shape (n,).
        mu: friction of the contact [-], > 0.
        R: compliance of its edges [1/kg].
        r: its first row.
        m: directions before it.
        work: scratch of `cone_newton.newton`.
    """
    a, b, c, d = edge_speeds(u, v_hat, mu, r)
    first, second = int(a > 0.0) + int(b > 0.0), int(c > 0.0) + int(d > 0.0)
    e1, e2 = mu * (int(a > 0.0) - int(b > 0.0)), mu * (int(c > 0.0) - int(d > 0.0))
    if first + second == 0:
        return 0
    if first == 2 and second == 2:
        for k in range(2):
            add_row(work, m + k, r + k, 0.5 * R / (mu * mu))
        add_row(work, m + 2, r + 2, 0.25 * R)
        return 3
    if first + second == 3:  # one axis has both edges and is a row; e of the other with n
        both, e = (0, e2) if first == 2 else (1, e1)
        add_row(work, m, r + both, 0.5 * R / (mu * mu))
        trace = mu * mu + 3.0
        largest = 0.5 * (trace + np.sqrt(trace * trace - 8.0 * mu * mu))
        size = np.sqrt(mu * mu + (largest - mu * mu) ** 2)
        along, up = e / size, (largest - mu * mu) / size
        add_combined(work, m + 1, r, 1 - both, (along, up), R / largest)
        add_combined(work, m + 2, r, 1 - both, (-up, along), 0.5 * R * largest / (mu * mu))
        return 3
    if first + second == 1:
        size = np.sqrt(1.0 + mu * mu)
        axis, e = (0, e1) if first == 1 else (1, e2)
        add_combined(work, m, r, axis, (e / size, 1.0 / size), R / (1.0 + mu * mu))
        return 1
    size = np.sqrt(4.0 + 2.0 * mu * mu)  # one edge of each axis: their sum and their difference
    add_direction(work, m, r, (e1 / size, e2 / size, 2.0 / size), R / (2.0 + mu * mu))
    half = np.sqrt(0.5) / mu
    add_direction(work, m + 1, r, (half * e1, -half * e2, 0.0), R / (mu * mu))
    return 2


@kernel
def add_combined(work, k, r, axis, parts, softness):
    """Make direction k a combination of t1 (axis 0) or t2 (axis 1) and n of the contact at r."""
    along, up = parts
    e = (along, 0.0, up) if axis == 0 else (0.0, along, up)
    add_direction(work, k, r, e, softness)
