"""Contact with polyhedral cones of k sides, and with boxes, as complementarity problems.

The equations are those of contact_models/_lcp.py (theory 2.9). An interval row is p ≥ 0 ⊥ w + ν ≥
0, ν ≥ 0 ⊥ upper − lower − p ≥ 0 with λ = lower + p; from its only finite bound inwards; or,
without one, p − ν. Interval rows are first tried in the modes of the guess, at a bound or at rest;
if that does not converge, they enter Lemke's method.

Where nothing slides and λ_t lies inside the polygon, the circular cone has the same solutions:
they are tried first, in the modes of the guess (_cone_solver.py). Of many equivalent force
distributions this keeps the one next to the guess; only pivoting leads to a vertex.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._cone_problem import (
    CONVERGED,
    MAX_ITERATIONS,
    NONFINITE,
    RAY_TERMINATION,
    Rows,
    fill_rho,
    fill_velocity,
    impulse_scale,
    impulse_scale_at,
    natural_map,
    row_velocity,
    scalar_rows_map,
)
from contact_sim.solvers._cone_solver import solve_active_set, solve_cones
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel

TOLERANCE, ACCEPTED = 1e-10, 1e-9
"""On the circular cone, and on the pyramid after pivoting, relative to the largest impulse."""
TINY = 1e-300  # keeps a division by an impulse of zero finite [N s]
CONE_LIMITS = 0, 50, 1000  # `limits` of `solve_cones`
MODE_ROUNDS = 4  # attempts at the modes of the scalar rows before they enter Lemke's method
REST_TOLERANCE = 1e-12  # share of the free velocity below which a scalar row counts as at rest
SINGULAR_PIVOT = 1e-9  # share of its diagonal below which the pivot of a scalar row counts as zero


# Polyhedral cones.


@kernel
def solve_pyramids(rows, impulse, work, sides, max_pivots):
    """Solve in the modes of the guess or by Lemke's method; return (status code, count, residual).

    The count is that of releases of rows, or of pivots, `max_pivots` at most in one attempt; the
    impulse is guess and answer [N s], `work` scratch of the circular cone, see `cone_work`.
    """
    if not np.isfinite(rows.g).all():
        impulse[:] = 0.0
        return NONFINITE, 0, np.inf
    # circular cone in the modes of the guess, if there is one
    if impulse.any():
        answer = impulse.copy()
        releases, _, converged = solve_active_set(rows, answer, work, TOLERANCE, 0.0)
        residual = pyramid_map(rows, answer, sides) if converged else np.inf
        if converged and residual <= ACCEPTED * impulse_scale_at(rows, answer, work.rho):
            assign(impulse, answer)
            return CONVERGED, releases, residual
    # scalar rows eliminated, contacts pivoted
    total = 0
    if rows.lower.shape[0] > 0:
        total, residual = pivot_in_modes(rows, impulse, sides, max_pivots)
        if residual < np.inf:
            return CONVERGED, total, residual
    # everything pivoted; on a ray the circular cone gives an impulse to go on with
    solved, pivots = pivot_pyramids(rows, impulse, sides, max_pivots)
    if solved:
        return CONVERGED, total + pivots, pyramid_map(rows, impulse, sides)
    impulse[:] = 0.0
    _, sweeps, residual = solve_cones(rows, impulse, work, TOLERANCE, CONE_LIMITS, 0.0)
    return RAY_TERMINATION, total + pivots + sweeps, residual


@kernel
def pivot_in_modes(rows, impulse, sides, max_pivots):
    """Solve with interval rows at a bound or at rest; return (pivots, residual), ∞ on failure."""
    G, g, mu, lower, upper = rows
    nc, n, total = mu.shape[0], g.shape[0], 0
    # mode of each scalar row: −1 at its lower bound, 1 at its upper, 0 between
    mode = np.zeros(n - 3 * nc, dtype=np.int64)
    for k in range(n - 3 * nc):
        if impulse[3 * nc + k] <= lower[k]:
            mode[k] = -1
        elif impulse[3 * nc + k] >= upper[k]:
            mode[k] = 1
    for _ in range(MODE_ROUNDS):
        W, reduced = G.copy(), g.copy()
        if not eliminate_scalar_rows(rows, mode, W, reduced):
            break
        contacts = Rows(W[: 3 * nc, : 3 * nc].copy(), reduced[: 3 * nc], mu, lower[:0], upper[:0])
        solved, pivots = pivot_pyramids(contacts, impulse[: 3 * nc], sides, max_pivots)
        total += pivots
        if not solved:
            break
        if restore_scalar_rows(rows, mode, W, reduced, impulse) >= 0.0:
            residual = pyramid_map(rows, impulse, sides)
            if residual <= ACCEPTED * impulse_scale(rows, impulse):
                return total, residual
            break
    return total, np.inf


@kernel
def eliminate_scalar_rows(rows, mode, W, reduced):
    """Eliminate the scalar rows from W λ + reduced; return False where rows at rest are dependent.

    They are known at a bound, and w = 0 in between.
    """
    G, _, mu, lower, upper = rows
    n, nc = G.shape[0], mu.shape[0]
    for k in range(n - 3 * nc):
        if mode[k] != 0:
            reduced += G[:, 3 * nc + k] * (lower[k] if mode[k] < 0 else upper[k])
    for k in range(n - 3 * nc - 1, -1, -1):
        r = 3 * nc + k
        if mode[k] != 0:
            continue
        if not W[r, r] > SINGULAR_PIVOT * G[r, r]:
            return False
        for i in range(r):
            if i < 3 * nc or mode[i - 3 * nc] == 0:
                factor = W[i, r] / W[r, r]
                for j in range(r):
                    W[i, j] -= factor * W[r, j]
                reduced[i] -= factor * reduced[r]
    return True


@kernel
def restore_scalar_rows(rows, mode, W, reduced, impulse):
    """Fill the scalar impulses; return their largest velocity error, −1 where modes change."""
    G, g, mu, lower, upper = rows
    n, nc, error, kept = G.shape[0], mu.shape[0], 0.0, True
    slack = REST_TOLERANCE * np.abs(g).max()
    for k in range(n - 3 * nc):
        r = 3 * nc + k
        if mode[k] != 0:
            impulse[r] = lower[k] if mode[k] < 0 else upper[k]
            continue
        total = reduced[r]
        for j in range(r):
            if j < 3 * nc or mode[j - 3 * nc] == 0:
                total += W[r, j] * impulse[j]
        impulse[r] = -total / W[r, r]
        if not lower[k] <= impulse[r] <= upper[k]:
            mode[k] = -1 if impulse[r] < lower[k] else 1
            kept = False
    if not kept:
        return -1.0
    for k in range(n - 3 * nc):
        # a row at a bound must not be pulled off it; a row in between must be at rest
        w = row_velocity(G, g, impulse, 3 * nc + k)
        if mode[k] * w > slack:
            mode[k], kept = 0, False
        elif mode[k] == 0:
            error = max(error, abs(w))
    return error if kept else -1.0


@kernel
def pivot_pyramids(rows, impulse, sides, max_pivots):
    """Fill `impulse` by Lemke's method; return (whether it found a solution, pivots)."""
    nc, ns, total = rows.friction.shape[0], rows.lower.shape[0], 0
    closing = 0
    for i in range(nc):
        closing += rows.g[3 * i + 2] < 0.0
    if ns == 0 and closing == 0:  # no contact closes by itself: zero is the exact solution
        impulse[:] = 0.0
        return True, 0
    size = nc * (2 + sides) + 2 * ns
    M, q, z = np.empty((size, size)), np.empty(size), np.empty(size)
    E, offset = fill_problem(rows, sides, M, q)
    forces, scale = nc * (1 + sides), np.ones(size)
    for r in range(size):
        if M[r, r] > 0.0:
            scale[r] = 1.0 / np.sqrt(M[r, r])
    # unknowns scaled to a unit diagonal: fewer pivots and less rounding; then, without scaling,
    # along another path
    for attempt in range(2):
        if attempt == 0:
            status, pivots = lemke(scale.reshape(size, 1) * M * scale, scale * q, z, max_pivots)
            z *= scale
        else:
            status, pivots = lemke(M, q, z, max_pivots)
        total += pivots
        if status == SOLVED:
            unknowns = np.concatenate((z[:forces], z[forces + nc :]))
            assign(impulse, np.dot(E, unknowns) + offset)
            residual = pyramid_map(rows, impulse, sides)
            if residual <= ACCEPTED * impulse_scale(rows, impulse):
                return True, total
    return False, total


