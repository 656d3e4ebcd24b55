"""Free motion over one step: where the robot would go if nothing touched it.

    M̂ = M + armature + h D,   v_f = v + h M̂⁻¹ (τ − nle − D v) + h (ω × v_lin on free flyers)

D is the viscous joint damping, taken implicitly. The last term keeps the linear velocity of a
free-flying base in the world frame (physics.md 2.0): v_f is expressed in the base axes at the
start of the step.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import factorise, solve_factor, solve_transposed


@kernel
def gyroscopic(v, free_flyer_v, out):
    """Write ω × v_lin into the linear rows of every free flyer of `out` (nv,), zeros elsewhere."""
    out[:] = 0.0
    for i in free_flyer_v:
        out[i] = v[i + 4] * v[i + 2] - v[i + 5] * v[i + 1]
        out[i + 1] = v[i + 5] * v[i] - v[i + 3] * v[i + 2]
        out[i + 2] = v[i + 3] * v[i + 1] - v[i + 4] * v[i]


@kernel
def free_velocity(
    M, nle, tau, v, damping, parent, free_flyer_v, h, inertia, factor, transport, v_free
):
    """Fill M̂ (lower triangle), its factor, the gyroscopic term and v_f.

    Args:
        M: lower triangle of the mass matrix, shape (nv, nv).
        nle: Coriolis, centrifugal and gravity force [N, N m], shape (nv,).
        tau: applied generalized force [N, N m], shape (nv,).
        v: velocity before the step, shape (nv,).
        damping: viscous joint damping [N m s/rad], shape (nv,).
        parent: dof before each dof, shape (nv,).
        free_flyer_v: first dof of each free flyer, shape (n,).
        h: time step [s].
        inertia: out, lower triangle of M̂, shape (nv, nv).
        factor: out, L with M̂ = Lᵀ L, shape (nv, nv).
        transport: out, ω × v_lin of the free flyers, shape (nv,).
        v_free: out, velocity after the step without contact, shape (nv,).
    """
    nv = v.shape[0]
    for i in range(nv):
        for j in range(i + 1):
            inertia[i, j] = M[i, j]
            factor[i, j] = M[i, j]
        inertia[i, i] += h * damping[i]
        factor[i, i] = inertia[i, i]
        v_free[i] = tau[i] - nle[i] - damping[i] * v[i]
    factorise(factor, parent)
    solve_transposed(factor, parent, v_free)
    solve_factor(factor, parent, v_free)
    gyroscopic(v, free_flyer_v, transport)
    for i in range(nv):
        v_free[i] = v[i] + h * (v_free[i] + transport[i])
