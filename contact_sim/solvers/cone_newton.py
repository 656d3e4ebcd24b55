"""Newton with exact line search on the unconstrained convex cost of compliant contact.

    min_v ½ |v − v_f|²_A + Σ_i ℓ_i(J_i v),   γ(u) = −∂ℓ/∂u,   H(u) = −∂γ/∂u     (soft_contact.py)

Every iterate has the form v = v_f + A⁻¹ Jᵀ x, so the iteration runs on x and on G = J A⁻¹ Jᵀ
alone: u = u_f + G x,

    Newton step   (I + H G) Δx = γ(u) − x
    line search   root of (G Δx)·(x + α Δx − γ(u + α G Δx)) over α

and at the solution x = γ. The same iterates as Newton's in v, in rows instead of dofs.

H is symmetric: H = Σ_k h_k e_k e_kᵀ with orthonormal e_k. Rows that are springs of their own have
a unit vector and h = 1/R, other contacts up to three directions. Only the components of Δx along
these are unknown, those of the rest are those of γ − x, and the system

    (diag(1/h) + Eᵀ G E) Eᵀ Δx = diag(1/h) Eᵀ (γ − x) − Eᵀ G (I − E Eᵀ) (γ − x)

is symmetric and positive definite.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.cone import fill_velocity
from contact_sim.solvers.dense import eliminate, fill_product, solve_symmetric
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.soft_contact import (
    CURVED,
    STICK,
    cone_law,
    directions,
    fill_impulse,
    scalar_impulse,
    stiffness_along,
)

LARGEST_STEP = 1.5
LINE_SEARCH_ITERATIONS = 50
FLAT = 0.01
"""Slope after a line search over that before it: full Newton steps pass near the end."""
NO_STIFFNESS = 1e-30
"""Largest h G_rr at which a direction counts as without stiffness [-]."""
ROW, OBLIQUE = 0, 1
"""Kinds of directions e_k: a row, or a direction among the three rows of a contact."""


class NewtonWork(NamedTuple):
    """Scratch of `newton`; only the first n entries are used, there may be more."""

    velocity: Any
    """u [m/s], shape (n,)."""
    projected: Any
    """γ(u) [N s], shape (n,)."""
    defect: Any
    """γ(u) − x [N s], shape (n,)."""
    change: Any
    """Δx [N s], shape (n,)."""
    velocity_change: Any
    """Δu = G Δx [m/s], shape (n,)."""
    trial: Any
    """u on the line, shape (n,)."""
    softness: Any
    """1/h_k of every unknown [1/kg], shape (n,)."""
    step: Any
    """Right side and answer of the system, shape (n,)."""
    line: Any
    """e_kᵀ G of one unknown, shape (n,)."""
    matrix: Any
    """Matrix of the system, shape (n, n)."""
    kind: Any
    """ROW or OBLIQUE of every unknown, integers, shape (n,)."""
    row: Any
    """Row of every unknown, of an oblique one the first of its contact, integers, shape (n,)."""
    first: Any
    """Components of an oblique e_k along the three rows of its contact: this one t1, (n,)."""
    second: Any
    """Along t2, shape (n,)."""
    third: Any
    """Along n, shape (n,)."""


@kernel
def newton_work(n):
    """Return scratch for problems of up to `n` rows."""
    vectors = np.empty((12, n))
    return NewtonWork(
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6],
        vectors[7], vectors[8], np.empty((n, n)), np.empty(n, np.int64), np.empty(n, np.int64),
        vectors[9], vectors[10], vectors[11],
    )  # fmt: skip


@kernel
def component(x, kind, r, first, second, third):
    """Return e_kᵀ x."""
    if kind == ROW:
        return x[r]
    return first * x[r] + second * x[r + 1] + third * x[r + 2]


@kernel
def note_direction(work, m, r, e, h):
    """Make e = (e_t1, e_t2, e_n) of the contact at row `r` the unknown number `m`."""
    step, change = work.step, work.change
    work.first[m], work.second[m], work.third[m] = e
    work.kind[m], work.row[m], work.softness[m] = OBLIQUE, r, 1.0 / h
    step[m] = component(work.defect, OBLIQUE, r, e[0], e[1], e[2])
    for k in range(3):
        change[r + k] -= step[m] * e[k]


@kernel
def note_directions(H, G, work, m, r):
    """Note the directions of the contact at row `r` that have stiffness; return their number."""
    weight, first = G[r, r] + G[r + 1, r + 1] + G[r + 2, r + 2], m
    if H.h1 * weight > NO_STIFFNESS:
        note_direction(work, m, r, (H.c * H.d1, H.c * H.d2, H.s), H.h1)
        m += 1
    if H.h2 * weight > NO_STIFFNESS:
        note_direction(work, m, r, (-H.d2, H.d1, 0.0), H.h2)
        m += 1
    if H.h3 * weight > NO_STIFFNESS:
        if H.s == 0.0:  # e₃ = n
            note_row(work, m, r + 2, 1.0 / H.h3)
        else:
            note_direction(work, m, r, (-H.s * H.d1, -H.s * H.d2, H.c), H.h3)
        m += 1
    return m - first


@kernel
def note_row(work, m, r, R):
    """Make the row `r` the unknown number `m`."""
    work.kind[m], work.row[m], work.softness[m] = ROW, r, R
    work.step[m], work.change[r] = work.defect[r], 0.0


@kernel
def find_directions(rows, law, work):
    """Fill the directions e_k, 1/h_k, Eᵀ (γ − x) in `step` and its rest in `change`.

    Return (number of directions, whether the rest is not zero).
    """
    G, mu, lower, upper = rows.delassus, rows.friction, rows.lower, rows.upper
    u, defect, change, R = work.velocity, work.defect, work.change, law.R
    nc, m, rest = mu.shape[0], 0, False
    for r in range(rows.g.shape[0]):
        change[r] = defect[r]
    for i in range(nc):
        r = 3 * i
        H = directions(law, i, mu[i], u[r], u[r + 1], u[r + 2])
        found = 0
        if H.region == STICK:
            for k in range(3):
                note_row(work, m + k, r + k, R[r + k])
            found = 3
        elif H.region == CURVED:
            found = note_directions(H, G, work, m, r)
        if found == 3:  # all that there are
            change[r] = change[r + 1] = change[r + 2] = 0.0
        else:
            rest = True
        m += found
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < scalar_impulse(law, r, u[r]) < upper[k]:
            note_row(work, m, r, R[r])
            m += 1
        elif defect[r] != 0.0:
            rest = True
    return m, rest


@kernel
def fill_system(rows, work, m):
    """Fill diag(1/h) + Eᵀ G E, the upper triangle."""
    G, A, line, kind, row = rows.delassus, work.matrix, work.line, work.kind, work.row
    first, second, third, n = work.first, work.second, work.third, rows.g.shape[0]
    for k in range(m):
        r = row[k]
        if kind[k] == ROW:
            for c in range(n):
                line[c] = G[r, c]
        else:
            for c in range(n):
                line[c] = first[k] * G[r, c] + second[k] * G[r + 1, c] + third[k] * G[r + 2, c]
        for j in range(k, m):
            A[k, j] = component(line, kind[j], row[j], first[j], second[j], third[j])
        A[k, k] += work.softness[k]


@kernel
def fill_right_side(rows, work, m, rest):
    """Turn `step` from Eᵀ (γ − x) into the right side."""
    step, softness, line, kind, row = work.step, work.softness, work.line, work.kind, work.row
    first, second, third = work.first, work.second, work.third
    for k in range(m):
        step[k] *= softness[k]
    if rest:
        fill_product(rows.delassus, work.change, line)
        for k in range(m):
            step[k] -= component(line, kind[k], row[k], first[k], second[k], third[k])


@kernel
def add_directions(work, m):
    """Add E times `step` to `change`."""
    change, step, kind, row = work.change, work.step, work.kind, work.row
    for k in range(m):
        r = row[k]
        if kind[k] == ROW:
            change[r] += step[k]
        else:
            change[r] += step[k] * work.first[k]
            change[r + 1] += step[k] * work.second[k]
            change[r + 2] += step[k] * work.third[k]


@kernel
def newton_change(rows, law, work):
    """Fill Δx; return False where the system is singular."""
    m, rest = find_directions(rows, law, work)
    A, step, line = work.matrix, work.step, work.line
    fill_right_side(rows, work, m, rest)
    fill_system(rows, work, m)
    for k in range(m):
        line[k] = step[k]
    solve_symmetric(A, step, m)
    positive = True
    for k in range(m):
        positive = positive and 0.0 < A[k, k] < np.inf
    if not positive:  # G is singular and R too small next to it: with pivots
        for k in range(m):
            step[k] = line[k]
        fill_system(rows, work, m)
        for k in range(m):
            for j in range(k):
                A[k, j] = A[j, k]
        if not eliminate(A, step, m):
            return False
    add_directions(work, m)
    return True


@kernel
def line_search(rows, law, x, work):
    """Return the α in (0, 1.5] at which the cost along the step is smallest.

    `trial` and `projected` then hold u and γ there.
    """
    u, du, dx, trial, gamma = (
        work.velocity, work.velocity_change, work.change, work.trial, work.projected,
    )  # fmt: skip
    n, low, high, alpha, descent = x.shape[0], 0.0, LARGEST_STEP, 1.0, 0.0
    for r in range(n):
        descent += du[r] * work.defect[r]
    for count in range(LINE_SEARCH_ITERATIONS):
        slope, curvature = 0.0, 0.0
        for r in range(n):
            trial[r] = u[r] + alpha * du[r]
        fill_impulse(rows, law, trial, gamma)
        for r in range(n):
            slope += du[r] * (x[r] + alpha * dx[r] - gamma[r])
            curvature += du[r] * dx[r]
        last = high - low <= 1e-12 or count == LINE_SEARCH_ITERATIONS - 1
        if abs(slope) <= FLAT * descent or last:
            break
        curvature += stiffness_along(rows, law, trial, du)
        if curvature <= 0.0 or (slope < 0.0 and alpha >= LARGEST_STEP):
            break
        if slope > 0.0:
            high = alpha
        else:
            low = alpha
        following = alpha - slope / curvature
        alpha = following if low < following < high else 0.5 * (low + high)
    return alpha


@kernel
def measure(rows, x, work):
    """Fill γ − x; return (|γ − x|_G, |x|_G + |γ|_G, largest |γ − x| [N s])."""
    u, gamma, defect, product = work.velocity, work.projected, work.defect, work.velocity_change
    n, largest = x.shape[0], 0.0
    for r in range(n):
        defect[r] = gamma[r] - x[r]
    fill_product(rows.delassus, defect, product)
    error, before, after = 0.0, 0.0, 0.0
    for r in range(n):
        w = u[r] - rows.g[r]  # G x
        error += defect[r] * product[r]
        before += x[r] * w
        after += gamma[r] * (w + product[r])
        if abs(defect[r]) > largest or defect[r] != defect[r]:
            largest = abs(defect[r])
    return np.sqrt(abs(error)), np.sqrt(abs(before)) + np.sqrt(abs(after)), largest


@kernel
def minimise(rows, law, impulse, work, tolerance, max_iterations):
    """Solve from the guess `impulse`; return (iterations, residual, converged).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s], G symmetric.
        law: a `SoftLaw`.
        impulse: in and out: γ [N s], shape (n,).
        work: scratch for n rows or more, see `newton_work`; its vectors may be longer.
        tolerance: on |x − γ| relative to |x| and |γ|, in the norm of G [-].
        max_iterations: largest number of Newton steps.
    """
    x, u, gamma, n = impulse, work.velocity, work.projected, rows.g.shape[0]
    dx, du, trial, residual = work.change, work.velocity_change, work.trial, np.inf
    fill_velocity(rows, x, u)
    fill_impulse(rows, law, u, gamma)
    for count in range(max_iterations + 1):
        error, size, residual = measure(rows, x, work)
        if not np.isfinite(error):
            return count, residual, False
        if error <= tolerance * size:
            for r in range(n):
                x[r] = gamma[r]
            return count, residual, True
        if count == max_iterations or not newton_change(rows, law, work):
            break
        fill_product(rows.delassus, dx, du)
        alpha = line_search(rows, law, x, work)
        for r in range(n):
            x[r] += alpha * dx[r]
            u[r] = trial[r]
    for r in range(n):
        x[r] = gamma[r]
    return max_iterations, residual, False


@kernel
def newton(rows, v_hat, R, impulse, work, tolerance, max_iterations):
    """Solve contacts of form CONE from the guess `impulse`; as `minimise` with v̂ and R (n,)."""
    return minimise(rows, cone_law(v_hat, R), impulse, work, tolerance, max_iterations)
