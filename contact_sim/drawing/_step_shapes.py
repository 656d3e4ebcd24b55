"""Shapes of a step as plain arrays: arrows, friction cones, support polygon and ground.

Colours and scales are the same in RViz, in recordings and in the browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.collision._surface import PLANES
from contact_sim.collision._terrain import FieldGround, MeshGround, Terrain
from contact_sim.drawing._body_meshes import Colour, Surface
from contact_sim.robot._constraints import (
    ORIGIN,
    Constraint,
    FrameAnchor,
    LoopClosure,
    PointAnchor,
)
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._sensor import Frames, sensor_frame
from contact_sim.simulation._report import ContactReport, PairReport, StepReport
from contact_sim.support._analysis import distance_inside, support_polygon
from contact_sim.terrain import Region

METRES_PER_NEWTON = 0.01
METRES_PER_NEWTON_METRE = 0.05
METRES_PER_METRE_PER_SECOND = 1.0
NORMAL_LENGTH = 0.05
CONE_HEIGHT = 0.08
CONE_SIDES = 16
SHAFT_WIDTH, HEAD_WIDTH, HEAD_LENGTH = 0.01, 0.02, 0.02
"""Diameters of an arrow and length of its head [m]."""
POLYGON_WIDTH, PLUMB_WIDTH, BORDER_WIDTH = 0.006, 0.003, 0.02
"""Widths of lines [m]."""
CENTRE_SIZE = 0.03
"""Diameter of a centre of mass [m]."""

COLOURS: dict[str, Colour] = {
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
FALLING: Colour = (0.90, 0.10, 0.10, 1.0)
"""Of a centre of mass that is not over the support polygon."""


# ------------------------------------------------ arrows

SHORTEST = 1e-6
"""An arrow is drawn where a component of it is longer than this [m]."""


@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrows, one row each; those without length are not visible."""

    start: Array
    """Where they begin [m], world, shape (n, 3)."""
    along: Array
    """From there to the tip [m], world, shape (n, 3)."""

    def __len__(self) -> int:
        """Return the number of arrows."""
        return len(self.start)

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Whether each has a length that can be seen, shape (n,)."""
        return np.asarray(np.abs(self.along).max(axis=1, initial=0.0) > SHORTEST)

    @property
    def ends(self) -> Array:
        """Return start and tip of those that can be seen [m], shape (m, 2, 3)."""
        seen = self.visible
        start = self.start[seen]
        return np.stack([start, start + self.along[seen]], axis=1)


def contact_arrows(contacts: ContactReport) -> dict[str, Arrows]:
    """Return force, slip (where it slips) and normal of every ground contact, by colour."""
    start, slips = contacts.position, contacts.mode == 2
    slip = METRES_PER_METRE_PER_SECOND * contacts.velocity * slips[:, None]
    return {
        'force': Arrows(start, METRES_PER_NEWTON * contacts.force),
        'slip': Arrows(start, slip),
        'normal': Arrows(start, NORMAL_LENGTH * contacts.normal),
    }


def pair_arrows(pairs: PairReport) -> Arrows:
    """Return the force of every contact between bodies on the first of them."""
    return Arrows(pairs.position, METRES_PER_NEWTON * pairs.force)


def push_arrows(wrenches: Mapping[str, Array], origins: Mapping[str, Array]) -> dict[str, Arrows]:
    """Return force and torque from outside, by colour; a force ends where it acts."""
    # by frame: force [N] and torque [N m], and the origin in the world [m]; world axes
    wrench = np.array([*wrenches.values()], dtype=float).reshape(-1, 6)
    origin = np.array([origins[frame] for frame in wrenches], dtype=float).reshape(-1, 3)
    force = METRES_PER_NEWTON * wrench[:, :3]
    return {
        'push': Arrows(origin - force, force),
        'push_torque': Arrows(origin, METRES_PER_NEWTON_METRE * wrench[:, 3:]),
    }


class ConstrainedPoint:
    """The point of a frame at which a constraint acts, and the constraint force there."""

    def __init__(self, robot: RobotModel, constraint: Constraint) -> None:
        self.frame = constraint.holds[0]
        """Name of the frame."""
        self._frames = Frames(robot, [sensor_frame(robot, self.frame)])

    def acting(
        self, report: StepReport, constraint: Constraint | None
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return rotation and origin of the frame, the point in its axes, force and torque there.

        Arrays of shape (3, 3), and (3,) [m], [m], [N], [N m], world axes; None: the constraint
        does not hold, and nothing acts.
        """
        rows, point = np.zeros(6), np.zeros(3)
        if constraint is not None:
            force = report.constraints[constraint.name].force
            rows[: len(force)] = force
            point[:] = getattr(constraint, 'point', ORIGIN)
        placement = self._frames.placements(report.q)[0]
        rotation, origin = np.array(placement.rotation), np.array(placement.translation)
        return rotation, origin, point, rows[:3], rows[3:]

    def arrow(self, report: StepReport, constraint: Constraint | None) -> Arrows:
        """Return the constraint force at the point, one arrow."""
        rotation, origin, point, force, _ = self.acting(report, constraint)
        return Arrows((origin + rotation @ point)[None], METRES_PER_NEWTON * force[None])


