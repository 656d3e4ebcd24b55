"""The equations of motion at one instant, with what the closed contacts add to them (theory 2.6).

    v̇ = M⁻¹ (τ − nle − D v) + M⁻¹ Jᵀ f,   J v̇ + J̇ v = G f + a

Kernels take the arrays of the step and those of the arc (_arc_fields.py), and name their views.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, integers, matrix, square, vector
from contact_sim.collision._body_pairs import fill_pair_rows
from contact_sim.collision._detection import contact_drift, contact_rows, detect
from contact_sim.contact_models._stages import place_bodies, row_response
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.dynamics._rigid_body import bias_forces
from contact_sim.solvers._cone_problem import Rows
from contact_sim.solvers._delassus import delassus, factorise, solve
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
    all_islands,
    branches_with,
    collect_rows,
    fill_limits,
    generalized_impulse,
    interval_branches,
    row_velocities,
    tree_of,
)
from contact_sim.step._workspace import (
    fill_ground_coefficients,
    fill_pair_drift,
    find_pair_contacts,
    ground_of,
    match_pair_slots,
)

# --- The instant.


@kernel
def evaluate(data, arc, q, v):
    """Fill all that belongs to the configuration q (nq,) and the velocity v (nv,)."""
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        place_bodies(data, q)
    fill_position_errors(data, q)
    fill_joint_limits(data, arc, q)
    evaluate_velocity(data, arc, v)


@kernel
def evaluate_velocity(data, arc, v):
    """Fill all that belongs to v (nv,), at the placements at hand."""
    effects = vector(arc, e.NONLINEAR_EFFECTS)
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        bias_forces(
            integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(data, f.COLUMNS),
            matrix(data, f.WORLD_INERTIA), v, vector(data, f.GRAVITY), matrix(data, f.TWIST),
            matrix(data, f.BIAS_ACCELERATION), matrix(data, f.BODY_WRENCH), effects,
        )  # fmt: skip
    else:
        assign(effects, vector(data, f.NONLINEAR_EFFECTS))
    # contacts, free acceleration (constrained by bilateral rows), and u = J v
    fill_contacts(data, arc)
    fill_free_acceleration(data, arc, v)
    constrain_free_acceleration(data, arc, v)
    row_velocities(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), interval_branches(data),
        integers(data, f.DOF_PARENT), v, vector(arc, e.U),
    )  # fmt: skip


@kernel
def change_velocity(data, arc):
    """Bring the instant in line with a velocity that an impact has changed."""
    evaluate_velocity(data, arc, vector(arc, e.ARC_V))


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
def fill_contacts(data, arc):
    """Fill contact points, Jᵀ at the points c − r n of the spheres, and J̇ v."""
    ground, pose = ground_of(data), matrix(data, f.POSE)
    body, origin = integers(data, f.CANDIDATE_BODY), vector(data, f.ORIGIN)
    offset, radius = matrix(data, f.OFFSET), vector(data, f.RADIUS)
    position, frame = matrix(arc, e.POSITION), frames(arc, e.FRAME)
    feature = vector(arc, e.FEATURE)
    detect(ground, pose, body, offset, radius, position, frame, vector(arc, e.GAP), feature)
    contact_rows(
        matrix(data, f.COLUMNS), origin, branches_with(data, feature),
        integers(data, f.DOF_PARENT), position, frame, vector(arc, e.NO_GAP),
        matrix(arc, e.JACOBIAN_TRANSPOSED),
    )  # fmt: skip
    pair_contacts(data, arc)
    # J̇ v, with the curvature of the ground
    motion = (matrix(data, f.TWIST), matrix(data, f.BIAS_ACCELERATION), origin)
    contact_drift(
        (body, offset, radius), motion, ground, pose, feature, frame,
        vector(data, f.GRAVITY), vector(arc, e.DRIFT),
    )  # fmt: skip


@kernel
def pair_contacts(data, arc):
    """Fill the same of contacts between bodies, each in its slot of the start of the step."""
    first, slots = integers(data, f.LEAF_DOF).shape[0], vector(data, f.PAIR_DRIFT).shape[0] // 3
    if slots == 0:
        return
    find_pair_contacts(data)
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


@kernel
def fill_free_acceleration(data, arc, v):
    """Fill the factor of M, and M⁻¹ (τ − nle − D v)."""
    M, factor = matrix(data, f.MASS_MATRIX), matrix(data, f.FACTOR)
    dof_parent, damping = integers(data, f.DOF_PARENT), vector(data, f.DAMPING)
    tau, effects = vector(data, f.TAU), vector(arc, e.NONLINEAR_EFFECTS)
    free = vector(arc, e.FREE_ACCELERATION)
    # M = Lᵀ L, and M⁻¹ (τ − nle − D v)
    for k in range(v.shape[0]):
        j = k
        while j >= 0:
            factor[k, j] = M[k, j]
            j = dof_parent[j]
        free[k] = tau[k] - effects[k] - damping[k] * v[k]
    factorise(factor, tree_of(data))
    solve(factor, tree_of(data), free)


# --- The rows of the closed contacts.


@kernel
def closed_rows(data, arc):
    """Return the equations of the closed contacts and intervals, and their number.

    G [1/kg], accelerations without contact forces [m/s²] as g, and bounds of forces [N].
    """
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    contacts, intervals = arc_branches(data, arc), interval_branches(data)
    dof_parent, jacobian = integers(data, f.DOF_PARENT), matrix(arc, e.JACOBIAN_TRANSPOSED)
    na, n = collect_rows(
        vector(arc, e.CLOSED), vector(arc, e.INTERVAL_CLOSED), contacts, intervals[0],
        all_islands(data), row_of, row_leaf,
    )  # fmt: skip
    G, a = square(data, f.DELASSUS, n), vector(data, f.G)[:n]
    mu = vector(data, f.ROW_FRICTION)[:na]
    # G = J M⁻¹ Jᵀ, a = J M⁻¹ (τ − nle − D v) + J̇ v, then both under bilateral rows
    if n > 0:
        delassus(
            jacobian, matrix(data, f.FACTOR), tree_of(data), row_of, row_leaf, n,
            row_response(data, n), G,
        )  # fmt: skip
    free, drift = vector(data, f.ROW_FREE), vector(arc, e.DRIFT)
    row_velocities(
        jacobian, contacts, intervals, dof_parent, vector(arc, e.FREE_ACCELERATION), free
    )
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
    return Rows(G, a, mu, lower, upper), n


@kernel
def interval_of(data, na, k):
    """Return the interval row behind the k-th of a problem with `na` contacts."""
    return integers(data, f.ROW_OF)[3 * na + k] - 3 * vector(data, f.GAP).shape[0]


@kernel
def add_response(data, arc, force, out):
    """Add M⁻¹ Jᵀ f to `out` (nv,); f of all rows, in the contact frames of the instant."""
    response, dof_parent = np.empty(out.shape[0]), integers(data, f.DOF_PARENT)
    generalized_impulse(
        matrix(arc, e.JACOBIAN_TRANSPOSED), arc_branches(data, arc), interval_branches(data),
        dof_parent, force, response,
    )  # fmt: skip
    solve(matrix(data, f.FACTOR), tree_of(data), response)
    constrain_response(data, response)
    for k in range(out.shape[0]):
        out[k] += response[k]


@kernel
def add_impulse(data, arc, impulse):
    """Add impulses of all rows [N s], in the frames of the instant, to those of the step."""
    turned, total = np.empty(impulse.shape[0]), vector(arc, e.IMPULSE)
    in_start_frames(data, arc, impulse, turned)
    for r in range(total.shape[0]):
        total[r] += turned[r]


@kernel
def in_start_frames(data, arc, force, out):
    """Fill `out` with the forces of all rows, turned into the contact frames of the step's start.

    The frames of the instant turn on curved ground; on planes this changes nothing but rounding.
    """
    now, start = frames(arc, e.FRAME), frames(data, f.FRAME_START)
    for i in range(now.shape[0]):
        r = 3 * i
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
def constrain_free_acceleration(data, arc, v):
    """Constrain the acceleration without contact forces at v (nv,).

    Fills the elimination that `constrain_response` needs.
    """
    if not has_bilateral(data):
        return
    moved = vector(data, f.PROJECTION)
    assign(moved, v)
    run_task(data, ELIMINATE_ACCELERATIONS)
    fill_arc_coupling(data, arc)
    constrain_vector(data, vector(arc, e.FREE_ACCELERATION))
    assign(vector(arc, e.BILATERAL_FREE), vector(data, f.BILATERAL_IMPULSE))
    set_zero(vector(data, f.BILATERAL_BIAS))


@kernel
def fill_arc_coupling(data, arc):
    """Fill J M⁻¹ Hᵀ of the contact rows of the arc, and the share of it in G."""
    coupling, response = matrix(data, f.BILATERAL_COUPLING), matrix(data, f.BILATERAL_RESPONSE)
    for a in range(coupling.shape[0]):
        row_velocities(
            matrix(arc, e.JACOBIAN_TRANSPOSED), branches_with(data, vector(arc, e.FEATURE)),
            interval_branches(data), integers(data, f.DOF_PARENT), response[a], coupling[a],
        )  # fmt: skip
    run_task(data, FILL_SHARE)


@kernel
def constrain_vector(data, x):
    """Constrain an acceleration or velocity (nv,) with the c in the field `bilateral_bias`."""
    moved = vector(data, f.PROJECTION)
    assign(moved, x)
    run_task(data, CONSTRAIN_VECTOR)
    assign(x, moved)


@kernel
def constrain_response(data, response):
    """Constrain the response M⁻¹ Jᵀ f (nv,) to contact forces or impulses."""
    if has_bilateral(data):
        constrain_vector(data, response)


@kernel
def constrain_row_delassus(data, n):
    """Make G of n rows G_c, the one under the constraints."""
    if has_bilateral(data):
        integers(data, f.COUNTS)[1] = n
        run_task(data, CONSTRAIN_DELASSUS)


@kernel
def fill_constraint_forces(data, arc):
    """Fill the forces of the constraints at the instant, after those of the contacts."""
    force, free = vector(arc, e.BILATERAL_FORCE), vector(arc, e.BILATERAL_FREE)
    response = vector(data, f.BILATERAL_IMPULSE)
    for r in range(force.shape[0]):
        force[r] = free[r] + response[r]


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
    set_zero(vector(arc, e.BILATERAL_IMPULSE))
    v = vector(arc, e.ARC_V)
    assign(vector(data, f.PROJECTION), v)
    run_task(data, FILL_SPEEDS)
    constrain_vector(data, v)
    accumulate_constraint_impulse(data, arc)
    set_zero(vector(data, f.BILATERAL_BIAS))
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


@kernel
def set_zero(x):
    """Make all zero."""
    for k in range(x.shape[0]):
        x[k] = 0.0