@kernel
def fill_problem(rows, k, M, q):
    """Fill the complementarity problem; unknowns λ_n (nc), β (k nc), s (nc), p (ns), ν (ns)."""
    G, g, mu, lower, upper = rows
    nc, n = mu.shape[0], g.shape[0]
    ns = n - 3 * nc
    # λ = E z + offset, z the unknowns without s
    E, offset = np.zeros((n, nc * (1 + k) + 2 * ns)), np.zeros(n)
    for i in range(nc):
        E[3 * i + 2, i] = 1.0
        for j in range(k):
            angle = 2.0 * np.pi * j / k
            E[3 * i, nc + k * i + j] = np.cos(angle)
            E[3 * i + 1, nc + k * i + j] = np.sin(angle)
    for r in range(ns):  # from a finite bound inwards, or without one up (p) and down (ν)
        row, up = 3 * nc + r, nc * (1 + k) + r
        E[row, up] = 1.0
        if np.isfinite(lower[r]):
            offset[row] = lower[r]
        elif np.isfinite(upper[r]):
            offset[row], E[row, up] = upper[r], -1.0
        else:
            E[row, up + ns] = -1.0
    # Eᵀ G E and Eᵀ (g + G offset): reduced matrix and velocities
    Et = E.T.copy()
    inner = np.dot(Et, np.dot(G, E))
    speed = np.dot(Et, g + np.dot(G, offset))
    forces, first_p, first_nu = nc * (1 + k), nc * (2 + k), nc * (2 + k) + ns
    # M and q, with the rows and columns of s in between
    M[:] = 0.0
    for a in range(forces + 2 * ns):
        row = a if a < forces else a + nc
        q[row] = speed[a]
        for b in range(forces + 2 * ns):
            M[row, b if b < forces else b + nc] = inner[a, b]
    # friction bound: s ⊥ μ λ_n − Σ β
    for i in range(nc):
        slip = forces + i
        q[slip] = 0.0
        M[slip, i] = mu[i]
        for j in range(k):
            M[nc + k * i + j, slip] = 1.0
            M[slip, nc + k * i + j] = -1.0
    # upper bound of an interval: ν ⊥ upper − lower − p
    for r in range(ns):
        if np.isfinite(lower[r]) and np.isfinite(upper[r]):
            q[first_nu + r] = upper[r] - lower[r]
            M[first_p + r, first_nu + r] = 1.0
            M[first_nu + r, first_p + r] = -1.0
        elif np.isfinite(lower[r]) or np.isfinite(upper[r]):
            q[first_nu + r] = 1.0  # ν = 0: one bound only
    return E, offset


