"""Contacts with a surface of triangles, found through a grid of bins over x and y.

The front of a triangle is the side from which its corners run counter-clockwise. A point is
behind the surface if the facet nearest to it faces away; hollows, overhangs and open borders are
allowed.

    data      [0] triangles; [1] convex edges and borders; [2] corners with such an edge;
              [3] side of the bins [m]; [4:6] x and y of the first [m]; [6:8] bins along x and y;
              [8:] where in the relief the parts behind the triangles begin
    relief    triangles: corners, normal, third corner across each edge if concave, else NaN;
              edges: ends, third corners left and right, NaN at a border;
              corners: place, normal of its cone, of length 1, on a border 1/2, first and last of
              its neighbours;
              neighbours: places;
              bins: first entry of each and the end, highest point of each, entries

Features and entries are the numbers of the triangles, then edges, then corners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from contact_sim._types import Array, Indices, Vector
from contact_sim.arrays._fields import LIST_COUNT, LIST_RADIUS, LISTED, SPOT_FACET
from contact_sim.collision._contact_slots import (
    FRAME,
    NO_FEATURE,
    clear_far_slots,
    clear_slots,
    keep_facet_contact,
    keep_touch,
)
from contact_sim.collision._facets import (
    ANGLE,
    EXTENSION,
    INSIDE,
    LIST_REACH,
    LIST_SLACK,
    NONE,
    ROUNDED,
    TOLERANCE,
    add_to_list,
    begin_list,
    beyond,
    continues,
    distance_to_edge,
    distance_to_triangle,
    edge_curvature,
    extends_behind,
    is_over_triangle,
    is_well_over,
    looks_for_spot,
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
from contact_sim.dynamics._vectors import dot, scaled, sub, vec
from contact_sim.solvers._jit import kernel
from contact_sim.terrain import SEAM, TriangleMesh

# The facets of a mesh, and the bins of the search.

BORDER_PROBE = 1e-4  # distance beyond a border at which ground is searched [m]
ENTRIES_PER_FACET = 16  # most entries of a facet in the bins, on average
FEW_ENTRIES = 65_536  # number of entries or bins that is small for any mesh
CROWDED = 10  # facets in the bin of a facet, on average, above which bins are made smaller
SMALLER_BINS = 8.0  # by how much at most [-]


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
    def of(cls, mesh: TriangleMesh, borders: Borders | None = None) -> MeshFacets:
        """Return the facets of a mesh.

        Args:
            mesh: its triangles.
            borders: parts of its borders beyond which the surface ends, default all.
        """
        if borders is None:
            borders = Borders.whole(mesh)
        places, normals = mesh.vertices[mesh.triangles], mesh.normals
        third = _across(mesh)
        span = third - places
        above = np.einsum('tki,ti->tk', span, normals)
        bend = above / np.linalg.norm(span, axis=2)  # NaN on a border
        across = np.where((bend > TOLERANCE)[:, :, None], third, np.nan)
        triangles = np.concatenate([places.reshape(-1, 9), normals, across.reshape(-1, 9)], axis=1)
        convex = bend < -TOLERANCE
        once = np.flatnonzero(convex & (mesh.neighbours > np.arange(len(places))[:, None]))
        edges = _edges(mesh, third.reshape(-1, 3), once, borders)
        following = np.roll(mesh.triangles, -1, axis=1)
        ends = borders.ends(mesh)
        own = np.unique(np.concatenate([mesh.triangles[convex], following[convex], ends]))
        corners, neighbours = _corners(mesh, own, ends, borders.touched)
        boxes = places, edges[:, :6].reshape(-1, 2, 3), corners[:, None, :3]
        return cls(
            triangles, edges, corners, neighbours,
            np.concatenate([box.min(axis=1) for box in boxes]),
            np.concatenate([box.max(axis=1) for box in boxes]),
        )  # fmt: skip


def _edges(mesh: TriangleMesh, third: Array, once: Indices, borders: Borders) -> Array:
    """Return the rows of the convex half-edges `once` and of borders, in the order of the mesh."""
    half_edge = np.concatenate([once, borders.half_edge])
    start = np.concatenate([np.zeros(len(once)), borders.start])
    end = np.concatenate([np.ones(len(once)), borders.end])
    order = np.lexsort((start, half_edge))
    half_edge, start, end = half_edge[order], start[order, None], end[order, None]
    t, k = half_edge // 3, half_edge % 3
    a, b, left = (mesh.vertices[mesh.triangles[t, (k + turn) % 3]] for turn in range(3))
    first = np.where(start > 0.0, a + start * (b - a), a)
    last = np.where(end < 1.0, a + end * (b - a), b)
    return np.concatenate([first, last, left, third[half_edge]], axis=1)


@dataclass(frozen=True)
class Borders:
    """Parts of the borders of a mesh, and vertices that lie on a border of another triangle."""

    half_edge: Indices  # 3 · triangle + edge of each part, shape (n,)
    start: Array  # where a part begins, as a share of its edge, shape (n,)
    end: Array  # where it ends
    touched: Indices  # (vertex, half-edge) within SEAM of each other, shape (any, 2)

    @classmethod
    def whole(cls, mesh: TriangleMesh) -> Borders:
        """Return all borders undivided."""
        half_edge = np.flatnonzero(mesh.neighbours < 0)
        zeros = np.zeros(len(half_edge))
        return cls(half_edge, zeros, zeros + 1.0, np.empty((0, 2), dtype=np.int64))

    @classmethod
    def divided(cls, mesh: TriangleMesh) -> Borders:
        """Return the borders in parts that end where a vertex is within SEAM of them."""
        tree, corners = scipy.spatial.cKDTree(mesh.vertices), mesh.vertices[mesh.triangles]
        half_edges, starts, ends, touched = [], [], [], []
        for h in np.flatnonzero(mesh.neighbours < 0):
            t, k = divmod(int(h), 3)
            a, along = corners[t, k], corners[t, (k + 1) % 3] - corners[t, k]
            length = float(np.linalg.norm(along))
            near = np.array(tree.query_ball_point(a + 0.5 * along, 0.5 * length + SEAM))
            near = near[~np.isin(near, mesh.triangles[t])].astype(np.int64)
            off = mesh.vertices[near] - a
            share = off @ along / length**2
            close = np.linalg.norm(off - np.clip(share, 0, 1)[:, None] * along, axis=1) <= SEAM
            touched += [(vertex, h) for vertex in near[close]]
            cuts = np.sort(
                share[close & (share * length > SEAM) & (share * length < length - SEAM)]
            )
            cuts = cuts[np.diff(cuts, prepend=0.0) * length > SEAM]
            half_edges += [h] * (len(cuts) + 1)
            starts += [0.0, *cuts]
            ends += [*cuts, 1.0]
        return cls(
            np.array(half_edges, dtype=np.int64), np.array(starts), np.array(ends),
            np.array(touched, dtype=np.int64).reshape(-1, 2),
        )  # fmt: skip

    def beyond(self, mesh: TriangleMesh) -> Array:
        """Return points a little beyond each part, in the plane of its triangle, (n, 3, 3)."""
        t, k = self.half_edge // 3, self.half_edge % 3
        a, b = (mesh.vertices[mesh.triangles[t, (k + turn) % 3]] for turn in range(2))
        along = b - a
        out = np.cross(along, mesh.normals[t])
        out *= BORDER_PROBE / np.linalg.norm(out, axis=1)[:, None]
        share = self.start[:, None] + (self.end - self.start)[:, None] * [0.1, 0.5, 0.9]
        return np.asarray(a[:, None] + share[:, :, None] * along[:, None] + out[:, None])

    def of(self, chosen: NDArray[np.bool_]) -> Borders:
        """Return some of the parts, shape (n,)."""
        return Borders(self.half_edge[chosen], self.start[chosen], self.end[chosen], self.touched)

    def ends(self, mesh: TriangleMesh) -> Indices:
        """Return the vertices at which the parts end."""
        t, k = self.half_edge // 3, self.half_edge % 3
        return np.concatenate(
            [
                mesh.triangles[t, k][self.start == 0.0],
                mesh.triangles[t, (k + 1) % 3][self.end == 1.0],
            ]
        )


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


def _corners(
    mesh: TriangleMesh, own: Indices, ends: Indices, touched: Indices
) -> tuple[Array, Array]:
    """Return the numbers of the corners `own`, and the places of their neighbours.

    `ends` are those on a border. A corner that touches a border of another triangle has the
    corners of that as neighbours, too.
    """
    around = mesh.triangles.ravel()
    pairs = np.concatenate(
        [
            np.stack([around, np.roll(mesh.triangles, -1, axis=1).ravel()], axis=1),
            np.stack([around, np.roll(mesh.triangles, 1, axis=1).ravel()], axis=1),
        ]
    )
    others = np.column_stack(
        [np.repeat(touched[:, 0], 3), mesh.triangles[touched[:, 1] // 3].ravel()]
    )
    apart = np.linalg.norm(mesh.vertices[others[:, 0]] - mesh.vertices[others[:, 1]], axis=1)
    pairs = np.unique(np.concatenate([pairs, others[apart > 2.0 * SEAM]]), axis=0)
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
    cone /= np.where(np.isin(np.arange(len(cone)), ends), 2.0, 1.0)[:, None] * np.maximum(
        np.linalg.norm(cone, axis=1)[:, None], 1e-300
    )
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
        """Return bins for facets with these least and largest coordinates [m], (n, 3).

        About as many as facets; smaller ones where many facets share a few of them, such as stairs
        on a wide floor.
        """
        extent = np.maximum(upper[:, :2].max(axis=0) - lower[:, :2].min(axis=0), 1e-6)
        side = float(np.sqrt(extent.prod() / len(lower)))
        most = ENTRIES_PER_FACET * len(lower)
        while cls._entries(lower, upper, side) > most:
            side *= 1.5
        bins, most = cls._of_side(lower, upper, side), max(most, FEW_ENTRIES)
        while bins.crowd > CROWDED and SMALLER_BINS * bins.side > side:
            half = 0.5 * bins.side
            if max(4 * len(bins.tops), cls._entries(lower, upper, half)) > most:
                break
            bins = cls._of_side(lower, upper, half)
        return bins

    @property
    def crowd(self) -> float:
        """Facets in the bin of a facet, on average over all entries."""
        return float((np.diff(self.starts) ** 2).sum() / self.starts[-1])

    @staticmethod
    def _wide(lower: Array, upper: Array, side: float) -> tuple[Indices, Indices]:
        """Return the first bin of every facet, and the number of its bins, along x and y."""
        # as in `bin_range`, so that rounding leaves no facet out
        origin = lower[:, :2].min(axis=0)
        low = np.floor((lower[:, :2] - origin) / side).astype(np.int64)
        return low, np.floor((upper[:, :2] - origin) / side).astype(np.int64) - low + 1

    @classmethod
    def _entries(cls, lower: Array, upper: Array, side: float) -> int:
        """Return the number of entries in bins of this side."""
        return int(cls._wide(lower, upper, side)[1].prod(axis=1).sum())

    @classmethod
    def _of_side(cls, lower: Array, upper: Array, side: float) -> Bins:
        """Return bins of this side."""
        low, wide = cls._wide(lower, upper, side)
        origin, count = lower[:, :2].min(axis=0), (low + wide).max(axis=0)
        of_facet = wide.prod(axis=1)
        facet = np.repeat(np.arange(len(lower)), of_facet)
        turn = np.arange(len(facet)) - np.repeat(np.cumsum(of_facet) - of_facet, of_facet)
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
ROUNDING = 1e-12  # difference of distances that counts as none [m]
FIRST_DISTANCE = 0.1  # first distance of a search for the signed distance [m]
LIST_FACETS = 64.0  # see `has_few_within`: a wide search makes a list only where they are few
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
def find_on_mesh(ground, x, y, z, reach, guess, known, found, first, slots):
    """Fill the slots of a point with its contacts; arguments as `find_contacts`.

    `guess` is the feature that may be the nearest: its distance bounds a wider search. `known` is
    the list of the point, see _facets.py, of length 0 without one.
    """
    p, nearby, reach = (x, y, z), reach < 0.0, abs(reach)
    near = max(reach, MIN_DISTANCE)
    if known.shape[0] > 0 and on_spot(known, p, near):
        touch = touch_on_mesh(ground, int(known[SPOT_FACET]), p)
        if keep_touch(found, first, slots, touch, near):
            return
    limit = near
    if not nearby:
        # what was nearest before bounds the search
        bound = distance_to_feature(ground, guess, p)
        if limit < bound < MAX_DISTANCE:
            limit = bound * (1.0 + TOLERANCE) + MIN_DISTANCE
    nearest = find_near(ground, p, limit, reach, known, found, first, slots)
    while not nearby and not abs(nearest) < np.inf and limit < MAX_DISTANCE:
        # nothing near: a triangle below or above bounds the search, or it is widened
        limit, last = min(WIDENING * limit, MAX_DISTANCE), False
        bound, inside = bound_in_bin(ground, p)
        if bound < (np.inf if inside else MAX_DISTANCE):
            limit, last = bound * (1.0 + TOLERANCE) + MIN_DISTANCE, True
        nearest = find_near(ground, p, limit, reach, known, found, first, slots)
        if last:
            break
    clear_far_slots(found, first, slots, reach)
    if nearest < 0.0:
        # behind the surface: search again for triangles that face away
        clear_slots(found, first, slots)
        find_behind(ground, p, max(reach, -nearest), found, first, slots)
    elif known.shape[0] > 0 and not nearby and nearest <= reach:
        alone = slots == 1 or found[2][first + 1] == NO_FEATURE
        if alone and looks_for_spot(known, p):
            look_around(ground, p, near, known, int(found[2][first]))


@kernel
def touch_on_mesh(ground, facet, p):
    """Return height over a triangle, negative behind it and infinite beside, normal, `facet`."""
    t = triangle_at(ground.relief, facet)
    return (dot(t.n, sub(p, t.a)) if is_well_over(p, t.a, t.b, t.c) else np.inf), t.n, facet


@kernel
def look_around(ground, p, limit, known, facet):
    """Note the room around p with the triangle `facet` alone in it, by the list of p."""
    if not serves(known, p, limit) or facet >= int(ground.data[TRIANGLES]):
        note_spot(known, p, 0.0, facet, 0.0)
        return
    off, triangle = sub(p, vec(known, 0)), triangle_of_mesh(ground, facet)
    room = known[LIST_RADIUS] - np.sqrt(dot(off, off))
    for k in range(LISTED, LISTED + int(known[LIST_COUNT])):
        entry = int(known[k])
        if entry == facet:
            continue
        if entry < int(ground.data[TRIANGLES]) and continues(
            triangle, triangle_of_mesh(ground, entry)
        ):
            continue
        room = min(room, distance_to_feature(ground, entry, p))
    note_spot(known, p, room, facet, limit)


@kernel
def triangle_of_mesh(ground, number):
    """Return the corners of a triangle."""
    t = triangle_at(ground.relief, number)
    return t.a, t.b, t.c


@kernel
def distance_to_feature(ground, feature, p):
    """Return the distance of p from a triangle, edge or corner [m], infinity without such."""
    data, relief = ground.data, ground.relief
    triangles, edges, corners = data[TRIANGLES], data[EDGES], data[CORNERS]
    if not 0.0 <= feature < triangles + edges + corners:
        return np.inf
    if feature < triangles:
        t = triangle_at(relief, int(feature))
        return distance_to_triangle(p, t.a, t.b, t.c)
    if feature < triangles + edges:
        row = int(data[EDGES_FROM]) + EDGE_NUMBERS * int(feature - triangles)
        return distance_to_edge(p, vec(relief, row), vec(relief, row + 3))
    row = int(data[CORNERS_FROM]) + CORNER_NUMBERS * int(feature - triangles - edges)
    off = sub(p, vec(relief, row))
    return np.sqrt(dot(off, off))


@kernel
def bound_in_bin(ground, p):
    """Return the distance from the nearest triangle in the bin of a point [m].

    And whether the point is below the highest place of the bin.
    """
    relief, nearest = ground.relief, np.inf
    bx, last_x = bin_range(ground, p[0], 0.0, 0)
    by, last_y = bin_range(ground, p[1], 0.0, 1)
    if last_x < 0 or last_y < 0:
        return nearest, False
    top = relief[int(ground.data[TOPS_FROM]) + int(ground.data[BINS_Y]) * bx + by]
    begin, end = entries_of(ground, bx, by, p, np.inf)
    for place in range(begin, end):
        entry = int(relief[place])
        if entry >= int(ground.data[TRIANGLES]):
            break
        t = triangle_at(relief, entry)
        if abs(dot(t.n, sub(p, t.a))) < nearest:  # no nearer than its plane
            nearest = min(nearest, distance_to_triangle(p, t.a, t.b, t.c))
    return nearest, p[2] < top


@kernel
def mesh_signed_distance(ground, x, y, z):
    """Return the signed distance of a point from the surface at any distance [m].

    That of the search for contacts: in front that of the nearest facet, behind that of the nearest
    triangle with a minus sign.
    """
    p, found = (x, y, z), (np.empty(1), np.empty(FRAME), np.empty(1))
    # no farther than the first triangle
    far = distance_to_corner(ground, p) * (1.0 + TOLERANCE) + MIN_DISTANCE
    limit = min(FIRST_DISTANCE, far)
    while True:
        clear_slots(found, 0, 1)
        nearest = find_in_front(ground, p, limit, 0.0, found, 0, 1)
        if abs(nearest) < np.inf or not limit < far:
            break
        limit = min(WIDENING * limit, far)
    if nearest < 0.0 or not nearest < np.inf:
        return nearest
    return found[0][0]  # less than 0 by rounding at most


@kernel
def distance_to_corner(ground, p):
    """Return the distance from the first corner of the first triangle [m]."""
    off = sub(p, vec(ground.relief, 0))
    return np.sqrt(dot(off, off))


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
def top_of_mesh(ground, middle, half):
    """Return a height that no facet within a rectangle exceeds, −inf beside the mesh [m].

    `middle` and `half` sizes of the rectangle: at least (x, y).
    """
    tops, top = int(ground.data[TOPS_FROM]), -np.inf
    low_x, high_x = bin_range(ground, middle[0], half[0], 0)
    low_y, high_y = bin_range(ground, middle[1], half[1], 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            top = max(top, ground.relief[tops + int(ground.data[BINS_Y]) * bx + by])
    return top


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
def find_near(ground, p, limit, reach, known, found, first, slots):
    """Do the same as `find_in_front` with the facets of a list that serves p, if there is one."""
    if not has_list(ground, p, limit, known):
        return find_in_front(ground, p, limit, reach, found, first, slots)
    nearest, behind = np.inf, np.inf
    for k in range(LISTED, LISTED + int(known[LIST_COUNT])):
        entry = int(known[k])
        away, n, is_behind = facet_contact(ground, entry, p, limit)
        if is_behind:
            behind = min(behind, away)
        elif away < np.inf:
            keep_facet_contact(found, first, slots, away, n, entry)
            nearest = min(nearest, abs(away))
        limit = min(limit, max(reach, min(nearest, behind) * (1.0 + TOLERANCE)))
    return nearest_or_behind(nearest, behind)


@kernel
def has_list(ground, p, limit, known):
    """Return whether a list serves p, after making it anew where it did not."""
    if known.shape[0] == 0 or not (limit <= LIST_REACH or has_few_within(ground, limit)):
        return False
    if serves(known, p, limit):
        return True
    return not was_too_long(known, p) and list_facets(ground, p, limit + LIST_SLACK, known)


@kernel
def has_few_within(ground, limit):
    """Return whether a square with sides of `limit` has LIST_FACETS facets at most, on average."""
    data = ground.data
    area = data[BINS_X] * data[BINS_Y] * data[SIDE] * data[SIDE]
    return limit * limit * (data[TRIANGLES] + data[EDGES] + data[CORNERS]) <= LIST_FACETS * area


@kernel
def serve_on_mesh(ground, p, limit, known):
    """Let a list serve p; return False, the list of radius 0, if the facets near are too many."""
    # where there are too many within the wider radius, the list serves this place alone
    return (
        serves(known, p, limit)
        or list_facets(ground, p, limit + LIST_SLACK, known)
        or list_facets(ground, p, limit, known)
    )


@kernel
def list_facets(ground, p, radius, known):
    """List the facets within a radius of p; return False if they are too many."""
    begin_list(known, p, radius)
    radius += ROUNDED
    low_x, high_x = bin_range(ground, p[0], radius, 0)
    low_y, high_y = bin_range(ground, p[1], radius, 1)
    for bx in range(low_x, high_x + 1):
        for by in range(low_y, high_y + 1):
            begin, end = entries_of(ground, bx, by, p, radius)
            for place in range(begin, end):
                entry = int(ground.relief[place])
                if facet_within(ground, entry, p, radius) and not add_to_list(known, entry):
                    return False
    return True


@kernel
def facet_within(ground, entry, p, radius):
    """Return False only if a triangle, edge or corner is farther than `radius` from p."""
    if entry >= int(ground.data[TRIANGLES]):
        return distance_to_feature(ground, entry, p) <= radius
    t = triangle_at(ground.relief, entry)
    return abs(dot(t.n, sub(p, t.a))) <= radius and not outside_bounds(p, t.a, t.b, t.c, radius)


@kernel
def facet_contact(ground, entry, p, limit):
    """Return distance, direction and whether p is behind a triangle, edge or corner."""
    data, relief = ground.data, ground.relief
    triangles, edges = int(data[TRIANGLES]), int(data[EDGES])
    if entry < triangles:
        place = TRIANGLE_NUMBERS * entry
        n = vec(relief, place + 9)
        if not abs(dot(n, sub(p, vec(relief, place)))) <= limit:
            return np.inf, n, False
        return triangle_contact(triangle_at(relief, entry), p, limit)
    if entry < triangles + edges:
        row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (entry - triangles)
        away, n = edge_contact(relief, row, p, limit)
    else:
        row = int(data[CORNERS_FROM]) + CORNER_NUMBERS * (entry - triangles - edges)
        away, n = corner_contact(relief, row, int(data[NEIGHBOURS_FROM]), p, limit)
    return away, n, False


@kernel
def nearest_or_behind(nearest, behind):
    """Return the distance of the nearest facet, negative if p is behind it."""
    return -behind if behind < nearest * (1.0 - TOLERANCE) - ROUNDING else nearest


@kernel
def find_in_front(ground, p, limit, reach, found, first, slots):
    """Store the contacts of a point in front of facets; return the distance of the nearest facet.

    It is negative if that is a triangle seen from behind, and infinite without one within `limit`.
    """
    data, relief, nearest, behind = ground.data, ground.relief, np.inf, np.inf
    side = data[SIDE]
    low_x, high_x = bin_range(ground, p[0], limit, 0)
    low_y, high_y = bin_range(ground, p[1], limit, 1)
    if high_x < low_x or high_y < low_y:
        return np.inf
    # bins in rings around the one nearest to p, so that near facets shrink the search early
    middle_x = min(max(int(np.floor((p[0] - data[X0]) / side)), low_x), high_x)
    middle_y = min(max(int(np.floor((p[1] - data[Y0]) / side)), low_y), high_y)
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
                    entry = int(relief[place])
                    away, n, is_behind = facet_contact(ground, entry, p, limit)
                    # the nearest facet, in front or behind, shrinks the search
                    if is_behind:
                        behind = min(behind, away)
                    elif away < np.inf:
                        keep_facet_contact(found, first, slots, away, n, entry)
                        nearest = min(nearest, abs(away))
                    limit = min(limit, max(reach, min(nearest, behind) * (1.0 + TOLERANCE)))
    return nearest_or_behind(nearest, behind)


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
        if not z <= highest and is_over_triangle((x, y, z), t.n, t.a, t.b, t.c):
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
        if outside_bounds(p, a, b, c, limit):
            return np.inf, n, False
        distance, along = distance_to_triangle(p, a, b, c), sub(b, a)
        if distance * distance > TOLERANCE * TOLERANCE * dot(along, along):
            return (distance if distance <= limit else np.inf), n, True
    return (away if is_over_triangle(p, n, a, b, c) else np.inf), n, False


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
    if not away < np.inf:
        return away, n
    out = dot(plane_through(a, b, left), n)
    if right[0] == right[0]:
        # between the normals of a flat edge is also what lies behind it
        return (away if out + dot(plane_through(b, a, right), n) >= 0.0 else np.inf), n
    # under a border: beyond it is no ground, but straight below is
    inwards = sub(left, a)
    under = out < 0.0 and dot(n, inwards) >= -ANGLE * np.sqrt(dot(inwards, inwards))
    return (np.inf if under else away), n


@kernel
def corner_contact(relief, row, neighbours, p, limit):
    """Return distance and direction from a corner, infinity if p is not nearest to its front."""
    a = vec(relief, row)
    off = sub(p, a)
    square = dot(off, off)
    if not 0.0 < square <= limit * limit:
        return np.inf, off
    cone, outside = vec(relief, row + 3), False
    for k in range(int(relief[row + 6]), int(relief[row + 7])):
        along = sub(vec(relief, neighbours + 3 * k), a)
        size = dot(along, along)
        if square <= TOLERANCE * TOLERANCE * size or beyond(off, square, along):
            return np.inf, off
        outside = outside or dot(off, along) < -ANGLE * np.sqrt(square * size)
    # behind the corner; beyond that of a border is no ground, but straight below is
    if dot(off, cone) < 0.0 and not (outside and dot(cone, cone) < 0.5):
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
