"""The process: what it refuses at start, how it ends, and what it does when physics fails."""

import math
import re
import signal
import sys
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import START_TIMEOUT, Session, published_topics
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from contact_sim import load_robot
from contact_sim.ros._processes import Process, isolated_environment, ros_arguments
from contact_sim.ros.simulation_node import main

SIMULATION = 'contact_sim.ros.simulation_node'
CONTROLLER = 'contact_sim.ros.controllers.stance'
SOLO12 = load_robot('solo12')


def urdf(mass=1.0):
    """Return a base of `mass` [kg] on one leg that slides."""
    inertia = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    return f'''
      <robot name="hopper">
        <link name="base"><inertial><mass value="{mass}"/>{inertia}</inertial></link>
        <link name="left-leg">
          <inertial><mass value="0.1"/>{inertia}</inertial>
          <collision><geometry><sphere radius="0.02"/></geometry></collision>
        </link>
        <joint name="slide" type="prismatic">
          <parent link="base"/><child link="left-leg"/>
          <origin xyz="0 0 -0.2"/><axis xyz="0 0 1"/>
          <limit lower="-0.1" upper="0.1" effort="100" velocity="5"/>
        </joint>
      </robot>'''


def line_of(text):
    """Return the one line in which the simulation says why it ends."""
    (line,) = [line for line in text.splitlines() if line.startswith('contact_sim: ')]
    return line


def start(module, parameters, folder):
    """Start a process that nobody listens to."""
    environment = isolated_environment() | {'ROS_LOG_DIR': str(folder)}
    return Process(module, ros_arguments(parameters), environment, folder / 'output.log')


@pytest.fixture
def refused(monkeypatch, tmp_path, capfd):
    """Return a function that starts the simulation here; it returns what the refusal says."""
    for name, value in (isolated_environment() | {'ROS_LOG_DIR': str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    before, interval = signal.getsignal(signal.SIGINT), sys.getswitchinterval()

    def said(arguments):
        assert main(arguments) == 1
        text = capfd.readouterr().err
        assert 'Traceback' not in text
        return text

    yield said
    signal.signal(signal.SIGINT, before)
    sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    ('parameters', 'reason'),
    [
        ({'urdf_path': '/no/such.urdf'}, r'/no/such\.urdf'),
        ({'feet': '[FL_foot, tail]'}, "'tail'"),
        ({'contact_links': '[trunk, fin]'}, "link with collision geometry.*'fin'"),
        ({'reference_pose': 'sitting'}, "'sitting'.*standing"),
        ({'time_step': -0.001}, 'time_step.*-0.001'),
        ({'time_step': 0.0}, r'time_step.*range Min: 1e-06.*value: 0'),
        ({'time_step': 'fast'}, 'time_step'),
        ({'contact.model': 'magic'}, "'magic'.*one of.*ncp"),
        ({'friction.mu': -1.0}, r'mu = -1\.0'),
        ({'terrain.type': 'moon'}, "'moon'.*plane"),
        ({'publish_rate.odom': 300.0}, r'300 Hz.*250 and 333\.333'),
        ({'imu.frame_id': 'nose'}, "'nose'.*imu_link"),
        ({'friction.mu': '.nan'}, 'mu = nan'),
        ({'gravity': '.inf'}, 'gravity.*inf'),
        ({'step_count': 0}, 'step_count.*Min: 1'),
        ({'gains.FL_hip_joint.p': 'hard'}, "'hard'.*expected float"),
        ({'time_step': 0.003}, '250 Hz.*333.333 Hz'),
    ],
    ids=str,
)
def test_unusable_parameters_end_the_start_with_one_line(parameters, reason, refused):
    assert re.search(reason, line_of(refused(ros_arguments(parameters))))


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('<robot name="x"><link', 'not well-formed XML'),
        (urdf(mass=0.0), 'mass'),
        (urdf(mass=-1.0), "'base'.*mass.*-1"),
        (urdf(mass=math.nan), "'base'.*mass.*nan"),
        (urdf().replace('link="left-leg"', 'link="arm"'), 'arm'),
    ],
    ids=['malformed', 'no mass', 'negative mass', 'mass is not a number', 'unknown link'],
)
def test_an_unusable_urdf_file_ends_the_start_with_one_line(text, reason, tmp_path, refused):
    path = tmp_path / 'robot.urdf'
    path.write_text(text, encoding='utf-8')
    assert re.search(reason, line_of(refused(ros_arguments({'urdf_path': path}))))