@kernel
def pyramid_map(rows, impulse, sides):
    """Return how far the impulses are from the law [N s], NaN if they are not finite.

    The largest of: the change of λ_n by a step of 1/λ_max(G_ii); how far λ_t is outside the
    polygon; the power that friction of the pyramid would dissipate more, as an impulse; the scalar
    rows, see `scalar_rows_map`.
    """
    mu, n_rows = rows.friction, rows.g.shape[0]
    apothem, turn = np.cos(np.pi / sides), np.sin(np.pi / sides)
    nc, worst, w, steps = mu.shape[0], 0.0, np.empty(n_rows), np.empty(n_rows)
    fill_velocity(rows, impulse, w)
    fill_rho(rows, steps)
    scale = impulse_scale_at(rows, impulse, steps)
    for i in range(nc):
        r = 3 * i
        t1, t2, n = impulse[r], impulse[r + 1], impulse[r + 2]
        rho, w1, w2 = steps[r], w[r], w[r + 1]
        change = n - max(n - rho * w[r + 2], 0.0)
        # largest λ_t and −w_t along the sides and corners of the polygon
        reach, against, c, s = 0.0, 0.0, 1.0, 0.0
        for _ in range(sides):  # (c, s): a corner, then half a side on the middle of a side
            against = max(against, -w1 * c - w2 * s)
            c, s = apothem * c - turn * s, turn * c + apothem * s
            reach = max(reach, t1 * c + t2 * s)
            c, s = apothem * c - turn * s, turn * c + apothem * s
        lacks = (mu[i] * n * against + t1 * w1 + t2 * w2) * rho / max(scale, TINY)
        for value in (abs(change), reach - apothem * mu[i] * n, lacks):
            if value > worst or value != value:
                worst = value
    rest = scalar_rows_map(rows, impulse, w, steps)
    return rest if rest > worst or rest != rest else worst


