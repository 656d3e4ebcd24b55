"""Articulated-body inertias: the factor of the mass matrix, applied in O(n) without being formed.

    articulate           the factor, from the inertias of the bodies
    solve_articulated    M̂⁻¹ x
    half_solves          Y = L⁻ᵀ Jᵀ for M̂ = Lᵀ L, so that G = Yᵀ Y
    products             Yᵀ Y along the branches
    inertia_product      M̂ x
    bodies_energy        ½ vᵀ M v
    inertia_diagonal     the diagonal of M
    tree_inertia         M̂ itself, for what needs it

The mass matrix of a branch is full: to fill it takes O(n²), and to factorise it from the leaf to
the root (solvers/_delassus.py) O(n³). The same elimination is one of bodies. The inertia I of a
body, with all behind it that its joints let go, loses what a dof k takes up:

    U = I S_k,   d = S_k · U + a_k,   I ← I − U Uᵀ / d,   then I is added to that of the parent

a_k is what stands on the diagonal besides the bodies: armature, h D and h² K. √d is the diagonal
of L. Solves with Lᵀ go from leaf to root with a force p, those with L back with a twist a:

    y_k = (x_k − S_k · p) / √d,         p ← p + U y_k / √d
    x_k = (y_k − U · a / √d) / √d,      a ← a + S_k x_k

All is in world axes about one point, as in _rigid_body.py, so nothing is transformed on the way.
A row of the factor is U / √d, then 1 / √d, and is not used further.

[Featherstone 2008] Rigid Body Dynamics Algorithms, section 7.3. [Rodriguez, Jain and
Kreutz-Delgado 1991] A spatial operator algebra for manipulator modeling and control.
"""

from __future__ import annotations

import numpy as np

from contact_sim._types import Indices
from contact_sim.arrays._fields import BASE_NUMBERS, BODY_NUMBERS
from contact_sim.dynamics._vectors import add, cross, dot, inertia_times, put, scaled, sub, vec
from contact_sim.solvers._delassus import EVERYWHERE, last_common_dof
from contact_sim.solvers._jit import kernel

INVERSE_ROOT = 6
"""Place of 1/√d in a row of the factor; the place behind it keeps rows aligned."""
DEEP = 14.0
"""Root mean square of the depth of dofs from which on the mass matrix is not formed."""


def is_deep(dof_parent: Indices) -> bool:
    """Return whether the branches of trees are so long that articulated bodies are faster.

    A dof whose branch to the root has d dofs costs d² in a factorisation of M, and a constant
    here. `dof_parent` (nv,) is the dof before each, −1 at a root.
    """
    depth = np.ones(len(dof_parent))
    for k, parent in enumerate(dof_parent):
        if parent >= 0:
            depth[k] = depth[parent] + 1.0
    return bool(len(depth)) and float(np.mean(depth**2)) > DEEP**2


# The factor.


@kernel
def articulate(parent, v_index, columns, inertia, diagonal, less, body, factor):
    """Fill the factor of M̂, (nv, FACTOR_NUMBERS).

    Args:
        parent: body before each, (nb,).
        v_index: first dof of each body, and one past the last, (nb + 1,).
        columns: twists S of unit joint speeds, (nv, 6).
        inertia: those of the bodies as in `world_inertia`, (nb, 10).
        diagonal: a_k, shape (nv,).
        less: (h, D): a_k is less by h D_k.
        body: scratch, (nb, BODY_NUMBERS).
        factor: out.
    """
    for j in range(1, parent.shape[0]):
        start_body(inertia[j], body[j])
    h, damping = less
    for j in range(parent.shape[0] - 1, 0, -1):
        own = body[j]
        for k in range(v_index[j + 1] - 1, v_index[j] - 1, -1):
            f, n = articulated_momentum(own, columns[k])
            s, w, row = vec(columns[k], 0), vec(columns[k], 3), factor[k]
            scale = 1.0 / np.sqrt(dot(s, f) + dot(w, n) + diagonal[k] - h * damping[k])
            f, n = scaled(scale, f), scaled(scale, n)
            put(row, 0, f)
            put(row, 3, n)
            row[INVERSE_ROOT] = scale
            take_up(own, f, n)
        if parent[j] > 0:
            before = body[parent[j]]
            for e in range(BODY_NUMBERS):
                before[e] += own[e]


