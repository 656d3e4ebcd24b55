"""A robot and its ground in the browser, with forces, support and constraints of a step.

From the top: the scene, a step as its layers need it, the camera, the layers (nodes that are made
once and then moved, each with a switch), and the handle that drags a frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.drawing._body_meshes import (
    Body,
    Colour,
    Surface,
    bodies_of,
    compose,
    sphere,
    tinted,
)
from contact_sim.drawing._step_shapes import (
    BORDER_WIDTH,
    CENTRE_SIZE,
    COLOURS,
    FALLING,
    METRES_PER_METRE_PER_SECOND,
    METRES_PER_NEWTON,
    METRES_PER_NEWTON_METRE,
    PLUMB_WIDTH,
    POLYGON_WIDTH,
    Arrows,
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
from contact_sim.errors import InvalidInput, UnknownName, summary
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import parts_of
from contact_sim.robot._trees import data_of
from contact_sim.sensors._robot_view import RobotView
from contact_sim.sensors._sensor import sensor_frame
from contact_sim.simulation._report import ContactReport, StepReport
from contact_sim.step._workspace import SLIP
from contact_sim.view._session import Session

if TYPE_CHECKING:
    import viser

NO_WRENCHES: Mapping[str, Array] = {}
LAYERS = (
    'meshes', 'ground', 'forces', 'friction_cones', 'normals', 'slip', 'slip_trails',
    'support_polygon', 'centre_of_mass', 'pairs', 'constraints', 'pushes', 'numbers',
)  # fmt: skip
HIDDEN = ('numbers',)
"""Layers that are hidden at first."""
ARROWS = {
    'forces': ('force',), 'normals': ('normal',), 'slip': ('slip',), 'pairs': ('pair_force',),
    'constraints': ('constraint_force',), 'pushes': ('push', 'push_torque'),
}  # fmt: skip
"""Kinds of arrows in each layer that has some."""
UNITS = {
    'force': (METRES_PER_NEWTON, 'N'), 'pair_force': (METRES_PER_NEWTON, 'N'),
    'constraint_force': (METRES_PER_NEWTON, 'N'), 'push': (METRES_PER_NEWTON, 'N'),
    'push_torque': (METRES_PER_NEWTON_METRE, 'N m'), 'slip': (METRES_PER_METRE_PER_SECOND, 'm/s'),
}  # fmt: skip
"""Kinds of arrows with a number: metres of an arrow per unit of what it shows, and this unit."""


# ------------------------------------------------ the scene


class Scene:
    """Scene of a robot, or of several joined robots, on a ground.

    All nodes are made here, once; `show` moves them.

    Args:
        server: of the page.
        robot: to be shown.
        ground: `Simulator.terrain`.
        prefix: name of the scene among others of the same page.
        tint: red, green, blue [0 to 1], and opacity if not 1, of all bodies and forces: a ghost.

    Attributes:
        path: of its root among the nodes of the page.
        visible: whether each layer is shown, by the names in LAYERS.
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
        self._buffers = KinematicsBuffers(robot, ground)
        self._last: SceneFrame | None = None
        self.path = f'/{prefix or "scene"}'
        self._root = server.scene.add_frame(self.path, show_axes=False)
        nodes = {
            name: server.scene.add_frame(
                f'{self.path}/{name}', show_axes=False, visible=name not in HIDDEN
            )
            for name in LAYERS
        }
        self._layers = self._make_layers(ground, tint)
        self.visible: Switches = Switches(nodes, self._update_layer)

    @property
    def offset(self) -> Array:
        """Origin of its world in the page [m], (3,); can be set."""
        return np.array(self._root.position)

    @offset.setter
    def offset(self, offset: Array) -> None:
        self._root.position = np.asarray(offset, dtype=float)

    def show(self, report: StepReport, wrenches: Mapping[str, Array] = NO_WRENCHES) -> None:
        """Show the state at the end of a step.

        Args:
            report: of the step.
            wrenches: external wrenches: frame to force [N] and torque [N m], world axes, (6,).
        """
        self._last = frame = SceneFrame(self._buffers, report, wrenches)
        with self._server.atomic():
            for name, layer in self._layers.items():
                if self.visible[name]:
                    layer(frame)

    def framing(self, report: StepReport) -> Camera:
        """Return a camera that shows the whole robot at the end of a step."""
        bodies = self._meshes.bodies
        if not bodies:
            return Camera((2.0, -2.0, 1.0), (0.0, 0.0, 0.0)).moved(self.offset)
        joints = SceneFrame(self._buffers, report).joints
        own = np.array([body.placement for body in bodies])
        place, wxyz = compose(joints[[body.joint for body in bodies]], own)
        corners = []
        for body, p, (w, x, y, z) in zip(bodies, place, wxyz, strict=True):
            lowest, highest = body.surface.vertices.min(axis=0), body.surface.vertices.max(axis=0)
            turn = pin.Quaternion(w, x, y, z).matrix()
            corners += [p + turn @ np.where(side, highest, lowest) for side in np.ndindex(2, 2, 2)]
        lowest, highest = np.min(corners, axis=0), np.max(corners, axis=0)
        middle, radius = 0.5 * (lowest + highest), 0.5 * float(np.linalg.norm(highest - lowest))
        distance = VIEW_DISTANCE * max(radius, 0.05)
        x, y, z = (middle + distance * VIEW_DIRECTION / np.linalg.norm(VIEW_DIRECTION)).tolist()
        a, b, c = middle.tolist()
        return Camera((x, y, z), (a, b, c)).moved(self.offset)

    def is_at_arrow(self, origin: ArrayLike, direction: ArrayLike) -> bool:
        """Return whether a ray of the page meets an arrow with a number, or almost.

        Args:
            origin: of the ray [m], (3,), in the page as `offset`.
            direction: of the ray, (3,).
        """
        if self._last is None:
            return False
        points = np.concatenate([arrows.ends for arrows in self._numbered(self._last).values()])
        start, tip = points[:, :1], points[:, 1:]
        along = (start + np.linspace(0.0, 1.0, POINTS_OF_ARROW)[:, None] * (tip - start)) - (
            np.asarray(origin) - self.offset
        )
        forward = np.asarray(direction) / np.linalg.norm(direction)
        depth = along @ forward
        beside = np.linalg.norm(along - depth[..., None] * forward, axis=-1)
        return bool(np.any((depth > 0.0) & (beside < CLICK_ANGLE * depth)))

    def _numbered(self, frame: SceneFrame) -> dict[str, Arrows]:
        """Return the arrows with a number that are shown, by kind."""
        shown = [kind for layer, kinds in ARROWS.items() if self.visible[layer] for kind in kinds]
        return {kind: frame.arrows[kind] for kind in shown if kind in UNITS}

    def close(self) -> None:
        """Remove the scene from the page."""
        self._root.remove()

    def _update_layer(self, name: str) -> None:
        """Update a layer that was hidden while others moved."""
        if self._last is not None and name in self._layers:  # the ground never moves
            self._layers[name](self._last)

    def _make_layers(
        self, ground: Terrain, tint: tuple[float, ...] | None
    ) -> dict[str, Callable[[SceneFrame], None]]:
        """Make the nodes of all layers; return the function that updates each."""
        scene, path, robot = self._server.scene, self.path, self._robot
        bodies, colour = bodies_of(robot), None
        if tint is not None:
            r, g, b, *rest = tint
            colour = r, g, b, rest[0] if rest else 1.0
            bodies = tinted(bodies, colour)
        self._meshes = meshes = RobotMeshes(scene, f'{path}/meshes', bodies)
        add_ground(scene, f'{path}/ground', ground)
        cones = Cones(scene, f'{path}/friction_cones')
        trails = Trails(scene, f'{path}/slip_trails')
        polygons = LineLayer(
            scene, f'{path}/support_polygon/outlines', COLOURS['support_polygon'], POLYGON_WIDTH
        )
        centres = Centres(scene, f'{path}/centre_of_mass', len(self._buffers.supports))
        numbers = NumberLabels(scene, f'{path}/numbers')

        def arrows(layer: str) -> Callable[[SceneFrame], None]:
            tints = {} if colour is None else dict.fromkeys(TINTED, colour)
            nodes = {
                kind: ArrowLayer(scene, f'{path}/{layer}', kind, tints.get(kind))
                for kind in ARROWS[layer]
            }

            def show(frame: SceneFrame) -> None:
                for kind, node in nodes.items():
                    node.show(frame.arrows[kind])

            return show

        return {
            'meshes': lambda frame: meshes.show(frame.joints),
            'friction_cones': lambda frame: cones.show(frame.report.contacts),
            'slip_trails': lambda frame: trails.show(frame.report),
            'support_polygon': lambda frame: polygons.show(frame.outlines),
            'centre_of_mass': lambda frame: centres.show(frame.supports),
            **{layer: arrows(layer) for layer in ARROWS},
            'numbers': lambda frame: numbers.show(self._numbered(frame)),
        }

    def __repr__(self) -> str:
        return summary(self, robot=self._robot.name, layers=list(self._layers))


