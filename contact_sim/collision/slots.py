"""The contacts of one candidate, nearest first, while a search over facets finds them.

`found` is (distance, frame, feature), the arrays of `detect` over all slots; a candidate has the
slots from `first` on. A slot without a contact holds NO_FEATURE.
"""

from __future__ import annotations

from contact_sim.collision.keys import NO_FEATURE
from contact_sim.solvers.jit import kernel

UNUSED_GAP = 1e3
"""Gap of a slot without a contact [m]."""
SAME = 1.0 - 1e-9
"""Cosine of the angle between normals above which two contacts count as one."""


@kernel
def clear_slots(found, first, slots):
    """Empty the slots of a candidate."""
    distance, frame, feature = found
    for i in range(first, first + slots):
        distance[i], feature[i] = UNUSED_GAP, NO_FEATURE
        frame[i, 2, 0] = frame[i, 2, 1] = 0.0
        frame[i, 2, 2] = 1.0


@kernel
def keep_contact(found, first, slots, away, normal, key):
    """Put a contact in its place among the nearest ones, of two with one normal the nearer.

    Args:
        found: as above.
        first: first slot of the candidate.
        slots: number of its slots.
        away: signed distance [m].
        normal: three numbers.
        key: its feature.
    """
    distance, frame, feature = found
    last = first + slots - 1
    place = first
    while place < last and feature[place] != NO_FEATURE:
        if _along(normal, frame, place) > SAME:
            break
        place += 1
    if feature[place] != NO_FEATURE and away >= distance[place]:
        return
    while place > first and distance[place - 1] > away:
        distance[place], feature[place] = distance[place - 1], feature[place - 1]
        for e in range(3):
            frame[place, 2, e] = frame[place - 1, 2, e]
        place -= 1
    distance[place], feature[place] = away, key
    frame[place, 2, 0], frame[place, 2, 1], frame[place, 2, 2] = normal


@kernel
def _along(normal, frame, i):
    return normal[0] * frame[i, 2, 0] + normal[1] * frame[i, 2, 1] + normal[2] * frame[i, 2, 2]
