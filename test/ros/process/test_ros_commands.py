"""Commands: checked as a whole, taken by name, and what the robot makes of them."""

import array
import math
import re

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from hypothesis import example, given
from hypothesis import strategies as st
from ros_session import Session, published_topics, vector
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from contact_sim import load_robot
from contact_sim.ros.commands.inbox import CommandInbox
from contact_sim.ros.remote.processes import Process, ros_arguments

pytestmark = pytest.mark.ros

ROBOT = load_robot('go1')
FEET = tuple(point.name for point in ROBOT.contact_points)
TOPICS = published_topics(FEET)
JOINTS = list(ROBOT.joint_names)
N = len(JOINTS)
EFFORTS = 'joint_group_effort_controller/commands'
NAN, INF = math.nan, math.inf
STIFFNESS, DAMPING = 50.0, 2.0
POSE = np.arange(N) / 10.0

BAD_JOINT_STATES = {
    'no names': (([], [], [], []), 'without joint names'),
    'nothing commanded': ((JOINTS[:1], [], [], []), 'without position, velocity and effort'),
    'unknown joint': ((['FL_knee'], [1.0], [], []), "unknown joint 'FL_knee'.*known: FL_hip"),
    'one unknown among many': (([*JOINTS, 'tail'], [0.0] * 13, [], []), "'tail'"),
    'joint twice': ((JOINTS[:2] + JOINTS[:1], [0.0] * 3, [], []), "'FL_hip_joint' named twice"),
    'too few positions': ((JOINTS, [0.0] * 11, [], []), '11 values of position for 12 joints'),
    'too many velocities': ((JOINTS, [], [0.0] * 13, []), '13 values of velocity'),
    'one effort for all': ((JOINTS, [], [], [1.0]), '1 values of effort'),
    'NaN position': ((JOINTS[:2], [0.0, NAN], [], []), "position of joint 'FL_thigh_joint' = nan"),
    'infinite velocity': ((JOINTS[:1], [], [INF], []), "velocity of joint 'FL_hip_joint' = inf"),
    'NaN effort': ((JOINTS[:1], [0.0], [0.0], [NAN]), "effort of joint 'FL_hip_joint' = nan"),
    'absurd position': ((JOINTS[:1], [1e300], [], []), "position of joint 'FL_hip_joint' = 1e"),
    'negative infinity': ((JOINTS[:1], [], [], [-INF]), '-inf'),
}
BAD_EFFORTS = {
    'empty': ([], '0 efforts: expected 12 in the order FL_hip_joint'),
    'too few': ([0.0] * 11, '11 efforts'),
    'too many': ([0.0] * 13, '13 efforts'),
    'NaN': ([0.0] * 11 + [NAN], "effort of joint 'RR_calf_joint' = nan"),
    'infinity': ([INF] + [0.0] * 11, "effort of joint 'FL_hip_joint' = inf"),
}


# -------------------------------------------------------------------- without ROS


def new_inbox():
    return CommandInbox(JOINTS, POSE, np.full(N, STIFFNESS), np.full(N, DAMPING))


@pytest.fixture
def inbox():
    return new_inbox()


def effort(inbox, position=0.0, velocity=0.0):
    """Return what the command in force applies at equal positions and velocities of all joints."""
    return inbox.current.effort_at(np.full(N, position), np.full(N, velocity))


def test_before_the_first_command_the_pose_is_held(inbox):
    assert effort(inbox, velocity=1.0) == pytest.approx(50.0 * np.arange(N) / 10.0 - 2.0)
    assert inbox.age is None


def test_the_three_parts_add_up_to_the_impedance_law(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [0.3], [0.5], [7.0]) is None
    tau = effort(inbox, position=0.1, velocity=0.2)[0]
    assert tau == pytest.approx(7.0 + 50.0 * (0.3 - 0.1) + 2.0 * (0.5 - 0.2))


