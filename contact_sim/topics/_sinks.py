"""From the content of a step to bytes: channels, sinks, and outputs that are due at a rate.

A sink makes a channel for a topic. There are two sinks: the MCAP file (`replay/_export.py`) and the
publishers of the ROS node (`ros/_publishers.py`). A message is serialised once, here; both take
the same bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from contact_sim._types import Array
from contact_sim.simulation._report import StepReport
from contact_sim.topics._cdr import Constant, encoder
from contact_sim.topics._table import Topic, nanoseconds

Message = Mapping[str, Any]
"""Fields of a message, as `_cdr.py` takes them."""
NO_WRENCHES: Mapping[str, Array] = {}


class Step(NamedTuple):
    """A step of which messages are made."""

    report: StepReport
    due: Collection[str]
    """Fields of `publish_rate` of which a message is due."""
    wrenches: Mapping[str, Array] = NO_WRENCHES
    """Frame to external force and torque in the step, world axes, shape (6,)."""
    real_time_factor: float = 0.0
    """0 where it is not known."""

    @property
    def stamp(self) -> int:
        """Simulated time after the step [ns]."""
        return nanoseconds(self.report.time)


class Channel(ABC):
    """A topic in a sink."""

    def __init__(self, topic: Topic) -> None:
        self._encode = encoder(topic.type.replace('/msg/', '/'))

    def publish(self, message: Message) -> None:
        """Serialise a message and send it."""
        self.send(self._encode(message))

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send a serialised message."""

    def has_subscriber(self) -> bool:
        """Return whether a message would be received."""
        return True


class Sink(Protocol):
    """Where messages go."""

    def channel(self, topic: Topic) -> Channel | None:
        """Return a channel for a topic, None if the sink does not have this topic."""


class Output:
    """Publishes topics whose messages come from one function of the step.

    Args:
        sink: where the messages go.
        topics: of one kind: the same rates, and `on_demand` or not.
        content: returns a message for each of the topics, or no message at all.

    Attributes:
        channels: of the topics that the sink has.
    """

    def __init__(
        self,
        sink: Sink,
        topics: Iterable[Topic],
        content: Callable[[Step], Sequence[Message]],
    ) -> None:
        topics = tuple(topics)
        channels = (sink.channel(topic) for topic in topics)
        self.channels = [channel for channel in channels if channel is not None]
        self._content = content
        self._rates = frozenset(rate for topic in topics for rate in topic.rates)
        self._on_demand = any(topic.on_demand for topic in topics)

    def publish(self, step: Step) -> None:
        """Publish the messages of a step, if they are due and received by anybody."""
        channels = self.channels
        if not channels or self._rates.isdisjoint(step.due):
            return
        if self._on_demand and not any(channel.has_subscriber() for channel in channels):
            return
        messages = self._content(step)
        if messages:
            for channel, message in zip(channels, messages, strict=True):
                channel.publish(message)


# --- Parts of messages.


def header(time: int, frame: str = '') -> Message:
    """Return a std_msgs/Header at simulated time [ns]."""
    return {'stamp': time, 'frame_id': frame}


def transform(time: int, parent: str, child: str, pose: Array) -> Message:
    """Return a TransformStamped of a pose x y z, qx qy qz qw, shape (7,)."""
    return {'header': header(time, parent), 'child_frame_id': child, 'transform': pose}


def labelled(labels: Iterable[str], numbers: Any) -> Message:
    """Return a MultiArray of numbers whose labels stand in layout.dim."""
    return {'layout': _layout(tuple(labels)), 'data': numbers}


@lru_cache
def _layout(labels: tuple[str, ...]) -> Constant:
    return Constant({'dim': [{'label': label, 'size': 1, 'stride': 1} for label in labels]})


def diagnostics(time: int, status: Message, values: Mapping[str, Any]) -> Message:
    """Return a DiagnosticArray of one status with these values."""
    pairs = [{'key': key, 'value': str(value)} for key, value in values.items()]
    return {'header': header(time), 'status': [{**status, 'values': pairs}]}
