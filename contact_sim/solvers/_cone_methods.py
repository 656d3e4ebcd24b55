"""Methods for contact with dry friction: Newton, Gauss-Seidel, ADMM, and other engines.

Each finds λ with  K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,  w = G λ + g,  per contact, and w ⊥ interval
per scalar row. κ = 0 (`associated` = 0.0) is Coulomb's law with Signorini's condition (theory
2.11), κ = 1 the convex relaxation (2.12). _cone_solver.py calls them one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_sim.solvers._cone_problem import (
    cone_work,
    fill_rho,
    fill_velocity,
    fill_velocity_symmetric,
    friction_sweep,
    impulse_scale,
    impulse_scale_at,
    natural_map,
    natural_map_at,
    project_cone,
    row_velocity,
)
from contact_sim.solvers._dense import assign, cholesky, cholesky_solve, eliminate, solve_symmetric
from contact_sim.solvers._jit import kernel

# Active-set Newton.
#
# Once the modes are known, open, stick or slip of each contact and bound or interior of each
# scalar row, the problem is a smooth square system:
#
#     open      λ = 0                      stick     w = 0
#     slip      λ = λ_n (μ d, 1), d = (cos θ, sin θ):   w_n + κ μ w_t·d = 0,   w_t × d = 0
#     at bound  λ = bound                  inside    w = 0
#
# The unknowns are λ (stick, inside) and λ_n, θ (slip); κ = 0 is Coulomb's law, κ = 1 the convex
# relaxation. Newton resolves at once what Gauss-Seidel resolves slowly: redundant stance, dry
# friction in every joint of a standing robot. Stick rows and normal rows in slip have a proximal
# term, so that redundant impulses stay where they are; in a careful step those near the edges of
# their cones change least. A step that would leave a box or a friction cone is cut at the
# boundary: there the mode changes, and the next step starts.

STICK, SLIP_NORMAL, SLIP_ANGLE = range(3)
"""Kinds of unknowns and their equations: an impulse, w_row = 0; λ_n of a slipping contact whose
first row is `row`, w_n + κ μ w_t·d = 0; its direction θ, w_t × d = 0."""
PROXIMAL_SHARE = 1e-10  # smallest proximal weight of an impulse, over the diagonal of G [-]
MIN_SLACK_SHARE = 1e-2
"""Slack over the largest slack, below which the proximal weight grows no further [-]."""
SLIP_SHARE = 1.0 - 1e-9  # |λ_t| over μ λ_n from which a contact slips [-]
NEWTON_GOAL = 1e-2
"""Share of the tolerance that Newton aims at. The error left is inherited by the next time step,
where it adds up; one more Newton step removes it."""


@kernel
def guess_active_set(rows, impulse, work):
    """Fill unknowns and directions of slip from the impulses; return (unknowns, any slips)."""
    kind, row, direction = work.kind, work.row, work.direction
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    m, nc, slips = 0, mu.shape[0], False
    for i in range(nc):
        r = 3 * i
        t1, t2, n = impulse[r], impulse[r + 1], impulse[r + 2]
        # open contact: no unknown
        if n <= 0.0:
            continue
        # frictionless contact: its normal row
        if mu[i] == 0.0:
            kind[m], row[m] = STICK, r + 2
            m += 1
            continue
        size, radius = t1 * t1 + t2 * t2, SLIP_SHARE * mu[i] * n
        # on the cone: slip along λ_t; inside: stick
        if size >= radius * radius:
            size = np.sqrt(size)
            direction[r], direction[r + 1] = t1 / size, t2 / size
            kind[m], row[m], kind[m + 1], row[m + 1] = SLIP_NORMAL, r, SLIP_ANGLE, r
            m, slips = m + 2, True
        else:
            for k in range(3):
                kind[m + k], row[m + k] = STICK, r + k
            m += 3
    # scalar rows strictly between their bounds; one with two infinite bounds is always an unknown
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < impulse[r] < upper[k]:
            kind[m], row[m] = STICK, r
            m += 1
    return m, slips


@kernel
def fill_newton_system(rows, impulse, w, work, m, associated):
    """Fill the Jacobian and the right-hand side of the Newton step, w = G λ + g."""
    A, b, d, line = work.matrix, work.step, work.direction, work.line
    kind, row, mu, G = work.kind, work.row, rows.friction, rows.delassus
    for e in range(m):
        r = row[e]
        # equation e in terms of all impulses
        d1 = d2 = k = 0.0
        if kind[e] != STICK:
            d1, d2, k = d[r], d[r + 1], associated * mu[r // 3]
        if kind[e] == STICK:
            for c in range(G.shape[0]):
                line[c] = G[r, c]
        elif kind[e] == SLIP_NORMAL:
            for c in range(G.shape[0]):
                line[c] = G[r + 2, c] + k * (d1 * G[r, c] + d2 * G[r + 1, c])
        else:
            for c in range(G.shape[0]):
                line[c] = d2 * G[r, c] - d1 * G[r + 1, c]
        # chain rule to the unknowns: ∂λ/∂λ_n = (μ d, 1), ∂λ_t/∂θ = μ λ_n d⊥
        for c in range(m):
            s = row[c]
            if kind[c] == STICK:
                A[e, c] = line[s]
            elif kind[c] == SLIP_NORMAL:
                A[e, c] = mu[s // 3] * (d[s] * line[s] + d[s + 1] * line[s + 1]) + line[s + 2]
            else:
                radius = mu[s // 3] * impulse[s + 2]
                A[e, c] = radius * (d[s] * line[s + 1] - d[s + 1] * line[s])
        # minus the residual; proximal term, and derivative of d in the equation itself
        if kind[e] == STICK:
            b[e] = -w[r]
            A[e, e] += PROXIMAL_SHARE * G[r, r]
        elif kind[e] == SLIP_NORMAL:
            b[e] = -w[r + 2] - k * (w[r] * d1 + w[r + 1] * d2)
            A[e, e] += PROXIMAL_SHARE * G[r + 2, r + 2]
            A[e, e + 1] += k * (w[r + 1] * d1 - w[r] * d2)
        else:
            b[e] = w[r + 1] * d1 - w[r] * d2
            A[e, e] += w[r] * d1 + w[r + 1] * d2


@kernel
def fill_stick_system(rows, w, work, m):
    """Fill the same system where nothing slips: symmetric, upper triangle only."""
    G, A, b, row = rows.delassus, work.matrix, work.step, work.row
    if m == G.shape[0]:
        for e in range(m):
            b[e] = -w[e]
            for c in range(m):  # the full row: loops of equal length are faster than half of it
                A[e, c] = G[e, c]
            A[e, e] += PROXIMAL_SHARE * G[e, e]
        return
    for e in range(m):
        r = row[e]
        b[e] = -w[r]
        for c in range(e, m):
            A[e, c] = G[r, row[c]]
        A[e, e] += PROXIMAL_SHARE * G[r, r]


@kernel
def cone_slack(impulse, r, mu):
    """Return μ λ_n − |λ_t| of the contact at row `r` [N s]."""
    return mu * impulse[r + 2] - np.sqrt(impulse[r] ** 2 + impulse[r + 1] ** 2)


@kernel
def add_interior_metric(rows, impulse, work, m):
    """Make the proximal terms grow with the inverse square of the slack of each contact."""
    # of the impulses that solve redundant rows the step then takes the nearest in the metric of
    # the interior of the cones [Dikin 1967]; otherwise a contact near the edge of its cone would
    # often leave it, for modes that have no solution
    A, G, kind, row, mu = work.matrix, rows.delassus, work.kind, work.row, rows.friction
    largest, e = 0.0, 0
    for i in range(mu.shape[0]):
        largest = max(largest, cone_slack(impulse, 3 * i, mu[i]))
    while e < m:
        r = row[e]
        if r >= 3 * mu.shape[0] or mu[r // 3] == 0.0:
            e += 1
        elif kind[e] == STICK:
            share = max(cone_slack(impulse, r, mu[r // 3]) / largest, MIN_SLACK_SHARE)
            weight = PROXIMAL_SHARE * (1.0 / (share * share) - 1.0)
            for k in range(3):
                A[e + k, e + k] += weight * G[r + k, r + k]
            e += 3
        else:
            weight = PROXIMAL_SHARE / (MIN_SLACK_SHARE * MIN_SLACK_SHARE)
            radius = mu[r // 3] * impulse[r + 2]
            A[e, e] += weight * G[r + 2, r + 2]
            A[e + 1, e + 1] -= weight * radius * 0.5 * (G[r, r] + G[r + 1, r + 1])
            e += 2


@kernel
def step_to_cone(t1, t2, n, d1, d2, dn, mu):
    """Return the largest α ≤ 1 with (t, n) + α (d, dn) in K_μ, for (t, n) inside."""
    # |t + α d|² = μ² (n + α dn)²:  a α² + 2 b α + c = 0
    a = d1 * d1 + d2 * d2 - (mu * dn) ** 2
    b = t1 * d1 + t2 * d2 - mu * mu * n * dn
    c = t1 * t1 + t2 * t2 - (mu * n) ** 2  # < 0 inside
    if a + 2.0 * b + c <= 0.0 and n + dn >= 0.0:
        return 1.0
    # smallest positive root, in the form without cancellation
    root = np.sqrt(max(b * b - a * c, 0.0))
    alpha = -c / (b + root) if b > 0.0 else (root - b) / a if a != 0.0 else 1.0
    return min(max(alpha, 0.0), 1.0)


@kernel
def step_to_boundary(rows, impulse, work, m):
    """Return the largest α ≤ 1 for which the impulses stay in their cones and intervals."""
    kind, row, b = work.kind, work.row, work.step
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    alpha, first, e = 1.0, 3 * mu.shape[0], 0
    while e < m:
        r = row[e]
        if kind[e] == SLIP_NORMAL:
            # slip: λ_n ≥ 0
            if b[e] < 0.0 and impulse[r + 2] + b[e] < 0.0:
                alpha = min(alpha, -impulse[r + 2] / b[e])
            e += 2
        elif r >= first:
            # scalar row: its bounds
            target = impulse[r] + b[e]
            if target > upper[r - first]:
                alpha = min(alpha, (upper[r - first] - impulse[r]) / b[e])
            elif target < lower[r - first]:
                alpha = min(alpha, (lower[r - first] - impulse[r]) / b[e])
            e += 1
        elif mu[r // 3] == 0.0:
            # frictionless contact: λ_n ≥ 0
            if impulse[r] + b[e] < 0.0:
                alpha = min(alpha, -impulse[r] / b[e])
            e += 1
        else:
            # stick: the friction cone
            share = step_to_cone(
                impulse[r], impulse[r + 1], impulse[r + 2], b[e], b[e + 1], b[e + 2], mu[r // 3]
            )
            alpha = min(alpha, share)
            e += 3
    return alpha


@kernel
def take_step(rows, impulse, work, m, alpha):
    """Move the unknowns by α of the step; scalar rows that reach a bound are set to it exactly."""
    kind, row, b = work.kind, work.row, work.step
    lower, upper, first = rows.lower, rows.upper, 3 * rows.friction.shape[0]
    for e in range(m):
        r = row[e]
        if kind[e] == STICK:
            impulse[r] += alpha * b[e]
            if r >= first:
                k = r - first
                slack = 1e-12 * abs(b[e])
                if impulse[r] >= upper[k] - slack:
                    impulse[r] = upper[k]
                elif impulse[r] <= lower[k] + slack:
                    impulse[r] = lower[k]
        elif kind[e] == SLIP_NORMAL:
            n = impulse[r + 2] + alpha * b[e]
            theta = np.arctan2(impulse[r + 1], impulse[r]) + alpha * b[e + 1]
            f = rows.friction[r // 3] * n
            impulse[r], impulse[r + 1], impulse[r + 2] = f * np.cos(theta), f * np.sin(theta), n


@kernel
def newton_step(rows, impulse, w, work, associated, symmetric, careful):
    """Move `impulse` by one Newton step on the equations of its modes, w = G λ + g.

    `careful`: weigh the changes by the slack of their contacts. Returns (α, number of unknowns);
    α < 1: a mode ended; α = −1: nothing to move, or a singular system.
    """
    m, slips = guess_active_set(rows, impulse, work)
    if m == 0:
        return -1.0, m
    # unsymmetric system with pivots, or symmetric one without
    if slips or not symmetric:
        fill_newton_system(rows, impulse, w, work, m, associated)
        if careful:
            add_interior_metric(rows, impulse, work, m)
        if not eliminate(work.matrix, work.step, m):
            return -1.0, m
    else:
        fill_stick_system(rows, w, work, m)
        if careful:
            add_interior_metric(rows, impulse, work, m)
        solve_symmetric(work.matrix, work.step, m)
    alpha = step_to_boundary(rows, impulse, work, m)
    take_step(rows, impulse, work, m, alpha)
    return alpha, m


@kernel
def active_set_residual(rows, impulse, w, work, m, associated):
    """Return the largest ρ |equation| of the last step's `m` unknowns [N s], w = G λ + g."""
    # it is the part of the natural map that more Newton steps in these modes can remove
    kind, row, mu, worst, e = work.kind, work.row, rows.friction, 0.0, 0
    while e < m:
        r = row[e]
        rho = work.rho[r]
        if kind[e] == STICK:
            worst = max(worst, rho * abs(w[r]))
            e += 1
        else:
            t1, t2 = impulse[r], impulse[r + 1]
            size, k = np.sqrt(t1 * t1 + t2 * t2), associated * mu[r // 3]
            if size > 0.0:
                normal = w[r + 2] + k * (w[r] * t1 + w[r + 1] * t2) / size
                across = (w[r] * t2 - w[r + 1] * t1) / size
                worst = max(worst, rho * abs(normal), rho * abs(across))
            e += 2
    return worst


@kernel
def active_set_newton(rows, impulse, work, residual, goal, associated, symmetric):
    """Take Newton steps while they reduce the natural map; return the natural map [N s].

    `work.rho` holds the step lengths and `work.velocity`, in and out, w of the impulse, `residual`
    its natural map, `goal` one that is good enough [N s]. The impulse changes only for the better.
    A `symmetric` G is positive semidefinite and needs no pivots.
    """
    n, w, trial, w_trial = rows.g.shape[0], work.velocity, work.trial, work.trial_velocity
    for r in range(n):
        trial[r], w_trial[r] = impulse[r], w[r]
    for _ in range(2 * n):
        share, _ = newton_step(rows, trial, w_trial, work, associated, symmetric, False)
        if share < 0.0:
            break
        if symmetric:
            fill_velocity_symmetric(rows, trial, w_trial)
        else:
            fill_velocity(rows, trial, w_trial)
        # a full step: accept it if the natural map decreases
        if share == 1.0:
            reached = natural_map_at(rows, trial, w_trial, work.rho, associated)
            if not reached < residual:
                break
            for r in range(n):
                impulse[r], w[r] = trial[r], w_trial[r]
            slow, residual = reached > 0.5 * residual, reached
            if slow or residual <= goal:  # slow: wrong modes, or rounding
                break
    return residual


# Exact block Gauss-Seidel: each sweep solves every contact exactly with the others frozen.
#
# c = g_i + Σ_{j≠i} G_ij λ_j,
#
#     open    c_n ≥ κ μ |c_t|                             λ = 0
#     stick   λ = −G_ii⁻¹ c inside the cone
#     slide   λ = r (d, 1/μ), d = (cos θ, sin θ), with w_n + κ μ w_t·d = 0, w_t × d = 0, w_t·d < 0
#
# The slide condition is multiplied by the denominator of r(θ) before it is searched, which makes
# it a trigonometric polynomial without poles.

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
    kept if it reduces the natural map. G need not be symmetric beyond its 3x3 blocks. `tolerance`
    on the natural map is relative to the largest impulse.
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
    G, g, change = rows.delassus, rows.g, 0.0
    for i in range(rows.friction.shape[0]):
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
    return max(change, scalar_sweep(rows, impulse))


@kernel
def scalar_sweep(rows, impulse):
    """Take a clipped Newton step in each scalar row; return the largest change [N s]."""
    G, g, mu, lower, upper = rows
    change, first = 0.0, 3 * mu.shape[0]
    for k in range(lower.shape[0]):
        r = first + k
        new = impulse[r] - row_velocity(G, g, impulse, r) / G[r, r]
        new = min(max(new, lower[k]), upper[k])
        change = max(change, abs(new - impulse[r]))
        impulse[r] = new
    return change


@kernel
def frozen_contact(rows, i, impulse, w, associated):
    """Return contact `i` with all others frozen at `impulse`, where its velocity is w (3,)."""
    G, r = rows.delassus, 3 * i
    # a singular block (a leg that cannot move sideways) is shifted by a share of its mean
    # eigenvalue, compensated through the old impulse, so that fixed points do not move
    a, b, c = G[r, r], G[r + 1, r + 1], G[r + 2, r + 2]
    d, e, f = G[r, r + 1], G[r + 1, r + 2], G[r, r + 2]
    mean = (a + b + c) / 3.0
    determinant = a * (b * c - e * e) - d * (d * c - e * f) + f * (d * e - b * f)
    shift = 0.0 if determinant > SINGULAR_BLOCK * mean**3 else PROXIMAL * mean
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
    """Return (λ_t1, λ_t2, λ_n, found) of the sliding contact; of several, the smallest λ_n."""
    # (guess1, guess2) is the previous tangential impulse
    mu = contact.mu
    # Newton from its direction
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
    """Return F(θ) = den (c_t × d) − num ((A d + a/μ) × d) and dF/dθ; r = −num/den."""
    # num = c_n + κ μ c_t·d,  den = G_nn/μ + (1 + κ) a·d + κ μ dᵀA d
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


# ADMM with a spectral penalty (theory 2.11, `ncp_admm`).
#
# The fallback: slower per iteration than Gauss-Seidel, but converges at mass ratios where
# Gauss-Seidel does not.
#
#     s ← (1 − κ) (0, 0, μ |z_t|)
#     x ← (G + (ρ + η) I)⁻¹ (−(g + s) + z + ρ y + η x)
#     y ← Proj_K(x − z/ρ)
#     z ← z − ρ (x − y)
#
# ρ starts at √(m L) (L/m)^0.05 with L, m the extreme eigenvalues of G and moves by (L/m)^0.05
# every 10 iterations while one residual exceeds the other tenfold. The answer is y: always inside
# the cones. Other than in the theory, η is relative to L: the solver does not depend on units.

ADMM_PROXIMAL_SHARE = 1e-8  # η over the largest eigenvalue [-]
PENALTY_PERIOD, PENALTY_IMBALANCE = 10, 10.0
"""Iterations between changes of ρ, and ratio of the residuals that causes one."""


@kernel
def admm(rows, impulse, tolerance, max_iterations, associated):
    """Improve `impulse` in place; arguments and result as of `block_gauss_seidel`."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    n, nc, shift = g.shape[0], mu.shape[0], 1.0 - associated
    if n == 0:
        return 0, 0.0, True
    # penalty ρ and proximal weight η from the spectrum of G
    eigenvalues = np.linalg.eigvalsh(G)
    largest = eigenvalues[n - 1]
    eta = ADMM_PROXIMAL_SHARE * largest
    smallest = max(eigenvalues[0], 0.0) + eta
    factor = (largest / smallest) ** 0.05
    rho = np.sqrt(smallest * largest) * factor
    L = np.zeros((n, n))
    cholesky(G, rho + eta, L)
    # start: x = y = λ, dual z = w + (1 − κ) Γ(w)
    x, y, z = impulse.copy(), impulse.copy(), np.empty(n)
    w, steps, residual = np.empty(n), np.empty(n), np.inf
    fill_rho(rows, steps)
    fill_velocity(rows, impulse, z)
    for i in range(nc):
        z[3 * i + 2] += shift * mu[i] * np.sqrt(z[3 * i] ** 2 + z[3 * i + 1] ** 2)
    for count in range(1, max_iterations + 1):
        # x: quadratic program, with the De Saxcé shift of z
        for r in range(n):
            x[r] = -g[r] + z[r] + rho * y[r] + eta * x[r]
        for i in range(nc):
            x[3 * i + 2] -= shift * mu[i] * np.sqrt(z[3 * i] ** 2 + z[3 * i + 1] ** 2)
        cholesky_solve(L, x)
        # y, then z: dual ascent
        change, gap = project_rows(rows, x, z, rho, y), 0.0
        for r in range(n):
            gap = max(gap, abs(x[r] - y[r]))
            z[r] -= rho * (x[r] - y[r])
        # acceptance by the natural map of y
        goal = tolerance * impulse_scale_at(rows, y, steps)
        if gap <= 10.0 * goal or count == max_iterations:
            fill_velocity(rows, y, w)
            residual = natural_map_at(rows, y, w, steps, associated)
            if residual <= goal:
                assign(impulse, y)
                return count, residual, True
        # balance primal and dual residual
        if count % PENALTY_PERIOD == 0:
            old = rho
            if gap > PENALTY_IMBALANCE * change:
                rho *= factor
            elif change > PENALTY_IMBALANCE * gap:
                rho /= factor
            if rho != old:
                cholesky(G, rho + eta, L)
    assign(impulse, y)
    return max_iterations, residual, False


@kernel
def project_rows(rows, x, z, rho, y):
    """Fill y = Proj_K(x − z/ρ), block by block; return its largest change."""
    mu, change = rows.friction, 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        p1, p2, p3 = x[r] - z[r] / rho, x[r + 1] - z[r + 1] / rho, x[r + 2] - z[r + 2] / rho
        t1, t2, tn = project_cone(p1, p2, p3, mu[i])
        change = max(change, abs(t1 - y[r]), abs(t2 - y[r + 1]), abs(tn - y[r + 2]))
        y[r], y[r + 1], y[r + 2] = t1, t2, tn
    for k in range(rows.lower.shape[0]):
        r = 3 * mu.shape[0] + k
        value = min(max(x[r] - z[r] / rho, rows.lower[k]), rows.upper[k])
        change = max(change, abs(value - y[r]))
        y[r] = value
    return change


# Contact solvers of other engines, to reproduce their results (theory 2.11).
#
# pgs         λ_n ← (λ_n − w_n/G_nn)₊,  λ_t ← disc_{μ λ_n}(λ_t − w_t/min(G_t1t1, G_t2t2))
#             (Pinocchio, ContactBench); fails on large mass ratios
# raisim      exact per contact, but a slipping contact takes the impulse with w_n = 0 on the cone
#             that leaves the least kinetic energy wᵀ G_ii⁻¹ w; not maximum dissipation where
#             normal and tangent couple [Hwangbo et al. 2018]
# staggered   normal impulses at fixed friction, then friction at fixed normal impulses, in turn
#             [Kaufman et al. 2008]
# pgs_box     λ_n ← (λ_n − ω w_n/G_nn)₊,  each λ_t ← [−μ λ_n, μ λ_n](λ_t − ω w_t/G_tt): friction
#             bounded per tangent, successive over-relaxation by ω (ODE's quick step, Gazebo)

PGS, RAISIM, STAGGERED, PGS_BOX = range(4)
STAGGERED_SWEEPS = 20
"""Sweeps over the normal, and over the tangential impulses, in one staggered sweep."""
SLIP_SAMPLES, BISECTIONS = (256, 2048), 60
"""Directions of slip in which the energy is sampled, and steps that refine the best one."""


@kernel
def solve_baseline(rows, impulse, tolerance, max_sweeps, method, relaxation):
    """Sweep until the impulses no longer change; as `block_gauss_seidel`."""
    # converged is only what also obeys the law: the natural map for pgs and staggered, Signorini's
    # condition for raisim and pgs_box, whose friction is another
    count, residual = 0, np.inf
    while count < max_sweeps:
        count += 1
        if method == PGS:
            change = projected_sweep(rows, impulse)
        elif method == RAISIM:
            change = raisim_sweep(rows, impulse)
        elif method == PGS_BOX:
            change = boxed_sweep(rows, impulse, relaxation)
        else:
            change = staggered_sweep(rows, impulse)
        change = max(change, scalar_sweep(rows, impulse))
        goal = tolerance * impulse_scale(rows, impulse)
        if change > goal:
            continue
        residual = natural_map(rows, impulse, 0.0)
        other_friction = method in (RAISIM, PGS_BOX)
        if (signorini_error(rows, impulse) if other_friction else residual) <= goal:
            return count, residual, True
        if not np.isfinite(residual) or change == 0.0:
            return count, residual, False
    return count, natural_map(rows, impulse, 0.0), False


@kernel
def signorini_error(rows, impulse):
    """Return the largest change of a normal impulse by a step of 1/G_nn [N s]."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    worst = 0.0
    for i in range(mu.shape[0]):
        n = 3 * i + 2
        target = max(impulse[n] - row_velocity(G, g, impulse, n) / G[n, n], 0.0)
        change = abs(impulse[n] - target)
        if change > worst or change != change:
            worst = change
    return worst


@kernel
def projected_sweep(rows, impulse):
    """Run a sweep of projected Gauss-Seidel; return the largest change [N s]."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        n = max(impulse[r + 2] - row_velocity(G, g, impulse, r + 2) / G[r + 2, r + 2], 0.0)
        change = max(change, abs(n - impulse[r + 2]))
        impulse[r + 2] = n
        softest = min(G[r, r], G[r + 1, r + 1])
        t1 = impulse[r] - row_velocity(G, g, impulse, r) / softest
        t2 = impulse[r + 1] - row_velocity(G, g, impulse, r + 1) / softest
        size = np.sqrt(t1 * t1 + t2 * t2)
        if size > mu[i] * n:
            t1, t2 = t1 * mu[i] * n / size, t2 * mu[i] * n / size
        change = max(change, abs(t1 - impulse[r]), abs(t2 - impulse[r + 1]))
        impulse[r], impulse[r + 1] = t1, t2
    return change


@kernel
def boxed_sweep(rows, impulse, relaxation):
    """Run a sweep of Gauss-Seidel with friction bounded per tangent; return the largest change."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        for r in (3 * i + 2, 3 * i, 3 * i + 1):
            x = impulse[r] - relaxation * row_velocity(G, g, impulse, r) / G[r, r]
            if r == 3 * i + 2:
                x = max(x, 0.0)
            else:
                bound = mu[i] * impulse[3 * i + 2]
                x = min(max(x, -bound), bound)
            change = max(change, abs(x - impulse[r]))
            impulse[r] = x
    return change


@kernel
def staggered_sweep(rows, impulse):
    """Update normal impulses at fixed friction, then friction; return the largest change."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    before = impulse.copy()
    for _ in range(STAGGERED_SWEEPS):
        for i in range(mu.shape[0]):
            n = 3 * i + 2
            impulse[n] = max(impulse[n] - row_velocity(G, g, impulse, n) / G[n, n], 0.0)
    for _ in range(STAGGERED_SWEEPS):
        friction_sweep(rows, impulse)
    return np.abs(impulse - before).max()


@kernel
def raisim_sweep(rows, impulse):
    """Run a sweep of RaiSim's per-contact rule; return the largest change [N s]."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        block = G[r : r + 3, r : r + 3].copy()
        old = impulse[r : r + 3].copy()
        c = np.array([row_velocity(G, g, impulse, r + k) for k in range(3)]) - np.dot(block, old)
        inverse = np.linalg.inv(block)
        new = -np.dot(inverse, c)
        # open, frictionless, stick, slip
        if c[2] >= 0.0:
            new[:] = 0.0
        elif mu[i] == 0.0:
            new[:] = 0.0
            new[2] = -c[2] / block[2, 2]
        elif np.sqrt(new[0] ** 2 + new[1] ** 2) > mu[i] * new[2]:
            new = least_energy_slip(block, inverse, c, mu[i])
        change = max(change, np.abs(new - old).max())
        assign(impulse[r : r + 3], new)
    return change


@kernel
def least_energy_slip(block, inverse, c, mu):
    """Return the impulse on the cone with w_n = 0 that leaves the least energy; zero if none."""
    best, best_theta, width = np.inf, 0.0, 0.0
    for samples in SLIP_SAMPLES:  # the more only if no direction was found
        width = 2.0 * np.pi / samples
        for k in range(samples):
            energy, _ = remaining_energy(block, inverse, c, mu, k * width)
            if energy < best:
                best, best_theta = energy, k * width
        if best < np.inf:
            break
    if best == np.inf:
        return np.zeros(3)
    # bisection on dE/dθ around the best sample
    low, high, theta = best_theta - width, best_theta + width, best_theta
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        _, r = remaining_energy(block, inverse, c, mu, middle)
        if r <= 0.0:  # beyond an end of the directions that oppose the slip
            rises = middle > best_theta
        else:
            theta = middle
            rises = energy_slope(block, c, mu, middle, r) > 0.0
        if rises:
            high = middle
        else:
            low = middle
    _, r = remaining_energy(block, inverse, c, mu, theta)
    return np.array([r * np.cos(theta), r * np.sin(theta), r / mu])


@kernel
def remaining_energy(B, inverse, c, mu, theta):
    """Return ½ wᵀ G_ii⁻¹ w of the slip impulse in direction θ, and its radius; inf where none."""
    contact = FrozenContact(
        B[0, 0], B[0, 1], B[1, 1], B[2, 0], B[2, 1], B[2, 2], c[0], c[1], c[2], mu, 0.0
    )
    r = slide_radius(contact, theta)
    if r <= 0.0:
        return np.inf, r
    d1, d2, dn = r * np.cos(theta), r * np.sin(theta), r / mu
    w1 = c[0] + B[0, 0] * d1 + B[0, 1] * d2 + B[0, 2] * dn
    w2 = c[1] + B[1, 0] * d1 + B[1, 1] * d2 + B[1, 2] * dn
    wn = c[2] + B[2, 0] * d1 + B[2, 1] * d2 + B[2, 2] * dn
    energy = 0.5 * (inverse[0, 0] * w1 * w1 + inverse[1, 1] * w2 * w2 + inverse[2, 2] * wn * wn)
    energy += inverse[0, 1] * w1 * w2 + inverse[1, 2] * w2 * wn + inverse[0, 2] * w1 * wn
    return energy, r


@kernel
def energy_slope(B, c, mu, theta, r):
    """Return dE/dθ = w_t · dλ_t/dθ of the slip impulse with radius r in direction θ (w_n = 0)."""
    x, y = np.cos(theta), np.sin(theta)
    w1 = c[0] + r * (B[0, 0] * x + B[0, 1] * y + B[0, 2] / mu)
    w2 = c[1] + r * (B[1, 0] * x + B[1, 1] * y + B[1, 2] / mu)
    growth = (B[2, 0] * y - B[2, 1] * x) / (B[2, 2] / mu + B[2, 0] * x + B[2, 1] * y)
    return r * (w1 * (growth * x - y) + w2 * (growth * y + x))
