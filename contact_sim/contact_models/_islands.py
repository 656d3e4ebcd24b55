"""The contact problem of a step, island by island: gather, solve, keep (step/_contact_rows.py).

Contacts that would close and restitution that creates energy ask for another solve: of their
islands alone.
"""

from __future__ import annotations

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, front, integers, matrix, square, vector
from contact_sim.collision._body_pairs import two_branches
from contact_sim.solvers._cone_problem import FREE, worse
from contact_sim.solvers._delassus import delassus
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import constrain_delassus, has_bilateral
from contact_sim.step._contact_rows import (
    ALL_ISLANDS,
    collect_rows,
    contact_branches,
    fill_limits,
    impulse_sign,
    limit_bias,
    limit_in_reach,
    status_with_degenerate,
    tree_of,
)
from contact_sim.step._workspace import load_contact_memory, store_contact_memory

# --- The interval rows of a step: dry friction and limits, their sets, gaps, bias and activity.


@kernel
def interval_rows(data):
    """Fill sets, gaps, bias and activity of the interval rows."""
    q_index, gap = integers(data, f.LIMIT_Q), vector(data, f.INTERVAL_GAP)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    fill_limits(
        vector(data, f.Q_START), q_index, integers(data, f.LIMIT_OTHER_Q),
        matrix(data, f.LIMIT_SHARE), matrix(data, f.LIMIT_RANGE), lower, upper, gap,
    )  # fmt: skip
    first, active = 3 * vector(data, f.GAP).shape[0], vector(data, f.INTERVAL_ACTIVE)
    bias, u_free, impulse = vector(data, f.BIAS), vector(data, f.U_FREE), vector(data, f.IMPULSE)
    reach, limits = vector(data, f.REACH), gap.shape[0] - q_index.shape[0]
    for k in range(limits):  # dry friction
        active[k], bias[first + k] = 1.0, 0.0
    for k in range(limits, gap.shape[0]):
        r, side = first + k, impulse_sign(lower, upper, k)
        carried = impulse[r] != 0.0 or side == 0.0
        active[k] = carried or limit_in_reach(side * gap[k], side * u_free[r], reach)
        if active[k] != 0.0:
            fill_limit_bias(data, k)


@kernel
def fill_limit_bias(data, k):
    """Fill b of interval row k [m/s, rad/s].

    What acts in both directions has no "before closure", b = β φ/h.
    """
    r, h = 3 * vector(data, f.GAP).shape[0] + k, vector(data, f.TIME_STEP)[0]
    gap, settings = vector(data, f.INTERVAL_GAP)[k], vector(data, f.STABILISATION)
    side = impulse_sign(vector(data, f.LOWER), vector(data, f.UPPER), k)
    bias = vector(data, f.BIAS)
    if side == 0.0:
        bias[r] = settings[0] * gap / h
        return
    carried = vector(data, f.IMPULSE)[r] != 0.0
    restitution = 0.0 if carried else vector(data, f.LIMIT_RESTITUTION)[k]
    speeds = side * vector(data, f.U_START)[r], side * vector(data, f.U_FREE)[r]
    bias[r] = side * limit_bias(side * gap, speeds, h, restitution, settings)


@kernel
def activate_limits(data):
    """Make the limits active that were left out and would be passed; their islands wait."""
    active, first = vector(data, f.INTERVAL_ACTIVE), 3 * vector(data, f.GAP).shape[0]
    lower, upper, gap = vector(data, f.LOWER), vector(data, f.UPPER), vector(data, f.INTERVAL_GAP)
    u, reach = vector(data, f.U_NEXT), vector(data, f.REACH)[0]
    waits, island = integers(data, f.ISLAND_WAITS), integers(data, f.INTERVAL_ISLAND)
    for k in range(active.shape[0] - integers(data, f.LIMIT_Q).shape[0], active.shape[0]):
        if active[k] == 0.0:
            side = impulse_sign(lower, upper, k)
            if side * (gap[k] + reach * u[first + k]) < 0.0:
                active[k], waits[island[k]] = 1.0, 1
                fill_limit_bias(data, k)


# --- The contact problem of a step, island by island: gather, solve, keep (step/_contact_rows.py).

