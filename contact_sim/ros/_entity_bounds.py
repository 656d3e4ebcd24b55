"""Boxes about robots and links, for the bounds of simulation_interfaces; imports no ROS."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.robot._collision_pairs import Solid
from contact_sim.robot._contact_points import link_of
from contact_sim.robot._model import RobotModel

SMALLEST = 1e-9
"""Radius that a point is given [m]."""
Box = tuple[Array, Array]
"""Lower and upper corner [m], shape (3,) each."""


class EntityBoxes:
    """Boxes about the solids and contact spheres of entities, exact but for what a solid is not.

    Args:
        robot: of all entities.
        links: entities, each with the names of its links.
    """

    def __init__(self, robot: RobotModel, links: Mapping[str, Collection[str]]) -> None:
        model = robot.pinocchio_model
        shapes = [(solid.frame, solid) for solid in robot.collisions.solids]
        for point in robot.contact_points:
            x, y, z = point.offset.tolist()
            radius = max(point.radius, SMALLEST)
            sphere = Solid(
                point.name, point.frame, point.joint, (0.0, 0.0, 0.0), radius, (x, y, z)
            )
            shapes.append((link_of(model, point.frame), sphere))
        self._shapes = {
            entity: [
                (model.getJointId(solid.joint), solid) for link, solid in shapes if link in own
            ]
            for entity, own in links.items()
        }

    def box(self, entity: str, data: pin.Data, axes: pin.SE3 | None = None) -> Box | None:
        """Return the box about an entity in the axes of a placement, or of the world.

        None: it has nothing that could be touched.

        Args:
            entity: name.
            data: with the placements of joints.
            axes: placement of the axes in the world.
        """
        into = pin.SE3.Identity() if axes is None else axes.inverse()
        boxes = [
            extents(solid, into * data.oMi[joint] * solid.placement)
            for joint, solid in self._shapes[entity]
        ]
        if not boxes:
            return None
        lower, upper = zip(*boxes, strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)


def extents(solid: Solid, placement: pin.SE3) -> Box:
    """Return the box about a solid at a placement."""
    rotation, centre = np.array(placement.rotation), np.array(placement.translation)
    if solid.corners:
        corners = np.array(solid.corners) @ rotation.T
        return (
            centre + corners.min(axis=0) - solid.radius,
            centre + corners.max(axis=0) + solid.radius,
        )
    if solid.cylinder:
        radius, half = solid.cylinder
        along = rotation[:, 2]
        reach = half * np.abs(along) + radius * np.sqrt(np.maximum(1.0 - along**2, 0.0))
    elif solid.ellipsoid:
        reach = np.linalg.norm(rotation * np.array(solid.half), axis=1)
    else:
        reach = np.abs(rotation) @ np.array(solid.half) + solid.radius
    return centre - reach, centre + reach


def overlaps_box(box: Box, other: Box) -> bool:
    """Return whether two boxes have a point in common."""
    return bool(np.all(box[0] <= other[1]) and np.all(other[0] <= box[1]))


def overlaps_sphere(box: Box, centre: Array, radius: float) -> bool:
    """Return whether a box and a ball have a point in common."""
    return float(np.linalg.norm(centre - np.clip(centre, *box))) <= radius
