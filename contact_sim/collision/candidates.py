"""Candidates: the spheres of a robot that the ground may touch, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Spheres on links, in the order of `robot.candidates`."""

    joint: Indices
    """Pinocchio joint that carries each sphere, shape (n,)."""
    leaf_dof: Indices
    """Last dof of that joint, −1 on the world, shape (n,)."""
    offset: Array
    """Centre in the joint frame [m], shape (n, 3)."""
    radius: Array
    """Radius [m], shape (n,)."""


def candidates_of(robot: RobotModel) -> Candidates:
    """Return all spheres of a robot that the ground may touch as arrays."""
    model, points = robot.pinocchio_model, robot.candidates
    joint = [model.getJointId(point.joint) for point in points]
    return Candidates(
        joint=np.array(joint, dtype=np.int64),
        leaf_dof=np.array([leaf_dof(model.joints[j]) for j in joint], dtype=np.int64),
        offset=np.array([point.offset for point in points], dtype=float).reshape(-1, 3),
        radius=np.array([point.radius for point in points], dtype=float),
    )


def leaf_dof(joint: Any) -> int:
    """Return the last dof of a joint, −1 for the world."""
    return int(joint.idx_v + joint.nv - 1) if joint.nv else -1
