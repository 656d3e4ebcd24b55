"""Newton with exact line search on the unconstrained convex cost of compliant contact.

    min_v ½ |v − v_f|²_A + Σ_i ℓ_i(J_i v),   γ(u) = −∂ℓ/∂u,   H(u) = −∂γ/∂u     (soft_law.py)

Every iterate has the form v = v_f + A⁻¹ Jᵀ x, so the iteration runs on x and on G = J A⁻¹ Jᵀ
alone: u = u_f + G x,

    Newton step   (I + H G) Δx = γ(u) − x
    line search   root of (G Δx)·(x + α Δx − γ(u + α G Δx)) over α

and at the solution x = γ. The same iterates as Newton's in v, in rows instead of dofs.

H is symmetric: H = Σ_k h_k e_k e_kᵀ with orthonormal e_k. An interval row inside its bounds has a
unit vector, h = 1/R; a contact has up to three directions, one that is open none. Only the
components of Δx along these are unknown, those of the rest are those of γ − x, and the system

    (diag(1/h) + Eᵀ G E) Eᵀ Δx = diag(1/h) Eᵀ (γ − x) − Eᵀ G (I − E Eᵀ) (γ − x)

is symmetric and positive definite.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.cone import fill_velocity_symmetric
from contact_sim.solvers.dense import eliminate, fill_product, solve_symmetric
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import ROW, add_row, component
from contact_sim.solvers.soft_cone import cone_directions, cone_impulse, cone_stiffness_along
from contact_sim.solvers.soft_law import CONE, PYRAMID, linear_law, scalar_impulse
from contact_sim.solvers.soft_pyramid import (
    pyramid_directions,
    pyramid_impulse,
    pyramid_stiffness_along,
)
from contact_sim.solvers.soft_regularised import (
    regularised_directions,
    regularised_impulse,
    regularised_stiffness_along,
)

LARGEST_STEP = 1.5
LINE_SEARCH_ITERATIONS = 50
EXACT, COARSE = 1e-8, 0.01
"""Accuracies of a line search; near the end full Newton steps pass a coarse one."""


@kernel
def contact_impulse(law, i, mu, u):
    """Return γ of contact `i` in its rows t1, t2, n [N s]."""
    if law.form == CONE:
        return cone_impulse(u, law.v_hat, mu, law.R, 3 * i)
    if law.form == PYRAMID:
        return pyramid_impulse(u, law.v_hat, mu, law.R[3 * i], 3 * i)
    return regularised_impulse(law, i, mu, u)


@kernel
def contact_stiffness_along(law, i, mu, u, way):
    """Return wayᵀ H(u) way of contact `i` [J]."""
    if law.form == CONE:
        return cone_stiffness_along(u, law.v_hat, mu, law.R, 3 * i, way)
    if law.form == PYRAMID:
        return pyramid_stiffness_along(u, law.v_hat, mu, law.R[3 * i], 3 * i, way)
    return regularised_stiffness_along(law, i, mu, u, way)


@kernel
def contact_directions(rows, law, i, m, work):
    """Fill the directions e_k and 1/h_k of contact i from k = m on; return their number."""
    if law.form == CONE:
        return cone_directions(rows, law.v_hat, law.R, i, m, work)
    if law.form == PYRAMID:
        u, mu = work.velocity, rows.friction[i]
        return pyramid_directions(u, law.v_hat, mu, law.R[3 * i], 3 * i, m, work)
    return regularised_directions(rows, law, i, m, work)


@kernel
def fill_impulse(rows, law, u, gamma):
    """γ ← γ(u), shapes (n,)."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        gamma[r], gamma[r + 1], gamma[r + 2] = contact_impulse(law, i, mu[i], u)
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        gamma[r] = min(max(scalar_impulse(law, r, u), lower[k]), upper[k])


