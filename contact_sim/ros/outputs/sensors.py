"""What the sensors tell, on the usual topics, and the ground truth beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Int16MultiArray

from contact_sim.messages.frames import imu_frame_id, wrench_frame_ids
from contact_sim.messages.told import SETTINGS, SensorLines, exact
from contact_sim.messages.topics import GROUND_TRUTH, wrench_topic
from contact_sim.parameters import Settings
from contact_sim.robot.parts import RobotPart
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.messages import (
    FootContactsMessage,
    ImuMessage,
    JointStateMessage,
    WrenchMessages,
)
from contact_sim.sensors import Imu as ImuSensor
from contact_sim.sensors.part_report import Report


class SensorTopics:
    """Messages and publishers of all sensors: of what they tell, or of what is true.

    Args:
        part: whose sensors.
        settings: frames.
        prefix: of the topics.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self,
        part: RobotPart,
        settings: Settings,
        prefix: str,
        publisher: Callable[[type, str], Publisher],
    ) -> None:
        robot, feet = part.robot, part.robot.feet
        joints, contacts = JointStateMessage(robot), FootContactsMessage([f.name for f in feet])
        self._imu = ImuMessage(imu_frame_id(part, settings))
        forces = WrenchMessages(wrench_frame_ids(part, settings, feet))
        imu_topic = 'imu' if prefix else 'imu/data'
        self._publishers = {
            'joints': [publisher(JointState, f'{prefix}joint_states')],
            'imu': [publisher(Imu, f'{prefix}{imu_topic}')],
            'forces': [
                publisher(WrenchStamped, f'{prefix}{wrench_topic(foot.name)}') for foot in feet
            ],
            'contacts': [publisher(Int16MultiArray, f'{prefix}foot_contacts')],
        }
        self._fill: dict[str, Callable[[float, Any], Sequence[Any]]] = {
            'joints': lambda time, values: [joints.fill(time, values)],
            'imu': lambda time, values: [self._imu.fill(time, values)],
            'forces': forces.fill,
            'contacts': lambda _, values: [contacts.fill(values)],
        }

    def set_imu(self, sensor: ImuSensor) -> None:
        """State the covariances of the IMU."""
        self._imu.set_sensor(sensor)

    def have_listener(self, kind: str) -> bool:
        """Return whether anybody listens to a sensor, a field of RobotSensors."""
        return any(publisher.has_listener() for publisher in self._publishers[kind])

    def publish(self, kind: str, time: float, values: Any) -> None:
        """Publish the values of a sensor at simulated time [s]."""
        messages = self._fill[kind](time, values)
        for publisher, message in zip(self._publishers[kind], messages, strict=True):
            publisher.publish(message)


class SensorOutputs:
    """Sensors and their topics. Ground truth is published beside what they tell.

    Of the truth, what nobody listens to is not sent.

    Args:
        part: whose sensors.
        report: of the step before the first one that is shown.
        settings: of all sensors.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self,
        part: RobotPart,
        report: Report,
        settings: Settings,
        publisher: Callable[[type, str], Publisher],
    ) -> None:
        self._part, self._last = part, report
        self._told, self._true = (
            SensorTopics(part, settings, prefix, publisher) for prefix in ('', GROUND_TRUTH)
        )
        self._in_force: list[Any] = []
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Have other errors from the next step on; samples under way are lost where any differ."""
        wanted = [settings[prefix] for prefix in SETTINGS] + [settings[''].seed]
        if wanted == self._in_force:
            return
        self._in_force = wanted
        self._lines = SensorLines(self._part, settings)
        imu = self._lines.sensors.imu
        self._told.set_imu(imu)
        self._true.set_imu(exact(imu))
        self.observe(self._last)

    def observe(self, report: Report) -> None:
        """Take the samples of a step, published or not."""
        self._last = report
        self._lines.observe(report)

    def publish(self, kind: str, report: Report) -> None:
        """Publish a sensor, a field of RobotSensors, after a step."""
        self._told.publish(kind, report.time, self._lines.told(kind, report))
        if self._true.have_listener(kind):
            self._true.publish(kind, report.time, self._lines.true(kind, report))
