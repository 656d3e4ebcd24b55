"""A step as the layers of a scene ask for it: each thing computed once, and only if asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.arrows import Arrows, contact_arrows
from contact_sim.drawing.support import SupportShape, SupportShapes
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import parts_of
from contact_sim.sensors.frames import frame_called
from contact_sim.sensors.part_report import PartReport
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
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
        frames = {name: frame_called(self._robot, name) for name in self.wrenches}
        placements = self._data.oMi
        return {
            name: np.array((placements[frame.parentJoint] * frame.placement).translation)
            for name, frame in frames.items()
        }
