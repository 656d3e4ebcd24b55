"""Contacts with a height field: a grid of heights, two triangles per cell.

The cell (i, j) has the corners A (i, j), B (i + 1, j), C (i + 1, j + 1), D (i, j + 1) and the
triangles A B C and A C D. The field is solid below and ends at its border.

    data      [0:2] heights along x and y; [2] distance between them [m]; [3:5] x and y of the
              first one [m]; [5] blocks along y
    relief    the heights [m], row by row; then the highest of every block of BLOCK x BLOCK cells

Features of the grid point (i, j) are numbered from 6 (n_y i + j) on: the two triangles of its
cell, the edges A B, A D and A C, and the corner A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_sim.arrays._fields import LIST_COUNT, LISTED
from contact_sim.collision._contact_slots import (
    NO_FEATURE,
    clear_far_slots,
    keep_facet_contact,
    keep_touch,
)
from contact_sim.collision._facets import (
    EXTENSION,
    INNER,
    INSIDE,
    LIST_REACH,
    LIST_SLACK,
    NONE,
    ROUNDED,
    TOLERANCE,
    append_to_list,
    begin_list,
    beyond,
    continues,
    distance_to_edge,
    distance_to_triangle,
    edge_curvature,
    extends_behind,
    is_convex,
    is_well_over,
    lies_in_plane,
    looks_for_spot,
    near_plane,
    nearest_on_edge,
    note_spot,
    on_spot,
    outside_bounds,
    plane_through,
    radial_curvature,
    serves,
    side_of_edges,
    store_edge,
    was_too_long,
)
from contact_sim.dynamics._vectors import add, cross, dot, scaled, sub
from contact_sim.solvers._jit import kernel

# One grid point: its patch of heights and the contacts with its six facets. Numbers only, no
# arrays: so a search over many of them takes a few nanoseconds each.

LOWER, UPPER, EDGE_X, EDGE_Y, DIAGONAL, CORNER = range(6)
PER_POINT = 6  # features of a grid point: two triangles, three edges, itself


class Patch(NamedTuple):
    """Heights around the grid point (i, j) [m]; NaN beyond the border."""

    a: float  # of (i, j)
    b: float  # of (i + 1, j)
    c: float  # of (i + 1, j + 1)
    d: float  # of (i, j + 1)
    before: float  # of (i − 1, j)
    behind: float  # of (i − 1, j − 1)
    below: float  # of (i, j − 1)


@kernel
def outside_box(p, side, limit):
    """Return whether p is farther than `limit` from 0 ≤ x, y ≤ side, z ≤ 0."""
    dx = max(-p[0], p[0] - side, 0.0)
    dy = max(-p[1], p[1] - side, 0.0)
    dz = max(p[2], 0.0)
    return dx * dx + dy * dy + dz * dz > limit * limit


@kernel
def patch_at(relief, nx, ny, i, j):
    """Return the heights around a grid point."""
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
    """Return whether a part is farther away than √`wide` [m] as seen from above."""
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

    `p` is a point in front of the field, x and y from the grid point [m]; `limit` is the largest
    distance of interest [m].
    """
    if part <= UPPER:
        return face_contact(patch, scale, p, part, limit)
    if part == CORNER:
        return corner_contact(patch, scale, p, limit)
    first, second, left, right = edge_of(patch, scale, part)
    away, n = nearest_on_edge(p, first, second, left, right, limit)
    if away < np.inf and not is_convex(first, second, left, right):
        away = np.inf
    return away, n


@kernel
def face_contact(patch, scale, p, part, limit):
    """Return distance and normal of a triangle for a point in front of it and over it."""
    per = 1.0 / scale
    rise_x, rise_y = per * (patch.b - patch.a), per * (patch.c - patch.b)
    if part == UPPER:
        rise_x, rise_y = per * (patch.c - patch.d), per * (patch.d - patch.a)
    above, square = p[2] - patch.a - rise_x * p[0] - rise_y * p[1], 1.0 + rise_x**2 + rise_y**2
    n = (-rise_x, -rise_y, 1.0)
    room = TOLERANCE * scale
    if above >= -room and above * above <= limit * limit * square:
        # the nearest point of the plane, times `square`: divide only on success
        x, y, side = square * p[0] + above * rise_x, square * p[1] + above * rise_y, square * scale
        if part == UPPER:
            x, y = y, x
        room *= square
        if -room <= y <= x + room and x <= side + room:
            size = np.sqrt(square)
            return above / size, scaled(1.0 / size, n)
    return np.inf, n


