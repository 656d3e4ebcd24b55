"""Support of a step as shapes for RViz."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from contact_sim.collision.terrain import Terrain
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_stamp, set_vector
from contact_sim.ros.outputs.markers import marker_of
from contact_sim.sensors.part_report import Report
from contact_sim.support.geometry import distance_inside, support_polygon

Array = NDArray[np.float64]
FALLING = (0.90, 0.10, 0.10, 1.0)
"""Colour of a centre of mass that is not over the support polygon."""


class SupportMarkers:
    """The support polygon, the centre of mass, and the plumb line between them.

    Args:
        robot: whose support.
        terrain: what it stands on.
        odom_frame: frame id of the world.
        number: of the robot among those that are shown.
    """

    def __init__(
        self, robot: RobotModel, terrain: Terrain, odom_frame: str, number: int = 0
    ) -> None:
        self._robot, self._terrain = robot, terrain
        self._data = robot.pinocchio_model.createData()
        self._polygon = marker_of('support_polygon', number, Marker.LINE_STRIP, odom_frame)
        self._polygon.scale.x = 0.006
        self._centre = marker_of('centre_of_mass', 2 * number, Marker.SPHERE, odom_frame)
        self._centre.scale.x = self._centre.scale.y = self._centre.scale.z = 0.03
        self._plumb = marker_of('centre_of_mass', 2 * number + 1, Marker.LINE_STRIP, odom_frame)
        self._plumb.scale.x = 0.003
        self._safe = self._centre.color

    def fill(self, report: Report) -> list[Marker]:
        """Return the markers of a step; no polygon where no foot stands.

        The centre of mass turns red where it is not over the polygon.
        """
        model, contacts = self._robot.pinocchio_model, report.contacts
        centre = np.array(pin.centerOfMass(model, self._data, report.q))
        corners = support_polygon(contacts.position[contacts.mode > 0], contacts.normal)
        closed = [*corners, corners[0]] if len(corners) > 2 else list(corners)
        self._polygon.points = [_point(corner) for corner in closed]
        self._polygon.action = Marker.ADD if len(corners) > 1 else Marker.DELETE
        set_vector(self._centre.pose.position, centre)
        self._plumb.points = [_point(centre), _point(self._below(centre))]
        r, g, b, a = FALLING
        over = distance_inside(corners[:, :2], centre[:2]) >= 0.0
        colour = self._safe if over else ColorRGBA(r=r, g=g, b=b, a=a)
        self._centre.color = self._plumb.color = colour
        markers = [self._polygon, self._centre, self._plumb]
        for marker in markers:
            set_stamp(marker.header.stamp, report.time)
        return markers

    def _below(self, point: Array) -> Array:
        """Return where the vertical through a point meets the ground [m], (3,), or the point."""
        height = self._terrain.height(point[0], point[1])
        return point if np.isnan(height) else np.array([point[0], point[1], height])


def _point(vector: Array) -> Point:
    x, y, z = vector.tolist()
    return Point(x=x, y=y, z=z)
