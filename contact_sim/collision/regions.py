"""Regions of a ground as numbers, and the coefficients of contact points in them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.keys import NO_FEATURE
from contact_sim.errors import InvalidInput, shown
from contact_sim.solvers.jit import kernel
from contact_sim.terrain import Region

Array = NDArray[np.float64]
REGION_NUMBERS = 6
"""Low and high x, low and high y [m], friction and restitution of a region."""
NONE = -1.0
"""Stands for a coefficient that a region does not have."""


def region_numbers(regions: Iterable[Region]) -> Array:
    """Return regions as the kernels read them, shape (n * REGION_NUMBERS,).

    Raises:
        InvalidInput: something else than a Region.
    """
    rows = []
    for region in regions:
        if not isinstance(region, Region):
            raise InvalidInput(f'regions: {shown(region)}: expected a Region')
        own = (NONE if value is None else value for value in (region.friction, region.restitution))
        rows.append((*region.x_range, *region.y_range, *own))
    return np.array(rows, dtype=float).ravel()


@kernel
def fill_coefficients(regions, position, on_ground, defaults, friction, restitution):
    """Fill friction and restitution of every contact.

    Where regions lie over each other the last one that has a coefficient gives it.

    Args:
        regions: `region_numbers`, shape (n * REGION_NUMBERS,).
        position: contact points in world [m], shape (nc, 3).
        on_ground: (feature of the ground that each slot holds, shape (nc,), number of the slots
            of the ground, the first ones).
        defaults: (friction, restitution) outside of all regions, shapes (nc,).
        friction: out, shape (nc,).
        restitution: out, shape (nc,).
    """
    for i in range(friction.shape[0]):
        mu, e = defaults[0][i], defaults[1][i]
        if i < on_ground[1] and on_ground[0][i] != NO_FEATURE:
            x, y = position[i, 0], position[i, 1]
            for k in range(0, regions.shape[0], REGION_NUMBERS):
                if regions[k] <= x < regions[k + 1] and regions[k + 2] <= y < regions[k + 3]:
                    mu = regions[k + 4] if regions[k + 4] >= 0.0 else mu
                    e = regions[k + 5] if regions[k + 5] >= 0.0 else e
        friction[i], restitution[i] = mu, e