@kernel
def corner_contact(patch, scale, p, limit):
    """Return distance and direction from the grid point of a patch, if p is nearest to it."""
    off = (p[0], p[1], p[2] - patch.a)
    square = dot(off, off)
    if not (TOLERANCE * scale) ** 2 < square <= limit * limit:
        return np.inf, off
    # p must be on the far side of the six edges of the corner
    if beyond(off, square, (scale, 0.0, patch.b - patch.a)):
        return np.inf, off
    if beyond(off, square, (-scale, 0.0, patch.before - patch.a)):
        return np.inf, off
    if beyond(off, square, (0.0, scale, patch.d - patch.a)):
        return np.inf, off
    if beyond(off, square, (0.0, -scale, patch.below - patch.a)):
        return np.inf, off
    if beyond(off, square, (scale, scale, patch.c - patch.a)):
        return np.inf, off
    if beyond(off, square, (-scale, -scale, patch.behind - patch.a)):
        return np.inf, off
    return np.sqrt(square), scaled(1.0 / np.sqrt(square), off)


# The search over the grid.

NX, NY, SCALE, X0, Y0, BLOCKS_Y = range(6)
BLOCK = 8  # cells along each side of a block
TOUCHING = 1e-9  # height up to which a point over a triangle may be behind it by rounding [m]
MAX_DISTANCE = 2.0  # distance beyond which only the facet below or above is used [m]


@kernel
def size_of(ground):
    """Return the numbers of heights along x and y."""
    return int(ground.data[NX]), int(ground.data[NY])


@kernel
def point_of(ground, i, j):
    """Return the grid point (i, j), with x and y from the first one on [m]."""
    scale, ny = ground.data[SCALE], size_of(ground)[1]
    return scale * i, scale * j, ground.relief[ny * i + j]


@kernel
def corners_of(ground, i, j, triangle):
    """Return the corners of a triangle of the cell (i, j)."""
    a, c = point_of(ground, i, j), point_of(ground, i + 1, j + 1)
    if triangle == LOWER:
        return a, point_of(ground, i + 1, j), c
    return a, c, point_of(ground, i, j + 1)


@kernel
def cell_at(ground, x, y):
    """Return (i, j, triangle) of the cell nearest to x, y [m from the first height]."""
    nx, ny = size_of(ground)
    u, v = x / ground.data[SCALE], y / ground.data[SCALE]
    i = int(min(u, nx - 2.0)) if u > 0.0 else 0
    j = int(min(v, ny - 2.0)) if v > 0.0 else 0
    return i, j, LOWER if v - j <= u - i else UPPER


@kernel
def height_in(ground, x, y):
    """Return the height of the field at x, y inside of it [m from the first height]."""
    i, j, triangle = cell_at(ground, x, y)
    a, b, c = corners_of(ground, i, j, triangle)
    n = cross(sub(b, a), sub(c, a))
    return a[2] - (n[0] * (x - a[0]) + n[1] * (y - a[1])) / n[2]


@kernel
def field_height(ground, x, y):
    """Return the height of the field at x, y in world [m], NaN beside it."""
    nx, ny = size_of(ground)
    x, y, scale = x - ground.data[X0], y - ground.data[Y0], ground.data[SCALE]
    if not (0.0 <= x <= scale * (nx - 1) and 0.0 <= y <= scale * (ny - 1)):
        return np.nan
    return height_in(ground, x, y)


