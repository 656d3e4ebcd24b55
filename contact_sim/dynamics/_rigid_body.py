"""Rigid-body dynamics in world axes: kinematics, mass matrix, bias forces (theory 4.1).

    forward_kinematics   poses of the bodies, twists of unit joint speed (columns of the Jacobian)
    world_inertia        inertias of the bodies about the origin
    mass_matrix          composite rigid bodies (CRBA), [Featherstone 2008] section 6.2
    bias_forces          recursive Newton-Euler (RNEA) with v̇ = 0, section 5.3

All quantities are in world axes about one reference point, the origin; twists are (linear at the
origin, angular). In these coordinates the passes through the tree need no transforms: velocities,
forces and inertias of a parent and its child add.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics._tree import (
    CONTINUOUS,
    FIXED,
    FREE_FLYER,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
)
from contact_sim.dynamics._vectors import (
    ZERO,
    add,
    cross,
    dot,
    inertia_times,
    put,
    quaternion_axes,
    rotated,
    scaled,
    sub,
    turned,
    vec,
)
from contact_sim.solvers._jit import kernel


@kernel
def forward_kinematics(kind, parent, q_index, v_index, placement, q, origin, pose, columns):
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
    """Fill `pose`; the arguments are those of `forward_kinematics`."""
    put(pose[0], 0, (1.0, 0.0, 0.0))
    put(pose[0], 3, (0.0, 1.0, 0.0))
    put(pose[0], 6, (0.0, 0.0, 1.0))
    put(pose[0], 9, ZERO)
    for j in range(1, kind.shape[0]):
        P, T = pose[parent[j]], placement[j]
        # frame of the joint at q = 0: pose of the parent times `placement`
        px, py, pz = vec(P, 0), vec(P, 3), vec(P, 6)
        x = rotated(px, py, pz, vec(T, 0))
        y = rotated(px, py, pz, vec(T, 3))
        z = rotated(px, py, pz, vec(T, 6))
        p = add(vec(P, 9), rotated(px, py, pz, vec(T, 9)))
        # motion of the joint; quaternions turn the three axes
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
    """Return the first body, or the one that its prismatic chain leads to."""
    last = kind.shape[0] - 1
    j = min(1, last)
    while j < last and (kind[j] == PRISMATIC or kind[j] == FIXED) and parent[j + 1] == j:
        j += 1
    return j


@kernel
def fill_columns(kind, v_index, placement, pose, origin, columns):
    """Fill `columns`; the arguments are those of `forward_kinematics`."""
    o = vec(origin, 0)
    for j in range(1, kind.shape[0]):
        R, k, what = pose[j], v_index[j], kind[j]
        lever, z = sub(vec(R, 9), o), vec(R, 6)
        # one axis, z; below: free flyer, planar and spherical joints
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

    `inertia` (nb, 10) is mass [kg], m (c − origin) [kg m], inertia about the origin [kg m²] xx,
    xy, xz, yy, yz, zz; zero for the world. `body` is `Tree.body`, `pose` that of
    `forward_kinematics`.
    """
    o = vec(origin, 0)
    inertia[0] = 0.0
    for j in range(1, body.shape[0]):
        b, R, out = body[j], pose[j], inertia[j]
        x, y, z = vec(R, 0), vec(R, 3), vec(R, 6)
        # centre of mass from the origin
        m = b[0]
        c = add(sub(vec(R, 9), o), rotated(x, y, z, vec(b, 1)))
        # u, v, w: columns of R I; R I Rᵀ is the inertia in world axes, plus Steiner's terms
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


@kernel
def mass_matrix(parent, v_index, dof_parent, columns, inertia, armature, composite, M):
    """Fill the lower triangle of M(q) along the tree; nothing else of M is touched.

    Column k of M is the force, along the dofs before k, that gives dof k unit acceleration: the
    momentum of everything behind k at unit speed of k. Where the first body flies freely, its
    position is the origin: its columns are its axes, linear for three dofs, angular for three.

    Args:
        parent: `Tree.parent`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        dof_parent: `Tree.dof_parent`, shape (nv,).
        columns: of `forward_kinematics`, shape (nv, 6).
        inertia: of `world_inertia`, shape (nb, 10).
        armature: `Tree.armature`, shape (nv,).
        composite: out, inertia of every body with all behind it; row 0 is that of the whole
            robot, shape (nb, 10).
        M: out, entries of dofs on one branch, shape (nv, nv).
    """
    base = 6 if parent.shape[0] > 1 and v_index[2] == 6 else 0  # dofs of a free-flying base
    for j in range(parent.shape[0]):
        for e in range(10):
            composite[j, e] = inertia[j, e]
    # backward pass: I_c of a body is complete when its children have been added
    for j in range(parent.shape[0] - 1, 0, -1):
        C, P = composite[j], composite[parent[j]]
        for k in range(v_index[j], v_index[j + 1]):
            # (f, n) = I_c S_k
            S = columns[k]
            f, n = spatial_momentum(C, vec(S, 0), vec(S, 3))
            row = M[k]
            # M_ki = S_i · (f, n) along the branch
            row[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n) + armature[k]
            i = dof_parent[k]
            while i >= base:
                S = columns[i]
                row[i] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
                i = dof_parent[i]
            # the free-flying base: the axes of its columns need one product each
            if i >= 0:
                for i in range(min(k, 3)):
                    row[i] = dot(vec(columns[i], 0), f)
                for i in range(3, min(k, 6)):
                    row[i] = dot(vec(columns[i], 3), n)
        # add the composite inertia to the parent
        for e in range(10):
            P[e] += C[e]


