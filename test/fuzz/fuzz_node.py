"""Odd messages, and odd parameters, for a running node.

Topics, message types and parameters are those that the node says it has, so that new ones are
tried as they come. After each batch the node answers a service, and its state is finite.
"""

from __future__ import annotations

import importlib
import math
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_values import TEXTS, shown
from fuzz_workers import PAGE, Finding, Tally, chance_of
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import ListParameters, SetParameters, SetParametersAtomically
from rclpy.qos import QoSProfile

from contact_sim import load_robot
from contact_sim.ros._client import SimulationClient
from contact_sim.topics._table import NODE

ROBOT = 'quadruped'
BATCH = 50
"""Messages between two questions: fewer than the queue of a subscription is deep."""
ANSWER = 5.0
"""Wall time in which the node answers [s]."""
START = 120.0
NUMBERS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.1, 1e-310, 1e-12, 1e3, 1e6, 1e12, 1e80,
    1e200, 1.7e308, -1e200, -1e6, 0.5,
)  # fmt: skip
SINGLE = (0.0, 1.0, -1.0, 1e30, math.nan, math.inf)
MILD = (0.0, 0.0, 0.01, -0.1, 0.5, 1.0)
IGNORED = ('/parameter_events', '/clock')
ARRAY = re.compile(r'sequence<([^,>]+)(?:, *(\d+))?>|([^\[]+)\[(\d+)\]')
WHOLE = re.compile(r'(u?)int(\d+)')


def message_class(kind: str) -> Any:
    """Return the class of 'sensor_msgs/msg/Imu', or 'sensor_msgs/Imu'."""
    package, _, name = kind.replace('/msg/', '/').partition('/')
    return getattr(importlib.import_module(f'{package}.msg'), name)


