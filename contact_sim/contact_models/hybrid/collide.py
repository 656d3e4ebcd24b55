"""An impact at the state of the arc: the impact map of all closed contacts at once.

Bilateral rows hold during the impact: their impulses are eliminated, which leaves the contacts
with G_cc − G_cb G_bb⁻¹ G_bc. So do joint limits that are hit. Dry friction takes no part.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, square, vector
from contact_sim.contact.active_rows import collect_rows, row_velocities
from contact_sim.contact.limits import pushes
from contact_sim.contact.problem_views import all_islands, interval_branches, tree_of
from contact_sim.contact_models.hybrid import fields as e
from contact_sim.contact_models.hybrid.bilateral_flow import add_bilateral, take_out_of_rows
from contact_sim.contact_models.hybrid.constrained_motion import (
    add_impulse,
    add_response,
    arc_branches,
    interval_of,
)
from contact_sim.contact_models.hybrid.impacts import solve_impact
from contact_sim.contact_models.hybrid.mode_elimination import AWAY, OPEN, SLIP
from contact_sim.contact_models.hybrid.modes import is_bilateral, is_limit
from contact_sim.contact_models.time_stepping.islands import row_response
from contact_sim.solvers.delassus import delassus
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.status import CONVERGED

SEPARATION_SPEED = 1e-9
"""Speed from which a contact counts as leaving after an impact [m/s]."""
SMALLEST_PIVOT = 1e-10
"""Share of the diagonal below which a bilateral row depends on the others."""


@kernel
def apply_impact(data, arc, law, energy_guard):
    """Change the velocity by the impact map; return (status code, iterations, residual).

    Contacts and limits that leave are opened. After an impact nothing counts as sticking until
    the modes are chosen. The impulses are added to those of the step. Limits hold as bilateral
    rows do, but those that would have to pull: they are let go, the one that pulls most first.
    """
    takes_part = rows_that_hold(arc)
    released, outcome = np.zeros(takes_part.shape[0]), (CONVERGED, 0, 0.0)
    impulse = np.zeros(vector(arc, e.U).shape[0])
    for _ in range(2 * takes_part.shape[0] + 1):
        outcome = impact_with(data, arc, takes_part, (law, energy_guard), impulse)
        if not release_one(data, arc, takes_part, released, impulse):
            break
    note_impact(data, arc, takes_part, impulse)
    add_response(data, arc, impulse, vector(arc, e.ARC_V))
    add_bilateral(data, arc)
    add_impulse(data, arc, impulse)
    return outcome


@kernel
def rows_that_hold(arc):
    """Return 1 for the bilateral rows and the limits that are touched, shape (ns,)."""
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    holds = np.zeros(lower.shape[0])
    for k in range(holds.shape[0]):
        touched = is_limit(lower, upper, k) and vector(arc, e.INTERVAL_CLOSED)[k] != 0.0
        if touched or is_bilateral(lower, upper, k):
            holds[k] = 1.0
    return holds


@kernel
def impact_with(data, arc, takes_part, laws, impulse):
    """Fill the impulses of an impact in which the rows of `takes_part` hold, all rows (rows,).

    `laws`: code of the impact law, whether energy is guarded; returns what `apply_impact` does.
    """
    impulse[:] = 0.0
    na, n = gather_impact(data, arc, takes_part)
    if n == 0:
        return CONVERGED, 0, 0.0
    row_of, u, m = integers(data, f.ROW_OF), vector(arc, e.U), 3 * na
    G, before = square(data, f.DELASSUS, n), np.empty(n)
    for r in range(n):
        before[r] = u[row_of[r]]
    add_rebounds(data, na, before)
    eliminate_bilateral(G, before, m)
    mu, restitution = impact_coefficients(data, before, na)
    answer, outcome = np.zeros(n), (CONVERGED, 0, 0.0)
    if na > 0:
        outcome = solve_impact(
            laws[0], laws[1], G[:m, :m].copy(), before[:m].copy(), mu, restitution, answer[:m]
        )
    restore_bilateral(G, before, m, answer)
    for r in range(n):
        impulse[row_of[r]] = answer[r]
    return outcome


@kernel
def gather_impact(data, arc, takes_part):
    """Fill G of the closed contacts and the rows that hold; return (contacts, rows)."""
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    na, n = collect_rows(
        vector(arc, e.CLOSED), takes_part, arc_branches(data, arc),
        integers(data, f.INTERVAL_DOF), all_islands(data), row_of, row_leaf,
    )  # fmt: skip
    if n > 0:
        delassus(
            matrix(arc, e.JACOBIAN_TRANSPOSED), matrix(data, f.FACTOR),
            tree_of(data), row_of, row_leaf, n, row_response(data, n),
            square(data, f.DELASSUS, n),
        )  # fmt: skip
        take_out_of_rows(data, n)
    return na, n


@kernel
def add_rebounds(data, na, before):
    """Change the velocities of the limits before the impact such that rest becomes −e u⁻."""
    restitution, threshold = vector(data, f.LIMIT_RESTITUTION), vector(data, f.STABILISATION)[1]
    for k in range(before.shape[0] - 3 * na):
        e_k = restitution[interval_of(data, na, k)]
        if e_k > 0.0 and abs(before[3 * na + k]) > threshold:
            before[3 * na + k] *= 1.0 + e_k


@kernel
def release_one(data, arc, takes_part, released, impulse):
    """Let go of the limit that pulls most; take back one let go that is passed; True if any."""
    first = impulse.shape[0] - takes_part.shape[0]
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    worst, pull = -1, 0.0
    for k in range(takes_part.shape[0]):
        if takes_part[k] == 1.0 and released[k] == 0.0 and is_limit(lower, upper, k):
            size = -pushes(lower, upper, k) * impulse[first + k]
            if size > pull:
                worst, pull = k, size
    if worst >= 0:
        takes_part[worst], released[worst] = 0.0, 1.0
        return True
    change = velocity_change(data, arc, impulse)
    for k in range(takes_part.shape[0]):
        after = pushes(lower, upper, k) * (vector(arc, e.U)[first + k] + change[first + k])
        if released[k] == 1.0 and takes_part[k] == 0.0 and after < -SEPARATION_SPEED:
            takes_part[k] = 1.0  # and stays
            return True
    return False


@kernel
def velocity_change(data, arc, impulse):
    """Return what impulses (rows,) change the velocities of all rows by, shape (rows,)."""
    v, change = np.zeros(vector(arc, e.ARC_V).shape[0]), np.empty(impulse.shape[0])
    add_response(data, arc, impulse, v)
    row_velocities(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), interval_branches(data),
        integers(data, f.DOF_PARENT), v, change,
    )  # fmt: skip
    return change


@kernel
def impact_coefficients(data, before, na):
    """Return μ and e of the closed contacts; slow impacts are plastic."""
    friction, restitution = vector(data, f.FRICTION), vector(data, f.RESTITUTION)
    row_of, threshold = integers(data, f.ROW_OF), vector(data, f.STABILISATION)[1]
    mu, share = np.empty(na), np.empty(na)
    for c in range(na):
        i = row_of[3 * c] // 3
        mu[c] = friction[i]
        share[c] = restitution[i] if before[3 * c + 2] < -threshold else 0.0
    return mu, share


@kernel
def eliminate_bilateral(G, u, m):
    """Eliminate the rows from m on, the last one first, from those before them."""
    for b in range(G.shape[0] - 1, m - 1, -1):
        scale = 0.0
        for r in range(G.shape[0]):
            scale = max(scale, G[r, r])
        if G[b, b] <= SMALLEST_PIVOT * scale:
            G[b, b] = 0.0  # follows from the others
            continue
        for r in range(b):
            share = G[r, b] / G[b, b]
            u[r] -= share * u[b]
            for s in range(b):
                G[r, s] -= share * G[b, s]


@kernel
def restore_bilateral(G, u, m, impulse):
    """Fill the impulses of the rows from m on, with u + G λ = 0 in them."""
    for b in range(m, G.shape[0]):
        if G[b, b] > 0.0:
            total = u[b]
            for s in range(b):
                total += G[b, s] * impulse[s]
            impulse[b] = -total / G[b, b]


@kernel
def note_impact(data, arc, takes_part, impulse):
    """Open the contacts and limits that leave; the contacts slip until modes are chosen."""
    u, change, fastest = vector(arc, e.U), velocity_change(data, arc, impulse), 0.0
    closed, mode = vector(arc, e.CLOSED), integers(arc, e.CONTACT_MODE)
    for r in range(u.shape[0]):
        fastest = max(fastest, abs(u[r]))
    leaving = SEPARATION_SPEED * (1.0 + fastest)
    for i in range(closed.shape[0]):
        if closed[i] != 0.0:
            leaves = u[3 * i + 2] + change[3 * i + 2] > leaving
            closed[i] = 0.0 if leaves else 1.0
            mode[i] = OPEN if leaves else SLIP
    lower, upper, first = vector(arc, e.LOWER), vector(arc, e.UPPER), 3 * closed.shape[0]
    interval_closed, interval_mode = vector(arc, e.INTERVAL_CLOSED), integers(arc, e.INTERVAL_MODE)
    for k in range(takes_part.shape[0]):
        if is_limit(lower, upper, k) and interval_closed[k] != 0.0:
            speed = pushes(lower, upper, k) * (u[first + k] + change[first + k])
            interval_closed[k] = 0.0 if speed > leaving else 1.0
            interval_mode[k] = AWAY if speed > leaving else 0
