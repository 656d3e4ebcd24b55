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
