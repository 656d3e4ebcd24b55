"""A controller on the Unix socket of lockstep: its run is that of one on topics, to the bit."""

import math
import threading

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from lockstep_peer import TIMEOUT, Peer
from rclpy.serialization import deserialize_message, serialize_message
from ros_session import Session, published_topics, stamp_of
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from contact_sim.topics._table import NODE

TOPICS = ('/clock', '/joint_states', '/diagnostics')
PERIOD = 2
STEPS = 160
IN_LOCKSTEP = {
    'start_paused': True, 'real_time_factor': 0.0, 'lockstep.enabled': True,
    'lockstep.period': PERIOD, 'lockstep.timeout': 30.0, 'lockstep.policy': 'pause',
    'publish_rate.joint_states': 1000.0 / PERIOD,
}  # fmt: skip
ACTIVE = 40_000_000
"""Instant from which on the joints are commanded [ns]."""


class Law:
    """Answers a state: acknowledges, later swings the thighs by effort and holds the others."""

    def __init__(self):
        self.start = {}

    def answer(self, state):
        """Return the messages with the answer."""
        for name, position in zip(state.name, state.position, strict=True):
            self.start.setdefault(name, position)
        stamp = stamp_of(state)
        if stamp < ACTIVE:
            return [Header(stamp=state.header.stamp)]
        held, driven = JointState(), JointState()
        for name, position, velocity in zip(
            state.name, state.position, state.velocity, strict=True
        ):
            message = driven if 'thigh' in name else held
            message.name.append(name)
            if message is driven:
                target = self.start[name] + 0.05 * math.sin(2e-8 * stamp)
                message.effort.append(60.0 * (target - position) - 2.0 * velocity)
            else:
                message.position.append(self.start[name])
        for message in (held, driven):
            message.header.stamp = state.header.stamp
        return [held, driven]


def rewound(session):
    session.reset()
    session.reset_time()
    session.settle()
    session.clear()


def states_of(session):
    session.settle()
    return {
        stamp_of(m): np.array([m.position, m.velocity, m.effort]).tobytes()
        for m in session.messages['/joint_states']
    }


def run_on_topics(session):
    rewound(session)
    law, node = Law(), session.node
    publishers = {
        JointState: node.create_publisher(JointState, 'joint_commands', 100),
        Header: node.create_publisher(Header, 'contact_sim/lockstep_ack', 100),
    }

    def answer(state):
        for message in law.answer(state):
            publishers[type(message)].publish(message)

    subscription = node.create_subscription(JointState, 'joint_states', answer, 100)
    session.wait(lambda: node.count_subscribers('/joint_states') == 2, 'the controller')
    for publisher in publishers.values():
        session.wait_for_subscriber(publisher)
    response = session.step(STEPS)
    assert response.success, response.message
    node.destroy_subscription(subscription)
    for publisher in publishers.values():
        node.destroy_publisher(publisher)
    return states_of(session)


def run_on_socket(session, path):
    rewound(session)
    law, peer = Law(), Peer(path)

    def serve():
        stamp = 0
        while stamp < STEPS * 1_000_000:
            state = deserialize_message(peer.receive(), JointState)
            stamp = stamp_of(state)
            for message in law.answer(state):
                send = peer.acknowledge if isinstance(message, Header) else peer.command
                send(serialize_message(message))

    controller = threading.Thread(target=serve, daemon=True)
    controller.start()
    response = session.step(STEPS)
    assert response.success, response.message
    controller.join(TIMEOUT)
    peer.close()
    return states_of(session)


def test_a_run_on_the_socket_is_that_on_topics_to_the_bit(tmp_path):
    path = tmp_path / 'socket'
    topics = {topic: published_topics(())[topic] for topic in TOPICS}
    with Session(tmp_path, topics, IN_LOCKSTEP | {'lockstep.socket': str(path)}) as session:
        session.started()
        on_topics = run_on_topics(session)
        on_socket = [run_on_socket(session, path) for _ in range(2)]
        assert session.diagnostics()['lockstep_timeouts'] == '0'
    assert list(on_topics) == [k * 1_000_000 for k in range(PERIOD, STEPS + 2, PERIOD)]
    assert on_socket == [on_topics, on_topics]
    states = np.array([np.frombuffer(state).reshape(3, 12) for state in on_topics.values()])
    assert np.ptp(states[:, 0, 1::3], axis=0).min() > 0.02  # the thighs move
    assert not path.exists()


def test_each_of_several_robots_has_its_controller_on_the_socket(tmp_path):
    path = tmp_path / 'socket'
    topics = {topic: published_topics(())[topic] for topic in ('/clock', '/diagnostics')}
    robots = {'robots': ['a=go1', 'b=go1@0.0,2.0,0.0'], 'lockstep.socket': str(path)}
    with Session(tmp_path, topics, IN_LOCKSTEP | robots) as session:
        session.started()
        heard = {name: [] for name in 'ab'}

        def serve(name, peer):
            while not heard[name] or stamp_of(heard[name][-1]) < STEPS * 1_000_000:
                state = deserialize_message(peer.receive(), JointState)
                heard[name].append(state)
                effort = [1.0 if name == 'a' else -1.0] * len(state.name)
                peer.command(
                    serialize_message(
                        JointState(header=state.header, name=state.name, effort=effort)
                    )
                )

        peers = {name: Peer(path, name) for name in heard}
        threads = [
            threading.Thread(target=serve, args=item, daemon=True) for item in peers.items()
        ]
        for thread in threads:
            thread.start()
        response = session.step(STEPS)
        assert response.success, response.message
        for thread in threads:
            thread.join(TIMEOUT)
        assert session.diagnostics()['lockstep_timeouts'] == '0'
        stranger = Peer(path, 'c')
        session.ask(f'/{NODE}/step', Trigger, Trigger.Request())
        assert "known: 'a', 'b'" in stranger.refusal()
    instants = {k * 1_000_000 for k in range(PERIOD, STEPS + 2, PERIOD)}
    for states, effort in ((heard['a'], 1.0), (heard['b'], -1.0)):
        assert {stamp_of(state) for state in states} == instants  # the first may come twice
        later = [tuple(state.effort) for state in states if stamp_of(state) > min(instants)]
        assert set(later) == {(effort,) * 12}
