"""The feed: the newest step in memory that two processes share, and neither waits for the other.

The memory is one record, and a lock of the file behind it says who is in it. Both ends only try
the lock: the loop leaves out a record, the viewer looks again. So no record is ever half old and
half new, on every machine, and a process that stops or dies inside holds up nobody.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.contact_models import contact_models
from contact_sim.robot.constraints import Constraint
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.shadow import Shadows, ShadowSolve
from contact_sim.simulation.simulator import Simulator

Array = NDArray[np.float64]
PERIOD = 1.0 / 30.0
"""Wall seconds between two records."""
MOST_PUSHES = 32
"""Pushes that a record has room for."""
PUSH = 7
"""Numbers of a push: of its frame, force and torque."""
NUMBER, WORLD, STEP_SECONDS, FACTOR, MODEL, PUSHES, HEAD = range(7)
"""Places of single numbers in front of the pushes and the step data."""
MODELS = contact_models()
"""Contact models by their number."""
FRONT = HEAD + PUSH * MOST_PUSHES


@dataclass(frozen=True, eq=False)
class Record:
    """What the loop has written."""

    number: int
    """Counted from 1."""
    world: int
    """Of which world the step data are, counted from 1, see `World`."""
    step_seconds: float
    """Wall time of the step [s]."""
    real_time_factor: float
    """Simulated over wall time in the last second or so [-]."""
    wrenches: dict[str, Array]
    """Frame to force [N] and torque [N m] that push in the step, world axes, (6,)."""
    model: str
    """Contact model that took the step, where `numbers` have its start; '' where they have not."""
    numbers: Array
    """The step data, see `arrays.step_data`, and behind them the arrays of a `StepStart`."""


class SharedRecord:
    """One record in memory that two processes share.

    The lock is one of processes: two threads, or two of these in one process, are not kept apart.

    Args:
        frames: what can be pushed, in an order that both ends know.
        length: numbers that there is room for.
        descriptor: of the file behind the memory; None: a new one.

    Attributes:
        descriptor: of the file, to be handed to the other process.
        length: numbers that there is room for.
    """

    def __init__(self, frames: Sequence[str], length: int, descriptor: int | None = None) -> None:
        self.descriptor = _anonymous_file() if descriptor is None else descriptor
        self._frames = tuple(frames)
        self._number = {name: k for k, name in enumerate(frames)}
        self.resize(length)

    def resize(self, length: int) -> None:
        """Have room for so many numbers; the file never becomes shorter."""
        size = 8 * (FRONT + length)
        if os.fstat(self.descriptor).st_size < size:
            os.ftruncate(self.descriptor, size)
        numbers = np.frombuffer(mmap.mmap(self.descriptor, size))
        self._head, self._rest, self.length = numbers[:HEAD], numbers[FRONT:], length
        self._pushes = numbers[HEAD:FRONT].reshape(MOST_PUSHES, PUSH)

    def write(
        self,
        world: int,
        seconds: float,
        factor: float,
        wrenches: Mapping[str, Array],
        report: StepReport,
    ) -> bool:
        """Write the next record; return False where the other process is in the memory now.

        Args:
            world: of which the step data are.
            seconds: wall time of the step [s].
            factor: real-time factor [-].
            wrenches: frame to force and torque in world axes, (6,); of many the first are kept.
            report: of the step, with no more numbers than there is room for.
        """
        with self._entered() as entered:
            if entered:
                head, count = self._head, 0
                for row, (frame, wrench) in zip(self._pushes, wrenches.items(), strict=False):
                    row[0], row[1:] = self._number[frame], wrench
                    count += 1
                head[MODEL] = self._fill(report)
                head[NUMBER] += 1.0
                head[WORLD], head[STEP_SECONDS], head[FACTOR] = world, seconds, factor
                head[PUSHES] = count
        return entered

    def _fill(self, report: StepReport) -> int:
        """Write the arrays; return the number of the model if there is a start, -1 if not."""
        buffer, solve, model = report.record.buffer, report.solve_shadows, -1
        self._rest[: len(buffer)] = buffer
        if isinstance(solve, ShadowSolve):
            end = len(buffer)
            for array in solve.start.arrays:
                begin, end = end, end + array.size
                self._rest[begin:end] = array.ravel()
            model = MODELS.index(solve.start.model)
        return model

    def read(self, newer_than: int = 0) -> Record | None:
        """Return the record if it is newer than that number, and nobody writes one just now."""
        if self._head[NUMBER] <= newer_than:
            return None
        with self._entered() as entered:
            if not entered:
                return None
            head, pushes = self._head.copy(), self._pushes.copy()
            rest = self._rest.copy()
        wrenches = {self._frames[int(row[0])]: row[1:] for row in pushes[: int(head[PUSHES])]}
        model = MODELS[int(head[MODEL])] if head[MODEL] >= 0.0 else ''
        return Record(
            int(head[NUMBER]), int(head[WORLD]), float(head[STEP_SECONDS]), float(head[FACTOR]),
            wrenches, model, rest,
        )  # fmt: skip

    def close(self) -> None:
        """Be in the memory no more."""
        os.close(self.descriptor)

    @contextmanager
    def _entered(self) -> Iterator[bool]:
        """Be the only process in the memory, if the other one is not there; yield whether so."""
        try:
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN)


def _anonymous_file() -> int:
    """Return a file without a name, in memory where the system has such."""
    if hasattr(os, 'memfd_create'):
        return os.memfd_create('contact_sim_viewer')
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@dataclass(frozen=True, eq=False)
class World:
    """What the numbers of a record mean: ground, constraints and models in the shadow."""

    number: int
    """Counted from 1."""
    ground: Terrain
    constraints: tuple[Constraint, ...]
    shadows: Shadows | None
    """None before there were any on this ground, under these constraints."""
    length: int
    """Numbers of a record, besides its front."""


class Feed:
    """The end of the loop: hands the newest step to the viewer, at most every PERIOD.

    Args:
        sim: what is shown.
        frames: what can be pushed.
        pace: returns wall time of the last step [s] and the real-time factor [-].

    Attributes:
        latest: the newest step and what pushes in it, by frame; None: that is written already.
        memory: where it is written.
        due: when the next record may be written, by `time.perf_counter` [s].
        world: of the records from now on.
    """

    def __init__(
        self, sim: Simulator, frames: Sequence[str], pace: Callable[[], tuple[float, float]]
    ) -> None:
        self._sim, self._pace = sim, pace
        self.due = 0.0
        self.world = self._world_now(1, None)
        self.memory = SharedRecord(frames, self.world.length)
        self.latest: tuple[StepReport, Mapping[str, Array]] | None = sim.last_report, {}

    def tend(self) -> None:
        """Write the newest step if there is one and it is time; called again and again."""
        if self.latest is not None and time.perf_counter() >= self.due:
            self._write(*self.latest)

    def _write(self, report: StepReport, wrenches: Mapping[str, Array]) -> None:
        self.due = time.perf_counter() + PERIOD
        sim, world = self._sim, self.world
        solve = report.solve_shadows
        if sim.terrain is not world.ground or sim.constraints is not world.constraints:
            self.world = world = self._world_now(world.number + 1, None)
            report, wrenches = sim.last_report, {}  # that step may be of the world before
        elif isinstance(solve, ShadowSolve) and solve.shadows is not world.shadows:
            self.world = world = self._world_now(world.number + 1, solve)
        if self.memory.write(world.number, *self._pace(), wrenches, report):
            self.latest = None

    def _world_now(self, number: int, solve: ShadowSolve | None) -> World:
        sim, length = self._sim, self._sim.sizes.length
        if solve is not None:
            length += sum(array.size for array in solve.start.arrays)
        if number > 1:
            self.memory.resize(length)
        shadows = None if solve is None else solve.shadows
        return World(number, sim.terrain, sim.constraints, shadows, length)
