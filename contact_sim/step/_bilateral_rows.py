"""Bilateral rows h(q) = 0 of a step: eliminated from the contact problem, exact for every law.

    v_c = v_f − M̂⁻¹ Hᵀ A⁺ (H v_f + c),   G_c and A as in constraints/_elimination.py (theory 4.6)

The contacts see G_c and J v_c: a robot that can move in no other way. Few simulations have such
rows, so their kernels are compiled once, apart from the laws, and called by address: a task is
written into the field `bilateral`, and `bilateral_task` does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import (
    ADDRESSES,
    Arrays,
    arrays_of,
    integers,
    matrix,
    square,
    vector,
)
from contact_sim.constraints._constraint_rows import (
    DAMPED,
    DRIVEN,
    DRIVEN_SLOWLY,
    FUNCTION,
    KD,
    KIND,
    KP,
    LAW,
    PROJECTED,
    VALUE,
    fill_drift,
    fill_errors,
    fill_jacobian,
)
from contact_sim.constraints._elimination import (
    Elimination,
    constrain,
    factor_rows,
    fill_reduction,
    reduce_problem,
    row_values,
)
from contact_sim.dynamics._integration import integrate_configuration
from contact_sim.dynamics._rigid_body import forward_kinematics
from contact_sim.errors import InvalidInput, shown
from contact_sim.robot._constraints import Holonomic
from contact_sim.solvers._cone_problem import INCONSISTENT, worse_status
from contact_sim.solvers._dense import assign, largest_size
from contact_sim.solvers._jit import call_with_arrays, entry, kernel, pointer
from contact_sim.step._contact_rows import (
    contact_branches,
    interval_branches,
    row_velocities,
)
from contact_sim.step._inertia import IMPLICIT, UNDAMPED, solve_inertia

ADDRESS, TASK, RANK, UNDAMPED_RANK = range(4)
"""Places of the field `bilateral`."""
(
    START_STEP, ELIMINATE, CONSTRAIN_UNDAMPED, CONSTRAIN_VELOCITY, CONSTRAIN_DELASSUS,
    CONSTRAIN_DELASSUS_UNDAMPED, PROJECT_POSITIONS, FILL_POSITIONS, ELIMINATE_ACCELERATIONS,
    FILL_SHARE, CONSTRAIN_VECTOR, FILL_SPEEDS,
) = range(12)  # fmt: skip
"""Tasks of `bilateral_task`, which says what each does."""
MAX_PROJECTION_STEPS, PROJECTION_TOLERANCE = 6, 1e-13
"""Most Newton steps of a projection; error [m, rad] at which it ends."""
CONTRADICTION_SPEED = 1e-6
"""Velocity [m/s, rad/s] that constraints may miss by rounding."""
DIFFERENCE_STEP = 1e-6
"""Way along v over which H is differenced, relative to 1 [rad or m]."""
MAX_COORDINATE_CHANGE = 0.3
"""Largest change of a coordinate in one Newton step [rad or m]."""


# --- What the stages of a step call.


@kernel
def has_bilateral(data):
    """Return whether the simulation has bilateral rows."""
    return vector(data, f.BILATERAL_ERROR).shape[0] > 0


@kernel
def run_task(data, task):
    """Run a task of `bilateral_task`."""
    state = integers(data, f.BILATERAL)
    state[TASK] = task
    call_with_arrays(state[ADDRESS], data)


@kernel
def add_bilateral_impulse(data, out):
    """Add Hᵀ λ_b of the step to `out` (nv,)."""
    H, impulse = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_IMPULSE)
    for r in range(impulse.shape[0]):
        for k in range(out.shape[0]):
            out[k] += H[r, k] * impulse[r]


@kernel
def bilateral_work(data):
    """Return ½ λ_bᵀ H (v + v⁺) [J]."""
    H, impulse = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_IMPULSE)
    v, v_next = vector(data, f.V_START), vector(data, f.V_NEXT)
    work = 0.0
    for r in range(impulse.shape[0]):
        for k in range(v.shape[0]):
            work += 0.5 * impulse[r] * H[r, k] * (v[k] + v_next[k])
    return work


# --- The tasks.


@pointer(ADDRESSES)
def bilateral_task(numbers: Any, indices: Any, layout: Any) -> None:
    """Do the task in the field `bilateral`; the arrays of a step by their addresses."""
    data = Arrays(numbers, indices, layout)
    state = integers(data, f.BILATERAL)
    task = state[TASK]
    # at the start of a step: h, H and c, A⁺ and H M̂⁻¹ Jᵀ with the factor of M̂, and the free
    # velocity under the constraints v_c into `v_next`; the elimination also alone
    if task == START_STEP:
        place_rows(data, vector(data, f.Q_START))
        fill_targets(data, vector(data, f.V_START), True)
    if task in (START_STEP, ELIMINATE):
        state[RANK] = eliminate_with(data, 0)
    if task == START_STEP:
        assign(vector(data, f.V_NEXT), vector(data, f.V_FREE))
        constrain_with(data, 0, vector(data, f.V_NEXT))
    elif task == CONSTRAIN_VELOCITY:
        # M̂⁻¹ Hᵀ λ_b is added to `v_next`; λ_b and ḣ are filled
        v, missed = vector(data, f.V_NEXT), matrix(data, f.BILATERAL_SCRATCH)[0]
        constrain_with(data, 0, v)
        # rows contradict each other where no impulse makes H v⁺ + c zero
        H, solver = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.SOLVER)
        row_values(H, v, vector(data, f.BILATERAL_BIAS), missed)
        worst = largest_size(missed, missed.shape[0])
        if worst > CONTRADICTION_SPEED:
            solver[0], solver[2] = worse_status(solver[0], INCONSISTENT), max(solver[2], worst)
        fill_rates(data, v)
    elif task == CONSTRAIN_UNDAMPED:
        # the same elimination with the factor of M; `undamping` becomes the constrained v_e − v_f
        state[UNDAMPED_RANK] = eliminate_with(data, 1)
        constrain_undamping(data)
    elif task in (CONSTRAIN_DELASSUS, CONSTRAIN_DELASSUS_UNDAMPED):
        # G becomes G_c = G − S Sᵀ, S the share of the rows of contacts
        which, n = task - CONSTRAIN_DELASSUS, integers(data, f.COUNTS)[1]
        reduce_problem(
            half_of(data, f.BILATERAL_SHARE, which), state[RANK + which], integers(data, f.ROW_OF),
            n, square(data, f.DELASSUS, n), vector(data, f.G),
        )  # fmt: skip
    elif task == PROJECT_POSITIONS:
        # q moves onto h(q) = 0 in the projected rows; h is filled there
        project(data)
    elif task == FILL_POSITIONS:
        place_rows(data, vector(data, f.PROJECTED_Q))
    elif task == ELIMINATE_ACCELERATIONS:
        # at the level of accelerations: hybrid, at an instant of an arc
        fill_feedback(data, vector(data, f.PROJECTION))
        state[RANK] = factor_with(data, 0)
    elif task == FILL_SHARE:
        share = half_of(data, f.BILATERAL_SHARE, 0)
        coupling = matrix(data, f.BILATERAL_COUPLING)
        fill_reduction(elimination_of(data, 0), state[RANK], coupling, share)
    elif task == CONSTRAIN_VECTOR:
        constrain_with(data, 0, vector(data, f.PROJECTION))
    elif task == FILL_SPEEDS:
        fill_targets(data, vector(data, f.PROJECTION), False)


@kernel
def factor_with(data, which):
    """Fill M̂⁻¹ Hᵀ, A and its factor; return the rank."""
    rows = elimination_of(data, which)
    for a in range(rows.jacobian.shape[0]):
        assign(rows.response[a], rows.jacobian[a])
        solve_inertia(data, UNDAMPED if which else IMPLICIT, rows.response[a])
    return factor_rows(rows, matrix(data, f.BILATERAL_SCRATCH))


@kernel
def eliminate_with(data, which):
    """Fill the elimination and its share in the rows of the contacts; return the rank."""
    rows = elimination_of(data, which)
    nb, rank = rows.order.shape[0], factor_with(data, which)
    # coupling = J M̂⁻¹ Hᵀ, column by column along the branches of the tree
    coupling = matrix(data, f.BILATERAL_COUPLING)
    for a in range(nb):
        coupling[a, :] = 0.0
        row_velocities(
            matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data), interval_branches(data),
            integers(data, f.DOF_PARENT), rows.response[a], coupling[a],
        )  # fmt: skip
    fill_reduction(rows, rank, coupling, half_of(data, f.BILATERAL_SHARE, which))
    return rank


@kernel
def constrain_with(data, which, v):
    """Add M̂⁻¹ Hᵀ λ_b to v (nv,)."""
    constrain(
        elimination_of(data, which), integers(data, f.BILATERAL)[RANK + which],
        vector(data, f.BILATERAL_BIAS), v, vector(data, f.BILATERAL_IMPULSE),
        matrix(data, f.BILATERAL_SCRATCH)[0],
    )  # fmt: skip


@kernel
def constrain_undamping(data):
    """Make `undamping` the difference of both free velocities under the constraints."""
    undamping, v = vector(data, f.UNDAMPING), vector(data, f.V_NEXT)
    free, moved = vector(data, f.V_FREE), vector(data, f.DISPLACEMENT)
    for k in range(v.shape[0]):
        moved[k] = free[k] + undamping[k]
    constrain_with(data, 1, moved)
    for k in range(v.shape[0]):
        undamping[k] = moved[k] - v[k]


@kernel
def project(data):
    """Take Newton steps q ← q ⊕ −M̂⁻¹ Hᵀ A⁺ h of the rows that are projected.

    M̂ is that of the start of the step: it only selects one of the many ways onto h(q) = 0.
    """
    q, before = vector(data, f.Q), vector(data, f.PROJECTED_Q)
    H = matrix(data, f.BILATERAL_JACOBIAN)
    # H of the step is restored at the end: the step was solved with it
    kept = matrix(data, f.KEPT_JACOBIAN)
    for r in range(H.shape[0]):
        assign(kept[r], H[r])
    errors, displacement = vector(data, f.BILATERAL_DRIFT), vector(data, f.PROJECTION)
    impulse = vector(data, f.PROJECTION_IMPULSE)
    for count in range(MAX_PROJECTION_STEPS + 1):
        # h and H at the present q, of the projected rows alone
        place_all(data, q)
        place_rows(data, q)
        keep_projected_rows(data, errors)
        if (
            largest_size(errors, errors.shape[0]) <= PROJECTION_TOLERANCE
            or count == MAX_PROJECTION_STEPS
        ):
            break
        rows, rank = elimination_of(data, 0), factor_with(data, 0)
        # q ← q ⊕ −M̂⁻¹ Hᵀ A⁺ h
        displacement[:] = 0.0
        constrain(rows, rank, errors, displacement, impulse, matrix(data, f.BILATERAL_SCRATCH)[0])
        assign(before, q)
        integrate_configuration(
            integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
            matrix(data, f.POSE), displacement, before, q,
        )  # fmt: skip
    for r in range(H.shape[0]):
        assign(H[r], kept[r])


@kernel
def place_all(data, q):
    """Fill placements and joint columns at q (nq,)."""
    forward_kinematics(
        integers(data, f.KIND), integers(data, f.PARENT), integers(data, f.Q_INDEX),
        integers(data, f.V_INDEX), matrix(data, f.PLACEMENT), q, vector(data, f.ORIGIN),
        matrix(data, f.POSE), matrix(data, f.COLUMNS),
    )  # fmt: skip


@kernel
def keep_projected_rows(data, errors):
    """Fill h of the projected rows, (nb,); make all others, and their H, zero."""
    indices, laws = integers(data, f.BILATERAL_INDICES), matrix(data, f.BILATERAL_LAWS)
    H, error = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_ERROR)
    owner = integers(data, f.BILATERAL_OWNER)
    for r in range(error.shape[0]):
        given = indices[f.CONSTRAINT_INDICES * owner[r] + KIND] == FUNCTION
        kept = laws[owner[r], LAW] == PROJECTED and not given
        errors[r] = error[r] if kept else 0.0
        if not kept:
            for k in range(H.shape[1]):
                H[r, k] = 0.0


@entry
def fill_positions_at_q(numbers, indices, layout):
    """Fill h and H at q, but for rows of Python functions; world 0."""
    data = arrays_of(numbers, indices, layout, 0)
    place_all(data, vector(data, f.Q))
    place_rows(data, vector(data, f.Q))


# --- h, H and the targets c of the rows.


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
def fill_targets(data, v, with_feedback):
    """Fill c of every row: H v⁺ + c = 0, v (nv,) the velocity at hand.

        projected        c = 0
        driven           c = −speed
        others           c = −H v, with feedback also − h H t + h (Ḣ v + kd ḣ + kp h)

    t is the contribution of the turning axes of a free base to v̇ (theory 2.0).
    """
    H, c = matrix(data, f.BILATERAL_JACOBIAN), vector(data, f.BILATERAL_BIAS)
    transport, h = vector(data, f.TRANSPORT), vector(data, f.TIME_STEP)
    row_law, laws = integers(data, f.BILATERAL_OWNER), matrix(data, f.BILATERAL_LAWS)
    if with_feedback:
        fill_feedback(data, v)
    for r in range(c.shape[0]):
        law = laws[row_law[r]]
        if law[LAW] == PROJECTED:
            c[r] = 0.0
        elif law[LAW] == DRIVEN:
            c[r] = -law[VALUE]
        elif with_feedback:
            c[r] = h[0] * c[r] - dot_row(H, r, v) - h[0] * dot_row(H, r, transport)
        else:
            c[r] = -dot_row(H, r, v)


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
        # Ḣ v, then the feedback of the kind of row
        c[r] = drift[r]
        if law[LAW] == DAMPED:
            c[r] += law[KD] * dot_row(H, r, v) + law[KP] * error[r]
        elif law[LAW] == DRIVEN_SLOWLY:
            c[r] += law[KD] * (dot_row(H, r, v) - law[VALUE])


@kernel
def fill_rates(data, v):
    """Fill ḣ at a velocity (nv,), for driven rows less their speed."""
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
def half_of(data, field, which):
    """Return the first or second half of the rows of a field: with damping or without."""
    both = matrix(data, field)
    nb = both.shape[0] // 2
    return both[which * nb : (which + 1) * nb]


@kernel
def elimination_of(data, which):
    """Return the arrays of the elimination with damping or without."""
    nb = vector(data, f.BILATERAL_ERROR).shape[0]
    return Elimination(
        matrix(data, f.BILATERAL_JACOBIAN), half_of(data, f.BILATERAL_RESPONSE, which),
        half_of(data, f.BILATERAL_MATRIX, which), half_of(data, f.BILATERAL_FACTOR, which),
        half_of(data, f.BILATERAL_GRAM, which),
        integers(data, f.BILATERAL_ORDER)[which * nb : (which + 1) * nb],
    )  # fmt: skip


@kernel
def table_of(data):
    """Return the numbers of the constraints, see constraints/_constraint_rows.py."""
    return (
        integers(data, f.BILATERAL_INDICES), matrix(data, f.BILATERAL_PLACES),
        matrix(data, f.BILATERAL_LAWS),
    )  # fmt: skip


# --- Rows of Python functions h(q), and projections from Python: slow, used rarely.


class PythonConstraints:
    """Fills the rows of constraints that are Python functions, in a workspace."""

    def __init__(self, workspace: Any) -> None:
        self._work = workspace
        self._functions = workspace.table.functions

    def update(self, q: Array, v: Array) -> None:
        """Fill h, H and Ḣ v at q (nq,), v (nv,)."""
        work, model = self._work, self._work.model
        speed = float(np.abs(v).max(initial=0.0))
        for first, constraint in self._functions:
            rows = slice(first, first + constraint.rows)
            self._place(constraint, rows, q)
            work.bilateral_drift[rows] = 0.0
            if speed > 0.0:
                dt = DIFFERENCE_STEP / speed
                # Ḣ v = (H(q ⊕ dt v) − H(q ⊖ dt v)) v / 2 dt
                ahead, behind = (
                    jacobian_of(constraint, pin.integrate(model, q, sign * dt * v), model.nv)
                    for sign in (1.0, -1.0)
                )
                work.bilateral_drift[rows] = (ahead - behind) @ v / (2.0 * dt)

    def place(self, q: Array) -> None:
        """Fill h and H of all rows at q (nq,), which becomes that of the workspace."""
        self._work.data.q[:] = q
        fill_positions_at_q(*self._work.arrays)
        for first, constraint in self._functions:
            self._place(constraint, slice(first, first + constraint.rows), q)

    def _place(self, constraint: Holonomic, rows: slice, q: Array) -> None:
        data = self._work.data
        name = f'{constraint.name!r}: error(q)'
        data.bilateral_error[rows] = _checked(name, constraint.error(q.copy()), constraint.rows)
        data.bilateral_jacobian[rows] = jacobian_of(constraint, q, self._work.model.nv)


def project_configuration(
    work: Any, q: Array, rounds: int, tolerance: float = 1e-13
) -> tuple[Array, float]:
    """Return q moved onto the projected constraints of a workspace, and the error left there.

    Newton steps q ← q ⊕ −H⁺ h, at most `rounds`, down to an error of `tolerance` [m, rad]; the
    configuration of the workspace becomes that.
    """
    rows, data, table = PythonConstraints(work), work.data, work.table
    projected = np.repeat(table.laws[:, LAW] == PROJECTED, table.indices[:, 2])
    worst = np.inf
    for count in range(rounds + 1):
        rows.place(q)
        error = data.bilateral_error[projected]
        worst = float(np.abs(error).max(initial=0.0))
        if worst <= tolerance or count == rounds:
            break
        # Newton step −H⁺ h, shortened where a coordinate would move too far
        step = -np.linalg.pinv(data.bilateral_jacobian[projected], rcond=1e-9) @ error
        longest = float(np.abs(step).max(initial=0.0))
        if longest == 0.0:
            break
        q = pin.integrate(work.model, q, step * min(1.0, MAX_COORDINATE_CHANGE / longest))
    return q, worst


def jacobian_of(constraint: Holonomic, q: Array, nv: int) -> Array:
    """Return H(q), shape (rows, nv)."""
    name = f'{constraint.name!r}: jacobian(q)'
    return _checked(name, constraint.jacobian(q.copy()), constraint.rows, nv)


def _checked(name: str, value: Any, *shape: int) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f'constraint {name} returned {shown(value)}: expected numbers'
        ) from error
    if array.shape != shape:
        raise InvalidInput(f'constraint {name} has the shape {array.shape}, expected {shape}')
    if not np.isfinite(array).all():
        raise InvalidInput(f'constraint {name} is not finite')
    return array
