"""The topics that hardware interfaces of ros2_control live on; no ros2_control.

`Plugin` says and hears what JointStateTopicSystem does (docs/ros2_control.md): the same topics,
qualities of service and fields. `Component` does what LockstepSystem of
examples/ros2_control_lockstep does.
"""

import math
import random
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from ros_session import START_TIMEOUT, Session, published_topics, stamp_of, values_of
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from contact_sim import load_robot
from contact_sim.ros._client import SimulationClient
from contact_sim.ros._processes import Process

ROBOT = load_robot('go1')
JOINTS = list(ROBOT.joint_names)
IN_ORDER_OF_THE_URDF = [name for leg in ('FR', 'FL', 'RR', 'RL') for name in JOINTS if leg in name]
STATES, COMMANDS = 'robot_joint_states', 'robot_joint_commands'


class Plugin:
    """The topics of a hardware interface; joints come in an order of its own."""

    def __init__(self, node):
        self.node, self.states, self.clock = node, [], []
        node.create_subscription(JointState, STATES, self.states.append, qos_profile_sensor_data)
        node.create_subscription(
            Clock, '/clock', self.clock.append, qos_profile_sensor_data
        )  # as every node with use_sim_time
        self.publisher = node.create_publisher(JointState, COMMANDS, QoSProfile(depth=1))

    def write(self, **values):
        message = JointState(name=IN_ORDER_OF_THE_URDF)
        message.header.stamp = self.clock[-1].clock
        for field, value in values.items():
            setattr(message, field, [float(number) for number in value])
        self.publisher.publish(message)

    def read(self, field):
        """Return one field of the last states in the plugin's order of joints."""
        last = self.states[-1]
        by_name = dict(zip(last.name, getattr(last, field), strict=True))
        return np.array([by_name[name] for name in IN_ORDER_OF_THE_URDF])


@pytest.fixture(scope='module')
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp('ros2_control')
    client = SimulationClient(folder)
    client.plugin = Plugin(client.node)
    client.said_of_itself = []
    client.node.create_subscription(
        DiagnosticArray, '/diagnostics', client.said_of_itself.append, 10
    )
    remaps = ['-r', f'joint_states:={STATES}', '-r', f'joint_commands:={COMMANDS}']
    client.simulation = Process(
        'contact_sim.ros.simulation_node', ['--ros-args', *remaps], client.domain, folder / 'log'
    )
    try:
        client.wait(lambda: client.plugin.states and client.plugin.clock, 'states', START_TIMEOUT)
        client.wait(client.plugin.publisher.get_subscription_count, 'the simulation to listen')
        yield client
    finally:
        client.close()


def diagnostics(client):
    client.said_of_itself.clear()
    client.wait(lambda: client.said_of_itself, 'diagnostics')
    return values_of(client.said_of_itself[-1])


def test_joint_state_broadcaster_alone_owns_joint_states(client):
    assert client.node.count_publishers('/joint_states') == 0
    assert client.node.count_publishers(STATES) == 1
    assert client.node.count_subscribers(COMMANDS) == 1


def test_states_have_every_field_of_every_joint_and_simulated_stamps(client):
    plugin = client.plugin
    last = plugin.states[-1]
    assert sorted(last.name) == sorted(IN_ORDER_OF_THE_URDF)
    for field in ('position', 'velocity', 'effort'):
        values = plugin.read(field)
        assert values.shape == (12,)
        assert np.isfinite(values).all()
    client.wait(lambda: stamp_of(plugin.clock[-1]) > stamp_of(last), 'the clock to pass it')
    expected = dict(
        zip(JOINTS, ROBOT.joint_positions(ROBOT.reference_configuration()), strict=True)
    )
    standing = [expected[name] for name in IN_ORDER_OF_THE_URDF]
    assert plugin.read('position') == pytest.approx(standing, abs=0.1)


def test_before_a_controller_is_active_the_plugin_says_nan_and_the_robot_stands(client):
    before = diagnostics(client)
    for _ in range(20):
        client.plugin.write(position=[math.nan] * 12, effort=[math.nan] * 12)
        client.spin(0.01)
    after = diagnostics(client)
    assert int(after['commands_dropped']) > int(before['commands_dropped'])
    assert after['commands_accepted'] == before['commands_accepted']
    assert 'nan: must be finite' in after['last_refusal']
    assert np.abs(client.plugin.read('velocity')).max() < 0.5


def test_joints_with_different_interfaces_are_refused_and_said(client):
    client.plugin.write(position=[0.0] * 5, effort=[0.0] * 7)
    client.wait(
        lambda: '5 values of position for 12 joints' in diagnostics(client)['last_refusal'],
        'the refusal',
    )


