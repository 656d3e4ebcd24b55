"""A grid point of a height field with the heights around it, and contacts with its facets.

Numbers only, no arrays: so a search over many of them costs a few nanoseconds each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_sim.collision.facets import (
    TOLERANCE,
    is_convex,
    nearest_on_edge,
)
from contact_sim.dynamics.vectors import scaled
from contact_sim.solvers.jit import kernel

LOWER, UPPER, EDGE_X, EDGE_Y, DIAGONAL, CORNER = range(6)
PER_POINT = 6
"""Features of a grid point: two triangles, three edges, itself."""


class Patch(NamedTuple):
    """The heights around the grid point (i, j) [m]; those beyond the border are NaN."""

    a: float
    """Of (i, j)."""
    b: float
    """Of (i + 1, j)."""
    c: float
    """Of (i + 1, j + 1)."""
    d: float
    """Of (i, j + 1)."""
    before: float
    """Of (i − 1, j)."""
    behind: float
    """Of (i − 1, j − 1)."""
    below: float
    """Of (i, j − 1)."""


@kernel
def outside_box(p, side, limit):
    """Return whether p is farther than `limit` from 0 ≤ x, y ≤ side, z ≤ 0."""
    dx = max(-p[0], p[0] - side, 0.0)
    dy = max(-p[1], p[1] - side, 0.0)
    dz = max(p[2], 0.0)
    return dx * dx + dy * dy + dz * dz > limit * limit


@kernel
def patch_at(relief, nx, ny, i, j):
    """Return the heights around a grid point; beyond the border NaN."""
    k, right, above = ny * i + j, i < nx - 1, j < ny - 1
    return Patch(
        relief[k],
        relief[k + ny] if right else np.nan,
        relief[k + ny + 1] if right and above else np.nan,
        relief[k + 1] if above else np.nan,
        relief[k - ny] if i > 0 else np.nan,
        relief[k - ny - 1] if i > 0 and j > 0 else np.nan,
        relief[k - 1] if j > 0 else np.nan,
    )


@kernel
def top_of(patch):
    """Return the highest corner of the cell of a patch."""
    top = patch.a
    for z in (patch.b, patch.c, patch.d):
        if z > top:
            top = z
    return top


@kernel
def beside_part(p, part, wide):
    """Return whether an edge or the corner lies farther away than √`wide` as seen from above.

    Args:
        p: a point, x and y from the grid point [m].
        part: LOWER to CORNER.
        wide: square of the largest distance of interest [m²].
    """
    x, y = p[0], p[1]
    if part == EDGE_X:
        return y * y > wide
    if part == EDGE_Y:
        return x * x > wide
    if part == DIAGONAL:
        return 0.5 * (x - y) * (x - y) > wide
    return part == CORNER and x * x + y * y > wide


@kernel
def contact_with(patch, scale, p, part, limit):
    """Return distance and direction from a part of a patch, infinite where p is not nearest to it.

    Args:
        patch: heights around a grid point.
        scale: side of the cells [m].
        p: a point in front of the field, x and y from the grid point [m].
        part: LOWER to CORNER.
        limit: largest distance of interest [m].
    """
    if part <= UPPER:
        return over_face(patch, scale, p, part, limit)
    a, c = (0.0, 0.0, patch.a), (scale, scale, patch.c)
    b, d = (scale, 0.0, patch.b), (0.0, scale, patch.d)
    if part == CORNER:
        return over_corner(patch, scale, p, limit)
    if part == DIAGONAL:
        first, second, left, right = a, c, d, b
    elif part == EDGE_X:
        first, second, left, right = a, b, c, (0.0, -scale, patch.below)
    else:
        first, second, left, right = d, a, c, (-scale, 0.0, patch.before)
    away, n = nearest_on_edge(p, first, second, left, right, limit)
    if away < np.inf and not is_convex(first, second, left, right):
        away = np.inf
    return away, n


@kernel
def over_face(patch, scale, p, part, limit):
    """Return distance and normal of a triangle for a point in front of it and over it."""
    per = 1.0 / scale
    rise_x, rise_y = per * (patch.b - patch.a), per * (patch.c - patch.b)
    if part == UPPER:
        rise_x, rise_y = per * (patch.c - patch.d), per * (patch.d - patch.a)
    above, square = p[2] - patch.a - rise_x * p[0] - rise_y * p[1], 1.0 + rise_x**2 + rise_y**2
    n = (-rise_x, -rise_y, 1.0)
    if above >= 0.0 and above * above <= limit * limit * square:
        # the nearest point of the plane, times `square`: only what is found is divided
        x, y, side = square * p[0] + above * rise_x, square * p[1] + above * rise_y, square * scale
        if part == UPPER:
            x, y = y, x
        room = TOLERANCE * side
        if -room <= y <= x + room and x <= side + room:
            size = np.sqrt(square)
            return above / size, scaled(1.0 / size, n)
    return np.inf, n


@kernel
def over_corner(patch, scale, p, limit):
    """Return distance and direction from the grid point of a patch, if p is nearest to it."""
    x, y, z, s = p[0], p[1], p[2] - patch.a, scale
    square = x * x + y * y + z * z
    if 0.0 < square <= limit * limit:
        right, left = z * (patch.b - patch.a), z * (patch.before - patch.a)
        up, down = z * (patch.d - patch.a), z * (patch.below - patch.a)
        on, back = z * (patch.c - patch.a), z * (patch.behind - patch.a)
        most = TOLERANCE * s * s
        near = not (s * x + right > most or -s * x + left > most or s * y + up > most)
        near = near and not (-s * y + down > most or s * (x + y) + on > most)
        if near and not -s * (x + y) + back > most:
            distance = np.sqrt(square)
            return distance, (x / distance, y / distance, z / distance)
    return np.inf, (x, y, z)
