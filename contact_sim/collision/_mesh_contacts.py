"""Contacts with a surface of triangles, found through a grid of bins over x and y.

The front of a triangle is the side from which its corners run counter-clockwise. A point is
behind the surface if the facet nearest to it faces away; hollows, overhangs and open borders are
allowed.

    data      [0] triangles; [1] convex edges and borders; [2] corners with such an edge;
              [3] side of the bins [m]; [4:6] x and y of the first [m]; [6:8] bins along x and y;
              [8:] where in the relief the parts behind the triangles begin
    relief    triangles: corners, normal, third corner across each edge if concave, else NaN;
              edges: ends, third corners left and right, NaN at a border;
              corners: place, normal of its cone, first and last of its neighbours;
              neighbours: places;
              bins: first entry of each and the end, highest point of each, entries

Features and entries are the numbers of the triangles, then edges, then corners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array, Indices, Vector
from contact_sim.collision._contact_slots import clear_slots, keep_facet_contact
from contact_sim.collision._facets import (
    EXTENSION,
    INSIDE,
    NONE,
    TOLERANCE,
    beyond,
    distance_to_edge,
    distance_to_triangle,
    edge_curvature,
    extends_behind,
    nearest_on_edge,
    plane_through,
    radial_curvature,
    side_of_edges,
    store_edge,
)
from contact_sim.dynamics._vectors import dot, scaled, sub, vec
from contact_sim.solvers._jit import kernel
from contact_sim.terrain import TriangleMesh

# The facets of a mesh, and the bins of the search.

BORDER_PROBE = 1e-4  # distance beyond a border at which ground is searched [m]
ENTRIES_PER_FACET = 16  # most entries of a facet in the bins, on average


@dataclass(frozen=True)
class MeshFacets:
    """Triangles, convex edges and corners with such an edge as numbers, one row each."""

    triangles: Array
    edges: Array
    corners: Array
    neighbours: Array  # positions of the neighbours of the corners [m], shape (any, 3)
    lower: Array  # least coordinates of triangles, edges, corners [m], shape (n, 3)
    upper: Array  # largest coordinates

    @classmethod
    def of(cls, mesh: TriangleMesh, seams: NDArray[np.bool_] | None = None) -> MeshFacets:
        """Return the facets of a mesh.

        Args:
            mesh: its triangles.
            seams: borders beyond which the surface continues, shape (m, 3); they are no edges.
        """
        places, normals = mesh.vertices[mesh.triangles], mesh.normals
        third = _across(mesh)
        span = third - places
        above = np.einsum('tki,ti->tk', span, normals)
        radial_curvature = above / np.linalg.norm(span, axis=2)
        across = np.where((radial_curvature > TOLERANCE)[:, :, None], third, np.nan)
        triangles = np.concatenate([places.reshape(-1, 9), normals, across.reshape(-1, 9)], axis=1)
        border = mesh.neighbours < 0
        convex = border | (radial_curvature < -TOLERANCE)
        if seams is not None:
            convex &= ~seams
        once = convex & (border | (mesh.neighbours > np.arange(len(places))[:, None]))
        following = np.roll(places, -1, axis=1)
        opposite = np.roll(places, -2, axis=1)
        edges = np.concatenate(
            [places[once], following[once], opposite[once], third[once]], axis=1
        )
        own = np.unique(
            np.concatenate([mesh.triangles[convex], np.roll(mesh.triangles, -1, axis=1)[convex]])
        )
        corners, neighbours = _corners(mesh, own)
        ends = edges[:, :6].reshape(-1, 2, 3)
        boxes = places, ends, corners[:, None, :3]
        return cls(
            triangles, edges, corners, neighbours,
            np.concatenate([box.min(axis=1) for box in boxes]),
            np.concatenate([box.max(axis=1) for box in boxes]),
        )  # fmt: skip


def beyond_borders(mesh: TriangleMesh) -> Array:
    """Return points a little beyond the borders, in the plane of their triangle.

    Shape (borders, 3, 3): three points of each, in the order of `mesh.neighbours`.
    """
    places, border = mesh.vertices[mesh.triangles], mesh.neighbours < 0
    along = (np.roll(places, -1, axis=1) - places)[border]
    out = np.cross(along, np.broadcast_to(mesh.normals[:, None], places.shape)[border])
    out *= BORDER_PROBE / np.linalg.norm(out, axis=1)[:, None]
    share = np.array([0.1, 0.5, 0.9])[None, :, None]
    return np.asarray(places[border][:, None] + share * along[:, None] + out[:, None])


def _across(mesh: TriangleMesh) -> Array:
    """Return the third corner across the edges of every triangle, NaN at a border, (m, 3, 3)."""
    places = mesh.vertices[mesh.triangles]
    third = np.full(places.shape, np.nan)
    for k in range(3):
        joined = np.flatnonzero(mesh.neighbours[:, k] >= 0)
        other = mesh.neighbours[joined, k]
        corners = places[other]
        ends = places[joined][:, [k, (k + 1) % 3]]
        shared = (corners[:, :, None] == ends[:, None]).all(axis=3).any(axis=2)
        third[joined, k] = corners[np.arange(len(joined)), shared.argmin(axis=1)]
    return third


def _corners(mesh: TriangleMesh, own: Indices) -> tuple[Array, Array]:
    """Return the numbers of the corners `own`, and the places of their neighbours."""
    around = mesh.triangles.ravel()
    pairs = np.concatenate(
        [
            np.stack([around, np.roll(mesh.triangles, -1, axis=1).ravel()], axis=1),
            np.stack([around, np.roll(mesh.triangles, 1, axis=1).ravel()], axis=1),
        ]
    )
    pairs = np.unique(pairs, axis=0)
    pairs = pairs[np.isin(pairs[:, 0], own)]
    first = np.searchsorted(pairs[:, 0], own)
    last = np.searchsorted(pairs[:, 0], own, side='right')
    places = mesh.vertices[mesh.triangles]
    forth, back = np.roll(places, -1, axis=1) - places, np.roll(places, 1, axis=1) - places
    cosine = np.einsum('tki,tki->tk', forth, back)
    cosine /= np.linalg.norm(forth, axis=2) * np.linalg.norm(back, axis=2)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    cone = np.zeros(mesh.vertices.shape)
    np.add.at(cone, mesh.triangles, angle[:, :, None] * mesh.normals[:, None])
    corners = np.concatenate(
        [mesh.vertices[own], cone[own], first[:, None], last[:, None]], axis=1
    )
    return corners, mesh.vertices[pairs[:, 1]]


@dataclass(frozen=True)
class Bins:
    """Squares over x and y, and which facets reach into each."""

    side: float  # [m]
    origin: tuple[float, float]  # least x and y [m]
    count: tuple[int, int]  # bins along x and y
    starts: Array  # first entry of every bin, and the number of all entries
    tops: Array  # highest point of every bin [m]
    entries: Array  # facets in every bin, in order

    @classmethod
    def of(cls, lower: Array, upper: Array) -> Bins:
        """Return bins for facets with these least and largest coordinates [m], (n, 3)."""
        origin, extent = lower[:, :2].min(axis=0), np.ptp(upper[:, :2], axis=0)
        extent = np.maximum(upper[:, :2].max(axis=0) - origin, 1e-6)
        side = float(np.sqrt(extent.prod() / len(lower)))
        while True:
            low = ((lower[:, :2] - origin) // side).astype(np.int64)
            high = ((upper[:, :2] - origin) // side).astype(np.int64)
            wide = high - low + 1
            if wide.prod(axis=1).sum() <= ENTRIES_PER_FACET * len(lower):
                break
            side *= 1.5
        count = high.max(axis=0) + 1
        facet = np.repeat(np.arange(len(lower)), wide.prod(axis=1))
        first = np.repeat(np.cumsum(wide.prod(axis=1)) - wide.prod(axis=1), wide.prod(axis=1))
        turn = np.arange(len(facet)) - first
        x, y = low[facet, 0] + turn // wide[facet, 1], low[facet, 1] + turn % wide[facet, 1]
        number = x * count[1] + y
        order = np.lexsort((facet, number))
        tops = np.full(int(count.prod()), -np.inf)
        np.maximum.at(tops, number, upper[facet, 2])
        starts = np.searchsorted(number[order], np.arange(count.prod() + 1))
        return cls(
            side, (float(origin[0]), float(origin[1])), (int(count[0]), int(count[1])),
            starts.astype(float), tops, facet[order].astype(float),
        )  # fmt: skip


# The search over the bins.

(
    TRIANGLES, EDGES, CORNERS, SIDE, X0, Y0, BINS_X, BINS_Y,
    EDGES_FROM, CORNERS_FROM, NEIGHBOURS_FROM, STARTS_FROM, TOPS_FROM, ENTRIES_FROM,
) = range(14)  # fmt: skip
TRIANGLE_NUMBERS, EDGE_NUMBERS, CORNER_NUMBERS = 21, 12, 8
MAX_DISTANCE = 2.0  # largest distance of a search [m]
MIN_DISTANCE = 1e-9  # smallest distance of a search [m]
WIDENING = 4.0  # factor by which an unsuccessful search is widened
STEEP = 1e-3  # vertical part of a unit normal below which a triangle counts as a wall


class Triangle(NamedTuple):
    """A triangle and what is next to it."""

    a: Vector  # first corner [m]
    b: Vector  # second corner
    c: Vector  # third corner
    n: Vector  # unit normal
    across_ab: Vector
    """Third corner of the triangle across the edge from a to b if that is concave, else NaN."""
    across_bc: Vector  # across the edge from b to c
    across_ca: Vector  # across the edge from c to a


@kernel
def find_on_mesh(ground, x, y, z, reach, found, first, slots):
    """Fill the slots of a point with its contacts; arguments as `find_contacts`."""
    p, limit, nearby = (x, y, z), max(abs(reach), MIN_DISTANCE), reach < 0.0
    reach = abs(reach)
    nearest = find_in_front(ground, p, limit, reach, found, first, slots)
    while not nearby and not abs(nearest) < np.inf and limit < MAX_DISTANCE:
        # nothing near: a triangle below or above bounds the search, or it is widened
        limit = min(WIDENING * limit, MAX_DISTANCE)
        below = distance_in_bin(ground, p)
        if below < MAX_DISTANCE:
            limit = below * (1.0 + TOLERANCE) + MIN_DISTANCE
        nearest = find_in_front(ground, p, limit, reach, found, first, slots)
        if below < MAX_DISTANCE:
            break
    if nearest < 0.0:
        # behind the surface: search again for triangles that face away
        clear_slots(found, first, slots)
        find_behind(ground, p, max(reach, -nearest), found, first, slots)


@kernel
def distance_in_bin(ground, p):
    """Return the distance from the nearest triangle in the bin of a point [m]."""
    relief, nearest = ground.relief, np.inf
    bx, last_x = bin_range(ground, p[0], 0.0, 0)
    by, last_y = bin_range(ground, p[1], 0.0, 1)
    if last_x < 0 or last_y < 0:
        return nearest
    begin, end = entries_of(ground, bx, by, p, np.inf)
    for place in range(begin, end):
        entry = int(relief[place])
        if entry >= int(ground.data[TRIANGLES]):
            break
        t = triangle_at(relief, entry)
        nearest = min(nearest, distance_to_triangle(p, t.a, t.b, t.c))
    return nearest


@kernel
def bin_range(ground, middle, limit, axis):
    """Return the first and the last bin within `limit` of a coordinate along an axis."""
    begin, side, count = ground.data[X0 + axis], ground.data[SIDE], ground.data[BINS_X + axis]
    low = max(np.floor((middle - limit - begin) / side), 0.0)
    high = min(np.floor((middle + limit - begin) / side), count - 1.0)
    if not low <= high:  # NaN as well
        return 0, -1
    return int(low), int(high)


@kernel
def entries_of(ground, bx, by, p, limit):
    """Return first and last entry of a bin, none if all are farther than `limit` from p."""
    data, relief, side = ground.data, ground.relief, ground.data[SIDE]
    k = int(data[BINS_Y]) * bx + by
    # distance from the box below the highest point of the bin
    x, y = p[0] - data[X0] - side * bx, p[1] - data[Y0] - side * by
    dx, dy = max(-x, x - side, 0.0), max(-y, y - side, 0.0)
    dz = max(p[2] - relief[int(data[TOPS_FROM]) + k], 0.0)
    if not dx * dx + dy * dy + dz * dz <= limit * limit * (1.0 + TOLERANCE):
        return 0, 0
    starts, entries = int(data[STARTS_FROM]), int(data[ENTRIES_FROM])
    return entries + int(relief[starts + k]), entries + int(relief[starts + k + 1])


@kernel
def find_in_front(ground, p, limit, reach, found, first, slots):
    """Store the contacts of a point in front of facets; return the distance of the nearest facet.

    It is negative if that is a triangle seen from behind, and infinite without one within `limit`.
    """
    data, relief, nearest, behind = ground.data, ground.relief, np.inf, np.inf
    triangles, edges, side = int(data[TRIANGLES]), int(data[EDGES]), data[SIDE]
    low_x, high_x = bin_range(ground, p[0], limit, 0)
    low_y, high_y = bin_range(ground, p[1], limit, 1)
    if high_x < low_x or high_y < low_y:
        return np.inf
    # bins in rings around that of p, so that near facets shrink the search early
    middle_x, middle_y = int((p[0] - data[X0]) // side), int((p[1] - data[Y0]) // side)
    rings = max(middle_x - low_x, high_x - middle_x, middle_y - low_y, high_y - middle_y)
    for ring in range(rings + 1):
        if (ring - 1) * side > limit:
            break
        for bx in range(max(middle_x - ring, low_x), min(middle_x + ring, high_x) + 1):
            skip = 1 if abs(bx - middle_x) == ring else 2 * ring
            for by in range(middle_y - ring, middle_y + ring + 1, skip):
                if not low_y <= by <= high_y:
                    continue
                begin, end = entries_of(ground, bx, by, p, limit)
                for place in range(begin, end):
                    entry, is_behind = int(relief[place]), False
                    # triangle, edge or corner
                    if entry < triangles:
                        away, n, is_behind = triangle_contact(triangle_at(relief, entry), p, limit)
                    elif entry < triangles + edges:
                        row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (entry - triangles)
                        away, n = edge_contact(relief, row, p, limit)
                    else:
                        row = entry - triangles - edges
                        row = int(data[CORNERS_FROM]) + CORNER_NUMBERS * row
                        away, n = corner_contact(relief, row, int(data[NEIGHBOURS_FROM]), p, limit)
                    # the nearest facet, in front or behind, shrinks the search
                    if is_behind:
                        behind = min(behind, away)
                    elif away < np.inf:
                        keep_facet_contact(found, first, slots, away, n, entry)
                        nearest = min(nearest, abs(away))
                    limit = min(limit, max(reach, min(nearest, behind) * (1.0 + TOLERANCE)))
    return -behind if behind < nearest * (1.0 - TOLERANCE) else nearest


@kernel
def find_behind(ground, p, limit, found, first, slots):
    """Fill the contacts of a point behind the surface; arguments as `find_on_mesh`."""
    data, relief = ground.data, ground.relief
    # the nearest triangle that faces away from p
    nearest, number = limit * (1.0 + TOLERANCE) + MIN_DISTANCE, -1
    low_x, high_x = bin_range(ground, p[0], nearest, 0)
    low_y, high_y = bin_range(ground, p[1], nearest, 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p, nearest)
            for place in range(begin, end):
                entry = int(relief[place])
                if entry >= int(data[TRIANGLES]):
                    break
                t = triangle_at(relief, entry)
                if -nearest <= dot(t.n, sub(p, t.a)) <= MIN_DISTANCE:
                    distance = distance_to_triangle(p, t.a, t.b, t.c)
                    if distance < nearest or (distance == nearest and entry < number):
                        nearest, number = distance, entry
    if number < 0:
        return
    t = triangle_at(relief, number)
    keep_facet_contact(found, first, slots, dot(t.n, sub(p, t.a)), t.n, number)
    # others at the same place, or that extend beyond a concave edge
    limit = nearest * (1.0 + TOLERANCE) + MIN_DISTANCE
    low_x, high_x = bin_range(ground, p[0], limit + EXTENSION, 0)
    low_y, high_y = bin_range(ground, p[1], limit + EXTENSION, 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p, limit + EXTENSION)
            for place in range(begin, end):
                entry = int(relief[place])
                if entry >= int(data[TRIANGLES]):
                    break
                t = triangle_at(relief, entry)
                away = dot(t.n, sub(p, t.a))
                if entry == number or not -limit <= away <= EXTENSION:
                    continue  # deeper than the ground is there, or far
                touches = away <= MIN_DISTANCE
                touches = touches and distance_to_triangle(p, t.a, t.b, t.c) <= limit
                where, outside = side_of_edges(p, t.n, t.a, t.b, t.c)
                if where not in (INSIDE, NONE) and outside <= EXTENSION:
                    touches = touches or extends_beyond(t, p, where)
                if touches:
                    keep_facet_contact(found, first, slots, away, t.n, entry)


@kernel
def edges_of_mesh(ground, p, reach, edges):
    """Fill the convex edges within `reach` of p; return their number."""
    data, relief, count = ground.data, ground.relief, 0
    triangles, last = int(data[TRIANGLES]), int(data[TRIANGLES]) + int(data[EDGES])
    low_x, high_x = bin_range(ground, p[0], reach, 0)
    low_y, high_y = bin_range(ground, p[1], reach, 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p, reach)
            for place in range(begin, end):
                entry = int(relief[place])
                if entry < triangles:
                    continue
                if entry >= last:
                    break
                row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (entry - triangles)
                a, b = vec(relief, row), vec(relief, row + 3)
                if distance_to_edge(p, a, b) > reach:
                    continue
                # an edge is in several bins: count it once
                new = True
                for k in range(count):
                    new = new and edges[k, 12] != entry
                if new:
                    left, right = vec(relief, row + 6), vec(relief, row + 9)
                    count = store_edge(edges, count, a, b, left, right, entry)
    return count


@kernel
def mesh_distance(ground, x, y, z):
    """Return the distance of a point from the nearest triangle [m]."""
    limit = 0.1
    while limit < np.inf:
        distance = mesh_distance_within(ground, x, y, z, limit)
        if distance < limit:
            return distance
        limit = WIDENING * limit if limit < 1e3 else np.inf
    return mesh_distance_within(ground, x, y, z, limit)


@kernel
def mesh_distance_within(ground, x, y, z, limit):
    """Return the distance from the nearest triangle if it is below `limit`, else `limit`."""
    p, relief = (x, y, z), ground.relief
    low_x, high_x = bin_range(ground, x, limit, 0)
    low_y, high_y = bin_range(ground, y, limit, 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p, limit)
            for place in range(begin, end):
                entry = int(relief[place])
                if entry < int(ground.data[TRIANGLES]):
                    t = triangle_at(relief, entry)
                    if abs(dot(t.n, sub(p, t.a))) < limit:
                        limit = min(limit, distance_to_triangle(p, t.a, t.b, t.c))
    return limit


@kernel
def mesh_height(ground, x, y):
    """Return where a vertical meets the highest triangle that faces up [m], or NaN."""
    relief, highest = ground.relief, np.nan
    low_x, high_x = bin_range(ground, x, 0.0, 0)
    low_y, high_y = bin_range(ground, y, 0.0, 1)
    if low_x > high_x or low_y > high_y:
        return highest
    begin, end = entries_of(ground, low_x, low_y, (x, y, 0.0), np.inf)
    for place in range(begin, end):
        entry = int(relief[place])
        if entry >= int(ground.data[TRIANGLES]):
            break
        t = triangle_at(relief, entry)
        if t.n[2] < STEEP:
            continue
        z = t.a[2] - (t.n[0] * (x - t.a[0]) + t.n[1] * (y - t.a[1])) / t.n[2]
        if not z <= highest and side_of_edges((x, y, z), t.n, t.a, t.b, t.c)[0] == INSIDE:
            highest = z
    return highest


@kernel
def triangle_at(relief, number):
    """Return a triangle."""
    place = TRIANGLE_NUMBERS * number
    return Triangle(
        vec(relief, place), vec(relief, place + 3), vec(relief, place + 6),
        vec(relief, place + 9), vec(relief, place + 12), vec(relief, place + 15),
        vec(relief, place + 18),
    )  # fmt: skip


@kernel
def triangle_contact(triangle, p, limit):
    """Return distance, normal and whether a point is behind a triangle.

    Behind its plane the distance is that from the triangle; in front that from the plane, infinite
    if p is not over the triangle. Behind by no more than rounding is in front.
    """
    n, a, b, c = triangle.n, triangle.a, triangle.b, triangle.c
    away = dot(n, sub(p, a))
    if not abs(away) <= limit:
        return np.inf, n, False
    if away < 0.0:
        distance, along = distance_to_triangle(p, a, b, c), sub(b, a)
        if distance * distance > TOLERANCE * TOLERANCE * dot(along, along):
            return (distance if distance <= limit else np.inf), n, True
    return (away if side_of_edges(p, n, a, b, c)[0] == INSIDE else np.inf), n, False


@kernel
def extends_beyond(triangle, p, edge):
    """Return whether a triangle extends beyond an edge, see `extends_behind`."""
    ends, third = (triangle.a, triangle.b), triangle.across_ab
    if edge == 1:
        ends, third = (triangle.b, triangle.c), triangle.across_bc
    elif edge == 2:
        ends, third = (triangle.c, triangle.a), triangle.across_ca
    return extends_behind(p, triangle.n, ends, third)


@kernel
def edge_contact(relief, row, p, limit):
    """Return distance and direction from a convex edge, infinity if p is not nearest to it."""
    a, b, left = vec(relief, row), vec(relief, row + 3), vec(relief, row + 6)
    right = vec(relief, row + 9)
    away, n = nearest_on_edge(p, a, b, left, right, limit)
    if away < np.inf and right[0] != right[0] and dot(plane_through(a, b, left), n) < 0.0:
        return np.inf, n  # under a border
    return away, n


@kernel
def corner_contact(relief, row, neighbours, p, limit):
    """Return distance and direction from a corner, infinity if p is not nearest to its front."""
    a = vec(relief, row)
    off = sub(p, a)
    square = dot(off, off)
    if not 0.0 < square <= limit * limit:
        return np.inf, off
    for k in range(int(relief[row + 6]), int(relief[row + 7])):
        along = sub(vec(relief, neighbours + 3 * k), a)
        if square <= TOLERANCE * TOLERANCE * dot(along, along) or beyond(off, square, along):
            return np.inf, off
    if dot(off, vec(relief, row + 3)) < 0.0:
        return np.inf, off
    distance = np.sqrt(square)
    return distance, scaled(1.0 / distance, off)


@kernel
def mesh_curvature(ground, feature, x, y, z):
    """Return H of a feature, see `curvature`."""
    data, relief, p, number = ground.data, ground.relief, (x, y, z), int(feature)
    triangles, edges = int(data[TRIANGLES]), int(data[EDGES])
    if number < triangles:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if number < triangles + edges:
        row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (number - triangles)
        return edge_curvature(p, vec(relief, row), vec(relief, row + 3))
    row = int(data[CORNERS_FROM]) + CORNER_NUMBERS * (number - triangles - edges)
    return radial_curvature(sub(p, vec(relief, row)), (0.0, 0.0, 0.0))
