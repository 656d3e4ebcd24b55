"""Impulses of the last step, kept while a robot is at rest on them.

At rest the impulses of one step are those of the next. So they are tried first: v⁺ and u⁺ under
them cost less than G, and where u⁺ obeys the law, neither G nor a solver is needed.

To obey the law within its tolerance is not enough. The impulses of a step that stops a small
motion contain what stopped it. Kept, they start a motion as small in the other direction, which
the next solve stops, and so on: most steps of a robot at rest would be solved. So impulses are
kept only if they also leave the velocity of what they hold as it is, to a share of the tolerance
and to the velocity that rounding of a gap asks for, b = φ/h.

The natural map needs ρ = 1/λ_max(G_ii), and G is not known. An upper bound of ρ makes the map
larger, so what passes with the bound passes with ρ. By Cauchy and Schwarz

    j M̂⁻¹ jᵀ ≥ (j x)² / (xᵀ M̂ x)    for every x,    √(xᵀ M̂ x) ≤ Σ |x_k| √M̂_kk

A translation x of a floating robot bounds ρ of its contacts by its mass; the entries x of a row j
in the last dofs of its branch, with zeros in the others, bound that of the row.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, integers, matrix, stage_on_demand, vector
from contact_sim.collision._body_pairs import two_branches
from contact_sim.contact_models._stages import (
    ALL_HOLD,
    AT_REST,
    HAS_MEMORY,
    SOME_HOLD,
    TRIED,
    clear_inactive,
    fill_delassus,
    fill_next_row_velocity,
    fill_next_velocity,
    next_island_rows,
    report_solve,
)
from contact_sim.dynamics._vectors import vec
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    fill_rho,
    fill_velocity_symmetric,
    natural_map_at,
)
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import has_bilateral
from contact_sim.step._contact_rows import (
    cone_work_of,
    contact_branches,
    first_moment,
    last_dof,
    rows_of,
)
from contact_sim.step._inertia import is_deep

TOLERANCE, ASSOCIATED, SHARE, HOLD = range(4)
"""Places in the field `rest_trial`: what the law gives, then whether the impulses hold."""
STEADY, STEADY_WITH_FRICTION = 1e-2, 1e-3
"""Change of velocity that kept impulses may cause, over the velocity that the law tolerates [-].
A motion that is kept is fed by gaps, b = β φ/h, and leaves the tolerance in √(2/(β STEADY)) steps,
30 or 100 with β = 0.2. The less it is the longer it takes until a robot is as calm, but one with
dry friction in its joints comes to a full stop."""
SLOW_JOINTS = 100.0
"""Speed of a dof, in rad/s or m/s, over that of contacts, up to which impulses are tried [-]."""
ROUNDING, OWN_SIZE = 4.0 * np.finfo(np.float64).eps, 0.25
"""Rounding of a gap over the terms of n·p and over what a robot adds to them [-], [m]: changes
less than what it asks for, b = φ/h, do not count."""
NEAR_DOFS = 3
"""Dofs at the end of a branch that bounds of ρ look at."""


@kernel
def try_last_impulses(data, tolerance, associated, share):
    """Fill v⁺ and u⁺ under the impulses of the last step where the robot rests on them.

    `associated` is κ, `share` the part of friction cones in which the law allows every impulse.
    """
    if rests(data, tolerance):
        trial = vector(data, f.REST_TRIAL)
        trial[TOLERANCE], trial[ASSOCIATED], trial[SHARE] = tolerance, associated, share
        begin_trial(data)


@stage_on_demand
def begin_trial(data):
    """Note that the robot rests; where bounds of ρ are known, fill v⁺ and u⁺."""
    state = integers(data, f.COUNTS)
    state[TRIED] = AT_REST
    if has_bounds_of_rho(data):
        clear_inactive(data)
        fill_next_velocity(data, vector(data, f.IMPULSE))
        fill_next_row_velocity(data)
        state[TRIED] = ALL_HOLD


@kernel
def rests(data, tolerance):
    """Return whether contacts are loaded and hardly move, and the rest of the robot as well."""
    limit, loaded = tolerance * speed_of_fall(data), False
    for speed in vector(data, f.V_START):
        if abs(speed) > SLOW_JOINTS * limit:
            return False
    impulse, u_start = vector(data, f.IMPULSE), vector(data, f.U_START)
    for r in range(0, 3 * vector(data, f.ACTIVE).shape[0], 3):
        if impulse[r + 2] > 0.0:
            loaded = True
            if max(abs(u_start[r]), abs(u_start[r + 1]), abs(u_start[r + 2])) > limit:
                return False
    return loaded


@kernel
def speed_of_fall(data):
    """Return the speed that a free fall gains in one step [m/s]."""
    g = vector(data, f.GRAVITY)
    return vector(data, f.TIME_STEP)[0] * np.sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2])


@kernel
def has_bounds_of_rho(data):
    """Return whether only floating robots on what is fixed are loaded, without constraints."""
    impulse, floats = vector(data, f.IMPULSE), integers(data, f.FLOATS)
    leaf_dof, feature, pairs, last = contact_branches(data)
    for i in range(last):
        if impulse[3 * i + 2] > 0.0:
            if i < leaf_dof.shape[0]:
                dof, other = leaf_dof[i], -1
            else:
                dof, other, _ = two_branches(pairs, feature[i])
            if min(dof, other) >= 0 or max(dof, other) < 0 or not floats[max(dof, other)]:
                return False
    # constraints and moments change G, and the M̂ of deep trees is not formed
    moments = vector(data, f.TORSIONAL_FRICTION).shape[0]
    return not has_bilateral(data) and moments == 0 and not is_deep(data)


@kernel
def next_unheld_problem(data):
    """Gather the problem of the next island that needs other impulses; return its rows."""
    state = integers(data, f.COUNTS)
    while True:
        n = next_island_rows(data)
        if n == 0:
            return 0
        if state[TRIED] >= ALL_HOLD:
            try_without_delassus(data)
            if vector(data, f.REST_TRIAL)[HOLD] != 0.0:
                continue
            state[TRIED] = SOME_HOLD
        fill_delassus(data, n, False)
        return n


@kernel
def last_impulses_hold(data):
    """Return whether the last impulses hold, tried with G where there are no bounds of ρ."""
    if integers(data, f.COUNTS)[TRIED] != AT_REST:
        return False
    try_with_delassus(data)
    return vector(data, f.REST_TRIAL)[HOLD] != 0.0


@stage_on_demand
def try_without_delassus(data):
    """Note whether the impulses at hand hold, by the u⁺ under them and bounds of ρ."""
    rows, work, free = rows_of(data), cone_work_of(data), vector(data, f.ROW_FREE)
    row_of, u_next = integers(data, f.ROW_OF), vector(data, f.U_NEXT)
    for a in range(rows.g.shape[0]):
        work.velocity[a] = u_next[row_of[a]] + (rows.g[a] - free[a])
    fill_rho_bounds(data, rows.friction.shape[0], work.rho[: rows.g.shape[0]])
    vector(data, f.REST_TRIAL)[HOLD] = hold(data, rows, work)


@stage_on_demand
def try_with_delassus(data):
    """Note whether the impulses at hand hold."""
    rows, work = rows_of(data), cone_work_of(data)
    fill_rho(rows, work.rho)
    impulse = vector(data, f.ROW_IMPULSE)[: rows.g.shape[0]]
    fill_velocity_symmetric(rows, impulse, work.velocity)
    vector(data, f.REST_TRIAL)[HOLD] = hold(data, rows, work)


@kernel
def hold(data, rows, work):
    """Return whether the impulses at hand obey the law and keep what they hold at its velocity.

    `work` holds w = u⁺ + b under them, and ρ or bounds of it.
    """
    trial = vector(data, f.REST_TRIAL)
    tolerance, associated, share = trial[TOLERANCE], trial[ASSOCIATED], trial[SHARE]
    w, rho, n, nc = work.velocity, work.rho, rows.g.shape[0], rows.friction.shape[0]
    impulse, largest, h = vector(data, f.ROW_IMPULSE)[:n], 0.0, vector(data, f.TIME_STEP)[0]
    for a in range(n):
        largest = max(largest, abs(impulse[a]))
    goal = tolerance * min(largest, vector(data, f.TOTAL_MASS)[0] * speed_of_fall(data))
    residual = natural_map_at(rows, impulse, w, rho, associated)
    if not residual <= goal:
        return False
    # contacts that press: u⁺ − u⁻, and whether the impulse is in the share of the cone
    free, u_start, changed = vector(data, f.ROW_FREE), vector(data, f.ROW_START), 0.0
    place, frame = matrix(data, f.POSITION_START), frames(data, f.FRAME_START)
    row_of = integers(data, f.ROW_OF)
    for r in range(0, 3 * nc, 3):
        if impulse[r + 2] > 0.0:
            for a in range(r, r + 3):
                change = abs(w[a] - (rows.g[a] - free[a]) - u_start[a])
                if a == r + 2:  # but for what rounding of the gap asks for
                    p, normal = vec(place[row_of[r] // 3], 0), vec(frame[row_of[r] // 3, 2], 0)
                    along = abs(p[0] * normal[0]) + abs(p[1] * normal[1]) + abs(p[2] * normal[2])
                    change -= ROUNDING * (along + OWN_SIZE) / h
                changed = max(changed, rho[a] * change)
            radius = share * rows.friction[r // 3] * impulse[r + 2]
            if share < 1.0 and impulse[r] ** 2 + impulse[r + 1] ** 2 > radius * radius:
                return False
    # scalar rows inside their bounds
    for k in range(n - 3 * nc):
        a = 3 * nc + k
        if rows.lower[k] < impulse[a] < rows.upper[k]:
            change = w[a] - (rows.g[a] - free[a]) - u_start[a]
            changed = max(changed, rho[a] * abs(change))
    steady = STEADY_WITH_FRICTION if first_moment(data) > 0 else STEADY
    if not changed <= steady * goal:
        return False
    report_solve(data, (CONVERGED, 0, residual))
    if integers(data, f.OPTIONS)[0] & HAS_MEMORY:
        assign(
            vector(data, f.ROW_MEMORY_NEXT)[: f.MEMORY_NUMBERS * nc], vector(data, f.ROW_MEMORY)
        )
    return True


@kernel
def fill_rho_bounds(data, nc, rho):
    """Fill upper bounds of ρ of the rows at hand [kg, kg m²], those of `nc` contacts first."""
    row_of, leaf, dof_parent = (
        integers(data, f.ROW_OF), integers(data, f.ROW_LEAF), integers(data, f.DOF_PARENT)
    )  # fmt: skip
    J, inertia = matrix(data, f.JACOBIAN_TRANSPOSED), matrix(data, f.INERTIA)
    mass = vector(data, f.TOTAL_MASS)[0]
    # contacts: the least of the bounds of their three rows and of the mass
    for r in range(0, 3 * nc, 3):
        dof, row, count = leaf[r], row_of[r], 0
        a1 = a2 = a3 = b1 = b2 = b3 = 0.0
        while dof >= 0 and count < NEAR_DOFS:
            j1, j2, j3 = J[dof, row], J[dof, row + 1], J[dof, row + 2]
            weight = np.sqrt(inertia[dof, dof])
            a1, a2, a3 = a1 + j1 * j1, a2 + j2 * j2, a3 + j3 * j3
            b1, b2, b3 = b1 + abs(j1) * weight, b2 + abs(j2) * weight, b3 + abs(j3) * weight
            dof, count = dof_parent[dof], count + 1
        bound = min(bound_of(a1, b1), min(bound_of(a2, b2), bound_of(a3, b3)))
        rho[r] = rho[r + 1] = rho[r + 2] = min(mass, bound)
    # scalar rows
    first, end = 3 * vector(data, f.GAP).shape[0], integers(data, f.INTERVAL_END)
    for r in range(3 * nc, rho.shape[0]):
        dof, row, count = last_dof(leaf[r], dof_parent), row_of[r], 0
        a1 = b1 = 0.0
        while dof > end[row - first] and count < NEAR_DOFS:
            j1 = J[dof, row]
            a1, b1 = a1 + j1 * j1, b1 + abs(j1) * np.sqrt(inertia[dof, dof])
            dof, count = dof_parent[dof], count + 1
        rho[r] = bound_of(a1, b1)


@kernel
def bound_of(squares, spread):
    """Return the bound of ρ of a row j from Σ j_k² and Σ |j_k| √M̂_kk; ∞ where j is zero."""
    return (spread / squares) ** 2 if squares > 0.0 else np.inf
