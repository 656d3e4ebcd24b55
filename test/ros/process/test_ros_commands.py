"""Commands over DDS: what the robot makes of them, and what garbage does not do."""

import re

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from bad_commands import BAD_EFFORTS, BAD_JOINT_STATES, JOINTS
from ros_session import Session, published_topics, vector
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from contact_sim import load_robot
from contact_sim.ros._processes import Process, ros_arguments

ROBOT = load_robot('go1')
FEET = tuple(foot.name for foot in ROBOT.feet)
TOPICS = published_topics(FEET)
N = len(JOINTS)
EFFORTS = 'joint_group_effort_controller/commands'


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    """Return a running simulation that takes every command of a burst."""
    parameters = {
        f'qos_overrides./{topic}.subscription.depth': 2000 for topic in ('joint_commands', EFFORTS)
    }
    topics = {t: TOPICS[t] for t in ('/joint_states', '/odom', '/diagnostics')}
    with Session(tmp_path_factory.mktemp('commands'), topics, parameters) as session:
        session.started().fresh('/odom', 200)
        yield session


@pytest.fixture
def standing(session):
    """Return the session with all commands forgotten and the robot on its feet."""
    session.reset()
    session.fresh('/odom', 100)
    return session


def publisher(session, kind, topic):
    publisher = session.node.create_publisher(kind, topic, 2000)
    session.wait_for_subscriber(publisher)
    return publisher


def heights(session, count=100):
    return [message.pose.pose.position.z for message in session.fresh('/odom', count)]


def test_a_thousand_garbage_commands_change_nothing_and_are_counted(standing):
    joint_commands = publisher(standing, JointState, 'joint_commands')
    efforts = publisher(standing, Float64MultiArray, EFFORTS)
    garbage = [
        *((joint_commands, JointState(name=name, position=p, velocity=v, effort=e))
          for (name, p, v, e), _ in BAD_JOINT_STATES.values()),
        *((efforts, Float64MultiArray(data=data)) for data, _ in BAD_EFFORTS.values()),
    ]  # fmt: skip
    before = standing.diagnostics()
    standing.clear()
    for k in range(1000):
        topic, message = garbage[k % len(garbage)]
        topic.publish(message)
        standing.spin(1e-3)
    dropped = int(before['commands_dropped']) + 1000
    standing.wait(
        lambda: int(standing.diagnostics()['commands_dropped']) >= dropped, 'all to be counted'
    )
    after = standing.diagnostics()
    assert int(after['commands_dropped']) == dropped
    assert after['commands_accepted'] == before['commands_accepted']
    assert re.search('joint|efforts', after['last_refusal'])
    numbers = [
        value
        for message in standing.messages['/joint_states']
        for field in (message.position, message.velocity, message.effort)
        for value in field
    ]
    assert len(numbers) > 1000
    assert np.isfinite(numbers).all()
    z = [message.pose.pose.position.z for message in standing.messages['/odom']]
    assert max(z) - min(z) < 0.005  # the robot did not move
    warnings = re.findall(r'\[WARN\].*dropped: .*', standing.simulation.output())
    assert 1 <= len(warnings) < 30  # throttled
    reasons = [reason for _, reason in (*BAD_JOINT_STATES.values(), *BAD_EFFORTS.values())]
    assert all(any(re.search(reason, line) for reason in reasons) for line in warnings)


def test_efforts_act_and_a_reset_forgets_them(standing):
    upright = heights(standing)[-1]
    efforts = publisher(standing, Float64MultiArray, EFFORTS)
    efforts.publish(Float64MultiArray(data=[0.0] * N))  # no effort: the robot sinks
    standing.wait(lambda: heights(standing, 1)[0] < 0.6 * upright, 'the robot to sink')
    standing.reset()
    standing.fresh('/odom', 300)
    assert heights(standing)[-1] == pytest.approx(upright, abs=0.005)


def test_efforts_are_shown_after_saturation(standing):
    efforts = publisher(standing, Float64MultiArray, EFFORTS)
    efforts.publish(Float64MultiArray(data=[1e5] * N))
    limit = ROBOT.effort_limit
    standing.wait(
        lambda: standing.fresh('/joint_states')[0].effort[0] == limit[0], 'the largest effort'
    )
    assert np.array(standing.messages['/joint_states'][-1].effort) == pytest.approx(limit)


def test_positions_are_followed(standing):
    """The commanded joint goes there; the others hold the standing pose."""
    index = JOINTS.index('FL_hip_joint')
    joint_commands = publisher(standing, JointState, 'joint_commands')
    before = np.array(standing.fresh('/joint_states')[0].position)
    target = before[index] + 0.1
    joint_commands.publish(JointState(name=['FL_hip_joint'], position=[target]))
    standing.wait(
        lambda: abs(standing.fresh('/joint_states')[0].position[index] - target) < 0.03,
        'the joint to go where it is told',
    )
    after = np.array(standing.messages['/joint_states'][-1].position)
    assert np.abs(np.delete(after - before, index)).max() < 0.05


FADED_IN = 250
"""Commands, at most 250 per simulated second, after which a stance controller carries the robot.

One that dies earlier leaves it to hang in its gains, a few millimetres lower.
"""


def start_controller(session):
    return Process(
        'contact_sim.ros.controllers.stance', ros_arguments({'robot': 'go1'}), session.domain
    )


def accepted(session):
    return int(session.diagnostics()['commands_accepted'])


@pytest.mark.real_time
def test_a_controller_may_die_and_come_back(standing):
    with start_controller(standing) as controller:
        first = accepted(standing)
        standing.wait(
            lambda: accepted(standing) >= first + FADED_IN, 'the efforts of the first one', 30.0
        )
        controller.handle.kill()  # no farewell
        controller.handle.wait()
    standing.wait(lambda: 'no command for' in standing.diagnostics()['message'], 'a warning', 60.0)
    assert float(standing.diagnostics()['command_age']) > 0.5
    upright = heights(standing)[-1]
    assert upright > 0.9 * ROBOT.reference_configuration()[2]  # it still stands
    with start_controller(standing):
        second = accepted(standing)
        standing.wait(
            lambda: accepted(standing) >= second + FADED_IN, 'the efforts of the second one', 30.0
        )
        standing.wait(
            lambda: 'no command for' not in standing.diagnostics()['message'], 'all clear', 30.0
        )
    assert heights(standing)[-1] == pytest.approx(upright, abs=0.005)
    assert vector(standing.messages['/odom'][-1].twist.twist.linear)[2] == pytest.approx(0, abs=1)
