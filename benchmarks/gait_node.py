"""A gait as a ROS node: answers every state with efforts of the same stamp."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import rclpy
from gaits import gait
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

import contact_sim

QOS = QoSProfile(depth=10)


class GaitNode(Node):
    """Trots, or marches."""

    def __init__(self) -> None:
        super().__init__('gait')
        robot = contact_sim.load_robot(self.declare_parameter('robot', 'go1').value)
        self._robot, self._name = robot, self.declare_parameter('gait', 'trot').value
        self._gait, self._time = gait(self._name, robot), 0.0
        self._q = robot.reference_configuration().copy()
        self._state: JointState | None = None
        self._odom: Odometry | None = None
        self._last: JointState | None = None
        self._arrivals: list[float] = []
        self._log = self.declare_parameter('arrivals', '').value
        self._publisher = self.create_publisher(JointState, 'joint_commands', QOS)
        self.create_subscription(JointState, 'joint_states', self._on_state, QOS)
        self.create_subscription(Odometry, 'odom', self._on_odom, QOS)

    def close(self) -> None:
        """Write the wall times [s] at which states came, where a file was named for them."""
        if self._log:
            np.save(Path(self._log), np.array(self._arrivals))

    def _on_state(self, state: JointState) -> None:
        self._arrivals.append(time.perf_counter())
        self._state = state
        self._answer()

    def _on_odom(self, odom: Odometry) -> None:
        self._odom = odom
        self._answer()

    def _answer(self) -> None:
        """Answer once both messages of a step are there."""
        state, odom, robot = self._state, self._odom, self._robot
        if state is None or odom is None or state.header.stamp != odom.header.stamp:
            return
        self._state = None
        if self._last is not None and state.header.stamp == self._last.header.stamp:
            self._publisher.publish(self._last)  # lockstep repeats a state until it is answered
            return
        p, r = odom.pose.pose.position, odom.pose.pose.orientation
        linear, angular = odom.twist.twist.linear, odom.twist.twist.angular
        q, v = self._q, np.zeros(robot.nv)
        q[:7] = p.x, p.y, p.z, r.x, r.y, r.z, r.w
        v[:6] = linear.x, linear.y, linear.z, angular.x, angular.y, angular.z
        q = robot.with_joint_positions(q, state.position)
        v[robot.joint_velocity_index] = state.velocity
        time = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        if time < self._time:  # back at the start
            self._gait = gait(self._name, robot)
        self._time = time
        try:
            effort = self._gait.effort(time, q, v)
        except np.linalg.LinAlgError:  # fallen, and no state to go on from
            effort = np.zeros(robot.n_joints)
        command = JointState(name=state.name, effort=effort.tolist())
        command.header.stamp = state.header.stamp
        self._last = command
        self._publisher.publish(command)


def main() -> None:
    """Run until interrupted."""
    rclpy.init()
    node = GaitNode()
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.close()
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
