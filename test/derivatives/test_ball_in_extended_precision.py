"""A ball on the ground, solved anew in extended precision: derivatives to 1e-10.

    v_n⁺ = −β φ/h,   λ_n = m (v_n⁺ − v_n + g h),   u = v_t + ω × p,   p = −(r + φ/2) n
    slide  λ_t = −μ λ_n u/|u|        stick  λ_t = −u/(1/m + |p|²/I)

The result is in the axes of the ball after the step: v_lin⁺ turned by exp(−h ω⁺).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import contact_sim

Real = np.longdouble
RADIUS, MASS, DEPTH, BETA = 0.1, 1.3, 1e-3, 0.2
NAMES = ('vx', 'vy', 'vz', 'wx', 'wy', 'wz', 'z', 'friction', 'time_step')


def exact_step(values: Any) -> Any:
    """Return (v_lin, ω) after a step in the axes of the ball, `values` in the order of NAMES."""
    x, y, z, wx, wy, wz, height, mu, h = values
    m, r, gap = Real(MASS), Real(RADIUS), height - Real(RADIUS)
    inertia, arm = Real(2) / 5 * m * r * r, r + gap / 2
    up = -Real(BETA) * gap / h
    normal = m * (up - z + Real(9.81) * h)
    u, easy = np.array([x - arm * wy, y + arm * wx]), 1 / m + arm * arm / inertia
    share = min(mu * normal / np.sqrt(u @ u), 1 / easy)
    fx, fy = -share * u
    linear = np.array([x + fx / m, y + fy / m, up])
    angular = np.array([wx + arm * fy / inertia, wy - arm * fx / inertia, wz])
    # exp(−θ) v, θ = h ω⁺
    theta = -h * angular
    angle = np.sqrt(theta @ theta)
    once = np.cross(theta, linear)
    sine, cosine = np.sin(angle) / angle, 2 * np.sin(angle / 2) ** 2 / angle**2
    return np.concatenate([linear + sine * once + cosine * np.cross(theta, once), angular])


def exact_derivatives(values: list[float]) -> Any:
    """Return ∂(v⁺)/∂values, shape (6, 9), by differences of fourth order in extended precision."""
    base, columns = np.array(values, dtype=Real), []
    for k in range(len(base)):
        unit = np.zeros(len(base), dtype=Real)
        unit[k] = max(abs(base[k]), Real(1e-3)) * Real(1e-4)
        near, far = (exact_step(base + n * unit) - exact_step(base - n * unit) for n in (1, 2))
        columns.append((8 * near - far) / (12 * unit[k]))
    return np.array(columns).T.astype(float)


@pytest.mark.parametrize(('speed', 'mode'), [(1.0, 2), (1e-4, 1)])
def test_derivatives_of_a_ball_are_exact(speed: float, mode: int) -> None:
    sim = contact_sim.Simulator(contact_sim.loose_ball(RADIUS, MASS), friction=0.4)
    v = speed * np.array([1.0, 0.5, -0.2, 0.7, -0.4, 0.3])
    q = sim.q.copy()
    q[2], q[3:7] = RADIUS - DEPTH, (0.0, 0.0, 0.0, 1.0)
    sim.reset(q, v)
    derivatives = sim.derivatives([])
    assert derivatives.modes.tolist().count(mode) == 1
    exact = exact_derivatives([*v, RADIUS - DEPTH, 0.4, 1e-3])
    found = np.column_stack([
        derivatives.velocity.v, derivatives.velocity.q[:, 2],
        derivatives.with_respect_to('friction').velocity.sum(axis=1),
        derivatives.with_respect_to('time_step').velocity[:, 0],
    ])  # fmt: skip
    scale = np.maximum(np.abs(exact).max(axis=0), 1e-6)
    assert (np.abs(found - exact).max(axis=0) < 1e-10 * scale + 1e-13).all()
