"""Bilateral rows while the robot moves between events: at the level of accelerations.

    H v̇ + Ḣ v + kd ḣ + kp h = 0     (no feedback where positions are projected)

taken out of the equations of the contacts (theory 4.6). At the start of a step velocities are made
those that are asked for, at its end positions are projected.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.contact.active_rows import row_velocities
from contact_sim.contact.bilateral import (
    CONSTRAIN,
    FLOW,
    PLACE,
    SHARE,
    SPEEDS,
    TAKE_OUT,
    ask,
    has_bilateral,
    project_positions,
)
from contact_sim.contact.bilateral_rows import fill_rates
from contact_sim.contact.problem_views import branches_with, interval_branches
from contact_sim.contact_models.hybrid import fields as e
from contact_sim.solvers.dense import assign
from contact_sim.solvers.jit import kernel


@kernel
def see_positions(data, q):
    """Fill h at q (nq,), at the placements at hand."""
    if has_bilateral(data):
        assign(vector(data, f.PROJECTED_Q), q)
        ask(data, PLACE)


@kernel
def hold_accelerations(data, arc, v):
    """Constrain the acceleration without contact forces at v (nv,); fill what `respond` needs."""
    if not has_bilateral(data):
        return
    moved = vector(data, f.PROJECTION)
    assign(moved, v)
    ask(data, FLOW)
    fill_share_of_arc(data, arc)
    constrain_copy(data, vector(arc, e.FREE_ACCELERATION))
    assign(vector(arc, e.BILATERAL_FREE), vector(data, f.BILATERAL_IMPULSE))
    clear(vector(data, f.BILATERAL_BIAS))


@kernel
def fill_share_of_arc(data, arc):
    """Fill the part of the contact rows of the arc that the constraints take."""
    coupling, response = matrix(data, f.BILATERAL_COUPLING), matrix(data, f.BILATERAL_RESPONSE)
    for a in range(coupling.shape[0]):
        row_velocities(
            matrix(arc, e.JACOBIAN_TRANSPOSED), branches_with(data, vector(arc, e.FEATURE)),
            interval_branches(data), integers(data, f.DOF_PARENT), response[a], coupling[a],
        )  # fmt: skip
    ask(data, SHARE)


@kernel
def constrain_copy(data, x):
    """Constrain an acceleration or velocity (nv,) as the field `bilateral_bias` says."""
    moved = vector(data, f.PROJECTION)
    assign(moved, x)
    ask(data, CONSTRAIN)
    assign(x, moved)


@kernel
def respond(data, response):
    """Constrain what contact forces or impulses change, M⁻¹ Jᵀ f (nv,)."""
    if has_bilateral(data):
        constrain_copy(data, response)


@kernel
def take_out_of_rows(data, n):
    """Make G of n rows that of a robot under the constraints."""
    if has_bilateral(data):
        integers(data, f.COUNTS)[1] = n
        ask(data, TAKE_OUT)


@kernel
def note_forces(data, arc):
    """Fill the forces of the constraints at the instant, after those of the contacts."""
    force, free = vector(arc, e.BILATERAL_FORCE), vector(arc, e.BILATERAL_FREE)
    response = vector(data, f.BILATERAL_IMPULSE)
    for r in range(force.shape[0]):
        force[r] = free[r] + response[r]


@kernel
def add_bilateral(data, arc):
    """Add the impulses of the last response to those of the step."""
    total, impulse = vector(arc, e.BILATERAL_IMPULSE), vector(data, f.BILATERAL_IMPULSE)
    for r in range(total.shape[0]):
        total[r] += impulse[r]


@kernel
def start_speeds(data, arc):
    """Make the velocity of the arc the one that is asked for; return True if there are rows."""
    if not has_bilateral(data):
        return False
    start, H = matrix(arc, e.START_JACOBIAN), matrix(data, f.BILATERAL_JACOBIAN)
    for r in range(H.shape[0]):
        assign(start[r], H[r])
    clear(vector(arc, e.BILATERAL_IMPULSE))
    v = vector(arc, e.ARC_V)
    assign(vector(data, f.PROJECTION), v)
    ask(data, SPEEDS)
    constrain_copy(data, v)
    add_bilateral(data, arc)
    clear(vector(data, f.BILATERAL_BIAS))
    return True


@kernel
def finish_bilateral(data, arc):
    """Project positions, and write impulses and H of the step."""
    if not has_bilateral(data):
        return
    fill_rates(data, vector(arc, e.ARC_V))
    project_positions(data)
    start, H = matrix(arc, e.START_JACOBIAN), matrix(data, f.BILATERAL_JACOBIAN)
    for r in range(H.shape[0]):
        assign(H[r], start[r])
    assign(vector(data, f.BILATERAL_IMPULSE), vector(arc, e.BILATERAL_IMPULSE))


@kernel
def clear(x):
    """Make all zero."""
    for k in range(x.shape[0]):
        x[k] = 0.0
