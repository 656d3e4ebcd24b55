"""The energy guard of restitution (theory 2.8).

Newton's law of restitution can create energy where there is friction. A step with impacts is
solved with full restitution; where that creates energy, the share of restitution is bisected.
"""

from __future__ import annotations

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, stage_on_demand, vector
from contact_sim.solvers._cone_problem import FREE
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import (
    NONE,
    contact_branches,
    first_contact,
    first_moment,
    next_contact,
)

NO_RESTITUTION = 2  # an option of a law
SEQUENCE_STATUS = 4
"""Place of the status of a sequence of impacts in the numbers of the guard."""
MAX_BISECTIONS = 40  # bisections of the share
NO_IMPACT, FULL_RESTITUTION, BISECTED = -1.0, 0.0, 100.0
"""State of the guard: not needed, first try, last try; values between are the round."""


@kernel
def start_guard(data):
    """Begin a step: full restitution on the islands with impacts, none where there is none."""
    guard, rebound = matrix(data, f.GUARD), vector(data, f.RESTITUTION_BIAS)
    for island in range(guard.shape[0]):
        guard[island, 0] = guard[island, 1] = 0.0
        guard[island, 2], guard[island, 3] = 1.0, NO_IMPACT
        guard[island, SEQUENCE_STATUS] = FREE
    if integers(data, f.OPTIONS)[0] & NO_RESTITUTION:
        return
    of_contact = integers(data, f.CONTACT_ISLAND)
    for i in range(contact_branches(data)[3]):
        if rebound[i] != 0.0:
            guard[of_contact[i], 0], guard[of_contact[i], 3] = 1.0, FULL_RESTITUTION


@kernel
def has_impacts(data):
    """Return whether restitution is at work on any island."""
    guard, found = matrix(data, f.GUARD), False
    for island in range(guard.shape[0]):
        found |= guard[island, 3] != NO_IMPACT
    return found


@stage_on_demand
def guard_energy(data):
    """Bisect the share of restitution of each island until ½ λᵀ(u⁺ + u⁻) ≤ 0 there."""
    # an island that needs another share waits again; one that waits anyway is skipped
    guard, waits = matrix(data, f.GUARD), integers(data, f.ISLAND_WAITS)
    for island in range(guard.shape[0]):
        state = guard[island, 3]
        if waits[island] == 0 and state != NO_IMPACT and state != BISECTED:
            creates = contact_work(data, island) > 0.0
            if creates or state != FULL_RESTITUTION:
                bisect(guard[island], creates)
                waits[island] = 1


@kernel
def bisect(guard, creates):
    """Choose the next share; `guard`: share, bounds of it, round."""
    # the share tried becomes the lower bound if it is passive, else the upper one
    if guard[3] != FULL_RESTITUTION and not creates:
        guard[1] = guard[0]
    elif guard[3] != FULL_RESTITUTION:
        guard[2] = guard[0]
    # last try: the largest share known to be passive
    if guard[3] == MAX_BISECTIONS:
        guard[0], guard[3] = guard[1], BISECTED
    else:
        guard[0], guard[3] = 0.5 * (guard[1] + guard[2]), guard[3] + 1.0


@kernel
def contact_work(data, island):
    """Return ½ λᵀ(u⁻ + u⁺) over the rows of the contacts of an island [J]; rounding is zero."""
    impulse, moments = vector(data, f.IMPULSE), vector(data, f.TORSIONAL_FRICTION).shape[0]
    before, after = vector(data, f.U_START), vector(data, f.U_NEXT)
    work = size = 0.0
    i = first_contact(data, island)
    while i != NONE:
        for r in range(3 * i, 3 * i + 3):
            work += 0.5 * impulse[r] * (before[r] + after[r])
            size += abs(impulse[r]) * abs(before[r])
        i = next_contact(data, i)
    first = 3 * vector(data, f.ACTIVE).shape[0] + first_moment(data)
    i = first_contact(data, island)
    while i != NONE and i < moments:
        for r in range(first + 3 * i, first + 3 * i + 3):
            work += 0.5 * impulse[r] * (before[r] + after[r])
            size += abs(impulse[r]) * abs(before[r])
        i = next_contact(data, i)
    return work if work > 1e-12 * size else 0.0
