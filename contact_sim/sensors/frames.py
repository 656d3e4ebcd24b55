"""Frames of a robot in motion, by Pinocchio: joints of every type, one configuration at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput, shown
from contact_sim.robot import frames as of_model
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


def frame_called(robot: RobotModel, name: str) -> pin.Frame:
    """Return a frame, the link where a joint has the same name; '' is the root body itself.

    Raises:
        UnknownName: a frame that the robot does not have.
    """
    if not isinstance(name, str):
        raise InvalidInput(f'frame = {shown(name)}: expected a name')
    if not name:
        root = 1 if robot.floating_base else 0
        return pin.Frame(name, root, pin.SE3.Identity(), pin.FrameType.OP_FRAME)
    return of_model.frame_called(robot.pinocchio_model, name)


class Frames:
    """Where frames of a robot are and how they move; not to be asked by two threads at once."""

    def __init__(self, robot: RobotModel, frames: Sequence[pin.Frame]) -> None:
        self._model = robot.pinocchio_model
        self._data = self._model.createData()
        self._frames = [(frame.parentJoint, frame.placement.copy()) for frame in frames]

    def placements(self, q: Array) -> list[pin.SE3]:
        """Return the placement of every frame in world at q (nq,)."""
        pin.forwardKinematics(self._model, self._data, q)
        joints = self._data.oMi
        return [joints[joint] * placement for joint, placement in self._frames]

    def velocities(self, q: Array, v: Array) -> list[pin.Motion]:
        """Return the velocity of every frame about its origin, in world axes, at q and v (nv,)."""
        model, data, axes = self._model, self._data, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pin.forwardKinematics(model, data, q, v)
        return [
            pin.getFrameVelocity(model, data, joint, placement, axes)
            for joint, placement in self._frames
        ]
