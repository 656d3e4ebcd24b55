"""What the node says about one robot, in the namespace of that robot."""

from __future__ import annotations

from collections.abc import Callable

from nav_msgs.msg import Odometry

from contact_sim.messages.frames import base_frame_id
from contact_sim.messages.topics import own_topic
from contact_sim.parameters import Settings
from contact_sim.robot.parts import RobotPart
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.links import LinkOutputs
from contact_sim.ros.outputs.messages import OdometryMessage
from contact_sim.ros.outputs.sensors import SensorOutputs
from contact_sim.sensors.part_report import PartReport
from contact_sim.simulation.report import StepReport


class RobotOutputs:
    """Odometry, joints, sensors and links of a robot that is alone or one of several.

    Args:
        part: which robot.
        report: of the step before the first one that is observed.
        settings: frames and sensors.
        node: name of the node.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self,
        part: RobotPart,
        report: StepReport,
        settings: Settings,
        node: str,
        publisher: Callable[[type, str], Publisher],
    ) -> None:
        def own(kind: type, topic: str) -> Publisher:
            return publisher(kind, own_topic(part.name, topic, node))

        common, robot = settings[''], part.robot
        base = base_frame_id(part, settings)
        self._part, self._report = part, PartReport(report, part)
        self._odom_message = OdometryMessage(robot, common.odom_frame, base)
        self._odom = own(Odometry, 'odom')
        self._sensors = SensorOutputs(part, self._report, settings, own)
        self._links = LinkOutputs(part, settings, own)

    def configure(self, settings: Settings) -> None:
        """Have other errors of the sensors from the next step on."""
        self._sensors.configure(settings)

    def observe(self, report: StepReport) -> None:
        """Take the samples of a step of all robots, published or not."""
        self._report = PartReport(report, self._part)
        self._sensors.observe(self._report)

    def odometry(self) -> Odometry:
        """Return odometry after the step that was observed last, for `publish_odometry`, too."""
        return self._odom_message.fill(self._report)

    def publish_odometry(self) -> None:
        """Publish what `odometry` returned last."""
        self._odom.publish(self._odom_message.message)

    def publish(self, due: set[str]) -> None:
        """Publish the sensors that are due, named as in `publish_rate`, of that step."""
        report = self._report
        if 'joint_states' in due:
            self._sensors.publish('joints', report)
        if 'imu' in due:
            self._sensors.publish('imu', report)
        if 'wrenches' in due:
            self._sensors.publish('forces', report)
            self._sensors.publish('contacts', report)
            self._links.publish(report)
