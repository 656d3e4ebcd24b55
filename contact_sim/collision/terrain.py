"""The ground: what the robot stands on, as a kind and numbers for the kernels of `surface`.

Distance and normal are those of one smooth surface at any depth. That of a box would flip where a
point inside crosses its medial axis (theory T11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arrays.fields import TERRAIN_DATA
from contact_sim.collision.ground import Surface, Terrain
from contact_sim.collision.kinds import FACETED, KINDS, MOST_FEATURES, PLANES, ROUND
from contact_sim.collision.relief import Description, check_relief, relief_of
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.numbers import finite, flag, real_array, real_number

Array = NDArray[np.float64]
Vector = tuple[float, float, float]
UNIT_TOLERANCE = 1e-9
"""Largest distance of the length of a direction from 1."""

__all__ = [
    'TERRAINS', 'CylinderGround', 'InclinedPlane', 'Plane', 'Planes', 'SphereGround', 'Terrain',
    'as_terrain',
]  # fmt: skip


@dataclass(frozen=True)
class Planes(Surface):
    """Up to four planes normal·p = offset at once: a groove, a corner, a pit.

    The robot lives in the room on the side of all normals. Every plane is a feature: a sphere may
    touch all of them.

    Raises:
        InvalidInput: no plane or more than four, a normal that is zero or not finite, an offset
            that is not finite.
    """

    planes: Sequence[tuple[Sequence[float], float]] = (
        ((1.0, 0.0, 1.0), 0.0),
        ((-1.0, 0.0, 1.0), 0.0),
    )
    """Direction out of the ground (any length) and distance from the world origin along the unit
    normal [m] of each plane; default: a groove along y with a right angle at the origin."""

    def __post_init__(self) -> None:
        if not 1 <= _count(self.planes) <= MOST_FEATURES:
            raise InvalidInput(
                f'Planes.planes = {shown(self.planes)}: expected 1 to {MOST_FEATURES} pairs '
                '(normal, offset)'
            )
        for k, plane in enumerate(self.planes):
            name = f'Planes.planes[{k}]'
            if _count(plane) != 2:
                raise InvalidInput(f'{name} = {shown(plane)}: expected a pair (normal, offset)')
            _check_direction(f'{name} normal', plane[0])
            _check_finite(f'{name} offset', plane[1], ' m')

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return PLANES

    @property
    def data(self) -> Array:
        """Unit normal and offset of each plane, shape (TERRAIN_DATA,)."""
        return _filled(*(_plane(normal, offset) for normal, offset in self.planes))

    @property
    def features(self) -> int:
        """Number of planes."""
        return len(self.planes)


@dataclass(frozen=True)
class Plane(Surface):
    """The plane normal·p = offset; the robot is on the side of the normal.

    Raises:
        InvalidInput: a normal that is zero or not finite, an offset that is not finite.
    """

    normal: Vector = (0.0, 0.0, 1.0)
    """Direction out of the ground, any length."""
    offset: float = 0.0
    """Distance of the plane from the world origin along the unit normal [m]."""

    def __post_init__(self) -> None:
        _check_direction('Plane.normal', self.normal)
        _check_finite('Plane.offset', self.offset, ' m')

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return PLANES

    @property
    def data(self) -> Array:
        """Unit normal and offset, shape (TERRAIN_DATA,)."""
        return _filled(self.plane)

    @property
    def plane(self) -> Array:
        """Unit normal and offset, shape (4,)."""
        return _plane(self.normal, self.offset)


@dataclass(frozen=True)
class InclinedPlane(Surface):
    """A plane through the origin that falls towards +x rotated by `heading` about z.

    Raises:
        InvalidInput: an angle outside (−π/2, π/2) or a heading that is not finite.
    """

    angle: float = math.radians(10.0)
    """Slope [rad]; downhill is the direction of `heading`."""
    heading: float = 0.0
    """Direction of descent about the world z axis [rad], 0 = +x."""

    def __post_init__(self) -> None:
        if not abs(real_number('InclinedPlane.angle', self.angle)) < math.pi / 2:
            raise InvalidInput(
                f'InclinedPlane.angle = {shown(self.angle)} rad: expected a value in (-pi/2, pi/2)'
            )
        finite('InclinedPlane.heading', self.heading)

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return PLANES

    @property
    def data(self) -> Array:
        """Unit normal and offset, shape (TERRAIN_DATA,)."""
        return _filled(self.plane)

    @property
    def plane(self) -> Array:
        """Unit normal and offset, shape (4,)."""
        s, c = math.sin(self.angle), math.cos(self.angle)
        return np.array([s * math.cos(self.heading), s * math.sin(self.heading), c, 0.0])


@dataclass(frozen=True)
class SphereGround(Surface):
    """A sphere: the robot is on it, or with `hollow` in it, as in a bowl.

    Raises:
        InvalidInput: a centre that is not three finite numbers, a radius that is not > 0.
    """

    centre: Vector = (0.0, 0.0, -10.0)
    """In world [m]."""
    radius: float = 10.0
    """[m]."""
    hollow: bool = False
    """Whether the ground is outside of the sphere."""

    def __post_init__(self) -> None:
        _check_vector('SphereGround.centre', self.centre, ' m')
        _check_radius('SphereGround.radius', self.radius)
        flag('SphereGround.hollow', self.hollow)

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return ROUND

    @property
    def data(self) -> Array:
        """Centre, radius, side and no axis, shape (TERRAIN_DATA,)."""
        return _filled(self.centre, (self.radius, -1.0 if self.hollow else 1.0))


@dataclass(frozen=True)
class CylinderGround(Surface):
    """An endless cylinder: the robot is on it, or with `hollow` in it, as in a pipe.

    Raises:
        InvalidInput: a point that is not three finite numbers, an axis that is zero or not
            finite, a radius that is not > 0.
    """

    point: Vector = (0.0, 0.0, -10.0)
    """Of the axis, in world [m]."""
    axis: Vector = (1.0, 0.0, 0.0)
    """Direction of the axis, any length."""
    radius: float = 10.0
    """[m]."""
    hollow: bool = False
    """Whether the ground is outside of the cylinder."""

    def __post_init__(self) -> None:
        _check_vector('CylinderGround.point', self.point, ' m')
        _check_direction('CylinderGround.axis', self.axis)
        _check_radius('CylinderGround.radius', self.radius)
        flag('CylinderGround.hollow', self.hollow)

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return ROUND

    @property
    def data(self) -> Array:
        """Point of the axis, radius, side and unit axis, shape (TERRAIN_DATA,)."""
        return _filled(self.point, (self.radius, -1.0 if self.hollow else 1.0), _unit(self.axis))


TERRAINS: dict[str, Callable[[], Terrain]] = {'plane': Plane, 'inclined_plane': InclinedPlane}
"""Grounds that a name stands for."""


TerrainLike = str | Terrain | Description
"""What `as_terrain` takes."""


def as_terrain(terrain: TerrainLike) -> Terrain:
    """Return a Terrain from a name, a Terrain, or a description of `contact_sim.terrain`.

    Raises:
        UnknownName: a name that is not in TERRAINS.
        InvalidInput: an object that is not a Terrain.
    """
    if isinstance(terrain, str):
        if terrain not in TERRAINS:
            raise UnknownName('terrain', terrain, TERRAINS)
        return TERRAINS[terrain]()
    if isinstance(terrain, Description):
        return relief_of(terrain)
    parts = 'kind', 'data', 'relief', 'features', 'distances', 'contacts', 'region_numbers'
    if not all(hasattr(terrain, name) for name in parts):
        raise InvalidInput(
            f'terrain = {shown(terrain)}: expected a name or a Terrain, or a description of one'
        )
    if terrain.kind not in KINDS:
        raise InvalidInput(f'terrain.kind = {shown(terrain.kind)}: expected one of {KINDS}')
    if not 1 <= terrain.features <= MOST_FEATURES:
        raise InvalidInput(
            f'terrain.features = {shown(terrain.features)}: expected 1 to {MOST_FEATURES}'
        )
    data = real_array('terrain.data', terrain.data)
    if data.shape != (TERRAIN_DATA,) or not np.isfinite(data).all():
        raise InvalidInput(f'terrain.data = {shown(data)}: expected {TERRAIN_DATA} finite numbers')
    _check_unit_directions(terrain.kind, terrain.features, data)
    if terrain.kind in FACETED:
        check_relief(terrain.kind, data, terrain.relief)
    return terrain


def _check_unit_directions(kind: int, features: int, data: Array) -> None:
    """Refuse directions that are not of length 1: φ would be no distance."""
    directions = data[: 4 * features].reshape(-1, 4)[:, :3] if kind == PLANES else data[5:8][None]
    lengths = np.linalg.norm(directions, axis=1) if kind in (PLANES, ROUND) else np.ones(1)
    if kind == ROUND and not lengths[0]:
        return  # a sphere has no axis
    if not np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
        raise InvalidInput(f'terrain.data: directions of lengths {lengths.tolist()}, expected 1')


def _count(values: object) -> int:
    """Return the length of a sequence, −1 of anything else."""
    return len(values) if isinstance(values, Sequence | np.ndarray) else -1


def _unit(direction: ArrayLike) -> Array:
    direction = np.asarray(direction, dtype=float)
    return np.asarray(direction / np.linalg.norm(direction))


def _plane(normal: ArrayLike, offset: float) -> Array:
    return np.array([*_unit(normal), offset])


def _filled(*parts: ArrayLike) -> Array:
    """Return the parts one after the other, then zeros, shape (TERRAIN_DATA,)."""
    data = np.zeros(TERRAIN_DATA)
    numbers = np.concatenate([np.asarray(part, dtype=float) for part in parts])
    data[: len(numbers)] = numbers
    return data


def _numbers(value: object) -> Array:
    """Return a value as an array, one NaN where it is no numbers."""
    try:
        return real_array('', value)
    except InvalidInput:
        return np.array(np.nan)


def _check_vector(name: str, value: object, unit: str = '') -> None:
    vector = _numbers(value)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise InvalidInput(f'{name} = {shown(value)}{unit}: expected 3 finite numbers')


def _check_direction(name: str, value: object) -> None:
    vector = _numbers(value)
    if vector.shape != (3,) or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInput(f'{name} = {shown(value)}: expected 3 numbers, not all zero')


def _check_finite(name: str, value: object, unit: str) -> None:
    number = _numbers(value)
    if number.shape != () or not np.isfinite(number):
        raise InvalidInput(f'{name} = {shown(value)}{unit}: expected a finite number')


def _check_radius(name: str, value: object) -> None:
    number = _numbers(value)
    if number.shape != () or not 0.0 < number < np.inf:
        raise InvalidInput(f'{name} = {shown(value)} m: expected a finite number > 0')
