"""Placements of the bodies of a tree, twists of unit joint speed, and inertias.

Everything is in world axes about one reference point, the origin. Twists are (linear at the
origin, angular). In these coordinates nothing is transformed on the way through the tree:
velocities, forces and inertias of a parent and its child add. [Featherstone 2008] chapters 2, 4.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics.tree import (
    CONTINUOUS,
    FIXED,
    FREE_FLYER,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
)
from contact_sim.dynamics.vectors import (
    ZERO,
    add,
    cross,
    put,
    quaternion_axes,
    rotated,
    scaled,
    sub,
    turned,
    vec,
)
from contact_sim.solvers.jit import kernel


@kernel
def place(kind, parent, q_index, v_index, placement, q, origin, pose, columns):
    """Fill the origin, the placements in world and the twists of unit joint speeds.

    Args:
        kind: `Tree.kind`, shape (nb,).
        parent: `Tree.parent`, shape (nb,).
        q_index: `Tree.q_index`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        placement: `Tree.placement`, shape (nb, 13).
        q: configuration, shape (nq,).
        origin: out, reference point [m]: a point of the robot, so that no digits are lost far
            from the world's origin, shape (3,).
        pose: out, rotation column by column, then position in world [m], shape (nb, 12).
        columns: out, twist of the bodies behind a dof per unit of its speed, shape (nv, 6).
    """
    place_bodies(kind, parent, q_index, placement, q, pose)
    put(origin, 0, vec(pose[reference_body(kind, parent)], 9))
    fill_columns(kind, v_index, placement, pose, origin, columns)


@kernel
def place_bodies(kind, parent, q_index, placement, q, pose):
    """Fill `pose`; the arguments are those of `place`."""
    put(pose[0], 0, (1.0, 0.0, 0.0))
    put(pose[0], 3, (0.0, 1.0, 0.0))
    put(pose[0], 6, (0.0, 0.0, 1.0))
    put(pose[0], 9, ZERO)
    for j in range(1, kind.shape[0]):
        P, T = pose[parent[j]], placement[j]
        px, py, pz = vec(P, 0), vec(P, 3), vec(P, 6)
        x = rotated(px, py, pz, vec(T, 0))
        y = rotated(px, py, pz, vec(T, 3))
        z = rotated(px, py, pz, vec(T, 6))
        p = add(vec(P, 9), rotated(px, py, pz, vec(T, 9)))
        i, what = q_index[j], kind[j]
        if what == REVOLUTE:
            x, y = turned(np.cos(q[i]), np.sin(q[i]), x, y)
        elif what == PRISMATIC:
            p = add(p, scaled(q[i], z))
        elif what == CONTINUOUS:
            x, y = turned(q[i], q[i + 1], x, y)
        elif what == HELICAL:
            p = add(p, scaled(T[12] * q[i], z))
            x, y = turned(np.cos(q[i]), np.sin(q[i]), x, y)
        elif what == PLANAR:
            p = add(p, add(scaled(q[i], x), scaled(q[i + 1], y)))
            x, y = turned(q[i + 2], q[i + 3], x, y)
        elif what != FIXED:
            if what == FREE_FLYER:
                p = add(p, rotated(x, y, z, vec(q, i)))
                i += 3
            ex, ey, ez = quaternion_axes(q, i)
            x, y, z = rotated(x, y, z, ex), rotated(x, y, z, ey), rotated(x, y, z, ez)
        R = pose[j]
        put(R, 0, x)
        put(R, 3, y)
        put(R, 6, z)
        put(R, 9, p)


@kernel
def reference_body(kind, parent):
    """Return the body whose position is the origin: the first one, or where its slides lead."""
    last = kind.shape[0] - 1
    j = min(1, last)
    while j < last and (kind[j] == PRISMATIC or kind[j] == FIXED) and parent[j + 1] == j:
        j += 1
    return j


@kernel
def fill_columns(kind, v_index, placement, pose, origin, columns):
    """Fill `columns`; the arguments are those of `place`."""
    o = vec(origin, 0)
    for j in range(1, kind.shape[0]):
        R, k, what = pose[j], v_index[j], kind[j]
        lever, z = sub(vec(R, 9), o), vec(R, 6)
        if what in (REVOLUTE, CONTINUOUS):
            put(columns[k], 0, cross(lever, z))
            put(columns[k], 3, z)
        elif what == PRISMATIC:
            put(columns[k], 0, z)
            put(columns[k], 3, ZERO)
        elif what == HELICAL:
            put(columns[k], 0, add(cross(lever, z), scaled(placement[j, 12], z)))
            put(columns[k], 3, z)
        elif what != FIXED:
            x, y = vec(R, 0), vec(R, 3)
            if what == FREE_FLYER:
                fill_slides(x, y, columns[k], columns[k + 1])
                put(columns[k + 2], 0, z)
                put(columns[k + 2], 3, ZERO)
                k += 3
            if what == PLANAR:
                fill_slides(x, y, columns[k], columns[k + 1])
            else:
                put(columns[k], 0, cross(lever, x))
                put(columns[k], 3, x)
                put(columns[k + 1], 0, cross(lever, y))
                put(columns[k + 1], 3, y)
            put(columns[k + 2], 0, cross(lever, z))
            put(columns[k + 2], 3, z)


@kernel
def fill_slides(x, y, first, second):
    """Fill the twists of motions along x and y."""
    put(first, 0, x)
    put(first, 3, ZERO)
    put(second, 0, y)
    put(second, 3, ZERO)


@kernel
def world_inertia(body, pose, origin, inertia):
    """Fill mass, first moment and inertia of every body about the origin, in world axes.

    Args:
        body: `Tree.body`, shape (nb, 10).
        pose: placements in world, of `place`, shape (nb, 12).
        origin: reference point in world [m], shape (3,).
        inertia: out, mass [kg], m (c − origin) [kg m], inertia about the origin [kg m²] xx, xy,
            xz, yy, yz, zz; zero for the world, shape (nb, 10).
    """
    o = vec(origin, 0)
    inertia[0] = 0.0
    for j in range(1, body.shape[0]):
        b, R, out = body[j], pose[j], inertia[j]
        x, y, z = vec(R, 0), vec(R, 3), vec(R, 6)
        m = b[0]
        c = add(sub(vec(R, 9), o), rotated(x, y, z, vec(b, 1)))
        # R I, whose product with Rᵀ is the inertia in world axes
        u = rotated(x, y, z, (b[4], b[5], b[6]))
        v = rotated(x, y, z, (b[5], b[7], b[8]))
        w = rotated(x, y, z, (b[6], b[8], b[9]))
        mc = scaled(m, c)
        xx, yy, zz = mc[0] * c[0], mc[1] * c[1], mc[2] * c[2]
        out[0] = m
        put(out, 1, mc)
        out[4] = u[0] * x[0] + v[0] * y[0] + w[0] * z[0] + yy + zz
        out[5] = u[0] * x[1] + v[0] * y[1] + w[0] * z[1] - mc[0] * c[1]
        out[6] = u[0] * x[2] + v[0] * y[2] + w[0] * z[2] - mc[0] * c[2]
        out[7] = u[1] * x[1] + v[1] * y[1] + w[1] * z[1] + xx + zz
        out[8] = u[1] * x[2] + v[1] * y[2] + w[1] * z[2] - mc[1] * c[2]
        out[9] = u[2] * x[2] + v[2] * y[2] + w[2] * z[2] + xx + yy
