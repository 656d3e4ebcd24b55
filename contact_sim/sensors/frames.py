"""Frames of a robot in motion, by Pinocchio: joints of every type, one configuration at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.errors import UnknownName
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


def frame_called(robot: RobotModel, name: str) -> pin.Frame:
    """Return a frame, the link where a joint has the same name; '' is the root body itself.

    Raises:
        UnknownName: a frame that the robot does not have.
    """
    frames = robot.pinocchio_model.frames
    if not name:
        root = 1 if robot.floating_base else 0
        return pin.Frame(name, root, pin.SE3.Identity(), pin.FrameType.OP_FRAME)
    found = [frame for frame in frames if frame.name == name]
    if not found:
        raise UnknownName('frame', name, [frame.name for frame in frames])
    return next((frame for frame in found if frame.type == pin.FrameType.BODY), found[0])


class Motion(NamedTuple):
    """Where a frame is and how it moves, in world."""

    axes: Array
    """Axes of the frame as columns, shape (3, 3)."""
    origin: Array
    """[m], shape (3,)."""
    velocity: Array
    """Of the origin [m/s], shape (3,)."""
    angular: Array
    """Angular velocity [rad/s], shape (3,)."""


class Frames:
    """Where frames of a robot are and how they move; not to be asked by two threads at once."""

    def __init__(self, robot: RobotModel, frames: Sequence[pin.Frame]) -> None:
        self._model = robot.pinocchio_model
        self._data = self._model.createData()
        self._frames = [(frame.parentJoint, frame.placement.copy()) for frame in frames]

    def at(self, q: Array, v: Array) -> list[Motion]:
        """Return the motion of every frame at q (nq,) and v (nv,)."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v)
        motions = []
        for joint, placement in self._frames:
            place = data.oMi[joint] * placement
            axes = np.array(place.rotation)
            twist = placement.actInv(data.v[joint])  # in the axes of the frame
            motions.append(
                Motion(
                    axes, np.array(place.translation), axes @ twist.linear, axes @ twist.angular
                )
            )
        return motions
