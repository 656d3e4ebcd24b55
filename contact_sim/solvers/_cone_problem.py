"""One contact problem as numbers: rows, status codes, friction cones, natural map.

The rows of a contact are (t1, t2, n) and K_μ = {λ : |λ_t| ≤ μ λ_n} is its friction cone. Scalar
rows follow, each with its impulse in an interval [lower, upper]: a box for dry friction, a half
line for limits, the whole line for bilateral rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers._dense import fill_product
from contact_sim.solvers._jit import kernel


class Rows(NamedTuple):
    """The numbers of one problem: w = G λ + g per row, n = 3 nc + ns rows."""

    delassus: Any  # G [1/kg], shape (n, n)
    g: Any  # velocity of the rows without impulses [m/s], shape (n,)
    friction: Any  # μ [-], shape (nc,)
    lower: Any  # lower bounds of the scalar impulses [N s], shape (ns,); −inf allowed
    upper: Any  # upper bounds, shape (ns,); inf allowed


class ConeWork(NamedTuple):
    """Scratch of `solve_cones` for n rows or more."""

    rho: Any  # step length of every row in the natural map [kg], shape (n,)
    velocity: Any  # w of the impulse [m/s], shape (n,)
    trial: Any  # impulse that is tried [N s], shape (n,)
    trial_velocity: Any  # w of that impulse [m/s], shape (n,)
    best: Any  # best impulse so far [N s], shape (n,)
    direction: Any
    """Unit vector of λ_t of the slipping contacts in their tangential rows, shape (n,)."""
    line: Any  # one equation of the modes before it is reduced to the unknowns, shape (n,)
    step: Any  # Newton step of the unknowns, shape (n,)
    matrix: Any  # matrix of the modes, shape (n, n)
    kind: Any  # kind of every unknown, integers, shape (n,)
    row: Any  # row of every unknown, integers, shape (n,)


@kernel
def cone_work(n):
    """Return scratch for problems of up to `n` rows."""
    return ConeWork(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n), np.empty((n, n)), np.empty(n, np.int64), np.empty(n, np.int64),
    )  # fmt: skip


# Status codes of a solve, in the order of `SolverStatus`.

(
    FREE, CONVERGED, CONVERGED_BY_FALLBACK, MAX_ITERATIONS, RAY_TERMINATION, NONFINITE, UNSTABLE,
    INCONSISTENT, TOO_MANY_EVENTS, PULLING, OUTSIDE_CONE, SINKING, IMMOVABLE,
) = range(13)  # fmt: skip


@kernel
def worse_status(first, second):
    """Return the worse of two codes; a failed solve is worse than a code that judges a stance."""
    failed = MAX_ITERATIONS <= first < PULLING, MAX_ITERATIONS <= second < PULLING
    if failed[0] != failed[1]:
        return first if failed[0] else second
    return max(first, second)


# Projection, velocity and natural map.

LARGEST_SCALE = 1e5
"""Largest impulse over that of single rows, up to which tolerances grow with it [-]."""


@kernel
def project_cone(t1, t2, n, mu):
    """Return the point of K_μ nearest to (t1, t2, n)."""
    tangential = np.sqrt(t1 * t1 + t2 * t2)
    # inside the cone
    if tangential <= mu * n and n >= 0.0:  # n ≥ 0: with μ = 0, μ n is −0 for a pull
        return t1, t2, n
    # inside the polar cone: the nearest point is the apex
    if mu * tangential <= -n or tangential == 0.0:
        return 0.0, 0.0, 0.0
    # nearest point of the lateral surface
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
    # trigonometric solution of the characteristic polynomial of (G/mean − I)/spread
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
def fill_velocity(rows, impulse, w):
    """Fill w = G λ + g, four rows at a time; sums in the order of `row_velocity`."""
    G, g = rows.delassus, rows.g
    n = G.shape[0]
    r = 0
    while r + 3 < n:
        w0, w1, w2, w3 = g[r], g[r + 1], g[r + 2], g[r + 3]
        for c in range(n):
            x = impulse[c]
            w0 += G[r, c] * x
            w1 += G[r + 1, c] * x
            w2 += G[r + 2, c] * x
            w3 += G[r + 3, c] * x
        w[r], w[r + 1], w[r + 2], w[r + 3] = w0, w1, w2, w3
        r += 4
    while r < n:
        w[r] = row_velocity(G, g, impulse, r)
        r += 1


@kernel
def fill_velocity_symmetric(rows, impulse, w):
    """Fill w = G λ + g for a symmetric G: contiguous access takes half of the time."""
    g = rows.g
    fill_product(rows.delassus, impulse, w)
    for r in range(g.shape[0]):
        w[r] += g[r]


@kernel
def fill_rho(rows, rho):
    """Fill ρ of every row: 1/λ_max(G_ii) in the rows of contact i, 1/G_kk in a scalar row."""
    G, nc = rows.delassus, rows.friction.shape[0]
    for r in range(0, 3 * nc, 3):
        rho[r] = rho[r + 1] = rho[r + 2] = 1.0 / largest_eigenvalue(G, r)
    for r in range(3 * nc, G.shape[0]):
        rho[r] = 1.0 / G[r, r]


@kernel
def natural_map_at(rows, impulse, w, rho, associated):
    """Return `natural_map` from w = G λ + g and ρ, both of shape (n,)."""
    worst = 0.0
    mu = rows.friction
    for i in range(mu.shape[0]):
        r = 3 * i
        # velocity with the De Saxcé shift (1 − κ) Γ(w) in its normal part
        step, w1, w2 = rho[r], w[r], w[r + 1]
        wn = w[r + 2] + (1.0 - associated) * mu[i] * np.sqrt(w1 * w1 + w2 * w2)
        # projected gradient step, and how far it leads
        p1, p2, pn = project_cone(
            impulse[r] - step * w1, impulse[r + 1] - step * w2, impulse[r + 2] - step * wn, mu[i]
        )
        d1, d2, dn = impulse[r] - p1, impulse[r + 1] - p2, impulse[r + 2] - pn
        change = d1 * d1 + d2 * d2 + dn * dn
        if change > worst or change != change:  # max() would drop NaN
            worst = change
    worst = np.sqrt(worst)
    # scalar rows
    rest = scalar_rows_map(rows, impulse, w, rho)
    return rest if rest > worst or rest != rest else worst


@kernel
def scalar_rows_map(rows, impulse, w, rho):
    """Return max_k |λ_k − Proj(λ_k − ρ_k w_k)| [N s] of the scalar rows; `w` and `rho` (n,)."""
    worst, first = 0.0, 3 * rows.friction.shape[0]
    for k in range(rows.lower.shape[0]):
        r = first + k
        moved = impulse[r] - rho[r] * w[r]
        change = abs(impulse[r] - min(max(moved, rows.lower[k]), rows.upper[k]))
        if change > worst or change != change:
            worst = change
    return worst


@kernel
def impulse_scale_at(rows, impulse, rho):
    """Return `impulse_scale` from ρ (n,)."""
    impulses = velocities = 0.0  # two maxima without max(): independent chains
    for r in range(rows.g.shape[0]):
        size, single = abs(impulse[r]), abs(rows.g[r]) * rho[r]
        if size > impulses:
            impulses = size
        if single > velocities:
            velocities = single
    return max(min(impulses, LARGEST_SCALE * velocities), velocities)


@kernel
def natural_map(rows, impulse, associated):
    """Return max_i |λ_i − Proj(λ_i − ρ_i (w_i + (1 − κ) Γ(w_i)))| [N s], w = G λ + g.

    Γ(w) = (0, 0, μ |w_t|) (De Saxcé), ρ_i = 1 / λ_max(G_ii), κ = `associated`. With κ = 0 it is
    zero exactly where Signorini, Coulomb and maximum dissipation hold (theory 2.15); with
    κ = 1 at the minimum of ½ λᵀ G λ + gᵀ λ over the cones (theory 2.12). NaN where an impulse is.
    """
    n = rows.g.shape[0]
    rho, w = np.empty(n), np.empty(n)
    fill_rho(rows, rho)
    fill_velocity(rows, impulse, w)
    return natural_map_at(rows, impulse, w, rho, associated)


@kernel
def impulse_scale(rows, impulse):
    """Return the impulse against which tolerances are relative [N s].

    That is the largest impulse, but at most LARGEST_SCALE times, and at least, the largest that a
    row would take alone, |g_r| ρ_r.
    """
    rho = np.empty(rows.g.shape[0])
    fill_rho(rows, rho)
    return impulse_scale_at(rows, impulse, rho)


# Friction of one contact at a fixed normal impulse: a quadratic over a disc.


@kernel
def least_in_disc(a, b, c, p, q, radius):
    """Return the minimum of ½ xᵀ [[a, b], [b, c]] x + (p, q)·x over |x| ≤ radius."""
    x = y = shift = 0.0
    size = 1.0
    for _ in range(60):
        # stationary point of the quadratic with the multiplier `shift` of |x|² added
        determinant = (a + shift) * (c + shift) - b * b
        x, y = (-(c + shift) * p + b * q) / determinant, (b * p - (a + shift) * q) / determinant
        size = np.sqrt(x * x + y * y)
        if size <= radius * (1.0 + 1e-14):
            return x, y
        if radius <= 0.0:
            return 0.0, 0.0
        # outside: Newton on 1/|x| − 1/radius, which is nearly linear in the shift
        slope = ((c + shift) * x * x - 2.0 * b * x * y + (a + shift) * y * y) / determinant
        shift += (size / radius - 1.0) * size * size / slope
    return x * radius / size, y * radius / size


@kernel
def friction_sweep(rows, impulse):
    """Minimise over tangential impulses in turn, normal ones fixed; return the largest change."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        # gradient without the contribution of the contact itself
        p, q = row_velocity(G, g, impulse, r), row_velocity(G, g, impulse, r + 1)
        p -= G[r, r] * impulse[r] + G[r, r + 1] * impulse[r + 1]
        q -= G[r + 1, r] * impulse[r] + G[r + 1, r + 1] * impulse[r + 1]
        radius = mu[i] * impulse[r + 2]
        t1, t2 = least_in_disc(G[r, r], G[r, r + 1], G[r + 1, r + 1], p, q, radius)
        change = max(change, abs(t1 - impulse[r]), abs(t2 - impulse[r + 1]))
        impulse[r], impulse[r + 1] = t1, t2
    return change
