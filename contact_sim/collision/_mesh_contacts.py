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
    distance_to_triangle,
    edge_curvature,
    extends_behind,
    nearest_on_edge,
    plane_through,
    radial_curvature,
    side_of_edges,
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
    p, nearest, limit = (x, y, z), np.inf, max(reach, MIN_DISTANCE)
    while True:
        # widen the search until a facet is found
        nearest = find_in_front(ground, p, limit, reach, found, first, slots)
        if abs(nearest) < np.inf or not limit < MAX_DISTANCE:
            break
        limit = min(WIDENING * limit, MAX_DISTANCE)
    if nearest < 0.0:
        # behind the surface: search again for triangles that face away
        clear_slots(found, first, slots)
        find_behind(ground, p, max(reach, -nearest), found, first, slots)


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
def entries_of(ground, bx, by, z, limit):
    """Return first and last entry of a bin, none if all are more than `limit` below z."""
    data, relief = ground.data, ground.relief
    k = int(data[BINS_Y]) * bx + by
    if z - relief[int(data[TOPS_FROM]) + k] > limit:
        return 0, 0
    starts, entries = int(data[STARTS_FROM]), int(data[ENTRIES_FROM])
    return entries + int(relief[starts + k]), entries + int(relief[starts + k + 1])


@kernel
def find_in_front(ground, p, limit, reach, found, first, slots):
    """Store the contacts of a point in front of facets; return the distance of the nearest facet.

    It is negative if that is a triangle seen from behind, and infinite without one within `limit`.
    """
    data, relief, nearest, behind = ground.data, ground.relief, np.inf, np.inf
    triangles, edges = int(data[TRIANGLES]), int(data[EDGES])
    low_x, high_x = bin_range(ground, p[0], limit, 0)
    low_y, high_y = bin_range(ground, p[1], limit, 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p[2], limit)
            for place in range(begin, end):
                entry = int(relief[place])
                # triangle, edge or corner
                if entry < triangles:
                    away, n = triangle_contact(triangle_at(relief, entry), p, limit)
                elif entry < triangles + edges:
                    row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (entry - triangles)
                    away, n = edge_contact(relief, row, p, limit)
                else:
                    row = entry - triangles - edges
                    row = int(data[CORNERS_FROM]) + CORNER_NUMBERS * row
                    away, n = corner_contact(relief, row, int(data[NEIGHBOURS_FROM]), p, limit)
                # the nearest facet, in front or behind, shrinks the search
                if away < 0.0:
                    behind = min(behind, -away)
                elif away < np.inf:
                    keep_facet_contact(found, first, slots, away, n, entry)
                    nearest = min(nearest, away)
                limit = min(limit, max(reach, min(nearest, behind) * (1.0 + TOLERANCE)))
    return -behind if behind < nearest * (1.0 - TOLERANCE) else nearest


@kernel
def find_behind(ground, p, limit, found, first, slots):
    """Fill the contacts of a point behind the surface; arguments as `find_on_mesh`."""
    data, relief, limit = ground.data, ground.relief, limit * (1.0 + TOLERANCE) + MIN_DISTANCE
    low_x, high_x = bin_range(ground, p[0], limit, 0)
    low_y, high_y = bin_range(ground, p[1], limit, 1)
    nearest, depth, normal, number = np.inf, 0.0, (0.0, 0.0, 1.0), -1
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p[2], limit)
            for place in range(begin, end):
                entry = int(relief[place])
                if entry >= int(data[TRIANGLES]):
                    break
                triangle = triangle_at(relief, entry)
                n, away = triangle.n, dot(triangle.n, sub(p, triangle.a))
                if abs(away) > limit:
                    continue
                where, outside = side_of_edges(p, n, triangle.a, triangle.b, triangle.c)
                # a triangle that extends beyond a concave edge
                beside = where not in (INSIDE, NONE) and max(outside, abs(away)) <= EXTENSION
                if beside and extends_beyond(triangle, p, where):
                    keep_facet_contact(found, first, slots, away, n, entry)
                # the nearest triangle that faces away from p
                if away <= 0.0:
                    distance = distance_to_triangle(p, triangle.a, triangle.b, triangle.c)
                    if distance < nearest:
                        nearest, depth, normal, number = distance, away, n, entry
    if number >= 0:
        keep_facet_contact(found, first, slots, depth, normal, number)


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
            begin, end = entries_of(ground, bx, by, z, limit)
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
    begin, end = entries_of(ground, low_x, low_y, 0.0, np.inf)
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
    """Return distance and normal of a triangle for a point in front of it and over it.

    For a point behind its plane minus the distance from it, over it or not; else infinity.
    """
    n, a, b, c = triangle.n, triangle.a, triangle.b, triangle.c
    away = dot(n, sub(p, a))
    if not abs(away) <= limit:
        return np.inf, n
    if away < 0.0:
        distance = distance_to_triangle(p, a, b, c)
        return (-distance if distance <= limit else np.inf), n
    return (away if side_of_edges(p, n, a, b, c)[0] == INSIDE else np.inf), n


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
        if dot(off, along) > TOLERANCE * dot(along, along):
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
