"""Derivatives of a step with respect to the parameters of the simulation.

Each parameter enters the momentum equation, R_p of M̂ dv⁺ = R_p dp + Jᵀ dλ, the law of the rows,
or both; the system is that of the state. Inertial parameters enter linearly, τ = Y(q, v, v̇) π with
Pinocchio's joint torque regressor Y.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import arrays_of, matrix, vector
from contact_sim.contact_models import _todorov as todorov
from contact_sim.contact_models._compliant import (
    FRICTION_LAW,
    IMPLICIT,
    MATERIAL,
    NORMAL_LAW,
    SMALL_MOTIONS,
)
from contact_sim.contact_models._sap import fill_rules
from contact_sim.contact_models._soft_contact import undamp_contacts
from contact_sim.contact_models._stages import fill_delassus, gather_problem
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._compiled import map_result
from contact_sim.derivatives._differences import Differences, difference
from contact_sim.robot._trees import data_of
from contact_sim.solvers import _springs as springs
from contact_sim.solvers._jit import entry
from contact_sim.solvers._soft_newton import fill_impulse, linear_law
from contact_sim.step._contact_rows import spring_work_of, unbiased_rows_of

# --- Numbers of soft laws
#
# At given velocities γ(u⁺, u⁻, φ, μ, w; p, h) is a smooth function of few numbers, contact by
# contact. Its derivatives to p and h are central differences of fourth order.

RELATIVE_STEP = 1e-3
KINDS = {'todorov': 0, 'todorov 2014': 1, 'sap': 2, 'compliant': 3}
"""Codes of the soft laws."""
NUMERICS = ('tolerance', 'damping_inertia')
"""Numbers of a soft law that are no constants of its force law."""


@entry
def fill_law_impulses(numbers, indices, layout, kind, undamped, velocity, out):
    """Fill γ of the rows of the problem at their velocities u⁺, (n,) each."""
    data = arrays_of(numbers, indices, layout, 0)
    n, law, h = gather_problem(data), vector(data, f.LAW), vector(data, f.TIME_STEP)[0]
    if undamped:
        undamp_contacts(data)
        fill_delassus(data, n, True)
    rows, u = unbiased_rows_of(data), velocity[:n]
    if kind == 3:
        nc, implicit = rows.friction.shape[0], law[IMPLICIT] != 0.0
        material, work = law[MATERIAL:SMALL_MOTIONS], spring_work_of(data)
        laws = springs.Springs(
            int(law[NORMAL_LAW]), int(law[FRICTION_LAW]), material, h, h if implicit else 0.0
        )
        gaps = vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP)
        at = u if implicit else vector(data, f.ROW_START)[:n]
        memory = matrix(data, f.ROW_MEMORY)[:nc]
        springs.fill_forces(rows, laws, at, gaps, memory, work, False)
        out[:n] = work.force[:n]
        return
    if kind == 2:
        fill_impulse(rows, fill_rules(data, rows), u, out)
        return
    scratch, start = matrix(data, f.LAW_VECTORS), vector(data, f.ROW_START)
    R, v_hat, nc = scratch[0][:n], scratch[1][:n], rows.friction.shape[0]
    for i in range(nc):
        rows.friction[i] = max(rows.friction[i], todorov.SMALLEST_FRICTION)
    gap, error = vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP)
    if kind == 1:
        todorov.fill_rules_2014(rows, start, (gap, error), h, law, R, v_hat)
    else:
        weight = vector(data, f.ROW_WEIGHT)
        todorov.fill_contact_rules(rows, start, gap, weight, h, law, R, v_hat)
        todorov.fill_interval_rules(rows, start, error, weight, h, law, R, v_hat)
    fill_impulse(rows, linear_law(v_hat, R, law[todorov.ELLIPTIC] == 0.0), u, out)


def law_parameters(model: Any, kind: str) -> tuple[str, ...]:
    """Return the names of the numbers of a soft law, none of a rigid one."""
    if kind not in KINDS:
        return ()
    own = model.parameters
    return tuple(
        item.name for item in fields(own)
        if isinstance(getattr(own, item.name), float) and item.name not in NUMERICS
        and getattr(own, item.name) > 0.0
    )  # fmt: skip


class LawDifferences:
    """γ of the rows of a step, for other numbers of the law or another time step."""

    def __init__(self, work: Any, model: Any, kind: str, undamped: bool) -> None:
        self._model = model.sized(work) if hasattr(model, 'sized') else model
        self._kind, self._undamped = KINDS[kind], undamped
        self._base, self._differences = work, Differences(work, 0)
        self._work = self._differences._work
        self._begin(0.0)

    def _begin(self, longer: float) -> None:
        """Start the step with the time step h + longer, and the active rows of the step."""
        start = self._base.data.q_start.copy(), self._base.data.v_start.copy()
        self._differences._begin(*start, longer)
        self._work.data.active[:] = self._base.data.active
        self._work.data.interval_active[:] = self._base.data.interval_active

    def impulses(self, velocity: Array) -> Array:
        """Return γ at the velocities of the rows, (n,)."""
        out = np.zeros(self._work.sizes.rows)
        fill_law_impulses(*self._work.arrays, self._kind, self._undamped, velocity, out)
        return out[: len(velocity)].copy()

    def to_number(self, name: str, velocity: Array) -> Array:
        """Return ∂γ/∂p of a number of the law, (n,)."""
        model, law = self._model, self._work.law
        value, before = getattr(model.parameters, name), law.copy()

        def at(s: float) -> Array:
            other = type(model)(**{**vars(model.parameters), name: value + s})
            numbers = other.law_numbers()
            law[: len(numbers)] = numbers
            return self.impulses(velocity)

        try:
            return difference(at, RELATIVE_STEP * value)
        finally:
            law[:] = before

    def to_time_step(self, velocity: Array) -> Array:
        """Return ∂γ/∂h, (n,)."""

        def at(s: float) -> Array:
            self._begin(s)
            return self.impulses(velocity)

        return difference(at, RELATIVE_STEP * float(self._base.data.time_step[0]))


# --- All parameters

COMMON = (
    'friction', 'restitution', 'time_step', 'gravity', 'inertial', 'damping', 'armature',
    'joint_friction', 'baumgarte',
)  # fmt: skip
"""Parameters of every simulation."""
LEAST_NORM = 1e-9
Columns = tuple[Array, Array, Array]


def parameter_names(arrays: Any) -> Sequence[str]:
    """Return the parameters of a simulation, those of its contact model last."""
    return (*COMMON, *law_parameters(arrays.model, arrays.law))


def parameter_columns(
    arrays: Any, result: Any, name: str
) -> tuple[Array, Array, Array, int | None]:
    """Return dv, dq⁺, dλ of the problem rows, and the column of the time step, if it is one."""
    with step_of(arrays, result):
        fill = FILL.get(name)
        force, law, own = fill(arrays, result) if fill else of_law(arrays, result, name)
    impulse, change = solve_columns(result, force, law)
    p = change.shape[1]
    velocity, configuration = np.empty_like(change), np.empty_like(change)
    if result._last_stage is None:
        with step_of(arrays, result):
            map_result(*arrays.work.arrays, change, own, velocity, configuration)
    else:
        _, _, to_next, to_h = result._last_stage
        rows = to_next @ change + (to_h if name == 'time_step' else 0.0)
        configuration, velocity = np.split(rows, 2)
    return velocity, configuration, impulse, (0 if name == 'time_step' and p == 1 else None)


@contextmanager
def step_of(arrays: Any, result: Any) -> Iterator[None]:
    """Put the step of a result into the arrays of the linearisation, with its constants."""
    work = arrays.work
    work.data.buffer[:] = result._buffer
    work.inertia[:], work.jacobian_transposed[:] = result._lower_inertia, result._columns
    work.numbers[0, arrays._constants] = result._kept[4]
    yield


def law_velocities(result: Any) -> tuple[Array, Array]:
    """Return the velocities that the law sees, u' = J v', and ∂u'/∂h at given v⁺, (n,) each."""
    step, J = result.step, row_jacobian(result)
    v, slope = step.v_next.copy(), np.zeros_like(step.v_next)
    if result._counts[d.UNDAMPED]:
        h, damping = result._time_step, result._fields['damping']
        M = result.inertia - h * np.diag(damping)
        slope = np.linalg.solve(M, damping * (step.v_next - step.v_start))
        v += h * slope
    n = len(J) - int(result._counts[d.BILATERAL])
    return J[:n] @ v, J[:n] @ slope


