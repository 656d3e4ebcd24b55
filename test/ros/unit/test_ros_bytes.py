"""The bytes of every message are those that rclpy itself writes for its fields."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from rclpy.serialization import deserialize_message, serialize_message
from robots import stand

from contact_sim import InclinedPlane, Simulator, joined, load_robot
from contact_sim.constraints import PointAnchor
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._parameters import PARAMETER_GROUPS
from contact_sim.ros._publishers import message_class
from contact_sim.topics._markers import ContactMarkers, MarkerArrays, marker_array
from contact_sim.topics._messages import (
    DEFINITIONS,
    NUMBERS,
    TIMES,
    Channel,
    Step,
    encoder,
    fields_of,
    uniform,
)
from contact_sim.topics._world_topics import SimulationTopics

SECOND = 1_000_000_000


class Bytes(dict):
    """A sink that keeps the bytes of the messages of each topic, with their type."""

    def channel(self, topic):
        sent = self.setdefault((topic.name, topic.type), [])

        class Kept(Channel):
            def send(self, data):
                sent.append(data)

        return Kept(topic)


def as_rclpy_writes_it(kind, data, may_be_empty=False):
    """Return whether rclpy writes the message with these bytes so, None without its class.

    It leaves padding as its memory has it: bytes that differ have to be 0 here, and not be read.
    It fills up the last word, and aligns sequences of doubles that are empty, which CDR does not
    ask for: with those only what is read is compared.
    """
    try:
        message_type = message_class(kind)
    except ModuleNotFoundError:
        return None
    message = deserialize_message(data, message_type)
    theirs = serialize_message(message)
    if deserialize_message(theirs, message_type) != message:
        return False
    if len(theirs) - len(data) >= 4:
        return may_be_empty
    ours = np.frombuffer(data, np.uint8)
    return not np.any(ours[ours != np.frombuffer(theirs, np.uint8)[: len(ours)]])


def published(robot, steps, constraints):
    """Return the messages of all topics in some steps of a stance."""
    sim = Simulator(robot, terrain=InclinedPlane(0.1), constraints=constraints)
    sim.shadow = ('sap',)
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    sent = Bytes()
    topics = SimulationTopics(sim, settings, constraints, sent, links=True)
    topics.publish_static_transforms(3)
    topics.publish_descriptions()
    topics.publish_ground(5)
    pushed = constraints[0].frame
    reports = stand(sim, max(steps) + 1)
    due = set(vars(settings['publish_rate']))
    for k in steps:
        topics.publish_clock(k)
        topics.publish(Step(reports[k], due, {pushed: np.arange(6.0)}, 1.0))
    return sent


@pytest.mark.parametrize('robot', ['go1', 'solo8', 'two'])
def test_topics_are_written_to_the_bit(robot):
    if robot == 'two':
        robot = joined({'a': load_robot('go1'), 'left_b': load_robot('solo12')})
    else:
        robot = load_robot(robot)
    part = parts_of(robot)[0]
    anchored = part.qualified_name(part.robot.base_frame)
    constraints = (PointAnchor(anchored),)
    sent = published(robot, (0, 1, 30), constraints)
    checked = 0
    for (name, kind), messages in sent.items():
        for data in messages:
            written = as_rclpy_writes_it(kind, data, 'stamped' in name or 'effort' in name)
            assert written is not False, name
            checked += written is True
    assert checked > 60


@pytest.mark.parametrize('name', sorted(DEFINITIONS.keys() - set(TIMES)))
@pytest.mark.parametrize('size', [0, 1, 2, 3, 7])
def test_every_type_is_written_to_the_bit(name, size):
    """Random content, with sequences of `size` and strings of all lengths modulo 4."""
    kind = name.replace('/', '/msg/')
    rng = np.random.default_rng(size)
    for _ in range(3):
        data = encoder(name)(random_message(name, size, rng))
        written = as_rclpy_writes_it(kind, data, size == 0)
        if written is None:
            pytest.skip(f'{name} is not installed')
        assert written


def random_value(kind, size, rng):
    if kind == 'string':
        return 'ä' * int(rng.integers(0, 3)) + 'name' * size + 'x' * int(rng.integers(0, 4))
    if kind in ('builtin_interfaces/Time', 'builtin_interfaces/Duration'):
        return int(rng.integers(0, 2**60))
    if kind == 'diagnostic_msgs/KeyValue':
        return [random_value('string', size, rng) for _ in range(2)]
    numbers = uniform(kind)
    if numbers is not None:
        return random_numbers(*numbers, rng)
    return random_message(kind, size, rng)


def random_numbers(kind, count, rng):
    if kind.startswith('float'):
        return rng.normal(size=count).astype(kind)
    return rng.integers(0, 2, count) if kind == 'bool' else rng.integers(0, 100, count)


def random_message(name, size, rng):
    if name == 'diagnostic_msgs/KeyValue':
        return random_value(name, size, rng)
    numbers = uniform(name)
    if numbers is not None:
        return random_numbers(*numbers, rng)
    message = {}
    for field in fields_of(name):
        if field.size is None:
            value = random_value(field.type, size, rng)
            message[field.name] = value[0] if field.type in NUMBERS else value
        else:
            count = field.size or size
            values = [random_value(field.type, size, rng) for _ in range(count)]
            flat = uniform(field.type) is not None
            message[field.name] = np.array(values).ravel() if flat else values
    return message


def test_a_layout_writes_what_the_encoder_writes():
    """Marker arrays of changing structure: contacts that open, pushes that come and go."""
    sim = Simulator(load_robot('go1'), friction=0.3)
    sim.reset(time=1.25)
    made, arrays, structures = ContactMarkers(), MarkerArrays('odom'), set()
    for k, report in enumerate(stand(sim, 40)):
        pushes = {'trunk': np.arange(6.0) + k} if k % 3 else {}
        shapes = made.of(report, pushes, {'trunk': np.ones(3)})
        time = k * SECOND // 3
        data = arrays.serialised(shapes, time)
        assert data == encoder('visualization_msgs/MarkerArray')(
            marker_array(shapes, time, 'odom')
        )
        structures.add(len(data))
    assert len(structures) > 1
