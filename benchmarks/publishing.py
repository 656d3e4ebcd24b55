"""Processor time of the node for its topics: by default, and with all of them at 1 kHz.

    python benchmarks/publishing.py [--robot go1] [--seconds 10] [--transport default] [--json FILE]

Each row is a run of the node in real time beside subscribers, processes that take every message of
the topics from the middleware without deserialising it. `cpu` is processor time of the node per
simulated second, `factor` the real-time factor, `received` the share of the messages that reached
the subscriber with the fewest. Target: all topics at 1 kHz with three subscribers in real time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from engines import write_json
from rosgraph_msgs.msg import Clock

from contact_sim.ros._client import SimulationClient
from contact_sim.ros._conversions import seconds
from contact_sim.ros._processes import Process

TARGET = 0.99
"""Smallest real-time factor of the row with all topics and three subscribers."""
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
    'all at 1 kHz, nobody': (EVERYTHING, 0, ''),
    'all at 1 kHz, 3 of the states': (EVERYTHING, 3, 'states'),
    'all at 1 kHz, 3 of everything': (EVERYTHING, 3, 'all'),
}
"""Parameters, number of subscribers, and what they take, by the name of a row."""


def processor_time(pid: int) -> float:
    """Return the processor time of a process so far [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


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
            times: list[float] = []
            client.node.create_subscription(
                Clock, '/clock', lambda message: times.append(seconds(message.clock)), 1
            )
            reports: list[Any] = []
            client.node.create_subscription(DiagnosticArray, '/diagnostics', reports.append, 10)
            client.wait(lambda: bool(reports), 'the simulation', START)
            script = str(Path(__file__).with_name('taker.py'))
            takers += [
                Process([sys.executable, script, topics], environment=client.domain,
                        log=Path(folder) / f'taker{k}.log') for k in range(count)
            ]  # fmt: skip
            client.spin(WARM_UP + 2.0 * bool(count))
            used, begin, first = processor_time(pid), time.perf_counter(), times[-1]
            before = _sent(reports[-1])
            others = [processor_time(taker.handle.pid) for taker in takers]
            client.spin(duration)
            used = processor_time(pid) - used
            wall, simulated = time.perf_counter() - begin, times[-1] - first
            others = [
                processor_time(taker.handle.pid) - start
                for taker, start in zip(takers, others, strict=True)
            ]
            sent = _sent(reports[-1]) - before
            values = {pair.key: pair.value for pair in reports[-1].status[0].values}
        finally:
            for taker in takers:
                taker.stop()
            client.close()
        received = [int(taker.output().split()[-2]) for taker in takers]
        expected = [int(taker.output().split()[-1]) for taker in takers]
    return {
        'cpu': used / simulated,
        'factor': simulated / wall,
        'messages': sent / simulated,
        'lost': int(values['messages_lost']),
        'overruns': int(values['overruns']),
        'received': min((r / max(e, 1) for r, e in zip(received, expected)), default=1.0),
        'subscriber': max((other / wall for other in others), default=0.0),
    }


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
    print(f'{"":36}{"cpu":>6}{"factor":>8}{"msg/s":>8}{"lost":>6}{"received":>10}{"taker cpu":>11}')
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
    last = rows.get('all at 1 kHz, 3 of everything')
    return int(last is not None and last['factor'] < TARGET)


if __name__ == '__main__':
    sys.exit(main())