def of_law(arrays: Any, result: Any, name: str) -> Columns:
    """Column of a number of the contact model."""
    columns = empty(result, 1)
    velocity, _ = law_velocities(result)
    undamped = bool(result._counts[d.UNDAMPED])
    law = LawDifferences(arrays.work, arrays.model, arrays.law, undamped)
    columns[1][: len(velocity), 0] = law.to_number(name, velocity)
    return columns


def solve_columns(result: Any, force: Array, law: Array) -> tuple[Array, Array]:
    """Return dλ (n, p) and dv⁺ (nv, p) for R_p (nv, p) and the law's own −∂/∂p (n, p)."""
    fields, n = result._fields, int(result._counts[d.ROWS])
    M, J = result.inertia, row_jacobian(result)
    solved = np.linalg.solve(M, np.hstack([force, J.T]))
    p = force.shape[1]
    X, K = solved[:, :p], solved[:, p:]
    G, of_rows = J @ K, J @ X
    if result._counts[d.UNDAMPED]:  # contacts see M without damping
        undamped = M - result._time_step * np.diag(result._fields['damping'])
        seen = J @ np.linalg.solve(undamped, np.hstack([force, J.T]))
        of_rows, G = seen[:, :p], seen[:, p:]
    A, B = block_matrix(result, fields['on_impulse']), block_matrix(result, fields['on_velocity'])
    system, right = A + B @ G, law - B @ of_rows
    scale = np.maximum(np.abs(system).max(axis=1, initial=0.0), 1e-300)[:, None]
    if n == 0:
        return np.zeros((0, p)), X
    if result.redundant:
        impulse = np.linalg.lstsq(system / scale, right / scale, rcond=LEAST_NORM)[0]
    else:
        impulse = np.linalg.solve(system / scale, right / scale)
    return impulse, X + K @ impulse


