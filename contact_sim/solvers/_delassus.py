"""The Delassus matrix G = J M⁻¹ Jᵀ along the kinematic tree.

    factor   M = Lᵀ D L                (`factorise`)
    solve    Y = L⁻ᵀ Jᵀ                (`fill_column`, `fill_three_columns`)
    multiply G = Yᵀ D⁻¹ Y              (`fill_trunk_products`, `add_limb_products`)
    motion   a = Yᵀ D⁻¹ x, x + Y f     (`fill_row_products`, `add_row_forces`)

A row of J has entries on one branch of the tree only, from its last dof to the root, and so has
its column of Y. The tree is divided into its trunk, six dofs from which everything branches (the
base of a legged robot), and the limbs on it: in the trunk the product is one of full matrices, in
a limb only the rows on it meet. Rows are taken three at a time where they share a branch (the rows
of one contact, or the joints of one leg).

    M = Lᵀ D L,   L of unit diagonal,   L_ij ≠ 0 only if j is i or an ancestor of i

Kernels take a tree as two arrays of shape (nv,) and a number: `parent[i]` is the dof before i on
the way to the root, −1 at the root, always less than i; `limb` and `rooted` are those of
`limbs_of`. There may be several trees. The branches of a legged robot never mix, so the cost grows
linearly with the number of legs. Loops over the trunk have a known length, which is faster than
following the parents. A factor holds L below its diagonal and 1/D on it; the upper triangle and
the entries between branches are neither read nor written. The cost grows with the square of the
depth of the dofs: for deep trees dynamics/_articulated.py applies the same factor without forming
it.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 6.5.
"""

from __future__ import annotations

import numpy as np

from contact_sim._types import Indices
from contact_sim.solvers._jit import kernel

TRUNK = -1  # value of `limb` for the dofs of the trunk
TRUNK_DOFS = 6  # dofs of a trunk
FAR = 24  # dofs up to which a limb is eliminated one by one: no limb of a legged robot is longer
EVERYWHERE = -2  # value of `row_leaf` for a row that may have entries at any dof


def limbs_of(parent: Indices) -> tuple[Indices, int]:
    """Return the limb of every dof, its first dof or TRUNK, (nv,), and the dofs of the first tree.

    The trunk is the chain of the first six dofs if all others of their tree branch from it: the
    floating base of a legged robot. Further trees are limbs of their own. Without a trunk, or if
    the dofs of its tree are not the first ones, the number is 0.
    """
    nv = len(parent)
    # root of the tree of each dof, and number of dofs of the first tree
    root = np.arange(nv)
    for k in range(nv):
        if parent[k] >= 0:
            root[k] = root[parent[k]]
    rooted = int(np.count_nonzero(root == 0))
    # is there a trunk: six dofs in a chain, all others behind the sixth
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


# Factor of the mass matrix, and solves with it.


@kernel
def factorise(L, tree):
    """Overwrite the lower triangle of the mass matrix `L` (nv, nv) with its factor."""
    parent, limb, rooted, trunk = tree[0], tree[1], tree[2], trunk_of(tree)
    k = L.shape[0]
    while k > trunk:
        k -= 1
        if k - limb[k] > FAR and parent[k] == k - 1:
            eliminate_two(L, parent, k, trunk, k < rooted)
            k -= 1
            continue
        # eliminate dof k of a limb from its ancestors in the limb ...
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
        # ... in the trunk
        if k < rooted:
            eliminate_from_trunk(L, k, TRUNK_DOFS - 1, inverse)
    # the trunk itself: a dense 6x6 factorisation
    if trunk:
        for k in range(TRUNK_DOFS - 1, -1, -1):
            inverse = 1.0 / L[k, k]
            L[k, k] = inverse
            eliminate_from_trunk(L, k, k - 1, inverse)


