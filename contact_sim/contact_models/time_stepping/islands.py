"""The contact problem of a step, island by island: gather, solve, keep (contact/islands.py).

Contacts that would close and restitution that creates energy ask for another solve: of their
islands alone.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import frames, front, integers, matrix, square, vector
from contact_sim.collision.pair_rows import two_branches
from contact_sim.contact.active_rows import ALL, collect_rows
from contact_sim.contact.bilateral import has_bilateral, take_out_bilateral
from contact_sim.contact.immovable import with_left_out
from contact_sim.contact.memory import recall, remember
from contact_sim.contact.problem_views import contact_branches, tree_of
from contact_sim.solvers.delassus import delassus
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.status import FREE, worse

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
def join_islands(data):
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
            join(joined, joined[of_dof[a]], joined[of_dof[b]])
    for i in range(leaf_dof.shape[0]):
        of_contact[i] = joined[of_dof[leaf_dof[i]]] if leaf_dof[i] >= 0 else 0
    for i in range(leaf_dof.shape[0], feature.shape[0]):
        a, b, _ = two_branches(pairs, feature[i])
        of_contact[i] = joined[of_dof[max(a, b)]] if max(a, b) >= 0 else 0
    last = integers(data, f.INTERVAL_SOME_DOF)
    for k in range(of_interval.shape[0]):
        of_interval[k] = joined[of_dof[last[k]]]


@kernel
def join(joined, one, other):
    """Give two islands the lower of their numbers."""
    for island in range(joined.shape[0]):
        if joined[island] == max(one, other):
            joined[island] = min(one, other)


@kernel
def any_island_waits(data):
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
    n = next_rows(data)
    if n > 0:
        fill_delassus(data, n, False)
    return n


@kernel
def next_rows(data):
    """Do the same without G."""
    keep_solution(data)
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
def keep_solution(data):
    """Put impulses and memory of the problem at hand where they belong."""
    counts, row_of = integers(data, f.COUNTS), integers(data, f.ROW_OF)
    impulse, row_impulse = vector(data, f.IMPULSE), vector(data, f.ROW_IMPULSE)
    for a in range(counts[ROWS]):
        impulse[row_of[a]] = row_impulse[a]
    if integers(data, f.OPTIONS)[0] & HAS_MEMORY and counts[ROWS] > 0:
        remember(
            matrix(data, f.ROW_MEMORY_NEXT), frames(data, f.FRAME_START), row_of, counts[CONTACTS],
            matrix(data, f.MEMORY),
        )  # fmt: skip
    counts[ROWS] = 0


@kernel
def leave_out_inactive(data):
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
    solver[0] = with_left_out(data, solver[0])


@kernel
def gather_problem(data):
    """Fill the contact problem of all active blocks; return its number of rows, perhaps none."""
    n = gather_active(data, ALL)
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
        recall(
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
        take_out_bilateral(data, undamped)


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
