"""The contacts between bodies in the arrays of a step.

Their search is compiled once and called by its address, as that over facets: few simulations have
pairs of bodies that may touch.
"""

from __future__ import annotations

from typing import Any

from numba import carray, types

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import Arrays, frames, integers, matrix, vector
from contact_sim.collision.by_address import call_with_arrays
from contact_sim.collision.keys import NO_FEATURE
from contact_sim.collision.pair_drift import pair_drift
from contact_sim.collision.pair_rows import fill_pair_rows
from contact_sim.collision.pairs import detect_pairs
from contact_sim.collision.pool import clear_pool, pair_of
from contact_sim.collision.solids import place_solids
from contact_sim.contact.problem_views import contact_branches
from contact_sim.solvers.jit import kernel, pointer

NUMBERS, INDICES = types.CPointer(types.float64), types.CPointer(types.int64)


@kernel
def find_pair_contacts(data):
    """Fill the slots of the contacts between bodies where pairs of them are declared."""
    search = integers(data, f.PAIR_SEARCH)[0]
    if search != 0:
        call_with_arrays(search, data)


@pointer(types.void(NUMBERS, INDICES, INDICES))
def find_pairs(numbers: Any, indices: Any, layout: Any) -> None:
    """Do so; the arrays of a step by their addresses."""
    data = Arrays(carray(numbers, (1,)), carray(indices, (1,)), carray(layout, (1,)))
    place = matrix(data, f.SOLID_POSE)
    place_solids(
        matrix(data, f.POSE), integers(data, f.SOLID_BODY), matrix(data, f.SOLID_PLACE), place
    )
    pool = (
        integers(data, f.LEAF_DOF).shape[0], integers(data, f.PAIR_COUNTS),
        matrix(data, f.POSITION), frames(data, f.FRAME), vector(data, f.GAP),
        vector(data, f.FEATURE),
    )  # fmt: skip
    solids = (
        place, matrix(data, f.SOLID_SIZE), vector(data, f.SOLID_REACH),
        integers(data, f.SOLID_ISLAND),
    )  # fmt: skip
    detect_pairs(
        solids, integers(data, f.PAIRS), integers(data, f.PAIR_GROUPS),
        matrix(data, f.ISLAND_BOX), pool,
    )  # fmt: skip


@kernel
def keep_slots(data):
    """Put contacts found within a step into the slots that they had at its start.

    New ones get slots that were free then, or none.
    """
    first, start = integers(data, f.LEAF_DOF).shape[0], vector(data, f.FEATURE_START)
    position, frame = matrix(data, f.POSITION), frames(data, f.FRAME)
    gap, feature = vector(data, f.GAP), vector(data, f.FEATURE)
    found = position[first:].copy(), frame[first:].copy(), gap[first:].copy()
    keys = feature[first:].copy()
    clear_pool((first, integers(data, f.PAIR_COUNTS), position, frame, gap, feature))
    for k in range(keys.shape[0]):
        if keys[k] != NO_FEATURE:
            i = slot_for(keys[k], first, start, feature)
            if i >= 0:
                position[i], frame[i], gap[i] = found[0][k], found[1][k], found[2][k]
                feature[i] = keys[k]


@kernel
def slot_for(key, first, start, feature):
    """Return the slot that held a contact at the start, else one free then and now, else −1."""
    free = -1
    for i in range(start.shape[0] - 1, first - 1, -1):
        if start[i] == key:
            return i
        if start[i] == NO_FEATURE and feature[i] == NO_FEATURE:
            free = i
    return free


@kernel
def fill_pair_drift(data):
    """Fill J̇ v of the contacts between bodies in their slots, field `pair_drift`."""
    call_with_arrays(integers(data, f.PAIR_SEARCH)[1], data)


@pointer(types.void(NUMBERS, INDICES, INDICES))
def find_pair_drift(numbers: Any, indices: Any, layout: Any) -> None:
    """Do so; the arrays of a step by their addresses."""
    data = Arrays(carray(numbers, (1,)), carray(indices, (1,)), carray(layout, (1,)))
    place, size = matrix(data, f.SOLID_POSE), matrix(data, f.SOLID_SIZE)
    motion = (
        matrix(data, f.TWIST), matrix(data, f.BIAS_ACCELERATION), vector(data, f.ORIGIN),
        vector(data, f.GRAVITY),
    )  # fmt: skip
    pair_drift(
        (place, size, integers(data, f.SOLID_BODY)), motion, integers(data, f.PAIRS),
        vector(data, f.FEATURE)[integers(data, f.LEAF_DOF).shape[0] :],
        vector(data, f.PAIR_DRIFT),
    )  # fmt: skip


@kernel
def pair_contact_rows(data):
    """Fill J and the reference weights of the contacts between bodies."""
    contacts = contact_branches(data)
    first, nc = contacts[0].shape[0], contacts[1].shape[0]
    if first == nc:
        return
    fill_pair_rows(
        matrix(data, f.COLUMNS), vector(data, f.ORIGIN), contacts, integers(data, f.DOF_PARENT),
        matrix(data, f.POSITION_START), frames(data, f.FRAME_START), vector(data, f.GAP_START),
        matrix(data, f.JACOBIAN_TRANSPOSED),
    )  # fmt: skip
    weight, of_pair = vector(data, f.INVERSE_WEIGHT), vector(data, f.PAIR_WEIGHT)
    for i in range(first, nc):
        pair = pair_of(contacts[1][i])
        for row in range(3 * i, 3 * i + 3):
            weight[row] = of_pair[pair] if pair >= 0 else 0.0
