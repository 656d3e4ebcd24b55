"""Torsional and rolling friction: rows of moments, bounded by the normal impulse (theory 4.7).

    |λ_s| ≤ r_s λ_n    about the normal n,           r_s torsional coefficient [m]
    |λ_r| ≤ r_r λ_n    about the tangents t1, t2,    r_r rolling coefficient [m]

each with the most dissipation that its bound allows: without motion, or at the bound against the
angular velocity ω of the body relative to the ground. Contacts with the ground have three interval
rows for this, behind those of dry friction, if any contact has a coefficient. To a law they are
dry friction. The bounds follow the normal impulses: an island is solved again until they agree.

The disc |λ_r| ≤ b of the rolling pair is made of intervals ±b along and across the motion, by
turning the pair. Below the bound both rows hold the body. At the bound the row along the motion
carries −b, and Newton's method on the direction makes the row across it compliant: an angle δ
between motion and pair changes the impulse across by −b δ, and the motion across by |ω| δ, so that

    ω_across = −R λ_across,   R = |ω|/b.

A soft law has a compliance R₀ of its own, and its friction is towards v̂: then ω − v̂ is in the
place of ω, and R = |ω − v̂|/b − R₀.
After each solve the pair is turned along −λ_r. Where that changes nothing more, λ_r = −b ω/|ω|,
and R has no effect. At the end the impulse of every pair lies along its first row, so that the
intervals are the disc.

Few simulations have such rows, so that their kernels are compiled once, apart from the laws, and
called by address, as bilateral rows are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import ADDRESSES, Arrays, frames, integers, matrix, square, vector
from contact_sim.collision._contact_slots import carry_over
from contact_sim.dynamics._vectors import add, cross, dot, put, scaled, vec
from contact_sim.solvers._cone_problem import MAX_ITERATIONS, worse_status
from contact_sim.solvers._jit import call_with_arrays, kernel, pointer
from contact_sim.step._contact_rows import first_moment

ADDRESS, TASK = range(2)
"""Places of the field `moments`."""
CARRY, FILL, START, SOFTEN, SETTLE, DESCRIBE, REBUILD = range(7)
"""Tasks of `moment_task`, which says what each does."""
FROZEN_ROLLING = 4
"""Option of a law: the axes of rolling friction stay those of the motion before the step."""
CONSISTENT, NEARLY_CONSISTENT = 1e-10, 1e-6
"""Share of the bound of the largest normal impulse that a moment may miss [-]; and that after many
solves, each of which moves redundant impulses by rounding over the proximal share."""
NEGLIGIBLE = 1e-8
"""Share of the largest normal impulse up to which one bounds no moment [-]."""
MAX_ROUNDS, UNDAMPED_ROUNDS = 100, 15
"""Solves of a step after which a contact no longer waits; after which bounds move by halves."""
STILL = 1e-9
"""Angular velocity up to which a body counts as at rest [rad/s]."""
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
def note_softness(data, R, v_hat):
    """Note v̂ and R of the rolling pairs, under a law with γ = R⁻¹ (v̂ − u) below the bound."""
    counts, row_of = integers(data, f.COUNTS), integers(data, f.ROW_OF)
    soft, first = matrix(data, f.ROLL_SOFTNESS), 3 * vector(data, f.GAP).shape[0]
    for a in range(3 * counts[0], counts[1]):
        k = row_of[a] - first - first_moment(data)
        if k % 3 != 0 and 0 <= k < 3 * soft.shape[0]:
            soft[k // 3, k % 3 - 1], soft[k // 3, 2] = v_hat[a], R[a]


@kernel
def bound_moments(data):
    """Fill the bounds of all moments that belong to the normal impulses of a step; R = 0."""
    impulse, first = vector(data, f.IMPULSE), first_moment(data)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    torsional, rolling = vector(data, f.TORSIONAL_FRICTION), vector(data, f.ROLLING_FRICTION)
    compliance = vector(data, f.ROLL_COMPLIANCE)
    for i in range(torsional.shape[0]):
        normal, k, compliance[i] = max(impulse[3 * i + 2], 0.0), first + 3 * i, 0.0
        for e in range(3):
            upper[k + e] = (torsional[i] if e == 0 else rolling[i]) * normal
            lower[k + e] = -upper[k + e]


# --- The tasks.


@pointer(ADDRESSES)
def moment_task(numbers: Any, indices: Any, layout: Any) -> None:
    """Do the task in the field `moments`; the arrays of a step by their addresses."""
    data = Arrays(numbers, indices, layout)
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
        matrix(data, f.ROLL_SOFTNESS)[:] = 0.0
        least = NEGLIGIBLE * largest_normal(data)
        for i in range(vector(data, f.TORSIONAL_FRICTION).shape[0]):
            start_moment(data, i, least)
    elif task == SOFTEN:
        soften_pairs(data)
    elif task == SETTLE:
        settle_moments(data)
    elif task == DESCRIBE:
        describe_moments(data)
    elif task == REBUILD:
        rebuild_moment_rows(data)


@kernel
def moment_row(data, i):
    """Return the row of the step data of the spin of contact i; the rolling pair is behind it."""
    return 3 * vector(data, f.GAP).shape[0] + first_moment(data) + 3 * i


@kernel
def fill_moment_rows(data):
    """Fill J of the moments, the angular velocity of the body about n, t1 and t2."""
    frame, axis = frames(data, f.FRAME_START), matrix(data, f.ROLL_AXIS)
    for i in range(axis.shape[0]):
        t1 = vec(frame[i, 0], 0)
        put(axis[i], 0, t1)
        fill_moment_jacobian(data, i, t1, vec(frame[i, 1], 0))


@kernel
def rebuild_moment_rows(data):
    """Fill J of the moments of a step about the axes that it ended with."""
    frame, axis = frames(data, f.FRAME_START), matrix(data, f.ROLL_AXIS)
    for i in range(axis.shape[0]):
        first = vec(axis[i], 0)
        fill_moment_jacobian(data, i, first, cross(vec(frame[i, 2], 0), first))


@kernel
def fill_moment_jacobian(data, i, first, second):
    """Fill the rows of contact i about n and two axes across it."""
    columns, dof_parent = matrix(data, f.COLUMNS), integers(data, f.DOF_PARENT)
    jacobian, n = matrix(data, f.JACOBIAN_TRANSPOSED), vec(frames(data, f.FRAME_START)[i, 2], 0)
    r, k = moment_row(data, i), integers(data, f.LEAF_DOF)[i]
    while k >= 0:
        w = vec(columns[k], 3)
        jacobian[k, r] = dot(n, w)
        jacobian[k, r + 1], jacobian[k, r + 2] = dot(first, w), dot(second, w)
        k = dof_parent[k]


@kernel
def start_moment(data, i, least):
    """Fill guess, bounds and activity of the moments of contact i for the first solve.

    A normal impulse up to `least` counts as none.
    """
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
    # the pair along the motion that it opposed, or else will oppose
    x, y, start = -impulse[r + 1], -impulse[r + 2], vector(data, f.U_START)
    frozen = integers(data, f.OPTIONS)[0] & FROZEN_ROLLING != 0
    if frozen:
        x, y = start[r + 1], start[r + 2]
    elif x == 0.0 and y == 0.0:
        x, y = u_free[r + 1], u_free[r + 2]
    turn_pair(data, i, x, y)
    normal = impulse[3 * i + 2] if impulse[3 * i + 2] > least else 0.0
    move_bound(data, i, 0, vector(data, f.TORSIONAL_FRICTION)[i] * normal)
    move_bound(data, i, 1, vector(data, f.ROLLING_FRICTION)[i] * normal)
    # one that was at its bound is likely to stay there
    bound, sliding = upper[r + 1 - first], abs(impulse[r + 1]) >= upper[r + 1 - first] > 0.0
    known = sliding and not frozen
    vector(data, f.ROLL_COMPLIANCE)[i] = max(u_free[r + 1], 0.0) / bound if known else 0.0


@kernel
def soften_pairs(data):
    """Add R to the diagonal of G in the rows across the motion."""
    counts, row_of = integers(data, f.COUNTS), integers(data, f.ROW_OF)
    G, compliance = square(data, f.DELASSUS, counts[1]), vector(data, f.ROLL_COMPLIANCE)
    first = 3 * vector(data, f.GAP).shape[0] + first_moment(data)
    for a in range(3 * counts[0], counts[1]):
        k = row_of[a] - first
        if k % 3 == 2 and 0 <= k < 3 * compliance.shape[0]:
            G[a, a] += compliance[k // 3]


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
    first, row = 3 * vector(data, f.GAP).shape[0], moment_row(data, i) + e
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    impulse, taking_part = vector(data, f.IMPULSE), vector(data, f.INTERVAL_ACTIVE)
    for r in range(row, row + 1 + e):
        k, x = r - first, impulse[r]
        # an impulse at its bound stays there, so that a solve need not find it again
        if abs(x) > bound or abs(x) >= upper[k] > 0.0:
            impulse[r] = bound if x > 0.0 else -bound
        lower[k], upper[k] = -bound, bound
        taking_part[k] = can_move(data, i, r) if bound > 0.0 else 0.0


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
    n, largest = torsional.shape[0], largest_normal(data)
    for i in range(n):
        if active[i] <= 0.0:
            continue
        if rounds[i] == MAX_ROUNDS:
            solver[0] = worse_status(solver[0], MAX_ITERATIONS)
            continue
        normal = impulse[3 * i + 2] if impulse[3 * i + 2] > NEGLIGIBLE * largest else 0.0
        share = CONSISTENT if rounds[i] < UNDAMPED_ROUNDS else NEARLY_CONSISTENT
        slack = share * largest
        changed = settle_spin(data, i, torsional[i] * normal, torsional[i] * slack)
        changed |= settle_rolling(data, i, rolling[i] * normal, rolling[i] * slack)
        if changed:
            rounds[i] += 1
            waits[island[i]] = 1
    for i in range(n):
        if active[i] > 0.0 and waits[island[i]] == 0:
            align_pair(data, i)


@kernel
def largest_normal(data):
    """Return the largest normal impulse of the contacts with the ground [N s]."""
    impulse, largest = vector(data, f.IMPULSE), 0.0
    for i in range(vector(data, f.TORSIONAL_FRICTION).shape[0]):
        largest = max(largest, impulse[3 * i + 2])
    return largest


@kernel
def settle_spin(data, i, bound, slack):
    """Move the bounds of the spin of contact i to `bound`; return whether to solve again.

    An answer inside both bounds is one for both, and so is one at rest.
    """
    r = moment_row(data, i)
    old = vector(data, f.UPPER)[r - 3 * vector(data, f.GAP).shape[0]]
    x, still = abs(vector(data, f.IMPULSE)[r]), abs(vector(data, f.U_NEXT)[r]) <= STILL
    if (x <= bound and (x < old or still)) or abs(bound - old) <= slack:
        return False
    move_bound(data, i, 0, next_bound(data, i, bound, old, still))
    return True


@kernel
def settle_rolling(data, i, bound, slack):
    """Do the same for the rolling pair, and turn it to where its friction belongs."""
    r = moment_row(data, i) + 1
    k = r - 3 * vector(data, f.GAP).shape[0]
    impulse, u, old = vector(data, f.IMPULSE), vector(data, f.U_NEXT), vector(data, f.UPPER)[k]
    compliance, x, y = vector(data, f.ROLL_COMPLIANCE), impulse[r], impulse[r + 1]
    frozen = integers(data, f.OPTIONS)[0] & FROZEN_ROLLING != 0
    size, still = np.sqrt(x * x + y * y), np.sqrt(u[r] ** 2 + u[r + 1] ** 2) <= STILL
    inside = max(abs(x), abs(y)) < old and compliance[i] == 0.0
    if frozen:
        size = max(abs(x), abs(y))
    if size <= bound * (1.0 + CONSISTENT) and (inside or still):
        return False
    sliding = abs(x) >= old > 0.0
    aligned, close = frozen or (sliding and abs(y) <= slack), abs(bound - old) <= slack
    if close and (aligned or old == 0.0):
        return False
    if old > 0.0 and not aligned:
        # slip along the next axis, −λ, and across it; of a corner outside of the disc it is not
        # known yet
        soft = matrix(data, f.ROLL_SOFTNESS)[i]
        p, q = u[r] - soft[0], u[r + 1] - soft[1]
        along, across = -(p * x + q * y) / size, (p * y - q * x) / size
        turn_pair(data, i, -x, -y)
        compliance[i] = max(along / old - soft[2], 0.0) if sliding else 0.0
        if size > old:
            impulse[r], impulse[r + 1] = -old, 0.0
        if compliance[i] > 0.0:
            impulse[r + 1] = -across / (compliance[i] + soft[2])
    move_bound(data, i, 1, next_bound(data, i, bound, old, still))
    return True


@kernel
def next_bound(data, i, bound, old, still):
    """Return the bound of contact i in the next solve, from that of the last answer."""
    rounds = integers(data, f.MOMENT_ROUNDS)[i]
    # at rest less, more so from solve to solve: an answer inside its bounds is right, too, and of
    # redundant impulses the normal one may follow the moment down
    if still:
        return (1.0 - min(NEARLY_CONSISTENT * 2.0**rounds, 0.5)) * bound
    return 0.5 * (bound + old) if rounds >= UNDAMPED_ROUNDS else bound


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
