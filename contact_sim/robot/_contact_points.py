"""Contact points of a robot: spheres fixed to its bodies, for feet and for other links."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin
import scipy

from contact_sim._types import Array
from contact_sim._validation import as_tuple, check_unique, real_array, real_number
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, one_line, shown
from contact_sim.robot._coordinates import find_frame, frozen, neutral_configuration
from contact_sim.robot._trees import data_of
from contact_sim.robot._urdf import (
    child_of,
    link_geometry,
    number,
    vector,
)


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """Contact sphere fixed to the body of a joint.

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
        place, offset, radius = f'ContactPoint {shown(self.name)}', np.empty(0), np.nan
        with suppress(InvalidInput):
            offset = np.array(real_array('', self.offset))
        if offset.shape != (3,) or not np.isfinite(offset).all():
            raise InvalidInput(
                f'{place}: offset = {shown(self.offset)} m: expected three finite numbers'
            )
        with suppress(InvalidInput):
            radius = real_number('', self.radius)
        if not 0.0 <= radius < np.inf:
            raise InvalidInput(
                f'{place}: radius = {shown(self.radius)} m: expected a finite value of at least 0'
            )
        object.__setattr__(self, 'offset', frozen(offset))
        object.__setattr__(self, 'radius', radius)

    __repr__ = one_line


# -------------------------------------------------------------------------------------------- feet


@dataclass(frozen=True)
class Sphere:
    """A sphere in the frame of a link."""

    centre: tuple[float, float, float]
    """Centre in the link's frame [m]."""
    radius: float
    """Radius [m]."""


FEET = 'frame names or contact points'
"""Kinds of feet, in messages."""
POINT = Sphere((0.0, 0.0, 0.0), 0.0)
"""The origin of a frame, without extent."""


@dataclass(frozen=True)
class Foot:
    """The contact points that share a frame."""

    name: str
    """Name of its contact point where it has one, name of the frame where it has several."""
    frame: str
    """Name of the Pinocchio frame about whose origin its torque is given."""
    joint: str
    """Name of the Pinocchio joint whose body carries it."""
    points: tuple[int, ...]
    """Indices into `robot.contact_points`."""


