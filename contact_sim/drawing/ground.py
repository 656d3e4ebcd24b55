"""The ground and its regions as triangles and lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.kinds import PLANES
from contact_sim.collision.relief import FieldGround, MeshGround
from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.surfaces import Surface
from contact_sim.terrain import Region

Array = NDArray[np.float64]
GROUND_SIZE = 10.0
"""Side of what is drawn of a ground without end, about the origin of the world [m]."""
WALL_HEIGHT = 1.0
"""Height over the origin of the world up to which several planes are drawn [m]."""
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
    """Return the corners of the triangles of `ground_surface` [m], shape (n, 3)."""
    surface = ground_surface(terrain)
    return np.asarray(surface.vertices[surface.triangles].reshape(-1, 3))


def ground_surface(terrain: Terrain) -> Surface:
    """Return triangles on the ground.

    Of several planes, what each has in the room that all leave; of height fields and meshes, their
    own; else a level grid about the origin whose points are moved to the nearest of the ground.
    """
    if isinstance(terrain, FieldGround | MeshGround):
        mesh = terrain.mesh if isinstance(terrain, MeshGround) else terrain.field.as_mesh()
        return Surface(mesh.vertices, mesh.triangles)
    if terrain.kind == PLANES:
        corners = _faces(terrain.data[: 4 * terrain.features].reshape(-1, 4))
        return Surface(corners, np.arange(len(corners)).reshape(-1, 3))
    ticks = np.linspace(-0.5 * GROUND_SIZE, 0.5 * GROUND_SIZE, GROUND_CELLS + 1)
    x, y = np.meshgrid(ticks, ticks, indexing='ij')
    flat = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    points = flat - terrain.distances(flat)[:, None] * terrain.normals(flat)
    number = np.arange(len(points)).reshape(GROUND_CELLS + 1, GROUND_CELLS + 1)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    return Surface(points, np.stack([a, b, c, a, c, d], axis=2).reshape(-1, 3))


def _faces(planes: Array) -> Array:
    """Return triangles (n, 3) on planes (k, 4), unit normals and offsets: the bounds of a room."""
    half, up = 0.5 * GROUND_SIZE, np.array([0.0, 0.0, 1.0])
    sides = [(sign * axis, -half) for axis in np.eye(3) for sign in (1.0, -1.0)]
    sides.append((-up, -WALL_HEIGHT))
    faces = []
    for k, (*normal, offset) in enumerate(planes):
        first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        first /= np.linalg.norm(first)
        second = np.cross(normal, first)
        square = 2.0 * GROUND_SIZE * np.array([first, second, -first, -second])
        face = offset * np.array(normal) + square
        others = [(plane[:3], plane[3]) for j, plane in enumerate(planes) if j != k]
        for direction, least in (*others, *sides):
            face = _cut(face, face @ direction - least)
        faces += [face[[0, i, i + 1]] for i in range(1, len(face) - 1)]
    return np.concatenate([np.zeros((0, 3)), *faces])


def _cut(face: Array, inside: Array) -> Array:
    """Return the part of a convex polygon (n, 3) where a linear function, (n,), is not < 0."""
    kept = []
    for k, point in enumerate(face):
        before, now = inside[k - 1], inside[k]
        if before * now < 0.0:
            kept.append(face[k - 1] + before / (before - now) * (point - face[k - 1]))
        if now >= 0.0:
            kept.append(point)
    return np.array(kept).reshape(-1, 3)


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
