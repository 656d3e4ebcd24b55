"""Microseconds per step of every contact model, standing and trotting, next to MuJoCo.

    python benchmarks/model_time.py [--robot go1] [--motions stand trot] [--models ncp sap]

All engines run the same motion (motions.py) on the same robot at 1 ms, each fed with its own
state, in blocks of 100 steps that alternate; figures are medians over the blocks of the median
step. Motions are not timed. MuJoCo keeps its default options.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from engines import Blocks, Ours, Theirs, peer, stay_on_one_core, write_json
from gaits import chosen
from motions import MOTIONS

import contact_sim

SETTLING_STEPS = 500
BLOCK_STEPS = 100
PEER = 'MuJoCo'


def measure(
    robot: contact_sim.RobotModel, motion: str, models: list[str], blocks: int
) -> dict[str, dict[str, float]]:
    """Return the figures of every model that gets through the motion, and of MuJoCo."""
    subjects: dict[str, Any] = {
        model: Ours(robot, motion, chosen(model) if motion == 'trot' else model)
        for model in models
    }
    theirs = peer(partial(Theirs, robot, motion), robot.name)
    if theirs is not None:
        subjects[PEER] = theirs
    found = {name: Blocks() for name in subjects}
    for block in range(-1, blocks):
        for name in list(subjects):
            try:
                if block < 0:
                    subjects[name].times(SETTLING_STEPS)
                else:
                    found[name].add(subjects[name].times, BLOCK_STEPS)
            except contact_sim.ContactSimError as error:
                print(f'{motion}, {name}: {error}', file=sys.stderr)
                del subjects[name], found[name]
    return {name: one.figures() for name, one in found.items()}


def print_table(names: list[str], figures: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print µs per step, and how many times that of ncp."""
    print(f'{"model":12}' + ''.join(f'{motion:>10}{"/ ncp":>8}' for motion in figures))
    for name in names:
        cells = [f'{name:12}']
        for found in figures.values():
            if name not in found:
                cells.append(f'{"-":>10}{"":>8}')
                continue
            median = found[name]['median']
            ratio = f'{median / found["ncp"]["median"]:.2f}' if 'ncp' in found else ''
            cells.append(f'{median:10.1f}{ratio:>8}')
        print(''.join(cells))


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    parser.add_argument('--motions', nargs='+', choices=MOTIONS, default=['stand', 'trot'])
    models = contact_sim.contact_models()
    parser.add_argument('--models', nargs='+', choices=models, default=list(models))
    parser.add_argument('--blocks', type=int, default=20, help='blocks of steps per model')
    parser.add_argument('--core', type=int, help='core to stay on; −1: any')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    stay_on_one_core(options.core)
    robot = contact_sim.load_robot(options.robot)
    figures = {
        motion: measure(robot, motion, options.models, options.blocks)
        for motion in options.motions
    }
    print(f'µs per step, {options.robot}, h = 1 ms')
    print_table([*options.models, PEER], figures)
    write_json(options.json, figures)


if __name__ == '__main__':
    main()