# ------------------------------------------------ a step


class KinematicsBuffers:
    """Pinocchio data, support shapes and constrained points of a robot, or of several joined."""

    def __init__(self, robot: RobotModel, ground: Terrain) -> None:
        self.robot, self.data = robot, data_of(robot.pinocchio_model)
        self.supports = [(part, SupportShapes(part.robot, ground)) for part in parts_of(robot)]
        self.points: dict[str, ConstrainedPoint] = {}


class SceneFrame:
    """A step as the layers need it, until the next one is made of the same buffers.

    Each property is computed when it is first used.
    """

    def __init__(
        self,
        buffers: KinematicsBuffers,
        report: StepReport,
        wrenches: Mapping[str, Array] = NO_WRENCHES,
    ) -> None:
        self.report, self.wrenches, self._buffers = report, wrenches, buffers
        pin.forwardKinematics(buffers.robot.pinocchio_model, buffers.data, report.q)

    @cached_property
    def joints(self) -> Array:
        """Placements of the joints: position [m], quaternion x y z w, shape (njoints, 7)."""
        return np.array([pin.SE3ToXYZQUAT(placement) for placement in self._buffers.data.oMi])

    @cached_property
    def arrows(self) -> dict[str, Arrows]:
        """All arrows by their kind, a key of COLOURS."""
        return {
            **contact_arrows(self.report.contacts),
            **push_arrows(self.wrenches, self.origins),
            'pair_force': pair_arrows(self.report.pairs),
            'constraint_force': self.constraint_forces,
        }

    @cached_property
    def supports(self) -> list[SupportShape]:
        """Support polygon and centre of mass of each robot."""
        return [shapes.of(RobotView(self.report, part)) for part, shapes in self._buffers.supports]

    @property
    def constraint_forces(self) -> Arrows:
        """The force of each constraint that acts at a frame."""
        points, arrows = self._buffers.points, [Arrows(np.zeros((0, 3)), np.zeros((0, 3)))]
        for constraint in filter(constrains_frame, self.report.constraints.described):
            name = constraint.holds[0]
            if name not in points:
                points[name] = ConstrainedPoint(self._buffers.robot, constraint)
            arrows.append(points[name].arrow(self.report, constraint))
        start = np.concatenate([arrow.start for arrow in arrows])
        return Arrows(start, np.concatenate([arrow.along for arrow in arrows]))

    @property
    def outlines(self) -> Array:
        """Sides of all support polygons [m], (n, 2, 3)."""
        lines = [shape.outline for shape in self.supports if len(shape.outline) > 1]
        sides = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
        return np.concatenate([NO_LINES, *sides])

    @property
    def origins(self) -> dict[str, Array]:
        """Origins of the frames that are pushed [m], world, (3,)."""
        frames = {name: sensor_frame(self._buffers.robot, name) for name in self.wrenches}
        placements = self._buffers.data.oMi
        return {
            name: np.array((placements[frame.parentJoint] * frame.placement).translation)
            for name, frame in frames.items()
        }


