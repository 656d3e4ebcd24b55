"""Forces applied to the robot: joint efforts and external wrenches, as generalized forces."""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics.vectors import add, cross, dot, rotated, sub, vec
from contact_sim.solvers.jit import kernel


@kernel
def generalized_force(effort, joint_v, external, tau):
    """Fill τ = Sᵀ effort + external.

    Args:
        effort: joint efforts [N m], shape (n_joints,).
        joint_v: dof of each actuated joint, shape (n_joints,).
        external: generalized force of external wrenches [N, N m], shape (nv,).
        tau: out, generalized force [N, N m], shape (nv,).
    """
    for k in range(tau.shape[0]):
        tau[k] = external[k]
    for i in range(effort.shape[0]):
        tau[joint_v[i]] += effort[i]


@kernel
def joint_effort(q, v, joint_q, joint_v, unbounded, target, gains, feed_forward, effort):
    """Fill τ_ff + k_p (q* − q) + k_d (q̇* − q̇) of the actuated joints [N m], unsaturated.

    Args:
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        joint_q: first entry in q of each actuated joint, shape (n_joints,).
        joint_v: dof of each actuated joint, shape (n_joints,).
        unbounded: 1 for joints that turn without end, (cos, sin) in q: they go to their target
            the short way round, shape (n_joints,).
        target: q* [rad] and q̇* [rad/s], each of shape (n_joints,).
        gains: k_p [N m/rad] and k_d [N m s/rad], each of shape (n_joints,).
        feed_forward: τ_ff [N m], shape (n_joints,).
        effort: out, shape (n_joints,).
    """
    for i in range(effort.shape[0]):
        error = target[0][i] - joint_angle(q, joint_q[i], unbounded[i])
        if unbounded[i] == 1:
            error = (error + np.pi) % (2.0 * np.pi) - np.pi
        slower = target[1][i] - v[joint_v[i]]
        effort[i] = feed_forward[i] + gains[0][i] * error + gains[1][i] * slower


@kernel
def joint_angle(q, i, unbounded):
    """Return the position of the joint at `i` in q [rad or m]."""
    return np.arctan2(q[i + 1], q[i]) if unbounded == 1 else q[i]


@kernel
def add_wrench(wrench, point, pose, motion, leaf_dof, dof_parent, tau):
    """Add a wrench on a body to τ.

    Args:
        wrench: force [N], then torque [N m], world axes, at `point`, shape (6,).
        point: point of application in the axes of the body [m], shape (3,).
        pose: placement of the body, rotation by columns then position [m], shape (12,).
        motion: twists per unit joint speed (nv, 6), and the point they are about [m], (3,).
        leaf_dof: last dof of the body, −1 for the world.
        dof_parent: dof before each dof, shape (nv,).
        tau: generalized force to add to, shape (nv,).
    """
    columns, origin = motion
    force = vec(wrench, 0)
    at = add(vec(pose, 9), rotated(vec(pose, 0), vec(pose, 3), vec(pose, 6), vec(point, 0)))
    moment = add(vec(wrench, 3), cross(sub(at, vec(origin, 0)), force))
    k = leaf_dof
    while k >= 0:
        tau[k] += dot(vec(columns[k], 0), force) + dot(vec(columns[k], 3), moment)
        k = dof_parent[k]
