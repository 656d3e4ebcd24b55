"""Markers for RViz and Foxglove: contacts, cones, pushes, support, constraints, ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.drawing._body_meshes import Colour
from contact_sim.drawing._step_shapes import (
    BORDER_WIDTH,
    CENTRE_SIZE,
    COLOURS,
    CONE_SIDES,
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
from contact_sim.topics._messages import NO_WRENCHES, Layout, Message, Varying

ARROW, CUBE, SPHERE, LINE_STRIP, LINE_LIST, TRIANGLE_LIST = 0, 1, 2, 4, 5, 11
"""Kinds of visualization_msgs/Marker."""
ADD, DELETE, DELETE_ALL = 0, 2, 3
"""Actions of visualization_msgs/Marker."""
HERE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of markers whose points are in the world."""
NO_POINTS = np.zeros((0, 3))
THICKNESS = 0.01
"""Thickness of the slab that draws a plane [m]."""
NO_COLOUR = (0.0, 0.0, 0.0, 0.0)
LAYOUTS = 64
"""Largest number of structures of MarkerArrays that are kept."""


Marker = Message
"""A visualization_msgs/Marker in the frame of the world."""
Mask = NDArray[np.bool_]


class Shapes(NamedTuple):
    """Markers of one kind, one row of each array for each, in the frame of the world."""

    namespace: str
    """A name of COLOURS; empty for the one that deletes all others."""
    first: int
    """Number of the first one."""
    kind: int
    scale: tuple[float, float, float]
    points: Array
    """Shape (n, points of each, 3)."""
    pose: Array
    """x y z, then qx qy qz qw, shape (n, 7)."""
    shown: Mask
    """Whether each is drawn, or deleted because it has no size, shape (n,)."""
    colour: Colour | None = None
    """None: that of the namespace."""

    @property
    def actions(self) -> list[int]:
        """Action of every marker."""
        if not self.namespace:
            return [DELETE_ALL]
        return [ADD if shown else DELETE for shown in self.shown.tolist()]

    @property
    def numbers(self) -> Array:
        """All poses and points in the order of the markers, flat."""
        count = len(self.shown)
        points = self.points.reshape(count, -1)
        if not points.shape[1]:
            return self.pose.ravel()
        return np.concatenate([self.pose, points], axis=1).ravel()

    def markers(self, stamp: int | Varying, frame: str) -> list[Marker]:
        """Return the messages, whose actions and numbers are `Varying`."""
        common = {'stamp': stamp, 'frame_id': frame}
        colour = self.colour or COLOURS.get(self.namespace, NO_COLOUR)
        return [
            {
                'header': common, 'ns': self.namespace, 'id': k, 'type': self.kind,
                'action': Varying(action), 'pose': Varying(pose), 'scale': self.scale,
                'color': colour, 'points': Varying(points),
            }
            for k, (action, pose, points) in enumerate(
                zip(self.actions, self.pose, self.points, strict=True), self.first
            )
        ]  # fmt: skip


CLEAR = Shapes(
    '', 0, ARROW, (0.0, 0.0, 0.0), np.zeros((1, 0, 3)), HERE[None], np.ones(1, dtype=bool)
)
"""Deletes all markers of its topic."""


def marker_array(shapes: Iterable[Shapes], time: int | Varying, frame: str) -> Message:
    """Return a MarkerArray at simulated time [ns] in the frame of the world."""
    return {'markers': [marker for group in shapes for marker in group.markers(time, frame)]}


