"""The viewer as a process of its own, seen from the process that simulates; needs no viser.

The simulation starts `viewer_main` and ends it. Two things connect the processes:

- shared memory holds the newest step. The loop writes it through a `Feed` and never waits.
- a pipe of `multiprocessing`, inherited by the viewer, carries messages: tuples of a kind and
  plain values. Threads of `ViewerProcess` read and write it beside the loop.

    to the viewer                                    from the viewer
    'capabilities', Capabilities                     'command', number, name, arguments
    'world', number, length, header, shadows         'serving', address
    'state', PageState                               'failed', reason
    'answer', number, refusal
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models import contact_models
from contact_sim.errors import shortened
from contact_sim.replay._format import header_of, model_header
from contact_sim.robot._constraints import Constraint
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._shadow import Shadows, ShadowSolve
from contact_sim.simulation._simulator import Simulator
from contact_sim.view._server import NOT_INSTALLED, is_installed, warning_about
from contact_sim.view._session import Capabilities, Settings

PROGRAM = '-m', 'contact_sim.view.viewer_main'
"""Of the viewer, as Python's arguments."""
STATE_PERIOD = 0.1
"""Wall seconds between two looks for a changed world or state."""
GRACE = 3.0
"""Wall seconds in which a viewer ends that is told to."""

# ------------------------------------------------ the process


def received(connection: Connection) -> Iterator[tuple[Any, ...]]:
    """Yield the messages of the other process until it has ended."""
    with suppress(EOFError, OSError):
        while True:
            yield connection.recv()


@dataclass(frozen=True)
class PageState:
    """What the page shows besides the step."""

    settings: Settings
    failure: str
    """Why the simulation is stopped until a reset; '' while it is not."""


