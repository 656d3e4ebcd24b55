"""Free motion over one step: where the robot would go if nothing touched it.

    M̂ = M + armature + h D,   v_f = v + h M̂⁻¹ (τ − nle − D v) + h (ω × v_lin on free flyers)

D is the viscous joint damping, taken implicitly. The last term keeps the linear velocity of a
free-flying base in the world frame (theory 2.0): v_f is expressed in the base axes at the
start of the step.
"""

from __future__ import annotations

from contact_sim.dynamics.vectors import cross, put, vec
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import solve


@kernel
def transport_acceleration(v, free_flyer_v, out):
    """Fill ω × v_lin in the linear rows of every free flyer of `out` (nv,), zeros elsewhere."""
    for k in range(out.shape[0]):
        out[k] = 0.0
    for i in free_flyer_v:
        put(out, i, cross(vec(v, i + 3), vec(v, i)))


@kernel
def implicit_inertia(M, dof_parent, damping, h, share, inertia, factor):
    """Fill M̂ = M + h D + share · diag(M), and a copy to be factorised.

    Args:
        M: lower triangle of the mass matrix along the tree, shape (nv, nv).
        dof_parent: dof before each dof, shape (nv,).
        damping: viscous joint damping [N m s/rad], shape (nv,).
        h: time step [s].
        share: damping inertia over the diagonal of M [-], of todorov in its form of 2014.
        inertia: out, lower triangle of M̂; entries between branches stay as they are, (nv, nv).
        factor: out, the same.
    """
    for k in range(damping.shape[0]):
        j = k
        while j >= 0:
            inertia[k, j] = factor[k, j] = M[k, j]
            j = dof_parent[j]
        inertia[k, k] += h * damping[k] + share * M[k, k]
        factor[k, k] = inertia[k, k]


@kernel
def fill_free_velocity(v, factor, tree, free_flyer_v, h, transport, v_free):
    """Fill ω × v_lin and v_f.

    Args:
        v: velocity before the step, shape (nv,).
        factor: of M̂, see solvers.tree, shape (nv, nv).
        tree: see solvers.tree.
        free_flyer_v: first dof of each free flyer, shape (n,).
        h: time step [s].
        transport: out, ω × v_lin of the free flyers [m/s²], shape (nv,).
        v_free: in, the force τ − nle − D v [N, N m]; out, velocity after the step without
            contact, shape (nv,).
    """
    solve(factor, tree, v_free)
    transport_acceleration(v, free_flyer_v, transport)
    for k in range(v.shape[0]):
        v_free[k] = v[k] + h * (v_free[k] + transport[k])
