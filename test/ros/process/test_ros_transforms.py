"""TF, where tf2_msgs is installed: the tree world, odom, base stands where odom says."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('tf2_msgs', reason='tf2_msgs is not installed; it has no wheel')

from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import Session, stamp_of, vector
from tf2_msgs.msg import TFMessage

TOPICS = {'/tf': 'tf2_msgs/msg/TFMessage', '/odom': 'nav_msgs/msg/Odometry'}


def start(folder, **parameters):
    """Return a session with go1, paused, that hears /tf, /tf_static and /odom."""
    return Session(folder, TOPICS, {'start_paused': True, 'robot': 'go1', **parameters})


def static_transforms(session):
    """Return the growing list of messages on /tf_static, also of those sent before."""
    heard = []
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    session.node.create_subscription(TFMessage, '/tf_static', heard.append, latched)
    return heard


def times(session, topic):
    """Return the stamps of what was heard on a topic."""
    messages = session.messages[topic]
    return {stamp_of(getattr(message, 'transforms', [message])[0]) for message in messages}


def test_the_base_stands_in_tf_where_odom_says(tmp_path):
    with start(tmp_path, publish_odom_tf=True) as session:
        static = static_transforms(session)
        session.started().step(100)
        session.wait(lambda: static, '/tf_static')
        session.wait(lambda: times(session, '/odom') == times(session, '/tf'), 'TF of every pose')
        assert len(times(session, '/tf')) > 5
        odoms = {stamp_of(message): message for message in session.messages['/odom']}
        for message in session.messages['/tf']:
            (transform,) = message.transforms
            assert transform.header.frame_id == 'odom'
            assert transform.child_frame_id == 'base'
            odom = odoms[stamp_of(transform)]
            pose = odom.pose.pose
            assert odom.child_frame_id == transform.child_frame_id
            assert vector(transform.transform.translation) == pytest.approx(vector(pose.position))
            assert transform.transform.rotation == pose.orientation
    fixed, alias = static[0].transforms
    assert (fixed.header.frame_id, fixed.child_frame_id) == ('world', 'odom')
    assert (alias.header.frame_id, alias.child_frame_id) == ('base', 'base_link')
    assert fixed.transform.rotation.w == 1.0
    assert not vector(fixed.transform.translation).any()


def test_somebody_else_may_broadcast_the_base(tmp_path):
    parameters = {'start_paused': True, 'publish_odom_tf': False, 'world_frame': ''}
    topics = {'/odom': TOPICS['/odom']}
    with Session(tmp_path, topics, parameters) as session:
        session.started().step(20)
        session.wait(lambda: session.messages['/odom'], 'odom')
        assert session.node.count_publishers('/tf') == 0
        assert session.node.count_publishers('/tf_static') == 0
