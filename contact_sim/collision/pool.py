"""Slots for the contacts between bodies: few of many pairs touch, so all pairs share the slots.

The feature of such a slot says what it holds: CONTACTS · pair + contact of the pair. Slots are
filled one after the other; where there are too few the nearest contacts are kept, and counted.
"""

from __future__ import annotations

from contact_sim.collision.keys import NO_FEATURE
from contact_sim.collision.slots import UNUSED_GAP
from contact_sim.collision.surface import tangents
from contact_sim.solvers.jit import kernel

CONTACTS = 64
"""Largest number of different contacts of one pair."""
HELD, LEFT_OUT = range(2)
"""Places in the counts of a pool."""


@kernel
def pair_of(feature):
    """Return the pair that a slot holds, −1 for an unused one."""
    return int(feature) // CONTACTS if feature != NO_FEATURE else -1


@kernel
def clear_pool(pool):
    """Empty the slots of a pool.

    That is (first slot, counts, position, frame, gap, feature), arrays of the shapes (2,),
    (nc, 3), (nc, 3, 3), (nc,) and (nc,).
    """
    first, counts, position, frame, gap, feature = pool
    counts[HELD] = 0
    for i in range(first, gap.shape[0]):
        gap[i], feature[i] = UNUSED_GAP, NO_FEATURE
        write_frame(frame, i, (0.0, 0.0, 1.0))
        position[i, 0] = position[i, 1] = position[i, 2] = 0.0


@kernel
def keep_contact(pool, key, away, normal, point):
    """Put a contact into a free slot, or in place of the farthest one that is farther.

    Args:
        pool: as above.
        key: its feature.
        away: signed distance [m].
        normal: unit, out of the second body towards the first.
        point: on the surface of the first body, in world [m].
    """
    first, counts, position, frame, gap, feature = pool
    slot = first + counts[HELD]
    if slot < gap.shape[0]:
        counts[HELD] += 1
    else:
        counts[LEFT_OUT] += 1
        slot = first
        for i in range(first, gap.shape[0]):
            if gap[i] > gap[slot]:
                slot = i
        if gap[slot] <= away:
            return
    gap[slot], feature[slot] = away, key
    position[slot, 0], position[slot, 1], position[slot, 2] = point
    write_frame(frame, slot, normal)


@kernel
def write_frame(frame, i, n):
    """Write the rows t1, t2, n of a contact frame."""
    t1, t2 = tangents(n[0], n[1], n[2])
    frame[i, 0, 0], frame[i, 0, 1], frame[i, 0, 2] = t1
    frame[i, 1, 0], frame[i, 1, 1], frame[i, 1, 2] = t2
    frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2] = n
