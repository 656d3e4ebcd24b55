"""Derivatives of what a robot's matrices are functions of, by central differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
STEP = 1e-5
"""Of q: errors of rounding and of the difference are about 1e-10 of the function."""


def rate(function: Callable[[Array], ArrayLike], q: Array, v: Array) -> Array:
    """Return d/dt of a function of q along q̇ = v; for joints with one coordinate each."""
    ahead, behind = (np.asarray(function(q + step * v)) for step in (STEP, -STEP))
    return np.asarray((ahead - behind) / (2.0 * STEP))


def gradient(function: Callable[[Array], ArrayLike], q: Array) -> Array:
    """Return the derivatives of a function by each coordinate, in front of its own axes."""
    return np.array([rate(function, q, axis) for axis in np.eye(len(q))])
