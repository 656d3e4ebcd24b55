"""An impact at the state of the arc: the impact map of all closed contacts at once.

Bilateral rows hold during the impact: their impulses are eliminated, which leaves the contacts
with G_cc − G_cb G_bb⁻¹ G_bc. Rows with bounds take no part.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, square, vector
from contact_sim.contact.active_rows import collect_rows
from contact_sim.contact_models.hybrid import fields as e
from contact_sim.contact_models.hybrid.constrained_motion import add_impulse, add_response
from contact_sim.contact_models.hybrid.impacts import solve_impact
from contact_sim.contact_models.hybrid.mode_elimination import OPEN, SLIP
from contact_sim.contact_models.hybrid.modes import is_bilateral
from contact_sim.contact_models.time_stepping.stages import row_response
from contact_sim.solvers.cone import row_velocity
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

    Contacts that leave are opened. After an impact nothing counts as sticking until the modes are
    chosen. The impulses are added to those of the step.
    """
    na, n = gather_impact(data, arc)
    if n == 0:
        return CONVERGED, 0, 0.0
    row_of, u, m = integers(data, f.ROW_OF), vector(arc, e.U), 3 * na
    G, before = square(data, f.DELASSUS, n), np.empty(n)
    for r in range(n):
        before[r] = u[row_of[r]]
    eliminate_bilateral(G, before, m)
    mu, restitution = impact_coefficients(data, before, na)
    answer = np.zeros(n)
    contacts, contact_velocity = G[:m, :m].copy(), before[:m].copy()
    outcome = solve_impact(
        law, energy_guard, contacts, contact_velocity, mu, restitution, answer[:m]
    )
    restore_bilateral(G, before, m, answer)
    open_leaving(data, arc, contacts, contact_velocity, answer[:m])
    impulse = np.zeros(u.shape[0])
    for r in range(n):
        impulse[row_of[r]] = answer[r]
    add_response(data, arc, impulse, vector(arc, e.ARC_V))
    add_impulse(data, arc, impulse)
    return outcome


@kernel
def gather_impact(data, arc):
    """Fill G of the closed contacts and the bilateral rows; return (contacts, rows)."""
    lower, upper = vector(data, f.INTERVAL_LOWER), vector(data, f.INTERVAL_UPPER)
    takes_part = np.zeros(lower.shape[0])
    for k in range(lower.shape[0]):
        if is_bilateral(lower, upper, k):
            takes_part[k] = 1.0
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    na, n = collect_rows(
        vector(arc, e.CLOSED), takes_part, integers(data, f.LEAF_DOF),
        integers(data, f.INTERVAL_DOF), row_of, row_leaf,
    )  # fmt: skip
    if na == 0:
        return 0, 0
    delassus(
        matrix(arc, e.JACOBIAN_TRANSPOSED), matrix(data, f.FACTOR), integers(data, f.DOF_PARENT),
        row_of, row_leaf, n, row_response(data, n), square(data, f.DELASSUS, n),
    )  # fmt: skip
    return na, n


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
def open_leaving(data, arc, G, before, impulse):
    """Open the contacts that leave after an impact; the others slip until modes are chosen."""
    row_of, closed = integers(data, f.ROW_OF), vector(arc, e.CLOSED)
    mode, fastest = integers(arc, e.CONTACT_MODE), 0.0
    for r in range(before.shape[0]):
        fastest = max(fastest, abs(before[r]))
    for r in range(2, before.shape[0], 3):
        i = row_of[r] // 3
        after = row_velocity(G, before, impulse, r)
        leaves = after > SEPARATION_SPEED * (1.0 + fastest)
        closed[i] = 0.0 if leaves else 1.0
        mode[i] = OPEN if leaves else SLIP
