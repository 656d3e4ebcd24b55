"""Runge-Kutta of 4th order on the configuration manifold.

As in the semi-implicit step, the linear velocity of a free flyer is kept in fixed axes, those of
the start of the step (theory 2.0): with w = (exp(θ) v_lin, ω) in place of v

    ṗ = w_lin,   θ̇ = ω + ½ θ × ω + 1/12 θ × (θ × ω),   ẇ_lin = exp(θ) (v̇_lin + ω × v_lin)

θ is the rotation since the start. A body under a constant force moves without error, whatever its
spin; without the commutators the scheme would be of 2nd order on a turning base.
"""

from __future__ import annotations

import numpy as np

from contact_sim.dynamics.free_motion import transport_acceleration
from contact_sim.dynamics.integrate import rotation_gains
from contact_sim.solvers.jit import kernel


@kernel
def fill_rates(v, w, acceleration, displacement, free_flyer_v, rate, w_rate):
    """Fill the rates of displacement and w at one stage.

    Args:
        v: Pinocchio's velocity at the stage, shape (nv,).
        w: the same with linear velocities in the axes of the start, shape (nv,).
        acceleration: Pinocchio's v̇, shape (nv,).
        displacement: Δp, θ and changes of the other joints since the start, shape (nv,).
        free_flyer_v: first dof of each free flyer, shape (n,).
        rate: out, rate of the displacement, shape (nv,).
        w_rate: out, ẇ, shape (nv,).
    """
    transport_acceleration(v, free_flyer_v, w_rate)
    for k in range(v.shape[0]):
        rate[k] = w[k]
        w_rate[k] += acceleration[k]
    for i in free_flyer_v:
        x, y, z = displacement[i + 3], displacement[i + 4], displacement[i + 5]
        for j in (i, i + 3):
            out = w_rate if j == i else rate
            a, b = 0.5, 1.0 / 12.0
            if j == i:
                a, b = rotation_gains(np.sqrt(x * x + y * y + z * z))
            p, q, r = out[j], out[j + 1], out[j + 2]
            cx, cy, cz = y * r - z * q, z * p - x * r, x * q - y * p
            out[j] += a * cx + b * (y * cz - z * cy)
            out[j + 1] += a * cy + b * (z * cx - x * cz)
            out[j + 2] += a * cz + b * (x * cy - y * cx)


@kernel
def next_stage(stage, dt, v_start, rates, w_rates, displacement, w):
    """Fill displacement and w of `stage` (1 to 3) from the stage before it.

    Args:
        stage: which of the four, counted from 0.
        dt: length of the step [s].
        v_start: velocity at the start, shape (nv,).
        rates: rates of the displacement at the stages, shape (4, nv).
        w_rates: ẇ of the stages, shape (4, nv).
        displacement: out, shape (nv,).
        w: out, shape (nv,).
    """
    share = dt if stage == 3 else 0.5 * dt
    for k in range(w.shape[0]):
        displacement[k] = share * rates[stage - 1, k]
        w[k] = v_start[k] + share * w_rates[stage - 1, k]


@kernel
def weighted_mean(stages, mean):
    """Fill the mean of the four stages, (k₁ + 2 k₂ + 2 k₃ + k₄)/6; `stages` (4, n)."""
    for k in range(mean.shape[0]):
        mean[k] = (stages[0, k] + 2.0 * stages[1, k] + 2.0 * stages[2, k] + stages[3, k]) / 6.0
