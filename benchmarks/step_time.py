"""Microseconds per step of every robot, next to MuJoCo in the same run on one core.

    python benchmarks/step_time.py [--robots go1 anymal_b] [--blocks 40] [--only steps] [--json F]

steps     `Simulator.step` under ncp from Python, report object included, over `mj_step`: every
          robot stands, go1, anymal_b and solo12 squat and trot as well (motions.py). Blocks of
          100 steps alternate between the engines. `median` is that over blocks of the median
          step, `least` the fastest block, `p99` over the steps of blocks that no other process
          interrupted; `ratio` is the median over pairs of neighbouring blocks.
one_call  1 000 steps of joint PD in one call, `Simulator.follow`, over `mj_step(nstep=1000)` with
          PD actuators of the same gains and limits. Seconds of the thread.
models    median step of every time-stepping model, standing, over that of ncp.
reading   what reading a report costs, each value for the first time, and the joints of a state.
grounds   steps on stairs of 5 cm, a mesh and a field, over those on the plane: go1 and anymal_b
          stand, and trot up and down; and go1 on its side over its standing. `Simulator.follow`
          at rest; trots are `Simulator.step` with recorded efforts.

The motion is not timed. MuJoCo keeps its default options: it solves a softer problem (see the
depth). The process stays on one core (--core −1: it does not).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from body_falls import SIDEWAYS, dropped
from engines import (
    FRICTION,
    HAVE_MUJOCO,
    TIME_STEP,
    MujocoPeer,
    Ours,
    Theirs,
    alternate,
    block_figures,
    peer,
    stay_on_one_core,
    thread_times,
    write_json,
)
from ground_walks import SPEED, STEPS, SWING, sloped_stairs, stairs
from motions import Stand
from mujoco_peer import trees

import contact_sim
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.control._trot import Trot, TrotTuning
from contact_sim.robot._actuators import JointCommand

MOVING = ('go1', 'anymal_b', 'solo12')
"""Robots that squat and trot too."""
BLOCK_STEPS = 100
CALL_STEPS = 1000
SETTLING_STEPS = 1000
REPORTS = 200
"""Reports that are read in one block."""
CONTACTS = ('force', 'velocity', 'normal_force', 'slip_speed', 'mode', 'position', 'normal', 'gap')


def measure_steps(robot: contact_sim.RobotModel, motion: str, blocks: int) -> dict[str, Any]:
    """Return the figures of one robot in one motion; without those of MuJoCo if it is missing."""
    ours = Ours(robot, motion)
    theirs = peer(partial(Theirs, robot, motion), robot.name)
    runs = [ours.times] if theirs is None else [ours.times, theirs.times]
    found = alternate(runs, BLOCK_STEPS, blocks, SETTLING_STEPS)
    row: dict[str, Any] = {'robot': robot.name, 'motion': motion, 'depth_um': 1e6 * ours.depth}
    row |= {'height_m': ours.height, **found[0].figures()}
    if theirs is None:
        return row | {'mujoco': None}
    row['mujoco'] = found[1].figures()
    row['mujoco'] |= {'depth_um': 1e6 * theirs.depth, 'height_m': theirs.height}
    row['ratio'] = found[0].ratio_to(found[1])
    row['p99_ratio'] = row['p99'] / row['mujoco']['p99']
    return row


def measure_one_call(robot: contact_sim.RobotModel, blocks: int) -> dict[str, Any]:
    """Return the figures of `CALL_STEPS` steps of PD in one call."""
    stand = Stand(robot)
    zeros = np.zeros(robot.n_joints)
    command = JointCommand(stand.pose, zeros, zeros, zeros + stand.kp, zeros + stand.kd)
    sim = contact_sim.Simulator(robot, friction=FRICTION, time_step=TIME_STEP)
    gains = (command.stiffness, command.damping)
    engine = peer(partial(MujocoPeer, robot, FRICTION, TIME_STEP, gains), robot.name)
    calls: list[Callable[[], Any]] = [lambda: sim.follow(command, CALL_STEPS)]
    if engine is not None:
        engine.reset(robot.reference_configuration(), stand.pose)
        engine.set_targets(stand.pose)
        calls.append(lambda: engine.step(CALL_STEPS))
    seconds = thread_times(calls, blocks)
    row = {'robot': robot.name, **block_figures('us', seconds[0], CALL_STEPS)}
    row['height_m'] = float(sim.q[2])
    if engine is None:
        return row | {'mujoco': None}
    row |= block_figures('mujoco', seconds[1], CALL_STEPS)
    row['mujoco_height_m'] = float(engine.data.qpos[2])
    pairs = zip(*seconds, strict=True)
    return row | {'ratio': statistics.median(ours / theirs for ours, theirs in pairs)}


class Repeated:
    """A trot over a ground whose efforts were recorded, to be stepped through again and again."""

    def __init__(self, robot: contact_sim.RobotModel, ground: Any) -> None:
        swing = TrotTuning(swing_height=SWING.get(robot.name, 0.2))
        self.sim = contact_sim.Simulator(robot, terrain=ground, time_step=TIME_STEP)
        trot, self._next = Trot(robot, tuning=swing), 0
        trot.velocity = (SPEED, 0.0, 0.0)
        self._start, self._efforts = self.sim.snapshot(), []
        for _ in range(STEPS):
            self._efforts.append(trot.effort(self.sim.time, self.sim.q, self.sim.v))
            self.sim.step(self._efforts[-1])

    def step(self, steps: int) -> None:
        """Take the next steps."""
        for _ in range(steps):
            if self._next == 0:
                self.sim.restore(self._start)
            self.sim.step(self._efforts[self._next])
            self._next = (self._next + 1) % len(self._efforts)


def resting(robot: contact_sim.RobotModel, ground: Any, place: str) -> Callable[[], Any]:
    """Return what takes `CALL_STEPS` steps of a robot at rest: standing, or fallen on its side."""
    sim = contact_sim.Simulator(robot, terrain=ground, friction=FRICTION, time_step=TIME_STEP)
    stand, zeros = Stand(robot), np.zeros(robot.n_joints)
    command = JointCommand(stand.pose, zeros, zeros, zeros + stand.kp, zeros + stand.kd)
    if place == 'fallen':
        dropped(sim, SIDEWAYS, 0.5)
    else:
        q = sim.standing_configuration()
        q[0] += 0.75
        q[2] += 0.2
        sim.reset(q)
    sim.follow(command, 4 * CALL_STEPS)
    return partial(sim.follow, command, CALL_STEPS)


def measure_grounds(blocks: int) -> dict[str, dict[str, float]]:
    """Return µs per step on several grounds, with `ratio` to the plane in the same motion."""
    grounds = {'plane': 'plane', 'stairs': stairs(), 'field': sloped_stairs()}
    calls: dict[str, Callable[[], Any]] = {}
    for name in ('go1', 'anymal_b'):
        robot = contact_sim.load_robot(name)
        for ground, terrain in grounds.items():
            calls[f'{name} standing {ground}'] = resting(robot, terrain, 'standing')
            trot = Repeated(robot, terrain)
            calls[f'{name} trotting {ground}'] = partial(trot.step, CALL_STEPS)
    go1 = contact_sim.load_robot('go1')
    calls['go1 fallen plane'] = resting(go1, 'plane', 'fallen')
    calls['go1 fallen stairs'] = resting(go1, grounds['stairs'], 'fallen')
    seconds = dict(zip(calls, thread_times(list(calls.values()), blocks), strict=True))
    found = {}
    for key, times in seconds.items():
        name, motion, _ = key.split()
        flat = seconds[f'{name} {motion.replace("fallen", "standing")} plane']
        ratios = (own / other for own, other in zip(times, flat, strict=True))
        found[key] = {**block_figures('us', times, CALL_STEPS), 'ratio': statistics.median(ratios)}
    return found


def time_stepping_models() -> list[str]:
    """Return the names of the models with a time-stepping law, ncp first."""
    names = [name for name, kind in CONTACT_MODELS.items() if issubclass(kind, TimeSteppingModel)]
    return sorted(names, key=lambda name: name != 'ncp')


def measure_models(robot: contact_sim.RobotModel, blocks: int) -> dict[str, Any]:
    """Return the figures of every time-stepping model, standing, with `ratio` to ncp."""
    names = time_stepping_models()
    subjects = [Ours(robot, 'stand', name) for name in names]
    found = alternate([one.times for one in subjects], BLOCK_STEPS, blocks, SETTLING_STEPS)
    return {
        name: one.figures() | {'ratio': one.ratio_to(found[0])}
        for name, one in zip(names, found, strict=True)
    }


def measure_reading(robot: contact_sim.RobotModel, blocks: int) -> dict[str, float]:
    """Return µs for reading each value of a report, and the joints of a state, least of blocks.

    Values of contacts are read from contacts that were looked at before, but not at this value.
    """
    subject = Ours(robot, 'stand')
    subject.times(SETTLING_STEPS)
    effort = subject.motion.effort(subject.sim.time, subject.sim.q, subject.sim.v)
    readings: dict[str, Callable[[Any], Any]] = {
        name: attrgetter(name) for name in ('contacts', 'residuals', 'solver', 'q')
    }
    readings |= {f'contacts.{name}': attrgetter(f'contacts.{name}') for name in CONTACTS}
    best = dict.fromkeys(readings, np.inf)
    for _ in range(blocks):
        for name, read in readings.items():
            reports = [subject.sim.step(effort) for _ in range(REPORTS)]
            if name.startswith('contacts.'):
                for report in reports:
                    report.contacts.names  # noqa: B018
            best[name] = min(best[name], seconds_of(read, reports))
    q, v = subject.sim.q, subject.sim.v
    best['joint_positions'] = min(
        seconds_of(robot.joint_positions, REPORTS * [q]) for _ in range(blocks)
    )
    best['joint_velocities'] = min(
        seconds_of(robot.joint_velocities, REPORTS * [v]) for _ in range(blocks)
    )
    return {name: 1e6 * seconds / REPORTS for name, seconds in best.items()}


def seconds_of(function: Callable[[Any], Any], arguments: list[Any]) -> float:
    """Return the seconds of this thread that calls with each of the arguments take."""
    begin = time.thread_time()
    for argument in arguments:
        function(argument)
    return time.thread_time() - begin


def print_steps(rows: list[dict[str, Any]]) -> None:
    """Print the table of the steps."""
    print(f'{"":18}{"Simulator.step":^27}{"mj_step":^27}{"ratio":^16}{"depth µm":^18}')
    heads = ('median', 'least', 'p99')
    cells = ''.join(f'{head:>9}' for head in (*heads, *heads))
    print(f'{"robot":10}{"motion":8}{cells}{"median":>8}{"p99":>8}{"ours":>9}{"MuJoCo":>9}')
    for row in rows:
        cells = ''.join(f'{row[head]:9.2f}' for head in heads)
        if row['mujoco'] is not None:
            theirs = row['mujoco']
            cells += ''.join(f'{theirs[head]:9.2f}' for head in heads)
            cells += f'{row["ratio"]:8.2f}{row["p99_ratio"]:8.2f}'
            cells += f'{row["depth_um"]:9.1e}{theirs["depth_um"]:9.1e}'
        print(f'{row["robot"]:10}{row["motion"]:8}{cells}')


def print_one_call(rows: list[dict[str, Any]]) -> None:
    """Print the table of many steps in one call."""
    print(f'\n{CALL_STEPS} steps of PD in one call, µs per step, median (least)')
    for row in rows:
        cells = f'{row["us"]:8.2f} ({row["us_least"]:.2f})'
        if row['mujoco'] is not None:
            cells += f'   MuJoCo {row["mujoco"]:.2f} ({row["mujoco_least"]:.2f})'
            cells += f'   ratio {row["ratio"]:.2f}'
        print(f'{row["robot"]:10}{cells}')


def print_models(robot: str, models: dict[str, Any]) -> None:
    """Print the table of the models."""
    print(f'\nmodels, {robot} standing, µs per step')
    for name, row in models.items():
        print(f'{name:12}{row["median"]:9.2f}{row["p99"]:9.2f}   / ncp {row["ratio"]:.2f}')


def print_reading(robot: str, reading: dict[str, float]) -> None:
    """Print the table of the readings."""
    print(f'\nreading, {robot}, µs for the first time, least of the blocks')
    for name, value in reading.items():
        print(f'{name:24}{value:8.2f}')


def print_grounds(grounds: dict[str, dict[str, float]]) -> None:
    """Print the table of the grounds."""
    print('\ngrounds, µs per step, median (least), over the plane in the same motion')
    for key, row in grounds.items():
        print(f'{key:28}{row["us"]:8.2f} ({row["us_least"]:.2f})   ratio {row["ratio"]:.2f}')


PARTS = ('steps', 'one_call', 'models', 'reading', 'grounds')


def main() -> None:
    """Print the tables, and write them as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robots', nargs='+', default=trees(), metavar='NAME')
    parser.add_argument('--blocks', type=int, default=40, help='blocks per engine')
    parser.add_argument('--only', nargs='+', choices=PARTS, default=PARTS, help='parts to measure')
    parser.add_argument('--core', type=int, help='core to stay on; −1: any')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    stay_on_one_core(options.core)
    packages = ('contact_sim', 'pin', 'numba', *(['mujoco'] if HAVE_MUJOCO else []))
    versions = ', '.join(f'{name} {importlib.metadata.version(name)}' for name in packages)
    print(f'µs per step, h = {TIME_STEP * 1e3:g} ms, contact model ncp; {versions}')
    robots = [contact_sim.load_robot(name) for name in options.robots]
    figures: dict[str, Any] = {}
    if 'steps' in options.only:
        figures['steps'] = [
            measure_steps(robot, motion, options.blocks)
            for robot in robots
            for motion in (('stand', 'squat', 'trot') if robot.name in MOVING else ('stand',))
        ]
        print_steps(figures['steps'])
    if 'one_call' in options.only:
        figures['one_call'] = [measure_one_call(robot, options.blocks) for robot in robots]
        print_one_call(figures['one_call'])
    first = robots[0]
    if 'models' in options.only:
        figures['models'] = measure_models(first, options.blocks)
        print_models(first.name, figures['models'])
    if 'reading' in options.only:
        figures['reading'] = measure_reading(first, options.blocks)
        print_reading(first.name, figures['reading'])
    if 'grounds' in options.only:
        figures['grounds'] = measure_grounds(options.blocks)
        print_grounds(figures['grounds'])
    write_json(options.json, figures)


if __name__ == '__main__':
    main()
