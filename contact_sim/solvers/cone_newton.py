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
from contact_sim.solvers.soft_cone import cone_directions, cone_impulse, cone_stiffness_along
from contact_sim.solvers.soft_law import (
    CONE,
    LAGGED,
    PYRAMID,
    linear_law,
    missing_speed,
    place_of,
    scalar_impulse,
    speed_of,
)
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
def fill_impulse(rows, law, u, gamma):
    """γ ← γ(u), shapes (n,)."""
    mu, lower, upper, R, form = rows.friction, rows.lower, rows.upper, law.R, law.form
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        if form == CONE:
            found = cone_impulse(missing_speed(law.v_hat, u, r), mu[i], (R[r], R[r + 2]))
        elif form == PYRAMID:
            found = pyramid_impulse(missing_speed(law.v_hat, u, r), mu[i], R[r])
        else:
            place = place_of(law.contact, r)
            found = regularised_impulse(form == LAGGED, speed_of(u, r), mu[i], place, law.spring)
        gamma[r], gamma[r + 1], gamma[r + 2] = found
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        gamma[r] = min(max(scalar_impulse(law.v_hat, R, r, u), lower[k]), upper[k])


@kernel
def stiffness_along(rows, law, u, way):
    """Return wayᵀ H(u) way [J]; `way` is a change of u [m/s], shape (n,)."""
    mu, lower, upper, R, form = rows.friction, rows.lower, rows.upper, law.R, law.form
    nc, total = mu.shape[0], 0.0
    for i in range(nc):
        r = 3 * i
        along = speed_of(way, r)
        if form == CONE:
            missing = missing_speed(law.v_hat, u, r)
            total += cone_stiffness_along(missing, mu[i], (R[r], R[r + 2]), along)
        elif form == PYRAMID:
            missing = missing_speed(law.v_hat, u, r)
            total += pyramid_stiffness_along(missing, mu[i], R[r], along)
        else:
            total += regularised_stiffness_along(
                form == LAGGED, speed_of(u, r), mu[i], place_of(law.contact, r), law.spring, along
            )
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < scalar_impulse(law.v_hat, R, r, u) < upper[k]:
            total += way[r] * way[r] / R[r]
    return total


@kernel
def add_direction(work, m, r, e, softness):
    """Add direction m of the contact at row r and take it out of `change`; return what is next."""
    if softness == np.inf:
        return m
    e1, e2, e3 = e
    defect, change = work.defect, work.change
    along = e1 * defect[r] + e2 * defect[r + 1] + e3 * defect[r + 2]
    work.first[m], work.second[m], work.third[m] = e
    work.row[m], work.softness[m], work.step[m] = r, softness, along
    change[r] -= along * e1
    change[r + 1] -= along * e2
    change[r + 2] -= along * e3
    return m + 1


@kernel
def find_directions(rows, law, work):
    """Fill the directions e_k, 1/h_k, Eᵀ (γ − x) in `step` and its rest in `change`.

    Return (number of directions of contacts, of all unknowns, whether the rest is not zero).
    """
    G, mu, R, v_hat, u = rows.delassus, rows.friction, law.R, law.v_hat, work.velocity
    defect, change, form, nc = work.defect, work.change, law.form, rows.friction.shape[0]
    m, rest = 0, False
    for i in range(nc):
        r = 3 * i
        trace = G[r, r] + G[r + 1, r + 1] + G[r + 2, r + 2]
        if form == CONE:
            found = cone_directions(missing_speed(v_hat, u, r), mu[i], (R[r], R[r + 2]), trace)
        elif form == PYRAMID:
            found = pyramid_directions(missing_speed(v_hat, u, r), mu[i], R[r])
        else:
            found = regularised_directions(
                form == LAGGED, speed_of(u, r), mu[i], place_of(law.contact, r), law.spring, trace
            )
        change[r], change[r + 1], change[r + 2] = defect[r], defect[r + 1], defect[r + 2]
        before = m
        m = add_direction(work, m, r, found.first, found.softness[0])
        m = add_direction(work, m, r, found.second, found.softness[1])
        m = add_direction(work, m, r, found.third, found.softness[2])
        if m == before + 3:  # nothing is left
            change[r] = change[r + 1] = change[r + 2] = 0.0
        else:
            rest = True
    of_contacts = m
    for k in range(rows.lower.shape[0]):
        r = 3 * nc + k
        if rows.lower[k] < scalar_impulse(v_hat, R, r, u) < rows.upper[k]:
            work.row[m], work.softness[m], work.step[m], change[r] = r, R[r], defect[r], 0.0
            m += 1
        else:
            change[r] = defect[r]
            rest = rest or defect[r] != 0.0
    return of_contacts, m, rest