@kernel
def start_body(inertia, out):
    """Fill the 6x6 inertia of a body alone.

    Its numbers are the linear block (xx, xy, xz, yy, yz, zz), linear by angular (3x3, row by
    row), and the angular block.
    """
    m, (x, y, z) = inertia[0], vec(inertia, 1)
    out[0] = out[3] = out[5] = m
    out[1] = out[2] = out[4] = 0.0
    put(out, 6, (0.0, z, -y))
    put(out, 9, (-z, 0.0, x))
    put(out, 12, (y, -x, 0.0))
    for e in range(6):
        out[15 + e] = inertia[4 + e]


@kernel
def articulated_momentum(own, column):
    """Return force and moment I S of a 6x6 inertia and a twist."""
    s, w = vec(column, 0), vec(column, 3)
    b1, b2, b3 = vec(own, 6), vec(own, 9), vec(own, 12)
    f = (
        own[0] * s[0] + own[1] * s[1] + own[2] * s[2] + dot(b1, w),
        own[1] * s[0] + own[3] * s[1] + own[4] * s[2] + dot(b2, w),
        own[2] * s[0] + own[4] * s[1] + own[5] * s[2] + dot(b3, w),
    )
    turned = add(add(scaled(s[0], b1), scaled(s[1], b2)), scaled(s[2], b3))
    c = own[15], own[16], own[17], own[18], own[19], own[20]
    n = (
        turned[0] + c[0] * w[0] + c[1] * w[1] + c[2] * w[2],
        turned[1] + c[1] * w[0] + c[3] * w[1] + c[4] * w[2],
        turned[2] + c[2] * w[0] + c[4] * w[1] + c[5] * w[2],
    )
    return f, n


@kernel
def take_up(own, f, n):
    """Subtract u uᵀ from a 6x6 inertia, u = (f, n)."""
    own[0] -= f[0] * f[0]
    own[1] -= f[0] * f[1]
    own[2] -= f[0] * f[2]
    own[3] -= f[1] * f[1]
    own[4] -= f[1] * f[2]
    own[5] -= f[2] * f[2]
    for i in range(3):
        own[6 + i] -= f[0] * n[i]
        own[9 + i] -= f[1] * n[i]
        own[12 + i] -= f[2] * n[i]
    own[15] -= n[0] * n[0]
    own[16] -= n[0] * n[1]
    own[17] -= n[0] * n[2]
    own[18] -= n[1] * n[1]
    own[19] -= n[1] * n[2]
    own[20] -= n[2] * n[2]


# Solves. `motion` is (dof_parent, columns, factor); a wrench is (f, n).


@kernel
def eliminated(motion, k, x, p):
    """Return y_k, and the wrench p behind dof k of the solve with Lᵀ."""
    S, row = motion[1][k], motion[2][k]
    y = (x - dot(vec(S, 0), p[0]) - dot(vec(S, 3), p[1])) * row[INVERSE_ROOT]
    return y, (add(p[0], scaled(y, vec(row, 0))), add(p[1], scaled(y, vec(row, 3))))


@kernel
def solve_articulated(motion, force, x):
    """Overwrite `x` (nv,) with M̂⁻¹ x; `force` is scratch, (nv, 6)."""
    dof_parent, columns, factor = motion
    eliminate_everywhere(motion, force, x, 1)
    # from the roots on: `force` becomes the twists that the dofs give to what is behind them
    for k in range(x.shape[0]):
        S, row, before = columns[k], factor[k], dof_parent[k]
        y, v, w = x[k], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if before >= 0:
            v, w = vec(force[before], 0), vec(force[before], 3)
            y -= dot(vec(row, 0), v) + dot(vec(row, 3), w)
        x[k] = y = y * row[INVERSE_ROOT]
        put(force[k], 0, add(v, scaled(y, vec(S, 0))))
        put(force[k], 3, add(w, scaled(y, vec(S, 3))))


@kernel
def eliminate_everywhere(motion, force, y, step):
    """Overwrite a vector with the solution of Lᵀ y = x; entries are `step` apart."""
    dof_parent = motion[0]
    for k in range(dof_parent.shape[0]):
        put(force[k], 0, (0.0, 0.0, 0.0))
        put(force[k], 3, (0.0, 0.0, 0.0))
    for k in range(dof_parent.shape[0] - 1, -1, -1):
        p = vec(force[k], 0), vec(force[k], 3)
        y[step * k], p = eliminated(motion, k, y[step * k], p)
        if dof_parent[k] >= 0:
            before = force[dof_parent[k]]
            put(before, 0, add(vec(before, 0), p[0]))
            put(before, 3, add(vec(before, 3), p[1]))


