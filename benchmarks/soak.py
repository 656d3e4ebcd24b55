"""A long run with a gait, commands, pushes, switches of the contact model, of friction, resets.

In this process; soak_node.py does the same over ROS.

    python benchmarks/soak.py [--seconds 3600] [--robot go1] [--gait march] [--json FILE]

Every second something happens. What is measured: resident memory after the first minute and at the
end, warnings, and whether the clock is exact: step k ends at k h, to the last bit. The run is
recorded while it happens and, with --replay, repeated at the end.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gaits import GAITS, chosen, gait

import contact_sim
from contact_sim.control._trot import Trot
from contact_sim.replay import Recorder, Recording, repeat

SETTLING = 60.0
"""Simulated seconds before memory counts: every model has been met by then."""
FALLEN = 0.5
"""Share of the standing height at which the robot is put on its feet again."""
PAGE = os.sysconf('SC_PAGE_SIZE')
KINDS = ('switches', 'pushes', 'frictions', 'commands')
MODELS = tuple(contact_sim.contact_models())


class Warnings(logging.Handler):
    """Counts what is logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Remember a message."""
        self.said.append(record.getMessage())


def resident_memory(process: int | str = 'self') -> int:
    """Return the memory that a process holds [bytes]."""
    return int(Path(f'/proc/{process}/statm').read_text(encoding='ascii').split()[1]) * PAGE


def what_happens(number: int, noise: np.random.Generator) -> tuple[str, Any]:
    """Return (kind, value) of what happens at the beginning of a second.

    Of `KINDS`: a contact model, a push of the base for 0.1 s [N], a friction coefficient, a
    velocity forward, sideways [m/s] and of the turn [rad/s].
    """
    kind = KINDS[number % len(KINDS)]
    if kind == 'switches':
        return kind, MODELS[number // len(KINDS) % len(MODELS)]
    if kind == 'pushes':
        return kind, noise.uniform(-20.0, 20.0, 3)
    if kind == 'frictions':
        return kind, noise.uniform(0.5, 1.0)
    return kind, noise.uniform([-0.2, -0.1, -0.3], [0.3, 0.1, 0.3])


class Soak:
    """The run."""

    def __init__(self, robot: str, name: str) -> None:
        self.robot = contact_sim.load_robot(robot)
        self.sim = contact_sim.Simulator(self.robot)
        self.controller = gait(name, self.robot)
        self.control_steps = 1 if name == 'march' else 2
        self.noise = np.random.default_rng(0)
        self.pushed: dict[str, Any] = {}
        self.counts = dict.fromkeys([*KINDS, 'resets'], 0)
        self.standing = float(self.robot.reference_configuration()[2])
        self.begin = 0.0
        self.inexact = 0

    def second(self, number: int) -> None:
        """Simulate one second, in which something happens."""
        sim = self.sim
        self._disturb(number)
        for k in range(round(1.0 / sim.time_step)):
            push = self.pushed if k < 100 else {}
            if k % self.control_steps == 0:
                effort = self.controller.effort(sim.time, sim.q, sim.v)
            sim.step(effort, push)
        self.inexact += sim.time != self.begin + sim.step_count * sim.time_step

    def _disturb(self, number: int) -> None:
        sim = self.sim
        kind, value = what_happens(number, self.noise)
        self.counts[kind] += kind != 'commands' or isinstance(self.controller, Trot)
        self.pushed = {}
        if kind == 'switches':
            sim.contact_model = chosen(value)
        elif kind == 'pushes':
            self.pushed = {self.robot.base_frame: [*value, 0.0, 0.0, 0.0]}
        elif kind == 'frictions':
            sim.friction = value
        elif isinstance(self.controller, Trot):
            self.controller.velocity = value
        if sim.q[2] < FALLEN * self.standing:
            self.begin = sim.time
            sim.reset(time=sim.time)
            self.counts['resets'] += 1


def run(robot: str, name: str, seconds: int, record: Path) -> dict[str, Any]:
    """Return the figures of a run."""
    logger, heard = logging.getLogger('contact_sim'), Warnings()
    soak = Soak(robot, name)
    for model in MODELS:  # the first use of a model compiles, and says so
        soak.sim.contact_model = chosen(model)
    logger.addHandler(heard)
    begin, base = time.perf_counter(), 0
    with warnings.catch_warnings(record=True) as raised, Recorder(soak.sim, record):
        warnings.simplefilter('always')
        for number in range(seconds):
            soak.second(number)
            if number == min(int(SETTLING), seconds // 2):
                base = resident_memory()
        grown = resident_memory() - base
    wall = time.perf_counter() - begin
    logger.removeHandler(heard)
    return {
        'robot': robot,
        'gait': name,
        'simulated_s': seconds,
        'wall_s': wall,
        'memory_grown_mb': grown / 1e6,
        'warnings': [*heard.said, *(str(one.message) for one in raised)],
        'inexact_times': soak.inexact,
        'recording_mb': record.stat().st_size / 1e6,
        **soak.counts,
    }


def told(figures: dict[str, Any], file: Path | None) -> int:
    """Print the figures; return 1 if memory, clock or warnings are not as they should be."""
    for name, value in figures.items():
        print(f'{name:20} {value:.4g}' if isinstance(value, float) else f'{name:20} {value}')
    if file:
        file.write_text(json.dumps(figures, indent=2) + '\n', encoding='utf-8')
    good = figures['memory_grown_mb'] < 5.0 and not figures['warnings']
    return 0 if good and not figures['inexact_times'] and figures.get('repeated', True) else 1


def main() -> int:
    """Print the figures; return 1 if memory, clock or warnings are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=int, default=3600, help='simulated time')
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--gait', default='trot', choices=GAITS)
    parser.add_argument('--replay', action='store_true', help='repeat the recording at the end')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='contact_sim_soak_') as folder:
        record = Path(folder) / 'soak.npz'
        figures = run(options.robot, options.gait, options.seconds, record)
        if options.replay:
            outcome = repeat(Recording(record))
            figures['repeated_steps'], figures['repeated'] = outcome.steps, outcome.equal
    return told(figures, options.json)


if __name__ == '__main__':
    sys.exit(main())
