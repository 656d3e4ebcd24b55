"""Support polygons and centres of mass in a scene, of every robot in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.drawing.style import (
    CENTRE_SIZE,
    COLOURS,
    FALLING,
    PLUMB_WIDTH,
    POLYGON_WIDTH,
)
from contact_sim.drawing.support import SupportShape
from contact_sim.view.layers import LineLayer, rgb

Array = NDArray[np.float64]


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
