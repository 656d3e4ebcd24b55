"""Rows that are held: G λ + g = 0, redundant or not; the least of all impulses.

A pivoted Cholesky factorisation G = L Lᵀ (Pᵀ left out) with L of r columns gives

    −G⁺ g = −L (Lᵀ L)⁻² Lᵀ g

which is the plain solution where r is full. One step of refinement removes the rounding.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._cone_admm import factor_shifted, solve_in_place
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel

SINGULAR = 1e-9
"""Share of the largest diagonal below which a pivot counts as zero: rows of J closer than 3e-5 to
depending on each other. Held exactly, they would take enormous forces for velocities as small."""

CONSISTENT = 1e-6
"""Share of the velocities asked for that rounding may miss."""


@kernel
def factor_pivoted(A, order, L):
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
        p = k
        for i in range(k + 1, m):
            if A[i, i] > A[p, p]:
                p = i
        if not A[p, p] > SINGULAR * largest:
            return k
        if p != k:
            order[k], order[p] = order[p], order[k]
            for j in range(m):
                A[k, j], A[p, j] = A[p, j], A[k, j]
                L[k, j], L[p, j] = L[p, j], L[k, j]
            for i in range(m):
                A[i, k], A[i, p] = A[i, p], A[i, k]
        pivot = np.sqrt(A[k, k])
        L[k, k] = pivot
        for j in range(k + 1, m):
            A[k, j] /= pivot
            L[j, k] = A[k, j]
        for i in range(k + 1, m):  # both halves: along the rows of memory
            share = A[k, i]
            for j in range(k + 1, m):
                A[i, j] -= share * A[k, j]
    return m


@kernel
def solve_normal(L, gram, b, r, x):
    """Fill x (m,) with (L Lᵀ)⁺ b from the first r columns of L; gram is the factor of Lᵀ L."""
    m = b.shape[0]
    if r == m:
        assign(x, b)
        solve_in_place(L, x)
        return
    y = np.zeros(r)
    for k in range(r):
        for i in range(k, m):
            y[k] += L[i, k] * b[i]
    solve_in_place(gram[:r, :r], y)
    solve_in_place(gram[:r, :r], y)
    for i in range(m):
        x[i] = 0.0
        for k in range(min(i + 1, r)):
            x[i] += L[i, k] * y[k]


@kernel
def factor_gram(L, r, gram):
    """Fill the front (r, r) of `gram` with the factor of Lᵀ L where r is less than all rows."""
    m = L.shape[0]
    if r == m:
        return
    product = np.zeros((r, r))
    for a in range(r):
        for b in range(r):
            for i in range(max(a, b), m):
                product[a, b] += L[i, a] * L[i, b]
    factor_shifted(product, 0.0, gram[:r, :r])


@kernel
def least_norm(G, g, x):
    """Fill x (m,) with −G⁺ g, G (m, m) symmetric positive semidefinite; return the rank."""
    m = g.shape[0]
    order, L, gram = np.empty(m, np.int64), np.empty((m, m)), np.zeros((m, m))
    r = factor_pivoted(G.copy(), order, L)
    factor_gram(L, r, gram)
    least_norm_factored(G, (order, L, gram), r, g, x)
    return r


@kernel
def least_norm_factored(G, factor, r, g, x):
    """Do so with (order, L, gram) of `factor_pivoted` and `factor_gram`, of rank r."""
    order, L, gram = factor
    m = g.shape[0]
    right, change = np.empty(m), np.empty(m)
    x[:] = 0.0
    for _ in range(2):
        for i in range(m):
            total = g[order[i]]
            for j in range(m):
                total += G[order[i], j] * x[j]
            right[i] = -total
        solve_normal(L, gram, right, r, change)
        for i in range(m):
            x[order[i]] += change[i]


@kernel
def make_consistent(G, g):
    """Take out of g (m,) what no impulse of G (m, m) can change; return whether that is rounding.

    What is left, −G x with x = −G⁺ g, is in the range of G.
    """
    x, missed, size = np.empty(g.shape[0]), 0.0, 0.0
    least_norm(G, g, x)
    for i in range(g.shape[0]):
        reached = 0.0
        for j in range(g.shape[0]):
            reached -= G[i, j] * x[j]
        missed, size = max(missed, abs(g[i] - reached)), max(size, abs(g[i]))
        g[i] = reached
    return missed <= CONSISTENT * size
