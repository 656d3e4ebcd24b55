"""Series: numbers of every step of a long run in bounded memory, for plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BINS = 2048
"""Bins of a series: more than a plot has columns of pixels."""


def last(_: Array, later: Array) -> Array:
    """Return the later one of two rows."""
    return later


class Series:
    """Rows of numbers, one per step; steps share a bin once there are more of them than bins.

    Args:
        units: unit of each number by its name.
        joined: makes one row of two that share a bin: the earlier and the later one.
        bins: an even number.

    Attributes:
        units: as given.
        stride: number of steps that share a bin.
    """

    def __init__(
        self,
        units: Mapping[str, str],
        joined: Callable[[Array, Array], Array],
        bins: int = BINS,
    ) -> None:
        self.units, self.stride = dict(units), 1
        self._joined = joined
        self._rows = np.zeros((bins, len(self.units)))
        self._count = 0

    def add(self, row: Array) -> None:
        """Take the numbers of the next step, shape (n,)."""
        bins = len(self._rows)
        if self._count == bins * self.stride:
            self._rows[: bins // 2] = self._joined(self._rows[::2], self._rows[1::2])
            self.stride *= 2
        k, inside = divmod(self._count, self.stride)
        self._rows[k] = self._joined(self._rows[k], row) if inside else row
        self._count += 1

    @property
    def steps(self) -> Array:
        """Number of the last step in each bin, shape (bins,)."""
        ends = np.arange(self.stride, self._count + self.stride, self.stride, dtype=float)
        return np.asarray(np.minimum(ends, self._count))

    def column(self, name: str) -> Array:
        """Return one of the numbers over the bins, shape (bins,)."""
        column = self._rows[: len(self.steps), list(self.units).index(name)]
        return np.array(column)
