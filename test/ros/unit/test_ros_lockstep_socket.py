"""The Unix socket of lockstep: who may come, what goes where, and what ends a wait."""

import os
import socket
import stat
import threading
import time

import numpy as np
import pytest
from lockstep_peer import Peer

from contact_sim import load_robot
from contact_sim.errors import InvalidInput
from contact_sim.ros._commands import CommandBuffer
from contact_sim.ros._lockstep import SLICE, Lockstep, Verdict
from contact_sim.ros._lockstep_socket import LONGEST_PATH, LockstepSocket, Robot
from contact_sim.ros._parameters import LockstepParameters

JOINTS = list(load_robot('go1').joint_names)
N = len(JOINTS)


class Rig:
    """A socket with two robots, whose packets are kept."""

    def __init__(self, path):
        self.said, self.taken = [], []
        robots = {name: Robot(self.keep('command', name), self.keep('ack', name)) for name in 'ab'}
        self.server = LockstepSocket(str(path), robots, self.said.append)

    def keep(self, kind, name):
        def take(data):
            if data == b'bad':
                raise ValueError('too short')
            self.taken.append((kind, name, data))

        return take

    def serve(self):
        """Serve until nothing has come for a while; return how many controllers have."""
        new = 0
        for _ in range(5):
            new += self.server.serve(0.01)
        return new


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path / 'socket')
    yield rig
    rig.server.close()


def test_only_this_user_may_connect(rig):
    assert stat.S_IMODE(os.stat(rig.server.path).st_mode) == 0o600


def test_states_go_to_the_controllers_of_their_robot_alone(rig):
    assert not rig.server.listens('a')
    first, second, other = Peer(rig.server.path, 'a'), Peer(rig.server.path, 'a'), None
    assert rig.serve() == 2
    assert rig.server.listens('a')
    assert not rig.server.listens('b')
    other = Peer(rig.server.path, 'b')
    assert rig.serve() == 1
    rig.server.send('a', b'state of a')
    rig.server.send('b', b'state of b')
    assert [p.receive() for p in (first, second, other)] == [b'state of a'] * 2 + [b'state of b']


def test_answers_are_taken_in_the_order_in_which_they_were_sent(rig):
    peer = Peer(rig.server.path, 'b')
    rig.serve()
    peer.command(b'1')
    peer.acknowledge(b'2')
    peer.command(b'3')
    rig.serve()
    assert rig.taken == [('command', 'b', b'1'), ('ack', 'b', b'2'), ('command', 'b', b'3')]


@pytest.mark.parametrize(
    ('greeting', 'robot', 'reason'),
    [(b'hello', 'a', r"expected b'contact_sim lockstep 1"), (None, 'c', "unknown robot 'c'")],
)
def test_a_stranger_is_refused_with_the_reason(rig, greeting, robot, reason):
    peer = Peer(rig.server.path, robot, **({'greeting': greeting} if greeting else {}))
    assert rig.serve() == 0
    assert reason in peer.refusal()
    assert reason in rig.said[-1]


@pytest.mark.parametrize(
    ('packet', 'reason'), [(b'xyz', "begins with b'x'"), (b'cbad', 'cannot be read: too short')]
)
def test_a_packet_that_cannot_be_read_ends_the_connection(rig, packet, reason):
    peer, good = Peer(rig.server.path, 'a'), Peer(rig.server.path, 'a')
    rig.serve()
    peer.socket.send(packet)
    rig.serve()
    assert reason in peer.refusal()
    rig.server.send('a', b'state')  # the others go on
    assert good.receive() == b'state'


def test_a_controller_that_goes_is_forgotten(rig):
    peer = Peer(rig.server.path, 'a')
    rig.serve()
    peer.close()
    rig.server.send('a', b'state')  # before anybody has noticed
    rig.serve()
    assert not rig.server.listens('a')
    assert 'disconnected' in rig.said[-1]
    Peer(rig.server.path, 'a')
    assert rig.serve() == 1


