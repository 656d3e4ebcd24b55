"""Events: what starts them, when they happen, and what is at its bound after them."""

from __future__ import annotations

import numpy as np

from contact_sim.arrays.views import integers, vector
from contact_sim.contact.limits import pushes
from contact_sim.contact_models.hybrid import fields as e
from contact_sim.contact_models.hybrid.guards import CLOSING_DEPTH
from contact_sim.contact_models.hybrid.mode_elimination import AWAY, OPEN, SLIP, STICK
from contact_sim.contact_models.hybrid.modes import is_limit
from contact_sim.solvers.jit import kernel

RESTING_SPEED = 1e-7
"""Normal speed up to which a touching contact counts as resting [m/s]."""
IMPACT_SPEED = 1e-3
"""Approach speed from which even a contact that was held collides [m/s]."""
TOUCHING_GAP = 1e-9
"""Gap up to which a contact at rest touches [m]."""
HELD_GAP = 1e-5
"""Gap up to which a contact closed in the step before stays so [m]."""
TURNS_BEFORE_CAPTURE = 4
"""Turns of a slip within one step after which it may be taken as at rest."""
CAPTURE_SPEED = 1e-4
"""Speed up to which it then is [m/s]."""


@kernel
def find_closed(arc):
    """Mark the contacts that are closed at the start of a step; return True if one collides."""
    gap, u, closed = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.CLOSED)
    mode, collides = integers(arc, e.CONTACT_MODE), False
    for i in range(gap.shape[0]):
        speed = u[3 * i + 2]
        held = mode[i] != OPEN and gap[i] <= HELD_GAP
        resting = gap[i] <= TOUCHING_GAP and abs(speed) <= RESTING_SPEED
        colliding = not held and gap[i] <= CLOSING_DEPTH and speed < -RESTING_SPEED
        closed[i] = 1.0 if held or resting or colliding else 0.0
        if closed[i] == 0.0:
            mode[i] = OPEN
        collides = collides or colliding or (held and speed < -IMPACT_SPEED)
    return find_closed_limits(arc) or collides


@kernel
def find_closed_limits(arc):
    """Mark the limits that are touched at the start of a step; return True if one collides.

    The mode of a limit that pushed in the step before is 0.
    """
    gap, u, mode = vector(arc, e.INTERVAL_GAP), vector(arc, e.U), integers(arc, e.INTERVAL_MODE)
    lower, upper, first = vector(arc, e.LOWER), vector(arc, e.UPPER), u.shape[0] - gap.shape[0]
    closed, collides = vector(arc, e.INTERVAL_CLOSED), False
    for k in range(gap.shape[0]):
        if not is_limit(lower, upper, k):
            closed[k] = 1.0
            continue
        side = pushes(lower, upper, k)
        distance, speed = side * gap[k], side * u[first + k]
        held = mode[k] == 0 and distance <= HELD_GAP and speed <= RESTING_SPEED
        resting = distance <= TOUCHING_GAP and abs(speed) <= RESTING_SPEED
        colliding = not held and distance <= CLOSING_DEPTH and speed < -RESTING_SPEED
        closed[k] = 1.0 if held or resting or colliding else 0.0
        mode[k] = 0 if closed[k] == 1.0 else AWAY
        collides = collides or colliding or (held and speed < -IMPACT_SPEED)
    return collides


@kernel
def only_forces_violated(arc):
    """Return True if every violated guard is one of a force."""
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    mode, interval_mode = integers(arc, e.CONTACT_MODE), integers(arc, e.INTERVAL_MODE)
    nc = mode.shape[0]
    for i in range(nc):
        if mode[i] == OPEN and guard[i] < -slack[i]:
            return False
        if mode[i] == SLIP and guard[nc + i] < -slack[nc + i]:
            return False
    for k in range(interval_mode.shape[0]):
        if interval_mode[k] != 0 and guard[2 * nc + k] < -slack[2 * nc + k]:
            return False
    return True


@kernel
def watch_violated(arc):
    """Watch the guards that are violated, if any are; return their number.

    Those watched before count as violated from zero on.
    """
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    watched, fresh, count = integers(arc, e.WATCHED), integers(arc, e.FRESH), 0
    for place in range(guard.shape[0]):
        limit = 0.0 if watched[place] == 1 else -slack[place]
        fresh[place] = 1 if guard[place] < limit else 0
        count += fresh[place]
    if count > 0:
        watched[:] = fresh
    return count


@kernel
def earliest_root(arc, low, high, bisect):
    """Return the next instant to look at in [low, high]: the earliest estimate of a root.

    At `low` [s] no watched guard is violated, at `high` [s] all are; the guards there are in
    `guard_low` and `guard_high`. `bisect`: take the middle whatever the values say.
    """
    watched, first = integers(arc, e.WATCHED), high
    at_low, at_high = vector(arc, e.GUARD_LOW), vector(arc, e.GUARD_HIGH)
    for place in range(watched.shape[0]):
        if watched[place] == 1:
            estimate = 0.5 * (low + high)
            if not bisect and at_low[place] > 0.0:
                share = at_low[place] / (at_low[place] - at_high[place])
                estimate = low + share * (high - low)
            first = min(first, estimate)
    return first


@kernel
def largest_violation(arc):
    """Return the largest violation of a watched guard, relative to its slack."""
    guard, slack, watched = vector(arc, e.GUARD), vector(arc, e.SLACK), integers(arc, e.WATCHED)
    largest = 0.0
    for place in range(guard.shape[0]):
        if watched[place] == 1:
            largest = max(largest, -guard[place] / slack[place])
    return largest


@kernel
def prepare_event(arc):
    """Close what touches and note what is at its bound; return True if a contact collides."""
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    mode, at_end, u = integers(arc, e.CONTACT_MODE), integers(arc, e.AT_END), vector(arc, e.U)
    closed, nc, collides = vector(arc, e.CLOSED), mode.shape[0], False
    for place in range(guard.shape[0]):
        at_end[place] = 1 if guard[place] <= slack[place] else 0
    for i in range(nc):
        capture(arc, i)
        if mode[i] == OPEN:
            if at_end[i] == 1 and u[3 * i + 2] < 0.0:
                closed[i], collides = 1.0, True
            at_end[i] = 0
    return close_limits(arc) or collides


@kernel
def close_limits(arc):
    """Close the limits that are reached; return True if one collides."""
    mode, at_end = integers(arc, e.INTERVAL_MODE), integers(arc, e.AT_END)
    lower, upper, u = vector(arc, e.LOWER), vector(arc, e.UPPER), vector(arc, e.U)
    first_u, first_guard = u.shape[0] - mode.shape[0], at_end.shape[0] - mode.shape[0]
    collides = False
    for k in range(mode.shape[0]):
        if mode[k] == AWAY:
            approaches = pushes(lower, upper, k) * u[first_u + k] < 0.0
            if at_end[first_guard + k] == 1 and approaches:
                vector(arc, e.INTERVAL_CLOSED)[k], mode[k], collides = 1.0, 0, True
            at_end[first_guard + k] = 0
    return collides


@kernel
def capture(arc, i):
    """Let a slow slip that turned back again and again within this step count as at rest."""
    mode, turns, u = integers(arc, e.CONTACT_MODE), integers(arc, e.TURNS), vector(arc, e.U)
    if mode[i] != SLIP or integers(arc, e.AT_END)[mode.shape[0] + i] == 0:
        return
    turns[i] += 1
    slow = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2) <= CAPTURE_SPEED
    if slow and turns[i] > TURNS_BEFORE_CAPTURE:
        mode[i] = STICK
