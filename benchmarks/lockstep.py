"""Round trip of lockstep between two processes: state out, command in, next state out.

    python benchmarks/lockstep.py [--seconds 5] [--period 1] [--gait march] [--json FILE]

The node and the controller (gait_node.py) are processes of their own; a round trip is the time
between two states at the controller. This process only asks for the steps. Target: a median of
1.5 ms.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gait_session import gait_session
from gaits import GAITS

ROBOT = 'go1'
TARGET = 1.5
"""Median round trip [ms]."""
WARM_UP = 100
"""Steps before the clock starts."""


def measured(seconds: float, period: int, gait: str) -> dict[str, Any]:
    """Run node and controller in lockstep and return what it took."""
    rates = dict.fromkeys(
        (f'publish_rate.{name}' for name in ('joint_states', 'odom', 'imu')), 1000.0 / period
    )
    simulation = rates | {
        'robot': ROBOT, 'real_time_factor': 0.0,
        'lockstep.enabled': True, 'lockstep.period': period, 'lockstep.timeout': 10.0,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arrivals = Path(folder) / 'arrivals.npy'
        controller = {'robot': ROBOT, 'gait': gait, 'arrivals': arrivals}
        with gait_session(simulation, controller) as client:
            client.step(WARM_UP)
            begin = time.perf_counter()
            response = client.step(round(1000.0 * seconds), 100.0 * seconds)
            wall = time.perf_counter() - begin
            if not response.success:
                raise RuntimeError(response.message)
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
