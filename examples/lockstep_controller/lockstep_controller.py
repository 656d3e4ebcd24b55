#!/usr/bin/env python3
"""A controller for lockstep: every joint swings about its first position and is damped.

It answers each state with one command that carries the stamp of the state.
"""

import math

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import JointState


class LockstepController(Node):
    """Does what lockstep_controller.cpp does, to the bit."""

    def __init__(self) -> None:
        super().__init__('lockstep_controller')
        self._pose: list[float] = []
        self._start = 0
        # RELIABLE: in lockstep a message that is lost would stop time.
        qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
        self._publisher = self.create_publisher(JointState, 'joint_commands', qos)
        self.create_subscription(JointState, 'joint_states', self._answer, qos)

    def _answer(self, state: JointState) -> None:
        now = Time.from_msg(state.header.stamp).nanoseconds  # simulated; never the wall clock
        if not self._pose:
            self._pose, self._start = list(state.position), now
        t = 1e-9 * (now - self._start)
        swing = 0.1 * math.sin(18.0 * t)  # [rad]
        command = JointState(name=state.name)
        command.header.stamp = state.header.stamp
        command.position = [q + swing for q in self._pose]
        command.effort = [-0.5 * v for v in state.velocity]
        self._publisher.publish(command)


def main() -> None:
    """Run the node until it is interrupted."""
    rclpy.init()
    try:
        rclpy.spin(LockstepController())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
