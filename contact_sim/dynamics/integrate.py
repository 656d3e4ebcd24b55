"""Semi-implicit update of the configuration with the base velocity kept in the world frame.

    p⁺ = p + h R v_lin,   R⁺ = R exp(h ω),   v_lin⁺ = exp(h ω)ᵀ v_lin          (physics.md 2.0)

Pinocchio's `integrate` moves a free flyer by exp6, p⁺ = p + R V(h ω) ξ_lin; with
ξ_lin = V(h ω)⁻¹ h v_lin it does exactly the update above.
"""

from __future__ import annotations

import numpy as np

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