@kernel
def find_on_field(ground, x, y, z, reach, known, found, first, slots):
    """Fill the slots of a point with its contacts; arguments as `find_contacts`.

    `known` is the list of the point, see _facets.py, of length 0 without one.
    """
    ny, scale = size_of(ground)[1], ground.data[SCALE]
    p = (x - ground.data[X0], y - ground.data[Y0], z)
    near, on_flat = abs(reach), known.shape[0] > 0 and on_spot(known, p, abs(reach))
    if on_flat and keep_touch(found, first, slots, touch_on_field(ground, p, near), near):
        return
    off, behind = off_vertical(ground, p)
    bound = np.sqrt(dot(off, off))
    # its length bounds the search
    limit = max(bound * (1.0 + TOLERANCE), reach, scale * TOLERANCE)
    if not bound <= MAX_DISTANCE:
        limit = near if reach < 0.0 and not behind else max(near, MAX_DISTANCE)
    elif reach < 0.0 and not behind:
        limit = near
    if bound < np.inf:
        if behind:
            find_behind(ground, p, limit, found, first, slots)
        else:
            find_near(ground, p, limit, near, known, found, first, slots)
            clear_far_slots(found, first, slots, near)
            alone = slots == 1 or found[2][first + 1] == NO_FEATURE
            if (
                known.shape[0] > 0
                and alone
                and found[0][first] <= near
                and looks_for_spot(known, p)
            ):
                look_around(ground, p, near, near + LIST_SLACK, known, int(found[2][first]))
    if not bound <= MAX_DISTANCE and found[2][first] == NO_FEATURE:  # NaN as well
        on_x, on_y = p[0] - off[0], p[1] - off[1]
        i, j, triangle = cell_at(ground, on_x, on_y)
        direction = (0.0, 0.0, 1.0) if behind or not bound < np.inf else scaled(1.0 / bound, off)
        key = PER_POINT * (ny * i + j) + triangle
        keep_facet_contact(found, first, slots, -bound if behind else bound, direction, key)


@kernel
def touch_on_field(ground, p, limit):
    """Return height over the triangle at p, negative behind it, its normal and number.

    The height is infinite if p is near an edge or not over the triangle, and perhaps above
    `limit`. `p` has x and y from the first height on [m].
    """
    nx, ny = size_of(ground)
    scale, (i, j, part) = ground.data[SCALE], cell_at(ground, p[0], p[1])
    off, facet = (p[0] - scale * i, p[1] - scale * j, p[2]), PER_POINT * (ny * i + j) + part
    away, n = face_contact(patch_at(ground.relief, nx, ny, i, j), scale, off, part, limit)
    if TOUCHING < away < np.inf:
        # where it touches, from the corner of the cell
        x, y = off[0] - away * n[0], off[1] - away * n[1]
        if part == UPPER:
            x, y = y, x
        inner = y >= INNER and x - y >= 2.0 * INNER and scale - x >= INNER
        return (away if inner else np.inf), n, facet
    a, b, c = corners_of(ground, i, j, part)
    if not is_well_over(p, a, b, c):
        return np.inf, n, facet
    if off_vertical(ground, p)[1]:
        n = plane_through(a, b, c)
        return dot(n, sub(p, a)), n, facet
    return away, n, facet


@kernel
def look_around(ground, p, limit, radius, known, facet):
    """Note the room around p, up to `radius`, with the triangle `facet` alone in it."""
    i, j, part = place_of(ground, facet)
    if part > UPPER:
        note_spot(known, p, 0.0, facet, 0.0)
        return
    nx, ny = size_of(ground)
    scale, room, triangle = ground.data[SCALE], radius, corners_of(ground, i, j, part)
    first_i, last_i = grid_range(ground, p[0], radius, nx)
    first_j, last_j = grid_range(ground, p[1], radius, ny)
    for i in range(first_i, last_i + 1):
        for j in range(first_j, last_j + 1):
            patch, start = patch_at(ground.relief, nx, ny, i, j), (scale * i, scale * j, 0.0)
            off = sub(p, start)
            if room > limit and not outside_box(
                (off[0], off[1], off[2] - top_of(patch)), scale, room
            ):
                local = sub(triangle[0], start), sub(triangle[1], start), sub(triangle[2], start)
                for part in range(PER_POINT):
                    if PER_POINT * (ny * i + j) + part != facet:
                        room = min(room, distance_to_part(patch, scale, off, part, local))
    note_spot(known, p, room, facet, limit)


