"""Equations of motion with closed contacts at one instant (theory 2.6).

    v̇ = M⁻¹ (τ − nle − D v) + M⁻¹ Jᵀ f,   J v̇ + J̇ v = G f + a

Kernels take the arrays of the step and those of the arc (_arc_fields.py), and name their views.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, front, integers, matrix, square, vector
from contact_sim.collision._body_pairs import fill_pair_rows
from contact_sim.collision._contact_slots import NO_SLOT, any_kept, slots_before
from contact_sim.collision._detection import contact_drift, contact_rows, detect
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._modes import (
    AWAY,
    LEAVING_ACCELERATION,
    ON_THE_CONE,
    OPEN,
    REFINEMENTS,
    STICK,
    Modes,
    is_bilateral,
    is_limit,
    mode_forces,
    select_modes,
    slip_direction,
    solve_symmetric_sets,
    spread_redundant,
)
from contact_sim.dynamics._forces import add_spring_forces
from contact_sim.dynamics._rigid_body import bias_forces
from contact_sim.solvers._cone_problem import Rows, fill_velocity
from contact_sim.solvers._delassus import add_row_forces, fill_row_products
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import (
    CONSTRAIN_DELASSUS,
    CONSTRAIN_VECTOR,
    ELIMINATE_ACCELERATIONS,
    FILL_POSITIONS,
    FILL_SHARE,
    FILL_SPEEDS,
    PROJECT_POSITIONS,
    fill_rates,
    has_bilateral,
    run_task,
)
from contact_sim.step._contact_rows import (
    ALL_ISLANDS,
    branches_with,
    collect_rows,
    fill_limits,
    generalized_impulse,
    interval_branches,
    row_velocities,
    rows_on,
)
from contact_sim.step._inertia import (
    IMPLICIT,
    begin_solve,
    end_solve,
    factor_bare_inertia,
    is_deep,
    row_products,
    solve_inertia,
    solved_rows,
)
from contact_sim.step._workspace import (
    fill_ground_coefficients,
    fill_pair_drift,
    find_pair_contacts,
    ground_of,
    match_pair_slots,
)

STOP_TRIES, STOP_ACCURACY = 10, 0.8
"""Solves to find the first stop of a slip; how close to it is close enough, as a ratio."""
LEAST_SHARE = 1e-6  # of an arc, in which one more such solve may look for a stop
MAX_RELAXATION = 2.0
"""Bound on arc length times relaxation rate of a slip; Runge-Kutta of 4th order takes 2.78."""
RESPONSE, NEAR, ANSWER, STEP, OF_ALL, DRIFT = range(6)
"""Vectors of the field `cone_work`, here scratch."""
MAX_CORRECTION_SPEED = 1e-3
"""Largest change of a normal velocity in one step to take out a penetration [m/s]."""


# --- The instant.


@kernel
def evaluate_velocity(data, arc, v):
    """Fill all that belongs to v (nv,), at the placements at hand."""
    fill_effects(data, arc, v)
    evaluate_motion(data, arc, v, True)
    fill_arc_velocities(data, arc, v, vector(arc, e.U))


@kernel
def fill_effects(data, arc, v):
    """Fill nle, and twists and accelerations of the bodies."""
    effects = vector(arc, e.NONLINEAR_EFFECTS)
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        bias_forces(
            integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(data, f.COLUMNS),
            matrix(data, f.WORLD_INERTIA), v, vector(data, f.GRAVITY), matrix(data, f.TWIST),
            matrix(data, f.BIAS_ACCELERATION), matrix(data, f.BODY_WRENCH), effects,
        )  # fmt: skip
    else:
        assign(effects, vector(data, f.NONLINEAR_EFFECTS))


@kernel
def evaluate_motion(data, arc, v, whole):
    """Fill the rest of what belongs to v, but not u; open contacts of bodies only if `whole`."""
    effects = vector(arc, e.NONLINEAR_EFFECTS)
    fill_contacts(data, arc, whole)
    # τ − nle − D v − K (q − q₀), M = Lᵀ L and the bilateral rows at v
    tau, damping = vector(data, f.TAU), vector(data, f.DAMPING)
    free = vector(arc, e.FREE_FORCE)
    for k in range(v.shape[0]):
        free[k] = tau[k] - effects[k] - damping[k] * v[k]
    add_spring_forces(
        vector(arc, e.STAGE_Q), v, (integers(data, f.SPRING_Q), integers(data, f.SPRING_V)),
        (vector(data, f.JOINT_STIFFNESS), vector(data, f.JOINT_REST)), 0.0, free,
    )  # fmt: skip
    factor_bare_inertia(data)
    eliminate_constraints(data, arc, v)


@kernel
def fill_arc_velocities(data, arc, v, out):
    """Fill `out` with the velocities J v of all rows at the instant, from v (nv,)."""
    out[:] = 0.0
    row_velocities(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), interval_branches(data),
        integers(data, f.DOF_PARENT), v, out,
    )  # fmt: skip


@kernel
def fill_coefficients(data, arc):
    """Fill friction and restitution of the contacts at the instant at hand."""
    fill_ground_coefficients(data, matrix(arc, e.POSITION), vector(arc, e.FEATURE))


@kernel
def fill_joint_limits(data, arc, q):
    """Fill bounds and gaps of the rows on positions at the configuration q (nq,)."""
    fill_limits(
        q, integers(data, f.LIMIT_Q), integers(data, f.LIMIT_OTHER_Q),
        matrix(data, f.LIMIT_SHARE), matrix(data, f.LIMIT_RANGE), vector(arc, e.LOWER),
        vector(arc, e.UPPER), vector(arc, e.INTERVAL_GAP),
    )  # fmt: skip


@kernel
def fill_contacts(data, arc, whole):
    """Fill contact points, Jᵀ at the points c − r n of the spheres, and J̇ v.

    If not `whole`, contacts between bodies are looked for only where there were any before.
    """
    ground, pose = ground_of(data), matrix(data, f.POSE)
    body, origin = integers(data, f.CANDIDATE_BODY), vector(data, f.ORIGIN)
    offset, radius = matrix(data, f.OFFSET), vector(data, f.RADIUS)
    position, frame = matrix(arc, e.POSITION), frames(arc, e.FRAME)
    feature = vector(arc, e.FEATURE)
    detect(ground, pose, body, offset, radius, position, frame, vector(arc, e.GAP), feature)
    match_ground_slots(data, arc)
    contact_rows(
        matrix(data, f.COLUMNS), origin, branches_with(data, feature),
        integers(data, f.DOF_PARENT), position, frame, vector(arc, e.NO_GAP),
        matrix(arc, e.JACOBIAN_TRANSPOSED),
    )  # fmt: skip
    if whole or any_kept(integers(data, f.LEAF_DOF).shape[0], feature):
        pair_contacts(data, arc)
    # J̇ v, with the curvature of the ground
    motion = (matrix(data, f.TWIST), matrix(data, f.BIAS_ACCELERATION), origin)
    contact_drift(
        (body, offset, radius), motion, ground, pose, feature, frame,
        vector(data, f.GRAVITY), vector(arc, e.DRIFT),
    )  # fmt: skip


@kernel
def match_ground_slots(data, arc):
    """Move contacts with the ground into the slots that they had at the start of the step.

    New ones take slots that are free. On few features every slot keeps its own.
    """
    start = vector(data, f.FEATURE_START), frames(data, f.FRAME_START)
    position, frame, gap = matrix(arc, e.POSITION), frames(arc, e.FRAME), vector(arc, e.GAP)
    feature, slots = vector(arc, e.FEATURE), integers(data, f.GROUND)[1]
    for first in range(0, integers(data, f.LEAF_DOF).shape[0], slots):
        last, same = first + slots, True
        for i in range(first, last):
            same = same and feature[i] == start[0][i]
        if same:
            continue
        place = slots_before((slots, np.inf), first, start, (feature, frame))
        taken = np.zeros(slots, np.int64)
        for s in range(slots):
            if place[s] != NO_SLOT:
                taken[place[s]] = 1
        for s in range(slots):
            if place[s] == NO_SLOT:
                place[s] = taken.argmin()
                taken[place[s]] = 1
        found = position[first:last].copy(), frame[first:last].copy(), gap[first:last].copy()
        keys = feature[first:last].copy()
        for s in range(slots):
            i = first + place[s]
            position[i], frame[i], gap[i], feature[i] = (
                found[0][s],
                found[1][s],
                found[2][s],
                keys[s],
            )


@kernel
def pair_contacts(data, arc):
    """Fill the same of contacts between bodies, each in its slot of the start of the step."""
    first, slots = integers(data, f.LEAF_DOF).shape[0], vector(data, f.PAIR_DRIFT).shape[0] // 3
    if slots == 0:
        return
    find_pair_contacts(data)
    # nothing touches, as at the instant before
    if not (any_kept(first, vector(data, f.FEATURE)) or any_kept(first, vector(arc, e.FEATURE))):
        return
    match_pair_slots(data)
    position, frame, gap = matrix(arc, e.POSITION), frames(arc, e.FRAME), vector(arc, e.GAP)
    feature = vector(arc, e.FEATURE)
    for i in range(first, first + slots):
        position[i], frame[i] = matrix(data, f.POSITION)[i], frames(data, f.FRAME)[i]
        gap[i], feature[i] = vector(data, f.GAP)[i], vector(data, f.FEATURE)[i]
    fill_pair_rows(
        matrix(data, f.COLUMNS), vector(data, f.ORIGIN), branches_with(data, feature),
        integers(data, f.DOF_PARENT), position, frame, vector(arc, e.NO_GAP),
        matrix(arc, e.JACOBIAN_TRANSPOSED),
    )  # fmt: skip
    fill_pair_drift(data)
    drift, found = vector(arc, e.DRIFT), vector(data, f.PAIR_DRIFT)
    for r in range(3 * slots):
        drift[3 * first + r] = found[r]


# --- The rows of the closed contacts.


@kernel
def fill_arc_delassus(data, arc, interval_closed):
    """Fill G of the closed contacts and of these intervals, (ns,); return (contacts, rows)."""
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    na, n = collect_rows(
        vector(arc, e.CLOSED), interval_closed, arc_branches(data, arc),
        integers(data, f.INTERVAL_DOF), rows_on(data, ALL_ISLANDS), row_of, row_leaf,
    )  # fmt: skip
    if n > 0:
        row_products(data, matrix(arc, e.JACOBIAN_TRANSPOSED), IMPLICIT, n)
    return na, n


@kernel
def closed_rows(data, arc):
    """Return the equations of the held rows, with accelerations [m/s²] and forces [N], and n.

    Fills the forces of all other rows, those of dry friction that slides, and begins v̇ with them.
    """
    fill_sliding_forces(arc)
    begin_acceleration(data, arc)
    # G = J M⁻¹ Jᵀ, a = J v̇ + J̇ v, both under bilateral rows
    na, n = fill_arc_delassus(data, arc, vector(arc, e.INTERVAL_HELD))
    row_of, a, mu = integers(data, f.ROW_OF), vector(data, f.G)[:n], vector(data, f.ROW_FRICTION)
    drift, acceleration = vector(arc, e.DRIFT), vector(arc, e.ACCELERATION)
    if solves_in_halves(data):
        fill_row_products(solved_rows(data, n), acceleration, a)
        for r in range(n):
            a[r] += drift[row_of[r]]
    else:
        free = vector(data, f.ROW_FREE)
        fill_arc_velocities(data, arc, acceleration, free)
        for r in range(n):
            a[r] = free[row_of[r]] + drift[row_of[r]]
        constrain_row_delassus(data, n)
    friction = vector(data, f.FRICTION)
    for c in range(na):
        mu[c] = friction[row_of[3 * c] // 3]
    # bounds of forces of the interval rows
    lower, upper = vector(data, f.ROW_LOWER)[: n - 3 * na], vector(data, f.ROW_UPPER)[: n - 3 * na]
    for k in range(n - 3 * na):
        s = interval_of(data, na, k)
        lower[k], upper[k] = vector(arc, e.LOWER)[s], vector(arc, e.UPPER)[s]
    return Rows(square(data, f.DELASSUS, n), a, mu[:na], lower, upper), n


@kernel
def fill_sliding_forces(arc):
    """Fill the forces of all rows: those of dry friction that slides, and 0 of what is held."""
    mode, closed = integers(arc, e.INTERVAL_MODE), vector(arc, e.INTERVAL_CLOSED)
    lower, upper, held = vector(arc, e.LOWER), vector(arc, e.UPPER), vector(arc, e.INTERVAL_HELD)
    force = vector(arc, e.FORCE)
    first = force.shape[0] - mode.shape[0]
    force[:] = 0.0
    for k in range(mode.shape[0]):
        held[k] = 1.0 if closed[k] != 0.0 and mode[k] == 0 else 0.0
        if closed[k] != 0.0 and mode[k] != 0:
            force[first + k] = lower[k] if mode[k] > 0 else upper[k]


# --- v̇ = M⁻¹ (τ − nle − D v − K (q − q₀) + Jᵀ f), constrained, first with the forces of the rows
# that are not held, then with all. Without bilateral rows, and where M is formed, one solve serves
# both: L⁻ᵀ of the forces before those of the held rows are known, L⁻¹ D⁻¹ after that.


@kernel
def solves_in_halves(data):
    """Return whether one solve, in two halves, gives accelerations without and with forces."""
    return not (has_bilateral(data) or is_deep(data))


@kernel
def begin_acceleration(data, arc):
    """Fill v̇ with the forces at hand, or, where solves are in halves, the first half of it."""
    acceleration, free = vector(arc, e.ACCELERATION), vector(arc, e.FREE_FORCE)
    generalized_impulse(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), interval_branches(data),
        integers(data, f.DOF_PARENT), vector(arc, e.FORCE), acceleration,
    )  # fmt: skip
    for k in range(free.shape[0]):
        acceleration[k] += free[k]
    if solves_in_halves(data):
        begin_solve(data, acceleration)
        return
    solve_inertia(data, IMPLICIT, acceleration)
    if has_bilateral(data):
        bias = vector(data, f.BILATERAL_BIAS)
        assign(bias, vector(arc, e.BILATERAL_FEEDBACK))
        constrain_vector(data, acceleration)
        bias[:] = 0.0
        assign(vector(arc, e.BILATERAL_FORCE), vector(data, f.BILATERAL_IMPULSE))


@kernel
def end_acceleration(data, arc, n, held):
    """Fill v̇ with the forces of all rows, `held` those of the n problem rows."""
    if solves_in_halves(data):
        acceleration = vector(arc, e.ACCELERATION)
        add_row_forces(solved_rows(data, n), held, acceleration)
        end_solve(data, acceleration)
    else:
        begin_acceleration(data, arc)


@kernel
def interval_of(data, na, k):
    """Return the interval row behind the k-th of a problem with `na` contacts."""
    return integers(data, f.ROW_OF)[3 * na + k] - 3 * vector(data, f.GAP).shape[0]


@kernel
def add_response(data, arc, force, out):
    """Add M⁻¹ Jᵀ f to `out` (nv,); f of all rows, in the contact frames of the instant."""
    response = matrix(data, f.CONE_WORK)[RESPONSE][: out.shape[0]]
    generalized_impulse(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), interval_branches(data),
        integers(data, f.DOF_PARENT), force, response,
    )  # fmt: skip
    solve_inertia(data, IMPLICIT, response)
    if has_bilateral(data):
        constrain_vector(data, response)
    for k in range(out.shape[0]):
        out[k] += response[k]


@kernel
def apply_arc_impulse(data, arc, impulse):
    """Change the velocity by impulses of all rows [N s], and add them to those of the step."""
    add_response(data, arc, impulse, vector(arc, e.ARC_V))
    accumulate_constraint_impulse(data, arc)
    turned, total = np.empty(impulse.shape[0]), vector(arc, e.IMPULSE)
    in_start_frames(data, arc, impulse, turned)
    for r in range(total.shape[0]):
        total[r] += turned[r]


@kernel
def in_start_frames(data, arc, force, out):
    """Fill `out` with the forces of all rows in the contact frames of the start of the step."""
    # the frames turn on curved ground; on planes this changes nothing but rounding
    now, start = frames(arc, e.FRAME), frames(data, f.FRAME_START)
    for i in range(now.shape[0]):
        r = 3 * i
        if force[r] == 0.0 and force[r + 1] == 0.0 and force[r + 2] == 0.0:
            out[r] = out[r + 1] = out[r + 2] = 0.0  # most contacts are open
            continue
        # world axes: Rᵀ f, then those of the start: R₀ (Rᵀ f)
        x = y = z = 0.0
        for a in range(3):
            x += now[i, a, 0] * force[r + a]
            y += now[i, a, 1] * force[r + a]
            z += now[i, a, 2] * force[r + a]
        for a in range(3):
            out[r + a] = start[i, a, 0] * x + start[i, a, 1] * y + start[i, a, 2] * z
    for r in range(3 * now.shape[0], force.shape[0]):
        out[r] = force[r]


@kernel
def arc_branches(data, arc):
    """Return on which branches the rows of the contacts of the instant have entries."""
    return branches_with(data, vector(arc, e.FEATURE))


# --- Bilateral rows between events: at the level of accelerations (theory 4.6).
#
#     H v̇ + Ḣ v + kd ḣ + kp h = 0     (no feedback where positions are projected)
#
# eliminated from the equations of the contacts. At the start of a step driven speeds are imposed,
# at its end positions are projected.


@kernel
def fill_position_errors(data, q):
    """Fill h at q (nq,), at the placements at hand."""
    if has_bilateral(data):
        assign(vector(data, f.PROJECTED_Q), q)
        run_task(data, FILL_POSITIONS)


@kernel
def eliminate_constraints(data, arc, v):
    """Fill the elimination that `constrain_vector` needs, and Ḣ v + kd ḣ + kp h, at v (nv,)."""
    if not has_bilateral(data):
        return
    moved = vector(data, f.PROJECTION)
    assign(moved, v)
    run_task(data, ELIMINATE_ACCELERATIONS)
    # J M⁻¹ Hᵀ of the contact rows of the arc, and the share of it in G
    coupling, response = matrix(data, f.BILATERAL_COUPLING), matrix(data, f.BILATERAL_RESPONSE)
    for a in range(coupling.shape[0]):
        fill_arc_velocities(data, arc, response[a], coupling[a])
    run_task(data, FILL_SHARE)
    bias = vector(data, f.BILATERAL_BIAS)
    assign(vector(arc, e.BILATERAL_FEEDBACK), bias)
    bias[:] = 0.0


@kernel
def constrain_vector(data, x):
    """Constrain an acceleration or velocity (nv,) with the c in the field `bilateral_bias`."""
    moved = vector(data, f.PROJECTION)
    assign(moved, x)
    run_task(data, CONSTRAIN_VECTOR)
    assign(x, moved)


@kernel
def constrain_row_delassus(data, n):
    """Make G of n rows G_c, the one under the constraints."""
    if has_bilateral(data):
        integers(data, f.COUNTS)[1] = n
        run_task(data, CONSTRAIN_DELASSUS)


@kernel
def accumulate_constraint_impulse(data, arc):
    """Add the impulses of the last response to those of the step."""
    total, impulse = vector(arc, e.BILATERAL_IMPULSE), vector(data, f.BILATERAL_IMPULSE)
    for r in range(total.shape[0]):
        total[r] += impulse[r]


@kernel
def impose_driven_speeds(data, arc):
    """Make the velocity of the arc obey ḣ = 0 and driven speeds; return True if there are rows."""
    if not has_bilateral(data):
        return False
    # H of the start is kept: the report of the step is in it
    start, H = matrix(arc, e.START_JACOBIAN), matrix(data, f.BILATERAL_JACOBIAN)
    for r in range(H.shape[0]):
        assign(start[r], H[r])
    vector(arc, e.BILATERAL_IMPULSE)[:] = 0.0
    v = vector(arc, e.ARC_V)
    assign(vector(data, f.PROJECTION), v)
    run_task(data, FILL_SPEEDS)
    constrain_vector(data, v)
    accumulate_constraint_impulse(data, arc)
    vector(data, f.BILATERAL_BIAS)[:] = 0.0
    return True


@kernel
def store_constraint_impulse(data, arc):
    """Project positions, and write impulses and H of the step."""
    if not has_bilateral(data):
        return
    fill_rates(data, vector(arc, e.ARC_V))
    run_task(data, PROJECT_POSITIONS)
    start, H = matrix(arc, e.START_JACOBIAN), matrix(data, f.BILATERAL_JACOBIAN)
    for r in range(H.shape[0]):
        assign(H[r], start[r])
    assign(vector(data, f.BILATERAL_IMPULSE), vector(arc, e.BILATERAL_IMPULSE))


# --- The closed contacts at one instant: modes chosen, modes held, drift removed.
#
# What drifts by the error of the integration is taken back at the end of a step, at the level of
# velocities: u_t = 0 and u_n = −α φ of closed contacts (theory T8: no Baumgarte along the ground).


@kernel
def choose_modes(data, arc, dt):
    """Choose the modes for an arc of about dt, open what leaves; return as `select_modes`."""
    # `heading` is the direction in which each contact slips at first, `direction` that against
    # which friction acts; they differ where a slow slip turns (`frozen`). The modes say what held
    # before; `reference` is guess and answer
    classify_intervals(arc)
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
    assign(reference, vector(arc, e.FORCE))
    for r in range(n):
        reference[row_of[r]] = guess[r]
    # modes of the closed rows, directions, and which are frozen
    frozen, closed = integers(arc, e.FROZEN), vector(arc, e.CLOSED)
    direction, heading = matrix(arc, e.DIRECTION), matrix(arc, e.HEADING)
    mode[:], frozen[:] = OPEN, 0
    for c in range(na):
        i = row_of[3 * c] // 3
        mode[i], frozen[i] = modes.contact[c], keep[c]
        x, y = modes.direction[c, 0], modes.direction[c, 1]
        direction[i, 0], direction[i, 1] = x, y
        if u[3 * i] ** 2 + u[3 * i + 1] ** 2 > stiction_speed**2:
            x, y = slip_direction(u[3 * i], u[3 * i + 1], 0.0, 0.0, 0)
        heading[i, 0], heading[i, 1] = x, y
        closed[i] = 0.0 if modes.contact[c] == OPEN else 1.0
    # a limit that moves is left
    interval_mode, interval_closed = integers(arc, e.INTERVAL_MODE), vector(arc, e.INTERVAL_CLOSED)
    first = interval_mode.shape[0] - integers(data, f.LIMIT_Q).shape[0]
    for k in range(ns):
        s = interval_of(data, na, k)
        interval_mode[s] = modes.interval[k]
        if s >= first and interval_mode[s] != 0:
            interval_mode[s], interval_closed[s] = AWAY, 0.0
    return outcome


@kernel
def hold_modes(data, arc):
    """Fill the forces that hold the modes, and v̇; return False if there are none."""
    rows, n = closed_rows(data, arc)
    row_of, na = integers(data, f.ROW_OF), rows.friction.shape[0]
    mode, frozen = integers(arc, e.CONTACT_MODE), integers(arc, e.FROZEN)
    direction, u = matrix(arc, e.DIRECTION), vector(arc, e.U)
    force, reference = vector(arc, e.FORCE), vector(arc, e.REFERENCE)
    modes, work = modes_of_held(data, na, n - 3 * na), matrix(data, f.CONE_WORK)
    near, answer = work[NEAR][:n], work[ANSWER][:n]
    # modes and directions of slip at this instant
    for c in range(na):
        i = row_of[3 * c] // 3
        modes.contact[c] = mode[i]
        modes.direction[c, 0], modes.direction[c, 1] = slip_direction(
            u[3 * i], u[3 * i + 1], direction[i, 0], direction[i, 1], frozen[i]
        )
    for r in range(n):
        near[r] = reference[row_of[r]]
    dofs, scratch = vector(arc, e.ARC_V).shape[0], (square(data, f.NEWTON_MATRIX, n), work[STEP])
    held = mode_forces(rows, modes, near, dofs, answer, scratch, REFINEMENTS)
    for r in range(n):
        force[row_of[r]] = answer[r]
    end_acceleration(data, arc, n, answer)
    return held and bool(np.isfinite(np.sum(vector(arc, e.ACCELERATION))))


@kernel
def modes_of_held(data, na, ns):
    """Return room for the modes of `na` contacts, and of `ns` intervals that are held."""
    mode = integers(data, f.MODE_ROW)
    mode[na : na + ns] = 0
    return Modes(mode[:na], front(data, f.LAW_VECTORS, na, 2), mode[na : na + ns])


@kernel
def classify_intervals(arc):
    """Find the closed interval rows that move, against friction; all others are held at first."""
    mode, closed, u = (
        integers(arc, e.INTERVAL_MODE),
        vector(arc, e.INTERVAL_CLOSED),
        vector(arc, e.U),
    )
    lower, upper, stiction_speed = (
        vector(arc, e.LOWER),
        vector(arc, e.UPPER),
        vector(arc, e.SETTINGS)[0],
    )
    first = u.shape[0] - mode.shape[0]
    for k in range(mode.shape[0]):
        if closed[k] == 0.0:
            continue
        touched = is_limit(lower, upper, k) or is_bilateral(lower, upper, k)
        speed = u[first + k]
        at_rest = touched or abs(speed) <= stiction_speed
        mode[k] = 0 if at_rest else (1 if speed > 0.0 else -1)


@kernel
def remove_drift(data, arc):
    """Take the drift out of the velocity of closed rows: u_t = 0, u_n = −α φ, intervals at rest.

    A penetration that was there before is taken out slowly, as is the position error of a
    bilateral row: u_n changes by no more than MAX_CORRECTION_SPEED.
    """
    na, n = fill_arc_delassus(data, arc, vector(arc, e.INTERVAL_HELD))
    constrain_row_delassus(data, n)
    take_out_drift(data, arc, na, n)


@kernel
def take_out_drift(data, arc, na, n):
    """Do the same with G of the n held rows, those of `na` contacts first."""
    row_of = integers(data, f.ROW_OF)
    modes, work = modes_of_held(data, na, n - 3 * na), matrix(data, f.CONE_WORK)
    modes.direction[:] = 0.0
    # errors of the velocities: u_n + α φ, bounded; the slip of what sticks
    mode, drift, ns = integers(arc, e.CONTACT_MODE), work[DRIFT][:n], n - 3 * na
    drift[:] = 0.0
    gap, u, rate = vector(arc, e.GAP), vector(arc, e.U), vector(arc, e.SETTINGS)[1]
    interval_gap, most, worst = vector(arc, e.INTERVAL_GAP), MAX_CORRECTION_SPEED, 0.0
    for c in range(na):
        i = row_of[3 * c] // 3
        modes.contact[c] = mode[i]
        error = u[3 * i + 2] + rate * gap[i]
        drift[3 * c + 2] = min(max(error, -most), most)
        if mode[i] == STICK:
            drift[3 * c], drift[3 * c + 1] = u[3 * i], u[3 * i + 1]
    for k in range(ns):
        error = rate * interval_gap[interval_of(data, na, k)]
        drift[3 * na + k] = u[row_of[3 * na + k]] + min(max(error, -most), most)
    for r in range(n):
        worst = max(worst, abs(drift[r]))
    if worst == 0.0:
        return
    # impulses with G λ = −drift
    near, answer, impulse = work[NEAR][:n], work[ANSWER][:n], work[OF_ALL][: u.shape[0]]
    near[:], impulse[:] = 0.0, 0.0
    rows = Rows(square(data, f.DELASSUS, n), drift, near[:na], near[:ns], near[:ns])
    scratch, dofs = (square(data, f.NEWTON_MATRIX, n), work[STEP]), vector(arc, e.ARC_V).shape[0]
    mode_forces(rows, modes, near, dofs, answer, scratch, 1)  # for a small remedy
    for r in range(n):
        impulse[row_of[r]] = answer[r]
    apply_arc_impulse(data, arc, impulse)
    fill_arc_velocities(data, arc, vector(arc, e.ARC_V), u)


# --- Directions of slow slips, whose friction turns them faster than an explicit arc can follow.
#
# At speed s the direction of a slip relaxes at a rate of up to μ f_n λ_max(G_tt) / s. Where that
# is too fast for an arc, the direction is kept over the arc: that of the slip at its end, from the
# contact problem that is implicit in the velocity, u + dt (G f + a) = dt w, w_t the slip
# (theory 2.6).


@kernel
def freeze_slow_slips(rows, u, stiction_speed, dt, force, direction, frozen):
    """Find the slips too slow for an explicit arc of dt (`frozen`), choose their directions."""
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
    # normal forces there share a load as those of the arc do: both start from `force` and keep
    # what is redundant
    slip = implicit_slips(rows, u, dt, force, frozen)
    for i in range(na):
        r = 3 * i
        size = np.sqrt(slip[r] ** 2 + slip[r + 1] ** 2)
        # a slip that will have turned back by then has to stop first
        if frozen[i] == 1 and slip[r] * u[r] + slip[r + 1] * u[r + 1] > 0.0 and size < np.inf:
            direction[i, 0], direction[i, 1] = slip[r] / size, slip[r + 1] / size


@kernel
def implicit_slips(rows, u, dt, guess, frozen):
    """Return vectors along the slips w_t at the end, of u + dt (G f + a) = dt w, shape (n,)."""
    # the slip itself and not the friction it calls for, which says nothing of a contact without
    # load, and too little of slow slips: the accuracy of f is relative to the largest one; where a
    # frozen slip stops within dt, the directions are those shortly before the first stop, so that
    # the slip ends there in both of its components; at rest it is that of the friction
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
    """Return when the first of the frozen slips stops [s], about; dt if none stops before."""
    # a slip at rest by dt stopped when |f_t + m u_t (1 / t − 1 / dt)| = μ f_n, with m the least
    # effective mass of its contact alone: not later than that; one that has turned back by dt
    # stops where its speed along u_t passes zero
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
    """Return λ_max of G_tt at row `r` [1/kg], independent of the tangential axes."""
    mean, half = 0.5 * (G[r, r] + G[r + 1, r + 1]), 0.5 * (G[r, r] - G[r + 1, r + 1])
    return mean + np.sqrt(half * half + G[r, r + 1] ** 2)
