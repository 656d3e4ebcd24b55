"""Energy guard: the largest share of restitution with which contacts take energy out of the robot.

Newton's law of restitution can create energy where there is friction (theory 2.8). A step with
impacts is solved with full restitution first; where that creates energy the share is bisected.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import vector
from contact_sim.solvers.jit import kernel

HALVINGS = 40
"""Bisections of the share."""
UNGUARDED, FIRST, LAST = -1.0, 0.0, 100.0
"""State of the guard: not needed, first try, last try; values between are the round."""


@kernel
def start_guard(data, restitutes):
    """Begin a step with full restitution, or with none where the step has none to ask for."""
    guard = vector(data, f.GUARD)
    guard[0] = 1.0 if restitutes else 0.0
    guard[1], guard[2] = 0.0, 1.0
    guard[3] = FIRST if restitutes else UNGUARDED


@kernel
def guard_energy(data):
    """Bisect the share of restitution until contact work ½ λᵀ(u⁺ + u⁻) ≤ 0; True when done."""
    guard = vector(data, f.GUARD)  # share, bounds of it, round
    if guard[3] == UNGUARDED or guard[3] == LAST:
        return True
    creates = contact_work(data) > 0.0
    if guard[3] == FIRST:
        if not creates:
            return True
    elif creates:
        guard[2] = guard[0]
    else:
        guard[1] = guard[0]
    if guard[3] == HALVINGS:
        guard[0], guard[3] = guard[1], LAST
    else:
        guard[0], guard[3] = 0.5 * (guard[1] + guard[2]), guard[3] + 1.0
    return False


@kernel
def contact_work(data):
    """Return ½ λᵀ(u⁻ + u⁺) over the contact rows [J]; rounding counts as zero."""
    impulse = vector(data, f.IMPULSE)
    before, after = vector(data, f.U_START), vector(data, f.U_NEXT)
    work = size = 0.0
    for r in range(3 * vector(data, f.ACTIVE).shape[0]):
        work += 0.5 * impulse[r] * (before[r] + after[r])
        size += abs(impulse[r]) * abs(before[r])
    return work if work > 1e-12 * size else 0.0
