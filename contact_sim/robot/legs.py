"""Legs: the joints between the trunk and a foot, and the sole below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.feet import feet_of

DOWN = np.array([0.0, 0.0, -1.0])
PARALLEL = 0.7
"""Least cosine of the angle between two axes that count as parallel, and of a sole with DOWN."""
SAME_FACE = 1e-3
"""Distance of normals of triangles that are one face; meshes are rounded."""
LEAST_SOLE = 0.02
"""Least width of a sole [m]; what is narrower is a point."""


@dataclass(frozen=True, eq=False)
class Leg:
    """What bends so that a foot stands; all lengths in the neutral configuration."""

    foot: str
    joint: int
    """Index of the joint that moves the foot."""
    points: tuple[ContactPoint, ...]
    joints: tuple[int, ...]
    """Indices of the joints that move this foot and no other, from the trunk on."""
    bending: tuple[int, ...]
    """Those of them whose axes are parallel, across the leg: hip, knee and, if any, ankle."""
    directions: tuple[float, ...]
    """1 or -1 for each joint of `bending`: whether its axis is that of the first, or opposite."""
    sole: Array | None
    """Outward normal of the sole in the axes of `joint`, (3,); None: a point."""
    centre: Array
    """Of the sole or of the points, in the axes of `joint` [m], (3,)."""


def legs_of(model: pin.Model, points: Sequence[ContactPoint], q: Array) -> tuple[Leg, ...]:
    """Return the legs of a robot whose trunk is upright at `q` (nq,); () where a foot has none."""
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    feet = feet_of(points)
    chains = [list(model.supports[model.getJointId(foot.joint)])[1:] for foot in feet]
    legs = []
    for foot, chain in zip(feet, chains, strict=True):
        others = {joint for chain_2 in chains if chain_2 is not chain for joint in chain_2}
        own = tuple(j for j in chain if j not in others and model.joints[j].nv == 1)
        bending, directions = _bending(model, data, own)
        if len(bending) < 2:
            return ()
        of_foot = tuple(points[k] for k in foot.points)
        joint = model.getJointId(foot.joint)
        sole, centre = _sole(of_foot, data.oMi[joint].rotation)
        legs.append(Leg(foot.name, joint, of_foot, own, bending, directions, sole, centre))
    return tuple(legs)


def _bending(
    model: pin.Model, data: pin.Data, own: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the largest family of joints of a leg with parallel, level axes; their directions."""
    best: tuple[tuple[int, ...], tuple[float, ...]] = ((), ())
    axes = {j: data.J[3:, model.joints[j].idx_v] for j in own}  # 0 for a joint that slides
    for first in own:
        reference = axes[first]
        if abs(reference[2]) > PARALLEL or not reference.any():
            continue
        family = tuple(j for j in own if abs(axes[j] @ reference) > PARALLEL)
        if len(family) > len(best[0]):
            best = family, tuple(float(np.sign(axes[j] @ reference)) for j in family)
    return best


def _sole(points: tuple[ContactPoint, ...], rotation: Array) -> tuple[Array | None, Array]:
    """Return the normal and the centre of the face of a foot that looks down most, or a point."""
    offsets = np.array([point.offset for point in points])
    radii = np.array([point.radius for point in points])
    down = rotation.T @ DOWN
    mean: Array = offsets.mean(axis=0)
    for normal, corners in _faces(offsets, down):
        low = offsets[corners] + radii[corners, None] * normal
        width = np.linalg.svd(low - low.mean(axis=0), compute_uv=False)
        flat = len(corners) >= 3 and width[1] > LEAST_SOLE
        if normal @ down > PARALLEL and flat and np.ptp(radii[corners]) < SAME_FACE:
            return normal, np.asarray(low.mean(axis=0))
    return None, mean


def _faces(offsets: Array, down: Array) -> list[tuple[Array, NDArray[np.intp]]]:
    """Return outward normals and corners of the faces of a hull, the one that is widest first."""
    if len(offsets) < 3:
        return []
    middle = offsets.mean(axis=0)
    _, sizes, axes = np.linalg.svd(offsets - middle)
    if sizes[-1] < 1e-4 * sizes[0] or len(offsets) == 3:  # all in a plane
        normal = axes[2] if axes[2] @ down > 0.0 else -axes[2]
        return [(normal, np.arange(len(offsets)))]
    try:
        hull = ConvexHull(offsets)
    except QhullError:
        return []
    faces: list[tuple[Array, NDArray[np.intp], float]] = []
    seen = np.zeros(len(hull.equations), dtype=bool)
    for k, plane in enumerate(hull.equations):
        if seen[k]:
            continue
        same = np.linalg.norm(hull.equations - plane, axis=1) < SAME_FACE
        seen |= same
        corners = np.unique(hull.simplices[same])
        edges = offsets[hull.simplices[same]]
        area = np.linalg.norm(
            np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0]), axis=1
        ).sum()
        faces.append((plane[:3], corners, float(area * max(plane[:3] @ down, 0.0))))
    faces.sort(key=lambda face: -face[2])
    return [(normal, corners) for normal, corners, _ in faces]