@kernel
def fill_components(work, x, of_contacts, m, components):
    """Fill Eᵀ x."""
    row, first, second, third = work.row, work.first, work.second, work.third
    for k in range(of_contacts):
        r = row[k]
        components[k] = first[k] * x[r] + second[k] * x[r + 1] + third[k] * x[r + 2]
    for k in range(of_contacts, m):
        components[k] = x[row[k]]


@kernel
def fill_system(G, work, of_contacts, m):
    """Fill diag(1/h) + Eᵀ G E, the upper triangle."""
    A, line, row = work.matrix, work.line, work.row
    first, second, third, n = work.first, work.second, work.third, G.shape[0]
    for k in range(of_contacts):
        r, e1, e2, e3 = row[k], first[k], second[k], third[k]
        for c in range(r, n):
            line[c] = e1 * G[r, c] + e2 * G[r + 1, c] + e3 * G[r + 2, c]
        for j in range(k, of_contacts):
            c = row[j]
            A[k, j] = first[j] * line[c] + second[j] * line[c + 1] + third[j] * line[c + 2]
        for j in range(of_contacts, m):
            A[k, j] = line[row[j]]
    for k in range(of_contacts, m):
        for j in range(k, m):
            A[k, j] = G[row[k], row[j]]
    for k in range(m):
        A[k, k] += work.softness[k]


@kernel
def add_directions(work, of_contacts, m):
    """Add E times `step` to `change`."""
    change, step, row = work.change, work.step, work.row
    for k in range(of_contacts):
        r, x = row[k], step[k]
        change[r] += x * work.first[k]
        change[r + 1] += x * work.second[k]
        change[r + 2] += x * work.third[k]
    for k in range(of_contacts, m):
        change[row[k]] += step[k]


@kernel
def solve_change(rows, work, of_contacts, m, rest):
    """Fill Δx from what `find_directions` left; return False where the system is singular."""
    A, step, line, softness, G = work.matrix, work.step, work.line, work.softness, rows.delassus
    for k in range(m):
        step[k] *= softness[k]
    if rest:
        fill_product(G, work.change, work.velocity_change)
        fill_components(work, work.velocity_change, of_contacts, m, line)
        for k in range(m):
            step[k] -= line[k]
    fill_system(G, work, of_contacts, m)
    for k in range(m):
        line[k] = step[k]
    solve_symmetric(A, step, m)
    positive = True
    for k in range(m):
        positive = positive and 0.0 < A[k, k] < np.inf
    if not positive:  # G is singular and R too small next to it: with pivots
        for k in range(m):
            step[k] = line[k]
        fill_system(G, work, of_contacts, m)
        for k in range(m):
            for j in range(k):
                A[k, j] = A[j, k]
        if not eliminate(A, step, m):
            return False
    add_directions(work, of_contacts, m)
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
    u, gamma, way, along = work.velocity, work.defect, work.trial, work.line
    n = rows.g.shape[0]
    for r in range(n):
        u[r], way[r] = start[r], start[r] - rows.g[r]
    fill_impulse(rows, law, u, gamma)
    of_contacts, m, rest = find_directions(rows, law, work)
    fill_components(work, way, of_contacts, m, along)
    for k in range(m):
        work.step[k] += along[k] / work.softness[k]
    if solve_change(rows, work, of_contacts, m, rest):
        for r in range(n):
            impulse[r] = work.change[r]


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
        if count == max_iterations:
            break
        of_contacts, m, rest = find_directions(rows, law, work)
        if not solve_change(rows, work, of_contacts, m, rest):
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
