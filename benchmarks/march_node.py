"""The gait of march.py as a ROS node: answers joint_states with efforts of the same stamp."""

from __future__ import annotations

import numpy as np
import rclpy
from march import March
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

import contact_sim


class MarchNode(Node):
    """Marches on the spot."""

    def __init__(self) -> None:
        super().__init__('march')
        robot = contact_sim.load_robot(self.declare_parameter('robot', 'go1').value)
        self._robot, self._march = robot, March(robot)
        self._q, self._v = robot.reference_configuration(), np.zeros(robot.nv)
        self._publisher = self.create_publisher(JointState, 'joint_commands', QoSProfile(depth=10))
        self.create_subscription(JointState, 'joint_states', self._on_state, QoSProfile(depth=10))

    def _on_state(self, state: JointState) -> None:
        time = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        self._q = self._robot.with_joint_positions(self._q, state.position)
        self._v[self._robot.joint_velocity_index] = state.velocity
        effort = self._march.effort(time, self._q, self._v)
        command = JointState(name=state.name, effort=effort.tolist())
        command.header.stamp = state.header.stamp
        self._publisher.publish(command)


def main() -> None:
    """Run until interrupted."""
    try:
        rclpy.init()
        rclpy.spin(MarchNode())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
