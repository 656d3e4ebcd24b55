"""The interval rows of a step: dry friction and limits, their sets, gaps, bias and activity."""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.contact.limits import (
    fill_interval_bias,
    fill_limits,
    limit_within_reach,
    select_limits,
)
from contact_sim.solvers.jit import kernel


@kernel
def interval_rows(data):
    """Fill sets, gaps, bias and activity of the interval rows."""
    first = 3 * vector(data, f.GAP).shape[0]
    q_index, gap = integers(data, f.LIMIT_Q), vector(data, f.INTERVAL_GAP)
    sets = vector(data, f.LOWER), vector(data, f.UPPER)
    fill_limits(
        vector(data, f.Q_START), q_index, integers(data, f.LIMIT_OTHER_Q),
        matrix(data, f.LIMIT_SHARE), matrix(data, f.LIMIT_RANGE), sets[0], sets[1], gap,
    )  # fmt: skip
    u_free, impulse = vector(data, f.U_FREE)[first:], vector(data, f.IMPULSE)[first:]
    fill_interval_bias(
        sets, gap, vector(data, f.U_START)[first:], u_free, impulse,
        vector(data, f.TIME_STEP)[0], vector(data, f.LIMIT_RESTITUTION),
        vector(data, f.STABILISATION), vector(data, f.BIAS)[first:],
    )  # fmt: skip
    select_limits(
        sets, gap, u_free, impulse, vector(data, f.REACH), gap.shape[0] - q_index.shape[0],
        vector(data, f.INTERVAL_ACTIVE),
    )  # fmt: skip


@kernel
def activate_limits(data):
    """Make the limits active that were left out and would be passed; return their number."""
    active, first = vector(data, f.INTERVAL_ACTIVE), 3 * vector(data, f.GAP).shape[0]
    sets, gap = (vector(data, f.LOWER), vector(data, f.UPPER)), vector(data, f.INTERVAL_GAP)
    u, reach, passed = vector(data, f.U_NEXT)[first:], vector(data, f.REACH), 0
    for k in range(active.shape[0]):
        if active[k] == 0.0 and limit_within_reach(sets, gap, u, k, reach) < 0.0:
            active[k] = 1.0
            passed += 1
    return passed
