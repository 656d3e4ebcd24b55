"""A compliant contact whose friction cone is the pyramid of the edges n ± μ t_i.

    γ = D β,   β_j = max(0, s_j)/R,   s = Dᵀ (v̂ − u),   D = [n ± μ t1, n ± μ t2]

Every edge is a spring with compliance R that only pushes. The edges are combinations of the three
rows of the contact, so that the problem stays one of rows: β is never asked for, nor its matrix.
H = −∂γ/∂u = D_a D_aᵀ/R over the edges D_a that push. Both of one axis have (t_i, 0) with
h = 2 μ²/R, and since s_{+i} + s_{−i} = 2 (v̂_n − u_n), the edges of the other axis cannot both rest
while they push.

Arguments, of one contact in its rows t1, t2, n: `missing` v̂ − u [m/s], `mu` its friction [-], > 0,
`R` the compliance of its edges [1/kg].
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import Directions


@kernel
def edge_speeds(missing, mu):
    """Return s of the edges n + μ t1, n − μ t1, n + μ t2, n − μ t2."""
    t1, t2, n = mu * missing[0], mu * missing[1], missing[2]
    return n + t1, n - t1, n + t2, n - t2


@kernel
def pyramid_impulse(missing, mu, R):
    """Return γ [N s]."""
    a, b, c, d = edge_speeds(missing, mu)
    a, b, c, d = max(a, 0.0), max(b, 0.0), max(c, 0.0), max(d, 0.0)
    return mu * (a - b) / R, mu * (c - d) / R, (a + b + c + d) / R


@kernel
def pyramid_stiffness_along(missing, mu, R, way):
    """Return wayᵀ H way [J]; `way` is a change of u [m/s]."""
    a, b, c, d = edge_speeds(missing, mu)
    n, t1, t2, total = way[2], mu * way[0], mu * way[1], 0.0
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
def pyramid_directions(missing, mu, R):
    """Return its `Directions`."""
    a, b, c, d = edge_speeds(missing, mu)
    first, second = int(a > 0.0) + int(b > 0.0), int(c > 0.0) + int(d > 0.0)
    e1, e2 = mu * (int(a > 0.0) - int(b > 0.0)), mu * (int(c > 0.0) - int(d > 0.0))
    t1, t2, n, none = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), np.inf
    both = 0.5 * R / (mu * mu)
    if first + second == 4:
        return Directions(t1, t2, n, (both, both, 0.25 * R))
    if first + second == 3:  # one axis has both edges and is a row; e of the other with n
        trace, e = mu * mu + 3.0, e1 + e2
        largest = 0.5 * (trace + np.sqrt(trace * trace - 8.0 * mu * mu))
        size = np.sqrt(mu * mu + (largest - mu * mu) ** 2)
        along, up = e / size, (largest - mu * mu) / size
        softness = both, R / largest, largest * both
        if first == 2:
            return Directions(t1, (0.0, along, up), (0.0, -up, along), softness)
        return Directions(t2, (along, 0.0, up), (-up, 0.0, along), softness)
    if first + second == 2:  # one edge of each axis: their sum and their difference
        size, half = np.sqrt(4.0 + 2.0 * mu * mu), np.sqrt(0.5) / mu
        softness = R / (2.0 + mu * mu), R / (mu * mu), none
        total, difference = (e1 / size, e2 / size, 2.0 / size), (half * e1, -half * e2, 0.0)
        return Directions(total, difference, n, softness)
    if first + second == 1:
        size = np.sqrt(1.0 + mu * mu)
        edge = e1 / size, e2 / size, 1.0 / size
        return Directions(edge, t2, n, (R / (1.0 + mu * mu), none, none))
    return Directions(t1, t2, n, (none, none, none))
