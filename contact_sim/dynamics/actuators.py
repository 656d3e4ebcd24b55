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
            wanted = response(wanted, lagged[i], decay[i])
        lower, upper = effort_range(limit[i], fastest[i], standstill[i], speed[joint_v[i]])
        effort[i] = min(max(wanted, lower), upper)
    return -1


@kernel
def response(wanted, lagged, decay):
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
def remember(command, limit, memory, timing):
    """Take a step in the memory of the actuators, at its end."""
    line, lagged = memory
    delay, decay = timing
    for i in range(lagged.shape[0]):
        wanted = command[i] if delay[i] == 0 else line[delay[i] - 1, i]
        wanted = min(max(wanted, -limit[i]), limit[i])
        lagged[i] = response(wanted, lagged[i], decay[i])
    for k in range(line.shape[0] - 1, 0, -1):
        for i in range(line.shape[1]):
            line[k, i] = line[k - 1, i]
    if line.shape[0] > 0:
        for i in range(line.shape[1]):
            line[0, i] = command[i]
