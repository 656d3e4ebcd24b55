"""What a recording is exported as is what the node has published, message by message."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip('rosbags', reason='needs rosbags')
pytest.importorskip('mcap', reason='needs mcap')

from exported import numbers, read_bag
from rclpy.serialization import deserialize_message

from contact_sim.replay import Recording
from contact_sim.replay._export import RATES, SEEN, Targets, export
from contact_sim.ros._factory import (
    chosen_constraints,
    loaded_simulator,
    recorder_of,
    start_configuration,
)
from contact_sim.ros._parameters import (
    PARAMETER_GROUPS,
    ConstraintNames,
    ConstraintParameters,
    NodeParameters,
)
from contact_sim.ros._publishers import Outputs
from contact_sim.ros._robots import loaded_robot
from contact_sim.sensors import EncoderSensing, ImuSensing, NoiseParameters
from contact_sim.topics._table import PublishRateParameters, absolute

EVERY_STEP = PublishRateParameters(**dict.fromkeys(RATES, 1000.0), shadow=0.0)
STEPS, PUSHED, HELD = 40, range(10, 15), range(20, 30)
NOISE = NoiseParameters(
    imu_gyro=0.01, imu_accel=0.1, joint_position=1e-3, joint_velocity=1e-2, foot_force=0.5,
    foot_torque=0.05,
)  # fmt: skip
LATE = {'sensors.imu': ImuSensing(latency=2), 'sensors.joints': EncoderSensing(latency=1)}


class Network:
    """A node without a network: keeps the bytes of what is published on every topic."""

    def __init__(self):
        self.sent = {}
        self.context = SimpleNamespace(ok=lambda: True)

    def create_publisher(self, kind, topic, _quality):
        kept = self.sent.setdefault(absolute(topic), (kind, []))[1]
        handle = SimpleNamespace(publish_raw=kept.append, get_subscription_count=lambda: 1)
        return SimpleNamespace(handle=handle)

    def get_logger(self):
        return SimpleNamespace(info=print, warning=print)

    def get_fully_qualified_name(self):
        return '/contact_sim'

    def get_name(self):
        return 'contact_sim'

    def resolve_topic_name(self, topic):
        return topic


def settings_of(**groups):
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    return settings | {'publish_rate': EVERY_STEP, **groups}


def published_and_exported(settings, folder):
    """Return what the node publishes of a run, and what its recording is exported as."""
    recorded = folder / 'run.npz'
    settings[''] = NodeParameters(**{**vars(settings['']), 'record': str(recorded)})
    sim = loaded_simulator(loaded_robot(settings), settings)
    sim.reset(start_configuration(sim, settings), time=sim.time_step)
    constraints, sim.constraints = chosen_constraints(settings), ()
    network = Network()
    outputs = Outputs(network, sim, settings)
    recorder = recorder_of(sim, settings, print)
    random = np.random.default_rng(2)
    frame = sim.robot.pinocchio_model.frames[-1].name
    for k in range(STEPS):
        if constraints and k in (HELD.start, HELD.stop):
            sim.constraints = constraints if k in HELD else ()
        push = {frame: np.array([5.0, 2.0, 1.0, 0.0, 0.3, 0.0])} if k in PUSHED else {}
        report = sim.step(5.0 * random.normal(size=sim.robot.n_joints), push)
        outputs.publish(report, 0.0, push)
    recorder.close()
    target = folder / 'run.mcap'
    rates = dict.fromkeys(SEEN, 1000.0)
    done = export(Recording(recorded), Targets(mcap=target, ground_truth=True, rates=rates))
    assert (done.steps, done.first_difference, done.damage) == (STEPS, None, '')
    return network.sent, read_bag(target)


def same(message, other):
    """Return whether what rclpy reads from bytes is what rosbags reads."""
    if hasattr(message, 'get_fields_and_field_types'):
        names = message.get_fields_and_field_types()
        return all(same(getattr(message, name), getattr(other, name)) for name in names)
    if isinstance(message, (list, tuple)):
        return len(message) == len(other) and all(map(same, message, other))
    if isinstance(message, bytes):  # a byte
        return message[0] == other
    return np.array_equal(message, other)


def check(sent, bag, only_published=('/contact_sim/shadow', '/diagnostics')):
    """Every message that was published is in the file, equal to the byte, and no other.

    What rclpy reads from the bytes is what rosbags reads.
    """
    compared = 0
    for topic, (kind, published) in sent.items():
        if topic in only_published:
            continue
        exported = bag.raw.get(topic, [])
        assert len(exported) == len(published), topic
        read_again = bag.messages.get(topic, [])
        for ours, theirs, other in zip(exported, published, read_again, strict=True):
            assert ours == theirs, topic
            message = deserialize_message(theirs, kind)
            assert same(message, other), topic
            compared += 1
    assert set(bag.messages) - set(sent) == {'/tf', '/tf_static'}  # of them there is no wheel
    assert compared > 10 * STEPS


def test_noisy_sensors_body_contacts_and_constraints(tmp_path):
    settings = settings_of(noise=NOISE, **LATE)
    settings[''] = NodeParameters(
        robot='go1', contact_links=('trunk', 'FL_calf'), frame_prefix='x_', seed=3,
        publish_robot_description=True, restitution=0.2,
    )  # fmt: skip
    settings['constraints'] = ConstraintNames(('rope', 'lock'))
    settings |= {
        'constraints.rope': ConstraintParameters(kind='point_anchor', frame='trunk'),
        'constraints.lock': ConstraintParameters(kind='joint_lock', joint='FR_hip_joint'),
    }
    sent, bag = published_and_exported(settings, tmp_path)
    check(sent, bag)
    assert {'/constraints/rope/wrench', '/constraints/lock/effort', '/link_contacts',
            '/contact_sim/ground_truth/imu', '/robot_description'} <= sent.keys()  # fmt: skip
    held = [np.abs(numbers(one.wrench.force)).max() > 0.0
            for one in bag.messages['/constraints/rope/wrench']]  # fmt: skip
    assert held == [k in HELD for k in range(STEPS)]
    odom = bag.messages['/odom'][-1]
    base = bag.messages['/tf'][-1].transforms[0]
    assert base.child_frame_id == odom.child_frame_id
    assert base.transform.translation == bag_vector(base, odom)


def bag_vector(transform, odom):
    """Return the position of odometry in the class of a translation."""
    position = odom.pose.pose.position
    return type(transform.transform.translation)(x=position.x, y=position.y, z=position.z)


def test_several_robots(tmp_path):
    settings = settings_of(noise=NOISE)
    settings[''] = NodeParameters(
        robots=('a=go1', 'b=box:0.2:0.2:0.2:1.0@1.0,0.5,0.3'), contact_wrench_frame='odom',
        world_frame='', publish_robot_description=True,
    )  # fmt: skip
    sent, bag = published_and_exported(settings, tmp_path)
    check_names = {'/a/joint_states', '/b/odom', '/a/contact_sim/ground_truth/imu'}
    assert check_names <= sent.keys()
    check(sent, bag)