@kernel
def stiffness_along(rows, law, u, way):
    """Return wayᵀ H(u) way [J]; `way` is a change of u [m/s], shape (n,)."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc, total = mu.shape[0], 0.0
    for i in range(nc):
        total += contact_stiffness_along(law, i, mu[i], u, way)
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < scalar_impulse(law, r, u) < upper[k]:
            total += way[r] * way[r] / law.R[r]
    return total


@kernel
def take_components(work, r, m, found):
    """Move the components of γ − x along the directions from m on from `change` to `step`."""
    kind, row, defect, change, step = work.kind, work.row, work.defect, work.change, work.step
    first, second, third = work.first, work.second, work.third
    for k in range(m, m + found):
        step[k] = component(defect, kind[k], row[k], first[k], second[k], third[k])
        if found < 3 and kind[k] == ROW:
            change[row[k]] -= step[k]
        elif found < 3:
            change[r] -= step[k] * first[k]
            change[r + 1] -= step[k] * second[k]
            change[r + 2] -= step[k] * third[k]
    if found == 3:  # nothing is left
        change[r] = change[r + 1] = change[r + 2] = 0.0


@kernel
def find_directions(rows, law, work):
    """Fill the directions e_k, 1/h_k, Eᵀ (γ − x) in `step` and its rest in `change`.

    Return (number of directions, whether the rest is not zero).
    """
    lower, upper, nc = rows.lower, rows.upper, rows.friction.shape[0]
    u, defect, change, step = work.velocity, work.defect, work.change, work.step
    m, rest = 0, False
    for r in range(rows.g.shape[0]):
        change[r] = defect[r]
    for i in range(nc):
        found = contact_directions(rows, law, i, m, work)
        take_components(work, 3 * i, m, found)
        rest = rest or found < 3
        m += found
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < scalar_impulse(law, r, u) < upper[k]:
            add_row(work, m, r, law.R[r])
            step[m], change[r] = defect[r], 0.0
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
def line_search(rows, law, x, work, accuracy):
    """Return the α in (0, 1.5] at which the cost along the step is smallest.

    `accuracy` is the slope that may be left over that before [-]. `trial` and `projected` then
    hold u and γ at α.
    """
    u, du, dx, trial, gamma = (
        work.velocity, work.velocity_change, work.change, work.trial, work.projected,
    )  # fmt: skip
    n, low, high, alpha = x.shape[0], 0.0, LARGEST_STEP, 1.0
    for count in range(LINE_SEARCH_ITERATIONS):
        for r in range(n):
            trial[r] = u[r] + alpha * du[r]
        fill_impulse(rows, law, trial, gamma)
        slope, curvature = 0.0, 0.0
        for r in range(n):
            slope += du[r] * (x[r] + alpha * dx[r] - gamma[r])
            curvature += du[r] * dx[r]
        if abs(slope) <= accuracy * curvature * alpha:  # stiffness only adds to it
            break
        curvature += stiffness_along(rows, law, trial, du)
        if abs(slope) <= accuracy * curvature * alpha or curvature <= 0.0:
            break
        if slope > 0.0:
            high = alpha
        else:
            low = alpha
        last = count == LINE_SEARCH_ITERATIONS - 1
        if low >= LARGEST_STEP or high - low <= 1e-12 or last:
            break
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
def changes_little(rows, x, work, tolerance):
    """Return whether |Δx|_G ≤ tolerance · |x + Δx|_G.

    The step is the error of x to first order. |x − γ| is far larger where R is tiny next to G:
    there γ = R⁻¹ (v̂ − u) multiplies the rounding of u.
    """
    u, dx, du, error, size = work.velocity, work.change, work.velocity_change, 0.0, 0.0
    for r in range(x.shape[0]):
        error += dx[r] * du[r]
        size += (x[r] + dx[r]) * (u[r] - rows.g[r] + du[r])
    return abs(error) <= tolerance * tolerance * abs(size)


@kernel
def guess_about(rows, law, start, impulse, work):
    """Fill the answer to γ linearised about the velocity `start` (n,), if there is one.

    (I + H G) x = γ(start) + H (start − u_f). A better guess than the last impulses where friction
    bends within a slip far below what their changes bring about.
    """
    u, gamma, defect, change, way = (
        work.velocity, work.projected, work.defect, work.change, work.trial,
    )  # fmt: skip
    kind, row, first, second, third = work.kind, work.row, work.first, work.second, work.third
    n = rows.g.shape[0]
    for r in range(n):
        u[r], way[r] = start[r], start[r] - rows.g[r]
    fill_impulse(rows, law, u, gamma)
    for r in range(n):
        defect[r] = gamma[r]
    m, _ = find_directions(rows, law, work)
    for k in range(m):
        along = component(way, kind[k], row[k], first[k], second[k], third[k])
        work.step[k] = along / work.softness[k]
    for r in range(n):
        change[r] = gamma[r]
    add_directions(work, m)
    for r in range(n):
        defect[r] = change[r]
    if newton_change(rows, law, work):
        for r in range(n):
            impulse[r] = change[r]


@kernel
def minimise(rows, law, impulse, work, tolerance, max_iterations, accuracy):
    """Solve from the guess `impulse`; return (iterations, residual, converged).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s], G symmetric.
        law: a `SoftLaw`; where it is of form PYRAMID, μ > 0.
        impulse: in and out: γ [N s], shape (n,).
        work: scratch for n rows or more, see `newton_work`; its vectors may be longer.
        tolerance: on |x − γ|, or on the Newton step, relative to |x|, in the norm of G [-].
        max_iterations: largest number of Newton steps.
        accuracy: of the line searches, EXACT or COARSE.
    """
    x, u, gamma, n = impulse, work.velocity, work.projected, rows.g.shape[0]
    dx, du, trial, residual = work.change, work.velocity_change, work.trial, np.inf
    fill_velocity_symmetric(rows, x, u)
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
        if changes_little(rows, x, work, tolerance):
            for r in range(n):
                x[r] += dx[r]
            return count + 1, residual, True
        alpha = line_search(rows, law, x, work, accuracy)
        for r in range(n):
            x[r] += alpha * dx[r]
            u[r] = trial[r]
    for r in range(n):
        x[r] = gamma[r]
    return max_iterations, residual, False


@kernel
def newton(rows, v_hat, R, impulse, work, tolerance, max_iterations, pyramidal):
    """Solve contacts of form CONE or PYRAMID; as `minimise`, with v̂ and R of shapes (n,)."""
    law = linear_law(v_hat, R, pyramidal)
    return minimise(rows, law, impulse, work, tolerance, max_iterations, EXACT)
