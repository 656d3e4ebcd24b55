"""Forces and errors of bilateral constraints: topics, arrows, and numbers for ~/solver_state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker

from contact_sim.constraints.resolved import WORLD
from contact_sim.drawing.arrows import HeldPoint
from contact_sim.parameters import Settings
from contact_sim.robot.constraints import (
    Constraint,
    JointCoupling,
    JointLock,
    JointVelocity,
)
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_stamp, set_vector
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.markers import arrow, set_arrows
from contact_sim.ros.settings.constraints import described_constraints
from contact_sim.ros.topics import constraint_topic
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator

Array = NDArray[np.float64]
MakesPublisher = Callable[[type, str], Publisher]


class HeldFrame:
    """A frame that a constraint holds: constraints/<name>/wrench, and an arrow.

    Force and torque on the frame are about its origin and in its axes, where it is at the end of
    the step; zeros while the constraint does not hold.

    Args:
        robot: whose frame.
        constraint: an anchor or a loop.
        settings: frame ids.
        number: of the arrow.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self, robot: RobotModel, constraint: Constraint, settings: Settings, number: int,
        publisher: MakesPublisher,
    ) -> None:  # fmt: skip
        self._held = HeldPoint(robot, constraint)
        name, common = self._held.frame, settings['']
        self._message = WrenchStamped()
        self._message.header.frame_id = (
            common.odom_frame if name == WORLD else common.frame_prefix + name
        )
        self._marker = arrow('constraint_force', number, common.odom_frame)
        self._publisher = publisher(WrenchStamped, constraint_topic(constraint.name, 'wrench'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the wrench of a step; None: the constraint does not hold."""
        rotation, _, point, force, torque = self._held.acting(report, constraint)
        wrench, turned = self._message.wrench, rotation.T @ force
        set_stamp(self._message.header.stamp, report.time)
        set_vector(wrench.force, turned)
        set_vector(wrench.torque, rotation.T @ torque + np.cross(point, turned))
        self._publisher.publish(self._message)

    def marker(self, report: StepReport, constraint: Constraint | None) -> Marker:
        """Return the force at the point that is held, as an arrow."""
        set_stamp(self._marker.header.stamp, report.time)
        set_arrows([self._marker], self._held.arrow(report, constraint))
        return self._marker


class HeldJoints:
    """Joints that a constraint holds or drives: constraints/<name>/effort.

    The effort on each of them [N m or N]; zeros while the constraint does not hold.

    Args:
        constraint: of joints.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(self, constraint: Constraint, publisher: MakesPublisher) -> None:
        self._message = JointState(name=list(constraint.holds))
        self._publisher = publisher(JointState, constraint_topic(constraint.name, 'effort'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the efforts of a step; None: the constraint does not hold."""
        effort = [0.0] * len(self._message.name)
        if constraint is not None:
            effort[0] = float(report.constraints[constraint.name].force[0])
        if isinstance(constraint, JointCoupling):
            effort[1] = -constraint.ratio * effort[0]  # h = q - ratio * q_leader - offset
        set_stamp(self._message.header.stamp, report.time)
        self._message.effort = effort
        self._publisher.publish(self._message)


class ConstraintOutputs:
    """What is published of the constraints that are described, in force or not.

    Args:
        sim: in which they hold.
        settings: constraints and frame ids.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(self, sim: Simulator, settings: Settings, publisher: MakesPublisher) -> None:
        self._sim = sim
        self._frames: dict[str, HeldFrame] = {}
        self._joints: dict[str, HeldJoints] = {}
        for one in described_constraints(settings):
            if isinstance(one, JointLock | JointCoupling | JointVelocity):
                self._joints[one.name] = HeldJoints(one, publisher)
            else:
                number = len(self._frames)
                held = HeldFrame(sim.robot, one, settings, number, publisher)
                self._frames[one.name] = held

    def publish(self, report: StepReport) -> None:
        """Publish all wrenches and efforts of the last step."""
        holding = self._holding()
        for name, frame in self._frames.items():
            frame.publish(report, holding.get(name))
        for name, joints in self._joints.items():
            joints.publish(report, holding.get(name))

    def markers(self, report: StepReport) -> list[Marker]:
        """Return an arrow for the force on every frame, in the last step."""
        holding = self._holding()
        return [frame.marker(report, holding.get(name)) for name, frame in self._frames.items()]

    def _holding(self) -> dict[str, Constraint]:
        return {one.name: one for one in self._sim.constraints}


def drift_numbers(names: Iterable[str], report: StepReport) -> Iterator[tuple[str, float]]:
    """Yield |h| and |ḣ| after a step with their labels; zeros for what does not hold."""
    for name in names:
        state = report.constraints.get(name)
        yield f'constraints.{name}.drift', state.drift if state else 0.0
        yield f'constraints.{name}.drift_rate', state.drift_rate if state else 0.0
