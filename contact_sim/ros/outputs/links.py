"""What the ground does to links with body contacts, besides the feet: always the truth."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Int16MultiArray

from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.messages import LinkContactsMessage, WrenchMessages
from contact_sim.ros.settings.declarations import Settings
from contact_sim.ros.topics import wrench_topic
from contact_sim.sensors import FootForces
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator
from contact_sim.simulation.touch import touching_links


class LinkOutputs:
    """contacts/<link>/wrench and link_contacts; no topics where only feet may touch.

    Args:
        sim: what is simulated.
        settings: frames; wrenches are in the frame of the link where those of feet are in theirs.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self, sim: Simulator, settings: Settings, publisher: Callable[[type, str], Publisher]
    ) -> None:
        common, self._links = settings[''], touching_links(sim.robot)
        own_frames = common.contact_wrench_frame == 'foot'
        frames = [
            common.frame_prefix + link.frame if own_frames else common.odom_frame
            for link in self._links
        ]
        axes = 'foot' if own_frames else 'world'
        self._forces = FootForces(sim.robot, axes, parts=self._links)
        self._wrench_messages = WrenchMessages(frames)
        self._message = LinkContactsMessage(sim.robot)
        if self._links:
            self._wrenches = [
                publisher(WrenchStamped, wrench_topic(link.name)) for link in self._links
            ]
            self._contacts = publisher(Int16MultiArray, 'link_contacts')

    def publish(self, report: StepReport) -> None:
        """Publish what acted in a step."""
        if not self._links:
            return
        messages = self._wrench_messages.fill(report.time, self._forces.truth(report))
        for publisher, message in zip(self._wrenches, messages, strict=True):
            publisher.publish(message)
        self._contacts.publish(self._message.fill(report))
