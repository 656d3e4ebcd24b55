"""Microseconds per step, by stage, for every robot standing on its feet, next to MuJoCo.

    python benchmarks/step_time.py [--robots go1 anymal_b] [--repeats 15] [--json FILE]

Both engines see the same URDF, contact spheres, friction, joint PD and time step of 1 ms, in
blocks of steps that alternate; figures are medians over the blocks. The PD is not timed.
MuJoCo keeps its default options: it solves a softer problem (see the penetration).

Stages are measured in blocks of their own, by timers around the functions that the step calls
(cost of the timers subtracted). 'rest' is what remains of the total: Python between the stages,
input checks and the report object.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import contact_sim
from contact_sim.contact_models import CONTACT_MODELS, time_stepping
from contact_sim.dynamics.terms import DynamicsTerms

try:
    from mujoco_peer import MujocoPeer

    HAVE_MUJOCO = True
except ImportError as error:  # extra `peers`
    print(f'without MuJoCo: {error}', file=sys.stderr)
    HAVE_MUJOCO = False

TIME_STEP = 1e-3
FRICTION = 0.8
SETTLING_STEPS = 1000
BLOCK_STEPS = 400

STAGES: dict[str, tuple[Any, str]] = {
    'nle': (DynamicsTerms, 'update_velocity'),
    'crba': (DynamicsTerms, 'update_configuration'),
    'integrate': (DynamicsTerms, 'integrate'),
    'prepare': (time_stepping, 'prepare'),
    'assemble': (time_stepping, 'assemble'),
    'solve': (CONTACT_MODELS['ncp'], 'solve_rows'),
    'advance': (time_stepping, 'finish'),
    'detect': (time_stepping, 'detect'),
}
"""Stage of one step: where the function lives, and its name."""


class Subject:
    """contact_sim with one robot standing under PD."""

    def __init__(self, robot: contact_sim.RobotModel) -> None:
        self.sim = contact_sim.Simulator(robot, friction=FRICTION, time_step=TIME_STEP)
        self.robot = robot
        self.kp, self.kd = robot.default_gains
        self.target = robot.joint_positions(self.sim.q)
        self.penetration = 0.0

    def effort(self) -> Any:
        """Return the PD effort at the present state [N m]."""
        error = self.target - self.robot.joint_positions(self.sim.q)
        return self.kp * error - self.kd * self.robot.joint_velocities(self.sim.v)

    def seconds(self, steps: int) -> float:
        """Return the time that `steps` steps take, without the PD [s]."""
        spent, clock, step = 0.0, time.perf_counter, self.sim.step
        for _ in range(steps):
            effort = self.effort()
            begin = clock()
            report = step(effort)
            spent += clock() - begin
        self.penetration = max(0.0, -float(report.contacts.gap.min()))
        return spent


class Peer:
    """MuJoCo with the same robot under the same PD."""

    def __init__(self, subject: Subject) -> None:
        self.engine = MujocoPeer(subject.robot, FRICTION, TIME_STEP)
        self.subject = subject
        expected, loaded = subject.robot.total_mass, self.engine.total_mass
        if abs(loaded - expected) > 1e-3 * expected:
            raise ValueError(f'MuJoCo loads {loaded:.3f} kg of {expected:.3f} kg')
        self.engine.reset(subject.sim.q, subject.target)

    def effort(self) -> Any:
        """Return the PD effort at the present state [N m]."""
        error = self.subject.target - self.engine.joint_positions
        return self.subject.kp * error - self.subject.kd * self.engine.joint_velocities

    def seconds(self, steps: int) -> float:
        """Return the time that `steps` steps take, without the PD [s]."""
        spent, clock, step = 0.0, time.perf_counter, self.engine.step
        for _ in range(steps):
            self.engine.set_effort(self.effort())
            begin = clock()
            step()
            spent += clock() - begin
        return spent


class StageTimer:
    """Sums the time that each stage takes."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self.calls = dict.fromkeys(STAGES, 0)

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with a timer around it."""
        clock = time.perf_counter

        def timed(*arguments: Any) -> Any:
            begin = clock()
            result = function(*arguments)
            self.spent[stage] += clock() - begin
            self.calls[stage] += 1
            return result

        return timed

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Time all stages inside the block."""
        originals = {stage: getattr(*place) for stage, place in STAGES.items()}
        for stage, (owner, name) in STAGES.items():
            setattr(owner, name, self.around(stage, originals[stage]))
        try:
            yield
        finally:
            for stage, (owner, name) in STAGES.items():
                setattr(owner, name, originals[stage])

    def microseconds(self, steps: int) -> dict[str, float]:
        """Return µs per step and stage, without the cost of the timers."""
        overhead = timer_overhead()
        return {
            stage: 1e6 * (self.spent[stage] - self.calls[stage] * overhead) / steps
            for stage in STAGES
        }


