"""Nodes under test run as processes of their own; a session talks to them over Fast DDS only."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile

from contact_sim.ros._client import TIMEOUT, SimulationClient
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.topics._table import NODE, PUBLISHED, wrench_topic

__all__ = ['NODE', 'SECOND', 'SEEN', 'TIMEOUT', 'Session']
START_TIMEOUT = 120.0
"""Wall seconds to the first message: a first start compiles the kernels."""
BACKLOG = QoSProfile(depth=20000)
"""Deep enough that a busy machine delays messages instead of losing them."""
HEARTBEATS = {'/clock', '/diagnostics'}
"""What a paused simulation goes on publishing."""
FEW = ('contact_markers', 'terrain')
"""Ends of topics of which few messages are kept for who is slow."""
SECOND = 1_000_000_000
SEEN = {'/height_scan', '/scan', '/points', '/depth/image', '/depth/camera_info'}
"""Topics of sensors that see: they have no rate by default."""
TALKATIVE = (sys.executable, str(Path(__file__).with_name('talkative_node.py')))
"""The node with more of /diagnostics, as a program."""


def message_class(kind: str) -> Any:
    """Return the class of 'sensor_msgs/msg/Imu'."""
    package, folder, name = kind.split('/')
    return getattr(importlib.import_module(f'{package}.{folder}'), name)


def published_topics(feet: tuple[str, ...]) -> dict[str, str]:
    """Return absolute topic to type of everything that the node publishes for these feet."""
    topics = {}
    for topic, kind in PUBLISHED.items():
        name = '/' + topic.replace('~', NODE).lstrip('/')
        if '<foot>' in name:
            pattern = 'contacts/<foot>/wrench'
            topics |= {name.replace(pattern, wrench_topic(foot)): kind for foot in feet}
        else:
            topics[name] = kind
    return topics


def stamp_of(message: Any) -> int:
    """Return the time that a message speaks of [ns]."""
    stamp = message.clock if hasattr(message, 'clock') else message.header.stamp
    return int(stamp.sec) * SECOND + int(stamp.nanosec)


def vector(message: Any) -> np.ndarray:
    """Return x, y, z of a message, shape (3,)."""
    return np.array([message.x, message.y, message.z])


def values_of(message: Any) -> dict[str, str]:
    """Return the values of a /diagnostics message by key."""
    return {value.key: value.value for value in message.status[0].values}


class Session(SimulationClient):
    """The simulation as a process, and a node here that listens, commands and calls.

    Args:
        folder: for logs.
        topics: topic to type of what is listened to.
        parameters: ROS parameters of the simulation.

    Attributes:
        messages: topic to the messages received, in order.
        sent: topic to the wall times at which the simulation sent them [ns].
        domain: environment of the processes that may meet this simulation.
    """

    def __init__(
        self,
        folder: Path,
        topics: Mapping[str, str],
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(folder, 'session')
        os.environ.update(self.domain)
        self.messages: dict[str, list[Any]] = {}
        self.sent: dict[str, list[int]] = {}
        self.received: Counter[str] = Counter()
        for topic, kind in topics.items():
            self.listen(topic, kind)
        self.start(parameters or {})

    def start(self, parameters: Mapping[str, Any]) -> None:
        """Start the simulation with these ROS parameters."""
        self.simulation = Process(
            TALKATIVE, ros_arguments(dict(parameters)), self.domain,
            self.folder / 'simulation.log',
        )  # fmt: skip

    def listen(self, topic: str, kind: str) -> list[Any]:
        """Listen to one more topic and return the growing list of its messages."""
        self.messages[topic] = messages = []
        self.sent[topic] = sent = []

        def keep(message: Any, info: Any) -> None:
            messages.append(message)
            self.received[topic] += 1
            sent.append(info['source_timestamp'])

        self.node.create_subscription(message_class(kind), topic, keep, BACKLOG)
        return messages

    def clear(self) -> None:
        for kept in (*self.messages.values(), *self.sent.values()):
            kept.clear()

    def started(self) -> Session:
        """Wait until the simulation publishes everything that is listened to."""
        topics = list(self.messages)
        self.wait(
            lambda: all(self.node.count_publishers(topic) for topic in topics),
            'publishers',
            START_TIMEOUT,
        )
        return self

    def fresh(self, topic: str, count: int = 1) -> list[Any]:
        """Return the next `count` messages of a topic."""
        messages = self.messages[topic]
        before = len(messages)
        self.wait(lambda: len(messages) >= before + count, f'{count} messages on {topic}')
        return messages[before : before + count]

    def settle(self) -> None:
        """Listen until everything that a simulation paused since its start has sent is here.

        /diagnostics says how much that is; DDS may take seconds to send again what UDP lost.
        """
        said = values_of(self.told())
        for topic in self.messages.keys() - HEARTBEATS:
            if topic.endswith(FEW):
                continue
            name = topic.replace(f'/{NODE}/', '~/') if NODE in topic else topic.lstrip('/')
            count = int(said[f'sent on {name}'])
            self.wait(
                lambda topic=topic, count=count: self.received[topic] >= count,
                f'message {count} on {topic}',
            )
        if any(topic.endswith(FEW) for topic in self.messages):
            self.spin(0.2)
        while '/clock' in self.messages and len(set(map(stamp_of, self.fresh('/clock', 2)))) > 1:
            pass  # the heartbeat repeats itself, a backlog does not

    # ---------------------------------------------------------------- what was said

    @property
    def time(self) -> int:
        """Simulated time of the last clock message [ns]."""
        return stamp_of(self.messages['/clock'][-1])

    def told(self) -> Any:
        """Return the first /diagnostics that is sent from now on."""
        now = time.time_ns()
        self.wait(lambda: self.sent['/diagnostics'][-1:] > [now], 'the next /diagnostics')
        return self.messages['/diagnostics'][-1]

    def diagnostics(self) -> dict[str, str]:
        """Return the values of the next /diagnostics, with its level and message."""
        message = self.told()
        (status,) = message.status
        return values_of(message) | {'level': ord(status.level), 'message': status.message}

    def wait_for_subscriber(self, publisher: Any) -> None:
        """Wait until the simulation listens to a publisher of `node`."""
        self.wait(lambda: publisher.get_subscription_count() > 0, publisher.topic_name)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
