"""J̇ v: how the contact points would accelerate if v̇ were zero (physics.md E3).

The contact point of a rolling sphere keeps below its centre: s = −r n from there does not turn
with the foot, and d/dt (v_c + ω × s) = a_c + α × s. A point fixed to the foot would have
ω × (ω × s) on top.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def rotated(P, x, y, z):
    """Return R (x, y, z) with R the rotation of a placement, column by column."""
    return (
        P[0] * x + P[3] * y + P[6] * z,
        P[1] * x + P[4] * y + P[7] * z,
        P[2] * x + P[5] * y + P[8] * z,
    )


@kernel
def crossed(ax, ay, az, bx, by, bz):
    """Return a × b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@kernel
def fill_drift(placements, twist, rate, joint, offset, radius, frame, drift):
    """Fill J̇ v of all spheres, rows (t1, t2, n).

    Args:
        placements: joint placements in world, shape (njoints, 12).
        twist: spatial velocity of every joint in its own axes, linear first, shape (njoints, 6).
        rate: spatial acceleration where v̇ = 0, without gravity, same axes, shape (njoints, 6).
        joint: joint that carries each sphere, shape (nc,).
        offset: sphere centres in the joint frames [m], shape (nc, 3).
        radius: sphere radii [m], shape (nc,).
        frame: rows t1, t2, n in world, shape (nc, 3, 3).
        drift: out [m/s²], shape (3 nc,).
    """
    for i in range(joint.shape[0]):
        P, V, A, n = placements[joint[i]], twist[joint[i]], rate[joint[i]], frame[i, 2]
        lx, ly, lz = rotated(P, offset[i, 0], offset[i, 1], offset[i, 2])
        wx, wy, wz = rotated(P, V[3], V[4], V[5])
        px, py, pz = rotated(P, A[3], A[4], A[5])
        vx, vy, vz = rotated(P, V[0], V[1], V[2])
        bx, by, bz = rotated(P, A[0], A[1], A[2])
        sx, sy, sz = crossed(wx, wy, wz, lx, ly, lz)  # ω × l
        r = radius[i]
        # ω × v turns a spatial into a classical acceleration, ω × (ω × l) leads to the centre
        ox, oy, oz = crossed(wx, wy, wz, vx + sx, vy + sy, vz + sz)
        qx, qy, qz = crossed(px, py, pz, lx - r * n[0], ly - r * n[1], lz - r * n[2])
        ax, ay, az = bx + ox + qx, by + oy + qy, bz + oz + qz
        for row in range(3):
            drift[3 * i + row] = frame[i, row, 0] * ax + frame[i, row, 1] * ay
            drift[3 * i + row] += frame[i, row, 2] * az
