"""The mass matrix by composite rigid bodies, [Featherstone 2008] section 6.2."""

from __future__ import annotations

from contact_sim.dynamics.vectors import dot, momentum, vec
from contact_sim.solvers.jit import kernel


@kernel
def mass_matrix(parent, v_index, dof_parent, columns, inertia, armature, composite, M):
    """Fill the lower triangle of M(q) along the tree; nothing else of M is touched.

    Column k of M is the force, along the dofs before k, that gives dof k unit acceleration: the
    momentum of everything behind k at unit speed of k.

    Args:
        parent: `Tree.parent`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        dof_parent: `Tree.dof_parent`, shape (nv,).
        columns: twists of unit joint speeds, of `place`, shape (nv, 6).
        inertia: of the bodies about the origin, of `world_inertia`, shape (nb, 10).
        armature: `Tree.armature`, shape (nv,).
        composite: out, inertia of every body with all behind it; row 0 is that of the whole
            robot, shape (nb, 10).
        M: out, entries of dofs on one branch, shape (nv, nv).
    """
    for j in range(parent.shape[0]):
        for e in range(10):
            composite[j, e] = inertia[j, e]
    for j in range(parent.shape[0] - 1, 0, -1):
        C, P = composite[j], composite[parent[j]]
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            f, n = momentum(C, vec(S, 0), vec(S, 3))
            row = M[k]
            row[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n) + armature[k]
            i = dof_parent[k]
            while i >= 0:
                S = columns[i]
                row[i] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
                i = dof_parent[i]
        for e in range(10):
            P[e] += C[e]
