"""Standing a robot on a terrain."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


def standing_on(robot: RobotModel, terrain: Terrain, pose: str = 'standing') -> Array:
    """Return the reference configuration `pose` with the lowest foot on the terrain, (nq,).

    The robot is turned with the ground: what was vertical over z = 0 is normal to the terrain.
    A fixed base stays where it is.
    """
    q = robot.reference_configuration(pose)
    if not robot.floating_base:
        return q
    plane = terrain.plane
    turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), plane[:3])
    q = q.copy()
    q[:3] = turn.matrix() @ q[:3] + plane[3] * plane[:3]
    q[3:7] = (turn * pin.Quaternion(*q[[6, 3, 4, 5]])).coeffs()
    return q
