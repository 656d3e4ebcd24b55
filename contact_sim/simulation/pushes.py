"""Pushes by the step in which they end; those on one frame add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class PushSchedule:
    """Wrenches under way, by the number of the step before which each ends."""

    def __init__(self) -> None:
        self._pushes: list[tuple[int, str, Array]] = []

    def add(self, link: str, wrench: Array, end: int) -> None:
        """Let `wrench` [N, N m], world axes, (6,), act on `link` in all steps before `end`."""
        self._pushes.append((end, link, wrench))

    def acting(self, step: int) -> dict[str, Array]:
        """Return the sum of the wrenches on every link pushed in `step`, each (6,)."""
        self._pushes = [push for push in self._pushes if push[0] > step]
        total: dict[str, Array] = {}
        for _, link, wrench in self._pushes:
            total[link] = total.get(link, np.zeros(6)) + wrench
        return total

    def constant_until(self, step: int, link: str) -> int:
        """Return the step at which the sum on `link`, pushed in `step`, changes next."""
        return min(end for end, pushed, _ in self._pushes if pushed == link and end > step)

    def clear(self) -> None:
        """End all pushes."""
        self._pushes.clear()
