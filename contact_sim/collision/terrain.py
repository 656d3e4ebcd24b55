"""The ground: signed distance and normal, and how to stand a robot on it.

Half-spaces, whose normal is the same at any depth. That of a box would flip where a point inside
crosses its medial axis (physics.md T11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput, UnknownName

Array = NDArray[np.float64]


class Terrain(Protocol):
    """What the simulation asks of a ground."""

    @property
    def plane(self) -> Array:
        """Unit normal out of the ground and offset d with normal·p = d on the ground, (4,)."""
        ...


@dataclass(frozen=True)
class Plane:
    """The plane normal·p = offset; the robot lives on the side of the normal.

    Raises:
        InvalidInput: a normal that is zero or not finite, an offset that is not finite.
    """

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Direction out of the ground, any length."""
    offset: float = 0.0
    """Distance of the plane from the world origin along the unit normal [m]."""

    def __post_init__(self) -> None:
        normal = np.asarray(self.normal, dtype=float)
        if normal.shape != (3,) or not np.isfinite(normal).all() or not normal.any():
            raise InvalidInput(f'Plane.normal = {self.normal!r}: expected 3 numbers, not all zero')
        if not math.isfinite(self.offset):
            raise InvalidInput(f'Plane.offset = {self.offset!r} m: expected a finite number')

    @property
    def plane(self) -> Array:
        """Unit normal and offset, shape (4,)."""
        normal = np.asarray(self.normal, dtype=float)
        return np.array([*(normal / np.linalg.norm(normal)), self.offset])


@dataclass(frozen=True)
class InclinedPlane:
    """A plane through the origin that falls towards +x rotated by `heading` about z.

    Raises:
        InvalidInput: an angle outside (−π/2, π/2) or a heading that is not finite.
    """

    angle: float = math.radians(10.0)
    """Slope [rad]; downhill is the direction of `heading`."""
    heading: float = 0.0
    """Direction of descent about the world z axis [rad], 0 = +x."""

    def __post_init__(self) -> None:
        if not abs(self.angle) < math.pi / 2:
            raise InvalidInput(
                f'InclinedPlane.angle = {self.angle!r} rad: expected a value in (-pi/2, pi/2)'
            )
        if not math.isfinite(self.heading):
            raise InvalidInput(f'InclinedPlane.heading = {self.heading!r} rad: expected a number')

    @property
    def plane(self) -> Array:
        """Unit normal and offset, shape (4,)."""
        s, c = math.sin(self.angle), math.cos(self.angle)
        return np.array([s * math.cos(self.heading), s * math.sin(self.heading), c, 0.0])


TERRAINS: dict[str, Callable[[], Terrain]] = {'plane': Plane, 'inclined_plane': InclinedPlane}


def as_terrain(terrain: str | Terrain) -> Terrain:
    """Return a Terrain from a name or a Terrain.

    Raises:
        UnknownName: a name that is not in TERRAINS.
        InvalidInput: an object that is not a Terrain.
    """
    if isinstance(terrain, str):
        if terrain not in TERRAINS:
            raise UnknownName('terrain', terrain, TERRAINS)
        return TERRAINS[terrain]()
    if not hasattr(terrain, 'plane'):
        raise InvalidInput(f'terrain = {terrain!r}: expected a name or a Terrain')
    return terrain
