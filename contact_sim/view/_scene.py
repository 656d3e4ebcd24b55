"""A robot and its ground in the browser, with what acts on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
import viser

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.drawing._body_meshes import Body, bodies_of, compose, tinted
from contact_sim.drawing._step_shapes import (
    BORDER_WIDTH,
    CENTRE_SIZE,
    COLOURS,
    FALLING,
    HEAD_LENGTH,
    HEAD_WIDTH,
    PLUMB_WIDTH,
    POLYGON_WIDTH,
    SHAFT_WIDTH,
    Arrows,
    Colour,
    ConstrainedPoint,
    SupportShape,
    SupportShapes,
    border_lines,
    cone_triangles,
    constrains_frame,
    contact_arrows,
    ground_surface,
    one_plane,
    pair_arrows,
    push_arrows,
    turned_to,
)
from contact_sim.errors import UnknownName
from contact_sim.robot._coordinates import frame_called
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import parts_of
from contact_sim.sensors._robot_view import PartReport
from contact_sim.sensors._sensor import sensor_frame
from contact_sim.simulation._report import ContactReport, StepReport
from contact_sim.step._workspace import SLIP
from contact_sim.view._session import Session

# --- Layers of a scene: nodes that are made once and then moved, each with a switch.

RGB = tuple[int, int, int]
NO_LINES = np.zeros((0, 2, 3))


def rgb(colour: Colour) -> RGB:
    """Return a colour as three numbers up to 255."""
    r, g, b = (round(255.0 * part) for part in colour[:3])
    return r, g, b


def linear_rgb(colour: Colour) -> RGB:
    """Return a colour for viser's arrows and batched meshes, which take it as amounts of light."""
    r, g, b, a = colour
    return rgb((_light(r), _light(g), _light(b), a))


def _light(part: float) -> float:
    """Return the amount of light of a part of an sRGB colour (IEC 61966-2-1)."""
    return float(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)


def opacity(colour: Colour) -> float | None:
    """Return the opacity of a colour as viser wants it: None where nothing shows through."""
    return colour[3] if colour[3] < 1.0 else None


class Switches(MutableMapping[str, bool]):
    """Which layers are to be seen, by name; setting one acts at once.

    Args:
        nodes: the node of each layer.
        seen: called with the name of a layer that comes into sight.
    """

    def __init__(self, nodes: Mapping[str, Any], seen: Callable[[str], None]) -> None:
        self._nodes, self._seen = nodes, seen

    def __getitem__(self, name: str) -> bool:
        """Return whether a layer is to be seen."""
        return bool(self._node(name).visible)

    def __setitem__(self, name: str, visible: bool) -> None:
        """Show or hide a layer."""
        node = self._node(name)
        if visible and not node.visible:
            self._seen(name)
        node.visible = bool(visible)

    def __delitem__(self, name: str) -> None:
        """Refuse: layers stay."""
        raise TypeError(f'layer {name!r} cannot be removed, only hidden')

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._nodes)

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self._nodes)

    def _node(self, name: str) -> Any:
        if name not in self._nodes:
            raise UnknownName('layer', name, self._nodes)
        return self._nodes[name]


class ArrowLayer:
    """Arrows of one kind.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
        kind: name of the colour, and of the node.
        tint: a colour in its place.
    """

    def __init__(
        self, scene: viser.SceneApi, above: str, kind: str, tint: Colour | None = None
    ) -> None:
        self._node = scene.add_arrows(
            f'{above}/{kind}', NO_LINES, linear_rgb(tint or COLOURS[kind]),
            shaft_radius=0.5 * SHAFT_WIDTH, head_radius=0.5 * HEAD_WIDTH, head_length=HEAD_LENGTH,
        )  # fmt: skip

    def show(self, arrows: Arrows) -> None:
        """Draw these."""
        self._node.points = arrows.ends.astype(np.float32)


