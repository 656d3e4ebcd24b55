"""~/contact_markers: forces, friction cones, normals and slip, for RViz."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim.drawing.arrows import Arrows, contact_arrows, pair_arrows, push_arrows
from contact_sim.drawing.cones import cone_triangles, turned_to
from contact_sim.drawing.style import COLOURS, HEAD_LENGTH, HEAD_WIDTH, SHAFT_WIDTH
from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector
from contact_sim.simulation.pair_report import PairReport
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
NO_WRENCHES: Mapping[str, Array] = {}


def point_of(vector: Array) -> Point:
    """Return a position (3,) as a message."""
    x, y, z = vector.tolist()
    return Point(x=x, y=y, z=z)


def marker_of(namespace: str, number: int, kind: int, frame: str) -> Marker:
    """Return a marker of a namespace of COLOURS, in its colour."""
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.pose.orientation.w = 1.0
    r, g, b, a = COLOURS[namespace]
    marker.color = ColorRGBA(r=r, g=g, b=b, a=a)
    return marker


def arrow(namespace: str, number: int, frame: str) -> Marker:
    """Return an arrow of a namespace of COLOURS, to be set."""
    marker = marker_of(namespace, number, Marker.ARROW, frame)
    marker.scale.x, marker.scale.y, marker.scale.z = SHAFT_WIDTH, HEAD_WIDTH, HEAD_LENGTH
    return marker


def set_arrows(markers: list[Marker], arrows: Arrows) -> None:
    """Draw arrows; RViz complains about those without length, so these are deleted.

    Markers beyond the number of arrows are deleted, too.
    """
    for marker in markers[len(arrows) :]:
        marker.action = Marker.DELETE
    drawn = zip(markers, arrows.start, arrows.along, arrows.visible.tolist(), strict=False)
    for marker, start, along, visible in drawn:
        marker.action = Marker.ADD if visible else Marker.DELETE
        marker.points = [point_of(start), point_of(start + along)]


class ContactMarkers:
    """The markers of all contacts.

    Args:
        contacts: how many contacts with the ground there are, open ones included.
        odom_frame: frame id of the world.
    """

    def __init__(self, contacts: int, odom_frame: str) -> None:
        n = range(contacts)
        self._force = [arrow('force', k, odom_frame) for k in n]
        self._slip = [arrow('slip', k, odom_frame) for k in n]
        self._normal = [arrow('normal', k, odom_frame) for k in n]
        self._cone = [marker_of('friction_cone', k, Marker.TRIANGLE_LIST, odom_frame) for k in n]
        for cone in self._cone:
            cone.scale.x = cone.scale.y = cone.scale.z = 1.0
        self._push: list[Marker] = []
        self._pair: list[Marker] = []
        self._odom_frame = odom_frame
        self._drawn_friction = np.full(contacts, -1.0)
        self._clear = Marker(action=Marker.DELETEALL)
        self._clear.header.frame_id = odom_frame

    def cleared(self) -> MarkerArray:
        """Return the message that removes all markers, for a reset."""
        return MarkerArray(markers=[self._clear])

    def fill(
        self,
        report: StepReport,
        wrenches: Mapping[str, Array] = NO_WRENCHES,
        origins: Mapping[str, Array] = NO_WRENCHES,
    ) -> MarkerArray:
        """Return the markers of a step; open contacts show only their normal.

        Args:
            report: of the step.
            wrenches: frame to force and torque that somebody pushes with, world axes, (6,).
            origins: frame to its origin in the world, (3,).
        """
        contacts = report.contacts
        arrows = contact_arrows(contacts)
        set_arrows(self._force, arrows['force'])
        set_arrows(self._slip, arrows['slip'])
        set_arrows(self._normal, arrows['normal'])
        self._set_cones(contacts.mode > 0, contacts.position, contacts.normal, contacts.friction)
        others = [*self._pairs(report.pairs), *self._pushes(wrenches, origins)]
        markers = [*self._force, *self._slip, *self._normal, *self._cone, *others]
        for marker in markers:
            set_stamp(marker.header.stamp, report.time)
        return MarkerArray(markers=markers)

    def _pairs(self, pairs: PairReport) -> list[Marker]:
        """Return one arrow per contact between bodies, the force on the first of them."""
        for k in range(len(self._pair), len(pairs)):
            self._pair.append(arrow('pair_force', k, self._odom_frame))
        set_arrows(self._pair, pair_arrows(pairs))
        return self._pair

    def _pushes(self, wrenches: Mapping[str, Array], origins: Mapping[str, Array]) -> list[Marker]:
        """Return one arrow per force and torque from outside; old ones go with the first without.

        An arrow ends where the push acts.
        """
        for _ in range(2 * (len(wrenches) - len(self._push) // 2)):
            kind = 'push_torque' if len(self._push) % 2 else 'push'
            self._push.append(arrow(kind, len(self._push) // 2, self._odom_frame))
        arrows = push_arrows(wrenches, origins)
        set_arrows(self._push[::2], arrows['push'])
        set_arrows(self._push[1::2], arrows['push_torque'])
        return self._push

    def _set_cones(
        self, loaded: NDArray[np.bool_], starts: Array, normals: Array, friction: Array
    ) -> None:
        """Draw the cones; the shape of one is made anew only when its friction changes."""
        rotations = turned_to(normals)
        for k, cone in enumerate(self._cone):
            cone.action = Marker.ADD if loaded[k] else Marker.DELETE
            set_vector(cone.pose.position, starts[k])
            set_quaternion(cone.pose.orientation, rotations[k])
            if friction[k] != self._drawn_friction[k]:
                cone.points = [point_of(corner) for corner in cone_triangles(float(friction[k]))]
                self._drawn_friction[k] = friction[k]
