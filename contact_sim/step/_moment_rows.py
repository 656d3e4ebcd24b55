"""Torsional and rolling friction: rows of moments, bounded by the normal impulse (theory 4.7).

    |λ_s| ≤ r_s λ_n    about the normal n,           r_s torsional coefficient [m]
    |λ_r| ≤ r_r λ_n    about the tangents t1, t2,    r_r rolling coefficient [m]

each with the most dissipation that its bound allows: without motion, or at the bound against the
angular velocity ω of the body relative to the ground. Contacts with the ground have three interval
rows for this, behind those of dry friction, if any contact has a coefficient. To a law they are
dry friction. The bounds follow the normal impulses: an island is solved again until they agree.

The disc |λ_r| ≤ b of the rolling pair is made of intervals by turning the pair. At first both of
its rows have the bounds ±b, along and across the motion. Where the answer leaves the disc, the row
across carries nothing, and the pair is turned along ρ ω − λ of each answer, with a step length ρ
[kg m²]. Where the direction no longer changes, λ = −b ω/|ω|. At the end the impulse of every pair
lies along its first row, so that the intervals are the disc.

Few simulations have such rows, so that their kernels are compiled once, apart from the laws, and
called by address, as bilateral rows are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import Arrays, frames, integers, matrix, vector
from contact_sim.collision._contact_slots import carry_over
from contact_sim.dynamics._vectors import add, cross, dot, put, scaled, vec
from contact_sim.solvers._cone_problem import MAX_ITERATIONS, worse_status
from contact_sim.solvers._delassus import solve
from contact_sim.solvers._jit import call_with_arrays, kernel, pointer
from contact_sim.step._contact_rows import first_moment, tree_of

NUMBERS, INDICES = types.CPointer(types.float64), types.CPointer(types.int64)

ADDRESS, TASK = range(2)
"""Places of the field `moments`."""
CARRY, FILL, START, SETTLE, DESCRIBE = range(5)
"""Tasks of `moment_task`, which says what each does."""
CONSISTENT = 1e-10
"""Share of a bound, or of that of the largest normal impulse, that may be missed [-]."""
MAX_ROUNDS, UNDAMPED_ROUNDS = 100, 20
"""Solves of a step after which a contact no longer waits, or its bounds move by halves."""
STEP_LENGTH = 1.5
"""ρ times the larger mobility of the pair; up to 2 every turn of it contracts."""
NO_MOTION = 1e-12
"""Share of the squared speeds of a branch up to which a row of J counts as zero."""


@kernel
def has_moments(data):
    """Return whether contacts of the simulation transmit moments."""
    return vector(data, f.TORSIONAL_FRICTION).shape[0] > 0


@kernel
def run_moments(data, task):
    """Run a task of `moment_task` where contacts transmit moments."""
    if has_moments(data):
        state = integers(data, f.MOMENTS)
        state[TASK] = task
        call_with_arrays(state[ADDRESS], data)


@kernel
def bound_moments(data):
    """Fill the bounds of all moments that belong to the normal impulses of a step."""
    impulse, first = vector(data, f.IMPULSE), first_moment(data)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    torsional, rolling = vector(data, f.TORSIONAL_FRICTION), vector(data, f.ROLLING_FRICTION)
    for i in range(torsional.shape[0]):
        normal, k = max(impulse[3 * i + 2], 0.0), first + 3 * i
        for e in range(3):
            upper[k + e] = (torsional[i] if e == 0 else rolling[i]) * normal
            lower[k + e] = -upper[k + e]


# --- The tasks.


@pointer(types.void(NUMBERS, INDICES, INDICES))
def moment_task(numbers: Any, indices: Any, layout: Any) -> None:
    """Do the task in the field `moments`; the arrays of a step by their addresses."""
    data = Arrays(carray(numbers, (1,)), carray(indices, (1,)), carray(layout, (1,)))
    task = integers(data, f.MOMENTS)[TASK]
    if task == CARRY:
        # moments follow their contact into its present slot, as impulses do
        slots = (0, integers(data, f.LEAF_DOF).shape[0], integers(data, f.GROUND)[1], np.inf)
        carry_over(
            slots, (vector(data, f.FEATURE_START), frames(data, f.FRAME_START)),
            (vector(data, f.FEATURE), frames(data, f.FRAME)), vector(data, f.CONTACT_MOMENT),
            matrix(data, f.ROW_MEMORY),
        )  # fmt: skip
    elif task == FILL:
        fill_moment_rows(data)
    elif task == START:
        for i in range(vector(data, f.TORSIONAL_FRICTION).shape[0]):
            start_moment(data, i)
    elif task == SETTLE:
        settle_moments(data)
    elif task == DESCRIBE:
        describe_moments(data)


@kernel
def moment_row(data, i):
    """Return the row of the step data of the spin of contact i; the rolling pair is behind it."""
    return 3 * vector(data, f.GAP).shape[0] + first_moment(data) + 3 * i


@kernel
def fill_moment_rows(data):
    """Fill J of the moments, the angular velocity of the body about n, t1 and t2."""
    columns, dof_parent = matrix(data, f.COLUMNS), integers(data, f.DOF_PARENT)
    frame, jacobian = frames(data, f.FRAME_START), matrix(data, f.JACOBIAN_TRANSPOSED)
    leaf_dof, axis = integers(data, f.LEAF_DOF), matrix(data, f.ROLL_AXIS)
    for i in range(leaf_dof.shape[0]):
        r, k = moment_row(data, i), leaf_dof[i]
        t1, t2, n = vec(frame[i, 0], 0), vec(frame[i, 1], 0), vec(frame[i, 2], 0)
        put(axis[i], 0, t1)
        while k >= 0:
            w = vec(columns[k], 3)
            jacobian[k, r] = dot(n, w)
            jacobian[k, r + 1], jacobian[k, r + 2] = dot(t1, w), dot(t2, w)
            k = dof_parent[k]


@kernel
def start_moment(data, i):
    """Fill guess, bounds and activity of the moments of contact i for the first solve."""
    r, first = moment_row(data, i), 3 * vector(data, f.GAP).shape[0]
    impulse, bias, u_free = vector(data, f.IMPULSE), vector(data, f.BIAS), vector(data, f.U_FREE)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    taking_part, frame = vector(data, f.INTERVAL_ACTIVE), frames(data, f.FRAME_START)[i]
    h, moment = vector(data, f.TIME_STEP)[0], vec(matrix(data, f.CONTACT_MOMENT)[i], 0)
    integers(data, f.MOMENT_ROUNDS)[i] = 0
    # guess: the moment of the step before; nothing for contacts that take no part
    active = vector(data, f.ACTIVE)[i] > 0.0
    for e in range(3):
        axis = vec(frame[2 if e == 0 else e - 1], 0)
        impulse[r + e] = h * dot(axis, moment) if active else 0.0
        k = r + e - first
        bias[r + e] = lower[k] = upper[k] = taking_part[k] = 0.0
    if not active:
        return
    # step length of the pair, then the pair along the motion that it opposed, or will oppose
    mobility = max(mobility_of(data, i, r + 1), mobility_of(data, i, r + 2))
    vector(data, f.ROLL_STEP)[i] = STEP_LENGTH / mobility if mobility > 0.0 else 0.0
    x, y = -impulse[r + 1], -impulse[r + 2]
    if x == 0.0 and y == 0.0:
        x, y = u_free[r + 1], u_free[r + 2]
    turn_pair(data, i, x, y)
    normal = max(impulse[3 * i + 2], 0.0)
    move_bound(data, i, 0, vector(data, f.TORSIONAL_FRICTION)[i] * normal)
    move_bound(data, i, 1, vector(data, f.ROLLING_FRICTION)[i] * normal)


@kernel
def mobility_of(data, i, r):
    """Return J M̂⁻¹ Jᵀ of a row on the branch of contact i [1/(kg m²)]."""
    jacobian, dof_parent = matrix(data, f.JACOBIAN_TRANSPOSED), integers(data, f.DOF_PARENT)
    y, leaf, total = vector(data, f.DISPLACEMENT), integers(data, f.LEAF_DOF)[i], 0.0
    y[:] = 0.0
    k = leaf
    while k >= 0:
        y[k] = jacobian[k, r]
        k = dof_parent[k]
    solve(matrix(data, f.FACTOR), tree_of(data), y)
    k = leaf
    while k >= 0:
        total += jacobian[k, r] * y[k]
        k = dof_parent[k]
    return total


@kernel
def can_move(data, i, r):
    """Return 1.0 where some motion of the robot turns contact i about the axis of row r, or 0."""
    jacobian, dof_parent = matrix(data, f.JACOBIAN_TRANSPOSED), integers(data, f.DOF_PARENT)
    columns, k = matrix(data, f.COLUMNS), integers(data, f.LEAF_DOF)[i]
    along = whole = 0.0
    while k >= 0:
        w = vec(columns[k], 3)
        along, whole = along + jacobian[k, r] ** 2, whole + dot(w, w)
        k = dof_parent[k]
    return 1.0 if along > NO_MOTION * whole else 0.0


@kernel
def move_bound(data, i, e, bound):
    """Give the spin (e = 0) or the rolling pair (e = 1) of contact i the bounds ±`bound`."""
    first, r = 3 * vector(data, f.GAP).shape[0], moment_row(data, i) + e
    impulse, taking_part = vector(data, f.IMPULSE), vector(data, f.INTERVAL_ACTIVE)
    lower, upper, k = vector(data, f.LOWER), vector(data, f.UPPER), r - first
    old, x = upper[k], impulse[r]
    # an impulse at its bound stays there, so that a solve need not find it again
    if abs(x) > bound or (abs(x) >= old and old > 0.0):
        impulse[r] = bound if x > 0.0 else -bound
    lower[k], upper[k] = -bound, bound
    taking_part[k] = can_move(data, i, r) if bound > 0.0 else 0.0
    if e == 1:  # across the motion: from the first bound on, until the pair is turned
        across = old == 0.0 or taking_part[k + 1] != 0.0
        impulse[r + 1] = min(max(impulse[r + 1], -bound), bound)
        lower[k + 1], upper[k + 1] = -bound, bound
        moves = bound > 0.0 and across
        taking_part[k + 1] = can_move(data, i, r + 1) if moves else 0.0


@kernel
def turn_pair(data, i, x, y):
    """Turn the rolling pair of contact i, so that its first row is along (x, y) of both rows."""
    size = np.sqrt(x * x + y * y)
    if not size > 0.0:
        return
    c, s, r, axis = x / size, y / size, moment_row(data, i) + 1, matrix(data, f.ROLL_AXIS)[i]
    if s == 0.0 and c > 0.0:
        return
    # everything that a step has per row and that is linear in the row; that of other rows stays
    turn_columns(matrix(data, f.JACOBIAN_TRANSPOSED), r, c, s)
    turn_columns(matrix(data, f.BILATERAL_COUPLING), r, c, s)
    turn_columns(matrix(data, f.BILATERAL_SHARE), r, c, s)
    turn_columns(matrix(data, f.LAW_VECTORS), r, c, s)
    turn_entries(vector(data, f.U_START), r, c, s)
    turn_entries(vector(data, f.U_FREE), r, c, s)
    turn_entries(vector(data, f.U_NEXT), r, c, s)
    turn_entries(vector(data, f.IMPULSE), r, c, s)
    first, n = vec(axis, 0), vec(frames(data, f.FRAME_START)[i, 2], 0)
    put(axis, 0, add(scaled(c, first), scaled(s, cross(n, first))))


@kernel
def turn_columns(a, r, c, s):
    """Turn the columns r and r + 1 of a matrix with one column per row."""
    for k in range(a.shape[0]):
        turn_entries(a[k], r, c, s)


@kernel
def turn_entries(a, r, c, s):
    """Turn the entries r and r + 1 of a vector by the angle with cosine c and sine s."""
    x, y = a[r], a[r + 1]
    a[r], a[r + 1] = c * x + s * y, c * y - s * x


# --- After a solve: do bounds and directions belong to the answer?


@kernel
def settle_moments(data):
    """Update bounds and directions of the moments; islands in which one changes wait."""
    active, impulse = vector(data, f.ACTIVE), vector(data, f.IMPULSE)
    torsional, rolling = vector(data, f.TORSIONAL_FRICTION), vector(data, f.ROLLING_FRICTION)
    waits, island = integers(data, f.ISLAND_WAITS), integers(data, f.CONTACT_ISLAND)
    rounds, solver = integers(data, f.MOMENT_ROUNDS), vector(data, f.SOLVER)
    n, largest = torsional.shape[0], 0.0
    for i in range(n):
        largest = max(largest, impulse[3 * i + 2])
    for i in range(n):
        if active[i] <= 0.0:
            continue
        if rounds[i] == MAX_ROUNDS:
            solver[0] = worse_status(solver[0], MAX_ITERATIONS)
            continue
        normal = max(impulse[3 * i + 2], 0.0)
        changed = turn_rolling(data, i)
        changed |= follow_normal(data, i, 0, torsional[i], normal, largest)
        changed |= follow_normal(data, i, 1, rolling[i], normal, largest)
        if changed:
            rounds[i] += 1
            waits[island[i]] = 1
    for i in range(n):
        if active[i] > 0.0 and waits[island[i]] == 0:
            align_pair(data, i)


@kernel
def turn_rolling(data, i):
    """Turn the rolling pair of contact i to where its friction belongs; return if it changed."""
    r = moment_row(data, i) + 1
    k = r - 3 * vector(data, f.GAP).shape[0]
    impulse, u, bound = vector(data, f.IMPULSE), vector(data, f.U_NEXT), vector(data, f.UPPER)[k]
    taking_part, rho = vector(data, f.INTERVAL_ACTIVE), vector(data, f.ROLL_STEP)[i]
    if taking_part[k] == 0.0:
        return False
    x, y = impulse[r], impulse[r + 1]
    p, q = rho * u[r] - x, rho * u[r + 1] - y
    size, inside = np.sqrt(p * p + q * q), max(abs(x), abs(y)) < bound
    if taking_part[k + 1] != 0.0 and inside:
        # no motion: right, unless in a corner outside of the disc
        if x * x + y * y <= (bound * (1.0 + CONSISTENT)) ** 2:
            return False
    elif abs(y * size + bound * q) <= CONSISTENT * bound * size:
        # λ = −b (p, q)/|(p, q)|, the point of the disc nearest to λ − ρ ω
        return False
    turn_pair(data, i, p, q)
    impulse[r], impulse[r + 1] = -bound, 0.0
    taking_part[k], taking_part[k + 1] = can_move(data, i, r), 0.0
    return True


@kernel
def follow_normal(data, i, e, coefficient, normal, largest):
    """Move bounds of contact i to those of its normal impulse; return if they were others."""
    k = moment_row(data, i) + e - 3 * vector(data, f.GAP).shape[0]
    bound, old = coefficient * normal, vector(data, f.UPPER)[k]
    if abs(bound - old) <= CONSISTENT * coefficient * largest:
        return False
    if integers(data, f.MOMENT_ROUNDS)[i] >= UNDAMPED_ROUNDS:
        bound = 0.5 * (bound + old)
    move_bound(data, i, e, bound)
    return True


@kernel
def align_pair(data, i):
    """Turn the rolling pair of contact i so that its impulse lies along the first row."""
    r, impulse = moment_row(data, i) + 1, vector(data, f.IMPULSE)
    k, taking_part = r - 3 * vector(data, f.GAP).shape[0], vector(data, f.INTERVAL_ACTIVE)
    x, y = impulse[r], impulse[r + 1]
    size = np.sqrt(x * x + y * y)
    if size > 0.0:
        turn_pair(data, i, -x, -y)
        impulse[r], impulse[r + 1] = -size, 0.0
    if vector(data, f.UPPER)[k] > 0.0:
        taking_part[k], taking_part[k + 1] = can_move(data, i, r), can_move(data, i, r + 1)


@kernel
def describe_moments(data):
    """Fill the moments of the contacts [N m], world."""
    impulse, per_step = vector(data, f.IMPULSE), 1.0 / vector(data, f.TIME_STEP)[0]
    moment, axis, frame = (
        matrix(data, f.CONTACT_MOMENT), matrix(data, f.ROLL_AXIS), frames(data, f.FRAME_START),
    )  # fmt: skip
    for i in range(moment.shape[0]):
        r, n, first = moment_row(data, i), vec(frame[i, 2], 0), vec(axis[i], 0)
        rolling = add(scaled(impulse[r + 1], first), scaled(impulse[r + 2], cross(n, first)))
        put(moment[i], 0, scaled(per_step, add(scaled(impulse[r], n), rolling)))
