"""Noise in the topics of the node: the seed decides about it, and not about the motion."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import NODE, SECOND, Session, stamp_of, vector
from std_srvs.srv import Trigger

SIGMA = {'joint_position': 1e-3, 'joint_velocity': 0.05, 'imu_gyro': 0.02, 'imu_accel': 0.3}
STEPS = 300
KINDS = {
    '/joint_states': 'sensor_msgs/msg/JointState',
    '/imu/data': 'sensor_msgs/msg/Imu',
    '/odom': 'nav_msgs/msg/Odometry',
    '/contact_sim/ground_truth/joint_states': 'sensor_msgs/msg/JointState',
    '/contact_sim/ground_truth/imu': 'sensor_msgs/msg/Imu',
}
TRUTH = '/contact_sim/ground_truth/'
LATE = 10


def test_the_seed_decides_about_the_noise_and_not_about_the_motion(tmp_path):
    """The same fall: with noise, repeated, of another seed, exact, and exact but late."""
    parameters = {f'noise.{name}': deviation for name, deviation in SIGMA.items()}
    parameters |= {f'publish_rate.{name}': 1000.0 for name in ('joint_states', 'imu', 'odom')}
    parameters |= {'start_paused': True, 'seed': 3, 'initial_height': 0.1}
    with Session(tmp_path, KINDS, parameters) as session:
        session.started()
        while not all(session.messages.values()):  # until everybody hears
            session.step(1)
        first, again, other = (fall(session, {'seed': seed}) for seed in (3, 3, 4))
        exact = fall(session, dict.fromkeys((f'noise.{name}' for name in SIGMA), 0.0))
        late = fall(session, {'sensors.joints.latency': LATE, 'sensors.imu.latency': LATE})
        # allowed together only, in whichever order they are asked for
        thresholds = {'sensors.contacts.off_threshold': 4.0, 'sensors.contacts.on_threshold': 8.0}
        assert session.set(thresholds).successful
        assert 'above on_threshold' in session.set({'sensors.contacts.on_threshold': 3.0}).reason
        assert "foot 'FL'" in session.set({'sensors.contacts.stuck_on': ['FL']}).reason
        assert session.set({'sensors.contacts.stuck_on': ['FL_foot']}).successful
    assert len(first['/odom']) == STEPS
    assert first == again
    assert first['/odom'] == other['/odom'] == exact['/odom']
    for topic in ('/joint_states', '/imu/data'):
        assert not any(a == b for a, b in zip(first[topic], other[topic], strict=True))
    for run in (first, other, late):
        for name in ('joint_states', 'imu'):
            positions = [told(message) for message in run[TRUTH + name]]
            assert positions == [told(message) for message in exact[TRUTH + name]]
    for topic, true in (('/joint_states', 'joint_states'), ('/imu/data', 'imu')):
        truth = [told(message) for message in exact[TRUTH + true]]
        assert [told(message) for message in exact[topic]] == truth
        assert [told(message) for message in late[topic]][LATE:] == truth[:-LATE]
    for run in (first, other):
        for name, values in sensed(run).items():
            error = (values - sensed(exact)[name]) / SIGMA[name]
            assert abs(error.mean()) < 4.0 / np.sqrt(error.size), name
            assert abs(error.std() - 1.0) < 4.0 / np.sqrt(2 * error.size), name


def fall(session, settings):
    """Let go1 fall from the first stamp on under other settings; return its messages by topic."""

    def heard(tick):
        ends = [stamp_of(messages[-1]) for messages in session.messages.values()]
        return ends == [tick * SECOND // 1000] * len(ends)

    assert session.set(settings).successful
    assert session.reset().success
    assert session.call(f'/{NODE}/reset_time', Trigger, Trigger.Request()).success
    session.wait(lambda: heard(1), 'the first state')
    session.clear()
    assert session.step(STEPS).success
    session.wait(lambda: all(session.messages.values()) and heard(STEPS + 1), 'the last state')
    return {topic: list(messages) for topic, messages in session.messages.items()}


def told(message):
    """Return what a message tells but for its stamp and covariances."""
    if hasattr(message, 'position'):
        return list(message.position), list(message.velocity), list(message.effort)
    motion = message.linear_acceleration, message.angular_velocity
    return [vector(part).tolist() for part in motion], message.orientation


def sensed(run):
    """Return what noise is added to, by the name of its deviation."""
    joints, imu = run['/joint_states'], run['/imu/data']
    return {
        'joint_position': np.array([message.position for message in joints]),
        'joint_velocity': np.array([message.velocity for message in joints]),
        'imu_gyro': np.array([vector(message.angular_velocity) for message in imu]),
        'imu_accel': np.array([vector(message.linear_acceleration) for message in imu]),
    }
