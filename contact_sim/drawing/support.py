"""The support polygon, the centre of mass, and where it is over the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.robot.model import RobotModel
from contact_sim.sensors.part_report import Report
from contact_sim.support.geometry import distance_inside, support_polygon

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SupportShape:
    """What a robot stands on in a step."""

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
    """The support of a robot, step by step; not to be asked by two threads at once.

    Args:
        robot: whose support.
        terrain: what it stands on.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain) -> None:
        self._model, self._terrain = robot.pinocchio_model, terrain
        self._data = self._model.createData()

    def of(self, report: Report) -> SupportShape:
        """Return the support at the end of a step."""
        contacts = report.contacts
        centre = np.array(pin.centerOfMass(self._model, self._data, report.q))
        corners = support_polygon(contacts.position[contacts.mode > 0], contacts.normal)
        outline = np.array([*corners, corners[0]] if len(corners) > 2 else [*corners])
        over = bool(distance_inside(corners[:, :2], centre[:2]) >= 0.0)
        return SupportShape(outline.reshape(-1, 3), centre, self._below(centre), over)

    def _below(self, point: Array) -> Array:
        height = self._terrain.height(point[0], point[1])
        return point if np.isnan(height) else np.array([point[0], point[1], height])
