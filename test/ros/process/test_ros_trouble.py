"""Trouble: two nodes of one name, a full disk, files that cannot be, Ctrl-C, another clock."""

import os
import re
import sys
import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from interrupts import BEGUN, READY, interrupted
from ros_session import START_TIMEOUT, Session, published_topics

from contact_sim.ros._processes import Process, isolated_environment, ros_arguments
from contact_sim.ros.simulation_node import main

SIMULATION = 'contact_sim.ros.simulation_node'
FULL = ['bash', '-c', 'ulimit -f 64; exec "$@"', '-', sys.executable, '-m', SIMULATION]
"""The simulation where no file can be longer than 64 KiB."""


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp('trouble')
    topics = {topic: published_topics(())[topic] for topic in ('/clock', '/diagnostics')}
    parameters = {'start_paused': True, 'use_sim_time': True}  # as for all other nodes
    with Session(folder, topics, parameters) as session:
        yield session.started()


def test_a_second_node_of_the_same_name_says_so_and_ends(session, tmp_path):
    session.pause()
    second = Process(SIMULATION, (), session.domain, tmp_path / 'log')
    assert second.handle.wait(START_TIMEOUT) == 1
    reason = f'a node /contact_sim runs on ROS domain {session.domain["ROS_DOMAIN_ID"]} already'
    (line,) = [line for line in second.output().splitlines() if line.startswith('contact_sim:')]
    assert reason in line
    assert 'Traceback' not in second.output()
    assert session.pause().success  # the first one goes on


def test_the_simulation_does_not_follow_its_own_clock(session):
    assert session.get('use_sim_time') == [False]
    info = session.node.get_subscriptions_info_by_topic('/clock')
    assert {endpoint.node_name for endpoint in info} == {session.node.get_name()}


def test_of_two_nodes_that_start_together_one_ends(tmp_path):
    """While they start, neither is heard on /diagnostics."""
    environment = isolated_environment() | {'ROS_LOG_DIR': str(tmp_path)}
    arguments = ros_arguments({'start_paused': True})
    with (
        Process(SIMULATION, arguments, environment, tmp_path / 'a.log') as one,
        Process(SIMULATION, arguments, environment, tmp_path / 'b.log') as other,
    ):
        end = time.monotonic() + START_TIMEOUT
        while one.running and other.running and time.monotonic() < end:
            time.sleep(0.1)
        ended, goes_on = (other, one) if one.running else (one, other)
        assert ended.handle.wait(1.0) == 1
        assert 'contact_sim: a node /contact_sim runs on ROS domain' in ended.output()
        while 'messages per second' not in goes_on.output() and time.monotonic() < end:
            time.sleep(0.1)
        assert 'messages per second' in goes_on.output()
        assert goes_on.running


def test_a_follower_keeps_to_the_clock_and_a_second_publisher_is_told(session, tmp_path):
    """Two more in namespaces of their own: one follows /clock, one publishes it as well."""
    heard = session.listen('/b/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray')
    joints = session.listen('/b/joint_states', 'sensor_msgs/msg/JointState')
    away = ['-r', '__ns:=/b', '-r', '/diagnostics:=/b/diagnostics']
    follow = [*ros_arguments({'clock': 'follow', 'publish_rate.joint_states': 1000.0}), *away]
    with Process(SIMULATION, follow, session.domain, tmp_path / 'b.log') as follower:
        session.wait(lambda: heard, 'the follower', START_TIMEOUT)
        for count in (100, 250):
            joints.clear()
            assert session.step(count).success
            session.fresh('/clock', 3)  # the last one has come, and its repetitions
            session.wait(lambda: stamps(joints)[-1:] == [session.time], 'the last step', 60.0)
        assert stamps(joints) == [session.time - k * 1_000_000 for k in range(250)][::-1]
        assert follower.running
        assert session.diagnostics()['level'] == 0
    away = ['-r', '__ns:=/c', '-r', '/diagnostics:=/c/diagnostics']
    publish = [*ros_arguments({'start_paused': True}), *away]
    with Process(SIMULATION, publish, session.domain, tmp_path / 'c.log'):
        session.wait(
            lambda: session.node.count_publishers('/clock') == 2, 'a second one', START_TIMEOUT
        )
        said = session.diagnostics()
        session.wait(lambda: 'two times are mixed' in session.output_tail(), 'the warning')
        assert said['level'] == 1
        assert re.search('/clock has 1 more publisher: two times are mixed', said['message'])


def stamps(messages):
    return [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages]


def test_a_full_disk_ends_the_recording_with_an_error(tmp_path):
    topics = {'/diagnostics': published_topics(())['/diagnostics']}

    class OnFullDisk(Session):
        def start(self, parameters):
            self.simulation = Process(
                FULL, ros_arguments(parameters), self.domain, self.folder / 'simulation.log'
            )

    parameters = {'record': tmp_path / 'run.npz', 'start_paused': True}
    with OnFullDisk(tmp_path, topics, parameters) as session:
        assert session.started().step(9000).success
        said = session.diagnostics()
        assert said['level'] == 2
        assert re.search('recording has ended: .*run.npz .*File too large', said['message'])
        assert session.step(1).success  # the simulation itself goes on
        assert session.simulation.stop() == 1
        assert 'contact_sim: recording has ended' in session.simulation.output()


@pytest.mark.parametrize('name', ['~nobody-at-all/run.npz', 'fifo', '/dev/full', '/no/such/x'])
def test_a_recording_that_cannot_be_ends_the_start_in_one_line(name, tmp_path, monkeypatch, capfd):
    for variable, value in (isolated_environment() | {'ROS_LOG_DIR': str(tmp_path)}).items():
        monkeypatch.setenv(variable, value)
    if name == 'fifo':
        os.mkfifo(tmp_path / name)
        name = str(tmp_path / name)
    interval = sys.getswitchinterval()
    assert main(ros_arguments({'record': name})) == 1
    sys.setswitchinterval(interval)
    said = capfd.readouterr().err
    assert 'Traceback' not in said
    (line,) = [line for line in said.splitlines() if line.startswith('contact_sim: ')]
    assert name in line


@pytest.mark.parametrize(
    ('after', 'pauses', 'statuses'),
    [(0.0, (), (0,)), (0.4, (0.1,), (0,)), (READY, (), (0,)), (READY, (0.05, 0.05), (0,))],
    ids=str,
)
def test_ctrl_c_ends_the_node_with_at_most_one_line(after, pauses, statuses, tmp_path):
    end = interrupted(after, pauses, {'ROS_LOG_DIR': str(tmp_path)})
    assert end.clean, end
    assert end.status in statuses
    assert end.seconds < 30.0


def test_a_second_ctrl_c_ends_a_node_that_does_not_come_back(tmp_path):
    """A step that never ends, as a compiled one may: the first Ctrl-C waits for its end."""
    hang = (
        'from contact_sim.ros._processes import Interruption\n'
        "with Interruption('node'):\n"
        f"    print('{BEGUN}', flush=True)\n"
        "    __import__('hashlib').pbkdf2_hmac('sha256', b'x', b'y', 10**9)\n"
    )
    begin = time.monotonic()
    end = interrupted(0.3, (1.3,), {'ROS_LOG_DIR': str(tmp_path)}, program=hang)
    assert end.status == 130
    assert end.lines == ('node: ended at once',)
    assert time.monotonic() - begin < 30.0
