"""Relay: between simulation and controllers, to drop and delay what they say to each other."""

from __future__ import annotations

import random
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from contact_sim.errors import InvalidInput, shown
from contact_sim.messages.stamps import nanoseconds
from contact_sim.ros.conversions import seconds, stamp_nanoseconds

EVERY = QoSProfile(depth=1000)
COMMANDS = 'joint_commands'
STATES: dict[str, type] = {'odom': Odometry, 'imu/data': Imu, 'joint_states': JointState}
"""Topics on which controllers see the simulation."""
PREFIX = 'trial/'
"""Put before the topics of the controllers."""


def remappings() -> list[str]:
    """Return command line arguments that connect a controller to the relay."""
    return [word for topic in (*STATES, COMMANDS) for word in ('-r', f'{topic}:={PREFIX}{topic}')]


@dataclass(frozen=True)
class Dropout:
    """States that get lost, by their stamps: topics need not keep in step with each other."""

    begin: int
    """Those stamped later than this [ns]."""
    end: int
    """Those stamped up to this [ns]."""
    share: float
    """Number of them."""
    seed: int

    def takes(self, stamp: int) -> bool:
        """Return whether the state of a stamp [ns] gets lost."""
        return stamp <= self.end and random.Random(f'{self.seed} {stamp}').random() < self.share


class Relay:
    """Passes states on to controllers and commands back; faults depend on stamps alone.

    Args:
        node: to subscribe and publish with.
        control_steps: physics steps per command.
        time_step: [s].

    Attributes:
        answered: stamp of the last state that a command, or nothing, has answered [s].
    """

    def __init__(self, node: Node, control_steps: int, time_step: float) -> None:
        self._control_steps, self._time_step = control_steps, time_step
        self._late: deque[JointState] = deque()
        self._delay = 0
        self._dropouts: list[Dropout] = []
        self._lag, self._lag_noise = 0.0, random.Random(0)
        self.answered = 0.0
        self._acknowledge = node.create_publisher(Header, 'contact_sim/lockstep_ack', EVERY)
        self._commands = node.create_publisher(JointState, COMMANDS, EVERY)
        node.create_subscription(JointState, PREFIX + COMMANDS, self._on_command, EVERY)
        for topic, kind in STATES.items():
            self._pass_on(node, topic, kind)

    def drop(self, steps: int, share: float, seed: int) -> None:
        """Drop `share` of the states of the next `steps` steps."""
        if not 0.0 <= share <= 1.0:
            raise InvalidInput(f'share = {shown(share)}: expected a value in [0, 1]')
        begin = nanoseconds(self.answered)
        end = begin + nanoseconds((steps + 0.5) * self._time_step)
        self._dropouts.append(Dropout(begin, end, share, seed))

    def delay(self, steps: int) -> None:
        """Let commands act `steps` steps later."""
        if steps % self._control_steps:
            raise InvalidInput(
                f'{steps} steps: expected a multiple of the control period, {self._control_steps}'
            )
        self._delay = steps // self._control_steps

    def lag(self, largest: float, seed: int) -> None:
        """Keep every command back for up to `largest` wall seconds."""
        self._lag, self._lag_noise = largest, random.Random(seed)

    def _pass_on(self, node: Node, topic: str, kind: type) -> None:
        publisher = node.create_publisher(kind, PREFIX + topic, EVERY)

        def on_state(message: Any) -> None:
            if not self._drops(stamp_nanoseconds(message.header.stamp)):
                publisher.publish(message)
            elif topic == 'joint_states':
                self._pass_over(message.header.stamp)

        node.create_subscription(kind, topic, on_state, EVERY)

    def _drops(self, stamp: int) -> bool:
        """Return whether the state of a stamp [ns] is dropped: all of it, or nothing."""
        begun = (dropout for dropout in reversed(self._dropouts) if dropout.begin < stamp)
        newest = next(begun, None)
        return newest is not None and newest.takes(stamp)

    def _on_command(self, command: JointState) -> None:
        if self._lag:
            time.sleep(self._lag_noise.uniform(0.0, self._lag))
        stamp = command.header.stamp
        if self._late and self._late[-1].header.stamp == stamp:
            self._late.pop()  # the state was told twice, as to somebody who may not have listened
        self._late.append(command)
        while len(self._late) > self._delay + 1:
            self._late.popleft()
        if len(self._late) <= self._delay:
            self._pass_over(stamp)
            return
        due = self._late.popleft() if self._delay else self._late.pop()
        due.header.stamp = stamp
        self._commands.publish(due)
        self.answered = seconds(stamp)

    def _pass_over(self, stamp: Any) -> None:
        """Let the step from `stamp` be taken without a new command."""
        self._acknowledge.publish(Header(stamp=stamp))
        self.answered = seconds(stamp)
