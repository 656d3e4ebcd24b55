"""Storage slots for the contacts of a candidate or of all pairs of bodies.

A slot is a row of the arrays gap, position, frame and feature. The feature names the contact that
it holds, NO_FEATURE none. Each candidate has a fixed number of slots, which take the nearest
contacts with the ground, nearest first. All pairs of bodies share one pool of slots, because few
of many pairs touch. `carry_over` moves impulses and memory with their contacts from step to step.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision._surface import tangents
from contact_sim.dynamics._vectors import dot, put, vec
from contact_sim.solvers._jit import kernel

NO_FEATURE = -1.0  # feature of an empty slot
UNUSED_GAP = 1e3  # gap of an empty slot [m]


@kernel
def write_frame(frame, i, n):
    """Write the rows t1, t2, n of a contact frame."""
    t1, t2 = tangents(n[0], n[1], n[2])
    frame[i, 0, 0], frame[i, 0, 1], frame[i, 0, 2] = t1
    frame[i, 1, 0], frame[i, 1, 1], frame[i, 1, 2] = t2
    frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2] = n


# Slots of a candidate, filled by a search over facets. `found` is (distance, frame, feature), the
# arrays of `detect` over all slots, each as one row of numbers or as its address: n of slot i is
# at NORMAL + 9 i of the frames. The candidate has `slots` slots from `first` on.

FRAME, NORMAL = 9, 6  # numbers of a frame, and the first of its third row

SAME_NORMAL = 1.0 - 1e-9
"""Cosine between normals above which two contacts of a candidate count as one."""


@kernel
def clear_slots(found, first, slots):
    """Empty the slots of a candidate."""
    distance, frame, feature = found
    for i in range(first, first + slots):
        distance[i], feature[i] = UNUSED_GAP, NO_FEATURE
        put(frame, FRAME * i + NORMAL, (0.0, 0.0, 1.0))


@kernel
def keep_facet_contact(found, first, slots, away, normal, key):
    """Insert a contact by its distance `away` [m]; of two with one normal keep the nearer.

    `key` is its feature.
    """
    distance, frame, feature = found
    last = first + slots - 1
    place = first
    # slot of a contact with the same normal, the first free one, or the last
    while place < last and feature[place] != NO_FEATURE:
        if dot(normal, vec(frame, FRAME * place + NORMAL)) > SAME_NORMAL:
            break
        place += 1
    if feature[place] != NO_FEATURE and away >= distance[place]:
        return
    # move farther ones back
    while place > first and distance[place - 1] > away:
        distance[place], feature[place] = distance[place - 1], feature[place - 1]
        before = vec(frame, FRAME * (place - 1) + NORMAL)
        put(frame, FRAME * place + NORMAL, before)
        place -= 1
    distance[place], feature[place] = away, key
    put(frame, FRAME * place + NORMAL, normal)


@kernel
def clear_far_slots(found, first, slots, near):
    """Empty the slots of contacts farther than `near` [m], but for that of the nearest."""
    for i in range(first + 1, first + slots):
        if found[0][i] > near:
            clear_slots(found, i, first + slots - i)
            break


@kernel
def keep_touch(found, first, slots, touch, limit):
    """Insert the contact `touch`, (distance, normal, feature); return False if beyond `limit`."""
    away, normal, key = touch
    if not abs(away) <= limit:
        return False
    keep_facet_contact(found, first, slots, away, normal, key)
    return True


# The pool of the pairs: (first slot, counts (2,), position (nc, 3), frame (nc, 3, 3), gap (nc,),
# feature (nc,)). The feature is CONTACTS · pair + contact of the pair.

CONTACTS = 2**33  # number of different contacts that one pair can have
KEPT, DROPPED = range(2)  # places in the counts of a pool
CLOSE = 0.005
"""Gap up to which contacts share a full pool evenly among their pairs [m]."""


@kernel
def pair_of(feature):
    """Return the pair of a slot, −1 for an empty one."""
    return int(feature) // CONTACTS if feature != NO_FEATURE else -1


@kernel
def any_kept(first, feature):
    """Return whether a slot from `first` on is not empty."""
    kept = 0
    for i in range(first, feature.shape[0]):  # without a branch: many at a time
        kept += feature[i] != NO_FEATURE
    return kept > 0


@kernel
def clear_pool(pool):
    """Empty the slots of a pool."""
    first, counts, position, frame, gap, feature = pool
    counts[KEPT] = 0
    if not any_kept(first, feature):
        return
    for i in range(first, gap.shape[0]):
        if feature[i] != NO_FEATURE:
            gap[i], feature[i] = UNUSED_GAP, NO_FEATURE
            write_frame(frame, i, (0.0, 0.0, 1.0))
            position[i, 0] = position[i, 1] = position[i, 2] = 0.0


@kernel
def keep_pair_contact(pool, key, away, normal, point):
    """Store a contact in a free slot, or in one that another contact gives up.

    The slots of a pair stand side by side if the pairs are searched one after the other.

    Args:
        pool: as above.
        key: its feature.
        away: signed distance [m].
        normal: unit, out of the second body towards the first.
        point: on the surface of the first body, in world [m].
    """
    first, counts, position, frame, gap, feature = pool
    slot = first + counts[KEPT]
    if slot < gap.shape[0]:
        counts[KEPT] += 1
    else:
        counts[DROPPED] += 1
        given_up, slot = slot_to_give_up(pool, pair_of(key), away), gap.shape[0] - 1
        if given_up == NO_SLOT:
            return
        for i in range(given_up, slot):
            gap[i], feature[i] = gap[i + 1], feature[i + 1]
            for a in range(3):  # assigned as rows, they would compile words for numba's errors
                position[i, a] = position[i + 1, a]
                for b in range(3):
                    frame[i, a, b] = frame[i + 1, a, b]
    gap[slot], feature[slot] = away, key
    position[slot, 0], position[slot, 1], position[slot, 2] = point
    write_frame(frame, slot, normal)


@kernel
def slot_to_give_up(pool, pair, away):
    """Return the slot of a full pool for a contact of a pair at the distance `away`, or NO_SLOT.

    A contact that may close soon takes the farthest one of the pair with most contacts, so that
    no pair is without any because another has many. Otherwise the nearest contacts are kept.
    """
    first, _, _, _, gap, feature = pool
    most = own = 0
    of_most = of_all = of_own = begin = first
    while begin < gap.shape[0]:
        this, far, end = pair_of(feature[begin]), begin, begin
        while end < gap.shape[0] and pair_of(feature[end]) == this:
            if gap[end] > gap[far]:
                far = end
            end += 1
        if end - begin > most:
            most, of_most = end - begin, far
        if gap[far] > gap[of_all]:
            of_all = far
        if this == pair:
            own, of_own = end - begin, far
        begin = end
    if away <= CLOSE and most > own + 1:
        return of_most
    slot = of_own if away <= CLOSE and own > 0 else of_all
    return slot if gap[slot] > away else NO_SLOT


# Impulse and memory of contacts from step to step.

MIN_NORMAL_COSINE = 0.9  # smallest cosine between the normals of one contact in successive steps
NO_SLOT = -1  # previous slot of a new contact


@kernel
def carry_over(slots, before, now, impulse, memory):
    """Move the rows of every contact to its slot of now; new ones get zeros.

    A contact continues where its feature is, or else, as from one facet to the next, where the
    normal has turned least, up to MIN_NORMAL_COSINE. Nothing is done while every slot holds the
    same feature as before.

    Args:
        slots: (first slot, one past the last, slots of each candidate, kin): a contact continues
            only among features with the same whole part of feature / kin.
        before: (feature, frame) of each slot to which `impulse` and `memory` belong, shapes (nc,),
            (nc, 3, 3).
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
    """Permute the rows of the candidate whose first slot is `first`; clear the unused ones."""
    came_from = slots_before((features, kin), first, before, now)
    # clear the rows that no contact takes over
    row_in = np.arange(features)
    for k in range(features):
        if not _contains(k, came_from):
            row_in[k] = NO_SLOT
            for e in range(3):
                impulse[3 * (first + k) + e] = 0.0
            memory[first + k] = 0.0
    # permute by exchanges
    for s in range(features):
        k = s
        while row_in[k] != came_from[s]:
            k += 1
        row_in[k] = row_in[s]
        _exchange(first + s, first + k, impulse, memory)


