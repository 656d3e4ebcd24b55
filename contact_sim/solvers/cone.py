"""The sets a contact impulse may lie in, as numbers: friction cones and intervals.

Rows of one contact are (t1, t2, n). K_μ = {λ : |λ_t| ≤ μ λ_n}. Intervals [lower, upper] serve
dry friction (box), limits (half line) and bilateral rows (whole line).
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel


@kernel
def project_cone(t1, t2, n, mu):
    """Return the point of K_μ nearest to (t1, t2, n)."""
    tangential = np.sqrt(t1 * t1 + t2 * t2)
    if tangential <= mu * n and n >= 0.0:  # without friction μ n is −0 for a pull
        return t1, t2, n
    if mu * tangential <= -n or tangential == 0.0:
        return 0.0, 0.0, 0.0
    normal = (n + mu * tangential) / (1.0 + mu * mu)
    scale = mu * normal / tangential
    return scale * t1, scale * t2, normal


@kernel
def largest_eigenvalue(G, r):
    """Return the largest eigenvalue of the symmetric 3x3 block of `G` that starts at row `r`."""
    mean = (G[r, r] + G[r + 1, r + 1] + G[r + 2, r + 2]) / 3.0
    if mean <= 0.0:
        return 0.0
    a, b, c = G[r, r] / mean - 1.0, G[r + 1, r + 1] / mean - 1.0, G[r + 2, r + 2] / mean - 1.0
    d, e, f = G[r, r + 1] / mean, G[r + 1, r + 2] / mean, G[r, r + 2] / mean
    spread = np.sqrt((a * a + b * b + c * c + 2.0 * (d * d + e * e + f * f)) / 6.0)
    if spread <= 1e-15:
        return mean
    determinant = a * (b * c - e * e) - d * (d * c - e * f) + f * (d * e - b * f)
    cosine = min(max(determinant / (2.0 * spread**3), -1.0), 1.0)
    return mean * (1.0 + 2.0 * spread * np.cos(np.arccos(cosine) / 3.0))


@kernel
def row_velocity(G, g, impulse, row):
    """Return (G λ + g)_row; λ and g may be longer than G."""
    velocity = g[row]
    for column in range(G.shape[1]):
        velocity += G[row, column] * impulse[column]
    return velocity


@kernel
def natural_map(G, g, mu, lower, upper, impulse, associated):
    """Return max_i |λ_i − Proj(λ_i − ρ_i (w_i + (1 − κ) Γ(w_i)))| [N s], w = G λ + g.

    Γ(w) = (0, 0, μ |w_t|) (De Saxcé), ρ_i = 1 / λ_max(G_ii), κ = `associated`. With κ = 0 it is
    zero exactly where Signorini, Coulomb and maximum dissipation hold (physics.md 2.15); with
    κ = 1 at the minimum of ½ λᵀ G λ + gᵀ λ over the cones (physics.md 2.12). Not a number where an
    impulse is not.
    """
    worst = 0.0
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        rho = 1.0 / largest_eigenvalue(G, r)
        w1 = row_velocity(G, g, impulse, r)
        w2 = row_velocity(G, g, impulse, r + 1)
        wn = row_velocity(G, g, impulse, r + 2)
        wn += (1.0 - associated) * mu[i] * np.sqrt(w1 * w1 + w2 * w2)
        p1, p2, pn = project_cone(
            impulse[r] - rho * w1, impulse[r + 1] - rho * w2, impulse[r + 2] - rho * wn, mu[i]
        )
        d1, d2, dn = impulse[r] - p1, impulse[r + 1] - p2, impulse[r + 2] - pn
        change = np.sqrt(d1 * d1 + d2 * d2 + dn * dn)
        if change > worst or change != change:  # max() would lose not-a-number
            worst = change
    rest = scalar_rows_map(G, g, lower, upper, impulse, 3 * nc)
    return rest if rest > worst or rest != rest else worst


@kernel
def scalar_rows_map(G, g, lower, upper, impulse, first):
    """Return max_k |λ_k − Proj(λ_k − w_k / G_kk)| [N s] of the rows of intervals, from `first`."""
    worst = 0.0
    for k in range(lower.shape[0]):
        r = first + k
        step = impulse[r] - row_velocity(G, g, impulse, r) / G[r, r]
        change = abs(impulse[r] - min(max(step, lower[k]), upper[k]))
        if change > worst or change != change:
            worst = change
    return worst


@kernel
def impulse_scale(G, g, mu, impulse):
    """Return the size of a typical impulse [N s] against which tolerances are relative."""
    scale, nc = 0.0, mu.shape[0]
    for i in range(nc):
        largest = largest_eigenvalue(G, 3 * i)
        for r in range(3 * i, 3 * i + 3):
            scale = max(scale, abs(impulse[r]), abs(g[r]) / largest)
    for r in range(3 * nc, impulse.shape[0]):
        scale = max(scale, abs(impulse[r]), abs(g[r]) / G[r, r])
    return scale
