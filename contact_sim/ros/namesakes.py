"""Two simulations of one name: services, parameters and diagnostics of both would be mixed up.

A node that has been killed stays in the graph for some 20 s, so its name alone says nothing: who
simulates speaks on /diagnostics every second, and who is about to start bears a mark.
"""

from __future__ import annotations

import os
import time

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import Empty

from contact_sim.errors import ContactSimError

DISCOVERY = 0.3
"""Wall seconds after which nodes on a healthy network know of each other."""
SILENCE = 3.0
"""Wall seconds without /diagnostics after which a node is taken for one that has been killed."""


class NameTaken(ContactSimError):
    """Another node of this name runs on this ROS domain."""


class Claim:
    """A name that a node wants for itself: made with the node, checked before it speaks.

    Args:
        node: who bears the name.
    """

    def __init__(self, node: Node) -> None:
        self._node, self._since = node, time.perf_counter()
        self._name = node.get_fully_qualified_name()
        self._prefix = f'{self._name}/_starts_'  # hidden, and in the order of the starts
        self._mark = f'{self._prefix}{time.time_ns():020d}_{os.getpid()}'
        self._publisher = node.create_publisher(Empty, self._mark, 1)

    def check(self) -> None:
        """Return if the name is free, with a warning if it was taken by a node that is silent.

        Raises:
            NameTaken: another node runs under it, or has begun to start before this one.
        """
        time.sleep(max(0.0, DISCOVERY - (time.perf_counter() - self._since)))
        try:
            if not self._others():
                return
            marks = self._marks()
            if any(mark < self._mark for mark in marks):
                raise NameTaken(self._said('is starting'))
            if len(marks) < self._others() and self._somebody_speaks():
                raise NameTaken(self._said('runs'))
            if len(marks) < self._others():
                self._node.get_logger().warning(
                    f'there was a node {self._name}; it is silent, so it is taken for dead'
                )
        finally:
            self._node.destroy_publisher(self._publisher)

    def _others(self) -> int:
        """Return how many other nodes bear the name."""
        known = self._node.get_node_names_and_namespaces()
        names = [f'{namespace.rstrip("/")}/{name}' for name, namespace in known]
        return names.count(self._name) - 1

    def _marks(self) -> list[str]:
        """Return the marks of other nodes that are about to start."""
        topics = [name for name, _ in self._node.get_topic_names_and_types()]
        return [name for name in topics if name.startswith(self._prefix) and name != self._mark]

    def _somebody_speaks(self) -> bool:
        """Return whether a node of this name sends diagnostics."""
        end = time.perf_counter() + SILENCE
        while (left := end - time.perf_counter()) > 0.0 and self._others():
            heard, message = wait_for_message(
                DiagnosticArray, self._node, '/diagnostics', time_to_wait=left
            )
            own = self._name.lstrip('/')
            if heard and any(status.hardware_id == own for status in message.status):
                return True
        return False

    def _said(self, does: str) -> str:
        domain = os.environ.get('ROS_DOMAIN_ID', '0')
        return (
            f'a node {self._name} {does} on ROS domain {domain} already; end it, or start this '
            "one under another name or namespace, such as --ros-args -r __ns:='/second'"
        )
