"""Contacts between bodies: which solids of the declared pairs are near each other, and where.

Pairs come in groups, of one island with another or with itself. Those of islands whose boxes are
apart are passed over: the search of many robots against each other grows with their number.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays.fields import GROUP_NUMBERS, PAIR_NUMBERS
from contact_sim.collision.box_contacts import boxes
from contact_sim.collision.pool import CONTACTS, clear_pool
from contact_sim.collision.round_contacts import capsule_on_box, capsules, sphere_on_core
from contact_sim.collision.solids import BOX, POINT, SEGMENT, core_of, solid_at
from contact_sim.collision.surface import NEAR
from contact_sim.solvers.jit import kernel


@kernel
def detect_pairs(solids, pairs, groups, boxes, pool):
    """Fill the slots of the contacts between bodies.

    Args:
        solids: (place, size, reach, island): placement of each in world, see
            `solids.place_solids`, (n, 12); half sizes of its core and radius [m], (n, 4); radius
            of the sphere about its centre that holds it [m], (n,); its island, (n,).
        pairs: see arrays.fields.PAIR_NUMBERS, the simpler core first, shape (any,).
        groups: see arrays.fields.GROUP_NUMBERS, shape (any,).
        boxes: scratch, lower and upper corner of what each island holds, shape (islands, 6).
        pool: the slots, see `pool.clear_pool`.
    """
    clear_pool(pool)
    enclose(solids, boxes)
    for g in range(0, groups.shape[0], GROUP_NUMBERS):
        one, other = groups[g], groups[g + 1]
        if one == other or overlap(boxes[one], boxes[other]):
            for k in range(groups[g + 2], groups[g + 3]):
                search_pair(solids, pairs, k, pool)


@kernel
def enclose(solids, boxes):
    """Fill the boxes of the islands, along the axes of the world and NEAR wider than needed."""
    place, _, reach, island = solids
    for i in range(boxes.shape[0]):
        for e in range(3):
            boxes[i, e], boxes[i, 3 + e] = np.inf, -np.inf
    for i in range(reach.shape[0]):
        box = boxes[island[i]]
        for e in range(3):
            box[e] = min(box[e], place[i, 9 + e] - reach[i] - NEAR)
            box[3 + e] = max(box[3 + e], place[i, 9 + e] + reach[i] + NEAR)


@kernel
def overlap(a, b):
    """Return whether two boxes have a point in common."""
    apart = False
    for e in range(3):
        apart = apart or a[e] > b[3 + e] or b[e] > a[3 + e]
    return not apart


@kernel
def search_pair(solids, pairs, k, pool):
    """Keep the contacts of pair k where its solids are near each other."""
    place, size, reach, _ = solids
    a, b = pairs[PAIR_NUMBERS * k], pairs[PAIR_NUMBERS * k + 1]
    bound, distance = reach[a] + reach[b] + NEAR, 0.0
    for e in range(9, 12):
        distance += (place[a, e] - place[b, e]) ** 2
    if distance < bound * bound:
        meet(place, size, a, b, pool, float(CONTACTS * k))


@kernel
def meet(place, size, i, j, pool, key):
    """Keep the contacts of solids i and j, whose cores are in the order of their kinds."""
    a, b = solid_at(place, size, i), solid_at(place, size, j)
    first, second = core_of(size, i), core_of(size, j)
    if first == POINT:
        sphere_on_core(a, b, NEAR, pool, key)
    elif second == SEGMENT:
        capsules(a, b, NEAR, pool, key)
    elif first == SEGMENT:
        capsule_on_box(a, b, NEAR, pool, key)
    elif second == BOX:
        boxes(a, b, NEAR, pool, key)
