"""Sparse factorisation of a mass matrix along the kinematic tree.

    M = Lᵀ D L,   L of unit diagonal,   L_ij ≠ 0 only if j is i or an ancestor of i

Kernels take a tree as two arrays of shape (nv,): `parent[i]` is the degree of freedom before i on
the way to the root, −1 at the root, and always less than i; `limb` is that of `limbs_of`. The
branches of a legged robot never mix, so the cost grows linearly with the number of legs. The trunk
is worked on in loops of known length, which is faster than to follow the parents. A factor holds L
below its diagonal and 1/D on it; the upper triangle is neither read nor written.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 6.5.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel

TRUNK = -1
"""Limb of the dofs of the trunk."""
TRUNK_DOFS = 6
"""Dofs of a trunk, where there is one."""


def limbs_of(parent):
    """Return the limb of every dof: its first dof, or TRUNK, shape (nv,), integers.

    The trunk is the chain of the first six dofs where all others hang on it: the floating base of
    a legged robot, not several trees with roots of their own.

    Args:
        parent: dof before each dof, −1 at the root, shape (nv,).
    """
    hangs = [int(p) + 1 for k, p in enumerate(parent) if p != k - 1]
    trunk = TRUNK_DOFS if min(hangs, default=len(parent)) >= TRUNK_DOFS else 0
    limb = np.full(len(parent), TRUNK, dtype=np.int64)
    for k in range(trunk, len(parent)):
        limb[k] = k if parent[k] < trunk else limb[parent[k]]
    return limb


@kernel
def trunk_of(tree):
    """Return the dofs of the trunk: TRUNK_DOFS or 0."""
    limb = tree[1]
    return TRUNK_DOFS if limb.shape[0] > 0 and limb[0] == TRUNK else 0


@kernel
def factorise(L, tree):
    """Overwrite the lower triangle of the mass matrix `L` (nv, nv) with its factor."""
    parent, trunk = tree[0], trunk_of(tree)
    for k in range(L.shape[0] - 1, trunk - 1, -1):
        inverse = 1.0 / L[k, k]
        L[k, k] = inverse
        i = parent[k]
        while i >= trunk:
            share = L[k, i] * inverse
            j = i
            while j >= trunk:
                L[i, j] -= share * L[k, j]
                j = parent[j]
            if trunk:
                for j in range(TRUNK_DOFS):
                    L[i, j] -= share * L[k, j]
            L[k, i] = share  # row k is not read above i again
            i = parent[i]
        if trunk:
            eliminate_from_trunk(L, k, TRUNK_DOFS - 1, inverse)
    if trunk:
        for k in range(TRUNK_DOFS - 1, -1, -1):
            inverse = 1.0 / L[k, k]
            L[k, k] = inverse
            eliminate_from_trunk(L, k, k - 1, inverse)


@kernel
def eliminate_from_trunk(L, k, last, inverse):
    """Take dof k out of the rows of the trunk, from `last` on; `inverse` is 1/D of k."""
    for i in range(last, -1, -1):
        share = L[k, i] * inverse
        for j in range(i + 1):
            L[i, j] -= share * L[k, j]
        L[k, i] = share


@kernel
def solve(L, tree, x):
    """Overwrite `x` (nv,) with the solution of M y = x."""
    solve_transposed(L, tree, x)
    solve_factor(L, tree, x)


@kernel
def solve_transposed(L, tree, x):
    """Overwrite `x` (nv,) with the solution of Lᵀ y = x; zeros outside the branch stay zero."""
    parent, trunk = tree[0], trunk_of(tree)
    for i in range(L.shape[0] - 1, trunk - 1, -1):
        y = x[i]
        if y != 0.0:
            j = parent[i]
            while j >= trunk:
                x[j] -= L[i, j] * y
                j = parent[j]
            if trunk:
                for j in range(TRUNK_DOFS):
                    x[j] -= L[i, j] * y
    if trunk:
        for i in range(TRUNK_DOFS - 1, -1, -1):
            for j in range(i):
                x[j] -= L[i, j] * x[i]


@kernel
def solve_factor(L, tree, x):
    """Overwrite `x` (nv,) with the solution of D L y = x."""
    parent, trunk = tree[0], trunk_of(tree)
    if trunk:
        for i in range(TRUNK_DOFS):
            y = x[i] * L[i, i]
            for j in range(i):
                y -= L[i, j] * x[j]
            x[i] = y
    for i in range(trunk, L.shape[0]):
        y = x[i] * L[i, i]
        j = parent[i]
        while j >= trunk:
            y -= L[i, j] * x[j]
            j = parent[j]
        if trunk:
            for j in range(TRUNK_DOFS):
                y -= L[i, j] * x[j]
        x[i] = y
