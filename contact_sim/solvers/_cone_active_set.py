"""Active-set Newton for contact with dry friction.

Once the modes are known, open, stick or slip of each contact and bound or interior of each scalar
row, the problem is a smooth square system:

    open      λ = 0                      stick     w = 0
    slip      λ = λ_n (μ d, 1), d = (cos θ, sin θ):   w_n + κ μ w_t·d = 0,   w_t × d = 0
    at bound  λ = bound                  inside    w = 0

The unknowns are λ (stick, inside) and λ_n, θ (slip); κ = 0 is Coulomb's law, κ = 1 the convex
relaxation. Newton resolves at once what Gauss-Seidel resolves slowly: redundant stance, dry
friction in every joint of a standing robot. Stick rows and normal rows in slip have a proximal
term, so that redundant impulses stay where they are; in a careful step those near the edges of
their cones change least. A step that would leave a box or a friction cone is cut at the boundary:
there the mode changes, and the next step starts.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._cone_problem import (
    fill_velocity,
    fill_velocity_symmetric,
    natural_map_at,
)
from contact_sim.solvers._dense import eliminate, solve_symmetric
from contact_sim.solvers._jit import kernel

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
    """Fill the kinds and rows of the unknowns and the directions of slip from the impulses.

    Returns (number of unknowns, whether any contact slips). A row with two infinite bounds is
    always an unknown.
    """
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
    # scalar rows strictly between their bounds
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < impulse[r] < upper[k]:
            kind[m], row[m] = STICK, r
            m += 1
    return m, slips


@kernel
def fill_equation(G, kind, r, d1, d2, k, line):
    """Fill equation `kind` at row `r` as a sum over all impulses; d = (d1, d2), k = κ μ."""
    if kind == STICK:
        for c in range(G.shape[0]):
            line[c] = G[r, c]
    elif kind == SLIP_NORMAL:
        for c in range(G.shape[0]):
            line[c] = G[r + 2, c] + k * (d1 * G[r, c] + d2 * G[r + 1, c])
    else:
        for c in range(G.shape[0]):
            line[c] = d2 * G[r, c] - d1 * G[r + 1, c]


@kernel
def fill_newton_system(rows, impulse, w, work, m, associated):
    """Fill the Jacobian and the right-hand side of the Newton step, w = G λ + g."""
    A, b, d, line = work.matrix, work.step, work.direction, work.line
    kind, row, mu = work.kind, work.row, rows.friction
    for e in range(m):
        r = row[e]
        # equation e in terms of all impulses
        d1 = d2 = k = 0.0
        if kind[e] != STICK:
            d1, d2, k = d[r], d[r + 1], associated * mu[r // 3]
        fill_equation(rows.delassus, kind[e], r, d1, d2, k, line)
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
            A[e, e] += PROXIMAL_SHARE * rows.delassus[r, r]
        elif kind[e] == SLIP_NORMAL:
            b[e] = -w[r + 2] - k * (w[r] * d1 + w[r + 1] * d2)
            A[e, e] += PROXIMAL_SHARE * rows.delassus[r + 2, r + 2]
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
    """Make the proximal terms grow with the inverse square of the slack of each contact.

    Of the impulses that solve redundant rows the step then takes the nearest in the metric of the
    interior of the cones [Dikin 1967]. Otherwise a contact near the edge of its cone would often
    leave it, for modes that have no solution.
    """
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
            weight, radius = (
                PROXIMAL_SHARE / (MIN_SLACK_SHARE * MIN_SLACK_SHARE),
                mu[r // 3] * impulse[r + 2],
            )
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

    With `careful` the changes are weighed by the slack of their contacts. Returns (α, number of
    unknowns); α < 1: a mode ended; α = −1: nothing to move, or a singular system.
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
    """Return the largest ρ |equation| of the last step's `m` unknowns [N s], w = G λ + g.

    It is the part of the natural map that more Newton steps in these modes can remove.
    """
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

    Args:
        rows: the problem, n rows.
        impulse: in and out [N s], shape (n,); changed only for the better.
        work: scratch; `rho` holds the step lengths and `velocity`, in and out, w of `impulse`.
        residual: natural map of `impulse` [N s].
        goal: natural map that is good enough [N s].
        associated: κ.
        symmetric: whether G is symmetric and positive semidefinite, so that it needs no pivots.
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
