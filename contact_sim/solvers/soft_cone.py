"""A compliant contact with the circular cone: projection in the norm of R, and its derivative.

A contact that sticks has a unit vector per row, h = 1/R; one that slides has the generator of the
cone e = (μ d, 1)/√(1 + μ²) and the tangent across d; one that is open has none.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import add_direction, add_row

NO_STIFFNESS = 1e-30
"""Largest h G_rr at which a direction counts as without stiffness [-]."""


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
def cone_impulse(u, v_hat, mu, R, r):
    """Return γ of the contact at row r in its rows t1, t2, n."""
    y1, y2 = (v_hat[r] - u[r]) / R[r], (v_hat[r + 1] - u[r + 1]) / R[r + 1]
    yn = (v_hat[r + 2] - u[r + 2]) / R[r + 2]
    g1, g2, gn, _ = project_compliant(y1, y2, yn, mu, R[r], R[r + 2])
    return g1, g2, gn


@kernel
def along_directions(x, r, d1, d2, mu):
    """Return the components of (x_r, x_r+1, x_r+2) along the generator and across it."""
    size = np.sqrt(1.0 + mu * mu)
    generator = (mu * (d1 * x[r] + d2 * x[r + 1]) + x[r + 2]) / size
    return generator, d1 * x[r + 1] - d2 * x[r]


@kernel
def sliding_stiffness(y1, y2, normal, mu, rt, rn):
    """Return d and (h of the generator, h across) of a sliding contact [kg]."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    generator = (1.0 + mu * mu) / (rn + mu * mu * rt)
    return y1 / size, y2 / size, generator, mu * normal / (size * rt)


@kernel
def cone_stiffness_along(u, v_hat, mu, R, r, way):
    """Return wayᵀ H(u) way of the contact at row r [J]; `way` is a change of u [m/s], (n,)."""
    y1, y2 = (v_hat[r] - u[r]) / R[r], (v_hat[r + 1] - u[r + 1]) / R[r + 1]
    yn, total = (v_hat[r + 2] - u[r + 2]) / R[r + 2], 0.0
    _, _, normal, region = project_compliant(y1, y2, yn, mu, R[r], R[r + 2])
    if region == 1:
        for k in range(r, r + 3):
            total += way[k] * way[k] / R[k]
    elif region == 2:
        d1, d2, h1, h2 = sliding_stiffness(y1, y2, normal, mu, R[r], R[r + 2])
        w1, w2 = along_directions(way, r, d1, d2, mu)
        total += h1 * w1 * w1 + h2 * w2 * w2
    return total


@kernel
def cone_directions(rows, v_hat, R, i, m, work):
    """Fill the directions e_k and 1/h_k of contact i from k = m on; return their number."""
    G, mu, u, r = rows.delassus, rows.friction[i], work.velocity, 3 * i
    y1, y2 = (v_hat[r] - u[r]) / R[r], (v_hat[r + 1] - u[r + 1]) / R[r + 1]
    yn = (v_hat[r + 2] - u[r + 2]) / R[r + 2]
    _, _, normal, region = project_compliant(y1, y2, yn, mu, R[r], R[r + 2])
    if region == 0:
        return 0
    if region == 1:
        for k in range(3):
            add_row(work, m + k, r + k, R[r + k])
        return 3
    d1, d2, h1, h2 = sliding_stiffness(y1, y2, normal, mu, R[r], R[r + 2])
    share = 1.0 / np.sqrt(1.0 + mu * mu)
    add_direction(work, m, r, (share * mu * d1, share * mu * d2, share), 1.0 / h1)
    if h2 * (G[r, r] + G[r + 1, r + 1]) <= NO_STIFFNESS:
        return 1
    add_direction(work, m + 1, r, (-d2, d1, 0.0), 1.0 / h2)
    return 2
