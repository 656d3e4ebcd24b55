"""Forces applied to the robot: joint efforts and external wrenches, as generalized forces."""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel


@kernel
def apply_effort(command, limit, velocity_index, effort, tau):
    """Saturate joint efforts and fill τ = Sᵀ effort; return the first joint not finite, or −1.

    Args:
        command: commanded efforts [N m], shape (n_joints,).
        limit: effort limits [N m], shape (n_joints,).
        velocity_index: dof of each actuated joint, shape (n_joints,).
        effort: out, efforts after saturation [N m], shape (n_joints,).
        tau: out, generalized force [N, N m], shape (nv,).
    """
    tau[:] = 0.0
    for i in range(command.shape[0]):
        if not np.isfinite(command[i]):
            return i
        effort[i] = min(max(command[i], -limit[i]), limit[i])
        tau[velocity_index[i]] = effort[i]
    return -1


@kernel
def apply_wrench(wrench, point, leaf_dof, parent, world_jacobian, tau):
    """Add a wrench to τ.

    Args:
        wrench: force [N], then torque [N m], world axes, at `point`, shape (6,).
        point: point of application in world [m], shape (3,).
        leaf_dof: last dof of the joint that carries the body, −1 for the world.
        parent: dof before each dof, shape (nv,).
        world_jacobian: `DynamicsTerms.jacobian`, shape (nv, 6).
        tau: generalized force to add to, shape (nv,).
    """
    fx, fy, fz = wrench[0], wrench[1], wrench[2]
    mx = wrench[3] + point[1] * fz - point[2] * fy
    my = wrench[4] + point[2] * fx - point[0] * fz
    mz = wrench[5] + point[0] * fy - point[1] * fx
    k = leaf_dof
    while k >= 0:
        S = world_jacobian[k]
        tau[k] += S[0] * fx + S[1] * fy + S[2] * fz + S[3] * mx + S[4] * my + S[5] * mz
        k = parent[k]
