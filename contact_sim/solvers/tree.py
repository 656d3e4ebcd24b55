"""Sparse factorisation of a mass matrix along the kinematic tree.

    M = L^T L,   L_ij ≠ 0 only if j is i or an ancestor of i

`parent[i]` is the degree of freedom before i on the way to the root, −1 at the root. The branches
of a legged robot never mix, so the cost grows linearly with the number of legs.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 6.5.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel


@kernel
def factorise(L, parent):
    """Overwrite the lower triangle of the mass matrix `L` (nv, nv) with its factor."""
    for k in range(L.shape[0] - 1, -1, -1):
        pivot = np.sqrt(L[k, k])
        L[k, k] = pivot
        i = parent[k]
        while i >= 0:
            L[k, i] /= pivot
            i = parent[i]
        i = parent[k]
        while i >= 0:
            j = i
            while j >= 0:
                L[i, j] -= L[k, i] * L[k, j]
                j = parent[j]
            i = parent[i]


@kernel
def solve_transposed(L, parent, x):
    """Overwrite `x` (nv,) with the solution of L^T y = x; zeros outside the branch stay zero."""
    for i in range(L.shape[0] - 1, -1, -1):
        if x[i] != 0.0:
            x[i] /= L[i, i]
            j = parent[i]
            while j >= 0:
                x[j] -= L[i, j] * x[i]
                j = parent[j]


@kernel
def solve_transposed_columns(L, parent, X):
    """Overwrite the columns of `X` (nv, n) with the solutions of L^T Y = X."""
    n = X.shape[1]
    for i in range(L.shape[0] - 1, -1, -1):
        scale = 1.0 / L[i, i]
        for c in range(n):
            X[i, c] *= scale
        j = parent[i]
        while j >= 0:
            factor = L[i, j]
            for c in range(n):
                X[j, c] -= factor * X[i, c]
            j = parent[j]


@kernel
def solve_factor(L, parent, x):
    """Overwrite `x` (nv,) with the solution of L y = x."""
    for i in range(L.shape[0]):
        j = parent[i]
        while j >= 0:
            x[i] -= L[i, j] * x[j]
            j = parent[j]
        x[i] /= L[i, i]
