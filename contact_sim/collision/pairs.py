"""Contacts between bodies: which solids of the declared pairs are near each other, and where."""

from __future__ import annotations

from contact_sim.arrays.fields import PAIR_NUMBERS
from contact_sim.collision.box_contacts import boxes
from contact_sim.collision.pool import CONTACTS, clear_pool
from contact_sim.collision.round_contacts import capsule_on_box, capsules, sphere_on_core
from contact_sim.collision.solids import BOX, POINT, SEGMENT, core_of, solid_at
from contact_sim.collision.surface import NEAR
from contact_sim.solvers.jit import kernel


@kernel
def detect_pairs(place, size, reach, pairs, pool):
    """Fill the slots of the contacts between bodies.

    Args:
        place: placement of each solid in world, see `solids.place_solids`, shape (n, 12).
        size: half sizes of its core and radius [m], shape (n, 4).
        reach: radius of the sphere about its centre that holds it [m], shape (n,).
        pairs: see arrays.fields.PAIR_NUMBERS, the simpler core first, shape (any,).
        pool: the slots, see `pool.clear_pool`.
    """
    clear_pool(pool)
    for k in range(0, pairs.shape[0], PAIR_NUMBERS):
        a, b = pairs[k], pairs[k + 1]
        bound, distance = reach[a] + reach[b] + NEAR, 0.0
        for e in range(9, 12):
            distance += (place[a, e] - place[b, e]) ** 2
        if distance < bound * bound:
            meet(place, size, a, b, pool, float(CONTACTS * (k // PAIR_NUMBERS)))


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
