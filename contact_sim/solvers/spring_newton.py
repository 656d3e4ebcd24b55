"""Newton on λ = h f(u_f + G λ): the forces of springs and dampers at the end of a step.

    (I − S G) Δλ = h f(u) − λ,   S = ∂(h f)/∂u                                  (springs.py)

S has a 3x3 block per contact and one number per scalar row. Where it is zero, in contacts that do
not press and in dry friction at full slip, Δλ is the right side; only the other rows are
unknowns. A step that does not take off its share of |λ − h f| is halved.

Friction grows with the normal force, which makes I − S G asymmetric, and |λ − h f| may have minima
that are no answers: a contact on the verge of leaving, whose friction another one feels. Then
friction counts on normal forces that are held, those of the last answer; with them the forces only
fall as the velocities grow, and Newton has a way down. From there the whole system is tried again,
and else the normal forces of that answer are held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.cone import fill_velocity
from contact_sim.solvers.dense import assign, eliminate, fill_product
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.springs import contact_forces, interval_forces
from contact_sim.solvers.status import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    MAX_ITERATIONS,
    NONFINITE,
)

HALVINGS = 12
SHARE = 0.1
"""Of the decrease of |λ − h f| that a step promises, what it has to take off."""
MOST_AT_ONCE = 100
"""Iterations after which friction counts on normal forces that are held."""
MOST_AGAIN = 6
"""Iterations of the whole system from every answer of those."""
SMALLEST_SCALE = 1e-12
"""Impulse below which a tolerance is absolute [N s]."""


class SpringWork(NamedTuple):
    """Scratch of `end_of_step`; only the first n entries are used, there may be more."""

    velocity: Any
    """u [m/s], shape (n,)."""
    force: Any
    """h f(u) [N s], shape (n,)."""
    trial: Any
    """Impulse that is tried [N s], shape (n,)."""
    best: Any
    """Impulse nearest to its own force so far [N s], shape (n,)."""
    step: Any
    """Δλ [N s], shape (n,)."""
    line: Any
    """One row of a matrix, or a product with G, shape (n,)."""
    right: Any
    """Right side and answer of the system, shape (n,)."""
    slope: Any
    """S, a 3x3 block per contact, column 0 in a scalar row, shape (n, 3)."""
    matrix: Any
    """Matrix of the system, shape (n, n)."""
    row: Any
    """Row of every unknown, integers, shape (n,)."""
    held: Any
    """Normal forces [N] that friction counts on, where they are held, shape (nc,)."""


@kernel
def stiff_rows(slope, nc, row):
    """List the rows in which S is not zero, those of a contact together; return how many."""
    m = 0
    for r in range(0, 3 * nc, 3):
        stiff = False
        for k in range(r, r + 3):
            stiff = stiff or slope[k, 0] != 0.0 or slope[k, 1] != 0.0 or slope[k, 2] != 0.0
        if stiff:
            row[m], row[m + 1], row[m + 2] = r, r + 1, r + 2
            m += 3
    for r in range(3 * nc, slope.shape[0]):
        if slope[r, 0] != 0.0:
            row[m] = r
            m += 1
    return m


@kernel
def slope_times(slope, u, nc, r):
    """Return row r of S u."""
    if r >= 3 * nc:
        return slope[r, 0] * u[r]
    b = r - r % 3
    return slope[r, 0] * u[b] + slope[r, 1] * u[b + 1] + slope[r, 2] * u[b + 2]


@kernel
def fill_system(G, nc, m, work):
    """Fill I − S G of the unknowns."""
    A, slope, line, row, n = work.matrix, work.slope, work.line, work.row, G.shape[0]
    for k in range(m):
        r = row[k]
        if r >= 3 * nc:
            for c in range(n):
                line[c] = slope[r, 0] * G[r, c]
        else:
            b, s1, s2, s3 = r - r % 3, slope[r, 0], slope[r, 1], slope[r, 2]
            for c in range(n):
                line[c] = s1 * G[b, c] + s2 * G[b + 1, c] + s3 * G[b + 2, c]
        for j in range(m):
            A[k, j] = -line[row[j]]
        A[k, k] += 1.0


@kernel
def newton_step(G, nc, work):
    """Turn `step` from h f − λ into Δλ; return False where the system is singular."""
    slope, step, right, row, line = work.slope, work.step, work.right, work.row, work.line
    m, n = stiff_rows(slope, nc, row), G.shape[0]
    for k in range(m):
        right[k], step[row[k]] = step[row[k]], 0.0
    if m < n:
        fill_product(G, step, line)
        for k in range(m):
            right[k] += slope_times(slope, line, nc, row[k])
    fill_system(G, nc, m, work)
    if not eliminate(work.matrix, right, m):
        return False
    for k in range(m):
        step[row[k]] = right[k]
    return True


@kernel
def fill_forces(rows, springs, u, gaps, memory, work, holding):
    """Fill h f(u) and S; `gaps` of the contacts and of the scalar rows.

    `holding`: friction counts on the normal forces that are held.
    """
    force, slope = work.force, work.slope
    contact_forces(rows, u, gaps[0], memory, springs, work.held, holding, force, slope)
    interval_forces(rows, u, gaps[1], springs, force, slope)


@kernel
def force_error(n, trial, force):
    """Return |λ − h f| and the largest of both impulses [N s]."""
    total, largest = 0.0, 0.0
    for r in range(n):
        difference = trial[r] - force[r]
        total += difference * difference
        largest = max(largest, max(abs(trial[r]), abs(force[r])))
    return np.sqrt(total), largest


@kernel
def descend(rows, springs, gaps, memory, work, holding, limits):
    """Find λ = h f from `trial` on; return (status code, iterations, residual).

    `limits` are those of `end_of_step`. λ is left in `force` where converged, else the iterate
    closest to its own force in `best`.
    """
    G, nc, (tolerance, most) = rows.delassus, rows.friction.shape[0], limits
    u, force, trial, x, step = work.velocity, work.force, work.trial, work.best, work.step
    n, alpha, best = rows.g.shape[0], 1.0, np.inf
    for count in range(most + 1):
        fill_velocity(rows, trial, u)
        fill_forces(rows, springs, u, gaps, memory, work, holding)
        error, largest = force_error(n, trial, force)
        if not np.isfinite(error):
            return NONFINITE, count, error
        if error <= tolerance * max(largest, SMALLEST_SCALE):
            return CONVERGED, count, error
        if error > (1.0 - SHARE * alpha) * best and alpha > 0.5**HALVINGS:
            alpha *= 0.5
            for r in range(n):
                trial[r] = x[r] + alpha * step[r]
            continue
        best, alpha = error, 1.0
        for r in range(n):
            x[r], step[r] = trial[r], force[r] - trial[r]
        if not newton_step(G, nc, work):
            break
        for r in range(n):
            trial[r] = x[r] + step[r]
    return MAX_ITERATIONS, most, best


@kernel
def hold_normal_forces(nc, h, work):
    """Let friction count on the normal forces of the impulse in `trial`."""
    for i in range(nc):
        work.held[i] = max(work.trial[3 * i + 2], 0.0) / h


@kernel
def end_of_step(rows, springs, start, gaps, memory, impulse, work, limits):
    """Fill λ = h f(u_f + G λ); return (status code, iterations, residual).

    Args:
        rows: the problem, n rows; `g` is the velocity without contact u_f [m/s].
        springs: the laws.
        start: u before the step [m/s]; of several answers, the one that it leads to.
        gaps: φ of the contacts (nc,) [m] and of the scalar rows (ns,) at the start of the step.
        memory: deflection of the anchors [m], shape (nc, 4).
        impulse: out, λ [N s], shape (n,).
        work: scratch for n rows or more, `slope` and `matrix` for n rows.
        limits: tolerance on |λ − h f| relative to the largest impulse [-], and most iterations.
    """
    G, g, nc, (tolerance, most) = rows.delassus, rows.g, rows.friction.shape[0], limits
    u, force, trial, x, step = work.velocity, work.force, work.trial, work.best, work.step
    n, count, holding, allowed = g.shape[0], 0, False, MOST_AT_ONCE
    fill_forces(rows, springs, start, gaps, memory, work, False)
    for r in range(n):  # linearised at the velocity before the step
        u[r] = g[r] - start[r]
    for r in range(n):
        step[r] = force[r] + slope_times(work.slope, u, nc, r)
    if not newton_step(G, nc, work):
        return NONFINITE, 0, np.inf
    for r in range(n):
        trial[r] = x[r] = step[r]
    while True:
        end = tolerance, min(most - count, most if holding else allowed)
        status, more, error = descend(rows, springs, gaps, memory, work, holding, end)
        count += more
        if status == NONFINITE:
            impulse[:] = 0.0
            return NONFINITE, count, error
        if status == CONVERGED and not holding:
            assign(impulse, force)
            return (CONVERGED if allowed == MOST_AT_ONCE else CONVERGED_BY_FALLBACK), count, error
        assign(trial, force if status == CONVERGED else x)
        if count >= most and not holding:
            assign(impulse, x)  # the iterate closest to its own force
            return MAX_ITERATIONS, count, error
        if holding or allowed == MOST_AT_ONCE:
            hold_normal_forces(nc, springs.time_step, work)
        holding, allowed = not holding, MOST_AGAIN
