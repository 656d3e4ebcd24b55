"""Compliant contact as the gradient of a convex cost: impulse γ(u) and stiffness H = −∂γ/∂u.

Three forms of a contact; scalar rows are γ = clip(R⁻¹ (v̂ − u), lower, upper) in all of them.

    CONE      γ = P(R⁻¹ (v̂ − u)), P the projection on the friction cone in the norm of R
    LAGGED    γ_n = n(u_n),   γ_t = −μ n₀ t
    SIMILAR   γ_n = n(z),     γ_t = −μ γ_n t,   z = u_n − μ (S − ε)

    n(z) = h k (−φ − h z)₊ (1 − d z)₊   Hunt and Crossley at the end of the step
    t = u_t/S,   S = √(|u_t|² + ε²)     regularised friction

n₀ is n of the start of the step (theory 2.3). H = Σ_k h_k e_k e_kᵀ with orthonormal e_k in the
frame (d, across d, n), d the direction of slip.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact.
[Castro et al. 2023] A Theory of Irrotational Contact Fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.jit import kernel

CONE, LAGGED, SIMILAR = range(3)
"""Forms of a contact."""
OPEN, STICK, CURVED = range(3)
"""Regions: without stiffness, with that of the rows 1/R, with directions of its own."""
GAP, BOUND, STICTION = range(3)
"""Columns of `SoftLaw.contact`."""


class SoftLaw(NamedTuple):
    """The compliance of every row of one problem."""

    form: int
    """CONE, LAGGED or SIMILAR."""
    v_hat: Any
    """v̂ [m/s], shape (n,); of scalar rows only, unless the form is CONE."""
    R: Any
    """Compliance [1/kg], > 0; both tangential rows of a contact alike, shape (n,)."""
    contact: Any
    """φ [m], inf where it does not act; μ n₀ [N s]; ε [m/s]; shape (nc, 3). Not used by CONE."""
    spring: Any
    """h [s], k [N/m] and d [s/m] of n(z). Not used by CONE."""


class Directions(NamedTuple):
    """H of one contact: along e₁ = c d + s n, e₂ across d, e₃ = −s d + c n."""

    region: int
    """OPEN, STICK or CURVED; the rest counts only where it is CURVED."""
    d1: float
    """Component of d along t1."""
    d2: float
    """Along t2."""
    c: float
    """Cosine of the angle from d to e₁."""
    s: float
    """Its sine."""
    h1: float
    """Stiffness along e₁ [kg]."""
    h2: float
    """Along e₂."""
    h3: float
    """Along e₃."""


@kernel
def cone_law(v_hat, R):
    """Return the law of form CONE with these v̂ and R, shapes (n,)."""
    return SoftLaw(CONE, v_hat, R, R[:0].reshape(0, 3), (0.0, 0.0, 0.0))


# ---------------------------------------------------------------- impulse


@kernel
def project_compliant(y1, y2, yn, mu, rt, rn):
    """Return (γ_t1, γ_t2, γ_n, region): P(y) in the norm of R; CURVED where it slides."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    if size <= mu * yn and yn >= 0.0:  # without friction μ y_n is −0 for a pull
        return y1, y2, yn, STICK
    weak = mu * rt / rn
    if yn <= -weak * size or size == 0.0:
        return 0.0, 0.0, 0.0, OPEN
    normal = (yn + weak * size) / (1.0 + mu * weak)
    return mu * normal * y1 / size, mu * normal * y2 / size, normal, CURVED


@kernel
def hunt_crossley(z, gap, spring):
    """Return n(z) [N s] and −n'(z) [kg]."""
    h, k, d = spring
    elastic, viscous = -k * (gap + h * z), 1.0 - d * z
    if elastic <= 0.0 or viscous <= 0.0:
        return 0.0, 0.0
    return h * elastic * viscous, h * (h * k * viscous + d * elastic)


@kernel
def regularised(law, i, mu, u1, u2, un):
    """Return (S, γ_n, −n', friction bound μ γ_n or μ n₀) of contact `i`, not of form CONE."""
    eps = law.contact[i, STICTION]
    size = np.sqrt(u1 * u1 + u2 * u2 + eps * eps)
    z = un if law.form == LAGGED else un - mu * (size - eps)
    normal, slope = hunt_crossley(z, law.contact[i, GAP], law.spring)
    return size, normal, slope, law.contact[i, BOUND] if law.form == LAGGED else mu * normal


