"""Small dense systems, solved in place in the front of larger arrays."""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def eliminate(A, b, m):
    """Overwrite b with A⁻¹ b (Gaussian elimination, row pivoting); return False if singular."""
    for k in range(m):
        pivot = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if A[pivot, k] == 0.0:
            return False
        if pivot != k:
            for j in range(k, m):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, m):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, m):
                    A[i, j] -= factor * A[k, j]
                b[i] -= factor * b[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]
    return True


@kernel
def solve_symmetric(A, b, m):
    """Overwrite b with A⁻¹ b for a symmetric positive definite A; reads its upper triangle.

    A = L D Lᵀ without pivots, two columns of L at a time; overwrites the upper triangle.
    """
    k = 0
    while k + 1 < m:
        inverse0 = 1.0 / A[k, k]
        share = A[k, k + 1] * inverse0
        for j in range(k + 1, m):
            A[k + 1, j] -= share * A[k, j]
        b[k + 1] -= share * b[k]
        inverse1 = 1.0 / A[k + 1, k + 1]
        b0, b1 = b[k], b[k + 1]
        for i in range(k + 2, m):
            l0, l1 = A[k, i] * inverse0, A[k + 1, i] * inverse1
            for j in range(i, m):
                A[i, j] -= l0 * A[k, j] + l1 * A[k + 1, j]
            b[i] -= l0 * b0 + l1 * b1
        k += 2
    for k in range(m - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, m):
            total -= A[k, j] * b[j]
        b[k] = total / A[k, k]