class LineLayer:
    """Lines of one colour.

    Args:
        scene: in which they are drawn.
        name: of the node.
        colour: of the lines.
        width: [m].
    """

    def __init__(self, scene: viser.SceneApi, name: str, colour: Colour, width: float) -> None:
        self._node = scene.add_line_segments(name, NO_LINES, rgb(colour), thickness=width)

    def show(self, ends: Array) -> None:
        """Draw lines between ends (n, 2, 3) [m]."""
        self._node.points = ends.astype(np.float32)

    def paint(self, colour: Colour) -> None:
        """Draw them in another colour."""
        self._node.colors = np.array(rgb(colour), dtype=np.uint8)


# --- Friction cones and slip trails in a scene.

TRAIL_TIME = 2.0
"""How long a slip trail stays [s]."""
LONGEST_GAP = 0.25
"""Simulated time between two shown steps, above which nothing is known of the way [s]."""
MOST_PIECES = 600


class Cones:
    """The friction cones of the contacts that carry a force.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
    """

    def __init__(self, scene: viser.SceneApi, above: str) -> None:
        colour = COLOURS['friction_cone']
        corners = cone_triangles(1.0)
        self._node = scene.add_batched_meshes_simple(
            f'{above}/cones', corners, np.arange(len(corners)).reshape(-1, 3),
            batched_wxyzs=np.zeros((0, 4)), batched_positions=np.zeros((0, 3)),
            batched_scales=np.zeros((0, 3)), batched_colors=linear_rgb(colour),
            opacity=opacity(colour), side='double', lod='off', cast_shadow=False,
        )  # fmt: skip

    def show(self, contacts: ContactReport) -> None:
        """Draw the cones of a step; friction is their radius at a height of 1."""
        loaded = contacts.mode > 0
        friction = contacts.friction[loaded].astype(np.float32)
        xyzw = turned_to(contacts.normal[loaded]).astype(np.float32)
        self._node.batched_positions = contacts.position[loaded].astype(np.float32)
        self._node.batched_wxyzs = xyzw[:, [3, 0, 1, 2]]
        self._node.batched_scales = np.stack([friction, friction, np.ones_like(friction)], axis=1)


class Trails:
    """Where contacts slipped in the last seconds.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
    """

    def __init__(self, scene: viser.SceneApi, above: str) -> None:
        self._lines = LineLayer(scene, f'{above}/trails', COLOURS['slip'], 0.6 * SHAFT_WIDTH)
        self._pieces: deque[tuple[float, Array]] = deque(maxlen=MOST_PIECES)
        self._time, self._place = np.inf, np.zeros((0, 3))

    def show(self, report: StepReport) -> None:
        """Add the way of every contact that slips since the step that was shown before."""
        contacts, time = report.contacts, report.time
        place = contacts.position.copy()
        known = 0.0 <= time - self._time <= LONGEST_GAP and place.shape == self._place.shape
        if time < self._time:
            self._pieces.clear()
        if known and time > self._time:
            for k in np.flatnonzero(contacts.mode == SLIP):
                self._pieces.append((time, np.stack([self._place[k], place[k]])))
        while self._pieces and self._pieces[0][0] < time - TRAIL_TIME:
            self._pieces.popleft()
        self._time, self._place = time, place
        self._lines.show(np.array([piece for _, piece in self._pieces]).reshape(-1, 2, 3))


# --- The ground in a scene, in its real shape.

PAPER: Colour = (0.90, 0.90, 0.88, 1.0)
"""Of a plane: lighter than robots, which are grey, too."""
SHADED: Colour = (0.66, 0.66, 0.64, 1.0)
"""Of other ground, which light makes brighter here and darker there."""
PLANE_SIZE, CELL = 40.0, 0.25
"""Side of what is drawn of a plane, and of its cells [m]."""