class Oddity:
    """Fills messages with random values; `mild` ones may be taken by the node."""

    def __init__(self, chance: random.Random, names: list[str]) -> None:
        self.chance, self.names = chance, names
        self.mild = chance.random() < 0.5
        self.large = False

    def message(self, kind: str) -> Any:
        """Return a message of a type."""
        message = message_class(kind)()
        for field, of in message.get_fields_and_field_types().items():
            if not self.mild or self.chance.random() < 0.8:
                setattr(message, field, self.value(of))
        if kind.endswith('Quaternion') and self.chance.random() < 0.6:
            message.x = message.y = message.z = 0.0
            message.w = 1.0
        return message

    def value(self, of: str) -> Any:
        """Return a value of the type of a field."""
        array = ARRAY.fullmatch(of)
        if array:
            item, length = array[1] or array[3], array[4]
            return self.array(item, int(length) if length else None, array[2])
        whole = WHOLE.fullmatch(of)
        if whole:
            bits, low = int(whole[2]), 0 if whole[1] else -(2 ** (int(whole[2]) - 1))
            high = low + 2**bits - 1
            return self.chance.choice((0, 1, low, high, min(7, high), min(1000, high)))
        if of in ('float', 'double'):
            numbers = (
                NUMBERS[:-1] if of == 'double' else (0.0, 1.0, -1.0, 1e30, math.nan, math.inf)
            )
            return self.chance.choice(MILD if self.mild else numbers)
        if of == 'boolean':
            return self.chance.random() < 0.5
        if of in ('octet', 'byte'):
            return bytes([self.chance.randrange(256)])
        if of.startswith('string') or of.startswith('wstring'):
            return self.text()
        return self.message(of)

    def array(self, item: str, length: int | None, most: str | None) -> Any:
        """Return a list; fixed ones have their length."""
        n = self.chance.choice((0, 1, 2, 4, 12, 12, 13)) if length is None else length
        if length is None and not (self.mild or self.large) and self.chance.random() < 0.01:
            n, self.large = 20_000, True  # one of a message: memory is looked at, too
        n = min(n, int(most)) if most else n
        values = [self.value(item) for _ in range(min(n, 40))]
        values = (values * (n // max(len(values), 1) + 1))[:n]
        if item == 'string' and self.chance.random() < 0.5:
            values = self.names[:n]
        return b''.join(values) if item in ('octet', 'byte') and length is None else values

    def text(self) -> str:
        """Return a name of the robot, or something odd."""
        if self.chance.random() < 0.6:
            return self.chance.choice(self.names)
        return self.chance.choice(TEXTS).replace('\0', '?').replace('\ud800', '?')


class Node:
    """A simulation node as a process, asked for its topics and parameters.

    Args:
        folder: for its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        robot = load_robot(ROBOT)
        links = [frame.name for frame in robot.pinocchio_model.frames]
        self.names = [*robot.joint_names, *links, 'odom', 'world', '']
        self.start()

    def start(self) -> None:
        """Start the node and wait until it publishes."""
        self.client = SimulationClient(self.folder)
        self.odometry: Odometry | None = None
        self.client.node.create_subscription(Odometry, '/odom', self._keep, QoSProfile(depth=1))
        self.client.start({'robot': ROBOT, 'record': '', 'command_timeout': 1e6})
        self.client.wait(lambda: self.odometry is not None, '/odom', START)
        self.publishers: dict[str, Any] = {}
        live = [name for name in self.parameters() if not self.client.describe(name)[0].read_only]
        self.first = dict(zip(live, self.client.get(*live), strict=True))

    def calm(self) -> str:
        """Set back all parameters, the pose and time: odd ones may rightly stop it.

        Returns:
            Why that was refused, '' if it was not.
        """
        told = {name: value for name, value in self.first.items() if value is not None}
        result = self.client.set(told)
        if result.successful:
            result = self.client.reset()
            return '' if result.success else str(result.message)
        return str(result.reason)

    def restart(self) -> None:
        """Start another node in place of this one."""
        self.client.close()
        self.start()

    def _keep(self, message: Odometry) -> None:
        self.odometry = message

    def topics(self) -> dict[str, str]:
        """Return what the node listens to, topic to type."""
        self.client.wait(lambda: NODE in self.client.node.get_node_names(), NODE, START)
        found = self.client.node.get_subscriber_names_and_types_by_node(NODE, '/')
        return {name: kinds[0] for name, kinds in sorted(found) if name not in IGNORED}

    def parameters(self) -> list[str]:
        """Return the names of all parameters."""
        request = ListParameters.Request()
        answer = self.client.call(f'/{NODE}/list_parameters', ListParameters, request, ANSWER)
        return sorted(answer.result.names)

    def memory(self) -> float:
        """Return the memory of the node [MB]."""
        statm = Path(f'/proc/{self.client.simulation.handle.pid}/statm')
        return int(statm.read_text(encoding='ascii').split()[1]) * PAGE / 1e6

    def publish(self, topic: str, kind: str, message: Any) -> None:
        """Publish a message; the first on a topic waits until the node listens."""
        if topic not in self.publishers:
            publisher = self.client.node.create_publisher(
                message_class(kind), topic, QoSProfile(depth=2 * BATCH)
            )
            self.publishers[topic] = publisher
            self.client.wait(lambda: publisher.get_subscription_count() > 0, topic)
        self.publishers[topic].publish(message)

    def check(self) -> str:
        """Return what is wrong with the node, '' if it answers and its state is finite."""
        begin = time.perf_counter()
        try:
            self.client.get('time_step')
            if time.perf_counter() - begin > ANSWER:
                return f'an answer took longer than {ANSWER:g} s'
            self.odometry = None
            self.client.wait(lambda: self.odometry is not None, 'the next /odom', ANSWER)
        except TimeoutError as error:
            return ' '.join(str(error).split())[:400]
        pose, twist = self.odometry.pose.pose, self.odometry.twist.twist
        numbers = [getattr(part, axis) for axis in 'xyz' for part in (
            pose.position, pose.orientation, twist.linear, twist.angular)]  # fmt: skip
        return '' if np.isfinite(numbers).all() else f'/odom is not finite: {shown(numbers)}'

    def close(self) -> None:
        """End the node."""
        self.client.close()


def hunt_messages(node: Node, seed: int, count: int, first: int = 0) -> Tally:
    """Publish `count` odd messages on each topic, in batches."""
    tally, begin, before = Tally(), time.perf_counter(), node.memory()
    for number in range(first, first + count, BATCH):
        for topic, kind in node.topics().items():
            for k in range(number, min(number + BATCH, first + count)):
                oddity = Oddity(chance_of(topic, seed, k), node.names)
                node.publish(topic, kind, oddity.message(kind))
                tally.inputs += 1
            settle(node, tally, 'messages', seed, number, f'after {BATCH} messages on {topic}')
    tally.grown, tally.seconds = node.memory() - before, time.perf_counter() - begin
    return tally


def settle(node: Node, tally: Tally, kind: str, seed: int, number: int, said: str) -> None:
    """Note what is wrong with the node, and start another one then."""
    wrong = node.check()
    said = f'{said}: {wrong}'
    if not wrong:
        logged = node.client.simulation.output()
        wrong = 'a callback failed' if 'a callback failed' in logged else ''
        said += logged[logged.find('a callback failed') :][:1500] if wrong else ''
    if wrong:
        tally.findings.append(Finding(kind, seed, number, wrong.partition('\n')[0][:80], said))
        node.restart()


def odd_value(chance: random.Random, names: list[str]) -> ParameterValue:
    """Return a random value of a parameter."""
    oddity = Oddity(chance, names)
    kind = chance.choice((ParameterType.PARAMETER_BOOL, ParameterType.PARAMETER_INTEGER,
                          ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_DOUBLE,
                          ParameterType.PARAMETER_STRING, ParameterType.PARAMETER_STRING_ARRAY,
                          ParameterType.PARAMETER_DOUBLE_ARRAY,
                          ParameterType.PARAMETER_NOT_SET))  # fmt: skip
    value = ParameterValue(type=kind)
    value.bool_value = chance.random() < 0.5
    value.integer_value = oddity.value('int64')
    value.double_value = oddity.value('double')
    value.string_value = oddity.text()
    value.string_array_value = [oddity.text() for _ in range(chance.randrange(4))]
    value.double_array_value = [oddity.value('double') for _ in range(chance.choice((0, 3, 4)))]
    return value


def near_value(chance: random.Random, node: Node, name: str) -> ParameterValue:
    """Return a value of the type that a parameter has, near its own or at its bounds."""
    (found,) = node.client.describe(name)
    value = odd_value(chance, node.names)
    value.type = found.type if found.type else value.type
    choices = re.findall(r'one of (.*)', found.additional_constraints)
    if choices and chance.random() < 0.7:
        value.string_value = chance.choice(choices[0].split(', '))
    for span in found.floating_point_range:
        low, high = span.from_value, span.to_value
        value.double_value = chance.choice((low, high, 0.5 * (low + high), low + 1e-9, 2 * high))
    for span in found.integer_range:
        value.integer_value = chance.choice((span.from_value, span.to_value, span.to_value + 1))
    return value


def hunt_parameters(node: Node, seed: int, count: int, first: int = 0) -> Tally:
    """Ask `count` times for random values of one to three parameters."""
    tally, begin, before = Tally(), time.perf_counter(), node.memory()
    names = node.parameters()
    for number in range(first, first + count):
        chance = chance_of('parameters', seed, number)
        chosen = chance.sample(names, chance.choice((1, 1, 2, 3)))
        values = [
            near_value(chance, node, name) if chance.random() < 0.7
            else odd_value(chance, node.names) for name in chosen
        ]  # fmt: skip
        asked = [ParameterMessage(name=n, value=v) for n, v in zip(chosen, values, strict=True)]
        said, tally.inputs = shown(asked, 800), tally.inputs + 1
        service, kind = chance.choice(
            (('set_parameters', SetParameters), ('set_parameters_atomically',
                                                 SetParametersAtomically))
        )  # fmt: skip
        try:
            request = kind.Request(parameters=asked)
            answer = node.client.call(f'/{NODE}/{service}', kind, request, ANSWER)
            results = [answer.result] if hasattr(answer, 'result') else answer.results
            tally.refused += not all(result.successful for result in results)
        except TimeoutError as error:
            tally.findings.append(
                Finding('parameters', seed, number, 'no answer', f'{said}: {error}')
            )
            node.restart()
            continue
        if any('refused:' in line and 'ERROR' in line for line in _new_lines(node)):
            tally.findings.append(Finding('parameters', seed, number, 'raw error', said))
        if number % 20 == 19:
            said = f'after {said}'
            refused = node.calm()
            if refused:
                tally.findings.append(Finding('parameters', seed, number, 'no way back', refused))
            settle(node, tally, 'parameters', seed, number, said)
    tally.grown, tally.seconds = node.memory() - before, time.perf_counter() - begin
    return tally


_read: dict[int, int] = {}


def _new_lines(node: Node) -> list[str]:
    """Return what the node has written since the last call."""
    output, process = node.client.simulation.output(), node.client.simulation.handle.pid
    lines = output[_read.get(process, 0) :].splitlines()
    _read[process] = len(output)
    return lines
