"""Newton with exact line search on the unconstrained convex cost of compliant contact.

    min_v ½ |v − v_f|²_A + Σ_i ℓ_i(J_i v),   γ(u) = −∂ℓ/∂u,   H(u) = −∂γ/∂u

Every iterate has the form v = v_f + A⁻¹ Jᵀ x, so the iteration runs on x and on G = J A⁻¹ Jᵀ
alone: u = u_f + G x,

    Newton step   (I + H G) Δx = γ(u) − x
    line search   root of (G Δx)·(x + α Δx − γ(u + α G Δx)) over α

and at the solution x = γ. The same iterates as Newton's in v, in rows instead of dofs.

H is symmetric: H = Σ_k h_k e_k e_kᵀ with orthonormal e_k. An interval row inside its bounds has a
unit vector, h = 1/R; a contact has up to three directions, an open one none. Only the components
of Δx along these are unknown, the rest of Δx is that of γ − x, and the system

    (diag(1/h) + Eᵀ G E) Eᵀ Δx = diag(1/h) Eᵀ (γ − x) − Eᵀ G (I − E Eᵀ) (γ − x)

is symmetric and positive definite. Where all rows are on one tree of joints, the same step can be
found in joint velocities (step/_tree_newton.py), without G: full steps are tried so before G is
formed (`solve_without_delassus`), and steps of more unknowns than dofs are taken so. The forms of
a contact, each with its γ, its H and its directions e_k, come after the solver:

    CONE, PYRAMID      γ = P(R⁻¹ (v̂ − u))
    LAGGED, SIMILAR    springs with regularised friction

Scalar rows are γ = clip(R⁻¹ (v̂ − u), lower, upper) in all of them.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers._cone_problem import fill_velocity_symmetric
from contact_sim.solvers._dense import distance, eliminate, fill_product, solve_symmetric
from contact_sim.solvers._jit import call_with_arrays, kernel

MIN_STIFFNESS = 1e-30  # h tr(G_ii) up to which a direction counts as without stiffness [-]
CONE, PYRAMID, LAGGED, SIMILAR = range(4)  # forms of a contact
GAP, BOUND, STICTION = range(3)  # places of the numbers of a contact in `SoftLaw.contact`
STIFFEST = 1e6
"""H G of one row up to which Δx is accurate as a difference, see `TreeSolver` [-]."""
TREE_STEPS, TRIED_STEPS, TREE_SHARE = 8, 2, 1e-2
"""Newton steps that are tried before G is formed, how many of them whether or not the error falls,
and the share of the tolerance that they must reach [-]: the error in velocities may be larger than
that in impulses."""
MAX_STEP = 1.5
LINE_SEARCH_ITERATIONS = 50
EXACT, COARSE = 1e-8, 0.01
"""Accuracies of a line search; near the end full Newton steps pass a coarse one."""


class SoftLaw(NamedTuple):
    """The compliance of every row of one problem."""

    form: int  # CONE, PYRAMID, LAGGED or SIMILAR
    v_hat: Any  # v̂ [m/s], shape (n,); LAGGED and SIMILAR: of scalar rows only
    R: Any
    """Compliance [1/kg], > 0, one value for both tangential rows of a contact; for rows as v̂."""
    contact: Any
    """φ [m], inf where it does not act; μ n₀ [N s]; ε [m/s] of each, (3 nc,). LAGGED, SIMILAR."""
    spring: Any  # h [s], k [N/m] and d [s/m] of n(z). LAGGED, SIMILAR.


class Directions(NamedTuple):
    """Orthonormal directions of one contact in which it is stiff, in its rows t1, t2, n."""

    first: Any  # unit vector
    second: Any  # unit vector
    third: Any  # unit vector
    softness: Any  # 1/h of each [1/kg]; inf: no stiffness, the vector means nothing


class TreeSolver(NamedTuple):
    """What finds Δx and G Δx from H and γ − x in joint velocities (step/_tree_newton.py).

    The first number of G Δx is not-a-number where it finds none.
    """

    dofs: int  # of the tree that all rows are on, 0 without one
    address: int  # of the function, called with `data`
    data: Any  # addresses of the arrays of the step


class NewtonWork(NamedTuple):
    """Scratch of `minimise` for n rows or more.

    The unknowns are the components of Δx along the directions of the contacts, which are
    combinations of their three rows, then scalar rows.
    """

    velocity: Any  # u [m/s], shape (n,)
    projected: Any  # γ(u) [N s], shape (n,)
    defect: Any  # γ(u) − x [N s], shape (n,)
    change: Any  # Δx [N s], shape (n,)
    velocity_change: Any  # Δu = G Δx [m/s], shape (n,)
    trial: Any  # u on the line, shape (n,)
    softness: Any  # 1/h_k of every unknown [1/kg], shape (n,)
    step: Any  # right side and answer of the system, shape (n,)
    line: Any  # e_kᵀ G of one unknown, shape (n,)
    matrix: Any  # matrix of the system, shape (n, n)
    row: Any  # row of every unknown, of a direction the first of its contact, integers, shape (n,)
    first: Any
    """Components of the directions e_k along the rows of their contacts: this one t1, (n,)."""
    second: Any  # along t2, shape (n,)
    third: Any  # along n, shape (n,)
    stiffness: Any  # H, a 3x3 block per contact, column 0 in a scalar row [kg], shape (n, 3)
    tree: Any  # a `TreeSolver`: Δx and G Δx of `defect`, with `trial` as scratch


@kernel
def newton_work(n):
    """Return scratch for problems of up to `n` rows."""
    vectors = np.empty((12, n))
    return NewtonWork(
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6],
        vectors[7], vectors[8], np.empty((n, n)), np.empty(n, np.int64), vectors[9], vectors[10],
        vectors[11], np.empty((n, 3)), TreeSolver(0, 0, (0, 0, 0)),
    )  # fmt: skip


@kernel
def linear_law(v_hat, R, pyramidal):
    """Return the law of form CONE or PYRAMID with these v̂ and R, shapes (n,)."""
    form = PYRAMID if pyramidal else CONE
    return SoftLaw(form, v_hat, R, R[:0], (0.0, 0.0, 0.0))


@kernel
def minimise(rows, law, impulse, work, tolerance, max_iterations, accuracy):
    """Minimise from the guess `impulse`; return (iterations, residual, converged).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s], G symmetric.
        law: a `SoftLaw`; if its form is PYRAMID, μ > 0.
        impulse: in and out: γ [N s], shape (n,).
        work: scratch for n rows or more, see `newton_work`; its vectors may be longer.
        tolerance: on |x − γ|, or on the Newton step, relative to |x|, in the norm of G [-].
        max_iterations: largest number of Newton steps.
        accuracy: of the line searches, EXACT or COARSE.
    """
    x, u, gamma, n = impulse, work.velocity, work.projected, rows.g.shape[0]
    dx, du, trial, residual = work.change, work.velocity_change, work.trial, np.inf
    # u = u_f + G x and γ(u)
    fill_velocity_symmetric(rows, x, u)
    fill_impulse(rows, law, u, gamma)
    for count in range(max_iterations + 1):
        # residual γ − x: acceptance
        error, size, residual = optimality_error(rows, x, work)
        if not np.isfinite(error):
            return count, residual, False
        if error <= tolerance * size:
            for r in range(n):
                x[r] = gamma[r]
            return count, residual, True
        if count == max_iterations:
            break
        # Newton step Δx, and Δu = G Δx
        if not fill_newton_step(rows, law, work):
            break
        # acceptance by |Δx|_G ≤ tolerance · |x + Δx|_G: to first order the step is the error of x;
        # |x − γ| is far larger where R is tiny next to G: γ multiplies the rounding of u by R⁻¹
        step = total = 0.0
        for r in range(n):
            step += dx[r] * du[r]
            total += (x[r] + dx[r]) * (u[r] - rows.g[r] + du[r])
        if abs(step) <= tolerance * tolerance * abs(total):
            for r in range(n):
                x[r] += dx[r]
            return count + 1, residual, True
        # line search
        alpha = line_search(rows, law, x, work, accuracy)
        for r in range(n):
            x[r] += alpha * dx[r]
            u[r] = trial[r]
    for r in range(n):
        x[r] = gamma[r]
    return max_iterations, residual, False


@kernel
def minimise_linear(rows, v_hat, R, impulse, work, tolerance, max_iterations, pyramidal):
    """Minimise with contacts of form CONE or PYRAMID; as `minimise`, v̂ and R of shapes (n,)."""
    law = linear_law(v_hat, R, pyramidal)
    return minimise(rows, law, impulse, work, tolerance, max_iterations, EXACT)


@kernel
def optimality_error(rows, x, work):
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
def solve_without_delassus(rows, law, start, impulse, work, tolerance, max_iterations):
    """Iterate along the tree from the velocity `start` (n,), without G; return as `minimise`.

    These are full Newton steps, tried before G is formed. Of G only the size of the diagonal is
    read. `impulse`: out, where solved.
    """
    u, gamma, defect, n = work.velocity, work.projected, work.defect, rows.g.shape[0]
    last = np.inf
    for r in range(n):
        u[r] = start[r]
    fill_impulse(rows, law, u, gamma)
    for count in range(1, min(TREE_STEPS, max_iterations) + 1):
        # (I + H G) x = γ(u) + H (u − u_f), then u = u_f + G x
        for r in range(n):
            defect[r] = gamma[r]
        if not fill_stiffness(rows, law, u, work.stiffness):
            break
        if not solve_linearised(rows, work):
            break
        for r in range(n):
            u[r] = rows.g[r] + work.velocity_change[r]
        fill_impulse(rows, law, u, gamma)
        # acceptance
        error, largest = distance(work.change, gamma, n)
        if not np.isfinite(error):
            break
        if error <= TREE_SHARE * tolerance * largest:
            for r in range(n):
                impulse[r] = gamma[r]
            return count, error, True
        # steps that go to and fro between modes need a line search
        if count >= TRIED_STEPS and not error < last:
            break
        last = error
    return 0, np.inf, False


@kernel
def solve_linearised(rows, work):
    """Fill x of (I + H G) x = γ + H (u − u_f) and G x, γ in `defect`; return False if singular."""
    direction, n = work.trial, rows.g.shape[0]
    for r in range(n):
        direction[r] = work.velocity[r] - rows.g[r]
    add_stiff_product(rows, work.stiffness, direction, work.defect)
    call_with_arrays(work.tree.address, work.tree.data)
    return work.velocity_change[0] == work.velocity_change[0]


@kernel
def fill_linearised_guess(rows, law, start, impulse, work):
    """Fill the solution with γ linearised about the velocity `start` (n,), if there is one."""
    # (I + H G) x = γ(start) + H (start − u_f): a better guess than the last impulses where
    # friction saturates within a slip far below the one that a change of these impulses causes
    u, gamma, direction, along = work.velocity, work.defect, work.trial, work.line
    n = rows.g.shape[0]
    for r in range(n):
        u[r] = start[r]
    fill_impulse(rows, law, u, gamma)
    of_contacts, m, rest = fill_directions(rows, law, work)
    if m > work.tree.dofs > 0 and fill_stiffness(rows, law, u, work.stiffness):
        if solve_linearised(rows, work):
            for r in range(n):
                impulse[r] = work.change[r]
        return
    for r in range(n):
        direction[r] = start[r] - rows.g[r]
    fill_components(work, direction, of_contacts, m, along)
    for k in range(m):
        work.step[k] += along[k] / work.softness[k]
    if solve_change(rows, work, of_contacts, m, rest):
        for r in range(n):
            impulse[r] = work.change[r]


@kernel
def line_search(rows, law, x, work, accuracy):
    """Return the α in (0, 1.5] that minimises the cost along the step.

    `accuracy`: slope that may remain, over curvature times α [-]; `trial` and `projected` become
    u and γ at α.
    """
    u, du, dx, trial, gamma = (
        work.velocity, work.velocity_change, work.change, work.trial, work.projected,
    )  # fmt: skip
    n, low, high, alpha = x.shape[0], 0.0, MAX_STEP, 1.0
    for count in range(LINE_SEARCH_ITERATIONS):
        # u, γ and slope of the cost at α
        for r in range(n):
            trial[r] = u[r] + alpha * du[r]
        fill_impulse(rows, law, trial, gamma)
        slope, curvature = 0.0, 0.0
        for r in range(n):
            slope += du[r] * (x[r] + alpha * dx[r] - gamma[r])
            curvature += du[r] * dx[r]
        if abs(slope) <= accuracy * curvature * alpha:  # the stiffness would only add to it
            break
        curvature += stiffness_along(rows, law, trial, du)
        if abs(slope) <= accuracy * curvature * alpha or curvature <= 0.0:
            break
        # bracket, then Newton, or bisection where Newton leaves the bracket
        if slope > 0.0:
            high = alpha
        else:
            low = alpha
        last = count == LINE_SEARCH_ITERATIONS - 1
        if low >= MAX_STEP or high - low <= 1e-12 or last:
            break
        following = alpha - slope / curvature
        alpha = following if low < following < high else 0.5 * (low + high)
    return alpha


@kernel
def fill_impulse(rows, law, u, gamma):
    """Fill γ(u), shapes (n,)."""
    mu, lower, upper, R, form = rows.friction, rows.lower, rows.upper, law.R, law.form
    nc = mu.shape[0]
    for i in range(nc):
        r = 3 * i
        if form == CONE:
            found = cone_impulse(velocity_deficit(law.v_hat, u, r), mu[i], (R[r], R[r + 2]))
        elif form == PYRAMID:
            found = pyramid_impulse(velocity_deficit(law.v_hat, u, r), mu[i], R[r])
        else:
            numbers = contact_numbers(law.contact, r)
            found = regularised_impulse(
                form == LAGGED, contact_velocity(u, r), mu[i], numbers, law.spring
            )
        gamma[r], gamma[r + 1], gamma[r + 2] = found
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        gamma[r] = min(max(scalar_impulse(law.v_hat, R, r, u), lower[k]), upper[k])


@kernel
def stiffness_along(rows, law, u, direction):
    """Return wᵀ H(u) w [J] for a change w of u [m/s], `direction` (n,)."""
    lower, upper, nc, total = rows.lower, rows.upper, rows.friction.shape[0], 0.0
    for i in range(nc):
        h11, h12, h22, h13, h23, h33 = contact_stiffness(rows, law, u, i)
        w1, w2, w3 = contact_velocity(direction, 3 * i)
        total += h11 * w1 * w1 + h22 * w2 * w2 + h33 * w3 * w3
        total += 2.0 * (h12 * w1 * w2 + h13 * w1 * w3 + h23 * w2 * w3)
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        if lower[k] < scalar_impulse(law.v_hat, law.R, r, u) < upper[k]:
            total += direction[r] * direction[r] / law.R[r]
    return total


@kernel
def fill_directions(rows, law, work):
    """Fill the directions e_k, 1/h_k, Eᵀ (γ − x) in `step` and the rest of γ − x in `change`.

    Return (number of directions of contacts, of all unknowns, whether the rest is not zero).
    """
    G, mu, R, v_hat, u = rows.delassus, rows.friction, law.R, law.v_hat, work.velocity
    defect, change, form, nc = work.defect, work.change, law.form, rows.friction.shape[0]
    m, rest = 0, False
    for i in range(nc):
        r = 3 * i
        trace = G[r, r] + G[r + 1, r + 1] + G[r + 2, r + 2]
        if form == CONE:
            found = cone_directions(velocity_deficit(v_hat, u, r), mu[i], (R[r], R[r + 2]), trace)
        elif form == PYRAMID:
            found = pyramid_directions(velocity_deficit(v_hat, u, r), mu[i], R[r])
        else:
            v, numbers = contact_velocity(u, r), contact_numbers(law.contact, r)
            found = regularised_directions(form == LAGGED, v, mu[i], numbers, law.spring, trace)
        change[r], change[r + 1], change[r + 2] = defect[r], defect[r + 1], defect[r + 2]
        before = m
        m = add_direction(work, m, r, found.first, found.softness[0])
        m = add_direction(work, m, r, found.second, found.softness[1])
        m = add_direction(work, m, r, found.third, found.softness[2])
        if m == before + 3:  # all of it is along the directions
            change[r] = change[r + 1] = change[r + 2] = 0.0
        else:
            rest = True
    of_contacts = m
    for k in range(rows.lower.shape[0]):
        r = 3 * nc + k
        # scalar rows inside their bounds are unknowns
        if rows.lower[k] < scalar_impulse(v_hat, R, r, u) < rows.upper[k]:
            work.row[m], work.softness[m], work.step[m], change[r] = r, R[r], defect[r], 0.0
            m += 1
        else:
            change[r] = defect[r]
            rest = rest or defect[r] != 0.0
    return of_contacts, m, rest


@kernel
def add_direction(work, m, r, e, softness):
    """Add a direction of the contact at row r, and remove it from `change`; return the next m."""
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
def fill_newton_step(rows, law, work):
    """Fill Δx and Δu = G Δx from γ − x; return False if the system is singular."""
    of_contacts, m, rest = fill_directions(rows, law, work)
    # the system is smaller in joint velocities, and as accurate there
    if m > work.tree.dofs > 0 and fill_stiffness(rows, law, work.velocity, work.stiffness):
        call_with_arrays(work.tree.address, work.tree.data)
        if work.velocity_change[0] == work.velocity_change[0]:
            return True
        of_contacts, m, rest = fill_directions(rows, law, work)
    if not solve_change(rows, work, of_contacts, m, rest):
        return False
    fill_product(rows.delassus, work.change, work.velocity_change)
    return True


@kernel
def fill_stiffness(rows, law, u, H):
    """Fill H(u), a 3x3 block per contact, column 0 in a scalar row.

    Return whether it is so soft that Δx is accurate as a difference, see `TreeSolver`.
    """
    G, lower, upper, nc, soft = (
        rows.delassus, rows.lower, rows.upper, rows.friction.shape[0], True,
    )  # fmt: skip
    for i in range(nc):
        r = 3 * i
        h11, h12, h22, h13, h23, h33 = contact_stiffness(rows, law, u, i)
        H[r, 0], H[r, 1], H[r, 2] = h11, h12, h13
        H[r + 1, 0], H[r + 1, 1], H[r + 1, 2] = h12, h22, h23
        H[r + 2, 0], H[r + 2, 1], H[r + 2, 2] = h13, h23, h33
        trace = G[r, r] + G[r + 1, r + 1] + G[r + 2, r + 2]
        soft &= (h11 + h22 + h33) * trace <= STIFFEST
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        inside = lower[k] < scalar_impulse(law.v_hat, law.R, r, u) < upper[k]
        H[r, 0] = 1.0 / law.R[r] if inside else 0.0
        soft &= H[r, 0] * G[r, r] <= STIFFEST
    return soft


@kernel
def contact_stiffness(rows, law, u, i):
    """Return H11, H12, H22, H13, H23 and H33 of contact i [kg]."""
    r, mu, R = 3 * i, rows.friction[i], law.R
    if law.form == CONE:
        return cone_stiffness(velocity_deficit(law.v_hat, u, r), mu, (R[r], R[r + 2]))
    if law.form == PYRAMID:
        return pyramid_stiffness(velocity_deficit(law.v_hat, u, r), mu, R[r])
    numbers = contact_numbers(law.contact, r)
    return regularised_stiffness(
        law.form == LAGGED, contact_velocity(u, r), mu, numbers, law.spring
    )


@kernel
def add_stiff_product(rows, H, x, y):
    """Add H x to y, with the blocks of `fill_stiffness`."""
    contacts = 3 * rows.friction.shape[0]
    for r in range(rows.g.shape[0]):
        b = r - r % 3
        if r < contacts:
            y[r] += H[r, 0] * x[b] + H[r, 1] * x[b + 1] + H[r, 2] * x[b + 2]
        else:
            y[r] += H[r, 0] * x[r]


@kernel
def solve_change(rows, work, of_contacts, m, rest):
    """Fill Δx from the output of `fill_directions`; return False if the system is singular."""
    A, step, line, softness, G = work.matrix, work.step, work.line, work.softness, rows.delassus
    # right-hand side
    for k in range(m):
        step[k] *= softness[k]
    if rest:
        fill_product(G, work.change, work.velocity_change)
        fill_components(work, work.velocity_change, of_contacts, m, line)
        for k in range(m):
            step[k] -= line[k]
    # without pivots
    fill_system(G, work, of_contacts, m)
    for k in range(m):
        line[k] = step[k]
    solve_symmetric(A, step, m)
    positive = True
    for k in range(m):
        positive = positive and 0.0 < A[k, k] < np.inf
    if not positive:  # with pivots: G is singular and R negligible next to it
        for k in range(m):
            step[k] = line[k]
        fill_system(G, work, of_contacts, m)
        for k in range(m):
            for j in range(k):
                A[k, j] = A[j, k]
        if not eliminate(A, step, m):
            return False
    # Δx = E step + the rest
    change, row = work.change, work.row
    for k in range(of_contacts):
        r, x = row[k], step[k]
        change[r] += x * work.first[k]
        change[r + 1] += x * work.second[k]
        change[r + 2] += x * work.third[k]
    for k in range(of_contacts, m):
        change[row[k]] += step[k]
    return True


@kernel
def fill_components(work, x, of_contacts, m, components):
    """Fill the components Eᵀ x."""
    row, first, second, third = work.row, work.first, work.second, work.third
    for k in range(of_contacts):
        r = row[k]
        components[k] = first[k] * x[r] + second[k] * x[r + 1] + third[k] * x[r + 2]
    for k in range(of_contacts, m):
        components[k] = x[row[k]]


@kernel
def fill_system(G, work, of_contacts, m):
    """Fill the upper triangle of diag(1/h) + Eᵀ G E."""
    A, line, row = work.matrix, work.line, work.row
    first, second, third, n = work.first, work.second, work.third, G.shape[0]
    for k in range(of_contacts):
        r, e1, e2, e3 = row[k], first[k], second[k], third[k]
        # e_kᵀ G
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
def scalar_impulse(v_hat, R, r, u):
    """Return R⁻¹ (v̂ − u) of the scalar row `r`, before its bounds."""
    return (v_hat[r] - u[r]) / R[r]


@kernel
def velocity_deficit(v_hat, u, r):
    """Return v̂ − u of the contact at row r."""
    return v_hat[r] - u[r], v_hat[r + 1] - u[r + 1], v_hat[r + 2] - u[r + 2]


@kernel
def contact_velocity(u, r):
    """Return u of the contact at row r."""
    return u[r], u[r + 1], u[r + 2]


@kernel
def contact_numbers(contact, r):
    """Return (φ, μ n₀, ε) of the contact at row r."""
    return contact[r + GAP], contact[r + BOUND], contact[r + STICTION]


@kernel
def inverse_stiffness(stiffness, trace):
    """Return 1/h, inf for negligible stiffness."""
    return 1.0 / stiffness if stiffness * trace > MIN_STIFFNESS else np.inf


# Circular cone: projection in the norm of R, and its derivative. A contact that sticks has a unit
# vector per row, h = 1/R; one that slides has the generator of the cone e = (μ d, 1)/√(1 + μ²) and
# the tangent across d; an open one has none.
#
# Arguments: `deficit` v̂ − u [m/s], `mu` [-], `R` compliances (R_t, R_n) [1/kg].


@kernel
def project_compliant(y1, y2, yn, mu, rt, rn):
    """Return (γ_t1, γ_t2, γ_n, region): P(y) in the norm of R; region 0 open, 1 stick, 2 slide."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    if size <= mu * yn and yn >= 0.0:  # without friction μ y_n is −0 for a pull
        return y1, y2, yn, 1
    weak = mu * rt / rn
    if yn <= -weak * size or size == 0.0:
        return 0.0, 0.0, 0.0, 0
    normal = (yn + weak * size) / (1.0 + mu * weak)
    return mu * normal * y1 / size, mu * normal * y2 / size, normal, 2


