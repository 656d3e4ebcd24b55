"""Events: the guards that start them, when they happen, and what is at its bound after them."""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, vector
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._modes import AWAY, OPEN, SLIP, STICK, is_limit
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import DEGENERATE, impulse_sign

CLOSING_DEPTH = 1e-12
"""Depth at which an approaching contact counts as closed [m]."""

FORCE_SLACK = 1e-9
"""Violation of a force bound that counts, relative to the largest force."""

LEAST_FORCE = 1e-9
"""Lower bound of that largest force [N]."""

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


# --- Guards: functions of the state that are positive while the modes hold (theory 2.6, T15).
#
#     open       gap φ while the contact approaches
#     closed     normal force f_n                    (not φ̇: it is zero at release)
#     stick      μ f_n − |f_t|
#     slip       u_t · d, d the direction in which it slips at the start
#     intervals  distance of the force from its bounds at rest, ±u while moving; of a limit that is
#                not touched |φ| while it is approached
#
# One array holds them: normal guards (nc,), tangential guards (nc,), intervals (ns,).


@kernel
def fill_guards(data, arc):
    """Fill the guards and how far below zero each may be; return how many are violated.

    `allowance` is added to the guards of forces, see `allow_start`.
    """
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    force, largest = vector(arc, e.FORCE), LEAST_FORCE
    for r in range(force.shape[0]):
        largest = max(largest, abs(force[r]))
    fill_contact_guards(data, arc, FORCE_SLACK * largest)
    fill_interval_guards(arc, FORCE_SLACK * largest)
    violated = 0
    for place in range(guard.shape[0]):
        if guard[place] < -slack[place]:
            violated += 1
    return violated


@kernel
def fill_contact_guards(data, arc, force_slack):
    """Fill normal and tangential guards of the contacts, and their slacks."""
    guard, slack, allowance = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.ALLOWANCE)
    gap, u, force = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.FORCE)
    heading, friction = matrix(arc, e.HEADING), vector(data, f.FRICTION)
    mode, stiction_speed = integers(arc, e.CONTACT_MODE), vector(arc, e.SETTINGS)[0]
    nc, active = mode.shape[0], vector(data, f.ACTIVE)
    for i in range(nc):
        r = 3 * i
        # no guard unless one follows
        guard[nc + i], slack[nc + i] = np.inf, 0.0
        if active[i] == DEGENERATE:
            guard[i], slack[i] = np.inf, CLOSING_DEPTH
            continue
        if mode[i] == OPEN:
            # open: the gap, or, at the surface, the speed of leaving it
            approaches = gap[i] > 0.0 or u[r + 2] < 0.0
            guard[i], slack[i] = gap[i] if approaches else u[r + 2], CLOSING_DEPTH
            continue
        guard[i], slack[i] = force[r + 2] + allowance[i], force_slack
        if mode[i] == STICK:
            # stick: distance from the cone
            tangential = np.sqrt(force[r] ** 2 + force[r + 1] ** 2)
            guard[nc + i] = friction[i] * force[r + 2] - tangential + allowance[nc + i]
            slack[nc + i] = force_slack
        elif friction[i] > 0.0:
            guard[nc + i] = u[r] * heading[i, 0] + u[r + 1] * heading[i, 1]
            slack[nc + i] = stiction_speed


@kernel
def fill_interval_guards(arc, force_slack):
    """Fill the guards of the interval rows and their slacks."""
    guard, slack, allowance = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.ALLOWANCE)
    u, force, gap = vector(arc, e.U), vector(arc, e.FORCE), vector(arc, e.INTERVAL_GAP)
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    mode, stiction_speed = integers(arc, e.INTERVAL_MODE), vector(arc, e.SETTINGS)[0]
    nc = integers(arc, e.CONTACT_MODE).shape[0]
    for k in range(mode.shape[0]):
        r, place = 3 * nc + k, 2 * nc + k
        if mode[k] == 0:
            guard[place] = min(force[r] - lower[k], upper[k] - force[r]) + allowance[place]
            slack[place] = force_slack
        elif mode[k] == AWAY:
            side = impulse_sign(lower, upper, k)
            distance, speed = side * gap[k], side * u[r]
            guard[place] = distance if distance > 0.0 or speed < 0.0 else speed
            slack[place] = CLOSING_DEPTH
        else:
            guard[place], slack[place] = mode[k] * u[r], stiction_speed


