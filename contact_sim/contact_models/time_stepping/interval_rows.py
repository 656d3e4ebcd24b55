"""The interval rows of a step: dry friction and limits, their sets, gaps, bias and activity."""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.contact.limits import fill_limits, limit_bias, limit_is_near, pushes
from contact_sim.solvers.jit import kernel


@kernel
def interval_rows(data):
    """Fill sets, gaps, bias and activity of the interval rows."""
    q_index, gap = integers(data, f.LIMIT_Q), vector(data, f.INTERVAL_GAP)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    fill_limits(
        vector(data, f.Q_START), q_index, integers(data, f.LIMIT_OTHER_Q),
        matrix(data, f.LIMIT_SHARE), matrix(data, f.LIMIT_RANGE), lower, upper, gap,
    )  # fmt: skip
    first, active = 3 * vector(data, f.GAP).shape[0], vector(data, f.INTERVAL_ACTIVE)
    bias, u_free, impulse = vector(data, f.BIAS), vector(data, f.U_FREE), vector(data, f.IMPULSE)
    reach, limits = vector(data, f.REACH), gap.shape[0] - q_index.shape[0]
    for k in range(limits):  # dry friction
        active[k], bias[first + k] = 1.0, 0.0
    for k in range(limits, gap.shape[0]):
        r, side = first + k, pushes(lower, upper, k)
        carried = impulse[r] != 0.0 or side == 0.0
        active[k] = carried or limit_is_near(side * gap[k], side * u_free[r], reach)
        if active[k] != 0.0:
            fill_limit_bias(data, k)


@kernel
def fill_limit_bias(data, k):
    """Fill b of interval row k [m/s, rad/s].

    What acts in both directions has no "before closure", b = β φ/h.
    """
    r, h = 3 * vector(data, f.GAP).shape[0] + k, vector(data, f.TIME_STEP)[0]
    gap, settings = vector(data, f.INTERVAL_GAP)[k], vector(data, f.STABILISATION)
    side = pushes(vector(data, f.LOWER), vector(data, f.UPPER), k)
    bias = vector(data, f.BIAS)
    if side == 0.0:
        bias[r] = settings[0] * gap / h
        return
    carried = vector(data, f.IMPULSE)[r] != 0.0
    restitution = 0.0 if carried else vector(data, f.LIMIT_RESTITUTION)[k]
    speeds = side * vector(data, f.U_START)[r], side * vector(data, f.U_FREE)[r]
    bias[r] = side * limit_bias(side * gap, speeds, h, restitution, settings)


@kernel
def activate_limits(data):
    """Make the limits active that were left out and would be passed; their islands wait."""
    active, first = vector(data, f.INTERVAL_ACTIVE), 3 * vector(data, f.GAP).shape[0]
    lower, upper, gap = vector(data, f.LOWER), vector(data, f.UPPER), vector(data, f.INTERVAL_GAP)
    u, reach = vector(data, f.U_NEXT), vector(data, f.REACH)[0]
    waits, island = integers(data, f.ISLAND_WAITS), integers(data, f.INTERVAL_ISLAND)
    for k in range(active.shape[0] - integers(data, f.LIMIT_Q).shape[0], active.shape[0]):
        if active[k] == 0.0:
            side = pushes(lower, upper, k)
            if side * (gap[k] + reach * u[first + k]) < 0.0:
                active[k], waits[island[k]] = 1.0, 1
                fill_limit_bias(data, k)