@kernel
def eliminate_two(L, parent, k, trunk, on_trunk):
    """Eliminate dofs k and k − 1, of a long limb, from their ancestors, `on_trunk` or without one.

    Entries get the same numbers in the same order as by one dof at a time: results are equal to
    the bit. Loops go along runs, dofs that follow one another, where they take several at once.
    """
    one, other = L[k], L[k - 1]
    one[k] = p = 1.0 / one[k]
    first = run_begin(parent, k - 1, trunk)
    share = one[k - 1] * p
    for j in range(first, k):
        other[j] -= share * one[j]
    j = parent[first]
    while j >= trunk:
        other[j] -= share * one[j]
        j = parent[j]
    if on_trunk:
        for j in range(TRUNK_DOFS):
            other[j] -= share * one[j]
    one[k - 1] = share
    other[k - 1] = q = 1.0 / other[k - 1]
    i = parent[k - 1]
    while i >= trunk:
        if i < first:
            first = run_begin(parent, i, trunk)
        s, t, row = one[i] * p, other[i] * q, L[i]
        for j in range(first, i + 1):
            row[j] = (row[j] - s * one[j]) - t * other[j]
        j = parent[first]
        while j >= trunk:
            row[j] = (row[j] - s * one[j]) - t * other[j]
            j = parent[j]
        if on_trunk:
            for j in range(TRUNK_DOFS):
                row[j] = (row[j] - s * one[j]) - t * other[j]
        one[i], other[i] = s, t
        i = parent[i]
    if on_trunk:
        eliminate_from_trunk(L, k, TRUNK_DOFS - 1, p)
        eliminate_from_trunk(L, k - 1, TRUNK_DOFS - 1, q)


@kernel
def run_begin(parent, k, trunk):
    """Return the first dof of the run to k: each but the first follows its parent."""
    while k > trunk and parent[k] == k - 1:
        k -= 1
    return k


@kernel
def eliminate_from_trunk(L, k, last, inverse):
    """Eliminate dof k from the rows of the trunk, from `last` on; `inverse` is 1/D of k."""
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
    parent, limb, rooted, trunk = tree[0], tree[1], tree[2], trunk_of(tree)
    first = L.shape[0]
    # limbs, from their ends to the trunk; then the trunk
    for i in range(L.shape[0] - 1, trunk - 1, -1):
        y = x[i]
        if y != 0.0:
            j = parent[i]
            # along the run of a long limb, several dofs at once
            if i - limb[i] > FAR and j == i - 1:
                if j < first:
                    first = run_begin(parent, j, trunk)
                row = L[i]
                for m in range(first, i):
                    x[m] -= row[m] * y
                j = parent[first]
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
    parent, limb, rooted, trunk = tree[0], tree[1], tree[2], trunk_of(tree)
    first = trunk
    # the trunk; then limbs, from the trunk to their ends
    if trunk:
        for i in range(TRUNK_DOFS):
            y = x[i] * L[i, i]
            for j in range(i):
                y -= L[i, j] * x[j]
            x[i] = y
    for i in range(trunk, L.shape[0]):
        y = x[i] * L[i, i]
        j = parent[i]
        if j != i - 1:
            first = i  # a run begins
        elif i - limb[i] > FAR:
            row = L[i]
            for m in range(i - 1, first - 1, -1):
                y -= row[m] * x[m]
            j = parent[first]
        while j >= trunk:
            y -= L[i, j] * x[j]
            j = parent[j]
        if i < rooted:
            for j in range(TRUNK_DOFS):
                y -= L[i, j] * x[j]
        x[i] = y


# G = Yᵀ D⁻¹ Y.


@kernel
def delassus(jacobian_transposed, L, tree, row_of, row_leaf, n, Y, G):
    """Fill G (n, n).

    Args:
        jacobian_transposed: Jᵀ, zero outside the branches of the rows, shape (nv, rows).
        L: factor of M of `factorise`, shape (nv, nv).
        tree: (parent, limb, rooted), see the module.
        row_of: column of Jᵀ of every row of the problem, shape (n,) or more.
        row_leaf: in and out, last dof of the branch of every row of the problem, −1 without any
            dof, EVERYWHERE where the row may have entries at any dof, shape (n,) or more; rows
            that are taken together get the same.
        n: number of rows of the problem.
        Y: scratch, shape (nv, n).
        G: out [1/kg], shape (n, n).
    """
    # Yᵀ D⁻¹ Y: the trunk fills G, the limbs add to it
    trunk = fill_branch_columns(jacobian_transposed, L, tree, row_of, row_leaf, n, Y)
    if trunk:
        scale_trunk(L, n, Y)
        fill_trunk_products(n, Y, G)
    else:
        for a in range(n):
            for b in range(n):
                G[a, b] = 0.0
    add_limb_products(L, tree, row_leaf, trunk, n, Y, G)


@kernel
def delassus_diagonal(jacobian_transposed, L, tree, row_of, row_leaf, n, Y, G):
    """Fill the diagonal of G, with the arguments of `delassus`."""
    trunk = fill_branch_columns(jacobian_transposed, L, tree, row_of, row_leaf, n, Y)
    parent = tree[0]
    if trunk:
        scale_trunk(L, n, Y)
    for a in range(n):
        total = 0.0
        for k in range(trunk):
            total += Y[k, a] * Y[k, a]
        everywhere = row_leaf[a] == EVERYWHERE
        k = L.shape[0] - 1 if everywhere else row_leaf[a]
        while k >= trunk:
            total += L[k, k] * Y[k, a] * Y[k, a]
            k = k - 1 if everywhere else parent[k]
        G[a, a] = total