@kernel
def contact_impulse(law, i, mu, u1, u2, un):
    """Return (γ_t1, γ_t2, γ_n) [N s] of contact `i` at the velocity (u1, u2, un) [m/s]."""
    if law.form == CONE:
        v_hat, R, r = law.v_hat, law.R, 3 * i
        y1, y2, yn = (v_hat[r] - u1) / R[r], (v_hat[r + 1] - u2) / R[r + 1], v_hat[r + 2] - un
        g1, g2, gn, _ = project_compliant(y1, y2, yn / R[r + 2], mu, R[r], R[r + 2])
        return g1, g2, gn
    size, normal, _, bound = regularised(law, i, mu, u1, u2, un)
    return -bound * u1 / size, -bound * u2 / size, normal


@kernel
def scalar_impulse(law, r, u):
    """Return R⁻¹ (v̂ − u) of the scalar row `r`, before its bounds."""
    return (law.v_hat[r] - u) / law.R[r]


@kernel
def fill_impulse(rows, law, u, gamma):
    """γ ← γ(u), shapes (n,)."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        gamma[r], gamma[r + 1], gamma[r + 2] = contact_impulse(
            law, i, mu[i], u[r], u[r + 1], u[r + 2]
        )
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        gamma[r] = min(max(scalar_impulse(law, r, u[r]), lower[k]), upper[k])


# ---------------------------------------------------------------- stiffness


@kernel
def directions(law, i, mu, u1, u2, un):
    """Return the `Directions` of contact `i` at the velocity (u1, u2, un) [m/s]."""
    if law.form == CONE:
        return cone_directions(law, i, mu, u1, u2, un)
    eps = law.contact[i, STICTION]
    size, _, slope, bound = regularised(law, i, mu, u1, u2, un)
    if bound == 0.0 and slope == 0.0:
        return Directions(OPEN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    slip = np.sqrt(u1 * u1 + u2 * u2)
    d1, d2 = (u1 / slip, u2 / slip) if slip > 0.0 else (1.0, 0.0)
    across, along = bound / size, bound * eps * eps / (size * size * size)
    tilt = mu * slip / size if law.form == SIMILAR else 0.0
    c, s, h1, h3 = sum_of_two(along, slope, tilt)
    return Directions(CURVED, d1, d2, c, s, h1, across, h3)


@kernel
def cone_directions(law, i, mu, u1, u2, un):
    """Return those of a contact of form CONE: one that slides has the generator of the cone."""
    v_hat, R, r = law.v_hat, law.R, 3 * i
    rt, rn = R[r], R[r + 2]
    y1, y2, yn = (v_hat[r] - u1) / rt, (v_hat[r + 1] - u2) / R[r + 1], (v_hat[r + 2] - un) / rn
    _, _, normal, region = project_compliant(y1, y2, yn, mu, rt, rn)
    if region != CURVED:
        return Directions(region, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    size, length = np.sqrt(y1 * y1 + y2 * y2), np.sqrt(1.0 + mu * mu)
    along, across = (1.0 + mu * mu) / (rn + mu * mu * rt), mu * normal / (size * rt)
    return Directions(
        CURVED, y1 / size, y2 / size, mu / length, 1.0 / length, along, across, 0.0
    )  # fmt: skip


@kernel
def sum_of_two(along, slope, tilt):
    """Return (c, s, h₁, h₃) of along · (1, 0)(1, 0)ᵀ + slope · (−tilt, 1)(−tilt, 1)ᵀ."""
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
def stiffness_along(rows, law, u, way):
    """Return wayᵀ H(u) way [J]; `way` is a change of u [m/s], shape (n,)."""
    mu, lower, upper, R = rows.friction, rows.lower, rows.upper, law.R
    nc, total = mu.shape[0], 0.0
    for i in range(nc):
        r = 3 * i
        H = directions(law, i, mu[i], u[r], u[r + 1], u[r + 2])
        if H.region == STICK:
            for k in range(r, r + 3):
                total += way[k] * way[k] / R[k]
        elif H.region == CURVED:
            slip = H.d1 * way[r] + H.d2 * way[r + 1]
            w1, w3 = H.c * slip + H.s * way[r + 2], H.c * way[r + 2] - H.s * slip
            w2 = H.d1 * way[r + 1] - H.d2 * way[r]
            total += H.h1 * w1 * w1 + H.h2 * w2 * w2 + H.h3 * w3 * w3
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < scalar_impulse(law, r, u[r]) < upper[k]:
            total += way[r] * way[r] / R[r]
    return total
