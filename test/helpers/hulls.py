"""Loose convex bodies of even density."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial import ConvexHull

from contact_sim import load_robot
from contact_sim.robot import RobotModel
from contact_sim.robot._collision_pairs import Collisions, Solid


def about_centre(corners: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Return corners about the centre of mass of their hull, its volume and ∫ x xᵀ dV about it."""
    hull, middle = ConvexHull(corners), np.mean(corners, axis=0)
    fan = corners[hull.simplices] - middle  # triangles of the hull, each with the middle
    volumes = np.abs(np.linalg.det(fan)) / 6.0
    centre = (volumes @ fan.sum(axis=1)) / 4.0 / volumes.sum()
    sums = fan.sum(axis=1)
    square = np.einsum('t,tia,tib->ab', volumes, fan, fan)
    square += np.einsum('t,ta,tb->ab', volumes, sums, sums)
    square = square / 20.0 - volumes.sum() * np.outer(centre, centre)
    return corners - middle - centre, float(volumes.sum()), square


def loose_hull(corners: np.ndarray, mass: float, name: str = 'hull') -> RobotModel:
    """Return the convex hull of corners (n, 3) as a loose body; its origin is its centre."""
    corners, volume, square = about_centre(np.asarray(corners, float))
    square = mass / volume * square
    i = np.trace(square) * np.eye(3) - square
    robot = load_robot(
        f'<robot name="{name}"><link name="{name}"><inertial><mass value="{mass}"/><inertia '
        f'ixx="{i[0, 0]}" iyy="{i[1, 1]}" izz="{i[2, 2]}" ixy="{i[0, 1]}" ixz="{i[0, 2]}" '
        f'iyz="{i[1, 2]}"/></inertial></link></robot>',
        feet=(),
        floating_base=True,
    )
    low, high = corners.min(axis=0), corners.max(axis=0)
    centre = 0.5 * (low + high)
    solid = Solid(
        f'{name}_0', name, 'root_joint', tuple(0.5 * (high - low)), centre=tuple(centre),
        corners=tuple(map(tuple, corners - centre)),
    )  # fmt: skip
    return replace(robot, collisions=Collisions((solid,), grounded=(solid.name,)))