def constrains_frame(constraint: Constraint) -> bool:
    """Return whether a constraint acts at a frame, so that its force has a place."""
    return isinstance(constraint, PointAnchor | FrameAnchor | LoopClosure)


# ------------------------------------------------ friction cones


def cone_triangles(friction: float) -> Array:
    """Return the corners of a friction cone about z, its tip at the origin, shape (3·sides, 3)."""
    angles = np.linspace(0.0, 2.0 * np.pi, CONE_SIDES + 1)
    circle = friction * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rim = CONE_HEIGHT * np.column_stack([circle, np.ones_like(angles)])
    tips = np.zeros((CONE_SIDES, 3))
    return np.stack([tips, rim[:-1], rim[1:]], axis=1).reshape(-1, 3)


def turned_to(normals: Array) -> Array:
    """Return the shortest rotations that take z to unit normals (n, 3) as x, y, z, w, (n, 4)."""
    x, y, z = normals.T
    quaternion = np.stack([-y, x, np.zeros_like(x), 1.0 + z], axis=1)  # (z × n, 1 + z·n)
    down = 1.0 + z < 1e-12
    quaternion[down] = (1.0, 0.0, 0.0, 0.0)  # half a turn about x
    return np.asarray(quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True))


# ------------------------------------------------ support polygon and centre of mass


@dataclass(frozen=True, eq=False)
class SupportShape:
    """Support polygon and centre of mass of a robot in a step."""

    outline: Array
    """Corners of the support polygon [m], the first one again at the end, shape (n, 3); two
    points where it is a line, fewer where there is none."""
    centre: Array
    """Centre of mass [m], shape (3,)."""
    below: Array
    """Where the vertical through it meets the ground [m], shape (3,); else the centre itself."""
    over: bool
    """Whether the centre of mass is over the polygon."""


class SupportShapes:
    """Computes the support of a robot in a step; for one thread."""

    def __init__(self, robot: RobotModel, terrain: Terrain) -> None:
        self._model, self._terrain = robot.pinocchio_model, terrain
        self._data, self._plane = data_of(self._model), one_plane(terrain)

    def of(self, report: Report) -> SupportShape:
        """Return the support at the end of a step."""
        contacts = report.contacts
        centre = np.array(pin.centerOfMass(self._model, self._data, report.q))
        corners = support_polygon(contacts.position[contacts.mode > 0], contacts.normal)
        outline = np.array([*corners, corners[0]] if len(corners) > 2 else [*corners])
        over = bool(distance_inside(corners[:, :2], centre[:2]) >= 0.0)
        return SupportShape(outline.reshape(-1, 3), centre, self._below(centre), over)

    def _below(self, centre: Array) -> Array:
        x, y, _ = centre.tolist()
        if self._plane is not None and self._plane[0][2] > 0.0:
            (nx, ny, nz), offset = self._plane
            return np.array([x, y, (offset - nx * x - ny * y) / nz])
        height = self._terrain.height(x, y)
        return centre if np.isnan(height) else np.array([x, y, height])


