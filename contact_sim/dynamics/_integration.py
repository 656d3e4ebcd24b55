"""Integration of the configuration over a step: semi-implicit, momentum, Runge-Kutta (theory 2.0).

The semi-implicit update keeps the base velocity in the world frame:

    p⁺ = p + h R v_lin,   R⁺ = R exp(h ω),   v_lin⁺ = exp(h ω)ᵀ v_lin

Pinocchio's `integrate` moves a free flyer by exp6, p⁺ = p + R V(h ω) ξ_lin; with
ξ_lin = V(h ω)⁻¹ h v_lin it does exactly this update.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics._forces import transport_acceleration
from contact_sim.dynamics._tree import (
    CONTINUOUS,
    FREE_FLYER,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
)
from contact_sim.dynamics._vectors import (
    ZERO,
    add,
    cross,
    dot,
    put,
    quaternion_axes,
    rotated,
    scaled,
    sub,
    vec,
)
from contact_sim.errors import known_name
from contact_sim.solvers._jit import kernel

SEMI_IMPLICIT, MOMENTUM = range(2)
INTEGRATORS = ('semi_implicit', 'momentum')


def integrator_code(name: str) -> int:
    """Return the code of an integrator in the arrays; UnknownName for another name."""
    return INTEGRATORS.index(known_name('integrator', name, INTEGRATORS))


# Displacement of the configuration, and the velocity in the axes after it.


@kernel
def integrate_configuration(kind, q_index, v_index, pose, displacement, q, q_next):
    """Fill q⁺ (nq,), the configuration after a displacement (nv,) as in `pinocchio_increment`.

        free flyer   p⁺ = p + R Δp,   R⁺ = R exp θ
        spherical    R⁺ = R exp θ
        planar       (p, R)⁺ = (p, R) exp(Δp, θ) on SE(2), as Pinocchio's `integrate`
        others       q⁺ = q + Δ (continuous joints: the angle)

    Quaternions and the (cos, sin) of angles are normalised to first order, which takes a relative
    error e to 3/2 e².
    """
    for j in range(1, kind.shape[0]):
        i, k, what = q_index[j], v_index[j], kind[j]
        if what in (REVOLUTE, PRISMATIC, HELICAL):
            q_next[i] = q[i] + displacement[k]
        elif what == FREE_FLYER:
            x, y, z = quaternion_axes(q, i + 3)
            put(q_next, i, add(vec(q, i), rotated(x, y, z, vec(displacement, k))))
            turn_quaternion(q, i + 3, vec(displacement, k + 3), q_next)
        elif what == SPHERICAL:
            turn_quaternion(q, i, vec(displacement, k), q_next)
        elif what == CONTINUOUS:
            turn_angle(q, i, np.cos(displacement[k]), np.sin(displacement[k]), q_next)
        elif what == PLANAR:
            # (x, y, cos, sin) after exp(Δx, Δy, θ) on SE(2)
            dx, dy, theta = vec(displacement, k)
            a, b = rotation_gains(abs(theta))
            u, v = a * dx - b * theta * dy, b * theta * dx + a * dy
            q_next[i] = q[i] + q[i + 2] * u - q[i + 3] * v
            q_next[i + 1] = q[i + 1] + q[i + 3] * u + q[i + 2] * v
            turn_angle(q, i + 2, np.cos(theta), np.sin(theta), q_next)


@kernel
def turn_quaternion(q, i, theta, q_next):
    """Fill the quaternion (x, y, z, w) at i of q_next: the one of q after a rotation vector."""
    # quaternion (a, b, c, d) of exp θ
    half = 0.5 * np.sqrt(theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2])
    a, b, c = scaled(0.5 * np.sin(half) / half if half > 1e-8 else 0.5, theta)
    d = np.cos(half)
    x, y, z, w = q[i], q[i + 1], q[i + 2], q[i + 3]
    x, y, z, w = (
        w * a + x * d + y * c - z * b,
        w * b - x * c + y * d + z * a,
        w * c + x * b - y * a + z * d,
        w * d - x * a - y * b - z * c,
    )
    # first-order normalisation
    size = 0.5 * (3.0 - (x * x + y * y + z * z + w * w))
    put(q_next, i, scaled(size, (x, y, z)))
    q_next[i + 3] = size * w


@kernel
def turn_angle(q, i, c, s, q_next):
    """Fill (cos, sin) at i of q_next: those of q after the angle with cosine c and sine s."""
    x, y = c * q[i] - s * q[i + 1], s * q[i] + c * q[i + 1]
    size = 0.5 * (3.0 - (x * x + y * y))
    q_next[i], q_next[i + 1] = size * x, size * y


@kernel
def pinocchio_increment(displacement, free_flyer_v, increment):
    """Fill the tangent vector (nv,) with which Pinocchio's `integrate` makes a displacement.

    The displacement is Δp of free flyers in their axes before the motion, the rotation vector θ,
    and changes of the other joints, (nv,).
    """
    for k in range(displacement.shape[0]):
        increment[k] = displacement[k]
    for i in free_flyer_v:
        move, turn = vec(displacement, i), vec(displacement, i + 3)
        angle = np.sqrt(dot(turn, turn))
        if angle < 0.1:
            s = angle * angle
            c = 1.0 / 12.0 + s / 720.0 + s * s / 30240.0 + s**3 / 1209600.0
        else:
            c = (1.0 - 0.5 * angle / np.tan(0.5 * angle)) / (angle * angle)
        # ξ = V(θ)⁻¹ Δp = Δp − ½ θ × Δp + c θ × (θ × Δp)
        once = cross(turn, move)
        twice = cross(turn, once)
        put(increment, i, add(sub(move, scaled(0.5, once)), scaled(c, twice)))


@kernel
def velocity_in_new_axes(displacement, v, free_flyer_v, v_next):
    """Fill the velocity in the axes after a motion: v_lin ← exp(θ)ᵀ v_lin of free flyers."""
    for k in range(v.shape[0]):
        v_next[k] = v[k]
    for i in free_flyer_v:
        turn, x = vec(displacement, i + 3), vec(v, i)
        a, b = rotation_gains(np.sqrt(dot(turn, turn)))
        c = cross(turn, x)
        put(v_next, i, add(sub(x, scaled(a, c)), scaled(b, cross(turn, c))))


@kernel
def rotation_gains(angle):
    """Return a, b in exp(φ) = I + a [φ]× + b [φ]×², angle = |φ|."""
    half = 0.5 * angle
    sinc_half = np.sin(half) / half if half > 1e-8 else 1.0
    a = np.sin(angle) / angle if angle > 1e-8 else 1.0
    return a, 0.5 * sinc_half * sinc_half  # b = (1 − cos angle) / angle²


# Integrator `momentum`: the momentum of a free-flying base with everything on it, over a step.
#
# A step finds v⁺ with the mass matrix of its start. Its momentum there, that of the start and all
# impulses, is exact; the same v⁺ at q⁺ has another momentum. So the momentum is kept and the twist
# of the base is computed from it, for the joint speeds of v⁺:
#
#     P = m (ν + ω × r) + P_j,   L = I_c ω + L_j − r × P_j       r: centre of mass from the base


@kernel
def fill_next_momentum(M, armature, columns, dofs, motion, forces, h, flying, carried):
    """Fill the momentum after a step and where it moves the centre of mass; q has not moved.

    The base is a free flyer, its joint on the world; `dofs` are its first dof, one past the last
    of its tree, and the column of `M` of the first dof. `motion` is v, v⁺, ω × v_lin (axes of the
    start) and displacement, `forces` the nonlinear effects and gravity, `columns` those of the
    start. `flying`: only gravity moves the centre of mass, which is then on a parabola.
    `carried` becomes, in world axes: momentum [N s], angular momentum about the centre of mass of
    the start [N m s], the centre of mass after the step from the base after it [m], (9,).
    """
    i, end, first = dofs
    v, v_next, transport, displacement = motion
    nle, gravity = forces
    x, y, z = vec(columns[i], 0), vec(columns[i + 1], 0), vec(columns[i + 2], 0)
    g = vec(gravity, 0)
    m, r, inertia = base_inertia(M, armature, i, first)
    # momentum of v⁺ at the start, plus gravity (at the centre of mass) and nonlinear effects: the
    # impulses M (v⁺ − v − h ω × v_lin) + h nle, for any contact law and any damping
    drive = scaled(h, sub((dot(x, g), dot(y, g), dot(z, g)), vec(transport, i)))
    linear, angular = joint_momentum(M, i, first, v_next[:end])
    speed, omega = add(vec(v_next, i), drive), vec(v_next, i + 3)
    linear = add(linear, scaled(m, add(speed, cross(omega, r))))
    linear = add(linear, scaled(h, vec(nle, i)))
    xx, xy, xz, yy, yz, zz = inertia
    spin = dot((xx, xy, xz), omega), dot((xy, yy, yz), omega), dot((xz, yz, zz), omega)
    angular = add(angular, add(spin, scaled(m, cross(r, speed))))
    angular = add(angular, scaled(h, vec(nle, i + 3)))
    # displacement of the centre of mass: h P/m, in flight the mean of both ends
    travel = scaled(h / m, linear)
    if flying:
        before, _ = joint_momentum(M, i, first, v[:end])
        before = add(before, scaled(m, add(vec(v, i), cross(vec(v, i + 3), r))))
        travel = scaled(0.5, add(travel, scaled(h / m, before)))
    # to world axes
    put(carried, 0, rotated(x, y, z, linear))
    put(carried, 3, rotated(x, y, z, sub(angular, cross(r, linear))))
    put(carried, 6, rotated(x, y, z, add(r, sub(travel, vec(displacement, i)))))


@kernel
def fill_base_twist(M, armature, columns, dofs, carried, flying, v):
    """Fill the twist of the base in v (nv,) with which the robot has the momentum `carried` at q⁺.

    The centre of mass at q⁺ is not quite where its momentum moved it. In flight the base has to be
    moved by the returned vector [m], in its axes. Otherwise it stays, so that the gaps are those
    that the contact problem predicted, and the momentum is that about a fixed point, on which the
    impulses acted. Arguments as in `fill_next_momentum`, at q⁺.
    """
    i, end, first = dofs
    x, y, z = vec(columns[i], 0), vec(columns[i + 1], 0), vec(columns[i + 2], 0)
    # momentum and centre of mass in the axes of the base
    p, n, c = vec(carried, 0), vec(carried, 3), vec(carried, 6)
    linear, angular = (dot(x, p), dot(y, p), dot(z, p)), (dot(x, n), dot(y, n), dot(z, n))
    m, r, inertia = base_inertia(M, armature, i, first)
    miss = sub((dot(x, c), dot(y, c), dot(z, c)), r)
    if not flying:
        angular = add(angular, cross(miss, linear))
    # subtract the part of the joints, then solve for ω, with the inertia about the centre of mass,
    # and for ν
    of_joints, turn_of_joints = joint_momentum(M, i, first, v[:end])
    linear = sub(linear, of_joints)
    angular = add(sub(angular, turn_of_joints), cross(r, of_joints))
    rx, ry, rz = r
    xx, xy, xz, yy, yz, zz = inertia
    about_centre = (
        xx - m * (ry * ry + rz * rz), xy + m * rx * ry, xz + m * rx * rz,
        yy - m * (rx * rx + rz * rz), yz + m * ry * rz, zz - m * (rx * rx + ry * ry),
    )  # fmt: skip
    omega = solve_inertia(about_centre, angular)
    put(v, i, add(scaled(1.0 / m, linear), cross(r, omega)))
    put(v, i + 3, omega)
    return miss if flying else ZERO


@kernel
def base_inertia(M, armature, i, c):
    """Return mass, centre of mass and inertia of the base at dof i with everything on it.

    About the base and in its axes, from the mass matrix without `armature`, whose column c belongs
    to dof i; inertia as (xx, xy, xz, yy, yz, zz) [kg m²].
    """
    m = M[i, c] - armature[i]
    r = scaled(1.0 / m, (M[i + 5, c + 1], M[i + 3, c + 2], M[i + 4, c]))
    first, second, third = M[i + 3], M[i + 4], M[i + 5]
    inertia = (
        first[c + 3] - armature[i + 3], second[c + 3], third[c + 3],
        second[c + 4] - armature[i + 4], third[c + 4], third[c + 5] - armature[i + 5],
    )  # fmt: skip
    return m, r, inertia


@kernel
def joint_momentum(M, i, c, v):
    """Return linear and angular momentum about the base at dof i due to joints up to v's end."""
    linear = angular = ZERO
    for k in range(i + 6, v.shape[0]):
        row, speed = M[k], v[k]
        linear = add(linear, scaled(speed, vec(row, c)))
        angular = add(angular, scaled(speed, vec(row, c + 3)))
    return linear, angular


