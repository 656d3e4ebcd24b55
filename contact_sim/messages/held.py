"""What bilateral constraints do to the frames and joints that they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.constraints.resolved import WORLD
from contact_sim.drawing.arrows import HeldPoint
from contact_sim.parameters import Settings
from contact_sim.robot.constraints import Constraint, JointCoupling
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]


def held_frame_id(constraint: Constraint, settings: Settings) -> str:
    """Return the frame id of the frame that a constraint holds."""
    name, common = constraint.holds[0], settings['']
    return str(common.odom_frame if name == WORLD else common.frame_prefix + name)


def held_wrench(point: HeldPoint, report: StepReport, constraint: Constraint | None) -> Array:
    """Return force [N] and torque [N m] on a frame about its origin, in its axes, shape (6,).

    Where the frame is at the end of the step; None: the constraint does not hold.
    """
    rotation, _, where, force, torque = point.acting(report, constraint)
    turned = rotation.T @ force
    return np.concatenate([turned, rotation.T @ torque + np.cross(where, turned)])


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