@kernel
def cone_impulse(deficit, mu, R):
    """Return γ [N s]."""
    rt, rn = R
    y1, y2, yn = deficit[0] / rt, deficit[1] / rt, deficit[2] / rn
    g1, g2, gn, _ = project_compliant(y1, y2, yn, mu, rt, rn)
    return g1, g2, gn


@kernel
def sliding_stiffness(y1, y2, normal, mu, rt, rn):
    """Return d and (h of the generator, h across) of a sliding contact [kg]."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    generator = (1.0 + mu * mu) / (rn + mu * mu * rt)
    return y1 / size, y2 / size, generator, mu * normal / (size * rt)


@kernel
def cone_stiffness(deficit, mu, R):
    """Return H11, H12, H22, H13, H23 and H33 [kg]."""
    rt, rn = R
    y1, y2, yn = deficit[0] / rt, deficit[1] / rt, deficit[2] / rn
    _, _, normal, region = project_compliant(y1, y2, yn, mu, rt, rn)
    if region == 0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if region == 1:
        return 1.0 / rt, 0.0, 1.0 / rt, 0.0, 0.0, 1.0 / rn
    # the generator (μ d, 1), and across
    d1, d2, h1, h2 = sliding_stiffness(y1, y2, normal, mu, rt, rn)
    h1 /= 1.0 + mu * mu
    along, turn = h1 * mu, h1 * mu * mu - h2
    return (
        turn * d1 * d1 + h2, turn * d1 * d2, turn * d2 * d2 + h2, along * d1, along * d2, h1,
    )  # fmt: skip


@kernel
def cone_directions(deficit, mu, R, trace):
    """Return the `Directions`; `trace` is that of G_ii [1/kg]."""
    rt, rn = R
    y1, y2, yn = deficit[0] / rt, deficit[1] / rt, deficit[2] / rn
    _, _, normal, region = project_compliant(y1, y2, yn, mu, rt, rn)
    e1, e2, e3 = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    if region == 0:
        return Directions(e1, e2, e3, (np.inf, np.inf, np.inf))
    if region == 1:
        return Directions(e1, e2, e3, (rt, rt, rn))
    d1, d2, h1, h2 = sliding_stiffness(y1, y2, normal, mu, rt, rn)
    share = 1.0 / np.sqrt(1.0 + mu * mu)
    softness = 1.0 / h1, inverse_stiffness(h2, trace), np.inf
    return Directions((share * mu * d1, share * mu * d2, share), (-d2, d1, 0.0), e3, softness)


# Pyramid of the edges n ± μ t_i.
#
#     γ = D β,   β_j = max(0, s_j)/R,   s = Dᵀ (v̂ − u),   D = [n ± μ t1, n ± μ t2]
#
# Every edge is a spring with compliance R that only pushes. The edges are combinations of the
# three rows of the contact, so neither β nor its matrix is formed. H = −∂γ/∂u = D_a D_aᵀ/R over
# the edges D_a that push. Two edges of one axis give (t_i, 0) with h = 2 μ²/R. Since s_{+i} +
# s_{−i} = 2 (v̂_n − u_n), the edges of the other axis cannot both be at rest meanwhile.
#
# Arguments: `deficit` v̂ − u [m/s], `mu` > 0 [-], `R` compliance of the edges [1/kg].


@kernel
def edge_speeds(deficit, mu):
    """Return s of the edges n + μ t1, n − μ t1, n + μ t2, n − μ t2."""
    t1, t2, n = mu * deficit[0], mu * deficit[1], deficit[2]
    return n + t1, n - t1, n + t2, n - t2


@kernel
def pyramid_impulse(deficit, mu, R):
    """Return γ [N s]."""
    a, b, c, d = edge_speeds(deficit, mu)
    a, b, c, d = max(a, 0.0), max(b, 0.0), max(c, 0.0), max(d, 0.0)
    return mu * (a - b) / R, mu * (c - d) / R, (a + b + c + d) / R


@kernel
def pyramid_stiffness(deficit, mu, R):
    """Return H11, H12, H22, H13, H23 and H33 [kg]."""
    a, b, c, d = edge_speeds(deficit, mu)
    p, q, r, s = int(a > 0.0), int(b > 0.0), int(c > 0.0), int(d > 0.0)
    h, t = 1.0 / R, mu / R
    return (
        mu * t * (p + q), 0.0, mu * t * (r + s), t * (p - q), t * (r - s), h * (p + q + r + s),
    )  # fmt: skip


@kernel
def pyramid_directions(deficit, mu, R):
    """Return the `Directions`."""
    a, b, c, d = edge_speeds(deficit, mu)
    first, second = int(a > 0.0) + int(b > 0.0), int(c > 0.0) + int(d > 0.0)
    e1, e2 = mu * (int(a > 0.0) - int(b > 0.0)), mu * (int(c > 0.0) - int(d > 0.0))
    t1, t2, n, none = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), np.inf
    both = 0.5 * R / (mu * mu)
    # by the number of edges that push
    if first + second == 4:
        return Directions(t1, t2, n, (both, both, 0.25 * R))
    if first + second == 3:  # one axis has both edges and is a row; e of the other with n
        trace, e = mu * mu + 3.0, e1 + e2
        largest = 0.5 * (trace + np.sqrt(trace * trace - 8.0 * mu * mu))
        size = np.sqrt(mu * mu + (largest - mu * mu) ** 2)
        along, up = e / size, (largest - mu * mu) / size
        softness = both, R / largest, largest * both
        if first == 2:
            return Directions(t1, (0.0, along, up), (0.0, -up, along), softness)
        return Directions(t2, (along, 0.0, up), (-up, 0.0, along), softness)
    if first + second == 2:  # one edge of each axis: their sum and their difference
        size, half = np.sqrt(4.0 + 2.0 * mu * mu), np.sqrt(0.5) / mu
        softness = R / (2.0 + mu * mu), R / (mu * mu), none
        total, difference = (e1 / size, e2 / size, 2.0 / size), (half * e1, -half * e2, 0.0)
        return Directions(total, difference, n, softness)
    if first + second == 1:
        size = np.sqrt(1.0 + mu * mu)
        edge = e1 / size, e2 / size, 1.0 / size
        return Directions(edge, t2, n, (R / (1.0 + mu * mu), none, none))
    return Directions(t1, t2, n, (none, none, none))


# Spring with Hunt and Crossley's damping and regularised friction, as the gradient of a cost.
#
#     LAGGED    γ_n = n(u_n),   γ_t = −μ n₀ t
#     SIMILAR   γ_n = n(z),     γ_t = −μ γ_n t,   z = u_n − μ (S − ε)
#
#     n(z) = h k (−φ − h z)₊ (1 − d z)₊   at the end of the step
#     t = u_t/S,   S = √(|u_t|² + ε²)
#
# n₀ is n of the start of the step (theory 2.3). With d the direction of slip and s = |u_t|/S,
#
#     H = −∂γ/∂u = (b/S) e₂ e₂ᵀ + (b ε²/S³) d dᵀ − n' (n − μ s d)(n − μ s d)ᵀ,   e₂ across d,
#
# b the bound of friction, μ n₀ or μ γ_n; s counts in SIMILAR only.
#
# Arguments: `lagged`, else SIMILAR; `u` velocity [m/s], `mu` [-], `numbers` (φ [m], μ n₀ [N s],
# ε [m/s]), `spring` (h [s], k [N/m], d [s/m]).
#
# [Castro et al. 2023] A Theory of Irrotational Contact Fields.


@kernel
def hunt_crossley(z, gap, spring):
    """Return n(z) [N s] and −n'(z) [kg]."""
    h, k, d = spring
    elastic, viscous = -k * (gap + h * z), 1.0 - d * z
    if elastic <= 0.0 or viscous <= 0.0:
        return 0.0, 0.0
    return h * elastic * viscous, h * (h * k * viscous + d * elastic)


