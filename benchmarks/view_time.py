"""What the live page costs: python benchmarks/view_time.py [--robot go1] [--seconds 10].

Alternates between a simulation that nobody sees and one that somebody has open, each in real time
and as fast as it can. Whoever has the page open is a process of its own that draws nothing, so the
figures are those of the simulation's process; a browser on the same machine needs a core besides.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contact_sim import Simulator, load_robot
from contact_sim.view.live import LiveSession
from contact_sim.view.page import Page
from contact_sim.view.server import page_server

CLIENT = Path(__file__).with_name('page_client.py')
PORT = 18765


class Measured(NamedTuple):
    """Figures of one run."""

    factor: float
    """Simulated over wall time."""
    load: float
    """Processor time of the simulation's process over wall time."""
    pictures: float
    """Per second."""
    rate: float
    """Of what is sent [MB/s]."""


def measured(robot: str, speed: float, seen: bool, seconds: float) -> Measured:
    """Return the figures of one run, with the robot trotting if it can."""
    sim = Simulator(load_robot(robot))
    session = LiveSession(sim, speed=speed)
    if 'trot' in session.offers.controllers:
        session.set_controller('trot')
    server = page_server('localhost', PORT, 'benchmark')
    ended = threading.Event()
    page = Page(server, session)
    drawing = threading.Thread(target=page.run, args=(lambda: not ended.is_set(),))
    drawing.start()
    client = None
    if seen:
        command = [sys.executable, str(CLIENT), 'localhost', str(PORT), str(seconds)]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while not server.get_clients():
            time.sleep(0.01)
    time.sleep(1.0)
    begin = np.array([time.perf_counter(), time.process_time(), sim.time])
    time.sleep(seconds)
    now = np.array([time.perf_counter(), time.process_time(), sim.time])
    wall, work, simulated = now - begin
    said = client.communicate()[0].split() if client else ('0', '0')
    ended.set()
    drawing.join()
    session.close()
    server.stop()
    return Measured(simulated / wall, work / wall, float(said[0]), 1e-6 * float(said[1]))


def main() -> None:
    """Print the medians over alternating runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--seconds', type=float, default=10.0, help='of each run')
    parser.add_argument('--runs', type=int, default=3)
    given = parser.parse_args()
    cases = [(speed, seen) for speed in (1.0, 0.0) for seen in (False, True)]
    found: dict[tuple[float, bool], list[Measured]] = {case: [] for case in cases}
    for _ in range(given.runs):
        for case in cases:
            found[case].append(measured(given.robot, *case, given.seconds))
    print('speed  page   factor   load   pictures/s   MB/s')
    for (speed, seen), runs in found.items():
        factor, load, pictures, rate = np.median(runs, axis=0)
        print(
            f'{"1" if speed else "most":5}  {"open" if seen else "-":5} {factor:7.2f} {load:6.2f} '
            f'{pictures:12.1f} {rate:6.2f}'
        )


if __name__ == '__main__':
    main()
