"""Start nodes as processes on a separate ROS domain, and end them on signals; imports no ROS.

`Process` runs a node and stops it. `Interruption` is for the program itself: the first SIGINT or
SIGTERM ends it cleanly, another one at once. A signal handler in Python runs where the main thread
comes back to Python, which a compiled step or the compiler may put off for minutes. So a thread
reads the numbers of the signals, as they arrive, from a pipe that the interpreter writes to.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

DOMAINS = range(10, 101)
"""Domain ids whose ports lie below those that Linux hands out by itself."""
SPREAD = 37
"""Processes that start together look for a domain far apart from each other."""
GRACE = 5.0
"""Wall seconds between SIGINT and SIGKILL of a process."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME = 1.0
"""Wall seconds within which another signal counts as the same: both ros2 launch and the terminal
send SIGINT on one Ctrl-C."""
PATIENCE = 3.0
"""Wall seconds of an end that needs no explanation."""


def isolated_environment() -> dict[str, str]:
    """Return environment variables that keep DDS on this machine, in a domain of its own."""
    return {
        'ROS_DOMAIN_ID': str(free_domain()),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4',
        'ROS_LOG_DIR': tempfile.gettempdir(),
    }


def free_domain() -> int:
    """Return a ROS domain id in which no participant runs on this machine."""
    first = SPREAD * os.getpid() % len(DOMAINS)
    for domain in (*DOMAINS[first:], *DOMAINS[:first]):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:  # the port of the first participant of the domain (RTPS 9.6.1.1)
                probe.bind(('', 7400 + 250 * domain + 10))
            except OSError:
                continue
            return int(domain)
    raise RuntimeError(f'every ROS domain id in {DOMAINS} is in use on this machine')


def bound_to_this_process() -> list[str]:
    """Return a command to put before a program, which then gets SIGTERM when this process ends.

    The signal is asked for in the new process. Where this one has ended by then, none would come:
    the shell compares its parent, and starts no program.
    """
    setpriv = shutil.which('setpriv')  # part of util-linux
    if setpriv is None:
        return []
    only_with_parent = '[ "$PPID" = "$0" ] && exec "$@"'
    return [setpriv, '--pdeathsig', 'TERM', '--', 'sh', '-c', only_with_parent, str(os.getpid())]


def ros_arguments(parameters: dict[str, object]) -> list[str]:
    """Return command line arguments that set ROS parameters."""
    arguments = ['--ros-args']
    for name, value in parameters.items():
        text = str(value).lower() if isinstance(value, bool) else str(value) or "''"
        arguments += ['-p', f'{name}:={text}']
    return arguments


class Process:
    """One node as a process; ends with the `with` block, by its own id.

    `program` is a module to run with `python -m`, or a command with its first arguments; variables
    of `environment` are added to the present ones; without a `log` file the output is shown. With
    `own_group` all that it has started ends with it, and it ends where this process is killed; a
    Ctrl-C of the terminal does not reach it.
    """

    def __init__(
        self,
        program: str | Sequence[str],
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        log: Path | None = None,
        own_group: bool = False,
    ) -> None:
        self.log, self._own_group = log, own_group
        self._output = log.open('wb') if log else None
        module = isinstance(program, str)
        command = [sys.executable, '-m', str(program)] if module else [*program]
        if own_group and shutil.which(command[0]):  # else its own error says what is wrong
            command = [*bound_to_this_process(), *command]
        self.handle = subprocess.Popen(
            [*command, *arguments],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT if self._output else None,
            start_new_session=own_group,
        )

    @property
    def running(self) -> bool:
        """True until the process has ended."""
        return self.handle.poll() is None

    def output(self) -> str:
        """Return what the process has written so far."""
        return self.log.read_text(errors='replace') if self.log else ''

    def stop(self) -> int:
        """End the process: SIGINT, then SIGKILL; return its exit code."""
        if self.running:
            self.handle.send_signal(signal.SIGINT)
            try:
                self.handle.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.handle.kill()
        code = self.handle.wait()
        if self._own_group:
            with suppress(ProcessLookupError):  # nothing is left
                os.killpg(self.handle.pid, signal.SIGKILL)
        if self._output:
            self._output.close()
        return code

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Interruption:
    """Takes SIGINT and SIGTERM inside a `with` block, which belongs into the main thread.

    `on_request` is called once, in another thread, when the first signal has arrived.
    """

    def __init__(self, name: str, on_request: Callable[[], None] | None = None) -> None:
        self._name, self._on_request = name, on_request
        self._requested, self._over = threading.Event(), threading.Event()

    @property
    def requested(self) -> bool:
        """Whether a signal has arrived."""
        return self._requested.is_set()

    def __enter__(self) -> Interruption:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        # a handler that does nothing: the thread gets the signal
        self._before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
        self._fd_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name='interruption', daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._over.set()
        os.close(self._write)
        self._thread.join()
        os.close(self._read)

    def _listen(self) -> None:
        first = 0.0
        while numbers := os.read(self._read, 1):
            if numbers[0] not in SIGNALS:
                continue
            now = time.monotonic()
            if not self.requested:
                first = now
                self._requested.set()
                threading.Thread(target=self._report_wait, daemon=True).start()
                if self._on_request is not None:
                    self._on_request()
            elif now - first > SAME:
                self._write_line('ended at once')
                os._exit(128 + numbers[0])

    def _report_wait(self) -> None:
        if not self._over.wait(PATIENCE):
            self._write_line('ends after what is under way; interrupt it again to end it at once')

    def _write_line(self, text: str) -> None:
        os.write(2, f'{self._name}: {text}\n'.encode())


def leave(status: int) -> None:
    """End the process at once, after flushing its output."""
    # the interpreter's own end takes down the compiler and DDS under threads still in them
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
