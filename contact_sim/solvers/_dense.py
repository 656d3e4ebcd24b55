"""Small dense linear systems and quadratic programs, solved in place.

    eliminate, eliminate_right_sides   Gaussian elimination with partial pivoting
    solve_symmetric, solve_eliminated  L D Lᵀ without pivots
    eliminate_symmetric                the same for some of the unknowns
    cholesky, cholesky_solve           L Lᵀ
    least_norm_factored                pivoted Cholesky of a singular matrix
    solve_qp                           ½ xᵀ H x + gᵀ x within limits

Where a number of rows is given, arrays may be larger. `numpy.linalg` would allocate, and compiles
slowly.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._jit import kernel


@kernel
def assign(target, source):
    """Fill `target` with `source`; compiles seconds faster than `target[:] = source`."""
    for r in range(target.shape[0]):
        target[r] = source[r]


@kernel
def fill_product(G, x, y):
    """Fill y = G x for a symmetric G (n, n), four columns at a time; x and y may be longer."""
    n = G.shape[0]
    for r in range(n):
        y[r] = 0.0
    c = 0
    while c + 3 < n:
        x0, x1, x2, x3 = x[c], x[c + 1], x[c + 2], x[c + 3]
        for r in range(n):
            y[r] += G[c, r] * x0 + G[c + 1, r] * x1 + G[c + 2, r] * x2 + G[c + 3, r] * x3
        c += 4
    while c < n:
        for r in range(n):
            y[r] += G[c, r] * x[c]
        c += 1


@kernel
def largest_size(x, n):
    """Return the largest |x_r| of the first n, NaN if one of them is NaN."""
    largest = 0.0
    for r in range(n):
        size = abs(x[r])
        if not size <= largest:  # NaN stays: no comparison with it is true
            largest = size
            if size != size:
                break
    return largest


@kernel
def distance(x, y, n):
    """Return |x − y| of the first n numbers, and the largest size of any."""
    total = largest = 0.0
    for r in range(n):
        total += (x[r] - y[r]) ** 2
        largest = max(largest, max(abs(x[r]), abs(y[r])))
    return np.sqrt(total), largest


@kernel
def bring_pivot(A, b, k, first, m):
    """Swap the largest entry of column k into row k, from column `first` on; False if zero."""
    pivot = k
    for i in range(k + 1, m):
        if abs(A[i, k]) > abs(A[pivot, k]):
            pivot = i
    if pivot != k:
        for j in range(first, m):
            A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        b[k], b[pivot] = b[pivot], b[k]
    return A[k, k] != 0.0


@kernel
def eliminate(A, b, m):
    """Overwrite b with A⁻¹ b by Gaussian elimination with row pivots; return False if singular."""
    # two pivots and two rows at a time; A is overwritten
    for k in range(0, m - 1, 2):
        # first pivot: eliminate column k from column k + 1 only
        if not bring_pivot(A, b, k, k, m):
            return False
        inverse0, u = 1.0 / A[k, k], A[k, k + 1]
        for i in range(k + 1, m):
            A[i, k] *= inverse0
            A[i, k + 1] -= A[i, k] * u
        # second pivot: complete its row and right-hand side
        if not bring_pivot(A, b, k + 1, k, m):
            return False
        inverse1, share = 1.0 / A[k + 1, k + 1], A[k + 1, k]
        for j in range(k + 2, m):
            A[k + 1, j] -= share * A[k, j]
        b[k + 1] -= share * b[k]
        # both pivots out of the rows below, two rows at a time
        b0, b1 = b[k], b[k + 1]
        for i in range(k + 2, m - 1, 2):
            l0, l1 = A[i, k], A[i, k + 1] * inverse1
            h0, h1 = A[i + 1, k], A[i + 1, k + 1] * inverse1
            b[i] -= l0 * b0 + l1 * b1
            b[i + 1] -= h0 * b0 + h1 * b1
            for j in range(k + 2, m):
                u0, u1 = A[k, j], A[k + 1, j]
                A[i, j] -= l0 * u0 + l1 * u1
                A[i + 1, j] -= h0 * u0 + h1 * u1
        if m % 2 == 1:
            last = m - 1
            l0, l1 = A[last, k], A[last, k + 1] * inverse1
            b[last] -= l0 * b0 + l1 * b1
            for j in range(k + 2, m):
                A[last, j] -= l0 * A[k, j] + l1 * A[k + 1, j]
    if m % 2 == 1 and A[m - 1, m - 1] == 0.0:
        return False
    # back substitution
    for k in range(m - 1, -1, -1):
        x = b[k] / A[k, k]
        b[k] = x
        for i in range(k):
            b[i] -= A[i, k] * x
    return True


@kernel
def subtract_rows(A, i, first, end, B):
    """Subtract Σ_k A[i, k] B[k] from row i of B, k from `first` to before `end`, not i."""
    # four rows at a time: row i is read and written once for them
    k, m = first, B.shape[1]
    while k + 3 < end:
        a, b, c, d = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
        if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
            for j in range(m):
                B[i, j] -= a * B[k, j] + b * B[k + 1, j] + c * B[k + 2, j] + d * B[k + 3, j]
        k += 4
    while k < end:
        a = A[i, k]
        if a != 0.0:
            for j in range(m):
                B[i, j] -= a * B[k, j]
        k += 1


@kernel
def eliminate_right_sides(A, B, least=0.0):
    """Overwrite `B` (n, m) with A⁻¹ B, and `A` (n, n); return the size of the smallest pivot.

    Where a pivot is not above `least`, A counts as singular: elimination ends, 0 is returned.
    """
    n, m = B.shape
    smallest = np.inf
    # P A = L U, L of unit diagonal below that of U; rows of B are swapped along
    for k in range(n):
        # row of the largest entry in column k
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        size = abs(A[pivot, k])
        if not size > least:
            return 0.0
        smallest = min(smallest, size)
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            for j in range(m):
                B[k, j], B[pivot, j] = B[pivot, j], B[k, j]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
    # L⁻¹ B, then U⁻¹ of that
    for i in range(1, n):
        subtract_rows(A, i, 0, i, B)
    for i in range(n - 1, -1, -1):
        subtract_rows(A, i, i + 1, n, B)
        scale = 1.0 / A[i, i]
        for j in range(m):
            B[i, j] *= scale
    return smallest


@kernel
def solve_symmetric(A, b, m):
    """Overwrite b with A⁻¹ b for a symmetric positive definite A; only its upper triangle is read.

    A = L D Lᵀ without pivots; D Lᵀ with 1/D on the diagonal overwrites it.
    """
    eliminate_symmetric(A, b, m, m)
    substitute_back(A, b, m)


@kernel
def solve_eliminated(A, b, m):
    """Overwrite b with A⁻¹ b, with an A that `solve_symmetric` has left."""
    for k in range(m):
        share = b[k] * A[k, k]
        for j in range(k + 1, m):
            b[j] -= share * A[k, j]
    substitute_back(A, b, m)


@kernel
def substitute_back(A, b, m):
    """Overwrite b with the solution of D Lᵀ x = b; 1 / D is on the diagonal of A."""
    for j in range(m - 1, -1, -1):
        x = b[j] * A[j, j]
        b[j] = x
        for k in range(j):
            b[k] -= A[k, j] * x


@kernel
def eliminate_symmetric(A, b, m, n):
    """Eliminate the first m of n unknowns of A x = b, as `solve_symmetric`, two at a time.

    Rows up to m become those of D Lᵀ; A and b behind them become the Schur complement of the
    others, in the upper triangle, and their right-hand side.
    """
    for k in range(0, m - 1, 2):
        # rows k and k + 1 of D Lᵀ
        inverse0 = 1.0 / A[k, k]
        A[k, k] = inverse0
        share = A[k, k + 1] * inverse0
        for j in range(k + 1, n):
            A[k + 1, j] -= share * A[k, j]
        b[k + 1] -= share * b[k]
        inverse1 = 1.0 / A[k + 1, k + 1]
        A[k + 1, k + 1] = inverse1
        # Schur complement and right-hand side of the rows below, two at a time
        b0, b1 = b[k], b[k + 1]
        for i in range(k + 2, n - 1, 2):
            l0, l1 = A[k, i] * inverse0, A[k + 1, i] * inverse1
            h0, h1 = A[k, i + 1] * inverse0, A[k + 1, i + 1] * inverse1
            A[i, i] -= l0 * A[k, i] + l1 * A[k + 1, i]
            b[i] -= l0 * b0 + l1 * b1
            b[i + 1] -= h0 * b0 + h1 * b1
            for j in range(i + 1, n):
                u0, u1 = A[k, j], A[k + 1, j]
                A[i, j] -= l0 * u0 + l1 * u1
                A[i + 1, j] -= h0 * u0 + h1 * u1
        if n % 2 == 1:
            last = n - 1
            l0, l1 = A[k, last] * inverse0, A[k + 1, last] * inverse1
            A[last, last] -= l0 * A[k, last] + l1 * A[k + 1, last]
            b[last] -= l0 * b0 + l1 * b1
    if m % 2 == 1:
        k = m - 1
        inverse0 = 1.0 / A[k, k]
        A[k, k] = inverse0
        for i in range(m, n):
            share = A[k, i] * inverse0
            b[i] -= share * b[k]
            for j in range(i, n):
                A[i, j] -= share * A[k, j]


@kernel
def cholesky(G, shift, L):
    """Fill the lower triangle of `L` with the Cholesky factor of G + shift I."""
    n = G.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = G[i, j]
            if i == j:
                total += shift
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(total) if i == j else total / L[j, j]


@kernel
def cholesky_solve(L, x):
    """Overwrite `x` with (L Lᵀ)⁻¹ x."""
    n = x.shape[0]
    for i in range(n):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= L[k, i] * x[k]
        x[i] /= L[i, i]


# Least-norm solutions of G λ + g = 0 with redundant rows. A pivoted Cholesky factorisation
# G = L Lᵀ (pivots left out) with L of r columns gives
#
#     −G⁺ g = −L (Lᵀ L)⁻² Lᵀ g
#
# which is the ordinary solution where r is full. One step of refinement removes the rounding.

RANK_TOLERANCE = 1e-9
"""Pivot over the largest diagonal up to which it counts as zero: rows of J that depend on each
other but for 3e-5. As independent rows they would take enormous forces for tiny velocities."""
CONSISTENCY_TOLERANCE = 1e-6
"""Residual over prescribed velocity, up to which redundant rows count as consistent [-]."""


@kernel
def pivoted_cholesky(A, order, L):
    """Overwrite A (m, m) and fill order (m,), L (m, m) with A[order][:, order] = L Lᵀ.

    Return the rank r; only the first r columns of L count.
    """
    m = A.shape[0]
    for i in range(m):
        order[i] = i
    largest = 0.0
    for i in range(m):
        largest = max(largest, A[i, i])
    L[:] = 0.0
    for k in range(m):
        # largest remaining diagonal entry; stop where it is zero to rounding
        p = k
        for i in range(k + 1, m):
            if A[i, i] > A[p, p]:
                p = i
        if not A[p, p] > RANK_TOLERANCE * largest:
            return k
        # swap rows and columns k and p
        if p != k:
            order[k], order[p] = order[p], order[k]
            for j in range(m):
                A[k, j], A[p, j] = A[p, j], A[k, j]
                L[k, j], L[p, j] = L[p, j], L[k, j]
            for i in range(m):
                A[i, k], A[i, p] = A[i, p], A[i, k]
        # column k of L
        pivot = np.sqrt(A[k, k])
        L[k, k] = pivot
        for j in range(k + 1, m):
            A[k, j] /= pivot
            L[j, k] = A[k, j]
        # Schur complement
        for i in range(k + 1, m):  # both triangles: contiguous rows are faster
            share = A[k, i]
            for j in range(k + 1, m):
                A[i, j] -= share * A[k, j]
    return m


@kernel
def gram_cholesky(L, r, gram):
    """Fill the front (r, r) of `gram` with the Cholesky factor of Lᵀ L unless r is full rank."""
    m = L.shape[0]
    if r == m:
        return
    product = np.zeros((r, r))
    for a in range(r):
        for b in range(r):
            for i in range(max(a, b), m):
                product[a, b] += L[i, a] * L[i, b]
    cholesky(product, 0.0, gram[:r, :r])


@kernel
def pseudo_solve(L, gram, b, r, x):
    """Fill x (m,) with (L Lᵀ)⁺ b from the first r columns of L; `gram` is the factor of Lᵀ L."""
    m = b.shape[0]
    if r == m:
        assign(x, b)
        cholesky_solve(L, x)
        return
    # x = L (Lᵀ L)⁻² Lᵀ b
    y = np.zeros(r)
    for k in range(r):
        for i in range(k, m):
            y[k] += L[i, k] * b[i]
    cholesky_solve(gram[:r, :r], y)
    cholesky_solve(gram[:r, :r], y)
    for i in range(m):
        x[i] = 0.0
        for k in range(min(i + 1, r)):
            x[i] += L[i, k] * y[k]


@kernel
def least_norm_factored(G, factor, r, g, x):
    """Fill x with −G⁺ g from (order, L, gram) of `pivoted_cholesky` and `gram_cholesky`."""
    order, L, gram = factor
    m = g.shape[0]
    right, change = np.empty(m), np.empty(m)
    x[:] = 0.0
    # solve for the residual −(g + G x) twice: the second pass is the refinement
    for _ in range(2):
        for i in range(m):
            total = g[order[i]]
            for j in range(m):
                total += G[order[i], j] * x[j]
            right[i] = -total
        pseudo_solve(L, gram, right, r, change)
        for i in range(m):
            x[order[i]] += change[i]


# Small strictly convex quadratic programs, exact to rounding, by a dual active-set method.
#
#     minimise ½ xᵀ H x + gᵀ x   such that   lower ≤ C x ≤ upper
#
# With H = L Lᵀ, x = L⁻ᵀ y and A = C L⁻ᵀ this is the point nearest to −L⁻¹ g in a polyhedron,
#
#     minimise ½ |y + L⁻¹ g|²   such that   lower ≤ A y ≤ upper
#
# The method starts at −L⁻¹ g and adds the most violated limit, one after the other, each time
# keeping the active ones and dropping those whose multiplier would become negative. Few active
# limits are few steps. There is no warm start.
#
# [Goldfarb and Idnani 1983] A numerically stable dual method for solving strictly convex quadratic
# programs. Mathematical Programming 27, 1-33.

MAX_EXCHANGES = 200
DEPENDENCE_TOLERANCE = 1e-10
"""Part of a normal orthogonal to the active ones, below which it counts as dependent [-]."""


@kernel
def solve_qp(H, g, C, lower, upper, tolerance):
    """Return the minimum of ½ xᵀ H x + gᵀ x with lower ≤ C x ≤ upper, and whether it was found.

    H is symmetric, shapes (n, n), (n,), (m, n), (m,); nothing is found where it is not positive
    definite or not finite. Limits may be violated by `tolerance`, in their units.
    """
    n = g.shape[0]
    factor, inverse, y = np.zeros((n, n)), np.eye(n), np.empty(n)
    # y = L⁻¹ x turns the problem into that of the nearest point
    cholesky(H, 0.0, factor)
    finite = eliminate_right_sides(factor, inverse) > 0.0
    for i in range(n):
        y[i] = -dot(inverse[i], g)
        finite &= np.isfinite(y[i])
    scaling = inverse.T
    found = finite and nearest_point(C @ scaling, lower, upper, tolerance, y)
    return scaling @ y, found


@kernel
def nearest_point(A, lower, upper, tolerance, y):
    """Move `y` to the nearest point with lower ≤ A y ≤ upper; return whether there is one."""
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
        for i in range(k - 1, -1, -1):
            for j in range(i + 1, k):
                rate[i] -= R[i, j] * rate[j]
            rate[i] /= R[i, i]
        # dual step length: until an active multiplier is zero, that at `place`
        step, place = np.inf, -1
        for i in range(k):
            if rate[i] > 0.0 and pull[i] < step * rate[i]:
                step, place = pull[i] / rate[i], i
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
    """Write side normal = Q[:k]ᵀ share + rest with rest ⊥ Q[:k]; return |rest|."""
    n = normal.shape[0]
    for j in range(n):
        share[j], rest[j] = 0.0, side * normal[j]
    for _ in range(2):  # once loses digits where `rest` is short
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
def dot(a, b):
    """Return a·b."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total
