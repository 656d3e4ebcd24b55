"""Momentum of a free-flying base with all that hangs on it, carried over a step (theory 2.0).

A step finds v⁺ with the mass matrix of its start. Its momentum there, that of the start and all
impulses, is exact; the same v⁺ at q⁺ is another momentum. So the momentum is kept and the twist of
the base is found from it, the joints moving as they do:

    P = m (ν + ω × r) + P_j,   L = I_c ω + L_j − r × P_j       r: centre of mass from the base
"""

from __future__ import annotations

from contact_sim.dynamics.vectors import ZERO, add, cross, dot, put, rotated, scaled, sub, vec
from contact_sim.solvers.jit import kernel


@kernel
def base_inertia(M, armature, i):
    """Return m, r and I of the base at dof i with all behind it: about the base, in its axes.

    Args:
        M: lower triangle of the mass matrix, zero between branches, shape (nv, nv).
        armature: in M besides, shape (nv,).
        i: first dof of a free flyer whose joint is on the world.

    Returns:
        mass [kg], centre of mass [m], inertia xx, xy, xz, yy, yz, zz about the base [kg m²].
    """
    m = M[i, i] - armature[i]
    r = scaled(1.0 / m, (M[i + 5, i + 1], M[i + 3, i + 2], M[i + 4, i]))
    first, second, third = M[i + 3], M[i + 4], M[i + 5]
    inertia = (
        first[i + 3] - armature[i + 3], second[i + 3], third[i + 3],
        second[i + 4] - armature[i + 4], third[i + 4], third[i + 5] - armature[i + 5],
    )  # fmt: skip
    return m, r, inertia


@kernel
def joint_momentum(M, i, v):
    """Return linear and angular momentum about the base at dof i, due to the joints behind it."""
    linear = angular = ZERO
    for k in range(i + 6, v.shape[0]):
        row, speed = M[k], v[k]
        linear = add(linear, scaled(speed, vec(row, i)))
        angular = add(angular, scaled(speed, vec(row, i + 3)))
    return linear, angular


@kernel
def times(inertia, a):
    """Return I a, I the entries xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = inertia
    return dot((xx, xy, xz), a), dot((xy, yy, yz), a), dot((xz, yz, zz), a)


@kernel
def solve_inertia(inertia, b):
    """Return I⁻¹ b of a positive definite I: xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = inertia
    yx, zx = xy / xx, xz / xx  # I = L D Lᵀ
    d, e = yy - yx * xy, yz - yx * xz
    zy = e / d
    y = b[1] - yx * b[0]
    z = (b[2] - zx * b[0] - zy * y) / (zz - zx * xz - zy * e)
    y = y / d - zy * z
    return b[0] / xx - yx * y - zx * z, y, z


@kernel
def about_centre(m, r, inertia):
    """Return the inertia about the centre of mass at r of one about the origin."""
    x, y, z = r
    xx, xy, xz, yy, yz, zz = inertia
    return (
        xx - m * (y * y + z * z), xy + m * x * y, xz + m * x * z,
        yy - m * (x * x + z * z), yz + m * y * z, zz - m * (x * x + y * y),
    )  # fmt: skip


@kernel
def carry_momentum(M, armature, columns, i, motion, forces, h, flying, carried):
    """Fill the momentum after a step and where it takes the centre of mass, before q moves.

    The impulses are what v⁺ says about them, M (v⁺ − v − h ω × v_lin) + h nle, so that they are
    those of any law with any damping. Gravity is added at the centre of mass.

    Args:
        M: mass matrix at the start, see `base_inertia`.
        armature: shape (nv,).
        columns: of `kinematics.place` at the start, shape (nv, 6).
        i: first dof of a free flyer whose joint is on the world.
        motion: v, v⁺ and ω × v_lin in the axes of the start, and displacement; each (nv,).
        forces: nonlinear effects at the start [N, N m], (nv,), and gravity [m/s²], (3,).
        h: time step [s].
        flying: whether nothing but gravity moves the centre of mass, which is then on a parabola.
        carried: out, in world axes: momentum [N s], angular momentum about the centre of mass of
            the start [N m s], the centre of mass after the step from the base after it [m], (9,).
    """
    v, v_next, transport, displacement = motion
    nle, gravity = forces
    x, y, z = vec(columns[i], 0), vec(columns[i + 1], 0), vec(columns[i + 2], 0)
    g = vec(gravity, 0)
    m, r, inertia = base_inertia(M, armature, i)
    drive = scaled(h, sub((dot(x, g), dot(y, g), dot(z, g)), vec(transport, i)))
    linear, angular = joint_momentum(M, i, v_next)
    speed, omega = add(vec(v_next, i), drive), vec(v_next, i + 3)
    linear = add(linear, scaled(m, add(speed, cross(omega, r))))
    linear = add(linear, scaled(h, vec(nle, i)))
    angular = add(angular, add(times(inertia, omega), scaled(m, cross(r, speed))))
    angular = add(angular, scaled(h, vec(nle, i + 3)))
    travel = scaled(h / m, linear)
    if flying:
        before, _ = joint_momentum(M, i, v)
        before = add(before, scaled(m, add(vec(v, i), cross(vec(v, i + 3), r))))
        travel = scaled(0.5, add(travel, scaled(h / m, before)))
    put(carried, 0, rotated(x, y, z, linear))
    put(carried, 3, rotated(x, y, z, sub(angular, cross(r, linear))))
    put(carried, 6, rotated(x, y, z, add(r, sub(travel, vec(displacement, i)))))


@kernel
def follow_momentum(M, armature, columns, i, carried, flying, v):
    """Fill the twist of the base with which the robot has the momentum carried to q⁺.

    The centre of mass at q⁺ is not quite where its momentum took it. In flight the base has to be
    moved by what is returned. Elsewhere it stays, so that gaps are those that the contact problem
    foresaw, and the momentum is that about a fixed point, on which the impulses acted.

    Args:
        M: mass matrix at q⁺, see `base_inertia`.
        armature: shape (nv,).
        columns: of `kinematics.place` at q⁺, shape (nv, 6).
        i: first dof of a free flyer whose joint is on the world.
        carried: of `carry_momentum`, shape (9,).
        flying: as there.
        v: in, speeds of the joints; out, those of the base besides, Pinocchio's, shape (nv,).

    Returns:
        from the centre of mass to where it should be [m], axes of the base; zero unless flying.
    """
    x, y, z = vec(columns[i], 0), vec(columns[i + 1], 0), vec(columns[i + 2], 0)
    p, n, c = vec(carried, 0), vec(carried, 3), vec(carried, 6)
    linear, angular = (dot(x, p), dot(y, p), dot(z, p)), (dot(x, n), dot(y, n), dot(z, n))
    m, r, inertia = base_inertia(M, armature, i)
    miss = sub((dot(x, c), dot(y, c), dot(z, c)), r)
    if not flying:
        angular = add(angular, cross(miss, linear))
    of_joints, turn_of_joints = joint_momentum(M, i, v)
    linear = sub(linear, of_joints)
    angular = add(sub(angular, turn_of_joints), cross(r, of_joints))
    omega = solve_inertia(about_centre(m, r, inertia), angular)
    put(v, i, add(scaled(1.0 / m, linear), cross(r, omega)))
    put(v, i + 3, omega)
    return miss if flying else ZERO
