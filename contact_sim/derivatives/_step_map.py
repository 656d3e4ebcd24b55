"""From v⁺ in the axes of the start to the result of the step: q⁺ = q ⊕ h v⁺, v in the axes of q⁺.

Free flyers move by Δp = h v_lin in their axes and turn by θ = h ω. With E = exp(−θ) and the right
Jacobian J_r(θ) of the rotation group, the tangents (of q ⊕ δ) and the new linear velocity obey

    δp⁺ = E (δp + δθ × Δp + dΔp),   δθ⁺ = E δθ + J_r dθ,   dv_lin⁺ = E dv_lin + v_lin⁺ × J_r dθ

Spherical joints turn likewise, planar ones move by exp on SE(2); all others add up.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, vector
from contact_sim.dynamics._integration import rotation_gains
from contact_sim.dynamics._tree import FREE_FLYER, PLANAR, SPHERICAL
from contact_sim.dynamics._vectors import add, cross, scaled, vec
from contact_sim.solvers._jit import kernel

SERIES = 24
"""Terms of the series of exp and its Jacobian on SE(2): enough for turns of two radians."""


@kernel
def jacobian_gain(angle, a):
    """Return (1 − a)/angle², a = sin(angle)/angle."""
    s = angle * angle
    if angle < 0.2:
        return 1.0 / 6.0 - s / 120.0 + s * s / 5040.0 - s**3 / 362880.0 + s**4 / 39916800.0
    return (1.0 - a) / s


@kernel
def gains_of(theta):
    """Return a, b, c of exp(θ) = 1 + a [θ]× + b [θ]×² and J_r(θ) = 1 − b [θ]× + c [θ]×²."""
    angle = np.sqrt(theta[0] ** 2 + theta[1] ** 2 + theta[2] ** 2)
    a, b = rotation_gains(angle)
    return a, b, jacobian_gain(angle, a)


@kernel
def turned_back(theta, gains, x):
    """Return exp(−θ) x, `gains` those of θ."""
    once = cross(theta, x)
    return add(x, add(scaled(-gains[0], once), scaled(gains[1], cross(theta, once))))


@kernel
def right_jacobian(theta, gains, x):
    """Return J_r(θ) x, `gains` those of θ."""
    once = cross(theta, x)
    return add(x, add(scaled(-gains[1], once), scaled(gains[2], cross(theta, once))))


@kernel
def unit_vector(e):
    """Return the unit vector of axis e, zero for other numbers."""
    return 1.0 if e == 0 else 0.0, 1.0 if e == 1 else 0.0, 1.0 if e == 2 else 0.0


@kernel
def column(a, k, c):
    """Return a[k, c], a[k + 1, c], a[k + 2, c]."""
    return a[k, c], a[k + 1, c], a[k + 2, c]


@kernel
def put_column(a, k, c, x):
    """Write a 3-vector into column c."""
    a[k, c], a[k + 1, c], a[k + 2, c] = x


@kernel
def map_columns(data, h, change, own, q_first, velocity, configuration):
    """Fill the results of dv⁺, `change` (nv, m), for the inputs that are its columns.

    `q_first` columns from 0 on are those of the tangent of q; `own` (nv, m) is dΔ − h dv⁺, what
    else changes the displacement.
    """
    nv, m = change.shape
    for k in range(nv):
        for c in range(m):
            velocity[k, c] = change[k, c]
            configuration[k, c] = h * change[k, c] + own[k, c]
        if k < q_first:
            configuration[k, k] += 1.0
    kind, v_index = integers(data, f.KIND), integers(data, f.V_INDEX)
    for j in range(1, kind.shape[0]):
        if kind[j] == FREE_FLYER:
            map_flyer(data, h, v_index[j], q_first, change, own, velocity, configuration)
        elif kind[j] == SPHERICAL:
            map_turn(data, h, v_index[j], q_first, change, own, configuration)
        elif kind[j] == PLANAR:
            map_planar(data, h, v_index[j], q_first, configuration)


@kernel
def map_flyer(data, h, k, q_first, change, own, velocity, configuration):
    """Fill the rows of a free flyer at dof k."""
    v_next = vector(data, f.V_NEXT)
    move, theta = scaled(h, vec(v_next, k)), scaled(h, vec(v_next, k + 3))
    gains = gains_of(theta)
    out = turned_back(theta, gains, vec(v_next, k))
    for c in range(change.shape[1]):
        dv, dw = column(change, k, c), column(change, k + 3, c)
        extra, more = column(own, k, c), column(own, k + 3, c)
        turn = right_jacobian(theta, gains, add(scaled(h, dw), more))
        put_column(velocity, k, c, add(turned_back(theta, gains, dv), cross(out, turn)))
        put_column(configuration, k, c, turned_back(theta, gains, add(scaled(h, dv), extra)))
        put_column(configuration, k + 3, c, turn)
    if q_first > 0:
        for e in range(3):
            unit = unit_vector(e)
            shift, turn = (
                turned_back(theta, gains, unit),
                turned_back(theta, gains, cross(unit, move)),
            )
            for r in range(3):
                configuration[k + r, k + e] += shift[r]
                configuration[k + r, k + 3 + e] += turn[r]
                configuration[k + 3 + r, k + 3 + e] += shift[r]


@kernel
def map_turn(data, h, k, q_first, change, own, configuration):
    """Fill the rows of a spherical joint at dof k."""
    theta = scaled(h, vec(vector(data, f.V_NEXT), k))
    gains = gains_of(theta)
    for c in range(change.shape[1]):
        dw = add(scaled(h, column(change, k, c)), column(own, k, c))
        put_column(configuration, k, c, right_jacobian(theta, gains, dw))
    if q_first > 0:
        for e in range(3):
            unit = unit_vector(e)
            shift = turned_back(theta, gains, unit)
            for r in range(3):
                configuration[k + r, k + e] += shift[r]


@kernel
def planar_bracket(x, y, theta, a):
    """Return the bracket of (x, y, θ) with a in se(2)."""
    return -theta * a[1] + y * a[2], theta * a[0] - x * a[2], 0.0


@kernel
def map_planar(data, h, k, q_first, configuration):
    """Turn the rows of a planar joint at dof k from dΔ to the tangent after the motion."""
    v = vector(data, f.V_NEXT)
    x, y, theta = h * v[k], h * v[k + 1], h * v[k + 2]
    for c in range(configuration.shape[1]):
        own = k <= c < k + 3 and c < q_first
        change = column(configuration, k, c)
        unit = unit_vector(c - k)
        if own:  # the tangent of q is moved by Ad(exp(−Δ)), not by J_r
            change = change[0] - unit[0], change[1] - unit[1], change[2] - unit[2]
        term, total, factor = change, change, 1.0
        for order in range(1, SERIES):
            term = scaled(-1.0, planar_bracket(x, y, theta, term))
            factor /= order + 1.0
            total = add(total, scaled(factor, term))
        if own:
            term, factor = unit, 1.0
            total = add(total, unit)
            for order in range(1, SERIES):
                term, factor = scaled(-1.0, planar_bracket(x, y, theta, term)), factor / order
                total = add(total, scaled(factor, term))
        put_column(configuration, k, c, total)
