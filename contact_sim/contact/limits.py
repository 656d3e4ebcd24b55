"""Rows on positions: joint limits, and joints that follow others (theory 4.3).

The value of a row is p = Σ share q over one or two joints, bounded by [lower, upper]. One row
serves both ends, for the joint can be at one of them only: its set and its gap are those of the
nearer end.

    nearer to lower    λ ∈ [0, ∞)      φ = p − lower
    nearer to upper    λ ∈ (−∞, 0]     φ = p − upper
    lower = upper      λ ∈ (−∞, ∞)     φ = p − lower

So φ points inwards at one end and outwards at the other; the distance to go is |φ| while p is
inside. Limits take part in a step as contacts do: where they are in reach of the law.
"""

from __future__ import annotations

import numpy as np

from contact_sim.contact.bias import gap_bias
from contact_sim.solvers.jit import kernel


@kernel
def fill_limits(q, q_index, q_other, share, bounds, lower, upper, gap):
    """Fill the sets and gaps of the last rows of `lower`, `upper` and `gap`, (ns,) each.

    Args:
        q: configuration, shape (nq,).
        q_index: coordinate of the joint, shape (n,).
        q_other: coordinate of the second joint, shape (n,).
        share: share of each [-], 0 for a second that is not there, shape (n, 2).
        bounds: bounds of p [rad or m], shape (n, 2).
        lower: out, least impulse [N s, N m s].
        upper: out, largest impulse.
        gap: out, φ [rad or m].
    """
    first = gap.shape[0] - q_index.shape[0]
    for i in range(q_index.shape[0]):
        k = first + i
        value = share[i, 0] * q[q_index[i]] + share[i, 1] * q[q_other[i]]
        low, high = bounds[i, 0], bounds[i, 1]
        at_lower = value - low <= high - value
        gap[k] = value - low if at_lower else value - high
        lower[k] = 0.0 if at_lower and low != high else -np.inf
        upper[k] = np.inf if at_lower else 0.0


@kernel
def pushes(lower, upper, k):
    """Return the sign of the impulses of interval row k: ±1 for a limit, 0 for both signs."""
    if lower[k] < 0.0 < upper[k]:
        return 0.0
    return 1.0 if upper[k] > 0.0 else -1.0


@kernel
def limit_within_reach(sets, gap, u, k, reach):
    """Return φ + T u of limit `k`, along its push: negative where the law may act on it.

    `sets`: lower and upper bounds of the impulses; `reach` as in `active_rows.within_reach`.
    """
    return pushes(sets[0], sets[1], k) * (gap[k] + reach[0] * u[k])


@kernel
def select_limits(sets, gap, u_free, impulse, reach, first, active):
    """Mark the interval rows that take part: all but limits out of reach of the law.

    Args:
        sets: lower and upper bounds of the impulses [N s, N m s], shape (ns,) each.
        gap: φ [rad or m], shape (ns,).
        u_free: velocities of the rows without impulses [m/s, rad/s], shape (ns,).
        impulse: impulses of the step before, shape (ns,).
        reach: reach of the law, see `active_rows.within_reach`.
        first: number of the first row that is a limit.
        active: out, 1 for the rows that take part.
    """
    for k in range(gap.shape[0]):
        side = pushes(sets[0], sets[1], k)
        near = k < first or side == 0.0 or impulse[k] != 0.0 or side * gap[k] <= reach[2]
        near = near or limit_within_reach(sets, gap, u_free, k, reach) <= 0.0
        active[k] = 1.0 if near else 0.0


@kernel
def fill_interval_bias(sets, gap, u_start, u_free, impulse, h, restitution, settings, bias):
    """Fill b of the interval rows [m/s, rad/s] by the rules of the contacts (contact/bias.py).

    A limit is a normal row; what acts in both directions has no "before closure", b = β φ/h: zero
    for dry friction, whose φ is 0. The rebound of a limit is in b, and under no energy guard.

    Args:
        sets: lower and upper bounds of the impulses [N s, N m s], shape (ns,) each.
        gap: φ at the start [rad or m], shape (ns,).
        u_start: velocities of the rows before the step [m/s, rad/s], shape (ns,).
        u_free: velocities without impulses, shape (ns,).
        impulse: impulses of the step before, shape (ns,).
        h: time step [s].
        restitution: e of every row [-], shape (ns,).
        settings: β [-], approach speed below which impacts are plastic [m/s].
        bias: out, shape (ns,).
    """
    for k in range(gap.shape[0]):
        side = pushes(sets[0], sets[1], k)
        if side == 0.0:
            bias[k] = settings[0] * gap[k] / h
            continue
        distance = side * gap[k]
        bias[k] = side * gap_bias(distance, h, settings[0])
        passes = impulse[k] == 0.0 and distance + h * side * u_free[k] < 0.0
        if passes and restitution[k] > 0.0 and side * u_start[k] < -settings[1]:
            bias[k] = restitution[k] * u_start[k] + side * min(settings[0] * distance / h, 0.0)
