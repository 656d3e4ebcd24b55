"""Put a robot on the ground: move its base until the lowest contact point touches z = 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from contact_sim.robot.contact_point import Array, ContactPoint

ROOT = 1
"""Index of the first joint of a Pinocchio model; joint 0 is the universe."""


def has_floating_base(model: pin.Model) -> bool:
    """Return whether the first joint of `model` is a free-flyer fixed to the world."""
    return bool(model.njoints > ROOT and model.joints[ROOT].shortname() == 'JointModelFreeFlyer')


def lowest_heights(model: pin.Model, contact_points: Sequence[ContactPoint], q: Array) -> Array:
    """Return the height of the lowest point of each contact sphere at `q` [m], shape (nc,)."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    return np.array(
        [
            data.oMi[model.getJointId(point.joint)].act(point.offset)[2] - point.radius
            for point in contact_points
        ]
    )


def placed_on_ground(model: pin.Model, contact_points: Sequence[ContactPoint], q: Array) -> Array:
    """Return `q` with the base moved along world z so that the lowest point touches z = 0.

    Feet that the base does not carry (a second free body in the same model) do not count. A robot
    with a fixed base, or without contact points, is returned as it is.
    """
    placed = q.copy()
    carried = [c for c in contact_points if _is_carried(model, c)]
    if not has_floating_base(model) or not carried:
        return placed
    world_to_root = model.jointPlacements[ROOT]  # a name of its own: rotation is a view of it
    up = world_to_root.rotation[2].copy()
    for _ in range(2):  # the second pass removes the rounding of the first
        placed[:3] -= up * lowest_heights(model, carried, placed).min()
    return placed


def _is_carried(model: pin.Model, point: ContactPoint) -> bool:
    return ROOT in list(model.supports[model.getJointId(point.joint)])
