"""Shapes of solids: their corners, edges and faces as numbers, in the axes of the solid.

header     numbers of corners, edges and faces; radius [m]; radius and half length of a
           cylinder, else 0 [m]; kind, see _solid_contacts.py; semi-axes of an ellipsoid,
           else 0 [m]
corners    place
faces      unit outward normal and offset
edges      both ends, the unit directions from it into its two faces, and their numbers
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import scipy

from contact_sim._types import Array, Indices
from contact_sim.dynamics._vectors import vec
from contact_sim.robot._collision_pairs import Solid, corner_points
from contact_sim.solvers._jit import kernel

HEADER, CORNER, FACE, EDGE = 10, 3, 4, 14
KIND, ELLIPSOID = 6, 7  # places of the kind and of the first semi-axis
SAME_FACE = 1e-6  # difference of normals up to which facets of a hull are one face


@lru_cache(maxsize=4096)
def shape_numbers(solid: Solid) -> Array:
    """Return the shape of a solid as numbers, shape (any,); that of a cylinder, then its axis."""
    if solid.ellipsoid:
        return np.array([*np.zeros(KIND), solid.kind, *solid.ellipsoid])
    back = solid.placement.inverse()
    corners = np.array([back.act(point.offset) for point in corner_points(solid)])
    rim = solid.cylinder or (0.0, 0.0)
    numbers = _numbers(corners, solid.radius, rim, solid.kind)
    if not any(rim):
        return numbers
    axis = np.outer([-1.0, 1.0], [0.0, 0.0, rim[1]])
    return np.concatenate([numbers, _numbers(axis, rim[0], (0.0, 0.0), 1)])


def _numbers(corners: Array, radius: float, rim: tuple[float, ...], kind: int) -> Array:
    faces, edges = np.zeros((0, FACE)), np.zeros((0, EDGE))
    if len(corners) == 2:
        edges = np.concatenate([corners.ravel(), np.zeros(EDGE - 6)])[None]
    elif len(corners) > 2:
        faces, edges = _faces_and_edges(corners)
    header = [len(corners), len(edges), len(faces), radius, *rim, kind, 0.0, 0.0, 0.0]
    return np.concatenate([header, corners.ravel(), faces.ravel(), edges.ravel()])


def _faces_and_edges(corners: Array) -> tuple[Array, Array]:
    """Return the faces and edges of a convex hull; its coplanar triangles are one face."""
    hull = scipy.spatial.ConvexHull(corners)
    normals, of_face = hull.equations[:, :3], np.arange(len(hull.simplices))
    # triangle i, place k and triangle j beyond the edge opposite to its corner k
    i, k = np.indices(hull.neighbors.shape).reshape(2, -1)
    j = hull.neighbors.ravel()
    same = np.abs(normals[i] - normals[j]).max(axis=1) < SAME_FACE
    for one, other in zip(i[same].tolist(), j[same].tolist(), strict=True):
        of_face[of_face == of_face[other]] = of_face[one]
    _, first, of_face = np.unique(of_face, return_index=True, return_inverse=True)
    n = normals[first]
    faces = np.column_stack([n, (corners @ n.T).max(axis=0)])
    middle = np.array([
        corners[np.unique(hull.simplices[of_face == face])].mean(axis=0)
        for face in range(len(n))
    ])  # fmt: skip
    kept = (i < j) & (of_face[i] != of_face[j])
    i, j, k = i[kept], j[kept], k[kept]
    ends = np.array([[1, 2], [0, 2], [0, 1]])[k]
    a, b = (corners[hull.simplices[i, ends[:, end]]] for end in (0, 1))
    sides, inwards = (of_face[i], of_face[j]), []
    for face in sides:
        into = np.cross(n[face], b - a)
        size = np.sign(np.sum(into * (middle[face] - a), axis=1)) / np.linalg.norm(into, axis=1)
        inwards.append(into * size[:, None])
    return faces, np.column_stack([a, b, *inwards, *sides])


def shapes_of(solids: Iterable[Solid]) -> tuple[Array, Indices]:
    """Return the numbers of all shapes, and the first of each."""
    numbers = [shape_numbers(solid) for solid in solids]
    begin = np.cumsum([0, *map(len, numbers)])[:-1]
    return np.concatenate([*numbers, np.zeros(0)]), begin.astype(np.int64)


def most_edges(shapes: Array, begin: Indices) -> int:
    """Return the largest number of edges of a shape."""
    return max((int(shapes[k + 1]) for k in begin), default=0)


# The numbers in kernels.


@kernel
def corner_of(shape, i):
    """Return corner i."""
    return vec(shape, HEADER + CORNER * i)


@kernel
def face_of(shape, i):
    """Return unit normal and offset of face i."""
    k = HEADER + CORNER * int(shape[0]) + FACE * i
    return vec(shape, k), shape[k + 3]


@kernel
def edge_place(shape, i):
    """Return where the numbers of edge i begin."""
    return HEADER + CORNER * int(shape[0]) + FACE * int(shape[2]) + EDGE * i
