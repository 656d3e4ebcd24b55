"""Random numbers that depend on a seed, a name and a step number alone.

The numbers of a step are drawn from a counter-based generator, Philox 4x64, whose key is (seed,
name) and whose counter holds the step: no stream has to be advanced, so a step that is repeated,
skipped or looked at twice has the numbers that it has.

A random walk is a sum over all steps before, and is given the same property by Lévy's construction
of Brownian motion. W(0) = 0, ξ(k) is standard normal and belongs to the whole number k alone:

    W(2^(j+1)) = W(2^j) + √(2^j) ξ(2^(j+1)),   W(1) = ξ(1)
    W((a+b)/2) = (W(a) + W(b))/2 + √((b − a)/4) ξ((a+b)/2)    for the neighbours a, b of a level

The increments of W are independent standard normal numbers, and any W(k) takes at most 2 log₂ k of
the ξ [Lévy 1948; Glasserman, Monte Carlo Methods in Financial Engineering, 3.1].
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WORD = 2**64
WHITE, WALK, CONSTANT = 0, 1, 2
"""What the numbers of a step are for; the third word of the counter."""


@dataclass(frozen=True)
class Stream:
    """Random numbers of one quantity of one sensor."""

    seed: int
    """At least 0."""
    name: str
    """Streams with other names are independent."""

    @cached_property
    def _key(self) -> NDArray[np.uint64]:
        digest = hashlib.blake2b(self.name.encode(), digest_size=8).digest()
        return np.array([self.seed % WORD, int.from_bytes(digest, 'little')], dtype=np.uint64)

    def normal(self, step: int, shape: tuple[int, ...], purpose: int = WHITE) -> Array:
        """Return the standard normal numbers of a step."""
        return self._generator(step, purpose).standard_normal(shape)

    def constant(self, shape: tuple[int, ...]) -> Array:
        """Return standard normal numbers that belong to no step, the same at every time."""
        return self.normal(0, shape, CONSTANT)

    def uniform(self, step: int, shape: tuple[int, ...]) -> Array:
        """Return the numbers of a step that are uniform in [0, 1)."""
        return self._generator(step, WHITE).random(shape)

    def _generator(self, step: int, purpose: int) -> np.random.Generator:
        # the first word counts what is drawn in the step
        counter = np.array([0, step % WORD, purpose, 0], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self._key, counter=counter))


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """W of the module's docstring, `n` independent ones side by side; W(−k) is another walk."""

    stream: Stream
    n: int
    _path: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    def at(self, step: int) -> Array:
        """Return W(step), variance |step|, shape (n,).

        The way to it is kept, since the next step shares most of it; no value depends on that.
        """
        side, k = (-1 if step < 0 else 1), abs(step)
        path: dict[int, Array] = {0: np.zeros(self.n)}
        a = b = 0
        while b < k:  # the first power of two that is not below k
            a, b = b, max(1, 2 * b)
            path[side * b] = self._known(side * b, path[side * a], None, math.sqrt(b - a))
        while k not in (a, b):
            middle = (a + b) // 2
            ends = path[side * a], path[side * b]
            path[side * middle] = self._known(side * middle, *ends, 0.5 * math.sqrt(b - a))
            a, b = (middle, b) if middle <= k else (a, middle)
        self._path.clear()
        self._path.update(path)
        return path[step]

    def _known(self, k: int, left: Array, right: Array | None, deviation: float) -> Array:
        """Return W(k), normal about its neighbours, or about the left one alone."""
        if k in self._path:
            return self._path[k]
        mean = left if right is None else 0.5 * (left + right)
        return mean + deviation * self.stream.normal(k, (self.n,), WALK)
