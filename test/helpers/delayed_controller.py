"""A controller that takes its time: python -m delayed_controller --delay 0.05 FL_hip_joint ..."""

import argparse
import random
import time

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

AMPLITUDE, FREQUENCY = 0.1, 3.0


class DelayedController(Node):
    """Swings its joints, with feedback of their velocities, after a random delay."""

    def __init__(self, joints, delay, seed):
        super().__init__(f'controller_of_{joints[0].lower()}')
        self.joints, self.delay, self.random = joints, delay, random.Random(seed)
        self.start = self.last = None
        self.publisher = self.create_publisher(JointState, 'joint_commands', 10)
        self.create_subscription(JointState, 'joint_states', self.answer, 100)

    def answer(self, state):
        stamp = state.header.stamp.sec * 1_000_000_000 + state.header.stamp.nanosec
        index = [state.name.index(name) for name in self.joints]
        position, velocity = np.array(state.position)[index], np.array(state.velocity)[index]
        if self.start is None:
            self.start, self.pose = stamp, position
        swing = AMPLITUDE * np.sin(2.0 * np.pi * FREQUENCY * 1e-9 * (stamp - self.start))
        time.sleep(self.random.uniform(0.0, self.delay))
        command = JointState(name=self.joints, position=self.pose + swing, effort=-0.5 * velocity)
        command.header.stamp = state.header.stamp
        self.publisher.publish(command)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--delay', type=float, default=0.0)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('joints', nargs='+')
    options = parser.parse_args()
    rclpy.init()
    try:
        rclpy.spin(DelayedController(options.joints, options.delay, options.seed))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
