"""Ctrl-C and its like: one ends a node cleanly, another one at once; imports no ROS.

A handler in Python runs where the main thread comes back to Python, which a compiled step or the
compiler may put off for minutes. So a thread reads the numbers of the signals, as they arrive,
from a pipe that the interpreter's own handler writes to.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME = 1.0
"""Wall seconds within which another signal is the same one: ros2 launch sends SIGINT besides the
terminal, which sends it to all."""
PATIENCE = 3.0
"""Wall seconds of an end that needs no explanation."""


class Interruption:
    """Takes SIGINT and SIGTERM inside a `with` block, which belongs into the main thread.

    Args:
        name: of the program, for what it says.
        on_request: called once, in another thread, when the first signal has arrived.
    """

    def __init__(self, name: str, on_request: Callable[[], None] | None = None) -> None:
        self._name, self._on_request = name, on_request
        self._requested, self._over = threading.Event(), threading.Event()

    @property
    def requested(self) -> bool:
        """Whether somebody wants the program to end."""
        return self._requested.is_set()

    def __enter__(self) -> Interruption:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before = {number: signal.signal(number, _leave_to_thread) for number in SIGNALS}
        self._fd_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name='interruption', daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
                threading.Thread(target=self._explain, daemon=True).start()
                if self._on_request is not None:
                    self._on_request()
            elif now - first > SAME:
                self._say('ended at once')
                os._exit(128 + numbers[0])

    def _explain(self) -> None:
        if not self._over.wait(PATIENCE):
            self._say('ends after what is under way; interrupt it again to end it at once')

    def _say(self, what: str) -> None:
        os.write(2, f'{self._name}: {what}\n'.encode())


def _leave_to_thread(number: int, frame: FrameType | None) -> None:
    """Raise nothing: the thread of Interruption knows already."""


def leave(status: int) -> None:
    """End the process at once, with what was written.

    The interpreter's own end takes down the compiler and DDS under threads that are still in them.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
