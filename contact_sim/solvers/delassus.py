"""The Delassus matrix G = J M⁻¹ Jᵀ along the kinematic tree.

With M = Lᵀ D L (solvers/tree.py) and Y = L⁻ᵀ Jᵀ it is G = Yᵀ D⁻¹ Y. A row of J has entries on one
branch of the tree only, from its last dof to the root, and so has its column of Y. Rows are taken
three at a time where they share a branch (the rows of one contact do, or the joints of one leg),
and two such groups meet only in their common ancestors: of two legs in the dofs of the base.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel

EVERYWHERE = -2
"""Last dof of a row that may have entries at any dof."""
NO_BRANCH = -3
"""Answer where three rows do not share a branch."""


@kernel
def delassus(jacobian_transposed, L, parent, row_of, row_leaf, n, Y, G):
    """Fill Y (nv, n) and G (n, n).

    Args:
        jacobian_transposed: Jᵀ, shape (nv, rows).
        L: factor of M of `tree.factorise`, shape (nv, nv).
        parent: dof before each dof, shape (nv,).
        row_of: column of Jᵀ of every row of the problem, shape (n,) or more.
        row_leaf: last dof of the branch of every row of the problem, −1 without any dof, −2 where
            the row may have entries at any dof, shape (n,) or more.
        n: number of rows of the problem.
        Y: out, L⁻ᵀ Jᵀ, shape (nv, n).
        G: out [1/kg], shape (n, n).
    """
    for k in range(parent.shape[0]):
        for a in range(n):
            Y[k, a] = 0.0
    a = 0
    while a < n:
        leaf = branch_of_three(parent, row_leaf, a, n)
        if leaf != NO_BRANCH:
            fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, a, Y)
            fill_block(L, parent, leaf, a, Y, G)
            b = 0
            while b < a:
                other = branch_of_three(parent, row_leaf, b, n)
                if other != NO_BRANCH:
                    fill_blocks(L, parent, common_ancestor(parent, leaf, other), a, b, Y, G)
                    b += 3
                else:
                    shared = common_ancestor(parent, leaf, row_leaf[b])
                    for c in range(a, a + 3):
                        fill_entry(L, parent, shared, c, b, Y, G)
                    b += 1
            a += 3
        else:
            fill_column(jacobian_transposed, L, parent, row_of[a], row_leaf[a], a, Y)
            for b in range(a + 1):
                shared = common_ancestor(parent, row_leaf[a], row_leaf[b])
                fill_entry(L, parent, shared, a, b, Y, G)
            a += 1


@kernel
def branch_of_three(parent, row_leaf, a, n):
    """Return the last dof of one branch that holds the rows a, a + 1, a + 2, or NO_BRANCH.

    That is the case where the three have the same last dof, as in a contact, or successive ones,
    as the dry joints of a leg.
    """
    if a + 2 >= n:
        return NO_BRANCH
    p, q, last = row_leaf[a], row_leaf[a + 1], row_leaf[a + 2]
    if last < 0:
        return NO_BRANCH
    if (p == last and q == last) or (q >= 0 and q == parent[last] and p >= 0 and p == parent[q]):
        return last
    return NO_BRANCH


@kernel
def common_ancestor(parent, p, q):
    """Return the last dof that the branches of p and q share; −1 none, −2 if both are −2."""
    if p == EVERYWHERE:
        return q
    if q == EVERYWHERE:
        return p
    while p != q:
        if p > q:
            p = parent[p]
        else:
            q = parent[q]
    return p


@kernel
def fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, a, Y):
    """Fill the columns a, a + 1 and a + 2 of Y, which share the branch that ends at `leaf`."""
    r0, r1, r2 = row_of[a], row_of[a + 1], row_of[a + 2]
    k = leaf
    while k >= 0:
        Y[k, a] = jacobian_transposed[k, r0]
        Y[k, a + 1] = jacobian_transposed[k, r1]
        Y[k, a + 2] = jacobian_transposed[k, r2]
        k = parent[k]
    k = leaf
    while k >= 0:
        y0, y1, y2 = Y[k, a], Y[k, a + 1], Y[k, a + 2]
        k, i = parent[k], k
        j = k
        while j >= 0:
            share = L[i, j]
            Y[j, a] -= share * y0
            Y[j, a + 1] -= share * y1
            Y[j, a + 2] -= share * y2
            j = parent[j]


@kernel
def fill_column(jacobian_transposed, L, parent, row, leaf, a, Y):
    """Fill column a of Y; `leaf` is the last dof of its branch or EVERYWHERE."""
    if leaf == EVERYWHERE:
        for k in range(parent.shape[0]):
            Y[k, a] = jacobian_transposed[k, row]
    k = leaf
    while k >= 0:
        Y[k, a] = jacobian_transposed[k, row]
        k = parent[k]
    k = parent.shape[0] - 1 if leaf == EVERYWHERE else leaf
    while k >= 0:
        y, j = Y[k, a], parent[k]
        if y != 0.0:
            while j >= 0:
                Y[j, a] -= L[k, j] * y
                j = parent[j]
        k = k - 1 if leaf == EVERYWHERE else parent[k]


@kernel
def fill_block(L, parent, leaf, a, Y, G):
    """Fill the symmetric 3x3 block of G at row a from the branch that ends at `leaf`."""
    g00 = g10 = g11 = g20 = g21 = g22 = 0.0
    k = leaf
    while k >= 0:
        inverse, y0, y1, y2 = L[k, k], Y[k, a], Y[k, a + 1], Y[k, a + 2]
        x0, x1, x2 = inverse * y0, inverse * y1, inverse * y2
        g00 += x0 * y0
        g10 += x1 * y0
        g11 += x1 * y1
        g20 += x2 * y0
        g21 += x2 * y1
        g22 += x2 * y2
        k = parent[k]
    G[a, a], G[a + 1, a + 1], G[a + 2, a + 2] = g00, g11, g22
    G[a + 1, a] = G[a, a + 1] = g10
    G[a + 2, a] = G[a, a + 2] = g20
    G[a + 2, a + 1] = G[a + 1, a + 2] = g21


@kernel
def fill_blocks(L, parent, leaf, a, b, Y, G):
    """Fill the 3x3 block of G at (a, b) and its transpose; `leaf` is the last dof both share."""
    g00 = g01 = g02 = g10 = g11 = g12 = g20 = g21 = g22 = 0.0
    k = leaf
    while k >= 0:
        inverse = L[k, k]
        x0, x1, x2 = inverse * Y[k, a], inverse * Y[k, a + 1], inverse * Y[k, a + 2]
        y0, y1, y2 = Y[k, b], Y[k, b + 1], Y[k, b + 2]
        g00 += x0 * y0
        g01 += x0 * y1
        g02 += x0 * y2
        g10 += x1 * y0
        g11 += x1 * y1
        g12 += x1 * y2
        g20 += x2 * y0
        g21 += x2 * y1
        g22 += x2 * y2
        k = parent[k]
    G[a, b], G[a, b + 1], G[a, b + 2] = g00, g01, g02
    G[a + 1, b], G[a + 1, b + 1], G[a + 1, b + 2] = g10, g11, g12
    G[a + 2, b], G[a + 2, b + 1], G[a + 2, b + 2] = g20, g21, g22
    G[b, a], G[b + 1, a], G[b + 2, a] = g00, g01, g02
    G[b, a + 1], G[b + 1, a + 1], G[b + 2, a + 1] = g10, g11, g12
    G[b, a + 2], G[b + 1, a + 2], G[b + 2, a + 2] = g20, g21, g22


@kernel
def fill_entry(L, parent, leaf, a, b, Y, G):
    """Fill G_ab and G_ba from the dofs that both rows may have entries at; `leaf` is the last."""
    total = 0.0
    if leaf == EVERYWHERE:
        for k in range(parent.shape[0]):
            total += L[k, k] * Y[k, a] * Y[k, b]
    else:
        k = leaf
        while k >= 0:
            total += L[k, k] * Y[k, a] * Y[k, b]
            k = parent[k]
    G[a, b] = G[b, a] = total
