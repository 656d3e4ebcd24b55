"""Trajectories, unnamed efforts, the description and the solver by name, over DDS."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import SECOND, Session, published_topics, stamp_of
from scipy.interpolate import CubicHermiteSpline
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_sim import load_robot
from contact_sim.ros._conversions import set_stamp

ROBOT = load_robot('go1')
JOINTS = list(ROBOT.joint_names)
N = len(JOINTS)
POSE = ROBOT.joint_positions(ROBOT.reference_configuration())
KP, KD, STEP = 40.0, 1.5, 1e-3
TRAJECTORIES = ('joint_trajectory', 'joint_group_effort_controller/joint_trajectory')
STATE, BY_NAME = '/contact_sim/solver_state', '/contact_sim/solver_diagnostics'
ORDER = JOINTS[::-1][:8]


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    parameters = {
        'start_paused': True, 'publish_rate.joint_states': 1000.0, 'gains.p': KP, 'gains.d': KD,
        'publish_robot_description': True,
        'effort_joints': f'[{", ".join(ORDER)}]',
    }  # fmt: skip
    topics = {t: published_topics(())[t] for t in ('/clock', '/joint_states', '/diagnostics')}
    topics |= {t: published_topics(())[t] for t in (STATE, BY_NAME)}
    with Session(tmp_path_factory.mktemp('inputs'), topics, parameters) as session:
        session.started()
        session.publishers = {
            topic: session.node.create_publisher(kind, topic, 10)
            for topic, kind in (
                *((name, JointTrajectory) for name in TRAJECTORIES),
                ('joint_group_effort_controller/commands', Float64MultiArray),
            )
        }
        for publisher in session.publishers.values():
            session.wait_for_subscriber(publisher)
        yield session


def stepped(session, count):
    """Return the joint states of the next steps, exactly these."""
    session.fresh('/clock')
    begin = session.time
    session.clear()
    session.step(count)
    states = session.messages['/joint_states']
    session.wait(lambda: len(states) >= count, f'{count} joint states')
    assert [stamp_of(m) for m in states] == [begin + 1_000_000 * k for k in range(1, count + 1)]
    return list(states)


@pytest.mark.parametrize('topic', TRAJECTORIES)
def test_the_pd_gains_track_the_spline_in_every_step(session, topic):
    """The effort of each step follows from the state before it and from scipy's spline."""
    session.reset()
    stepped(session, 5)
    last = stepped(session, 1)[0]
    start = 1e-9 * stamp_of(last)
    target = POSE + 0.05 * np.array([0.0, 1.0, -1.0] * 4)
    message = JointTrajectory(joint_names=JOINTS)
    set_stamp(message.header.stamp, start)
    speed = np.full(N, 0.2)
    message.points = [
        JointTrajectoryPoint(positions=0.5 * (POSE + target), velocities=speed),
        JointTrajectoryPoint(positions=target, velocities=[0.0] * N),
    ]
    for point, time in zip(message.points, (40_000_000, 100_000_000), strict=True):
        point.time_from_start.nanosec = time
    session.publishers[topic].publish(message)
    session.spin(0.2)  # it has arrived before the next step
    spline = CubicHermiteSpline(
        [0.0, 0.04, 0.1], [POSE, 0.5 * (POSE + target), target], [np.zeros(N), speed, np.zeros(N)]
    )
    limit = ROBOT.effort_limit
    for k, state in enumerate(stepped(session, 120)):
        time = min(k * STEP, 0.1)
        q, v = np.array(last.position), np.array(last.velocity)
        effort = KP * (spline(time) - q) + KD * (spline(time, 1) - v)
        assert state.effort == pytest.approx(np.clip(effort, -limit, limit), abs=1e-6), k
        last = state
    assert 1e-9 * stamp_of(last) == pytest.approx(start + 0.12)


def test_a_bad_trajectory_is_warned_about_and_changes_nothing(session):
    session.reset()
    before = stepped(session, 1)[0]
    message = JointTrajectory(joint_names=[*JOINTS[:-1], 'tail'])
    message.points = [JointTrajectoryPoint(positions=[0.0] * N)]
    session.publishers['joint_trajectory'].publish(message)
    session.wait(lambda: "unknown joint 'tail'" in session.simulation.output(), 'the warning')
    after = stepped(session, 1)[0]
    assert np.abs(np.subtract(after.effort, before.effort)).max() < 1.0


def test_unnamed_efforts_come_in_the_order_of_the_parameter(session):
    session.reset()
    efforts = np.linspace(0.1, 0.8, len(ORDER))
    session.publishers['joint_group_effort_controller/commands'].publish(
        Float64MultiArray(data=efforts.tolist())
    )
    session.spin(0.2)
    (state,) = stepped(session, 1)
    applied = dict(zip(state.name, state.effort, strict=True))
    assert [applied[name] for name in ORDER] == efforts.tolist()


def test_the_description_is_there_for_who_comes_late(session):
    heard = []
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    session.node.create_subscription(String, 'robot_description', heard.append, kept)
    session.wait(lambda: heard, 'the description')
    assert heard[0].data == ROBOT.description
    assert session.node.count_publishers('/robot_description') == 1


def test_the_solver_by_name_is_the_solver_by_number(session):
    session.reset()
    stepped(session, 40)
    numbers, names = session.messages[STATE], session.messages[BY_NAME]
    session.wait(lambda: numbers and names, 'both forms')
    labelled = dict(
        zip((dim.label for dim in numbers[-1].layout.dim), numbers[-1].data, strict=True)
    )
    (status,) = names[-1].status
    assert (status.name, status.hardware_id) == ('solver', 'contact_sim')
    assert {pair.key: float(pair.value) for pair in status.values} == labelled
    assert stamp_of(names[-1]) == round(labelled['time'] * SECOND)
