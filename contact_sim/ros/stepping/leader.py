"""Time of another simulation that the loop keeps to; imports no ROS."""

from __future__ import annotations

JUMP = 0.5
"""Simulated seconds by which a clock goes on at once only where somebody has set it."""
ROUNDING = 1e-6
"""Share of a step by which stamps may be rounded."""


class Leader:
    """The /clock of another simulation: a step is taken once that has passed the end of it.

    Own time is set where the first message is heard, where the other time is set, and after own
    time stood still. A simulation that cannot keep up falls behind and skips nothing.

    Attributes:
        time: of the other simulation [s]; None before it is heard.
    """

    def __init__(self) -> None:
        self.time: float | None = None
        self._jumped = False

    def hear(self, time: float) -> None:
        """Take a message of the other clock [s]."""
        if self.time is None or not 0.0 <= time - self.time <= JUMP:
            self._jumped = True
        self.time = time

    def rejoin(self, own_time: float) -> None:
        """Have own time [s] set if it is far from the other one: it stood still, or was set."""
        if self.time is not None and abs(self.time - own_time) > JUMP:
            self._jumped = True

    def new_time(self, time_step: float) -> float | None:
        """Return the time to set own time to [s], a multiple of the step; None: it goes on."""
        if not self._jumped or self.time is None:
            return None
        self._jumped = False
        return max(round(self.time / time_step), 1) * time_step

    def allows(self, own_time: float, time_step: float) -> bool:
        """Return whether the step from `own_time` [s] may be taken."""
        return self.time is not None and own_time + (1.0 - ROUNDING) * time_step <= self.time