# ------------------------------------------------ camera

VIEW_DIRECTION = np.array([0.66, -0.66, 0.36])
"""From the target to the camera: from the front left, a little from above."""
VIEW_DISTANCE = 2.2
"""Distance of the camera in radii of the target."""
MAX_OFFSET = 1e4
"""Farthest that a scene follows its robot [m]; one that has blown up leaves the picture."""
FIELD_OF_VIEW = 1.0
"""Vertical angle of a picture [rad]."""


@dataclass(frozen=True)
class Camera:
    """Position and target of a camera, world [m]."""

    position: tuple[float, float, float]
    look_at: tuple[float, float, float]
    field_of_view: float = FIELD_OF_VIEW
    """From the lower to the upper edge of the picture [rad]."""

    def moved(self, offset: Array) -> Camera:
        """Return the camera moved by an offset (3,) [m], with the same rotation."""
        x, y, z = (self.position + offset).tolist()
        a, b, c = (self.look_at + offset).tolist()
        return replace(self, position=(x, y, z), look_at=(a, b, c))

    def aim(self, server: viser.ViserServer) -> None:
        """Use this camera for browsers that open the page."""
        server.initial_camera.position = self.position
        server.initial_camera.look_at = self.look_at

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


class SceneOffset:
    """The offset of a scene [m], (3,), with which its robot, or the first, stays in the picture.

    The scene moves, not the camera, which the browser turns and moves at any time.
    """

    def __init__(self, robot: RobotModel, q: Array) -> None:
        self._home = q[: 2 if robot.floating_base else 0].copy()
        self.offset = np.zeros(3)

    def follow(self, q: Array, share: float = 1.0) -> None:
        """Move a share of the way to the horizontal offset of a robot at q (nq,)."""
        there, level = np.zeros(3), len(self._home)
        there[:level] = self._home - q[:level]
        if np.abs(there).max() < MAX_OFFSET:
            self.offset = self.offset + share * (there - self.offset)