# Linear complementarity by complementary pivoting.
#
#     z ≥ 0,   w = M z + q ≥ 0,   z·w = 0
#
# Lemke's method with covering vector 1 and a lexicographic ratio test, so that it cannot cycle.
# The right-hand side is scaled to 1 and pivots are accepted relative to their column: otherwise
# ties of redundant contacts end in false rays.
#
# [Murty 1988] Linear Complementarity, Linear and Nonlinear Programming, chapter 2.

SOLVED, RAY, MAX_PIVOTS = 0, 1, 2
"""How Lemke's method ends: with a solution, on a ray, out of pivots."""
PIVOT_TOLERANCE, TIE_TOLERANCE = 1e-9, 1e-12
"""Smallest pivot over its column, and difference of ratios that counts as a tie [-]."""


@kernel
def lemke(M, q, z, max_pivots):
    """Solve w = M z + q, z ≥ 0, w ≥ 0, z·w = 0 for z (n,); return (status, pivots).

    The tableau stores the columns of the non-basic variables only. Variables are numbered w (0 to
    n − 1), z (n to 2n − 1) and the artificial z0 (2n).
    """
    n = q.shape[0]
    z[:] = 0.0
    scale = np.abs(q).max() if n else 0.0
    if n == 0 or q.min() >= 0.0:
        return SOLVED, 0
    T = np.empty((n, n + 2))  # columns: z (n), z0, right-hand side;  w − M z − z0 = q
    for i in range(n):
        for j in range(n):
            T[i, j] = -M[i, j]
        T[i, n] = -1.0
        T[i, n + 1] = q[i] / scale
    basic, free = np.arange(n), np.arange(n, 2 * n + 1)
    place = np.empty(2 * n + 1, dtype=np.int64)  # column of a variable; −1 − row if it is basic
    for i in range(n):
        place[i], place[n + i] = -1 - i, i
    place[2 * n] = n
    # z0 enters for the most negative q
    row = 0
    for i in range(1, n):  # of ties the last: it keeps the rows lexicographically positive
        if T[i, n + 1] <= T[row, n + 1]:
            row = i
    column = n
    for count in range(max_pivots + 1):
        leaving, entering = basic[row], free[column]
        pivot(T, row, column)
        basic[row], free[column] = entering, leaving
        place[entering], place[leaving] = -1 - row, column
        # z0 has left: solved
        if leaving == 2 * n:
            for i in range(n):
                if n <= basic[i] < 2 * n:
                    z[basic[i] - n] = max(T[i, n + 1] * scale, 0.0)
            return SOLVED, count
        # the complement of the variable that left enters; ratio test
        column = place[leaving + n if leaving < n else leaving - n]
        row = lexicographic_row(T, place, column)
        if row < 0:
            return RAY, count
        for i in range(n):  # among ties let z0 leave
            if basic[i] == 2 * n and T[i, column] > PIVOT_TOLERANCE:
                ratio = T[i, n + 1] / T[i, column]
                if ratio <= T[row, n + 1] / T[row, column] + TIE_TOLERANCE:
                    row = i
    return MAX_PIVOTS, max_pivots


