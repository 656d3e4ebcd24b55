"""Solids of a robot that may touch each other and the ground.

The solid of each collision geometry:

sphere, capsule, box    themselves
cylinder                itself on planes and faces, with spheres, side by side; else a prism
cone, mesh              its convex hull
ellipsoid               itself on planes of the ground; elsewhere refused
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Indices
from contact_sim._validation import as_tuple, check_unique, checked_fields, whole
from contact_sim.errors import InvalidInput, UnknownName, one_line, shown
from contact_sim.robot._contact_points import (
    RIM,
    SIGNS,
    Approximation,
    ContactPoint,
    Foot,
    corners_of,
    link_of,
    reach_beyond,
    spread,
)
from contact_sim.robot._coordinates import frozen
from contact_sim.robot._standing_pose import lowest_heights
from contact_sim.robot._trees import data_of
from contact_sim.robot._urdf import collision_geometry, read_srdf

MOST, LARGEST_MOST = 32, 10_000
"""Contacts of bodies that a robot may have at once: the default, and the largest."""
LEAST_CORNERS, MOST_CORNERS = 4, 32
"""Smallest allowed number of corners of a mesh: they enclose a volume; and the default."""
MOST_PARTS = 64
"""Largest number of convex parts of a mesh."""
RIM_CORNERS = 16
"""Corners on each rim of a cylinder where it is a prism."""
CLEAR = 1e-3
"""Height over the lowest foot, standing, from which a solid touches the ground by default [m]."""


@dataclass(frozen=True)
class Solid:
    """A convex body on a link: everything within a radius of a point, a segment or a polyhedron.

    Solids of equal values are equal: what is computed from one is that of all.

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
    """Half sizes of the core [m]: (0, 0, 0) is a point, (0, 0, z) a segment, else a box.

    Of a hull or a cylinder they are those of the box about it."""
    radius: float = 0.0
    """Distance of the surface from the core [m]."""
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """In the frame of the joint [m]."""
    rotation: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    """From the axes of the solid into those of the joint, by rows."""
    error: float = 0.0
    """Largest distance by which the geometry it stands for reaches beyond it [m]."""
    corners: tuple[tuple[float, float, float], ...] = ()
    """Of the convex hull of a mesh or cone, in the axes of the solid [m]; none for the others."""
    cylinder: tuple[float, ...] = ()
    """Radius and half length of a cylinder along z [m]; none for the others."""
    ellipsoid: tuple[float, ...] = ()
    """Semi-axes of an ellipsoid [m], equal to `half`; none for the others."""

    def __post_init__(self) -> None:
        for field in ('half', 'centre', 'rotation', 'cylinder', 'ellipsoid'):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, 'corners', tuple(map(tuple, self.corners)))
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
        if self.ellipsoid and (self.ellipsoid != self.half or self.radius or not x):
            raise InvalidInput(
                f'Solid {shown(self.name)}: ellipsoid = {shown(self.ellipsoid)} m, half = '
                f'{self.half} m: expected three semi-axes > 0, the same as half, and radius 0'
            )

    @property
    def kind(self) -> int:
        """0 sphere, 1 capsule, 2 box, 3 hull, 4 cylinder; see collision/_solid_contacts.py."""
        if self.corners or self.cylinder:
            return 3 if self.corners else 4
        return int(self.half[2] > 0.0) + int(self.half[0] > 0.0)

    @property
    def reach(self) -> float:
        """Largest distance of its surface from the centre [m]."""
        if self.cylinder:
            return math.hypot(*self.cylinder)
        if self.ellipsoid:
            return max(self.ellipsoid)
        corners = np.array(self.corners or (self.half,))
        return float(np.linalg.norm(corners, axis=1).max()) + self.radius

    @property
    def placement(self) -> pin.SE3:
        """Placement in the frame of the joint."""
        return pin.SE3(np.array(self.rotation).reshape(3, 3), np.array(self.centre))

    __repr__ = one_line


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
    grounded: tuple[str, ...] = ()
    """Names of the solids that the ground may touch."""
    published: tuple[str, ...] = ()
    """Links among them whose wrenches are published one by one, as those of feet are."""

    def __post_init__(self) -> None:
        check_unique('solid', [solid.name for solid in self.solids])
        check_unique('pair', [' and '.join(sorted(pair)) for pair in self.pairs])
        if not 1 <= whole('most', self.most) <= LARGEST_MOST:
            raise InvalidInput(f'most = {self.most}: expected an integer in [1, {LARGEST_MOST}]')
        check_unique('grounded solid', self.grounded)
        check_unique('published link', self.published)
        links = {solid.frame for solid in self.solids if solid.name in self.grounded}
        for link in self.published:
            if link not in links:
                raise UnknownName('link that touches the ground', link, links)
        for pair in (*self.pairs, self.grounded):
            for name in pair:
                if name not in self._place:
                    raise UnknownName('solid', name, self._place)
        for pair in self.pairs:
            first, second = (self.solids[self._place[name]] for name in pair)
            if first.joint == second.joint:
                raise InvalidInput(f'pairs: {shown(pair[0])} and {shown(pair[1])} are on one body')
            for solid in (first, second):
                if solid.ellipsoid:
                    raise InvalidInput(
                        f'pairs: {shown(pair[0])} and {shown(pair[1])}: {shown(solid.name)} is an '
                        'ellipsoid, which touches planes of the ground only; leave out this pair'
                    )

    @cached_property
    def _place(self) -> dict[str, int]:
        return {solid.name: k for k, solid in enumerate(self.solids)}

    @property
    def slots(self) -> int:
        """Contacts of the simulation that belong to pairs."""
        return self.most if self.pairs or self.grounded else 0

    @property
    def touching(self) -> tuple[Solid, ...]:
        """The solids that the ground or another solid may touch."""
        names = {*self.grounded, *chain.from_iterable(self.pairs)}
        return tuple(solid for solid in self.solids if solid.name in names)

    @cached_property
    def grounded_places(self) -> Indices:
        """The solids that the ground may touch, as indices, those of a joint together, (any,)."""
        places = [self._place[name] for name in self.grounded]
        joints = list(dict.fromkeys(self.solids[k].joint for k in places))
        places.sort(key=lambda k: joints.index(self.solids[k].joint))
        return frozen(np.array(places, dtype=np.int64))

    @cached_property
    def solids_of_pairs(self) -> Indices:
        """Solids of the pairs as indices, then of each grounded one and −1, shape (n, 2)."""
        with_ground = np.column_stack([self.grounded_places, np.full(len(self.grounded), -1)])
        return frozen(np.concatenate([self.ordered, with_ground]))

    @cached_property
    def ordered(self) -> Indices:
        """The pairs as indices of solids, the simpler one first, see `Solid.kind`; (n, 2)."""
        ordered = np.zeros((len(self.pairs), 2), dtype=np.int64)
        for k, pair in enumerate(self.pairs):
            i, j = (self._place[name] for name in pair)
            ordered[k] = (i, j) if self.solids[i].kind <= self.solids[j].kind else (j, i)
        return frozen(ordered)


