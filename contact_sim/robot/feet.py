"""From frame names to contact spheres, and from contact spheres to feet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pinocchio as pin

from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.arguments import as_tuple, check_unique
from contact_sim.robot.contact_point import ContactPoint


@dataclass(frozen=True)
class Sphere:
    """A sphere in the frame of a link."""

    centre: tuple[float, float, float]
    """Centre in the link's frame [m]."""
    radius: float
    """Radius [m]."""


FEET = 'frame names or contact points'
"""What feet may be given as."""
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
    return _preferred([f for f in model.frames if f.name == foot.frame and f.parentJoint == joint])


def points_called(
    what: str, name: str, feet: Sequence[Foot], points: Sequence[ContactPoint]
) -> tuple[int, ...]:
    """Return the indices of the contact points that `name` stands for.

    The name of a foot stands for all its points; it goes before the name of a contact point, and
    that before a decimal number, the index of a contact point.

    Raises:
        UnknownName: none of these; the message calls it `what`.
    """
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
    """Return the contact points of frames: their `spheres`, else their origins.

    One alone has the name of its frame, several are numbered.

    Raises:
        InvalidInput: a frame that does not move, or `frames` (called `what` in the message) is not
            a list of names and contact points.
        UnknownName: a frame that the model does not have.
    """
    points: list[ContactPoint] = []
    for frame in as_tuple(what, frames, FEET):
        if isinstance(frame, str):
            points += _contact_points_at(model, frame, spheres.get(frame, (POINT,)))
        elif isinstance(frame, ContactPoint):
            points.append(frame)
        else:
            raise InvalidInput(f'{what}: {shown(frame)} is in the list, expected {FEET}')
    return tuple(points)


def _contact_points_at(
    model: pin.Model, frame: str, spheres: Sequence[Sphere]
) -> list[ContactPoint]:
    found = _frame(model, frame)
    if found.parentJoint == 0:
        raise InvalidInput(
            f'contact frame {frame!r} is fixed to the world and cannot be a contact point; '
            'choose a frame that moves, or let the base float (floating_base)'
        )
    joint = str(model.names[found.parentJoint])
    centres = [found.placement.act(np.array(sphere.centre)) for sphere in spheres]
    names = [frame] if len(spheres) == 1 else [f'{frame}_{k}' for k in range(len(spheres))]
    return [
        ContactPoint(name, frame, joint, centre, sphere.radius)
        for name, centre, sphere in zip(names, centres, spheres, strict=True)
    ]


def _frame(model: pin.Model, name: str) -> pin.Frame:
    """Return the frame called `name`, the link where a joint has the same name."""
    found = [frame for frame in model.frames if frame.name == name]
    if not found:
        raise UnknownName('contact frame', name, [f.name for f in model.frames if f.parentJoint])
    return _preferred(found)


def _preferred(frames: Sequence[pin.Frame]) -> pin.Frame:
    return next((frame for frame in frames if frame.type == pin.FrameType.BODY), frames[0])


def check_contact_points(
    model: pin.Model, points: Sequence[ContactPoint], body_points: Sequence[ContactPoint]
) -> None:
    """Check that contact points have names of their own, and frames and joints of the model.

    Raises:
        InvalidInput: a name given twice, or a frame that moves with another joint.
        UnknownName: a joint or frame that the model does not have.
    """
    check_unique('contact point', [point.name for point in (*points, *body_points)])
    known = list(model.names)[1:]
    for point in (*points, *body_points):
        if point.joint not in known:
            raise UnknownName(f'joint of contact point {point.name!r}:', point.joint, known)
        if not model.existFrame(point.frame):
            frames = [frame.name for frame in model.frames]
            raise UnknownName(f'frame of contact point {point.name!r}:', point.frame, frames)
        joints = [model.names[f.parentJoint] for f in model.frames if f.name == point.frame]
        if point.joint not in joints:
            raise InvalidInput(
                f'contact point {point.name!r}: frame {point.frame!r} moves with joint '
                f'{joints[0]!r}, not with {point.joint!r}'
            )
    check_unique('foot', [foot.name for foot in feet_of(points)])
