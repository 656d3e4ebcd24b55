"""The bilateral rows of a step in its arrays: h, H, and what is asked of them (theory 4.6)."""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.constraints.elimination import Elimination
from contact_sim.constraints.kinds import (
    DAMPED,
    DRIVEN,
    DRIVEN_SLOWLY,
    GIVEN,
    KD,
    KIND,
    KP,
    LAW,
    PROJECTED,
    VALUE,
)
from contact_sim.constraints.position_rows import fill_drift, fill_errors, fill_jacobian
from contact_sim.dynamics.kinematics import place
from contact_sim.solvers.jit import kernel


@kernel
def part(data, field, which):
    """Return the first or second half of the rows of a field: with damping or without."""
    both = matrix(data, field)
    nb = both.shape[0] // 2
    return both[which * nb : (which + 1) * nb]


@kernel
def elimination_of(data, which):
    """Return the arrays of the elimination with damping or without."""
    nb = vector(data, f.BILATERAL_ERROR).shape[0]
    return Elimination(
        matrix(data, f.BILATERAL_JACOBIAN), part(data, f.BILATERAL_RESPONSE, which),
        part(data, f.BILATERAL_MATRIX, which), part(data, f.BILATERAL_FACTOR, which),
        part(data, f.BILATERAL_GRAM, which),
        integers(data, f.BILATERAL_ORDER)[which * nb : (which + 1) * nb],
    )  # fmt: skip


@kernel
def table_of(data):
    """Return the numbers of the constraints, see `position_rows.fill_errors`."""
    return (
        integers(data, f.BILATERAL_INDICES), matrix(data, f.BILATERAL_PLACES),
        matrix(data, f.BILATERAL_LAWS),
    )  # fmt: skip


@kernel
def place_rows(data, q):
    """Fill h and H at the placements at hand, q (nq,)."""
    table, pose = table_of(data), matrix(data, f.POSE)
    fill_errors(table, pose, q, vector(data, f.BILATERAL_ERROR))
    fill_jacobian(
        table, pose, matrix(data, f.COLUMNS), vector(data, f.ORIGIN),
        integers(data, f.DOF_PARENT), matrix(data, f.BILATERAL_JACOBIAN),
    )  # fmt: skip


@kernel
def fill_targets(data):
    """Fill c of every row: H v⁺ + c = 0.

        projected        c = 0
        driven           c = −speed
        others           c = −H v − h H t + h (what is asked of H v̇, negative)

    t is what the axes of a free base add to v̇.
    """
    H, c = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_BIAS)
    v, transport, h = vector(data, f.V_START), vector(data, f.TRANSPORT), vector(data, f.TIME_STEP)
    row_law, laws = integers(data, f.BILATERAL_OWNER), matrix(data, f.BILATERAL_LAWS)
    fill_feedback(data, v)
    for r in range(c.shape[0]):
        law = laws[row_law[r]]
        if law[LAW] == PROJECTED:
            c[r] = 0.0
        elif law[LAW] == DRIVEN:
            c[r] = -law[VALUE]
        else:
            c[r] = h[0] * c[r] - dot_row(H, r, v) - h[0] * dot_row(H, r, transport)


@kernel
def fill_accelerations(data):
    """Fill c of every row: H v̇ + c = 0 at the velocity in `projection`."""
    fill_feedback(data, vector(data, f.PROJECTION))


@kernel
def fill_feedback(data, v):
    """Fill c with Ḣ v + kd ḣ + kp h, of driven rows with α (H v − speed); v (nv,)."""
    H, c = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_BIAS)
    error, drift = vector(data, f.BILATERAL_ERROR), vector(data, f.BILATERAL_DRIFT)
    motion = (
        matrix(data, f.TWIST), matrix(data, f.BIAS_ACCELERATION), vector(data, f.ORIGIN),
        vector(data, f.GRAVITY),
    )  # fmt: skip
    fill_drift(table_of(data), matrix(data, f.POSE), motion, drift)
    row_law, laws = integers(data, f.BILATERAL_OWNER), matrix(data, f.BILATERAL_LAWS)
    for r in range(c.shape[0]):
        law = laws[row_law[r]]
        c[r] = drift[r]
        if law[LAW] == DAMPED:
            c[r] += law[KD] * dot_row(H, r, v) + law[KP] * error[r]
        elif law[LAW] == DRIVEN_SLOWLY:
            c[r] += law[KD] * (dot_row(H, r, v) - law[VALUE])


@kernel
def fill_speeds(data):
    """Fill c with which the velocity in `projection` becomes the one asked for at once."""
    H, c, v = (
        matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_BIAS),
        vector(data, f.PROJECTION),
    )  # fmt: skip
    row_law, laws = integers(data, f.BILATERAL_OWNER), matrix(data, f.BILATERAL_LAWS)
    for r in range(c.shape[0]):
        law = laws[row_law[r]]
        if law[LAW] == PROJECTED:
            c[r] = 0.0
        elif law[LAW] == DRIVEN:
            c[r] = -law[VALUE]
        else:
            c[r] = -dot_row(H, r, v)


@kernel
def fill_rates(data, v):
    """Fill ḣ at a velocity (nv,), of driven rows less the speed that is asked for."""
    H, rate = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_RATE)
    owner, laws = integers(data, f.BILATERAL_OWNER), matrix(data, f.BILATERAL_LAWS)
    for r in range(rate.shape[0]):
        law = laws[owner[r]]
        rate[r] = dot_row(H, r, v) - (law[VALUE] if law[LAW] >= DRIVEN else 0.0)


@kernel
def dot_row(H, r, v):
    """Return H[r] · v."""
    total = 0.0
    for k in range(v.shape[0]):
        total += H[r, k] * v[k]
    return total


@kernel
def place_all(data, q):
    """Fill placements and joint columns at q (nq,)."""
    place(
        integers(data, f.KIND), integers(data, f.PARENT), integers(data, f.Q_INDEX),
        integers(data, f.V_INDEX), matrix(data, f.PLACEMENT), q, vector(data, f.ORIGIN),
        matrix(data, f.POSE), matrix(data, f.COLUMNS),
    )  # fmt: skip


@kernel
def leave_only_projected(data, asked):
    """Fill h of the projected rows, (nb,); make all others, and their H, zero."""
    indices, laws = integers(data, f.BILATERAL_INDICES), matrix(data, f.BILATERAL_LAWS)
    H, error = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_ERROR)
    owner = integers(data, f.BILATERAL_OWNER)
    for r in range(error.shape[0]):
        given = indices[f.CONSTRAINT_INDICES * owner[r] + KIND] == GIVEN
        kept = laws[owner[r], LAW] == PROJECTED and not given
        asked[r] = error[r] if kept else 0.0
        if not kept:
            for k in range(H.shape[1]):
                H[r, k] = 0.0
