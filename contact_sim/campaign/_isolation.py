"""Trials in a process of their own, which is ended where it hangs or takes too much memory.

A child process runs one batch of trials after the other. A controller that ends it, hangs in it or
fills the memory costs that trial only: the next one gets a new child. Messages are JSON over a
socket, so nothing is unpickled, and what a controller prints does not disturb them.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim._validation import checked_fields, positive
from contact_sim.campaign._controllers import BUILT_IN, load_controller
from contact_sim.campaign._scenarios import scenario_of
from contact_sim.campaign._trial import (
    Trial,
    batch_key,
    contact_model_of,
    failed_row,
    robot_of,
    run_trial,
    run_trials,
    simulator_of,
    trial_of,
)
from contact_sim.errors import ContactSimError, InvalidInput, of_type
from contact_sim.solvers._jit import compile_what_is_rare

# --- Limits of a trial


@checked_fields
@dataclass(frozen=True)
class Limits:
    """What a trial may take.

    Raises:
        InvalidInput: a limit that is not positive.
    """

    wall: float | None = None
    """Wall-clock time of a trial [s]; None: BASE and PER_SECOND for each simulated second."""
    memory: float = 4096.0
    """Memory of the process that runs it [MB]."""

    def __post_init__(self) -> None:
        if self.wall is not None:
            positive('Limits.wall', self.wall, 's')
        positive('Limits.memory', self.memory, 'MB')

    def wall_of(self, trial: Trial) -> float:
        """Return the wall-clock time that a trial may take [s]."""
        seconds = of_type('trial', trial, Trial).seconds
        if self.wall is not None:
            return self.wall
        if seconds is None:
            with suppress(ContactSimError):
                seconds = scenario_of(trial.scenario).seconds
        return BASE + PER_SECOND * (seconds or 0.0)


BASE, PER_SECOND = 30.0, 30.0
LOOK = 0.1
"""Time between two looks at the memory of a child [s]."""
START_TIME = 600.0
"""Time in which a child has to start, kernels compiled [s]."""
END_TIME = 5.0
"""Time in which an idle child ends when it is told to [s]."""


# --- The child process


class Ended(Exception):
    """A child process that has ended, or was ended, in the middle of a request."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


class Child:
    """A process that answers requests, one at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            # small matrices: more threads per process only disturb the other processes
            threads = {name: '1' for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS')}
            self._process = subprocess.Popen(
                [
                    sys.executable, '-c',
                    f'from contact_sim.campaign._isolation import serve; serve({theirs.fileno()})',
                ],
                pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                start_new_session=True, env={**os.environ, **threads, 'PYTHONPATH': search_path()},
            )  # fmt: skip
        self._connection = Connection(ours.detach())

    def ask(self, request: dict[str, Any], wall: float, memory: float) -> Any:
        """Return the answer to a request.

        Args:
            request: JSON values.
            wall: time for it after preparations [s].
            memory: largest memory of the process [MB].

        Raises:
            Ended: the process crashed, or took longer or more memory.
        """
        try:
            self._connection.send_bytes(json.dumps(request).encode())
            self._receive(START_TIME, memory)  # it has loaded and compiled what it needs
            return self._receive(wall, memory)
        except Ended:
            self.end()
            raise
        except (EOFError, OSError) as error:
            self.end(signal_it=False)
            raise Ended('crashed', self._last_words()) from error

    def _receive(self, wall: float, memory: float) -> Any:
        end = time.monotonic() + wall
        while not self._connection.poll(min(LOOK, max(end - time.monotonic(), 0.0))):
            if self.memory > memory:
                raise Ended('crashed', f'it took more than {memory:g} MB of memory')
            if time.monotonic() >= end:
                raise Ended('hung', f'it ran for more than {wall:g} s')
        return json.loads(self._connection.recv_bytes())

    @property
    def memory(self) -> float:
        """Resident memory of the process [MB]; 0 where the system does not tell."""
        try:
            pages = Path(f'/proc/{self._process.pid}/statm').read_text(encoding='ascii').split()
        except OSError:
            return 0.0
        return int(pages[1]) * os.sysconf('SC_PAGE_SIZE') / 2**20

    def _last_words(self) -> str:
        code = self._process.poll()
        if code is not None and code < 0:
            with suppress(ValueError):
                return f'its process was ended by {signal.Signals(-code).name}'
        return f'its process ended with code {code}'

    def end(self, signal_it: bool = True) -> None:
        """End the process, at once or when it is idle."""
        if signal_it:
            self._process.kill()
        self._connection.close()
        try:
            self._process.wait(END_TIME)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def search_path() -> str:
    """Return the places of modules of this process, for a child that imports the same."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


_idle: list[Child] = []
_busy: set[Child] = set()
_lock = threading.Lock()
_closed = threading.Event()


def _ask(request: dict[str, Any], wall: float, memory: float) -> Any:
    """Ask an idle child, or a new one; each thread of this process has one of its own."""
    with _lock:
        if _closed.is_set():
            raise Ended('crashed', 'the campaign was interrupted')
        child = _idle.pop() if _idle else Child()
        _busy.add(child)
    healthy = False
    try:
        answer = child.ask(request, wall, memory)
        healthy = child.memory <= KEPT_MEMORY * memory
        return answer
    finally:
        with _lock:
            _busy.discard(child)
            if healthy:
                _idle.append(child)
        if not healthy:
            child.end()