def whole_run(cameras: Sequence[Camera]) -> Camera:
    """Return a camera that sees all that the cameras see, from the direction of the first."""
    looked_at = np.array([camera.look_at for camera in cameras])
    lowest, highest = looked_at.min(axis=0), looked_at.max(axis=0)
    away = np.subtract(cameras[0].position, cameras[0].look_at)
    distance = max(np.linalg.norm(np.subtract(c.position, c.look_at)) for c in cameras)
    middle, spread = 0.5 * (lowest + highest), float(np.linalg.norm(highest - lowest))
    x, y, z = (middle + (distance + 0.5 * spread) * away / np.linalg.norm(away)).tolist()
    a, b, c = middle.tolist()
    return Camera((x, y, z), (a, b, c))


# ------------------------------------------------ layers

RGB = tuple[int, int, int]
NO_LINES = np.zeros((0, 2, 3))


def rgb(colour: Colour) -> RGB:
    """Return a colour as three numbers up to 255."""
    r, g, b = (round(255.0 * part) for part in colour[:3])
    return r, g, b


def linear_rgb(colour: Colour) -> RGB:
    """Return a colour for viser's arrows and batched meshes, which take linear colours."""
    r, g, b = (  # from sRGB (IEC 61966-2-1)
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    )
    return rgb((r, g, b, colour[3]))


def opacity(colour: Colour) -> float | None:
    """Return the opacity of a colour for viser: None if opaque."""
    return colour[3] if colour[3] < 1.0 else None


class Switches(MutableMapping[str, bool]):
    """Whether each layer is visible, by name; setting one acts at once.

    Args:
        nodes: the node of each layer.
        on_show: called with the name of a layer that becomes visible.
    """

    def __init__(self, nodes: Mapping[str, Any], on_show: Callable[[str], None]) -> None:
        self._nodes, self._on_show = nodes, on_show

    def __getitem__(self, name: str) -> bool:
        return bool(self._node(name).visible)

    def __setitem__(self, name: str, visible: bool) -> None:
        node = self._node(name)
        if visible and not node.visible:
            self._on_show(name)
        node.visible = bool(visible)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f'layer {name!r} cannot be removed, only hidden')

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def _node(self, name: str) -> Any:
        if name not in self._nodes:
            raise UnknownName('layer', name, self._nodes)
        return self._nodes[name]

    def __repr__(self) -> str:
        return summary(self, **dict(self))


