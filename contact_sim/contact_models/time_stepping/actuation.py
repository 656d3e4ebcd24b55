"""Commands become generalized forces: a stage of the step under every contact model.

`actuate` begins a step and changes nothing that actuators keep; `remember_command` ends one that
was taken.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.dynamics import actuators
from contact_sim.dynamics.applied import add_wrench, generalized_force, joint_effort
from contact_sim.solvers.jit import kernel

READY, NOT_FINITE = 0, -1
"""Status of a world; k > 0: the command of actuated joint k − 1 is not finite."""
DIRECT, JOINT_PD = 0, 1
"""Controllers: efforts as commanded, or PD around joint targets."""


@kernel
def actuate(data):
    """Fill the joint efforts and τ; return READY, or 1 + the first joint that is not finite.

    Done twice it does the same, for what actuators keep changes in `remember_command` alone.
    """
    command, joint_v = vector(data, f.COMMAND), integers(data, f.JOINT_V)
    if integers(data, f.CONTROL)[0] == JOINT_PD:
        joint_effort(
            vector(data, f.Q), vector(data, f.V), integers(data, f.JOINT_Q), joint_v,
            integers(data, f.JOINT_UNBOUNDED),
            (vector(data, f.TARGET), vector(data, f.TARGET_VELOCITY)),
            (vector(data, f.KP), vector(data, f.KD)), vector(data, f.FEED_FORWARD), command,
        )  # fmt: skip
    effort, tau = vector(data, f.EFFORT), vector(data, f.TAU)
    bad = actuators.fill_effort(
        command, vector(data, f.V), joint_v, limits_of(data), memory_of(data), timing_of(data),
        effort,
    )  # fmt: skip
    if bad >= 0:
        return bad + 1
    generalized_force(effort, joint_v, vector(data, f.EXTERNAL), tau)
    body = integers(data, f.WRENCH_BODY)[0]
    if body >= 0:
        add_wrench(
            vector(data, f.WRENCH), vector(data, f.WRENCH_POINT), matrix(data, f.POSE)[body],
            (matrix(data, f.COLUMNS), vector(data, f.ORIGIN)),
            integers(data, f.V_INDEX)[body + 1] - 1, integers(data, f.DOF_PARENT), tau,
        )  # fmt: skip
    return READY


@kernel
def remember_command(data):
    """Let the command of the step go into the delay lines and lags of the actuators."""
    actuators.remember(
        vector(data, f.COMMAND), vector(data, f.EFFORT_LIMIT), memory_of(data), timing_of(data)
    )


@kernel
def limits_of(data):
    """Return the limits of the actuators, see dynamics.actuators."""
    return (
        vector(data, f.EFFORT_LIMIT), vector(data, f.VELOCITY_LIMIT),
        vector(data, f.SATURATION_EFFORT),
    )  # fmt: skip


@kernel
def memory_of(data):
    """Return what the actuators keep from step to step, see dynamics.actuators."""
    return matrix(data, f.DELAY_LINE), vector(data, f.LAGGED_EFFORT)


@kernel
def timing_of(data):
    """Return delays and decays of the actuators, see dynamics.actuators."""
    return integers(data, f.DELAY), vector(data, f.LAG_DECAY)
