"""The hash of a state: equal hashes mean equal bits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays.fields import Sizes

HASHED = ('clock', 'now', 'impulse', 'effort', 'tau', 'friction', 'memory', 'delay_line',
          'lagged_effort')  # fmt: skip
"""Fields from which the next step starts, and those that the last one was given."""


class StateHash:
    """Hashes the state in a buffer of step data to 64 bits."""

    def __init__(self, sizes: Sizes) -> None:
        self._slices = [slice(*sizes.layout[name][:2]) for name in HASHED]

    def __call__(self, buffer: NDArray[np.float64]) -> int:
        """Return the hash of the state in `buffer`."""
        digest = hashlib.blake2b(digest_size=8)
        for part in self._slices:
            digest.update(buffer[part].data)
        return int.from_bytes(digest.digest(), 'little')


class RunHash:
    """One hash of a whole run: of the hashes of its states, in order."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, hashes: Iterable[int]) -> None:
        """Take more states."""
        self._digest.update(np.array(list(hashes), dtype='<u8').tobytes())

    @property
    def hex(self) -> str:
        """The hash so far."""
        return self._digest.hexdigest()