class GroundShape:
    """The ground and the borders of its regions; it stays as it is.

    Args:
        scene: in which it is drawn.
        above: name of the node above it.
        ground: what is drawn.
    """

    def __init__(self, scene: viser.SceneApi, above: str, ground: Terrain) -> None:
        plane = one_plane(ground)
        if plane is not None:
            normal, offset = plane
            xyzw = turned_to(normal[None])[0]
            scene.add_grid(
                f'{above}/plane', PLANE_SIZE, PLANE_SIZE, plane='xy', cell_size=CELL,
                section_size=4.0 * CELL, cell_color=(214, 214, 210), section_color=(186, 186, 182),
                plane_color=rgb(PAPER), plane_opacity=1.0, fade_distance=PLANE_SIZE,
                shadow_opacity=0.3,
                wxyz=xyzw[[3, 0, 1, 2]], position=offset * normal,
            )  # fmt: skip
        else:
            shape = ground_surface(ground)
            scene.add_mesh_simple(
                f'{above}/surface', shape.vertices, shape.triangles, color=rgb(SHADED),
                flat_shading=True, side='double',
            )  # fmt: skip
        for k, region in enumerate(ground.regions):
            border = LineLayer(scene, f'{above}/region {k}', COLOURS['region'], BORDER_WIDTH)
            border.show(border_lines(ground, region).reshape(-1, 2, 3))


# --- The bodies of a robot in a scene: one node for all that share a surface and a colour.


class RobotMeshes:
    """All bodies of a robot.

    Args:
        scene: in which they are drawn.
        name: of the node above them.
        bodies: what is drawn.
    """

    def __init__(self, scene: viser.SceneApi, name: str, bodies: Sequence[Body]) -> None:
        groups: dict[Any, list[Body]] = {}
        for body in bodies:
            groups.setdefault((id(body.surface), body.colour), []).append(body)
        self.bodies = tuple(body for group in groups.values() for body in group)
        """In the order in which they are drawn."""
        self._joints = [body.joint for body in self.bodies]
        self._own = np.array([body.placement for body in self.bodies]).reshape(-1, 7)
        self._nodes: list[tuple[Any, slice]] = []
        last = 0
        for number, group in enumerate(groups.values()):
            first, last = last, last + len(group)
            surface, colour = group[0].surface, group[0].colour
            node = scene.add_batched_meshes_simple(
                f'{name}/{number}', surface.vertices, surface.triangles,
                batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(group), 1)),
                batched_positions=np.zeros((len(group), 3)),
                batched_colors=linear_rgb(colour), opacity=opacity(colour),
                flat_shading=True, side='double', lod='off',
            )  # fmt: skip
            self._nodes.append((node, slice(first, last)))

    def show(self, joints: Array) -> None:
        """Move the bodies with the joints (njoints, 7)."""
        position, wxyz = compose(joints[self._joints], self._own)
        for node, places in self._nodes:
            node.batched_positions = position[places].astype(np.float32)
            node.batched_wxyzs = wxyz[places].astype(np.float32)


# --- Support polygons and centres of mass in a scene, of every robot in it.


class Polygons:
    """The support polygons.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
    """

    def __init__(self, scene: viser.SceneApi, above: str) -> None:
        colour = COLOURS['support_polygon']
        self._lines = LineLayer(scene, f'{above}/outlines', colour, POLYGON_WIDTH)

    def show(self, supports: Sequence[SupportShape]) -> None:
        """Draw the polygons of a step."""
        lines = [shape.outline for shape in supports if len(shape.outline) > 1]
        sides = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
        self._lines.show(np.concatenate([np.zeros((0, 2, 3)), *sides]))


