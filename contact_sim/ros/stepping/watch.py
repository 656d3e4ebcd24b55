"""Watch over the loop: another thread says what takes long; imports no ROS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LONG = 1.0
"""Wall seconds after which something is said to take long."""


class Watch:
    """Knows since when the loop has been busy with one step, or with one change between two.

    Args:
        speak: called again and again, from a thread of its own, while that takes long.

    Attributes:
        long: how often something has taken long.
        last: wall time of what was done last [s].
    """

    def __init__(self, speak: Callable[[], None]) -> None:
        self._speak = speak
        self._under_way: tuple[str, float, float] | None = None
        self._ended = threading.Event()
        self.long = 0
        self.last = 0.0

    def begin(self, what: str, simulated: float) -> None:
        """Note that the loop is busy from now on, at simulated time [s]."""
        self._under_way = what, simulated, time.perf_counter()

    def end(self) -> None:
        """Note that it is not any more."""
        self.last = self.seconds
        self.long += self.last > LONG
        self._under_way = None

    @property
    def seconds(self) -> float:
        """Wall seconds for which the loop has been busy with one thing; 0 where it is not."""
        now = self._under_way
        return time.perf_counter() - now[2] if now else 0.0

    @property
    def complaint(self) -> str:
        """What takes long, in words; empty where nothing does."""
        now = self._under_way
        taken = time.perf_counter() - now[2] if now else 0.0
        if now is None or taken <= LONG:
            return ''
        return f'{now[0]} t = {now[1]:.9g} s has taken {taken:.1f} s so far'

    def start(self) -> None:
        """Speak from now on where something takes long."""
        self._ended.clear()
        threading.Thread(target=self._run, name='watch', daemon=True).start()

    def stop(self) -> None:
        """Speak no more."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(LONG / 4.0):
            if self.seconds > LONG:
                self._speak()
