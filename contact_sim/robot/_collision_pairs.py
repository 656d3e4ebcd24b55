"""Solids of a robot that may touch each other: spheres, capsules and boxes.

The solid of each collision geometry:

sphere, capsule, box      themselves
cylinder                  a capsule of the same length, a box where it is flatter than wide
cone, mesh                the box about it, along the axes of its geometry
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Indices
from contact_sim._validation import as_tuple, check_unique, checked_fields, whole
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot._contact_points import (
    SIGNS,
    ContactPoint,
    Foot,
    corners_of,
    link_of,
    reach_beyond,
)
from contact_sim.robot._coordinates import frozen
from contact_sim.robot._urdf import collision_geometry, read_srdf

MOST, LARGEST_MOST = 32, 10_000
"""Contacts between bodies that a robot may have at once: the default, and the largest."""


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
    def ordered(self) -> Indices:
        """The pairs as indices of solids, the simpler one first: sphere, capsule, box; (n, 2)."""
        ordered = np.zeros((len(self.pairs), 2), dtype=np.int64)
        for k, pair in enumerate(self.pairs):
            i, j = (self._place[name] for name in pair)
            ordered[k] = (i, j) if self.solids[i].kind <= self.solids[j].kind else (j, i)
        return frozen(ordered)


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
    """Return the collision geometry of all links as solids, and contact points elsewhere."""
    geometries = collision_geometry(model, description, package_dirs) if description else {}
    solids = []
    for link, several in geometries.items():
        for geometry in several:
            half, radius, centre, error = sizes_of(geometry.shape, geometry.name)
            placement = geometry.placement
            solids.append(Solid(
                name=geometry.name, frame=link, joint=str(model.names[geometry.joint]),
                half=half, radius=radius, centre=tuple(placement.act(centre).tolist()),
                rotation=tuple(placement.rotation.ravel().tolist()), error=error,
            ))  # fmt: skip
    solids += [
        Solid(point.name, point.frame, point.joint, (0.0, 0.0, 0.0), point.radius,
              tuple(point.offset.tolist()))
        for point in points
        if point.radius > 0.0 and point.frame not in geometries
    ]  # fmt: skip
    return tuple(solids)


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


# ---------------------------------------------------------------------------------- pairs of links

LinkPairs = Iterable[tuple[str, str]]


def self_collisions(
    model: pin.Model,
    solids: tuple[Solid, ...],
    q: Array,
    links: LinkPairs | None = None,
    srdf: str | Path | None = None,
    most: int = MOST,
) -> Collisions:
    """Return the pairs of solids of a robot that may touch.

    None for `links`: all but those of one body, of a joint and the next one, that overlap at `q`
    (nq,), and those that the SRDF, path or text, disables.
    """
    if links is not None:
        return Collisions(solids, _declared(model, solids, q, links), most)
    disabled = read_srdf(srdf).disabled_collisions if srdf is not None else frozenset()
    pairs = []
    for a, b in combinations(solids, 2):
        i, j = model.getJointId(a.joint), model.getJointId(b.joint)
        move_together = i == j or model.parents[i] == j or model.parents[j] == i
        if not move_together and frozenset((a.frame, b.frame)) not in disabled:
            pairs.append((a, b))
    gaps = solid_gaps(model, q, pairs)
    apart = [(a.name, b.name) for (a, b), gap in zip(pairs, gaps, strict=True) if gap > 0.0]
    return Collisions(solids, tuple(apart), most)


def solid_gaps(model: pin.Model, q: Array, pairs: Iterable[tuple[Solid, Solid]]) -> list[float]:
    """Return the signed distances of pairs of solids in a pose (nq,) [m]."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    gaps = []
    for pair in pairs:
        placed = []
        for solid in pair:
            M = data.oMi[model.getJointId(solid.joint)] * solid.placement
            placed += [shape_of(solid), coal.Transform3s(M.rotation, M.translation)]
        result = coal.DistanceResult()
        gaps.append(float(coal.distance(*placed, coal.DistanceRequest(), result)))
    return gaps


def shape_of(solid: Solid) -> Any:
    """Return a solid as a shape of coal."""
    if solid.kind == 0:
        return coal.Sphere(solid.radius)
    if solid.kind == 1:
        return coal.Capsule(solid.radius, 2.0 * solid.half[2])
    return coal.Box(*(2.0 * half for half in solid.half))


def _declared(
    model: pin.Model, solids: tuple[Solid, ...], q: Array, links: LinkPairs
) -> tuple[tuple[str, str], ...]:
    by_link: dict[str, list[Solid]] = {}
    for solid in solids:
        by_link.setdefault(solid.frame, []).append(solid)
    pairs = []
    for pair in as_tuple('links', links, 'a list of pairs of links'):
        if isinstance(pair, str) or len(tuple(pair)) != 2:
            raise InvalidInput(f'links: {shown(pair)}: expected two names')
        for link in pair:
            if link not in by_link:
                raise UnknownName('link with collision geometry', link, by_link)
        pairs += [(a, b) for a in by_link[pair[0]] for b in by_link[pair[1]]]
    for (a, b), gap in zip(pairs, solid_gaps(model, q, pairs), strict=True):
        if gap <= 0.0 and a.joint != b.joint:
            raise InvalidInput(
                f'links: {a.name!r} and {b.name!r} overlap by {-gap:.3g} m in the standing pose'
            )
    return tuple((a.name, b.name) for a, b in pairs)
