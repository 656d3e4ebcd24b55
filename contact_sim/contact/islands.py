"""Islands: parts of the contact problem that have no degree of freedom in common.

The mass matrix of several trees is block diagonal, and so is G, unless a row acts on two of them:
each island is a contact problem of its own, and the cost grows with their number, not with its
third power.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def islands_of(parent: Index, ties: Iterable[Sequence[int]] = ()) -> Index:
    """Return the island of every dof, numbered from 0 in the order of their first dofs, (nv,).

    Args:
        parent: dof before each dof, −1 at the root, shape (nv,).
        ties: dofs on which one row acts together.
    """
    label = np.arange(len(parent))
    for k in range(len(parent)):
        if parent[k] >= 0:
            label[k] = label[parent[k]]
    for dofs in ties:
        least = label[list(dofs)].min()
        label[np.isin(label, label[list(dofs)])] = least
    return np.unique(label, return_inverse=True)[1].astype(np.int64)
