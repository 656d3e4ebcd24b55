"""~/contact_markers: forces, friction cones, normals and slip, for RViz."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector
from contact_sim.simulation.pair_report import PairReport
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
METRES_PER_NEWTON = 0.01
METRES_PER_NEWTON_METRE = 0.05
METRES_PER_METRE_PER_SECOND = 1.0
NORMAL_LENGTH = 0.05
CONE_HEIGHT = 0.08
CONE_SIDES = 16
NO_WRENCHES: Mapping[str, Array] = {}
UP = np.array([0.0, 0.0, 1.0])
COLOURS = {
    'force': (0.95, 0.35, 0.10, 1.0),
    'pair_force': (0.75, 0.15, 0.10, 1.0),
    'constraint_force': (0.55, 0.25, 0.75, 1.0),
    'friction_cone': (0.20, 0.55, 0.95, 0.25),
    'normal': (0.20, 0.75, 0.30, 1.0),
    'slip': (0.85, 0.10, 0.60, 1.0),
    'push': (0.95, 0.80, 0.10, 1.0),
    'push_torque': (0.60, 0.45, 0.05, 1.0),
    'terrain': (0.75, 0.75, 0.75, 0.6),
    'region': (0.15, 0.35, 0.75, 1.0),
    'support_polygon': (0.15, 0.65, 0.65, 1.0),
    'centre_of_mass': (0.15, 0.65, 0.65, 1.0),
}


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
    marker.scale.x, marker.scale.y, marker.scale.z = 0.01, 0.02, 0.02
    return marker


def set_arrow(marker: Marker, start: Array, along: Array) -> None:
    """Draw an arrow; RViz complains about arrows without length, so these are deleted."""
    marker.action = Marker.ADD if np.abs(along).max() > 1e-6 else Marker.DELETE
    marker.points = [point_of(start), point_of(start + along)]


def cone_triangles(friction: float) -> Array:
    """Return the corners of a friction cone about z, its tip at the origin, shape (3·sides, 3).

    The angle between its axis and its sides is atan(friction).
    """
    angles = np.linspace(0.0, 2.0 * np.pi, CONE_SIDES + 1)
    circle = friction * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rim = CONE_HEIGHT * np.column_stack([circle, np.ones_like(angles)])
    tips = np.zeros((CONE_SIDES, 3))
    return np.stack([tips, rim[:-1], rim[1:]], axis=1).reshape(-1, 3)


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
        for k, mode in enumerate(contacts.mode):
            start, normal = contacts.position[k], contacts.normal[k]
            set_arrow(self._force[k], start, METRES_PER_NEWTON * contacts.force[k])
            slip = METRES_PER_METRE_PER_SECOND * contacts.velocity[k] * float(mode == 2)
            set_arrow(self._slip[k], start, slip)
            set_arrow(self._normal[k], start, NORMAL_LENGTH * normal)
            self._set_cone(k, bool(mode), start, normal, float(contacts.friction[k]))
        others = [*self._pairs(report.pairs), *self._pushes(wrenches, origins)]
        markers = [*self._force, *self._slip, *self._normal, *self._cone, *others]
        for marker in markers:
            set_stamp(marker.header.stamp, report.time)
        return MarkerArray(markers=markers)

    def _pairs(self, pairs: PairReport) -> list[Marker]:
        """Return one arrow per contact between bodies, the force on the first of them."""
        for k in range(len(self._pair), len(pairs)):
            self._pair.append(arrow('pair_force', k, self._odom_frame))
        for marker in self._pair:
            marker.action = Marker.DELETE
        for marker, start, force in zip(self._pair, pairs.position, pairs.force, strict=False):
            set_arrow(marker, start, METRES_PER_NEWTON * force)
        return self._pair

    def _pushes(self, wrenches: Mapping[str, Array], origins: Mapping[str, Array]) -> list[Marker]:
        """Return one arrow per force and torque from outside; old ones go with the first without.

        An arrow ends where the push acts.
        """
        for _ in range(2 * (len(wrenches) - len(self._push) // 2)):
            kind = 'push_torque' if len(self._push) % 2 else 'push'
            self._push.append(arrow(kind, len(self._push) // 2, self._odom_frame))
        for marker in self._push:
            marker.action = Marker.DELETE
        for k, (frame, wrench) in enumerate(wrenches.items()):
            force = METRES_PER_NEWTON * wrench[:3]
            set_arrow(self._push[2 * k], origins[frame] - force, force)
            torque = METRES_PER_NEWTON_METRE * wrench[3:]
            set_arrow(self._push[2 * k + 1], origins[frame], torque)
        return self._push

    def _set_cone(
        self, k: int, loaded: bool, start: Array, normal: Array, friction: float
    ) -> None:
        """Draw the cone of contact k; its shape is made anew only when the friction changes."""
        cone = self._cone[k]
        cone.action = Marker.ADD if loaded else Marker.DELETE
        set_vector(cone.pose.position, start)
        set_quaternion(cone.pose.orientation, pin.Quaternion.FromTwoVectors(UP, normal).coeffs())
        if friction != self._drawn_friction[k]:
            cone.points = [point_of(corner) for corner in cone_triangles(friction)]
            self._drawn_friction[k] = friction
