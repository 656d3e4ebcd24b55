"""Microseconds per step of every contact model, standing and trotting, next to MuJoCo.

    python benchmarks/model_time.py [--robot go1] [--motions stand trot] [--models ncp sap]

All engines run the same controller on the same robot at 1 ms, in blocks of steps that alternate;
figures are medians over the blocks. Controllers are not timed. MuJoCo keeps its default options.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from mujoco_peer import MujocoPeer
from numpy.typing import NDArray

import contact_sim
from contact_sim.control.trot import Trot

Array = NDArray[np.float64]
TIME_STEP = 1e-3
FRICTION = 0.8
SETTLING_STEPS = 500
BLOCK_STEPS = 200
FORWARD_SPEED = 0.3


class Controller(Protocol):
    """Controller of the robot."""

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts (n_joints,) [N m] at a time [s] and state."""
        ...


class Stand:
    """Joint PD around the standing pose."""

    def __init__(self, robot: contact_sim.RobotModel) -> None:
        self.robot = robot
        self.kp, self.kd = robot.default_gains
        self.target = robot.joint_positions(robot.reference_configuration())

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the PD effort [N m]."""
        robot = self.robot
        error = self.target - robot.joint_positions(q)
        return np.asarray(self.kp * error - self.kd * robot.joint_velocities(v))


def trot(robot: contact_sim.RobotModel) -> Controller:
    """Return a trot that walks forward."""
    controller = Trot(robot)
    controller.velocity = [FORWARD_SPEED, 0.0, 0.0]
    return controller


MOTIONS: dict[str, Callable[[contact_sim.RobotModel], Controller]] = {'stand': Stand, 'trot': trot}


class Subject:
    """contact_sim with one contact model."""

    def __init__(self, robot: contact_sim.RobotModel, model: str, motion: str) -> None:
        self.sim = contact_sim.Simulator(robot, model, friction=FRICTION, time_step=TIME_STEP)
        self.controller = MOTIONS[motion](robot)

    def seconds(self, steps: int) -> float:
        """Return the time that `steps` steps take, without the controller [s]."""
        spent, clock, sim = 0.0, time.perf_counter, self.sim
        for _ in range(steps):
            effort = self.controller.effort(sim.time, sim.q, sim.v)
            begin = clock()
            sim.step(effort)
            spent += clock() - begin
        return spent


class Peer:
    """MuJoCo under the same controller."""

    def __init__(self, robot: contact_sim.RobotModel, motion: str) -> None:
        self.robot = robot
        self.engine = MujocoPeer(robot, FRICTION, TIME_STEP)
        q = robot.reference_configuration()
        self.engine.reset(q, robot.joint_positions(q))
        self.controller = MOTIONS[motion](robot)
        self.steps = 0

    def seconds(self, steps: int) -> float:
        """Return the time that `steps` steps take, without the controller [s]."""
        spent, clock = 0.0, time.perf_counter
        for _ in range(steps):
            state = self.engine.state(self.robot)
            self.engine.set_effort(self.controller.effort(self.steps * TIME_STEP, *state))
            begin = clock()
            self.engine.step()
            spent += clock() - begin
            self.steps += 1
        return spent


def measure(robot: str, motion: str, models: list[str], repeats: int) -> dict[str, float]:
    """Return µs per step of every model, and of 'MuJoCo'."""
    loaded = contact_sim.load_robot(robot)
    subjects: dict[str, Subject | Peer] = {
        model: Subject(loaded, model, motion) for model in models
    }
    subjects['MuJoCo'] = Peer(loaded, motion)
    blocks: dict[str, list[float]] = {name: [] for name in subjects}
    for repeat in range(-1, repeats):
        for name in list(subjects):
            try:
                steps = SETTLING_STEPS if repeat < 0 else BLOCK_STEPS
                spent = subjects[name].seconds(steps)
            except contact_sim.ContactSimError as error:
                print(f'{motion}, {name}: {error}', file=sys.stderr)
                del subjects[name]
                continue
            if repeat >= 0:
                blocks[name].append(1e6 * spent / steps)
    return {name: statistics.median(times) for name, times in blocks.items() if times}


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description='Microseconds per step of every contact model.')
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    parser.add_argument('--motions', nargs='+', choices=MOTIONS, default=list(MOTIONS))
    models = contact_sim.contact_models()
    parser.add_argument('--models', nargs='+', choices=models, default=list(models))
    parser.add_argument('--repeats', type=int, default=10, help='blocks of steps per model')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    for motion in arguments.motions:
        figures[motion] = measure(arguments.robot, motion, arguments.models, arguments.repeats)
    names = [*arguments.models, 'MuJoCo']
    print(f'µs per step, {arguments.robot}, h = {TIME_STEP * 1e3:g} ms')
    print(f'{"model":12}' + ''.join(f'{motion:>10}{"/ ncp":>8}' for motion in figures))
    for name in names:
        cells = [f'{name:12}']
        for times in figures.values():
            if name not in times:
                cells.append(f'{"-":>10}{"":>8}')
                continue
            ratio = f'{times[name] / times["ncp"]:.2f}' if 'ncp' in times else ''
            cells.append(f'{times[name]:10.1f}{ratio:>8}')
        print(''.join(cells))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
