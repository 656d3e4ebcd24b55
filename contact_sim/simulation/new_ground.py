"""The arrays of a simulation for another ground."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays.fields import Sizes
from contact_sim.collision.terrain import Terrain
from contact_sim.contact.workspace import Workspace
from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]


def on_ground(work: Workspace, ground: Terrain) -> Workspace:
    """Return a workspace for another ground with the same values, but for the contacts.

    Friction and restitution of a contact point are those of its contacts.

    Raises:
        InvalidInput: these differ, and on the new ground the point has another number of them.
    """
    other = work.on(ground)
    for name in ('friction', 'restitution'):
        before = getattr(work, f'default_{name}')
        now = getattr(other, f'default_{name}')
        now[:] = on_other_features(name, before, work.sizes, other.sizes)
    return other


def on_other_features(name: str, numbers: Array, before: Sizes, now: Sizes) -> Array:
    """Return numbers per contact (nc,) for a ground with other features.

    Raises:
        InvalidInput: numbers that differ between the contacts of one contact point.
    """
    if before.nc == now.nc:
        return numbers
    on_ground, between = np.split(numbers, [before.n_ground])
    per_point = on_ground.reshape(before.n_candidates, -1)
    if (per_point != per_point[:, :1]).any():
        raise InvalidInput(
            f'{name} is given for each of {before.features} contacts of a contact point, on the '
            f'new ground there are {now.features}: give it per contact point first'
        )
    return np.concatenate([np.repeat(per_point[:, 0], now.features), between])
