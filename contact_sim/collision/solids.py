"""Solids: spheres, capsules and boxes on bodies, as they lie in the world.

A solid is a core, a point, a segment along its z axis or a box, and everything within `radius` of
it. In kernels it is a tuple (x, y, z, centre, half, radius): its axes and centre in world, and the
half sizes of its core.
"""

from __future__ import annotations

from contact_sim.dynamics.vectors import add, dot, scaled, sub
from contact_sim.solvers.jit import kernel

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
