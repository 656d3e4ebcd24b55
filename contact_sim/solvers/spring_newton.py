"""Newton on λ = h f(u_f + G λ): the forces of springs and dampers at the end of a step.

    (I − S G) Δλ = h f(u) − λ,   S = ∂(h f)/∂u                                  (springs.py)

S has a 3x3 block per contact and one number per scalar row. Where it is zero, in contacts that do
not press and in dry friction at full slip, Δλ is the right side; only the other rows are
unknowns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.cone import fill_velocity
from contact_sim.solvers.dense import assign, eliminate, fill_product
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.springs import contact_forces, interval_forces
from contact_sim.solvers.status import CONVERGED, MAX_ITERATIONS, NONFINITE

HALVINGS = 12
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
def fill_forces(rows, springs, u, gaps, memory, work):
    """Fill h f(u) and S; `gaps` of the contacts and of the scalar rows."""
    contact_forces(rows, u, gaps[0], memory, springs, work.force, work.slope)
    interval_forces(rows, u, gaps[1], springs, work.force, work.slope)


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
    n, alpha, best = g.shape[0], 1.0, np.inf
    fill_forces(rows, springs, start, gaps, memory, work)
    for r in range(n):  # linearised at the velocity before the step
        u[r] = g[r] - start[r]
    for r in range(n):
        step[r] = force[r] + slope_times(work.slope, u, nc, r)
    if not newton_step(G, nc, work):
        return NONFINITE, 0, np.inf
    for r in range(n):
        trial[r] = x[r] = step[r]
    for count in range(most + 1):
        fill_velocity(rows, trial, u)
        fill_forces(rows, springs, u, gaps, memory, work)
        error, largest = force_error(n, trial, force)
        if not np.isfinite(error):
            impulse[:] = 0.0
            return NONFINITE, count, error
        if error <= tolerance * max(largest, SMALLEST_SCALE):
            assign(impulse, force)
            return CONVERGED, count, error
        if error > best and alpha > 0.5**HALVINGS:
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
    assign(impulse, x)  # the iterate closest to its own force
    return MAX_ITERATIONS, most, best
