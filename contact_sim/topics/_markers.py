"""Markers of a step as plain values: the same for RViz, live, and in an exported recording."""

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
from contact_sim.sensors._robot_view import PartReport, Report
from contact_sim.simulation._report import StepReport

ARROW, CUBE, SPHERE, LINE_STRIP, LINE_LIST, TRIANGLE_LIST = 0, 1, 2, 4, 5, 11
"""Kinds of visualization_msgs/Marker."""
ADD, DELETE, DELETE_ALL = 0, 2, 3
"""Actions of visualization_msgs/Marker."""
HERE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of what is drawn in the axes of the world."""
NO_POINTS = np.zeros((0, 3))
NO_WRENCHES: Mapping[str, Array] = {}
THICKNESS = 0.01
"""Of a slab whose upper face is a plane [m]."""


class Marker(NamedTuple):
    """One shape, in the frame of the world."""

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
"""Removes what was drawn on its topic before."""


def shape(
    namespace: str, number: int, kind: int, scale: tuple[float, float, float],
    points: Array = NO_POINTS, pose: Array = HERE, shown: bool = True,
    colour: Colour | None = None,
) -> Marker:  # fmt: skip
    """Return a marker, in the colour of its namespace unless another is given."""
    action = ADD if shown else DELETE
    chosen = colour or COLOURS[namespace]
    return Marker(namespace, number, kind, action, pose, scale, chosen, points)


def arrows(namespace: str, drawn: Arrows, first: int = 0) -> list[Marker]:
    """Return arrows; RViz complains about those without length, so these are deleted."""
    size = SHAFT_WIDTH, HEAD_WIDTH, HEAD_LENGTH
    ends = np.stack([drawn.start, drawn.start + drawn.along], axis=1)
    return [
        shape(namespace, k, ARROW, size, points, shown=shown)
        for k, (points, shown) in enumerate(zip(ends, drawn.visible.tolist(), strict=True), first)
    ]


class ContactMarkers:
    """The markers of all contacts, and of what pushes from outside."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}
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
            wrenches: frame to force and torque that somebody pushes with, world axes, (6,).
            origins: frame to its origin in the world, (3,).
        """
        drawn = contact_arrows(report.contacts)
        found = [one for name in ('force', 'slip', 'normal') for one in arrows(name, drawn[name])]
        found += self._friction_cones(report)
        found += self._as_many('pair_force', pair_arrows(report.pairs))
        for name, pushes in push_arrows(wrenches, origins).items():
            found += self._as_many(name, pushes)
        return found

    def _as_many(self, namespace: str, drawn: Arrows) -> list[Marker]:
        """Return arrows, and behind them the deletion of those that were there before."""
        count = len(drawn)
        most = self._shown[namespace] = max(self._shown.get(namespace, 0), count)
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
        """Return the corners of a cone, the same array for the same friction."""
        if friction not in self._cones:
            self._cones[friction] = cone_triangles(friction)
        return self._cones[friction]


class SupportMarkers:
    """The support polygon, the centre of mass, and the plumb line between them.

    Args:
        robot: whose support.
        terrain: what it stands on.
        number: of the robot among those that are shown.
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
    """Return the support of every robot."""
    pairs = zip(of_robots, parts, strict=True)
    return [one for markers, part in pairs for one in markers.of(PartReport(report, part))]


def held_markers(
    held: Iterable[tuple[ConstrainedPoint, Constraint | None]], report: StepReport
) -> list[Marker]:
    """Return an arrow for the force of a constraint on each frame that is held, or once was."""
    return [
        one
        for k, (point, constraint) in enumerate(held)
        for one in arrows('constraint_force', point.arrow(report, constraint), k)
    ]


def ground_markers(terrain: Terrain) -> list[Marker]:
    """Return what replaces the ground drawn before: its surface around the origin, its regions."""
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
