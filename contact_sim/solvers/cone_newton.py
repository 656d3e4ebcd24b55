"""Newton with exact line search on the unconstrained convex cost of compliant contact.

    min_v ½ |v − v_f|²_A + Σ_i ½ |P_i(y_i)|²_{R_i},   y = R⁻¹ (v̂ − J v),   γ = P(y)

P projects on the friction cone (intervals for scalar rows) in the norm of R: soft_cone.py; that of
pyramids: soft_pyramid.py. Every iterate has the form v = v_f + A⁻¹ Jᵀ x, so the iteration runs on
x and on G = J A⁻¹ Jᵀ alone: u = u_f + G x,

    Newton step   (I + H G) Δx = γ(u) − x,   H = −∂γ/∂u
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

from contact_sim.solvers.cone import fill_velocity
from contact_sim.solvers.dense import eliminate, fill_product, solve_symmetric
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import ROW, add_row, component
from contact_sim.solvers.soft_cone import (
    cone_directions,
    cone_stiffness_along,
    project_compliant,
)
from contact_sim.solvers.soft_pyramid import (
    pyramid_directions,
    pyramid_impulse,
    pyramid_stiffness_along,
)

LARGEST_STEP = 1.5
LINE_SEARCH_ITERATIONS = 50
LINE_SEARCH_TOLERANCE = 1e-8


@kernel
def fill_impulse(rows, u, v_hat, R, gamma, pyramidal):
    """γ ← P(R⁻¹ (v̂ − u))."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        if pyramidal:
            gamma[r], gamma[r + 1], gamma[r + 2] = pyramid_impulse(u, v_hat, mu[i], R[r], r)
            continue
        gamma[r], gamma[r + 1], gamma[r + 2], _ = project_compliant(
            (v_hat[r] - u[r]) / R[r],
            (v_hat[r + 1] - u[r + 1]) / R[r + 1],
            (v_hat[r + 2] - u[r + 2]) / R[r + 2],
            mu[i],
            R[r],
            R[r + 2],
        )
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        gamma[r] = min(max((v_hat[r] - u[r]) / R[r], lower[k]), upper[k])


@kernel
def stiffness_along(rows, u, way, v_hat, R, pyramidal):
    """Return wayᵀ H(u) way [J]; `way` is a change of u [m/s], shape (n,)."""
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    nc, total = mu.shape[0], 0.0
    for i in range(nc):
        r = 3 * i
        if pyramidal:
            total += pyramid_stiffness_along(u, v_hat, mu[i], R[r], r, way)
        else:
            total += cone_stiffness_along(u, v_hat, mu[i], R, r, way)
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < (v_hat[r] - u[r]) / R[r] < upper[k]:
            total += way[r] * way[r] / R[r]
    return total


@kernel
def take_components(work, r, m, found):
    """Move the components of γ − x along the directions from m on from `change` to `step`."""
    kind, row, defect, change, step = work.kind, work.row, work.defect, work.change, work.step
    first, second, third = work.first, work.second, work.third
    for k in range(m, m + found):
        step[k] = component(defect, kind[k], row[k], first[k], second[k], third[k])
        if found < 3:  # all of them combinations
            change[r] -= step[k] * first[k]
            change[r + 1] -= step[k] * second[k]
            change[r + 2] -= step[k] * third[k]
    if found == 3:  # nothing is left
        change[r] = change[r + 1] = change[r + 2] = 0.0


