"""Relay: between simulation and controllers, to drop and delay what they say to each other."""

from __future__ import annotations

import random
import time
from collections import deque
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from contact_sim.errors import InvalidInput
from contact_sim.ros.observer import seconds

EVERY = QoSProfile(depth=1000)
COMMANDS = 'joint_commands'
STATES: dict[str, type] = {'odom': Odometry, 'imu/data': Imu, 'joint_states': JointState}
"""What controllers see of the simulation."""
PREFIX = 'trial/'
"""Put before the topics of the controllers."""


def remappings() -> list[str]:
    """Return command line arguments that connect a controller to the relay."""
    return [word for topic in (*STATES, COMMANDS) for word in ('-r', f'{topic}:={PREFIX}{topic}')]


class Relay:
    """Passes states on to controllers and commands back; faults depend on stamps alone.

    Args:
        node: to subscribe and publish with.
        control_steps: physics steps per command.

    Attributes:
        answered: stamp of the last state that a command, or nothing, has answered [s].
    """

    def __init__(self, node: Node, control_steps: int) -> None:
        self._control_steps = control_steps
        self._late: deque[JointState] = deque()
        self._delay = 0
        self._blind = 0
        self._share, self._noise = 0.0, random.Random(0)
        self._lag, self._lag_noise = 0.0, random.Random(0)
        self._stamp: tuple[int, int] | None = None
        self.answered = 0.0
        self._dropped = False
        self._acknowledge = node.create_publisher(Header, 'contact_sim/lockstep_ack', EVERY)
        self._commands = node.create_publisher(JointState, COMMANDS, EVERY)
        node.create_subscription(JointState, PREFIX + COMMANDS, self._on_command, EVERY)
        for topic, kind in STATES.items():
            self._pass_on(node, topic, kind)

    def drop(self, steps: int, share: float, seed: int) -> None:
        """Drop `share` of the states of the next `steps` steps."""
        if not 0.0 <= share <= 1.0:
            raise InvalidInput(f'share = {share!r}: expected a value in [0, 1]')
        self._blind = self._instants(steps)
        self._share, self._noise = share, random.Random(seed)

    def delay(self, steps: int) -> None:
        """Let commands act `steps` steps later."""
        self._delay = self._instants(steps)

    def lag(self, largest: float, seed: int) -> None:
        """Keep every command back for up to `largest` wall seconds."""
        self._lag, self._lag_noise = largest, random.Random(seed)

    def _instants(self, steps: int) -> int:
        if steps % self._control_steps:
            raise InvalidInput(
                f'{steps} steps: expected a multiple of the control period, {self._control_steps}'
            )
        return steps // self._control_steps

    def _pass_on(self, node: Node, topic: str, kind: type) -> None:
        publisher = node.create_publisher(kind, PREFIX + topic, EVERY)

        def on_state(message: Any) -> None:
            if not self._drops(message.header):
                publisher.publish(message)
            elif topic == 'joint_states':
                self._pass_over(message.header.stamp)

        node.create_subscription(kind, topic, on_state, EVERY)

    def _drops(self, header: Header) -> bool:
        """Return whether the state of a stamp is dropped: all of it, or nothing."""
        stamp = header.stamp.sec, header.stamp.nanosec
        if stamp != self._stamp:
            self._stamp = stamp
            self._dropped = self._blind > 0 and self._noise.random() < self._share
            self._blind = max(self._blind - 1, 0)
        return self._dropped

    def _on_command(self, command: JointState) -> None:
        if self._lag:
            time.sleep(self._lag_noise.uniform(0.0, self._lag))
        stamp = command.header.stamp
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
