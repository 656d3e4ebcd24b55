"""Forces of springs, dampers and regularised friction, and their derivatives to the velocity.

The laws are those of contact_models/compliant.py; `material` holds their numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.jit import kernel

LINEAR, KELVIN_VOIGT, UNCLAMPED, HUNT_CROSSLEY = range(4)
PIECEWISE, TANH, STRIBECK, ANCHORED = range(4)
(
    STIFFNESS, EXPONENT, DISSIPATION, DAMPING_RATIO, SLIP_SPEED, STATIC_RATIO,
    TANGENTIAL_STIFFNESS, TANGENTIAL_DAMPING_RATIO, SECANT_STIFFNESS,
) = range(9)  # fmt: skip
"""Places of the numbers in `material`, which are CompliantParameters."""


class Springs(NamedTuple):
    """The laws of a compliant ground."""

    normal_law: int
    """LINEAR, KELVIN_VOIGT, UNCLAMPED or HUNT_CROSSLEY."""
    friction_law: int
    """PIECEWISE, TANH, STRIBECK or ANCHORED."""
    material: Any
    """Numbers of the laws, shape (9,)."""
    time_step: float
    """h [s]."""
    ahead: float
    """h if the gap at the end of the step counts, 0 if that at its start does [s]."""


class Press(NamedTuple):
    """One pressed contact: what friction depends on besides the slip velocity."""

    mu: float
    """Friction coefficient [-]."""
    force: float
    """Normal force f [N]."""
    rate: float
    """Its derivative to the normal velocity [N s/m]."""


class LinearSprings(NamedTuple):
    """The springs and dampers of every contact for small motions about the wanted depth."""

    stiffness: float
    """k along the normal [N/m]."""
    damping_ratio: float
    """ζ along the normal, d = 2 ζ √(k/G_nn) [-]."""
    damping: float
    """d along the normal besides [N s/m]."""
    tangential_stiffness: float
    """k of the anchor [N/m]; 0 without one."""
    tangential_damping_ratio: float
    """ζ of the anchor, d = 2 ζ √(k/G_tt) [-]."""


@kernel
def damper(ratio, k, G):
    """Return d = 2 ζ √(k/G) [N s/m], 0 along a row in which nothing can move."""
    return 2.0 * ratio * np.sqrt(k / G) if G > 0.0 else 0.0


@kernel
def stiffness_ratio(G, nc, h, springs):
    """Return √λ_max(G (h² K + 2 h D)) of the first `nc` contacts: h ω_max without damping.

    The explicit step u⁺ = u − h G (K x + D u), x⁺ = x + h u⁺ is stable below 2 and only there.

    Args:
        G: Delassus matrix [1/kg], (3 nc, 3 nc) or more.
        nc: contacts.
        h: time step [s].
        springs: `LinearSprings`; K and D are their stiffness and damping, diagonal.
    """
    n = 3 * nc
    if nc == 0:
        return 0.0
    root, A = np.empty(n), np.empty((n, n))
    for i in range(nc):
        r = 3 * i
        k, k_t = springs.stiffness, springs.tangential_stiffness
        d = damper(springs.damping_ratio, k, G[r + 2, r + 2]) + springs.damping
        G_tt = 0.5 * (G[r, r] + G[r + 1, r + 1])
        d_t = damper(springs.tangential_damping_ratio, k_t, G_tt)
        root[r] = root[r + 1] = np.sqrt(h * (h * k_t + 2.0 * d_t))
        root[r + 2] = np.sqrt(h * (h * k + 2.0 * d))
    for a in range(n):
        for b in range(n):
            A[a, b] = root[a] * G[a, b] * root[b]
    return np.sqrt(max(np.linalg.eigvalsh(A)[n - 1], 0.0))


@kernel
def normal_force(law, x, speed, material, G_nn):
    """Return f_n and its derivatives to the penetration x and to its rate ẋ = `speed`."""
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    k = material[STIFFNESS]
    if law == LINEAR:
        return k * x, k, 0.0
    if law in (KELVIN_VOIGT, UNCLAMPED):
        damping = damper(material[DAMPING_RATIO], k, G_nn)
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
def regularised_friction(springs, press, u1, u2, r, impulse, slope):
    """Fill the tangential rows of −h μ(s) f u_t/s at row `r` and their derivatives to u."""
    mu, f, d_f = press
    h, v_s = springs.time_step, springs.material[SLIP_SPEED]
    s = np.sqrt(u1 * u1 + u2 * u2)
    m, d_m = friction_coefficient(springs.friction_law, s, mu, v_s, springs.material[STATIC_RATIO])
    over = m / s if s > 1e-12 * v_s else d_m  # μ(s)/s
    d1, d2 = (u1 / s, u2 / s) if s > 0.0 else (0.0, 0.0)
    impulse[r], impulse[r + 1] = -h * over * f * u1, -h * over * f * u2
    along, across = h * f * d_m, h * f * over
    slope[r, 0] = -(along * d1 * d1 + across * (1.0 - d1 * d1))
    slope[r, 1] = slope[r + 1, 0] = -(along - across) * d1 * d2
    slope[r + 1, 1] = -(along * d2 * d2 + across * (1.0 - d2 * d2))
    slope[r, 2], slope[r + 1, 2] = -h * over * u1 * d_f, -h * over * u2 * d_f


@kernel
def anchored_friction(springs, press, u1, u2, G_tt, z, r, impulse, slope):
    """Fill the same rows with the spring and damper to the anchor, cut at μ f.

    `z` (4,) is the deflection at the start of the step.
    """
    mu, f, d_f = press
    h, k = springs.time_step, springs.material[TANGENTIAL_STIFFNESS]
    damping = damper(springs.material[TANGENTIAL_DAMPING_RATIO], k, G_tt)
    gain = k * springs.ahead + damping
    t1, t2 = k * z[0] + gain * u1, k * z[1] + gain * u2
    size, bound = np.sqrt(t1 * t1 + t2 * t2), mu * f
    slope[r, :] = 0.0
    slope[r + 1, :] = 0.0
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
    """Fill the next anchors, z + h u_t⁺ with k_t |z| ≤ μ f_n; zero where nothing presses."""
    memory_next[:] = 0.0
    for i in range(mu.shape[0]):
        r, longest = 3 * i, mu[i] * max(impulse[3 * i + 2], 0.0) / (h * stiffness)
        z1, z2 = memory[i, 0] + h * u_next[r], memory[i, 1] + h * u_next[r + 1]
        size = np.sqrt(z1 * z1 + z2 * z2)
        share = longest / size if size > longest else 1.0
        memory_next[i, 0], memory_next[i, 1] = share * z1, share * z2


@kernel
def contact_forces(rows, u, gap, memory, springs, held, holding, impulse, slope):
    """Fill h f of the contacts and its derivative to u.

    Args:
        rows: the problem, n rows of nc contacts and ns scalar rows; `g` plays no part.
        u: velocities of the rows [m/s], shape (n,).
        gap: φ at the start of the step [m], shape (nc,).
        memory: deflection of the anchors [m] in the first two columns, shape (nc, 4).
        springs: the laws.
        held: normal forces [N], shape (nc,), not negative.
        holding: whether friction counts on `held`, or on the normal forces of the moment.
        impulse: out [N s], the first 3 nc rows.
        slope: out, ∂(h f)/∂u, a 3x3 block per contact, shape (n, 3).
    """
    G, h, ahead = rows.delassus, springs.time_step, springs.ahead
    for i in range(rows.friction.shape[0]):
        r = 3 * i
        u1, u2, un = u[r], u[r + 1], u[r + 2]
        f, f_x, f_rate = normal_force(
            springs.normal_law, -(gap[i] + ahead * un), -un, springs.material, G[r + 2, r + 2]
        )
        d_f = -(ahead * f_x + f_rate)
        impulse[r + 2] = h * f
        slope[r + 2, 0] = slope[r + 2, 1] = 0.0
        slope[r + 2, 2] = h * d_f
        if holding:
            f, d_f = held[i], 0.0
        elif f <= 0.0:
            f = d_f = 0.0
        press = Press(rows.friction[i], f, d_f)
        if springs.friction_law == ANCHORED:
            G_tt = 0.5 * (G[r, r] + G[r + 1, r + 1])
            anchored_friction(springs, press, u1, u2, G_tt, memory[i], r, impulse, slope)
        else:
            regularised_friction(springs, press, u1, u2, r, impulse, slope)


@kernel
def interval_forces(rows, u, gap, springs, impulse, slope):
    """Fill h f of the scalar rows and its derivative to u, column 0 of their rows in `slope`.

    A bounded interval is dry friction, regularised below v_s [rad/s] like that of the ground. An
    interval with an infinite bound is a spring and a damper on the position error of the row,
    f = −(k φ + d u) with d = 2 ζ √(k/G_kk), cut at the bounds: a limit with φ ≥ 0 inside pushes
    only, with [0, inf) or (−inf, 0], and a bilateral row pushes and pulls. The damper acts from
    φ = −(d/k) u on, a little ahead of the limit: so the force has no jump, and the implicit step
    always an answer.

    Args:
        rows: the problem, n rows of nc contacts and ns scalar rows; `g` plays no part.
        u: velocities of the rows [rad/s], shape (n,).
        gap: position error φ of the scalar rows at the start of the step [rad], shape (ns,).
        springs: the laws; k is the secant stiffness [N m/rad], ζ the damping ratio.
        impulse: out [N m s], the last ns rows.
        slope: out, shape (n, 3).
    """
    first, h = 3 * rows.friction.shape[0], springs.time_step
    v_s, k = springs.material[SLIP_SPEED], springs.material[SECANT_STIFFNESS]
    for s in range(rows.lower.shape[0]):
        r, lower, upper = first + s, rows.lower[s], rows.upper[s]
        slope[r, 1] = slope[r, 2] = 0.0
        if np.isfinite(lower) and np.isfinite(upper):
            value, size = np.tanh(u[r] / v_s), 0.5 * (upper - lower)
            impulse[r] = 0.5 * (upper + lower) - size * value
            slope[r, 0] = -size * (1.0 - value * value) / v_s
            continue
        damping = damper(springs.material[DAMPING_RATIO], k, rows.delassus[r, r])
        gain = k * springs.ahead + damping
        free = -h * (k * gap[s] + gain * u[r])
        impulse[r] = min(max(free, lower), upper)
        slope[r, 0] = -h * gain if lower < free < upper else 0.0
