"""Friction cones and slip trails in a scene."""

from __future__ import annotations

from collections import deque

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.drawing.cones import cone_triangles, turned_to
from contact_sim.drawing.style import COLOURS, SHAFT_WIDTH
from contact_sim.simulation.contact_report import ContactReport
from contact_sim.simulation.report import SLIP, StepReport
from contact_sim.view.layers import LineLayer, linear_rgb, opacity

Array = NDArray[np.float64]
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
