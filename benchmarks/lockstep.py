"""Round trip of lockstep between two processes: state out, command in, next state out.

    python benchmarks/lockstep.py [--seconds 5] [--period 1] [--gait march] [--json FILE]

The node and the controller (gait_node.py) are processes of their own; a round trip is the time
between two states at the controller. This process only asks for the steps. Target: a median of
1.5 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gaits import GAITS

from contact_sim.ros.client import SimulationClient
from contact_sim.ros.processes import Process, ros_arguments

ROBOT = 'go1'
TARGET = 1.5
"""Median round trip [ms]."""
WARM_UP = 100
"""Steps before the clock starts."""
START = 120.0
"""Wall seconds until all processes have met; a first start compiles the kernels."""


def measured(seconds: float, period: int, gait: str) -> dict[str, Any]:
    """Run node and controller in lockstep and return what it took."""
    with tempfile.TemporaryDirectory() as logs:
        client = SimulationClient(Path(logs))
        arrivals = Path(logs) / 'arrivals.npy'
        rates = dict.fromkeys(
            (f'publish_rate.{name}' for name in ('joint_states', 'odom', 'imu')), 1000.0 / period
        )
        client.start(
            rates | {
                'robot': ROBOT, 'start_paused': True, 'real_time_factor': 0.0,
                'lockstep.enabled': True, 'lockstep.period': period, 'lockstep.timeout': 10.0,
            }
        )  # fmt: skip
        places = [str(Path(__file__).parent), os.environ.get('PYTHONPATH', '')]
        controller = Process(
            'gait_node', ros_arguments({'robot': ROBOT, 'gait': gait, 'arrivals': arrivals}),
            client.domain | {'PYTHONPATH': os.pathsep.join(places)}, Path(logs) / 'log',
        )  # fmt: skip
        try:
            client.wait(lambda: _met(client, controller), 'the controller', START)
            client.step(WARM_UP)
            begin = time.perf_counter()
            response = client.step(round(1000.0 * seconds), 100.0 * seconds)
            wall = time.perf_counter() - begin
            if not response.success:
                raise RuntimeError(response.message)
        finally:
            controller.stop()
            client.close()
        trips = 1e3 * np.diff(np.load(arrivals))[-round(1000.0 * seconds / period) + 1 :]
    return {
        'control_rate_hz': 1000.0 / period,
        'round_trips': len(trips),
        'median_ms': float(np.median(trips)),
        'p95_ms': float(np.quantile(trips, 0.95)),
        'p99_ms': float(np.quantile(trips, 0.99)),
        'simulated_s': seconds,
        'wall_s': wall,
    }


def _met(client: SimulationClient, controller: Process) -> bool:
    if not controller.running:
        raise RuntimeError(f'the controller has ended\n{controller.output()}')
    node = client.node
    return bool(node.count_subscribers('joint_states') and node.count_publishers('joint_commands'))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=5.0, help='simulated')
    parser.add_argument('--period', type=int, default=1, help='physics steps per command')
    parser.add_argument('--gait', default='march', choices=GAITS)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args(arguments)
    figures = measured(options.seconds, options.period, options.gait)
    print(
        f'{figures["control_rate_hz"]:g} Hz control: round trip median '
        f'{figures["median_ms"]:.2f} ms, 95 % {figures["p95_ms"]:.2f} ms, 99 % '
        f'{figures["p99_ms"]:.2f} ms; {figures["simulated_s"]:g} s simulated in '
        f'{figures["wall_s"]:.1f} s'
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2), encoding='utf-8')
    return int(figures['median_ms'] > TARGET)


if __name__ == '__main__':
    sys.exit(main())