@kernel
def slots_before(slots, first, before, now):
    """Return the slot that each contact of a candidate had before, NO_SLOT for new ones, (slots,).

    `slots` is (slots of the candidate, kin), `first` its first one, from which the result counts;
    the others as in `carry_over`.
    """
    feature_before, feature, features = before[0], now[0], slots[0]
    came_from = np.full(features, NO_SLOT)
    # the same feature, or the most similar normal
    for s in range(features):
        for k in range(features):
            same = feature[first + s] == feature_before[first + k]
            if same and feature[first + s] != NO_FEATURE:
                came_from[s] = k
    for s in range(features):
        if came_from[s] == NO_SLOT and feature[first + s] != NO_FEATURE:
            came_from[s] = _nearest_normal(s, slots, first, before, now, came_from)
    return came_from


@kernel
def _nearest_normal(s, slots, first, before, now, came_from):
    """Return the free slot whose normal turned least to that of slot s, NO_SLOT without one."""
    best, largest = NO_SLOT, MIN_NORMAL_COSINE
    family = now[0][first + s] // slots[1]
    for k in range(slots[0]):
        feature = before[0][first + k]
        if feature != NO_FEATURE and feature // slots[1] == family and not _contains(k, came_from):
            cosine = 0.0
            for e in range(3):
                cosine += now[1][first + s, 2, e] * before[1][first + k, 2, e]
            if cosine > largest:
                best, largest = k, cosine
    return best


@kernel
def _contains(value, values):
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
