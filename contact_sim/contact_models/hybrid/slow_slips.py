"""Directions of slow slips, whose friction turns them faster than an explicit arc can follow.

At speed s the direction of a slip relaxes at a rate of up to μ f_n λ_max(G_tt) / s. Where that is
too fast for an arc, the direction is kept over the arc at what the contact problem that is
implicit in the velocity says of its end: u + dt (G f + a) = dt w, w_t the slip (theory 2.6).
"""

from __future__ import annotations

import numpy as np

from contact_sim.contact_models.hybrid.modes import (
    LEAVING_ACCELERATION,
    ON_THE_CONE,
    solve_symmetric_sets,
)
from contact_sim.solvers.cone import fill_velocity
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows

STOP_TRIES = 10
STOP_ACCURACY = 0.8
"""Solves to find the first stop of a slip; how close to it is close enough, as a ratio."""
LEAST_SHARE = 1e-6
"""Of an arc, in which one more such solve may look for a stop."""
MAX_RELAXATION = 2.0
"""Bound on arc length times relaxation rate of a slip; Runge-Kutta of 4th order takes 2.78."""


@kernel
def tangential_response(G, r):
    """Return λ_max of G_tt at row `r` [1/kg]: the same in whatever axes the ground is measured."""
    mean, half = 0.5 * (G[r, r] + G[r + 1, r + 1]), 0.5 * (G[r, r] - G[r + 1, r + 1])
    return mean + np.sqrt(half * half + G[r, r + 1] ** 2)


@kernel
def freeze_slow_slips(rows, u, stiction_speed, dt, force, direction, frozen):
    """Find the slips too slow for an explicit arc of dt and choose their directions.

    The normal forces of the implicit problem share a load as those of the arc do, because both
    start from `force` and keep what is redundant.

    Args:
        rows: the equations at this instant, n rows, as in modes.py.
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
