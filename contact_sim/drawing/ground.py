"""The ground and its regions as triangles and lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.kinds import PLANES
from contact_sim.collision.relief import FieldGround, MeshGround
from contact_sim.collision.terrain import Terrain
from contact_sim.terrain import Region

Array = NDArray[np.float64]
GROUND_SIZE = 10.0
"""Side of what is drawn of a ground without end, about the origin of the world [m]."""
GROUND_CELLS = 40
SIDE_PIECES = 40
"""Pieces of which a side of a region is drawn."""
ABOVE = 0.005
"""Height of a line over the ground [m]."""


def one_plane(terrain: Terrain) -> tuple[Array, float] | None:
    """Return unit normal (3,) and offset [m] of a ground that is a plane, None of others."""
    if terrain.kind == PLANES and terrain.features == 1:
        return terrain.data[:3], float(terrain.data[3])
    return None


def ground_triangles(terrain: Terrain) -> Array:
    """Return the corners of triangles on the ground [m], shape (n, 3).

    A level grid about the origin whose points are moved to the nearest point of the ground; of
    height fields and meshes, their own.
    """
    if isinstance(terrain, FieldGround | MeshGround):
        mesh = terrain.mesh if isinstance(terrain, MeshGround) else terrain.field.as_mesh()
        return np.asarray(mesh.vertices[mesh.triangles].reshape(-1, 3))
    ticks = np.linspace(-0.5 * GROUND_SIZE, 0.5 * GROUND_SIZE, GROUND_CELLS + 1)
    x, y = np.meshgrid(ticks, ticks, indexing='ij')
    flat = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    points = flat - terrain.distances(flat)[:, None] * terrain.normals(flat)
    grid = points.reshape(GROUND_CELLS + 1, GROUND_CELLS + 1, 3)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    return np.stack([a, b, c, a, c, d], axis=2).reshape(-1, 3)


def border_lines(terrain: Terrain, region: Region) -> Array:
    """Return both ends of lines on the ground around a region, shape (2 n, 3); none over holes."""
    (x_low, x_high), (y_low, y_high) = region.x_range, region.y_range
    corners = np.array([[x_low, y_low], [x_high, y_low], [x_high, y_high], [x_low, y_high]])
    share = np.linspace(0.0, 1.0, SIDE_PIECES + 1)[:, None]
    sides = [a + share * (b - a) for a, b in zip(corners, np.roll(corners, -1, 0), strict=True)]
    lines = []
    for side in sides:
        height = [terrain.height(x, y) + ABOVE for x, y in side]
        points = np.column_stack([side, height])
        lines.append(np.stack([points[:-1], points[1:]], axis=1))
    pieces = np.concatenate(lines)
    return np.asarray(pieces[np.isfinite(pieces).all(axis=(1, 2))].reshape(-1, 3))
