"""The page of a recording: one robot or two, and the panel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.replay.timeline import Moment
from contact_sim.robot.model import RobotModel
from contact_sim.view.camera import Camera, Following
from contact_sim.view.page import keep_drawing
from contact_sim.view.playback import Pair, Playback
from contact_sim.view.recording_panel import RecordingPanel
from contact_sim.view.scene import Scene

Array = NDArray[np.float64]
GHOST = (0.12, 0.56, 0.90, 0.45)
"""Colour of the robot under another contact model."""
BESIDE = 0.9
"""Distance of robots side by side, in distances from which the camera sees one."""


class Stage:
    """The recorded robot and, beside it or as a ghost in it, that under another model.

    Args:
        server: of the page.
        robot: what is shown.
    """

    def __init__(self, server: viser.ViserServer, robot: RobotModel) -> None:
        self._server, self._robot = server, robot
        self._scenes: dict[str, tuple[Scene, object]] = {}
        self._following: Following | None = None
        self._apart = 0.0

    def show(self, pair: Pair, side_by_side: bool, follow: bool = False) -> bool:
        """Show a moment of one run, or of two; return whether scenes were made for that."""
        q = pair.moment.report.q
        if self._following is None:
            self._following = Following(self._robot, q)
        if follow:
            self._following.look_after(q)
        moments = {'scene': pair.moment} | ({'other': pair.other} if pair.other else {})
        made = [self._show(name, moment) for name, moment in moments.items()]
        gone = self._scenes.keys() - moments.keys()
        for name in gone:
            self._scenes.pop(name)[0].close()
        self._place(pair.moment, side_by_side, self._following.offset)
        return any(made) or bool(gone)

    def look(self, pair: Pair) -> Camera:
        """Let browsers that open the page see all of the robots; return from where."""
        scenes = self.scenes()
        camera = scenes[0].framing(pair.moment.report)
        camera = camera.moved(0.5 * (scenes[-1].offset - scenes[0].offset))
        self._server.initial_camera.position = camera.position
        self._server.initial_camera.look_at = camera.look_at
        return camera

    def scenes(self) -> list[Scene]:
        """Return the scenes that there are: first that of the recorded run."""
        return [scene for scene, _ in self._scenes.values()]

    def _show(self, name: str, moment: Moment) -> bool:
        there = self._scenes.get(name)
        new = there is None or there[1] is not moment.ground
        if new:
            if there is not None:
                there[0].close()
            tint = GHOST if name == 'other' else None
            scene = Scene(self._server, self._robot, moment.ground, prefix=name, tint=tint)
            self._scenes[name] = scene, moment.ground
        wrenches = {frame: np.array(wrench) for frame, wrench in moment.wrenches.items()}
        self._scenes[name][0].show(moment.report, wrenches)
        return new

    def _place(self, moment: Moment, side_by_side: bool, offset: Array) -> None:
        """Put the robots where they belong."""
        first, *others = self.scenes()
        first.offset = offset
        for other in others:
            if side_by_side and not self._apart:
                camera = first.framing(moment.report)
                away = np.linalg.norm(np.subtract(camera.position, camera.look_at))
                self._apart = BESIDE * float(away)
            other.offset = offset + [0.0, self._apart if side_by_side else 0.0, 0.0]


class RecordingPage:
    """Scene and panel of a recording.

    Args:
        server: of the page.
        playback: what is shown.
        side_by_side: whether the robots are beside each other at the beginning.
    """

    def __init__(
        self, server: viser.ViserServer, playback: Playback, side_by_side: bool = False
    ) -> None:
        self._server, self._playback = server, playback
        server.scene.configure_default_lights(cast_shadow=False)
        self.panel = RecordingPanel(server, playback, side_by_side)
        self.stage = Stage(server, playback.timeline.robot)
        self._seen: tuple[object, ...] = ()

    def draw(self) -> Pair:
        """Show what there is to see now, and return it."""
        pair, beside = self._playback.shown(), self.panel.side_by_side.value
        follows = self.panel.follows
        seen = pair.moment, pair.other, beside, follows
        if seen != self._seen:
            if self.stage.show(pair, beside, follows):
                self.stage.look(pair)
                self.panel.of_scenes(*(scene.visible for scene in self.stage.scenes()))
            self._seen = seen
        self.panel.update(pair)
        return pair

    def run(self, wanted: Callable[[], bool]) -> None:
        """Draw as long as `wanted` says so; time goes on while somebody has the page open."""
        keep_drawing(self._server, self._draw_after, wanted)

    def _draw_after(self, seconds: float) -> None:
        self._playback.advance(seconds)
        self.draw()
