"""Sparse factorisation of a mass matrix along the kinematic tree.

    M = Lᵀ D L,   L of unit diagonal,   L_ij ≠ 0 only if j is i or an ancestor of i

Kernels take a tree as two arrays of shape (nv,) and a number: `parent[i]` is the degree of freedom
before i on the way to the root, −1 at the root, and always less than i; `limb` and `rooted` are
those of `limbs_of`. There may be several trees. The branches of a legged robot never mix, so the
cost grows linearly with the number of legs. The trunk is worked on in loops of known length, which
is faster than to follow the parents. A factor holds L below its diagonal and 1/D on it; the upper
triangle and what lies between branches is neither read nor written.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 6.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.solvers.jit import kernel

Index = NDArray[np.int64]
TRUNK = -1
"""Limb of the dofs of the trunk."""
TRUNK_DOFS = 6
"""Dofs of a trunk, where there is one."""


def limbs_of(parent: Index) -> tuple[Index, int]:
    """Return the limb of every dof, its first dof or TRUNK, (nv,), and the dofs of the first tree.

    The trunk is the chain of the first six dofs where all others of their tree hang on it: the
    floating base of a legged robot. Further trees are limbs of their own. Without a trunk, or
    where the dofs of its tree are not the first ones, the number is 0.

    Args:
        parent: dof before each dof, −1 at the root, shape (nv,).
    """
    nv = len(parent)
    root = np.arange(nv)
    for k in range(nv):
        if parent[k] >= 0:
            root[k] = root[parent[k]]
    rooted = int(np.count_nonzero(root == 0))
    chain = np.array_equal(parent[:TRUNK_DOFS], np.arange(-1, TRUNK_DOFS - 1))
    together = not root[:rooted].any()
    if not chain or not together or (parent[TRUNK_DOFS:rooted] < TRUNK_DOFS - 1).any():
        rooted = 0
    trunk, limb = TRUNK_DOFS if rooted else 0, np.full(nv, TRUNK, dtype=np.int64)
    for k in range(trunk, nv):
        limb[k] = k if parent[k] < trunk else limb[parent[k]]
    return limb, rooted


@kernel
def trunk_of(tree):
    """Return the dofs of the trunk: TRUNK_DOFS or 0."""
    return TRUNK_DOFS if tree[2] > 0 else 0


@kernel
def factorise(L, tree):
    """Overwrite the lower triangle of the mass matrix `L` (nv, nv) with its factor."""
    parent, rooted, trunk = tree[0], tree[2], trunk_of(tree)
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
            if k < rooted:
                for j in range(TRUNK_DOFS):
                    L[i, j] -= share * L[k, j]
            L[k, i] = share  # row k is not read above i again
            i = parent[i]
        if k < rooted:
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
    parent, rooted, trunk = tree[0], tree[2], trunk_of(tree)
    for i in range(L.shape[0] - 1, trunk - 1, -1):
        y = x[i]
        if y != 0.0:
            j = parent[i]
            while j >= trunk:
                x[j] -= L[i, j] * y
                j = parent[j]
            if i < rooted:
                for j in range(TRUNK_DOFS):
                    x[j] -= L[i, j] * y
    if trunk:
        for i in range(TRUNK_DOFS - 1, -1, -1):
            for j in range(i):
                x[j] -= L[i, j] * x[i]


@kernel
def solve_factor(L, tree, x):
    """Overwrite `x` (nv,) with the solution of D L y = x."""
    parent, rooted, trunk = tree[0], tree[2], trunk_of(tree)
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
        if i < rooted:
            for j in range(TRUNK_DOFS):
                y -= L[i, j] * x[j]
        x[i] = y
