"""Energy guard: the largest share of restitution with which contacts take energy out of the robot.

Newton's law of restitution can create energy where there is friction (theory 2.8). A step with
impacts is solved with full restitution first; where that creates energy the share is bisected.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.contact_models.time_stepping.islands import NO_RESTITUTION
from contact_sim.solvers.jit import kernel

HALVINGS = 40
"""Bisections of the share."""
UNGUARDED, FIRST, LAST = -1.0, 0.0, 100.0
"""State of the guard: not needed, first try, last try; values between are the round."""


@kernel
def start_guard(data):
    """Begin a step: full restitution on the islands with impacts, none where there is none."""
    guard, rebound = matrix(data, f.GUARD), vector(data, f.RESTITUTION_BIAS)
    for island in range(guard.shape[0]):
        guard[island, 0] = guard[island, 1] = 0.0
        guard[island, 2], guard[island, 3] = 1.0, UNGUARDED
    if integers(data, f.OPTIONS)[0] & NO_RESTITUTION:
        return
    of_contact = integers(data, f.CONTACT_ISLAND)
    for i in range(rebound.shape[0]):
        if rebound[i] != 0.0:
            guard[of_contact[i], 0], guard[of_contact[i], 3] = 1.0, FIRST


@kernel
def guard_energy(data):
    """Bisect the share of restitution of each island until ½ λᵀ(u⁺ + u⁻) ≤ 0 there.

    An island that needs another share waits for another solve; one that waits anyway is let be.
    """
    guard, waits = matrix(data, f.GUARD), integers(data, f.ISLAND_WAITS)
    for island in range(guard.shape[0]):
        state = guard[island, 3]
        if waits[island] == 0 and state != UNGUARDED and state != LAST:
            creates = contact_work(data, island) > 0.0
            if creates or state != FIRST:
                bisect(guard[island], creates)
                waits[island] = 1


@kernel
def bisect(guard, creates):
    """Choose the next share; `guard`: share, bounds of it, round."""
    if guard[3] != FIRST and not creates:
        guard[1] = guard[0]
    elif guard[3] != FIRST:
        guard[2] = guard[0]
    if guard[3] == HALVINGS:
        guard[0], guard[3] = guard[1], LAST
    else:
        guard[0], guard[3] = 0.5 * (guard[1] + guard[2]), guard[3] + 1.0


@kernel
def contact_work(data, island):
    """Return ½ λᵀ(u⁻ + u⁺) over the contact rows of an island [J]; rounding counts as zero."""
    impulse, of_contact = vector(data, f.IMPULSE), integers(data, f.CONTACT_ISLAND)
    before, after = vector(data, f.U_START), vector(data, f.U_NEXT)
    work = size = 0.0
    for i in range(of_contact.shape[0]):
        if of_contact[i] == island:
            for r in range(3 * i, 3 * i + 3):
                work += 0.5 * impulse[r] * (before[r] + after[r])
                size += abs(impulse[r]) * abs(before[r])
    return work if work > 1e-12 * size else 0.0
