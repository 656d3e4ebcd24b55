"""Guards: functions of the state that are positive while the modes hold.

    open      gap φ while the contact approaches
    closed    normal force f_n                    (⚠ not φ̇: it is zero at release, physics.md T15)
    stick     μ f_n − |f_t|
    slip      u_t · d, d the direction in which it slips at the start
    joints    τ_d − |f| while stuck, ±v while turning

One array holds them: normal guards (nc,), tangential guards (nc,), joints (ns,).
"""

from __future__ import annotations

import numpy as np

from contact_sim.contact_models.hybrid.mode_elimination import OPEN, SLIP, STICK
from contact_sim.solvers.jit import kernel

DEPTH = 1e-12
"""Depth at which an approaching contact counts as closed [m]."""
FORCE = 1e-9
"""Violation of a force bound that counts, relative to the largest force."""
AT_REST = 1e-7
"""Normal speed up to which a touching contact counts as resting [m/s]."""
LET_GO = 1e-3
"""Approach speed from which even a contact that was held collides [m/s]."""
NEAR = 1e-9
"""Gap up to which it counts as touching [m]."""
DRIFT = 1e-5
"""Gap up to which a contact closed in the step before stays so [m]."""


@kernel
def find_closed(gap, u, mode, closed):
    """Mark the contacts that are closed at the start of a step; return True if one collides."""
    collides = False
    for i in range(gap.shape[0]):
        speed = u[3 * i + 2]
        held = mode[i] != OPEN and gap[i] <= DRIFT
        resting = gap[i] <= NEAR and abs(speed) <= AT_REST
        colliding = not held and gap[i] <= DEPTH and speed < -AT_REST
        closed[i] = 1.0 if held or resting or colliding else 0.0
        if closed[i] == 0.0:
            mode[i] = OPEN
        collides = collides or colliding or (held and speed < -LET_GO)
    return collides


@kernel
def fill_guards(
    mode, heading, joint_mode, gap, u, force, friction, joint_friction, stiction_speed,
    allowance, value, slack,
):  # fmt: skip
    """Fill the guards and how far below zero each may be; return how many are violated.

    `allowance` is added to the guards of forces, see `allow_start`.
    """
    nc, ns = mode.shape[0], joint_mode.shape[0]
    scale = FORCE * max(np.abs(force).max() if force.shape[0] else 0.0, 1e-9)
    violated = 0
    for i in range(nc):
        r = 3 * i
        value[nc + i], slack[nc + i] = np.inf, 0.0
        if mode[i] == OPEN:
            approaches = gap[i] > 0.0 or u[r + 2] < 0.0
            value[i], slack[i] = gap[i] if approaches else u[r + 2], DEPTH
            continue
        value[i], slack[i] = force[r + 2] + allowance[i], scale
        if mode[i] == STICK:
            tangential = np.sqrt(force[r] ** 2 + force[r + 1] ** 2)
            value[nc + i] = friction[i] * force[r + 2] - tangential + allowance[nc + i]
            slack[nc + i] = scale
        elif friction[i] > 0.0:
            value[nc + i] = u[r] * heading[i, 0] + u[r + 1] * heading[i, 1]
            slack[nc + i] = stiction_speed
    for k in range(ns):
        r, place = 3 * nc + k, 2 * nc + k
        if joint_mode[k] == 0:
            value[place] = joint_friction[k] - abs(force[r]) + allowance[place]
            slack[place] = scale
        else:
            value[place], slack[place] = joint_mode[k] * u[r], stiction_speed
    for place in range(2 * nc + ns):
        if value[place] < -slack[place]:
            violated += 1
    return violated


@kernel
def allow_start(mode, joint_mode, lenience, value, slack, allowance):
    """Let guards of forces that start below zero be positive: twice what they miss is allowed.

    The contact problem has found forces inside all bounds; where they are redundant, those that
    hold the modes exactly may lie a little outside. `lenience` slacks are added.
    """
    nc = mode.shape[0]
    for place in range(value.shape[0]):
        allowance[place] = 0.0
        if place < nc:
            is_force = mode[place] != OPEN
        elif place < 2 * nc:
            is_force = mode[place - nc] == STICK
        else:
            is_force = joint_mode[place - 2 * nc] == 0
        if is_force:
            allowance[place] = max(-2.0 * value[place], 0.0) + lenience * slack[place]
            value[place] += allowance[place]


@kernel
def only_forces(mode, joint_mode, value, slack):
    """Return True if every violated guard is one of a force."""
    nc, ns = mode.shape[0], joint_mode.shape[0]
    for i in range(nc):
        if mode[i] == OPEN and value[i] < -slack[i]:
            return False
        if mode[i] == SLIP and value[nc + i] < -slack[nc + i]:
            return False
    for k in range(ns):
        if joint_mode[k] != 0 and value[2 * nc + k] < -slack[2 * nc + k]:
            return False
    return True


@kernel
def next_try(low, high, at_low, at_high, watched, bisect):
    """Return the next instant to look at in [low, high]: the earliest estimate of a root.

    Args:
        low: instant at which no watched guard is violated [s].
        high: instant at which all watched guards are [s].
        at_low: guards at `low`.
        at_high: guards at `high`.
        watched: 1 for the guards in question.
        bisect: take the middle whatever the values say.
    """
    first = high
    for place in range(watched.shape[0]):
        if watched[place] == 1:
            estimate = 0.5 * (low + high)
            if not bisect and at_low[place] > 0.0:
                share = at_low[place] / (at_low[place] - at_high[place])
                estimate = low + share * (high - low)
            first = min(first, estimate)
    return first


@kernel
def watch(value, slack, watched, fresh):
    """Fill `fresh` with the guards that are violated: watched ones from zero on; count them."""
    count = 0
    for place in range(value.shape[0]):
        limit = 0.0 if watched[place] == 1 else -slack[place]
        fresh[place] = 1 if value[place] < limit else 0
        count += fresh[place]
    return count


@kernel
def largest_violation(value, slack, watched):
    """Return the largest violation of a watched guard, relative to its slack."""
    largest = 0.0
    for place in range(value.shape[0]):
        if watched[place] == 1:
            largest = max(largest, -value[place] / slack[place])
    return largest