@kernel
def find_directions(rows, v_hat, R, work, pyramidal):
    """Fill the directions e_k, 1/h_k, Eᵀ (γ − x) in `step` and its rest in `change`.

    Return (number of directions, whether the rest is not zero).
    """
    mu, lower, upper = rows.friction, rows.lower, rows.upper
    u, defect, change, step = work.velocity, work.defect, work.change, work.step
    nc, m, rest = mu.shape[0], 0, False
    for r in range(rows.g.shape[0]):
        change[r] = defect[r]
    for i in range(nc):
        if pyramidal:
            found = pyramid_directions(u, v_hat, mu[i], R[3 * i], 3 * i, m, work)
        else:
            found = cone_directions(rows, v_hat, R, i, m, work)
        take_components(work, 3 * i, m, found)
        rest = rest or found < 3
        m += found
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < (v_hat[r] - u[r]) / R[r] < upper[k]:
            add_row(work, m, r, R[r])
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
def newton_change(rows, v_hat, R, work, pyramidal):
    """Fill Δx; return False where the system is singular."""
    m, rest = find_directions(rows, v_hat, R, work, pyramidal)
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
def line_search(rows, v_hat, R, x, work, pyramidal):
    """Return the α in (0, 1.5] at which the cost along the step is smallest."""
    u, du, dx, trial, gamma = (
        work.velocity, work.velocity_change, work.change, work.trial, work.projected,
    )  # fmt: skip
    n, low, high, alpha = x.shape[0], 0.0, LARGEST_STEP, 1.0
    for _ in range(LINE_SEARCH_ITERATIONS):
        for r in range(n):
            trial[r] = u[r] + alpha * du[r]
        fill_impulse(rows, trial, v_hat, R, gamma, pyramidal)
        slope, curvature = 0.0, 0.0
        for r in range(n):
            slope += du[r] * (x[r] + alpha * dx[r] - gamma[r])
            curvature += du[r] * dx[r]
        if abs(slope) <= LINE_SEARCH_TOLERANCE * curvature * alpha:  # stiffness only adds to it
            return alpha
        curvature += stiffness_along(rows, trial, du, v_hat, R, pyramidal)
        if abs(slope) <= LINE_SEARCH_TOLERANCE * curvature * alpha or curvature <= 0.0:
            return alpha
        if slope > 0.0:
            high = alpha
        else:
            low = alpha
            if alpha >= LARGEST_STEP:
                return alpha
        following = alpha - slope / curvature
        alpha = following if low < following < high else 0.5 * (low + high)
        if high - low <= 1e-12:
            return alpha
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
def newton(rows, v_hat, R, impulse, work, tolerance, max_iterations, pyramidal):
    """Solve from the guess `impulse`; return (iterations, residual, converged).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s], G symmetric.
        v_hat: v̂ [m/s], shape (n,).
        R: compliance of every row [1/kg], > 0; both tangential rows of a contact alike, those of
            a pyramid that of its edges, shape (n,).
        impulse: in and out: γ [N s], shape (n,).
        work: scratch for n rows or more, see `newton_work`; its vectors may be longer.
        tolerance: on |x − γ|, or on the Newton step, relative to |x|, in the norm of G [-].
        max_iterations: largest number of Newton steps.
        pyramidal: whether the cones are the pyramids n ± μ t_i; then μ > 0.
    """
    x, u, gamma, n = impulse, work.velocity, work.projected, rows.g.shape[0]
    dx, du, residual = work.change, work.velocity_change, np.inf
    fill_velocity(rows, x, u)
    for count in range(max_iterations + 1):
        fill_impulse(rows, u, v_hat, R, gamma, pyramidal)
        error, size, residual = measure(rows, x, work)
        if not np.isfinite(error):
            return count, residual, False
        if error <= tolerance * size:
            for r in range(n):
                x[r] = gamma[r]
            return count, residual, True
        if count == max_iterations or not newton_change(rows, v_hat, R, work, pyramidal):
            break
        fill_product(rows.delassus, dx, du)
        if changes_little(rows, x, work, tolerance):
            for r in range(n):
                x[r] += dx[r]
            return count + 1, residual, True
        alpha = line_search(rows, v_hat, R, x, work, pyramidal)
        for r in range(n):
            x[r] += alpha * dx[r]
            u[r] += alpha * du[r]
    fill_impulse(rows, u, v_hat, R, gamma, pyramidal)
    for r in range(n):
        x[r] = gamma[r]
    return max_iterations, residual, False
