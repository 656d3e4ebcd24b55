"""Markers for RViz and Foxglove: contacts, cones, pushes, support, constraints, ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

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
from contact_sim.robot._model import RobotModel
from contact_sim.sensors._robot_view import Report
from contact_sim.simulation._report import StepReport
from contact_sim.topics._messages import NO_WRENCHES, Message, header

ARROW, CUBE, SPHERE, LINE_STRIP, LINE_LIST, TRIANGLE_LIST = 0, 1, 2, 4, 5, 11
"""Kinds of visualization_msgs/Marker."""
ADD, DELETE, DELETE_ALL = 0, 2, 3
"""Actions of visualization_msgs/Marker."""
HERE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of markers whose points are in the world."""
NO_POINTS = np.zeros((0, 3))
THICKNESS = 0.01
"""Thickness of the slab that draws a plane [m]."""


Marker = Message
"""A visualization_msgs/Marker in the frame of the world, without its header."""
CLEAR: Marker = {'action': DELETE_ALL, 'pose': HERE}
"""Deletes all markers of its topic."""
_cone_of = lru_cache(cone_triangles)


def marker_array(markers: Iterable[Marker], time: int, frame: str) -> Message:
    """Return a MarkerArray at simulated time [ns] in the frame of the world."""
    common = header(time, frame)
    return {'markers': [{'header': common, **marker} for marker in markers]}


def shape(
    namespace: str, number: int, kind: int, scale: tuple[float, float, float],
    points: Array = NO_POINTS, pose: Array = HERE, shown: bool = True,
    colour: Colour | None = None,
) -> Marker:  # fmt: skip
    """Return a marker in the namespace of a name of COLOURS, by default in its colour."""
    return {
        'ns': namespace, 'id': number, 'type': kind, 'action': ADD if shown else DELETE,
        'pose': pose, 'scale': scale, 'color': colour or COLOURS[namespace], 'points': points,
    }  # fmt: skip


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
        contacts = report.contacts
        poses = np.hstack([contacts.position, turned_to(contacts.normal)])
        rows = zip(poses, contacts.mode.tolist(), contacts.friction.tolist(), strict=True)
        markers += [
            shape('friction_cone', k, TRIANGLE_LIST, (1.0, 1.0, 1.0), _cone_of(mu), pose,
                  shown=mode > 0)
            for k, (pose, mode, mu) in enumerate(rows)
        ]  # fmt: skip
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


def ground_markers(terrain: Terrain) -> list[Marker]:
    """Return the surface around the origin and its regions, after deleting all earlier markers."""
    plane = one_plane(terrain)
    if plane is None:
        triangles = ground_triangles(terrain)
        surface = shape('terrain', 0, TRIANGLE_LIST, (1.0, 1.0, 1.0), triangles)
    else:
        normal, offset = plane
        centre = (offset - 0.5 * THICKNESS) * normal
        pose = np.concatenate([centre, turned_to(normal[None])[0]])
        surface = shape('terrain', 0, CUBE, (GROUND_SIZE, GROUND_SIZE, THICKNESS), pose=pose)
    lines = (BORDER_WIDTH, 0.0, 0.0)
    borders = [
        shape('region', k, LINE_LIST, lines, border_lines(terrain, region))
        for k, region in enumerate(terrain.regions)
    ]
    return [CLEAR, surface, *borders]
