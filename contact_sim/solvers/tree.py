"""Sparse factorisation of a mass matrix along the kinematic tree.

    M = Lᵀ D L,   L of unit diagonal,   L_ij ≠ 0 only if j is i or an ancestor of i

Kernels take a tree as three arrays of shape (nv,): `parent[i]` is the degree of freedom before i
on the way to the root, −1 at the root, and always less than i; `limb` and `trunk` are those of
`branches_of`. There may be several trees in them. The branches of a legged robot never mix, so the
cost grows linearly with the number of legs. The trunk is worked on in loops of known length, which
is faster than to follow the parents. A factor holds L below its diagonal and 1/D on it; the upper
triangle is neither read nor written.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 6.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.solvers.jit import kernel

Index = NDArray[np.int64]
TRUNK_DOFS = 6
"""Dofs of a trunk, where there is one."""
NO_TRUNK = -1
"""First dof of the trunk of a tree that has none."""


def branches_of(parent: Index) -> tuple[Index, Index]:
    """Return limb and trunk of every dof: first dofs, integers, shape (nv,) each.

    The trunk of a tree is its first six dofs where they are a chain on which all others hang: the
    floating base of a legged robot. What hangs on it, or on the root of a tree without one, is a
    limb. Dofs of a trunk have themselves as their limb.

    Args:
        parent: dof before each dof, −1 at the root, shape (nv,).
    """
    nv = len(parent)
    root, limb = np.arange(nv), np.arange(nv)
    for k in range(nv):
        if parent[k] >= 0:
            root[k] = root[parent[k]]
    trunk = np.full(nv, NO_TRUNK, dtype=np.int64)
    for first in np.unique(root):
        dofs = np.flatnonzero(root == first)
        chain, rest = parent[dofs[1:TRUNK_DOFS]], parent[dofs[TRUNK_DOFS:]]
        last = first + TRUNK_DOFS - 1
        together = np.array_equal(dofs[:TRUNK_DOFS], np.arange(first, last + 1))
        if together and np.array_equal(chain, np.arange(first, last)) and (rest >= last).all():
            trunk[dofs] = first
    for k in range(nv):
        hangs_on_trunk = trunk[k] != NO_TRUNK and parent[k] < trunk[k] + TRUNK_DOFS
        if parent[k] >= 0 and not hangs_on_trunk:
            limb[k] = limb[parent[k]]
    return limb, trunk


@kernel
def end_of_trunk(first):
    """Return the dof behind the trunk that begins at `first`; 0 without a trunk."""
    return first + TRUNK_DOFS if first != NO_TRUNK else 0


@kernel
def factorise(L, tree):
    """Overwrite the lower triangle of the mass matrix `L` (nv, nv) with its factor."""
    parent, trunk = tree[0], tree[2]
    for k in range(L.shape[0] - 1, -1, -1):
        first, end = trunk[k], end_of_trunk(trunk[k])
        inverse = 1.0 / L[k, k]
        L[k, k] = inverse
        i = parent[k]
        while i >= end:
            share = L[k, i] * inverse
            j = i
            while j >= end:
                L[i, j] -= share * L[k, j]
                j = parent[j]
            if first != NO_TRUNK:
                for j in range(first, first + TRUNK_DOFS):
                    L[i, j] -= share * L[k, j]
            L[k, i] = share  # row k is not read above i again
            i = parent[i]
        if first != NO_TRUNK and k >= end:
            eliminate_from_trunk(L, k, first, TRUNK_DOFS, inverse)
        elif first != NO_TRUNK:
            eliminate_from_trunk(L, k, first, k - first, inverse)


@kernel
def eliminate_from_trunk(L, k, first, count, inverse):
    """Take dof k out of the first `count` rows of a trunk; `inverse` is 1/D of k."""
    for i in range(first + count - 1, first - 1, -1):
        share = L[k, i] * inverse
        for j in range(first, i + 1):
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
    parent, trunk = tree[0], tree[2]
    for i in range(L.shape[0] - 1, -1, -1):
        y, first, end = x[i], trunk[i], end_of_trunk(trunk[i])
        if y == 0.0:
            continue
        j = parent[i]
        while j >= end:
            x[j] -= L[i, j] * y
            j = parent[j]
        if first != NO_TRUNK and i >= end:
            for j in range(first, first + TRUNK_DOFS):
                x[j] -= L[i, j] * y
        elif first != NO_TRUNK:
            for j in range(first, i):
                x[j] -= L[i, j] * y


@kernel
def solve_factor(L, tree, x):
    """Overwrite `x` (nv,) with the solution of D L y = x."""
    parent, trunk = tree[0], tree[2]
    for i in range(L.shape[0]):
        first, end = trunk[i], end_of_trunk(trunk[i])
        y, j = x[i] * L[i, i], parent[i]
        while j >= end:
            y -= L[i, j] * x[j]
            j = parent[j]
        if first != NO_TRUNK and i >= end:
            for j in range(first, first + TRUNK_DOFS):
                y -= L[i, j] * x[j]
        elif first != NO_TRUNK:
            for j in range(first, i):
                y -= L[i, j] * x[j]
        x[i] = y
