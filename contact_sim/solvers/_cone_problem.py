"""The sets a contact impulse may lie in, as numbers: friction cones and intervals.

Rows of one contact are (t1, t2, n). K_μ = {λ : |λ_t| ≤ μ λ_n}. Intervals [lower, upper] serve
dry friction (box), limits (half line) and bilateral rows (whole line).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers._dense import fill_product
from contact_sim.solvers._jit import kernel

# --- One contact problem as numbers, and the scratch of the solvers that do not allocate.
#
# Rows come contact by contact, (t1, t2, n) each, then the scalar rows. A scalar row has its
# impulse
# in an interval [lower, upper], which dry friction bounds on both sides, a limit on one and a
# bilateral constraint on none: bounds may be −inf and inf.


class Rows(NamedTuple):
    """The numbers of one problem: w = G λ + g per row, n = 3 nc + ns rows."""

    delassus: Any
    """G [1/kg], shape (n, n)."""
    g: Any
    """Velocity of the rows without impulses [m/s], shape (n,)."""
    friction: Any
    """μ [-], shape (nc,)."""
    lower: Any
    """Lower bounds of the scalar impulses [N s], shape (ns,); −inf allowed."""
    upper: Any
    """Upper bounds, shape (ns,); inf allowed."""


class ConeWork(NamedTuple):
    """Scratch of `cones.solve_cones`; only the first n entries are used, there may be more."""

    rho: Any
    """Step length of every row in the natural map [kg], shape (n,)."""
    velocity: Any
    """w of the impulse [m/s], shape (n,)."""
    trial: Any
    """Impulse that is tried [N s], shape (n,)."""
    trial_velocity: Any
    """w of that impulse [m/s], shape (n,)."""
    best: Any
    """Best impulse so far [N s], shape (n,)."""
    direction: Any
    """Unit vector of λ_t of the slipping contacts in their tangential rows, shape (n,)."""
    line: Any
    """One equation of the modes before it is reduced to the unknowns, shape (n,)."""
    step: Any
    """Newton step of the unknowns, shape (n,)."""
    matrix: Any
    """Matrix of the modes, shape (n, n)."""
    kind: Any
    """Kind of every unknown, integers, shape (n,)."""
    row: Any
    """Row of every unknown, integers, shape (n,)."""


@kernel
def cone_work(n):
    """Return scratch for problems of up to `n` rows."""
    return ConeWork(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n), np.empty((n, n)), np.empty(n, np.int64), np.empty(n, np.int64),
    )  # fmt: skip


# --- Codes of how a solve ended, in the order of `contact.solution.SolverStatus`.

(
    FREE, CONVERGED, CONVERGED_BY_FALLBACK, MAX_ITERATIONS, RAY_TERMINATION, NONFINITE, UNSTABLE,
    INCONSISTENT, TOO_MANY_EVENTS, PULLING, OUTSIDE_CONE, SINKING, IMMOVABLE,
) = range(13)  # fmt: skip


@kernel
def worse_status(first, second):
    """Return the worse of two codes: one of a failed solve before one that judges a stance."""
    failed = MAX_ITERATIONS <= first < PULLING, MAX_ITERATIONS <= second < PULLING
    if failed[0] != failed[1]:
        return first if failed[0] else second
    return max(first, second)


# --- The sets a contact impulse may lie in, as numbers: friction cones and intervals.

LARGEST_SCALE = 1e5
"""Impulses over those of rows alone, up to which a tolerance follows them [-]."""


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
def fill_velocity(rows, impulse, w):
    """Fill w = G λ + g, four rows at a time; each row sums in the order of `row_velocity`."""
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
    """Fill w = G λ + g for a symmetric G, in half of the time: along the rows of memory."""
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
    """Return the natural map, see `natural_map`, from w = G λ + g and ρ, both of shape (n,)."""
    worst = 0.0
    mu = rows.friction
    for i in range(mu.shape[0]):
        r = 3 * i
        step, w1, w2 = rho[r], w[r], w[r + 1]
        wn = w[r + 2] + (1.0 - associated) * mu[i] * np.sqrt(w1 * w1 + w2 * w2)
        p1, p2, pn = project_cone(
            impulse[r] - step * w1, impulse[r + 1] - step * w2, impulse[r + 2] - step * wn, mu[i]
        )
        d1, d2, dn = impulse[r] - p1, impulse[r + 1] - p2, impulse[r + 2] - pn
        change = d1 * d1 + d2 * d2 + dn * dn
        if change > worst or change != change:  # max() would lose not-a-number
            worst = change
    worst = np.sqrt(worst)
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
    """Return the size of a typical impulse, see `impulse_scale`, from ρ (n,)."""
    impulses = velocities = 0.0  # apart, and compared without max(): neither waits for the other
    for r in range(rows.g.shape[0]):
        given, alone = abs(impulse[r]), abs(rows.g[r]) * rho[r]
        if given > impulses:
            impulses = given
        if alone > velocities:
            velocities = alone
    return max(min(impulses, LARGEST_SCALE * velocities), velocities)


@kernel
def natural_map(rows, impulse, associated):
    """Return max_i |λ_i − Proj(λ_i − ρ_i (w_i + (1 − κ) Γ(w_i)))| [N s], w = G λ + g.

    Γ(w) = (0, 0, μ |w_t|) (De Saxcé), ρ_i = 1 / λ_max(G_ii), κ = `associated`. With κ = 0 it is
    zero exactly where Signorini, Coulomb and maximum dissipation hold (theory 2.15); with
    κ = 1 at the minimum of ½ λᵀ G λ + gᵀ λ over the cones (theory 2.12). Not a number where an
    impulse is not.
    """
    n = rows.g.shape[0]
    rho, w = np.empty(n), np.empty(n)
    fill_rho(rows, rho)
    fill_velocity(rows, impulse, w)
    return natural_map_at(rows, impulse, w, rho, associated)


@kernel
def impulse_scale(rows, impulse):
    """Return the size of a typical impulse [N s] against which tolerances are relative."""
    rho = np.empty(rows.g.shape[0])
    fill_rho(rows, rho)
    return impulse_scale_at(rows, impulse, rho)


# --- Least quadratic over a disc: the friction of one contact whose normal impulse is given.


@kernel
def least_in_disc(a, b, c, p, q, radius):
    """Return the minimum of ½ xᵀ [[a, b], [b, c]] x + (p, q)·x over |x| ≤ radius."""
    x = y = shift = 0.0
    size = 1.0
    for _ in range(60):
        determinant = (a + shift) * (c + shift) - b * b
        x, y = (-(c + shift) * p + b * q) / determinant, (b * p - (a + shift) * q) / determinant
        size = np.sqrt(x * x + y * y)
        if size <= radius * (1.0 + 1e-14):
            return x, y
        if radius <= 0.0:
            return 0.0, 0.0
        # Newton on 1/|x| − 1/radius, which is nearly linear in the shift
        slope = ((c + shift) * x * x - 2.0 * b * x * y + (a + shift) * y * y) / determinant
        shift += (size / radius - 1.0) * size * size / slope
    return x * radius / size, y * radius / size


@kernel
def friction_sweep(rows, impulse):
    """Minimise over the tangential impulses of each contact in turn, the normal ones held.

    Returns the largest change [N s].
    """
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        p, q = row_velocity(G, g, impulse, r), row_velocity(G, g, impulse, r + 1)
        p -= G[r, r] * impulse[r] + G[r, r + 1] * impulse[r + 1]
        q -= G[r + 1, r] * impulse[r] + G[r + 1, r + 1] * impulse[r + 1]
        radius = mu[i] * impulse[r + 2]
        t1, t2 = least_in_disc(G[r, r], G[r, r + 1], G[r + 1, r + 1], p, q, radius)
        change = max(change, abs(t1 - impulse[r]), abs(t2 - impulse[r + 1]))
        impulse[r], impulse[r + 1] = t1, t2
    return change
