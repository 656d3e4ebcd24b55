"""Forces of springs, dampers and regularised friction, and their derivatives to the velocity.

The laws are those of contact_models/compliant.py; `material` holds their numbers.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel

LINEAR, KELVIN_VOIGT, UNCLAMPED, HUNT_CROSSLEY = range(4)
PIECEWISE, TANH, STRIBECK, ANCHORED = range(4)
(
    STIFFNESS, EXPONENT, DISSIPATION, DAMPING_RATIO, SLIP_SPEED, STATIC_RATIO,
    TANGENTIAL_STIFFNESS, TANGENTIAL_DAMPING_RATIO, SECANT_STIFFNESS,
) = range(9)  # fmt: skip
"""Places of the numbers in `material`, which are CompliantParameters."""


@kernel
def stiffness_ratio(G, nc, h, stiffness):
    """Return h ω_max, ω_max² = k λ_max(G_nn), of the first `nc` contacts."""
    if nc == 0:
        return 0.0
    G_nn = np.empty((nc, nc))
    for i in range(nc):
        for j in range(nc):
            G_nn[i, j] = G[3 * i + 2, 3 * j + 2]
    return h * np.sqrt(stiffness * np.linalg.eigvalsh(G_nn)[nc - 1])


@kernel
def normal_force(law, x, speed, material, G_nn):
    """Return f_n and its derivatives to the penetration x and to its rate ẋ = `speed`."""
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    k = material[STIFFNESS]
    if law == LINEAR:
        return k * x, k, 0.0
    if law in (KELVIN_VOIGT, UNCLAMPED):
        damping = 2.0 * material[DAMPING_RATIO] * np.sqrt(k / G_nn)
        force = k * x + damping * speed
        return (force, k, damping) if force > 0.0 or law == UNCLAMPED else (0.0, 0.0, 0.0)
    exponent, dissipation = material[EXPONENT], material[DISSIPATION]
    spring, viscous = k * x**exponent, 1.0 + dissipation * speed
    if viscous <= 0.0:
        return 0.0, 0.0, 0.0
    return spring * viscous, exponent * spring / x * viscous, spring * dissipation


@kernel
def friction_coefficient(law, s, mu, v_s, ratio):
    """Return μ(s) and dμ/ds at slip speed s."""
    x = s / v_s
    if law == PIECEWISE:
        return (mu * x, mu / v_s) if x < 1.0 else (mu, 0.0)
    if law == TANH:
        value = np.tanh(x)
        return mu * value, mu * (1.0 - value * value) / v_s
    static = ratio * mu
    if x < 1.0:
        return static * x * (2.0 - x), 2.0 * static * (1.0 - x) / v_s
    if x < 3.0:
        y = 0.5 * (x - 1.0)
        fall = y * y * (3.0 - 2.0 * y)
        return static - (static - mu) * fall, -(static - mu) * 3.0 * y * (1.0 - y) / v_s
    return mu, 0.0


@kernel
def regularised_friction(law, u1, u2, mu, f, d_f, h, material, r, impulse, slope):
    """Fill the tangential rows of −h μ(s) f u_t/s at row `r` and their derivatives to u."""
    v_s = material[SLIP_SPEED]
    s = np.sqrt(u1 * u1 + u2 * u2)
    m, d_m = friction_coefficient(law, s, mu, v_s, material[STATIC_RATIO])
    over = m / s if s > 1e-12 * v_s else d_m  # μ(s)/s
    d1, d2 = (u1 / s, u2 / s) if s > 0.0 else (0.0, 0.0)
    impulse[r], impulse[r + 1] = -h * over * f * u1, -h * over * f * u2
    along, across = h * f * d_m, h * f * over
    slope[r, 0] = -(along * d1 * d1 + across * (1.0 - d1 * d1))
    slope[r, 1] = slope[r + 1, 0] = -(along - across) * d1 * d2
    slope[r + 1, 1] = -(along * d2 * d2 + across * (1.0 - d2 * d2))
    slope[r, 2], slope[r + 1, 2] = -h * over * u1 * d_f, -h * over * u2 * d_f


@kernel
def anchored_friction(u1, u2, mu, f, d_f, h, ahead, material, G_tt, z, r, impulse, slope):
    """Fill the same rows with the spring and damper to the anchor, cut at μ f.

    `ahead` is h if the deflection at the end of the step counts; `z` (4,) is the one at its start.
    """
    k = material[TANGENTIAL_STIFFNESS]
    damping = 2.0 * material[TANGENTIAL_DAMPING_RATIO] * np.sqrt(k / G_tt)
    gain = k * ahead + damping
    t1, t2 = k * z[0] + gain * u1, k * z[1] + gain * u2
    size, bound = np.sqrt(t1 * t1 + t2 * t2), mu * f
    slope[r : r + 2] = 0.0
    if size <= bound:
        impulse[r], impulse[r + 1] = -h * t1, -h * t2
        slope[r, 0] = slope[r + 1, 1] = -h * gain
        return
    d1, d2 = t1 / size, t2 / size
    impulse[r], impulse[r + 1] = -h * bound * d1, -h * bound * d2
    turn = h * bound * gain / size
    slope[r, 0], slope[r + 1, 1] = -turn * d2 * d2, -turn * d1 * d1
    slope[r, 1] = slope[r + 1, 0] = turn * d1 * d2
    slope[r, 2], slope[r + 1, 2] = -h * mu * d1 * d_f, -h * mu * d2 * d_f


@kernel
def next_deflection(u_next, mu, impulse, h, stiffness, memory, memory_next):
    """Z ← z + h u_t⁺, dragged along where k_t |z| exceeds μ f_n; zero where nothing presses."""
    memory_next[:] = 0.0
    for i in range(mu.shape[0]):
        r, longest = 3 * i, mu[i] * max(impulse[3 * i + 2], 0.0) / (h * stiffness)
        z1, z2 = memory[i, 0] + h * u_next[r], memory[i, 1] + h * u_next[r + 1]
        size = np.sqrt(z1 * z1 + z2 * z2)
        share = longest / size if size > longest else 1.0
        memory_next[i, 0], memory_next[i, 1] = share * z1, share * z2


@kernel
def contact_forces(
    G, u, mu, gap, memory, h, normal_law, friction_law, material, implicit, impulse, slope
):
    """Fill h f and its derivative to u, a 3x3 block per contact in `slope` (n, 3)."""
    ahead = h if implicit else 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        u1, u2, un = u[r], u[r + 1], u[r + 2]
        f, f_x, f_rate = normal_force(
            normal_law, -(gap[i] + ahead * un), -un, material, G[r + 2, r + 2]
        )
        d_f = -(ahead * f_x + f_rate)
        impulse[r + 2] = h * f
        slope[r + 2, 0] = slope[r + 2, 1] = 0.0
        slope[r + 2, 2] = h * d_f
        if f <= 0.0:
            f = d_f = 0.0
        if friction_law == ANCHORED:
            G_tt = 0.5 * (G[r, r] + G[r + 1, r + 1])
            anchored_friction(
                u1, u2, mu[i], f, d_f, h, ahead, material, G_tt, memory[i], r, impulse, slope
            )
        else:
            regularised_friction(
                friction_law, u1, u2, mu[i], f, d_f, h, material, r, impulse, slope
            )


@kernel
def joint_friction(u, lower, upper, nc, v_s, impulse, slope):
    """Fill the dry-friction rows: the box, regularised below v_s [rad/s] like the ground."""
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        value = np.tanh(u[r] / v_s)
        size = 0.5 * (upper[k] - lower[k])
        impulse[r] = 0.5 * (upper[k] + lower[k]) - size * value
        slope[r, 0] = -size * (1.0 - value * value) / v_s
