"""What the node publishes: the ROS sink of `contact_sim.topics`, rates, and simulated time."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from rclpy._rclpy_pybind11 import RCLError
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from contact_sim._types import Array
from contact_sim.errors import ContactSimError, shortened
from contact_sim.parameters import Settings
from contact_sim.ros._factory import described_constraints
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.topics._messages import DEFINITIONS, Channel, Step, fields_of
from contact_sim.topics._table import (
    CLOCK,
    DIAGNOSTICS,
    GRID_MAP,
    TF,
    TF_STATIC,
    PublishRateParameters,
    Topic,
    nanoseconds,
    publish_periods,
)
from contact_sim.topics._world_topics import SimulationTopics

EVERY = QoSProfile(depth=1000)
"""Reliable; messages that the network loses while steps run flat out can be sent again."""
OPTIONAL = TF.name, TF_STATIC.name, GRID_MAP.name
"""Topics that are left out where their message packages are not installed."""
STATES = 'odom', 'joint_states', 'imu', 'wrenches'
"""Fields of `publish_rate` from which controllers act."""


# --- The sink.


class Publisher(Channel):
    """Publishes serialised messages, and counts those that the network does not take.

    That happens when a subscriber is so slow that nothing can be sent within DDS's time limit.

    Attributes:
        name: of the topic, as declared.
        sent: messages sent.
        lost: messages that could not be sent.
    """

    def __init__(self, node: Node, kind: type, topic: Topic) -> None:
        super().__init__(topic)
        quality = QoSProfile(depth=topic.depth)  # reliable, as ROS has it by default
        if topic.latched:
            quality.durability = DurabilityPolicy.TRANSIENT_LOCAL
        self._publisher = node.create_publisher(kind, topic.name, quality)
        self._context, self._log = node.context, node.get_logger()
        self.name, self.sent, self.lost = topic.name, 0, 0

    def send(self, data: bytes) -> None:
        """Send a serialised message, or count it as lost."""
        try:
            self._publisher.publish(data)
            self.sent += 1
        except RCLError as error:
            if not self._context.ok():
                raise  # the node shuts down
            self.lost += 1
            text = f'lost a message on {self.name}: {shortened(error)}'
            self._log.warning(text, throttle_duration_sec=1.0)

    def has_subscriber(self) -> bool:
        """Return whether there is a subscriber."""
        return bool(self._publisher.get_subscription_count())


class RosSink:
    """Makes the publishers of a node.

    Args:
        node: publishes.
        clock: publish /clock.

    Attributes:
        publishers: all of them.
    """

    def __init__(self, node: Node, clock: bool) -> None:
        self._node, self._clock = node, clock
        self.publishers: list[Publisher] = []

    def channel(self, topic: Topic) -> Publisher | None:
        """Return a publisher; None for /clock if it is not published, and for missing packages."""
        if topic.name == CLOCK.name and not self._clock:
            return None
        try:
            kind = message_class(topic.type)
        except ModuleNotFoundError:
            if topic.name in OPTIONAL:
                return None
            raise
        check_definition(topic.type.replace('/msg/', '/'))
        self.publishers.append(Publisher(self._node, kind, topic))
        return self.publishers[-1]


def message_class(name: str) -> Any:
    """Return the class of `package/msg/Name`.

    Raises:
        ModuleNotFoundError: its package is not installed.
    """
    package, _, short = name.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), short)


IDL_NAMES = {'bool': 'boolean', 'byte': 'octet', 'float32': 'float', 'float64': 'double'}
"""Primitive types whose names rclpy spells as in IDL."""


def check_definition(name: str) -> None:
    """Check that the installed `package/Name` is the one that `topics/_messages.py` writes.

    Raises:
        ContactSimError: it has other fields.
    """
    ours = {}
    for field in fields_of(name):
        kind = IDL_NAMES.get(field.type, field.type)
        if field.size is not None:
            kind = f'{kind}[{field.size}]' if field.size else f'sequence<{kind}>'
        ours[field.name] = kind
    theirs = message_class(name.replace('/', '/msg/')).get_fields_and_field_types()
    if ours != theirs:
        raise ContactSimError(
            f'the installed message type {name} has the fields {theirs}, expected {ours}'
        )
    for field in fields_of(name):
        if field.type in DEFINITIONS:
            check_definition(field.type)


# --- Everything that is published, and when.


class Outputs:
    """Publishes what is due after a step, by simulated time.

    Args:
        node: publishes.
        sim: the simulation.
        settings: frames, sensors, rates, constraints.

    Attributes:
        clock: whether /clock comes from one simulation only.
        diagnostics: publisher of /diagnostics.
    """

    def __init__(self, node: Node, sim: Simulator, settings: Settings) -> None:
        self._sim = sim
        self._tick = 0
        self._instant_period = 0
        self._last_instant: int | None = None
        self.set_rates(settings['publish_rate'])
        self.clock = ClockCheck(node, settings[''].clock)
        sink = self._sink = RosSink(node, clock=settings[''].clock == 'publish')
        self._topics = SimulationTopics(
            sim, settings, described_constraints(settings), sink, node.get_name(),
            node.get_fully_qualified_name().lstrip('/'),
        )  # fmt: skip
        self.diagnostics: Any = sink.channel(DIAGNOSTICS)
        if find_spec('tf2_msgs') is None:
            node.get_logger().info('tf2_msgs is not installed: no TF; the pose is on odom')
        now = nanoseconds(sim.time)
        self._topics.publish_static_transforms(now)
        if settings[''].publish_robot_description:
            self._topics.publish_descriptions()
        self._topics.rehearse(sim.last_report)
        self._topics.publish_ground(now)

    def set_rates(self, rates: PublishRateParameters) -> None:
        """Publish at other rates from the next step on."""
        self._periods = publish_periods(rates, self._sim.time_step)

    def set_sensors(self, settings: Settings) -> None:
        """Use other sensor errors from the next step on."""
        self._topics.configure(settings)

    def set_instants(self, period: int) -> None:
        """Publish states every `period` steps, too, 0 for no more often than their rates say."""
        self._instant_period = period

    @property
    def lost(self) -> int:
        """Messages that could not be sent since the start."""
        return sum(publisher.lost for publisher in self._sink.publishers)

    @property
    def sent(self) -> dict[str, int]:
        """Messages sent since the start, by topic."""
        return {publisher.name: publisher.sent for publisher in self._sink.publishers}

    @property
    def last_stamp(self) -> int:
        """Stamp of the last step of which anything may have been published [ns]."""
        return nanoseconds(self._tick * self._sim.time_step)

    def publish_clock(self, time: float) -> None:
        """Publish simulated time [s] alone, the heartbeat of a paused simulation."""
        self._topics.publish_clock(nanoseconds(time))

    def clear_markers(self) -> None:
        """Delete all markers."""
        self._topics.clear_markers(0)

    def follow_ground(self) -> None:
        """Publish the ground if it is another one than was published last."""
        if self._sim.terrain is not self._topics.ground:
            self._topics.publish_ground(nanoseconds(self._sim.time))

    def announce_instant(self, sim: Simulator) -> None:
        """Publish the state from which controllers act next, unless that was done."""
        if self._last_instant != round(sim.time / sim.time_step):
            self.publish_state(sim.last_report)

    def forget_instant(self) -> None:
        """Publish the state at the next instant even if that was done already."""
        self._last_instant = None

    def publish_state(self, report: StepReport) -> None:
        """Publish every state that has a rate, whether or not it is due."""
        self._tick = self._last_instant = round(report.time / self._sim.time_step)
        self.publish_clock(report.time)
        self._topics.publish(Step(report, {name for name in STATES if self._periods[name]}))

    def publish(
        self, report: StepReport, real_time_factor: float, wrenches: Mapping[str, Array]
    ) -> None:
        """Publish what is due after a step; `wrenches` (world axes) are drawn."""
        tick = self._tick = round(report.time / self._sim.time_step)
        instant = self._instant_period > 0 and tick % self._instant_period == 0
        self._last_instant = tick if instant else self._last_instant
        self.publish_clock(report.time)
        due = {
            name
            for name, steps in self._periods.items()
            if steps and (tick % steps == 0 or (instant and name in STATES))
        }
        self._topics.publish(Step(report, due, wrenches, real_time_factor))


class ClockCheck:
    """Checks that /clock has one publisher, by the parameter `clock`."""

    def __init__(self, node: Node, use: str) -> None:
        self._node, self._use = node, use
        self._topic = node.resolve_topic_name(CLOCK.name)

    @property
    def complaint(self) -> str:
        """What is wrong with the publishers of /clock, '' if nothing is."""
        if self._use == 'none':
            return ''
        others = self._node.count_publishers(self._topic) - (self._use == 'publish')
        if self._use == 'follow':
            text = f'{others} simulations publish' if others else 'nobody publishes'
            return '' if others == 1 else f'{text} {self._topic}, which clock:=follow keeps to'
        if others <= 0:
            return ''
        return (
            f'{self._topic} has {others} more publisher{"s" * (others > 1)}: two times are mixed; '
            'set the parameter clock of one simulation to follow or none, or remap its /clock'
        )
