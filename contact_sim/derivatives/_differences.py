"""Differences of the smooth geometry of a step, where there is no formula: slow, used rarely.

The law of a step is never differenced: its equations are those of the solved active set. What is
differenced here are smooth functions of q alone: gaps and Jacobians of contacts of bodies and of
bilateral constraints, effective masses of soft laws without a formula (_weight_motion.py), and the
last stage of a step (integrator `momentum`, projection onto constraints). Central differences of
fourth order with a step of 2e-4 [m, rad] have errors of about 1e-11 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.arrays import _fields as f
from contact_sim.arrays._fields import PAIR_NUMBERS
from contact_sim.arrays._views import arrays_of, vector
from contact_sim.collision._contact_slots import NO_FEATURE, pair_of
from contact_sim.contact_models import _sap as sap
from contact_sim.contact_models._base import begin, refresh
from contact_sim.contact_models._soft_contact import undamp_contacts
from contact_sim.contact_models._stages import (
    JOINT_PD,
    READY,
    fill_delassus,
    gather_problem,
    integrate,
)
from contact_sim.contact_models._todorov import sees_explicit_damping
from contact_sim.errors import InvalidInput
from contact_sim.solvers._jit import entry
from contact_sim.step._contact_rows import unbiased_rows_of
from contact_sim.step._workspace import Workspace

STEP = 2e-4
"""Step of the differences along the tangent of q [m, rad]."""
OF_TODOROV, OF_SAP, OF_COMPLIANT = range(3)
"""How the effective masses of a law are made."""


def difference(function: Callable[[float], Array], step: float) -> Array:
    """Return the derivative of a function of one number at 0, of fourth order."""
    near = function(step) - function(-step)
    far = function(2.0 * step) - function(-2.0 * step)
    return np.asarray((8.0 * near - far) / (12.0 * step))


def difference_all(function: Callable[[Array], Array], n: int, step: float) -> Array:
    """Return the Jacobian at 0 of a function of n numbers, a column each, of fourth order."""

    def column(k: int) -> Array:
        return difference(lambda s: function(s * np.eye(n)[k]), step)

    return np.array([column(k) for k in range(n)]).T


@entry
def fill_weights(numbers, indices, layout, kind, out):
    """Fill the effective masses of the rows of the problem, two of each row, (n, 2)."""
    data = arrays_of(numbers, indices, layout, 0)
    n = gather_problem(data)
    if kind == OF_TODOROV and sees_explicit_damping(data):
        undamp_contacts(data)
        fill_delassus(data, n, True)
    rows = unbiased_rows_of(data)
    G, nc = rows.delassus, rows.friction.shape[0]
    if kind == OF_SAP:
        sap.fill_weights(data, rows, n)
        weight = vector(data, f.ROW_WEIGHT)
        for a in range(n):
            out[a, 0], out[a, 1] = weight[a], 0.0
        return
    for i in range(nc):
        a = 3 * i
        along = G[a, a] if kind == OF_TODOROV else 0.5 * (G[a, a] + G[a + 1, a + 1])
        for r in range(a, a + 3):
            out[r, 0], out[r, 1] = G[a + 2, a + 2], along
    for a in range(3 * nc, n):
        out[a, 0], out[a, 1] = G[a, a], 0.0


@entry
def finish_step(numbers, indices, layout):
    """Run the last stage of a step on the velocity in `v_next`."""
    integrate(arrays_of(numbers, indices, layout, 0))


@dataclass(frozen=True, eq=False)
class Geometry:
    """What a step knows at one configuration."""

    jacobian: Array
    """J of all rows, (rows, nv)."""
    gap: Array
    """φ of all contacts, (nc,)."""
    bilateral: Array
    """H, (nb, nv)."""
    target: Array
    """c of H v⁺ + c = 0, (nb,)."""
    weights: Array
    """Effective masses of the rows of the problem, (n, 2)."""
    frame: Array
    """Rows t1, t2, n of the contact frames, (nc, 3, 3)."""
    mass: Array
    """Diagonal of M̂, (nv,)."""


def contact_name(work: Workspace, feature: float, i: int) -> str:
    """Return the name of contact i with a feature; that of bodies is `one on another`."""
    if i < len(work.names):
        return work.names[i]
    k, pairs = PAIR_NUMBERS * pair_of(feature), work.pairs
    solids = work.robot.collisions.solids
    second = solids[pairs[k + 1]].name if pairs[k + 1] >= 0 else 'the ground'
    return f'{solids[pairs[k]].name} on {second}'


class Differences:
    """Evaluates a step at other states, in arrays of its own."""

    def __init__(self, work: Workspace, kind: int) -> None:
        self._base, self._kind = work, kind
        self._work, self._model = work.copy(), work.model

    def geometry(self, q: Array, v: Array) -> Geometry:
        """Return what the step knows at q, v, contacts in the slots of the base step."""
        work, base = self._work, self._base
        self._begin(q, v)
        nc, jacobian, gap = work.sizes.nc, work.jacobian_transposed.T.copy(), np.empty(0)
        slots = self._slots()
        rows = (3 * slots[:, None] + np.arange(3)).ravel()
        jacobian[: 3 * nc] = jacobian[rows]
        gap = work.data.gap_start[slots]
        weights = np.zeros((work.sizes.rows, 2))
        work.data.active[slots] = base.data.active
        work.data.interval_active[:] = base.data.interval_active
        fill_weights(*work.arrays, self._kind, weights)
        return Geometry(
            jacobian, gap, work.data.bilateral_jacobian.copy(), work.data.bilateral_bias.copy(),
            weights, work.data.frame_start[slots].copy(), np.diagonal(work.inertia).copy(),
        )  # fmt: skip

    def _begin(self, q: Array, v: Array, longer: float = 0.0) -> None:
        """Start the step of the base from another state, with the time step h + longer."""
        work, base = self._work, self._base
        work.numbers[:], work.indices[:] = base.numbers, base.indices
        data = work.data
        data.now[:] = base.data.start
        data.q[:], data.v[:] = q, v
        work.status[0] = READY
        if longer != 0.0:
            work.set_time_step(float(data.time_step[0]) + longer)
        refresh(*work.arrays)
        begin(*work.arrays)
        if work.control[0] == JOINT_PD or work.status[0] != READY:
            raise InvalidInput('derivatives: the step cannot be evaluated near its state')

    def _slots(self) -> Any:
        """Return the slot of each contact of the base step at the present state."""
        now, base = self._work.data.feature_start, self._base.data.feature_start
        slots, first = np.arange(len(base)), self._base.sizes.n_ground
        place = {key: first + k for k, key in enumerate(now[first:]) if key != NO_FEATURE}
        for i in range(first, len(base)):
            if base[i] == NO_FEATURE:
                continue
            if base[i] not in place:
                if self._base.data.active[i] > 0.0:
                    raise InvalidInput(
                        f'derivatives: contact {contact_name(self._base, base[i], i)} is on '
                        'an edge of its surface'
                    )
                continue
            slots[i] = place[base[i]]
        return slots

    def result(
        self, q: Array, v: Array, v_next: Array, longer: float = 0.0
    ) -> tuple[Array, Array]:
        """Return q⁺ and v after the last stage, for v_next in the axes of q and h + longer."""
        work = self._work
        self._begin(q, v)
        work.data.time_step[0] += longer
        work.data.active[self._slots()] = self._base.data.active
        work.data.v_next[:] = v_next
        finish_step(*work.arrays)
        return work.data.q.copy(), work.data.v.copy()


def given_fields(
    differences: Differences,
    data: Any,
    v_law: Array,
    damping_inertia: float,
    sizes: Any,
    known: Any,
) -> dict[str, Array]:
    """Return the fields that a linearisation is given, and ∂w/∂q of its rows, (rows, 2, nv).

    Args:
        differences: of the step.
        data: its step data.
        v_law: velocity that the law sees (nv,).
        damping_inertia: b of todorov in its form of 2014 [-].
        sizes: of the simulation.
        known: contacts whose motion is known by formulas, (nc,).
    """
    nv, rows, nb, nc, model = sizes.nv, sizes.rows, sizes.nb, sizes.nc, differences._model
    q, v, lam, h = (
        data.q_start.copy(),
        data.v_start.copy(),
        data.bilateral_impulse.copy(),
        data.time_step[0],
    )
    carried = data.impulse.copy()
    per_contact = carried[: 3 * nc].reshape(nc, 3)
    per_contact[known], carried[3 * nc :] = 0.0, 0.0
    # the explicit damping b diag(M) of the form of 2014, of v⁺ − v − h t + h v
    damped = data.v_next - v - h * data.transport + h * v
    damped = damping_inertia / (1.0 + damping_inertia) * damped

    def stacked(at_q: Array, at_v: Array) -> Array:
        g = differences.geometry(at_q, at_v)
        pull = g.jacobian.T @ carried + g.bilateral.T @ lam - g.mass * damped
        turned = np.einsum('iab,ia->ib', g.frame, per_contact).ravel()
        return np.concatenate([
            pull, g.jacobian @ v_law, g.jacobian @ v, g.gap, g.bilateral @ v_law + g.target,
            turned, g.weights.ravel(),
        ])  # fmt: skip

    changes = difference_all(lambda x: stacked(pin.integrate(model, q, x), v), nv, STEP)
    parts = np.split(changes, np.cumsum([nv, rows, rows, nc, nb, 3 * nc]))
    force, nxt, start, gap, bilateral, turned, weights = parts
    by_v = np.zeros((0, nv))
    if nb:
        by_v = difference_all(lambda x: differences.geometry(q, v + x).target, nv, 1e-2)
    still = np.zeros((rows - 3 * nc, nv))
    return {
        'given_force': force, 'given_next': nxt, 'given_start': start,
        'given_gap': np.vstack([np.repeat(gap, 3, axis=0), still]),
        'given_turn': np.vstack([turned, still]),
        'given_bilateral': np.hstack([bilateral, by_v]), 'weights': weights.reshape(rows, 2, nv),
    }  # fmt: skip


def last_stage(differences: Differences, data: Any) -> tuple[Array, Array, Array, Array]:
    """Return ∂(q⁺, v)/∂q, /∂v and /∂v⁺ of the last stage, (2 nv, nv), and ∂/∂h, (2 nv, 1)."""
    model, q, v = differences._model, data.q_start.copy(), data.v_start.copy()
    v_next, h = data.v_next.copy(), float(data.time_step[0])
    q_end, nv = data.q.copy(), model.nv

    def stacked(at_q: Array, at_v: Array, at_next: Array, longer: float = 0.0) -> Array:
        q_new, v_new = differences.result(at_q, at_v, at_next, longer)
        return np.concatenate([pin.difference(model, q_end, q_new), v_new])

    speed = min(STEP / h, 0.05)
    to_q = difference_all(lambda x: stacked(pin.integrate(model, q, x), v, v_next), nv, STEP)
    to_v = difference_all(lambda x: stacked(q, v + x, v_next), nv, speed)
    to_next = difference_all(lambda x: stacked(q, v, v_next + x), nv, speed)
    to_h = difference(lambda s: stacked(q, v, v_next, s), 1e-3 * h)
    return to_q, to_v, to_next, to_h[:, None]
