"""What the ground does to links with body contacts, besides the feet: always the truth."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Int16MultiArray

from contact_sim.messages.frames import wrench_axes, wrench_frame_ids
from contact_sim.messages.topics import wrench_topic
from contact_sim.parameters import Settings
from contact_sim.robot.parts import RobotPart
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.messages import LinkContactsMessage, WrenchMessages
from contact_sim.sensors import FootForces
from contact_sim.sensors.part_report import Report
from contact_sim.simulation.touch import touching_links


class LinkOutputs:
    """contacts/<link>/wrench and link_contacts; no topics where only feet may touch.

    Args:
        part: whose links.
        settings: frames; wrenches are in the frame of the link where those of feet are in theirs.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self, part: RobotPart, settings: Settings, publisher: Callable[[type, str], Publisher]
    ) -> None:
        self._links = touching_links(part.robot)
        self._forces = FootForces(part.robot, wrench_axes(settings), parts=self._links)
        self._wrench_messages = WrenchMessages(wrench_frame_ids(part, settings, self._links))
        self._message = LinkContactsMessage(part.robot)
        if self._links:
            self._wrenches = [
                publisher(WrenchStamped, wrench_topic(link.name)) for link in self._links
            ]
            self._contacts = publisher(Int16MultiArray, 'link_contacts')

    def publish(self, report: Report) -> None:
        """Publish what acted in a step."""
        if not self._links:
            return
        messages = self._wrench_messages.fill(report.time, self._forces.truth(report))
        for publisher, message in zip(self._wrenches, messages, strict=True):
            publisher.publish(message)
        self._contacts.publish(self._message.fill(report))
