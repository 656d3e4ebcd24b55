"""Subscriptions of one robot: commands, acknowledgements, pushes, support and poses.

A new topic is a line in `Subscriptions` and its callback.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, Int16MultiArray
from trajectory_msgs.msg import JointTrajectory

from contact_sim.errors import ContactSimError, shortened
from contact_sim.robot._several_robots import RobotPart
from contact_sim.ros._conversions import stamp_nanoseconds, vector_values
from contact_sim.ros._joint_commands import CommandBuffer, UncheckedPoint
from contact_sim.ros._lockstep import Lockstep
from contact_sim.ros._pushes import Pushes
from contact_sim.ros._services import StateControl, SupportCommand, yaw_of
from contact_sim.topics._table import own_topic

EFFORTS = 'joint_group_effort_controller'
"""Namespace of the topics of the controllers that the field's walking packages command."""
MANY = QoSProfile(depth=1000)
"""Reliable, with room for the messages that arrive while callbacks wait for the end of a step."""
LARGE = QoSProfile(depth=10)
"""For trajectories: the last replaces those before, and each place keeps the largest it had."""


class Subscriptions:
    """Subscriptions of a robot; a message that cannot be used is dropped with a warning.

    Messages name joints and links as the robot has them alone. `effort_joints` are the indices of
    the joints, among all, whose unnamed efforts come, in their order.
    """

    def __init__(
        self,
        node: Node,
        part: RobotPart,
        commands: CommandBuffer,
        lockstep: Lockstep,
        pushes: Pushes,
        control: StateControl,
        support: SupportCommand,
        effort_joints: NDArray[np.intp],
    ) -> None:
        self._log, self._commands, self._lockstep = node.get_logger(), commands, lockstep
        self._pushes, self._control, self._support = pushes, control, support
        self._part, self._effort_joints = part, effort_joints
        subscriptions = {
            'joint_commands': (JointState, self._on_joint_command),
            f'{EFFORTS}/commands': (Float64MultiArray, self._on_efforts),
            f'{EFFORTS}/joint_trajectory': (JointTrajectory, self._on_trajectory),
            'joint_trajectory': (JointTrajectory, self._on_trajectory),
            '~/lockstep_ack': (Header, self._on_acknowledgement),
            '~/support': (Int16MultiArray, self._on_support),
            'external_wrench': (WrenchStamped, self._on_push),
            'initialpose': (PoseWithCovarianceStamped, self._on_initial_pose),
            '~/set_odom': (Odometry, self._on_odom),
        }
        for topic, (kind, callback) in subscriptions.items():
            node.create_subscription(
                kind, own_topic(part.name, topic, node.get_name()), callback,
                LARGE if kind is JointTrajectory else MANY,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )  # fmt: skip

    def _on_joint_command(self, message: JointState) -> None:
        self._warn(
            self._commands.take_joint_state(
                [self._part.qualified_name(name) for name in message.name], message.position,
                message.velocity, message.effort, stamp_nanoseconds(message.header.stamp),
            )
        )  # fmt: skip

    def _on_efforts(self, message: Float64MultiArray) -> None:
        self._warn(self._commands.take_efforts(message.data, self._effort_joints))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        points = [
            UncheckedPoint(
                stamp_nanoseconds(point.time_from_start), point.positions, point.velocities,
                point.accelerations, point.effort,
            )
            for point in message.points
        ]  # fmt: skip
        self._warn(
            self._commands.take_trajectory(
                [self._part.qualified_name(name) for name in message.joint_names], points,
                stamp_nanoseconds(message.header.stamp), self._control.now, self._part.joints,
            )
        )  # fmt: skip

    def _on_acknowledgement(self, message: Header) -> None:
        stamp, joints = stamp_nanoseconds(message.stamp), self._part.joints
        self._attempt(lambda: self._lockstep.acknowledge(message.frame_id, stamp, joints))

    def _on_support(self, message: Int16MultiArray) -> None:
        self._attempt(lambda: self._warn(self._support.take(message.data)))

    def _on_push(self, message: WrenchStamped) -> None:
        wrench, header = message.wrench, message.header
        self._warn(
            self._pushes.take(
                header.frame_id, stamp_nanoseconds(header.stamp),
                vector_values(wrench.force), vector_values(wrench.torque), self._part.prefix,
            )
        )  # fmt: skip

    def _on_initial_pose(self, message: PoseWithCovarianceStamped) -> None:
        """Stand the robot where RViz's '2D Pose Estimate' points."""
        pose = message.pose.pose
        turned = np.array([*vector_values(pose.orientation), pose.orientation.w])
        x, y = pose.position.x, pose.position.y
        self._attempt(lambda: self._control.put_at(self._part, x, y, yaw_of(turned)))

    def _on_odom(self, message: Odometry) -> None:
        """Give the base the pose and the twist of a message like those on odom."""
        pose, twist = message.pose.pose, message.twist.twist
        self._attempt(
            lambda: self._control.place(
                self._part,
                np.array(vector_values(pose.position)),
                np.array([*vector_values(pose.orientation), pose.orientation.w]),
                np.array([*vector_values(twist.linear), *vector_values(twist.angular)]),
            )
        )

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except ContactSimError as error:
            self._warn(str(error))

    def _warn(self, refusal: str | None) -> None:
        if refusal is not None:
            self._log.warning(f'dropped: {shortened(refusal)}', throttle_duration_sec=1.0)
