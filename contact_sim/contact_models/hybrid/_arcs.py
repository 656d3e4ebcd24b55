"""One arc between events, and the guards that end it (theory 2.6).

An arc is a Runge-Kutta step of 4th order in which the contacts hold their modes. The state at its
start stays until `accept`, so that an arc can be integrated again to another length while an event
is located. Stages are counted from 0, the start; the end of the arc is one stage more.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, integers, matrix, vector
from contact_sim.collision._contact_slots import NO_FEATURE, any_kept
from contact_sim.contact_models._stages import place_bodies, update_actuators
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._arc_fields import STAGES
from contact_sim.contact_models.hybrid._modes import AWAY, OPEN, SLIP, STICK, is_limit
from contact_sim.contact_models.hybrid._motion import (
    arc_branches,
    evaluate_motion,
    evaluate_velocity,
    fill_arc_velocities,
    fill_effects,
    fill_joint_limits,
    fill_position_errors,
    hold_modes,
    impose_driven_speeds,
    in_start_frames,
    store_constraint_impulse,
)
from contact_sim.dynamics._integration import (
    fill_rates,
    integrate_configuration,
    next_stage,
    velocity_in_new_axes,
    weighted_mean,
)
from contact_sim.dynamics._tree import FREE_FLYER
from contact_sim.dynamics._vectors import dot, put, rotated, vec
from contact_sim.solvers._cone_problem import CONVERGED, FREE
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import DEGENERATE, impulse_sign, status_with_degenerate
from contact_sim.step._workspace import describe_contacts

ARC_TOLERANCE = 1e-2
"""Error of the velocity over one arc that calls for shorter arcs, relative to 1 and the speed."""
CLOSING_DEPTH = 1e-12  # depth at which an approaching contact counts as closed [m]
STILL = 1e-12  # speed up to which what is open neither approaches nor leaves: rounding [m/s]
FORCE_SLACK = 1e-9  # violation of a force bound that counts, relative to the largest force
LEAST_FORCE = 1e-9  # lower bound of that largest force [N]
RESTING_SPEED = 1e-7  # normal speed up to which a touching contact counts as resting [m/s]
IMPACT_SPEED = 1e-3  # approach speed from which even a contact that was held collides [m/s]
TOUCHING_GAP = 1e-9  # gap up to which a contact at rest touches [m]
CUBIC_STEPS = 20  # steps to the root of a cubic
HELD_GAP = 1e-5  # gap up to which a contact closed in the step before stays so [m]
TURNS_BEFORE_CAPTURE = 4  # turns of a slip in one step after which it may be taken as at rest
CAPTURE_SPEED = 1e-4  # speed up to which it then is [m/s]


# --- The start of a step: the state, and which contacts and limits are closed.


@kernel
def start_step(data, arc):
    """Load the state and the contact memory; return True if a contact collides."""
    # placements, twists and nle are those of the state
    q, v = vector(arc, e.ARC_Q), vector(arc, e.ARC_V)
    assign(q, vector(data, f.Q))
    assign(v, vector(data, f.V))
    # modes and forces of the step before, from the memory: forces into the contact frames
    memory, frame = matrix(data, f.MEMORY), frames(data, f.FRAME)
    mode, reference = integers(arc, e.CONTACT_MODE), vector(arc, e.REFERENCE)
    nc = mode.shape[0]
    for i in range(nc):
        mode[i] = int(memory[i, 3])
        if mode[i] == OPEN:  # as most are
            put(reference, 3 * i, (0.0, 0.0, 0.0))
            continue
        for a in range(3):
            reference[3 * i + a] = dot(vec(frame[i, a], 0), vec(memory[i], 0))
    # bounds, gaps and last forces of the interval rows; limits that pushed are closed
    lower, upper, gap = vector(arc, e.LOWER), vector(arc, e.UPPER), vector(arc, e.INTERVAL_GAP)
    assign(lower, vector(data, f.INTERVAL_LOWER))
    assign(upper, vector(data, f.INTERVAL_UPPER))
    assign(gap, vector(data, f.INTERVAL_GAP))
    fill_joint_limits(data, arc, q)
    h, impulse = vector(data, f.TIME_STEP)[0], vector(data, f.IMPULSE)
    interval_mode, ns = integers(arc, e.INTERVAL_MODE), gap.shape[0]
    for k in range(ns):
        reference[3 * nc + k] = impulse[3 * nc + k] / h
        if k >= ns - integers(data, f.LIMIT_Q).shape[0] and is_limit(lower, upper, k):
            interval_mode[k] = 0 if impulse[3 * nc + k] != 0.0 else AWAY
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
    assign(vector(arc, e.STAGE_Q), q)
    # the instant at the start; driven speeds are imposed before contacts are sorted
    fill_position_errors(data, q)
    assign(vector(arc, e.NONLINEAR_EFFECTS), vector(data, f.NONLINEAR_EFFECTS))
    # contacts of bodies at q are known: none are looked for where there are none
    touches = any_kept(integers(data, f.LEAF_DOF).shape[0], vector(data, f.FEATURE))
    evaluate_motion(data, arc, v, touches)
    fill_arc_velocities(data, arc, v, vector(arc, e.U))
    if impose_driven_speeds(data, arc):
        evaluate_velocity(data, arc, v)
    collides = find_closed(arc)
    # degenerate contacts are open for the whole step
    active, closed = vector(data, f.ACTIVE), vector(arc, e.CLOSED)
    for i in range(nc):
        if active[i] == DEGENERATE:
            closed[i], mode[i] = 0.0, OPEN
    return collides


@kernel
def find_closed(arc):
    """Mark contacts and limits that are closed at the start; return True if one collides."""
    gap, u, closed = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.CLOSED)
    mode, collides = integers(arc, e.CONTACT_MODE), False
    for i in range(gap.shape[0]):
        # closed before and near, at rest on the surface, or colliding with it
        speed = u[3 * i + 2]
        held = mode[i] != OPEN and gap[i] <= HELD_GAP
        resting = gap[i] <= TOUCHING_GAP and abs(speed) <= RESTING_SPEED
        colliding = not held and gap[i] <= CLOSING_DEPTH and speed < -RESTING_SPEED
        closed[i] = 1.0 if held or resting or colliding else 0.0
        if closed[i] == 0.0:
            mode[i] = OPEN
        collides = collides or colliding or (held and speed < -IMPACT_SPEED)
    # limits; the mode of one that pushed in the step before is 0
    error, limit_mode = vector(arc, e.INTERVAL_GAP), integers(arc, e.INTERVAL_MODE)
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    limit_closed, first = vector(arc, e.INTERVAL_CLOSED), 3 * gap.shape[0]
    for k in range(error.shape[0]):
        if not is_limit(lower, upper, k):
            limit_closed[k] = 1.0
            continue
        side = impulse_sign(lower, upper, k)
        distance, speed = side * error[k], side * u[first + k]
        held = limit_mode[k] == 0 and distance <= HELD_GAP and speed <= RESTING_SPEED
        resting = distance <= TOUCHING_GAP and abs(speed) <= RESTING_SPEED
        colliding = not held and distance <= CLOSING_DEPTH and speed < -RESTING_SPEED
        limit_closed[k] = 1.0 if held or resting or colliding else 0.0
        limit_mode[k] = 0 if limit_closed[k] == 1.0 else AWAY
        collides = collides or colliding or (held and speed < -IMPACT_SPEED)
    return collides


# --- Guards: functions of the state that are positive while the modes hold (theory 2.6, T15).
#
#     open       gap φ while the contact approaches
#     closed     normal force f_n                    (not φ̇: it is zero at release), and that the
#                surface is still there
#     stick      μ f_n − |f_t|
#     slip       u_t · d, d the direction in which it slips at the start
#     intervals  distance of the force from its bounds at rest, ±u while moving; of a limit that is
#                not touched |φ| while it is approached
#
# One array holds them: normal guards (nc,), tangential guards (nc,), intervals (ns,).


@kernel
def fill_guards(data, arc):
    """Fill the guards and how far below zero each may be; return how many are violated."""
    guard, slack, allowance = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.ALLOWANCE)
    gap, u, force = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.FORCE)
    level, rate = vector(arc, e.LEVEL), vector(arc, e.RATE)
    guard[:], slack[:], rate[:] = np.inf, 0.0, np.nan  # no guard unless one follows
    heading, friction = matrix(arc, e.HEADING), vector(data, f.FRICTION)
    # u̇ = J v̇ + J̇ v: the slope of guards that are speeds
    slope, drift = vector(data, f.ROW_FREE), vector(arc, e.DRIFT)
    fill_arc_velocities(data, arc, vector(arc, e.ACCELERATION), slope)
    mode, stiction_speed = integers(arc, e.CONTACT_MODE), vector(arc, e.SETTINGS)[0]
    nc, active, last = mode.shape[0], vector(data, f.ACTIVE), arc_branches(data, arc)[3]
    for i in range(last, nc):
        if mode[i] != OPEN:  # held, and the surface is no longer there
            last = i + 1
    force_slack = FORCE_SLACK * max(LEAST_FORCE, largest_force(force, nc, last))
    for i in range(last):
        r = 3 * i
        if active[i] == DEGENERATE:
            slack[i] = CLOSING_DEPTH
            continue
        if mode[i] == OPEN:
            # open: the gap, or, at the surface, the speed of leaving it
            approaches = gap[i] > 0.0 or u[r + 2] < -STILL
            guard[i], slack[i] = gap[i] if approaches else u[r + 2], CLOSING_DEPTH
            rate[i] = u[r + 2]
            continue
        if has_ended(arc, i):
            guard[i], slack[i] = -1.0, force_slack
            continue
        guard[i], slack[i] = force[r + 2] + allowance[i], force_slack
        if mode[i] == STICK:
            # stick: distance from the cone
            tangential = np.sqrt(force[r] ** 2 + force[r + 1] ** 2)
            guard[nc + i] = friction[i] * force[r + 2] - tangential + allowance[nc + i]
            slack[nc + i] = force_slack
        elif friction[i] > 0.0:
            guard[nc + i] = u[r] * heading[i, 0] + u[r + 1] * heading[i, 1]
            rate[nc + i] = (slope[r] + drift[r]) * heading[i, 0]
            rate[nc + i] += (slope[r + 1] + drift[r + 1]) * heading[i, 1]
            slack[nc + i] = stiction_speed
    # interval rows
    lower, upper, error = vector(arc, e.LOWER), vector(arc, e.UPPER), vector(arc, e.INTERVAL_GAP)
    interval_mode = integers(arc, e.INTERVAL_MODE)
    for k in range(interval_mode.shape[0]):
        r, place = 3 * nc + k, 2 * nc + k
        if interval_mode[k] == 0:
            guard[place] = min(force[r] - lower[k], upper[k] - force[r]) + allowance[place]
            slack[place] = force_slack
        elif interval_mode[k] == AWAY:
            side = impulse_sign(lower, upper, k)
            distance, speed = side * error[k], side * u[r]
            guard[place] = distance if distance > 0.0 or speed < -STILL else speed
            slack[place], level[place], rate[place] = CLOSING_DEPTH, distance, speed
        else:
            guard[place], slack[place] = interval_mode[k] * u[r], stiction_speed
            rate[place] = interval_mode[k] * (slope[r] + drift[r])
    return fill_levels(arc)


@kernel
def largest_force(force, nc, last):
    """Return the largest |f| of the `last` contacts in use and of all interval rows."""
    largest = 0.0
    for r in range(3 * last):
        largest = max(largest, abs(force[r]))
    for r in range(3 * nc, force.shape[0]):
        largest = max(largest, abs(force[r]))
    return largest


@kernel
def fill_levels(arc):
    """Fill what passes zero where a guard does; return how many guards are violated."""
    guard, slack, gap = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.GAP)
    level, rate, mode = vector(arc, e.LEVEL), vector(arc, e.RATE), integers(arc, e.INTERVAL_MODE)
    nc, violated = gap.shape[0], 0
    for place in range(guard.shape[0]):
        if guard[place] < -slack[place]:
            violated += 1
        if place < nc and not np.isnan(rate[place]):
            level[place] = gap[place]
        elif place < 2 * nc or mode[place - 2 * nc] != AWAY:
            level[place] = guard[place]
    return violated


@kernel
def has_ended(arc, i):
    """Return True if the surface that closed contact i was on is no longer among the nearest."""
    return vector(arc, e.FEATURE)[i] == NO_FEATURE or vector(arc, e.GAP)[i] > HELD_GAP


@kernel
def is_force_guard(arc, place):
    """Return True if the guard at `place` is one of a force."""
    mode, interval_mode = integers(arc, e.CONTACT_MODE), integers(arc, e.INTERVAL_MODE)
    nc = mode.shape[0]
    if place < nc:
        return mode[place] != OPEN and not has_ended(arc, place)
    if place < 2 * nc:
        return mode[place - nc] == STICK
    return interval_mode[place - 2 * nc] == 0


@kernel
def only_forces_violated(arc):
    """Return True if every violated guard is one of a force."""
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    for place in range(guard.shape[0]):
        if guard[place] < -slack[place] and not is_force_guard(arc, place):
            return False
    return True


# --- One arc.


@kernel
def begin_arc(data, arc, lenience):
    """Start arcs in the modes at hand; return False if no finite force holds them."""
    # bounds of forces may be missed by `lenience` slacks before it counts as an event
    held = hold_modes(data, arc)
    vector(arc, e.ALLOWANCE)[:] = 0.0
    fill_guards(data, arc)
    # forces that start below zero may miss twice that: the contact problem has forces inside all
    # bounds; where they are redundant, those that hold the modes may lie a little outside
    guard, slack, allowance = vector(arc, e.GUARD), vector(arc, e.SLACK), vector(arc, e.ALLOWANCE)
    for place in range(guard.shape[0]):
        if is_force_guard(arc, place):
            allowance[place] = max(-2.0 * guard[place], 0.0) + lenience * slack[place]
            guard[place] += allowance[place]
    start_here(data, arc)
    return held


@kernel
def start_here(data, arc):
    """Make forces, guards and rates of the instant evaluated last those of the start."""
    v, displacement = vector(arc, e.ARC_V), vector(arc, e.DISPLACEMENT)
    in_start_frames(data, arc, vector(arc, e.FORCE), matrix(arc, e.FORCES)[0])
    assign(matrix(arc, e.BILATERAL_FORCES)[0], vector(arc, e.BILATERAL_FORCE))
    assign(vector(arc, e.LEVEL_BEFORE), vector(arc, e.LEVEL))
    assign(vector(arc, e.RATE_BEFORE), vector(arc, e.RATE))
    displacement[:] = 0.0
    fill_rates(
        v, v, vector(arc, e.ACCELERATION), displacement, integers(data, f.FREE_FLYER_V),
        matrix(arc, e.RATES)[0], matrix(arc, e.VELOCITY_RATES)[0],
    )  # fmt: skip


@kernel
def integrate(data, arc, dt):
    """Integrate by dt; return whether finite forces hold the modes, error, violated guards."""
    error, violated = 0.0, 0
    for stage in range(1, STAGES + 1):
        error = start_stage(data, arc, stage, dt)
        held, violated = finish_stage(data, arc, stage)
        if not held:
            return False, error, 0
    return True, error, violated


@kernel
def start_stage(data, arc, stage, dt):
    """Fill q and v of a stage, 1 to STAGES, of an arc of dt [s]; return the error at its end."""
    displacement, w = vector(arc, e.DISPLACEMENT), vector(arc, e.FIXED_AXES_V)
    error, start_v = 0.0, vector(arc, e.ARC_V)
    if stage == STAGES:
        error = end_of_arc(arc, dt)
    else:
        rates, velocity_rates = matrix(arc, e.RATES), matrix(arc, e.VELOCITY_RATES)
        next_stage(stage, dt, start_v, rates, velocity_rates, displacement, w)
    velocity_in_new_axes(displacement, w, integers(data, f.FREE_FLYER_V), vector(arc, e.STAGE_V))
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        integrate_configuration(
            integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
            matrix(data, f.POSE), displacement, vector(arc, e.ARC_Q), vector(arc, e.STAGE_Q),
        )  # fmt: skip
    return error


@kernel
def finish_stage(data, arc, stage):
    """Fill forces and rates of a stage, at the end the guards; return held, violated guards."""
    v = vector(arc, e.STAGE_V)
    if not np.isfinite(np.sum(v)):
        return False, 0
    q = vector(arc, e.STAGE_Q)
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        place_bodies(data, q)
    fill_position_errors(data, q)
    fill_effects(data, arc, v)
    at_end = stage == STAGES
    evaluate_motion(data, arc, v, at_end)
    # before the end only directions of slip need u, and nothing needs the distance from limits
    if at_end or any_slips(arc):
        fill_arc_velocities(data, arc, v, vector(arc, e.U))
    if at_end:
        fill_joint_limits(data, arc, q)
    held = hold_modes(data, arc)
    if at_end:
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
def any_slips(arc):
    """Return whether a contact slips."""
    slips = 0
    for mode in integers(arc, e.CONTACT_MODE):
        slips += mode == SLIP
    return slips > 0


@kernel
def end_of_arc(arc, dt):
    """Fill displacement, velocity and mean forces of the arc; return its error, 1 is tolerable."""
    displacement, v = vector(arc, e.DISPLACEMENT), vector(arc, e.ARC_V)
    w, rates = vector(arc, e.FIXED_AXES_V), matrix(arc, e.VELOCITY_RATES)
    error, fastest = 0.0, 1.0
    for k in range(v.shape[0]):
        # dt/6 |k₁ − k₂ − k₃ + k₄| of the velocity: zero where the stages are one smooth motion
        spread = rates[0, k] - rates[1, k] - rates[2, k] + rates[3, k]
        error = max(error, dt / 6.0 * abs(spread))
        fastest = max(fastest, abs(v[k]))
    # (k₁ + 2 k₂ + 2 k₃ + k₄) / 6 of displacement, velocity and forces
    weighted_mean(matrix(arc, e.RATES), displacement)
    weighted_mean(rates, w)
    weighted_mean(matrix(arc, e.FORCES), vector(arc, e.MEAN_FORCE))
    weighted_mean(matrix(arc, e.BILATERAL_FORCES), vector(arc, e.BILATERAL_MEAN))
    for k in range(v.shape[0]):
        displacement[k] *= dt
        w[k] = v[k] + dt * w[k]
    return error / (ARC_TOLERANCE * fastest)


@kernel
def accept(data, arc, dt):
    """Make the end of the arc the state and a new start; return True if a contact slips."""
    end_at(arc, dt)
    start_here(data, arc)
    return any_slips(arc)


@kernel
def end_at(arc, dt):
    """Make the end of an arc of dt [s] the state, and add up the impulses."""
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


# --- The instant of an event, and the state after it.


@kernel
def watch_violated(arc):
    """Watch the guards that are violated, if any are; those watched before are from zero on.

    Returns the number of violated guards, and the largest violation of a watched one in slacks.
    """
    guard, slack, largest = vector(arc, e.GUARD), vector(arc, e.SLACK), 0.0
    watched, fresh, count = integers(arc, e.WATCHED), integers(arc, e.FRESH), 0
    for place in range(guard.shape[0]):
        limit = 0.0 if watched[place] == 1 else -slack[place]
        fresh[place] = 1 if guard[place] < limit else 0
        count += fresh[place]
    if count > 0:
        watched[:] = fresh
    for place in range(guard.shape[0]):
        if watched[place] == 1:
            largest = max(largest, -guard[place] / slack[place])
    return count, largest


@kernel
def earliest_root(arc, low, high, third, bisect):
    """Return the earliest estimate of a root in [low, high] [s], or their middle to `bisect`."""
    # at `low` no watched guard is violated, at `high` all are; NaN: there is no `third` instant
    watched, first = integers(arc, e.WATCHED), high
    for place in range(watched.shape[0]):
        if watched[place] == 1:
            share = 0.5 if bisect else share_of_root(arc, place, low, high, third)
            first = min(first, low + share * (high - low))
    return first


@kernel
def time_since_root(arc, low, high, third):
    """Return the longest time, about, for which a watched guard is violated at `high` [s]."""
    watched, longest = integers(arc, e.WATCHED), 0.0
    for place in range(watched.shape[0]):
        if watched[place] == 1:
            share = share_of_root(arc, place, low, high, third)
            longest = max(longest, (1.0 - share) * (high - low))
    return longest


@kernel
def share_of_root(arc, place, low, high, third):
    """Return where between `low` and `high` a level passes zero, as a share."""
    start, end = vector(arc, e.LEVEL_LOW)[place], vector(arc, e.LEVEL_HIGH)[place]
    first_slope = (high - low) * vector(arc, e.RATE_LOW)[place]
    last_slope = (high - low) * vector(arc, e.RATE_HIGH)[place]
    if np.isfinite(first_slope + last_slope):
        return closing_of_cubic(start, end, first_slope, last_slope)
    if start <= 0.0:
        return 0.0
    share, value = start / (start - end), vector(arc, e.LEVEL_THIRD)[place]
    if np.isfinite(third):
        share = parabola_root(start, end, (third - low) / (high - low), value, share)
    return share


@kernel
def closing_of_cubic(start, end, first_slope, last_slope):
    """Return where in [0, 1] the cubic with these ends and slopes is first ≤ 0 and falls."""
    # a + b x + c x² + d x³; at the end it does both
    change = end - start
    a, b = start, first_slope
    c, d = 3.0 * change - 2.0 * first_slope - last_slope, first_slope + last_slope - 2.0 * change
    # its top: b + 2 c x + 3 d x² = 0, from above
    top = 0.0
    if b > 0.0:
        square = c * c - 3.0 * b * d
        top = b / (np.sqrt(square) - c) if square > 0.0 and np.sqrt(square) > c else 1.0
        top = min(top, 1.0)
    if a + top * (b + top * (c + top * d)) <= 0.0:
        return top
    # Newton from the end, and bisection where it leaves the bracket
    low, high, x = top, 1.0, 1.0
    for _ in range(CUBIC_STEPS):
        value = a + x * (b + x * (c + x * d))
        if value > 0.0:
            low = x
        else:
            high = x
        slope = b + x * (2.0 * c + 3.0 * x * d)
        step = value / slope if slope < 0.0 else np.inf
        before, x = x, x - step if low < x - step < high else 0.5 * (low + high)
        if abs(x - before) <= 1e-16:
            break
    return x


@kernel
def parabola_root(start, end, way, value, otherwise):
    """Return where the parabola through (0, start > 0), (1, end < 0), (way, value) is zero.

    That is in (0, 1); `otherwise` where rounding hides it.
    """
    slope = end - start
    bend = ((value - end) / (way - 1.0) - slope) / way
    linear = slope - bend
    square = linear**2 - 4.0 * bend * start
    root = 2.0 * start / (np.sqrt(square) - linear) if square >= 0.0 else otherwise
    return root if 0.0 < root < 1.0 else otherwise


@kernel
def prepare_event(arc):
    """Close what touches, mark guards at their bound; return True if a contact collides."""
    guard, slack = vector(arc, e.GUARD), vector(arc, e.SLACK)
    mode, at_end, u = integers(arc, e.CONTACT_MODE), integers(arc, e.AT_END), vector(arc, e.U)
    closed, turns, nc = vector(arc, e.CLOSED), integers(arc, e.TURNS), mode.shape[0]
    collides = False
    for place in range(guard.shape[0]):
        at_end[place] = 1 if guard[place] <= slack[place] else 0
    for i in range(nc):
        if mode[i] != OPEN and has_ended(arc, i):
            closed[i], mode[i] = 0.0, OPEN
        # a slow slip that turned back several times within this step is taken as at rest
        if mode[i] == SLIP and at_end[nc + i] != 0:
            turns[i] += 1
            slow = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2) <= CAPTURE_SPEED
            if slow and turns[i] > TURNS_BEFORE_CAPTURE:
                mode[i] = STICK
        if mode[i] == OPEN:
            if at_end[i] == 1 and u[3 * i + 2] < -STILL:
                closed[i], collides = 1.0, True
            at_end[i] = 0
    limit_mode, limit_closed = integers(arc, e.INTERVAL_MODE), vector(arc, e.INTERVAL_CLOSED)
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    for k in range(limit_mode.shape[0]):
        if limit_mode[k] == AWAY:
            approaches = impulse_sign(lower, upper, k) * u[3 * nc + k] < -STILL
            if at_end[2 * nc + k] == 1 and approaches:
                limit_closed[k], limit_mode[k], collides = 1.0, 0, True
            at_end[2 * nc + k] = 0
    return collides


# --- The end of the step.


@kernel
def finish_step(data, arc, events, residual):
    """Write the step into the step data; `residual` is the largest of its solves [N]."""
    h, v_start = vector(data, f.TIME_STEP)[0], vector(data, f.V_START)
    v_next = vector(data, f.V_NEXT)
    assign(vector(data, f.Q), vector(arc, e.ARC_Q))
    assign(vector(data, f.V), vector(arc, e.ARC_V))
    assign(vector(data, f.IMPULSE), vector(arc, e.IMPULSE))
    assign(vector(data, f.U_NEXT), vector(arc, e.U))
    # v⁺ and v̇ as a time-stepping step reports them: linear velocities of free flyers in their
    # axes at the start
    assign(v_next, vector(arc, e.ARC_V))
    kind, v_index = integers(data, f.KIND), integers(data, f.V_INDEX)
    pose, axes, flyer = matrix(data, f.POSE), matrix(arc, e.START_AXES), 0
    for j in range(1, kind.shape[0]):
        if kind[j] == FREE_FLYER:
            R, S, k = pose[j], axes[flyer], v_index[j]
            world = rotated(vec(R, 0), vec(R, 3), vec(R, 6), vec(v_next, k))
            put(v_next, k, (dot(vec(S, 0), world), dot(vec(S, 3), world), dot(vec(S, 6), world)))
            flyer += 1
    acceleration, transport = vector(data, f.ACCELERATION), vector(data, f.TRANSPORT)
    for k in range(v_next.shape[0]):
        acceleration[k] = (v_next[k] - v_start[k]) / h - transport[k]
    # active contacts, the memory of all, and whether a row took part in the step
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
        if mode[i] != OPEN or memory[i, 3] != OPEN:
            store_contact_state(memory[i], mode[i], vec(force, 3 * i), frame[i])
    store_constraint_impulse(data, arc)
    solver, clock = vector(data, f.SOLVER), vector(data, f.CLOCK)
    solver[0] = status_with_degenerate(data, CONVERGED if took_part else FREE)
    solver[1], solver[2] = events, residual
    update_actuators(data)
    clock[2] += 1.0
    clock[0] = clock[1] + clock[2] * h
    describe_contacts(data)


@kernel
def store_contact_state(memory, mode, force, frame):
    """Keep force, in world axes [N], and mode of a contact: a row of `memory`, shape (4,)."""
    put(memory, 0, rotated(vec(frame[0], 0), vec(frame[1], 0), vec(frame[2], 0), force))
    memory[3] = mode
