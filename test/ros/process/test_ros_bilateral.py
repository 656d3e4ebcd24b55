"""Bilateral constraints of the node: they come and go while it runs, heard in another process."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import SECOND, Session, published_topics, stamp_of, vector

from contact_sim import load_robot
from contact_sim.replay import Recording, repeat

ROBOT = load_robot('go1')
WEIGHT = ROBOT.total_mass * 9.81
STAND, LOCK = '/constraints/stand/wrench', '/constraints/lock/effort'
HEARD = ('/clock', '/diagnostics', '/odom', '/contact_sim/solver_state')
TOPICS = {topic: published_topics(())[topic] for topic in HEARD} | {
    STAND: 'geometry_msgs/msg/WrenchStamped',
    LOCK: 'sensor_msgs/msg/JointState',
}
PARAMETERS = {
    'start_paused': True,
    'real_time_factor': 0.0,
    'initial_height': 0.3,
    'publish_rate.wrenches': 1000.0,
    'publish_rate.odom': 1000.0,
    'constraints.names': ['stand', 'lock', 'drive'],
    'constraints.stand.kind': 'frame_anchor',
    'constraints.stand.frame': 'trunk',
    'constraints.lock.kind': 'joint_lock',
    'constraints.lock.joint': 'RL_hip_joint',
    'constraints.drive.kind': 'joint_velocity',
    'constraints.drive.joint': 'RL_hip_joint',
    'constraints.drive.velocity': 1.0,
    'constraints.drive.enabled': False,
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('bilateral')


@pytest.fixture(scope='module')
def session(folder):
    with Session(folder, TOPICS, PARAMETERS | {'record': folder / 'run.npz'}) as session:
        yield session.started()


def stepped(session, count):
    """Take steps; return the last message of each topic."""
    session.clear()
    assert session.step(count).success
    session.settle()
    return {topic: messages[-1] for topic, messages in session.messages.items() if messages}


def numbers(message):
    return dict(zip((dim.label for dim in message.layout.dim), message.data, strict=True))


def height(said):
    return said['/odom'].pose.pose.position.z


def test_constraints_hold_come_and_go_and_are_told(session, folder):
    said = stepped(session, 400)
    wrench, held = said[STAND], height(said)
    assert wrench.header.frame_id == 'trunk'
    assert wrench.wrench.force.z == pytest.approx(WEIGHT, rel=1e-3)  # it hangs in the air
    assert stamp_of(wrench) == stamp_of(said['/odom']) == 401 * SECOND // 1000
    assert list(said[LOCK].name) == ['RL_hip_joint']
    assert numbers(said['/contact_sim/solver_state'])['constraints.stand.drift'] < 1e-9
    assert session.diagnostics()['constraints'] == 'stand lock'

    assert session.set({'constraints.stand.enabled': False}).successful
    said = stepped(session, 100)
    assert height(said) == pytest.approx(held - 0.5 * 9.81 * 0.1**2, rel=0.02)
    assert not vector(said[STAND].wrench.force).any()
    assert session.diagnostics()['constraints'] == 'lock'

    assert session.set({'constraints.stand.enabled': True}).successful  # caught where it is now
    caught = stepped(session, 50)
    assert height(caught) == pytest.approx(height(said), abs=2e-3)
    assert session.reset().success  # and held where it stands after a reset
    said = stepped(session, 50)
    assert height(said) == pytest.approx(held, abs=1e-9)

    for values, reason in (
        ({'constraints.stand.at': [0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0]}, 'start where it holds'),
        ({'constraints.stand.at': [0.0, 0.0, 3.0]}, r'constraints.stand: FrameAnchor.at = '),
        ({'constraints.stand.kp': 3.0}, 'expected alpha, or kp and kd'),
    ):
        answer = session.set(values)
        assert not answer.successful
        assert reason in answer.reason, answer.reason
    assert height(stepped(session, 1)) == pytest.approx(held, abs=1e-9)

    values = session.diagnostics()
    assert (values['level'], values['solver_inconsistent']) == (0, '0')
    # the joint that is locked is driven, too
    assert session.set({'constraints.drive.enabled': True}).successful
    session.pause(False)
    session.wait(lambda: session.diagnostics()['level'] == 1, 'a warning')
    session.wait(
        lambda: 'constraints not met: lock, drive' in session.diagnostics()['message'], 'names'
    )
    assert session.set({'constraints.lock.enabled': False}).successful
    session.wait(lambda: session.diagnostics()['level'] == 0, 'all clear')
    session.pause()
    session.close()
    outcome = repeat(Recording(folder / 'run.npz'))
    assert outcome.equal, outcome
