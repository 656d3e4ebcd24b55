"""Contacts of spheres with the ground: contact points, Jacobian rows, acceleration (theory 4.2).

φ = φ_ground(c) − r for a sphere with centre c and radius r. The contact point is the point of the
sphere nearest to the ground, c − r n with n the outward normal at c: it travels over the sphere as
the foot rolls. Contact frame rows: (t1, t2, n).

A candidate is a sphere on a joint. It has one slot for each contact that it may have at once:
slot i = features · candidate + s, s < features. On ground of few features slot s holds feature s,
near or not; on others the nearest facets, nearest first, and empty slots hold NO_FEATURE. Arrays
over contacts have one row per slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import carray, types

from contact_sim._types import Array, Indices
from contact_sim.arrays._fields import EDGE_ROW, LISTED, MOST_EDGES, MOST_LISTED
from contact_sim.collision._contact_slots import NO_FEATURE, clear_slots, write_frame
from contact_sim.collision._facets import DEEP
from contact_sim.collision._height_field_contacts import (
    edges_of_field,
    field_curvature,
    find_on_field,
)
from contact_sim.collision._mesh_contacts import (
    edges_of_mesh,
    find_on_mesh,
    mesh_curvature,
    serve_on_mesh,
)
from contact_sim.collision._surface import (
    FIELD,
    NEAR,
    PLANES,
    Ground,
    curvature,
    find_listed,
    plane_of,
    tangent_rates,
    tangents,
)
from contact_sim.dynamics._vectors import cross, dot, scaled, sub
from contact_sim.robot._model import RobotModel
from contact_sim.solvers._jit import ITEM, kernel, numbers_at, pointer


@dataclass(frozen=True)
class Candidates:
    """Spheres on links, in the order of `robot.contact_points`."""

    joint: Indices  # Pinocchio joint that carries each sphere, shape (n,)
    leaf_dof: Indices  # last dof of that joint, −1 on the world, shape (n,)
    offset: Array  # centre in the joint frame [m], shape (n, 3)
    radius: Array  # radius [m], shape (n,)


def candidates_of(robot: RobotModel) -> Candidates:
    """Return all spheres of a robot that the ground may touch as arrays."""
    model, points = robot.pinocchio_model, robot.contact_points
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


# The search over facets, called through a function pointer (solvers/_jit.py).

LIST_LENGTH = LISTED + MOST_LISTED
NUMBERS = types.CPointer(types.float64)
WHOLE, REAL = types.intp, types.float64


@kernel
def ground_at(kind, data, relief):
    """Return the ground whose data and relief are at two addresses, not as arrays: faster."""
    return Ground(kind, data, relief, 0, 0, 0, 0)


@pointer(
    types.void(
        WHOLE, NUMBERS, NUMBERS, WHOLE, REAL, REAL, REAL, REAL, WHOLE, NUMBERS, NUMBERS, NUMBERS,
        WHOLE, WHOLE,
    )
)  # fmt: skip
def find_facets(
    kind: Any, data: Any, relief: Any, length: Any, x: Any, y: Any, z: Any, reach: Any,
    listed: Any, distance: Any, frame: Any, feature: Any, first: Any, slots: Any,
) -> None:  # fmt: skip
    """Fill the slots of a point, as `find_contacts`; arrays as addresses."""
    known = numbers_at(listed, LIST_LENGTH if listed != 0 else 0)
    ground, found, last = ground_at(kind, data, relief), (distance, frame, feature), feature[first]
    clear_slots(found, first, slots)
    if kind == FIELD:
        find_on_field(ground, x, y, z, reach, known, found, first, slots)
    else:
        find_on_mesh(ground, x, y, z, reach, last, known, found, first, slots)


@pointer(types.void(WHOLE, NUMBERS, NUMBERS, WHOLE, REAL, REAL, REAL, REAL, NUMBERS))
def facet_curvature(
    kind: Any, data: Any, relief: Any, length: Any, feature: Any, x: Any, y: Any, z: Any, out: Any
) -> None:
    """Fill H of a facet, as `curvature`, shape (6,)."""
    ground, bend = ground_at(kind, data, relief), carray(out, (6,))
    if kind == FIELD:
        H = field_curvature(ground, feature, x, y, z)
    else:
        H = mesh_curvature(ground, feature, x, y, z)
    for k in range(6):
        bend[k] = H[k]


@pointer(types.void(WHOLE, NUMBERS, NUMBERS, WHOLE, REAL, REAL, REAL, REAL, WHOLE, NUMBERS))
def find_edges(
    kind: Any, data: Any, relief: Any, length: Any, x: Any, y: Any, z: Any, reach: Any,
    listed: Any, out: Any,
) -> None:  # fmt: skip
    """Fill the convex edges within `reach` of a point, rows as in _facets.py.

    The first number of the row behind the last is their number. The list of facets at the address
    `listed`, if not 0, serves searches up to DEEP around all points within `reach` of a mesh then,
    or has the radius 0. The grid of a field finds as quickly what is near a corner.
    """
    ground, edges = ground_at(kind, data, relief), carray(out, (MOST_EDGES + 1, EDGE_ROW))
    if kind == FIELD:
        count = edges_of_field(ground, (x, y, z), reach, edges)
    else:
        count = edges_of_mesh(ground, (x, y, z), reach, edges)
    edges[MOST_EDGES, 0] = count
    if listed != 0 and kind != FIELD:
        serve_on_mesh(ground, (x, y, z), reach + DEEP, numbers_at(listed, LIST_LENGTH))


# Contact points.


@kernel
def detect(ground, pose, joint, offset, radius, position, frame, gap, feature):
    """Fill the contact points of all candidates, as `detect_listed` without lists."""
    detect_listed(ground, pose, (joint, offset, radius), 0, position, frame, gap, feature)


@kernel
def detect_listed(ground, pose, candidates, lists, position, frame, gap, feature):
    """Fill the contact points of all candidates.

    Args:
        ground: a `Ground`.
        pose: rotation by columns and position of each joint in world, shape (nb, 12).
        candidates: (joint, offset, radius): joint that carries each, shape (candidates,); centres
            in the joint frames [m], shape (candidates, 3); radii [m], shape (candidates,).
        lists: address of the lists of near facets of all candidates, see _facets.py, 0 for none.
        position: out, contact points in world [m], shape (nc, 3), nc = features · candidates.
        frame: out, rows t1, t2, n in world, shape (nc, 3, 3).
        gap: out, signed distance [m], negative when penetrating, shape (nc,).
        feature: out, feature of the ground that each slot holds, shape (nc,).
    """
    if ground.kind == PLANES:
        _detect_planes(ground, pose, candidates, position, frame, gap, feature)
        return
    (joint, offset, radius), found = candidates, (gap, frame, feature)
    features = ground.features
    for c in range(joint.shape[0]):
        r = radius[c]
        x, y, z = _centre(pose, joint[c], offset, c)
        listed = lists + ITEM * LIST_LENGTH * c if lists != 0 else 0
        find_listed(ground, x, y, z, r + NEAR, listed, found, features * c, features)
        for i in range(features * c, features * (c + 1)):
            # distance of the surface of the sphere; its nearest point
            gap[i] -= r
            n = (frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2])
            write_frame(frame, i, n)
            position[i, 0] = x - r * n[0]
            position[i, 1] = y - r * n[1]
            position[i, 2] = z - r * n[2]


@kernel
def _detect_planes(ground, pose, candidates, position, frame, gap, feature):
    """Fill the contact points on planes, whose frames are the same for all candidates."""
    joint, offset, radius = candidates
    count = joint.shape[0]
    features = ground.features
    for s in range(features):
        n, plane_offset = plane_of(ground.data, s)
        t1, t2 = tangents(n[0], n[1], n[2])
        for c in range(count):
            i, r = features * c + s, radius[c]
            x, y, z = _centre(pose, joint[c], offset, c)
            gap[i] = n[0] * x + n[1] * y + n[2] * z - plane_offset - r
            feature[i] = s
            position[i, 0] = x - r * n[0]
            position[i, 1] = y - r * n[1]
            position[i, 2] = z - r * n[2]
            frame[i, 0, 0], frame[i, 0, 1], frame[i, 0, 2] = t1
            frame[i, 1, 0], frame[i, 1, 1], frame[i, 1, 2] = t2
            frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2] = n


@kernel
def _centre(pose, j, offset, c):
    """Return the centre of candidate c, which joint j carries, in world [m]."""
    x, y, z = offset[c, 0], offset[c, 1], offset[c, 2]
    return (
        pose[j, 0] * x + pose[j, 3] * y + pose[j, 6] * z + pose[j, 9],
        pose[j, 1] * x + pose[j, 4] * y + pose[j, 7] * z + pose[j, 10],
        pose[j, 2] * x + pose[j, 5] * y + pose[j, 8] * z + pose[j, 11],
    )


@kernel
def contact_rows(columns, origin, slots, dof_parent, position, frame, gap, jacobian_transposed):
    """Fill u = J v: velocity of the robot's contact points in the contact frames [m/s].

    The velocity is that of the midpoint between sphere and ground, so that a penetrating contact
    favours neither of them; with a `gap` of zeros, that of the contact points.

    Args:
        columns: twist of unit speed of each dof, linear at `origin`, then angular, in world axes,
            shape (nv, 6).
        origin: reference point of the twists in world [m], shape (3,).
        slots: (leaf_dof, feature, ...): last dof of the joint that carries each slot of the
            ground, −1 on the world, and the features of the slots, shape (nc,).
        dof_parent: dof before each dof on the way to the root, shape (nv,).
        position: contact points in world [m], shape (nc, 3).
        frame: contact frames, shape (nc, 3, 3).
        gap: signed distance [m], shape (nc,).
        jacobian_transposed: out, Jᵀ, shape (nv, at least 3 nc); entries outside the branch of a
            slot stay as they are.
    """
    leaf_dof, feature = slots[0], slots[1]
    for i in range(leaf_dof.shape[0]):
        k, row = leaf_dof[i], 3 * i
        if feature[i] == NO_FEATURE:
            while k >= 0:
                jacobian_transposed[k, row] = jacobian_transposed[k, row + 1] = 0.0
                jacobian_transposed[k, row + 2] = 0.0
                k = dof_parent[k]
            continue
        # midpoint, from the origin of the twists
        t1x, t1y, t1z = frame[i, 0, 0], frame[i, 0, 1], frame[i, 0, 2]
        t2x, t2y, t2z = frame[i, 1, 0], frame[i, 1, 1], frame[i, 1, 2]
        nx, ny, nz = frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2]
        half = 0.5 * gap[i]
        px = position[i, 0] - half * nx - origin[0]
        py = position[i, 1] - half * ny - origin[1]
        pz = position[i, 2] - half * nz - origin[2]
        while k >= 0:
            # velocity of the point per unit speed of dof k, ν + ω × p, in the contact frame
            wx, wy, wz = columns[k, 3], columns[k, 4], columns[k, 5]
            vx = columns[k, 0] + wy * pz - wz * py
            vy = columns[k, 1] + wz * px - wx * pz
            vz = columns[k, 2] + wx * py - wy * px
            jacobian_transposed[k, row] = t1x * vx + t1y * vy + t1z * vz
            jacobian_transposed[k, row + 1] = t2x * vx + t2y * vy + t2z * vz
            jacobian_transposed[k, row + 2] = nx * vx + ny * vy + nz * vz
            k = dof_parent[k]


@kernel
def contact_drift(candidates, motion, ground, pose, feature, frame, gravity, drift):
    """Fill J̇ v: acceleration of u = J v while v̇ = 0 [m/s²], u at the contact points c − r n.

    With the velocity v_c and acceleration a_c of the centre, ω and α of the body, ṅ = H v_c:

        u = t·(v_c − r ω×n),   J̇ v = t·(a_c − r α×n − r ω×ṅ) + ṫ·(v_c − r ω×n)

    for each row t of the contact frame. For t = n this is φ̈ = n·a_c + v_cᵀ H v_c. `motion` is
    (twist, bias, origin), see `bias_forces`; `candidates` is (joint, offset, radius) as in
    `detect`.
    """
    joint, offset, radius = candidates
    features = ground.features
    for i in range(features * joint.shape[0]):
        if feature[i] == NO_FEATURE:
            drift[3 * i] = drift[3 * i + 1] = drift[3 * i + 2] = 0.0
            continue
        c = i // features
        r, centre = radius[c], _centre(pose, joint[c], offset, c)
        v, w, a, b = _centre_motion(motion, joint[c], centre, gravity)
        n = (frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2])
        t1 = (frame[i, 0, 0], frame[i, 0, 1], frame[i, 0, 2])
        t2 = (frame[i, 1, 0], frame[i, 1, 1], frame[i, 1, 2])
        # ṅ = H v_c, and the rates of the tangents
        H = curvature(ground, feature[i], centre[0], centre[1], centre[2])
        n_rate = (
            H[0] * v[0] + H[1] * v[1] + H[2] * v[2],
            H[1] * v[0] + H[3] * v[1] + H[4] * v[2],
            H[2] * v[0] + H[4] * v[1] + H[5] * v[2],
        )
        t1_rate, t2_rate = tangent_rates(n, t1, n_rate)
        # velocity and acceleration of the contact point, then J̇ v row by row
        a = sub(sub(a, scaled(r, cross(b, n))), scaled(r, cross(w, n_rate)))
        v = sub(v, scaled(r, cross(w, n)))
        drift[3 * i] = dot(t1, a) + dot(t1_rate, v)
        drift[3 * i + 1] = dot(t2, a) + dot(t2_rate, v)
        drift[3 * i + 2] = dot(n, a) + dot(n_rate, v)


@kernel
def _centre_motion(motion, j, centre, gravity):
    """Return velocity, ω, acceleration and α of the point of joint j at `centre`."""
    twist, bias, origin = motion
    x, y, z = centre[0] - origin[0], centre[1] - origin[1], centre[2] - origin[2]
    w = (twist[j, 3], twist[j, 4], twist[j, 5])
    b = (bias[j, 3], bias[j, 4], bias[j, 5])
    vx = twist[j, 0] + w[1] * z - w[2] * y
    vy = twist[j, 1] + w[2] * x - w[0] * z
    vz = twist[j, 2] + w[0] * y - w[1] * x
    ax = bias[j, 0] + gravity[0] + b[1] * z - b[2] * y + w[1] * vz - w[2] * vy
    ay = bias[j, 1] + gravity[1] + b[2] * x - b[0] * z + w[2] * vx - w[0] * vz
    az = bias[j, 2] + gravity[2] + b[0] * y - b[1] * x + w[0] * vy - w[1] * vx
    return (vx, vy, vz), w, (ax, ay, az), b
