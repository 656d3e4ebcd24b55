"""Small strictly convex quadratic programs, exact to rounding, by a dual active-set method.

    minimise ½ xᵀ H x + gᵀ x   such that   lower ≤ C x ≤ upper

With H = L Lᵀ, x = L⁻ᵀ y and A = C L⁻ᵀ this is the point nearest to −L⁻¹ g in a polyhedron,

    minimise ½ |y + L⁻¹ g|²   such that   lower ≤ A y ≤ upper

The method starts at −L⁻¹ g and adds the most violated limit, one after the other, each time
keeping the active ones and dropping those whose multiplier would become negative. Few active
limits are few steps. There is no warm start.

[Goldfarb and Idnani 1983] A numerically stable dual method for solving strictly convex quadratic
programs. Mathematical Programming 27, 1-33.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._dense import cholesky, eliminate_right_sides
from contact_sim.solvers._jit import kernel

MAX_EXCHANGES = 200
DEPENDENCE_TOLERANCE = 1e-10
"""Part of a normal orthogonal to the active ones, below which it counts as dependent [-]."""


@kernel
def solve_qp(H, g, C, lower, upper, tolerance):
    """Return the minimum of ½ xᵀ H x + gᵀ x with lower ≤ C x ≤ upper, and whether it was found.

    Nothing is found where H is not positive definite or not finite.

    Args:
        H: symmetric and positive definite, shape (n, n).
        g: shape (n,).
        C: shape (m, n).
        lower: shape (m,).
        upper: shape (m,).
        tolerance: violation of a limit that is allowed, in the units of the limits.
    """
    n = g.shape[0]
    factor, inverse, y = np.zeros((n, n)), np.eye(n), np.empty(n)
    # y = L⁻¹ x turns the problem into that of the nearest point
    cholesky(H, 0.0, factor)
    finite = eliminate_right_sides(factor, inverse)
    for i in range(n):
        y[i] = -dot(inverse[i], g)
        finite &= np.isfinite(y[i])
    scaling = inverse.T
    found = finite and nearest_point(C @ scaling, lower, upper, tolerance, y)
    return scaling @ y, found


@kernel
def nearest_point(A, lower, upper, tolerance, y):
    """Move `y` to the nearest point with lower ≤ A y ≤ upper; return whether there is one.

    Shapes: A (m, n), limits (m,), y (n,); `tolerance` as in `solve_qp`.
    """
    n = y.shape[0]
    Q, R = np.empty((n, n)), np.empty((n, n))
    row, side, pull = np.empty(n, np.int64), np.empty(n), np.empty(n)
    rate, way = np.empty(n), np.empty(n)
    k, new_pull = 0, 0.0  # active limits; multiplier of the one that is added
    new, new_side = most_violated_limit(A, lower, upper, y, tolerance)
    for _ in range(MAX_EXCHANGES):
        if new < 0:
            return True
        # direction: the part of the new normal orthogonal to the active ones
        length = split_normal(Q, k, A[new], new_side, rate, way)
        solve_upper(R, k, rate)
        # dual step length: until an active multiplier is zero
        step, place = first_to_deactivate(pull, rate, k)
        free = length > DEPENDENCE_TOLERANCE * np.sqrt(dot(A[new], A[new]))
        if not free and place < 0:
            return False  # infeasible: the new limit contradicts the active ones
        whole = False
        if free:
            # primal step length: until the new limit is met
            bound = upper[new] if new_side > 0.0 else lower[new]
            to_limit = new_side * (dot(A[new], y) - bound) / length**2
            whole = to_limit <= step
            step = min(step, to_limit)
            for j in range(n):
                y[j] -= step * way[j]
        # update the multipliers
        for i in range(k):
            pull[i] -= step * rate[i]
        new_pull += step
        if whole:
            # full step: the limit becomes active
            row[k], side[k], pull[k] = new, new_side, new_pull
            orthogonalise(A, row, side, k, k + 1, Q, R)
            k, new_pull = k + 1, 0.0
            new, new_side = most_violated_limit(A, lower, upper, y, tolerance)
        else:
            # partial step: drop the limit whose multiplier is zero
            k -= 1
            for i in range(place, k):
                row[i], side[i], pull[i] = row[i + 1], side[i + 1], pull[i + 1]
            orthogonalise(A, row, side, place, k, Q, R)
    return False


@kernel
def most_violated_limit(A, lower, upper, y, tolerance):
    """Return the row of the most violated limit, −1 if none, and its side, +1 for `upper`."""
    row, side, worst = -1, 0.0, tolerance
    for i in range(A.shape[0]):
        reached = dot(A[i], y)
        if reached - upper[i] > worst:
            row, side, worst = i, 1.0, reached - upper[i]
        elif lower[i] - reached > worst:
            row, side, worst = i, -1.0, lower[i] - reached
    return row, side


@kernel
def split_normal(Q, k, normal, side, share, rest):
    """Write side normal = Q[:k]ᵀ share + rest with rest ⊥ Q[:k]; return |rest|.

    Twice, because once loses digits where `rest` is short.
    """
    n = normal.shape[0]
    for j in range(n):
        share[j], rest[j] = 0.0, side * normal[j]
    for _ in range(2):
        for i in range(k):
            part = dot(Q[i], rest)
            share[i] += part
            for j in range(n):
                rest[j] -= part * Q[i, j]
    return np.sqrt(dot(rest, rest))


@kernel
def orthogonalise(A, row, side, first, k, Q, R):
    """Fill rows `first` to k of Q and columns of R: the active normals side A[row] are Qᵀ R."""
    share = np.empty(Q.shape[0])
    for i in range(first, k):
        length = split_normal(Q, i, A[row[i]], side[i], share, Q[i])
        for j in range(i):
            R[j, i] = share[j]
        R[i, i] = length
        for j in range(Q.shape[1]):
            Q[i, j] /= length


@kernel
def solve_upper(R, k, x):
    """Overwrite x[:k] with the solution of R[:k, :k] z = x[:k], R upper triangular."""
    for i in range(k - 1, -1, -1):
        for j in range(i + 1, k):
            x[i] -= R[i, j] * x[j]
        x[i] /= R[i, i]


@kernel
def first_to_deactivate(pull, rate, k):
    """Return the step at which a multiplier reaches zero, and its place; inf, −1 if none does."""
    step, place = np.inf, -1
    for i in range(k):
        if rate[i] > 0.0 and pull[i] < step * rate[i]:
            step, place = pull[i] / rate[i], i
    return step, place


@kernel
def dot(a, b):
    """Return a·b."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total
