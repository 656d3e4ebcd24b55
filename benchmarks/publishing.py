"""Processor time of the node for its topics: by default, and with all of them at 1 kHz.

    python benchmarks/publishing.py [--robot go1] [--seconds 10] [--transport UDPv4]

Each row is a run of the node in real time beside subscribers, processes that take every message of
the topics from the middleware without deserialising it. `cpu` is processor time of the node per
simulated second, `factor` the real-time factor, `received` the share of the messages that reached
the subscriber with the fewest. Target: states, sensors and their exact values at 1 kHz, markers
and numbers of the solver at 25 Hz, each taken by three subscribers, in real time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from engines import write_json

from contact_sim.ros._client import SimulationClient
from contact_sim.ros._conversions import seconds
from contact_sim.ros._processes import Process

TARGET = 0.99
"""Smallest real-time factor of that row."""
START = 120.0
"""Wall seconds until everything runs; a first start compiles the kernels."""
WARM_UP = 2.0
"""Wall seconds before the measurement."""
TICKS = os.sysconf('SC_CLK_TCK')
RATES = ('joint_states', 'odom', 'imu', 'wrenches', 'markers', 'solver_state')
EVERYTHING = {f'publish_rate.{name}': 1000.0 for name in RATES}
STATES = {f'publish_rate.{name}': 1000.0 for name in RATES[:4]}
ROWS: dict[str, tuple[dict[str, Any], int, str]] = {
    'default rates, nobody': ({}, 0, ''),
    'default rates, 3 of everything': ({}, 3, 'all'),
    'states at 1 kHz, 3 of the states': (STATES, 3, 'states'),
    'states at 1 kHz, 3 of everything': (STATES, 3, 'all'),
    'all at 1 kHz, nobody': (EVERYTHING, 0, ''),
    'all at 1 kHz, 3 of the states': (EVERYTHING, 3, 'states'),
    'all at 1 kHz, 3 that share them': (EVERYTHING, 3, 'share'),
    'all at 1 kHz, 3 of everything': (EVERYTHING, 3, 'all'),
}
"""Parameters, number of subscribers, and what they take, by the name of a row."""


def processor_time(pid: int) -> float:
    """Return the processor time of a process so far [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def taken(topics: str, number: int, count: int) -> list[str]:
    """Return the arguments of a taker, one of `count`."""
    return ['all', f'{number}/{count}'] if topics == 'share' else [topics]


def measured(
    robot: str, parameters: dict[str, Any], count: int, topics: str, duration: float, own: bool
) -> dict[str, float]:
    """Return what a run of `duration` [s] took."""
    with tempfile.TemporaryDirectory() as folder:
        client = SimulationClient(Path(folder))
        if not own:
            del client.domain['FASTDDS_BUILTIN_TRANSPORTS']
        takers: list[Process] = []
        try:
            client.start({'robot': robot, **parameters})
            pid = client.simulation.handle.pid
            reports: list[tuple[float, float, Any]] = []  # wall and processor time with each

            def note(report: Any) -> None:
                reports.append((time.perf_counter(), processor_time(pid), report))

            client.node.create_subscription(DiagnosticArray, '/diagnostics', note, 10)
            client.wait(lambda: bool(reports), 'the simulation', START)
            script = str(Path(__file__).with_name('taker.py'))
            for k in range(count):
                command = [sys.executable, script, *taken(topics, k, count)]
                log = Path(folder) / f'taker{k}.log'
                takers.append(Process(command, environment=client.domain, log=log))
            for taker in takers:
                client.wait(partial(is_ready, taker), 'the subscribers', START)
            client.spin(WARM_UP)
            others = [processor_time(taker.handle.pid) for taker in takers]
            before = len(reports)
            client.spin(duration + 1.0)
            others = [
                processor_time(taker.handle.pid) - start
                for taker, start in zip(takers, others, strict=True)
            ]
            (begin, used, first), (end, used_then, last) = reports[before], reports[-1]
        finally:
            for taker in takers:
                taker.stop()
            client.close()
        received = [int(taker.output().split()[-2]) for taker in takers]
        expected = [int(taker.output().split()[-1]) for taker in takers]
    simulated = seconds(last.header.stamp) - seconds(first.header.stamp)
    values = {pair.key: pair.value for pair in last.status[0].values}
    shares = [r / max(e, 1) for r, e in zip(received, expected, strict=True)]
    return {
        'cpu': (used_then - used) / simulated,
        'factor': simulated / (end - begin),
        'messages': (_sent(last) - _sent(first)) / simulated,
        'lost': int(values['messages_lost']),
        'received': min(shares, default=1.0),
        'subscriber': max(others, default=0.0) / (duration + 1.0),
    }


def is_ready(taker: Process) -> bool:
    """Return whether a subscriber has met all publishers."""
    return 'ready' in taker.output()


def _sent(report: DiagnosticArray) -> int:
    pairs = report.status[0].values
    return sum(int(pair.value) for pair in pairs if pair.key.startswith('sent on '))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows; return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--seconds', type=float, default=10.0, help='of each row')
    parser.add_argument('--only', default='', help='rows whose name has this text')
    parser.add_argument('--transport', default='default', choices=('default', 'UDPv4'))
    parser.add_argument('--json', type=Path)
    options = parser.parse_args(arguments)
    print(f'load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores')
    print(
        f'{"":36}{"cpu":>6}{"factor":>8}{"msg/s":>8}{"lost":>6}{"received":>10}{"taker cpu":>11}'
    )
    rows = {}
    for name, (parameters, count, topics) in ROWS.items():
        if options.only not in name:
            continue
        row = rows[name] = measured(
            options.robot, parameters, count, topics, options.seconds,
            options.transport != 'default',
        )  # fmt: skip
        print(
            f'{name:36}{row["cpu"]:6.2f}{row["factor"]:8.3f}{row["messages"]:8.0f}'
            f'{row["lost"]:6.0f}{row["received"]:10.3f}{row["subscriber"]:11.2f}',
            flush=True,
        )
    if options.json:
        write_json(options.json, rows)
    last = rows.get('states at 1 kHz, 3 of everything')
    return int(last is not None and last['factor'] < TARGET)


if __name__ == '__main__':
    sys.exit(main())
