"""Time and state under control: resets, snapshots, poses, and that everything goes on after."""

import re
import time
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from geometry_msgs.msg import PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from ros_session import NODE, SECOND, SEEN, Session, published_topics, stamp_of, vector
from std_srvs.srv import Trigger

from contact_sim import Simulator, load_robot
from contact_sim.errors import InvalidInput
from contact_sim.simulation._resuming import resume

STEP = SECOND // 1000
ROBOT = load_robot('go1')
FEET = tuple(foot.name for foot in ROBOT.feet)
TOPICS = published_topics(FEET)
AT_TIMES = ('/diagnostics', f'/{NODE}/shadow', f'/{NODE}/terrain', *SEEN)
"""Once a second; where other models answer the steps, too; where the ground is new; by a rate."""
EVERY_STEP = dict.fromkeys(
    (f'publish_rate.{name}' for name in ('joint_states', 'odom', 'imu', 'wrenches')), 1000.0
)
PARAMETERS = EVERY_STEP | {'start_paused': True, 'real_time_factor': 0.0}
STATES = ('/joint_states', '/odom', '/imu/data', *(f'/contacts/{foot}/wrench' for foot in FEET))


# -------------------------------------------------------------------- without ROS


@pytest.mark.parametrize('model', ['ncp', 'compliant'])
def test_a_state_is_resumed_bit_by_bit_at_another_time(model):
    sim = Simulator(ROBOT, contact_model=model)
    noise = np.random.default_rng(3).normal(size=(60, ROBOT.n_joints))
    for effort in noise[:30]:
        sim.step(effort)
    kept = sim.snapshot()
    expected = [sim.step(effort).q.tobytes() for effort in noise[30:]]
    resume(sim, kept, 7.0)
    assert sim.time == 7.0
    assert [sim.step(effort).q.tobytes() for effort in noise[30:]] == expected


def test_what_is_resumed_leaves_the_settings():
    sim = Simulator(ROBOT, friction=0.8)
    kept = sim.snapshot()
    sim.friction, sim.restitution, sim.contact_model = 0.3, 0.5, 'sap'
    resume(sim, kept, 1.0)
    assert (set(sim.friction), set(sim.restitution), sim.contact_model) == ({0.3}, {0.5}, 'sap')
    with pytest.raises(InvalidInput, match='snapshot of robot'):
        resume(Simulator(load_robot('quadruped')), kept, 1.0)


def test_the_report_of_a_reset_state_knows_no_forces():
    sim = Simulator(ROBOT)
    for _ in range(5):
        sim.step(np.full(ROBOT.n_joints, 3.0))
    v = np.zeros(ROBOT.nv)
    v[0] = 1.0
    sim.reset(v=v, time=2.0)
    report = sim.last_report
    assert report.time == 2.0
    assert report.v.tolist() == v.tolist()
    assert not report.effort.any()
    assert not report.acceleration.any()
    assert not report.contacts.force.any()


# -------------------------------------------------------------------- over DDS


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    with Session(tmp_path_factory.mktemp('services'), TOPICS, PARAMETERS) as session:
        session.started()
        session.nothing_kept = session.call(f'/{NODE}/restore', Trigger, Trigger.Request())
        session.listeners = {
            kind: session.node.create_publisher(kind, topic, 10)
            for kind, topic in (
                (Odometry, f'{NODE}/set_odom'),
                (PoseWithCovarianceStamped, 'initialpose'),
            )
        }
        for publisher in session.listeners.values():
            session.wait_for_subscriber(publisher)
        yield session


@pytest.fixture
def paused(session):
    """Return the session standing still, with nothing more to arrive."""
    session.set(reference_pose='standing')
    session.pause()
    caught_up(session, call(session, 'reset'))
    session.clear()
    session.fresh('/clock')
    return session


def call(session, name):
    response = session.call(f'/{NODE}/{name}', Trigger, Trigger.Request())
    assert response.success, response.message
    return response


def caught_up(session, response):
    """Wait for the states of the time that a response names; return it [ns]."""
    now = round(float(re.search(r't = ([\d.]+) s', response.message)[1]) * SECOND)
    last = [session.messages[topic] for topic in STATES]
    session.wait(
        lambda: all(messages and stamp_of(messages[-1]) == now for messages in last), 'the states'
    )
    return now


