"""Microseconds per step and robot of several robots on one ground.

    python benchmarks/robots_time.py [--models ncp] [--robots 1 2 4 8 16] [--touching]

Joined robots go1 stand under joint PD, evaluated in every step. Calls of all numbers alternate;
`linear` is the time per robot over that of one alone, the median over calls. With `--touching` all
links may touch each other, within a robot and between robots; none do.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from engines import FRICTION, TIME_STEP, write_json
from motions import Stand

import contact_sim
from contact_sim.robot._actuators import JointCommand

STEPS = 2000
"""Steps of a robot per call."""
SETTLING = 300
SPACING = 2.0
"""Between two robots [m]."""


def standing(n: int, model: str, touching: bool) -> tuple[contact_sim.Worlds, JointCommand]:
    """Return n joined robots that have settled, and their command."""
    robot = contact_sim.load_robot('go1')
    robot = robot.with_self_collision() if touching else robot
    names = [f'robot_{i}' for i in range(n)]
    places = {name: (SPACING * i, 0.0) for i, name in enumerate(names)}
    world = contact_sim.joined(dict.fromkeys(names, robot), places, against_each_other=touching)
    stand, zeros = Stand(robot), np.zeros(world.n_joints)
    command = JointCommand(
        np.tile(stand.pose, n), zeros, zeros, np.tile(stand.kp, n), np.tile(stand.kd, n),
    )  # fmt: skip
    worlds = contact_sim.Worlds(world, 1, model, friction=FRICTION, time_step=TIME_STEP, threads=1)
    worlds.follow(command, SETTLING)
    return worlds, command


def measure(model: str, numbers: list[int], blocks: int, touching: bool) -> list[dict[str, Any]]:
    """Return the figures of one contact model."""
    started = {n: standing(n, model, touching) for n in numbers}
    times: dict[int, list[float]] = {n: [] for n in numbers}
    for _ in range(blocks):
        for n, (worlds, command) in started.items():
            begin = time.perf_counter()
            worlds.follow(command, STEPS // n)
            times[n].append(1e6 * (time.perf_counter() - begin) / (STEPS // n) / n)
    one = statistics.median(times[numbers[0]])
    return [
        {'model': model, 'robots': n, 'us': statistics.median(row), 'least': min(row),
         'linear': statistics.median(row) / one}
        for n, row in times.items()
    ]  # fmt: skip


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--models', nargs='+', default=['ncp'], choices=contact_sim.contact_models()
    )
    parser.add_argument('--robots', type=int, nargs='+', default=[1, 2, 4, 8, 16])
    parser.add_argument('--blocks', type=int, default=9, help='calls of each number')
    parser.add_argument('--touching', action='store_true', help='links may touch each other')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    print('go1, µs per step and robot')
    print(f'{"model":12}{"robots":>8}{"median":>9}{"least":>9}{"linear":>8}')
    rows = []
    for model in options.models:
        for row in measure(model, options.robots, options.blocks, options.touching):
            rows.append(row)
            print(
                f'{model:12}{row["robots"]:8}{row["us"]:9.2f}{row["least"]:9.2f}'
                f'{row["linear"]:8.2f}', flush=True
            )  # fmt: skip
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
