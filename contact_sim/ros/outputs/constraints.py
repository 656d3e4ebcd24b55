"""Forces of bilateral constraints: topics and arrows."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState

from contact_sim.drawing.arrows import HeldPoint, holds_frame
from contact_sim.messages.held import held_frame_id, held_wrench, joint_efforts
from contact_sim.messages.markers import Marker, held_markers
from contact_sim.messages.topics import constraint_topic
from contact_sim.parameters import Settings
from contact_sim.robot.constraints import Constraint
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_stamp, set_vector
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.settings.constraints import described_constraints
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator

MakesPublisher = Callable[[type, str], Publisher]


class HeldFrameOutput:
    """A frame that a constraint holds: constraints/<name>/wrench.

    Force and torque on the frame are about its origin and in its axes, where it is at the end of
    the step; zeros while the constraint does not hold.

    Args:
        robot: whose frame.
        constraint: an anchor or a loop.
        settings: frame ids.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self, robot: RobotModel, constraint: Constraint, settings: Settings,
        publisher: MakesPublisher,
    ) -> None:  # fmt: skip
        self.point = HeldPoint(robot, constraint)
        self._message = WrenchStamped()
        self._message.header.frame_id = held_frame_id(constraint, settings)
        self._publisher = publisher(WrenchStamped, constraint_topic(constraint.name, 'wrench'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the wrench of a step; None: the constraint does not hold."""
        wrench = held_wrench(self.point, report, constraint)
        set_stamp(self._message.header.stamp, report.time)
        set_vector(self._message.wrench.force, wrench[:3])
        set_vector(self._message.wrench.torque, wrench[3:])
        self._publisher.publish(self._message)


class HeldJointsOutput:
    """Joints that a constraint holds or drives: constraints/<name>/effort.

    The effort on each of them [N m or N]; zeros while the constraint does not hold.

    Args:
        constraint: of joints.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(self, constraint: Constraint, publisher: MakesPublisher) -> None:
        self._constraint = constraint
        self._message = JointState(name=list(constraint.holds))
        self._publisher = publisher(JointState, constraint_topic(constraint.name, 'effort'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the efforts of a step; None: the constraint does not hold."""
        set_stamp(self._message.header.stamp, report.time)
        self._message.effort = joint_efforts(report, self._constraint, constraint)
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
        self._frames: dict[str, HeldFrameOutput] = {}
        self._joints: dict[str, HeldJointsOutput] = {}
        for one in described_constraints(settings):
            if holds_frame(one):
                held = HeldFrameOutput(sim.robot, one, settings, publisher)
                self._frames[one.name] = held
            else:
                self._joints[one.name] = HeldJointsOutput(one, publisher)

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
        held = ((frame.point, holding.get(name)) for name, frame in self._frames.items())
        return held_markers(held, report)

    def _holding(self) -> dict[str, Constraint]:
        return {one.name: one for one in self._sim.constraints}
