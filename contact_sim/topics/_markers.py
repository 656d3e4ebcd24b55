"""Markers for RViz and Foxglove: contacts, cones, pushes, support, constraints, ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.drawing._body_meshes import Colour
from contact_sim.drawing._step_shapes import (
    BORDER_WIDTH,
    CENTRE_SIZE,
    COLOURS,
    FALLING,
    GROUND_SIZE,
    HEAD_LENGTH,
    HEAD_WIDTH,
    PLUMB_WIDTH,
    POLYGON_WIDTH,
    SHAFT_WIDTH,
    Arrows,
    ConstrainedPoint,
    SupportShapes,
    border_lines,
    cone_triangles,
    contact_arrows,
    ground_triangles,
    one_plane,
    pair_arrows,
    push_arrows,
    turned_to,
)
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart
from contact_sim.sensors._robot_view import Report, RobotView
from contact_sim.simulation._report import StepReport
from contact_sim.topics._sinks import NO_WRENCHES, Message, header

ARROW, CUBE, SPHERE, LINE_STRIP, LINE_LIST, TRIANGLE_LIST = 0, 1, 2, 4, 5, 11
"""Kinds of visualization_msgs/Marker."""
ADD, DELETE, DELETE_ALL = 0, 2, 3
"""Actions of visualization_msgs/Marker."""
HERE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of markers whose points are in the world."""
NO_POINTS = np.zeros((0, 3))
THICKNESS = 0.01
"""Thickness of the slab that draws a plane [m]."""


class Marker(NamedTuple):
    """A visualization_msgs/Marker in the frame of the world."""

    namespace: str
    """A name of COLOURS."""
    number: int
    kind: int
    action: int
    pose: Array
    """x, y, z [m], then qx, qy, qz, qw, shape (7,)."""
    scale: tuple[float, float, float]
    colour: Colour
    points: Array
    """[m], shape (n, 3)."""


CLEAR = Marker('', 0, ARROW, DELETE_ALL, HERE, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), NO_POINTS)
"""Deletes all markers of its topic."""


def marker_array(markers: Iterable[Marker], time: int, frame: str) -> Message:
    """Return a MarkerArray at simulated time [ns] in the frame of the world."""
    common = header(time, frame)
    return {
        'markers': [
            {
                'header': common,
                'ns': marker.namespace,
                'id': marker.number,
                'type': marker.kind,
                'action': marker.action,
                'pose': marker.pose,
                'scale': marker.scale,
                'color': marker.colour,
                'points': marker.points,
            }
            for marker in markers
        ]
    }


def shape(
    namespace: str, number: int, kind: int, scale: tuple[float, float, float],
    points: Array = NO_POINTS, pose: Array = HERE, shown: bool = True,
    colour: Colour | None = None,
) -> Marker:  # fmt: skip
    """Return a marker, by default in the colour of its namespace."""
    action = ADD if shown else DELETE
    chosen = colour or COLOURS[namespace]
    return Marker(namespace, number, kind, action, pose, scale, chosen, points)


def arrows(namespace: str, drawn: Arrows, first: int = 0) -> list[Marker]:
    """Return arrows; those without length are deleted, because RViz rejects them."""
    size = SHAFT_WIDTH, HEAD_WIDTH, HEAD_LENGTH
    ends = np.stack([drawn.start, drawn.start + drawn.along], axis=1)
    return [
        shape(namespace, k, ARROW, size, points, shown=shown)
        for k, (points, shown) in enumerate(zip(ends, drawn.visible.tolist(), strict=True), first)
    ]


