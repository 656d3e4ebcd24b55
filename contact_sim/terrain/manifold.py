"""Triangles as one surface: merge vertices, check edges, part what only touches.

A half-edge is one side of a triangle, from its corner k to its corner k + 1. Half-edge 3 t + k
belongs to triangle t. Two half-edges that run along the same edge in opposite directions join
their triangles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

MERGE_DISTANCE = 1e-9
"""Vertices whose coordinates round to the same multiple of this are one vertex [m]."""
SAME_ANGLE = 1e-7
"""Triangles at an edge whose directions differ by less lie on each other [rad]."""


def merged(vertices: Array, triangles: Indices) -> tuple[Array, Indices]:
    """Return the vertices of triangles once each, sorted by x, y and z, and the triangles.

    Args:
        vertices: [m], shape (n, 3).
        triangles: indices of vertices, shape (m, 3).
    """
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
    links = coo_array((np.ones(len(joined)), (joined, end_of_across)), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


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
    faces = ', '.join(str(t) for t in half_edges // 3)
    if len(half_edges) == 2:
        reason = f'triangles {faces} face opposite ways at {where}: turn one of them round'
    else:
        reason = f'triangles {faces} share {where}: expected at most two, or pairs of two'
    raise InvalidInput(f'TriangleMesh: {reason} ({int(odd.sum())} such edges)')


def _place(vertices: Array, index: int) -> str:
    return '({:g}, {:g}, {:g}) m'.format(*vertices[index])
