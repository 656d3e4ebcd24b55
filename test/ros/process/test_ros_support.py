"""null_space in the node: feet by parameter and by topic, heard in another process."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import Session
from std_msgs.msg import Int16MultiArray

FEET = '/foot_contacts'
STATE = '/contact_sim/solver_state'
TOPICS = {
    '/clock': 'rosgraph_msgs/msg/Clock',
    '/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
    FEET: 'std_msgs/msg/Int16MultiArray',
    STATE: 'std_msgs/msg/Float64MultiArray',
}


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    parameters = {'start_paused': True, 'robot': 'anymal_b', 'contact.model': 'null_space'}
    with Session(tmp_path_factory.mktemp('support'), TOPICS, parameters) as running:
        yield running.started()


def standing(session, steps=40):
    """Return the feet that carry load, and the numbers of ~/solver_state, `steps` later."""
    session.clear()
    session.step(steps)
    session.wait(lambda: session.messages[FEET] and session.messages[STATE], 'messages')
    session.settle()
    state = session.messages[STATE][-1]
    values = dict(zip((dim.label for dim in state.layout.dim), state.data, strict=True))
    return list(session.messages[FEET][-1].data), values


def test_feet_by_detection_by_topic_and_by_parameter(session):
    feet, values = standing(session)
    assert feet == [1, 1, 1, 1]
    assert (values['support_rank'], values['physical']) == (12.0, 1.0)

    publisher = session.node.create_publisher(Int16MultiArray, '/contact_sim/support', 10)
    session.wait_for_subscriber(publisher)
    publisher.publish(Int16MultiArray(data=[1, 0, 0, 1]))
    session.spin(0.5)
    feet, values = standing(session)
    assert feet == [1, 0, 0, 1]
    assert values['support_uncontrollable_base_dof'] == 1.0
    assert values['physical'] == 0.0  # the other two sink in
    assert int(session.diagnostics()['solver_sinking']) > 0

    publisher.publish(Int16MultiArray(data=[1]))  # refused
    session.spin(0.5)
    assert standing(session)[0] == [1, 0, 0, 1]
    assert 'expected one for each of the 4 feet' in session.simulation.output()

    answer = session.set(
        {'contact.null_space.support': 'given', 'contact.null_space.feet': ['tail']}
    )
    assert not answer.successful
    assert 'tail' in answer.reason
    assert session.set({'contact.null_space.feet': ['RF_FOOT', '2']}).successful
    assert session.set({'contact.null_space.support': 'given'}).successful
    assert standing(session)[0] == [0, 1, 1, 0]