@kernel
def regularised(lagged, u, mu, numbers, spring):
    """Return (1/S, γ_n, −n', b)."""
    gap, bound, eps = numbers
    size = np.sqrt(u[0] * u[0] + u[1] * u[1] + eps * eps)
    z = u[2] if lagged else u[2] - mu * (size - eps)
    normal, slope = hunt_crossley(z, gap, spring)
    return 1.0 / size, normal, slope, bound if lagged else mu * normal


@kernel
def regularised_impulse(lagged, u, mu, numbers, spring):
    """Return γ [N s]."""
    over_size, normal, _, bound = regularised(lagged, u, mu, numbers, spring)
    share = -bound * over_size
    return share * u[0], share * u[1], normal


@kernel
def regularised_slopes(lagged, u, mu, numbers, spring):
    """Return d, (b/S, b ε²/S³, −n') [kg] and μ s."""
    over_size, _, slope, bound = regularised(lagged, u, mu, numbers, spring)
    slip = np.sqrt(u[0] * u[0] + u[1] * u[1])
    d1, d2 = (u[0] / slip, u[1] / slip) if slip > 0.0 else (1.0, 0.0)
    across, share = bound * over_size, numbers[2] * over_size
    tilt = 0.0 if lagged else mu * slip * over_size
    return d1, d2, across, across * share * share, slope, tilt


