"""Pacing simulated time against the wall clock, without drift."""

from __future__ import annotations

import time
from collections.abc import Callable

LARGEST_LAG = 0.1
"""Wall seconds behind schedule at which the schedule is given up and starts anew."""
WINDOW = 1.0
"""Wall seconds over which the real-time factor is measured."""


class Pacer:
    """Holds simulated time to a schedule: wall = anchor + (t − t_anchor) / factor.

    The schedule is absolute, so errors of single sleeps do not add up. When the simulation cannot
    keep up, time slows down: the schedule starts anew and no step is skipped.

    Attributes:
        factor: simulated over wall time that is asked for, 0: as fast as possible.
        overruns: how often the schedule was given up.
        measured: real-time factor over the last second or so; 0 in the first one.
    """

    def __init__(self, factor: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.factor = factor
        self.overruns = 0
        self.restart(0.0)

    def restart(self, simulated: float, factor: float | None = None) -> None:
        """Start a new schedule at simulated time [s], with a new factor if given."""
        if factor is not None:
            self.factor = factor
        self._wall = self._window_wall = self._clock()
        self._simulated = self._window_simulated = simulated
        self.measured = 0.0

    def wait(self, simulated: float) -> float:
        """Return how long to sleep [s] before simulated time may be reached; 0 if it is due."""
        now = self._clock()
        if now - self._window_wall >= WINDOW:
            elapsed = simulated - self._window_simulated
            self.measured = elapsed / (now - self._window_wall)
            self._window_wall, self._window_simulated = now, simulated
        if self.factor == 0.0:
            return 0.0
        ahead = self._wall + (simulated - self._simulated) / self.factor - now
        if ahead < -LARGEST_LAG:
            self.overruns += 1
            self._wall, self._simulated = now, simulated
        return max(ahead, 0.0)
