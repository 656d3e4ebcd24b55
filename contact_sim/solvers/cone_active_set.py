"""Newton steps on the equations of a guessed set of modes, cut where a mode ends.

Once Gauss-Seidel has found which contacts are open, stick or slip and which scalar rows sit at a
bound, the rest is a smooth square system:

    open      λ = 0                      stick     w = 0
    slip      λ = λ_n (μ d, 1), d = (cos θ, sin θ):   w_n + κ μ w_t·d = 0,   w_t × d = 0
    at bound  λ = bound                  inside    w = 0

with unknowns λ (stick, inside) and λ_n, θ (slip); κ = 0 is Coulomb's law, κ = 1 the convex
relaxation. Newton removes at once the slow modes of
Gauss-Seidel: redundant stance, dry friction in every joint of a standing robot. Stuck rows carry
a proximal term, so that redundant impulses stay where they are. A step that would leave a box or a
friction cone is cut at the boundary: there the mode changes, and the next step starts.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.cone import natural_map, row_velocity
from contact_sim.solvers.jit import kernel

PROXIMAL = 1e-10
ON_THE_CONE = 1.0 - 1e-9


@kernel
def choose_unknowns(mu, lower, upper, impulse, kind, row):
    """List the unknowns; return their number.

    kind 0: an impulse with equation w_row = 0; 1: λ_n of a slipping contact at `row` (its first
    row) with equation w_n + κ μ w_t·d = 0; 2: the direction θ of the same contact with equation
    w_t × d = 0.
    """
    m, nc = 0, mu.shape[0]
    for i in range(nc):
        r = 3 * i
        n = impulse[r + 2]
        if n <= 0.0:
            continue
        tangential = np.sqrt(impulse[r] ** 2 + impulse[r + 1] ** 2)
        if mu[i] == 0.0:
            kind[m], row[m] = 0, r + 2
            m += 1
        elif tangential >= ON_THE_CONE * mu[i] * n:
            kind[m], row[m], kind[m + 1], row[m + 1] = 1, r, 2, r
            m += 2
        else:
            for k in range(3):
                kind[m + k], row[m + k] = 0, r + k
            m += 3
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < impulse[r] < upper[k]:
            kind[m], row[m] = 0, r
            m += 1
    return m


@kernel
def column_entry(G, a, kind, r, mu, d1, d2, n):
    """Return ∂w_a/∂unknown for an unknown of `kind` at row `r` (direction d, normal impulse n)."""
    if kind == 0:
        return G[a, r]
    if kind == 1:
        return mu * (d1 * G[a, r] + d2 * G[a, r + 1]) + G[a, r + 2]
    return mu * n * (d1 * G[a, r + 1] - d2 * G[a, r])


@kernel
def fill_system(G, g, mu, impulse, kind, row, m, A, b, associated):
    """Fill A Δ = b for the Newton step from `impulse`."""
    for e in range(m):
        r = row[e]
        d1 = d2 = w1 = w2 = k = 0.0
        if kind[e] == 0:
            b[e] = -row_velocity(G, g, impulse, r)
        else:
            length = np.sqrt(impulse[r] ** 2 + impulse[r + 1] ** 2)
            d1, d2 = impulse[r] / length, impulse[r + 1] / length
            w1, w2 = row_velocity(G, g, impulse, r), row_velocity(G, g, impulse, r + 1)
            if kind[e] == 2:
                b[e] = -(w1 * d2 - w2 * d1)
            else:
                k = associated * mu[r // 3]
                b[e] = -row_velocity(G, g, impulse, r + 2) - k * (w1 * d1 + w2 * d2)
        for c in range(m):
            s = row[c]
            f = mu[s // 3] if kind[c] != 0 else 0.0
            e1 = e2 = n = 0.0
            if kind[c] != 0:
                length = np.sqrt(impulse[s] ** 2 + impulse[s + 1] ** 2)
                e1, e2, n = impulse[s] / length, impulse[s + 1] / length, impulse[s + 2]
            if kind[e] == 2:
                A[e, c] = d2 * column_entry(G, r, kind[c], s, f, e1, e2, n) - d1 * column_entry(
                    G, r + 1, kind[c], s, f, e1, e2, n
                )
            else:
                a = r if kind[e] == 0 else r + 2
                A[e, c] = column_entry(G, a, kind[c], s, f, e1, e2, n)
                if k != 0.0:
                    A[e, c] += k * d1 * column_entry(G, r, kind[c], s, f, e1, e2, n)
                    A[e, c] += k * d2 * column_entry(G, r + 1, kind[c], s, f, e1, e2, n)
        if kind[e] == 0:
            A[e, e] += PROXIMAL * G[r, r]
        elif kind[e] == 2:
            A[e, e] -= w1 * d1 + w2 * d2
        else:
            A[e, e + 1] += k * (w2 * d1 - w1 * d2)


@kernel
def eliminate(A, b, m):
    """Overwrite b with A⁻¹ b (Gaussian elimination, row pivoting); return False if singular."""
    for k in range(m):
        pivot = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if A[pivot, k] == 0.0:
            return False
        if pivot != k:
            for j in range(k, m):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, m):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, m):
                    A[i, j] -= factor * A[k, j]
                b[i] -= factor * b[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]
    return True


@kernel
def share_inside_cone(t1, t2, n, d1, d2, dn, mu):
    """Return the largest α ≤ 1 with (t, n) + α (d, dn) in K_μ, for (t, n) inside."""
    a = d1 * d1 + d2 * d2 - (mu * dn) ** 2
    b = t1 * d1 + t2 * d2 - mu * mu * n * dn
    c = t1 * t1 + t2 * t2 - (mu * n) ** 2  # < 0 inside
    if a + 2.0 * b + c <= 0.0 and n + dn >= 0.0:
        return 1.0
    root = np.sqrt(max(b * b - a * c, 0.0))
    alpha = -c / (b + root) if b > 0.0 else (root - b) / a if a != 0.0 else 1.0
    return min(max(alpha, 0.0), 1.0)


@kernel
def share_of_step(mu, lower, upper, impulse, kind, row, m, b):
    """Return the largest α ≤ 1 for which the stuck impulses stay in their sets."""
    alpha, nc, e = 1.0, mu.shape[0], 0
    while e < m:
        r = row[e]
        if kind[e] == 1:
            if b[e] < 0.0 and impulse[r + 2] + b[e] < 0.0:
                alpha = min(alpha, -impulse[r + 2] / b[e])
            e += 2
        elif r >= 3 * nc:
            target = impulse[r] + b[e]
            if target > upper[r - 3 * nc]:
                alpha = min(alpha, (upper[r - 3 * nc] - impulse[r]) / b[e])
            elif target < lower[r - 3 * nc]:
                alpha = min(alpha, (lower[r - 3 * nc] - impulse[r]) / b[e])
            e += 1
        elif mu[r // 3] == 0.0:
            if impulse[r] + b[e] < 0.0:
                alpha = min(alpha, -impulse[r] / b[e])
            e += 1
        else:
            share = share_inside_cone(
                impulse[r], impulse[r + 1], impulse[r + 2], b[e], b[e + 1], b[e + 2], mu[r // 3]
            )
            alpha = min(alpha, share)
            e += 3
    return alpha


@kernel
def move(mu, lower, upper, impulse, kind, row, m, b, alpha):
    """Move the unknowns by α b; scalar rows that arrive at a bound sit on it exactly."""
    nc = mu.shape[0]
    for e in range(m):
        r = row[e]
        if kind[e] == 0:
            impulse[r] += alpha * b[e]
            if r >= 3 * nc:
                k = r - 3 * nc
                slack = 1e-12 * abs(b[e])
                if impulse[r] >= upper[k] - slack:
                    impulse[r] = upper[k]
                elif impulse[r] <= lower[k] + slack:
                    impulse[r] = lower[k]
        elif kind[e] == 1:
            n = impulse[r + 2] + alpha * b[e]
            theta = np.arctan2(impulse[r + 1], impulse[r]) + alpha * b[e + 1]
            f = mu[r // 3] * n
            impulse[r], impulse[r + 1], impulse[r + 2] = f * np.cos(theta), f * np.sin(theta), n


@kernel
def newton_step(G, g, mu, lower, upper, impulse, kind, row, A, b, associated):
    """Move `impulse` by one Newton step on the equations of its modes.

    Args:
        G: Delassus matrix [1/kg], shape (n, n).
        g: free velocity plus bias [m/s], shape (n,).
        mu: friction coefficients [-].
        lower: lower bounds of the scalar rows [N s].
        upper: upper bounds.
        impulse: in and out [N s], shape (n,).
        kind: scratch, integers, shape (n,).
        row: scratch, integers, shape (n,).
        A: scratch, shape (n, n).
        b: scratch, shape (n,).
        associated: κ.

    Returns:
        The share of the step that was taken; below 1 a mode ended. −1 if the system is singular.
    """
    m = choose_unknowns(mu, lower, upper, impulse, kind, row)
    fill_system(G, g, mu, impulse, kind, row, m, A, b, associated)
    if not eliminate(A, b, m):
        return -1.0
    alpha = share_of_step(mu, lower, upper, impulse, kind, row, m, b)
    move(mu, lower, upper, impulse, kind, row, m, b, alpha)
    return alpha


@kernel
def newton_on_modes(G, g, mu, lower, upper, impulse, residual, goal, associated):
    """Take Newton steps while they bring the natural map down; return the natural map [N s].

    Args:
        G: Delassus matrix [1/kg], shape (n, n).
        g: free velocity plus bias [m/s], shape (n,).
        mu: friction coefficients [-].
        lower: lower bounds of the scalar rows [N s].
        upper: upper bounds.
        impulse: in and out [N s], shape (n,); changed only for the better.
        residual: natural map of `impulse` [N s].
        goal: natural map that is good enough [N s].
        associated: κ.
    """
    n = g.shape[0]
    kind, row = np.empty(n, np.int64), np.empty(n, np.int64)
    A, b, trial = np.empty((n, n)), np.empty(n), impulse.copy()
    for _ in range(2 * n):
        share = newton_step(G, g, mu, lower, upper, trial, kind, row, A, b, associated)
        if share < 0.0:
            break
        if share == 1.0:
            reached = natural_map(G, g, mu, lower, upper, trial, associated)
            if not reached < residual:
                break
            impulse[:] = trial
            residual = reached
            if residual <= goal:
                break
    return residual