@kernel
def regularised_stiffness(lagged, u, mu, numbers, spring):
    """Return H11, H12, H22, H13, H23 and H33 [kg]."""
    d1, d2, across, along, slope, tilt = regularised_slopes(lagged, u, mu, numbers, spring)
    turn, lift = along - across + slope * tilt * tilt, -slope * tilt
    return (
        turn * d1 * d1 + across, turn * d1 * d2, turn * d2 * d2 + across, lift * d1, lift * d2,
        slope,
    )  # fmt: skip


@kernel
def principal_axes(along, slope, tilt):
    """Return (c, s, h₁, h₃) of along · (1, 0)(1, 0)ᵀ + slope · (−tilt, 1)(−tilt, 1)ᵀ.

    It is h₁ (c, s)(c, s)ᵀ + h₃ (−s, c)(−s, c)ᵀ.
    """
    if tilt == 0.0 or slope == 0.0:
        return 1.0, 0.0, along, slope
    a, b = along + slope * tilt * tilt, -slope * tilt
    half = 0.5 * (a - slope)
    root = np.sqrt(half * half + b * b)
    largest = 0.5 * (a + slope) + root
    x, y = (half + root, b) if half > 0.0 else (b, root - half)
    length = np.sqrt(x * x + y * y)
    return x / length, y / length, largest, along * slope / largest


@kernel
def regularised_directions(lagged, u, mu, numbers, spring, trace):
    """Return the `Directions`; `trace` is that of G_ii [1/kg]."""
    d1, d2, across, along, slope, tilt = regularised_slopes(lagged, u, mu, numbers, spring)
    c, s, h1, h3 = principal_axes(along, slope, tilt)
    first, third = inverse_stiffness(h1, trace), inverse_stiffness(h3, trace)
    softness = first, inverse_stiffness(across, trace), third
    return Directions((c * d1, c * d2, s), (-d2, d1, 0.0), (-s * d1, -s * d2, c), softness)
