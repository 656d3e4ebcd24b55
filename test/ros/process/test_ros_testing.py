"""The test kit with the real node: controllers as processes, in lockstep."""

import random
from unittest.mock import MagicMock

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from sensor_msgs.msg import JointState

from contact_sim import InvalidInput, UnknownName
from contact_sim.replay import Recording, repeat
from contact_sim.ros._conversions import set_stamp
from contact_sim.testing._lockstep_trial import STATES, Relay

STANCE = 'contact_sim.ros.controllers.stance'
COUNTING = """
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

class Counting(Node):
    '''Commands as effort the number of milliseconds in the stamp.'''
    def __init__(self):
        super().__init__('counting')
        self.publisher = self.create_publisher(JointState, 'joint_commands', 100)
        self.create_subscription(JointState, 'joint_states', self.answer, 100)

    def answer(self, state):
        tick = round(1e3 * (state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec))
        command = JointState(name=state.name, effort=[0.01 * tick] * len(state.name))
        command.header.stamp = state.header.stamp
        self.publisher.publish(command)

rclpy.init()
try:
    rclpy.spin(Counting())
except (KeyboardInterrupt, ExternalShutdownException):
    pass
"""


@pytest.fixture
def counting(tmp_path):
    path = tmp_path / 'counting.py'
    path.write_text(COUNTING)
    return path


def test_a_lockstep_run_is_the_same_whatever_the_delays(lockstep_trial):
    """Direct, and through a relay that keeps every command back for a random while."""
    digests = []
    for faults in (False, True):
        run = lockstep_trial(STANCE, faults=faults, parameters={'initial_height': 0.02})
        if faults:
            run.lag_commands(5e-3)
        run.advance(0.15)
        run.friction, run.contact_model = 0.5, 'sap'
        assert (run.friction, run.contact_model) == (0.5, 'sap')
        run.advance(0.1)
        run.contact_model = 'ncp'
        run.reset()
        run.advance(0.05)
        digests.append(run.digest)
    assert digests[0] == digests[1]
    track = run.trajectory
    assert len(track.time) == 300
    assert np.diff(track.time) == pytest.approx([*[1e-3] * 249, 2e-3, *[1e-3] * 49])
    track.assert_never_fell()
    run.close()
    outcome = repeat(Recording(run.recording))
    assert outcome.equal
    assert outcome.digest == digests[0]


def test_a_restart_repeats_every_bit(lockstep_trial):
    run = lockstep_trial(STANCE, parameters={'initial_height': 0.02})
    for _ in range(3):
        run.restart()
        run.advance(0.12)
    track = run.trajectory
    runs = slice(1, None)  # before the first restart there is one step, in which they meet
    assert track.time[runs].tolist() == np.tile(track.time[1:121], 3).tolist()
    first, second, third = track.q[runs].reshape(3, 120, -1)
    assert np.ptp(first[:, 2]) > 0.015  # it has landed
    assert first.tobytes() == second.tobytes() == third.tobytes()


def test_faults_and_pushes_act_on_exact_steps(lockstep_trial, counting):
    """The state of millisecond k is answered with 0.01 k; faults begin with the next state."""
    run = lockstep_trial(counting, faults=True)
    run.advance(0.005)
    run.delay_commands(0.003)
    run.advance(0.007)
    run.delay_commands(0.0)
    run.advance(0.003)
    run.drop_sensors(0.004)
    run.advance(0.007)
    acted = 100.0 * run.trajectory.effort[:, 3]
    assert acted == pytest.approx(
        [1, 2, 3, 4, 5, 6, 6, 6, 6, 7, 8, 9, 10, 14, 15, 16, 16, 16, 16, 16, 21, 22]
    )
    run.push('trunk', force=(10.0, 0.0, -5.0), seconds=0.004, torque=(0.0, 1.0, 0.0))
    run.advance(0.01)
    with pytest.raises(UnknownName, match='nose'):
        run.push('nose', force=(10.0, 0.0, 0.0), seconds=0.1)
    # pushes on one link add up
    run.push('trunk', force=(10.0, 0.0, 0.0), seconds=0.006)
    run.advance(0.001)
    run.push('trunk', force=(0.0, 4.0, 0.0), seconds=0.002, torque=(0.0, 0.0, 1.0))
    run.advance(0.01)
    pushed = [event for event in Recording(run.recording).events if event['kind'] == 'wrenches']
    assert [(event['step'], event['wrenches']) for event in pushed] == [
        (22, {'trunk': [10.0, 0.0, -5.0, 0.0, 1.0, 0.0]}), (26, {}),
        (32, {'trunk': [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]}),
        (33, {'trunk': [10.0, 4.0, 0.0, 0.0, 0.0, 1.0]}),
        (35, {'trunk': [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]}), (38, {}),
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match='start another'):
        run.restart()


