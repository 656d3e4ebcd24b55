"""The controllers' common part: whole states in, one command out."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState

from contact_sim.ros.controllers.base import Controller
from contact_sim.ros.conversions import set_stamp
from contact_sim.ros.remote.client import environment
from contact_sim.ros.remote.processes import isolated_environment


class Remembering(Controller):
    """Commands as effort how often it was asked: a memory that a second asking changes."""

    def __init__(self):
        super().__init__('remembering')
        self.connect()
        self.asked, self.sent = 0, []
        self._publisher.publish = lambda command: self.sent.append(command.effort[0])

    def command(self, time, q, v):
        self.asked += 1
        return self.joints(np.full(self.robot.n_joints, float(self.asked)))

    def tell(self, time, height=0.3, angle=0.0):
        odom, state = Odometry(), JointState(name=list(self.robot.joint_names))
        odom.pose.pose.position.z = height
        state.position = state.velocity = [angle] * self.robot.n_joints
        for message in (odom, state):
            set_stamp(message.header.stamp, time)
        self._on_odom(odom)
        self._on_state(state)


@pytest.fixture
def controller():
    with environment(isolated_environment()):
        rclpy.init(args=[])
        node = Remembering()
    yield node
    node.destroy_node()
    rclpy.shutdown()


def test_a_state_that_comes_twice_gets_the_same_answer(controller):
    for time in (0.001, 0.001, 0.001, 0.002, 0.002, 0.003):
        controller.tell(time)
    assert controller.sent == [1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize('other', [{'height': 0.4}, {'angle': 0.1}])
def test_another_state_of_the_same_time_gets_its_own(controller, other):
    """Somebody has set it: in a simulation time need not pass in between."""
    controller.tell(0.001)
    controller.tell(0.001, **other)
    assert controller.sent == [1, 2]
