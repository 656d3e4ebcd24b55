"""Subscribes to topics of a running simulation and takes their messages as bytes.

    python benchmarks/taker.py all|states [K/N]        # of these the topics k, k + n, ...

It prints `ready` once it has met all publishers. At the end it prints the number of messages that
it has received, and how many the numbers of the first and the last one of every topic let expect.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile

from contact_sim.ros._publishers import message_class

PERIOD = 0.004
"""Wall seconds between two looks."""
STATES = ('/joint_states', '/odom', '/imu/data')


def topics_of(node: Node, chosen: Callable[[str], bool]) -> dict[str, str]:
    """Return the type of every chosen topic once no new ones appear."""
    found: dict[str, str] = {}
    quiet = 0
    while quiet < 4 or not found:
        known = node.get_topic_names_and_types()
        here = [(name, kinds) for name, kinds in known if node.count_publishers(name)]
        now = {name: kinds[0] for name, kinds in here if chosen(name)}
        quiet = quiet + 1 if now == found else 0
        found = now
        time.sleep(0.1)
    return found


def main() -> None:
    """Take messages until interrupted."""
    chosen = STATES.__contains__ if sys.argv[1] == 'states' else _published
    going = [True]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: going.clear())
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    node = Node('taker', enable_rosout=False)
    subscriptions: list[Any] = []
    first, step = map(int, sys.argv[2].split('/')) if len(sys.argv) > 2 else (0, 1)
    for name, kind in sorted(topics_of(node, chosen).items())[first::step]:
        subscriptions.append(
            node.create_subscription(
                message_class(kind), name, print, QoSProfile(depth=2000), raw=True
            )
        )
    counts, expected = [0] * len(subscriptions), [0] * len(subscriptions)
    numbers: list[list[int]] = [[] for _ in subscriptions]
    while going and not all(one.get_publisher_count() for one in subscriptions):
        time.sleep(PERIOD)
    print('ready', flush=True)
    while going:
        time.sleep(PERIOD)
        for k, subscription in enumerate(subscriptions):
            with subscription.handle:
                while taken := subscription.handle.take_message(subscription.msg_type, True):
                    counts[k] += 1
                    number = taken[1]['publication_sequence_number']
                    if number is not None:
                        numbers[k] = [(numbers[k] or [number])[0], number]
    expected = [last[1] - last[0] + 1 if last else 0 for last in numbers]
    print(sum(counts), sum(expected))


def _published(topic: str) -> bool:
    return topic not in ('/rosout', '/parameter_events', '/tf_static') and not topic.endswith(
        ('/terrain', '/robot_description', '_command', '_commands', '_event')
    )


if __name__ == '__main__':
    main()
