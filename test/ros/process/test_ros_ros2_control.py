"""The topics that joint_state_topic_hardware_interface of ros2_control lives on; no ros2_control.

`Plugin` says and hears what JointStateTopicSystem does (docs/ros2_control.md): the same topics,
qualities of service and fields.
"""

import math

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from ros_session import START_TIMEOUT, stamp_of, values_of
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from contact_sim import load_robot
from contact_sim.ros.remote.client import SimulationClient
from contact_sim.ros.remote.processes import Process

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