def heard(session, topic, count):
    """Return the first `count` messages of a topic since they were cleared, and no more."""
    messages = session.messages[topic]
    session.wait(lambda: len(messages) >= count, f'{count} messages on {topic}')
    assert len(messages) == count
    return messages


def steps(session, count):
    """Take steps and return odom and joint_states of each, and the time after them [ns]."""
    session.clear()
    response = session.step(count)
    assert response.success, response.message
    now = caught_up(session, response)
    for topic in STATES:
        heard(session, topic, count)
    return list(session.messages['/odom']), list(session.messages['/joint_states']), now


def next_state(session, act):
    """Return (odom, joint_states) of the state that `act` sets."""
    session.clear()
    act()
    for topic in STATES:
        heard(session, topic, 1)
    return session.messages['/odom'][0], session.messages['/joint_states'][0]


def ticks(session):
    """Return the stamps of /clock without repetitions of the last one [ns]."""
    stamps = [stamp_of(message) for message in session.messages['/clock']]
    return stamps[:1] + [later for earlier, later in pairwise(stamps) if later != earlier]


def test_a_thousand_single_steps_are_exact(paused):
    assert paused.set(step_count=1).successful
    begin = paused.time
    for _ in range(1000):
        assert paused.step().success
    expected = [begin + k * STEP for k in range(1, 1001)]
    for topic in STATES:
        assert [stamp_of(message) for message in heard(paused, topic, 1000)] == expected
    paused.wait(lambda: paused.time == expected[-1], 'the last tick')
    assert ticks(paused) == [begin, *expected]


def pose_message(kind, x, y, z, yaw=0.0):
    message = kind()
    pose = message.pose.pose
    pose.position.x, pose.position.y, pose.position.z = x, y, z
    pose.orientation.z, pose.orientation.w = np.sin(yaw / 2.0), np.cos(yaw / 2.0)
    return message


RESETS = {
    'reset': lambda s: call(s, 'reset'),
    'reset_time': lambda s: call(s, 'reset_time'),
    'restore': lambda s: call(s, 'restore'),
    'set_odom': lambda s: s.listeners[Odometry].publish(pose_message(Odometry, 0.0, 0.0, 0.4)),
    'initialpose': lambda s: s.listeners[PoseWithCovarianceStamped].publish(
        pose_message(PoseWithCovarianceStamped, 1.0, 0.0, 0.0)
    ),
}


@pytest.mark.parametrize('kind', RESETS)
def test_every_topic_is_alive_after_every_kind_of_reset(paused, kind):
    call(paused, 'snapshot')
    _, _, before = steps(paused, 100)
    odom, _ = next_state(paused, lambda: RESETS[kind](paused))
    begin = stamp_of(odom)
    assert begin == (STEP if kind == 'reset_time' else before + STEP)
    paused.wait(lambda: paused.time == begin, 'the clock')
    _, _, now = steps(paused, 40)
    assert now == begin + 40 * STEP
    alive = [messages for topic, messages in paused.messages.items() if topic not in AT_TIMES]
    paused.wait(lambda: all(alive), 'every topic')
    paused.wait(lambda: paused.time == now, 'the clock')
    assert ticks(paused)[-40:] == [begin + k * STEP for k in range(1, 41)]


def resident(session):
    """Return the memory of the simulation [bytes]."""
    with open(f'/proc/{session.simulation.handle.pid}/statm', encoding='ascii') as file:
        return 4096 * int(file.read().split()[1])


@pytest.mark.parametrize('kind', ['reset', 'reset_time', 'restore'])
def test_a_hundred_resets_grow_neither_slow_nor_fat(paused, kind):
    call(paused, 'snapshot')
    for _ in range(10):
        call(paused, kind)
    memory = resident(paused)
    for _ in range(3):  # another process may take the machine for a while
        latency = []
        for _ in range(100):
            begin = time.perf_counter()
            call(paused, kind)
            latency.append(time.perf_counter() - begin)
        first, last = np.median(latency[:10]), np.median(latency[-10:])
        if last <= 1.2 * first:
            break
    assert last <= 1.2 * first
    assert resident(paused) - memory <= 1_000_000
    steps(paused, 8)
    assert paused.diagnostics()['level'] == 0


