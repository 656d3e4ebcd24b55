"""Grounds of many facets: height fields and meshes, as the numbers that kernels search."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arrays.fields import TERRAIN_DATA
from contact_sim.collision.field import BLOCK, field_distance, field_height
from contact_sim.collision.ground import Surface
from contact_sim.collision.kinds import FIELD, MESH
from contact_sim.collision.mesh import (
    BINS_X,
    BINS_Y,
    CORNER_NUMBERS,
    EDGE_NUMBERS,
    EDGES_FROM,
    SIDE,
    TRIANGLE_NUMBERS,
    mesh_distance,
    mesh_height,
)
from contact_sim.collision.mesh_facets import BEYOND, Bins, MeshFacets, beyond_borders
from contact_sim.collision.slots import UNUSED_GAP
from contact_sim.errors import InvalidInput
from contact_sim.terrain import GeneratedTerrain, HeightField, TriangleMesh, concatenate

Array = NDArray[np.float64]
Description = HeightField | TriangleMesh | GeneratedTerrain
FACETS = 3
"""Contacts that a sphere may have at once: as many as hold it in a corner."""


class FacetGround(Surface):
    """A ground of many facets, by its numbers.

    Args:
        kind: FIELD or MESH.
        data: sizes and places, shape (TERRAIN_DATA,).
        relief: what is searched, shape (any,).
    """

    def __init__(self, kind: int, data: Array, relief: Array) -> None:
        self._kind, self._data, self._relief = kind, data, relief

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return self._kind

    @property
    def data(self) -> Array:
        """Sizes and places of the parts of the relief, shape (TERRAIN_DATA,)."""
        return self._data.copy()

    @property
    def relief(self) -> Array:
        """What the kernels search, shape (any,)."""
        return self._relief

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return FACETS

    def distances(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the nearest facet [m], shape (n,).

        Raises:
            InvalidInput: points of another shape.
        """
        distances = super().distances(points)
        behind = distances < 0.0
        for i in np.flatnonzero(behind | (distances == UNUSED_GAP)):
            distance = self._nearest(*np.asarray(points, dtype=float)[i])
            distances[i] = -distance if behind[i] else distance
        return distances

    def height(self, x: float, y: float) -> float:
        """Return where the vertical through x, y meets the ground from above [m], or NaN."""
        found = field_height if self.kind == FIELD else mesh_height
        return float(found(self.ground, float(x), float(y)))

    def _nearest(self, x: float, y: float, z: float) -> float:
        """Return the distance of a point from the nearest facet, concave edges included [m]."""
        distance = field_distance if self.kind == FIELD else mesh_distance
        return float(distance(self.ground, x, y, z))


class FieldGround(FacetGround):
    """A height field as ground: below it all is ground, beside it there is none.

    Args:
        field: its heights.
    """

    def __init__(self, field: HeightField) -> None:
        self.field = field
        heights = np.asarray(field.heights, dtype=float)
        highest = block_maxima(heights)
        data = filled(*heights.shape, field.horizontal_scale, *field.origin, highest.shape[1])
        super().__init__(FIELD, data, np.concatenate([heights.ravel(), highest.ravel()]))

    def __repr__(self) -> str:
        return f'FieldGround({self.field!r})'


class MeshGround(FacetGround):
    """A surface of triangles as ground.

    Args:
        mesh: its triangles.
    """

    def __init__(self, mesh: TriangleMesh) -> None:
        self.mesh = mesh
        super().__init__(MESH, *mesh_numbers(MeshFacets.of(mesh)))
        points = beyond_borders(mesh)
        if len(points):
            super().__init__(MESH, *mesh_numbers(MeshFacets.of(mesh, self._seams(points))))

    def _seams(self, points: Array) -> NDArray[np.bool_]:
        """Return the borders beyond which the surface goes on, shape (m, 3)."""
        away = np.array([self._nearest(*point) for point in points.reshape(-1, 3)])
        seams = np.zeros(self.mesh.neighbours.shape, dtype=bool)
        seams[self.mesh.neighbours < 0] = (away.reshape(-1, 3) < 0.5 * BEYOND).all(axis=1)
        return seams

    def __repr__(self) -> str:
        return f'MeshGround({self.mesh!r})'