def test_position_alone_is_followed_towards_rest(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [0.3], [], []) is None
    assert effort(inbox, 0.1, 0.2)[0] == pytest.approx(50.0 * 0.2 - 2.0 * 0.2)


def test_velocity_alone_is_damped_towards(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [], [0.5], []) is None
    assert effort(inbox, 0.1, 0.2)[0] == pytest.approx(2.0 * 0.3)


def test_effort_alone_is_applied_as_it_is(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [], [], [7.0]) is None
    assert effort(inbox, 0.1, 0.2)[0] == 7.0


def test_joints_that_are_not_named_keep_their_command(inbox):
    before = effort(inbox, 0.1, 0.2)
    assert inbox.take_joint_state(['RR_calf_joint'], [], [], [3.0]) is None
    after = effort(inbox, 0.1, 0.2)
    assert after[-1] == 3.0
    assert after[:-1] == pytest.approx(before[:-1], abs=0.0)


def test_names_decide_not_their_order(inbox):
    assert inbox.take_joint_state(JOINTS[::-1], [], [], np.arange(N, dtype=float)) is None
    assert effort(inbox) == pytest.approx(np.arange(N)[::-1], abs=0.0)


def test_unnamed_efforts_come_in_the_declared_order(inbox):
    assert inbox.take_efforts(np.arange(N, dtype=float)) is None
    assert effort(inbox, 0.4, 0.5) == pytest.approx(np.arange(N), abs=0.0)


def test_new_gains_act_on_the_command_in_force(inbox):
    inbox.take_joint_state(JOINTS[:2], [0.3, 0.3], [], [])
    inbox.take_joint_state(JOINTS[1:2], [], [], [7.0])
    inbox.set_gains(np.full(N, 100.0), np.zeros(N))
    assert effort(inbox, 0.1)[:2] == pytest.approx([20.0, 7.0])


@pytest.mark.parametrize(('command', 'reason'), BAD_JOINT_STATES.values(), ids=BAD_JOINT_STATES)
def test_a_bad_joint_command_is_dropped_as_a_whole(inbox, command, reason):
    before = effort(inbox, 0.1, 0.2)
    refusal = inbox.take_joint_state(*command)
    assert re.search(reason, refusal)
    assert (inbox.accepted, inbox.dropped, inbox.last_refusal) == (0, 1, refusal)
    assert inbox.age is None
    assert effort(inbox, 0.1, 0.2) == pytest.approx(before, abs=0.0)


@pytest.mark.parametrize(('efforts', 'reason'), BAD_EFFORTS.values(), ids=BAD_EFFORTS)
def test_bad_efforts_are_dropped_as_a_whole(inbox, efforts, reason):
    before = effort(inbox, 0.1, 0.2)
    assert re.search(reason, inbox.take_efforts(efforts))
    assert inbox.dropped == 1
    assert effort(inbox, 0.1, 0.2) == pytest.approx(before, abs=0.0)


number = st.floats(-10.0, 10.0)
anything = st.floats() | st.sampled_from([NAN, INF, -INF, 1e300, -1e7, 0.0])
some_joints = st.lists(st.sampled_from(JOINTS), unique=True, min_size=1)


@st.composite
def good_commands(draw):
    """Draw (names, position, velocity, effort), at least one of the last three not empty."""
    names = draw(some_joints)
    values = st.lists(number, min_size=len(names), max_size=len(names))
    parts = draw(st.tuples(*[st.just([]) | values] * 3).filter(any))
    return (names, *parts)


@st.composite
def garbage(draw):
    """Draw what anybody may send: mostly wrong, now and then right by chance."""
    names = draw(st.lists(st.sampled_from([*JOINTS, '', 'tail', 'fl_hip_joint']) | st.text()))
    lengths = st.sampled_from([0, len(names)]) | st.integers(0, 20)
    parts = [
        array.array('d', draw(st.lists(anything, min_size=length, max_size=length)))
        for length in (draw(lengths), draw(lengths), draw(lengths))
    ]
    return (names, *parts)


