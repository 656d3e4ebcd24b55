"""Small dense systems, solved in place in the front of larger arrays."""

from __future__ import annotations

from contact_sim.solvers._jit import kernel

# --- Small dense systems with several right sides: Gaussian elimination with partial pivoting.


@kernel
def eliminate_right_sides(A, B):
    """Overwrite `B` (n, m) with A⁻¹ B, and `A` (n, n); return False where A is singular."""
    n, m = B.shape
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if A[pivot, k] == 0.0:
            return False
        if pivot != k:
            for j in range(k, n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            for j in range(m):
                B[k, j], B[pivot, j] = B[pivot, j], B[k, j]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
    for k in range(n - 1, -1, -1):
        scale = 1.0 / A[k, k]
        for j in range(m):
            B[k, j] *= scale
        for i in range(k):
            factor = A[i, k]
            if factor != 0.0:
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
    return True


# --- Small dense systems, solved in place in the front of larger arrays.


@kernel
def bring_pivot(A, b, k, first, m):
    """Swap the row with the largest entry of column k, from row k on, into row k.

    Entries from column `first` on are swapped. Returns False if all are zero.
    """
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
    """Overwrite b with A⁻¹ b (Gaussian elimination, row pivoting); return False if singular.

    Two pivots and two rows at a time; A is overwritten.
    """
    for k in range(0, m - 1, 2):
        if not bring_pivot(A, b, k, k, m):
            return False
        inverse0, u = 1.0 / A[k, k], A[k, k + 1]
        for i in range(k + 1, m):
            A[i, k] *= inverse0
            A[i, k + 1] -= A[i, k] * u
        if not bring_pivot(A, b, k + 1, k, m):
            return False
        inverse1, share = 1.0 / A[k + 1, k + 1], A[k + 1, k]
        for j in range(k + 2, m):
            A[k + 1, j] -= share * A[k, j]
        b[k + 1] -= share * b[k]
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
    for k in range(m - 1, -1, -1):
        x = b[k] / A[k, k]
        b[k] = x
        for i in range(k):
            b[i] -= A[i, k] * x
    return True


@kernel
def solve_symmetric(A, b, m):
    """Overwrite b with A⁻¹ b for a symmetric positive definite A; reads its upper triangle.

    A = L D Lᵀ without pivots, two pivots and two rows at a time. The upper triangle is overwritten
    by D Lᵀ, with 1/D on the diagonal.
    """
    for k in range(0, m - 1, 2):
        inverse0 = 1.0 / A[k, k]
        A[k, k] = inverse0
        share = A[k, k + 1] * inverse0
        for j in range(k + 1, m):
            A[k + 1, j] -= share * A[k, j]
        b[k + 1] -= share * b[k]
        inverse1 = 1.0 / A[k + 1, k + 1]
        A[k + 1, k + 1] = inverse1
        b0, b1 = b[k], b[k + 1]
        for i in range(k + 2, m - 1, 2):
            l0, l1 = A[k, i] * inverse0, A[k + 1, i] * inverse1
            h0, h1 = A[k, i + 1] * inverse0, A[k + 1, i + 1] * inverse1
            A[i, i] -= l0 * A[k, i] + l1 * A[k + 1, i]
            b[i] -= l0 * b0 + l1 * b1
            b[i + 1] -= h0 * b0 + h1 * b1
            for j in range(i + 1, m):
                u0, u1 = A[k, j], A[k + 1, j]
                A[i, j] -= l0 * u0 + l1 * u1
                A[i + 1, j] -= h0 * u0 + h1 * u1
        if m % 2 == 1:
            last = m - 1
            l0, l1 = A[k, last] * inverse0, A[k + 1, last] * inverse1
            A[last, last] -= l0 * A[k, last] + l1 * A[k + 1, last]
            b[last] -= l0 * b0 + l1 * b1
    if m % 2 == 1:
        A[m - 1, m - 1] = 1.0 / A[m - 1, m - 1]
    for j in range(m - 1, -1, -1):
        x = b[j] * A[j, j]
        b[j] = x
        for k in range(j):
            b[k] -= A[k, j] * x


@kernel
def assign(target, source):
    """Fill `target` with `source`, of the same length.

    The same as `target[:] = source`, whose checks of shapes take numba seconds to compile.
    """
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
    """Return the largest |x_r| of the first n, not-a-number if one of them is that."""
    largest = 0.0
    for r in range(n):
        size = abs(x[r])
        if not size <= largest:  # not-a-number stays: nothing is larger, nothing equal
            largest = size
            if size != size:
                break
    return largest
