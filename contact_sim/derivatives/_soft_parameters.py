"""How the impulses of soft laws change with the numbers of the law and with the time step.

At given velocities γ(u⁺, u⁻, φ, μ, w; p, h) is a smooth function of few numbers, contact by
contact. Its derivatives to p and h are central differences of fourth order.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

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
from contact_sim.contact_models._stages import fill_delassus, gather_problem
from contact_sim.derivatives._differences import Differences, difference
from contact_sim.solvers import _springs as springs
from contact_sim.solvers._jit import entry
from contact_sim.solvers._soft_newton import fill_impulse, linear_law
from contact_sim.step._contact_rows import spring_work_of, unbiased_rows_of

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
        todorov.undamp_contacts(data)
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