@kernel
def half_solves(motion, jacobian_transposed, columns_of, rows, force, Y):
    """Fill the columns of Y = L⁻ᵀ Jᵀ on the branches of their rows; entries elsewhere stay.

    Args:
        motion: see above.
        jacobian_transposed: Jᵀ row by row, shape (nv * columns_of,).
        columns_of: columns of Jᵀ.
        rows: (row_of, row_leaf, n) as in `delassus`.
        force: scratch, (nv, 6).
        Y: out row by row, shape (nv * n,) or more.
    """
    (row_of, row_leaf, n), dof_parent, a = rows, motion[0], 0
    while a < n:
        k = row_leaf[a]
        if k == EVERYWHERE:
            for i in range(dof_parent.shape[0]):
                Y[n * i + a] = jacobian_transposed[columns_of * i + row_of[a]]
            eliminate_everywhere(motion, force, Y[a:], n)
            a += 1
        elif is_triple(row_leaf, a, n):
            r0, r1, r2 = row_of[a], row_of[a + 1], row_of[a + 2]
            zero = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            p0, p1, p2 = zero, zero, zero
            while k >= 0:
                at, i = columns_of * k, n * k + a
                Y[i], p0 = eliminated(motion, k, jacobian_transposed[at + r0], p0)
                Y[i + 1], p1 = eliminated(motion, k, jacobian_transposed[at + r1], p1)
                Y[i + 2], p2 = eliminated(motion, k, jacobian_transposed[at + r2], p2)
                k = dof_parent[k]
            a += 3
        else:
            p = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            while k >= 0:
                x = jacobian_transposed[columns_of * k + row_of[a]]
                Y[n * k + a], p = eliminated(motion, k, x, p)
                k = dof_parent[k]
            a += 1


@kernel
def is_triple(row_leaf, a, n):
    """Return whether rows a, a + 1 and a + 2 are on one branch, as those of a contact."""
    return a + 2 < n and row_leaf[a] >= 0 and row_leaf[a] == row_leaf[a + 1] == row_leaf[a + 2]


@kernel
def products(dof_parent, row_leaf, n, Y, G):
    """Fill G = Yᵀ Y (n, n), Y that of `half_solves`: rows meet on the branch that they share."""
    a = 0
    while a < n:
        three_a, b = is_triple(row_leaf, a, n), 0
        while b <= a:
            three_b = is_triple(row_leaf, b, n)
            if three_a and three_b:
                fill_block(dof_parent, row_leaf, n, (a, b), Y, G)
            else:
                for i in range(a, a + 3 if three_a else a + 1):
                    for j in range(b, b + 3 if three_b else b + 1):
                        G[i, j] = G[j, i] = product(dof_parent, row_leaf, n, (i, j), Y)
            b += 3 if three_b else 1
        a += 3 if three_a else 1


@kernel
def fill_block(dof_parent, row_leaf, n, place, Y, G):
    """Fill the 3x3 block of two contacts, and its transpose."""
    a, b = place
    p, q, r = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    k = last_common_dof(dof_parent, row_leaf[a], row_leaf[b])
    while k >= 0:
        x, y = vec(Y, n * k + a), vec(Y, n * k + b)
        p, q, r = add(p, scaled(x[0], y)), add(q, scaled(x[1], y)), add(r, scaled(x[2], y))
        k = dof_parent[k]
    put(G[a], b, p)
    put(G[a + 1], b, q)
    put(G[a + 2], b, r)
    for i in range(3):
        put(G[b + i], a, (p[i], q[i], r[i]))


@kernel
def product(dof_parent, row_leaf, n, place, Y):
    """Return one entry of Yᵀ Y."""
    (a, b), total = place, 0.0
    one, other = row_leaf[a], row_leaf[b]
    if one == EVERYWHERE and other == EVERYWHERE:
        for k in range(dof_parent.shape[0]):
            total += Y[n * k + a] * Y[n * k + b]
        return total
    if one == EVERYWHERE or other == EVERYWHERE:
        k = max(one, other)
    else:
        k = last_common_dof(dof_parent, one, other)
    while k >= 0:
        total += Y[n * k + a] * Y[n * k + b]
        k = dof_parent[k]
    return total


# The mass matrix itself. `bodies` is (parent, v_index, columns, inertia) as in `articulate`.


@kernel
def inertia_product(bodies, diagonal, x, momentum, out):
    """Fill out = M̂ x (nv,), `diagonal` the a_k; `momentum` is scratch, (nb, 6)."""
    parent, v_index, columns, inertia = bodies
    fill_twists(bodies, x, momentum)
    # momentum of each body, then of all behind it
    for j in range(1, parent.shape[0]):
        p = body_momentum(inertia[j], vec(momentum[j], 0), vec(momentum[j], 3))
        put(momentum[j], 0, p[0])
        put(momentum[j], 3, p[1])
    for j in range(parent.shape[0] - 1, 0, -1):
        f, n = vec(momentum[j], 0), vec(momentum[j], 3)
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            out[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n) + diagonal[k] * x[k]
        before = momentum[parent[j]]
        put(before, 0, add(vec(before, 0), f))
        put(before, 3, add(vec(before, 3), n))


