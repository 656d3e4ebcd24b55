"""TF from odom to the base, and from the world to odom, where tf2_msgs is installed."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from contact_sim.ros.outputs.counting_publisher import Publisher

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # the ROS wheels do not have it
    TFMessage = None


class TransformPublisher:
    """Sends odom → base with every odometry message; does nothing without tf2_msgs.

    Attributes:
        publishers: of /tf and /tf_static, those that there are.
    """

    def __init__(self, node: Node, world: str, odom: str, base: str, enabled: bool) -> None:
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
            self._transform = TransformStamped(child_frame_id=base)
            self._transform.header.frame_id = odom

    def _send_static(self, node: Node, world: str, odom: str) -> None:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._static = Publisher(node, TFMessage, '/tf_static', latched)
        self.publishers.append(self._static)
        identity = TransformStamped(child_frame_id=odom)
        identity.header.frame_id = world
        identity.transform.rotation.w = 1.0
        self._static.publish(TFMessage(transforms=[identity]))

    def send(self, odom: Odometry) -> None:
        """Broadcast the pose of an odometry message."""
        if self._publisher is None:
            return
        transform: Any = self._transform
        pose = odom.pose.pose
        transform.header.stamp = odom.header.stamp
        transform.transform.translation.x = pose.position.x
        transform.transform.translation.y = pose.position.y
        transform.transform.translation.z = pose.position.z
        transform.transform.rotation = pose.orientation
        self._publisher.publish(TFMessage(transforms=[transform]))
