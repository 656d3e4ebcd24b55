"""~/terrain: the ground and its regions, for RViz; kept for who comes late."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.cones import turned_to
from contact_sim.drawing.ground import GROUND_SIZE, border_lines, ground_triangles, one_plane
from contact_sim.drawing.style import BORDER_WIDTH
from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector
from contact_sim.ros.outputs.markers import marker_of, point_of

Array = NDArray[np.float64]


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
        border.scale.x = BORDER_WIDTH
        border.points = [point_of(end) for end in border_lines(terrain, region)]
        borders.append(border)
    markers = [clear, _ground(odom_frame, terrain), *borders]
    for marker in markers:
        set_stamp(marker.header.stamp, time)
    return MarkerArray(markers=markers)


def _ground(odom_frame: str, terrain: Terrain) -> Any:
    """Return the surface of the ground around the origin of the world."""
    plane = one_plane(terrain)
    if plane is not None:
        return _slab(odom_frame, *plane)
    marker = marker_of('terrain', 0, Marker.TRIANGLE_LIST, odom_frame)
    marker.scale.x = marker.scale.y = marker.scale.z = 1.0
    marker.points = [point_of(corner) for corner in ground_triangles(terrain)]
    return marker


def _slab(odom_frame: str, normal: Array, offset: float) -> Any:
    """Return a thin slab whose upper face is a plane."""
    marker = marker_of('terrain', 0, Marker.CUBE, odom_frame)
    thickness = 0.01
    marker.scale.x = marker.scale.y = GROUND_SIZE
    marker.scale.z = thickness
    set_vector(marker.pose.position, (offset - 0.5 * thickness) * normal)
    set_quaternion(marker.pose.orientation, turned_to(normal[None])[0])
    return marker
