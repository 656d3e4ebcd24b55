"""Impulse and memory of contacts from step to step, by (candidate, feature) or by pair."""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._jit import kernel

NO_FEATURE = -1.0
"""Key of a slot that holds nothing."""
TURN = 0.9
"""Cosine of the angle by which the normal of a contact may turn from one step to the next."""
NOWHERE = -1
"""Where the row of a new contact came from."""


@kernel
def carry_over(slots, before, now, impulse, memory):
    """Move the rows of every contact to the slot that holds it now; new ones get zeros.

    A contact goes on where its feature does, or else, as from one facet to the next, where the
    normal has turned least, by less than TURN. Does nothing while every slot holds the feature
    that it held before.

    Args:
        slots: (first slot, behind the last one, slots of each candidate, kin): a contact goes on
            only among features with the same whole part of feature / kin.
        before: (feature, frame) of each slot for which `impulse` and `memory` stand: NO_FEATURE
            for an unused one, and rows t1, t2, n, shapes (nc,), (nc, 3, 3).
        now: (feature, frame) of each slot now.
        impulse: in and out, rows of the contacts, shape (at least 3 nc,).
        memory: in and out, one row per slot, shape (nc, any).
    """
    feature_before, feature = before[0], now[0]
    for first in range(slots[0], slots[1], slots[2]):
        for i in range(first, first + slots[2]):
            if feature[i] != feature_before[i]:
                _reorder(slots[2], slots[3], first, before, now, impulse, memory)
                break


@kernel
def _reorder(features, kin, first, before, now, impulse, memory):
    """Reorder the rows of the candidate whose slots begin at `first`.

    Each slot takes the row of its contact, or an empty one, in exchange for the row that it held.
    """
    feature_before, feature = before[0], now[0]
    came_from = np.full(features, NOWHERE)
    for s in range(features):
        for k in range(features):
            same = feature[first + s] == feature_before[first + k]
            if same and feature[first + s] != NO_FEATURE:
                came_from[s] = k
    for s in range(features):
        if came_from[s] == NOWHERE and feature[first + s] != NO_FEATURE:
            came_from[s] = _turned_least(s, (features, kin), first, before, now, came_from)
    held = np.arange(features)
    for k in range(features):
        if not _among(k, came_from):
            held[k] = NOWHERE
            for e in range(3):
                impulse[3 * (first + k) + e] = 0.0
            memory[first + k] = 0.0
    for s in range(features):
        k = s
        while held[k] != came_from[s]:
            k += 1
        held[k] = held[s]
        _exchange(first + s, first + k, impulse, memory)


@kernel
def _turned_least(s, slots, first, before, now, came_from):
    """Return the slot from whose normal that of slot s has turned least, NOWHERE without one."""
    found, most = NOWHERE, TURN
    family = now[0][first + s] // slots[1]
    for k in range(slots[0]):
        feature = before[0][first + k]
        if feature != NO_FEATURE and feature // slots[1] == family and not _among(k, came_from):
            alike = 0.0
            for e in range(3):
                alike += now[1][first + s, 2, e] * before[1][first + k, 2, e]
            if alike > most:
                found, most = k, alike
    return found


@kernel
def _among(value, values):
    """Return whether `value` is one of `values`."""
    found = False
    for k in range(values.shape[0]):
        found = found or values[k] == value
    return found


@kernel
def _exchange(i, j, impulse, memory):
    """Exchange the rows of slots i and j."""
    for e in range(3):
        impulse[3 * i + e], impulse[3 * j + e] = impulse[3 * j + e], impulse[3 * i + e]
    for e in range(memory.shape[1]):
        memory[i, e], memory[j, e] = memory[j, e], memory[i, e]
