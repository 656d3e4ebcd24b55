"""The Delassus matrix G = J M⁻¹ Jᵀ along the kinematic tree.

With M = Lᵀ D L (solvers/tree.py) and Y = L⁻ᵀ Jᵀ it is G = Yᵀ D⁻¹ Y. A row of J has entries on one
branch of the tree only, from its last dof to the root, and so has its column of Y. Rows are taken
three at a time where they share a branch (the rows of one contact do, or the joints of one leg),
and dofs three at a time along it. A product over a branch runs over all columns of Y to the left:
those of other branches hold zeros, which costs less than leaving them out.
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
            fill_three_rows(L, parent, leaf, a, Y, G)
            a += 3
        else:
            fill_column(jacobian_transposed, L, parent, row_of[a], row_leaf[a], a, Y)
            fill_row(L, parent, row_leaf[a], a, Y, G)
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
def fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, a, Y):
    """Fill the columns a, a + 1 and a + 2 of Y, which share the branch that ends at `leaf`."""
    r0, r1, r2 = row_of[a], row_of[a + 1], row_of[a + 2]
    k = leaf
    while k >= 0:
        Y[k, a] = jacobian_transposed[k, r0]
        Y[k, a + 1] = jacobian_transposed[k, r1]
        Y[k, a + 2] = jacobian_transposed[k, r2]
        k = parent[k]
    i = leaf
    while i >= 0:
        i1 = parent[i]
        i2 = parent[i1] if i1 >= 0 else -1
        if i2 < 0:
            if i1 >= 0:
                for c in range(a, a + 3):
                    Y[i1, c] -= L[i, i1] * Y[i, c]
            return
        x0, x1, x2 = Y[i, a], Y[i, a + 1], Y[i, a + 2]
        s = L[i, i1]
        y0, y1, y2 = Y[i1, a] - s * x0, Y[i1, a + 1] - s * x1, Y[i1, a + 2] - s * x2
        Y[i1, a], Y[i1, a + 1], Y[i1, a + 2] = y0, y1, y2
        s, t = L[i, i2], L[i1, i2]
        z0 = Y[i2, a] - s * x0 - t * y0
        z1 = Y[i2, a + 1] - s * x1 - t * y1
        z2 = Y[i2, a + 2] - s * x2 - t * y2
        Y[i2, a], Y[i2, a + 1], Y[i2, a + 2] = z0, z1, z2
        following = j = parent[i2]
        while j >= 0:
            s, t, u = L[i, j], L[i1, j], L[i2, j]
            Y[j, a] -= s * x0 + t * y0 + u * z0
            Y[j, a + 1] -= s * x1 + t * y1 + u * z1
            Y[j, a + 2] -= s * x2 + t * y2 + u * z2
            j = parent[j]
        i = following


@kernel
def fill_three_rows(L, parent, leaf, a, Y, G):
    """Fill the rows a, a + 1 and a + 2 of G up to the diagonal, and the same columns.

    The columns of Y for these rows share the branch that ends at `leaf`; those before are filled.
    """
    m, k = a + 3, leaf
    for b in range(m):
        G[a, b] = G[a + 1, b] = G[a + 2, b] = 0.0
    while k >= 0:
        k1 = parent[k]
        k2 = parent[k1] if k1 >= 0 else -1
        x0, x1, x2 = L[k, k] * Y[k, a], L[k, k] * Y[k, a + 1], L[k, k] * Y[k, a + 2]
        if k2 < 0:
            for b in range(m):
                G[a, b] += x0 * Y[k, b]
                G[a + 1, b] += x1 * Y[k, b]
                G[a + 2, b] += x2 * Y[k, b]
            k = k1
            continue
        y0, y1, y2 = L[k1, k1] * Y[k1, a], L[k1, k1] * Y[k1, a + 1], L[k1, k1] * Y[k1, a + 2]
        z0, z1, z2 = L[k2, k2] * Y[k2, a], L[k2, k2] * Y[k2, a + 1], L[k2, k2] * Y[k2, a + 2]
        for b in range(m):
            x, y, z = Y[k, b], Y[k1, b], Y[k2, b]
            G[a, b] += x0 * x + y0 * y + z0 * z
            G[a + 1, b] += x1 * x + y1 * y + z1 * z
            G[a + 2, b] += x2 * x + y2 * y + z2 * z
        k = parent[k2]
    for b in range(m):
        G[b, a], G[b, a + 1], G[b, a + 2] = G[a, b], G[a + 1, b], G[a + 2, b]


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
def fill_row(L, parent, leaf, a, Y, G):
    """Fill row a of G up to the diagonal, and the same column; arguments as above."""
    for b in range(a + 1):
        G[a, b] = 0.0
    k = parent.shape[0] - 1 if leaf == EVERYWHERE else leaf
    while k >= 0:
        x = L[k, k] * Y[k, a]
        for b in range(a + 1):
            G[a, b] += x * Y[k, b]
        k = k - 1 if leaf == EVERYWHERE else parent[k]
    for b in range(a):
        G[b, a] = G[a, b]