def test_an_unknown_robot_ends_the_process_in_one_line(tmp_path):
    process = start(SIMULATION, {'robot': 'go7'}, tmp_path)
    assert process.handle.wait(START_TIMEOUT) == 1
    assert re.search("contact_sim: unknown robot.*'go7'.*go1", process.output())
    assert 'Traceback' not in process.output()


def test_a_robot_from_a_file_runs_with_its_feet_or_warns(tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_text(urdf(), encoding='utf-8')
    with start(SIMULATION, {'urdf_path': path}, tmp_path) as process:
        wait_for(process, 'no feet are known, only other links touch the ground')
    parameters = {'urdf_path': path, 'feet': '[left-leg]'}
    topics = published_topics(('left-leg',))  # a name that no topic can have
    with Session(tmp_path, topics, parameters) as session:
        session.started()
        (wrench,) = session.fresh('/contacts/left_leg/wrench')
        assert wrench.header.frame_id == 'left-leg'
        assert 'contact points: left-leg (r = 0.02 m)' in session.simulation.output()


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['--params-file', '/no/such.yaml'], r'/no/such\.yaml'),
        (['-p', 'friction.mu'], 'friction.mu'),
        (['--speed', '3'], '--speed'),
    ],
    ids=['missing file', 'parameter without value', 'unknown option'],
)
def test_unusable_ros_arguments_end_the_start_without_traceback(arguments, reason, refused):
    said = refused(['--ros-args', *arguments])
    assert re.search(f'contact_sim: .*{reason}', said, re.DOTALL)


def test_the_controller_refuses_an_unknown_robot_in_one_line(tmp_path):
    process = start(CONTROLLER, {'robot': 'go7'}, tmp_path)
    assert process.handle.wait(START_TIMEOUT) == 1
    assert re.search("stance_controller: unknown robot.*'go7'", process.output())
    assert 'Traceback' not in process.output()


def wait_for(process, text):
    end = time.monotonic() + START_TIMEOUT
    while text not in process.output():
        assert process.running, process.output()
        assert time.monotonic() < end, f'never said {text!r}: {process.output()}'
        time.sleep(0.05)


@pytest.mark.parametrize(
    ('number', 'paused'), [(signal.SIGINT, False), (signal.SIGTERM, True)], ids=str
)
def test_the_start_says_what_is_simulated_and_a_signal_ends_it_cleanly(number, paused, tmp_path):
    parameters = {
        'robot': 'go1', 'initial_height': 0.02, 'contact_links': '[trunk, FL_calf]',
        'actuators.delay': 0.002, 'actuators.FL_calf_joint.saturation_effort': 45.0,
        'start_paused': paused,
    }  # fmt: skip
    with start(SIMULATION, parameters, tmp_path) as process:
        wait_for(process, 'messages per second')
        said = process.output()
        time.sleep(0.5)
        process.handle.send_signal(number)
        assert process.handle.wait(10.0) == 0
    assert not re.search('Traceback|terminate called|Exception', process.output())
    for fact in ('go1: 13.101 kg', 'contact model ncp', 'h = 0.001 s', 'FL_hip_joint, FL_thigh',
                 'FL_foot (r = 0.02 m)', 'a gap of 0.02 m', 'PD gains', 'odom 250',
                 'links that touch the ground: trunk, FL_calf\n',
                 'actuators of FL_calf_joint: effort limit 35.55 N m, velocity limit 20.06 rad/s '
                 '(not driven faster), torque-speed curve from 45 N m at rest',
                 'delay 0.002 s', 'dry friction 0.2 N m', 'off in all actuators: armature, lag',
                 'backlash is not modelled'):  # fmt: skip
        assert fact in said