@kernel
def fill_branch_columns(jacobian_transposed, L, tree, row_of, row_leaf, n, Y):
    """Fill the limbs of Y = L⁻ᵀ Jᵀ, three columns of one branch at a time; return the trunk."""
    parent, rooted, a = tree[0], tree[2], 0
    trunk = trunk_of_rows(tree, row_leaf, n)
    while a < n:
        three = three_share_a_branch(tree, row_leaf, a, n)
        leaf = row_leaf[a + 2] if three else row_leaf[a]
        own = trunk if leaf < rooted else 0  # of the trunk: EVERYWHERE, too
        if three:
            row_leaf[a] = row_leaf[a + 1] = leaf
            fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, own, a, Y)
        else:
            fill_column(jacobian_transposed, L, parent, row_of[a], leaf, own, a, Y)
        # rows of other trees have no entries in the trunk
        for b in range(a, a + 3 if three else a + 1):
            for k in range(trunk - own):
                Y[k, b] = 0.0
        a += 3 if three else 1
    return trunk


@kernel
def trunk_of_rows(tree, row_leaf, n):
    """Return the dofs of the trunk if one of `n` rows is on its tree, else 0."""
    for a in range(n):
        if row_leaf[a] == EVERYWHERE or 0 <= row_leaf[a] < tree[2]:  # its dofs are the first ones
            return trunk_of(tree)
    return 0


@kernel
def three_share_a_branch(tree, row_leaf, a, n):
    """Return whether one branch, that of row a + 2, contains the rows a, a + 1 and a + 2."""
    # they have the same last dof, as in a contact, or successive ones of a limb, as joints of a
    # leg
    parent, limb, _ = tree
    if a + 2 >= n:
        return False
    p, q, last = row_leaf[a], row_leaf[a + 1], row_leaf[a + 2]
    if p < 0 or q < 0 or last < 0:
        return False
    successive = q == parent[last] and p == parent[q] and limb[p] == limb[last]
    return successive or (p == last and q == last)


@kernel
def fill_three_columns(jacobian_transposed, L, parent, row_of, leaf, trunk, a, Y):
    """Fill the columns a, a + 1 and a + 2 of L⁻ᵀ Jᵀ on their branch; in the limbs only."""
    r0, r1, r2 = row_of[a], row_of[a + 1], row_of[a + 2]
    # copy Jᵀ along the branch
    if trunk:
        for k in range(TRUNK_DOFS):
            Y[k, a] = jacobian_transposed[k, r0]
            Y[k, a + 1] = jacobian_transposed[k, r1]
            Y[k, a + 2] = jacobian_transposed[k, r2]
    i = leaf
    while i >= trunk:
        Y[i, a] = jacobian_transposed[i, r0]
        Y[i, a + 1] = jacobian_transposed[i, r1]
        Y[i, a + 2] = jacobian_transposed[i, r2]
        i = parent[i]
    # eliminate the dofs from the leaf on, three at a time
    i = leaf
    while i >= trunk:
        i1 = parent[i]
        i2 = parent[i1] if i1 >= trunk else -1
        x0, x1, x2 = Y[i, a], Y[i, a + 1], Y[i, a + 2]
        # fewer than three left: one at a time
        if i2 < trunk:
            j = i1
            while j >= 0:
                s = L[i, j]
                Y[j, a] -= s * x0
                Y[j, a + 1] -= s * x1
                Y[j, a + 2] -= s * x2
                j = parent[j]
            i = i1
            continue
        # three dofs against each other, then against the rest of the branch
        s = L[i, i1]
        y0, y1, y2 = Y[i1, a] - s * x0, Y[i1, a + 1] - s * x1, Y[i1, a + 2] - s * x2
        Y[i1, a], Y[i1, a + 1], Y[i1, a + 2] = y0, y1, y2
        s, t = L[i, i2], L[i1, i2]
        z0 = Y[i2, a] - s * x0 - t * y0
        z1 = Y[i2, a + 1] - s * x1 - t * y1
        z2 = Y[i2, a + 2] - s * x2 - t * y2
        Y[i2, a], Y[i2, a + 1], Y[i2, a + 2] = z0, z1, z2
        following = j = parent[i2]
        while j >= trunk:
            s, t, u = L[i, j], L[i1, j], L[i2, j]
            Y[j, a] -= s * x0 + t * y0 + u * z0
            Y[j, a + 1] -= s * x1 + t * y1 + u * z1
            Y[j, a + 2] -= s * x2 + t * y2 + u * z2
            j = parent[j]
        if trunk:
            for j in range(TRUNK_DOFS):
                s, t, u = L[i, j], L[i1, j], L[i2, j]
                Y[j, a] -= s * x0 + t * y0 + u * z0
                Y[j, a + 1] -= s * x1 + t * y1 + u * z1
                Y[j, a + 2] -= s * x2 + t * y2 + u * z2
        i = following