NO_COLLISIONS = Collisions()


def ellipsoid_on(link: str, joint: str, axes: Sequence[float]) -> Collisions:
    """Return an ellipsoid with these semi-axes [m] about the origin of a link, on the ground."""
    a, b, c = axes
    name = f'{link}_0'
    solid = Solid(name, link, joint, (a, b, c), ellipsoid=(a, b, c))
    return Collisions((solid,), grounded=(name,), published=(link,))


def link_names(model: pin.Model, foot: Foot) -> frozenset[str]:
    """Return the names that the solids of a foot may have as theirs: of its frame, of its link."""
    return frozenset((foot.frame, link_of(model, foot.frame)))


def solids_of(
    model: pin.Model,
    description: str,
    package_dirs: Sequence[str],
    points: Iterable[ContactPoint] = (),
    most_corners: int = MOST_CORNERS,
    edge_radius: float = 0.0,
    convex_parts: int = 1,
) -> tuple[Solid, ...]:
    """Return the collision geometry of all links as solids, and contact points elsewhere.

    A mesh becomes up to `convex_parts` hulls, of whose corners at most `most_corners` are kept;
    boxes have edges of `edge_radius` [m] where they are thick enough.
    """
    geometries = collision_geometry(model, description, package_dirs) if description else {}
    solids = []
    for link, several in geometries.items():
        for geometry in several:
            joint, placement = str(model.names[geometry.joint]), geometry.placement
            for name, shape in parts_of_shape(geometry.shape, geometry.name, convex_parts):
                solid = solid_of(shape, name, link, joint, most_corners, edge_radius)
                solids.append(replace(
                    solid, centre=tuple(placement.act(np.array(solid.centre)).tolist()),
                    rotation=tuple(placement.rotation.ravel().tolist()),
                ))  # fmt: skip
    solids += [
        Solid(point.name, point.frame, point.joint, (0.0, 0.0, 0.0), point.radius,
              tuple(point.offset.tolist()))
        for point in points
        if point.radius > 0.0 and point.frame not in geometries
    ]  # fmt: skip
    return tuple(solids)


