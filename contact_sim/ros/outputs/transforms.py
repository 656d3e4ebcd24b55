"""TF from odom to every base, and from the world to odom, where tf2_msgs is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from contact_sim.ros.conversions import vector_values
from contact_sim.ros.outputs.counting_publisher import Publisher

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # the ROS wheels do not have it
    TFMessage = None


class TransformPublisher:
    """Sends odom → base with odometry messages; does nothing without tf2_msgs.

    Attributes:
        publishers: of /tf and /tf_static, those that there are.
    """

    def __init__(self, node: Node, world: str, odom: str, enabled: bool) -> None:
        self.publishers: list[Publisher] = []
        self._publisher: Publisher | None = None
        if TFMessage is None:
            node.get_logger().info('tf2_msgs is not installed: no TF; the pose is on odom')
            return
        if world and world != odom:
            self._send_static(node, world, odom)
        if enabled:
            self._publisher = Publisher(node, TFMessage, '/tf', QoSProfile(depth=100))
            self.publishers.append(self._publisher)

    def _send_static(self, node: Node, world: str, odom: str) -> None:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._static = Publisher(node, TFMessage, '/tf_static', latched)
        self.publishers.append(self._static)
        identity = TransformStamped(child_frame_id=odom)
        identity.header.frame_id = world
        identity.transform.rotation.w = 1.0
        self._static.publish(TFMessage(transforms=[identity]))

    def send(self, odometry: Sequence[Odometry]) -> None:
        """Broadcast the poses of odometry messages, all in one message."""
        if self._publisher is not None:
            self._publisher.publish(TFMessage(transforms=[_transform(odom) for odom in odometry]))


def _transform(odom: Odometry) -> TransformStamped:
    """Return the pose of an odometry message as a transform."""
    transform: Any = TransformStamped(header=odom.header, child_frame_id=odom.child_frame_id)
    pose, translation = odom.pose.pose, transform.transform.translation
    translation.x, translation.y, translation.z = vector_values(pose.position)
    transform.transform.rotation = pose.orientation
    return transform