# ------------------------------------------------ ground and its regions

GROUND_SIZE = 10.0
"""Side of the drawn part of an unbounded ground, about the origin of the world [m]."""
WALL_HEIGHT = 1.0
"""Height over the origin of the world up to which several planes are drawn [m]."""
GROUND_CELLS = 40
SIDE_PIECES = 40
"""Pieces of which a side of a region is drawn."""
ABOVE = 0.005
"""Height of a line over the ground [m]."""


def one_plane(terrain: Terrain) -> tuple[Array, float] | None:
    """Return unit normal (3,) and offset [m] of a ground that is a plane, None of others."""
    if terrain.kind == PLANES and terrain.features == 1:
        return terrain.data[:3], float(terrain.data[3])
    return None


def ground_triangles(terrain: Terrain) -> Array:
    """Return the corners of the triangles of `ground_surface` [m], shape (n, 3)."""
    surface = ground_surface(terrain)
    return np.asarray(surface.vertices[surface.triangles].reshape(-1, 3))


def ground_surface(terrain: Terrain) -> Surface:
    """Return triangles on the ground.

    Of several planes, what each has in the room that all leave; of height fields and meshes, their
    own; else a level grid about the origin whose points are moved to the nearest of the ground.
    """
    if isinstance(terrain, FieldGround | MeshGround):
        mesh = terrain.mesh if isinstance(terrain, MeshGround) else terrain.field.as_mesh()
        return Surface(mesh.vertices, mesh.triangles)
    if terrain.kind == PLANES:
        corners = _faces(terrain.data[: 4 * terrain.features].reshape(-1, 4))
        return Surface(corners, np.arange(len(corners)).reshape(-1, 3))
    ticks = np.linspace(-0.5 * GROUND_SIZE, 0.5 * GROUND_SIZE, GROUND_CELLS + 1)
    x, y = np.meshgrid(ticks, ticks, indexing='ij')
    flat = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    points = flat - terrain.signed_distance(flat)[:, None] * terrain.normals(flat)
    number = np.arange(len(points)).reshape(GROUND_CELLS + 1, GROUND_CELLS + 1)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    return Surface(points, np.stack([a, b, c, a, c, d], axis=2).reshape(-1, 3))


def _faces(planes: Array) -> Array:
    """Return triangles (n, 3) on planes (k, 4), unit normals and offsets: the bounds of a room."""
    half, up = 0.5 * GROUND_SIZE, np.array([0.0, 0.0, 1.0])
    sides = [(sign * axis, -half) for axis in np.eye(3) for sign in (1.0, -1.0)]
    sides.append((-up, -WALL_HEIGHT))
    faces = []
    for k, (*normal, offset) in enumerate(planes):
        first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        first /= np.linalg.norm(first)
        second = np.cross(normal, first)
        square = 2.0 * GROUND_SIZE * np.array([first, second, -first, -second])
        face = offset * np.array(normal) + square
        others = [(plane[:3], plane[3]) for j, plane in enumerate(planes) if j != k]
        for direction, least in (*others, *sides):
            face = _cut(face, face @ direction - least)
        faces += [face[[0, i, i + 1]] for i in range(1, len(face) - 1)]
    return np.concatenate([np.zeros((0, 3)), *faces])


def _cut(face: Array, inside: Array) -> Array:
    """Return the part of a convex polygon (n, 3) where a linear function, (n,), is not < 0."""
    kept = []
    for k, point in enumerate(face):
        before, now = inside[k - 1], inside[k]
        if before * now < 0.0:
            kept.append(face[k - 1] + before / (before - now) * (point - face[k - 1]))
        if now >= 0.0:
            kept.append(point)
    return np.array(kept).reshape(-1, 3)


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