SHAFT_RADIUS, HEAD_RADIUS, HEAD_LENGTH = 0.0025, 0.006, 0.018
"""Of an arrow [m]; half as thick as in RViz, where the robot is seen through them."""
TINTED = ('force', 'slip', 'pair_force', 'constraint_force')
"""Arrows that have the colour of a ghost."""
CLICK_ANGLE = 0.015
"""Between an arrow and a click at it [rad]."""
POINTS_OF_ARROW = 50
"""Points of an arrow whose distance from a click is measured."""


class ArrowLayer:
    """Arrows of one kind: a key of COLOURS, also the name of the node."""

    def __init__(
        self, scene: viser.SceneApi, above: str, kind: str, tint: Colour | None = None
    ) -> None:
        self._node = scene.add_arrows(
            f'{above}/{kind}', NO_LINES, linear_rgb(tint or COLOURS[kind]),
            shaft_radius=SHAFT_RADIUS, head_radius=HEAD_RADIUS, head_length=HEAD_LENGTH,
        )  # fmt: skip

    def show(self, arrows: Arrows) -> None:
        """Draw these."""
        self._node.points = arrows.ends.astype(np.float32)

    def remove(self) -> None:
        """Take them off the page."""
        self._node.remove()


class NumberLabels:
    """What arrows show as a number, at their tips."""

    def __init__(self, scene: viser.SceneApi, above: str) -> None:
        self._scene, self._above = scene, above
        self._labels: list[Any] = []

    def show(self, arrows: Mapping[str, Arrows]) -> None:
        """Label these, by kind."""
        texts = []
        for kind, some in arrows.items():
            scale, unit = UNITS[kind]
            for start, tip in some.ends:
                texts.append((tip, f'{np.linalg.norm(tip - start) / scale:.3g} {unit}'))
        while len(self._labels) < len(texts):
            name = f'{self._above}/{len(self._labels)}'
            self._labels.append(self._scene.add_label(name, '', anchor='bottom-center'))
        for label, (tip, text) in zip(self._labels, texts, strict=False):
            label.position, label.text, label.visible = tip, text, True
        for label in self._labels[len(texts) :]:
            label.visible = False


class LineLayer:
    """Lines of one colour and width [m]."""

    def __init__(self, scene: viser.SceneApi, name: str, colour: Colour, width: float) -> None:
        self._node = scene.add_line_segments(name, NO_LINES, rgb(colour), thickness=width)

    def show(self, ends: Array) -> None:
        """Draw lines between ends (n, 2, 3) [m]."""
        self._node.points = ends.astype(np.float32)

    def paint(self, colour: Colour) -> None:
        """Draw them in another colour."""
        self._node.colors = np.array(rgb(colour), dtype=np.uint8)


PLANE_COLOUR: Colour = (0.42, 0.48, 0.53, 1.0)
"""Darker than most robots, which are light grey, and bluish, as forces and normals are not."""
CELL_COLOUR, SECTION_COLOUR = (122, 137, 150), (150, 164, 176)
"""Of the lines on a plane, 0 to 255."""
GROUND_COLOUR: Colour = (0.28, 0.33, 0.37, 1.0)
"""Of other ground, which is lit."""
SHADOW_OPACITY = 0.45
"""Of shadows on a plane."""
FADE, CELL = 40.0, 0.25
"""Where a plane fades, and the side of its cells [m]."""


