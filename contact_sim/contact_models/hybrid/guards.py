"""Guards: functions of the state that are positive while the modes hold.

    open       gap φ while the contact approaches
    closed     normal force f_n                    (not φ̇: it is zero at release, theory T15)
    stick      μ f_n − |f_t|
    slip       u_t · d, d the direction in which it slips at the start
    intervals  distance of the force from its bounds while held, ±u while moving; of a limit that
               is not touched |φ| while it is approached

One array holds them: normal guards (nc,), tangential guards (nc,), intervals (ns,).
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.contact.immovable import LEFT_OUT
from contact_sim.contact.limits import pushes
from contact_sim.contact_models.hybrid import fields as e
from contact_sim.contact_models.hybrid.mode_elimination import AWAY, OPEN, STICK
from contact_sim.solvers.jit import kernel

CLOSING_DEPTH = 1e-12
"""Depth at which an approaching contact counts as closed [m]."""
FORCE_SLACK = 1e-9
"""Violation of a force bound that counts, relative to the largest force."""
LEAST_FORCE = 1e-9
"""Force that the largest one is at least taken for in that [N]."""


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
        guard[nc + i], slack[nc + i] = np.inf, 0.0
        if active[i] == LEFT_OUT:
            guard[i], slack[i] = np.inf, CLOSING_DEPTH
            continue
        if mode[i] == OPEN:
            approaches = gap[i] > 0.0 or u[r + 2] < 0.0
            guard[i], slack[i] = gap[i] if approaches else u[r + 2], CLOSING_DEPTH
            continue
        guard[i], slack[i] = force[r + 2] + allowance[i], force_slack
        if mode[i] == STICK:
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
            side = pushes(lower, upper, k)
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
    """Let guards of forces that start below zero be positive: twice what they miss is allowed.

    The contact problem has found forces inside all bounds; where they are redundant, those that
    hold the modes exactly may lie a little outside. `lenience` slacks are added.
    """
    guard, slack, allowance = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.ALLOWANCE)
    for place in range(guard.shape[0]):
        allowance[place] = 0.0
        if is_force_guard(arc, place):
            allowance[place] = max(-2.0 * guard[place], 0.0) + lenience * slack[place]
            guard[place] += allowance[place]
