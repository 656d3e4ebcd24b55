"""Transforms from link to link, as robot_state_publisher makes them of joint states."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


class LinkTree:
    """The links of a robot and what each of them hangs on; the root link is in none of the lists.

    Args:
        robot: of one without a description, the frames of bodies that it has.

    Attributes:
        moving: (parent, link) of every link that a joint moves against its parent.
        fixed: the same of those that do not move.
    """

    def __init__(self, robot: RobotModel) -> None:
        self._model = model = robot.pinocchio_model
        self._data = model.createData()
        self.moving: list[tuple[str, str]] = []
        self.fixed: list[tuple[str, str]] = []
        self._moving: list[tuple[int, int]] = []
        self._fixed: list[tuple[int, int]] = []
        for child, frame in enumerate(model.frames):
            parent = _link_above(model, child)
            if frame.type != pin.FrameType.BODY or parent is None:
                continue
            moves = frame.parentJoint != model.frames[parent].parentJoint
            names, pairs = (self.moving, self._moving) if moves else (self.fixed, self._fixed)
            names.append((model.frames[parent].name, frame.name))
            pairs.append((parent, child))

    def moving_transforms(self, q: Array) -> Array:
        """Return the pose of each of `moving` in its parent at q (nq,).

        x, y, z [m], then qx, qy, qz, qw, shape (n, 7).
        """
        pin.framesForwardKinematics(self._model, self._data, q)
        placed = self._data.oMf
        return _poses([placed[a].actInv(placed[b]) for a, b in self._moving])

    def fixed_transforms(self) -> Array:
        """Return the pose of each of `fixed` in its parent, as `moving_transforms`."""
        frames = self._model.frames
        return _poses([frames[a].placement.actInv(frames[b].placement) for a, b in self._fixed])


def _link_above(model: pin.Model, frame: int) -> int | None:
    """Return the link that a frame hangs on, None for the world."""
    above = model.frames[frame].parentFrame
    while above and model.frames[above].type != pin.FrameType.BODY:
        above = model.frames[above].parentFrame
    return int(above) or None


def _poses(placements: list[pin.SE3]) -> Array:
    return np.array([pin.SE3ToXYZQUAT(one) for one in placements]).reshape(-1, 7)
