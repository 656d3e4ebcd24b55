"""Planes, spheres, cylinders and faceted ground, with their parameters for kernels.

Distance and normal are those of one smooth surface at any depth. Those of a box would jump where a
point inside crosses its medial axis (theory T11).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array, Vector
from contact_sim._validation import (
    checked,
    finite,
    finite_array,
    flag,
    named_fields,
    real_array,
    real_number,
)
from contact_sim.arrays._fields import TERRAIN_DATA
from contact_sim.collision._contact_slots import NO_FEATURE
from contact_sim.collision._detection import facet_curvature, find_edges, find_facets
from contact_sim.collision._height_field_contacts import (
    BLOCK,
    field_height,
    field_signed_distance,
)
from contact_sim.collision._mesh_contacts import (
    BINS_X,
    BINS_Y,
    BORDER_PROBE,
    CORNER_NUMBERS,
    EDGE_NUMBERS,
    EDGES_FROM,
    SIDE,
    TRIANGLE_NUMBERS,
    Bins,
    Borders,
    MeshFacets,
    mesh_height,
    mesh_signed_distance,
)
from contact_sim.collision._surface import (
    FACETED,
    FIELD,
    KINDS,
    MAX_FEATURES,
    MESH,
    PLANES,
    ROUND,
    Ground,
    find_all,
    height,
    smooth_signed_distance,
)
from contact_sim.errors import InvalidInput, known_name, shown
from contact_sim.solvers._jit import kernel
from contact_sim.terrain import (
    GeneratedTerrain,
    HeightField,
    Region,
    TriangleMesh,
    concatenate,
    united,
)
from contact_sim.terrain._generator import GROUND_FILES, READY_MADE, ground_from_file, ready_made

__all__ = [
    'SHAPES', 'TERRAINS', 'CylinderGround', 'InclinedPlane', 'Plane', 'Planes', 'SphereGround',
    'Terrain', 'as_terrain', 'groove', 'terrains',
]  # fmt: skip


# Regions with their own friction or restitution.

REGION_NUMBERS = 6  # low and high x, low and high y [m], friction and restitution of a region
NONE = -1.0  # coefficient of a region that does not set it


def region_numbers(regions: Iterable[Region]) -> Array:
    """Return regions as numbers for the kernels, shape (n * REGION_NUMBERS,).

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
    """Fill friction and restitution of every contact; of overlapping regions the last one counts.

    Args:
        regions: `region_numbers`, shape (n * REGION_NUMBERS,).
        position: contact points in world [m], shape (nc, 3).
        on_ground: (feature of each slot, shape (nc,), number of slots of the ground, the first
            ones, and the first feature of a pair of a body with the ground).
        defaults: (friction, restitution) outside of all regions, shapes (nc,).
        friction: out, shape (nc,).
        restitution: out, shape (nc,).
    """
    for i in range(friction.shape[0]):
        mu, e = defaults[0][i], defaults[1][i]
        feature = on_ground[0][i]
        if feature != NO_FEATURE and (i < on_ground[1] or feature >= on_ground[2]):
            x, y = position[i, 0], position[i, 1]
            for k in range(0, regions.shape[0], REGION_NUMBERS):
                if regions[k] <= x < regions[k + 1] and regions[k + 2] <= y < regions[k + 3]:
                    mu = regions[k + 4] if regions[k + 4] >= 0.0 else mu
                    e = regions[k + 5] if regions[k + 5] >= 0.0 else e
        friction[i], restitution[i] = mu, e


# The interface of a ground, and the base of those here.

NO_RELIEF = np.zeros(0)