class MarkerArrays:
    """Serialises MarkerArrays in one frame; those of equal structure share their layout."""

    def __init__(self, frame: str) -> None:
        self._frame = frame
        self._layout = lru_cache(LAYOUTS)(self._laid_out)

    def serialised(self, shapes: Sequence[Shapes], time: int) -> bytes:
        """Return the message at simulated time [ns]."""
        shapes = [group for group in shapes if len(group.shown)]
        structure = tuple((*group[:4], group.points.shape, group.colour) for group in shapes)
        self._latest = shapes
        layout = self._layout(structure)
        actions = [action for group in shapes for action in group.actions]
        numbers = [np.zeros(0), *(group.numbers for group in shapes)]
        return layout.filled(time, np.concatenate(numbers), actions)

    def _laid_out(self, _: Any) -> Layout:
        markers = marker_array(self._latest, Varying(0), self._frame)
        return Layout('visualization_msgs/MarkerArray', markers)


def shape(
    namespace: str, number: int, kind: int, scale: tuple[float, float, float],
    points: Array = NO_POINTS, pose: Array = HERE, shown: bool = True,
    colour: Colour | None = None,
) -> Shapes:  # fmt: skip
    """Return one marker in the namespace of a name of COLOURS, by default in its colour."""
    return Shapes(
        namespace, number, kind, scale, points[None], pose[None], np.array([shown]), colour
    )


def arrows(namespace: str, drawn: Arrows, first: int = 0) -> Shapes:
    """Return arrows; those without length are deleted, because RViz rejects them."""
    size = SHAFT_WIDTH, HEAD_WIDTH, HEAD_LENGTH
    count = len(drawn)
    ends = np.empty((count, 2, 3))
    ends[:, 0] = drawn.start
    np.add(drawn.start, drawn.along, out=ends[:, 1])
    return Shapes(namespace, first, ARROW, size, ends, _here(count), drawn.visible)


@lru_cache
def _here(count: int) -> Array:
    return np.tile(HERE, (count, 1))


@lru_cache
def _cones(*friction: float) -> Array:
    """Return the corners of friction cones about z, their tips at the origin, (n, k, 3)."""
    cones = [cone_triangles(mu) for mu in friction]
    return np.array(cones).reshape(len(cones), 3 * CONE_SIDES, 3)


class ContactMarkers:
    """Markers of all contacts and of external wrenches."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}

    def of(
        self,
        report: StepReport,
        wrenches: Mapping[str, Array] = NO_WRENCHES,
        origins: Mapping[str, Array] = NO_WRENCHES,
    ) -> list[Shapes]:
        """Return the markers of a step; open contacts show only their normal.

        Args:
            report: of the step.
            wrenches: frame to external force and torque, world axes, (6,).
            origins: frame to its origin in the world, (3,).
        """
        drawn = contact_arrows(report.contacts)
        shapes = [arrows(kind, drawn[kind]) for kind in ('force', 'slip', 'normal')]
        contacts = report.contacts
        poses = np.concatenate([contacts.position, turned_to(contacts.normal)], axis=1)
        corners, size = _cones(*contacts.friction.tolist()), (1.0, 1.0, 1.0)
        shapes.append(
            Shapes('friction_cone', 0, TRIANGLE_LIST, size, corners, poses, contacts.mode > 0)
        )
        shapes += self._varying('pair_force', pair_arrows(report.pairs))
        for name, pushes in push_arrows(wrenches, origins).items():
            shapes += self._varying(name, pushes)
        return shapes

    def _varying(self, namespace: str, drawn: Arrows) -> list[Shapes]:
        """Return arrows whose number varies, and delete those of earlier steps that are left."""
        count = len(drawn)
        most = self._most[namespace] = max(self._most.get(namespace, 0), count)
        if most == 0:
            return []
        nothing = np.zeros((most - count, 3))
        start = np.concatenate([drawn.start, nothing])
        return [arrows(namespace, Arrows(start, np.concatenate([drawn.along, nothing])))]


class SupportMarkers:
    """The support polygon, the centre of mass, and the plumb line between them.

    Args:
        robot: whose support.
        terrain: ground under it.
        number: of the robot in the scene.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain, number: int = 0) -> None:
        self._shapes, self._number = SupportShapes(robot, terrain), number

    def of(self, report: Report) -> list[Shapes]:
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


def ground_markers(terrain: Terrain) -> list[Shapes]:
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
