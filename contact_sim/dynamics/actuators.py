"""Efforts of actuators: delay, effort limit, first-order lag, torque-speed curve.

Kernels take tuples of arrays, one entry per joint:

    limits    effort limit, velocity limit, effort at standstill (robot/actuators.py), (n_joints,)
    memory    commands of the steps before, the last one first, (n_delay, n_joints); efforts behind
              the lag after the last step, (n_joints,), or (0,) where nothing lags
    timing    delays in steps; exp(−h/T), 0 without lag, (n_joints,)
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel


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
    for i in range(command.shape[0]):
        if not np.isfinite(command[i]):
            return i
    for i in range(command.shape[0]):
        lower, upper = effort_range(limits, i, speed[joint_v[i]])
        effort[i] = min(max(response(command, limits[0], memory, timing, i), lower), upper)
    return -1


@kernel
def response(command, limit, memory, timing, i):
    """Return the effort of actuator i at the end of a step, before the torque-speed curve.

    τ⁺ = u + (τ − u) exp(−h/T), u the delayed command within the limit: exact where u is constant
    over the step. Nothing winds up, for the limit comes before the lag.
    """
    line, lagged = memory
    delay, decay = timing
    wanted = command[i] if delay[i] == 0 else line[delay[i] - 1, i]
    wanted = min(max(wanted, -limit[i]), limit[i])
    return wanted if lagged.shape[0] == 0 else wanted + decay[i] * (lagged[i] - wanted)


@kernel
def effort_range(limits, i, speed):
    """Return the smallest and the largest effort of actuator i at this speed of the joint.

    With an effort at standstill τ_s the line τ_s (±1 − q̇/q̇_max) of a DC motor, which brakes
    beyond q̇_max; without one nothing is driven beyond q̇_max, and braking is free.
    """
    limit, fastest, standstill = limits[0][i], limits[1][i], limits[2][i]
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
def remember(command, limit, memory, timing):
    """Take a step in the memory of the actuators, at its end."""
    line, lagged = memory
    for i in range(lagged.shape[0]):
        lagged[i] = response(command, limit, memory, timing, i)
    for k in range(line.shape[0] - 1, 0, -1):
        for i in range(line.shape[1]):
            line[k, i] = line[k - 1, i]
    if line.shape[0] > 0:
        for i in range(line.shape[1]):
            line[0, i] = command[i]