@kernel
def fill_column(jacobian_transposed, L, parent, row, leaf, trunk, a, Y):
    """Fill column a of the same; `leaf` is the last dof of its branch or EVERYWHERE."""
    everywhere = leaf == EVERYWHERE
    last = parent.shape[0] - 1 if everywhere else leaf
    k = last
    while k >= trunk:
        Y[k, a] = jacobian_transposed[k, row]
        k = k - 1 if everywhere else parent[k]
    for k in range(trunk):
        Y[k, a] = jacobian_transposed[k, row]
    k = last
    while k >= trunk:
        y, j = Y[k, a], parent[k]
        while y != 0.0 and j >= 0:
            Y[j, a] -= L[k, j] * y
            j = parent[j]
        k = k - 1 if everywhere else parent[k]


@kernel
def scale_trunk(L, n, Y):
    """Turn the trunk rows of Y into those of D^(−1/2) L⁻ᵀ Jᵀ."""
    # with the square root on both sides of the product, G is symmetric to the bit
    for i in range(TRUNK_DOFS - 1, -1, -1):
        for j in range(i):
            share = L[i, j]
            for a in range(n):
                Y[j, a] -= share * Y[i, a]
        size = np.sqrt(L[i, i])
        for a in range(n):
            Y[i, a] *= size


@kernel
def fill_trunk_products(n, Y, G):
    """Fill G with the products of the trunk."""
    for a in range(n):
        p0, p1, p2, p3, p4, p5 = Y[0, a], Y[1, a], Y[2, a], Y[3, a], Y[4, a], Y[5, a]
        for b in range(n):
            G[a, b] = (
                p0 * Y[0, b] + p1 * Y[1, b] + p2 * Y[2, b]
                + p3 * Y[3, b] + p4 * Y[4, b] + p5 * Y[5, b]
            )  # fmt: skip


@kernel
def add_limb_products(L, tree, row_leaf, trunk, n, Y, G):
    """Add the products of the limbs to G: rows on one limb meet; EVERYWHERE meets all."""
    a = 0
    while a < n:
        leaf = row_leaf[a]
        three = a + 2 < n and row_leaf[a + 1] == leaf and row_leaf[a + 2] == leaf
        if leaf == EVERYWHERE:
            add_row_everywhere(L, tree[0], row_leaf, trunk, n, a, Y, G)
        elif leaf >= trunk and three:
            add_blocks(L, tree, row_leaf, trunk, a, Y, G)
            a += 2
        elif leaf >= trunk:
            for b in range(a + 1):
                add_entries(L, tree, row_leaf, trunk, (a, a + 1), b, Y, G)
        a += 1


@kernel
def add_blocks(L, tree, row_leaf, trunk, a, Y, G):
    """Add the products of the rows a, a + 1, a + 2, on one branch, with all rows up to them."""
    parent, limb, _ = tree
    leaf, b = row_leaf[a], 0
    while b <= a:
        k = row_leaf[b]
        # rows b that are no triple, or are on another limb
        if row_leaf[b + 1] != k or row_leaf[b + 2] != k:
            add_entries(L, tree, row_leaf, trunk, (a, a + 3), b, Y, G)
            b += 1
            continue
        if k < trunk or limb[k] != limb[leaf]:
            b += 3
            continue
        # 3x3 block: sum over the dofs that both branches share
        k = last_common_dof(parent, leaf, k)
        p0, p1, p2 = G[a, b], G[a, b + 1], G[a, b + 2]
        q0, q1, q2 = G[a + 1, b], G[a + 1, b + 1], G[a + 1, b + 2]
        r0, r1, r2 = G[a + 2, b], G[a + 2, b + 1], G[a + 2, b + 2]
        while k >= trunk:
            size = L[k, k]
            x, y, z = size * Y[k, a], size * Y[k, a + 1], size * Y[k, a + 2]
            u, v, w = Y[k, b], Y[k, b + 1], Y[k, b + 2]
            p0, p1, p2 = p0 + x * u, p1 + x * v, p2 + x * w
            q0, q1, q2 = q0 + y * u, q1 + y * v, q2 + y * w
            r0, r1, r2 = r0 + z * u, r1 + z * v, r2 + z * w
            k = parent[k]
        if a == b:  # symmetric to the bit
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
    """Add the products of `rows`, (first, one past the last), none EVERYWHERE, with row b."""
    parent, limb, _ = tree
    other = row_leaf[b]
    for a in range(rows[0], rows[1]):
        leaf = row_leaf[a]
        if leaf >= trunk and other >= trunk and limb[leaf] == limb[other]:
            add_branch(L, parent, trunk, last_common_dof(parent, leaf, other), a, b, Y, G)


