"""Microseconds per step and world of many worlds in threads, next to `mujoco.rollout`.

    python benchmarks/worlds_time.py [--robot go1] [--worlds 64] [--threads 1 2] [--json FILE]

All worlds stand under joint PD, evaluated in every step: `Worlds.follow` here, PD actuators with
the same gains and limits in MuJoCo. Each world starts with its base a little to one side of the
last one's, turned a little more. Calls of 100 steps alternate between the engines and go on from
where the last one ended. Times are wall times: `median` over the calls, `least` of them; `ratio`
is the median over pairs of neighbouring calls. MuJoCo keeps its default options.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engines import FRICTION, HAVE_MUJOCO, TIME_STEP, MujocoPeer, write_json
from motions import Stand
from numpy.typing import NDArray

import contact_sim
from contact_sim.robot._actuators import JointCommand

Array = NDArray[np.float64]
CALL_STEPS = 100
SETTLING_CALLS = 5
SPACING, TURN = 1e-3, 1e-2
"""Between the starts of two worlds [m], [rad]."""


def starts_of(robot: contact_sim.RobotModel, n: int) -> Array:
    """Return configurations in which n worlds start, shape (n, nq)."""
    q = np.tile(robot.reference_configuration(), (n, 1))
    turn = TURN * np.arange(n)
    q[:, 0] += SPACING * np.arange(n)
    q[:, 3:7] = 0.0
    q[:, 5], q[:, 6] = np.sin(0.5 * turn), np.cos(0.5 * turn)
    return q


class Ours:
    """`Worlds` under joint PD."""

    def __init__(self, robot: contact_sim.RobotModel, n: int, threads: int) -> None:
        self.worlds = contact_sim.Worlds(
            robot, n, friction=FRICTION, time_step=TIME_STEP, threads=threads
        )
        self.worlds.reset(starts_of(robot, n))
        stand, zeros = Stand(robot), np.zeros(robot.n_joints)
        self._command = JointCommand(stand.pose, zeros, zeros, zeros + stand.kp, zeros + stand.kd)

    def call(self) -> None:
        """Advance all worlds by `CALL_STEPS` steps."""
        self.worlds.follow(self._command, CALL_STEPS)

    @property
    def base(self) -> Array:
        """Positions of the bases [m], shape (n, 3)."""
        return np.array(self.worlds.q[:, :3])


class Theirs:
    """`mujoco.rollout` of as many robots, in a pool of threads that stays."""

    def __init__(self, robot: contact_sim.RobotModel, n: int, threads: int) -> None:
        import mujoco
        from mujoco.rollout import Rollout

        stand, zeros = Stand(robot), np.zeros(robot.n_joints)
        self._peer = MujocoPeer(robot, FRICTION, TIME_STEP, (zeros + stand.kp, zeros + stand.kd))
        model, kind = self._peer.model, mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self.state = np.zeros((n, mujoco.mj_stateSize(model, kind)))
        for q, row in zip(starts_of(robot, n), self.state, strict=True):
            self._peer.reset(q, stand.pose)
            mujoco.mj_getState(model, self._peer.data, row, kind)
        self._out = np.zeros((n, CALL_STEPS, self.state.shape[1]))
        self._control = np.tile(stand.pose, (n, 1, 1))
        self._warmstart = np.zeros((n, model.nv))
        self._pool = Rollout(nthread=threads if threads > 1 else 0)

    def call(self) -> None:
        """Advance all worlds by `CALL_STEPS` steps."""
        self._pool.rollout(
            self._peer.model, self._data, self.state, self._control, nstep=CALL_STEPS,
            state=self._out, skip_checks=False,
        )  # fmt: skip
        self.state = self._out[:, -1].copy()

    @property
    def base(self) -> Array:
        """Positions of the bases [m], shape (n, 3)."""
        return self.state[:, 1:4]


def alternate(calls: list[Callable[[], None]], blocks: int) -> list[list[float]]:
    """Return the wall seconds of `blocks` calls of each, taken in turn."""
    clock, times = time.perf_counter, [[0.0] * blocks for _ in calls]
    for call in SETTLING_CALLS * calls:
        call()
    for block in range(blocks):
        for call, found in zip(calls, times, strict=True):
            begin = clock()
            call()
            found[block] = clock() - begin
    return times


def measure(robot: contact_sim.RobotModel, n: int, threads: int, blocks: int) -> dict[str, Any]:
    """Return the figures of one number of threads."""
    ours = Ours(robot, n, threads)
    theirs = Theirs(robot, n, threads) if HAVE_MUJOCO else None
    calls = [ours.call] if theirs is None else [ours.call, theirs.call]
    seconds = alternate(calls, blocks)
    scale = 1e6 / (CALL_STEPS * n)
    row: dict[str, Any] = {
        'robot': robot.name, 'worlds': n, 'threads': threads,
        'us': scale * statistics.median(seconds[0]), 'us_least': scale * min(seconds[0]),
        'base_m': ours.base.tolist(), 'mujoco': None,
    }  # fmt: skip
    if theirs is not None:
        pairs = zip(*seconds, strict=True)
        row['mujoco'] = scale * statistics.median(seconds[1])
        row['mujoco_least'] = scale * min(seconds[1])
        row['mujoco_base_m'] = theirs.base.tolist()
        row['ratio'] = statistics.median(ours / theirs for ours, theirs in pairs)
    return row


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    parser.add_argument('--worlds', type=int, default=64)
    parser.add_argument('--threads', type=int, nargs='+', default=[1, 2])
    parser.add_argument('--blocks', type=int, default=20, help='calls per engine')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    robot = contact_sim.load_robot(options.robot)
    print(
        f'{options.worlds} worlds of {robot.name}, µs per step and world, {os.cpu_count()} cores'
    )
    print(f'{"threads":8}{"median":>9}{"least":>9}{"rollout":>9}{"least":>9}{"ratio":>8}')
    rows = []
    for threads in options.threads:
        row = measure(robot, options.worlds, threads, options.blocks)
        rows.append(row)
        cells = f'{row["us"]:9.2f}{row["us_least"]:9.2f}'
        if row['mujoco'] is not None:
            cells += f'{row["mujoco"]:9.2f}{row["mujoco_least"]:9.2f}{row["ratio"]:8.2f}'
        print(f'{threads:<8}{cells}', flush=True)
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