@kernel
def distance_to_part(patch, scale, p, part, triangle):
    """Return the distance of p from a part of a patch [m].

    Infinite where the part continues the plane of `triangle` or has no contact of its own.
    """
    a, b = (0.0, 0.0, patch.a), (scale, 0.0, patch.b)
    c, d = (scale, scale, patch.c), (0.0, scale, patch.d)
    if part <= UPPER:
        second, third = (b, c) if part == LOWER else (c, d)
        if second[2] + third[2] != second[2] + third[2]:  # not-a-number: beyond the border
            return np.inf
        if continues(triangle, (a, second, third)):
            return np.inf
        return distance_to_triangle(p, a, second, third)
    if part == CORNER:
        n = plane_through(triangle[0], triangle[1], triangle[2])
        flat = lies_in_plane(n, triangle[0], a) and lies_in_plane(n, triangle[0], b)
        flat = flat and lies_in_plane(n, triangle[0], c) and lies_in_plane(n, triangle[0], d)
        before, below = (-scale, 0.0, patch.before), (0.0, -scale, patch.below)
        for v in (before, (-scale, -scale, patch.behind), below):
            flat = flat and lies_in_plane(n, triangle[0], v)
        own = a == triangle[0] or a == triangle[1] or a == triangle[2]
        off = sub(p, a)
        return np.inf if flat or own else np.sqrt(dot(off, off))
    first, second, left, right = edge_of(patch, scale, part)
    exists = first[2] + second[2] == first[2] + second[2]
    if not exists or not is_convex(first, second, left, right):
        return np.inf
    return distance_to_edge(p, first, second)


@kernel
def off_vertical(ground, p):
    """Return the way to a point from the field below or above it, and whether it is behind.

    Beside the field, from the nearest place on its border as seen from above.
    """
    nx, ny = size_of(ground)
    scale = ground.data[SCALE]
    on_x = min(max(p[0], 0.0), scale * (nx - 1))
    on_y = min(max(p[1], 0.0), scale * (ny - 1))
    off = (p[0] - on_x, p[1] - on_y, p[2] - height_in(ground, on_x, on_y))
    return off, off[0] == 0.0 and off[1] == 0.0 and off[2] <= 0.0


@kernel
def grid_range(ground, middle, limit, count):
    """Return the first and the last grid line within `limit` of a coordinate, of `count`."""
    per = 1.0 / ground.data[SCALE]
    lower, upper = (middle - limit) * per, (middle + limit) * per
    # far away, or not a number: none; the numbers are as small as those of lines
    first = int(min(lower, float(count + BLOCK))) if lower > 0.0 else 0
    last = int(min(upper, count - 1.0)) if upper >= 0.0 else -1
    return first, last