HAS_MEMORY, NO_RESTITUTION = 1, 2
"""Options of a law."""
CONTACTS, ROWS, ISLAND = range(3)
"""Places of the numbers of the problem at hand in the field `counts`."""


@kernel
def start_islands(data):
    """Let all islands wait to be solved."""
    waits, outcome = integers(data, f.ISLAND_WAITS), matrix(data, f.ISLAND_SOLVER)
    integers(data, f.COUNTS)[ROWS] = 0
    for i in range(waits.shape[0]):
        waits[i] = 1
        outcome[i, 0], outcome[i, 1], outcome[i, 2] = FREE, 0.0, 0.0


@kernel
def merge_islands(data):
    """Make one island of those whose bodies are near each other, for this step.

    That is for every slot of a contact between bodies, whether it will take part or not.
    """
    leaf_dof, feature, pairs = contact_branches(data)
    if feature.shape[0] == leaf_dof.shape[0]:
        return
    of_dof, joined = integers(data, f.DOF_ISLAND), integers(data, f.JOINED_ISLAND)
    of_contact, of_interval = integers(data, f.CONTACT_ISLAND), integers(data, f.INTERVAL_ISLAND)
    for island in range(joined.shape[0]):
        joined[island] = island
    for i in range(leaf_dof.shape[0], feature.shape[0]):
        a, b, _ = two_branches(pairs, feature[i])
        if a >= 0 and b >= 0:
            merge_pair(joined, joined[of_dof[a]], joined[of_dof[b]])
    for i in range(leaf_dof.shape[0]):
        of_contact[i] = joined[of_dof[leaf_dof[i]]] if leaf_dof[i] >= 0 else 0
    for i in range(leaf_dof.shape[0], feature.shape[0]):
        a, b, _ = two_branches(pairs, feature[i])
        of_contact[i] = joined[of_dof[max(a, b)]] if max(a, b) >= 0 else 0
    last = integers(data, f.INTERVAL_SOME_DOF)
    for k in range(of_interval.shape[0]):
        of_interval[k] = joined[of_dof[last[k]]]


@kernel
def merge_pair(joined, one, other):
    """Give two islands the lower of their numbers."""
    for island in range(joined.shape[0]):
        if joined[island] == max(one, other):
            joined[island] = min(one, other)


@kernel
def any_island_unsolved(data):
    """Return whether an island waits to be solved."""
    waits, any_waits = integers(data, f.ISLAND_WAITS), False
    for i in range(waits.shape[0]):
        any_waits = any_waits or waits[i] != 0
    return any_waits


@kernel
def next_problem(data):
    """Gather the contact problem of an island that waits; return its rows, 0 if none is left.

    Keeps the solution of the problem before; at the end the outcome of all is noted.
    """
    n = next_island_rows(data)
    if n > 0:
        fill_delassus(data, n, False)
    return n


@kernel
def next_island_rows(data):
    """Do the same without G."""
    store_solution(data)
    waits = integers(data, f.ISLAND_WAITS)
    for island in range(waits.shape[0]):
        if waits[island] != 0:
            waits[island] = 0
            n = gather_active(data, island)
            if n > 0:
                return n
    combine_outcomes(data)
    return 0


@kernel
def store_solution(data):
    """Put impulses and memory of the problem at hand where they belong."""
    counts, row_of = integers(data, f.COUNTS), integers(data, f.ROW_OF)
    impulse, row_impulse = vector(data, f.IMPULSE), vector(data, f.ROW_IMPULSE)
    for a in range(counts[ROWS]):
        impulse[row_of[a]] = row_impulse[a]
    if integers(data, f.OPTIONS)[0] & HAS_MEMORY and counts[ROWS] > 0:
        store_contact_memory(
            matrix(data, f.ROW_MEMORY_NEXT), frames(data, f.FRAME_START), row_of, counts[CONTACTS],
            matrix(data, f.MEMORY),
        )  # fmt: skip
    counts[ROWS] = 0


@kernel
def clear_inactive(data):
    """Make impulse and memory of everything zero that takes no part."""
    impulse, active = vector(data, f.IMPULSE), vector(data, f.ACTIVE)
    interval_active, nc = vector(data, f.INTERVAL_ACTIVE), active.shape[0]
    memory, has_memory = matrix(data, f.MEMORY), integers(data, f.OPTIONS)[0] & HAS_MEMORY
    for i in range(nc):
        if active[i] <= 0.0:
            impulse[3 * i] = impulse[3 * i + 1] = impulse[3 * i + 2] = 0.0
            if has_memory:
                memory[i, 0] = memory[i, 1] = memory[i, 2] = memory[i, 3] = 0.0
    for k in range(interval_active.shape[0]):
        if interval_active[k] == 0.0:
            impulse[3 * nc + k] = 0.0


