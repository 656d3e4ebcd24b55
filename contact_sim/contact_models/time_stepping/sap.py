"""SAP: compliant contact with dissipation as an unconstrained convex problem.

    normal      γ_n/h = k (−φ − (h + τ_d) u_n)₊         at the end of the step
    R_n = max(β²/(4π²) w, 1/(h k (h + τ_d))),   R_t = σ w,   w = |G_ii|_F / 3
    v̂_n = −φ/(h + τ_d),   v̂_t = 0                                               (theory 2.3)

A contact that sticks creeps with u_t = σ w γ_t; one that slides glides at a gap of
(h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n). Dry friction of joints is a box with R = σ G_ss: it creeps
alike.

Two options make it Drake's to the last digits that Drake computes: `acts_ahead: false` leaves out
what does not touch yet, and `weight: mass_diagonal` takes w from J diag(M̂)⁻¹ Jᵀ in place of G.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import arrays_of, integers, matrix, vector
from contact_sim.contact.problem_views import newton_work_of, unbiased_rows_of
from contact_sim.contact_models.time_stepping.model import CompiledLaw, TimeSteppingModel
from contact_sim.contact_models.time_stepping.stages import (
    apply_impulses,
    begin_step,
    contact_rows,
    free_motion,
    gather_problem,
    integrate,
    report_solve,
)
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_newton import newton
from contact_sim.solvers.jit import entry, kernel
from contact_sim.solvers.status import CONVERGED, MAX_ITERATIONS, NONFINITE

(
    STIFFNESS, RELAXATION_TIME, SIGMA, BETA, EXACT_WEIGHT, ACTS_AHEAD, TOLERANCE, MOST_ITERATIONS,
) = range(8)  # fmt: skip
"""Places of the parameters in the numbers of the law."""
OUT_OF_REACH = 1e12
"""Speed [m/s] that the bias of a contact that does not touch would ask for before it acts."""


@dataclass(frozen=True)
class SapParameters(Parameters):
    """Compliance and numerics of SAP."""

    stiffness: float = parameter(
        1e5, 'N/m', 'contact stiffness k of every contact point', above=0.0, live=True
    )
    relaxation_time: float = parameter(
        0.02, 's', 'dissipation time scale tau_d', at_least=0.0, live=True
    )
    sigma: float = parameter(
        1e-3, '-', 'tangential compliance over the Delassus diagonal', above=0.0, at_most=1.0,
        live=True,
    )  # fmt: skip
    beta: float = parameter(
        1.0, '-', 'near-rigid limit: smallest period of a contact in steps; 0: none',
        at_least=0.0, live=True,
    )  # fmt: skip
    weight: str = parameter(
        'delassus', '', 'what w is taken from: G, or as in Drake J and the diagonal of M',
        choices=('delassus', 'mass_diagonal'), live=True,
    )  # fmt: skip
    acts_ahead: bool = parameter(
        True, '', 'dissipation acts on what is about to touch; Drake: only on what does', live=True
    )
    tolerance: float = parameter(
        1e-9, '-', 'momentum residual relative to the contact impulses', above=0.0, below=1.0,
        live=True,
    )  # fmt: skip
    max_iterations: int = parameter(
        100, '-', 'Newton iterations', at_least=1, at_most=100000, live=True
    )


@kernel
def solve_sap(data):
    """Solve the contact problem with compliance and dissipation."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    rows, impulse = unbiased_rows_of(data), vector(data, f.ROW_IMPULSE)[:n]
    weight, h = vector(data, f.ROW_WEIGHT), vector(data, f.TIME_STEP)[0]
    scratch = matrix(data, f.LAW_VECTORS)
    R, v_hat = scratch[0][:n], scratch[1][:n]
    nc = rows.friction.shape[0]
    if law[EXACT_WEIGHT] == 0.0:
        fill_weight(
            matrix(data, f.JACOBIAN_TRANSPOSED), matrix(data, f.INERTIA),
            integers(data, f.ROW_OF)[:n], nc, weight,
        )  # fmt: skip
    fill_contact_compliance(rows, vector(data, f.ROW_GAP), weight, h, law, R, v_hat)
    interval_gap = vector(data, f.ROW_INTERVAL_GAP)
    fill_interval_compliance(rows, interval_gap, weight, h, law, R, v_hat)
    iterations, residual, converged = newton(
        rows, v_hat, R, impulse, newton_work_of(data), law[TOLERANCE], int(law[MOST_ITERATIONS]),
        False,
    )  # fmt: skip
    code = CONVERGED if converged else MAX_ITERATIONS
    if not np.isfinite(residual):
        impulse[:] = 0.0
        code = NONFINITE
    report_solve(data, (code, iterations, residual))


