"""A spring with Hunt and Crossley's damping and regularised friction, as the gradient of a cost.

    LAGGED    γ_n = n(u_n),   γ_t = −μ n₀ t
    SIMILAR   γ_n = n(z),     γ_t = −μ γ_n t,   z = u_n − μ (S − ε)

    n(z) = h k (−φ − h z)₊ (1 − d z)₊   at the end of the step
    t = u_t/S,   S = √(|u_t|² + ε²)

n₀ is n of the start of the step (theory 2.3). With d the direction of slip and s = |u_t|/S,

    H = −∂γ/∂u = (b/S) e₂ e₂ᵀ + (b ε²/S³) d dᵀ − n' (n − μ s d)(n − μ s d)ᵀ,   e₂ across d,

b the bound of friction, μ n₀ or μ γ_n; s counts in SIMILAR only.

[Castro et al. 2023] A Theory of Irrotational Contact Fields.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import add_direction, add_row
from contact_sim.solvers.soft_law import BOUND, GAP, LAGGED, STICTION

NO_STIFFNESS = 1e-30
"""Largest h tr(G_ii) at which a direction counts as without stiffness [-]."""


@kernel
def hunt_crossley(z, gap, spring):
    """Return n(z) [N s] and −n'(z) [kg]."""
    h, k, d = spring
    elastic, viscous = -k * (gap + h * z), 1.0 - d * z
    if elastic <= 0.0 or viscous <= 0.0:
        return 0.0, 0.0
    return h * elastic * viscous, h * (h * k * viscous + d * elastic)


@kernel
def regularised(law, i, mu, u):
    """Return (S, γ_n, −n', b) of contact `i` at the velocity u [m/s], shape (n,)."""
    r, eps = 3 * i, law.contact[i, STICTION]
    size = np.sqrt(u[r] * u[r] + u[r + 1] * u[r + 1] + eps * eps)
    z = u[r + 2] if law.form == LAGGED else u[r + 2] - mu * (size - eps)
    normal, slope = hunt_crossley(z, law.contact[i, GAP], law.spring)
    return size, normal, slope, law.contact[i, BOUND] if law.form == LAGGED else mu * normal


@kernel
def regularised_impulse(law, i, mu, u):
    """Return γ of contact `i` in its rows t1, t2, n [N s]."""
    size, normal, _, bound = regularised(law, i, mu, u)
    return -bound * u[3 * i] / size, -bound * u[3 * i + 1] / size, normal


@kernel
def regularised_stiffness(law, i, mu, u):
    """Return d, (b/S, b ε²/S³, −n') [kg] and μ s of contact `i`."""
    size, _, slope, bound = regularised(law, i, mu, u)
    u1, u2, eps = u[3 * i], u[3 * i + 1], law.contact[i, STICTION]
    slip = np.sqrt(u1 * u1 + u2 * u2)
    d1, d2 = (u1 / slip, u2 / slip) if slip > 0.0 else (1.0, 0.0)
    tilt = 0.0 if law.form == LAGGED else mu * slip / size
    return d1, d2, bound / size, bound * eps * eps / (size * size * size), slope, tilt


@kernel
def regularised_stiffness_along(law, i, mu, u, way):
    """Return wayᵀ H(u) way of contact `i` [J]; `way` is a change of u [m/s], (n,)."""
    d1, d2, across, along, slope, tilt = regularised_stiffness(law, i, mu, u)
    r = 3 * i
    w1, w2 = d1 * way[r] + d2 * way[r + 1], d1 * way[r + 1] - d2 * way[r]
    w3 = way[r + 2] - tilt * w1
    return along * w1 * w1 + across * w2 * w2 + slope * w3 * w3


@kernel
def sum_of_two(along, slope, tilt):
    """Return (c, s, h₁, h₃) of along · (1, 0)(1, 0)ᵀ + slope · (−tilt, 1)(−tilt, 1)ᵀ.

    It is h₁ (c, s)(c, s)ᵀ + h₃ (−s, c)(−s, c)ᵀ.
    """
    if tilt == 0.0 or slope == 0.0:
        return 1.0, 0.0, along, slope
    a, b = along + slope * tilt * tilt, -slope * tilt
    half = 0.5 * (a - slope)
    root = np.sqrt(half * half + b * b)
    largest = 0.5 * (a + slope) + root
    x, y = (half + root, b) if half > 0.0 else (b, root - half)
    length = np.sqrt(x * x + y * y)
    return x / length, y / length, largest, along * slope / largest


@kernel
def regularised_directions(rows, law, i, m, work):
    """Fill the directions e_k and 1/h_k of contact i from k = m on; return their number."""
    G, r, first = rows.delassus, 3 * i, m
    d1, d2, across, along, slope, tilt = regularised_stiffness(
        law, i, rows.friction[i], work.velocity
    )
    c, s, h1, h3 = sum_of_two(along, slope, tilt)
    least = NO_STIFFNESS / (G[r, r] + G[r + 1, r + 1] + G[r + 2, r + 2])
    if h1 > least:
        add_direction(work, m, r, (c * d1, c * d2, s), 1.0 / h1)
        m += 1
    if across > least:
        add_direction(work, m, r, (-d2, d1, 0.0), 1.0 / across)
        m += 1
    if h3 > least:
        if s == 0.0:
            add_row(work, m, r + 2, 1.0 / h3)
        else:
            add_direction(work, m, r, (-s * d1, -s * d2, c), 1.0 / h3)
        m += 1
    return m - first
