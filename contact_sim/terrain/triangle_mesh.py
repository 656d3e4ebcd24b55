"""Ground as triangles: vertices and indices, from numbers or from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import real_array
from contact_sim.terrain.manifold import merged, opposite_half_edges, parted, without_degenerate

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FARTHEST = 1e6
"""Largest coordinate of ground [m]: nanometres are nothing there."""
BOX_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
BOX_TRIANGLES = np.array(
    [
        *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5]),  # x low, x high
        *([0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6]),  # y low, y high
        *([0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),  # z low, z high
    ]
)


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A surface of triangles; seen from outside, their corners run counter-clockwise.

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
        near = (np.abs(vertices) <= FARTHEST).all(axis=1)  # NaN is nowhere
        if not near.all():
            row = int(np.flatnonzero(~near)[0])
            raise InvalidInput(
                f'TriangleMesh.vertices[{row}] = {vertices[row]} m: not finite, or farther than '
                f'{FARTHEST:g} m'
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
        mesh = _loaded(Path(path))
        try:
            return cls(np.asarray(mesh.vertices) * scale, np.asarray(mesh.faces))
        except InvalidInput as error:
            raise InvalidInput(f'{path}: {error}') from error


@checked
def concatenate(meshes: Iterable[TriangleMesh]) -> TriangleMesh:
    """Return one mesh of several; those that share an edge are joined there.

    Raises:
        InvalidInput: no mesh, or meshes that together are no surface.
    """
    parts = list(meshes)
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in parts)])
    return TriangleMesh(
        np.concatenate([np.empty((0, 3)), *(mesh.vertices for mesh in parts)]),
        np.concatenate(
            [
                np.empty((0, 3), dtype=np.int64),
                *(mesh.triangles + k for mesh, k in zip(parts, first, strict=False)),
            ]
        ),
    )


@checked
def boxes(lower: ArrayLike, upper: ArrayLike) -> TriangleMesh:
    """Return the closed surfaces of boxes along the axes, which must not overlap.

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
    if not path.is_file():
        raise InvalidInput(f'{path}: there is no such file')
    try:
        import trimesh  # an extra: only files need it
    except ImportError as error:
        raise InvalidInput(f'{path}: reading a mesh needs trimesh: pip install trimesh') from error
    try:
        scene = trimesh.load_scene(path, process=False)
        mesh = scene.to_mesh() if scene.geometry else None
    except Exception as error:  # readers of many formats, each with its own errors
        raise InvalidInput(f'{path}: trimesh cannot read it: {error}') from error
    if mesh is None or not len(getattr(mesh, 'faces', ())):
        raise InvalidInput(f'{path}: the file has no triangles')
    return mesh
