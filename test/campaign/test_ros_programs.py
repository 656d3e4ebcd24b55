"""ROS programs as controllers of trials: in lockstep, repeatable, and with errors that say why."""

import sys

import pytest

from contact_sim.campaign import Trial, run_trial

pytest.importorskip('rclpy', reason='ROS 2 is not installed')
pytestmark = pytest.mark.ros

ANSWERS = '''
import sys
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState


class Squat(Node):
    """Commands the positions of the first state, lower by what `kind` says."""

    def __init__(self, kind):
        super().__init__('squat')
        self.kind, self.first = kind, None
        self.publisher = self.create_publisher(JointState, 'joint_commands', 1000)
        self.create_subscription(JointState, 'joint_states', self.answer, 1000)

    def answer(self, state):
        if self.first is None:
            self.first = list(state.position)
        command = JointState(header=state.header, name=list(state.name))
        command.position = [x + 0.05 for x in self.first]
        if self.kind == 'unknown':
            command.name[0] = 'no_such_joint'
        if self.kind == 'endless' and state.header.stamp.nanosec > 20_000_000:
            raise SystemExit('the program gives up')
        self.publisher.publish(command)


rclpy.init()
rclpy.spin(Squat(sys.argv[1]))
'''


@pytest.fixture
def program(tmp_path):
    file = tmp_path / 'squat.py'
    file.write_text(ANSWERS)
    return lambda kind: f'ros:{sys.executable} {file} {kind}'


def trial(controller, seconds=0.1):
    return Trial(controller, robot='quadruped', scenario='stand', seconds=seconds)


def test_a_ros_program_runs_in_lockstep_to_the_same_bits(program):
    rows = [run_trial(trial(program('good'))) for _ in range(2)]
    assert [row['outcome'] for row in rows] == ['ok', 'ok']
    assert rows[0]['hash'] == rows[1]['hash']
    assert rows[0]['steps'] == 100
    held = run_trial(trial('hold'))
    assert rows[0]['hash'] != held['hash']  # its commands did act


def test_a_joint_that_does_not_exist_is_an_error_of_the_controller(program):
    row = run_trial(trial(program('unknown')))
    assert row['outcome'] == 'controller_error'
    assert 'no_such_joint' in row['reason']


def test_a_program_that_ends_is_an_error_with_what_it_wrote(program):
    row = run_trial(trial(program('endless')))
    assert row['outcome'] == 'controller_error'
    assert 'the program gives up' in row['reason']


def test_a_program_that_cannot_be_run_is_named():
    row = run_trial(trial('ros:/no/such/program --fast'))
    assert row['outcome'] in ('controller_error', 'refused')
    assert '/no/such/program' in row['reason']