def test_a_signal_ends_steps_that_somebody_waits_for(tmp_path):
    """A call of ~/step that would take minutes, with listeners on every topic."""
    topics = published_topics(tuple(foot.name for foot in SOLO12.feet))
    with Session(tmp_path, topics, {'robot': 'solo12', 'start_paused': True}) as session:
        assert session.started().set(step_count=10_000_000).successful
        session.ask('/contact_sim/step', Trigger, Trigger.Request())
        session.fresh('/joint_states', 100)
        begin = time.perf_counter()
        session.simulation.handle.send_signal(signal.SIGINT)
        assert session.simulation.handle.wait(10.0) == 0
        assert time.perf_counter() - begin < 6.0
        said = session.simulation.output()
        assert not re.search('Traceback|terminate called|Exception', said)


@pytest.fixture(scope='module')
def exploded(tmp_path_factory):
    """Return solo12 after efforts that no simulation survives: its limits are 1000 N m."""
    folder = tmp_path_factory.mktemp('exploded')
    heard = ('/joint_states', '/odom', '/diagnostics')
    topics = {topic: published_topics(())[topic] for topic in heard}
    parameters = {'robot': 'solo12', 'start_paused': True}
    with Session(folder, topics, parameters) as session:
        session.started()
        efforts = session.node.create_publisher(
            Float64MultiArray, 'joint_group_effort_controller/commands', 1
        )
        session.wait_for_subscriber(efforts)
        efforts.publish(Float64MultiArray(data=[1000.0, -1000.0] * 6))
        session.wait(lambda: session.diagnostics()['commands_accepted'] == '1', 'the efforts')
        session.clear()
        yield session, session.step(20000)


def test_a_state_that_is_not_finite_stops_the_simulation(exploded):
    session, response = exploded
    assert not response.success
    assert re.search(r'stopped at t = .* s, wait for ~/reset: step \d+ .*', response.message)
    diagnostics = session.diagnostics()
    assert diagnostics['level'] == 2
    assert diagnostics['message'] == response.message
    assert response.message in session.simulation.output()


def test_no_number_published_before_the_stop_is_nan(exploded):
    session, _ = exploded
    session.settle()
    seen = 0
    for message in session.messages['/joint_states']:
        numbers = [*message.position, *message.velocity, *message.effort]
        assert np.isfinite(numbers).all()
        seen += len(numbers)
    assert seen > 0


def test_after_a_reset_it_stands_again(exploded):
    session, _ = exploded
    assert session.reset().success
    session.settle()
    session.clear()
    assert session.step(1000).success
    session.settle()
    assert session.diagnostics()['level'] == 0
    height = session.messages['/odom'][-1].pose.pose.position.z
    assert height == pytest.approx(SOLO12.reference_configuration()[2], abs=0.02)


def test_sigint_during_the_first_compilation_ends_the_node(tmp_path, monkeypatch):
    monkeypatch.setenv('NUMBA_CACHE_DIR', str(tmp_path / 'kernels'))
    process = start(SIMULATION, {'robot': 'go1'}, tmp_path)
    deadline = time.monotonic() + START_TIMEOUT
    while 'compiling the numerical kernels' not in process.output():
        assert process.running
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.handle.send_signal(signal.SIGINT)
    assert process.handle.wait(90.0) == 0  # a kernel that is being compiled is finished first
    said = process.output()
    assert 'Traceback' not in said
    assert 'Exception ignored' not in said
    assert 'joints, in the order' not in said  # it ended before it was ready