KEPT_MEMORY = 0.5
"""Share of the memory limit above which a child is not used again."""


@atexit.register
def end_children() -> None:
    """End all child processes of this process; requests fail until `open_for_requests`."""
    with _lock:
        _closed.set()
        children, busy = [*_idle], [*_busy]
        _idle.clear()
    for child in busy:
        child._process.kill()
    for child in children:
        child.end(signal_it=False)


def open_for_requests() -> None:
    """Let child processes start, also after `end_children`."""
    _closed.clear()


# --- Requests


def run_isolated(
    rows: Sequence[dict[str, Any]], limits: Limits, recording: Path | None = None
) -> list[dict[str, Any]]:
    """Return the rows of trials, which are given by their inputs; together if they can.

    Where a batch hangs or crashes each of its trials runs once more, alone. One trial alone may
    be recorded.
    """
    trials = [trial_of(row) for row in rows]
    wall = sum(limits.wall_of(trial) for trial in trials)
    begin = time.perf_counter()
    try:
        answer: list[dict[str, Any]] = _ask(
            {
                'run': [trial.as_row() for trial in trials],
                'recording': None if recording is None else str(recording),
            },
            wall, limits.memory,
        )  # fmt: skip
        return answer
    except Ended as ended:
        if len(trials) == 1 or _closed.is_set():
            spent = time.perf_counter() - begin
            told = ended.outcome, ended.reason, 'controller', spent
            return [failed_row(trial, *told) for trial in trials]
    return [row for trial in trials for row in run_isolated([trial.as_row()], limits)]


def call_isolated(function: str, trial: Trial, limits: Limits) -> Any:
    """Return what a function, 'module:name', returns for a trial: a JSON value.

    Raises:
        Ended: it crashed, or took longer or more memory than a trial may.
    """
    request = {'call': function, 'trial': trial.as_row()}
    return _ask(request, limits.wall_of(trial), limits.memory)


def inspect_trial(trial: Trial, limits: Limits, check_meshes: bool = True) -> bool:
    """Return whether trials like this one run as a batch.

    Raises:
        InvalidInput: its controller, robot, scenario or contact model cannot be used at all, or
            `check_meshes` and a mesh is missing.
    """
    request = {'inspect': trial.as_row(), 'check_meshes': check_meshes}
    try:
        answer = _ask(request, limits.wall_of(trial), limits.memory)
    except Ended as ended:
        raise InvalidInput(f'controller {trial.controller!r} cannot be loaded: {ended}') from ended
    if answer['error']:
        raise InvalidInput(answer['error'])
    return bool(answer['batch'])


# --- Inside the child


def serve(descriptor: int) -> None:
    """Answer requests until the other side is gone."""
    with suppress(AttributeError, OSError):  # Linux: end with the process that started this one
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    connection, warm = Connection(descriptor), set[Any]()
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        if 'run' in request:
            trials = [trial_of(row) for row in request['run']]
            warm_up(trials[0], warm)
            connection.send_bytes(b'null')
            alone = len(trials) == 1
            rows = [run_trial(trials[0], request['recording'])] if alone else run_trials(trials)
            connection.send_bytes(json.dumps(rows).encode())
        elif 'call' in request:
            module, _, name = request['call'].partition(':')
            connection.send_bytes(b'null')
            said = getattr(importlib.import_module(module), name)(trial_of(request['trial']))
            connection.send_bytes(json.dumps(said).encode())
        else:
            trial = trial_of(request['inspect'])
            warm_up(trial, warm)
            connection.send_bytes(b'null')
            answer = inspected(trial, request['check_meshes'])
            connection.send_bytes(json.dumps(answer).encode())


PR_SET_PDEATHSIG = 1


def warm_up(trial: Trial, warm: set[Any]) -> None:
    """Compile what a trial needs, once for each kind, without code of the user."""
    kind = trial.robot, trial.feet, trial.contact_model, trial.scenario, trial.roughness > 0.0
    if kind in warm:
        return
    warm.add(kind)
    with suppress(ContactSimError):  # the trial itself says what is wrong
        simulator_of(trial).last_report.read()
        compile_what_is_rare()
        if trial.controller in BUILT_IN:
            robot = robot_of(trial.robot, trial.feet)
            loaded = load_controller(trial.controller, robot, trial.robot)
            if loaded.batch is not None:
                q, v = robot.reference_configuration(), np.zeros(robot.nv)
                loaded.batch(np.zeros(1), q[None], v[None])


def inspected(trial: Trial, check_meshes: bool) -> dict[str, Any]:
    """Return what is wrong with a trial, and whether it runs as part of a batch."""
    try:
        scenario_of(trial.scenario)
        contact_model_of(trial)
        robot = robot_of(trial.robot, trial.feet, check_meshes)
        load_controller(trial.controller, robot, trial.robot)
    except ContactSimError as error:
        return {'error': str(error), 'batch': False}
    return {'error': '', 'batch': batch_key(trial) is not None}
