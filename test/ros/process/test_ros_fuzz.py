"""A short run of odd messages and parameters for a node; `make fuzz` is the long one."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from fuzz_node import Node, hunt_messages, hunt_parameters

MESSAGES, PARAMETERS = 100, 150


@pytest.fixture(scope='module')
def node(tmp_path_factory):
    node = Node(tmp_path_factory.mktemp('fuzz'))
    yield node
    node.close()


def test_odd_messages_leave_the_node_answering_and_finite(node):
    topics = node.topics()
    assert {'/joint_commands', '/external_wrench', '/initialpose'} <= set(topics)
    tally = hunt_messages(node, seed=0, count=MESSAGES)
    assert tally.inputs == MESSAGES * len(topics)
    assert not tally.findings, str(tally)


def test_odd_parameters_are_answered(node):
    tally = hunt_parameters(node, seed=0, count=PARAMETERS)
    assert not tally.findings, str(tally)
    assert 0 < tally.refused < tally.inputs == PARAMETERS