@kernel
def add_row_everywhere(L, parent, row_leaf, trunk, n, a, Y, G):
    """Add the products of row a, which has entries at all dofs, with all rows."""
    for b in range(n):
        other = row_leaf[b]
        if other >= trunk:
            add_branch(L, parent, trunk, other, a, b, Y, G)
        elif other == EVERYWHERE and b <= a:
            share = 0.0
            for k in range(trunk, parent.shape[0]):
                share += L[k, k] * Y[k, a] * Y[k, b]
            G[a, b] += share
            G[b, a] = G[a, b]


@kernel
def add_branch(L, parent, trunk, k, a, b, Y, G):
    """Add the part of the dofs from k to the trunk to G[a, b] = G[b, a]."""
    share = 0.0
    while k >= trunk:
        share += L[k, k] * Y[k, a] * Y[k, b]
        k = parent[k]
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


# Products with Y alone: M⁻¹ = L⁻¹ D⁻¹ L⁻ᵀ, so half a solve serves accelerations of rows and dofs.
#
#     x = L⁻ᵀ b,   J M⁻¹ b = Yᵀ D⁻¹ x,   M⁻¹ (b + Jᵀ f) = L⁻¹ D⁻¹ (x + Y f)


@kernel
def fill_row_products(solved, x, out):
    """Fill J M⁻¹ b of the rows, from x = L⁻ᵀ b (nv,).

    Args:
        solved: (L, tree, row_leaf, Y) as `delassus` has left them: the trunk of Y holds
            D^(−1/2) L⁻ᵀ Jᵀ.
        x: as above, shape (nv,).
        out: out, shape (n,) or more.
    """
    L, (parent, _, _), row_leaf, Y = solved
    nv, n = Y.shape
    trunk = trunk_of_rows(solved[1], row_leaf, n)
    for a in range(n):
        out[a] = 0.0
    for k in range(trunk):
        share = np.sqrt(L[k, k]) * x[k]
        for a in range(n):
            out[a] += share * Y[k, a]
    for a in range(n):
        everywhere = row_leaf[a] == EVERYWHERE
        k, total = nv - 1 if everywhere else row_leaf[a], out[a]
        while k >= trunk:
            total += L[k, k] * x[k] * Y[k, a]
            k = k - 1 if everywhere else parent[k]
        out[a] = total


@kernel
def add_row_forces(solved, force, x):
    """Add Y f to x (nv,), with the forces f of the rows (n,); `solved` as above."""
    L, (parent, _, _), row_leaf, Y = solved
    nv, n = Y.shape
    trunk = trunk_of_rows(solved[1], row_leaf, n)
    if trunk:
        p0 = p1 = p2 = p3 = p4 = p5 = 0.0
        for a in range(n):
            f = force[a]
            p0, p1, p2 = p0 + f * Y[0, a], p1 + f * Y[1, a], p2 + f * Y[2, a]
            p3, p4, p5 = p3 + f * Y[3, a], p4 + f * Y[4, a], p5 + f * Y[5, a]
        x[0], x[1] = x[0] + p0 / np.sqrt(L[0, 0]), x[1] + p1 / np.sqrt(L[1, 1])
        x[2], x[3] = x[2] + p2 / np.sqrt(L[2, 2]), x[3] + p3 / np.sqrt(L[3, 3])
        x[4], x[5] = x[4] + p4 / np.sqrt(L[4, 4]), x[5] + p5 / np.sqrt(L[5, 5])
    for a in range(n):
        everywhere = row_leaf[a] == EVERYWHERE
        k = nv - 1 if everywhere else row_leaf[a]
        while k >= trunk:
            x[k] += Y[k, a] * force[a]
            k = k - 1 if everywhere else parent[k]
