"""A node that is killed leaves nothing behind that hinders the next one; domains are apart."""

import signal
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import Session, published_topics, stamp_of

from contact_sim.ros import _client as client_module
from contact_sim.ros._processes import isolated_environment

TOPICS = {topic: published_topics(())[topic] for topic in ('/clock', '/joint_states')}


def segments():
    """Return the shared memory of all DDS participants on this machine."""
    return set(Path('/dev/shm').glob('fastdds_????????????????'))


def test_after_a_kill_the_next_node_is_heard_over_shared_memory(tmp_path, monkeypatch):
    """With transports and discovery as users have; who hears the dead takes its memory away."""
    monkeypatch.delenv('FASTDDS_DEFAULT_PROFILES_FILE')
    monkeypatch.setattr(
        client_module,
        'isolated_environment',
        lambda: isolated_environment() | {'FASTDDS_BUILTIN_TRANSPORTS': 'DEFAULT'},
    )
    before = segments()
    with Session(tmp_path, TOPICS) as session:
        session.started()
        assert segments() > before
        session.fresh('/joint_states', 20)
        session.simulation.handle.send_signal(signal.SIGKILL)
        assert session.simulation.handle.wait(10.0) == -signal.SIGKILL
        session.clear()
        session.start({})
        states = session.messages['/joint_states']
        session.wait(lambda: len(states) >= 20, 'the next simulation', 60.0)
        assert stamp_of(states[0]) < 5_000_000_000  # it began anew
        assert 'RTPS' not in session.simulation.output()
        assert session.reset().success
        # Fast DDS looks after the dead about once a second; the client and the node are alive
        session.wait(lambda: len(segments() - before) <= 2, "the dead node's memory", 30.0)
    assert segments() <= before


def test_two_simulations_in_two_domains_do_not_hear_each_other(tmp_path):
    (tmp_path / 'a').mkdir()
    (tmp_path / 'b').mkdir()
    with (
        Session(tmp_path / 'a', TOPICS, {'start_paused': True}) as one,
        Session(tmp_path / 'b', TOPICS, {'start_paused': True}) as other,
    ):
        assert one.domain['ROS_DOMAIN_ID'] != other.domain['ROS_DOMAIN_ID']
        one.started()
        other.started()
        begin = other.fresh('/clock')[-1]
        assert one.step(500).success
        other.spin(0.3)
        assert stamp_of(other.fresh('/clock')[-1]) == stamp_of(begin)
        assert other.messages['/joint_states'] == []
        assert one.node.count_publishers('/joint_states') == 1
