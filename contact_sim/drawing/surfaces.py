"""Surfaces of triangles: boxes, surfaces of revolution, meshes with fewer triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
SIDES = 24
"""Corners of a circle."""
ARCS = 7
"""Points on a quarter of a circle."""
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles; their corners go around counterclockwise as seen from outside."""

    vertices: Array
    """Corners [m], shape (n, 3)."""
    triangles: Indices
    """Three corners each, shape (m, 3)."""


def box(size: tuple[float, float, float]) -> Surface:
    """Return a box about the origin with edges of these lengths [m]."""
    triangles = [t for a, b, c, d in _FACES for t in ((a, b, c), (a, c, d))]
    return Surface(_CORNERS * size, np.array(triangles))


def sphere(radius: float) -> Surface:
    """Return a sphere about the origin [m]."""
    return capsule(radius, 0.0)


def capsule(radius: float, length: float) -> Surface:
    """Return everything within a radius of a segment along z about the origin [m]."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * ARCS)
    z = radius * np.sin(angle) + np.repeat([-0.5, 0.5], ARCS) * length
    return revolved(radius * np.cos(angle), z)


def cylinder(radius: float, length: float) -> Surface:
    """Return a cylinder along z about the origin [m]."""
    half = 0.5 * length
    return revolved(np.array([0.0, radius, radius, 0.0]), np.array([-half, -half, half, half]))


def revolved(radii: Array, heights: Array) -> Surface:
    """Return what a line of radii and heights (n,) sweeps about z, from its lowest point up."""
    angle = 2.0 * np.pi * np.arange(SIDES) / SIDES
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(SIDES)], axis=1)
    radii = np.where(radii > 1e-12 * radii.max(), radii, 0.0)  # cos(π/2) is not quite zero
    rings = radii[:, None, None] * circle + heights[:, None, None] * [0.0, 0.0, 1.0]
    a = np.arange(len(radii) - 1)[:, None] * SIDES + np.arange(SIDES)
    b = np.arange(len(radii) - 1)[:, None] * SIDES + (np.arange(SIDES) + 1) % SIDES
    quads = np.stack([a, b, b + SIDES, a, b + SIDES, a + SIDES], axis=-1).reshape(-1, 3)
    return without_slivers(rings.reshape(-1, 3), quads)


def without_slivers(vertices: Array, triangles: Indices) -> Surface:
    """Return a surface without repeated vertices, and without triangles that have no area."""
    _, first, same = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    triangles = same.ravel()[triangles]
    a, b, c = triangles.T
    kept = triangles[(a != b) & (b != c) & (c != a)]
    return Surface(vertices[first], kept)


def thinned(surface: Surface, most: int) -> Surface:
    """Return a surface with at most `most` triangles: vertices in one cell become their mean.

    No vertex moves further than the diagonal of a cell, the smallest that is small enough, of
    cells that double their volume from one trial to the next.
    """
    if len(surface.triangles) <= most:
        return surface
    extent = np.ptp(surface.vertices, axis=0)
    area = _area(surface)
    side = float(np.sqrt(area / most)) if area > 0.0 else float(extent.max() / np.sqrt(most))
    found = _merged(surface, side)
    while len(found.triangles) > most:
        side *= 2.0 ** (1.0 / 3.0)
        found = _merged(surface, side)
    return found


def _area(surface: Surface) -> float:
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    return float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())


def _merged(surface: Surface, side: float) -> Surface:
    """Return the surface with the vertices of every cell of this side [m] at their mean."""
    cells = np.floor((surface.vertices - surface.vertices.min(axis=0)) / side).astype(np.int64)
    counts = cells.max(axis=0) + 1
    key = (cells[:, 0] * counts[1] + cells[:, 1]) * counts[2] + cells[:, 2]
    _, cell, number = np.unique(key, return_inverse=True, return_counts=True)
    means = [np.bincount(cell, column) / number for column in surface.vertices.T]
    a, b, c = triangles = cell[surface.triangles].T
    kept = triangles.T[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(kept, axis=1), axis=0, return_index=True)
    return Surface(np.stack(means, axis=1), kept[np.sort(first)])
