"""Real-time factor of a controller in lockstep, in the process of the simulation and in its own.

    python benchmarks/composed_time.py [--seconds 5] [--json FILE]

The controller is an ordinary rclpy node that answers every `joint_states` with a `joint_commands`.
Target: in one process at least 5 at 250 Hz.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rclpy
from engines import write_json
from gait_session import gait_session
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

from contact_sim.ros._client import environment
from contact_sim.ros._processes import isolated_environment
from contact_sim.ros.composed import Composition

TARGET, TARGET_PERIOD = 5.0, 4
PERIODS = 4, 1
"""Physics steps per command."""


class Holding(Node):  # type: ignore[misc]
    """Commands the pose that it sees first."""

    def __init__(self) -> None:
        super().__init__('holding')
        self._pose: list[float] = []
        self._publisher = self.create_publisher(JointState, 'joint_commands', 10)
        self.create_subscription(JointState, 'joint_states', self.on_state, 10)

    def on_state(self, state: JointState) -> None:
        """Answer with the stamp of the state."""
        self._pose = self._pose or list(state.position)
        count = len(state.name)
        command = JointState(name=state.name, position=self._pose, velocity=[0.0] * count)
        command.header.stamp = state.header.stamp
        self._publisher.publish(command)


def parameters(period: int) -> dict[str, Any]:
    """Return those of a lockstep with `period` steps per command."""
    return {
        'robot': 'go1', 'real_time_factor': 0.0, 'lockstep.enabled': True,
        'lockstep.period': period, 'lockstep.timeout': 10.0,
        'publish_rate.joint_states': 1000.0 / period,
    }  # fmt: skip


def together(period: int, seconds: float) -> float:
    """Return the real-time factor in one process."""
    with (
        environment(isolated_environment()),
        Composition(Holding, parameters=parameters(period)) as run,
    ):
        run.advance(0.2)
        begin = time.perf_counter()
        run.advance(seconds)
        return seconds / (time.perf_counter() - begin)


def apart(period: int, seconds: float) -> float:
    """Return the real-time factor of two processes."""
    program = Path(__file__).stem
    with gait_session(parameters(period), {}, program) as client:
        client.step(200)
        begin = time.perf_counter()
        client.step(round(1000.0 * seconds), 1000.0)
        return seconds / (time.perf_counter() - begin)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the factors; return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=5.0, help='simulated')
    parser.add_argument('--json', type=Path)
    options = parser.parse_args(arguments)
    print(f'load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores')
    rows = {}
    for period in PERIODS:
        row = {'together': together(period, options.seconds)}
        row['apart'] = apart(period, options.seconds)
        rows[f'{1000 // period} Hz'] = row
        print(
            f'{1000 // period:5} Hz: one process {row["together"]:.2f}, '
            f'two processes {row["apart"]:.2f}', flush=True,
        )  # fmt: skip
    if options.json:
        write_json(options.json, rows)
    return int(rows[f'{1000 // TARGET_PERIOD} Hz']['together'] < TARGET)


def control() -> None:
    """Run the controller alone."""
    rclpy.init()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(Holding())


if __name__ == '__main__':
    if '--ros-args' in sys.argv:
        control()
    else:
        sys.exit(main())