def add_ground(scene: viser.SceneApi, path: str, ground: Terrain) -> None:
    """Add the ground in its real shape and the borders of its regions; they never move."""
    if (plane := one_plane(ground)) is not None:
        normal, offset = plane
        xyzw = turned_to(normal[None])[0]
        scene.add_grid(
            f'{path}/plane', plane='xy', infinite_grid=True, cell_size=CELL,
            section_size=4.0 * CELL, cell_color=CELL_COLOUR, section_color=SECTION_COLOUR,
            plane_color=rgb(PLANE_COLOUR), plane_opacity=1.0, fade_distance=FADE,
            shadow_opacity=SHADOW_OPACITY, wxyz=xyzw[[3, 0, 1, 2]], position=offset * normal,
        )  # fmt: skip
    else:  # it would shade itself in stripes: the map of the shadow is too coarse for it
        shape = ground_surface(ground)
        scene.add_mesh_simple(
            f'{path}/surface', shape.vertices, shape.triangles, color=rgb(GROUND_COLOUR),
            flat_shading=True, side='double', cast_shadow=False,
        )  # fmt: skip
    for k, region in enumerate(ground.regions):
        border = LineLayer(scene, f'{path}/region {k}', COLOURS['region'], BORDER_WIDTH)
        border.show(border_lines(ground, region).reshape(-1, 2, 3))


CREASE = np.deg2rad(40.0)
"""Angle between two triangles above which the edge between them is seen."""


@lru_cache(maxsize=256)
def smooth(surface: Surface) -> Surface:
    """Return the surface with corners of their own on both sides of its creases.

    viser shades across the corners that triangles share.
    """
    try:
        import trimesh
    except ImportError as error:
        raise InvalidInput("trimesh is not installed: pip install 'contact_sim[view]'") from error
    mesh = trimesh.Trimesh(surface.vertices, surface.triangles)
    parts = trimesh.graph.smooth_shade(mesh, CREASE, facet_minarea=None)
    return Surface(np.array(parts.vertices), np.array(parts.faces))


class RobotMeshes:
    """All bodies of a robot; one node for all that share a surface and a colour."""

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
            surface, colour = smooth(group[0].surface), group[0].colour
            node = scene.add_batched_meshes_simple(
                f'{name}/{number}', surface.vertices, surface.triangles,
                batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(group), 1)),
                batched_positions=np.zeros((len(group), 3)),
                batched_colors=linear_rgb(colour), opacity=opacity(colour),
                side='double', lod='off',
            )  # fmt: skip
            self._nodes.append((node, slice(first, last)))

    def show(self, joints: Array) -> None:
        """Move the bodies with the joints (njoints, 7)."""
        position, wxyz = compose(joints[self._joints], self._own)
        for node, places in self._nodes:
            node.batched_positions = position[places].astype(np.float32)
            node.batched_wxyzs = wxyz[places].astype(np.float32)


class Centres:
    """The centres of mass and their projections to the ground; red outside of the polygon.

    They are one mesh each: browsers move the mesh of a node in the same way as those of the robot,
    which is later than its frame where they are slow.
    """

    def __init__(self, scene: viser.SceneApi, above: str, count: int) -> None:
        ball, colour = sphere(0.5 * CENTRE_SIZE), COLOURS['centre_of_mass']
        self._balls = scene.add_batched_meshes_simple(
            f'{above}/balls', ball.vertices, ball.triangles,
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (2 * count, 1)),
            batched_positions=np.zeros((2 * count, 3)),
            batched_scales=np.tile([1.0, 0.5], count).astype(np.float32),
            batched_colors=np.tile(linear_rgb(colour), (2 * count, 1)), lod='off',
        )  # fmt: skip
        self._plumbs = [
            LineLayer(scene, f'{above}/{k} plumb', colour, PLUMB_WIDTH) for k in range(count)
        ]

    def show(self, supports: Sequence[SupportShape]) -> None:
        """Draw the centres of a step."""
        colours = [COLOURS['centre_of_mass'] if shape.over else FALLING for shape in supports]
        places = [place for shape in supports for place in (shape.centre, shape.below)]
        self._balls.batched_positions = np.array(places, dtype=np.float32).reshape(-1, 3)
        painted = np.array([linear_rgb(colour) for colour in colours], dtype=np.uint8)
        self._balls.batched_colors = np.repeat(painted.reshape(-1, 3), 2, axis=0)
        for plumb, shape, colour in zip(self._plumbs, supports, colours, strict=True):
            plumb.show(np.array([[shape.centre, shape.below]]))
            plumb.paint(colour)


