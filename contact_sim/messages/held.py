"""What bilateral constraints do to the frames and joints that they hold."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.constraints.resolved import WORLD
from contact_sim.parameters import Settings
from contact_sim.robot.constraints import (
    ORIGIN,
    Constraint,
    JointCoupling,
    JointLock,
    JointVelocity,
)
from contact_sim.robot.model import RobotModel
from contact_sim.sensors.frames import Frames, frame_called
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]


def holds_joints(constraint: Constraint) -> bool:
    """Return whether a constraint holds or drives joints, not frames."""
    return isinstance(constraint, JointLock | JointCoupling | JointVelocity)


def held_frame_id(constraint: Constraint, settings: Settings) -> str:
    """Return the frame id of the frame that a constraint holds."""
    name, common = constraint.holds[0], settings['']
    return str(common.odom_frame if name == WORLD else common.frame_prefix + name)


class HeldFrame:
    """Force and torque of an anchor or a loop on the frame that it holds.

    Args:
        robot: whose frame.
        constraint: an anchor or a loop.
    """

    def __init__(self, robot: RobotModel, constraint: Constraint) -> None:
        self._frames = Frames(robot, [frame_called(robot, constraint.holds[0])])

    def wrench(self, report: StepReport, constraint: Constraint | None) -> tuple[Array, Array]:
        """Return force [N] and torque [N m] about the frame's origin, in its axes, each (3,).

        Where the frame is at the end of the step; None: the constraint does not hold.
        """
        placement, point, force, torque = self.acting(report, constraint)
        turned = placement.rotation.T @ force
        return turned, placement.rotation.T @ torque + np.cross(point, turned)

    def acting(
        self, report: StepReport, constraint: Constraint | None
    ) -> tuple[pin.SE3, Array, Array, Array]:
        """Return where the frame is, the point in its axes, force and torque there in world axes.

        Arrays of shape (3,) [m], [N], [N m].
        """
        rows, point = np.zeros(6), np.zeros(3)
        if constraint is not None:
            force = report.constraints[constraint.name].force
            rows[: len(force)] = force
            point[:] = getattr(constraint, 'point', ORIGIN)
        return self._frames.placements(report.q)[0], point, rows[:3], rows[3:]


def joint_efforts(
    report: StepReport, described: Constraint, constraint: Constraint | None
) -> list[float]:
    """Return the effort on each joint that a constraint holds or drives [N m or N].

    Zeros where it does not hold (None); `described` says which joints there are.
    """
    effort = [0.0] * len(described.holds)
    if constraint is not None:
        effort[0] = float(report.constraints[constraint.name].force[0])
    if isinstance(constraint, JointCoupling):
        effort[1] = -constraint.ratio * effort[0]  # h = q - ratio * q_leader - offset
    return effort
