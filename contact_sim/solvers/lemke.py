"""Linear complementarity by complementary pivoting.

    z ≥ 0,   w = M z + q ≥ 0,   z·w = 0

Lemke's method with covering vector 1 and a lexicographic ratio test, so that it cannot cycle. The
right-hand side is scaled to 1 and pivots are accepted relative to their column: without both, ties
of redundant contacts end in false rays.

[Murty 1988] Linear Complementarity, Linear and Nonlinear Programming, chapter 2.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel

SOLVED, RAY, MAX_PIVOTS = 0, 1, 2
PIVOT_TOLERANCE = 1e-9
TIE = 1e-12


@kernel
def pivot(T, row, column):
    """Make `column` of the tableau the unit vector of `row`."""
    T[row] /= T[row, column]
    for i in range(T.shape[0]):
        factor = T[i, column]
        if i != row and factor != 0.0:
            T[i] -= factor * T[row]


@kernel
def lexicographic_row(T, column):
    """Return the row that leaves when `column` enters, −1 if none does.

    Among the rows with the smallest ratio, the one whose row of the basis inverse, divided by the
    pivot, is lexicographically smallest.
    """
    n = T.shape[0]
    last = T.shape[1] - 1
    largest = 0.0
    for i in range(n):
        largest = max(largest, T[i, column])
    best = -1
    for i in range(n):
        if T[i, column] <= PIVOT_TOLERANCE * largest or T[i, column] <= 0.0:
            continue
        if best < 0:
            best = i
            continue
        difference = T[i, last] / T[i, column] - T[best, last] / T[best, column]
        k = 0
        while abs(difference) <= TIE and k < n:
            difference = T[i, k] / T[i, column] - T[best, k] / T[best, column]
            k += 1
        if difference < 0.0:
            best = i
    return best


@kernel
def lemke(M, q, z, max_pivots):
    """Fill `z` (n,); return (status, pivots).

    Args:
        M: matrix, shape (n, n).
        q: vector, shape (n,).
        z: out, the solution, shape (n,).
        max_pivots: largest number of pivots.

    Returns:
        Status 0 solved, 1 ended on a ray, 2 ran out of pivots; and the number of pivots.
    """
    n = q.shape[0]
    z[:] = 0.0
    scale = np.abs(q).max() if n else 0.0
    if n == 0 or q.min() >= 0.0:
        return SOLVED, 0
    # columns: w (n), z (n), z0, right-hand side;  w − M z − z0 = q
    T = np.zeros((n, 2 * n + 2))
    for i in range(n):
        T[i, i] = 1.0
        T[i, n : 2 * n] = -M[i]
        T[i, 2 * n] = -1.0
        T[i, 2 * n + 1] = q[i] / scale
    basis = np.arange(n)
    row = 0
    for i in range(1, n):  # most negative q; of ties the last keeps the rows lexico-positive
        if T[i, 2 * n + 1] <= T[row, 2 * n + 1]:
            row = i
    leaving = basis[row]
    pivot(T, row, 2 * n)
    basis[row] = 2 * n
    for count in range(1, max_pivots + 1):
        entering = leaving + n if leaving < n else leaving - n
        row = lexicographic_row(T, entering)
        if row < 0:
            return RAY, count
        for i in range(n):  # let the artificial variable go as soon as it may
            if basis[i] == 2 * n and T[i, entering] > PIVOT_TOLERANCE:
                ratio = T[i, 2 * n + 1] / T[i, entering]
                if ratio <= T[row, 2 * n + 1] / T[row, entering] + TIE:
                    row = i
        leaving = basis[row]
        pivot(T, row, entering)
        basis[row] = entering
        if leaving == 2 * n:
            for i in range(n):
                if n <= basis[i] < 2 * n:
                    z[basis[i] - n] = max(T[i, 2 * n + 1] * scale, 0.0)
            return SOLVED, count
    return MAX_PIVOTS, max_pivots
