"""Links that end the run of the node, and topics of links."""

import re

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import Session, published_topics, vector
from std_msgs.msg import Float64MultiArray

EFFORTS = 'joint_group_effort_controller/commands'
WRENCH = '/contacts/trunk/wrench'
TOPICS = {
    topic: published_topics(())[topic] for topic in ('/clock', '/diagnostics', '/joint_states')
} | {WRENCH: 'geometry_msgs/msg/WrenchStamped', '/link_contacts': 'std_msgs/msg/Int16MultiArray'}
PARAMETERS = {'start_paused': True, 'real_time_factor': 0.0, 'contact_links': ['trunk', 'FL_calf'],
              'end_on_contact': ['trunk'], 'publish_rate.wrenches': 1000.0,
              'initial_height': 0.0, 'contact_edge_radius': 0.01}  # fmt: skip


def test_a_belly_on_the_ground_ends_the_run_until_a_reset(tmp_path):
    with Session(tmp_path, TOPICS, PARAMETERS) as session:
        session.started()
        command = session.node.create_publisher(Float64MultiArray, EFFORTS, 1)
        session.wait_for_subscriber(command)
        assert session.step(50).success
        session.settle()
        assert list(session.messages['/link_contacts'][-1].data) == [0, 0]
        labels = session.messages['/link_contacts'][-1].layout.dim[0].label.split()
        assert labels == ['trunk', 'FL_calf']
        command.publish(Float64MultiArray(data=[0.0] * 12))  # it falls
        session.wait(lambda: int(session.diagnostics()['commands_accepted']) == 1, 'the command')
        result = session.step(3000)
        assert not result.success
        reason = re.search(r'trunk touches the ground at t = (\S+) s with (\S+) N', result.message)
        assert reason, result.message
        said = session.diagnostics()
        assert said['level'] == 2
        assert said['message'] == f'the run has ended, wait for ~/reset: {reason[0]}'
        last = session.messages[WRENCH][-1]
        assert last.header.frame_id == 'trunk'
        assert np.linalg.norm(vector(last.wrench.force)) >= float(reason[2]) * (1.0 - 1e-3)
        stamp = last.header.stamp
        assert stamp.sec + 1e-9 * stamp.nanosec == pytest.approx(float(reason[1]))
        assert session.messages['/link_contacts'][-1].data[0] == 1
        assert not session.step(1).success
        assert session.reset().success
        assert session.step(50).success
        assert session.diagnostics()['level'] < 2