def timer_overhead() -> float:
    """Return what a timer sees when it times nothing [s]."""
    clock = time.perf_counter
    samples = []
    for _ in range(2000):
        begin = clock()
        samples.append(clock() - begin)
    return statistics.median(samples)


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Return the figures of one robot; `mujoco` is None where MuJoCo does not load it."""
    subject = Subject(contact_sim.load_robot(name))
    peer = peer_of(subject)
    for engine in (subject, peer):
        if engine is not None:
            engine.seconds(SETTLING_STEPS)
    totals, peers, stages = [], [], []
    for _ in range(repeats):
        totals.append(1e6 * subject.seconds(BLOCK_STEPS) / BLOCK_STEPS)
        if peer is not None:
            peers.append(1e6 * peer.seconds(BLOCK_STEPS) / BLOCK_STEPS)
        timer = StageTimer()
        with timer.installed():
            subject.seconds(BLOCK_STEPS)
        stages.append(timer.microseconds(BLOCK_STEPS))
    figures = {stage: statistics.median(block[stage] for block in stages) for stage in STAGES}
    total = statistics.median(totals)
    return {
        'robot': name,
        **figures,
        'rest': total - sum(figures.values()),
        'total': total,
        'penetration_um': 1e6 * subject.penetration,
        'mujoco': statistics.median(peers) if peers else None,
        'mujoco_contacts': peer.engine.contacts if peer else None,
        'mujoco_penetration_um': 1e6 * peer.engine.penetration if peer else None,
    }


def peer_of(subject: Subject) -> Peer | None:
    """Return the same robot in MuJoCo, or None with a warning."""
    if not HAVE_MUJOCO:
        return None
    try:
        return Peer(subject)
    except (ValueError, KeyError) as error:
        print(f'{subject.robot.name}: not compared with MuJoCo: {error}', file=sys.stderr)
        return None


def table_row(figures: dict[str, Any]) -> str:
    """Return one line of the table."""
    cells = [f'{figures["robot"]:10}']
    cells += [f'{figures[stage]:10.2f}' for stage in (*STAGES, 'rest', 'total')]
    if figures['mujoco'] is None:
        return ''.join([*cells, f'{"-":>10}'])
    cells.append(f'{figures["mujoco"]:10.2f}')
    cells.append(f'{figures["total"] / figures["mujoco"]:8.2f}')
    cells.append(f'{figures["penetration_um"]:10.1e}{figures["mujoco_penetration_um"]:10.1e}')
    return ''.join(cells)


def table_head() -> str:
    """Return the names of the columns."""
    names = [f'{name:>10}' for name in (*STAGES, 'rest', 'total', 'MuJoCo')]
    return f'{"robot":10}' + ''.join(names) + f'{"ratio":>8}{"depth µm":>10}{"MuJoCo":>10}'


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description='Microseconds per step, next to MuJoCo.')
    parser.add_argument('--robots', nargs='+', default=contact_sim.robots(), metavar='NAME')
    parser.add_argument('--repeats', type=int, default=15, help='blocks of steps per robot')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    arguments = parser.parse_args()
    versions = ', '.join(
        f'{name} {importlib.metadata.version(name)}'
        for name in ('contact_sim', 'pin', 'numba', *(['mujoco'] if HAVE_MUJOCO else []))
    )
    print(f'µs per step, h = {TIME_STEP * 1e3:g} ms, contact model ncp; {versions}')
    print(table_head())
    rows = []
    for name in arguments.robots:
        rows.append(measure(name, arguments.repeats))
        print(table_row(rows[-1]), flush=True)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
