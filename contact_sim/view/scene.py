"""A robot and its ground in the browser, with what acts on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.arrows import Arrows, HeldPoint, holds_frame, pair_arrows, push_arrows
from contact_sim.drawing.bodies import bodies_of, tinted
from contact_sim.drawing.style import Colour
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.report import StepReport
from contact_sim.view.camera import Camera, framing
from contact_sim.view.contacts import Cones, Trails
from contact_sim.view.ground import GroundShape
from contact_sim.view.layers import ArrowLayer, Switches
from contact_sim.view.moment import NO_WRENCHES, Moment, Ways
from contact_sim.view.robot import RobotMeshes
from contact_sim.view.support import Centres, Polygons

Array = NDArray[np.float64]
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
        self._points: dict[str, HeldPoint] = {}

    def arrows(self, report: StepReport) -> Arrows:
        """Return one arrow for each that holds."""
        found = [Arrows(np.zeros((0, 3)), np.zeros((0, 3)))]
        for constraint in filter(holds_frame, report.constraints.described):
            name = constraint.holds[0]
            if name not in self._points:
                self._points[name] = HeldPoint(self._robot, constraint)
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
