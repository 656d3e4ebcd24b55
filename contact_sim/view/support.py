"""Support polygons and centres of mass in a scene, of every robot in it."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.style import (
    CENTRE_SIZE,
    COLOURS,
    FALLING,
    PLUMB_WIDTH,
    POLYGON_WIDTH,
)
from contact_sim.drawing.support import SupportShapes
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import parts_of
from contact_sim.sensors.part_report import PartReport
from contact_sim.simulation.report import StepReport
from contact_sim.view.layers import LineLayer, rgb

Array = NDArray[np.float64]


class Polygons:
    """The support polygons.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
        robot: all robots.
        ground: what they stand on.
    """

    def __init__(
        self, scene: viser.SceneApi, above: str, robot: RobotModel, ground: Terrain
    ) -> None:
        self._parts = [(part, SupportShapes(part.robot, ground)) for part in parts_of(robot)]
        colour = COLOURS['support_polygon']
        self._lines = LineLayer(scene, f'{above}/outlines', colour, POLYGON_WIDTH)

    def show(self, report: StepReport) -> None:
        """Draw the polygons of a step."""
        outlines = [shapes.of(PartReport(report, part)).outline for part, shapes in self._parts]
        sides = [np.stack([line[:-1], line[1:]], axis=1) for line in outlines if len(line) > 1]
        self._lines.show(np.concatenate([np.zeros((0, 2, 3)), *sides]))


class Centres:
    """The centres of mass, and where they are over the ground; red outside of the polygon.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
        robot: all robots.
        ground: what they stand on.
    """

    def __init__(
        self, scene: viser.SceneApi, above: str, robot: RobotModel, ground: Terrain
    ) -> None:
        colour = COLOURS['centre_of_mass']
        self._parts = [
            (
                part,
                SupportShapes(part.robot, ground),
                scene.add_icosphere(f'{above}/{k}', 0.5 * CENTRE_SIZE, color=rgb(colour)),
                scene.add_icosphere(f'{above}/{k} below', 0.25 * CENTRE_SIZE, color=rgb(colour)),
                LineLayer(scene, f'{above}/{k} plumb', colour, PLUMB_WIDTH),
            )
            for k, part in enumerate(parts_of(robot))
        ]

    def show(self, report: StepReport) -> None:
        """Draw the centres of a step."""
        for part, shapes, centre, below, plumb in self._parts:
            shape = shapes.of(PartReport(report, part))
            colour = COLOURS['centre_of_mass'] if shape.over else FALLING
            centre.position, below.position = shape.centre, shape.below
            plumb.show(np.array([[shape.centre, shape.below]]))
            centre.color = below.color = rgb(colour)
            plumb.paint(colour)
