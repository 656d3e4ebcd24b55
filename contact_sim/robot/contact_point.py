"""Contact points of a robot: spheres fixed to its bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import real_array, real_number

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A sphere fixed to the body that a joint moves; the ground touches its surface.

    Raises:
        InvalidInput: an empty name, an offset that is not three finite numbers, or a radius that
            is negative or not finite.
    """

    name: str
    """Name, used in reports; unique in a robot."""
    frame: str
    """Name of the Pinocchio frame that the sphere belongs to; those that share one are a foot."""
    joint: str
    """Name of the Pinocchio joint whose body carries the sphere."""
    offset: Array
    """Centre of the sphere in the joint's frame [m], shape (3,), read-only."""
    radius: float
    """Radius of the sphere [m], at least 0; 0 is a point."""

    def __post_init__(self) -> None:
        for field in ('name', 'frame', 'joint'):
            text = getattr(self, field)
            if not isinstance(text, str) or not text:
                raise InvalidInput(
                    f'ContactPoint.{field} = {shown(text)}: expected a non-empty string'
                )
        place = f'ContactPoint {shown(self.name)}'
        object.__setattr__(self, 'offset', _offset(self.offset, place))
        object.__setattr__(self, 'radius', _radius(self.radius, place))


def _offset(value: Any, place: str) -> Array:
    try:
        offset = np.array(real_array('', value))
    except InvalidInput:
        offset = np.empty(0)
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise InvalidInput(f'{place}: offset = {shown(value)} m: expected three finite numbers')
    offset.setflags(write=False)
    return offset


def _radius(value: Any, place: str) -> float:
    try:
        radius = real_number('', value)
    except InvalidInput:
        radius = np.nan
    if not 0.0 <= radius < np.inf:
        raise InvalidInput(
            f'{place}: radius = {shown(value)} m: expected a finite value of at least 0'
        )
    return radius