def parts_of_shape(shape: Any, name: str, most: int) -> list[tuple[str, Any]]:
    """Return names and shapes of the convex parts of a mesh, at most `most`; others as they are.

    [Wei 2022] Approximate convex decomposition for 3D meshes with collision-aware concavity.
    """
    if most == 1 or not hasattr(shape, 'tri_indices'):
        return [(name, shape)]
    try:
        import coacd
    except ImportError as error:
        raise InvalidInput(
            f'convex_parts = {most}: coacd is not installed; pip install "contact_sim[meshes]"'
        ) from error
    coacd.set_log_level('error')
    vertices = np.array(shape.vertices(), float)
    triangles = np.array(
        [[shape.tri_indices(k)[e] for e in range(3)] for k in range(shape.num_tris)]
    )
    found = coacd.run_coacd(coacd.Mesh(vertices, triangles), max_convex_hull=most, seed=0)
    return [(f'{name}_{k}', _Corners(np.asarray(part[0]))) for k, part in enumerate(found)]


@dataclass(frozen=True, eq=False)
class _Corners:
    """A convex part of a mesh."""

    vertices: Array


def solid_of(
    shape: Any, name: str, link: str, joint: str, most_corners: int, edge_radius: float
) -> Solid:
    """Return the solid of a shape of coal in the axes of the shape."""

    def solid(half: Sequence[float], radius: float = 0.0, **rest: Any) -> Solid:
        x, y, z = map(float, half)
        return Solid(name, link, joint, (x, y, z), float(radius), **rest)

    kind = type(shape).__name__
    if kind == 'Sphere':
        return solid((0, 0, 0), shape.radius)
    if kind == 'Capsule':
        return solid((0, 0, shape.halfLength), shape.radius)
    if kind == 'Box':
        radius = min(edge_radius, 0.5 * float(np.min(shape.halfSide)))
        return solid(shape.halfSide - radius, radius, error=(np.sqrt(3.0) - 1.0) * radius)
    if kind == 'Cylinder':
        radius, half = float(shape.radius), float(shape.halfLength)
        beyond = radius * (1.0 - np.cos(np.pi / RIM_CORNERS))
        return solid((radius, radius, half), error=beyond, cylinder=(radius, half))
    # a mesh or cone: its hull
    corners = corners_of(shape, name)[0]
    error = shape.radius * (1.0 - np.cos(np.pi / RIM)) if kind == 'Cone' else 0.0
    if len(corners) > most_corners:
        kept = sorted(spread(corners, most_corners, f'collision geometry {name!r}'))
        error += reach_beyond(corners[kept], corners)
        corners = corners[kept]
    low, high = corners.min(axis=0), corners.max(axis=0)
    centre = 0.5 * (low + high)
    around = tuple(map(tuple, (corners - centre).tolist()))
    return solid(0.5 * (high - low), error=float(error), centre=tuple(centre.tolist()),
                 corners=around)  # fmt: skip


# ------------------------------------------------------------------------ solids on the ground


