"""A publisher that counts the messages it could not send."""

from __future__ import annotations

from typing import Any

from rclpy._rclpy_pybind11 import RCLError
from rclpy.node import Node
from rclpy.qos import QoSProfile

from contact_sim.errors import shortened


class Publisher:
    """Counts what the network does not take, instead of stopping everything.

    That happens when a listener is so slow that nothing can be sent within DDS's patience.

    Attributes:
        name: as it was declared.
        sent: messages sent.
        lost: messages that could not be sent.
    """

    def __init__(self, node: Node, kind: type, name: str, qos: QoSProfile) -> None:
        self._publisher = node.create_publisher(kind, name, qos)
        self._context, self._log = node.context, node.get_logger()
        self.name, self.sent, self.lost = name, 0, 0

    def publish(self, message: Any) -> None:
        """Send a message, or count it as lost."""
        try:
            self._publisher.publish(message)
            self.sent += 1
        except RCLError as error:
            if not self._context.ok():
                raise  # everything ends
            self.lost += 1
            said = f'lost a message on {self.name}: {shortened(error)}'
            self._log.warning(said, throttle_duration_sec=1.0)

    def has_listener(self) -> bool:
        """Return whether anybody listens."""
        return bool(self._publisher.get_subscription_count())
