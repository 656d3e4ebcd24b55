"""Microseconds of the derivatives of a step, next to the step and to MuJoCo's differences.

    python benchmarks/derivatives.py [--robot go1 FILE] [--motions stand trot] [--models ncp sap]
                                     [--blocks 15] [--json FILE]

For every motion (motions.py) the simulation runs in closed loop. In each block of states, `step`,
`derivatives` of that step and, for the same robot in MuJoCo, `mjd_transitionFD` (differences of
the whole step to state and control, forward and centred) are timed in turn, so that all see the
same machine. MuJoCo keeps its default options. The ratios are medians over blocks: derivatives
over the step, then how many times faster they are than forward and than centred differences.

A file is a URDF of a robot with feet, to which joint PD of `default_gains` is applied in `stand`.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from engines import (
    FRICTION,
    HAVE_MUJOCO,
    TIME_STEP,
    Ours,
    Theirs,
    peer,
    stay_on_one_core,
    write_json,
)
from motions import MOTIONS

import contact_sim

SETTLING_STEPS, BLOCK_STEPS, DIFFERENCE = 400, 40, 1e-6


class PeerDerivatives:
    """MuJoCo's finite differences of its step, at the states of another MuJoCo simulation.

    The efforts are controls here: joints have PD actuators.
    """

    def __init__(self, theirs: Theirs, robot: contact_sim.RobotModel, centred: bool) -> None:
        import mujoco
        from mujoco_peer import MujocoPeer

        engine = MujocoPeer(robot, FRICTION, TIME_STEP, robot.default_gains)
        self.theirs = theirs
        self._function, self._from = mujoco.mjd_transitionFD, theirs.engine.data
        self._model, self._data, self._centred = engine.model, engine.data, centred
        size = 2 * self._model.nv + self._model.na
        self._A, self._B = np.zeros((size, size)), np.zeros((size, self._model.nu))

    def load(self) -> None:
        """Take over the state."""
        for name in ('qpos', 'qvel', 'qacc_warmstart'):
            getattr(self._data, name)[:] = getattr(self._from, name)

    def __call__(self) -> None:
        """Fill A and B."""
        self._function(
            self._model, self._data, DIFFERENCE, self._centred, self._A, self._B, None, None
        )


def measure(
    robot: contact_sim.RobotModel, motion: str, model: str, blocks: int
) -> dict[str, float]:
    """Return the medians of step, derivatives and differences [µs], and their ratios."""
    ours = Ours(robot, motion, model)
    theirs = peer(partial(Theirs, robot, motion), robot.name)
    ours.times(SETTLING_STEPS)
    differences = []
    if theirs is not None:
        theirs.times(SETTLING_STEPS)
        differences = [PeerDerivatives(theirs, robot, centred) for centred in (False, True)]
    clock, rows = time.perf_counter, []
    for _ in range(blocks):
        spent = np.zeros((4, BLOCK_STEPS))
        for k in range(BLOCK_STEPS):
            sim = ours.sim
            effort = ours.motion.effort(sim.time, sim.q, sim.v)
            begin = clock()
            sim.derivatives(effort)
            middle = clock()
            sim.step(effort)
            spent[:2, k] = clock() - middle, middle - begin
        for k in range(BLOCK_STEPS if differences else 0):
            differences[0].theirs.times(1)
            for place, one in enumerate(differences):
                one.load()
                begin = clock()
                one()
                spent[2 + place, k] = clock() - begin
        rows.append(1e6 * np.median(spent, axis=1))
    table = np.array(rows)
    step, own, forward, centred = np.median(table, axis=0)
    ratios = np.median(table[:, 1:] / table[:, [0, 1, 1]], axis=0)
    return {
        'step': float(step), 'derivatives': float(own), 'forward': float(forward),
        'centred': float(centred), 'over step': float(ratios[0]),
        'faster than forward': float(ratios[1]), 'faster than centred': float(ratios[2]),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--robot', nargs='+', default=['go1'])
    parser.add_argument('--motions', nargs='+', default=['stand', 'trot'], choices=sorted(MOTIONS))
    parser.add_argument('--models', nargs='+', default=['ncp', 'anitescu', 'lcp'])
    parser.add_argument('--blocks', type=int, default=15)
    parser.add_argument('--json', type=Path)
    parser.add_argument('--core', type=int, help='core to stay on; -1: any')
    arguments = parser.parse_args()
    stay_on_one_core(arguments.core)
    if not HAVE_MUJOCO:
        print('without MuJoCo: only the step and its derivatives')
    found: dict[str, Any] = {}
    heads = 'step', 'derivatives', 'forward', 'centred', 'over step', 'faster', 'faster'
    print(f'{"":28}' + ''.join(f'{head:>12}' for head in heads))
    for name in arguments.robot:
        robot = contact_sim.load_robot(name)
        for motion in arguments.motions:
            for model in arguments.models:
                row = measure(robot, motion, model, arguments.blocks)
                label = f'{robot.name} {motion} {model}'
                found[label] = row
                print(f'{label:28}' + ''.join(f'{number:12.1f}' for number in row.values()))
    if arguments.json:
        write_json(arguments.json, found)


if __name__ == '__main__':
    main()