def grounded_solids(
    model: pin.Model, solids: Sequence[Solid], links: Iterable[str] | None, feet: Iterable[str]
) -> tuple[str, ...]:
    """Return the names of the solids of links; None: of all that move but the `feet`."""
    feet = tuple(feet)
    own = {*feet, *(link_of(model, foot) for foot in feet)}
    by_link: dict[str, list[Solid]] = {}
    for solid in solids:
        by_link.setdefault(solid.frame, []).append(solid)
    moving = [link for link, several in by_link.items() if model.getJointId(several[0].joint)]
    chosen = [link for link in moving if link not in own]
    if links is not None:
        chosen = list(as_tuple('links', links, 'a list of names of links'))
    for k, link in enumerate(chosen):
        if link not in by_link:
            raise UnknownName('link with collision geometry', link, by_link)
        if link not in moving:
            raise InvalidInput(f'links: {link!r} is fixed to the world and touches nothing')
        if link in own or link in chosen[:k]:
            raise InvalidInput(f'links: {link!r} is a foot, or listed twice')
    return tuple(solid.name for link in chosen for solid in by_link[link])


@lru_cache(maxsize=4096)
def corner_points(solid: Solid) -> tuple[ContactPoint, ...]:
    """Return the corners of a solid as spheres: on the rims of a cylinder, on an ellipsoid."""
    radius, corners = solid.radius, np.array(solid.corners)
    if solid.cylinder:
        rim, half = solid.cylinder
        angle = 2.0 * np.pi * np.arange(RIM_CORNERS) / RIM_CORNERS
        circle = np.column_stack([rim * np.cos(angle), rim * np.sin(angle)])
        corners = np.vstack([
            np.column_stack([circle, np.full(RIM_CORNERS, z)]) for z in (half, -half)
        ])  # fmt: skip
    elif solid.ellipsoid:
        # the points whose normals are along the 26 directions of a cube
        axes = np.array(solid.ellipsoid)
        ways = np.array([way for way in product((-1.0, 0.0, 1.0), repeat=3) if any(way)])
        corners = axes**2 * ways / np.linalg.norm(axes * ways, axis=1)[:, None]
    elif not solid.corners:
        corners = np.unique(SIGNS * solid.half, axis=0)
    placement = solid.placement
    placed = [placement.act(corner) for corner in corners]
    return tuple(
        ContactPoint(f'{solid.name}.{k}', solid.frame, solid.joint, place, radius)
        for k, place in enumerate(placed)
    )


def clear_of_ground(
    model: pin.Model, solids: Iterable[Solid], q: Array, feet: Sequence[ContactPoint]
) -> tuple[str, ...]:
    """Return the names of the solids that are above the lowest foot in a pose (nq,)."""
    if not feet:
        return tuple(solid.name for solid in solids)
    sole = lowest_heights(model, feet, q).min()
    return tuple(
        solid.name
        for solid in solids
        if lowest_heights(model, corner_points(solid), q).min() > sole + CLEAR
    )


def approximation_of(solid: Solid) -> Approximation | None:
    """Return what stands for a geometry, None if that is exact."""
    if solid.error == 0.0:
        return None
    stands = f'a hull of {len(solid.corners)} corners' if solid.corners else 'rounded edges'
    if solid.cylinder:
        stands = f'itself on planes and faces, else a prism of {RIM_CORNERS} sides'
    return Approximation(solid.name, stands, solid.error)


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
    data = data_of(model)
    pin.forwardKinematics(model, data, q)
    gaps = []
    for pair in pairs:
        placed = []
        for solid in pair:
            M = data.oMi[model.getJointId(solid.joint)] * solid.placement
            placed += [shape_of(solid), coal.Transform3s(M.rotation, M.translation)]
        result = coal.DistanceResult()
        rounding = sum(solid.radius for solid in pair if solid.kind > 1)
        gaps.append(float(coal.distance(*placed, coal.DistanceRequest(), result)) - rounding)
    return gaps


def shape_of(solid: Solid) -> Any:
    """Return a solid as a shape of coal; of a box or hull that is its core."""
    if solid.kind == 0:
        return coal.Sphere(solid.radius)
    if solid.kind == 1:
        return coal.Capsule(solid.radius, 2.0 * solid.half[2])
    if solid.cylinder:
        return coal.Cylinder(solid.cylinder[0], 2.0 * solid.cylinder[1])
    if solid.corners:
        points = coal.StdVec_Vec3s()
        points.extend(np.array(corner) for corner in solid.corners)
        return coal.ConvexBase.convexHull(points, False, 'Qt')
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