@kernel
def report_solve(data, outcome):
    """Note (status code, iterations, residual) of a solve of the island at hand."""
    row = matrix(data, f.ISLAND_SOLVER)[integers(data, f.COUNTS)[ISLAND]]
    row[0], row[1], row[2] = outcome


@kernel
def combine_outcomes(data):
    """Note the worst status of the islands, all iterations, and the largest residual."""
    solver, outcome = vector(data, f.SOLVER), matrix(data, f.ISLAND_SOLVER)
    solver[0], solver[1], solver[2] = FREE, 0.0, 0.0
    for i in range(outcome.shape[0]):
        solver[0], residual = worse(solver[0], outcome[i, 0]), outcome[i, 2]
        solver[1] += outcome[i, 1]
        if residual > solver[2] or residual != residual:  # max() would lose not-a-number
            solver[2] = residual
    solver[0] = status_with_degenerate(data, solver[0])


@kernel
def gather_problem(data):
    """Fill the contact problem of all active blocks; return its number of rows, perhaps none."""
    n = gather_active(data, ALL_ISLANDS)
    if n > 0:
        fill_delassus(data, n, False)
    return n


@kernel
def gather_active(data, island):
    """Fill the contact problem of an island, or ALL, but for G; return its number of rows."""
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    active, counts = vector(data, f.ACTIVE), integers(data, f.COUNTS)
    chosen = integers(data, f.CONTACT_ISLAND), integers(data, f.INTERVAL_ISLAND), island
    na, n = collect_rows(
        active, vector(data, f.INTERVAL_ACTIVE), contact_branches(data),
        integers(data, f.INTERVAL_DOF), chosen, row_of, row_leaf,
    )  # fmt: skip
    counts[CONTACTS], counts[ROWS], counts[ISLAND] = na, n, max(island, 0)
    gather_rows(data, n)
    gather_blocks(data, na, active.shape[0])
    rebound, guard = vector(data, f.RESTITUTION_BIAS), matrix(data, f.GUARD)
    g, scale = vector(data, f.G), guard[max(island, 0), 0]
    for i in range(na):
        g[3 * i + 2] += scale * rebound[row_of[3 * i] // 3]
    if integers(data, f.OPTIONS)[0] & HAS_MEMORY:
        load_contact_memory(
            matrix(data, f.MEMORY_START), frames(data, f.FRAME_START), row_of, na,
            matrix(data, f.ROW_MEMORY),
        )  # fmt: skip
    return n


@kernel
def fill_delassus(data, n, undamped):
    """Fill G of the `n` problem rows with M̂, or `undamped` with M."""
    factor = matrix(data, f.UNDAMPED_FACTOR if undamped else f.FACTOR)
    delassus(
        matrix(data, f.JACOBIAN_TRANSPOSED), factor, tree_of(data), integers(data, f.ROW_OF),
        integers(data, f.ROW_LEAF), n, row_response(data, n),
        square(data, f.DELASSUS, n),
    )  # fmt: skip
    if has_bilateral(data):
        constrain_delassus(data, undamped)


@kernel
def row_response(data, n):
    """Return room for Y = L⁻ᵀ Jᵀ, shape (nv, n)."""
    nv = integers(data, f.DOF_PARENT).shape[0]
    return front(data, f.ROW_RESPONSE, nv, n)


@kernel
def gather_rows(data, n):
    """Copy what belongs to the first `n` problem rows into contiguous arrays."""
    row_of = integers(data, f.ROW_OF)
    u_free, u_start, bias = vector(data, f.U_FREE), vector(data, f.U_START), vector(data, f.BIAS)
    impulse, weight = vector(data, f.IMPULSE), vector(data, f.INVERSE_WEIGHT)
    g, free, start = vector(data, f.G), vector(data, f.ROW_FREE), vector(data, f.ROW_START)
    guess, row_weight = vector(data, f.ROW_IMPULSE), vector(data, f.ROW_WEIGHT)
    for a in range(n):
        row = row_of[a]
        g[a] = u_free[row] + bias[row]
        free[a], start[a] = u_free[row], u_start[row]
        guess[a], row_weight[a] = impulse[row], weight[row]


@kernel
def gather_blocks(data, na, nc):
    """Copy what belongs to the first `na` contacts, and to the intervals behind them."""
    row_of, n = integers(data, f.ROW_OF), integers(data, f.COUNTS)[1]
    friction, gap = vector(data, f.FRICTION), vector(data, f.GAP_START)
    row_friction, row_gap = vector(data, f.ROW_FRICTION), vector(data, f.ROW_GAP)
    for i in range(na):
        row_friction[i], row_gap[i] = friction[row_of[3 * i] // 3], gap[row_of[3 * i] // 3]
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    error = vector(data, f.INTERVAL_GAP)
    low, high = vector(data, f.ROW_LOWER), vector(data, f.ROW_UPPER)
    row_error = vector(data, f.ROW_INTERVAL_GAP)
    for k in range(n - 3 * na):
        s = row_of[3 * na + k] - 3 * nc
        low[k], high[k], row_error[k] = lower[s], upper[s], error[s]


# --- Energy guard: the largest share of restitution with which contacts take energy out of the
# robot.
#
# Newton's law of restitution can create energy where there is friction (theory 2.8). A step with
# impacts is solved with full restitution first; where that creates energy the share is bisected.

MAX_BISECTIONS = 40
"""Bisections of the share."""
NO_IMPACT, FULL_RESTITUTION, BISECTED = -1.0, 0.0, 100.0
"""State of the guard: not needed, first try, last try; values between are the round."""


@kernel
def start_guard(data):
    """Begin a step: full restitution on the islands with impacts, none where there is none."""
    guard, rebound = matrix(data, f.GUARD), vector(data, f.RESTITUTION_BIAS)
    for island in range(guard.shape[0]):
        guard[island, 0] = guard[island, 1] = 0.0
        guard[island, 2], guard[island, 3] = 1.0, NO_IMPACT
    if integers(data, f.OPTIONS)[0] & NO_RESTITUTION:
        return
    of_contact = integers(data, f.CONTACT_ISLAND)
    for i in range(rebound.shape[0]):
        if rebound[i] != 0.0:
            guard[of_contact[i], 0], guard[of_contact[i], 3] = 1.0, FULL_RESTITUTION


@kernel
def guard_energy(data):
    """Bisect the share of restitution of each island until ½ λᵀ(u⁺ + u⁻) ≤ 0 there.

    An island that needs another share waits for another solve; one that waits anyway is let be.
    """
    guard, waits = matrix(data, f.GUARD), integers(data, f.ISLAND_WAITS)
    for island in range(guard.shape[0]):
        state = guard[island, 3]
        if waits[island] == 0 and state != NO_IMPACT and state != BISECTED:
            creates = contact_work(data, island) > 0.0
            if creates or state != FULL_RESTITUTION:
                bisect(guard[island], creates)
                waits[island] = 1


@kernel
def bisect(guard, creates):
    """Choose the next share; `guard`: share, bounds of it, round."""
    if guard[3] != FULL_RESTITUTION and not creates:
        guard[1] = guard[0]
    elif guard[3] != FULL_RESTITUTION:
        guard[2] = guard[0]
    if guard[3] == MAX_BISECTIONS:
        guard[0], guard[3] = guard[1], BISECTED
    else:
        guard[0], guard[3] = 0.5 * (guard[1] + guard[2]), guard[3] + 1.0


@kernel
def contact_work(data, island):
    """Return ½ λᵀ(u⁻ + u⁺) over the contact rows of an island [J]; rounding counts as zero."""
    impulse, of_contact = vector(data, f.IMPULSE), integers(data, f.CONTACT_ISLAND)
    before, after = vector(data, f.U_START), vector(data, f.U_NEXT)
    work = size = 0.0
    for i in range(of_contact.shape[0]):
        if of_contact[i] == island:
            for r in range(3 * i, 3 * i + 3):
                work += 0.5 * impulse[r] * (before[r] + after[r])
                size += abs(impulse[r]) * abs(before[r])
    return work if work > 1e-12 * size else 0.0
