"""Applied forces, actuators, and the free motion over one step.

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

# Generalized forces of joint efforts and external wrenches.


@kernel
def generalized_force(effort, joint_v, external, tau):
    """Fill τ = Sᵀ effort + external.

    `joint_v` is the dof of each actuated joint, `external` the generalized force of external
    wrenches (nv,).
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
        unbounded: 1 for continuous joints, (cos, sin) in q, shape (n_joints,).
        target: q* [rad] and q̇* [rad/s], each of shape (n_joints,).
        gains: k_p [N m/rad] and k_d [N m s/rad], each of shape (n_joints,).
        feed_forward: τ_ff [N m], shape (n_joints,).
        effort: out, shape (n_joints,).
    """
    for i in range(effort.shape[0]):
        error = target[0][i] - joint_angle(q, joint_q[i], unbounded[i])
        # continuous joint: the shorter way round
        if unbounded[i] == 1:
            error = (error + np.pi) % (2.0 * np.pi) - np.pi
        speed_error = target[1][i] - v[joint_v[i]]
        effort[i] = feed_forward[i] + gains[0][i] * error + gains[1][i] * speed_error


@kernel
def joint_angle(q, i, unbounded):
    """Return the position of the joint at `i` in q [rad or m]."""
    return np.arctan2(q[i + 1], q[i]) if unbounded == 1 else q[i]


@kernel
def add_wrench(wrench, point, pose, motion, leaf_dof, dof_parent, tau):
    """Add a wrench on a body to τ (nv,).

    Args:
        wrench: force [N], then torque [N m], world axes, at `point`, shape (6,).
        point: point of application in the axes of the body [m], shape (3,).
        pose: placement of the body, rotation by columns then position [m], shape (12,).
        motion: twists per unit joint speed (nv, 6), and the point they are about [m], (3,).
        leaf_dof: last dof of the body, −1 for the world.
        dof_parent: dof before each dof, shape (nv,).
        tau: in and out.
    """
    columns, origin = motion
    force = vec(wrench, 0)
    # point of application in world, and moment about the origin of the twists
    at = add(vec(pose, 9), rotated(vec(pose, 0), vec(pose, 3), vec(pose, 6), vec(point, 0)))
    moment = add(vec(wrench, 3), cross(sub(at, vec(origin, 0)), force))
    # τ_k += S_k · wrench along the branch
    k = leaf_dof
    while k >= 0:
        tau[k] += dot(vec(columns[k], 0), force) + dot(vec(columns[k], 3), moment)
        k = dof_parent[k]


# Efforts of actuators: delay, effort limit, first-order lag, torque-speed curve. Kernels take
# tuples of arrays, one entry per joint:
#
#     limits    effort limit, velocity limit, effort at standstill, see robot/_actuators.py
#     memory    commands of earlier steps, the last one first, (n_delay, n_joints); lagged efforts
#               after the last step, (n_joints,), or (0,) without lags
#     timing    delays in steps; exp(−h/T), 0 without lag, (n_joints,)


@kernel
def fill_effort(command, speed, joint_v, limits, memory, timing, effort):
    """Fill the efforts of a step; return a joint whose command is not finite, or −1.

    `speed` is the velocity of the robot at the start of the step (nv,); `memory` is read only.
    """
    limit, max_speed, standstill = limits
    delay_line, lagged = memory
    delay, decay = timing
    for i in range(command.shape[0]):
        if not np.isfinite(command[i]):
            return i
    for i in range(command.shape[0]):
        # delay, effort limit, lag, torque-speed curve
        demand = command[i] if delay[i] == 0 else delay_line[delay[i] - 1, i]
        demand = min(max(demand, -limit[i]), limit[i])
        if lagged.shape[0] > 0:
            demand = lag_response(demand, lagged[i], decay[i])
        lower, upper = effort_range(limit[i], max_speed[i], standstill[i], speed[joint_v[i]])
        effort[i] = min(max(demand, lower), upper)
    return -1


@kernel
def lag_response(demand, lagged, decay):
    """Return the effort behind the lag of an actuator at the end of a step.

    τ⁺ = u + (τ − u) exp(−h/T), u the delayed and limited command: exact where u is constant over
    the step. Nothing winds up, because the limit comes before the lag.
    """
    return demand + decay * (lagged - demand)


@kernel
def effort_range(limit, max_speed, standstill, speed):
    """Return the smallest and the largest effort of an actuator at a joint speed.

    With an effort at standstill τ_s these are the lines τ_s (±1 − q̇/q̇_max) of a DC motor, which
    brakes beyond q̇_max; without one the motor cannot drive beyond q̇_max, and braking is free.
    """
    lower, upper = -limit, limit
    if standstill < np.inf:
        drop = standstill * speed / max_speed
        lower = min(max(-standstill - drop, -limit), limit)
        upper = max(min(standstill - drop, limit), -limit)
    elif speed >= max_speed:
        upper = 0.0
    elif speed <= -max_speed:
        lower = 0.0
    return lower, upper


@kernel
def update_actuator_memory(command, limit, memory, timing):
    """Advance the lags and the delay lines of the actuators by one step."""
    delay_line, lagged = memory
    delay, decay = timing
    for i in range(lagged.shape[0]):
        demand = command[i] if delay[i] == 0 else delay_line[delay[i] - 1, i]
        demand = min(max(demand, -limit[i]), limit[i])
        lagged[i] = lag_response(demand, lagged[i], decay[i])
    for k in range(delay_line.shape[0] - 1, 0, -1):
        for i in range(delay_line.shape[1]):
            delay_line[k, i] = delay_line[k - 1, i]
    if delay_line.shape[0] > 0:
        for i in range(delay_line.shape[1]):
            delay_line[0, i] = command[i]


# Free motion over one step.


@kernel
def transport_acceleration(v, free_flyer_v, out):
    """Fill ω × v_lin in the linear rows of every free flyer of `out` (nv,), zeros elsewhere."""
    for k in range(out.shape[0]):
        out[k] = 0.0
    for i in free_flyer_v:
        put(out, i, cross(vec(v, i + 3), vec(v, i)))


@kernel
def implicit_inertia(M, dof_parent, damping, h, share, inertia, factor):
    """Fill the lower triangle of M̂ = M + h D + share · diag(M), and a copy to be factorised.

    Entries between branches stay as they are. `share` is the damping inertia over the diagonal of
    M [-], of todorov in its form of 2014.
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
        factor: of M̂, see solvers/_delassus.py, shape (nv, nv).
        tree: see there.
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
