"""The server of a page, and the viewer as a separate process; importable without viser.

This is the side of the process that simulates.

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
import importlib.util
import io
import ipaddress
import logging
import mmap
import os
import queue
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from http import HTTPStatus
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError, shortened
from contact_sim.replay._format import header_of, model_header
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._shadow import Shadows, ShadowSolve
from contact_sim.simulation._simulator import Simulator
from contact_sim.view._session import Capabilities, Settings

if TYPE_CHECKING:
    import viser

# ------------------------------------------------ the server of a page

LOCAL = ('localhost', '127.0.0.1', '::1')
"""Hosts that only this machine reaches."""
NOT_INSTALLED = "the viewer needs viser: pip install 'contact_sim[view]'"


class NotServed(ContactSimError):
    """A page cannot be served; the message has the reason and what to do."""


def is_installed() -> bool:
    """Return whether viser is installed."""
    return importlib.util.find_spec('viser') is not None


def page_server(host: str, port: int, title: str) -> viser.ViserServer:
    """Return the server of a page at a port and a host name or address of this machine.

    It answers requests with the token of this process only, see `address_of`, and none of pages
    from elsewhere.

    Raises:
        NotServed: viser is not installed, or the port cannot be had.
    """
    if not is_installed():
        raise NotServed(NOT_INSTALLED)
    try:
        socket.create_server((host, port)).close()
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise NotServed(f'port {port} of {host}: {reason}; choose another port') from error
    server = guarded_server(host, port, label=title)
    if server.get_port() != port:  # viser goes on to the next one that is free
        server.stop()
        raise NotServed(f'port {port} of {host} is taken; choose another port')
    return server


TOKEN = secrets.token_urlsafe(16)
"""Part of the addresses of all pages that this process serves: who has it may command them."""


@checked
def address_of(host: str, port: int) -> str:
    """Return the address under which a browser on this machine finds the page, with its token."""
    name = 'localhost' if host in (*LOCAL, '0.0.0.0', '::', '') else host
    return f'http://{name}:{port}/{TOKEN}/'


_making = threading.Lock()

# A page of any site can send requests to a port of this machine, and open a websocket there: the
# browser asks nobody. So a request needs
#
#     the token, as the first part of its path     no other page knows it
#     a Host that is this machine                  else a foreign name has been rebound to it
#     an Origin, if any, that is this Host         websockets are not bound to one otherwise
#
# The page of viser opens its websocket under the path that it was loaded from, token included.


def refusal(host: str, path: str, headers: Mapping[str, Sequence[str]]) -> str:
    """Return why a request is refused, '' if it is not.

    Args:
        host: to which the server is bound.
        path: of the request.
        headers: its headers `Host` and `Origin`, all values of each.
    """
    hosts, origins = headers.get('Host', ()), headers.get('Origin', ())
    if len(hosts) != 1 or not is_this_machine(hosts[0], host):
        return 'the header Host names another machine: open the address that was printed'
    if any(urlsplit(origin).netloc.lower() != hosts[0].lower() for origin in origins):
        return 'a page from elsewhere may not use this one'
    token = path.partition('?')[0].strip('/').partition('/')[0]
    if not secrets.compare_digest(token.encode(), TOKEN.encode()):
        return 'the token is missing: open the address that was printed, with all of its path'
    return ''


def is_this_machine(header: str, host: str) -> bool:
    """Return whether the header Host is an address, or a name of this machine."""
    try:
        name = (urlsplit(f'//{header}').hostname or '').rstrip('.')
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name))
    except ValueError:  # brackets that are not closed
        return False
    own = socket.gethostname().lower()
    names = {'localhost', host.lower(), own, f'{own}.local', f'{own.partition(".")[0]}.local'}
    return name in names


def guarded_server(host: str, port: int, **options: Any) -> viser.ViserServer:
    """Return a server of viser that prints nothing and refuses what `refusal` says.

    viser has no setting for that: the function of `websockets` that it calls is another one while
    it starts.

    Raises:
        NotServed: this viser did not call that function.
    """
    import viser

    unguarded = f'viser {viser.__version__} cannot be kept to one token, 1.1 can'
    try:
        from viser.infra import _infra

        websocket_server: Any = _infra.websockets.asyncio.server  # type: ignore[attr-defined]
        serve, guarded = websocket_server.serve, []
    except (ImportError, AttributeError) as error:
        raise NotServed(unguarded) from error

    def guarded_serve(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        def check(connection: Any, request: Any) -> Any:
            headers = {name: request.headers.get_all(name) for name in ('Host', 'Origin')}
            if reason := refusal(host, request.path, headers):
                return connection.respond(HTTPStatus.FORBIDDEN, f'{reason}\n')
            request.path = request.path.replace(f'/{TOKEN}', '', 1) or '/'
            response = process_request(connection, request) if process_request else None
            if response is not None:
                response.headers['Referrer-Policy'] = 'no-referrer'
            return response

        guarded.append(check)
        return serve(*arguments, process_request=check, **options)

    with _making:
        websocket_server.serve = guarded_serve
        try:
            with redirect_stdout(io.StringIO()):
                server = viser.ViserServer(host, port, verbose=False, **options)
        finally:
            websocket_server.serve = serve
    if not guarded:
        server.stop()
        raise NotServed(unguarded)
    return server


def warning_about(host: str, port: int) -> str:
    """Return a warning if other machines can reach the page, else ''."""
    if host in LOCAL:
        return ''
    return (
        f'other machines reach the page at port {port} of {host}, without encryption: whoever has '
        'its address with the token sees the simulation and commands it'
    )


# ------------------------------------------------ the process

PROGRAM = '-m', 'contact_sim.view.viewer_main'
"""Of the viewer, as Python's arguments."""
STATE_PERIOD = 0.1
"""Wall seconds between two looks for a changed world or state."""
GRACE = 3.0
"""Wall seconds in which a viewer ends that is told to."""


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

    Threads of this object call `state`, and `execute` with number, name and arguments of a command
    of `Session`: it has the command answered with `answer`, and raises nothing. `log` is called
    with a line for the user and its level of `logging`.
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
        self.process: subprocess.Popen[bytes] | None = None
        self._ending = False
        self.address = ''  # of the page, once it is served
        self.error = ''  # why it is not, or no longer, served

    def start(self, host: str, port: int) -> None:
        """Serve the page at a port of a host name or address of this machine."""
        if not is_installed():
            self._fail(NOT_INSTALLED, logging.ERROR)
            return
        if warning := warning_about(host, port):
            self._log(warning, logging.WARNING)
        self._connection, theirs = Pipe()
        descriptors = self._feed.memory.descriptor, theirs.fileno()
        self.process = subprocess.Popen(
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

    def answer(self, number: int, refusal: str = '') -> None:
        """Tell the page that a command is done, or why it is refused."""
        self._outgoing.put(('answer', number, refusal))

    def close(self) -> None:
        """End the viewer; twice does nothing."""
        process = self.process
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
                self._fail(f'the viewer does not run: {shortened(values[0])}', logging.ERROR)
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
                now, sim = self._feed.world, self._sim
                if now is not world:
                    header = header_of(sim, 1, None)  # read while the loop goes on
                    if belongs_to(sim, now):
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


# ------------------------------------------------ the feed of the loop

PERIOD = 1.0 / 60.0
"""Wall seconds between two records."""


@dataclass(frozen=True, eq=False)
class SharedWorld:
    """Robots, ground, constraints and shadow models to which the step data of a record belong."""

    number: int
    """Counted from 1."""
    robot: RobotModel
    ground: Terrain
    constraints: tuple[Constraint, ...]
    shadows: Shadows | None
    """None before there were any on this ground, under these constraints."""
    moments: bool
    """Whether the step data have moments of contacts."""
    length: int
    """Numbers of a record after its front."""


def belongs_to(sim: Simulator, world: SharedWorld) -> bool:
    """Return whether the present step data of a simulation belong to this world."""
    same = sim.terrain is world.ground and sim.constraints is world.constraints
    same = same and sim.robot is world.robot
    return same and bool(sim.sizes.n_moments) == world.moments


class Feed:
    """Writes the newest step of the loop to the shared memory, at most every PERIOD."""

    def __init__(
        self, sim: Simulator, frames: Sequence[str], pace: Callable[[], tuple[float, float]]
    ) -> None:
        self._sim = sim
        self._pace = pace  # returns wall time of the last step [s] and the real-time factor [-]
        self.due = 0.0  # when the next record may be written, by `time.perf_counter` [s]
        self.world = self._current_world(1, None)  # of the records from now on
        self.memory = SharedRecord(frames, self.world.length)
        # the newest step and its wrenches, by frame; None: it is written already
        self.latest: tuple[StepReport, Mapping[str, Array]] | None = sim.last_report, {}

    def write_if_due(self) -> None:
        """Write the newest step if there is one and it is time; called after every step."""
        if self.latest is None or time.perf_counter() < self.due:
            return
        report, wrenches = self.latest
        self.due = time.perf_counter() + PERIOD
        sim, world = self._sim, self.world
        solve = report.solve_shadows
        if not belongs_to(sim, world):
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
        moments = bool(sim.sizes.n_moments)
        return SharedWorld(
            number, sim.robot, sim.terrain, sim.constraints, shadows, moments, length
        )


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
    The viewer gets the `descriptor` of the file from the simulation, which makes one without name.
    """

    def __init__(self, frames: Sequence[str], length: int, descriptor: int | None = None) -> None:
        if descriptor is not None:
            self.descriptor = descriptor
        elif hasattr(os, 'memfd_create'):
            self.descriptor = os.memfd_create('contact_sim_viewer')
        else:
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())
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
        """Write the next record, see `Record`; return False if the other process has the lock.

        Of many wrenches the first are kept, and none on links that have come later. There must be
        room for the numbers of the report.
        """
        with self._locked() as locked:
            if locked:
                head, count = self._head, 0
                known = [item for item in wrenches.items() if item[0] in self._number]
                for row, (frame, wrench) in zip(self._pushes, known, strict=False):
                    row[0], row[1:] = self._number[frame], wrench
                    count += 1
                buffer, solve = report.record.buffer, report.solve_shadows
                self._rest[: len(buffer)] = buffer
                head[MODEL] = -1.0
                if isinstance(solve, ShadowSolve):
                    end = len(buffer)
                    for array in solve.start.arrays:
                        begin, end = end, end + array.size
                        self._rest[begin:end] = array.ravel()
                    head[MODEL] = MODELS.index(solve.start.model)
                head[NUMBER] += 1.0
                head[WORLD], head[STEP_SECONDS], head[FACTOR] = world, seconds, factor
                head[PUSHES] = count
        return locked

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