@kernel
def top_of_field(ground, middle, half):
    """Return a height that none within a rectangle exceeds, −inf beside the field [m].

    `middle` and `half` sizes of the rectangle: at least (x, y).
    """
    nx, ny = size_of(ground)
    first_i, last_i = grid_range(ground, middle[0] - ground.data[X0], half[0], nx)
    first_j, last_j = grid_range(ground, middle[1] - ground.data[Y0], half[1], ny)
    blocks, blocks_y, top = nx * ny, int(ground.data[BLOCKS_Y]), -np.inf
    for bi in range(first_i // BLOCK, last_i // BLOCK + 1):
        for bj in range(first_j // BLOCK, last_j // BLOCK + 1):
            top = max(top, ground.relief[blocks + blocks_y * bi + bj])
    return top


# A list contains grid points, each as SHIFT times its number plus a bit for each of its parts.

SHIFT = 64


@kernel
def find_near(ground, p, limit, reach, known, found, first, slots):
    """Do the same as `find_in_front` with the facets of a list that serves p, if there is one."""
    if not has_list(ground, p, limit, known):
        find_in_front(ground, p, limit, reach, found, first, slots)
        return
    nx, ny = size_of(ground)
    scale, distance = ground.data[SCALE], found[0]
    for place in range(LISTED, LISTED + int(known[LIST_COUNT])):
        point, parts = divmod(int(known[place]), SHIFT)
        i = int(point / ny)
        j = point - ny * i
        patch = patch_at(ground.relief, nx, ny, i, j)
        off, over = (p[0] - scale * i, p[1] - scale * j, p[2]), p[2] - top_of(patch)
        if outside_box((off[0], off[1], over), scale, limit):
            continue
        wide = limit * limit - max(over, 0.0) ** 2
        for part in range(PER_POINT):
            if parts >> part & 1 and not beside_part(off, part, wide):
                away, n = contact_with(patch, scale, off, part, limit)
                if away < np.inf:
                    key = PER_POINT * point + part
                    keep_facet_contact(found, first, slots, away, n, key)
                    limit = min(limit, max(distance[first], reach))


@kernel
def has_list(ground, p, limit, known):
    """Return whether a list serves p, after making it anew where it did not."""
    if known.shape[0] == 0 or not limit <= LIST_REACH:
        return False
    if serves(known, p, limit):
        return True
    return not was_too_long(known, p) and list_facets(ground, p, limit + LIST_SLACK, known)


@kernel
def list_facets(ground, p, radius, known):
    """List the facets within a radius of p; return False if their points are too many."""
    nx, ny = size_of(ground)
    begin_list(known, p, radius)
    radius += ROUNDED
    first_i, last_i = grid_range(ground, p[0], radius, nx)
    first_j, last_j = grid_range(ground, p[1], radius, ny)
    scale, blocks_y = ground.data[SCALE], int(ground.data[BLOCKS_Y])
    side, blocks = BLOCK * scale, nx * ny
    for bi in range(first_i // BLOCK, last_i // BLOCK + 1):
        for bj in range(first_j // BLOCK, last_j // BLOCK + 1):
            top = ground.relief[blocks + blocks_y * bi + bj]
            if outside_box((p[0] - bi * side, p[1] - bj * side, p[2] - top), side, radius):
                continue
            for i in range(max(first_i, BLOCK * bi), min(last_i, BLOCK * bi + BLOCK - 1) + 1):
                for j in range(max(first_j, BLOCK * bj), min(last_j, BLOCK * bj + BLOCK - 1) + 1):
                    parts = parts_within(ground, p, i, j, radius)
                    if parts != 0 and not append_to_list(known, SHIFT * (ny * i + j) + parts):
                        return False
    return True


@kernel
def parts_within(ground, p, i, j, radius):
    """Return a bit for each part of a grid point that may be within `radius` of p."""
    nx, ny = size_of(ground)
    patch, scale = patch_at(ground.relief, nx, ny, i, j), ground.data[SCALE]
    off, parts = (p[0] - scale * i, p[1] - scale * j, p[2]), 0
    if outside_box((off[0], off[1], off[2] - top_of(patch)), scale, radius):
        return 0
    a, b = (0.0, 0.0, patch.a), (scale, 0.0, patch.b)
    c, d = (scale, scale, patch.c), (0.0, scale, patch.d)
    if not outside_bounds(off, a, b, c, radius):
        parts |= 1 << LOWER
    if not outside_bounds(off, a, c, d, radius):
        parts |= 1 << UPPER
    if not outside_bounds(off, a, a, a, radius):
        parts |= 1 << CORNER
    for part in (EDGE_X, EDGE_Y, DIAGONAL):
        first, second, left, right = edge_of(patch, scale, part)
        convex = is_convex(first, second, left, right)
        if convex and not outside_bounds(off, first, second, second, radius):
            parts |= 1 << part
    return parts


@kernel
def find_in_front(ground, p, limit, reach, found, first, slots):
    """Fill the contacts of a point in front of the field; arguments as `find_on_field`."""
    nx, ny = size_of(ground)
    relief, scale, blocks_y = ground.relief, ground.data[SCALE], int(ground.data[BLOCKS_Y])
    first_i, last_i = grid_range(ground, p[0], limit, nx)
    first_j, last_j = grid_range(ground, p[1], limit, ny)
    side, distance, blocks = BLOCK * scale, found[0], nx * ny
    for bi in range(first_i // BLOCK, last_i // BLOCK + 1):
        for bj in range(first_j // BLOCK, last_j // BLOCK + 1):
            # skip blocks, then cells, whose highest point is too far below
            top = relief[blocks + blocks_y * bi + bj]
            if outside_box((p[0] - bi * side, p[1] - bj * side, p[2] - top), side, limit):
                continue
            for i in range(max(first_i, BLOCK * bi), min(last_i, BLOCK * bi + BLOCK - 1) + 1):
                for j in range(max(first_j, BLOCK * bj), min(last_j, BLOCK * bj + BLOCK - 1) + 1):
                    patch = patch_at(relief, nx, ny, i, j)
                    off = (p[0] - scale * i, p[1] - scale * j, p[2])
                    over = off[2] - top_of(patch)
                    if outside_box((off[0], off[1], over), scale, limit):
                        continue
                    wide = limit * limit - max(over, 0.0) ** 2
                    # all facets of the grid point; the nearest contact shrinks the search
                    for part in range(PER_POINT):
                        if beside_part(off, part, wide):
                            continue
                        away, n = contact_with(patch, scale, off, part, limit)
                        if away < np.inf:
                            key = PER_POINT * (ny * i + j) + part
                            keep_facet_contact(found, first, slots, away, n, key)
                            limit = min(limit, max(distance[first], reach))


@kernel
def find_behind(ground, p, limit, found, first, slots):
    """Fill the contacts of a point behind the field; arguments as `find_on_field`."""
    nx, ny = size_of(ground)
    room = TOLERANCE * ground.data[SCALE]
    # the nearest triangle that faces away from p
    nearest, depth, normal, key = limit, 0.0, (0.0, 0.0, 1.0), NO_FEATURE
    first_i, last_i = grid_range(ground, p[0], limit, nx - 1)
    first_j, last_j = grid_range(ground, p[1], limit, ny - 1)
    for i in range(first_i, last_i + 1):
        for j in range(first_j, last_j + 1):
            for triangle in (LOWER, UPPER):
                a, b, c = corners_of(ground, i, j, triangle)
                if not near_plane(p, a, b, c, nearest):
                    continue
                distance, n = distance_to_triangle(p, a, b, c), plane_through(a, b, c)
                if distance <= nearest and dot(n, sub(p, a)) <= room:
                    nearest, depth, normal = distance, dot(n, sub(p, a)), n
                    key = PER_POINT * (ny * i + j) + triangle
    if key == NO_FEATURE:
        return
    keep_facet_contact(found, first, slots, depth, normal, key)
    # others at the same place, or that extend beyond a concave edge
    limit = nearest * (1.0 + TOLERANCE) + room
    first_i, last_i = grid_range(ground, p[0], limit + EXTENSION, nx - 1)
    first_j, last_j = grid_range(ground, p[1], limit + EXTENSION, ny - 1)
    for i in range(first_i, last_i + 1):
        for j in range(first_j, last_j + 1):
            for triangle in (LOWER, UPPER):
                a, b, c = corners_of(ground, i, j, triangle)
                number = PER_POINT * (ny * i + j) + triangle
                if number == key or not near_plane(p, a, b, c, max(limit, EXTENSION)):
                    continue
                n = plane_through(a, b, c)
                away, (where, outside) = dot(n, sub(p, a)), side_of_edges(p, n, a, b, c)
                if away < -limit:
                    continue  # deeper than the ground is there
                touches = away <= room and distance_to_triangle(p, a, b, c) <= limit
                if where not in (INSIDE, NONE) and outside <= EXTENSION:
                    touches = touches or extends_beyond(ground, p, n, (i, j, triangle), where)
                if touches:
                    keep_facet_contact(found, first, slots, away, n, number)


@kernel
def field_signed_distance(ground, x, y, z):
    """Return the signed distance of a point from the surface at any distance [m]."""
    nx, ny = size_of(ground)
    p = (x - ground.data[X0], y - ground.data[Y0], z)
    off, behind = off_vertical(ground, p)
    limit = np.sqrt(dot(off, off))
    first_i, last_i = grid_range(ground, p[0], limit, nx - 1)
    first_j, last_j = grid_range(ground, p[1], limit, ny - 1)
    for i in range(first_i, last_i + 1):
        for j in range(first_j, last_j + 1):
            for triangle in (LOWER, UPPER):
                a, b, c = corners_of(ground, i, j, triangle)
                if near_plane(p, a, b, c, limit):
                    limit = min(limit, distance_to_triangle(p, a, b, c))
    return -limit if behind else limit


@kernel
def extends_beyond(ground, p, n, place, edge):
    """Return whether the triangle at `place` extends beyond an edge, see `extends_behind`."""
    nx, ny = size_of(ground)
    i, j, triangle = place
    a, b, c = corners_of(ground, i, j, triangle)
    ends = (a, b)
    if edge == 1:
        ends = (b, c)
    elif edge == 2:
        ends = (c, a)
    # third corner across the edge
    if triangle == LOWER:
        k, m = i, j - 1
        if edge == 1:
            k, m = i + 2, j + 1
        elif edge == 2:
            k, m = i, j + 1
    else:
        k, m = i + 1, j
        if edge == 1:
            k, m = i + 1, j + 2
        elif edge == 2:
            k, m = i - 1, j
    if not (0 <= k < nx and 0 <= m < ny):
        return False
    return extends_behind(p, n, ends, point_of(ground, k, m))


@kernel
def edges_of_field(ground, p, reach, edges):
    """Fill the convex edges within `reach` of p; return their number."""
    nx, ny = size_of(ground)
    relief, scale, blocks_y = ground.relief, ground.data[SCALE], int(ground.data[BLOCKS_Y])
    p = (p[0] - ground.data[X0], p[1] - ground.data[Y0], p[2])
    first_i, last_i = grid_range(ground, p[0], reach, nx)
    first_j, last_j = grid_range(ground, p[1], reach, ny)
    count, blocks = 0, nx * ny
    for bi in range(first_i // BLOCK, last_i // BLOCK + 1):
        for bj in range(first_j // BLOCK, last_j // BLOCK + 1):
            # skip blocks, then cells, whose highest point is too far below
            if p[2] - relief[blocks + blocks_y * bi + bj] > reach:
                continue
            for i in range(max(first_i, BLOCK * bi), min(last_i, BLOCK * bi + BLOCK - 1) + 1):
                for j in range(max(first_j, BLOCK * bj), min(last_j, BLOCK * bj + BLOCK - 1) + 1):
                    patch = patch_at(relief, nx, ny, i, j)
                    off = (p[0] - scale * i, p[1] - scale * j, p[2] - top_of(patch))
                    if outside_box(off, scale, reach):
                        continue
                    for part in (EDGE_X, EDGE_Y, DIAGONAL):
                        a, b, left, right = edge_of(patch, scale, part)
                        convex = is_convex(a, b, left, right)
                        # NaN beyond the border: no edge, or the end of the ground
                        if convex and b[2] == b[2] and a[2] == a[2]:
                            start = (scale * i, scale * j, 0.0)
                            a, b, local = add(a, start), add(b, start), p
                            if distance_to_edge(local, a, b) <= reach:
                                base = (ground.data[X0], ground.data[Y0], 0.0)
                                if left[2] != left[2]:
                                    a, b, left, right = b, a, right, left
                                left, right = add(left, start), add(right, start)
                                number = PER_POINT * (ny * i + j) + part
                                count = store_edge(
                                    edges, count, add(a, base), add(b, base), add(left, base),
                                    add(right, base), number,
                                )  # fmt: skip
    return count


@kernel
def edge_of(patch, scale, part):
    """Return both ends of an edge and the third corners to its left and right."""
    a, c = (0.0, 0.0, patch.a), (scale, scale, patch.c)
    b, d = (scale, 0.0, patch.b), (0.0, scale, patch.d)
    if part == DIAGONAL:
        return a, c, d, b
    if part == EDGE_X:
        return a, b, c, (0.0, -scale, patch.below)
    return d, a, c, (-scale, 0.0, patch.before)


@kernel
def field_curvature(ground, feature, x, y, z):
    """Return H of a feature, see `curvature`."""
    p = (x - ground.data[X0], y - ground.data[Y0], z)
    i, j, part = place_of(ground, feature)
    if part <= UPPER:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    a = point_of(ground, i, j)
    if part == CORNER:
        return radial_curvature(sub(p, a), (0.0, 0.0, 0.0))
    return edge_curvature(p, a, other_end(ground, i, j, part))


@kernel
def place_of(ground, feature):
    """Return the grid point and the part that a feature is."""
    number = int(feature)
    point, ny = number // PER_POINT, size_of(ground)[1]
    return point // ny, point % ny, number % PER_POINT


@kernel
def triangle_of_field(ground, feature):
    """Return the corners of a feature that is a triangle, x and y from the first height [m]."""
    i, j, triangle = place_of(ground, feature)
    return corners_of(ground, i, j, triangle)


@kernel
def other_end(ground, i, j, part):
    """Return the second end of an edge of the grid point (i, j)."""
    if part == EDGE_X:
        return point_of(ground, i + 1, j)
    if part == EDGE_Y:
        return point_of(ground, i, j + 1)
    return point_of(ground, i + 1, j + 1)
