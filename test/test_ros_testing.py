"""The test kit with the real node: controllers as processes, in lockstep."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from contact_sim import InvalidInput, UnknownName
from contact_sim.replay import Recording, repeat

pytestmark = pytest.mark.ros

STANCE = 'contact_sim.ros.stance_controller'
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
        run.advance(0.3)
        run.friction, run.contact_model = 0.5, 'sap'
        assert (run.friction, run.contact_model) == (0.5, 'sap')
        run.advance(0.2)
        run.contact_model = 'ncp'
        run.reset()
        run.advance(0.1)
        digests.append(run.digest)
    assert digests[0] == digests[1]
    track = run.trajectory
    assert len(track.time) == 600
    assert np.diff(track.time) == pytest.approx([*[1e-3] * 499, 2e-3, *[1e-3] * 99])
    track.assert_never_fell()
    run.close()
    outcome = repeat(Recording(run.recording))
    assert outcome.equal
    assert outcome.digest == digests[0]


def test_faults_act_on_exact_steps(lockstep_trial, counting):
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
    pushed = [event for event in Recording(run.recording).events if event['kind'] == 'wrenches']
    assert [(event['step'], event['wrenches']) for event in pushed] == [
        (22, {'trunk': [10.0, 0.0, -5.0, 0.0, 1.0, 0.0]}), (26, {}),
    ]  # fmt: skip


def test_commands_have_their_period(lockstep_trial, counting):
    run = lockstep_trial(counting, control_steps=4)
    run.advance(0.020)
    acted = 100.0 * run.trajectory.effort[:, 3]
    assert acted[3:] == pytest.approx(np.repeat([4, 8, 12, 16, 20], 4)[:17])


def test_a_dead_controller_fails_the_trial(lockstep_trial, counting):
    run = lockstep_trial(counting, patience=0.5)
    run.advance(0.01)
    with pytest.raises(InvalidInput, match='friction'):
        run.friction = -1.0
    with pytest.raises(InvalidInput, match='faults=True'):
        run.drop_sensors(0.1)
    run._programs[0].handle.kill()
    with pytest.raises(TimeoutError, match='controller'):
        run.advance(0.1)
    assert len(run.trajectory.time) in (10, 11)  # what happened before is there
