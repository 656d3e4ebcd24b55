"""One arc: a Runge-Kutta step of 4th order in which the contacts hold their modes (theory 2.6).

The state at the start of the arc stays until `accept`, so that an arc can be integrated again to
another length while an event is located. Stages are counted from 0, the start; the end of the arc
is evaluated as one stage more.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, integers, matrix, vector
from contact_sim.contact_models._stages import update_actuators
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._arc_fields import STAGES
from contact_sim.contact_models.hybrid._closed_contacts import hold_modes, remove_drift
from contact_sim.contact_models.hybrid._events import allow_start, fill_guards, find_closed
from contact_sim.contact_models.hybrid._modes import AWAY, OPEN, SLIP, is_limit
from contact_sim.contact_models.hybrid._motion import (
    evaluate,
    evaluate_velocity,
    fill_joint_limits,
    fill_position_errors,
    impose_driven_speeds,
    in_start_frames,
    store_constraint_impulse,
)
from contact_sim.dynamics._integration import (
    fill_rates,
    move,
    next_stage,
    velocity_in_new_axes,
    weighted_mean,
)
from contact_sim.dynamics._tree import FREE_FLYER
from contact_sim.dynamics._vectors import dot, put, rotated, vec
from contact_sim.solvers._cone_problem import CONVERGED, FREE
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import DEGENERATE, status_with_degenerate
from contact_sim.step._workspace import describe_contacts

ARC_TOLERANCE = 1e-2
"""Error of the velocity over one arc that calls for shorter arcs, relative to 1 and the speed."""


# --- The start of a step.


@kernel
def start_step(data, arc):
    """Take the state and what was kept of the contacts; return True if a contact collides.

    Placements and twists are those of the state.
    """
    q, v = vector(arc, e.ARC_Q), vector(arc, e.ARC_V)
    assign(q, vector(data, f.Q))
    assign(v, vector(data, f.V))
    # modes and forces of the step before, from the memory: forces into the contact frames
    memory, frame = matrix(data, f.MEMORY), frames(data, f.FRAME)
    mode, reference = integers(arc, e.CONTACT_MODE), vector(arc, e.REFERENCE)
    nc = mode.shape[0]
    for i in range(nc):
        mode[i] = int(memory[i, 3])
        for a in range(3):
            reference[3 * i + a] = dot(vec(frame[i, a], 0), vec(memory[i], 0))
    load_intervals(data, arc, q)
    vector(arc, e.IMPULSE)[:] = 0.0
    integers(arc, e.AT_END)[:] = 0
    integers(arc, e.TURNS)[:] = 0
    # axes of free flyers: v⁺ of the report is in those of the start
    kind, pose, axes = integers(data, f.KIND), matrix(data, f.POSE), matrix(arc, e.START_AXES)
    flyer = 0
    for j in range(1, kind.shape[0]):
        if kind[j] == FREE_FLYER:
            assign(axes[flyer], pose[j])
            flyer += 1
    # the instant at the start; driven speeds are imposed before contacts are sorted
    fill_position_errors(data, q)
    evaluate_velocity(data, arc, v)
    if impose_driven_speeds(data, arc):
        evaluate_velocity(data, arc, v)
    collides = find_closed(arc)
    open_degenerate(data, arc)
    return collides


@kernel
def open_degenerate(data, arc):
    """Open the degenerate contacts for the whole step."""
    active, closed = vector(data, f.ACTIVE), vector(arc, e.CLOSED)
    for i in range(active.shape[0]):
        if active[i] == DEGENERATE:
            closed[i], integers(arc, e.CONTACT_MODE)[i] = 0.0, OPEN


@kernel
def load_intervals(data, arc, q):
    """Fill bounds, gaps and last forces of the interval rows; limits that pushed are closed."""
    h, impulse = vector(data, f.TIME_STEP)[0], vector(data, f.IMPULSE)
    reference, mode = vector(arc, e.REFERENCE), integers(arc, e.INTERVAL_MODE)
    assign(vector(arc, e.LOWER), vector(data, f.INTERVAL_LOWER))
    assign(vector(arc, e.UPPER), vector(data, f.INTERVAL_UPPER))
    assign(vector(arc, e.INTERVAL_GAP), vector(data, f.INTERVAL_GAP))
    fill_joint_limits(data, arc, q)
    first, limits = impulse.shape[0] - mode.shape[0], integers(data, f.LIMIT_Q).shape[0]
    for k in range(mode.shape[0]):
        reference[first + k] = impulse[first + k] / h
        if k >= mode.shape[0] - limits and is_limit(vector(arc, e.LOWER), vector(arc, e.UPPER), k):
            mode[k] = 0 if impulse[first + k] != 0.0 else AWAY


# --- One arc.


@kernel
def begin_arc(data, arc, lenience):
    """Start arcs in the modes at hand; return False if no finite force holds them.

    Bounds of forces may be missed by `lenience` slacks before it counts as an event.
    """
    held = hold_modes(data, arc)
    vector(arc, e.ALLOWANCE)[:] = 0.0
    fill_guards(data, arc)
    allow_start(arc, lenience)
    start_here(data, arc)
    return held


@kernel
def start_here(data, arc):
    """Make forces, guards and rates of the instant evaluated last those of the start."""
    v, displacement = vector(arc, e.ARC_V), vector(arc, e.DISPLACEMENT)
    in_start_frames(data, arc, vector(arc, e.FORCE), matrix(arc, e.FORCES)[0])
    assign(matrix(arc, e.BILATERAL_FORCES)[0], vector(arc, e.BILATERAL_FORCE))
    assign(vector(arc, e.GUARD_BEFORE), vector(arc, e.GUARD))
    displacement[:] = 0.0
    fill_rates(
        v, v, vector(arc, e.ACCELERATION), displacement, integers(data, f.FREE_FLYER_V),
        matrix(arc, e.RATES)[0], matrix(arc, e.VELOCITY_RATES)[0],
    )  # fmt: skip


@kernel
def integrate(data, arc, dt):
    """Integrate by dt from the start of the arc.

    Returns whether finite forces hold the modes all along, the estimate of the error, and the
    number of guards that are violated at the end.
    """
    error, violated = 0.0, 0
    for stage in range(1, STAGES + 1):
        error = start_stage(data, arc, stage, dt)
        held, violated = finish_stage(data, arc, stage)
        if not held:
            return False, error, 0
    return True, error, violated


@kernel
def start_stage(data, arc, stage, dt):
    """Fill configuration and velocity of a stage, 1 to STAGES, of an arc of dt [s].

    Returns an estimate of the error of the arc at its end, zero before; 1 is tolerable.
    """
    displacement, w = vector(arc, e.DISPLACEMENT), vector(arc, e.FIXED_AXES_V)
    error, start_v = 0.0, vector(arc, e.ARC_V)
    if stage == STAGES:
        error = arc_error(arc, dt)
        end_of_arc(arc, dt)
    else:
        rates, velocity_rates = matrix(arc, e.RATES), matrix(arc, e.VELOCITY_RATES)
        next_stage(stage, dt, start_v, rates, velocity_rates, displacement, w)
    velocity_in_new_axes(displacement, w, integers(data, f.FREE_FLYER_V), vector(arc, e.STAGE_V))
    if integers(data, f.TERMS_GIVEN)[0] == 0:
        move(
            integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
            matrix(data, f.POSE), displacement, vector(arc, e.ARC_Q), vector(arc, e.STAGE_Q),
        )  # fmt: skip
    return error


@kernel
def finish_stage(data, arc, stage):
    """Fill forces and rates of a stage, at the end of the arc the guards.

    Returns whether finite forces hold the modes, and the number of violated guards.
    """
    v = vector(arc, e.STAGE_V)
    if not np.isfinite(np.sum(v)):
        return False, 0
    evaluate(data, arc, vector(arc, e.STAGE_Q), v)
    held = hold_modes(data, arc)
    if stage == STAGES:
        return held, fill_guards(data, arc)
    in_start_frames(data, arc, vector(arc, e.FORCE), matrix(arc, e.FORCES)[stage])
    assign(matrix(arc, e.BILATERAL_FORCES)[stage], vector(arc, e.BILATERAL_FORCE))
    fill_rates(
        v, vector(arc, e.FIXED_AXES_V), vector(arc, e.ACCELERATION), vector(arc, e.DISPLACEMENT),
        integers(data, f.FREE_FLYER_V), matrix(arc, e.RATES)[stage],
        matrix(arc, e.VELOCITY_RATES)[stage],
    )  # fmt: skip
    return held, 0


@kernel
def arc_error(arc, dt):
    """Return an estimate of the error of the velocity, relative to what is tolerable.

    Large where the stages do not belong to one smooth motion.
    """
    rates, v, error, fastest = matrix(arc, e.VELOCITY_RATES), vector(arc, e.ARC_V), 0.0, 1.0
    for k in range(v.shape[0]):
        # k₁ − k₂ − k₃ + k₄ of the velocity, an embedded estimate of 3rd order
        spread = rates[0, k] - rates[1, k] - rates[2, k] + rates[3, k]
        error = max(error, dt / 6.0 * abs(spread))
        fastest = max(fastest, abs(v[k]))
    return error / (ARC_TOLERANCE * fastest)


@kernel
def end_of_arc(arc, dt):
    """Fill displacement, velocity and mean forces of the whole arc from its four stages."""
    displacement, v = vector(arc, e.DISPLACEMENT), vector(arc, e.ARC_V)
    w = vector(arc, e.FIXED_AXES_V)
    # (k₁ + 2 k₂ + 2 k₃ + k₄) / 6 of displacement, velocity and forces
    weighted_mean(matrix(arc, e.RATES), displacement)
    weighted_mean(matrix(arc, e.VELOCITY_RATES), w)
    weighted_mean(matrix(arc, e.FORCES), vector(arc, e.MEAN_FORCE))
    weighted_mean(matrix(arc, e.BILATERAL_FORCES), vector(arc, e.BILATERAL_MEAN))
    for k in range(v.shape[0]):
        displacement[k] *= dt
        w[k] = v[k] + dt * w[k]


@kernel
def accept(data, arc, dt):
    """Make the end of the arc the state, and add up the impulses; return True if one slips."""
    # impulses of the step: mean forces of the arc times dt
    total, mean = vector(arc, e.IMPULSE), vector(arc, e.MEAN_FORCE)
    for r in range(total.shape[0]):
        total[r] += dt * mean[r]
    held, force = vector(arc, e.BILATERAL_IMPULSE), vector(arc, e.BILATERAL_MEAN)
    for r in range(held.shape[0]):
        held[r] += dt * force[r]
    assign(vector(arc, e.ARC_Q), vector(arc, e.STAGE_Q))
    assign(vector(arc, e.ARC_V), vector(arc, e.STAGE_V))
    assign(vector(arc, e.REFERENCE), vector(arc, e.FORCE))
    start_here(data, arc)
    mode, slips = integers(arc, e.CONTACT_MODE), False
    for i in range(mode.shape[0]):
        slips = slips or mode[i] == SLIP
    return slips


# --- The end of the step.


@kernel
def finish_step(data, arc, events, residual):
    """Write the step into the step data; `residual` is the largest of its solves [N]."""
    remove_drift(data, arc)
    h, v_start = vector(data, f.TIME_STEP)[0], vector(data, f.V_START)
    v_next = vector(data, f.V_NEXT)
    assign(vector(data, f.Q), vector(arc, e.ARC_Q))
    assign(vector(data, f.V), vector(arc, e.ARC_V))
    assign(vector(data, f.IMPULSE), vector(arc, e.IMPULSE))
    assign(vector(data, f.U_NEXT), vector(arc, e.U))
    # v⁺ and v̇ as a time-stepping step reports them
    velocity_in_start_axes(data, arc, v_next)
    acceleration, transport = vector(data, f.ACCELERATION), vector(data, f.TRANSPORT)
    for k in range(v_next.shape[0]):
        acceleration[k] = (v_next[k] - v_start[k]) / h - transport[k]
    took_part = store_contacts(data, arc)
    store_constraint_impulse(data, arc)
    solver, clock = vector(data, f.SOLVER), vector(data, f.CLOCK)
    solver[0] = status_with_degenerate(data, CONVERGED if took_part else FREE)
    solver[1], solver[2] = events, residual
    update_actuators(data)
    clock[2] += 1.0
    clock[0] = clock[1] + clock[2] * h
    describe_contacts(data)


@kernel
def store_contacts(data, arc):
    """Fill active contacts and the memory of all; return True if a row took part in the step."""
    active, impulse, closed = vector(data, f.ACTIVE), vector(arc, e.IMPULSE), vector(arc, e.CLOSED)
    memory, frame, force = matrix(data, f.MEMORY), frames(arc, e.FRAME), vector(arc, e.FORCE)
    mode, nc = integers(arc, e.CONTACT_MODE), active.shape[0]
    interval_active, took_part = vector(data, f.INTERVAL_ACTIVE), False
    for k in range(interval_active.shape[0]):
        held = vector(arc, e.INTERVAL_CLOSED)[k] != 0.0
        interval_active[k] = 1.0 if held or impulse[3 * nc + k] != 0.0 else 0.0
        took_part = took_part or interval_active[k] != 0.0
    for i in range(nc):
        pushed = impulse[3 * i] != 0.0 or impulse[3 * i + 1] != 0.0 or impulse[3 * i + 2] != 0.0
        if pushed:
            active[i] = 1.0
        took_part = took_part or pushed or closed[i] != 0.0
        store_contact_state(memory[i], mode[i], vec(force, 3 * i), frame[i])
    return took_part


@kernel
def store_contact_state(memory, mode, force, frame):
    """Keep force, in world axes [N], and mode of a contact: a row of `memory`, shape (4,)."""
    put(memory, 0, rotated(vec(frame[0], 0), vec(frame[1], 0), vec(frame[2], 0), force))
    memory[3] = mode


@kernel
def velocity_in_start_axes(data, arc, v_next):
    """Fill v with the linear velocity of free flyers in their axes at the start, shape (nv,)."""
    assign(v_next, vector(arc, e.ARC_V))
    kind, v_index = integers(data, f.KIND), integers(data, f.V_INDEX)
    pose, axes, flyer = matrix(data, f.POSE), matrix(arc, e.START_AXES), 0
    for j in range(1, kind.shape[0]):
        if kind[j] == FREE_FLYER:
            R, S, k = pose[j], axes[flyer], v_index[j]
            world = rotated(vec(R, 0), vec(R, 3), vec(R, 6), vec(v_next, k))
            put(v_next, k, (dot(vec(S, 0), world), dot(vec(S, 3), world), dot(vec(S, 6), world)))
            flyer += 1
