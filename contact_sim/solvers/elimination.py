"""Small dense systems with several right sides: Gaussian elimination with partial pivoting."""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def eliminate(A, B):
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
