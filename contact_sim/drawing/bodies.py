"""What the links of a robot look like: surfaces that its joints move."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.drawing.surfaces import capsule, sphere
from contact_sim.drawing.style import Colour
from contact_sim.drawing.surfaces import Surface
from contact_sim.drawing.visuals import PLAIN, Look, looks_of
from contact_sim.robot.frames import frame_called
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import RobotPart, parts_of

Array = NDArray[np.float64]
LOG = logging.getLogger(__name__)
THINNEST = 0.008
"""Smallest radius of a capsule that stands for a link without geometry [m]."""


@dataclass(frozen=True, eq=False)
class Body:
    """A surface that a joint moves."""

    link: str
    """Name of the link among those of the whole robot."""
    joint: int
    """Pinocchio's number of the joint, 0 for the world."""
    placement: Array
    """Of the surface in the axes of the joint: position [m], quaternion x y z w, shape (7,)."""
    surface: Surface
    """The same object for bodies of the same shape."""
    colour: Colour


@lru_cache(maxsize=16)
def bodies_of(robot: RobotModel) -> tuple[Body, ...]:
    """Return what the links of a robot look like, of all robots that were joined.

    That is their visual geometry. A body that has none, or whose meshes are missing, has its
    collision geometry; without that, capsules from its joint to the next ones and to its contact
    points, or a ball at its centre of mass. The log says once what stands for what.
    """
    return tuple(body for part in parts_of(robot) for body in _bodies_of_part(robot, part))


def compose(first: Array, second: Array) -> tuple[Array, Array]:
    """Return position and quaternion w x y z of placements (n, 7), the second in the first."""
    p, u, w = first[:, :3], first[:, 3:6], first[:, 6:]
    r, s, c = second[:, :3], second[:, 3:6], second[:, 6:]
    t = 2.0 * np.cross(u, r)
    position = p + r + w * t + np.cross(u, t)
    real = w * c - np.sum(u * s, axis=1, keepdims=True)
    return position, np.concatenate([real, w * s + c * u + np.cross(u, s)], axis=1)


def _bodies_of_part(whole: RobotModel, part: RobotPart) -> Iterator[Body]:
    own, model = part.robot.pinocchio_model, whole.pinocchio_model
    seen, missing = looks_of(part.robot, 'visual')
    bare = _bare_joints(part.robot, seen)
    looks = list(seen)
    if bare:
        solid, _ = looks_of(part.robot, 'collision')
        instead = [look for look in solid if _joint(own, look.link) in bare]
        looks += instead
        bare -= {_joint(own, look.link) for look in instead}
    looks += [look for joint in sorted(bare) for look in _sticks(part.robot, joint)]
    if missing:
        LOG.warning(
            'robot %s: %s; drawn without them, or as simple shapes', whole.name, '; '.join(missing)
        )
    for look in looks:
        frame, alone = frame_called(model, part.called(look.link)), frame_called(own, look.link)
        moved = frame.placement * alone.placement.inverse()  # the place of what is fixed
        at = moved * alone.placement * look.placement
        yield Body(
            part.called(look.link), frame.parentJoint, pin.SE3ToXYZQUAT(at), look.surface,
            look.colour,
        )  # fmt: skip


def _joint(model: pin.Model, link: str) -> int:
    return int(frame_called(model, link).parentJoint)


def _bare_joints(robot: RobotModel, looks: tuple[Look, ...]) -> set[int]:
    """Return the joints that move a mass and nothing that is seen."""
    model = robot.pinocchio_model
    shown = {_joint(model, look.link) for look in looks}
    return {j for j in range(1, model.njoints) if model.inertias[j].mass > 0.0 and j not in shown}


def _sticks(robot: RobotModel, joint: int) -> Iterator[Look]:
    """Yield capsules along a body, in the axes of a frame of it."""
    model = robot.pinocchio_model
    ends = [np.array(model.jointPlacements[j].translation)
            for j in range(1, model.njoints) if model.parents[j] == joint]  # fmt: skip
    points = [p for p in robot.candidates if _joint(model, p.frame) == joint]
    ends += [np.array(p.offset) for p in points]
    frame = next(f for f in model.frames if f.parentJoint == joint)
    back = frame.placement.inverse()
    for point in points:
        if point.radius > 0.0:
            ball = sphere(point.radius)
            yield Look(frame.name, back * pin.SE3(np.eye(3), np.array(point.offset)), ball, PLAIN)
    long = [end for end in ends if np.linalg.norm(end) > THINNEST]
    for end in long:
        length = float(np.linalg.norm(end))
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end / length).matrix()
        stick = capsule(max(THINNEST, 0.06 * length), length)
        yield Look(frame.name, back * pin.SE3(turn, 0.5 * end), stick, PLAIN)
    if not long and not points:
        centre = pin.SE3(np.eye(3), np.array(model.inertias[joint].lever))
        yield Look(frame.name, back * centre, sphere(3.0 * THINNEST), PLAIN)


def tinted(bodies: tuple[Body, ...], colour: Colour) -> tuple[Body, ...]:
    """Return bodies in one colour."""
    return tuple(replace(body, colour=colour) for body in bodies)