TRAIL_TIME, TRAIL_WIDTH = 2.0, 0.006
"""How long a slip trail stays [s], and its width [m]."""
MAX_GAP = 0.25
"""Simulated time between two shown steps above which a trail is interrupted [s]."""
MAX_PIECES = 600


class Cones:
    """The friction cones of the contacts that carry a force."""

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
    """The ways along which contacts slipped in the last seconds."""

    def __init__(self, scene: viser.SceneApi, above: str) -> None:
        self._lines = LineLayer(scene, f'{above}/trails', COLOURS['slip'], TRAIL_WIDTH)
        self._pieces: deque[tuple[float, Array]] = deque(maxlen=MAX_PIECES)
        self._time, self._place = np.inf, np.zeros((0, 3))

    def show(self, report: StepReport) -> None:
        """Add the way of every slipping contact since the step that was shown before."""
        contacts, time = report.contacts, report.time
        place = contacts.position.copy()
        known = 0.0 <= time - self._time <= MAX_GAP and place.shape == self._place.shape
        if time < self._time:
            self._pieces.clear()
        if known and time > self._time:
            for k in np.flatnonzero(contacts.mode == SLIP):
                self._pieces.append((time, np.stack([self._place[k], place[k]])))
        while self._pieces and self._pieces[0][0] < time - TRAIL_TIME:
            self._pieces.popleft()
        self._time, self._place = time, place
        self._lines.show(np.array([piece for _, piece in self._pieces]).reshape(-1, 2, 3))


# ------------------------------------------------ the handle that drags a frame

HANDLE_SIZE = 0.15
"""Length of its arrows [m]."""


class DragHandle:
    """Three arrows at a frame of the robot; the robot is dragged with them.

    Events of the browser only move the handle. The thread that draws calls `act`, so that the end
    of a drag never comes before its last motion.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._session = session
        self.frame = next(iter(session.capabilities.frames), '')  # its name; '' without one
        self._pulled = ''
        self._dragged = False
        self._model: pin.Model = None
        self.offset = np.zeros(3)  # origin of the world in the page [m]
        self._gizmo = server.scene.add_transform_controls(
            '/handle', scale=HANDLE_SIZE, disable_rotations=True, depth_test=False, visible=False
        )
        self._gizmo.on_update(self._on_update)

    def show(self, visible: bool) -> None:
        """Show it, or hide it."""
        self._gizmo.visible = visible and bool(self.frame)

    async def _on_update(self, event: Any) -> None:
        if event.phase != 'update':  # of which one may come late
            self._dragged = event.phase == 'start'

    @property
    def dragged(self) -> bool:
        """Whether it is dragged in a browser."""
        return self._dragged and bool(self._gizmo.visible)

    @property
    def acts(self) -> bool:
        """Whether `act` has something to do."""
        return self.dragged or bool(self._pulled)

    def act(self) -> None:
        """Drag the frame to the handle, or let it go."""
        before, self._pulled = self._pulled, self.frame if self.dragged else ''
        if before and before != self._pulled:
            self._session.drag(before, None)
        if self._pulled:
            self._session.drag(self._pulled, (self._gizmo.position - self.offset).tolist())

    def follow(self, robot: RobotModel, q: Array) -> None:
        """Move to the frame at q (nq,), unless the handle is dragged."""
        if self._gizmo.visible and not self._dragged:
            model = robot.pinocchio_model
            if model is not self._model:
                self._model, self._data = model, data_of(model)
            frame = find_frame(model, self.frame)
            pin.forwardKinematics(model, self._data, q)
            origin = (self._data.oMi[frame.parentJoint] * frame.placement).translation
            self._gizmo.position = self.offset + origin