class ContactMarkers:
    """Markers of all contacts and of external wrenches."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}
        self._cones: dict[float, Array] = {}

    def of(
        self,
        report: StepReport,
        wrenches: Mapping[str, Array] = NO_WRENCHES,
        origins: Mapping[str, Array] = NO_WRENCHES,
    ) -> list[Marker]:
        """Return the markers of a step; open contacts show only their normal.

        Args:
            report: of the step.
            wrenches: frame to external force and torque, world axes, (6,).
            origins: frame to its origin in the world, (3,).
        """
        drawn = contact_arrows(report.contacts)
        kinds = 'force', 'slip', 'normal'
        markers = [marker for kind in kinds for marker in arrows(kind, drawn[kind])]
        markers += self._friction_cones(report)
        markers += self._varying('pair_force', pair_arrows(report.pairs))
        for name, pushes in push_arrows(wrenches, origins).items():
            markers += self._varying(name, pushes)
        return markers

    def _varying(self, namespace: str, drawn: Arrows) -> list[Marker]:
        """Return arrows whose number varies, and delete those of earlier steps that are left."""
        count = len(drawn)
        most = self._most[namespace] = max(self._most.get(namespace, 0), count)
        nothing = np.zeros((most - count, 3))
        return arrows(namespace, drawn) + arrows(namespace, Arrows(nothing, nothing), count)

    def _friction_cones(self, report: StepReport) -> list[Marker]:
        contacts = report.contacts
        poses = np.hstack([contacts.position, turned_to(contacts.normal)])
        rows = zip(poses, contacts.mode.tolist(), contacts.friction.tolist(), strict=True)
        return [
            shape('friction_cone', k, TRIANGLE_LIST, (1.0, 1.0, 1.0), self._cone(mu), pose,
                  shown=mode > 0)
            for k, (pose, mode, mu) in enumerate(rows)
        ]  # fmt: skip

    def _cone(self, friction: float) -> Array:
        """Return the triangles of a cone; cached by its friction coefficient."""
        if friction not in self._cones:
            self._cones[friction] = cone_triangles(friction)
        return self._cones[friction]


class SupportMarkers:
    """The support polygon, the centre of mass, and the plumb line between them.

    Args:
        robot: whose support.
        terrain: ground under it.
        number: of the robot in the scene.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain, number: int = 0) -> None:
        self._shapes, self._number = SupportShapes(robot, terrain), number

    def of(self, report: Report) -> list[Marker]:
        """Return the markers of a step.

        The centre of mass turns red where it is not over the polygon.
        """
        support = self._shapes.of(report)
        k, colour = self._number, None if support.over else FALLING
        centre = np.concatenate([support.centre, HERE[3:]])
        plumb = np.stack([support.centre, support.below])
        line, standing = (POLYGON_WIDTH, 0.0, 0.0), len(support.outline) > 1
        ball = CENTRE_SIZE, CENTRE_SIZE, CENTRE_SIZE
        return [
            shape('support_polygon', k, LINE_STRIP, line, support.outline, shown=standing),
            shape('centre_of_mass', 2 * k, SPHERE, ball, pose=centre, colour=colour),
            shape('centre_of_mass', 2 * k + 1, LINE_STRIP, (PLUMB_WIDTH, 0.0, 0.0), plumb,
                  colour=colour),
        ]  # fmt: skip


def support_markers(
    of_robots: Iterable[SupportMarkers], parts: Iterable[RobotPart], report: StepReport
) -> list[Marker]:
    """Return the markers of the support of every robot."""
    pairs = zip(of_robots, parts, strict=True)
    return [marker for support, part in pairs for marker in support.of(RobotView(report, part))]


def constraint_markers(
    points: Iterable[tuple[ConstrainedPoint, Constraint | None]], report: StepReport
) -> list[Marker]:
    """Return an arrow for the force of each constraint on its frame; None: it is not in force."""
    return [
        marker
        for k, (point, constraint) in enumerate(points)
        for marker in arrows('constraint_force', point.arrow(report, constraint), k)
    ]


def ground_markers(terrain: Terrain) -> list[Marker]:
    """Return the surface around the origin and its regions, after deleting all earlier markers."""
    lines = (BORDER_WIDTH, 0.0, 0.0)
    borders = [
        shape('region', k, LINE_LIST, lines, border_lines(terrain, region))
        for k, region in enumerate(terrain.regions)
    ]
    return [CLEAR, _surface(terrain), *borders]


def _surface(terrain: Terrain) -> Marker:
    plane = one_plane(terrain)
    if plane is None:
        triangles = ground_triangles(terrain)
        return shape('terrain', 0, TRIANGLE_LIST, (1.0, 1.0, 1.0), triangles)
    normal, offset = plane
    centre = (offset - 0.5 * THICKNESS) * normal
    pose = np.concatenate([centre, turned_to(normal[None])[0]])
    return shape('terrain', 0, CUBE, (GROUND_SIZE, GROUND_SIZE, THICKNESS), pose=pose)