class Terrain(Protocol):
    """Interface of a ground: kind and numbers for kernels, distances and normals for users."""

    @property
    def kind(self) -> int:
        """Kind of surface, one of `KINDS`."""

    @property
    def data(self) -> Array:
        """Numbers of the surface in the order of its kind, shape (TERRAIN_DATA,)."""

    @property
    def relief(self) -> Array:
        """Further numbers of the kind, shape (any,); the same array every time."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """Regions with their own friction or restitution; the last one has priority."""

    @property
    def region_numbers(self) -> Array:
        """The regions as `region_numbers`; the same array every time."""

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once, 1 to MAX_FEATURES."""

    def signed_distance(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the ground [m], shape (n,)."""

    def normals(self, points: ArrayLike) -> Array:
        """Return unit normals out of the ground at points (n, 3), shape (n, 3)."""

    def contacts(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return signed distances (n, features) [m] and normals of what points (n, 3) touch."""

    def height(self, x: float, y: float) -> float:
        """Return where the vertical through x, y meets the ground from above [m], or NaN."""

    def heights(self, points: ArrayLike) -> Array:
        """Return the heights at points (n, 2) [m], shape (n,), NaN where there are none."""


class GroundSurface(ABC):
    """Base of grounds of one of the kinds of surface.

    Attributes:
        regions: parts with a friction or restitution of their own.
        region_numbers: these for the kernels.
    """

    regions: tuple[Region, ...] = ()
    region_numbers: Array = region_numbers(())

    @checked
    def with_regions(self, regions: Iterable[Region]) -> Self:
        """Return this ground with other regions, those later in the list above the others.

        Raises:
            InvalidInput: something else than a Region.
        """
        other, chosen = copy(self), tuple(regions)
        object.__setattr__(other, 'region_numbers', region_numbers(chosen))  # some are frozen
        object.__setattr__(other, 'regions', chosen)
        return other

    @property
    @abstractmethod
    def kind(self) -> int:
        """Kind of surface, one of `KINDS`."""

    @property
    @abstractmethod
    def data(self) -> Array:
        """Numbers of the surface in the order of its kind, shape (TERRAIN_DATA,)."""

    @property
    def relief(self) -> Array:
        """Further numbers of the kind, shape (any,): none."""
        return NO_RELIEF

    @property
    def ground(self) -> Ground:
        """This ground as the kernels see it."""
        search, bend, edges = addresses_of(self.kind)
        return Ground(self.kind, self.data, self.relief, search, bend, self.features, edges)

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return 1

    def signed_distance(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the surface [m], shape (n,).

        Outside of the ground the distance of the nearest point of its surface, inside minus that
        (theory 4.2); continuous, with |φ(p) − φ(q)| ≤ |p − q|. The surface of several planes
        bounds the room in front of all of them.

        A height field is solid below and nothing beside: beyond its border the distance is that
        from the border, and it changes its sign from below the border to beside it. A mesh that is
        not closed is so likewise, seen along the normals at its border. Triangles of size L count
        as larger by 1e-9 L, which is the error of the distance at an edge.

        Raises:
            InvalidInput: points of another shape, or not finite.
        """
        points = _points(points)
        distances = np.zeros(len(points))
        SIGNED_DISTANCE[self.kind](self.ground, points, distances)
        return distances

    def normals(self, points: ArrayLike) -> Array:
        """Return unit normals out of the nearest feature at points (n, 3), shape (n, 3).

        Raises:
            InvalidInput: points of another shape, or not finite.
        """
        distance, normal = self.contacts(points)
        return np.asarray(normal[np.arange(len(normal)), distance.argmin(axis=1)])

    def height(self, x: float, y: float) -> float:
        """Return where the vertical through x, y meets the ground from above [m].

        Of several features the highest counts; NaN where the vertical meets none, or only walls.

        Raises:
            InvalidInput: coordinates that are not finite.
        """
        x, y = finite('x', x), finite('y', y)
        return float(self.heights(((x, y),))[0])

    def heights(self, points: ArrayLike) -> Array:
        """Return where verticals through points (n, 2) meet the ground from above [m], (n,).

        As `height`.

        Raises:
            InvalidInput: points of another shape, or not finite.
        """
        points = _points(points, 2)
        found = np.zeros(len(points))
        HEIGHTS[self.kind](self.ground, points, found)
        return found

    def contacts(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return distances and normals of what a sphere at each of the points (n, 3) may touch.

        Returns:
            Signed distances [m], shape (n, features), and unit normals out of the ground, shape
            (n, features, 3). Facets that a point is not nearest to have the distance UNUSED_GAP.

        Raises:
            InvalidInput: points of another shape, or not finite.
        """
        points = _points(points)
        slots, count = self.features, len(points) * self.features
        found = np.zeros(count), np.zeros((count, 3, 3)), np.zeros(count)
        find_all(self.ground, slots, points, found)
        return found[0].reshape(-1, slots), found[1][:, 2].reshape(-1, slots, 3)


def _points(points: ArrayLike, size: int = 3) -> Array:
    """Return points as an array, or raise InvalidInput."""
    points = np.array(finite_array('points', points))
    if points.ndim != 2 or points.shape[1] != size:
        raise InvalidInput(f'points: shape {points.shape}, expected (n, {size})')
    return points


# One loop for each kind, so that a plane compiles no search over facets.


@kernel
def fill_smooth_distances(ground, points, distances):
    """Fill the signed distances [m], shape (n,), of points (n, 3) from planes or round ground."""
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        distances[i] = smooth_signed_distance(ground, x, y, z)


@kernel
def fill_field_distances(ground, points, distances):
    """Fill the signed distances of points from a height field, likewise."""
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        distances[i] = field_signed_distance(ground, x, y, z)


@kernel
def fill_mesh_distances(ground, points, distances):
    """Fill the signed distances of points from a mesh, likewise."""
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        distances[i] = mesh_signed_distance(ground, x, y, z)


@kernel
def fill_smooth_heights(ground, points, heights):
    """Fill where verticals at points (n, 2) meet planes or round ground [m], shape (n,)."""
    for i in range(points.shape[0]):
        heights[i] = height(ground, ground.features, points[i, 0], points[i, 1])


@kernel
def fill_field_heights(ground, points, heights):
    """Fill where verticals meet a height field, likewise."""
    for i in range(points.shape[0]):
        heights[i] = field_height(ground, points[i, 0], points[i, 1])


@kernel
def fill_mesh_heights(ground, points, heights):
    """Fill where verticals meet a mesh, likewise."""
    for i in range(points.shape[0]):
        heights[i] = mesh_height(ground, points[i, 0], points[i, 1])


HEIGHTS = {
    PLANES: fill_smooth_heights,
    ROUND: fill_smooth_heights,
    FIELD: fill_field_heights,
    MESH: fill_mesh_heights,
}
SIGNED_DISTANCE = {
    PLANES: fill_smooth_distances,
    ROUND: fill_smooth_distances,
    FIELD: fill_field_distances,
    MESH: fill_mesh_distances,
}


def addresses_of(kind: int) -> tuple[int, int, int]:
    """Return the addresses of `find_facets`, `facet_curvature` and `find_edges`.

    They are 0 without facets.
    """
    if kind not in FACETED:
        return 0, 0, 0
    return find_facets.address, facet_curvature.address, find_edges.address


# Planes, spheres and cylinders.


@named_fields
@dataclass(frozen=True)
class Planes(GroundSurface):
    """Up to four planes normal·p = offset at once: a groove, a corner, a pit.

    The robot lives in the room on the side of all normals. Every plane is a feature: a sphere may
    touch all of them.

    Raises:
        InvalidInput: no plane or more than four, a normal that is zero or not finite, an offset
            that is not finite.
    """

    kind = PLANES

    planes: Sequence[tuple[Sequence[float], float]] = (
        ((1.0, 0.0, 1.0), 0.0),
        ((-1.0, 0.0, 1.0), 0.0),
    )
    """Direction out of the ground (any length) and distance from the world origin along the unit
    normal [m] of each plane; default: a groove along y with a right angle at the origin."""

    def __post_init__(self) -> None:
        if not 1 <= _count(self.planes) <= MAX_FEATURES:
            raise InvalidInput(
                f'Planes.planes = {shown(self.planes)}: expected 1 to {MAX_FEATURES} pairs '
                '(normal, offset)'
            )
        for k, plane in enumerate(self.planes):
            name = f'Planes.planes[{k}]'
            if _count(plane) != 2:
                raise InvalidInput(f'{name} = {shown(plane)}: expected a pair (normal, offset)')
            _check_direction(f'{name} normal', plane[0])
            _check_finite(f'{name} offset', plane[1], ' m')

    @property
    def data(self) -> Array:
        """Unit normal and offset of each plane, shape (TERRAIN_DATA,)."""
        return _filled(*np.concatenate([_plane(*plane) for plane in self.planes]))

    @property
    def features(self) -> int:
        """Number of planes."""
        return len(self.planes)


@named_fields
@dataclass(frozen=True)
class Plane(GroundSurface):
    """The plane normal·p = offset; the robot is on the side of the normal.

    Raises:
        InvalidInput: a normal that is zero or not finite, an offset that is not finite.
    """

    kind = PLANES

    normal: Vector = (0.0, 0.0, 1.0)
    """Direction out of the ground, any length."""
    offset: float = 0.0
    """Distance of the plane from the world origin along the unit normal [m]."""

    def __post_init__(self) -> None:
        _check_direction('Plane.normal', self.normal)
        _check_finite('Plane.offset', self.offset, ' m')

    @property
    def data(self) -> Array:
        """Unit normal and offset, shape (TERRAIN_DATA,)."""
        return _filled(*self.plane)

    @property
    def plane(self) -> Array:
        """Unit normal and offset, shape (4,)."""
        return _plane(self.normal, self.offset)


@named_fields
@dataclass(frozen=True)
class InclinedPlane(GroundSurface):
    """A plane through the origin that falls towards +x rotated by `heading` about z.

    Raises:
        InvalidInput: an angle outside (−π/2, π/2) or a heading that is not finite.
    """

    kind = PLANES

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
    def data(self) -> Array:
        """Unit normal and offset, shape (TERRAIN_DATA,)."""
        return _filled(*self.plane)

    @property
    def plane(self) -> Array:
        """Unit normal and offset, shape (4,)."""
        s, c = math.sin(self.angle), math.cos(self.angle)
        return np.array([s * math.cos(self.heading), s * math.sin(self.heading), c, 0.0])


@named_fields
@dataclass(frozen=True)
class SphereGround(GroundSurface):
    """Spherical ground; with `hollow` the robot is inside, as in a bowl.

    Raises:
        InvalidInput: a centre that is not three finite numbers, a radius that is not > 0.
    """

    kind = ROUND

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
    def data(self) -> Array:
        """Centre, radius, side and no axis, shape (TERRAIN_DATA,)."""
        return _filled(*self.centre, self.radius, -1.0 if self.hollow else 1.0)


@named_fields
@dataclass(frozen=True)
class CylinderGround(GroundSurface):
    """Infinite cylinder as ground; with `hollow` the robot is inside, as in a pipe.

    Raises:
        InvalidInput: a point that is not three finite numbers, an axis that is zero or not
            finite, a radius that is not > 0.
    """

    kind = ROUND

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
    def data(self) -> Array:
        """Point of the axis, radius, side and unit axis, shape (TERRAIN_DATA,)."""
        side = -1.0 if self.hollow else 1.0
        return _filled(*self.point, self.radius, side, *_unit(self.axis))


def _count(values: object) -> int:
    """Return the length of a sequence, −1 of anything else."""
    return len(values) if isinstance(values, Sequence | np.ndarray) else -1


def _unit(direction: ArrayLike) -> Array:
    direction = np.asarray(direction, dtype=float)
    return np.asarray(direction / np.linalg.norm(direction))


def _plane(normal: ArrayLike, offset: float) -> Array:
    return np.array([*_unit(normal), offset])


def _filled(*numbers: float) -> Array:
    """Return the numbers, then zeros, shape (TERRAIN_DATA,)."""
    data = np.zeros(TERRAIN_DATA)
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


# Ground by name, as an object, or from a description.

Description = HeightField | TriangleMesh | GeneratedTerrain
TerrainLike = str | Path | Terrain | Description  # what `as_terrain` takes
UNIT_TOLERANCE = 1e-9  # largest distance of the length of a direction from 1


def terrains() -> tuple[str, ...]:
    """Return the names of the grounds that `as_terrain`, and with it every `terrain`, knows."""
    return tuple(TERRAINS)


def as_terrain(terrain: TerrainLike) -> Terrain:
    """Return a Terrain from a name, a file, a Terrain, or a description of `contact_sim.terrain`.

    A text with the ending of a file of `ground_from_file` is its path.

    Raises:
        UnknownName: a name that is not in TERRAINS.
        InvalidInput: an object that is not a Terrain, a file that cannot be read.
    """
    if isinstance(terrain, str) and not terrain.lower().endswith(GROUND_FILES):
        return TERRAINS[known_name('terrain', terrain, TERRAINS)]()
    if isinstance(terrain, str | Path):
        terrain = ground_from_file(terrain)
    if isinstance(terrain, Description):
        return faceted_ground(terrain)
    parts = 'kind', 'data', 'relief', 'features', 'signed_distance', 'contacts', 'region_numbers'
    if not all(hasattr(terrain, name) for name in parts):
        raise InvalidInput(
            f'terrain = {shown(terrain)}: expected a name ({", ".join(TERRAINS)}), a file, a '
            'Terrain, or a HeightField, TriangleMesh or GeneratedTerrain'
        )
    if terrain.kind not in KINDS:
        raise InvalidInput(f'terrain.kind = {shown(terrain.kind)}: expected one of {KINDS}')
    if not 1 <= terrain.features <= MAX_FEATURES:
        raise InvalidInput(
            f'terrain.features = {shown(terrain.features)}: expected 1 to {MAX_FEATURES}'
        )
    data = real_array('terrain.data', terrain.data)
    if data.shape != (TERRAIN_DATA,) or not np.isfinite(data).all():
        raise InvalidInput(f'terrain.data = {shown(data)}: expected {TERRAIN_DATA} finite numbers')
    _check_unit_directions(terrain.kind, terrain.features, data)
    if terrain.kind in FACETED:
        check_facet_data(terrain.kind, data, terrain.relief)
    return terrain


def groove(angle: float = math.radians(10.0), heading: float = 0.0) -> Planes:
    """Return two slopes that fall towards a level line in the direction of `heading` [rad]."""
    across = (-math.sin(angle) * math.sin(heading), math.sin(angle) * math.cos(heading))
    up = math.cos(angle)
    return Planes((((*across, up), 0.0), ((-across[0], -across[1], up), 0.0)))


SHAPES: dict[str, Callable[[], Terrain]] = {
    'plane': Plane, 'inclined_plane': InclinedPlane, 'groove': groove, 'sphere': SphereGround,
    'cylinder': CylinderGround,
}  # fmt: skip
"""Grounds of one or two surfaces by name."""
TERRAINS: dict[str, Callable[[], Terrain]] = SHAPES | {
    name: (lambda name=name: as_terrain(ready_made(name))) for name in READY_MADE
}
"""Every ground that a name stands for."""


def _check_unit_directions(kind: int, features: int, data: Array) -> None:
    """Refuse directions that are not of length 1: φ would be no distance."""
    directions = data[: 4 * features].reshape(-1, 4)[:, :3] if kind == PLANES else data[5:8][None]
    lengths = np.linalg.norm(directions, axis=1) if kind in (PLANES, ROUND) else np.ones(1)
    if kind == ROUND and not lengths[0]:
        return  # a sphere has no axis
    if not np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
        raise InvalidInput(f'terrain.data: directions of lengths {lengths.tolist()}, expected 1')


# Faceted ground: height fields and meshes.

FACETS = 3  # contacts that a sphere may have at once: as many as hold it in a corner


class FacetGround(GroundSurface):
    """Ground of many facets.

    Args:
        kind: FIELD or MESH.
        data: sizes and places, shape (TERRAIN_DATA,).
        relief: the facets as numbers, shape (any,).
    """

    kind = FIELD

    def __init__(self, kind: int, data: Array, relief: Array) -> None:
        self.kind, self._data, self._relief = kind, data, relief

    @property
    def data(self) -> Array:
        """Sizes and places of the parts of the relief, shape (TERRAIN_DATA,)."""
        return self._data.copy()

    @property
    def relief(self) -> Array:
        """The facets as numbers for the kernels, shape (any,)."""
        return self._relief

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return FACETS


class FieldGround(FacetGround):
    """A height field as ground: solid below, nothing beside it.

    Args:
        field: its heights.
    """

    def __init__(self, field: HeightField) -> None:
        self.field = field
        heights = np.asarray(field.heights, dtype=float)
        highest = block_maxima(heights)
        data = _filled(*heights.shape, field.horizontal_scale, *field.origin, highest.shape[1])
        super().__init__(FIELD, data, np.concatenate([heights.ravel(), highest.ravel()]))

    def __repr__(self) -> str:
        return f'FieldGround({self.field!r})'


class MeshGround(FacetGround):
    """A surface of triangles as ground; solids that touch are one, see `united`.

    Args:
        mesh: its triangles.
    """

    def __init__(self, mesh: TriangleMesh) -> None:
        self.mesh = mesh = united(mesh)
        super().__init__(MESH, *mesh_numbers(MeshFacets.of(mesh)))
        borders = Borders.divided(mesh)
        if len(borders.half_edge):
            # the surface continues beyond a part of a border where it is near all three points
            away = np.abs(self.signed_distance(borders.beyond(mesh).reshape(-1, 3)))
            ends = np.any(away.reshape(-1, 3) >= 0.5 * BORDER_PROBE, axis=1)
            super().__init__(MESH, *mesh_numbers(MeshFacets.of(mesh, borders.of(ends))))

    def __repr__(self) -> str:
        return f'MeshGround({self.mesh!r})'


def mesh_numbers(facets: MeshFacets) -> tuple[Array, Array]:
    """Return data and relief of a mesh."""
    bins = Bins.of(facets.lower, facets.upper)
    parts = (
        facets.triangles.ravel(), facets.edges.ravel(), facets.corners.ravel(),
        facets.neighbours.ravel(), bins.starts, bins.tops, bins.entries,
    )  # fmt: skip
    places = np.cumsum([len(part) for part in parts])[:-1]
    data = _filled(
        len(facets.triangles), len(facets.edges), len(facets.corners), bins.side,
        *bins.origin, *bins.count, *places,
    )  # fmt: skip
    return data, np.concatenate(parts)


def block_maxima(heights: Array) -> Array:
    """Return the highest corner of the cells of every block of BLOCK x BLOCK grid points."""
    nx, ny = heights.shape
    cells = np.full((-(-nx // BLOCK) * BLOCK, -(-ny // BLOCK) * BLOCK), -np.inf)
    cells[:nx, :ny] = heights
    cells[: nx - 1, :ny] = np.maximum(cells[: nx - 1, :ny], heights[1:])
    cells[:nx, : ny - 1] = np.maximum(cells[:nx, : ny - 1], cells[:nx, 1:ny].copy())
    blocks = cells.reshape(cells.shape[0] // BLOCK, BLOCK, cells.shape[1] // BLOCK, BLOCK)
    return np.asarray(blocks.max(axis=(1, 3)))


def faceted_ground(description: Description) -> FacetGround:
    """Return the ground of a description.

    A field with walls becomes a mesh; so does a generated terrain of several parts, which keeps
    its regions.
    """
    if isinstance(description, TriangleMesh):
        return MeshGround(description)
    if isinstance(description, HeightField):
        walls = description.slope_threshold is not None and description.shifts().any()
        return MeshGround(description.as_mesh()) if walls else FieldGround(description)
    meshes = [] if description.mesh is None else [description.mesh]
    if not meshes and len(description.fields) == 1:
        return faceted_ground(description.fields[0]).with_regions(description.regions)
    parts = [*meshes, *(field.as_mesh() for field in description.fields)]
    return MeshGround(concatenate(parts)).with_regions(description.regions)


def check_facet_data(kind: int, data: Array, relief: Array) -> None:
    """Check the numbers of faceted ground: a search must not leave the array.

    Raises:
        InvalidInput: sizes, places or entries that do not fit together, as in a damaged file.
    """
    fits = relief.dtype == np.float64 and relief.ndim == 1
    if fits and kind == FIELD:
        nx, ny, scale = data[:3]
        blocks = -(-nx // BLOCK) * -(-ny // BLOCK)
        fits = min(nx, ny) >= 2.0 and scale > 0.0 and data[5] == -(-ny // BLOCK)
        fits = fits and len(relief) == nx * ny + blocks and bool(np.isfinite(relief).all())
    elif fits:
        fits = data[SIDE] > 0.0 and data[:3].min() >= 0.0 and data[BINS_X : BINS_Y + 1].min() >= 1
        fits = fits and _parts_fit(data, relief)
    if not fits:
        raise InvalidInput('terrain.relief: numbers that do not fit together')


def _parts_fit(data: Array, relief: Array) -> bool:
    """Return whether the parts of a mesh are where its sizes put them."""
    facets, places = data[:3].astype(np.int64), data[EDGES_FROM:].astype(np.int64)
    bins = int(data[BINS_X]) * int(data[BINS_Y])
    lengths = facets * [TRIANGLE_NUMBERS, EDGE_NUMBERS, CORNER_NUMBERS]
    edges, corners, neighbours, starts, tops, entries = places[:6]
    expected = [lengths[0], lengths[:2].sum(), lengths.sum(), tops - bins - 1, entries - bins]
    order = np.array([edges, corners, neighbours, starts, tops, entries, len(relief)])
    if (order[:5] != expected).any() or (np.diff(order) < 0).any():
        return False
    ends = relief[corners:neighbours].reshape(-1, CORNER_NUMBERS)[:, 6:]
    first, listed = relief[starts:tops], relief[entries:]
    return bool(
        (ends >= 0).all() and (3 * ends <= starts - neighbours).all()
        and (first >= 0).all() and (first <= len(listed)).all()
        and (listed >= 0).all() and (listed < facets.sum()).all()
    )  # fmt: skip
