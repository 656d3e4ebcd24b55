"""The kinds of ground, and a ground as the kernels see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PLANES, ROUND, FIELD, MESH = range(4)
KINDS = PLANES, ROUND, FIELD, MESH
FACETED = FIELD, MESH
"""Kinds with more features than a sphere has slots."""
MOST_FEATURES = 4
"""Contacts that a sphere may have at once."""


class Ground(NamedTuple):
    """A ground as the kernels see it."""

    kind: int
    """One of KINDS."""
    data: NDArray[np.float64]
    """Shape (TERRAIN_DATA,)."""
    relief: NDArray[np.float64]
    """Shape (any,)."""
    search: int
    """Address of `search.find_facets`; 0 on a ground without facets."""
    bend: int
    """Address of `search.bend_of_facet`; 0 likewise."""
    features: int
    """Contacts that a sphere may have at once: slots of each candidate."""
