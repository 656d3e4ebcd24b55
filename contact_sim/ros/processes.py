"""Nodes as processes of their own, out of reach of other ROS traffic; imports no ROS.

Each is ended by its own process id: first asked (SIGINT), then killed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contact_sim.ros.config_files import yaml_scalar

DOMAINS = range(10, 101)
"""Domain ids whose ports lie below those that Linux hands out by itself."""
PATIENCE = 10.0
"""Seconds that a process has between SIGINT and SIGKILL."""
SILENT = ('ROS_AUTOMATIC_DISCOVERY_RANGE', 'ROS_LOCALHOST_ONLY', 'ROS_STATIC_PEERS')
"""Settings that would change the transports or the discovery."""


def free_domain(domains: Sequence[int] = DOMAINS) -> int:
    """Return a ROS domain id in which no other participant runs on this machine.

    Raises:
        RuntimeError: every domain is taken.
    """
    first = os.getpid() % len(domains)
    for domain in (*domains[first:], *domains[:first]):
        if _is_free(domain):
            return domain
    raise RuntimeError(f'every ROS domain id in {domains} is in use on this machine')


def _is_free(domain: int) -> bool:
    """Return whether the port of a domain's first participant can be had (RTPS 9.6.1)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(('', 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True


def isolated_environment(domain: int, log_folder: Path) -> dict[str, str]:
    """Return the environment of nodes that share a domain id, over UDP, logging to a folder."""
    inherited = {name: value for name, value in os.environ.items() if name not in SILENT}
    return inherited | {
        'ROS_DOMAIN_ID': str(domain),
        'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4',
        'ROS_LOG_DIR': str(log_folder),
        'PYTHONUNBUFFERED': '1',
    }


def ros_arguments(parameters: Mapping[str, Any], remaps: Mapping[str, str] | None = None) -> list:
    """Return the command line that sets `parameters` and remaps names."""
    line = ['--ros-args']
    for name, value in parameters.items():
        line += ['-p', f'{name}:={yaml_scalar(value)}']
    for name, other in (remaps or {}).items():
        line += ['-r', f'{name}:={other}']
    return line


class NodeProcess:
    """A Python module that runs as a process; stops when the `with` block ends.

    Args:
        module: module with a `main`, run as `python -m`.
        parameters: ROS parameters by dotted name.
        environment: see `isolated_environment`; its ROS_LOG_DIR also takes the output.
        remaps: ROS names to other names.
    """

    _started = 0

    def __init__(
        self,
        module: str,
        parameters: Mapping[str, Any],
        environment: Mapping[str, str],
        remaps: Mapping[str, str] | None = None,
    ) -> None:
        NodeProcess._started += 1
        name = f'{module.rpartition(".")[2]}_{NodeProcess._started}.log'
        self._log = Path(environment['ROS_LOG_DIR']) / name
        with self._log.open('wb') as output:
            self._process = subprocess.Popen(
                [sys.executable, '-m', module, *ros_arguments(parameters, remaps)],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs."""
        return self._process.poll()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(encoding='utf-8', errors='replace')

    def wait(self, timeout: float) -> int:
        """Return the exit code of a process that ends by itself.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        return self._process.wait(timeout)

    def stop(self) -> int:
        """Ask it to end, kill it if it does not, and return the exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
