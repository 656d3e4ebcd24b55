"""Springs, dampers and regularised friction: forces, derivatives, implicit step.

The laws are those of contact_models/_compliant.py (theory 2.1); `material` holds their numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    MAX_ITERATIONS,
    NONFINITE,
    fill_velocity,
)
from contact_sim.solvers._dense import assign, distance, eliminate, fill_product
from contact_sim.solvers._jit import call_with_arrays, kernel
from contact_sim.solvers._soft_newton import STIFFEST

LINEAR, KELVIN_VOIGT, UNCLAMPED, HUNT_CROSSLEY = range(4)
PIECEWISE, TANH, STRIBECK, ANCHORED = range(4)
(
    STIFFNESS, EXPONENT, DISSIPATION, DAMPING_RATIO, SLIP_SPEED, STATIC_RATIO,
    TANGENTIAL_STIFFNESS, TANGENTIAL_DAMPING_RATIO, SECANT_STIFFNESS,
) = range(9)  # fmt: skip
"""Places of the numbers in `material`, see CompliantParameters."""


class Springs(NamedTuple):
    """The laws of a compliant ground."""

    normal_law: int  # LINEAR, KELVIN_VOIGT, UNCLAMPED or HUNT_CROSSLEY
    friction_law: int  # PIECEWISE, TANH, STRIBECK or ANCHORED
    material: Any  # numbers of the laws, shape (9,)
    time_step: float  # h [s]
    ahead: float  # h if the gap at the end of the step counts, 0 if that at its start does [s]


class NormalLoad(NamedTuple):
    """The normal force of one contact, on which its friction depends."""

    mu: float  # friction coefficient [-]
    force: float  # normal force f [N]
    rate: float  # its derivative to the normal velocity [N s/m]


class LinearSprings(NamedTuple):
    """Springs and dampers of every contact, linearised about the nominal penetration."""

    stiffness: float
    """k along the normal [N/m]."""
    damping_ratio: float
    """ζ along the normal, d = 2 ζ √(k/G_nn) [-]."""
    damping: float
    """d along the normal besides [N s/m]."""
    tangential_stiffness: float
    """k of the anchor [N/m]; 0 without one."""
    tangential_damping_ratio: float
    """ζ of the anchor, d = 2 ζ √(k/G_tt) [-]."""


@kernel
def damper(ratio, k, G):
    """Return d = 2 ζ √(k/G) [N s/m], 0 along a row in which nothing can move."""
    return 2.0 * ratio * np.sqrt(k / G) if G > 0.0 else 0.0


@kernel
def stiffness_ratio(G, nc, h, springs):
    """Return √λ_max(G (h² K + 2 h D)) of the first `nc` contacts: h ω_max without damping.

    The explicit step u⁺ = u − h G (K x + D u), x⁺ = x + h u⁺ is stable exactly below 2. K and D
    are the diagonal stiffness and damping of `springs`, a `LinearSprings`.
    """
    n = 3 * nc
    if nc == 0:
        return 0.0
    root, A = np.empty(n), np.empty((n, n))
    for i in range(nc):
        r = 3 * i
        k, k_t = springs.stiffness, springs.tangential_stiffness
        d = damper(springs.damping_ratio, k, G[r + 2, r + 2]) + springs.damping
        G_tt = 0.5 * (G[r, r] + G[r + 1, r + 1])
        d_t = damper(springs.tangential_damping_ratio, k_t, G_tt)
        root[r] = root[r + 1] = np.sqrt(h * (h * k_t + 2.0 * d_t))
        root[r + 2] = np.sqrt(h * (h * k + 2.0 * d))
    # symmetric matrix of the same eigenvalues
    for a in range(n):
        for b in range(n):
            A[a, b] = root[a] * G[a, b] * root[b]
    return np.sqrt(max(np.linalg.eigvalsh(A)[n - 1], 0.0))


@kernel
def normal_force(law, x, speed, material, G_nn):
    """Return f_n and its derivatives to the penetration x and to its rate ẋ = `speed`."""
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    # open contact above; the laws of theory T10
    k = material[STIFFNESS]
    if law == LINEAR:
        return k * x, k, 0.0
    if law in (KELVIN_VOIGT, UNCLAMPED):
        damping = damper(material[DAMPING_RATIO], k, G_nn)
        force = k * x + damping * speed
        return (force, k, damping) if force > 0.0 or law == UNCLAMPED else (0.0, 0.0, 0.0)
    exponent, dissipation = material[EXPONENT], material[DISSIPATION]
    power = x * np.sqrt(x) if exponent == 1.5 else x**exponent  # the default without pow
    spring, viscous = k * power, 1.0 + dissipation * speed
    if viscous <= 0.0:
        return 0.0, 0.0, 0.0
    return spring * viscous, exponent * spring / x * viscous, spring * dissipation


@kernel
def friction_coefficient(law, s, mu, v_s, ratio):
    """Return μ(s) and dμ/ds at slip speed s."""
    x = s / v_s
    if law == PIECEWISE:
        return (mu * x, mu / v_s) if x < 1.0 else (mu, 0.0)
    if law == TANH:
        value = np.tanh(x)
        return mu * value, mu * (1.0 - value * value) / v_s
    # Stribeck: up to μ_s, then down to μ by a cubic
    static = ratio * mu
    if x < 1.0:
        return static * x * (2.0 - x), 2.0 * static * (1.0 - x) / v_s
    if x < 3.0:
        y = 0.5 * (x - 1.0)
        fall = y * y * (3.0 - 2.0 * y)
        return static - (static - mu) * fall, -(static - mu) * 3.0 * y * (1.0 - y) / v_s
    return mu, 0.0


@kernel
def regularised_friction(springs, press, u1, u2, r, impulse, slope):
    """Fill the tangential rows of −h μ(s) f u_t/s at row `r` and their derivatives to u."""
    mu, f, d_f = press
    h, v_s = springs.time_step, springs.material[SLIP_SPEED]
    s = np.sqrt(u1 * u1 + u2 * u2)
    m, d_m = friction_coefficient(springs.friction_law, s, mu, v_s, springs.material[STATIC_RATIO])
    # force −h μ(s) f u_t/s and its derivatives along d, across d and to f
    over = m / s if s > 1e-12 * v_s else d_m
    d1, d2 = (u1 / s, u2 / s) if s > 0.0 else (0.0, 0.0)
    impulse[r], impulse[r + 1] = -h * over * f * u1, -h * over * f * u2
    along, across = h * f * d_m, h * f * over
    slope[r, 0] = -(along * d1 * d1 + across * (1.0 - d1 * d1))
    slope[r, 1] = slope[r + 1, 0] = -(along - across) * d1 * d2
    slope[r + 1, 1] = -(along * d2 * d2 + across * (1.0 - d2 * d2))
    slope[r, 2], slope[r + 1, 2] = -h * over * u1 * d_f, -h * over * u2 * d_f


@kernel
def anchored_friction(springs, press, u1, u2, G_tt, z, r, impulse, slope):
    """Fill the tangential rows of the spring and damper to the anchor, cut at μ f.

    `z` (4,) is the deflection at the start of the step.
    """
    mu, f, d_f = press
    h, k = springs.time_step, springs.material[TANGENTIAL_STIFFNESS]
    damping = damper(springs.material[TANGENTIAL_DAMPING_RATIO], k, G_tt)
    gain = k * springs.ahead + damping
    t1, t2 = k * z[0] + gain * u1, k * z[1] + gain * u2
    size, bound = np.sqrt(t1 * t1 + t2 * t2), mu * f
    # stick; below: slip, with the direction of the trial force
    if size <= bound:
        impulse[r], impulse[r + 1] = -h * t1, -h * t2
        slope[r, 0] = slope[r + 1, 1] = -h * gain
        slope[r, 1] = slope[r + 1, 0] = slope[r, 2] = slope[r + 1, 2] = 0.0
        return
    d1, d2 = t1 / size, t2 / size
    impulse[r], impulse[r + 1] = -h * bound * d1, -h * bound * d2
    turn = h * bound * gain / size
    slope[r, 0], slope[r + 1, 1] = -turn * d2 * d2, -turn * d1 * d1
    slope[r, 1] = slope[r + 1, 0] = turn * d1 * d2
    slope[r, 2], slope[r + 1, 2] = -h * mu * d1 * d_f, -h * mu * d2 * d_f


@kernel
def next_deflection(u_next, mu, impulse, h, stiffness, memory, memory_next):
    """Fill the next anchors, z + h u_t⁺ with k_t |z| ≤ μ f_n; zero without normal force."""
    memory_next[:] = 0.0
    for i in range(mu.shape[0]):
        r, longest = 3 * i, mu[i] * max(impulse[3 * i + 2], 0.0) / (h * stiffness)
        z1, z2 = memory[i, 0] + h * u_next[r], memory[i, 1] + h * u_next[r + 1]
        size = np.sqrt(z1 * z1 + z2 * z2)
        share = longest / size if size > longest else 1.0
        memory_next[i, 0], memory_next[i, 1] = share * z1, share * z2


@kernel
def contact_forces(rows, u, gap, memory, springs, lagged_force, lagged, impulse, slope):
    """Fill h f of the contacts (3 nc,) and its derivative to u, a 3x3 block per contact, (n, 3).

    `gap` is φ at the start of the step [m], (nc,); `memory` has the anchors' deflection [m] in
    front, (nc, 4). If `lagged`, friction uses the normal forces `lagged_force` ≥ 0 [N], (nc,).
    """
    G, h, ahead = rows.delassus, springs.time_step, springs.ahead
    for i in range(rows.friction.shape[0]):
        r = 3 * i
        u1, u2, un = u[r], u[r + 1], u[r + 2]
        # normal row
        f, f_x, f_rate = normal_force(
            springs.normal_law, -(gap[i] + ahead * un), -un, springs.material, G[r + 2, r + 2]
        )
        d_f = -(ahead * f_x + f_rate)
        impulse[r + 2] = h * f
        slope[r + 2, 0] = slope[r + 2, 1] = 0.0
        slope[r + 2, 2] = h * d_f
        # normal force that friction depends on
        if lagged:
            f, d_f = lagged_force[i], 0.0
        elif f <= 0.0:
            f = d_f = 0.0
        press = NormalLoad(rows.friction[i], f, d_f)
        # tangential rows
        if springs.friction_law == ANCHORED:
            G_tt = 0.5 * (G[r, r] + G[r + 1, r + 1])
            anchored_friction(springs, press, u1, u2, G_tt, memory[i], r, impulse, slope)
        else:
            regularised_friction(springs, press, u1, u2, r, impulse, slope)


@kernel
def interval_forces(rows, u, gap, springs, impulse, slope):
    """Fill h f of the scalar rows and its derivative to u, column 0 of their rows in `slope`.

    A bounded interval is dry friction, regularised below v_s [rad/s] like that of the ground. One
    with an infinite bound is a spring and damper on the position error φ, `gap` (ns,) at the start
    of the step, f = −(k φ + d u), d = 2 ζ √(k/G_kk), k the secant stiffness, cut at the bounds:
    limits only push, bilateral rows push and pull. The damper acts from φ = −(d/k) u on, a little
    before the limit: so the force is continuous, and the implicit step always has a solution.
    """
    first, h = 3 * rows.friction.shape[0], springs.time_step
    v_s, k = springs.material[SLIP_SPEED], springs.material[SECANT_STIFFNESS]
    for s in range(rows.lower.shape[0]):
        r, lower, upper = first + s, rows.lower[s], rows.upper[s]
        slope[r, 1] = slope[r, 2] = 0.0
        if np.isfinite(lower) and np.isfinite(upper):
            value, size = np.tanh(u[r] / v_s), 0.5 * (upper - lower)
            impulse[r] = 0.5 * (upper + lower) - size * value
            slope[r, 0] = -size * (1.0 - value * value) / v_s
            continue
        damping = damper(springs.material[DAMPING_RATIO], k, rows.delassus[r, r])
        gain = k * springs.ahead + damping
        free = -h * (k * gap[s] + gain * u[r])
        impulse[r] = min(max(free, lower), upper)
        slope[r, 0] = -h * gain if lower < free < upper else 0.0


# Newton on λ = h f(u_f + G λ): the forces of springs and dampers at the end of a step.
#
#     (I − S G) Δλ = h f(u) − λ,   S = ∂(h f)/∂u
#
# S has a 3x3 block per contact and one number per scalar row. Where it is zero, in open contacts
# and in dry friction at full slip, Δλ is the right-hand side; only the other rows are unknowns. A
# step that does not decrease |λ − h f| enough is halved. Where S is symmetric, no contact slides,
# the step may be found in joint velocities (step/_tree_newton.py).
#
# Friction grows with the normal force, which makes I − S G asymmetric, and |λ − h f| may have
# minima that are no solutions: a contact about to open, whose friction another one feels. Then
# friction is computed from lagged normal forces, those of the last iterate; with them the forces
# only decrease as the velocities grow, and Newton converges. From that solution the coupled system
# is tried again, and if it fails, the normal forces are lagged once more.

MAX_HALVINGS = 12
SUFFICIENT_DECREASE = 0.1
"""Share of the predicted decrease of |λ − h f| that a step must reach [-]."""
MAX_COUPLED_ITERATIONS = 100
"""Iterations of the coupled system, after which normal forces are lagged."""
MAX_RETRY_ITERATIONS = 6  # iterations of the coupled system from each solution with lagged forces
TREE_STEPS = 4  # Newton steps without G that are tried
MIN_SCALE = 1e-12  # impulse below which a tolerance is absolute [N s]


class SpringWork(NamedTuple):
    """Scratch of `solve_implicit_springs` for n rows or more."""

    velocity: Any  # u [m/s], shape (n,)
    force: Any  # h f(u) [N s], shape (n,)
    trial: Any  # impulse that is tried [N s], shape (n,)
    best: Any  # impulse with the smallest |λ − h f| so far [N s], shape (n,)
    step: Any  # Δλ [N s], shape (n,)
    line: Any  # one row of a matrix, or a product with G, shape (n,)
    right: Any  # right side and answer of the system, shape (n,)
    slope: Any  # S, a 3x3 block per contact, column 0 in a scalar row, shape (n, 3)
    matrix: Any  # matrix of the system, shape (n, n)
    row: Any  # row of every unknown, integers, shape (n,)
    lagged_force: Any  # lagged normal forces [N] of friction, shape (nc,)
    stiffness: Any  # −S, shape (n, 3)
    tree: Any  # a `TreeSolver`: Δx of `step` into `right`, with `line` and `trial` as scratch


@kernel
def slope_times(slope, u, nc, r):
    """Return row r of S u."""
    if r >= 3 * nc:
        return slope[r, 0] * u[r]
    b = r - r % 3
    return slope[r, 0] * u[b] + slope[r, 1] * u[b + 1] + slope[r, 2] * u[b + 2]


@kernel
def newton_step(G, nc, work):
    """Turn `step` from h f − λ into Δλ; return False where the system is singular."""
    slope, step, right, row, line = work.slope, work.step, work.right, work.row, work.line
    m, n = 0, G.shape[0]
    # the rows in which S is not zero, those of a contact together
    for r in range(0, 3 * nc, 3):
        stiff = False
        for k in range(r, r + 3):
            stiff = stiff or slope[k, 0] != 0.0 or slope[k, 1] != 0.0 or slope[k, 2] != 0.0
        if stiff:
            row[m], row[m + 1], row[m + 2] = r, r + 1, r + 2
            m += 3
    for r in range(3 * nc, slope.shape[0]):
        if slope[r, 0] != 0.0:
            row[m] = r
            m += 1
    if m > work.tree.dofs > 0 and fill_stiffness(G, nc, work):
        call_with_arrays(work.tree.address, work.tree.data)
        if line[0] == line[0]:
            for r in range(n):
                step[r] = right[r]
            return True
    # right-hand side: the rows with S = 0 are known
    for k in range(m):
        right[k], step[row[k]] = step[row[k]], 0.0
    if m < n:
        fill_product(G, step, line)
        for k in range(m):
            right[k] += slope_times(slope, line, nc, row[k])
    # I − S G of the unknowns
    A = work.matrix
    for k in range(m):
        r = row[k]
        if r >= 3 * nc:
            for c in range(n):
                line[c] = slope[r, 0] * G[r, c]
        else:
            b, s1, s2, s3 = r - r % 3, slope[r, 0], slope[r, 1], slope[r, 2]
            for c in range(n):
                line[c] = s1 * G[b, c] + s2 * G[b + 1, c] + s3 * G[b + 2, c]
        for j in range(m):
            A[k, j] = -line[row[j]]
        A[k, k] += 1.0
    if not eliminate(A, right, m):
        return False
    for k in range(m):
        step[row[k]] = right[k]
    return True


@kernel
def fill_stiffness(G, nc, work):
    """Fill −S; return whether it is symmetric, and as soft as `TreeSolver` needs it."""
    slope, H, soft = work.slope, work.stiffness, G.shape[0] >= 3
    for r in range(G.shape[0]):
        for k in range(3):
            H[r, k] = -slope[r, k]
            soft = soft and -slope[r, k] * G[r, r] <= STIFFEST
    for r in range(0, 3 * nc, 3):
        soft = soft and H[r, 1] == H[r + 1, 0] and H[r, 2] == 0.0 and H[r + 1, 2] == 0.0
    return soft


@kernel
def fill_forces(rows, springs, u, gaps, memory, work, lagged):
    """Fill h f(u) and S, `lagged`: friction from lagged normal forces; `gaps` of all rows."""
    force, slope = work.force, work.slope
    contact_forces(rows, u, gaps[0], memory, springs, work.lagged_force, lagged, force, slope)
    interval_forces(rows, u, gaps[1], springs, force, slope)


@kernel
def descend(rows, springs, gaps, memory, work, lagged, limits):
    """Solve λ = h f from `trial` on; return (status code, iterations, residual).

    λ is left in `force` where converged, else the iterate with the smallest residual in `best`.
    """
    G, nc, (tolerance, max_iterations) = rows.delassus, rows.friction.shape[0], limits
    u, force, trial, x, step = work.velocity, work.force, work.trial, work.best, work.step
    n, alpha, best = rows.g.shape[0], 1.0, np.inf
    for count in range(max_iterations + 1):
        # residual λ − h f(u_f + G λ): acceptance
        fill_velocity(rows, trial, u)
        fill_forces(rows, springs, u, gaps, memory, work, lagged)
        error, largest = distance(trial, force, n)
        if not np.isfinite(error):
            return NONFINITE, count, error
        if error <= tolerance * max(largest, MIN_SCALE):
            return CONVERGED, count, error
        # insufficient decrease: halve the step
        if error > (1.0 - SUFFICIENT_DECREASE * alpha) * best and alpha > 0.5**MAX_HALVINGS:
            alpha *= 0.5
            for r in range(n):
                trial[r] = x[r] + alpha * step[r]
            continue
        # Newton step
        best, alpha = error, 1.0
        for r in range(n):
            x[r], step[r] = trial[r], force[r] - trial[r]
        if not newton_step(G, nc, work):
            break
        for r in range(n):
            trial[r] = x[r] + step[r]
    return MAX_ITERATIONS, max_iterations, best


@kernel
def solve_springs_without_delassus(rows, springs, start, gaps, memory, impulse, work, limits):
    """Solve λ = h f(u) along the tree, from u = `start`; return (steps, |λ − h f|, if solved).

    The iterates are those of `solve_implicit_springs` while no step has to be halved, but need the
    diagonal of G alone. Where they solve λ = h f(u), `velocity` of the scratch is u.
    """
    u, force, step, n, last = work.velocity, work.force, work.step, rows.g.shape[0], np.inf
    nc = rows.friction.shape[0]
    assign(u[:n], start)
    fill_forces(rows, springs, u, gaps, memory, work, False)
    for count in range(min(TREE_STEPS, limits[1]) + 1):
        if not fill_stiffness(rows.delassus, nc, work):
            break
        # (I − S G) λ = h f(u) + S (u_f − u), then u = u_f + G λ
        for r in range(n):
            u[r] = rows.g[r] - u[r]
        for r in range(n):
            step[r] = force[r] + slope_times(work.slope, u, nc, r)
        call_with_arrays(work.tree.address, work.tree.data)
        if work.line[0] != work.line[0]:
            break
        for r in range(n):
            u[r] = rows.g[r] + work.line[r]
        # residual λ − h f(u): acceptance
        fill_forces(rows, springs, u, gaps, memory, work, False)
        error, largest = distance(work.right, force, n)
        if error <= limits[0] * max(largest, MIN_SCALE):
            assign(impulse, force)
            return count, error, True
        if not error <= (1.0 - SUFFICIENT_DECREASE) * last:
            break
        last = error
    return 0, np.inf, False


@kernel
def solve_implicit_springs(rows, springs, start, gaps, memory, impulse, work, limits):
    """Fill λ = h f(u_f + G λ); return (status code, iterations, residual).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s].
        springs: the laws.
        start: u before the step [m/s]; selects among several solutions.
        gaps: φ of the contacts (nc,) [m] and of the scalar rows (ns,) at the start of the step.
        memory: deflection of the anchors [m], shape (nc, 4).
        impulse: out, λ [N s], shape (n,).
        work: scratch for n rows or more, `slope` and `matrix` for n rows.
        limits: tolerance on |λ − h f| relative to the largest impulse [-], and most iterations.
    """
    G, g, nc, (tolerance, max_iterations) = rows.delassus, rows.g, rows.friction.shape[0], limits
    u, force, trial, x, step = work.velocity, work.force, work.trial, work.best, work.step
    n, count, lagged, allowed = g.shape[0], 0, False, MAX_COUPLED_ITERATIONS
    fill_forces(rows, springs, start, gaps, memory, work, False)
    for r in range(n):  # first iterate: forces linearised at the velocity before the step
        u[r] = g[r] - start[r]
    for r in range(n):
        step[r] = force[r] + slope_times(work.slope, u, nc, r)
    if not newton_step(G, nc, work):
        return NONFINITE, 0, np.inf
    for r in range(n):
        trial[r] = x[r] = step[r]
    while True:
        # coupled and lagged systems in turn, each from the solution of the other
        end = tolerance, min(max_iterations - count, max_iterations if lagged else allowed)
        status, more, error = descend(rows, springs, gaps, memory, work, lagged, end)
        count += more
        if status == NONFINITE:
            impulse[:] = 0.0
            return NONFINITE, count, error
        if status == CONVERGED and not lagged:
            assign(impulse, force)
            direct = allowed == MAX_COUPLED_ITERATIONS
            return (CONVERGED if direct else CONVERGED_BY_FALLBACK), count, error
        # next start
        assign(trial, force if status == CONVERGED else x)
        if count >= max_iterations and not lagged:
            assign(impulse, x)
            return MAX_ITERATIONS, count, error
        if lagged or allowed == MAX_COUPLED_ITERATIONS:
            for i in range(nc):
                work.lagged_force[i] = max(trial[3 * i + 2], 0.0) / springs.time_step
        lagged, allowed = not lagged, MAX_RETRY_ITERATIONS
