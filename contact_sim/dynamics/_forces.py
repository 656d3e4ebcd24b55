"""Applied forces, actuators, and the free motion over one step.

    M̂ = M + armature + h D + h² K
    v_f = v + h M̂⁻¹ (τ − nle − D v − K (q + h v − q₀)) + h (ω × v_lin on free flyers)

D is the viscous joint damping and K the stiffness of joint springs at rest at q₀, both taken at
the end of the step. The last term keeps the linear velocity of a free-flying base in the world
frame (theory 2.0): v_f is expressed in the base axes at the start of the step.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics._vectors import add, cross, dot, put, rotated, sub, vec
from contact_sim.solvers._delassus import FAR
from contact_sim.solvers._jit import kernel

# Generalized forces of joint efforts and external wrenches.


@kernel
def generalized_force(effort, joint_v, external, tau):
    """Fill τ = Sᵀ effort + external, `joint_v` the dof of each actuated joint."""
    for k in range(tau.shape[0]):
        tau[k] = external[k]
    for i in range(effort.shape[0]):
        tau[joint_v[i]] += effort[i]


@kernel
def joint_effort(q, v, joint_q, joint_v, unbounded, target, gains, feed_forward, effort):
    """Fill τ_ff + k_p (q* − q) + k_d (q̇* − q̇) of the actuated joints [N m], unsaturated.

    `target` is (q*, q̇*) and `gains` (k_p, k_d), each of shape (n_joints,); `unbounded` is 1 for
    continuous joints, (cos, sin) in q.
    """
    for i in range(effort.shape[0]):
        k = joint_q[i]
        # continuous joint: the shorter way round
        if unbounded[i] == 1:
            error = target[0][i] - np.arctan2(q[k + 1], q[k])
            error = (error + np.pi) % (2.0 * np.pi) - np.pi
        else:
            error = target[0][i] - q[k]
        speed_error = target[1][i] - v[joint_v[i]]
        effort[i] = feed_forward[i] + gains[0][i] * error + gains[1][i] * speed_error


@kernel
def add_wrench(wrench, point, pose, motion, leaf_dof, dof_parent, tau):
    """Add a wrench on a body to τ (nv,).

    `wrench` is force [N], then torque [N m], world axes, at `point`, in the axes of the body [m].
    `motion` are the twists per unit joint speed (nv, 6) and the point they are about [m];
    `leaf_dof` is the last dof of the body, −1 for the world.
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
    """Fill the efforts of a step; return a joint whose command is not finite, or −1."""
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
            # behind the lag, u + (τ − u) exp(−h/T): exact where u is constant over the step;
            # nothing winds up, because the limit comes before the lag
            demand += decay[i] * (lagged[i] - demand)
        lower, upper = effort_range(limit[i], max_speed[i], standstill[i], speed[joint_v[i]])
        effort[i] = min(max(demand, lower), upper)
    return -1


@kernel
def effort_range(limit, max_speed, standstill, speed):
    """Return the smallest and the largest effort of an actuator at a joint speed."""
    # with an effort at standstill τ_s the lines τ_s (±1 − q̇/q̇_max) of a DC motor, which brakes
    # beyond q̇_max; without one the motor cannot drive beyond q̇_max, and braking is free
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
        lagged[i] = demand + decay[i] * (lagged[i] - demand)
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

    Entries between branches stay. `share` is that of todorov in its form of 2014 [-].
    """
    first = 0
    for k in range(damping.shape[0]):
        j = k
        # the run of dofs to k, where it is long; then the rest of the branch
        if dof_parent[k] != k - 1:
            first = k
        elif k - first > FAR:
            for m in range(first, k + 1):
                inertia[k, m] = factor[k, m] = M[k, m]
            j = dof_parent[first]
        while j >= 0:
            inertia[k, j] = factor[k, j] = M[k, j]
            j = dof_parent[j]
        inertia[k, k] += h * damping[k] + share * M[k, k]
        factor[k, k] = inertia[k, k]


@kernel
def add_joint_springs(q, v, places, springs, h, ahead, inertia, factor, force):
    """Add joint springs to M̂, the copy to be factorised and the force: −k (q + a v − q₀).

    `places` are their indices into q and v; `springs` k [N m/rad, N/m] and q₀. a = `ahead` [s] is
    h where springs act at the end of the step, and 0 at its start: then M̂ is without them.
    """
    (q_index, v_index), (stiffness, _) = places, springs
    for i in range(q_index.shape[0]):
        dof = v_index[i]
        inertia[dof, dof] += h * ahead * stiffness[i]
        factor[dof, dof] = inertia[dof, dof]
    add_spring_forces(q, v, places, springs, ahead, force)


@kernel
def add_spring_forces(q, v, places, springs, ahead, force):
    """Add −k (q + a v − q₀) of joint springs to `force` (nv,), arguments as above."""
    q_index, v_index = places
    stiffness, rest = springs
    for i in range(q_index.shape[0]):
        k, dof = stiffness[i], v_index[i]
        force[dof] -= k * (q[q_index[i]] + ahead * v[dof] - rest[i])


@kernel
def spring_energy(q, q_index, springs):
    """Return ½ Σ k (q − q₀)² of joint springs [J], arguments as in `add_joint_springs`."""
    stiffness, rest = springs
    energy = 0.0
    for i in range(q_index.shape[0]):
        stretch = q[q_index[i]] - rest[i]
        energy += 0.5 * stiffness[i] * stretch * stretch
    return energy


@kernel
def fill_free_velocity(v, free_flyer_v, h, transport, v_free):
    """Fill ω × v_lin of the free flyers and v_f, in place of the acceleration by forces."""
    transport_acceleration(v, free_flyer_v, transport)
    for k in range(v.shape[0]):
        v_free[k] = v[k] + h * (v_free[k] + transport[k])