@kernel
def spatial_momentum(inertia, linear, angular):
    """Return linear momentum, and angular momentum about the origin, of a moving inertia.

    `inertia` is a row of `world_inertia`, (`linear`, `angular`) the twist, tuples.
    """
    mc = vec(inertia, 1)
    p = sub(scaled(inertia[0], linear), cross(mc, angular))
    return p, add(inertia_times(inertia, angular), cross(mc, linear))


@kernel
def bias_forces(parent, v_index, columns, inertia, v, gravity, twist, bias, wrench, nle):
    """Fill C(q, v) v + g(q), and the twists and accelerations of the bodies on the way.

    A twist is (ν, ω): the velocity ν of the body's point that is at the origin now, and its
    angular velocity. `bias` is the rate (ν̇, ω̇) of that at v̇ = 0, the origin staying where it is
    in the world (so ν̇ is not the acceleration of a material point), and with gravity taken as an
    acceleration of the world: its linear part is ν̇ − g. A point of the body at r from the
    origin then accelerates with ν̇ + ω̇ × r + ω × (ν + ω × r), see `point_bias`.

    Args:
        parent: `Tree.parent`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        columns: of `forward_kinematics`, shape (nv, 6).
        inertia: of `world_inertia`, shape (nb, 10).
        v: velocity, shape (nv,).
        gravity: in world [m/s²], shape (3,).
        twist: out, ν [m/s] and ω [rad/s] of every body, world axes, shape (nb, 6).
        bias: out, ν̇ − g [m/s²] and ω̇ [rad/s²] at v̇ = 0, world axes, shape (nb, 6).
        wrench: out, force and moment about the origin that moves a body and all behind it with
            `bias`, shape (nb, 6).
        nle: out, nonlinear effects [N, N m], shape (nv,).
    """
    # the world: at rest, accelerated by −g
    put(twist[0], 0, ZERO)
    put(twist[0], 3, ZERO)
    put(bias[0], 0, scaled(-1.0, vec(gravity, 0)))
    put(bias[0], 3, ZERO)
    put(wrench[0], 0, ZERO)
    put(wrench[0], 3, ZERO)
    # forward pass: twists, accelerations, and the wrench that moves each body
    for j in range(1, parent.shape[0]):
        V, A = twist[parent[j]], bias[parent[j]]
        linear, angular = vec(V, 0), vec(V, 3)
        first = v_index[j]  # every joint moves
        # joint twist S v
        S = columns[first]
        joint_linear, joint_angular = scaled(v[first], vec(S, 0)), scaled(v[first], vec(S, 3))
        for k in range(first + 1, v_index[j + 1]):
            S = columns[k]
            joint_linear = add(joint_linear, scaled(v[k], vec(S, 0)))
            joint_angular = add(joint_angular, scaled(v[k], vec(S, 3)))
        # acceleration: the axes of the joint move with the parent, Ṡ v = twist × S v
        drift = add(cross(angular, joint_linear), cross(linear, joint_angular))
        a_linear = add(vec(A, 0), drift)
        a_angular = add(vec(A, 3), cross(angular, joint_angular))
        linear, angular = add(linear, joint_linear), add(angular, joint_angular)
        put(twist[j], 0, linear)
        put(twist[j], 3, angular)
        put(bias[j], 0, a_linear)
        put(bias[j], 3, a_angular)
        # Newton-Euler equations of the body
        f, n = inertial_wrench(
            inertia[j], angular, add(a_linear, cross(angular, linear)), a_angular
        )
        put(wrench[j], 0, f)
        put(wrench[j], 3, n)
    # backward pass: nle_k = S_k · wrench; the wrench goes on to the parent
    for j in range(parent.shape[0] - 1, 0, -1):
        F, P = wrench[j], wrench[parent[j]]
        f, n = vec(F, 0), vec(F, 3)
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            nle[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
        put(P, 0, add(vec(P, 0), f))
        put(P, 3, add(vec(P, 3), n))


@kernel
def inertial_wrench(inertia, angular, acceleration, a_angular):
    """Return the force and the moment about the origin of a body's motion (Newton-Euler).

        f = m a + α × m c + ω × (ω × m c),   n = m c × a + I α + ω × I ω

    `acceleration` is a of the body's material point at the origin [m/s²], `angular` ω [rad/s] and
    `a_angular` α [rad/s²]; tuples.
    """
    mc = vec(inertia, 1)
    f = add(scaled(inertia[0], acceleration), cross(a_angular, mc))
    n = add(cross(mc, acceleration), inertia_times(inertia, a_angular))
    f = add(f, cross(angular, cross(angular, mc)))
    return f, add(n, cross(angular, inertia_times(inertia, angular)))


@kernel
def point_bias(twist, bias, gravity, r):
    """Return J̇ v of a point of a body: its acceleration [m/s²] at v̇ = 0, in world axes.

    `twist` and `bias` are rows of `bias_forces`, `gravity` is the one used there, `r` the point
    from the origin in world axes [m], a tuple.
    """
    angular = vec(twist, 3)
    velocity = add(vec(twist, 0), cross(angular, r))
    fixed = add(add(vec(bias, 0), vec(gravity, 0)), cross(vec(bias, 3), r))
    return add(fixed, cross(angular, velocity))
