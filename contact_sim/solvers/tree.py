"""Sparse factorisation of a mass matrix along the kinematic tree.

    M = Lᵀ D L,   L of unit diagonal,   L_ij ≠ 0 only if j is i or an ancestor of i

`parent[i]` is the degree of freedom before i on the way to the root, −1 at the root, and always
less than i. The branches of a legged robot never mix, so the cost grows linearly with the number
of legs. A factor holds L below its diagonal and 1/D on it; the upper triangle is neither read nor
written.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 6.5.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def factorise(L, parent):
    """Overwrite the lower triangle of the mass matrix `L` (nv, nv) with its factor."""
    for k in range(L.shape[0] - 1, -1, -1):
        inverse = 1.0 / L[k, k]
        L[k, k] = inverse
        i = parent[k]
        while i >= 0:
            share = L[k, i] * inverse
            j = i
            while j >= 0:
                L[i, j] -= share * L[k, j]
                j = parent[j]
            L[k, i] = share  # row k is not read above i again
            i = parent[i]


@kernel
def solve(L, parent, x):
    """Overwrite `x` (nv,) with the solution of M y = x."""
    solve_transposed(L, parent, x)
    solve_factor(L, parent, x)


@kernel
def solve_transposed(L, parent, x):
    """Overwrite `x` (nv,) with the solution of Lᵀ y = x; zeros outside the branch stay zero."""
    for i in range(L.shape[0] - 1, -1, -1):
        y = x[i]
        if y != 0.0:
            j = parent[i]
            while j >= 0:
                x[j] -= L[i, j] * y
                j = parent[j]


@kernel
def solve_factor(L, parent, x):
    """Overwrite `x` (nv,) with the solution of D L y = x."""
    for i in range(L.shape[0]):
        y = x[i] * L[i, i]
        j = parent[i]
        while j >= 0:
            y -= L[i, j] * x[j]
            j = parent[j]
        x[i] = y
