"""The Delassus matrix G = J M⁻¹ Jᵀ along the kinematic tree.

With M = Lᵀ D L (solvers/tree.py) and Y = L⁻ᵀ Jᵀ it is G = Yᵀ D⁻¹ Y. A row of J has entries on one
branch of the tree only, from its last dof to the root, and so has its column of Y. The tree is
taken apart into its trunk, six dofs on which everything hangs (the base of a legged robot), and
the limbs on it: the part of the trunk is a product of full matrices, in a limb only the rows on it
meet. Rows are taken three at a time where they share a branch (the rows of one contact
do, or the joints of one leg).
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import NO_TRUNK, TRUNK_DOFS, end_of_trunk

EVERYWHERE = -2
"""Last dof of a row that may have entries at any dof."""


@kernel
def delassus(jacobian_transposed, L, tree, row_of, row_leaf, n, Y, G):
    """Fill G (n, n).

    Args:
        jacobian_transposed: Jᵀ, zero outside the branches of the rows, shape (nv, rows).
        L: factor of M of `tree.factorise`, shape (nv, nv).
        tree: see solvers.tree.
        row_of: column of Jᵀ of every row of the problem, shape (n,) or more.
        row_leaf: in and out, last dof of the branch of every row of the problem, −1 without any
            dof, −2 where the row may have entries at any dof, shape (n,) or more; rows that are
            taken together get the same.
        n: number of rows of the problem.
        Y: scratch, shape (nv, n).
        G: out [1/kg], shape (n, n).
    """
    parent, a, trunk = tree[0], 0, common_trunk(tree, row_leaf, n)
    while a < n:
        if three_share_a_branch(tree, row_leaf, a, n):
            row_leaf[a] = row_leaf[a + 1] = leaf = row_leaf[a + 2]
            fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, trunk, a, Y)
            a += 3
        else:
            fill_column(jacobian_transposed, L, parent, row_of[a], row_leaf[a], trunk, a, Y)
            a += 1
    if trunk != NO_TRUNK:
        scale_trunk(L, trunk, n, Y)
        fill_trunk_products(trunk, n, Y, G)
    else:
        for a in range(n):
            for b in range(n):
                G[a, b] = 0.0
    add_limb_products(L, tree, row_leaf, trunk, n, Y, G)


@kernel
def common_trunk(tree, row_leaf, n):
    """Return the first dof of the trunk on which all rows hang, or NO_TRUNK."""
    trunk, common, known = tree[2], NO_TRUNK, False
    for a in range(n):
        leaf = row_leaf[a]
        if leaf == EVERYWHERE or (known and leaf >= 0 and trunk[leaf] != common):
            return NO_TRUNK
        if leaf >= 0:
            common, known = trunk[leaf], True
    return common


# ---------------------------------------------------------------- columns of Y


@kernel
def three_share_a_branch(tree, row_leaf, a, n):
    """Return whether one branch, that of row a + 2, holds the rows a, a + 1 and a + 2.

    That is the case where the three have the same last dof, as in a contact, or successive ones of
    one limb, as the dry joints of a leg.
    """
    parent, limb = tree[0], tree[1]
    if a + 2 >= n:
        return False
    p, q, last = row_leaf[a], row_leaf[a + 1], row_leaf[a + 2]
    if p < 0 or q < 0 or last < 0:
        return False
    successive = q == parent[last] and p == parent[q] and limb[p] == limb[last]
    return successive or (p == last and q == last)


@kernel
def fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, trunk, a, Y):
    """Fill the columns a, a + 1 and a + 2 of L⁻ᵀ Jᵀ on their branch, L of the limbs alone.

    Three dofs of the limb are eliminated at a time.
    """
    r0, r1, r2 = row_of[a], row_of[a + 1], row_of[a + 2]
    end = end_of_trunk(trunk)
    if trunk != NO_TRUNK:
        for k in range(trunk, trunk + TRUNK_DOFS):
            Y[k, a] = jacobian_transposed[k, r0]
            Y[k, a + 1] = jacobian_transposed[k, r1]
            Y[k, a + 2] = jacobian_transposed[k, r2]
    i = leaf
    while i >= end:
        Y[i, a] = jacobian_transposed[i, r0]
        Y[i, a + 1] = jacobian_transposed[i, r1]
        Y[i, a + 2] = jacobian_transposed[i, r2]
        i = parent[i]
    i = leaf
    while i >= end:
        i1 = parent[i]
        i2 = parent[i1] if i1 >= end else -1
        x0, x1, x2 = Y[i, a], Y[i, a + 1], Y[i, a + 2]
        if i2 < end or i2 < 0:
            j = i1
            while j >= 0:
                s = L[i, j]
                Y[j, a] -= s * x0
                Y[j, a + 1] -= s * x1
                Y[j, a + 2] -= s * x2
                j = parent[j]
            i = i1
            continue
        s = L[i, i1]
        y0, y1, y2 = Y[i1, a] - s * x0, Y[i1, a + 1] - s * x1, Y[i1, a + 2] - s * x2
        Y[i1, a], Y[i1, a + 1], Y[i1, a + 2] = y0, y1, y2
        s, t = L[i, i2], L[i1, i2]
        z0 = Y[i2, a] - s * x0 - t * y0
        z1 = Y[i2, a + 1] - s * x1 - t * y1
        z2 = Y[i2, a + 2] - s * x2 - t * y2
        Y[i2, a], Y[i2, a + 1], Y[i2, a + 2] = z0, z1, z2
        following = j = parent[i2]
        while j >= end:
            s, t, u = L[i, j], L[i1, j], L[i2, j]
            Y[j, a] -= s * x0 + t * y0 + u * z0
            Y[j, a + 1] -= s * x1 + t * y1 + u * z1
            Y[j, a + 2] -= s * x2 + t * y2 + u * z2
            j = parent[j]
        if trunk != NO_TRUNK:
            for j in range(trunk, trunk + TRUNK_DOFS):
                s, t, u = L[i, j], L[i1, j], L[i2, j]
                Y[j, a] -= s * x0 + t * y0 + u * z0
                Y[j, a + 1] -= s * x1 + t * y1 + u * z1
                Y[j, a + 2] -= s * x2 + t * y2 + u * z2
        i = following


@kernel
def fill_column(jacobian_transposed, L, parent, row, leaf, trunk, a, Y):
    """Fill column a of the same; `leaf` is the last dof of its branch or EVERYWHERE."""
    everywhere, end = leaf == EVERYWHERE, end_of_trunk(trunk)
    last = parent.shape[0] - 1 if everywhere else leaf
    k = last
    while k >= end:
        Y[k, a] = jacobian_transposed[k, row]
        k = k - 1 if everywhere else parent[k]
    if trunk != NO_TRUNK:
        for k in range(trunk, trunk + TRUNK_DOFS):
            Y[k, a] = jacobian_transposed[k, row]
    k = last
    while k >= end:
        y, j = Y[k, a], parent[k]
        while y != 0.0 and j >= 0:
            Y[j, a] -= L[k, j] * y
            j = parent[j]
        k = k - 1 if everywhere else parent[k]


@kernel
def scale_trunk(L, first, n, Y):
    """Make the rows of Y in the trunk that begins at `first` those of D^(−1/2) L⁻ᵀ Jᵀ.

    With the root on both sides of the products of the trunk, G is symmetric to the bit.
    """
    for i in range(TRUNK_DOFS - 1, -1, -1):
        for j in range(i):
            share = L[first + i, first + j]
            for a in range(n):
                Y[first + j, a] -= share * Y[first + i, a]
        size = np.sqrt(L[first + i, first + i])
        for a in range(n):
            Y[first + i, a] *= size


# ---------------------------------------------------------------- their products


@kernel
def fill_trunk_products(first, n, Y, G):
    """Fill G with what the trunk contributes, two rows at a time."""
    Z = Y[first : first + TRUNK_DOFS]
    for a in range(0, n - 1, 2):
        p0, p1, p2, p3, p4, p5 = Z[0, a], Z[1, a], Z[2, a], Z[3, a], Z[4, a], Z[5, a]
        a1 = a + 1
        q0, q1, q2, q3, q4, q5 = Z[0, a1], Z[1, a1], Z[2, a1], Z[3, a1], Z[4, a1], Z[5, a1]
        for b in range(n):
            z0, z1, z2, z3, z4, z5 = Z[0, b], Z[1, b], Z[2, b], Z[3, b], Z[4, b], Z[5, b]
            G[a, b] = p0 * z0 + p1 * z1 + p2 * z2 + p3 * z3 + p4 * z4 + p5 * z5
            G[a1, b] = q0 * z0 + q1 * z1 + q2 * z2 + q3 * z3 + q4 * z4 + q5 * z5
    if n % 2 == 1:
        a = n - 1
        for b in range(n):
            G[a, b] = (
                Z[0, a] * Z[0, b] + Z[1, a] * Z[1, b] + Z[2, a] * Z[2, b]
                + Z[3, a] * Z[3, b] + Z[4, a] * Z[4, b] + Z[5, a] * Z[5, b]
            )  # fmt: skip


@kernel
def add_limb_products(L, tree, row_leaf, trunk, n, Y, G):
    """Add to G what the limbs contribute: rows on one limb meet, and those EVERYWHERE all."""
    a, end = 0, end_of_trunk(trunk)
    while a < n:
        leaf = row_leaf[a]
        three = a + 2 < n and row_leaf[a + 1] == leaf and row_leaf[a + 2] == leaf
        if leaf == EVERYWHERE:
            add_row_everywhere(L, tree[0], row_leaf, trunk, n, a, Y, G)
        elif leaf >= end and three:
            add_blocks(L, tree, row_leaf, trunk, a, Y, G)
            a += 2
        elif leaf >= end:
            for b in range(a + 1):
                add_entries(L, tree, row_leaf, trunk, (a, a + 1), b, Y, G)
        a += 1


@kernel
def add_blocks(L, tree, row_leaf, trunk, a, Y, G):
    """Add the products of the rows a, a + 1, a + 2, on one branch, with all rows up to them."""
    parent, limb, end = tree[0], tree[1], end_of_trunk(trunk)
    leaf, b = row_leaf[a], 0
    while b <= a:
        k = row_leaf[b]
        if row_leaf[b + 1] != k or row_leaf[b + 2] != k:
            add_entries(L, tree, row_leaf, trunk, (a, a + 3), b, Y, G)
            b += 1
            continue
        if k < end or (trunk != NO_TRUNK and limb[k] != limb[leaf]):
            b += 3
            continue
        k = last_common_dof(parent, leaf, k)
        p0, p1, p2 = G[a, b], G[a, b + 1], G[a, b + 2]
        q0, q1, q2 = G[a + 1, b], G[a + 1, b + 1], G[a + 1, b + 2]
        r0, r1, r2 = G[a + 2, b], G[a + 2, b + 1], G[a + 2, b + 2]
        while k >= end:
            size = L[k, k]
            x, y, z = size * Y[k, a], size * Y[k, a + 1], size * Y[k, a + 2]
            u, v, w = Y[k, b], Y[k, b + 1], Y[k, b + 2]
            p0, p1, p2 = p0 + x * u, p1 + x * v, p2 + x * w
            q0, q1, q2 = q0 + y * u, q1 + y * v, q2 + y * w
            r0, r1, r2 = r0 + z * u, r1 + z * v, r2 + z * w
            k = parent[k]
        if a == b:  # equal but for rounding
            q0, r0, r1 = p1, p2, q2
        G[a, b], G[a, b + 1], G[a, b + 2] = p0, p1, p2
        G[a + 1, b], G[a + 1, b + 1], G[a + 1, b + 2] = q0, q1, q2
        G[a + 2, b], G[a + 2, b + 1], G[a + 2, b + 2] = r0, r1, r2
        G[b, a], G[b, a + 1], G[b, a + 2] = p0, q0, r0
        G[b + 1, a], G[b + 1, a + 1], G[b + 1, a + 2] = p1, q1, r1
        G[b + 2, a], G[b + 2, a + 1], G[b + 2, a + 2] = p2, q2, r2
        b += 3


@kernel
def add_entries(L, tree, row_leaf, trunk, rows, b, Y, G):
    """Add the products of `rows`, (first, behind the last), none EVERYWHERE, with row b."""
    parent, limb, end = tree[0], tree[1], end_of_trunk(trunk)
    other = row_leaf[b]
    for a in range(rows[0], rows[1]):
        leaf = row_leaf[a]
        meet = trunk == NO_TRUNK or limb[leaf] == limb[other]
        if leaf >= end and other >= end and meet:
            add_branch(L, parent, end, last_common_dof(parent, leaf, other), a, b, Y, G)


@kernel
def add_row_everywhere(L, parent, row_leaf, trunk, n, a, Y, G):
    """Add the products of row a, which has entries at all dofs, with all rows."""
    end = end_of_trunk(trunk)
    for b in range(n):
        other = row_leaf[b]
        if other >= end:
            add_branch(L, parent, end, other, a, b, Y, G)
        elif other == EVERYWHERE and b <= a:
            share = 0.0
            for k in range(end, parent.shape[0]):
                share += L[k, k] * Y[k, a] * Y[k, b]
            G[a, b] += share
            G[b, a] = G[a, b]


@kernel
def last_common_dof(parent, j, k):
    """Return the last dof that the branches of dofs j and k share, −1 if they share none."""
    while j != k:
        if j > k:
            j = parent[j]
        else:
            k = parent[k]
    return k


@kernel
def add_branch(L, parent, end, k, a, b, Y, G):
    """Add to G[a, b] = G[b, a] the part of the dofs from k on that are not before `end`."""
    share = 0.0
    while k >= end:
        share += L[k, k] * Y[k, a] * Y[k, b]
        k = parent[k]
    G[a, b] += share
    G[b, a] = G[a, b]
