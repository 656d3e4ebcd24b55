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
def entry(T, place, i, k):
    """Return the entry of row `i` in the column of w_k: a unit vector while w_k is basic."""
    if place[k] >= 0:
        return T[i, place[k]]
    return 1.0 if place[k] == -1 - i else 0.0


@kernel
def lexicographic_row(T, place, column):
    """Return the row that leaves when `column` enters, −1 if none does.

    Among the rows with the smallest ratio, the one whose row of the basis inverse, divided by the
    pivot, is lexicographically smallest.
    """
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
        if best >= 0 and abs(difference) <= TIE:
            k = 0
            while abs(difference) <= TIE and k < n:
                difference = entry(T, place, i, k) * inverse
                difference -= entry(T, place, best, k) * best_inverse
                k += 1
        if best < 0 or difference < 0.0:
            best, best_ratio, best_inverse = i, ratio, inverse
    return best


@kernel
def lemke(M, q, z, max_pivots):
    """Fill `z` (n,); return (status, pivots).

    The tableau keeps the columns of the non-basic variables only. Variables are numbered
    w (0 to n − 1), z (n to 2n − 1), the artificial z0 (2n).

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
    row = 0
    for i in range(1, n):  # most negative q; of ties the last keeps the rows lexico-positive
        if T[i, n + 1] <= T[row, n + 1]:
            row = i
    column = n
    for count in range(max_pivots + 1):
        leaving, entering = basic[row], free[column]
        pivot(T, row, column)
        basic[row], free[column] = entering, leaving
        place[entering], place[leaving] = -1 - row, column
        if leaving == 2 * n:
            for i in range(n):
                if n <= basic[i] < 2 * n:
                    z[basic[i] - n] = max(T[i, n + 1] * scale, 0.0)
            return SOLVED, count
        column = place[leaving + n if leaving < n else leaving - n]
        row = lexicographic_row(T, place, column)
        if row < 0:
            return RAY, count
        for i in range(n):  # let the artificial variable go as soon as it may
            if basic[i] == 2 * n and T[i, column] > PIVOT_TOLERANCE:
                ratio = T[i, n + 1] / T[i, column]
                if ratio <= T[row, n + 1] / T[row, column] + TIE:
                    row = i
    return MAX_PIVOTS, max_pivots
