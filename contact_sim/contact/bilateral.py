"""The bilateral rows of a step in its arrays: taken out of the contact problem, exact in all laws.

Compiled once and called by address: few simulations have any. What has to be done goes into the
arrays as a task. theory 4.6.
"""

from __future__ import annotations

from typing import Any

from numba import carray, types

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import Arrays, arrays_of, integers, matrix, square, vector
from contact_sim.collision.by_address import call_with_arrays
from contact_sim.constraints.elimination import (
    constrain,
    eliminate,
    fill_share,
    row_values,
    take_out,
)
from contact_sim.contact.active_rows import row_velocities
from contact_sim.contact.bilateral_rows import (
    elimination_of,
    fill_accelerations,
    fill_rates,
    fill_speeds,
    fill_targets,
    leave_only_projected,
    part,
    place_all,
    place_rows,
)
from contact_sim.contact.problem_views import contact_branches, interval_branches, tree_of
from contact_sim.dynamics.integrate import move
from contact_sim.solvers.dense import assign, largest_size
from contact_sim.solvers.jit import entry, kernel, pointer
from contact_sim.solvers.status import INCONSISTENT, worse

NUMBERS, INDICES = types.CPointer(types.float64), types.CPointer(types.int64)
ADDRESS, TASK, RANK, UNDAMPED_RANK = range(4)
"""Places of the field `bilateral`."""
(
    START, SEE, UNDAMP, MOVE, TAKE_OUT, TAKE_OUT_UNDAMPED, PROJECT, PLACE, FLOW, SHARE,
    CONSTRAIN, SPEEDS,
) = range(12)  # fmt: skip
"""Tasks, see the functions that ask for them."""
ROUNDS, EXACT = 6, 1e-13
"""Most Newton steps of a projection; error [m, rad] at which it ends."""


CONTRADICTION = 1e-6
"""Velocity [m/s, rad/s] that constraints may miss by rounding."""


@kernel
def has_bilateral(data):
    """Return whether the simulation has bilateral rows."""
    return vector(data, f.BILATERAL_ERROR).shape[0] > 0


@kernel
def ask(data, task):
    """Do a task."""
    state = integers(data, f.BILATERAL)
    state[TASK] = task
    call_with_arrays(state[ADDRESS], data)


@kernel
def start_bilateral(data):
    """Fill H, c and what follows from them at the start of a step; v_c into `v_next`.

    v_c is the free velocity under the constraints: between the rows of the contacts and u_f.
    """
    ask(data, START)


@kernel
def see_bilateral(data):
    """Fill what follows from the H of the step data and the factor of M̂."""
    ask(data, SEE)


@kernel
def undamp_bilateral(data):
    """Fill the same with the factor of M, and make `undamping` v_e,c − v_c."""
    ask(data, UNDAMP)


@kernel
def take_out_bilateral(data, undamped):
    """Make G of the problem at hand that of a robot under the constraints."""
    ask(data, TAKE_OUT_UNDAMPED if undamped else TAKE_OUT)


@kernel
def constrain_velocity(data):
    """Add M̂⁻¹ Hᵀ λ_b to `v_next`, with λ_b and what it misses of H v + c = 0."""
    ask(data, MOVE)


@kernel
def project_positions(data):
    """Move q onto h(q) = 0 where that is asked for, and fill h there."""
    ask(data, PROJECT)


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


