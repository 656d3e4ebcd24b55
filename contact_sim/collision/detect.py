"""Where the spheres of a robot meet the ground, and how these points move.

φ = n·c − d − r for a sphere with centre c and radius r over the plane n·p = d. The contact point
is the point of the sphere nearest to the ground, c − r n: it travels over the sphere as the foot
rolls. Contact frame rows: (t1, t2, n).
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel


@kernel
def detect(placements, joint, offset, radius, plane, position, frame, gap):
    """Fill the contact points of all spheres.

    Args:
        placements: joint placements in world (`DynamicsTerms.placements`), shape (njoints, 12).
        joint: joint that carries each sphere, shape (nc,).
        offset: sphere centres in the joint frames [m], shape (nc, 3).
        radius: sphere radii [m], shape (nc,).
        plane: unit normal and offset [m], shape (4,).
        position: out, contact points in world [m], shape (nc, 3).
        frame: out, rows t1, t2, n in world, shape (nc, 3, 3).
        gap: out, signed distance [m], negative when penetrating, shape (nc,).
    """
    nx, ny, nz = plane[0], plane[1], plane[2]
    # t1: world x laid into the plane (world y where x is nearly normal)
    if abs(nx) < 0.9:
        ax, ay, az = 1.0 - nx * nx, -nx * ny, -nx * nz
    else:
        ax, ay, az = -ny * nx, 1.0 - ny * ny, -ny * nz
    length = np.sqrt(ax * ax + ay * ay + az * az)
    ax, ay, az = ax / length, ay / length, az / length
    for i in range(joint.shape[0]):
        P = placements[joint[i]]
        x, y, z = offset[i, 0], offset[i, 1], offset[i, 2]
        cx = P[0] * x + P[3] * y + P[6] * z + P[9]
        cy = P[1] * x + P[4] * y + P[7] * z + P[10]
        cz = P[2] * x + P[5] * y + P[8] * z + P[11]
        gap[i] = nx * cx + ny * cy + nz * cz - plane[3] - radius[i]
        position[i, 0] = cx - radius[i] * nx
        position[i, 1] = cy - radius[i] * ny
        position[i, 2] = cz - radius[i] * nz
        frame[i, 0, 0], frame[i, 0, 1], frame[i, 0, 2] = ax, ay, az
        frame[i, 1, 0] = ny * az - nz * ay
        frame[i, 1, 1] = nz * ax - nx * az
        frame[i, 1, 2] = nx * ay - ny * ax
        frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2] = nx, ny, nz


@kernel
def contact_jacobian(world_jacobian, leaf_dof, parent, position, frame, gap, jacobian_transposed):
    """Fill u = J v: velocity of the robot's contact points in the contact frames [m/s].

    The velocity is taken halfway between sphere and ground, so that a penetrating contact favours
    neither of them.

    Args:
        world_jacobian: `DynamicsTerms.jacobian`, shape (nv, 6).
        leaf_dof: last dof of the joint that carries each contact, shape (nc,).
        parent: dof before each dof, shape (nv,).
        position: contact points in world [m], shape (nc, 3).
        frame: contact frames, shape (nc, 3, 3).
        gap: signed distance [m], shape (nc,).
        jacobian_transposed: out, Jᵀ, shape (nv, at least 3 nc); entries outside the branch are
            left zero.
    """
    for i in range(leaf_dof.shape[0]):
        half = 0.5 * gap[i]
        px = position[i, 0] - half * frame[i, 2, 0]
        py = position[i, 1] - half * frame[i, 2, 1]
        pz = position[i, 2] - half * frame[i, 2, 2]
        k = leaf_dof[i]
        while k >= 0:
            S = world_jacobian[k]
            vx = S[0] + S[4] * pz - S[5] * py
            vy = S[1] + S[5] * px - S[3] * pz
            vz = S[2] + S[3] * py - S[4] * px
            for row in range(3):
                jacobian_transposed[k, 3 * i + row] = (
                    frame[i, row, 0] * vx + frame[i, row, 1] * vy + frame[i, row, 2] * vz
                )
            k = parent[k]


@kernel
def contact_drift(
    twists, bias_accelerations, placements, joint, offset, radius, frame, gravity, drift
):
    """Fill J̇ v: acceleration of u = J v while v̇ = 0 [m/s²].

    The point c − r n of the sphere moves with v_c − r ω × n, so its rate is the acceleration of
    the centre minus r α × n; the ground is flat: n does not turn.

    Args:
        twists: `DynamicsTerms.twists`, shape (njoints, 6).
        bias_accelerations: `DynamicsTerms.bias_accelerations`, shape (njoints, 6).
        placements: joint placements in world, shape (njoints, 12).
        joint: joint that carries each sphere, shape (nc,).
        offset: sphere centres in the joint frames [m], shape (nc, 3).
        radius: sphere radii [m], shape (nc,).
        frame: contact frames, rows t1, t2, n, shape (nc, 3, 3).
        gravity: gravity in world [m/s²], shape (3,).
        drift: out, J̇ v, rows (t1, t2, n), shape (at least 3 nc,).
    """
    for i in range(joint.shape[0]):
        v, a, P = twists[joint[i]], bias_accelerations[joint[i]], placements[joint[i]]
        x, y, z = offset[i, 0], offset[i, 1], offset[i, 2]
        # velocity of the centre, then its acceleration, in the axes of the joint
        vx = v[0] + v[4] * z - v[5] * y
        vy = v[1] + v[5] * x - v[3] * z
        vz = v[2] + v[3] * y - v[4] * x
        ax = a[0] + a[4] * z - a[5] * y + v[4] * vz - v[5] * vy
        ay = a[1] + a[5] * x - a[3] * z + v[5] * vx - v[3] * vz
        az = a[2] + a[3] * y - a[4] * x + v[3] * vy - v[4] * vx
        wx = P[0] * a[3] + P[3] * a[4] + P[6] * a[5]
        wy = P[1] * a[3] + P[4] * a[4] + P[7] * a[5]
        wz = P[2] * a[3] + P[5] * a[4] + P[8] * a[5]
        n = frame[i, 2]
        px = P[0] * ax + P[3] * ay + P[6] * az + gravity[0] - radius[i] * (wy * n[2] - wz * n[1])
        py = P[1] * ax + P[4] * ay + P[7] * az + gravity[1] - radius[i] * (wz * n[0] - wx * n[2])
        pz = P[2] * ax + P[5] * ay + P[8] * az + gravity[2] - radius[i] * (wx * n[1] - wy * n[0])
        for row in range(3):
            drift[3 * i + row] = frame[i, row, 0] * px + frame[i, row, 1] * py
            drift[3 * i + row] += frame[i, row, 2] * pz
