"""ROS programs as controllers of trials: in lockstep, repeatable, and with errors that say why."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from contact_sim.campaign import Trial, load_controller, run_trial
from contact_sim.errors import InvalidInput
from contact_sim.robot import load_robot
from contact_sim.simulation import Simulator
from contact_sim.verdict.variants import Held, written

pytest.importorskip('rclpy', reason='ROS 2 is not installed')
_ros_controller = pytest.importorskip('contact_sim.campaign._ros_controller')
pytestmark = pytest.mark.ros

ANSWERS = '''
import sys
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header


class Squat(Node):
    """Commands the positions of the first state, lower by what `kind` says."""

    def __init__(self, kind):
        super().__init__('squat')
        self.kind, self.first = kind, None
        self.publisher = self.create_publisher(JointState, 'joint_commands', 1000)
        self.waits = self.create_publisher(Header, 'contact_sim/lockstep_ack', 1000)
        self.create_subscription(JointState, 'joint_states', self.answer, 1000)

    def answer(self, state):
        stamp = state.header.stamp.nanosec
        if self.kind.startswith('log:'):
            with open(self.kind[4:], 'a') as file:
                print(stamp, file=file)
        if self.first is None:
            self.first = list(state.position)
        if self.kind == 'late' and stamp <= 50_000_000:
            self.waits.publish(state.header)
            return
        command = JointState(header=state.header, name=list(state.name))
        command.position = [x + 0.05 for x in self.first]
        if self.kind == 'unknown':
            command.name[0] = 'no_such_joint'
        if self.kind == 'endless' and stamp > 20_000_000:
            raise SystemExit('the program gives up')
        if self.kind in ('halves', 'half'):
            legs = JointState(header=state.header, name=command.name[:6])
            legs.position = command.position[:6]
            self.publisher.publish(legs)
            del command.name[:6], command.position[:6]
        if self.kind != 'half':
            self.publisher.publish(command)


rclpy.init()
rclpy.spin(Squat(sys.argv[1]))
'''


@pytest.fixture
def program(tmp_path):
    file = tmp_path / 'squat.py'
    file.write_text(ANSWERS)
    return lambda kind, form='ros:': f'{form}{sys.executable} {file} {kind}'


def trial(controller, seconds=0.1):
    return Trial(controller, robot='quadruped', scenario='stand', seconds=seconds)


def test_a_ros_program_runs_in_lockstep_to_the_same_bits(program):
    rows = [run_trial(trial(program('good'))) for _ in range(2)]
    assert [row['outcome'] for row in rows] == ['ok', 'ok']
    assert rows[0]['hash'] == rows[1]['hash']
    assert rows[0]['steps'] == 100
    held = run_trial(trial('hold'))
    assert rows[0]['hash'] != held['hash']  # its commands did act


def test_with_a_rate_states_go_out_at_its_multiples(program, tmp_path):
    log = tmp_path / 'stamps'
    row = run_trial(trial(program(f'log:{log}', 'ros@250:')))
    assert row['outcome'] == 'ok', row['reason']
    # the first stamp is a period, because ROS takes 0 for a clock that has not started
    assert [int(line) for line in log.read_text().split()] == list(
        range(4_000_000, 104_000_000, 4_000_000)
    )


def test_between_its_multiples_the_last_command_acts(program):
    robot = load_robot('quadruped')
    sim = Simulator(robot, 'ncp')
    controller = load_controller(program('good', 'ros@250:'), robot, 'quadruped')
    controller.reset(sim)
    try:
        commands = [controller.effort(1e-3 * k, sim.q, sim.v) for k in range(9)]
    finally:
        controller.target.close()
    assert [commands[k] is commands[k - 1] for k in range(1, 9)] == [
        k % 4 != 0 for k in range(1, 9)
    ]
    target = robot.joint_positions(sim.q) + 0.05
    np.testing.assert_allclose(commands[0].position, target, atol=1e-12)


@pytest.mark.parametrize('rate', ['0', '-250', 'fast', '', 'nan', 'inf'])
def test_a_rate_is_a_positive_number(rate):
    with pytest.raises(InvalidInput, match=rf'rate {rate!r}.*ros@250:'):
        load_controller(f'ros@{rate}:module', load_robot('quadruped'), 'quadruped')


@pytest.mark.parametrize('rate', ['300', '2000'])
def test_a_period_of_no_whole_number_of_steps_is_refused(rate):
    row = run_trial(trial(f'ros@{rate}:module'))
    assert row['outcome'] == 'refused'
    assert f'ros@{rate}' in row['reason']
    assert 'time steps of 1 ms' in row['reason']


def test_commands_may_come_in_several_messages(program):
    rows = [run_trial(trial(program(kind, 'ros@250:'))) for kind in ('good', 'halves')]
    assert [row['outcome'] for row in rows] == ['ok', 'ok'], rows[1]['reason']
    assert rows[0]['hash'] == rows[1]['hash']


def test_joints_without_a_command_are_named(program, monkeypatch):
    monkeypatch.setattr(_ros_controller, 'START_TIMEOUT', 3.0)
    row = run_trial(trial(program('half')))
    assert row['outcome'] == 'controller_error'
    missing = load_robot('quadruped').joint_names[6:]
    assert f'no joint_commands of {", ".join(sorted(missing))} with the stamp' in row['reason']


def test_an_acknowledgement_leaves_the_joints_as_they_are(program):
    rows = {kind: run_trial(trial(program(kind))) for kind in ('good', 'late')}
    assert rows['late']['outcome'] == 'ok', rows['late']['reason']
    assert rows['late']['hash'] != rows['good']['hash']  # it held the standing pose at first


def test_a_joint_that_does_not_exist_is_an_error_of_the_controller(program):
    row = run_trial(trial(program('unknown')))
    assert row['outcome'] == 'controller_error'
    assert 'no_such_joint' in row['reason']


def test_a_program_that_ends_is_an_error_with_what_it_wrote(program):
    row = run_trial(trial(program('endless')))
    assert row['outcome'] == 'controller_error'
    assert 'the program gives up' in row['reason']


def test_what_a_program_has_started_ends_with_it(program, tmp_path):
    child = tmp_path / 'child'
    answers = program('good', '')
    row = run_trial(trial(f"ros:bash -c 'sleep 600 & echo $! > {child}; exec {answers}'"))
    assert row['outcome'] == 'ok', row['reason']
    number = child.read_text().strip()
    end = time.monotonic() + 10.0
    while Path('/proc', number).exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path('/proc', number).exists()


def test_a_module_is_told_the_robot_its_feet_and_nothing_of_its_meshes():
    program_of = _ros_controller.program_of
    assert program_of('module', 'go1') == ('module', ['--ros-args', '-p', 'robot:=go1'])
    for path in ('my/go1.urdf', 'mine.urdf', 'mine.xacro'):
        name, arguments = program_of('module', path, ['a', 'b'])
        assert name == 'module'
        assert arguments == ['--ros-args', '-p', f'urdf_path:={path}', '-p', 'check_meshes:=false',
                             '-p', "feet:=['a', 'b']"]  # fmt: skip
    assert program_of('./program --fast', 'mine.urdf', ['a']) == (['./program', '--fast'], [])


def test_a_module_controls_a_robot_whose_feet_are_named_and_whose_mesh_is_missing(tmp_path):
    robot = load_robot('quadruped')
    path, mesh = tmp_path / 'mine.urdf', '<visual><geometry><mesh filename="no.stl"/></geometry>'
    plain = tmp_path / 'plain.urdf'
    path.write_text(robot.description.replace('<visual>', f'{mesh}</visual><visual>', 1))
    plain.write_text(robot.description)
    feet = ', '.join(foot.frame for foot in robot.feet)
    module = 'contact_sim.ros.controllers.stance'
    row = run_trial(Trial(f'ros:{module}', str(path), seconds=0.1, feet=feet))
    assert row['outcome'] == 'ok', row['reason']
    same = run_trial(Trial(f'ros:{module}', str(plain), seconds=0.1, feet=feet))
    assert row['hash'] == same['hash'] != ''
    # as a controller in a slower loop it is told them, too
    held = written(tmp_path, Held, f'ros:{module}', 1e-3, source=str(path), feet=feet)
    assert run_trial(Trial(held, str(path), seconds=0.1, feet=feet))['hash'] == same['hash']


def test_a_program_that_cannot_be_run_is_named():
    row = run_trial(trial('ros:/no/such/program --fast'))
    assert row['outcome'] in ('controller_error', 'refused')
    assert '/no/such/program' in row['reason']
