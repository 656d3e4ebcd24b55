"""The closed contacts at one instant: their modes chosen, their modes held, their drift removed.

What drifts by the error of the integration is taken back at the end of a step, at the level of
velocities: u_t = 0 and u_n = −α φ for what is held (theory T8: no Baumgarte along the ground).
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, square, vector
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._modes import (
    AWAY,
    LEAVING_ACCELERATION,
    ON_THE_CONE,
    OPEN,
    STICK,
    Modes,
    mode_forces,
    select_modes,
    slip_direction,
    solve_symmetric_sets,
    spread_redundant,
)
from contact_sim.contact_models.hybrid._motion import (
    accumulate_constraint_impulse,
    add_impulse,
    add_response,
    arc_branches,
    closed_rows,
    fill_constraint_forces,
    interval_of,
)
from contact_sim.solvers._cone_problem import Rows, fill_velocity
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import (
    all_islands,
    collect_rows,
    interval_branches,
    row_velocities,
)

STOP_TRIES = 10

STOP_ACCURACY = 0.8
"""Solves to find the first stop of a slip; how close to it is close enough, as a ratio."""

LEAST_SHARE = 1e-6
"""Of an arc, in which one more such solve may look for a stop."""

MAX_RELAXATION = 2.0
"""Bound on arc length times relaxation rate of a slip; Runge-Kutta of 4th order takes 2.78."""

MAX_CORRECTION_SPEED = 1e-3
"""Largest change of a normal velocity in one step to take out a penetration [m/s]."""


@kernel
def choose_modes(data, arc, dt):
    """Choose the modes of the closed contacts for an arc of about dt, and open those that leave.

    `heading` is the direction in which each contact slips at first, `direction` that against
    which friction acts; they differ where a slow slip turns (`frozen`).
    The modes say what held before: what stuck counts as at rest. `reference` is guess and answer.
    Returns (status code, sweeps, natural map [N]).
    """
    rows, n = closed_rows(data, arc)
    row_of, na, ns = integers(data, f.ROW_OF), rows.friction.shape[0], rows.lower.shape[0]
    mode, at_end = integers(arc, e.CONTACT_MODE), integers(arc, e.AT_END)
    u, reference = vector(arc, e.U), vector(arc, e.REFERENCE)
    stiction_speed, nc = vector(arc, e.SETTINGS)[0], mode.shape[0]
    modes = Modes(np.empty(na, np.int64), np.zeros((na, 2)), np.empty(ns, np.int64))
    speed, guess, ends = np.empty(n), np.empty(n), np.zeros(2 * na + ns, np.int64)
    keep = np.empty(na, np.int64)
    # velocities, guess and ended guards of the closed rows; what stuck counts as at rest
    for r in range(n):
        speed[r], guess[r] = u[row_of[r]], reference[row_of[r]]
    for c in range(na):
        i = row_of[3 * c] // 3
        ends[c], ends[na + c] = at_end[i], at_end[nc + i]
        if mode[i] == STICK:
            speed[3 * c] = speed[3 * c + 1] = 0.0
    for k in range(ns):
        ends[2 * na + k] = at_end[2 * nc + interval_of(data, na, k)]
    # directions of slow slips, the modes, and forces inside their bounds
    freeze_slow_slips(rows, speed, stiction_speed, dt, guess, modes.direction, keep)
    outcome = select_modes(rows, speed, stiction_speed, ends, guess, modes, keep)
    spread_redundant(rows, modes, guess)
    reference[:] = 0.0
    for r in range(n):
        reference[row_of[r]] = guess[r]
    store_modes(data, arc, modes, keep)
    return outcome


@kernel
def store_modes(data, arc, modes, keep):
    """Write the modes of the closed contacts back, with directions; `keep`: which are frozen."""
    row_of, u = integers(data, f.ROW_OF), vector(arc, e.U)
    mode, frozen = integers(arc, e.CONTACT_MODE), integers(arc, e.FROZEN)
    direction, heading = matrix(arc, e.DIRECTION), matrix(arc, e.HEADING)
    closed, stiction_speed = vector(arc, e.CLOSED), vector(arc, e.SETTINGS)[0]
    mode[:], frozen[:] = OPEN, 0
    for c in range(modes.contact.shape[0]):
        i = row_of[3 * c] // 3
        mode[i], frozen[i] = modes.contact[c], keep[c]
        x, y = modes.direction[c, 0], modes.direction[c, 1]
        direction[i, 0], direction[i, 1] = x, y
        if u[3 * i] ** 2 + u[3 * i + 1] ** 2 > stiction_speed**2:
            x, y = slip_direction(u[3 * i], u[3 * i + 1], 0.0, 0.0, 0)
        heading[i, 0], heading[i, 1] = x, y
        closed[i] = 0.0 if modes.contact[c] == OPEN else 1.0
    store_interval_modes(data, arc, modes)


@kernel
def store_interval_modes(data, arc, modes):
    """Write the modes of the closed intervals back; a limit that moves is left."""
    na, mode = modes.contact.shape[0], integers(arc, e.INTERVAL_MODE)
    first = mode.shape[0] - integers(data, f.LIMIT_Q).shape[0]
    for k in range(modes.interval.shape[0]):
        s = interval_of(data, na, k)
        mode[s] = modes.interval[k]
        if s >= first and mode[s] != 0:
            mode[s], vector(arc, e.INTERVAL_CLOSED)[s] = AWAY, 0.0


@kernel
def hold_modes(data, arc):
    """Fill the forces that hold the modes, and v̇; return False if there are none."""
    rows, n = closed_rows(data, arc)
    row_of, na = integers(data, f.ROW_OF), rows.friction.shape[0]
    mode, frozen = integers(arc, e.CONTACT_MODE), integers(arc, e.FROZEN)
    direction, u = matrix(arc, e.DIRECTION), vector(arc, e.U)
    force, reference = vector(arc, e.FORCE), vector(arc, e.REFERENCE)
    modes = Modes(np.empty(na, np.int64), np.empty((na, 2)), interval_modes(data, arc, na, n))
    near, answer = np.empty(n), np.empty(n)
    # modes and directions of slip at this instant
    for c in range(na):
        i = row_of[3 * c] // 3
        modes.contact[c] = mode[i]
        modes.direction[c, 0], modes.direction[c, 1] = slip_direction(
            u[3 * i], u[3 * i + 1], direction[i, 0], direction[i, 1], frozen[i]
        )
    for r in range(n):
        near[r] = reference[row_of[r]]
    held = mode_forces(rows, modes, near, answer)
    force[:] = 0.0
    for r in range(n):
        force[row_of[r]] = answer[r]
    # v̇ = M⁻¹ (τ − nle − D v) + M⁻¹ Jᵀ f
    acceleration, free = vector(arc, e.ACCELERATION), vector(arc, e.FREE_ACCELERATION)
    assign(acceleration, free)
    add_response(data, arc, force, acceleration)
    fill_constraint_forces(data, arc)
    return held and bool(np.isfinite(np.sum(acceleration)))


@kernel
def interval_modes(data, arc, na, n):
    """Return the modes of the closed intervals of a problem of n rows, na contacts in front."""
    modes = np.empty(n - 3 * na, np.int64)
    for k in range(modes.shape[0]):
        modes[k] = integers(arc, e.INTERVAL_MODE)[interval_of(data, na, k)]
    return modes


@kernel
def remove_drift(data, arc):
    """Take the drift out of the velocity of what is held: u_t = 0, u_n = −α φ, intervals at rest.

    A penetration that was there before is taken out slowly: u_n changes by no more than
    MAX_CORRECTION_SPEED; so is the position error of a bilateral row. The impulses, of the size of
    the integration error, are added to those of the step. The Delassus matrix is the one that
    `hold_modes` left.
    """
    row_of, intervals = integers(data, f.ROW_OF), interval_branches(data)
    na, n = collect_rows(
        vector(arc, e.CLOSED), vector(arc, e.INTERVAL_CLOSED), arc_branches(data, arc),
        intervals[0], all_islands(data), row_of, integers(data, f.ROW_LEAF),
    )  # fmt: skip
    modes = Modes(np.empty(na, np.int64), np.zeros((na, 2)), interval_modes(data, arc, na, n))
    # errors of the velocities, and the impulses G λ = −error that take them out
    drift, ns = np.zeros(n), n - 3 * na
    fill_velocity_drift(data, arc, modes, drift)
    worst = 0.0
    for r in range(n):
        worst = max(worst, abs(drift[r]))
    if worst == 0.0:
        return
    rows = Rows(square(data, f.DELASSUS, n), drift, np.zeros(na), np.zeros(ns), np.zeros(ns))
    answer, impulse = np.zeros(n), np.zeros(vector(arc, e.IMPULSE).shape[0])
    mode_forces(rows, modes, np.zeros(n), answer)
    for r in range(n):
        impulse[row_of[r]] = answer[r]
    v = vector(arc, e.ARC_V)
    add_response(data, arc, impulse, v)
    accumulate_constraint_impulse(data, arc)
    add_impulse(data, arc, impulse)
    row_velocities(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), intervals,
        integers(data, f.DOF_PARENT), v, vector(arc, e.U),
    )  # fmt: skip


@kernel
def fill_velocity_drift(data, arc, modes, drift):
    """Fill by how much every row misses the velocity that it is held at [m/s, rad/s].

    Also the modes of the closed contacts.
    """
    row_of, mode = integers(data, f.ROW_OF), integers(arc, e.CONTACT_MODE)
    interval_gap = vector(arc, e.INTERVAL_GAP)
    gap, u, rate = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.SETTINGS)[1]
    most, na, nc = MAX_CORRECTION_SPEED, modes.contact.shape[0], mode.shape[0]
    for c in range(na):
        i = row_of[3 * c] // 3
        modes.contact[c] = mode[i]
        # u_n + α φ, bounded; the slip of what sticks
        error = u[3 * i + 2] + rate * gap[i]
        drift[3 * c + 2] = min(max(error, -most), most)
        if mode[i] == STICK:
            drift[3 * c], drift[3 * c + 1] = u[3 * i], u[3 * i + 1]
    for k in range(modes.interval.shape[0]):
        if modes.interval[k] == 0:
            s = interval_of(data, na, k)
            error = rate * interval_gap[s]
            drift[3 * na + k] = u[3 * nc + s] + min(max(error, -most), most)


# --- Directions of slow slips, whose friction turns them faster than an explicit arc can follow.
#
# At speed s the direction of a slip relaxes at a rate of up to μ f_n λ_max(G_tt) / s. Where that
# is too fast for an arc, the direction is kept over the arc: that of the slip at its end, from the
# contact problem that is implicit in the velocity, u + dt (G f + a) = dt w, w_t the slip
# (theory 2.6).


@kernel
def freeze_slow_slips(rows, u, stiction_speed, dt, force, direction, frozen):
    """Find the slips too slow for an explicit arc of dt and choose their directions.

    The normal forces of the implicit problem share a load as those of the arc do, because both
    start from `force` and keep what is redundant.

    Args:
        rows: the equations at this instant, n rows, as in _modes.py.
        u: velocities of the rows [m/s], shape (n,).
        stiction_speed: speed up to which a contact is at rest [m/s].
        dt: length of the arc [s].
        force: guess of the forces [N], shape (n,).
        direction: out, direction of slip where it is frozen, shape (na, 2).
        frozen: out, 1 where the direction is kept over the arc, shape (na,).
    """
    mu, count = rows.friction, 0
    na = mu.shape[0]
    for i in range(na):
        r, frozen[i] = 3 * i, 0
        speed = np.sqrt(u[r] ** 2 + u[r + 1] ** 2)
        # dt μ f_n λ_max(G_tt) / speed: too stiff for Runge-Kutta beyond 2
        pull = mu[i] * force[r + 2] * tangential_response(rows.delassus, r)
        if speed > stiction_speed and dt * pull > MAX_RELAXATION * speed:
            frozen[i] = 1
            direction[i, 0], direction[i, 1] = u[r] / speed, u[r + 1] / speed
            count += 1
    if count == 0:
        return
    slip = implicit_slips(rows, u, dt, force, frozen)
    for i in range(na):
        r = 3 * i
        size = np.sqrt(slip[r] ** 2 + slip[r + 1] ** 2)
        # a slip that will have turned back by then has to stop first
        if frozen[i] == 1 and slip[r] * u[r] + slip[r + 1] * u[r + 1] > 0.0 and size < np.inf:
            direction[i, 0], direction[i, 1] = slip[r] / size, slip[r + 1] / size


@kernel
def implicit_slips(rows, u, dt, guess, frozen):
    """Return vectors along the slips w_t at the end, of u + dt (G f + a) = dt w, shape (n,).

    The slip itself and not the friction it calls for, which says nothing of a contact without
    load, and too little of slow slips: the accuracy of f is relative to the largest one. Where a
    frozen slip stops within dt, the directions are those shortly before the first stop, so that
    the slip ends there in both of its components; at rest it is that of the friction.
    """
    x, mu, w = guess.copy(), rows.friction, np.empty(guess.shape[0])
    implicit, slides, stops = rows, 0.0, np.inf
    for _ in range(STOP_TRIES):
        implicit = Rows(rows.delassus, rows.g + u / dt, mu, rows.lower, rows.upper)
        solve_symmetric_sets(implicit, x)
        fill_velocity(implicit, x, w)
        first = first_stop(implicit, u, dt, x, w, frozen)
        # bisection, in ratios, for an arc just short of the first stop
        if first < dt:
            stops = dt
        else:
            slides = dt
        if slides > STOP_ACCURACY * stops or stops == np.inf:
            break
        dt = first if slides == 0.0 else np.sqrt(slides * stops)
    least = LEAVING_ACCELERATION * np.abs(implicit.g).max()
    for r in range(0, 3 * mu.shape[0], 3):
        if w[r] ** 2 + w[r + 1] ** 2 <= least**2:
            w[r], w[r + 1] = -x[r], -x[r + 1]
    return w


@kernel
def first_stop(rows, u, dt, x, w, frozen):
    """Return when the first of the frozen slips stops [s], about; dt if none stops before.

    A slip at rest by dt stopped when |f_t + m u_t (1 / t − 1 / dt)| = μ f_n, with m the least
    effective mass of its contact alone: not later than that. One that has turned back by dt stops
    where its speed along u_t passes zero.
    """
    first = dt
    for i in range(rows.friction.shape[0]):
        r = 3 * i
        if frozen[i] == 0:
            continue
        bound = ON_THE_CONE * rows.friction[i] * x[r + 2]
        inside = x[r] ** 2 + x[r + 1] ** 2 - bound**2
        speed = u[r] ** 2 + u[r + 1] ** 2
        after = dt * (w[r] * u[r] + w[r + 1] * u[r + 1]) / speed
        if inside < 0.0:
            mass = 1.0 / tangential_response(rows.delassus, r)
            half = -mass * (x[r] * u[r] + x[r + 1] * u[r + 1])
            square = mass * mass * speed
            rate = (np.sqrt(half * half - square * inside) - half) / square
            first = min(first, dt / (1.0 + dt * max(rate, 0.0)))
        elif after < 0.0:
            first = min(first, dt / (1.0 - after))
    return max(first, LEAST_SHARE * dt)


@kernel
def tangential_response(G, r):
    """Return λ_max of G_tt at row `r` [1/kg]: the same in whatever axes the ground is measured."""
    mean, half = 0.5 * (G[r, r] + G[r + 1, r + 1]), 0.5 * (G[r, r] - G[r + 1, r + 1])
    return mean + np.sqrt(half * half + G[r, r + 1] ** 2)