@given(st.lists(garbage(), max_size=5))
@example([(JOINTS, [0.0] * N, [], [NAN] * N)])
def test_no_garbage_raises_or_leaves_a_trace(messages):
    inbox = new_inbox()
    for count, message in enumerate(messages, 1):
        before, pose = inbox.current, effort(inbox, 0.1, 0.2)
        refusal = inbox.take_joint_state(*message)
        assert inbox.accepted + inbox.dropped == count
        assert np.isfinite(effort(inbox, 0.1, 0.2)).all()
        if refusal is not None:
            assert refusal == inbox.last_refusal != ''
            assert inbox.current is before
            assert effort(inbox, 0.1, 0.2).tolist() == pose.tolist()
            continue
        names, *parts = message
        assert set(names) <= set(JOINTS)
        assert {len(part) for part in parts} <= {0, len(names)}
        assert all(math.isfinite(value) for part in parts for value in part)


@given(st.lists(anything, max_size=15) | st.lists(anything, min_size=N, max_size=N))
def test_no_garbage_efforts_raise_or_leave_a_trace(values):
    inbox = new_inbox()
    before = inbox.current
    good = len(values) == N and all(abs(value) <= 1e6 for value in values)
    refusal = inbox.take_efforts(array.array('d', values))
    assert (refusal is None) == good
    if good:
        assert effort(inbox, 0.1, 0.2).tolist() == values
    else:
        assert inbox.current is before


@given(st.lists(good_commands(), max_size=6))
def test_any_sequence_of_commands_acts_joint_by_joint(commands):
    """The last command that names a joint decides all about it."""
    inbox = new_inbox()
    expected = {
        name: STIFFNESS * (target - 0.1) - DAMPING * 0.2
        for name, target in zip(JOINTS, POSE, strict=True)
    }
    for names, position, velocity, feed_forward in commands:
        assert inbox.take_joint_state(names, position, velocity, feed_forward) is None
        for k, name in enumerate(names):
            total = feed_forward[k] if feed_forward else 0.0
            if position:
                total += STIFFNESS * (position[k] - 0.1)
            if position or velocity:
                total += DAMPING * ((velocity[k] if velocity else 0.0) - 0.2)
            expected[name] = total
    assert effort(inbox, 0.1, 0.2) == pytest.approx(list(expected.values()), abs=1e-9)
    assert inbox.accepted == len(commands)


@given(good_commands(), st.lists(number, min_size=N, max_size=N))
def test_a_reset_holds_the_pose_whatever_was_commanded(command, efforts):
    inbox, fresh = new_inbox(), new_inbox()
    inbox.take_joint_state(*command)
    inbox.take_efforts(efforts)
    inbox.hold(POSE)
    assert effort(inbox, 0.1, 0.2).tolist() == effort(fresh, 0.1, 0.2).tolist()
    assert inbox.age is None


# -------------------------------------------------------------------- over DDS


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    """Return a running simulation that takes every command of a burst."""
    parameters = {
        f'qos_overrides./{topic}.subscription.depth': 2000 for topic in ('joint_commands', EFFORTS)
    }
    topics = {t: TOPICS[t] for t in ('/clock', '/joint_states', '/odom', '/diagnostics')}
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
    dropped = int(before['commands_dropped'])
    after = before
    while int(after['commands_dropped']) < dropped + 1000:
        now = standing.diagnostics()
        assert now['commands_dropped'] > after['commands_dropped'], 'some were never counted'
        after = now
    assert int(after['commands_dropped']) == dropped + 1000
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
        standing.wait(lambda: standing.diagnostics()['level'] == 0, 'all clear', 30.0)
    assert heights(standing)[-1] == pytest.approx(upright, abs=0.005)
    assert vector(standing.messages['/odom'][-1].twist.twist.linear)[2] == pytest.approx(0, abs=1)
