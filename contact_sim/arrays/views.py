"""Views of fields inside kernels, and the arrays that are handed from kernel to kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.solvers.borrowed import borrowed
from contact_sim.solvers.jit import kernel


class Arrays(NamedTuple):
    """The arrays of one robot, without reference counts while a kernel works on them."""

    numbers: NDArray[np.float64]
    indices: NDArray[np.int64]
    layout: NDArray[np.int64]


@kernel
def arrays_of(numbers, indices, layout, world):
    """Return the arrays of one world: row `world` of `numbers` and of `indices`."""
    return Arrays(borrowed(numbers)[world], borrowed(indices)[world], borrowed(layout))


@kernel
def vector(data, field):
    """Return a field of `numbers` as a vector."""
    layout = data.layout
    return data.numbers[layout[field, 0] : layout[field, 1]]


@kernel
def matrix(data, field):
    """Return a field of `numbers` as a matrix."""
    layout = data.layout
    flat = data.numbers[layout[field, 0] : layout[field, 1]]
    return flat.reshape(layout[field, 2], layout[field, 3])


@kernel
def square(data, field, n):
    """Return the front of a flat field of `numbers` as a matrix (n, n)."""
    start = data.layout[field, 0]
    return data.numbers[start : start + n * n].reshape(n, n)


@kernel
def frames(data, field):
    """Return a field of `numbers` as 3x3 matrices, shape (n, 3, 3)."""
    layout = data.layout
    return data.numbers[layout[field, 0] : layout[field, 1]].reshape(layout[field, 2], 3, 3)


@kernel
def integers(data, field):
    """Return a field of `indices` as a vector."""
    layout = data.layout
    return data.indices[layout[field, 0] : layout[field, 1]]
