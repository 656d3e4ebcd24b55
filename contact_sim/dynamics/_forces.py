"""Free motion over one step: where the robot would go if nothing touched it.

    M̂ = M + armature + h D,   v_f = v + h M̂⁻¹ (τ − nle − D v) + h (ω × v_lin on free flyers)

D is the viscous joint damping, taken implicitly. The last term keeps the linear velocity of a
free-flying base in the world frame (theory 2.0): v_f is expressed in the base axes at the
start of the step.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics._vectors import add, cross, dot, put, rotated, sub, vec
from contact_sim.solvers._delassus import solve
from contact_sim.solvers._jit import kernel

# --- Forces applied to the robot: joint efforts and external wrenches, as generalized forces.


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


# --- Efforts of actuators: delay, effort limit, first-order lag, torque-speed curve.
#
# Kernels take tuples of arrays, one entry per joint:
#
#     limits    effort limit, velocity limit, effort at standstill (robot/_actuators.py),
#     (n_joints,)
#     memory    commands of the steps before, the last one first, (n_delay, n_joints); efforts
#     behind
#               the lag after the last step, (n_joints,), or (0,) where nothing lags
#     timing    delays in steps; exp(−h/T), 0 without lag, (n_joints,)


@kernel
def fill_effort(command, speed, joint_v, limits, memory, timing, effort):
    """Fill the efforts of a step; return a joint whose command is not finite, or −1.

    Args:
        command: commanded efforts [N m], shape (n_joints,).
        speed: velocity of the robot at the start of the step, shape (nv,).
        joint_v: dof of each actuated joint, shape (n_joints,).
        limits: see above.
        memory: see above; stays as it is.
        timing: see above.
        effort: out [N m], shape (n_joints,).
    """
    limit, fastest, standstill = limits
    line, lagged = memory
    delay, decay = timing
    for i in range(command.shape[0]):
        if not np.isfinite(command[i]):
            return i
    for i in range(command.shape[0]):
        wanted = command[i] if delay[i] == 0 else line[delay[i] - 1, i]
        wanted = min(max(wanted, -limit[i]), limit[i])
        if lagged.shape[0] > 0:
            wanted = lag_response(wanted, lagged[i], decay[i])
        lower, upper = effort_range(limit[i], fastest[i], standstill[i], speed[joint_v[i]])
        effort[i] = min(max(wanted, lower), upper)
    return -1


@kernel
def lag_response(wanted, lagged, decay):
    """Return the effort behind the lag of an actuator at the end of a step.

    τ⁺ = u + (τ − u) exp(−h/T), u the delayed command within the limit: exact where u is constant
    over the step. Nothing winds up, for the limit comes before the lag; the torque-speed curve
    comes behind it.
    """
    return wanted + decay * (lagged - wanted)


@kernel
def effort_range(limit, fastest, standstill, speed):
    """Return the smallest and the largest effort of an actuator at this speed of the joint.

    With an effort at standstill τ_s the line τ_s (±1 − q̇/q̇_max) of a DC motor, which brakes
    beyond q̇_max; without one nothing is driven beyond q̇_max, and braking is free.
    """
    lower, upper = -limit, limit
    if standstill < np.inf:
        drop = standstill * speed / fastest
        lower = min(max(-standstill - drop, -limit), limit)
        upper = max(min(standstill - drop, limit), -limit)
    elif speed >= fastest:
        upper = 0.0
    elif speed <= -fastest:
        lower = 0.0
    return lower, upper


@kernel
def update_actuator_memory(command, limit, memory, timing):
    """Take a step in the memory of the actuators, at its end."""
    line, lagged = memory
    delay, decay = timing
    for i in range(lagged.shape[0]):
        wanted = command[i] if delay[i] == 0 else line[delay[i] - 1, i]
        wanted = min(max(wanted, -limit[i]), limit[i])
        lagged[i] = lag_response(wanted, lagged[i], decay[i])
    for k in range(line.shape[0] - 1, 0, -1):
        for i in range(line.shape[1]):
            line[k, i] = line[k - 1, i]
    if line.shape[0] > 0:
        for i in range(line.shape[1]):
            line[0, i] = command[i]


# --- Free motion over one step: where the robot would go if nothing touched it.


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
