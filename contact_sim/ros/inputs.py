"""Everything the node listens to: commands and acknowledgements."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from contact_sim.errors import ContactSimError
from contact_sim.ros.commands import CommandInbox
from contact_sim.ros.lockstep import Lockstep
from contact_sim.ros.messages import stamp_nanoseconds

SEVERAL = QoSProfile(depth=100)
"""Reliable; several controllers may speak at once, each of its own joints."""


class Inputs:
    """Subscriptions; a message that cannot be used is dropped with a warning."""

    def __init__(self, node: Node, inbox: CommandInbox, lockstep: Lockstep) -> None:
        self._log, self._inbox, self._lockstep = node.get_logger(), inbox, lockstep
        subscriptions = {
            'joint_commands': (JointState, self._on_joint_command),
            'joint_group_effort_controller/commands': (Float64MultiArray, self._on_efforts),
            '~/lockstep_ack': (Header, self._on_acknowledgement),
        }
        for topic, (kind, callback) in subscriptions.items():
            node.create_subscription(
                kind, topic, callback, SEVERAL,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )  # fmt: skip

    def _on_joint_command(self, message: JointState) -> None:
        self._warn(
            self._inbox.take_joint_state(
                message.name, message.position, message.velocity, message.effort,
                stamp_nanoseconds(message.header.stamp),
            )
        )  # fmt: skip

    def _on_efforts(self, message: Float64MultiArray) -> None:
        self._warn(self._inbox.take_efforts(message.data))

    def _on_acknowledgement(self, message: Header) -> None:
        try:
            self._lockstep.acknowledge(message.frame_id, stamp_nanoseconds(message.stamp))
        except ContactSimError as error:
            self._warn(str(error))

    def _warn(self, refusal: str | None) -> None:
        if refusal is not None:
            self._log.warning(f'dropped: {refusal}', throttle_duration_sec=1.0)
