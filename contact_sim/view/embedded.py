"""A run as a moving scene inside another page: a notebook, or an example of the gallery.

    MovingScene(sim.robot, sim.terrain, reports[::33])

at the end of a cell shows it there.
"""

from __future__ import annotations

import html
import importlib.util
import tempfile
from collections.abc import Sequence
from pathlib import Path

from contact_sim.arguments import checked
from contact_sim.collision.terrain import Terrain
from contact_sim.errors import InvalidInput
from contact_sim.numbers import count, positive
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.report import StepReport
from contact_sim.view.camera import whole_run

MISSING = "<p>A moving scene is shown here where viser is: pip install 'contact_sim[view]'</p>"


class MovingScene:
    """A run that plays where it is displayed; nothing is made before that.

    Args:
        robot: what is shown.
        ground: `Simulator.terrain`.
        reports: one per picture.
        fps: pictures per second.
        height: of the scene in the page [pixels].

    Raises:
        InvalidInput: no report, or one that is none.
    """

    @checked
    def __init__(
        self,
        robot: RobotModel,
        ground: Terrain,
        reports: Sequence[StepReport],
        fps: float = 30.0,
        height: int = 420,
    ) -> None:
        if not len(reports):
            raise InvalidInput('reports: there is none, expected one per picture')
        self._robot, self._ground, self._reports = robot, ground, list(reports)
        self._fps, self._height = positive('fps', fps, '1/s'), count('height', height)

    def page(self) -> str:
        """Return a self-contained page with the scene.

        Raises:
            InvalidInput: viser is not installed.
        """
        if importlib.util.find_spec('viser') is None:
            raise InvalidInput("a moving scene needs viser: pip install 'contact_sim[view]'")
        from contact_sim.view.saved import quiet_server, write_page
        from contact_sim.view.scene import Scene

        with quiet_server() as server, tempfile.TemporaryDirectory() as folder:
            scene = Scene(server, self._robot, self._ground)
            scene.visible['normals'] = False  # of every place that might touch
            camera = whole_run([scene.framing(report) for report in self._reports])
            server.initial_camera.position = camera.position
            server.initial_camera.look_at = camera.look_at
            pictures = map(scene.show, self._reports)
            path = write_page(Path(folder, 'scene.html'), server, pictures, self._fps)
            return path.read_text(encoding='utf-8')

    def _repr_html_(self) -> str:
        if importlib.util.find_spec('viser') is None:
            return MISSING
        return (
            f'<iframe srcdoc="{html.escape(self.page())}" loading="lazy" width="100%" '
            f'height="{self._height}" style="border: 0" title="moving scene"></iframe>'
        )
