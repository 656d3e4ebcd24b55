"""The interface of a ground, and its part that the kernels of `surface` answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import copy
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked
from contact_sim.collision.kinds import FACETED, Ground
from contact_sim.collision.regions import region_numbers
from contact_sim.collision.search import bend_of_facet, find_facets
from contact_sim.collision.surface import find_all, height
from contact_sim.errors import InvalidInput
from contact_sim.numbers import finite, finite_array
from contact_sim.terrain import Region

Array = NDArray[np.float64]
NO_RELIEF = np.zeros(0)


def addresses_of(kind: int) -> tuple[int, int]:
    """Return the addresses of the search over facets and of their curvature, 0 without facets."""
    if kind not in FACETED:
        return 0, 0
    return find_facets.address, bend_of_facet.address


class Terrain(Protocol):
    """Interface of a ground: kind and numbers for kernels, distances and normals for people."""

    @property
    def kind(self) -> int:
        """Kind of surface, one of `surface.KINDS`."""
        ...

    @property
    def data(self) -> Array:
        """Numbers of the surface in the order of its kind, shape (TERRAIN_DATA,)."""
        ...

    @property
    def relief(self) -> Array:
        """Further numbers of the kind, shape (any,); the same array every time."""
        ...

    @property
    def regions(self) -> tuple[Region, ...]:
        """Parts with a friction or restitution of their own; of several the last one counts."""
        ...

    @property
    def region_numbers(self) -> Array:
        """The regions as `collision.regions.region_numbers`; the same array every time."""
        ...

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once, 1 to MOST_FEATURES."""
        ...

    def distances(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the ground [m], shape (n,)."""
        ...

    def normals(self, points: ArrayLike) -> Array:
        """Return unit normals out of the ground at points (n, 3), shape (n, 3)."""
        ...

    def contacts(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return signed distances (n, features) [m] and normals of what points (n, 3) touch."""
        ...

    def height(self, x: float, y: float) -> float:
        """Return where the vertical through x, y meets the ground from above [m], or NaN."""
        ...


class Surface(ABC):
    """A ground of one of the kinds of `surface`; subclasses say which, and its numbers.

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
        """Kind of surface."""

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
        return Ground(self.kind, self.data, self.relief, *addresses_of(self.kind), self.features)

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return 1

    def distances(self, points: ArrayLike) -> Array:
        """Return signed distances of points (n, 3) from the nearest feature [m], shape (n,).

        Raises:
            InvalidInput: points of another shape, or not finite.
        """
        return np.asarray(self.contacts(points)[0].min(axis=1, initial=np.inf))

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
        return float(height(self.ground, self.features, x, y))

    def contacts(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return what a sphere at each of the points (n, 3) may touch.

        Returns:
            Signed distances [m], shape (n, features), and unit normals out of the ground, shape
            (n, features, 3). Facets that a point is not nearest to have the distance UNUSED_GAP.

        Raises:
            InvalidInput: points of another shape, or not finite.
        """
        points = np.array(finite_array('points', points))
        if points.ndim != 2 or points.shape[1] != 3:
            raise InvalidInput(f'points: shape {points.shape}, expected (n, 3)')
        slots, count = self.features, len(points) * self.features
        found = np.zeros(count), np.zeros((count, 3, 3)), np.zeros(count)
        find_all(self.ground, slots, points, found)
        return found[0].reshape(-1, slots), found[1][:, 2].reshape(-1, slots, 3)
