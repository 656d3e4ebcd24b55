"""A spring with Hunt and Crossley's damping and regularised friction, as the gradient of a cost.

    LAGGED    γ_n = n(u_n),   γ_t = −μ n₀ t
    SIMILAR   γ_n = n(z),     γ_t = −μ γ_n t,   z = u_n − μ (S − ε)

    n(z) = h k (−φ − h z)₊ (1 − d z)₊   at the end of the step
    t = u_t/S,   S = √(|u_t|² + ε²)

n₀ is n of the start of the step (theory 2.3). With d the direction of slip and s = |u_t|/S,

    H = −∂γ/∂u = (b/S) e₂ e₂ᵀ + (b ε²/S³) d dᵀ − n' (n − μ s d)(n − μ s d)ᵀ,   e₂ across d,

b the bound of friction, μ n₀ or μ γ_n; s counts in SIMILAR only.

Arguments, of one contact in its rows t1, t2, n: `lagged` or similar, `u` its velocity [m/s], `mu`
its friction [-], `place` (φ [m], μ n₀ [N s], ε [m/s]), `spring` (h [s], k [N/m], d [s/m]).

[Castro et al. 2023] A Theory of Irrotational Contact Fields.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import NO_STIFFNESS, Directions


@kernel
def hunt_crossley(z, gap, spring):
    """Return n(z) [N s] and −n'(z) [kg]."""
    h, k, d = spring
    elastic, viscous = -k * (gap + h * z), 1.0 - d * z
    if elastic <= 0.0 or viscous <= 0.0:
        return 0.0, 0.0
    return h * elastic * viscous, h * (h * k * viscous + d * elastic)


@kernel
def regularised(lagged, u, mu, place, spring):
    """Return (1/S, γ_n, −n', b)."""
    gap, bound, eps = place
    size = np.sqrt(u[0] * u[0] + u[1] * u[1] + eps * eps)
    z = u[2] if lagged else u[2] - mu * (size - eps)
    normal, slope = hunt_crossley(z, gap, spring)
    return 1.0 / size, normal, slope, bound if lagged else mu * normal


@kernel
def regularised_impulse(lagged, u, mu, place, spring):
    """Return γ [N s]."""
    over_size, normal, _, bound = regularised(lagged, u, mu, place, spring)
    share = -bound * over_size
    return share * u[0], share * u[1], normal


@kernel
def regularised_stiffness(lagged, u, mu, place, spring):
    """Return d, (b/S, b ε²/S³, −n') [kg] and μ s."""
    over_size, _, slope, bound = regularised(lagged, u, mu, place, spring)
    slip = np.sqrt(u[0] * u[0] + u[1] * u[1])
    d1, d2 = (u[0] / slip, u[1] / slip) if slip > 0.0 else (1.0, 0.0)
    across, share = bound * over_size, place[2] * over_size
    tilt = 0.0 if lagged else mu * slip * over_size
    return d1, d2, across, across * share * share, slope, tilt


@kernel
def regularised_stiffness_along(lagged, u, mu, place, spring, way):
    """Return wayᵀ H way [J]; `way` is a change of u [m/s]."""
    d1, d2, across, along, slope, tilt = regularised_stiffness(lagged, u, mu, place, spring)
    w1, w2 = d1 * way[0] + d2 * way[1], d1 * way[1] - d2 * way[0]
    w3 = way[2] - tilt * w1
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
def regularised_directions(lagged, u, mu, place, spring, trace):
    """Return its `Directions`; `trace` is that of G_ii [1/kg]."""
    d1, d2, across, along, slope, tilt = regularised_stiffness(lagged, u, mu, place, spring)
    c, s, h1, h3 = sum_of_two(along, slope, tilt)
    return Directions(
        (c * d1, c * d2, s), (-d2, d1, 0.0), (-s * d1, -s * d2, c),
        (softness_of(h1, trace), softness_of(across, trace), softness_of(h3, trace)),
    )  # fmt: skip


@kernel
def softness_of(stiffness, trace):
    """Return 1/h, inf where there is next to no stiffness."""
    return 1.0 / stiffness if stiffness * trace > NO_STIFFNESS else np.inf