@kernel
def is_force_guard(arc, place):
    """Return True if the guard at `place` is one of a force."""
    mode, interval_mode = integers(arc, e.CONTACT_MODE), integers(arc, e.INTERVAL_MODE)
    nc = mode.shape[0]
    if place < nc:
        return mode[place] != OPEN
    if place < 2 * nc:
        return mode[place - nc] == STICK
    return interval_mode[place - 2 * nc] == 0


@kernel
def allow_start(arc, lenience):
    """Shift guards of forces that start below zero: twice what they miss is allowed.

    The contact problem has forces inside all bounds; where they are redundant, those that
    hold the modes exactly may lie a little outside. `lenience` slacks are added.
    """
    guard, slack, allowance = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.ALLOWANCE)
    for place in range(guard.shape[0]):
        allowance[place] = 0.0
        if is_force_guard(arc, place):
            allowance[place] = max(-2.0 * guard[place], 0.0) + lenience * slack[place]
            guard[place] += allowance[place]


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


# --- The start of a step: which contacts and limits are closed.


@kernel
def find_closed(arc):
    """Mark the contacts that are closed at the start of a step; return True if one collides."""
    gap, u, closed = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.CLOSED)
    mode, collides = integers(arc, e.CONTACT_MODE), False
    for i in range(gap.shape[0]):
        # closed before and near, at rest on the surface, or colliding with it
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
        side = impulse_sign(lower, upper, k)
        distance, speed = side * gap[k], side * u[first + k]
        held = mode[k] == 0 and distance <= HELD_GAP and speed <= RESTING_SPEED
        resting = distance <= TOUCHING_GAP and abs(speed) <= RESTING_SPEED
        colliding = not held and distance <= CLOSING_DEPTH and speed < -RESTING_SPEED
        closed[k] = 1.0 if held or resting or colliding else 0.0
        mode[k] = 0 if closed[k] == 1.0 else AWAY
        collides = collides or colliding or (held and speed < -IMPACT_SPEED)
    return collides


# --- The instant of an event.


@kernel
def watch_violated(arc):
    """Watch the guards that are violated, if any are.

    Those watched before count as violated from zero on. Returns the number of violated guards, and
    the largest violation of a watched one.
    """
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    watched, fresh, count = integers(arc, e.WATCHED), integers(arc, e.FRESH), 0
    for place in range(guard.shape[0]):
        limit = 0.0 if watched[place] == 1 else -slack[place]
        fresh[place] = 1 if guard[place] < limit else 0
        count += fresh[place]
    if count > 0:
        watched[:] = fresh
    return count, largest_violation(arc)


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
            # secant (regula falsi) where the guard at `low` is positive
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


# --- The state after an event.


@kernel
def prepare_event(arc):
    """Close what touches and note what is at its bound; return True if a contact collides."""
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    mode, at_end, u = integers(arc, e.CONTACT_MODE), integers(arc, e.AT_END), vector(arc, e.U)
    closed, nc, collides = vector(arc, e.CLOSED), mode.shape[0], False
    for place in range(guard.shape[0]):
        at_end[place] = 1 if guard[place] <= slack[place] else 0
    for i in range(nc):
        capture_slip(arc, i)
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
            approaches = impulse_sign(lower, upper, k) * u[first_u + k] < 0.0
            if at_end[first_guard + k] == 1 and approaches:
                vector(arc, e.INTERVAL_CLOSED)[k], mode[k], collides = 1.0, 0, True
            at_end[first_guard + k] = 0
    return collides


@kernel
def capture_slip(arc, i):
    """Take a slow slip that turned back several times within this step as at rest."""
    mode, turns, u = integers(arc, e.CONTACT_MODE), integers(arc, e.TURNS), vector(arc, e.U)
    if mode[i] != SLIP or integers(arc, e.AT_END)[mode.shape[0] + i] == 0:
        return
    turns[i] += 1
    slow = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2) <= CAPTURE_SPEED
    if slow and turns[i] > TURNS_BEFORE_CAPTURE:
        mode[i] = STICK