def test_a_restored_state_goes_on_as_it_did(paused):
    paused.pause(False)
    paused.fresh('/odom', 200)
    paused.pause()
    caught_up(paused, call(paused, 'snapshot'))
    runs = []
    for _ in range(2):
        odoms, joint_states, _ = steps(paused, 100)
        runs.append(
            [(str(odom.pose.pose), str(odom.twist.twist), joints.position.tobytes(),
              joints.effort.tobytes()) for odom, joints in zip(odoms, joint_states, strict=True)]
        )  # fmt: skip
        caught_up(paused, call(paused, 'restore'))
    assert runs[0] == runs[1]


def test_a_reset_goes_to_the_pose_that_the_parameter_names(paused):
    hyq = [name for name in ROBOT.reference_configurations if name != 'standing']
    refused = paused.set(reference_pose='lying on the back')
    assert not refused.successful
    assert 'reference pose' in refused.reason
    for name in (*hyq, 'standing'):
        assert paused.set(reference_pose=name).successful
        _, joints = next_state(paused, lambda: call(paused, 'reset'))
        expected = ROBOT.joint_positions(ROBOT.reference_configuration(name))
        assert joints.position.tolist() == expected.tolist()


def test_pose_and_twist_of_the_base_can_be_set(paused):
    before = steps(paused, 20)[1][-1]
    wanted = pose_message(Odometry, 1.0, -2.0, 0.7, 0.3)
    twist = wanted.twist.twist
    twist.linear.x, twist.linear.y, twist.angular.z = 0.4, 0.1, -0.5
    odom, joints = next_state(paused, lambda: paused.listeners[Odometry].publish(wanted))
    assert odom.pose.pose.position == wanted.pose.pose.position
    assert odom.pose.pose.orientation.z == pytest.approx(wanted.pose.pose.orientation.z, abs=1e-15)
    assert odom.twist.twist == wanted.twist.twist
    assert joints.position == before.position
    assert joints.velocity == before.velocity


def test_the_tool_of_rviz_stands_the_robot_elsewhere(paused):
    wanted = pose_message(PoseWithCovarianceStamped, 1.0, 2.0, 0.0, np.pi / 2.0)
    publisher = paused.listeners[PoseWithCovarianceStamped]
    odom, _ = next_state(paused, lambda: publisher.publish(wanted))
    standing = ROBOT.reference_configuration()
    position, attitude = vector(odom.pose.pose.position), odom.pose.pose.orientation
    assert position == pytest.approx([1.0, 2.0, standing[2]], abs=1e-12)
    turned = pin.Quaternion(attitude.w, attitude.x, attitude.y, attitude.z).matrix()
    assert turned @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)
    height = steps(paused, 500)[0][-1].pose.pose.position.z
    assert height == pytest.approx(standing[2], abs=0.02)  # it stands there


def test_states_that_cannot_be_are_refused(paused):
    no_attitude = pose_message(Odometry, 0.0, 0.0, 0.4)
    no_attitude.pose.pose.orientation.w = 0.0
    too_fast = pose_message(Odometry, 0.0, 0.0, 0.4)
    too_fast.twist.twist.linear.x = 1e30
    overflowing = pose_message(PoseWithCovarianceStamped, 0.0, 0.0, 0.0)
    overflowing.pose.pose.orientation.y = 1e200
    refused = paused.set({'publish_rate.wrenches': 1e-310})
    assert not refused.successful
    assert 'expected 0, or at least 1e-06 Hz' in refused.reason
    for bad, reason in (
        (pose_message(Odometry, np.nan, 0.0, 0.4), r'position = \[nan, 0.0, 0.4\]'),
        (no_attitude, 'norm 0: expected 1'),
        (too_fast, r'twist = \[1e\+30'),
        (pose_message(PoseWithCovarianceStamped, np.inf, 0.0, 0.0), r'initialpose = \[inf'),
        (overflowing, r'quaternion \[0.0, 1e\+200, 0.0, .*\] has norm 1e\+200'),
    ):
        paused.spin(1.1)  # warnings come once a second
        paused.listeners[type(bad)].publish(bad)
        paused.wait(
            lambda reason=reason: re.search(f'dropped: .*{reason}', paused.simulation.output()),
            reason,
        )
    assert paused.messages['/odom'] == []
    steps(paused, 1)


def test_restoring_before_anything_was_kept_is_refused(session):
    assert not session.nothing_kept.success
    assert 'call ~/snapshot first' in session.nothing_kept.message
