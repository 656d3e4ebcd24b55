"""One page: the scene and the panel of a session, drawn again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.contact_models import contact_models
from contact_sim.drawing.arrows import contact_arrows
from contact_sim.drawing.style import Colour
from contact_sim.simulation.report import StepReport
from contact_sim.view.camera import Following
from contact_sim.view.feed import PERIOD
from contact_sim.view.layers import ArrowLayer
from contact_sim.view.panel import Panel
from contact_sim.view.scene import Scene
from contact_sim.view.session import Session, Shown

Array = NDArray[np.float64]
GLIDE = 0.2
"""Share of the way to the robot that the picture goes at a time."""
NOBODY = 0.1
"""Wall seconds between two looks whether somebody has opened the page."""
SHADOW_COLOURS: tuple[Colour, ...] = (
    (0.12, 0.56, 0.90, 1.0), (0.18, 0.62, 0.27, 1.0), (0.68, 0.24, 0.79, 1.0),
    (0.09, 0.67, 0.67, 1.0), (0.90, 0.60, 0.02, 1.0), (0.38, 0.30, 0.86, 1.0),
    (0.55, 0.37, 0.24, 1.0), (0.90, 0.28, 0.50, 1.0),
)  # fmt: skip
"""Of the forces under each contact model, in the order of `contact_models`."""


class Page:
    """Scene and panel of a session.

    Args:
        server: of the page.
        session: what is shown, and what the panel acts on.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._server, self._session = server, session
        server.scene.configure_default_lights(cast_shadow=False)
        self._panel = Panel(server, session)
        self._shadows: dict[str, ShadowForces] = {}
        self._world: tuple[object, object] = session.robot, session.ground
        self._drawn: StepReport | None = None
        self._scene = self._made_scene(session.latest())

    def draw(self) -> None:
        """Show the newest step."""
        shown, session = self._session.latest(), self._session
        if self._world[0] is not session.robot or self._world[1] is not session.ground:
            self._world = session.robot, session.ground
            self._scene.close()
            self._scene = self._made_scene(shown)
        self._follow(shown)
        if shown.report is not self._drawn:
            self._drawn = shown.report
            with np.errstate(over='ignore'):  # a robot that has blown up has no place in float32
                self._scene.show(shown.report, shown.wrenches)
                self._show_shadows(shown)
        self._panel.update(shown)

    def _made_scene(self, shown: Shown) -> Scene:
        """Return a scene of the robot and the ground of now, and look at it."""
        scene = Scene(self._server, self._session.robot, self._session.ground)
        self._following = Following(self._session.robot, shown.report.q)
        camera = scene.framing(shown.report)
        self._server.initial_camera.position = camera.position
        self._server.initial_camera.look_at = camera.look_at
        self._server.initial_camera.fov = camera.field_of_view
        self._panel.of_scene(scene)
        return scene

    def _follow(self, shown: Shown) -> None:
        """Move what is in the picture with the robot, but not under a hand that draws at it."""
        if self._panel.follows:
            self._following.look_after(shown.report.q, GLIDE)
        offset = self._following.offset
        self._scene.offset = self._panel.handle.offset = offset
        for shadow in self._shadows.values():
            shadow.offset = offset

    def run(self, wanted: Callable[[], bool]) -> None:
        """Draw as long as `wanted` says so, while somebody has the page open."""
        keep_drawing(self._server, lambda seconds: self.draw(), wanted)

    def _show_shadows(self, shown: Shown) -> None:
        """Draw the forces under other models, each in a colour of its own."""
        for name, report in shown.shadows.items():
            if name not in self._shadows:
                self._shadows[name] = ShadowForces(self._server.scene, name)
            self._shadows[name].show(report)
        for name in self._shadows.keys() - shown.shadows.keys():
            self._shadows.pop(name).close()


def keep_drawing(
    server: viser.ViserServer, draw: Callable[[float], object], wanted: Callable[[], bool]
) -> None:
    """Draw once, and then as long as `wanted` says so, while somebody has the page open.

    Args:
        server: of the page.
        draw: called with the wall time since it was called before [s]; 0 after a time without
            anybody.
        wanted: whether to go on.
    """
    draw(0.0)
    last = None
    while wanted():
        begin = time.perf_counter()
        if server.get_clients():
            draw(0.0 if last is None else begin - last)
            last = begin
            time.sleep(max(0.0, begin + PERIOD - time.perf_counter()))
        else:
            last = None
            time.sleep(NOBODY)


class ShadowForces:
    """The forces in the same step under another contact model, in a colour of their own."""

    def __init__(self, scene: viser.SceneApi, model: str) -> None:
        self._frame = scene.add_frame(f'/shadow_forces/{model}', show_axes=False)
        self._arrows = ArrowLayer(scene, f'/shadow_forces/{model}', 'force', colour_of(model))

    def show(self, report: StepReport) -> None:
        """Draw those of the step under this model."""
        self._arrows.show(contact_arrows(report.contacts)['force'])

    @property
    def offset(self) -> Array:
        """Where the origin of their world is in the page [m], (3,); can be set."""
        return np.array(self._frame.position)

    @offset.setter
    def offset(self, offset: Array) -> None:
        self._frame.position = offset

    def close(self) -> None:
        """Take them off the page."""
        self._frame.remove()


def colour_of(model: str) -> Colour:
    """Return the colour of the forces under a contact model."""
    names = contact_models()
    place = names.index(model) if model in names else 0
    return SHADOW_COLOURS[place % len(SHADOW_COLOURS)]
