"""contact_sim and MuJoCo behind one interface, timed step by step and in blocks.

Both get the same robot, contact spheres, friction, time step and motion (motions.py), each motion
fed with the state of its own engine. Only the step is timed, never the motion. MuJoCo keeps its
default options except the time step: it solves a softer problem, see the depths.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from motions import MOTIONS
from numpy.typing import NDArray

import contact_sim

try:
    from mujoco_peer import MujocoPeer as MujocoPeer  # also for those who import it from here

    HAVE_MUJOCO = True
except ImportError as error:  # extra `peers`
    print(f'without MuJoCo: {error}', file=sys.stderr)
    HAVE_MUJOCO = False

Array = NDArray[np.float64]
TIME_STEP = 1e-3
FRICTION = 0.8


class Ours:
    """contact_sim with one robot in one motion."""

    def __init__(self, robot: contact_sim.RobotModel, motion: str, model: Any = 'ncp') -> None:
        self.sim = contact_sim.Simulator(robot, model, friction=FRICTION, time_step=TIME_STEP)
        self.motion = MOTIONS[motion](robot)

    def times(self, steps: int) -> Array:
        """Take `steps` steps; return what each took, report included [s], shape (steps,)."""
        spent, clock, sim = np.empty(steps), time.perf_counter, self.sim
        for k in range(steps):
            effort = self.motion.effort(sim.time, sim.q, sim.v)
            begin = clock()
            sim.step(effort)
            spent[k] = clock() - begin
        return spent

    @property
    def depth(self) -> float:
        """Depth of the deepest contact now [m]."""
        return max(0.0, -float(self.sim.last_report.contacts.gap.min()))

    @property
    def height(self) -> float:
        """Height of the base now [m]."""
        return float(self.sim.q[2])


class Theirs:
    """MuJoCo with the same robot in the same motion.

    Raises:
        ValueError: MuJoCo does not load the robot as it is.
    """

    def __init__(self, robot: contact_sim.RobotModel, motion: str) -> None:
        self.engine = MujocoPeer(robot, FRICTION, TIME_STEP)
        expected, loaded = robot.total_mass, self.engine.total_mass
        if abs(loaded - expected) > 1e-3 * expected:
            raise ValueError(f'MuJoCo loads {loaded:.3f} kg of {expected:.3f} kg')
        start = robot.reference_configuration()
        self.engine.reset(start, robot.joint_positions(start))
        self.motion, self._robot, self._steps = MOTIONS[motion](robot), robot, 0

    def times(self, steps: int) -> Array:
        """Take `steps` steps; return what each call of `mj_step` took [s], shape (steps,)."""
        spent, clock, engine = np.empty(steps), time.perf_counter, self.engine
        for k in range(steps):
            state = engine.state(self._robot)
            engine.set_effort(self.motion.effort(self._steps * TIME_STEP, *state))
            begin = clock()
            engine.step()
            spent[k] = clock() - begin
            self._steps += 1
        return spent

    @property
    def depth(self) -> float:
        """Depth of the deepest contact now [m]."""
        return self.engine.penetration

    @property
    def height(self) -> float:
        """Height of the base now [m]."""
        return float(self.engine.data.qpos[2])


def peer(make: Callable[[], Any], name: str) -> Any | None:
    """Return MuJoCo made by `make`, or None with a warning where it does not load the robot."""
    if not HAVE_MUJOCO:
        return None
    try:
        return make()
    except (ValueError, KeyError) as error:
        print(f'{name}: not compared with MuJoCo: {error}', file=sys.stderr)
        return None


class Blocks:
    """Times of blocks of steps, and which blocks the system interrupted for another process."""

    def __init__(self) -> None:
        self._times: list[Array] = []
        self._calm: list[bool] = []

    def add(self, run: Callable[[int], Array], steps: int) -> None:
        """Add a block of `steps` steps of `run`."""
        before = interruptions()
        self._times.append(run(steps))
        self._calm.append(interruptions() == before)

    @property
    def medians(self) -> Array:
        """Median step of every block [µs], shape (blocks,)."""
        return 1e6 * np.median(np.array(self._times), axis=1)

    def figures(self) -> dict[str, float]:
        """Return `median` and `least` of the medians of the blocks, `p99` over steps [µs].

        The 99th percentile is that of the steps in the `calm` blocks, which nobody interrupted;
        where there is none, of all.
        """
        calm = [times for times, quiet in zip(self._times, self._calm, strict=True) if quiet]
        medians = self.medians
        return {
            'median': float(np.median(medians)),
            'least': float(medians.min()),
            'p99': float(1e6 * np.percentile(calm or self._times, 99)),
            'blocks': len(medians),
            'calm': len(calm),
        }

    def ratio_to(self, other: Blocks) -> float:
        """Return the median over pairs of neighbouring blocks of the ratio of their medians.

        What slows the machine down for longer than a block slows both of a pair down.
        """
        return float(np.median(self.medians / other.medians))


def interruptions() -> int:
    """Return how often the system took the core from this thread so far."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def alternate(
    runs: Sequence[Callable[[int], Array]], steps: int, blocks: int, settling: int
) -> list[Blocks]:
    """Return for each run its `blocks` blocks of `steps` steps, in turn, after `settling`."""
    for run in runs:
        run(settling)
    found = [Blocks() for _ in runs]
    for _ in range(blocks):
        for run, one in zip(runs, found, strict=True):
            one.add(run, steps)
    return found


def thread_times(calls: Sequence[Callable[[], Any]], blocks: int) -> list[list[float]]:
    """Return for each of `calls` the seconds of this thread it takes, `blocks` times in turn."""
    clock, times = time.thread_time, [[0.0] * blocks for _ in calls]
    for call in calls:
        call()
    for block in range(blocks):
        for call, found in zip(calls, times, strict=True):
            begin = clock()
            call()
            found[block] = clock() - begin
    return times


def block_figures(name: str, seconds: list[float], steps: int) -> dict[str, float]:
    """Return median and least µs per step of blocks, as {name: ..., name_least: ...}."""
    scale = 1e6 / steps
    return {name: scale * statistics.median(seconds), f'{name}_least': scale * min(seconds)}


def stay_on_one_core(core: int | None) -> None:
    """Keep the process on one core: `core`, or where it is allowed first; −1: leave it free."""
    if core != -1 and hasattr(os, 'sched_setaffinity'):
        chosen = min(os.sched_getaffinity(0)) if core is None else core
        os.sched_setaffinity(0, {chosen})


def write_json(path: Path | None, figures: Any) -> None:
    """Write figures where asked to."""
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=2) + '\n', encoding='utf-8')