class Centres:
    """The centres of mass, and where they are over the ground; red outside of the polygon.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
        count: of robots.
    """

    def __init__(self, scene: viser.SceneApi, above: str, count: int) -> None:
        colour = COLOURS['centre_of_mass']
        self._parts = [
            (
                scene.add_icosphere(f'{above}/{k}', 0.5 * CENTRE_SIZE, color=rgb(colour)),
                scene.add_icosphere(f'{above}/{k} below', 0.25 * CENTRE_SIZE, color=rgb(colour)),
                LineLayer(scene, f'{above}/{k} plumb', colour, PLUMB_WIDTH),
            )
            for k in range(count)
        ]

    def show(self, supports: Sequence[SupportShape]) -> None:
        """Draw the centres of a step."""
        for (centre, below, plumb), shape in zip(self._parts, supports, strict=True):
            colour = COLOURS['centre_of_mass'] if shape.over else FALLING
            centre.position, below.position = shape.centre, shape.below
            plumb.show(np.array([[shape.centre, shape.below]]))
            centre.color = below.color = rgb(colour)
            plumb.paint(colour)


# --- The handle with which somebody draws the robot: three arrows at a frame.

NAME = '/handle'
SIZE = 0.15
"""Length of its arrows [m]."""


class DragHandle:
    """A handle that is where its frame is, and draws the frame where it is dragged.

    The browser only says where it is dragged; the thread that draws asks the session for it, so
    that the end of a drag never comes before its last motion.

    Args:
        server: of the page.
        session: whose robot is drawn.

    Attributes:
        frame: its name; '' where there is nothing to draw.
        offset: where the origin of the world is in the page [m], (3,).
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._session = session
        self.frame = next(iter(session.offers.frames), '')
        self._drawn = ''
        self._dragged = False
        self._model: pin.Model = None
        self.offset = np.zeros(3)
        self._gizmo = server.scene.add_transform_controls(
            NAME, scale=SIZE, disable_rotations=True, depth_test=False, visible=False
        )
        self._gizmo.on_update(self._on_update)

    @property
    def visible(self) -> bool:
        """Whether it is to be seen."""
        return bool(self._gizmo.visible)

    @visible.setter
    def visible(self, visible: bool) -> None:
        self._gizmo.visible = visible and bool(self.frame)

    async def _on_update(self, event: Any) -> None:
        if event.phase != 'update':  # of which one may come late
            self._dragged = event.phase == 'start'

    @property
    def held(self) -> bool:
        """Whether somebody drags it."""
        return self._dragged and self.visible

    @property
    def acts(self) -> bool:
        """Whether the session has to be told something, see `act`."""
        return self.held or bool(self._drawn)

    def act(self) -> None:
        """Draw the frame to where the handle is, or let it go.

        Raises:
            ContactSimError: it cannot be drawn.
        """
        drawn, self._drawn = self._drawn, self.frame if self.held else ''
        if drawn and drawn != self._drawn:
            self._session.drag(drawn, None)
        if self._drawn:
            self._session.drag(self._drawn, tuple((self._gizmo.position - self.offset).tolist()))

    def follow(self, robot: RobotModel, q: Array) -> None:
        """Be where the frame is at q (nq,), unless somebody drags it elsewhere."""
        if self.visible and not self._dragged:
            self._gizmo.position = self.offset + self._origin(robot, q)

    def _origin(self, robot: RobotModel, q: Array) -> Array:
        """Return the origin of the frame at q (nq,) [m], world, (3,)."""
        model = robot.pinocchio_model
        if model is not self._model:
            self._model, self._data = model, model.createData()
        frame = frame_called(model, self.frame)
        pin.forwardKinematics(model, self._data, q)
        return np.array((self._data.oMi[frame.parentJoint] * frame.placement).translation)


# --- Where a scene is looked at from.

FROM = np.array([0.66, -0.66, 0.36])
"""Direction from what is looked at to the camera: from the front left, a little from above."""
ROOM = 2.2
"""Distance of the camera in radii of what is looked at."""
FARTHEST = 1e4
"""Way along which a picture follows [m]; a robot that has blown up is left to go."""
FIELD_OF_VIEW = 1.0
"""Vertical angle of a picture [rad]."""


@dataclass(frozen=True)
class Camera:
    """A place to look from, and a place to look at, world [m]."""

    position: tuple[float, float, float]
    look_at: tuple[float, float, float]
    field_of_view: float = FIELD_OF_VIEW
    """From the lower to the upper edge of the picture [rad]."""

    def moved(self, offset: Array) -> Camera:
        """Return the camera at another place, by an offset (3,) [m], turned as it is."""
        x, y, z = (self.position + offset).tolist()
        a, b, c = (self.look_at + offset).tolist()
        return replace(self, position=(x, y, z), look_at=(a, b, c))

    @property
    def wxyz(self) -> Array:
        """Rotation of its axes: x to the right, y down, z forward, (4,)."""
        forward = np.subtract(self.look_at, self.position)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        axes = np.stack([right, np.cross(forward, right), forward], axis=1)
        x, y, z, w = pin.Quaternion(axes).coeffs()
        return np.array([w, x, y, z])


def framing(bodies: Sequence[Body], joints: Array) -> Camera:
    """Return a camera that sees all bodies, with the joints (njoints, 7) where they are."""
    if not bodies:
        return Camera((2.0, -2.0, 1.0), (0.0, 0.0, 0.0))
    own = np.array([body.placement for body in bodies])
    place, wxyz = compose(joints[[body.joint for body in bodies]], own)
    corners = []
    for body, p, (w, x, y, z) in zip(bodies, place, wxyz, strict=True):
        lowest, highest = body.surface.vertices.min(axis=0), body.surface.vertices.max(axis=0)
        turn = pin.Quaternion(w, x, y, z).matrix()
        corners += [p + turn @ np.where(side, highest, lowest) for side in np.ndindex(2, 2, 2)]
    lowest, highest = np.min(corners, axis=0), np.max(corners, axis=0)
    middle, radius = 0.5 * (lowest + highest), 0.5 * float(np.linalg.norm(highest - lowest))
    distance = ROOM * max(radius, 0.05)
    x, y, z = (middle + distance * FROM / np.linalg.norm(FROM)).tolist()
    a, b, c = middle.tolist()
    return Camera((x, y, z), (a, b, c))


class Following:
    """Moves a scene so that its robot, or the first of several, stays in the picture.

    Nothing is done to the camera, which the browser turns and moves at any time.

    Args:
        robot: what is followed, if its base floats.
        q: configuration (nq,) in which it is where it belongs in the picture.
    """

    def __init__(self, robot: RobotModel, q: Array) -> None:
        self._level = 2 if robot.floating_base else 0
        self._home = self._place(q)
        self.offset = np.zeros(3)
        """Where the origin of its world belongs in the picture [m], (3,)."""

    def look_after(self, q: Array, share: float = 1.0) -> None:
        """Go this share of the way to where the robot at q (nq,) is in its place; level."""
        there = self._home - self._place(q)
        if np.abs(there).max() < FARTHEST:
            self.offset = self.offset + share * (there - self.offset)

    def _place(self, q: Array) -> Array:
        place = np.zeros(3)
        place[: self._level] = q[: self._level]
        return place


def whole_run(cameras: Sequence[Camera]) -> Camera:
    """Return a camera that sees all that the cameras see, from the direction of the first."""
    looked_at = np.array([camera.look_at for camera in cameras])
    lowest, highest = looked_at.min(axis=0), looked_at.max(axis=0)
    away = np.subtract(cameras[0].position, cameras[0].look_at)
    distance = max(np.linalg.norm(np.subtract(one.position, one.look_at)) for one in cameras)
    middle, spread = 0.5 * (lowest + highest), float(np.linalg.norm(highest - lowest))
    x, y, z = (middle + (distance + 0.5 * spread) * away / np.linalg.norm(away)).tolist()
    a, b, c = middle.tolist()
    return Camera((x, y, z), (a, b, c))


# --- A step as the layers of a scene ask for it: each thing computed once, and only if asked.

NO_WRENCHES: Mapping[str, Array] = {}


class Ways:
    """What the moments of a robot are computed with.

    Args:
        robot: or several that were joined.
        ground: what they stand on.
    """

    def __init__(self, robot: RobotModel, ground: Terrain) -> None:
        self.robot, self.data = robot, robot.pinocchio_model.createData()
        self.supports = [(part, SupportShapes(part.robot, ground)) for part in parts_of(robot)]


class Moment:
    """A step that is shown.

    Args:
        ways: how it is computed; it is not to be asked after another one was made of the same.
        report: of the step.
        wrenches: frame to force [N] and torque [N m] from outside, world axes, (6,).
    """

    def __init__(
        self, ways: Ways, report: StepReport, wrenches: Mapping[str, Array] = NO_WRENCHES
    ) -> None:
        self.report, self.wrenches = report, wrenches
        self._robot, self._data, self._supports = ways.robot, ways.data, ways.supports
        pin.forwardKinematics(self._robot.pinocchio_model, self._data, report.q)

    @cached_property
    def joints(self) -> Array:
        """Placements of the joints: position [m], quaternion x y z w, shape (njoints, 7)."""
        return np.array([pin.SE3ToXYZQUAT(placement) for placement in self._data.oMi])

    @cached_property
    def arrows(self) -> dict[str, Arrows]:
        """Force, slip and normal of every contact with the ground."""
        return contact_arrows(self.report.contacts)

    @cached_property
    def supports(self) -> list[SupportShape]:
        """What each of the robots stands on."""
        return [shapes.of(PartReport(self.report, part)) for part, shapes in self._supports]

    @cached_property
    def origins(self) -> dict[str, Array]:
        """Origins of the frames that are pushed [m], world, (3,)."""
        frames = {name: sensor_frame(self._robot, name) for name in self.wrenches}
        placements = self._data.oMi
        return {
            name: np.array((placements[frame.parentJoint] * frame.placement).translation)
            for name, frame in frames.items()
        }


# --- A robot and its ground in the browser, with what acts on them.

LAYERS = (
    'meshes', 'ground', 'forces', 'friction_cones', 'normals', 'slip', 'slip_trails',
    'support_polygon', 'centre_of_mass', 'pairs', 'constraints', 'pushes',
)  # fmt: skip
Layer = Callable[[Moment], None]


class Scene:
    """A robot, or several that were joined, on a ground.

    All nodes are made here, once; `show` moves them.

    Args:
        server: of the page.
        robot: what is shown.
        ground: `Simulator.terrain`.
        prefix: name of the scene among others of the same page.
        tint: red, green, blue [0 to 1], and opacity if not 1, of all bodies and forces: a ghost.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        robot: RobotModel,
        ground: Terrain,
        *,
        prefix: str = '',
        tint: tuple[float, ...] | None = None,
    ) -> None:
        self._server, self._robot = server, robot
        self._ways = Ways(robot, ground)
        self._last: Moment | None = None
        self._path = f'/{prefix or "scene"}'
        self._root = server.scene.add_frame(self._path, show_axes=False)
        nodes = {
            name: server.scene.add_frame(f'{self._path}/{name}', show_axes=False)
            for name in LAYERS
        }
        self._layers = self._made(ground, tint)
        self.visible: Switches = Switches(nodes, self._show_again)
        """Which layers are to be seen, by their names in LAYERS."""

    @property
    def offset(self) -> Array:
        """Where the origin of its world is in the page [m], (3,); can be set."""
        return np.array(self._root.position)

    @offset.setter
    def offset(self, offset: Array) -> None:
        self._root.position = np.asarray(offset, dtype=float)

    def show(self, report: StepReport, wrenches: Mapping[str, Array] = NO_WRENCHES) -> None:
        """Move everything to where it is at the end of a step.

        Args:
            report: of the step.
            wrenches: frame to force [N] and torque [N m] that somebody pushes with, world axes,
                (6,).
        """
        self._last = moment = Moment(self._ways, report, wrenches)
        with self._server.atomic():
            for name, layer in self._layers.items():
                if self.visible[name]:
                    layer(moment)

    def framing(self, report: StepReport) -> Camera:
        """Return a camera that sees all of the robot as it is at the end of a step."""
        moment = Moment(self._ways, report)
        camera = framing(self._meshes.bodies, moment.joints)
        return camera.moved(self.offset)

    def close(self) -> None:
        """Take everything off the page."""
        self._root.remove()

    def _show_again(self, name: str) -> None:
        """Bring a layer up to date that was hidden while others moved."""
        if self._last is not None:
            self._layers[name](self._last)

    def _made(self, ground: Terrain, tint: tuple[float, ...] | None) -> dict[str, Layer]:
        """Return what brings each layer up to date, after making its nodes."""
        scene, path, robot = self._server.scene, self._path, self._robot
        bodies, colour = bodies_of(robot), _colour(tint)
        bodies = bodies if colour is None else tinted(bodies, colour)
        self._meshes = meshes = RobotMeshes(scene, f'{path}/meshes', bodies)
        GroundShape(scene, f'{path}/ground', ground)
        forces = ArrowLayer(scene, f'{path}/forces', 'force', colour)
        cones = Cones(scene, f'{path}/friction_cones')
        normals = ArrowLayer(scene, f'{path}/normals', 'normal')
        slip = ArrowLayer(scene, f'{path}/slip', 'slip', colour)
        trails = Trails(scene, f'{path}/slip_trails')
        polygons = Polygons(scene, f'{path}/support_polygon')
        centres = Centres(scene, f'{path}/centre_of_mass', len(self._ways.supports))
        pairs = ArrowLayer(scene, f'{path}/pairs', 'pair_force', colour)
        constraints = ArrowLayer(scene, f'{path}/constraints', 'constraint_force', colour)
        pushes = [ArrowLayer(scene, f'{path}/pushes', kind) for kind in ('push', 'push_torque')]
        held = _Held(robot)

        def show_pushes(moment: Moment) -> None:
            arrows = push_arrows(moment.wrenches, moment.origins).values()
            for layer, some in zip(pushes, arrows, strict=True):
                layer.show(some)

        return {
            'meshes': lambda moment: meshes.show(moment.joints),
            'forces': lambda moment: forces.show(moment.arrows['force']),
            'friction_cones': lambda moment: cones.show(moment.report.contacts),
            'normals': lambda moment: normals.show(moment.arrows['normal']),
            'slip': lambda moment: slip.show(moment.arrows['slip']),
            'slip_trails': lambda moment: trails.show(moment.report),
            'support_polygon': lambda moment: polygons.show(moment.supports),
            'centre_of_mass': lambda moment: centres.show(moment.supports),
            'pairs': lambda moment: pairs.show(pair_arrows(moment.report.pairs)),
            'constraints': lambda moment: constraints.show(held.arrows(moment.report)),
            'pushes': show_pushes,
        }


class _Held:
    """The forces of constraints that hold frames."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self._points: dict[str, ConstrainedPoint] = {}

    def arrows(self, report: StepReport) -> Arrows:
        """Return one arrow for each that holds."""
        found = [Arrows(np.zeros((0, 3)), np.zeros((0, 3)))]
        for constraint in filter(constrains_frame, report.constraints.described):
            name = constraint.holds[0]
            if name not in self._points:
                self._points[name] = ConstrainedPoint(self._robot, constraint)
            found.append(self._points[name].arrow(report, constraint))
        start, along = (
            np.concatenate([getattr(one, side) for one in found]) for side in ('start', 'along')
        )
        return Arrows(start, along)


def _colour(tint: tuple[float, ...] | None) -> Colour | None:
    if tint is None:
        return None
    r, g, b, *rest = tint
    return r, g, b, rest[0] if rest else 1.0
