"""~/terrain: the ground and its regions, for RViz; kept for who comes late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim.collision.kinds import PLANES
from contact_sim.collision.relief import FieldGround, MeshGround
from contact_sim.collision.terrain import Terrain
from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector
from contact_sim.ros.outputs.markers import UP, marker_of, point_of
from contact_sim.terrain import Region

Array = NDArray[np.float64]
GROUND_SIZE = 10.0
GROUND_CELLS = 40
SIDE_PIECES = 40
"""Pieces of which a side of a region is drawn."""
LINE_WIDTH = 0.02
ABOVE = 0.005
"""Height of a line over the ground [m]."""


def ground_markers(odom_frame: str, terrain: Terrain, time: float) -> MarkerArray:
    """Return the message that replaces the ground drawn before.

    Args:
        odom_frame: frame id of the world.
        terrain: what is drawn.
        time: simulated time [s].
    """
    clear = Marker(action=Marker.DELETEALL)
    clear.header.frame_id = odom_frame
    borders = []
    for k, region in enumerate(terrain.regions):
        border = marker_of('region', k, Marker.LINE_LIST, odom_frame)
        border.scale.x = LINE_WIDTH
        border.points = [point_of(end) for end in border_lines(terrain, region)]
        borders.append(border)
    markers = [clear, _ground(odom_frame, terrain), *borders]
    for marker in markers:
        set_stamp(marker.header.stamp, time)
    return MarkerArray(markers=markers)


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


def _ground(odom_frame: str, terrain: Terrain) -> Any:
    """Return the surface of the ground around the origin of the world."""
    if terrain.kind == PLANES and terrain.features == 1:
        return _slab(odom_frame, terrain.data[:3], terrain.data[3])
    marker = marker_of('terrain', 0, Marker.TRIANGLE_LIST, odom_frame)
    marker.scale.x = marker.scale.y = marker.scale.z = 1.0
    marker.points = [point_of(corner) for corner in ground_triangles(terrain)]
    return marker


def ground_triangles(terrain: Terrain) -> Array:
    """Return the corners of triangles on the ground, shape (n, 3).

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


def _slab(odom_frame: str, normal: Array, offset: float) -> Any:
    """Return a thin slab whose upper face is a plane."""
    marker = marker_of('terrain', 0, Marker.CUBE, odom_frame)
    thickness = 0.01
    marker.scale.x = marker.scale.y = GROUND_SIZE
    marker.scale.z = thickness
    set_vector(marker.pose.position, (offset - 0.5 * thickness) * normal)
    set_quaternion(marker.pose.orientation, pin.Quaternion.FromTwoVectors(UP, normal).coeffs())
    return marker
