"""The viewer as a process of its own, seen from the process that simulates; needs no viser.

The loop writes into the feed and never waits. Threads here talk to the viewer: one hears what its
page asks for, one tells it the world, the settings and the answers.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import logging
import mmap
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models import contact_models
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import shortened
from contact_sim.replay._header import header_of, model_header
from contact_sim.robot._constraints import Constraint
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._shadow import Shadows, ShadowSolve
from contact_sim.simulation._simulator import Simulator
from contact_sim.view._server import NOT_INSTALLED, is_installed, warning_about
from contact_sim.view._session import Chosen, Offers

# --- Messages between two processes on one machine: a line of JSON each, over a socket.

Message = dict[str, Any]


class Channel:
    """One end of a connection; any thread may send, one thread reads.

    Args:
        end: of a pair of connected sockets.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end, self._sending = end, threading.Lock()
        self._lines = end.makefile('rb')

    def send(self, kind: str, **said: Any) -> None:
        """Send a message of a kind; wait until the other process has room for it.

        Raises:
            OSError: the other process is gone.
        """
        line = json.dumps({'kind': kind, **said}).encode() + b'\n'
        with self._sending:
            self._end.sendall(line)

    def messages(self) -> Iterator[Message]:
        """Yield the messages of the other process until it is gone."""
        with suppress(OSError):
            for line in self._lines:
                if line.endswith(b'\n'):  # without it the process died in the middle
                    yield json.loads(line)

    def close(self) -> None:
        """Be gone for the other process; whoever sends or reads here comes back."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)


# --- The feed: the newest step in memory that two processes share, and neither waits for the
# other.
#
# The memory is one record, and a lock of the file behind it says who is in it. Both ends only try
# the lock: the loop leaves out a record, the viewer looks again. So no record is ever half old and
# half new, on every machine, and a process that stops or dies inside holds up nobody.

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


# --- The viewer as a process of its own, seen from the process that simulates; needs no viser.

PROGRAM = '-m', 'contact_sim.view.viewer_main'
"""Of the viewer, as Python's arguments."""
TELLING = 0.1
"""Wall seconds between two looks at what the viewer has to be told."""
GRACE = 3.0
"""Wall seconds in which a viewer ends that has nobody to show any more."""


@dataclasses.dataclass(frozen=True)
class Told:
    """What the page shows besides the step."""

    chosen: Chosen
    failure: str
    """Why time stands still until a reset; '' while it does not."""


class Child:
    """The viewer's process, from its start to its end; a failure of it is none of the simulation.

    Args:
        sim: what is shown.
        feed: of its steps.
        offers: what can be chosen in the page.
        told: returns what the page shows besides; called by a thread of this object.
        ask: called by a thread of this object with what the page asks for; has it answered with
            `answer`, and raises nothing.
        say: called with a line that people should know, and its level of `logging`.

    Attributes:
        address: of the page; '' before it is served.
        complaint: why it is not, or no longer; '' while all is well.
    """

    def __init__(
        self,
        sim: Simulator,
        feed: Feed,
        offers: Offers,
        told: Callable[[], Told],
        ask: Callable[[Message], None],
        say: Callable[[str, int], None],
    ) -> None:
        self._sim, self._feed, self._offers = sim, feed, offers
        self._told, self._ask, self._say = told, ask, say
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = False
        self.address = self.complaint = ''

    def start(self, host: str, port: int) -> None:
        """Serve the page at a port of a host name or address of this machine."""
        if not is_installed():
            self._complain(NOT_INSTALLED, logging.ERROR)
            return
        if warning := warning_about(host, port):
            self._say(warning, logging.WARNING)
        ours, theirs = socket.socketpair()
        memory = self._feed.memory.descriptor
        words = str(memory), str(theirs.fileno()), host, str(port)
        command = [sys.executable, *PROGRAM, *words]
        self._process = subprocess.Popen(
            command,
            pass_fds=(memory, theirs.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the simulation, and that the viewer
        )
        theirs.close()
        self._channel = Channel(ours)
        self._threads = [
            threading.Thread(target=run, name=f'viewer: {run.__name__}', daemon=True)
            for run in (self._hear, self._tell)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def process_id(self) -> int:
        """Of the viewer that was started."""
        assert self._process is not None, 'start() comes first'
        return self._process.pid

    def answer(self, number: int, refusal: str = '') -> None:
        """Tell the page that what it asked for is done, or why it is not."""
        self._outgoing.put({'kind': 'answer', 'number': number, 'refusal': refusal})

    def close(self) -> None:
        """End the viewer; twice does nothing."""
        process = self._process
        if process is None or self._ending:
            return
        self._ending = True
        self._outgoing.put(None)
        self._channel.close()
        process.terminate()  # it has nothing to lose
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(GRACE)

    # ---------------------------------------------------------------- the threads

    def _hear(self) -> None:
        for message in self._channel.messages():
            if message['kind'] == 'ask':
                self._ask(message)
            elif message['kind'] == 'serving':
                self.address = message['address']
                self._say(f'the viewer is at {self.address}', logging.INFO)
            elif message['kind'] == 'failed':
                reason = f'the viewer does not run: {shortened(message["reason"])}'
                self._complain(reason, logging.ERROR)
        self._outgoing.put(None)
        if not self._ending and not self.complaint:
            reason = 'the viewer has ended; the simulation goes on without it'
            self._complain(reason, logging.WARNING)

    def _tell(self) -> None:
        world: World | None = None
        before: Told | None = None
        try:
            while True:
                now = self._feed.world
                if now is not world and (header := self._header_of(now)):
                    self._channel.send(
                        'world',
                        number=now.number,
                        length=now.length,
                        header=header,
                        shadows=[model_header(one) for one in models_of(now)],
                        offers=vars(self._offers) | {'fixed': sorted(self._offers.fixed)},
                    )
                    world = now
                if (told := self._told()) != before:
                    self._channel.send('told', **dataclasses.asdict(told))
                    before = told
                try:
                    message = self._outgoing.get(timeout=TELLING)
                except queue.Empty:
                    continue
                if message is None:
                    return
                self._channel.send(**message)
        except OSError:
            return  # the viewer is gone, which the other thread says

    def _header_of(self, world: World) -> Message | None:
        """Return a world in words; None where the simulation is in another one by now."""
        sim = self._sim
        header = header_of(sim, 1, None)  # read while the loop goes on: compared afterwards
        same = sim.terrain is world.ground and sim.constraints is world.constraints
        return header if same else None

    def _complain(self, reason: str, level: int) -> None:
        self.address, self.complaint = '', reason
        self._say(reason, level)


def models_of(world: World) -> list[ContactModel]:
    """Return the contact models in the shadow."""
    return [] if world.shadows is None else world.shadows.models