def row_jacobian(result: Any) -> Array:
    """Return J of the problem rows, (n, nv)."""
    n = int(result._counts[d.ROWS] - result._counts[d.BILATERAL])
    rows = result._columns.T[result._row_of[:n]]
    return np.vstack([rows, result.step.bilateral_jacobian])


def block_matrix(result: Any, entries: Array) -> Array:
    """Return the matrix (n, n) of entries (R, 3) in blocks of three, then single ones."""
    n, contacts = int(result._counts[d.ROWS]), int(result._counts[d.CONTACTS])
    matrix = np.zeros((n, n))
    for r in range(3 * contacts):
        matrix[r, r - r % 3 : r - r % 3 + 3] = entries[r]
    for r in range(3 * contacts, n):
        matrix[r, r] = entries[r, 0]
    return matrix


def empty(result: Any, p: int) -> Columns:
    """Return zeros for R_p, the law and the displacement."""
    nv, n = len(result.step.v), int(result._counts[d.ROWS])
    return np.zeros((nv, p)), np.zeros((n, p)), np.zeros((nv, p))


def of_friction(arrays: Any, result: Any) -> Columns:
    """Columns of μ of every contact."""
    columns = empty(result, arrays.sizes.nc)
    for a in range(3 * int(result._counts[d.CONTACTS])):
        columns[1][a, result._row_of[a] // 3] = -result._fields['on_friction'][a]
    return columns


def of_restitution(arrays: Any, result: Any) -> Columns:
    """Columns of e of every contact."""
    columns = empty(result, arrays.sizes.nc)
    for a in range(3 * int(result._counts[d.CONTACTS])):
        columns[1][a, result._row_of[a] // 3] = -result._fields['on_restitution'][a]
    return columns


def of_time_step(arrays: Any, result: Any) -> Columns:
    """Column of h: R_h = τ − nle − D v + M̂ t − D (v⁺ − v − h t) − K (q − q₀ + 2 h v⁺)."""
    force, law, own = empty(result, 1)
    step, damping, h = result.step, result._fields['damping'], result._time_step
    M = result.inertia
    motion = step.v_next - step.v_start - h * step.transport
    share = result._fields['damping_inertia'][0]  # of todorov in its form of 2014
    explicit = damping + share / (1.0 + share) * (np.diagonal(M) - h * damping)
    force[:, 0] = step.tau - step.nonlinear_effects - explicit * step.v_start
    force[:, 0] += M @ step.transport - damping * motion
    work = arrays.work
    stretch = step.q_start[work.spring_q] - work.joint_rest
    stretch = stretch + 2.0 * h * work.implicit_springs[0] * step.v_next[work.spring_v]
    force[work.spring_v, 0] -= work.joint_stiffness * stretch
    if arrays.law in KINDS:
        velocity, slope = law_velocities(result)
        undamped, n = bool(result._counts[d.UNDAMPED]), len(velocity)
        differences = LawDifferences(arrays.work, arrays.model, arrays.law, undamped)
        law[:n, 0] = differences.to_time_step(velocity)
        B = block_matrix(result, result._fields['on_velocity'])[:n, :n]
        law[:n, 0] -= B @ slope
    else:
        law[:, 0] = -result._fields['on_time'][: len(law)]
    own[:, 0] = step.v_next
    return force, law, own


def of_gravity(arrays: Any, result: Any) -> Columns:
    """Columns of the gravity vector: −h ∂nle/∂g."""
    columns, model = empty(result, 3), arrays.work.model
    data, before = data_of(model), model.gravity.linear.copy()
    try:
        for k in range(3):
            model.gravity.linear = np.eye(3)[k]
            weight = pin.computeGeneralizedGravity(model, data, result.step.q_start)
            columns[0][:, k] = -result._time_step * weight
    finally:
        model.gravity.linear = before
    return columns


def of_inertial(arrays: Any, result: Any) -> Columns:
    """Columns of the dynamic parameters of every joint of Pinocchio's model: −h Y."""
    model, step = arrays.work.model, result.step
    before = model.gravity.linear.copy()
    try:
        model.gravity.linear = step.gravity
        Y = pin.computeJointTorqueRegressor(
            model, data_of(model), step.q_start, step.v_start, step.acceleration
        )
    finally:
        model.gravity.linear = before
    columns = empty(result, Y.shape[1])
    columns[0][:] = -result._time_step * Y
    return columns


def of_damping(arrays: Any, result: Any) -> Columns:
    """Columns of the viscous damping of every dof: −h v⁺, and v of flyers apart."""
    columns = empty(result, len(result.step.v))
    np.fill_diagonal(columns[0], -result._time_step * result.step.v_next)
    return columns


def of_armature(arrays: Any, result: Any) -> Columns:
    """Columns of the armature of every dof: −h v̇."""
    columns = empty(result, len(result.step.v))
    np.fill_diagonal(columns[0], -result._time_step * result.step.acceleration)
    return columns


def of_joint_friction(arrays: Any, result: Any) -> Columns:
    """Columns of the dry friction of every dof: the bounds ± h τ of its row."""
    columns, nc = empty(result, len(result.step.v)), arrays.sizes.nc
    for a in range(3 * int(result._counts[d.CONTACTS]), len(columns[1])):
        k = result._row_of[a] - 3 * nc if a < len(result._row_of) else -1
        slope = result._fields['on_bound'][a]
        if slope != 0.0 and k >= 0:
            columns[1][a, arrays.work.interval_dof[k]] = -result._time_step * slope
    return columns


def of_baumgarte(arrays: Any, result: Any) -> Columns:
    """Column of β: b = β φ/h of what has sunk in."""
    columns, step = empty(result, 1), result.step
    fields, nc = result._fields, arrays.sizes.nc
    beta, h = result._fields['stabilisation'][0], result._time_step
    for a in range(len(columns[1]) - int(result._counts[d.BILATERAL])):
        row = result._row_of[a]
        contact = row < 3 * nc
        gap = step.gap_start[row // 3] if contact else step.interval_gap[row - 3 * nc]
        if fields['on_gap'][a] != 0.0 and np.isclose(fields['on_gap'][a], beta / h, rtol=1e-12):
            columns[1][a, 0] = -gap / h
    return columns


FILL: dict[str, Any] = {
    'friction': of_friction, 'restitution': of_restitution, 'time_step': of_time_step,
    'gravity': of_gravity, 'inertial': of_inertial, 'damping': of_damping,
    'armature': of_armature, 'joint_friction': of_joint_friction, 'baumgarte': of_baumgarte,
}  # fmt: skip
"""Function of every parameter."""
