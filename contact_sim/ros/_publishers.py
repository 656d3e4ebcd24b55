"""Publishers of the node: the ROS sink of `contact_sim.topics`, rates, and simulated time."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

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
    JOINT_STATES,
    TF,
    TF_STATIC,
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


class Publisher(Channel):
    """Publishes serialised messages, and counts those that DDS cannot send: a reader is slow."""

    def __init__(self, node: Node, kind: type, topic: Topic) -> None:
        super().__init__(topic)
        quality = QoSProfile(depth=topic.depth)  # reliable, as ROS has it by default
        if topic.latched:
            quality.durability = DurabilityPolicy.TRANSIENT_LOCAL
        self.publisher = node.create_publisher(kind, topic.name, quality)
        # without the lock of each call: the node ends its loop before it destroys publishers
        handle = self.publisher.handle
        self._count, self._publish = handle.get_subscription_count, handle.publish_raw
        self._context, self._log = node.context, node.get_logger()
        self.name, self.sent, self.lost = topic.name, 0, 0
        # who takes messages without DDS, and whether there is anybody
        self.others: tuple[Callable[[], bool], Callable[[bytes], None]] | None = None

    def send(self, data: bytes) -> None:
        """Send a serialised message, or count it as lost."""
        if self.others is not None:
            self.others[1](data)
            if not self._count():
                return
        try:
            self._publish(data)
            self.sent += 1
        except RCLError as error:
            if not self._context.ok():
                raise  # the node shuts down
            self.lost += 1
            text = f'lost a message on {self.name}: {shortened(error)}'
            self._log.warning(text, throttle_duration_sec=1.0)

    def has_subscriber(self) -> bool:
        """Return whether anybody listens."""
        return bool(self._count()) or (self.others is not None and self.others[0]())

    def is_of(self, topic: Topic) -> bool:
        """Return whether it publishes a topic, in whatever namespace."""
        return self.name.rpartition('/')[2] == topic.name

    @property
    def subscribers(self) -> int:
        """Number of subscriptions that DDS knows."""
        return int(self._count())


def message_class(name: str) -> Any:
    """Return the class of `package/msg/Name`; raise ModuleNotFoundError without its package."""
    package, _, short = name.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), short)


IDL_NAMES = {'bool': 'boolean', 'byte': 'octet', 'float32': 'float', 'float64': 'double'}
"""Primitive types whose names rclpy spells as in IDL."""


def check_definition(name: str) -> None:
    """Check that the installed `package/Name` has the fields that `topics/_messages.py` writes."""
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


class PublisherSet:
    """The publishers that topics need: a sink.

    Args:
        node: makes them.
        with_clock: whether /clock is among them.
        kept: publishers that are taken again for their topics.
    """

    def __init__(self, node: Node, with_clock: bool, kept: Iterable[Publisher] = ()) -> None:
        self._node, self._clock = node, with_clock
        self._kept = {publisher.name: publisher for publisher in kept}
        self.all: list[Publisher] = []

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
        publisher = self._kept.pop(topic.name, None)
        if publisher is None:
            check_definition(topic.type.replace('/msg/', '/'))
            publisher = Publisher(self._node, kind, topic)
        self.all = [*self.all, publisher]  # another one: threads read it
        return publisher

    def destroy(self, used: Iterable[Publisher]) -> None:
        """Destroy the publishers that are not among those in use."""
        in_use = set(used)
        for publisher in self.all:
            if publisher not in in_use:
                self._node.destroy_publisher(publisher.publisher)


class NextTopics(NamedTuple):
    """Topics, and the publishers that they need."""

    topics: SimulationTopics
    publishers: PublisherSet


class Outputs:
    """Publishes what is due after a step, by simulated time."""

    def __init__(self, node: Node, sim: Simulator, settings: Settings) -> None:
        self._node, self._sim = node, sim
        self._tick = 0
        self.instant_period = 0  # steps after which states are published, too; 0: as their rates
        self._last_instant: int | None = None
        self._readers = 0  # of joint states, when they were published last or looked at
        self.states_first = False  # /clock after them: a controller that has its state works
        self._periods = publish_periods(settings['publish_rate'], sim.time_step)
        self._publishers = PublisherSet(node, settings[''].clock == 'publish')
        self._topics = self._made(sim, settings, self._publishers)
        self.diagnostics: Any = self._publishers.channel(DIAGNOSTICS)
        if find_spec('tf2_msgs') is None:
            node.get_logger().info('tf2_msgs is not installed: no TF; the pose is on odom')
        now = nanoseconds(sim.time)
        self._topics.publish_static_transforms(now)
        if settings[''].publish_robot_description:
            self._topics.publish_descriptions()
        self._topics.rehearse(sim.last_report)
        self._topics.publish_ground(now)

    @property
    def publishers(self) -> list[Publisher]:
        """All publishers."""
        return self._publishers.all

    def _made(
        self,
        sim: Simulator,
        settings: Settings,
        sink: PublisherSet,
        namespaces: Mapping[str, str] | None = None,
    ) -> SimulationTopics:
        node = self._node
        return SimulationTopics(
            sim, settings, described_constraints(settings), sink, node.get_name(),
            node.get_fully_qualified_name().lstrip('/'), namespaces=namespaces,
        )  # fmt: skip

    def topics_of(
        self, sim: Simulator, settings: Settings, namespaces: Mapping[str, str]
    ) -> NextTopics:
        """Return topics of other robots; publishers of topics that stay are those that there are.

        Nothing is published of them before `follow_robots`; `forget` them if that is never.
        """
        sink = PublisherSet(self._node, settings[''].clock == 'publish', self.publishers)
        try:
            topics = self._made(sim, settings, sink, namespaces)
            sink.channel(DIAGNOSTICS)
            if settings[''].publish_robot_description:
                topics.make_descriptions()
            topics.rehearse(sim.last_report)
        except BaseException:
            sink.destroy(self.publishers)
            raise
        return NextTopics(topics, sink)

    def forget(self, other: NextTopics) -> None:
        """Destroy the publishers of topics that are not published, or no more."""
        other.publishers.destroy(self.publishers)

    def follow_robots(
        self, following: NextTopics, settings: Settings, arrived: Collection[str]
    ) -> NextTopics:
        """Publish other topics from now on; return those so far, to `forget` them.

        The robots in `arrived` publish their state at once. Called between two steps.
        """
        before = NextTopics(self._topics, self._publishers)
        following.topics.go_on_from(self._topics, self._sim)
        self._topics.clear_markers(0)
        self._topics, self._publishers = following
        self.configure(settings)
        due = {name for name in STATES if self._periods[name]}
        described = settings[''].publish_robot_description
        self._topics.publish_arrivals(Step(self._sim.last_report, due), arrived, described)
        return before

    def configure(self, settings: Settings) -> None:
        """Publish at other rates and with other sensor errors from the next step on."""
        self._periods = publish_periods(settings['publish_rate'], self._sim.time_step)
        self._topics.configure(settings)

    @property
    def last_stamp(self) -> int:
        """Stamp of the last step of which anything may have been published [ns]."""
        return nanoseconds(self._tick * self._sim.time_step)

    def publish_clock(self, time: float) -> None:
        """Publish simulated time [s] alone, the heartbeat of a paused simulation."""
        self._topics.publish_clock(nanoseconds(time))

    def publish_new_state(self, report: StepReport) -> None:
        """Publish a state that was set, without markers, and the ground if it is another one."""
        self._topics.clear_markers(0)
        if self._sim.terrain is not self._topics.ground:
            self._topics.publish_ground(nanoseconds(self._sim.time))
        self.publish_state(report)

    def announce_instant(self, sim: Simulator) -> None:
        """Publish the state from which controllers act next, unless that was done."""
        if self._last_instant != round(sim.time / sim.time_step):
            self.publish_state(sim.last_report)

    def forget_instant(self) -> None:
        """Publish the state at the next instant even if that was done already."""
        self._last_instant = None

    def has_new_readers(self) -> bool:
        """Return whether somebody reads joint states who did not when they were published."""
        before, self._readers = self._readers, self._count_readers()
        return self._readers > before

    def _count_readers(self) -> int:
        return sum(one.subscribers for one in self.publishers if one.is_of(JOINT_STATES))

    def publish_state(self, report: StepReport) -> None:
        """Publish every state that has a rate, whether or not it is due."""
        self._tick = self._last_instant = round(report.time / self._sim.time_step)
        self._readers = self._count_readers()
        self.publish_clock(report.time)
        self._topics.publish(Step(report, {name for name in STATES if self._periods[name]}))

    def publish(
        self, report: StepReport, real_time_factor: float, wrenches: Mapping[str, Array]
    ) -> None:
        """Publish what is due after a step; `wrenches` (world axes) are drawn."""
        tick = self._tick = round(report.time / self._sim.time_step)
        instant = self.instant_period > 0 and tick % self.instant_period == 0
        if instant:
            self._last_instant, self._readers = tick, self._count_readers()
        if not self.states_first:
            self.publish_clock(report.time)
        due = {
            name
            for name, steps in self._periods.items()
            if steps and (tick % steps == 0 or (instant and name in STATES))
        }
        self._topics.publish(Step(report, due, wrenches, real_time_factor))
        if self.states_first:
            self.publish_clock(report.time)


def clock_complaint(node: Node, use: str) -> str:
    """Return what is wrong with the publishers of /clock, '' if nothing; see parameter `clock`."""
    topic = node.resolve_topic_name(CLOCK.name)
    others = node.count_publishers(topic) - (use == 'publish')
    if use == 'follow' and others != 1:
        text = f'{others} simulations publish' if others else 'nobody publishes'
        return f'{text} {topic}, which clock:=follow keeps to'
    if use == 'publish' and others > 0:
        return (
            f'{topic} has {others} more publisher{"s" * (others > 1)}: two times are mixed; '
            'set the parameter clock of one simulation to follow or none, or remap its /clock'
        )
    return ''
