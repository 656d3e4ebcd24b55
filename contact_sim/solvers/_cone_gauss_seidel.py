"""Exact block Gauss-Seidel for contact with dry friction.

Find λ with  K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,  w = G λ + g,  per contact, and w ⊥ interval per
scalar row. κ = 0 (`associated` = 0.0) is Coulomb's law with Signorini's condition (theory
2.11), κ = 1 the convex relaxation (2.12). Each sweep solves every contact exactly with the others
frozen: c = g_i + Σ_{j≠i} G_ij λ_j,

    open    c_n ≥ κ μ |c_t|                             λ = 0
    stick   λ = −G_ii⁻¹ c inside the cone
    slide   λ = r (d, 1/μ), d = (cos θ, sin θ), with w_n + κ μ w_t·d = 0, w_t × d = 0, w_t·d < 0

The slide condition is multiplied by the denominator of r(θ) before it is searched, which makes it
a trigonometric polynomial without poles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_sim.solvers._cone_active_set import NEWTON_GOAL, active_set_newton
from contact_sim.solvers._cone_problem import (
    cone_work,
    fill_rho,
    fill_velocity,
    impulse_scale_at,
    natural_map_at,
    row_velocity,
)
from contact_sim.solvers._jit import kernel

SAMPLES = 32  # directions in which the slide condition is bracketed
SINGULAR_BLOCK = 1e-9
"""Determinant over the cubed mean eigenvalue up to which a block counts as singular [-]."""
PROXIMAL = 1e-6  # shift of a singular block over its mean eigenvalue [-]


class FrozenContact(NamedTuple):
    """One contact with all others frozen: w = [[A, a], [aᵀ, G_nn]] λ + c, and its law."""

    A11: float
    A12: float
    A22: float
    a1: float
    a2: float
    Gnn: float
    c1: float
    c2: float
    cn: float
    mu: float
    associated: float


@kernel
def block_gauss_seidel(rows, impulse, tolerance, max_sweeps, associated):
    """Improve `impulse` in place; return (sweeps, natural map [N s], converged).

    Before the first sweep and after the sweeps 1, 2, 4, 8, ... active-set Newton is tried, and
    kept if it reduces the natural map.

    Args:
        rows: the problem, n rows; G need not be symmetric beyond its 3x3 blocks.
        impulse: the guess and the answer [N s], shape (n,).
        tolerance: on the natural map, relative to the largest impulse [-].
        max_sweeps: largest number of sweeps [-].
        associated: κ, 0.0 or 1.0.
    """
    work = cone_work(rows.g.shape[0])
    rho = work.rho
    fill_rho(rows, rho)
    newton_at, residual = 1, np.inf
    for count in range(max_sweeps + 1):
        change = sweep(rows, impulse, associated) if count > 0 else 0.0
        goal = tolerance * impulse_scale_at(rows, impulse, rho)
        # the natural map costs as much as a sweep: evaluate it where the sweeps may have converged
        if count not in (0, newton_at, max_sweeps) and change > 10.0 * goal:
            continue
        fill_velocity(rows, impulse, work.velocity)
        residual = natural_map_at(rows, impulse, work.velocity, rho, associated)
        try_newton = residual > NEWTON_GOAL * goal and (
            residual <= goal or count in (0, newton_at)
        )
        if try_newton and (count > 0 or impulse.any()):
            # at count 0 in the modes of the previous time step
            newton_at = max(2 * count, 1)
            residual = active_set_newton(
                rows, impulse, work, residual, NEWTON_GOAL * goal, associated, False
            )
            goal = tolerance * impulse_scale_at(rows, impulse, rho)
        if residual <= goal:
            return count, residual, True
        if not np.isfinite(residual):
            return count, residual, False
    return max_sweeps, residual, False


@kernel
def sweep(rows, impulse, associated):
    """Run one Gauss-Seidel sweep in place; return the largest change of an impulse [N s]."""
    G, g, lower, upper = rows.delassus, rows.g, rows.lower, rows.upper
    change = 0.0
    nc = rows.friction.shape[0]
    for i in range(nc):
        r = 3 * i
        o1, o2, on = impulse[r], impulse[r + 1], impulse[r + 2]
        w1 = row_velocity(G, g, impulse, r)
        w2 = row_velocity(G, g, impulse, r + 1)
        wn = row_velocity(G, g, impulse, r + 2)
        # contact i exactly, the others frozen
        contact = frozen_contact(rows, i, impulse, (w1, w2, wn), associated)
        t1, t2, n = solve_contact(contact, o1, o2)
        impulse[r], impulse[r + 1], impulse[r + 2] = t1, t2, n
        change = max(change, abs(t1 - o1), abs(t2 - o2), abs(n - on))
    # scalar rows: clipped Newton step
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        old = impulse[r]
        new = old - row_velocity(G, g, impulse, r) / G[r, r]
        impulse[r] = min(max(new, lower[k]), upper[k])
        change = max(change, abs(impulse[r] - old))
    return change


@kernel
def proximal_shift(G, r):
    """Return the diagonal shift that makes the 3x3 block at row `r` invertible.

    Zero for a regular block. A singular one (a leg that cannot move sideways) gets a share of its
    mean eigenvalue, compensated through the old impulse, so that fixed points do not move.
    """
    a, b, c = G[r, r], G[r + 1, r + 1], G[r + 2, r + 2]
    d, e, f = G[r, r + 1], G[r + 1, r + 2], G[r, r + 2]
    mean = (a + b + c) / 3.0
    determinant = a * (b * c - e * e) - d * (d * c - e * f) + f * (d * e - b * f)
    return 0.0 if determinant > SINGULAR_BLOCK * mean**3 else PROXIMAL * mean


@kernel
def frozen_contact(rows, i, impulse, w, associated):
    """Return contact `i` with all others frozen at `impulse`, where its velocity is w (3,)."""
    G, r = rows.delassus, 3 * i
    shift = proximal_shift(G, r)
    A11, A12, A22 = G[r, r] + shift, G[r, r + 1], G[r + 1, r + 1] + shift
    a1, a2, Gnn = G[r + 2, r], G[r + 2, r + 1], G[r + 2, r + 2] + shift
    x1, x2, xn = impulse[r], impulse[r + 1], impulse[r + 2]
    # c = w − G_ii λ_i
    c1 = w[0] - (A11 * x1 + A12 * x2 + G[r, r + 2] * xn)
    c2 = w[1] - (G[r + 1, r] * x1 + A22 * x2 + G[r + 1, r + 2] * xn)
    cn = w[2] - (a1 * x1 + a2 * x2 + Gnn * xn)
    return FrozenContact(
        A11, A12, A22, a1, a2, Gnn, c1, c2, cn, rows.friction[i], float(associated)
    )


@kernel
def solve_contact(contact, guess1, guess2):
    """Return the exact impulse (t1, t2, n) of a frozen contact; the guess is that of `slide`."""
    A11, A12, A22, a1, a2, Gnn, c1, c2, cn, mu, associated = contact
    # open
    if cn >= associated * mu * np.sqrt(c1 * c1 + c2 * c2):
        return 0.0, 0.0, 0.0
    # frictionless
    if mu == 0.0:
        return 0.0, 0.0, -cn / Gnn
    # stick: λ = −G_ii⁻¹ c by the adjugate of the symmetric block
    m11, m12, m13 = A22 * Gnn - a2 * a2, a1 * a2 - A12 * Gnn, A12 * a2 - A22 * a1
    m22, m23, m33 = A11 * Gnn - a1 * a1, A12 * a1 - A11 * a2, A11 * A22 - A12 * A12
    determinant = A11 * m11 + A12 * m12 + a1 * m13
    s1 = -(m11 * c1 + m12 * c2 + m13 * cn) / determinant
    s2 = -(m12 * c1 + m22 * c2 + m23 * cn) / determinant
    sn = -(m13 * c1 + m23 * c2 + m33 * cn) / determinant
    if s1 * s1 + s2 * s2 <= (mu * sn) ** 2 and sn > 0.0:
        return s1, s2, sn
    # slide
    t1, t2, n, found = slide(contact, guess1, guess2)
    if found:
        return t1, t2, n
    # no root: two may have merged between samples; project the stick impulse, the sweep goes on
    n = max(-cn / Gnn, 0.0)
    size = np.sqrt(s1 * s1 + s2 * s2)
    return mu * n * s1 / size, mu * n * s2 / size, n


@kernel
def slide(contact, guess1, guess2):
    """Return (λ_t1, λ_t2, λ_n, found) of the sliding contact; of several, the smallest λ_n.

    (guess1, guess2) is the previous tangential impulse: its direction is tried first.
    """
    mu = contact.mu
    # Newton from the previous direction
    if guess1 != 0.0 or guess2 != 0.0:
        theta, converged = polish_root(contact, np.arctan2(guess2, guess1))
        if converged:
            r = slide_radius(contact, theta)
            if r > 0.0:
                return r * np.cos(theta), r * np.sin(theta), r / mu, True
    # otherwise bracket all roots; of several take the smallest λ_n
    best, best_theta = np.inf, 0.0
    width = 2.0 * np.pi / SAMPLES
    f_low, _ = slide_condition(contact, 0.0)
    for k in range(SAMPLES):
        low, high = k * width, (k + 1) * width
        f_high, _ = slide_condition(contact, high)
        if (f_low > 0.0) != (f_high > 0.0):
            theta = refine_root(contact, low, high, f_low)
            r = slide_radius(contact, theta)
            if 0.0 < r < best:
                best, best_theta = r, theta
        f_low = f_high
    if best == np.inf:
        return 0.0, 0.0, 0.0, False
    return best * np.cos(best_theta), best * np.sin(best_theta), best / mu, True


@kernel
def slide_condition(contact, theta):
    """Return F(θ) = den (c_t × d) − num ((A d + a/μ) × d) and dF/dθ; r = −num/den.

    num = c_n + κ μ c_t·d,  den = G_nn/μ + (1 + κ) a·d + κ μ dᵀA d,  κ = `associated`.
    """
    A11, A12, A22, a1, a2, Gnn, c1, c2, cn, mu, associated = contact
    x, y = np.cos(theta), np.sin(theta)
    k = associated * mu
    num, d_num = cn + k * (c1 * x + c2 * y), k * (c2 * x - c1 * y)
    # A d, A dd/dθ and denominator of r(θ)
    p1, p2 = A11 * x + A12 * y, A12 * x + A22 * y
    q1, q2 = A12 * x - A11 * y, A22 * x - A12 * y
    den = Gnn / mu + (1.0 + associated) * (a1 * x + a2 * y) + k * (p1 * x + p2 * y)
    d_den = (1.0 + associated) * (a2 * x - a1 * y) + 2.0 * k * (q1 * x + q2 * y)
    # c_t × d and (A d + a/μ) × d with their derivatives
    cross_c, d_cross_c = c1 * y - c2 * x, c1 * x + c2 * y
    e1, e2 = p1 + a1 / mu, p2 + a2 / mu
    cross_e = e1 * y - e2 * x
    d_cross_e = q1 * y - q2 * x + e1 * x + e2 * y
    value = den * cross_c - num * cross_e
    slope = d_den * cross_c + den * d_cross_c - d_num * cross_e - num * d_cross_e
    return value, slope


@kernel
def slide_radius(contact, theta):
    """Return r(θ) if it is positive and the direction opposes the slip, otherwise −1."""
    A11, A12, A22, a1, a2, Gnn, c1, c2, cn, mu, associated = contact
    x, y = np.cos(theta), np.sin(theta)
    k = associated * mu
    p1, p2 = A11 * x + A12 * y, A12 * x + A22 * y
    den = Gnn / mu + (1.0 + associated) * (a1 * x + a2 * y) + k * (p1 * x + p2 * y)
    if den <= 0.0:
        return -1.0
    r = -(cn + k * (c1 * x + c2 * y)) / den
    u1 = c1 + r * (p1 + a1 / mu)
    u2 = c2 + r * (p2 + a2 / mu)
    return r if u1 * x + u2 * y <= 0.0 else -1.0


@kernel
def polish_root(contact, theta):
    """Return (root, True) if Newton from `theta` converges nearby within a few iterations."""
    for _ in range(6):
        value, slope = slide_condition(contact, theta)
        if slope == 0.0:
            return theta, False
        step = value / slope
        if abs(step) > 0.3:
            return theta, False
        theta -= step
        if abs(step) <= 1e-14:
            return theta, True
    return theta, False


@kernel
def refine_root(contact, low, high, f_low):
    """Return the root of F in [low, high], where F changes sign: Newton with bisection."""
    theta = 0.5 * (low + high)
    for _ in range(60):
        value, slope = slide_condition(contact, theta)
        if value == 0.0:
            return theta
        if (value > 0.0) == (f_low > 0.0):
            low = theta
        else:
            high = theta
        newton = theta - value / slope if slope != 0.0 else low
        following = newton if low < newton < high else 0.5 * (low + high)
        if abs(following - theta) <= 4e-16 * (1.0 + abs(theta)):
            return following
        theta = following
    return theta
