"""Semi-implicit update of the configuration with the base velocity kept in the world frame.

    p⁺ = p + h R v_lin,   R⁺ = R exp(h ω),   v_lin⁺ = exp(h ω)ᵀ v_lin          (theory 2.0)

Pinocchio's `integrate` moves a free flyer by exp6, p⁺ = p + R V(h ω) ξ_lin; with
ξ_lin = V(h ω)⁻¹ h v_lin it does exactly the update above.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics.tree import (
    CONTINUOUS,
    FREE_FLYER,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
)
from contact_sim.dynamics.vectors import (
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
from contact_sim.solvers.jit import kernel


@kernel
def inverse_left_jacobian_gain(angle):
    """Return c in V(φ)⁻¹ = I − ½ [φ]× + c [φ]×², angle = |φ|."""
    if angle < 0.1:
        square = angle * angle
        return 1.0 / 12.0 + square / 720.0 + square * square / 30240.0 + square**3 / 1209600.0
    return (1.0 - 0.5 * angle / np.tan(0.5 * angle)) / (angle * angle)


@kernel
def move_base(displacement, v, free_flyer_v, increment, v_next):
    """Fill the increment for Pinocchio's `integrate` and the velocity in the axes after a motion.

    Args:
        displacement: Δp of free flyers in their axes before the motion, rotation vector θ, and
            changes of the other joints, shape (nv,).
        v: velocity after the motion in the axes before it, shape (nv,).
        free_flyer_v: first dof of each free flyer, shape (n,).
        increment: out, tangent vector with q⁺ = q ⊕ increment, shape (nv,).
        v_next: out, Pinocchio's velocity after the motion, shape (nv,).
    """
    for k in range(v.shape[0]):
        increment[k] = displacement[k]
        v_next[k] = v[k]
    for i in free_flyer_v:
        wx, wy, wz = displacement[i + 3], displacement[i + 4], displacement[i + 5]
        angle = np.sqrt(wx * wx + wy * wy + wz * wz)
        c = inverse_left_jacobian_gain(angle)
        a, b = rotation_gains(angle)
        x, y, z = displacement[i], displacement[i + 1], displacement[i + 2]
        cx, cy, cz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
        dx, dy, dz = wy * cz - wz * cy, wz * cx - wx * cz, wx * cy - wy * cx
        increment[i] = x - 0.5 * cx + c * dx
        increment[i + 1] = y - 0.5 * cy + c * dy
        increment[i + 2] = z - 0.5 * cz + c * dz
        x, y, z = v[i], v[i + 1], v[i + 2]
        cx, cy, cz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
        dx, dy, dz = wy * cz - wz * cy, wz * cx - wx * cz, wx * cy - wy * cx
        v_next[i] = x - a * cx + b * dx
        v_next[i + 1] = y - a * cy + b * dy
        v_next[i + 2] = z - a * cz + b * dz


@kernel
def rotation_gains(angle):
    """Return a, b in exp(φ) = I + a [φ]× + b [φ]×², angle = |φ|."""
    half = 0.5 * angle
    sinc_half = np.sin(half) / half if half > 1e-8 else 1.0
    a = np.sin(angle) / angle if angle > 1e-8 else 1.0
    return a, 0.5 * sinc_half * sinc_half  # b = (1 − cos angle) / angle²


@kernel
def velocity_in_new_axes(displacement, v, free_flyer_v, v_next):
    """Fill the velocity in the axes after a motion: v_lin ← exp(θ)ᵀ v_lin of free flyers.

    Args:
        displacement: of the motion, rotation vectors θ of free flyers among them, shape (nv,).
        v: velocity after the motion in the axes before it, shape (nv,).
        free_flyer_v: first dof of each free flyer, shape (n,).
        v_next: out, Pinocchio's velocity after the motion, shape (nv,).
    """
    for k in range(v.shape[0]):
        v_next[k] = v[k]
    for i in free_flyer_v:
        turn, x = vec(displacement, i + 3), vec(v, i)
        a, b = rotation_gains(np.sqrt(dot(turn, turn)))
        c = cross(turn, x)
        put(v_next, i, add(sub(x, scaled(a, c)), scaled(b, cross(turn, c))))


@kernel
def step_increment(v, free_flyer_v, h, increment, v_next):
    """Fill the increment of a step with constant v and the velocity in the axes after it.

    Args:
        v: velocity after the step in the axes before it, shape (nv,).
        free_flyer_v: first dof of each free flyer, shape (n,).
        h: time step [s].
        increment: out, tangent vector with q⁺ = q ⊕ increment, shape (nv,).
        v_next: out, Pinocchio's velocity after the step, shape (nv,).
    """
    move_base(h * v, v, free_flyer_v, increment, v_next)


@kernel
def move(kind, q_index, v_index, pose, displacement, q, q_next):
    """Fill q⁺, the configuration after a displacement.

        free flyer   p⁺ = p + R Δp,   R⁺ = R exp θ
        spherical    R⁺ = R exp θ
        planar       (p, R)⁺ = (p, R) exp(Δp, θ) on SE(2), as Pinocchio's `integrate`
        others       q⁺ = q + Δ (continuous joints: the angle)

    Quaternions and the (cos, sin) of angles are scaled back to unit length to first order, which
    takes a relative error e to 3/2 e².

    Args:
        kind: `Tree.kind`, shape (nb,).
        q_index: `Tree.q_index`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        pose: placements in world at q, of `place`; not read, as free flyers may hang on another
            body, shape (nb, 12).
        displacement: Δp in the axes of the body before the motion, rotation vector θ, and changes
            of the other joints, shape (nv,).
        q: configuration before, shape (nq,).
        q_next: out, configuration after, shape (nq,).
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
            move_planar(q, i, vec(displacement, k), q_next)


@kernel
def turn_quaternion(q, i, theta, q_next):
    """Fill the quaternion (x, y, z, w) at i of q_next: the one of q after a rotation vector."""
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
def move_planar(q, i, delta, q_next):
    """Fill x, y, cos, sin at i of q_next: those of q after exp(Δx, Δy, θ) on SE(2)."""
    x, y, theta = delta
    a, b = rotation_gains(abs(theta))
    u, v = a * x - b * theta * y, b * theta * x + a * y
    q_next[i] = q[i] + q[i + 2] * u - q[i + 3] * v
    q_next[i + 1] = q[i + 1] + q[i + 3] * u + q[i + 2] * v
    turn_angle(q, i + 2, np.cos(theta), np.sin(theta), q_next)
