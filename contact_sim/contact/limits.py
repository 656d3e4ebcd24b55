"""Rows on positions: joint limits, and those of sums over two joints (theory 4.3).

The value of a row is p = Σ share q over one or two joints, bounded by [lower, upper]. One row
serves both ends, for the joint can be at one of them only: its set and its gap are those of the
nearer end.

    nearer to lower    λ ∈ [0, ∞)      φ = p − lower
    nearer to upper    λ ∈ (−∞, 0]     φ = p − upper
    lower = upper      λ ∈ (−∞, ∞)     φ = p − lower      a joint that is held

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
def limit_is_near(distance, speed, reach):
    """Return whether the law may act on a limit `distance` ahead [rad or m], at `speed` off it.

    `reach` as in `active_rows.within_reach`.
    """
    return distance <= reach[2] or distance + reach[0] * speed <= 0.0


@kernel
def limit_bias(distance, speeds, h, restitution, settings):
    """Return b of a limit along its push [m/s, rad/s], by the rules of a normal row.

    The rebound of a limit is in b, and under no energy guard.

    Args:
        distance: way to go at the start [rad or m], negative behind the limit.
        speeds: velocity off the limit before the step, and without impulses [m/s, rad/s].
        h: time step [s].
        restitution: e [-], 0 for a limit that carried an impulse in the step before.
        settings: β [-], approach speed below which impacts are plastic [m/s].
    """
    start, free = speeds
    if restitution > 0.0 and distance + h * free < 0.0 and start < -settings[1]:
        return restitution * start + min(settings[0] * distance / h, 0.0)
    return gap_bias(distance, h, settings[0])
