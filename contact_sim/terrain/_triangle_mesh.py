"""Ground as triangles: vertices and indices, from numbers or from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from contact_sim import _reading
from contact_sim._types import Array, Indices
from contact_sim._validation import checked, real_array
from contact_sim.errors import InvalidInput, one_line, shown

MAX_COORDINATE = 1e6  # largest coordinate of ground [m]: nanometres are nothing there


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Triangle mesh; corners are counter-clockwise seen from outside.

    Vertices at one place are merged, triangles without area dropped. Each edge belongs to one
    triangle (an open border) or to two. Where more meet, as under two blocks that touch along an
    edge, every solid keeps a copy of the edge for itself.

    Raises:
        InvalidInput: no triangle with an area, coordinates that are not finite, indices out of
            range, an edge shared by three triangles, neighbours that face opposite ways.
    """

    vertices: Array
    """[m], shape (n, 3), read-only."""
    triangles: Indices
    """Corners of each triangle as rows of `vertices`, shape (m, 3), read-only."""
    dropped: int = field(init=False, compare=False)
    """Triangles without area that were given."""

    def __post_init__(self) -> None:
        vertices = _table('vertices', self.vertices, np.float64)
        triangles = _table('triangles', self.triangles, np.int64)
        near = (np.abs(vertices) <= MAX_COORDINATE).all(axis=1)  # NaN is nowhere
        if not near.all():
            row = int(np.flatnonzero(~near)[0])
            raise InvalidInput(
                f'TriangleMesh.vertices[{row}] = {vertices[row]} m: not finite, or farther than '
                f'{MAX_COORDINATE:g} m'
            )
        if len(triangles) and not (triangles.min() >= 0 and triangles.max() < len(vertices)):
            raise InvalidInput(
                f'TriangleMesh.triangles: indices {triangles.min()} to {triangles.max()}, '
                f'expected 0 to {len(vertices) - 1}, rows of vertices'
            )
        vertices, kept = merged(vertices, triangles)
        kept = without_degenerate(vertices, kept)
        if not len(kept):
            raise InvalidInput('TriangleMesh: expected at least one triangle with an area')
        vertices, kept = parted(*merged(vertices, kept))
        for name, values in (('vertices', vertices), ('triangles', kept)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        object.__setattr__(self, 'dropped', len(triangles) - len(kept))

    @cached_property
    def neighbours(self) -> Indices:
        """Triangle across the edge from corner k to corner k + 1, −1 for none, shape (m, 3)."""
        opposite = opposite_half_edges(self.vertices, self.triangles)
        return np.where(opposite < 0, -1, opposite // 3).reshape(-1, 3)

    @cached_property
    def normals(self) -> Array:
        """Unit normals of the triangles, out of the ground, shape (m, 3)."""
        a, b, c = np.moveaxis(self.vertices[self.triangles], 1, 0)
        normal = np.cross(b - a, c - a)
        return np.asarray(normal / np.linalg.norm(normal, axis=1)[:, None])

    @classmethod
    @checked
    def from_file(cls, path: str | Path, scale: float = 1.0) -> TriangleMesh:
        """Return the mesh of an STL, OBJ, PLY or glTF file, read by trimesh.

        Args:
            path: the file; z is up.
            scale: metres per unit of the file.

        Raises:
            InvalidInput: no such file, trimesh missing or unable to read it, a scale that is not
                positive, a mesh that is no surface.
        """
        if not (np.isfinite(scale) and scale > 0.0):
            raise InvalidInput(
                f'TriangleMesh.from_file: scale = {shown(scale)}: expected a number > 0'
            )
        with _reading.reading(path):
            mesh = _loaded(Path(path))
            try:
                return cls(np.asarray(mesh.vertices) * scale, np.asarray(mesh.faces))
            except InvalidInput as error:
                raise InvalidInput(f'{path}: {error}') from error

    __repr__ = one_line


@checked
def concatenate(meshes: Iterable[TriangleMesh]) -> TriangleMesh:
    """Join several meshes into one; common edges are merged.

    Raises:
        InvalidInput: no mesh, or meshes that together are no surface.
    """
    return _one_mesh([(mesh.vertices, mesh.triangles) for mesh in meshes])


def _one_mesh(parts: list[tuple[Array, Indices]]) -> TriangleMesh:
    """Return a mesh of several lists of vertices and triangles."""
    first = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    return TriangleMesh(
        np.concatenate([np.empty((0, 3)), *(vertices for vertices, _ in parts)]),
        np.concatenate(
            [
                np.empty((0, 3), dtype=np.int64),
                *(corners + k for (_, corners), k in zip(parts, first, strict=False)),
            ]
        ),
    )


SEAM = 1e-6
"""Vertices of touching solids that are nearer than this are one: so low a step is none, and no
body lies on its edges [m]."""
LEVELLED = 4.0 * SEAM  # largest difference of the heights of tiles that are made level [m]


@checked
def united(mesh: TriangleMesh) -> TriangleMesh:
    """Return a mesh in which closed solids that touch or overlap are one solid each.

    What lies inside another solid, as the walls between tiles, is no ground. Open surfaces and
    solids that stand alone stay as they are.

    Raises:
        InvalidInput: solids whose union manifold3d cannot compute, or manifold3d missing.
    """
    solid = _solids(mesh)
    count = int(solid.max(initial=-1)) + 1
    if count < 2:
        return mesh
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    corners = mesh.vertices[mesh.triangles]
    np.minimum.at(low, solid[solid >= 0], corners.min(axis=1)[solid >= 0] - SEAM)
    np.maximum.at(high, solid[solid >= 0], corners.max(axis=1)[solid >= 0] + SEAM)
    near = _overlapping(low, high)
    group = scipy.sparse.csgraph.connected_components(
        scipy.sparse.coo_array((np.ones(len(near)), near.T), (count, count))
    )[1]
    crowded = np.bincount(group) > 1
    joined = np.zeros(len(solid), dtype=bool)
    joined[solid >= 0] = crowded[group[solid[solid >= 0]]]
    if not joined.any():
        return mesh
    parts = [(mesh.vertices, mesh.triangles[~joined])] if (~joined).any() else []
    for number in np.flatnonzero(crowded):
        members = [mesh.triangles[solid == k] for k in np.flatnonzero(group == number)]
        parts.append(_union(mesh.vertices, members))
    return _one_mesh(parts)


def _solids(mesh: TriangleMesh) -> Indices:
    """Return the number of the closed solid to which each triangle belongs, −1 for none."""
    one, side = np.nonzero(mesh.neighbours >= 0)
    size = len(mesh.triangles)
    links = scipy.sparse.coo_array(
        (np.ones(len(one)), (one, mesh.neighbours[one, side])), (size, size)
    )
    part = scipy.sparse.csgraph.connected_components(links, directed=False)[1]
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    volume = np.bincount(part, np.einsum('ij,ij->i', a, np.cross(b, c)))
    closed = volume > 0.0  # a hollow has its volume outside
    closed[part[(mesh.neighbours < 0).any(axis=1)]] = False
    number = np.where(closed, np.cumsum(closed) - 1, -1)
    return np.asarray(number[part])


def _overlapping(low: Array, high: Array) -> Indices:
    """Return the pairs of boxes along the axes that have a point in common, shape (n, 2)."""
    order = np.argsort(low[:, 0], kind='stable')
    pairs = []
    for place, k in enumerate(order):
        end = np.searchsorted(low[order, 0], high[k, 0], side='right')
        others = order[place + 1 : end]
        meet = ((low[others] <= high[k]) & (low[k] <= high[others])).all(axis=1)
        pairs += [(k, other) for other in others[meet]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _union(vertices: Array, solids: list[Indices]) -> tuple[Array, Indices]:
    """Return the surface of several solids together, vertices nearer than SEAM as one."""
    try:
        import manifold3d  # slow import
    except ImportError as error:
        raise InvalidInput(
            f'TriangleMesh: {len(solids)} solids touch, and joining them needs manifold3d: '
            'pip install manifold3d'
        ) from error
    vertices = _levelled(vertices, np.concatenate(solids))
    bodies, corners_used = [], []
    for triangles in solids:
        used, corners = np.unique(triangles, return_inverse=True)
        # each solid a little larger, so that those that only touch overlap
        middle = 0.5 * (vertices[used].max(axis=0) + vertices[used].min(axis=0))
        half = 0.5 * np.ptp(vertices[used], axis=0)
        larger = vertices[used] + 0.25 * SEAM * (vertices[used] - middle) / half
        surface = manifold3d.Mesh64(larger, corners.reshape(-1, 3).astype(np.uint64))
        bodies.append(manifold3d.Manifold(surface))
        corners_used.append(vertices[used])
    whole = manifold3d.Manifold.batch_boolean(bodies, manifold3d.OpType.Add)
    if whole.status() != manifold3d.Error.NoError or whole.is_empty():
        raise InvalidInput(
            f'TriangleMesh: {len(solids)} solids that touch have no union: {whole.status().name}'
        )
    surface = whole.to_mesh64()
    points, triangles = np.array(surface.vert_properties[:, :3]), np.array(surface.tri_verts)
    # vertices and crossings of faces along the axes go back to where they were; vertices that are
    # near each other become one
    original = np.concatenate(corners_used)
    for axis in range(3):
        values = np.unique(original[:, axis])
        ahead = np.clip(np.searchsorted(values, points[:, axis]), 1, max(len(values) - 1, 1))
        for value in (values[ahead - 1], values[np.minimum(ahead, len(values) - 1)]):
            close = np.abs(points[:, axis] - value) < 0.5 * SEAM
            points[close, axis] = value[close]
    distance, nearest = scipy.spatial.cKDTree(original).query(points, distance_upper_bound=SEAM)
    known = np.isfinite(distance)
    points[known] = original[nearest[known]]
    near = scipy.spatial.cKDTree(points).query_pairs(SEAM, output_type='ndarray')
    links = scipy.sparse.coo_array((np.ones(len(near)), near.T), (len(points), len(points)))
    place = scipy.sparse.csgraph.connected_components(links, directed=False)[1]
    order = np.lexsort((np.arange(len(points)), ~known, place))  # the known ones stand for others
    kept = order[np.unique(place[order], return_index=True)[1]]
    corner = place[triangles.astype(np.int64)]
    # without triangles that are lower than a step counts
    edges = points[kept][np.roll(corner, -1, axis=1)] - points[kept][corner]
    area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    return points[kept], corner[area > SEAM * np.linalg.norm(edges, axis=2).max(axis=1)]


def _levelled(vertices: Array, triangles: Indices) -> Array:
    """Return vertices with the faces across an axis that are within SEAM of the next made level.

    So tiles whose heights differ by less make one plane. More than LEVELLED in all is a slope.
    """
    vertices = vertices.copy()
    for axis in range(3):
        place = vertices[triangles, axis]
        faces = np.unique(place[(place == place[:, :1]).all(axis=1)])
        for group in np.split(faces, np.flatnonzero(np.diff(faces) > SEAM) + 1):
            if len(group) > 1 and group[-1] - group[0] <= LEVELLED:
                moved = np.isin(vertices[:, axis], group)
                vertices[moved, axis] = group[len(group) // 2]
    return vertices


BOX_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
BOX_TRIANGLES = np.array(
    [
        *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5]),  # x low, x high
        *([0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6]),  # y low, y high
        *([0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),  # z low, z high
    ]
)


@checked
def boxes(lower: ArrayLike, upper: ArrayLike) -> TriangleMesh:
    """Return the closed surfaces of boxes along the axes; as ground, touching ones are joined.

    Args:
        lower: corners with the smallest coordinates [m], shape (3,) or (n, 3).
        upper: corners with the largest coordinates [m], shape (3,) or (n, 3).

    Raises:
        InvalidInput: shapes that do not fit, a box without volume.
    """
    low, high = np.atleast_2d(lower), np.atleast_2d(upper)
    if low.shape != high.shape or low.shape[1:] != (3,):
        raise InvalidInput(f'boxes: shapes {low.shape} and {high.shape}: expected (n, 3) twice')
    if not (low < high).all():
        row = int(np.flatnonzero(~(low < high).all(axis=1))[0])
        raise InvalidInput(f'boxes: box {row} from {low[row]} to {high[row]} m has no volume')
    corners = low[:, None] + BOX_CORNERS * (high - low)[:, None]
    triangles = BOX_TRIANGLES + 8 * np.arange(len(low))[:, None, None]
    return TriangleMesh(corners.reshape(-1, 3), triangles.reshape(-1, 3))


def _table(name: str, values: Any, dtype: type) -> Any:
    """Return a copy as an array of three columns."""
    given = real_array(f'TriangleMesh.{name}', values)
    whole = dtype is np.float64 or given.size == 0 or np.asarray(values).dtype.kind in 'iu'
    if given.ndim != 2 or given.shape[1] != 3 or not whole:
        kind = 'numbers' if dtype is np.float64 else 'integers'
        raise InvalidInput(
            f'TriangleMesh.{name}: {given.dtype} of shape {given.shape}, expected {kind}, (n, 3)'
        )
    return np.array(given, dtype=dtype)


def _loaded(path: Path) -> Any:
    """Return the file as a trimesh.Trimesh."""
    try:
        with _reading.reading(path):
            scene = _reading.mesh_scene(path, process=False)
            mesh = scene.to_mesh() if scene.geometry else None
    except ImportError as error:  # an extra: only files need it
        raise InvalidInput(f'{path}: reading a mesh needs trimesh: pip install trimesh') from error
    except InvalidInput:
        raise
    except Exception as error:  # readers of many formats, each with its own errors
        raise InvalidInput(f'{path}: trimesh cannot read it: {error}') from error
    if mesh is None or not len(getattr(mesh, 'faces', ())):
        raise InvalidInput(f'{path}: the file has no triangles')
    return mesh


# Topology: merge vertices, check edges, split solids that only touch.

MERGE_DISTANCE = 1e-9
"""Vertices whose coordinates round to the same multiple of this are one vertex [m]."""
SAME_ANGLE = 1e-7  # triangles at an edge whose directions differ by less lie on each other [rad]


def merged(vertices: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return the distinct vertices (n, 3) in the order of x, y, z, and the triangles (m, 3)."""
    used, corners = np.unique(triangles, return_inverse=True)
    points = vertices[used]
    grid = np.rint(points / MERGE_DISTANCE)
    order = np.lexsort(grid.T[::-1])
    new = np.ones(len(order), dtype=bool)
    new[1:] = (grid[order[1:]] != grid[order[:-1]]).any(axis=1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return points[order[new]], place[corners].reshape(-1, 3)


def without_degenerate(vertices: Array, triangles: Indices) -> Indices:
    """Return the triangles that have an area, measured against their longest edge squared."""
    corner = vertices[triangles]
    edges = np.roll(corner, -1, axis=1) - corner
    doubled_area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    longest = (edges**2).sum(axis=2).max(axis=1)
    return np.asarray(triangles[doubled_area > 1e-12 * longest])


def opposite_half_edges(vertices: Array, triangles: Indices) -> Indices:
    """Return for each half-edge the one it joins, −1 on an open border, shape (3 m,).

    Where 2 k triangles meet at one edge, k solids touch there: each half-edge joins the one on the
    other side of its own solid.

    Raises:
        InvalidInput: an edge of three triangles, neighbours that face opposite ways, faces that
            pass through each other at an edge.
    """
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    edge, count = _edges(triangles)
    forward = np.bincount(edge, weights=start < end).astype(np.int64)
    _check_edges(vertices, start, end, edge, count, forward)
    opposite = np.full(len(start), -1)
    order = np.argsort(edge, kind='stable')
    first, second = _neighbours(order, edge, count == 2)
    opposite[first], opposite[second] = second, first
    crowded = order[count[edge[order]] > 2]
    if len(crowded):
        one, other = _joined_by_solid(vertices, triangles, crowded, edge)
        opposite[one], opposite[other] = other, one
    return opposite


def parted(vertices: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return the surface with every edge in at most two triangles: what only touches is parted.

    Two boxes that share one edge get a copy of the edge each; all places stay as they are.

    Raises:
        InvalidInput: the triangles are no surface, see `opposite_half_edges`.
    """
    opposite = opposite_half_edges(vertices, triangles)
    if _edges(triangles)[1].max() <= 2:
        return vertices, triangles
    fan = _fans(opposite)
    kept = np.unique(fan, return_index=True)[1]
    return vertices[triangles.ravel()[kept]], fan.reshape(-1, 3)


def _edges(triangles: Indices) -> tuple[Indices, Indices]:
    """Return the edge of each half-edge, shape (3 m,), and the triangles at each edge."""
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    low, high = np.minimum(start, end), np.maximum(start, end)
    number = low * (triangles.max() + 1) + high
    _, edge, count = np.unique(number, return_inverse=True, return_counts=True)
    return edge, count


def _fans(opposite: Indices) -> Indices:
    """Return the fan of each corner: corners at one vertex that are joined across edges."""
    joined = np.flatnonzero(opposite >= 0)
    across = opposite[joined]
    end_of_across = across - across % 3 + (across + 1) % 3  # corner at its end: where ours starts
    size = len(opposite)
    links = scipy.sparse.coo_array(
        (np.ones(len(joined)), (joined, end_of_across)), shape=(size, size)
    )
    return np.asarray(
        scipy.sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.int64
    )


def _neighbours(order: Indices, edge: Indices, wanted: NDArray[np.bool_]) -> tuple:
    pairs = order[wanted[edge[order]]].reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _joined_by_solid(
    vertices: Array, triangles: Indices, half_edges: Indices, edge: Indices
) -> tuple[Indices, Indices]:
    """Return the pairs of half-edges that bound a solid, at edges of four and more triangles.

    Going round an edge, each solid begins at a triangle whose half-edge runs backward along the
    edge and ends at one whose half-edge runs forward. Triangles that lie on each other are taken
    in the order that keeps this up.
    """
    angle = _angles(vertices, triangles, half_edges, edge)
    corner = triangles.ravel()
    forward = corner[half_edges] < np.roll(triangles, -1, axis=1).ravel()[half_edges]
    group = edge[half_edges]
    following = _next_in_group(group)  # sorted, so the same in every order below
    order = np.lexsort((~forward, angle, group))  # faces on each other: a gap without width
    repeated = forward[order] == forward[order][following]
    sheet = np.isin(group, group[repeated])  # or else a solid without thickness
    order = np.lexsort((forward == sheet, angle, group))
    repeated = forward[order] == forward[order][following]
    if repeated.any():
        raise InvalidInput(
            'TriangleMesh: faces pass through each other at the edge from '
            f'{_place(vertices, corner[half_edges[order][repeated][0]])}'
        )
    begins = np.flatnonzero(~forward[order])
    return half_edges[order][begins], half_edges[order][following[begins]]


def _angles(vertices: Array, triangles: Indices, half_edges: Indices, edge: Indices) -> Indices:
    """Return the direction of each triangle round its edge, in multiples of SAME_ANGLE."""
    corner = triangles.ravel()
    triangle, k = half_edges // 3, half_edges % 3
    start, end = corner[half_edges], triangles[triangle, (k + 1) % 3]
    axis = vertices[np.maximum(start, end)] - vertices[np.minimum(start, end)]
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    arm = vertices[triangles[triangle, (k + 2) % 3]] - vertices[start]
    arm -= (arm * axis).sum(axis=1)[:, None] * axis
    group = edge[half_edges]
    zero = arm[np.searchsorted(group, group)]  # half-edges come sorted by edge
    sine = (np.cross(zero, arm) * axis).sum(axis=1)
    turn = np.rint(np.arctan2(sine, (zero * arm).sum(axis=1)) / SAME_ANGLE)
    return np.asarray(turn % np.rint(2.0 * np.pi / SAME_ANGLE), dtype=np.int64)


def _next_in_group(group: Indices) -> Indices:
    """Return the index of the next member of the same group, the first after the last."""
    size = len(group)
    following = np.arange(1, size + 1)
    last = np.append(group[1:] != group[:-1], True)
    following[last] = np.searchsorted(group, group[last])
    return following


def _check_edges(
    vertices: Array, start: Indices, end: Indices, edge: Indices, count: Indices, forward: Indices
) -> None:
    odd = (count > 1) & (2 * forward != count)
    if not odd.any():
        return
    half_edges = np.flatnonzero(edge == np.flatnonzero(odd)[0])
    h = half_edges[0]
    where = f'the edge from {_place(vertices, start[h])} to {_place(vertices, end[h])}'
    faces = ', '.join(str(t) for t in half_edges[:6] // 3)
    if len(half_edges) > 6:
        faces += f' and {len(half_edges) - 6} others'
    if len(half_edges) == 2:
        reason = f'triangles {faces} face opposite ways at {where}: turn one of them round'
    else:
        reason = f'triangles {faces} share {where}: expected at most two, or pairs of two'
    raise InvalidInput(f'TriangleMesh: {reason} ({int(odd.sum())} such edges)')


def _place(vertices: Array, index: int) -> str:
    return '({:g}, {:g}, {:g}) m'.format(*vertices[index])
