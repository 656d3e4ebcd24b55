"""Controllers in the process of the simulation: the same runs, without messages between them."""

import threading
import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from contact_sim import ContactSimError
from contact_sim.replay import Recording
from contact_sim.ros._client import environment
from contact_sim.ros._processes import Process, isolated_environment
from contact_sim.ros.composed import Composition, controller_class
from contact_sim.ros.controllers.stance import StanceController

STANCE = 'contact_sim.ros.controllers.stance'
LOCKSTEP = {'robot': 'go1', 'lockstep.enabled': True, 'real_time_factor': 0.0}
RATES = {f'publish_rate.{name}': 1000.0 for name in ('joint_states', 'odom', 'imu', 'wrenches')}


@pytest.fixture(autouse=True)
def _domain():
    with environment(isolated_environment()):
        yield


class Ordinary(Node):
    """Answers states as any rclpy node does, and uses everything that nodes have besides."""

    def __init__(self):
        super().__init__('ordinary')
        self.set_parameters([rclpy.parameter.Parameter('use_sim_time', value=True)])
        self.gain = self.declare_parameter('gain', 1.0).value
        self.publisher = self.create_publisher(JointState, 'joint_commands', 10)
        self.create_subscription(JointState, 'joint_states', self.on_state, 10)
        self.create_subscription(Odometry, 'odom', self.on_odom, qos_profile_sensor_data)
        self.create_subscription(Odometry, 'odom', self.on_bytes, 10, raw=True)
        self.create_subscription(JointState, 'joint_states', self.on_both, 10)
        self.other = self.create_publisher(String, 'other', 10)
        self.create_subscription(
            String, 'other', lambda message: self.said.append(message.data), 10
        )
        self.reset = self.create_client(Trigger, 'contact_sim/reset')
        self.push = self.create_publisher(WrenchStamped, 'external_wrench', 10)
        self.create_timer(0.1, self.on_timer)
        self.states, self.heights, self.bytes, self.infos, self.said = [], [], [], [], []
        self.ticks, self.threads, self.answers = [], set(), []

    def on_state(self, state):
        self.threads.add(threading.get_ident())
        self.states.append(state)
        command = JointState(name=state.name, effort=[self.gain] * len(state.name))
        command.header.stamp = state.header.stamp
        self.publisher.publish(command)

    def on_odom(self, odom):
        self.heights.append(odom.pose.pose.position.z)

    def on_bytes(self, data):
        self.bytes.append(data)

    def on_both(self, state, info):
        self.infos.append(info)

    def on_other(self, message):
        self.said.append(message.data)

    def on_timer(self):
        self.threads.add(threading.get_ident())
        self.ticks.append(self.get_clock().now().nanoseconds)
        self.other.publish(String(data='hello'))
        if len(self.ticks) == 2:
            self.reset.call_async(Trigger.Request()).add_done_callback(self.answers.append)


def test_a_composed_run_is_that_of_separate_processes(lockstep_trial, tmp_path):
    run = lockstep_trial(STANCE, parameters={'initial_height': 0.02})
    run.advance(0.3)
    run.close()
    recording = tmp_path / 'composed.npz'
    parameters = LOCKSTEP | RATES | {'initial_height': 0.02, 'record': str(recording)}
    with Composition(
        StanceController, parameters=parameters, controller_parameters={'robot': 'go1'}
    ) as composition:
        composition.advance(0.3)
    assert Recording(recording).digest == run.digest


def test_an_ordinary_node_runs_as_it_does_alone():
    parameters = LOCKSTEP | RATES
    with Composition(Ordinary, parameters=parameters, controller_parameters={'gain': 0.5}) as run:
        (node,) = run.controllers
        run.advance(0.05)
        assert run.simulation.sim.last_report.effort.tolist() == pytest.approx([0.5] * 12)
        begin = time.perf_counter()
        while not node.answers and time.perf_counter() - begin < 20.0:
            run.advance(0.1)
        sim = run.simulation.sim
        stamps = [s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec for s in node.states]
        assert stamps[:3] == pytest.approx([0.001, 0.002, 0.003])
        assert len(node.heights) == len(node.bytes) > 50
        assert isinstance(node.bytes[0], bytes)
        assert len(node.infos) == len(node.states)
        assert node.answers[0].result().success  # a service, over the network
        assert 'hello' in node.said
        # timers are on simulated time, and all callbacks in one thread
        assert node.ticks[0] == pytest.approx(0.1e9, abs=2e6)
        assert node.ticks[1] - node.ticks[0] == pytest.approx(0.1e9, abs=2e6)
        assert len(node.threads) == 1
        assert sim.time > 0.15


class Clocked(Node):
    """Subscribes and publishes after it was made, and stops."""

    def __init__(self):
        super().__init__('clocked')
        self.times = []
        self.subscription = self.create_subscription(Clock, '/clock', self.on_clock, 10)

    def on_clock(self, clock):
        self.times.append(clock.clock.nanosec)
        if len(self.times) == 5:
            assert self.destroy_subscription(self.subscription)
            publisher = self.create_publisher(JointState, 'joint_commands', 1)
            with pytest.raises(TypeError, match='JointState'):
                publisher.publish('no message')
            assert self.destroy_publisher(publisher)


def test_subscriptions_end_and_errors_reach_the_caller():
    with Composition(Clocked, parameters={'robot': 'go1', 'real_time_factor': 0.0}) as run:
        run.advance(0.02)
        assert run.controllers[0].times[:5] == [1_000_000 * k for k in range(2, 7)]
        assert len(run.controllers[0].times) == 5
    with (
        Composition(Raises, parameters=LOCKSTEP | RATES) as run,
        pytest.raises(ZeroDivisionError),
    ):
        run.advance(1.0)


class Raises(Node):
    def __init__(self):
        super().__init__('raises')
        self.create_subscription(JointState, 'joint_states', lambda state: 1 / 0, 10)


def test_what_is_no_controller_is_refused():
    for place in ('contact_sim', 'no_such_module:Class', f'{STANCE}:no_class', f'{STANCE}:main'):
        with pytest.raises(ContactSimError, match=place.replace('.', r'\.')):
            controller_class(place)
    assert controller_class(f'{STANCE}:StanceController') is StanceController
    with pytest.raises(ContactSimError, match='class of rclpy nodes'):
        Composition(print)
    with pytest.raises(ContactSimError, match='no_robot'):
        Composition(Ordinary, parameters={'robot': 'no_robot'})
    assert not rclpy.ok()


def test_the_program_runs_until_it_is_interrupted(tmp_path):
    recording = tmp_path / 'run.npz'
    arguments = [f'{STANCE}:StanceController', '--ros-args', '-p', 'robot:=go1']
    arguments += ['-p', f'record:={recording}']
    log = tmp_path / 'log'
    with Process('contact_sim.ros.composed', arguments, isolated_environment(), log) as process:
        time.sleep(8.0)
        assert process.stop() == 0, log.read_text()
    assert Recording(recording).digest
    missing = Process('contact_sim.ros.composed', ['--ros-args'], isolated_environment(), log)
    assert missing.handle.wait(60.0) == 1
    assert 'name at least one controller' in log.read_text()
