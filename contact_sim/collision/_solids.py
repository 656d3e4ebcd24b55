"""Solids: spheres, capsules and boxes on bodies, as they lie in the world.

A solid is a core, a point, a segment along its z axis or a box, and everything within `radius` of
it. In kernels it is a tuple (x, y, z, centre, half, radius): its axes and centre in world, and the
half sizes of its core.
"""

from __future__ import annotations

from contact_sim.collision._contact_keys import NO_FEATURE
from contact_sim.collision._facets import UNUSED_GAP
from contact_sim.collision._surface import tangents
from contact_sim.dynamics._vectors import add, dot, scaled, sub
from contact_sim.solvers._jit import kernel

# --- Slots for the contacts between bodies: few of many pairs touch, so all pairs share the slots.
#
# The feature of such a slot says what it holds: CONTACTS · pair + contact of the pair. Slots are
# filled one after the other; where there are too few the nearest contacts are kept, and counted.

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


# --- Solids: spheres, capsules and boxes on bodies, as they lie in the world.

POINT, SEGMENT, BOX = range(3)
"""Kinds of cores."""
PLACE, SIZE = 12, 4
"""Numbers of a placement, rotation by columns and centre, and of half sizes and radius."""


@kernel
def place_solids(pose, body, place, out):
    """Fill the placements of all solids in world.

    Args:
        pose: rotation by columns and position of each body in world, shape (nb, 12).
        body: body that carries each solid, shape (n,).
        place: placement of each solid in the axes of its body, shape (n, 12).
        out: out, placement in world, shape (n, 12).
    """
    for i in range(body.shape[0]):
        j = body[i]
        for c in range(0, PLACE, 3):
            x, y, z = place[i, c], place[i, c + 1], place[i, c + 2]
            for k in range(3):
                out[i, c + k] = pose[j, k] * x + pose[j, 3 + k] * y + pose[j, 6 + k] * z
        for k in range(3):
            out[i, 9 + k] += pose[j, 9 + k]


@kernel
def solid_at(place, size, i):
    """Return solid i as a tuple."""
    return (
        (place[i, 0], place[i, 1], place[i, 2]),
        (place[i, 3], place[i, 4], place[i, 5]),
        (place[i, 6], place[i, 7], place[i, 8]),
        (place[i, 9], place[i, 10], place[i, 11]),
        (size[i, 0], size[i, 1], size[i, 2]),
        size[i, 3],
    )


@kernel
def core_of(size, i):
    """Return the kind of the core of solid i."""
    if size[i, 0] > 0.0:
        return BOX
    return SEGMENT if size[i, 2] > 0.0 else POINT


@kernel
def in_axes(solid, point):
    """Return a point of the world in the axes of a solid, from its centre."""
    d = sub(point, solid[3])
    return dot(solid[0], d), dot(solid[1], d), dot(solid[2], d)


@kernel
def out_of_axes(solid, a):
    """Return the world vector whose components in the axes of a solid are `a`."""
    return add(add(scaled(a[0], solid[0]), scaled(a[1], solid[1])), scaled(a[2], solid[2]))


@kernel
def axis_of(solid, k):
    """Return axis k of a solid."""
    if k == 0:
        return solid[0]
    return solid[1] if k == 1 else solid[2]


@kernel
def half_of(solid, k):
    """Return half size k of the core of a solid."""
    half = solid[4]
    if k == 0:
        return half[0]
    return half[1] if k == 1 else half[2]


@kernel
def clamped(x, half):
    """Return x within [−half, half]."""
    return min(max(x, -half), half)


@kernel
def nearest_in_core(a, half):
    """Return the point of a core nearest to the point `a`, both in its axes."""
    return clamped(a[0], half[0]), clamped(a[1], half[1]), clamped(a[2], half[2])
