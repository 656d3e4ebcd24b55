"""Where a foot touches: from the collision geometry of its link to spheres.

spheres                               all of them, and nothing else of the link
box, cylinder, cone, capsule, mesh    the spheres and corners that body_points makes of them,
at most MOST: a sole with its edges
none                                  the origin of the frame
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.body_points import (
    MOST,
    collision_geometry,
    corners_of,
    link_of,
    reach_beyond,
    spread,
)
from contact_sim.robot.checks import child_of
from contact_sim.robot.configuration import neutral_configuration
from contact_sim.robot.contact_point import Array
from contact_sim.robot.feet import Sphere
from contact_sim.robot.frames import frame_called
from contact_sim.robot.numbers import number, vector

THICKNESS = 5e-3
"""Height above its lowest point in neutral up to which a foot is its sole [m]."""
HEADINGS = 8
"""Directions in which the rim of a sole is kept."""
Spheres = Mapping[str, tuple[Sphere, ...]]
"""Spheres of frames, in the axes of each frame; frames without any are left out."""


@dataclass(frozen=True)
class Soles:
    """What the ground may touch of the feet of a robot."""

    spheres: Spheres
    notes: tuple[str, ...]
    """What was approximated, in words."""


def soles_of(
    model: pin.Model,
    robot: Element,
    package_dirs: Iterable[str],
    frames: Iterable[Any],
    place: str,
    given: Spheres,
) -> Soles:
    """Return the spheres of feet.

    Args:
        model: of the robot.
        robot: the <robot> element.
        package_dirs: folders in which its package:// URIs are found.
        frames: frames of the feet; what is no name is passed over.
        place: what to call the description in a message.
        given: spheres of frames that are known better than from the description.
    """
    spheres = dict(given)
    notes: list[str] = []
    described = {link.get('name', ''): link for link in robot.iterfind('link')}
    for joint in robot.iterfind('joint'):
        if joint.get('type') == 'fixed' and child_of(joint) in described:
            described.setdefault(joint.get('name', ''), described[child_of(joint)])
    for frame in frames:
        link = described.get(frame) if isinstance(frame, str) else None
        if link is None or frame in spheres or link.find('collision') is None:
            continue
        balls = _balls(link, place)
        if not balls and model.existFrame(frame):
            balls, note = _corners(model, robot, frame, tuple(package_dirs), place)
            notes += [note] if note else []
        if balls:
            spheres[frame] = balls
    return Soles(spheres, tuple(notes))


def _balls(link: Element, place: str) -> tuple[Sphere, ...]:
    """Return the collision spheres of a link."""
    where = f'{place}: link {link.get("name")!r}'
    return tuple(
        Sphere(
            vector(collision.find('origin'), 'xyz', '0 0 0', f'{where}: <origin>'),
            number(shape, 'radius', f'{where}: <sphere>', at_least=0.0, required=True, unit=' m'),
        )
        for collision in link.iterfind('collision')
        if (shape := collision.find('geometry/sphere')) is not None
    )


def _corners(
    model: pin.Model, robot: Element, frame: str, package_dirs: tuple[str, ...], place: str
) -> tuple[tuple[Sphere, ...], str]:
    """Return the corners of the collision geometry of a foot's link, and what they leave out."""
    link = link_of(model, frame)
    try:
        shapes = collision_geometry(model, _alone(robot, link), package_dirs)[link]
        found = [corners_of(shape.geometry, str(shape.name)) for shape in shapes]
        placed = [
            np.array([shape.placement.act(corner) for corner in corners])
            for shape, (corners, _, _) in zip(shapes, found, strict=True)
        ]
        corners = np.vstack(placed)
        radii = np.repeat([radius for _, radius, _ in found], [len(one) for one in placed])
        kept = _kept(corners, _down(model, frame), place)
    except RobotDescriptionError as error:
        warnings.warn(f'foot {frame!r} touches at its origin: {error}', stacklevel=4)
        return (), f'foot {frame} touches at its origin: its collision geometry cannot be used'
    chosen = sorted(kept)
    beyond = max(one for _, _, one in found) + _left_out(corners, radii, chosen)
    inverse = frame_called(model, frame).placement.inverse()
    spheres = tuple(
        Sphere(tuple(inverse.act(corners[k]).tolist()), float(radii[k])) for k in chosen
    )
    kinds = ', '.join(sorted({type(shape.geometry).__name__ for shape in shapes}))
    return spheres, (
        f'foot {frame} touches with {len(chosen)} points of its collision geometry ({kinds}), '
        f'which leave out up to {1e3 * beyond:.2g} mm'
    )


def _kept(corners: Array, down: Array, place: str) -> list[int]:
    """Return at most MOST corners (n, 3): the rim of the sole first, then those farthest out."""
    if len(corners) <= MOST:
        return list(range(len(corners)))
    depth = corners @ down
    bottom = np.flatnonzero(depth > depth.max() - THICKNESS)
    across = np.linalg.svd(down[None])[2][1:]  # two axes of the sole
    angles = 2.0 * np.pi * np.arange(HEADINGS) / HEADINGS
    headings = np.column_stack([np.cos(angles), np.sin(angles)]) @ across
    rim = {int(bottom[k]) for k in np.argmax(corners[bottom] @ headings.T, axis=0)}
    others = spread(corners, MOST, place)
    return sorted([*rim, *[k for k in others if k not in rim][: MOST - len(rim)]])


def _down(model: pin.Model, frame: str) -> Array:
    """Return what is down in neutral in the axes of the joint that moves a frame, (3,)."""
    data = model.createData()
    pin.forwardKinematics(model, data, neutral_configuration(model))
    joint = frame_called(model, frame).parentJoint
    return np.asarray(data.oMi[joint].rotation.T @ [0.0, 0.0, -1.0])


def _left_out(corners: Array, radii: Array, chosen: list[int]) -> float:
    if len(chosen) == len(corners):
        return 0.0
    return reach_beyond(corners[chosen], corners) + float(radii.max() - radii.min())


def _alone(robot: Element, link: str) -> str:
    """Return a URDF in which this link alone has collision geometry: no other mesh is read."""
    copy = deepcopy(robot)
    for other in copy.iterfind('link'):
        if other.get('name') != link:
            for collision in other.findall('collision'):
                other.remove(collision)
    return ElementTree.tostring(copy, encoding='unicode')
