"""Microseconds per step that a viewer costs the loop: never opened, stopped in its work, gone.

    python benchmarks/viewer_cost.py [--robot go1] [--blocks 1000] [--json FILE]

The loop leaves every step to the feed and asks it to write what is due, as `Loop` does. `call` is
a step after which nothing is due; `record` is one that is written. In real time a second at 1 kHz
has 1000 calls, of which 30 write: `per step` is a thousandth of their sum. The last column is
measured otherwise: blocks of steps with and without the feed, by turns, as fast as they go; their
median difference has the noise of the steps.

`stopped` is a viewer that a debugger or a busy machine holds up, with SIGSTOP; `gone` is one that
was killed.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from engines import write_json

import contact_sim
from contact_sim.robot._actuators import holding
from contact_sim.view._process import PERIOD, Feed, PageState, ViewerProcess
from contact_sim.view._session import Capabilities, Settings

STEPS = 100
"""Steps of a block."""
CALLS, RECORDS = 100_000, 3000
"""How often the two are called; the median of ten parts is told."""
LONGEST_START = 120.0
"""Wall seconds to the first page; a first start compiles."""
BOUND = 2.0
"""Microseconds per step that a viewer may cost."""


class Measured:
    """A simulation that stands, and its feed."""

    def __init__(self, robot: str) -> None:
        self.sim = sim = contact_sim.Simulator(contact_sim.load_robot(robot))
        model = sim.robot.pinocchio_model
        self.frames = tuple(frame.name for frame in model.frames)
        self.feed = Feed(sim, self.frames, lambda: (0.0, 1.0))
        pose, gains = sim.robot.joint_positions(sim.q), sim.robot.default_gains
        self._command = holding(pose, *gains)
        self.report = self._step()

    def _step(self) -> Any:
        sim, robot = self.sim, self.sim.robot
        q, v = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
        return sim.step(self._command.effort_at(q, v))

    def viewer(self, port: int) -> ViewerProcess:
        """Return a viewer that serves its page."""
        capabilities = Capabilities(contact_sim.contact_models(), frames=self.frames)
        state = PageState(Settings('ncp', 0.8, 0.0, 1e-3, 1.0, 'standing'), '')
        viewer = ViewerProcess(
            self.sim, self.feed, capabilities, lambda: state, lambda *_: None,
            lambda line, level: print(f'  {line}') if level > logging.INFO else None,
        )  # fmt: skip
        viewer.start('localhost', port)
        end = time.perf_counter() + LONGEST_START
        while not viewer.address:
            if viewer.error or time.perf_counter() > end:
                raise SystemExit(viewer.error or 'the viewer does not begin')
            self.feed.write_if_due()
            time.sleep(0.01)
        return viewer

    def calls(self) -> float:
        """Return the seconds of a call after which nothing is written."""
        feed, report = self.feed, self.report
        wrenches: dict[str, Any] = {}
        found = []
        for _ in range(10):
            feed.latest = report, wrenches
            feed.write_if_due()
            feed.due = time.perf_counter() + 60.0
            begin = time.perf_counter()
            for _ in range(CALLS // 10):
                feed.latest = report, wrenches
                feed.write_if_due()
            found.append((time.perf_counter() - begin) / (CALLS // 10))
        return statistics.median(found)

    def records(self) -> float:
        """Return the seconds of a call that writes a record."""
        feed, found = self.feed, []
        for _ in range(RECORDS):
            report = self._step()
            feed.due = 0.0
            begin = time.perf_counter()
            feed.latest = report, {}
            feed.write_if_due()
            found.append(time.perf_counter() - begin)
        return statistics.median(found)

    def by_turns(self, blocks: int) -> float:
        """Return the median difference of steps with and without the feed [s]."""
        feed, differences = self.feed, []
        for k in range(blocks):
            taken = {}
            for fed in (k % 2 == 0, k % 2 == 1):
                begin = time.perf_counter()
                for _ in range(STEPS):
                    report = self._step()
                    if fed:
                        feed.latest = report, {}
                        feed.write_if_due()
                taken[fed] = time.perf_counter() - begin
            differences.append((taken[True] - taken[False]) / STEPS)
        return statistics.median(differences)

    def row(self, viewer: str, blocks: int) -> dict[str, Any]:
        """Return the figures with the viewer in a state."""
        call, record = self.calls(), self.records()
        per_step = call + record * self.sim.time_step / PERIOD
        return {
            'viewer': viewer,
            'call_us': 1e6 * call,
            'record_us': 1e6 * record,
            'per_step_us': 1e6 * per_step,
            'by_turns_us': 1e6 * self.by_turns(blocks),
        }


def main() -> int:
    """Print the table, and write it as JSON where asked to; return 1 where it costs too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    parser.add_argument('--blocks', type=int, default=1000, help='pairs of blocks of steps')
    parser.add_argument('--port', type=int, default=8931, help='of the page')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    measured = Measured(options.robot)
    length = measured.feed.world.length
    print(f'microseconds per step, {options.robot}, records of {8 * length / 1000:.0f} kB')
    print(f'{"viewer":14}{"call":>8}{"record":>8}{"per step":>10}{"by turns":>10}')
    rows = []
    viewer = measured.viewer(options.port)
    assert viewer.process is not None
    process = viewer.process.pid
    states = {'never opened': 0, 'stopped': signal.SIGSTOP, 'gone': signal.SIGKILL}
    for state, change in states.items():
        if change:
            os.kill(process, change)
            time.sleep(0.2)
        rows.append(measured.row(state, options.blocks))
        call, record, per_step, by_turns = list(rows[-1].values())[1:]
        print(f'{state:14}{call:8.2f}{record:8.2f}{per_step:10.2f}{by_turns:10.2f}')
    viewer.close()
    if options.json:
        write_json(options.json, {'viewer_cost': rows})
    largest = max(row['per_step_us'] for row in rows)
    print(f'at most {largest:.2f} of {BOUND:g} allowed')
    return 0 if np.isfinite(largest) and largest < BOUND else 1


if __name__ == '__main__':
    raise SystemExit(main())