@pytest.mark.parametrize('fields', [('position',), ('position', 'velocity', 'effort')])
def test_positions_are_followed_by_name(client, fields):
    plugin = client.plugin
    start = plugin.read('position')
    shift = 0.05 * np.array([1.0, -1.0, 1.0] * 4)
    values = {'position': start + shift, 'velocity': np.zeros(12), 'effort': np.zeros(12)}
    for _ in range(40):
        plugin.write(**{field: values[field] for field in fields})
        client.spin(0.02)
    moved = plugin.read('position') - start
    assert moved[0::3] == pytest.approx(shift[0::3], abs=0.03)
    plugin.write(**{field: (values | {'position': start})[field] for field in fields})
    client.spin(0.5)


def test_efforts_alone_act_as_they_are(client):
    plugin = client.plugin
    wanted = np.linspace(-3.0, 3.0, 12)
    client.wait(
        lambda: plugin.write(effort=wanted) or np.array_equal(plugin.read('effort'), wanted),
        'the efforts to act',
    )


# -------------------------------------------------------------------- in lockstep

PERIOD = 4
IN_LOCKSTEP = {
    'start_paused': True, 'real_time_factor': 0.0, 'lockstep.enabled': True,
    'lockstep.period': PERIOD, 'lockstep.timeout': 30.0, 'lockstep.policy': 'pause',
    'publish_rate.joint_states': 250.0,
}  # fmt: skip


class Component:
    """Answers the state of each instant with commands that bear its stamp, late and out of order.

    Acknowledgements until a controller is active; then a message per set of interfaces: the hips
    by position, the thighs by effort and position, the knees, which nobody commands, held. A state
    that comes twice is answered twice.

    Args:
        session: whose node speaks.
        active: instants [ns] from which on the controllers are active.
        delay: longest wall time for an answer [s].
        seed: of the delays.
    """

    def __init__(self, session, active, delay, seed):
        self.active, self.delay, self.random = active, delay, random.Random(seed)
        self.node, self.answered, self.hold = session.node, 0, {}
        self.commands = self.node.create_publisher(JointState, 'joint_commands', 100)
        self.acknowledgement = self.node.create_publisher(Header, 'contact_sim/lockstep_ack', 100)
        self.states = self.node.create_subscription(JointState, 'joint_states', self.answer, 100)

    def answer(self, state):
        self.answered = stamp_of(state)
        time.sleep(self.random.uniform(0.0, self.delay))
        for name, position in zip(state.name, state.position, strict=True):
            self.hold.setdefault(name, position)
        if self.answered < self.active:
            self.acknowledgement.publish(Header(stamp=state.header.stamp))
            return
        messages = [JointState(), JointState(), JointState()]
        phase = 1e-9 * self.answered
        for name, velocity in zip(state.name, state.velocity, strict=True):
            kind = ('hip', 'thigh', 'calf').index(name.split('_')[1])
            messages[kind].name.append(name)
            swing = 0.05 * math.sin(9.0 * phase) if kind < 2 else 0.0
            messages[kind].position.append(self.hold[name] + swing)
            if kind == 1:
                messages[kind].effort.append(-0.3 * velocity)
        self.random.shuffle(messages)
        for message in messages:
            message.header.stamp = state.header.stamp
            self.commands.publish(message)

    def close(self):
        self.node.destroy_subscription(self.states)
        for publisher in (self.commands, self.acknowledgement):
            self.node.destroy_publisher(publisher)


def component_run(session, steps, delay, seed):
    """Return joint_states by stamp, as exact bytes, of a run with the component."""
    session.reset()
    session.reset_time()
    session.settle()
    session.clear()
    component = Component(session, 40_000_000, delay, seed)
    session.wait(lambda: session.node.count_subscribers('/joint_states') == 2, 'the component')
    for publisher in (component.commands, component.acknowledgement):
        session.wait_for_subscriber(publisher)
    answer = session.step(steps)
    assert answer.success, answer.message
    component.close()
    session.settle()
    return {
        stamp_of(m): np.array([m.position, m.velocity, m.effort]).tobytes()
        for m in session.messages['/joint_states']
    }


def test_in_lockstep_delays_and_order_of_the_messages_change_no_bit(tmp_path):
    topics = {t: published_topics(())[t] for t in ('/clock', '/joint_states', '/diagnostics')}
    with Session(tmp_path, topics, IN_LOCKSTEP) as session:
        session.started()
        first = component_run(session, 160, 0.0, 1)
        delayed = component_run(session, 160, 0.01, 2)
        assert session.diagnostics()['lockstep_timeouts'] == '0'
    assert list(first) == [k * 1_000_000 for k in range(PERIOD, 162, PERIOD)]
    assert delayed == first
    states = np.array([np.frombuffer(state).reshape(3, 12) for state in first.values()])
    hips, thighs = np.ptp(states[:, 0, 0::3], axis=0), np.ptp(states[:, 0, 1::3], axis=0)
    assert min(hips.min(), thighs.min()) > 0.02  # those that are commanded move
