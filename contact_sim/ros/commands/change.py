"""What a checked message asks of joints at once, and the checks of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]
LARGEST = 1e6
"""Bound of every commanded number: with the bound of the gains it keeps every effort finite."""


@dataclass(frozen=True, eq=False)
class Change:
    """Commands of a checked message; a part that is None is not commanded."""

    joints: NDArray[np.int64]
    """Indices of the joints it names, shape (n,)."""
    position: Array | None
    """[rad] or [m], shape (n,)."""
    velocity: Array | None
    """[rad/s] or [m/s], shape (n,)."""
    effort: Array | None
    """[N m] or [N], shape (n,)."""

    def only(self, chosen: NDArray[np.bool_]) -> Change:
        """Return the part about the joints in the mask `chosen` (n_joints,)."""
        kept = chosen[self.joints]
        parts = (
            None if part is None else part[kept]
            for part in (self.position, self.velocity, self.effort)
        )
        return Change(self.joints[kept], *parts)


def checked_values(field: str, values: Sequence[float], names: Sequence[str]) -> Array | None:
    """Return the values of one field, shape (n,), None where the field is empty.

    Raises:
        InvalidInput: another number of values than of joints, or one that is out of bounds.
    """
    if len(values) == 0:
        return None
    if len(values) != len(names):
        raise InvalidInput(
            f'{len(values)} values of {field} for {len(names)} joints: expected 0 or {len(names)}'
        )
    array = np.array(values, dtype=float)
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST))  # NaN too
    if len(bad):
        raise InvalidInput(
            f'{field} of joint {names[bad[0]]!r} = {array[bad[0]]}: must be finite, at most '
            f'{LARGEST:g}'
        )
    return array
