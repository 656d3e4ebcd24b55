"""The long run of soak.py over ROS: node and trot_controller as processes, in lockstep.

    python benchmarks/soak_node.py [--seconds 3600] [--robot go1] [--period 4] [--json FILE]

Every second a topic or a parameter makes something happen. What is measured: resident memory of
the node after the first minute and at the end, warnings of both processes and on /diagnostics, and
whether /clock ticks once per step, to the nanosecond. null_space holds feet that the ground would
have to pull, and warns of it as it should: that is counted apart. With --replay the node records
the run, which is repeated at the end; the table of contents of a recording that is completed once
per second, as every ~/step does, takes 6 MB per hour.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from gait_session import CONTROLLER_LOG, gait_session
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from soak import FALLEN, KINDS, SETTLING, resident_memory, told, what_happens

import contact_sim
from contact_sim.replay import Recording, repeat
from contact_sim.ros._client import SimulationClient

STEPS = 1000
"""Physics steps of 1 ms in a second."""
STEP = 1_000_000
"""One step [ns]."""
HELD = 'the stance is held, but'
"""Begin of the statuses in which null_space says that no ground has such forces."""
SLOWEST = 120.0
"""Wall seconds in which a simulated second must be over."""


class Ticks:
    """Time on /clock, unpacked by hand: a thousand messages per simulated second."""

    def __init__(self, client: SimulationClient) -> None:
        self.last: int | None = None
        self.wrong = 0
        client.node.create_subscription(
            Clock, '/clock', self._on_clock, QoSProfile(depth=10 * STEPS), raw=True
        )

    def _on_clock(self, message: bytes) -> None:
        seconds, nanoseconds = struct.unpack_from('<iI', message, 4)  # after the CDR header
        now = 1_000_000_000 * seconds + nanoseconds
        if self.last is not None and now != self.last:  # the last tick is repeated while paused
            self.wrong += now != self.last + STEP
        self.last = now


class NodeSoak:
    """The run over ROS."""

    def __init__(self, client: SimulationClient, robot: str) -> None:
        self.client, self.robot = client, contact_sim.load_robot(robot)
        self.ticks = Ticks(client)
        self.counts = dict.fromkeys([*KINDS, 'resets'], 0)
        self.diagnoses: Counter[str] = Counter()
        self.inexact = 0
        self._noise = np.random.default_rng(0)
        self._standing = float(self.robot.reference_configuration()[2])
        self._height = self._standing
        self._pushes = client.node.create_publisher(WrenchStamped, 'external_wrench', 1)
        self._velocities = client.node.create_publisher(Twist, 'cmd_vel', 1)
        client.node.create_subscription(Odometry, 'odom', self._on_odom, 1)
        client.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        client.set({'step_count': STEPS, 'push.duration': 0.1, 'push.axes': 'world'})

    def second(self, number: int) -> None:
        """Simulate one second, in which something happens."""
        self._disturb(number)
        begin = self.ticks.last
        response = self.client.step(timeout=SLOWEST)
        if not response.success:
            raise RuntimeError(response.message)
        if begin is None:  # nobody has listened yet
            return
        end = begin + STEPS * STEP
        self.client.wait(lambda: self.ticks.last is not None and self.ticks.last >= end, '/clock')
        self.inexact += self.ticks.last != end

    def _disturb(self, number: int) -> None:
        kind, value = what_happens(number, self._noise)
        self.counts[kind] += 1
        if kind == 'switches':
            self.client.set({'contact.model': value})
        elif kind == 'pushes':
            message = WrenchStamped()
            message.header.frame_id = self.robot.base_frame
            force = message.wrench.force
            force.x, force.y, force.z = value.tolist()
            self._pushes.publish(message)
        elif kind == 'frictions':
            self.client.set({'friction.mu': value})
        else:
            message = Twist()
            message.linear.x, message.linear.y, message.angular.z = value.tolist()
            self._velocities.publish(message)
        if self._height < FALLEN * self._standing:
            self.client.reset()
            self.counts['resets'] += 1

    def _on_odom(self, message: Odometry) -> None:
        self._height = message.pose.pose.position.z

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.level != b'\x00':
                self.diagnoses[f'{status.name}: {status.message}'] += 1


def run(robot: str, seconds: int, period: int, record: Path | None) -> dict[str, Any]:
    """Return the figures of a run with `period` steps per command, recorded to a file or not."""
    rates = dict.fromkeys(
        (f'publish_rate.{name}' for name in ('joint_states', 'odom', 'imu')), STEPS / period
    )
    simulation = rates | {
        'robot': robot, 'real_time_factor': 0.0, 'record': record or '',
        'contact.null_space.release': True,
        'lockstep.enabled': True, 'lockstep.period': period, 'lockstep.timeout': 10.0,
    }  # fmt: skip
    trot = 'contact_sim.ros.controllers.trot'
    with gait_session(simulation, {'robot': robot}, trot) as client:
        soak, base, begin = NodeSoak(client, robot), 0, time.perf_counter()
        node = client.simulation.handle.pid
        for number in range(seconds):
            soak.second(number)
            if number == min(int(SETTLING), seconds // 2):
                base = resident_memory(node)
        grown, wall = resident_memory(node) - base, time.perf_counter() - begin
        logs = client.simulation.output() + (client.folder / CONTROLLER_LOG).read_text()
    said = [line for line in logs.splitlines() if '[WARN]' in line or '[ERROR]' in line]
    return {
        'robot': robot,
        'gait': f'trot, commands at {STEPS / period:g} Hz',
        'simulated_s': seconds,
        'wall_s': wall,
        'memory_grown_mb': grown / 1e6,
        'warnings': [line for line in said if HELD not in line],
        'stance_warnings': sum(HELD in line for line in said),
        'diagnostics': dict(soak.diagnoses),
        'inexact_times': soak.inexact,
        'ticks_out_of_order': soak.ticks.wrong,
        **soak.counts,
    }


def main() -> int:
    """Print the figures; return 1 if memory, clock or warnings are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=int, default=3600, help='simulated time')
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--period', type=int, default=4, help='physics steps of 1 ms per command')
    parser.add_argument('--replay', action='store_true', help='record, and repeat it at the end')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='contact_sim_soak_') as folder:
        record = Path(folder) / 'soak.npz' if options.replay else None
        figures = run(options.robot, options.seconds, options.period, record)
        if record:
            outcome = repeat(Recording(record))
            figures['repeated_steps'], figures['repeated'] = outcome.steps, outcome.equal
    return told(figures, options.json)


if __name__ == '__main__':
    sys.exit(main())