@kernel
def fill_twists(bodies, x, twist):
    """Fill the twists of the bodies at joint speeds x (nv,); that of the world is zero."""
    parent, v_index, columns, _ = bodies
    put(twist[0], 0, (0.0, 0.0, 0.0))
    put(twist[0], 3, (0.0, 0.0, 0.0))
    for j in range(1, parent.shape[0]):
        v, w = vec(twist[parent[j]], 0), vec(twist[parent[j]], 3)
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            v, w = add(v, scaled(x[k], vec(S, 0))), add(w, scaled(x[k], vec(S, 3)))
        put(twist[j], 0, v)
        put(twist[j], 3, w)


@kernel
def body_momentum(inertia, v, w):
    """Return momentum and angular momentum about the origin of a body."""
    mc = vec(inertia, 1)
    return (
        sub(scaled(inertia[0], v), cross(mc, w)),
        add(inertia_times(inertia, w), cross(mc, v)),
    )


@kernel
def bodies_energy(bodies, armature, v, twist):
    """Return ½ vᵀ M v [J], `armature` included; `twist` is scratch, (nb, 6)."""
    inertia, energy = bodies[3], 0.0
    fill_twists(bodies, v, twist)
    for j in range(1, inertia.shape[0]):
        linear, angular = vec(twist[j], 0), vec(twist[j], 3)
        f, n = body_momentum(inertia[j], linear, angular)
        energy += 0.5 * (dot(linear, f) + dot(angular, n))
    for k in range(v.shape[0]):
        energy += 0.5 * armature[k] * v[k] * v[k]
    return energy


@kernel
def inertia_diagonal(bodies, armature, composite, out):
    """Fill the diagonal of M (nv,), and in `composite` each body with all behind it, (nb, 10)."""
    parent, v_index, columns, inertia = bodies
    for j in range(parent.shape[0]):
        for e in range(10):
            composite[j, e] = inertia[j, e]
    for j in range(parent.shape[0] - 1, 0, -1):
        C, P = composite[j], composite[parent[j]]
        for k in range(v_index[j], v_index[j + 1]):
            s, w = vec(columns[k], 0), vec(columns[k], 3)
            f, n = body_momentum(C, s, w)
            out[k] = dot(s, f) + dot(w, n) + armature[k]
        for e in range(10):
            P[e] += C[e]


@kernel
def tree_inertia(bodies, dof_parent, composite, diagonal, first, out):
    """Fill the lower triangle of M̂ of one tree, where it is not zero: O(n²) for a branch.

    `composite` is that of `inertia_diagonal`, `diagonal` the a_k; the dofs of the tree are those
    from `first` on, as many as `out` has rows.
    """
    _, v_index, columns, _ = bodies
    for j in range(1, composite.shape[0]):
        for k in range(v_index[j], v_index[j + 1]):
            if not first <= k < first + out.shape[0]:
                continue
            f, n = body_momentum(composite[j], vec(columns[k], 0), vec(columns[k], 3))
            row, i = out[k - first], k
            while i >= first:
                S = columns[i]
                row[i - first] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
                i = dof_parent[i]
            row[k - first] += diagonal[k]


@kernel
def base_columns(bodies, dof_parent, composite, armature, dofs, out):
    """Fill the columns of M of a free base, one row per dof, then 1.0 where it is on the base.

    `dofs` are the first dof of the base and one past the last of its tree, `composite` that of
    `inertia_diagonal`. Of the base itself the lower triangle counts. Shape (nv, 7).
    """
    (_, v_index, columns, _), (first, end) = bodies, dofs
    for j in range(1, composite.shape[0]):
        for k in range(max(v_index[j], first), min(v_index[j + 1], end)):
            row, before = out[k], dof_parent[k]
            on_base = k == first or (before >= first and out[before, 6] == 1.0)
            for c in range(BASE_NUMBERS):
                row[c] = 0.0
            if not on_base:
                continue
            f, n = body_momentum(composite[j], vec(columns[k], 0), vec(columns[k], 3))
            for c in range(6):
                S = columns[first + c]
                row[c] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
            if k < first + 6:
                row[k - first] += armature[k]
            row[6] = 1.0