class ViewerProcess:
    """The viewer's process, from its start to its end; its failure never affects the simulation.

    Args:
        sim: the simulation.
        feed: of its steps.
        capabilities: shown in the page.
        state: returns the state of the page; called by a thread of this object.
        execute: called by a thread of this object with number, name and arguments of a command of
            `Session`; has it answered with `answer`, and raises nothing.
        log: called with a line for the user, and its level of `logging`.

    Attributes:
        address: of the page; '' before it is served.
        error: why it is not, or no longer, served; '' while all is well.
    """

    def __init__(
        self,
        sim: Simulator,
        feed: Feed,
        capabilities: Capabilities,
        state: Callable[[], PageState],
        execute: Callable[[int, str, Mapping[str, Any]], None],
        log: Callable[[str, int], None],
    ) -> None:
        self._sim, self._feed, self._capabilities = sim, feed, capabilities
        self._state, self._execute, self._log = state, execute, log
        self._outgoing: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = False
        self.address = self.error = ''

    def start(self, host: str, port: int) -> None:
        """Serve the page at a port of a host name or address of this machine."""
        if not is_installed():
            self._fail(NOT_INSTALLED, logging.ERROR)
            return
        if warning := warning_about(host, port):
            self._log(warning, logging.WARNING)
        self._connection, theirs = Pipe()
        descriptors = self._feed.memory.descriptor, theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, *PROGRAM, *map(str, descriptors), host, str(port)],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the simulation, and that the viewer
        )
        theirs.close()
        self._threads = [
            threading.Thread(target=run, name=f'viewer: {run.__name__}', daemon=True)
            for run in (self._receive, self._send)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def process_id(self) -> int:
        """Of the viewer that was started."""
        assert self._process is not None, 'start() comes first'
        return self._process.pid

    def answer(self, number: int, refusal: str = '') -> None:
        """Tell the page that a command is done, or why it is refused."""
        self._outgoing.put(('answer', number, refusal))

    def close(self) -> None:
        """End the viewer; twice does nothing."""
        process = self._process
        if process is None or self._ending:
            return
        self._ending = True
        self._outgoing.put(None)
        process.terminate()  # it has nothing to lose
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(GRACE)
        self._connection.close()

    def _fail(self, reason: str, level: int) -> None:
        self.address, self.error = '', reason
        self._log(reason, level)

    def _receive(self) -> None:
        for kind, *values in received(self._connection):
            if kind == 'command':
                self._execute(*values)
            elif kind == 'serving':
                (self.address,) = values
                self._log(f'the viewer is at {self.address}', logging.INFO)
            elif kind == 'failed':
                reason = f'the viewer does not run: {shortened(values[0])}'
                self._fail(reason, logging.ERROR)
        self._outgoing.put(None)
        if not self._ending and not self.error:
            reason = 'the viewer has ended; the simulation goes on without it'
            self._fail(reason, logging.WARNING)

    def _send(self) -> None:
        """Send the world and the state whenever they change, and the answers."""
        world: SharedWorld | None = None
        state: PageState | None = None
        with suppress(OSError):  # the viewer has ended, which the other thread reports
            self._connection.send(('capabilities', self._capabilities))
            while True:
                now = self._feed.world
                if now is not world and (header := self._header_of(now)):
                    models = [] if now.shadows is None else now.shadows.models
                    shadows = [model_header(model) for model in models]
                    self._connection.send(('world', now.number, now.length, header, shadows))
                    world = now
                if (changed := self._state()) != state:
                    self._connection.send(('state', changed))
                    state = changed
                try:
                    message = self._outgoing.get(timeout=STATE_PERIOD)
                except queue.Empty:
                    continue
                if message is None:
                    return
                self._connection.send(message)

    def _header_of(self, world: SharedWorld) -> dict[str, Any] | None:
        """Return the description of a world; None if the simulation is in another one by now."""
        sim = self._sim
        header = header_of(sim, 1, None)  # read while the loop goes on: compared afterwards
        same = sim.terrain is world.ground and sim.constraints is world.constraints
        return header if same else None


# ------------------------------------------------ the feed of the loop

PERIOD = 1.0 / 30.0
"""Wall seconds between two records."""


@dataclass(frozen=True, eq=False)
class SharedWorld:
    """Ground, constraints and shadow models to which the step data of a record belong."""

    number: int
    """Counted from 1."""
    ground: Terrain
    constraints: tuple[Constraint, ...]
    shadows: Shadows | None
    """None before there were any on this ground, under these constraints."""
    length: int
    """Numbers of a record after its front."""


class Feed:
    """Writes the newest step of the loop to the shared memory, at most every PERIOD.

    Args:
        sim: the simulation.
        frames: that can be pushed.
        pace: returns wall time of the last step [s] and the real-time factor [-].

    Attributes:
        latest: the newest step and its external wrenches, by frame; None: it is written already.
        memory: where it is written.
        due: when the next record may be written, by `time.perf_counter` [s].
        world: of the records from now on.
    """

    def __init__(
        self, sim: Simulator, frames: Sequence[str], pace: Callable[[], tuple[float, float]]
    ) -> None:
        self._sim, self._pace = sim, pace
        self.due = 0.0
        self.world = self._current_world(1, None)
        self.memory = SharedRecord(frames, self.world.length)
        self.latest: tuple[StepReport, Mapping[str, Array]] | None = sim.last_report, {}

    def write_if_due(self) -> None:
        """Write the newest step if there is one and it is time; called after every step."""
        if self.latest is not None and time.perf_counter() >= self.due:
            self._write(*self.latest)

    def _write(self, report: StepReport, wrenches: Mapping[str, Array]) -> None:
        self.due = time.perf_counter() + PERIOD
        sim, world = self._sim, self.world
        solve = report.solve_shadows
        if sim.terrain is not world.ground or sim.constraints is not world.constraints:
            self.world = world = self._current_world(world.number + 1, None)
            report, wrenches = sim.last_report, {}  # that step may be of the world before
        elif isinstance(solve, ShadowSolve) and solve.shadows is not world.shadows:
            self.world = world = self._current_world(world.number + 1, solve)
        if self.memory.write(world.number, *self._pace(), wrenches, report):
            self.latest = None

    def _current_world(self, number: int, solve: ShadowSolve | None) -> SharedWorld:
        sim, length = self._sim, self._sim.sizes.length
        if solve is not None:
            length += sum(array.size for array in solve.start.arrays)
        if number > 1:
            self.memory.resize(length)
        shadows = None if solve is None else solve.shadows
        return SharedWorld(number, sim.terrain, sim.constraints, shadows, length)


# ------------------------------------------------ the shared memory
#
# It is one record of float64, guarded by a lock of the file behind it. Both processes only try the
# lock: the loop skips a record, the viewer looks again. So a record is never half old and half
# new, and a process that stops or dies inside blocks nobody.

MAX_PUSHES = 32
"""External wrenches that a record has room for."""
PUSH = 7
"""Numbers of an external wrench: number of its frame, force and torque."""
NUMBER, WORLD, STEP_SECONDS, FACTOR, MODEL, PUSHES, HEAD = range(7)
"""Places of single numbers before the wrenches and the step data."""
FRONT = HEAD + PUSH * MAX_PUSHES
MODELS = contact_models()
"""Contact models by their number."""


@dataclass(frozen=True, eq=False)
class Record:
    """A step as it is in the shared memory."""

    number: int
    """Counted from 1."""
    world: int
    """Number of the `SharedWorld` of the step data."""
    step_seconds: float
    """Wall time of the step [s]."""
    real_time_factor: float
    """Simulated over wall time in the last second or so [-]."""
    wrenches: dict[str, Array]
    """External wrenches of the step: frame to force [N] and torque [N m], world axes, (6,)."""
    model: str
    """Contact model of the step if `numbers` have its start, from which shadows solve; else ''."""
    numbers: Array
    """The step data, see `StepData`, then the arrays of a `StepStart`."""


class SharedRecord:
    """One record in memory that two processes share.

    Both name the same `frames` in the same order. The lock does not separate threads of a process.

    Attributes:
        descriptor: of the file, to be passed to the other process.
        length: numbers that there is room for.
    """

    def __init__(self, frames: Sequence[str], length: int, descriptor: int | None = None) -> None:
        self.descriptor = _anonymous_file() if descriptor is None else descriptor
        self._frames = tuple(frames)
        self._number = {name: k for k, name in enumerate(frames)}
        self.resize(length)

    def resize(self, length: int) -> None:
        """Make room for this many numbers; the file never becomes shorter."""
        size = 8 * (FRONT + length)
        if os.fstat(self.descriptor).st_size < size:
            os.ftruncate(self.descriptor, size)
        numbers = np.frombuffer(mmap.mmap(self.descriptor, size))
        self._head, self._rest, self.length = numbers[:HEAD], numbers[FRONT:], length
        self._pushes = numbers[HEAD:FRONT].reshape(MAX_PUSHES, PUSH)

    def write(
        self,
        world: int,
        seconds: float,
        factor: float,
        wrenches: Mapping[str, Array],
        report: StepReport,
    ) -> bool:
        """Write the next record; return False if the other process has the lock.

        Args:
            world: number of the world of the step data.
            seconds: wall time of the step [s].
            factor: real-time factor [-].
            wrenches: frame to force and torque in world axes, (6,); of many the first are kept.
            report: of the step, with no more numbers than there is room for.
        """
        with self._locked() as locked:
            if locked:
                head, count = self._head, 0
                for row, (frame, wrench) in zip(self._pushes, wrenches.items(), strict=False):
                    row[0], row[1:] = self._number[frame], wrench
                    count += 1
                head[MODEL] = self._fill(report)
                head[NUMBER] += 1.0
                head[WORLD], head[STEP_SECONDS], head[FACTOR] = world, seconds, factor
                head[PUSHES] = count
        return locked

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
        """Return the record if it is newer than that number and the lock is free."""
        if self._head[NUMBER] <= newer_than:
            return None
        with self._locked() as locked:
            if not locked:
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
        """Close the file."""
        os.close(self.descriptor)

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Try the lock; yield whether this process has it."""
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
