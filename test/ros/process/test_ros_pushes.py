"""Pushes over DDS: what they do to the robot, and what is refused."""

import math

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from geometry_msgs.msg import WrenchStamped
from ros_session import NODE, Session, published_topics, stamp_of, vector
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker

from contact_sim import load_robot
from contact_sim.drawing._step_shapes import METRES_PER_NEWTON

ROBOT = load_robot('go1')
TOPICS = {
    topic: published_topics(())[topic]
    for topic in ('/clock', '/joint_states', '/odom', '/diagnostics', f'/{NODE}/contact_markers')
}


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    parameters = {
        'start_paused': True,
        'initial_height': 2.0,
        'push.axes': 'world',
        'push.duration': 0.1,
        **dict.fromkeys(('publish_rate.joint_states', 'publish_rate.odom'), 1000.0),
        'publish_rate.markers': 100.0,
    }
    with Session(tmp_path_factory.mktemp('pushes'), TOPICS, parameters) as session:
        session.started()
        session.pusher = session.node.create_publisher(WrenchStamped, 'external_wrench', 10)
        session.wait_for_subscriber(session.pusher)
        yield session


def push(session, frame, force, torque=(0.0, 0.0, 0.0)):
    message = WrenchStamped()
    message.header.frame_id = frame
    for part, values in ((message.wrench.force, force), (message.wrench.torque, torque)):
        part.x, part.y, part.z = values
    session.pusher.publish(message)


def momentum(odom, joints):
    """Return linear momentum and angular momentum about the centre of mass, world axes, (6,)."""
    model = ROBOT.pinocchio_model
    pose, twist = odom.pose.pose, odom.twist.twist
    o = pose.orientation
    q = np.concatenate([vector(pose.position), [o.x, o.y, o.z, o.w], joints.position])
    v = np.concatenate([vector(twist.linear), vector(twist.angular), joints.velocity])
    return pin.computeCentroidalMomentum(model, model.createData(), q, v).vector


def taken(session, count):
    """Take steps in the air and return the momentum after each, shape (count, 6)."""
    session.clear()
    assert session.step(count).success
    odom, joints = session.messages['/odom'], session.messages['/joint_states']
    session.wait(lambda: min(len(odom), len(joints)) == count, 'the states')
    return np.array([momentum(*pair) for pair in zip(odom, joints, strict=True)])


def test_a_push_gives_the_momentum_of_force_times_duration(session):
    session.reset()
    before = taken(session, 10)[-1]
    push(session, 'base', (0.0, 40.0, 15.0))
    session.wait(lambda: session.diagnostics()['pushes_accepted'] == '1', 'the push')
    after = taken(session, 150)
    weight = np.array([0.0, 0.0, -9.81 * ROBOT.total_mass])
    gained = after[:, :3] - before[:3] - 1e-3 * np.arange(1, 151)[:, None] * weight
    acted = 1e-3 * np.minimum(np.arange(1, 151), 100)[:, None] * [0.0, 40.0, 15.0]
    assert gained == pytest.approx(acted, abs=0.02)  # of 4 N s; the step is of first order
    markers = session.messages[f'/{NODE}/contact_markers']
    session.wait(lambda: len(markers) == 15, 'the markers')
    arrows = [
        next(marker for marker in message.markers if marker.ns == 'push') for message in markers
    ]
    drawn = [stamp_of(arrow) for arrow in arrows if arrow.action == Marker.ADD]
    assert len(drawn) == 10
    start, end = arrows[0].points
    along = np.array([end.x - start.x, end.y - start.y, end.z - start.z])
    assert along == pytest.approx(METRES_PER_NEWTON * np.array([0.0, 40.0, 15.0]), abs=1e-12)


def test_a_torque_turns_the_robot_and_does_not_move_it(session):
    session.reset()
    before = taken(session, 10)[-1]
    push(session, 'base', (0.0, 0.0, 0.0), (0.0, 0.0, 2.0))
    session.wait(lambda: session.diagnostics()['pushes_accepted'] == '2', 'the push')
    gained = taken(session, 120)[-1] - before
    assert gained[5] == pytest.approx(0.2, rel=0.02)
    assert gained[:2] == pytest.approx([0.0, 0.0], abs=1e-3)


def test_refused_pushes_change_nothing_and_say_why(session):
    session.reset()
    undisturbed = taken(session, 50)
    session.reset()
    refused = int(session.diagnostics()['pushes_refused'])
    push(session, 'tail', (50.0, 0.0, 0.0))
    push(session, 'base', (50.0, 0.0, math.nan))
    push(session, 'odom', (50.0, 0.0, 0.0))
    session.wait(
        lambda: int(session.diagnostics()['pushes_refused']) == refused + 3, 'the refusals'
    )
    assert taken(session, 50).tolist() == undisturbed.tolist()
    assert "'tail'" in session.simulation.output()


def test_pushes_end_with_a_reset_and_when_told_to(session):
    session.set({'push.duration': 0.0})
    for end in ('reset', 'end_pushes'):
        session.reset()
        accepted = int(session.diagnostics()['pushes_accepted'])
        push(session, 'base', (30.0, 0.0, 0.0))
        session.wait(
            lambda n=accepted: int(session.diagnostics()['pushes_accepted']) == n + 1, 'the push'
        )
        gained = np.diff(taken(session, 20)[:, 0])
        assert gained == pytest.approx(0.03, abs=3e-4)  # it has no end of its own
        response = session.call(f'/{NODE}/{end}', Trigger, Trigger.Request())
        assert response.success
        session.spin(0.1)
        assert np.diff(taken(session, 20)[:, 0]) == pytest.approx(0.0, abs=3e-4)
