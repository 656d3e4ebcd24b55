"""Controllers as nodes: whole states in, one command out; which velocity they follow."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from contact_sim.ros._client import environment
from contact_sim.ros._conversions import set_stamp
from contact_sim.ros._processes import isolated_environment
from contact_sim.ros.controllers import ControllerNode, trot


class Remembering(ControllerNode):
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
        self._on_odom(serialize_message(odom))
        self._on_state(serialize_message(state))


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


class Gait:
    """Takes the place of the trot: remembers the velocity that it is told."""

    def __init__(self, robot, friction):
        self.velocity = (0.0, 0.0, 0.0)
        self.n_joints = robot.n_joints

    def effort(self, time, q, v):
        return np.zeros(self.n_joints)


@pytest.fixture
def trotting(monkeypatch):
    """Return a function from parameters to the trot controller, and to what it trots at when."""
    monkeypatch.setattr(trot, 'Trot', Gait)
    nodes = []

    def start(**parameters):
        words = [word for name, value in parameters.items() for word in ('-p', f'{name}:={value}')]
        with environment(isolated_environment()):
            rclpy.init(args=['--ros-args', *words])
            nodes.append(trot.TrotController())
        return nodes[-1]

    yield start
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown()


def speed(node, time):
    """Return the forward speed that is commanded to the gait at simulated `time` [s]."""
    node.command(time, None, None)
    return node._trot.velocity[0]


def twist(forward, stamp=None):
    message = Twist() if stamp is None else TwistStamped()
    (message if stamp is None else message.twist).linear.x = forward
    if stamp is not None:
        set_stamp(message.header.stamp, stamp)
    return message


def test_without_stamps_a_velocity_is_followed_until_the_next(trotting):
    node = trotting()
    node._velocity._on_twist(twist(0.3))
    assert [speed(node, time) for time in (0.001, 1.0, 1e4)] == [0.3] * 3
    (topic,) = node.get_subscriptions_info_by_topic('/cmd_vel')
    assert topic.topic_type == 'geometry_msgs/msg/Twist'


def test_a_velocity_without_a_stamp_can_time_out_too(trotting):
    node = trotting(cmd_vel_timeout=0.2)
    node._velocity._on_twist(twist(0.3))  # before the first state: counts from there
    assert [speed(node, time) for time in (5.0, 5.199, 5.201, 6.0)] == [0.3, 0.3, 0.0, 0.0]
    node._velocity._on_twist(twist(0.4))
    assert [speed(node, time) for time in (6.1, 6.299, 6.31)] == [0.4, 0.4, 0.0]


def test_stamped_velocities_are_as_old_as_their_stamp(trotting):
    node = trotting(use_stamped_vel=True)
    (topic,) = node.get_subscriptions_info_by_topic('/cmd_vel')
    assert topic.topic_type == 'geometry_msgs/msg/TwistStamped'
    assert speed(node, 3.0) == 0.0
    node._velocity._on_stamped(twist(0.3, 2.8))
    assert [speed(node, time) for time in (3.001, 3.3, 3.301)] == [0.3, 0.3, 0.0]
    node._velocity._on_stamped(twist(0.5, 2.8))  # too old by now
    assert speed(node, 3.302) == 0.0
    for stamp in (0.0, 1.7e9):  # none, or one of another clock: as old as its arrival
        node._velocity._on_stamped(twist(0.6, stamp))
        assert [speed(node, time) for time in (4.0, 4.5, 4.501)] == [0.6, 0.6, 0.0]
        node._velocity._now = 3.5


def test_a_velocity_goes_on_when_time_is_set_back(trotting):
    node = trotting(use_stamped_vel=True)
    speed(node, 100.0)
    node._velocity._on_stamped(twist(0.3, 100.0))
    assert [speed(node, time) for time in (100.1, 0.001, 0.5, 0.502)] == [0.3, 0.3, 0.3, 0.0]
