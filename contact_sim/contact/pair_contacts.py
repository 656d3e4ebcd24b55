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
from contact_sim.collision.pair_rows import fill_pair_rows
from contact_sim.collision.pairs import detect_pairs
from contact_sim.collision.pool import pair_of
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