@kernel
def pivot(T, row, column):
    """Exchange the basic variable of `row` with the non-basic one of `column`."""
    inverse = 1.0 / T[row, column]
    pivot_row = T[row] * inverse
    pivot_row[column] = inverse
    for i in range(T.shape[0]):
        current = T[i]
        factor = current[column]
        if i != row and factor != 0.0:
            current[column] = 0.0
            for j in range(pivot_row.shape[0]):
                current[j] -= factor * pivot_row[j]
    T[row] = pivot_row


@kernel
def basis_column_entry(T, place, i, k):
    """Return the entry of row `i` in the column of w_k: a unit vector while w_k is basic."""
    if place[k] >= 0:
        return T[i, place[k]]
    return 1.0 if place[k] == -1 - i else 0.0


@kernel
def lexicographic_row(T, place, column):
    """Return the row that leaves when `column` enters, −1 if none does."""
    # of the rows with the smallest ratio, the one whose row of the basis inverse, divided by the
    # pivot, is lexicographically smallest
    n = T.shape[0]
    last = T.shape[1] - 1
    largest = 0.0
    for i in range(n):
        largest = max(largest, T[i, column])
    threshold = PIVOT_TOLERANCE * largest
    best, best_ratio, best_inverse = -1, 0.0, 0.0
    for i in range(n):
        value = T[i, column]
        if value <= threshold or value <= 0.0:
            continue
        inverse = 1.0 / value
        ratio = T[i, last] * inverse
        difference = ratio - best_ratio
        if best >= 0 and abs(difference) <= TIE_TOLERANCE:
            k = 0
            while abs(difference) <= TIE_TOLERANCE and k < n:
                difference = basis_column_entry(T, place, i, k) * inverse
                difference -= basis_column_entry(T, place, best, k) * best_inverse
                k += 1
        if best < 0 or difference < 0.0:
            best, best_ratio, best_inverse = i, ratio, inverse
    return best


# Box friction: boxes whose bounds follow the normal impulses (theory 2.10).


@kernel
def solve_boxes(rows, impulse, work, max_rounds):
    """Alternate between a box problem and its friction bounds μ λ_n; as `solve_pyramids`."""
    # all rows of the box problem are intervals; it is convex, so that κ = 1 solves it
    n, nc, mu = rows.g.shape[0], rows.friction.shape[0], rows.friction
    low, high = np.empty(n), np.empty(n)
    assign(low[3 * nc :], rows.lower)
    assign(high[3 * nc :], rows.upper)
    boxes = Rows(rows.delassus, rows.g, np.empty(0), low, high)
    change, total = np.inf, 0
    for count in range(1, max_rounds + 1):
        # first without friction bounds, then with those of the last normal impulses
        fill_boxes(mu, impulse, count == 1, low, high)
        before = impulse.copy()
        code, iterations, residual = solve_cones(boxes, impulse, work, TOLERANCE, CONE_LIMITS, 1.0)
        total += iterations
        if code == NONFINITE:
            return code, total, residual
        change = np.abs(impulse - before).max()
        # accepted where the impulses solve the problem with the bounds that follow from them;
        # redundant ones may go on moving in it
        if count > 1:
            fill_boxes(mu, impulse, False, low, high)
            residual = natural_map(boxes, impulse, 1.0)
            if residual <= ACCEPTED * impulse_scale(rows, impulse):
                return CONVERGED, total, residual
            if change == 0.0:
                break
    return MAX_ITERATIONS, total, change


@kernel
def fill_boxes(mu, impulse, unbounded, low, high):
    """Fill the bounds ±μ λ_n of the tangential rows, ±∞ where `unbounded`, and [0, ∞)."""
    for i in range(mu.shape[0]):
        r = 3 * i
        bound = np.inf if unbounded else mu[i] * max(impulse[r + 2], 0.0)
        low[r] = low[r + 1] = -bound
        high[r] = high[r + 1] = bound
        low[r + 2], high[r + 2] = 0.0, np.inf
