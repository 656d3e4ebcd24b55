"""/clock: published, followed or left alone, and whether somebody else publishes it."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.messages import ClockMessage

TOPIC = '/clock'


class ClockOutput:
    """Publishes simulated time where the parameter `clock` says so.

    Args:
        node: who publishes.
        use: the parameter.
        publisher: makes a publisher of a type on a topic.
    """

    def __init__(self, node: Node, use: str, publisher: Callable[[type, str], Publisher]) -> None:
        self._node, self._use = node, use
        self._message = ClockMessage()
        self._publisher = publisher(Clock, TOPIC) if use == 'publish' else None
        self._topic = node.resolve_topic_name(TOPIC)

    def publish(self, time: float) -> None:
        """Publish simulated time [s], or nothing."""
        if self._publisher is not None:
            self._publisher.publish(self._message.fill(time))

    @property
    def complaint(self) -> str:
        """What is wrong with those who publish /clock; empty where nothing is."""
        if self._use == 'none':
            return ''
        others = self._node.count_publishers(self._topic) - (self._publisher is not None)
        if self._use == 'follow':
            found = f'{others} simulations publish' if others else 'nobody publishes'
            return '' if others == 1 else f'{found} {self._topic}, which clock:=follow keeps to'
        if others <= 0:
            return ''
        return (
            f'{self._topic} has {others} more publisher{"s" * (others > 1)}: two times are mixed; '
            'set the parameter clock of one simulation to follow or none, or remap its /clock'
        )
