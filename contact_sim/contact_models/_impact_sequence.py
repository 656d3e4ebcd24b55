"""Multiple impacts of a time step as a sequence of single ones (theory 2.8).

At once, Newton's u_n⁺ = −e u_n⁻ holds at the contacts that close, and those that the impact itself
makes approach are plastic. As a sequence, each contact collides with its own approach speed:

    u := u⁻;  repeat  the fastest contacts collide and change u  until none approaches
    b_n = −u_n  at the contacts that have collided

The bias asks the law for the normal velocities after the last impact. Therefore the law of the
model, its friction and the energy guard hold for the step as a whole, as without the sequence.
Joint limits and dry friction take no part in the sequence; the law has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, square, vector
from contact_sim.contact_models._energy_guard import (
    FULL_RESTITUTION,
    NO_IMPACT,
    SEQUENCE_STATUS,
)
from contact_sim.contact_models._stages import (
    CONTACTS,
    ISLAND,
    ROWS,
    fill_delassus,
    fill_next_velocity,
)
from contact_sim.contact_models.hybrid._impacts import (
    NEWTON,
    eliminate_bilateral,
    restore_bilateral,
    sequence_of_impacts,
)
from contact_sim.contact_models.hybrid._modes import is_bilateral
from contact_sim.parameters import parameter
from contact_sim.solvers._cone_problem import row_velocity
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import (
    activity_of,
    collect_rows,
    contact_branches,
    gap_bias,
    interval_branches,
    row_velocities,
    rows_on,
)

SIMULTANEOUS, SEQUENTIAL = 'simultaneous', 'sequential'


def multiple_impacts_parameter() -> Any:
    """Return the parameter that says how impacts of one instant are resolved."""
    return parameter(
        SIMULTANEOUS, '', 'impacts of one instant: all at once, or as a sequence of single ones',
        choices=(SIMULTANEOUS, SEQUENTIAL), live=True,
    )  # fmt: skip


@kernel
def sequence_impacts(data):
    """Replace the restitution of the islands with impacts by the end of a sequence of impacts."""
    guard, rebound = matrix(data, f.GUARD), vector(data, f.RESTITUTION_BIAS)
    of_contact = integers(data, f.CONTACT_ISLAND)
    for island in range(guard.shape[0]):
        if guard[island, 3] != FULL_RESTITUTION:
            continue
        # again where the sequence reaches contacts that were left out
        while not sequence_on_island(data, island):
            pass
        guard[island, 0], guard[island, 3] = 0.0, NO_IMPACT
        for i in range(rebound.shape[0]):
            if of_contact[i] == island and rebound[i] != 0.0:
                guard[island, 0], guard[island, 3] = 1.0, FULL_RESTITUTION
    integers(data, f.COUNTS)[ROWS] = 0  # there is no problem at hand


@kernel
def sequence_on_island(data, island):
    """Fill the bias of an island after its sequence; return False if it reaches more contacts."""
    na, n = sequence_rows(data, island)
    row_of, u_start, mu = integers(data, f.ROW_OF), vector(data, f.U_START), np.empty(na)
    restitution, least, room = np.empty(na), np.empty(na), np.empty(na)
    friction, elasticity = vector(data, f.FRICTION), vector(data, f.RESTITUTION)
    for c in range(na):
        i = row_of[3 * c] // 3
        mu[c], restitution[c] = friction[i], elasticity[i]
        least[c] = colliding_speed(data, i)
        room[c] = max(closing_speed(data, i), 0.0)
    # locked joints hold throughout
    G, u, impulse, m = square(data, f.DELASSUS, n), np.empty(n), np.zeros(n), 3 * na
    for r in range(n):
        u[r] = u_start[row_of[r]]
    eliminate_bilateral(G, u, m)
    outcome = sequence_of_impacts(
        NEWTON, True, G[:m, :m], u[:m], mu, restitution, least, room, impulse[:m]
    )
    matrix(data, f.GUARD)[island, SEQUENCE_STATUS] = outcome[0]
    # b_n = −u_n where a contact has collided; one that ends slow may go on up to the surface
    bias, rebound = vector(data, f.BIAS), vector(data, f.RESTITUTION_BIAS)
    gap, h = vector(data, f.GAP_START), vector(data, f.TIME_STEP)[0]
    baumgarte = vector(data, f.STABILISATION)[0]
    for c in range(na):
        i, r = row_of[3 * c] // 3, 3 * c + 2
        bias[row_of[r]], rebound[i] = gap_bias(gap[i], h, baumgarte), 0.0
        if restitution[c] > 0.0 and impulse[r] > 0.0:
            rebound[i] = -max(row_velocity(G[:m, :m], u, impulse, r), -room[c])
            bias[row_of[r]] = min(baumgarte * gap[i] / h, 0.0)
    restore_bilateral(G, u, m, impulse)
    return not activate_colliding(data, island, n, impulse)


@kernel
def sequence_rows(data, island):
    """Fill G of the active contacts of an island and its locked joints; return their numbers."""
    lower, upper, counts = vector(data, f.LOWER), vector(data, f.UPPER), integers(data, f.COUNTS)
    locked = np.zeros(lower.shape[0])
    for k in range(locked.shape[0]):
        if is_bilateral(lower, upper, k):
            locked[k] = 1.0
    na, n = collect_rows(
        vector(data, f.ACTIVE), locked, contact_branches(data), integers(data, f.INTERVAL_DOF),
        rows_on(data, island), integers(data, f.ROW_OF), integers(data, f.ROW_LEAF),
    )  # fmt: skip
    counts[CONTACTS], counts[ROWS], counts[ISLAND] = na, n, island
    fill_delassus(data, n, False)
    return na, n


@kernel
def closing_speed(data, i):
    """Return the approach speed at the start from which contact i closes in this step [m/s]."""
    h, r = vector(data, f.TIME_STEP)[0], 3 * i + 2
    change = vector(data, f.U_FREE)[r] - vector(data, f.U_START)[r]
    return vector(data, f.GAP_START)[i] / h + change


@kernel
def colliding_speed(data, i):
    """Return the approach speed from which contact i collides [m/s]."""
    # slower approaches are plastic; a contact that carried an impulse collides where an impact
    # makes it approach
    speed = max(closing_speed(data, i), vector(data, f.STABILISATION)[1])
    carried = vector(data, f.IMPULSE)[3 * i + 2] != 0.0
    return max(speed, -vector(data, f.U_START)[3 * i + 2]) if carried else speed


@kernel
def activate_colliding(data, island, n, impulse):
    """Activate the contacts left out that these impulses of n rows make collide; return if any."""
    # u after the sequence: u⁻ + (u_next − u_free)
    row_of, total = integers(data, f.ROW_OF), matrix(data, f.LAW_VECTORS)[0]
    total[:] = 0.0
    for r in range(n):
        total[row_of[r]] = impulse[r]
    fill_next_velocity(data, total)
    u_next, u_free = vector(data, f.U_NEXT), vector(data, f.U_FREE)
    row_velocities(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data), interval_branches(data),
        integers(data, f.DOF_PARENT), vector(data, f.V_NEXT), u_next,
    )  # fmt: skip
    active, u_start = vector(data, f.ACTIVE), vector(data, f.U_START)
    of_contact, more = integers(data, f.CONTACT_ISLAND), False
    for i in range(active.shape[0]):
        if active[i] == 0.0 and of_contact[i] == island:
            r = 3 * i + 2
            if u_start[r] + u_next[r] - u_free[r] < -colliding_speed(data, i):
                active[i] = activity_of(data, i)
                more = more or active[i] > 0.0
    return more
