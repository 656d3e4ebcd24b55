"""Steps without events, which most are: nothing collides, and no mode changes.

Forces that hold the modes of the step before and obey all bounds solve the contact problem at
acceleration level: what is at rest has w = 0 and f inside its set. So these modes are tried
first, without a choice, in one call from the state to the state after it.

At rest not even an arc is integrated. Where speeds are nothing but rounding, and the forces of the
step before balance all others to rounding, they go on, and so do the speeds: state and redundant
forces stay as they are.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, square, vector
from contact_sim.contact_models._stages import (
    begin_step,
    contact_rows,
    describe_configuration,
    free_motion,
    place_and_detect,
)
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._arcs import (
    begin_arc,
    end_at,
    fill_guards,
    finish_step,
    integrate,
    is_force_guard,
    start_step,
)
from contact_sim.contact_models.hybrid._modes import OPEN, STICK
from contact_sim.contact_models.hybrid._motion import (
    arc_branches,
    classify_intervals,
    fill_arc_velocities,
    in_start_frames,
    take_out_drift,
)
from contact_sim.dynamics._forces import add_spring_forces
from contact_sim.dynamics._integration import integrate_configuration
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import has_bilateral
from contact_sim.step._contact_rows import generalized_impulse, interval_branches
from contact_sim.step._inertia import is_deep

RESTING_SPEED = 1e-12  # speed of every dof up to which all is at rest [m/s, rad/s]
RESTING_DRIFT = 1e-13  # drift of held rows up to which it is not taken out [m/s, rad/s]
BALANCE = 1e-14  # sum of the forces that counts as zero, relative to the largest on the tree
REFUSED, STARTED, BEGUN, FINISHED = range(4)
"""What is done of a step: nothing; the state is loaded; an arc in the modes at hand is integrated,
and not accepted; all of it."""


@kernel
def advance_without_events(data, arc, longest):
    """Take a step if it is one arc, at most `longest` [s], without an event.

    Returns what is done; whether a contact collides; whether the arc can be followed, and how
    many guards it violates.
    """
    if not begin_step(data):
        return REFUSED, False, False, 0
    free_motion(data)
    contact_rows(data)
    collides, h = start_step(data, arc), vector(data, f.TIME_STEP)[0]
    if collides or h > longest or not modes_may_go_on(arc):
        return STARTED, collides, False, 0
    if rests(data, arc):
        stay(data, arc, h)
        finish_step(data, arc, 0, 0.0)
        place_and_detect(data)
        return FINISHED, False, True, 0
    held = begin_arc(data, arc, 0.0)
    if not held or leaves_bounds(arc):
        return STARTED, False, False, 0
    na = int(np.sum(vector(arc, e.CLOSED)))
    n = 3 * na + int(np.sum(vector(arc, e.INTERVAL_HELD)))
    residual = held_residual(data, arc, n)
    assign(vector(arc, e.REFERENCE), vector(arc, e.FORCE))
    held, error, violated = integrate(data, arc, h)
    fine = held and error <= 1.0 and np.isfinite(np.sum(vector(arc, e.STAGE_Q)))
    if not fine or violated > 0:
        return BEGUN, False, fine, violated
    end_at(arc, h)
    take_out_drift(data, arc, na, n)  # G is that of the end of the arc
    finish_step(data, arc, 0, residual)
    if has_bilateral(data) or is_deep(data):
        place_and_detect(data)
    else:
        describe_configuration(data)  # placed, and M filled, by the last stage
    return FINISHED, False, True, 0


@kernel
def modes_may_go_on(arc):
    """Return False where a mode has to be chosen: of what slips, touches, or was let go."""
    closed, mode = vector(arc, e.CLOSED), integers(arc, e.CONTACT_MODE)
    for i in range(mode.shape[0]):
        if mode[i] != (STICK if closed[i] != 0.0 else OPEN):
            return False
    # joints with friction move or are at rest as their speeds say
    classify_intervals(arc)
    integers(arc, e.FROZEN)[:] = 0
    return True


@kernel
def leaves_bounds(arc):
    """Return True if a force at hand is outside its bounds."""
    guard = vector(arc, e.GUARD)
    for place in range(guard.shape[0]):
        if guard[place] < vector(arc, e.ALLOWANCE)[place] and is_force_guard(arc, place):
            return True
    return False


@kernel
def held_residual(data, arc, n):
    """Return the natural map of the forces at hand, |w| / G_rr of the n held rows [N]."""
    w, drift = vector(data, f.ROW_FREE), vector(arc, e.DRIFT)
    fill_arc_velocities(data, arc, vector(arc, e.ACCELERATION), w)
    row_of, largest = integers(data, f.ROW_OF), 0.0
    G = square(data, f.DELASSUS, n)
    for r in range(n):
        if G[r, r] > 0.0:
            largest = max(largest, abs(w[row_of[r]] + drift[row_of[r]]) / G[r, r])
    return largest


# --- At rest.


@kernel
def rests(data, arc):
    """Return whether all is at rest under the forces of the step before; fills them."""
    for speed in vector(arc, e.ARC_V):
        if abs(speed) > RESTING_SPEED:
            return False
    if has_bilateral(data) or drifts(arc):
        return False
    fill_last_forces(arc)
    if not balance(data, arc, vector(arc, e.FORCE)):
        return False
    vector(arc, e.ALLOWANCE)[:] = 0.0
    return fill_guards(data, arc) == 0 and not leaves_bounds(arc)


@kernel
def fill_last_forces(arc):
    """Fill the forces of the step before; what is open now has none."""
    force, closed = vector(arc, e.FORCE), vector(arc, e.CLOSED)
    assign(force, vector(arc, e.REFERENCE))
    for i in range(closed.shape[0]):
        if closed[i] == 0.0:
            force[3 * i] = force[3 * i + 1] = force[3 * i + 2] = 0.0
    held = vector(arc, e.INTERVAL_CLOSED)
    for k in range(held.shape[0]):
        if held[k] == 0.0:
            force[3 * closed.shape[0] + k] = 0.0


@kernel
def drifts(arc):
    """Return True if there is drift to be taken out of held rows: u_t, u_n + α φ."""
    u, gap, rate = vector(arc, e.U), vector(arc, e.GAP), vector(arc, e.SETTINGS)[1]
    closed, largest = vector(arc, e.CLOSED), 0.0
    for i in range(closed.shape[0]):
        if closed[i] != 0.0:
            slip = max(abs(u[3 * i]), abs(u[3 * i + 1]))
            largest = max(largest, max(slip, abs(u[3 * i + 2] + rate * gap[i])))
    mode, error = integers(arc, e.INTERVAL_MODE), vector(arc, e.INTERVAL_GAP)
    for k in range(mode.shape[0]):
        if mode[k] == 0:
            largest = max(largest, abs(u[3 * closed.shape[0] + k] + rate * error[k]))
    return largest > RESTING_DRIFT


@kernel
def balance(data, arc, force):
    """Return whether τ − nle − D v − K (q − q₀) + Jᵀ f is zero to rounding, f of all rows.

    The force of a joint that is held, by its dry friction or at its limit, becomes what is left
    of the others.
    """
    tau, effects, v = vector(data, f.TAU), vector(arc, e.NONLINEAR_EFFECTS), vector(arc, e.ARC_V)
    J, damping = matrix(arc, e.JACOBIAN_TRANSPOSED), vector(data, f.DAMPING)
    dof_parent, nv = integers(data, f.DOF_PARENT), v.shape[0]
    total, largest, root = np.empty(nv), np.zeros(nv), np.empty(nv, np.int64)
    branches = interval_branches(data)
    generalized_impulse(J, arc_branches(data, arc), branches, dof_parent, force, total)
    add_spring_forces(
        vector(arc, e.STAGE_Q), v, (integers(data, f.SPRING_Q), integers(data, f.SPRING_V)),
        (vector(data, f.JOINT_STIFFNESS), vector(data, f.JOINT_REST)), 0.0, total,
    )  # fmt: skip
    # the largest force of each tree, at its first dof
    for k in range(nv):
        root[k] = k if dof_parent[k] < 0 else root[dof_parent[k]]
        size = max(abs(tau[k]), max(abs(effects[k]), abs(total[k])))
        largest[root[k]] = max(largest[root[k]], size)
        total[k] += tau[k] - effects[k] - damping[k] * v[k]
    # rows with an entry in one dof
    (last, end), mode = branches, integers(arc, e.INTERVAL_MODE)
    first = force.shape[0] - mode.shape[0]
    for s in range(mode.shape[0]):
        k = last[s]
        if mode[s] == 0 and k >= 0 and dof_parent[k] == end[s]:
            force[first + s] -= total[k] / J[k, first + s]
            total[k] = 0.0
    unbalanced = 0
    for k in range(nv):
        unbalanced += not abs(total[k]) <= BALANCE * largest[root[k]]
    return unbalanced == 0


@kernel
def stay(data, arc, h):
    """Fill configuration, velocities of the rows and impulses after a step at constant speed."""
    q, v, displacement = vector(arc, e.ARC_Q), vector(arc, e.ARC_V), vector(arc, e.DISPLACEMENT)
    for k in range(v.shape[0]):
        displacement[k] = h * v[k]
    integrate_configuration(
        integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
        matrix(data, f.POSE), displacement, q, vector(arc, e.STAGE_Q),
    )  # fmt: skip
    assign(q, vector(arc, e.STAGE_Q))
    impulse = vector(arc, e.IMPULSE)
    in_start_frames(data, arc, vector(arc, e.FORCE), impulse)
    for r in range(impulse.shape[0]):
        impulse[r] *= h
