"""Markers as messages for RViz."""

from __future__ import annotations

from collections.abc import Iterable

from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim.messages import markers as plain
from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector


class MarkerMessages:
    """The markers of a topic, each made once and filled in place.

    Args:
        frame: frame id of the world.
    """

    def __init__(self, frame: str) -> None:
        self._frame = frame
        self._made: dict[tuple[str, int], tuple[Marker, plain.Marker | None]] = {}

    def fill(self, time: float, markers: Iterable[plain.Marker]) -> MarkerArray:
        """Return the message at simulated time [s]."""
        return MarkerArray(markers=[self._filled(time, marker) for marker in markers])

    def _filled(self, time: float, marker: plain.Marker) -> Marker:
        """Return a marker; points that are the same array as before are left as they are."""
        key = marker.namespace, marker.number
        message, last = self._made.get(key) or (self._new(marker), None)
        self._made[key] = message, marker
        set_stamp(message.header.stamp, time)
        message.action = marker.action
        set_vector(message.pose.position, marker.pose[:3])
        set_quaternion(message.pose.orientation, marker.pose[3:])
        if last is None or marker.colour != last.colour:
            r, g, b, a = marker.colour
            message.color = ColorRGBA(r=r, g=g, b=b, a=a)
        if last is None or marker.points is not last.points:
            message.points = [Point(x=x, y=y, z=z) for x, y, z in marker.points.tolist()]
        return message

    def _new(self, marker: plain.Marker) -> Marker:
        message = Marker(ns=marker.namespace, id=marker.number, type=marker.kind)
        message.header.frame_id = self._frame
        message.scale.x, message.scale.y, message.scale.z = marker.scale
        return message