@kernel
def solve_inertia(inertia, b):
    """Return I⁻¹ b of a positive definite I given as xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = inertia
    yx, zx = xy / xx, xz / xx  # I = L D Lᵀ
    d, e = yy - yx * xy, yz - yx * xz
    zy = e / d
    y = b[1] - yx * b[0]
    z = (b[2] - zx * b[0] - zy * y) / (zz - zx * xz - zy * e)
    y = y / d - zy * z
    return b[0] / xx - yx * y - zx * z, y, z


# Runge-Kutta of 4th order on the configuration manifold. As in the semi-implicit step, the linear
# velocity of a free flyer is kept in fixed axes, those of the start of the step: with
# w = (exp(θ) v_lin, ω) in place of v
#
#     ṗ = w_lin,   θ̇ = ω + ½ θ × ω + 1/12 θ × (θ × ω),   ẇ_lin = exp(θ) (v̇_lin + ω × v_lin)
#
# θ is the rotation since the start. A body under a constant force moves without error at any spin;
# without the commutators the scheme would be of 2nd order on a rotating base.


@kernel
def fill_rates(v, w, acceleration, displacement, free_flyer_v, rate, w_rate):
    """Fill the rates of displacement and w at one stage, each (nv,).

    `v` and `acceleration` are Pinocchio's, `displacement` is Δp, θ and the changes of the other
    joints since the start.
    """
    transport_acceleration(v, free_flyer_v, w_rate)
    for k in range(v.shape[0]):
        rate[k] = w[k]
        w_rate[k] += acceleration[k]
    for i in free_flyer_v:
        turn = vec(displacement, i + 3)
        # ẇ_lin by exp(θ), θ̇ by its series to second order
        a, b = rotation_gains(np.sqrt(dot(turn, turn)))
        put(w_rate, i, turned_by(turn, a, b, vec(w_rate, i)))
        put(rate, i + 3, turned_by(turn, 0.5, 1.0 / 12.0, vec(rate, i + 3)))


@kernel
def turned_by(turn, a, b, x):
    """Return x + a θ × x + b θ × (θ × x)."""
    once = cross(turn, x)
    return add(x, add(scaled(a, once), scaled(b, cross(turn, once))))


@kernel
def next_stage(stage, dt, v_start, rates, w_rates, displacement, w):
    """Fill displacement and w of `stage` (1 to 3, counted from 0) from the stage before it."""
    share = dt if stage == 3 else 0.5 * dt
    for k in range(w.shape[0]):
        displacement[k] = share * rates[stage - 1, k]
        w[k] = v_start[k] + share * w_rates[stage - 1, k]


@kernel
def weighted_mean(stages, mean):
    """Fill the mean of the four stages, (k₁ + 2 k₂ + 2 k₃ + k₄)/6; `stages` (4, n)."""
    for k in range(mean.shape[0]):
        mean[k] = (stages[0, k] + 2.0 * stages[1, k] + 2.0 * stages[2, k] + stages[3, k]) / 6.0
