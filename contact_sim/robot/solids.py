"""Solids: spheres, capsules and boxes of a robot that may touch each other.

sphere, capsule, box      themselves
cylinder                  a capsule of the same length, a box where it is flatter than wide
cone, mesh                the box about it, along the axes of its geometry
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.arguments import checked_fields
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.numbers import whole
from contact_sim.robot.body_points import (
    SIGNS,
    collision_geometry,
    corners_of,
    link_of,
    reach_beyond,
)
from contact_sim.robot.configuration import frozen
from contact_sim.arguments import check_unique
from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.feet import Foot

IndexArray = NDArray[np.int64]
MOST, LARGEST_MOST = 32, 10_000
"""Contacts between bodies that a robot may have at once, unless said otherwise."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A point, a segment or a box on a link, and everything within a radius of it.

    Raises:
        InvalidInput: an empty name, numbers that are not finite, sizes of none of the three.
    """

    name: str
    """Name, unique in a robot."""
    frame: str
    """Name of the link."""
    joint: str
    """Name of the Pinocchio joint that moves it."""
    half: tuple[float, float, float]
    """Half sizes of the core [m]: (0, 0, 0) is a point, (0, 0, z) a segment, else a box."""
    radius: float = 0.0
    """Distance of the surface from the core [m]."""
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """In the frame of the joint [m]."""
    rotation: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    """From the axes of the solid into those of the joint, by rows."""
    error: float = 0.0
    """Largest distance of its surface from that of the geometry it stands for [m]."""

    def __post_init__(self) -> None:
        numbers = np.array([*self.half, self.radius, *self.centre, *self.rotation, self.error])
        if not self.name or not np.isfinite(numbers).all() or min(*self.half, self.radius) < 0.0:
            raise InvalidInput(f'Solid {shown(self.name)}: expected a name and finite sizes >= 0')
        if not any(self.half) and self.radius == 0.0:
            raise InvalidInput(f'Solid {shown(self.name)}: it has no size')
        x, y, z = (size > 0.0 for size in self.half)
        if (x, y, z) not in ((False,) * 3, (False, False, True), (True,) * 3):
            raise InvalidInput(
                f'Solid {shown(self.name)}: half = {self.half} m: expected those of a point, of a '
                'segment along z or of a box'
            )

    @property
    def kind(self) -> int:
        """0 sphere, 1 capsule, 2 box."""
        return int(self.half[2] > 0.0) + int(self.half[0] > 0.0)

    @property
    def placement(self) -> pin.SE3:
        """Placement in the frame of the joint."""
        return pin.SE3(np.array(self.rotation).reshape(3, 3), np.array(self.centre))


@checked_fields
@dataclass(frozen=True)
class Collisions:
    """Solids of a robot and which of them may touch each other.

    Raises:
        InvalidInput: a solid listed twice, a pair of one solid or on one body, no room.
        UnknownName: a pair with a solid that is not listed.
    """

    solids: tuple[Solid, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """Names of two solids each."""
    most: int = MOST
    """Contacts that all pairs may have at once; of more the nearest are kept."""

    def __post_init__(self) -> None:
        check_unique('solid', [solid.name for solid in self.solids])
        check_unique('pair', [' and '.join(sorted(pair)) for pair in self.pairs])
        if not 1 <= whole('most', self.most) <= LARGEST_MOST:
            raise InvalidInput(f'most = {self.most}: expected an integer in [1, {LARGEST_MOST}]')
        for pair in self.pairs:
            for name in pair:
                if name not in self._place:
                    raise UnknownName('solid', name, self._place)
            first, second = (self.solids[self._place[name]] for name in pair)
            if first.joint == second.joint:
                raise InvalidInput(f'pairs: {shown(pair[0])} and {shown(pair[1])} are on one body')

    @cached_property
    def _place(self) -> dict[str, int]:
        return {solid.name: k for k, solid in enumerate(self.solids)}

    @property
    def slots(self) -> int:
        """Contacts of the simulation that belong to pairs."""
        return self.most if self.pairs else 0

    @cached_property
    def ordered(self) -> IndexArray:
        """The pairs as indices of solids, the simpler one first: sphere, capsule, box; (n, 2)."""
        found = np.zeros((len(self.pairs), 2), dtype=np.int64)
        for k, pair in enumerate(self.pairs):
            i, j = (self._place[name] for name in pair)
            found[k] = (i, j) if self.solids[i].kind <= self.solids[j].kind else (j, i)
        return frozen(found)


NO_COLLISIONS = Collisions()


def link_names(model: pin.Model, foot: Foot) -> frozenset[str]:
    """Return the names that the solids of a foot may have as theirs: of its frame, of its link."""
    return frozenset((foot.frame, link_of(model, foot.frame)))


def solids_of(
    model: pin.Model,
    description: str,
    package_dirs: Sequence[str],
    points: Iterable[ContactPoint] = (),
) -> tuple[Solid, ...]:
    """Return the collision geometry of all links as solids.

    Args:
        model: of the robot.
        description: its URDF; empty where there is none: then of `points` alone.
        package_dirs: folders in which its package:// URIs are found.
        points: contact points; those with a radius on links without geometry become spheres.

    Raises:
        RobotDescriptionError: a mesh that cannot be read, or without a convex hull.
    """
    geometries = collision_geometry(model, description, package_dirs) if description else {}
    solids = [_solid(model, link, one) for link, several in geometries.items() for one in several]
    solids += [
        Solid(point.name, point.frame, point.joint, (0.0, 0.0, 0.0), point.radius,
              tuple(point.offset.tolist()))
        for point in points
        if point.radius > 0.0 and point.frame not in geometries
    ]  # fmt: skip
    return tuple(solids)


def _solid(model: pin.Model, link: str, geometry: Any) -> Solid:
    half, radius, centre, error = sizes_of(geometry.geometry, str(geometry.name))
    placement = geometry.placement
    return Solid(
        name=str(geometry.name), frame=link, joint=str(model.names[geometry.parentJoint]),
        half=half, radius=radius, centre=tuple(placement.act(centre).tolist()),
        rotation=tuple(placement.rotation.ravel().tolist()), error=error,
    )  # fmt: skip


def sizes_of(shape: Any, name: str) -> tuple[tuple[float, float, float], float, Array, float]:
    """Return half sizes, radius and centre of the solid of a shape of coal, and the error [m]."""
    kind, origin = type(shape).__name__, np.zeros(3)
    if kind == 'Sphere':
        return (0.0, 0.0, 0.0), float(shape.radius), origin, 0.0
    if kind == 'Capsule':
        return (0.0, 0.0, float(shape.halfLength)), float(shape.radius), origin, 0.0
    if kind == 'Box':
        x, y, z = (float(half) for half in shape.halfSide)
        return (x, y, z), 0.0, origin, 0.0
    if kind == 'Cylinder':
        radius, half = float(shape.radius), float(shape.halfLength)
        beyond = (2.0**0.5 - 1.0) * radius
        if half > radius:
            return (0.0, 0.0, half - radius), radius, origin, beyond
        return (radius, radius, half), 0.0, origin, beyond
    corners = corners_of(shape, name)[0]
    low, high = corners.min(axis=0), corners.max(axis=0)
    x, y, z = (0.5 * (high - low)).tolist()
    box = 0.5 * (low + high) + SIGNS * (x, y, z)
    return (x, y, z), 0.0, 0.5 * (low + high), reach_beyond(corners, box)
