"""Nodes as processes of their own, on a ROS domain of their own; imports no ROS."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

DOMAINS = range(10, 101)
"""Domain ids whose ports lie below those that Linux hands out by itself."""
SPREAD = 37
"""Processes that start together look for a domain far apart from each other."""
GRACE = 5.0
"""Wall seconds between the polite and the impolite end of a process."""


def isolated_environment(domain: int | None = None) -> dict[str, str]:
    """Return environment variables that keep DDS on this machine and apart from others.

    Without a number it is a domain in which nothing else runs on this machine.
    """
    return {
        'ROS_DOMAIN_ID': str(free_domain() if domain is None else domain),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4',
        'ROS_LOG_DIR': tempfile.gettempdir(),
    }


def free_domain() -> int:
    """Return a ROS domain id in which no participant runs on this machine.

    Raises:
        RuntimeError: every domain is taken.
    """
    first = SPREAD * os.getpid() % len(DOMAINS)
    free = (domain for domain in (*DOMAINS[first:], *DOMAINS[:first]) if _is_free(domain))
    domain = next(free, None)
    if domain is None:
        raise RuntimeError(f'every ROS domain id in {DOMAINS} is in use on this machine')
    return int(domain)


def _is_free(domain: int) -> bool:
    """Return whether the port of a domain's first participant can be had (RTPS 9.6.1.1)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(('', 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True


def ros_arguments(parameters: dict[str, object]) -> list[str]:
    """Return command line arguments that set ROS parameters."""
    arguments = ['--ros-args']
    for name, value in parameters.items():
        text = str(value).lower() if isinstance(value, bool) else str(value) or "''"
        arguments += ['-p', f'{name}:={text}']
    return arguments


class Process:
    """One node as a process; ends with the `with` block, by its own id.

    Args:
        program: a module to run with `python -m`, or a command with its first arguments.
        arguments: command line arguments.
        environment: variables to add to the present ones.
        log: file for its output; None: shown.
    """

    def __init__(
        self,
        program: str | Sequence[str],
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        self.log = log
        self._output = log.open('wb') if log else None
        module = isinstance(program, str)
        command = [sys.executable, '-m', str(program)] if module else [*program]
        self.handle = subprocess.Popen(
            [*command, *arguments],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT if self._output else None,
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
        if self._output:
            self._output.close()
        return code

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
