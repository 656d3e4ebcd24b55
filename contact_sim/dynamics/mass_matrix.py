"""The mass matrix by composite rigid bodies, [Featherstone 2008] section 6.2."""

from __future__ import annotations

from contact_sim.dynamics.vectors import add, cross, dot, inertia_times, scaled, sub, vec
from contact_sim.solvers.jit import kernel


@kernel
def mass_matrix(parent, v_index, dof_parent, columns, inertia, armature, composite, M):
    """Fill the lower triangle of M(q) along the tree; nothing else of M is touched.

    Column k of M is the force, along the dofs before k, that gives dof k unit acceleration: the
    momentum of everything behind k at unit speed of k. Where the first body flies freely, its
    position is the origin: its columns are its axes, linear for three dofs, angular for three.

    Args:
        parent: `Tree.parent`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        dof_parent: `Tree.dof_parent`, shape (nv,).
        columns: twists of unit joint speeds about the origin of `place`, shape (nv, 6).
        inertia: of the bodies about the origin, of `world_inertia`, shape (nb, 10).
        armature: `Tree.armature`, shape (nv,).
        composite: out, inertia of every body with all behind it; row 0 is that of the whole
            robot, shape (nb, 10).
        M: out, entries of dofs on one branch, shape (nv, nv).
    """
    base = 6 if parent.shape[0] > 1 and v_index[2] == 6 else 0  # dofs of a free-flying base
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
            while i >= base:
                S = columns[i]
                row[i] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
                i = dof_parent[i]
            if i >= 0:
                for i in range(min(k, 3)):
                    row[i] = dot(vec(columns[i], 0), f)
                for i in range(3, min(k, 6)):
                    row[i] = dot(vec(columns[i], 3), n)
        for e in range(10):
            P[e] += C[e]


@kernel
def momentum(inertia, linear, angular):
    """Return the linear momentum, and the angular momentum about the origin, of an inertia.

    Args:
        inertia: mass, first moment m c, inertia about the origin, shape (10,).
        linear: velocity at the origin [m/s], a tuple.
        angular: angular velocity [rad/s], a tuple.
    """
    mc = vec(inertia, 1)
    p = sub(scaled(inertia[0], linear), cross(mc, angular))
    return p, add(inertia_times(inertia, angular), cross(mc, linear))