def mesh_numbers(facets: MeshFacets) -> tuple[Array, Array]:
    """Return data and relief of a mesh."""
    bins = Bins.of(facets.lower, facets.upper)
    parts = (
        facets.triangles.ravel(), facets.edges.ravel(), facets.corners.ravel(),
        facets.neighbours.ravel(), bins.starts, bins.tops, bins.entries,
    )  # fmt: skip
    places = np.cumsum([len(part) for part in parts])[:-1]
    data = filled(
        len(facets.triangles), len(facets.edges), len(facets.corners), bins.side,
        *bins.origin, *bins.count, *places,
    )  # fmt: skip
    return data, np.concatenate(parts)


def relief_of(description: Description) -> FacetGround:
    """Return what a description says, as ground.

    A field with walls becomes a mesh; so does a generated terrain of several parts, which keeps
    its regions.
    """
    if isinstance(description, TriangleMesh):
        return MeshGround(description)
    if isinstance(description, HeightField):
        walls = description.slope_threshold is not None and description.shifts().any()
        return MeshGround(description.as_mesh()) if walls else FieldGround(description)
    meshes = [] if description.mesh is None else [description.mesh]
    if not meshes and len(description.fields) == 1:
        return relief_of(description.fields[0]).with_regions(description.regions)
    parts = [*meshes, *(field.as_mesh() for field in description.fields)]
    return MeshGround(concatenate(parts)).with_regions(description.regions)


def check_relief(kind: int, data: Array, relief: Array) -> None:
    """Refuse numbers with which a search would leave the relief, as from a damaged file.

    Raises:
        InvalidInput: sizes, places or entries that do not fit together.
    """
    fits = relief.dtype == np.float64 and relief.ndim == 1
    if fits and kind == FIELD:
        nx, ny, scale = data[:3]
        blocks = -(-nx // BLOCK) * -(-ny // BLOCK)
        fits = min(nx, ny) >= 2.0 and scale > 0.0 and data[5] == -(-ny // BLOCK)
        fits = fits and len(relief) == nx * ny + blocks and bool(np.isfinite(relief).all())
    elif fits:
        fits = data[SIDE] > 0.0 and data[:3].min() >= 0.0 and data[BINS_X : BINS_Y + 1].min() >= 1
        fits = fits and _parts_fit(data, relief)
    if not fits:
        raise InvalidInput('terrain.relief: numbers that do not fit together')


def _parts_fit(data: Array, relief: Array) -> bool:
    """Return whether all places in the relief of a mesh are where its sizes say."""
    facets, places = data[:3].astype(np.int64), data[EDGES_FROM:].astype(np.int64)
    bins = int(data[BINS_X]) * int(data[BINS_Y])
    lengths = facets * [TRIANGLE_NUMBERS, EDGE_NUMBERS, CORNER_NUMBERS]
    edges, corners, neighbours, starts, tops, entries = places[:6]
    expected = [lengths[0], lengths[:2].sum(), lengths.sum(), tops - bins - 1, entries - bins]
    order = np.array([edges, corners, neighbours, starts, tops, entries, len(relief)])
    if (order[:5] != expected).any() or (np.diff(order) < 0).any():
        return False
    ends = relief[corners:neighbours].reshape(-1, CORNER_NUMBERS)[:, 6:]
    first, listed = relief[starts:tops], relief[entries:]
    return bool(
        (ends >= 0).all() and (3 * ends <= starts - neighbours).all()
        and (first >= 0).all() and (first <= len(listed)).all()
        and (listed >= 0).all() and (listed < facets.sum()).all()
    )  # fmt: skip


def filled(*numbers: float) -> Array:
    """Return numbers, then zeros, shape (TERRAIN_DATA,)."""
    data = np.zeros(TERRAIN_DATA)
    data[: len(numbers)] = numbers
    return data


def block_maxima(heights: Array) -> Array:
    """Return the highest corner of the cells of every block of BLOCK x BLOCK grid points."""
    nx, ny = heights.shape
    cells = np.full((-(-nx // BLOCK) * BLOCK, -(-ny // BLOCK) * BLOCK), -np.inf)
    cells[:nx, :ny] = heights
    cells[: nx - 1, :ny] = np.maximum(cells[: nx - 1, :ny], heights[1:])
    cells[:nx, : ny - 1] = np.maximum(cells[:nx, : ny - 1], cells[:nx, 1:ny].copy())
    blocks = cells.reshape(cells.shape[0] // BLOCK, BLOCK, cells.shape[1] // BLOCK, BLOCK)
    return np.asarray(blocks.max(axis=(1, 3)))