class Wires:
    """A node whose subscriptions are called here, and whose messages are kept by topic."""

    def __init__(self):
        self.sent, self.callbacks = {}, {}

    def create_publisher(self, kind, topic, qos):
        sent = self.sent.setdefault(topic, [])
        return MagicMock(publish=lambda message: sent.append(tick_of(message)))

    def create_subscription(self, kind, topic, callback, qos):
        self.callbacks[topic] = callback

    def hear(self, topic, tick):
        message = STATES.get(topic, JointState)()
        set_stamp(message.header.stamp, 1e-3 * tick)
        self.callbacks[topic](message)


def tick_of(message):
    stamp = getattr(message, 'stamp', None) or message.header.stamp
    return round(1e3 * (stamp.sec + 1e-9 * stamp.nanosec))


@pytest.mark.parametrize('seed', range(5))
def test_dropped_states_are_the_same_however_topics_overtake_each_other(seed):
    """Two topics may lag behind the one that is answered, even behind the call of `drop`."""
    wires, rng = Wires(), random.Random(seed)
    relay = Relay(wires, 1, 1e-3)
    left = {topic: list(range(1, 21)) for topic in STATES}
    while any(left.values()):
        told = (left['joint_states'] or [20])[0]
        topic = rng.choice([topic for topic, ticks in left.items() if ticks and ticks[0] <= told])
        tick = left[topic].pop(0)
        wires.hear(topic, tick)
        if topic == 'joint_states' and not 5 < tick <= 9:
            wires.hear('trial/joint_commands', tick)
            if tick == 5:
                relay.drop(4, 1.0, 0)
    assert wires.sent['contact_sim/lockstep_ack'] == [6, 7, 8, 9]
    assert wires.sent['joint_commands'] == [1, 2, 3, 4, 5, *range(10, 21)]
    for topic in STATES:
        assert wires.sent[f'trial/{topic}'] == [1, 2, 3, 4, 5, *range(10, 21)]


def test_a_share_of_the_states_is_lost_by_seed():
    def lost(seed):
        wires = Wires()
        Relay(wires, 1, 1e-3).drop(400, 0.25, seed)
        for tick in range(1, 501):
            wires.hear('joint_states', tick)
        return wires.sent['contact_sim/lockstep_ack']

    assert lost(0) == lost(0) != lost(1)
    assert 65 < len(lost(0)) < 135  # 100 expected, standard deviation 9
    assert max(lost(0)) <= 400


def test_a_state_told_twice_is_answered_once():
    """The node repeats itself where it does not know whether anybody listens."""
    wires = Wires()
    Relay(wires, 1, 1e-3).delay(3)
    for tick in (1, 1, 1, 2, 3, 4, 5):
        wires.hear('trial/joint_commands', tick)
    assert wires.sent['contact_sim/lockstep_ack'] == [1, 1, 1, 2, 3]
    assert wires.sent['joint_commands'] == [4, 5]


def test_commands_have_their_period_and_a_dead_controller_fails_the_trial(
    lockstep_trial, counting
):
    run = lockstep_trial(counting, control_steps=4, patience=0.5)
    run.advance(0.020)
    acted = 100.0 * run.trajectory.effort[:, 3]
    assert acted[3:] == pytest.approx(np.repeat([4, 8, 12, 16, 20], 4)[:17])
    with pytest.raises(InvalidInput, match='friction'):
        run.friction = -1.0
    with pytest.raises(InvalidInput, match='faults=True'):
        run.drop_sensors(0.1)
    run._programs[0].handle.kill()
    with pytest.raises(TimeoutError, match='controller'):
        run.advance(0.1)
    assert 20 <= len(run.trajectory.time) <= 24  # what happened before is there