@kernel
def fill_weight(columns, inertia, row_of, nc, weight):
    """Fill |J_i D⁻¹ J_iᵀ|_F / 3 of every contact in its rows, D the diagonal of M̂.

    Args:
        columns: Jᵀ, shape (nv, rows of the record).
        inertia: M̂, shape (nv, nv).
        row_of: row of the record behind each problem row, shape (n,).
        nc: contacts of the problem.
        weight: out, shape (n,) or more.
    """
    for i in range(nc):
        total = 0.0
        for a in range(3):
            for b in range(3):
                entry = 0.0
                for k in range(inertia.shape[0]):
                    product = columns[k, row_of[3 * i + a]] * columns[k, row_of[3 * i + b]]
                    entry += product / inertia[k, k]
                total += entry * entry
        weight[3 * i : 3 * i + 3] = np.sqrt(total) / 3.0
    for r in range(3 * nc, row_of.shape[0]):
        weight[r] = 0.0
        for k in range(inertia.shape[0]):
            weight[r] += columns[k, row_of[r]] ** 2 / inertia[k, k]


@kernel
def rms_weight(G, r):
    """Return |G_ii|_F / 3 of the contact at row `r`."""
    total = 0.0
    for a in range(3):
        for b in range(3):
            total += G[r + a, r + b] ** 2
    return np.sqrt(total) / 3.0


@kernel
def normal_compliance(gap, weight, h, law):
    """Return R and v̂ of a row that opposes a gap: a normal row or a limit."""
    ahead = h + law[RELAXATION_TIME]
    near_rigid = law[BETA] ** 2 / (4.0 * np.pi**2) * weight
    R = max(near_rigid, 1.0 / (h * law[STIFFNESS] * ahead))
    touches = law[ACTS_AHEAD] != 0.0 or gap < 0.0
    return R, -gap / ahead if touches else -OUT_OF_REACH


@kernel
def fill_contact_compliance(rows, gap, weight, h, law, R, v_hat):
    """Fill R and v̂ of the contact rows."""
    for i in range(rows.friction.shape[0]):
        r = 3 * i
        w = rms_weight(rows.delassus, r) if law[EXACT_WEIGHT] != 0.0 else weight[r]
        R[r] = R[r + 1] = law[SIGMA] * w
        v_hat[r] = v_hat[r + 1] = 0.0
        R[r + 2], v_hat[r + 2] = normal_compliance(gap[i], w, h, law)


@kernel
def fill_interval_compliance(rows, gap, weight, h, law, R, v_hat):
    """Fill R and v̂ of the interval rows: bounded ones are friction, others oppose their gap."""
    first = 3 * rows.friction.shape[0]
    for k in range(rows.lower.shape[0]):
        r, lower, upper = first + k, rows.lower[k], rows.upper[k]
        w = rows.delassus[r, r] if law[EXACT_WEIGHT] != 0.0 else weight[r]
        R[r], v_hat[r] = law[SIGMA] * w, 0.0
        if np.isinf(lower) and np.isinf(upper):
            R[r], v_hat[r] = normal_compliance(-abs(gap[k]), w, h, law)
            v_hat[r] *= -1.0 if gap[k] > 0.0 else 1.0
        elif np.isinf(upper):
            R[r], v_hat[r] = normal_compliance(gap[k], w, h, law)
        elif np.isinf(lower):
            R[r], v_hat[r] = normal_compliance(-gap[k], w, h, law)
            v_hat[r] *= -1.0


@entry
def advance(numbers, indices, layout, steps):
    """Advance every world by `steps` steps; a world that stops does so alone."""
    for world in range(numbers.shape[0]):
        data = arrays_of(numbers, indices, layout, world)
        for _ in range(steps):
            if not begin_step(data):
                break
            free_motion(data)
            contact_rows(data)
            while True:
                if gather_problem(data):
                    solve_sap(data)
                if apply_impulses(data):
                    break
            integrate(data)


@entry
def answer(numbers, indices, layout):
    """Solve the problem in the arrays."""
    solve_sap(arrays_of(numbers, indices, layout, 0))


class Sap(TimeSteppingModel):
    """Drake's SAP with its original Kelvin-Voigt approximation.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'sap'
    parameter_class: ClassVar[type[Parameters]] = SapParameters
    compiled: CompiledLaw = CompiledLaw(advance, answer)

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: SapParameters = SapParameters(**parameters)  # type: ignore[arg-type]

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h + τ_d, 1): dissipation acts ahead of contact, friction lifts while sliding."""
        p = self.parameters
        return (h + p.relaxation_time, 1.0) if p.acts_ahead else (0.0, 0.0)

    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters in the order of the constants of this module."""
        p = self.parameters
        return (
            p.stiffness, p.relaxation_time, p.sigma, p.beta, float(p.weight == 'delassus'),
            float(p.acts_ahead), p.tolerance, float(p.max_iterations),
        )  # fmt: skip