@pointer(types.void(NUMBERS, INDICES, INDICES))
def work_bilateral(numbers: Any, indices: Any, layout: Any) -> None:
    """Do the task in the field `bilateral`; the arrays of a step by their addresses."""
    data = Arrays(carray(numbers, (1,)), carray(indices, (1,)), carray(layout, (1,)))
    state = integers(data, f.BILATERAL)
    task = state[TASK]
    if task == START:
        place_rows(data, vector(data, f.Q_START))
        fill_targets(data)
    if task in (START, SEE):
        state[RANK] = eliminate_with(data, matrix(data, f.FACTOR), 0)
    if task == START:
        assign(vector(data, f.V_NEXT), vector(data, f.V_FREE))
        constrain_with(data, 0, vector(data, f.V_NEXT))
    elif task == MOVE:
        v = vector(data, f.V_NEXT)
        constrain_with(data, 0, v)
        note_contradiction(data, v)
        fill_rates(data, v)
    elif task == UNDAMP:
        state[UNDAMPED_RANK] = eliminate_with(data, matrix(data, f.UNDAMPED_FACTOR), 1)
        constrain_undamping(data)
    elif task in (TAKE_OUT, TAKE_OUT_UNDAMPED):
        which, n = task - TAKE_OUT, integers(data, f.COUNTS)[1]
        take_out(
            part(data, f.BILATERAL_SHARE, which), state[RANK + which], integers(data, f.ROW_OF),
            n, square(data, f.DELASSUS, n), vector(data, f.G),
        )  # fmt: skip
    elif task == PROJECT:
        project(data)
    elif task == PLACE:
        place_rows(data, vector(data, f.PROJECTED_Q))
    elif task == FLOW:
        rows = elimination_of(data, 0)
        scratch = matrix(data, f.BILATERAL_SCRATCH)
        fill_accelerations(data)
        state[RANK] = eliminate(rows, matrix(data, f.FACTOR), tree_of(data), scratch)
    elif task == SHARE:
        share = part(data, f.BILATERAL_SHARE, 0)
        coupling = matrix(data, f.BILATERAL_COUPLING)
        fill_share(elimination_of(data, 0), state[RANK], coupling, share)
    elif task == CONSTRAIN:
        constrain_with(data, 0, vector(data, f.PROJECTION))
    elif task == SPEEDS:
        fill_speeds(data)


@kernel
def eliminate_with(data, mass_factor, which):
    """Fill the elimination and its share in the rows of the contacts; return the rank."""
    rows, scratch = elimination_of(data, which), matrix(data, f.BILATERAL_SCRATCH)
    nb = rows.order.shape[0]
    rank = eliminate(rows, mass_factor, tree_of(data), scratch)
    coupling = matrix(data, f.BILATERAL_COUPLING)
    for a in range(nb):
        row_velocities(
            matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data), interval_branches(data),
            integers(data, f.DOF_PARENT), rows.response[a], coupling[a],
        )  # fmt: skip
    fill_share(rows, rank, coupling, part(data, f.BILATERAL_SHARE, which))
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
def note_contradiction(data, v):
    """Say in the status where H v + c is not zero: no impulse does it; v (nv,)."""
    missed, solver = matrix(data, f.BILATERAL_SCRATCH)[0], vector(data, f.SOLVER)
    row_values(matrix(data, f.BILATERAL_JACOBIAN), v, vector(data, f.BILATERAL_BIAS), missed)
    worst = largest_size(missed, missed.shape[0])
    if worst > CONTRADICTION:
        solver[0], solver[2] = worse(solver[0], INCONSISTENT), max(solver[2], worst)


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

    M̂ is that of the start of the step: it only says which of all ways back is taken.
    """
    q, before = vector(data, f.Q), vector(data, f.PROJECTED_Q)
    H = matrix(data, f.BILATERAL_JACOBIAN)
    kept = matrix(data, f.KEPT_JACOBIAN)
    for r in range(H.shape[0]):
        assign(kept[r], H[r])
    asked, displacement = vector(data, f.BILATERAL_DRIFT), vector(data, f.PROJECTION)
    impulse = vector(data, f.PROJECTION_IMPULSE)
    for count in range(ROUNDS + 1):
        place_all(data, q)
        place_rows(data, q)
        leave_only_projected(data, asked)
        if largest_size(asked, asked.shape[0]) <= EXACT or count == ROUNDS:
            break
        rows = elimination_of(data, 0)
        rank = eliminate(
            rows, matrix(data, f.FACTOR), tree_of(data), matrix(data, f.BILATERAL_SCRATCH)
        )
        displacement[:] = 0.0
        constrain(rows, rank, asked, displacement, impulse, matrix(data, f.BILATERAL_SCRATCH)[0])
        assign(before, q)
        move(
            integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
            matrix(data, f.POSE), displacement, before, q,
        )  # fmt: skip
    for r in range(H.shape[0]):
        assign(H[r], kept[r])


@entry
def place_bilateral(numbers, indices, layout):
    """Fill h and H at q, but for given rows; world 0."""
    data = arrays_of(numbers, indices, layout, 0)
    place_all(data, vector(data, f.Q))
    place_rows(data, vector(data, f.Q))
