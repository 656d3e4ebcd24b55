"""Another ground at a reset of the node."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import NODE, Session, published_topics, vector
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim import load_robot
from contact_sim.replay import Recording, repeat

FEET = tuple(foot.name for foot in load_robot('go1').feet)
TOPICS = published_topics(FEET)
HEARD = (
    '/clock',
    '/diagnostics',
    '/odom',
    f'/{NODE}/terrain',
    *(f'/contacts/{foot}/wrench' for foot in FEET),
)
PARAMETERS = {'start_paused': True, 'real_time_factor': 0.0, 'publish_rate.wrenches': 1000.0,
              'publish_rate.odom': 1000.0, 'contact_wrench_frame': 'odom'}  # fmt: skip


def load(session):
    """Return the sum of all contact forces after some more steps, world axes (3,)."""
    assert session.step(1500).success
    session.settle()
    return sum(
        vector(session.messages[f'/contacts/{foot}/wrench'][-1].wrench.force) for foot in FEET
    )


def test_parameters_of_the_terrain_act_at_the_next_reset(tmp_path):
    path = tmp_path / 'run.npz'
    topics = {topic: TOPICS[topic] for topic in HEARD}
    with Session(tmp_path, topics, PARAMETERS | {'record': str(path)}) as session:
        session.started()
        assert load(session)[:2] == pytest.approx([0.0, 0.0], abs=0.1)
        assert session.set({'terrain.type': 'inclined_plane', 'terrain.angle': 0.2}).successful
        refused = session.set({'terrain.type': 'file', 'terrain.file': '/nowhere.npy'})
        assert not refused.successful
        assert 'nowhere' in refused.reason
        height = session.messages['/odom'][-1].pose.pose.position.z
        assert load(session)[:2] == pytest.approx([0.0, 0.0], abs=0.1)
        drawn = session.messages[f'/{NODE}/terrain']
        drawn.clear()
        assert session.reset().success
        weight = load(session)[2]
        assert weight == pytest.approx(load_robot('go1').total_mass * 9.81, rel=1e-2)
        assert session.messages['/odom'][-1].pose.pose.position.z != pytest.approx(
            height, abs=1e-3
        )
        (message,) = drawn
        assert [marker.ns for marker in message.markers] == ['', 'terrain']
        q = message.markers[1].pose.orientation
        up = np.array([2 * (q.x * q.z + q.w * q.y), 1 - 2 * (q.x**2 + q.y**2)])
        assert up == pytest.approx([np.sin(0.2), np.cos(0.2)])
        late = []
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        session.node.create_subscription(MarkerArray, f'/{NODE}/terrain', late.append, kept)
        session.wait(lambda: late, 'the ground, for who comes late')
        assert late[0] == message
        assert session.set({'terrain.type': 'groove', 'terrain.angle': 0.1}).successful
        assert session.reset().success
        assert load(session)[2] == pytest.approx(weight, rel=1e-2)
        assert drawn[-1].markers[1].type == Marker.TRIANGLE_LIST
    recording = Recording(path)
    assert [event['kind'] for event in recording.events].count('terrain') == 2
    assert repeat(recording).equal