def test_a_controller_that_reads_nothing_does_not_stop_the_simulation(rig):
    Peer(rig.server.path, 'a')
    rig.serve()
    for _ in range(10_000):
        if not rig.server.listens('a'):
            break
        rig.server.send('a', bytes(1000))
    assert 'disconnected' in rig.said[-1]


def test_another_thread_ends_the_wait(rig):
    threading.Timer(0.05, rig.server.wake).start()
    begin = time.perf_counter()
    rig.server.serve(20.0)
    assert time.perf_counter() - begin < 10.0


def test_two_simulations_do_not_listen_at_one_place(rig):
    with pytest.raises(InvalidInput, match='another simulation listens there'):
        LockstepSocket(rig.server.path, {}, print)


def test_what_a_killed_simulation_has_left_is_replaced(tmp_path):
    path = tmp_path / 'socket'
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dead.bind(str(path))
    dead.close()
    server = LockstepSocket(str(path), {'': Robot(print, print)}, print)
    server.close()
    assert not path.exists()


@pytest.mark.parametrize(
    ('name', 'reason'),
    [('missing/socket', 'No such file'), ('x' * LONGEST_PATH, 'more than 107 bytes')],
)
def test_a_path_that_will_not_do_is_said(tmp_path, name, reason):
    with pytest.raises(InvalidInput, match=f'lockstep.socket = .*{reason}'):
        LockstepSocket(str(tmp_path / name), {}, print)


def test_a_file_of_somebody_else_is_left_alone(tmp_path):
    path = tmp_path / 'notes.txt'
    path.write_text('mine', encoding='utf-8')
    with pytest.raises(InvalidInput):
        LockstepSocket(str(path), {}, print)
    assert path.read_text(encoding='utf-8') == 'mine'


# -------------------------------------------------------------------- with the rules of lockstep


class Node:
    """A buffer and its lockstep with a socket, on which an effort is one byte."""

    def __init__(self, path):
        self.buffer = CommandBuffer(JOINTS, np.zeros(N), np.full(N, 50.0), np.full(N, 2.0))
        self.lockstep = Lockstep(self.buffer, JOINTS, {}, print)
        self.lockstep.configure(LockstepParameters(enabled=True, timeout=10.0), 0)
        robot = Robot(self.command, lambda data: self.lockstep.acknowledge('', data[0]))
        self.lockstep.socket = LockstepSocket(str(path), {'': robot}, print)

    def command(self, data):
        stamp, effort = data
        self.buffer.take_joint_state(JOINTS, [], [], [float(effort)] * N, stamp)

    def patiently(self, now):
        while (verdict := self.lockstep.verdict(now, now)) is Verdict.WAIT:
            pass
        return verdict


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path / 'socket')
    yield node
    node.lockstep.socket.close()


def test_a_step_waits_for_the_answer_on_the_socket(node):
    begin = time.perf_counter()
    assert node.lockstep.verdict(5, 5) is Verdict.WAIT
    assert time.perf_counter() - begin > 0.9 * SLICE
    peer = Peer(node.lockstep.socket.path)
    assert node.lockstep.verdict(5, 5) is Verdict.WAIT
    while not node.lockstep.newcomer:  # who has to be told the state
        assert node.lockstep.verdict(5, 5) is Verdict.WAIT
    peer.command(bytes([4, 1]))  # for an instant that is over
    peer.command(bytes([5, 2]))
    begin = time.perf_counter()
    assert node.patiently(5) is Verdict.STEP
    assert time.perf_counter() - begin < 0.9 * SLICE  # it is not waited for the callback thread
    assert node.buffer.current.effort.tolist() == [2.0] * N
    peer.acknowledge(bytes([6]))
    assert node.patiently(6) is Verdict.STEP
    assert node.buffer.current.effort.tolist() == [2.0] * N


def test_a_command_on_a_topic_ends_the_wait_on_the_socket(node):
    quickest = SLICE
    for now in range(1, 11):
        timer = threading.Timer(0.3 * SLICE, node.command, ((now, 3),))
        timer.start()
        begin = time.perf_counter()
        assert node.patiently(now) is Verdict.STEP
        quickest = min(quickest, time.perf_counter() - begin)
        timer.join()
    assert quickest < 0.8 * SLICE
