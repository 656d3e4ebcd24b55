"""Forces of bilateral constraints: topics and arrows."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker

from contact_sim.messages.held import HeldFrame, held_frame_id, holds_joints, joint_efforts
from contact_sim.messages.topics import constraint_topic
from contact_sim.parameters import Settings
from contact_sim.robot.constraints import Constraint
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_stamp, set_vector
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.markers import METRES_PER_NEWTON, arrow, set_arrow
from contact_sim.ros.settings.constraints import described_constraints
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator

MakesPublisher = Callable[[type, str], Publisher]


class HeldFrameOutput:
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
        self._frame = HeldFrame(robot, constraint)
        self._message = WrenchStamped()
        self._message.header.frame_id = held_frame_id(constraint, settings)
        self._marker = arrow('constraint_force', number, settings[''].odom_frame)
        self._publisher = publisher(WrenchStamped, constraint_topic(constraint.name, 'wrench'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the wrench of a step; None: the constraint does not hold."""
        force, torque = self._frame.wrench(report, constraint)
        set_stamp(self._message.header.stamp, report.time)
        set_vector(self._message.wrench.force, force)
        set_vector(self._message.wrench.torque, torque)
        self._publisher.publish(self._message)

    def marker(self, report: StepReport, constraint: Constraint | None) -> Marker:
        """Return the force at the point that is held, as an arrow."""
        placement, point, force, _ = self._frame.acting(report, constraint)
        set_stamp(self._marker.header.stamp, report.time)
        set_arrow(self._marker, placement.act(point), METRES_PER_NEWTON * force)
        return self._marker


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
            if holds_joints(one):
                self._joints[one.name] = HeldJointsOutput(one, publisher)
            else:
                number = len(self._frames)
                held = HeldFrameOutput(sim.robot, one, settings, number, publisher)
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
