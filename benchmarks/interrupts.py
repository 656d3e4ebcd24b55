"""How the simulation ends when Ctrl-C is pressed at random times of its start.

`python benchmarks/interrupts.py --count 50 --cold` starts the node in a pseudo-terminal again and
again, each time with an empty cache of kernels, presses Ctrl-C once or twice and prints a table:
every end should have status 0 or 130 and at most one line besides the log.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import random
import re
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from contact_sim.ros._processes import isolated_environment

BEGUN = 'main begins'
NODE = (
    'from contact_sim.ros.simulation_node import executable; '
    f"print('{BEGUN}', flush=True); executable()"
)
"""The executable, which says when its imports are done: what comes before is Python's own."""
READY = 'messages per second'
CTRL_C = b'\x03'
PATIENCE = 120.0
"""Wall seconds after which a process that does not end counts as one that has swallowed it."""
LOG = re.compile(r'\[\w+\] \[[^]]*\]|main begins')
"""What a line of the log looks like."""
ECHO = '^C'
"""What the terminal shows of Ctrl-C, before whatever comes next."""


@dataclass(frozen=True)
class End:
    """How one process ended."""

    after: float
    """Wall seconds from the beginning of main to Ctrl-C."""
    presses: int
    seconds: float
    """From the first Ctrl-C to the end."""
    status: int | None
    """Exit status; negative: the signal that ended it; None: it did not end."""
    lines: tuple[str, ...]
    """What it said besides its log."""

    @property
    def clean(self) -> bool:
        """Whether it ended as it should."""
        return self.status in (0, 130) and len(self.lines) <= 1


class Terminal:
    """The node in a pseudo-terminal, as the foreground process of it."""

    def __init__(self, environment: dict[str, str], program: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, '-c', program], stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, 'RCUTILS_COLORIZED_OUTPUT': '0', **environment},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(slave)
        self.text = ''

    def read(self, seconds: float) -> None:
        """Take what it writes for some time, or until it has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            ready, _, _ = select.select([self._master], [], [], min(left, 0.02))
            if not ready and self.process.poll() is not None:
                return
            if ready:
                try:
                    self.text += os.read(self._master, 65536).decode(errors='replace')
                except OSError:  # nobody has the other end any more
                    self.process.wait(PATIENCE)
                    return

    def wait_for(self, text: str) -> bool:
        """Read until it has written a text; return whether it has."""
        end = time.monotonic() + PATIENCE
        while text not in self.text and self.process.poll() is None and time.monotonic() < end:
            self.read(0.02)
        return text in self.text

    def press(self) -> None:
        """Press Ctrl-C."""
        os.write(self._master, CTRL_C)

    def close(self) -> None:
        """End it whatever it does."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def _take_terminal() -> None:
    """Make the terminal on standard input the controlling one of this new session."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def interrupted(
    after: float | str,
    pauses: tuple[float, ...] = (),
    environment: dict[str, str] | None = None,
    program: str = NODE,
) -> End:
    """Start the node, press Ctrl-C and return how it ended.

    Args:
        after: wall seconds from the beginning of main to Ctrl-C, or a text that it waits for.
        pauses: wall seconds before each further Ctrl-C, as long as the process is there.
        environment: variables to add.
        program: for `python -c`; says BEGUN.
    """
    terminal = Terminal(isolated_environment() | (environment or {}), program)
    try:
        terminal.wait_for(BEGUN)
        begin = time.monotonic()
        if isinstance(after, str):
            terminal.wait_for(after)
        else:
            terminal.read(after)
        pressed, presses = time.monotonic(), 1
        terminal.press()
        for pause in pauses:
            terminal.read(pause)
            if terminal.process.poll() is None:
                terminal.press()
                presses += 1
        terminal.read(PATIENCE)
        said = [line.strip() for line in terminal.text.replace(ECHO, '').splitlines()]
        lines = tuple(line for line in said if line and not LOG.match(line))
        status = terminal.process.poll()
        ended = time.monotonic() - pressed
        return End(pressed - begin, presses, ended, status, lines)
    finally:
        terminal.close()


def table(ends: list[End]) -> str:
    """Return the outcomes, and how often each was seen."""
    rows = ['| status | lines | times | end after [s], mean and longest |', '|---|---|---|---|']
    kinds: dict[tuple[int | None, tuple[str, ...]], list[End]] = {}
    for end in ends:
        kinds.setdefault((end.status, end.lines[-1:]), []).append(end)
    for (status, lines), some in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        seconds = [end.seconds for end in some]
        rows.append(
            f'| {status} | {len(some[0].lines)}: {" ".join(lines)[:90]} | {len(some)} '
            f'| {sum(seconds) / len(seconds):.2f}, {max(seconds):.2f} |'
        )
    rows.append(f'\n{sum(end.clean for end in ends)} of {len(ends)} ends are clean')
    return '\n'.join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 where an end was not clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--count', type=int, default=50, help='how often')
    parser.add_argument('--longest', type=float, default=12.0, help='latest time of Ctrl-C [s]')
    parser.add_argument('--cold', action='store_true', help='compile every time')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--json', type=Path, help='file for the figures')
    options = parser.parse_args(arguments)
    chance, ends = random.Random(options.seed), []
    for k in range(options.count):
        after, pauses = chance.uniform(0.0, options.longest), ((), (0.2,), (1.5, 0.5))[k % 3]
        with tempfile.TemporaryDirectory() as folder:
            cold = {'NUMBA_CACHE_DIR': folder} if options.cold else {}
            ends.append(interrupted(after, pauses, cold | {'ROS_LOG_DIR': folder}))
        print(f'{k}: {ends[-1]}', file=sys.stderr, flush=True)
    print(table(ends))
    if options.json:
        options.json.write_text(json.dumps([asdict(end) for end in ends], indent=1) + '\n')
    return 0 if all(end.clean for end in ends) else 1


if __name__ == '__main__':
    sys.exit(main())
