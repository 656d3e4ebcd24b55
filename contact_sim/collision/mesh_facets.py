"""The facets of a mesh that a sphere may touch, and the bins in which kernels look for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.facets import TOLERANCE
from contact_sim.terrain import TriangleMesh

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
BEYOND = 1e-4
"""How far beyond a border is looked for ground [m]."""
ENTRIES_PER_FACET = 16
"""Most entries of a facet in the bins, on average."""


@dataclass(frozen=True)
class MeshFacets:
    """Numbers of triangles, convex edges and corners with one, one row each; see `mesh`."""

    triangles: Array
    edges: Array
    corners: Array
    neighbours: Array
    """Places of the neighbours of the corners [m], shape (any, 3)."""
    lower: Array
    """Least coordinates of triangles, edges, corners [m], shape (n, 3)."""
    upper: Array
    """Largest coordinates."""

    @classmethod
    def of(cls, mesh: TriangleMesh, seams: NDArray[np.bool_] | None = None) -> MeshFacets:
        """Return the facets of a mesh.

        Args:
            mesh: its triangles.
            seams: which borders the surface goes on beyond, shape (m, 3); they are no edges.
        """
        places, normals = mesh.vertices[mesh.triangles], mesh.normals
        third = _across(mesh)
        span = third - places
        above = np.einsum('tki,ti->tk', span, normals)
        bend = above / np.linalg.norm(span, axis=2)
        across = np.where((bend > TOLERANCE)[:, :, None], third, np.nan)
        triangles = np.concatenate([places.reshape(-1, 9), normals, across.reshape(-1, 9)], axis=1)
        border = mesh.neighbours < 0
        convex = border | (bend < -TOLERANCE)
        if seams is not None:
            convex &= ~seams
        once = convex & (border | (mesh.neighbours > np.arange(len(places))[:, None]))
        following = np.roll(places, -1, axis=1)
        opposite = np.roll(places, -2, axis=1)
        edges = np.concatenate(
            [places[once], following[once], opposite[once], third[once]], axis=1
        )
        own = np.unique(np.concatenate([mesh.triangles[convex], _roll(mesh.triangles)[convex]]))
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
    out *= BEYOND / np.linalg.norm(out, axis=1)[:, None]
    share = np.array([0.1, 0.5, 0.9])[None, :, None]
    return np.asarray(places[border][:, None] + share * along[:, None] + out[:, None])


def _roll(triangles: Indices) -> Indices:
    return np.roll(triangles, -1, axis=1)


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
            np.stack([around, _roll(mesh.triangles).ravel()], axis=1),
            np.stack([around, np.roll(mesh.triangles, 1, axis=1).ravel()], axis=1),
        ]
    )
    pairs = np.unique(pairs, axis=0)
    pairs = pairs[np.isin(pairs[:, 0], own)]
    first = np.searchsorted(pairs[:, 0], own)
    last = np.searchsorted(pairs[:, 0], own, side='right')
    places = mesh.vertices[mesh.triangles]
    forth, back = _roll_places(places, -1) - places, _roll_places(places, 1) - places
    cosine = np.einsum('tki,tki->tk', forth, back)
    cosine /= np.linalg.norm(forth, axis=2) * np.linalg.norm(back, axis=2)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    cone = np.zeros(mesh.vertices.shape)
    np.add.at(cone, mesh.triangles, angle[:, :, None] * mesh.normals[:, None])
    corners = np.concatenate(
        [mesh.vertices[own], cone[own], first[:, None], last[:, None]], axis=1
    )
    return corners, mesh.vertices[pairs[:, 1]]


def _roll_places(places: Array, shift: int) -> Array:
    return np.roll(places, shift, axis=1)


@dataclass(frozen=True)
class Bins:
    """Squares over x and y, and which facets reach into each."""

    side: float
    """[m]."""
    origin: tuple[float, float]
    """Least x and y [m]."""
    count: tuple[int, int]
    """Bins along x and y."""
    starts: Array
    """First entry of every bin, and the number of all entries."""
    tops: Array
    """Highest point of every bin [m]."""
    entries: Array
    """Facets in every bin, in order."""

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