def feet_of(points: Sequence[ContactPoint]) -> tuple[Foot, ...]:
    """Return the feet that contact points form, in the order of their first points."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault((point.frame, point.joint), []).append(index)
    return tuple(
        Foot(points[group[0]].name if len(group) == 1 else frame, frame, joint, tuple(group))
        for (frame, joint), group in groups.items()
    )


def foot_frame(model: pin.Model, foot: Foot) -> pin.Frame:
    """Return the frame of a foot, the link where a joint has the same name."""
    joint = model.getJointId(foot.joint)
    named = [f for f in model.frames if f.name == foot.frame and f.parentJoint == joint]
    return next((frame for frame in named if frame.type == pin.FrameType.BODY), named[0])


def contact_point_indices(
    what: str, name: str, feet: Sequence[Foot], points: Sequence[ContactPoint]
) -> tuple[int, ...]:
    """Return the contact points of the foot, contact point or, as text, index called `name`."""
    named: dict[str, tuple[int, ...]] = {
        point.name: (index,) for index, point in enumerate(points)
    }
    named |= {foot.name: foot.points for foot in feet}
    numbered = {str(index): (index,) for index in range(len(points))}
    if name not in named | numbered:
        raise UnknownName(what, name, named)
    return (numbered | named)[name]


def contact_points_at(
    model: pin.Model,
    what: str,
    frames: Iterable[str | ContactPoint],
    spheres: Mapping[str, Sequence[Sphere]] = MappingProxyType({}),
) -> tuple[ContactPoint, ...]:
    """Return the contact points of frames, called `what` in errors: their spheres or origins."""
    points: list[ContactPoint] = []
    for frame in as_tuple(what, frames, f'a list of {FEET}'):
        if isinstance(frame, ContactPoint):
            points.append(frame)
            continue
        if not isinstance(frame, str):
            raise InvalidInput(f'{what}: {shown(frame)} is in the list, expected {FEET}')
        if not model.existFrame(frame):
            moving = [other.name for other in model.frames if other.parentJoint]
            raise UnknownName('contact frame', frame, moving)
        found = find_frame(model, frame)
        if found.parentJoint == 0:
            raise InvalidInput(
                f'contact frame {frame!r} is fixed to the world and cannot be a contact point; '
                'choose a frame that moves, or let the base float (floating_base)'
            )
        own = spheres.get(frame, (POINT,))
        for k, sphere in enumerate(own):
            name = frame if len(own) == 1 else f'{frame}_{k}'
            centre = found.placement.act(np.array(sphere.centre))
            joint = str(model.names[found.parentJoint])
            points.append(ContactPoint(name, frame, joint, centre, sphere.radius))
    return tuple(points)


def check_contact_points(model: pin.Model, points: Sequence[ContactPoint]) -> None:
    """Check that contact points have names of their own, and frames and joints of the model."""
    check_unique('contact point', [point.name for point in points])
    known = dict.fromkeys(list(model.names)[1:])
    carriers: dict[str, list[str]] = {}
    for frame in model.frames:
        carriers.setdefault(frame.name, []).append(model.names[frame.parentJoint])
    for point in points:
        if point.joint not in known:
            raise UnknownName(f'joint of contact point {point.name!r}:', point.joint, known)
        if point.frame not in carriers:
            raise UnknownName(f'frame of contact point {point.name!r}:', point.frame, carriers)
        joints = carriers[point.frame]
        if point.joint not in joints:
            raise InvalidInput(
                f'contact point {point.name!r}: frame {point.frame!r} moves with joint '
                f'{joints[0]!r}, not with {point.joint!r}'
            )
    check_unique('foot', [foot.name for foot in feet_of(points)])


# ---------------------------------------------------------------- corners of collision geometry

RIM = 8
"""Points on each rim of a cylinder."""
MOST = 16
"""Largest number of corners of a sole."""
SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
SUM_WEIGHT = 1e4
"""Weight of the condition that convex weights add up to 1; the distances are at most 1."""
OVER_FACE = 1e-12
"""Height up to which a point is in the plane of a face of a hull [m]."""


@dataclass(frozen=True)
class Approximation:
    """What stands for a collision geometry in contacts."""

    geometry: str
    """Name of the geometry: of its link, with a number."""
    stands: str
    """What stands for it, in words."""
    error: float
    """Largest distance by which the geometry reaches beyond it [m]."""


def link_of(model: pin.Model, frame: str) -> str:
    """Return the link called `frame`, or the child of the fixed joint called so."""
    named = [index for index, other in enumerate(model.frames) if other.name == frame]
    for other in model.frames:
        at_joint = model.frames[other.parentFrame].type == pin.FrameType.FIXED_JOINT
        if other.type == pin.FrameType.BODY and at_joint and other.parentFrame in named:
            return str(other.name)
    return frame


def corners_of(shape: Any, name: str) -> tuple[Array, float, float]:
    """Return the corners of a shape of coal in its frame [m], (n, 3), radius and error."""
    kind = type(shape).__name__
    if kind == 'Sphere':
        return np.zeros((1, 3)), float(shape.radius), 0.0
    if kind == 'Capsule':
        ends = np.outer([-1.0, 1.0], [0.0, 0.0, shape.halfLength])
        return ends, float(shape.radius), 0.0
    if kind == 'Box':
        return SIGNS * shape.halfSide, 0.0, 0.0
    if kind in ('Cylinder', 'Cone'):
        angle = 2.0 * np.pi * np.arange(RIM) / RIM
        circle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(RIM)])
        flat = kind == 'Cylinder' and shape.radius > 0.0
        top = shape.radius * circle if flat else np.zeros((1, 3))  # of a cone its apex
        up = np.array([0.0, 0.0, shape.halfLength])
        rims = np.vstack([shape.radius * circle - up, top + up])
        return rims, 0.0, float(shape.radius * (1.0 - np.cos(np.pi / RIM)))
    if not hasattr(shape, 'vertices'):
        raise RobotDescriptionError(
            f'collision geometry {name!r}: {kind} is none of sphere, capsule, box, '
            'cylinder, cone and mesh'
        )
    place = f'collision mesh {name!r}'
    vertices = np.array(shape.vertices() if callable(shape.vertices) else shape.vertices, float)
    if len(vertices) == 0 or not np.isfinite(vertices).all():
        raise RobotDescriptionError(f'{place}: expected finite vertices')
    return vertices[_hull(vertices, place).vertices], 0.0, 0.0


def _hull(points: Array, place: str) -> Any:
    try:
        return scipy.spatial.ConvexHull(points)
    except (scipy.spatial.QhullError, ValueError) as error:  # too few points, or in a plane
        raise RobotDescriptionError(f'{place}: it is flat and has no convex hull') from error


def spread(corners: Array, most: int, place: str) -> list[int]:
    """Return the indices of at most `most` corners (n, 3) whose convex hull leaves out little."""
    _hull(corners, place)
    # four that enclose a volume, then the one farthest outside the hull of those chosen
    chosen = _simplex(corners)
    while len(chosen) < most:
        outside = _beyond_faces(corners[chosen], corners)
        outside[chosen] = 0.0
        if outside.max() <= 0.0:
            break
        chosen.append(int(np.argmax(outside)))
    return chosen


def _simplex(corners: Array) -> list[int]:
    """Return the indices of four corners that span the largest extents one after the other."""
    first = int(np.argmin(corners[:, 0]))
    chosen, basis = [first], np.zeros((0, 3))
    for _ in range(3):
        away = corners - corners[first]
        away = away - away @ basis.T @ basis
        size = np.linalg.norm(away, axis=1)
        chosen.append(int(np.argmax(size)))
        basis = np.vstack([basis, away[chosen[-1]] / size[chosen[-1]]])
    return chosen


def _beyond_faces(kept: Array, corners: Array) -> Array:
    """Return by how much corners lie beyond the faces of the hull of those kept [m], (n,)."""
    faces = scipy.spatial.ConvexHull(kept).equations
    return np.asarray((corners @ faces[:, :3].T + faces[:, 3]).max(axis=1))


def reach_beyond(kept: Array, corners: Array) -> float:
    """Return the largest distance of corners (n, 3) from the convex hull of those kept [m]."""
    faces = scipy.spatial.ConvexHull(kept).equations
    heights = corners @ faces[:, :3].T + faces[:, 3]
    outside = heights.max(axis=1) > 0.0
    corners, height = corners[outside], heights[outside].max(axis=1)
    feet = corners - height[:, None] * faces[heights[outside].argmax(axis=1), :3]
    over_face = np.all(feet @ faces[:, :3].T + faces[:, 3] <= OVER_FACE, axis=1)
    others = (_distance(kept, corner) for corner in corners[~over_face])
    return float(max(height[over_face].max(initial=0.0), max(others, default=0.0)))


def _distance(kept: Array, point: Array) -> float:
    """Return the distance of a point from a convex hull [m]: the nearest convex combination."""
    away = (kept - point).T
    size = np.abs(away).max()
    weights, _ = scipy.optimize.nnls(
        np.vstack([away / size, np.full(len(kept), SUM_WEIGHT)]), [0.0, 0.0, 0.0, SUM_WEIGHT]
    )
    return float(np.linalg.norm(away @ weights))


# -------------------------------------------------------------------------- contact points of feet
#
# Spheres of the collision geometry of its link:
#
# spheres                               all of them, and nothing else of the link
# box, cylinder, cone, capsule, mesh    spheres and corners as above, at most MOST
# none                                  the origin of the frame

THICKNESS = 5e-3
"""Height above its lowest point in neutral up to which a foot is its sole [m]."""
HEADINGS = 8
"""Directions in which the rim of a sole is kept."""
Spheres = Mapping[str, tuple[Sphere, ...]]
"""Spheres of frames, in the axes of each frame; frames without any are left out."""


def soles_of(
    model: pin.Model,
    robot: Element,
    package_dirs: Iterable[str],
    frames: Iterable[Any],
    place: str,
    known: Spheres,
) -> tuple[Spheres, tuple[str, ...]]:
    """Return the contact spheres of feet, and their approximations as sentences.

    Contact points among `frames` are ignored; `known` spheres replace those of the description.
    """
    spheres = dict(known)
    notes: list[str] = []
    described = {link.get('name', ''): link for link in robot.iterfind('link')}
    for joint in robot.iterfind('joint'):
        if joint.get('type') == 'fixed' and child_of(joint) in described:
            described.setdefault(joint.get('name', ''), described[child_of(joint)])
    for frame in frames:
        link = described.get(frame) if isinstance(frame, str) else None
        if link is None or frame in spheres or link.find('collision') is None:
            continue
        where = f'{place}: link {link.get("name")!r}'
        balls = tuple(
            Sphere(
                vector(collision.find('origin'), 'xyz', '0 0 0', f'{where}: <origin>'),
                number(ball, 'radius', f'{where}: <sphere>', at_least=0.0, required=True,
                       unit=' m'),
            )
            for collision in link.iterfind('collision')
            if (ball := collision.find('geometry/sphere')) is not None
        )  # fmt: skip
        if not balls and model.existFrame(frame):
            balls, note = _corners(model, link, frame, tuple(package_dirs), place)
            notes += [note] if note else []
        if balls:
            spheres[frame] = balls
    return spheres, tuple(notes)


def _corners(
    model: pin.Model, link: Element, frame: str, package_dirs: tuple[str, ...], place: str
) -> tuple[tuple[Sphere, ...], str]:
    """Return the corners of the collision geometry of a foot's link, and what they leave out."""
    try:
        shapes = link_geometry(model, link, package_dirs)
        found = [corners_of(one.shape, one.name) for one in shapes]
        placed = [
            np.array([shape.placement.act(corner) for corner in corners])
            for shape, (corners, _, _) in zip(shapes, found, strict=True)
        ]
        corners = np.vstack(placed)
        radii = np.repeat([radius for _, radius, _ in found], [len(one) for one in placed])
        kept = _kept(model, frame, corners, place)
    except RobotDescriptionError as error:
        warnings.warn(f'foot {frame!r} touches at its origin: {error}', stacklevel=5)
        return (), f'foot {frame} touches at its origin: its collision geometry cannot be used'
    chosen = sorted(kept)
    beyond = max(one for _, _, one in found)
    if len(chosen) < len(corners):
        beyond += reach_beyond(corners[chosen], corners) + float(radii.max() - radii.min())
    inverse = find_frame(model, frame).placement.inverse()
    spheres = tuple(
        Sphere(tuple(inverse.act(corners[k]).tolist()), float(radii[k])) for k in chosen
    )
    kinds = ', '.join(sorted({type(one.shape).__name__ for one in shapes}))
    return spheres, (
        f'foot {frame} touches with {len(chosen)} points of its collision geometry ({kinds}), '
        f'which leave out up to {1e3 * beyond:.2g} mm'
    )


def _kept(model: pin.Model, frame: str, corners: Array, place: str) -> list[int]:
    """Return at most MOST corners (n, 3): the rim of the sole first, then those farthest out."""
    if len(corners) <= MOST:
        return list(range(len(corners)))
    data = data_of(model)
    pin.forwardKinematics(model, data, neutral_configuration(model))
    joint = find_frame(model, frame).parentJoint
    down = data.oMi[joint].rotation.T @ [0.0, 0.0, -1.0]
    depth = corners @ down
    bottom = np.flatnonzero(depth > depth.max() - THICKNESS)
    across = np.linalg.svd(down[None])[2][1:]  # two axes of the sole
    angles = 2.0 * np.pi * np.arange(HEADINGS) / HEADINGS
    headings = np.column_stack([np.cos(angles), np.sin(angles)]) @ across
    rim = {int(bottom[k]) for k in np.argmax(corners[bottom] @ headings.T, axis=0)}
    others = spread(corners, MOST, place)
    return sorted([*rim, *[k for k in others if k not in rim][: MOST - len(rim)]])
