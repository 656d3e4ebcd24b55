"""Where a scene is looked at from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.drawing.bodies import Body, compose
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
FROM = np.array([0.66, -0.66, 0.36])
"""Direction from what is looked at to the camera: from the front left, a little from above."""
ROOM = 2.2
"""Distance of the camera in radii of what is looked at."""
FARTHEST = 1e4
"""Way along which a picture follows [m]; a robot that has blown up is left to go."""
FIELD_OF_VIEW = 1.0
"""Vertical angle of a picture [rad]."""


@dataclass(frozen=True)
class Camera:
    """A place to look from, and a place to look at, world [m]."""

    position: tuple[float, float, float]
    look_at: tuple[float, float, float]
    field_of_view: float = FIELD_OF_VIEW
    """From the lower to the upper edge of the picture [rad]."""

    def moved(self, offset: Array) -> Camera:
        """Return the camera at another place, by an offset (3,) [m], turned as it is."""
        x, y, z = (self.position + offset).tolist()
        a, b, c = (self.look_at + offset).tolist()
        return replace(self, position=(x, y, z), look_at=(a, b, c))

    @property
    def wxyz(self) -> Array:
        """Rotation of its axes: x to the right, y down, z forward, (4,)."""
        forward = np.subtract(self.look_at, self.position)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        axes = np.stack([right, np.cross(forward, right), forward], axis=1)
        x, y, z, w = pin.Quaternion(axes).coeffs()
        return np.array([w, x, y, z])


def framing(bodies: Sequence[Body], joints: Array) -> Camera:
    """Return a camera that sees all bodies, with the joints (njoints, 7) where they are."""
    if not bodies:
        return Camera((2.0, -2.0, 1.0), (0.0, 0.0, 0.0))
    own = np.array([body.placement for body in bodies])
    place, wxyz = compose(joints[[body.joint for body in bodies]], own)
    corners = []
    for body, p, (w, x, y, z) in zip(bodies, place, wxyz, strict=True):
        lowest, highest = body.surface.vertices.min(axis=0), body.surface.vertices.max(axis=0)
        turn = pin.Quaternion(w, x, y, z).matrix()
        corners += [p + turn @ np.where(side, highest, lowest) for side in np.ndindex(2, 2, 2)]
    lowest, highest = np.min(corners, axis=0), np.max(corners, axis=0)
    middle, radius = 0.5 * (lowest + highest), 0.5 * float(np.linalg.norm(highest - lowest))
    distance = ROOM * max(radius, 0.05)
    x, y, z = (middle + distance * FROM / np.linalg.norm(FROM)).tolist()
    a, b, c = middle.tolist()
    return Camera((x, y, z), (a, b, c))


class Following:
    """Moves a scene so that its robot, or the first of several, stays in the picture.

    Nothing is done to the camera, which the browser turns and moves at any time.

    Args:
        robot: what is followed, if its base floats.
        q: configuration (nq,) in which it is where it belongs in the picture.
    """

    def __init__(self, robot: RobotModel, q: Array) -> None:
        self._level = 2 if robot.floating_base else 0
        self._home = self._place(q)
        self.offset = np.zeros(3)
        """Where the origin of its world belongs in the picture [m], (3,)."""

    def look_after(self, q: Array, share: float = 1.0) -> None:
        """Go this share of the way to where the robot at q (nq,) is in its place; level."""
        there = self._home - self._place(q)
        if np.abs(there).max() < FARTHEST:
            self.offset = self.offset + share * (there - self.offset)

    def _place(self, q: Array) -> Array:
        place = np.zeros(3)
        place[: self._level] = q[: self._level]
        return place


def whole_run(cameras: Sequence[Camera]) -> Camera:
    """Return a camera that sees all that the cameras see, from the direction of the first."""
    looked_at = np.array([camera.look_at for camera in cameras])
    lowest, highest = looked_at.min(axis=0), looked_at.max(axis=0)
    away = np.subtract(cameras[0].position, cameras[0].look_at)
    distance = max(np.linalg.norm(np.subtract(one.position, one.look_at)) for one in cameras)
    middle, spread = 0.5 * (lowest + highest), float(np.linalg.norm(highest - lowest))
    x, y, z = (middle + (distance + 0.5 * spread) * away / np.linalg.norm(away)).tolist()
    a, b, c = middle.tolist()
    return Camera((x, y, z), (a, b, c))
