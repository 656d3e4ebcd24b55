"""Impulse and memory of contacts from step to step, by (candidate, feature)."""

from __future__ import annotations

from contact_sim.solvers.jit import kernel

NO_FEATURE = -1.0
"""Key of a slot that holds nothing."""


@kernel
def carry_over(features, feature_before, feature, impulse, memory):
    """Move the rows of every contact to the slot that holds its feature now; new ones get zeros.

    Does nothing while every slot holds the feature that it held before.

    Args:
        features: slots of each candidate, an integer.
        feature_before: feature of each slot for which `impulse` and `memory` stand, shape (nc,).
        feature: feature that each slot holds now, NO_FEATURE for an unused one, shape (nc,).
        impulse: in and out, rows of the contacts, shape (at least 3 nc,).
        memory: in and out, one row per slot, shape (nc, any).
    """
    for first in range(0, feature.shape[0], features):
        for i in range(first, first + features):
            if feature[i] != feature_before[i]:
                _reorder(features, first, feature_before, feature, impulse, memory)
                break


@kernel
def _reorder(features, first, feature_before, feature, impulse, memory):
    """Reorder the rows of the candidate whose slots begin at `first`.

    Rows whose feature has gone are emptied; then each slot takes the row of its feature, or an
    empty one, in exchange for the row that it held.
    """
    held = feature_before[first : first + features].copy()
    for s in range(features):
        if not _among(held[s], feature, first, features):
            held[s] = NO_FEATURE
            impulse[3 * (first + s) : 3 * (first + s) + 3] = 0.0
            memory[first + s] = 0.0
    for s in range(features):
        wanted = feature[first + s]
        if not _among(wanted, held, s, features - s):
            wanted = NO_FEATURE
        k = s
        while held[k] != wanted:
            k += 1
        held[k] = held[s]
        _exchange(first + s, first + k, impulse, memory)


@kernel
def _among(key, keys, first, count):
    """Return whether `key` names a feature and is one of `count` keys from `first` on."""
    for k in range(first, first + count):
        if keys[k] == key:
            return key != NO_FEATURE
    return False


@kernel
def _exchange(i, j, impulse, memory):
    """Exchange the rows of slots i and j."""
    for e in range(3):
        impulse[3 * i + e], impulse[3 * j + e] = impulse[3 * j + e], impulse[3 * i + e]
    for e in range(memory.shape[1]):
        memory[i, e], memory[j, e] = memory[j, e], memory[i, e]
