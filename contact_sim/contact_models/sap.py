"""SAP: compliant contact with dissipation as an unconstrained convex problem.

    normal      γ_n/h = k (−φ − (h + τ_d) u_n)₊         at the end of the step
    R_n = max(β²/(4π²) w, 1/(h k (h + τ_d))),   R_t = σ w,   w = |G_ii|_F / 3
    v̂_n = −φ/(h + τ_d),   v̂_t = 0                                               (physics.md 2.3)

A contact that sticks creeps with u_t = σ w γ_t; one that slides glides at a gap of
(h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n). Dry friction of joints is a box with R = σ G_ss: it creeps
alike.

Two options make it Drake's to the last digits that Drake computes: `acts_ahead: false` leaves out
what does not touch yet, and `weight: mass_diagonal` takes w from J diag(M̂)⁻¹ Jᵀ in place of G.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from contact_sim.contact.problem import Array, ContactProblem
from contact_sim.contact.solution import CONVERGED, MAX_ITERATIONS, NONFINITE, ContactSolution
from contact_sim.contact.workspace import ContactRows, Workspace
from contact_sim.contact_models.law import Law
from contact_sim.contact_models.protocol import Stepper
from contact_sim.contact_models.time_stepping import TimeStepping
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_newton import newton
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows

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


class Sap(Law):
    """Drake's SAP with its original Kelvin-Voigt approximation.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'sap'
    parameter_class: ClassVar[type[Parameters]] = SapParameters

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: SapParameters = SapParameters(**parameters)  # type: ignore[arg-type]

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h + τ_d, 1): dissipation acts ahead of contact, friction lifts while sliding."""
        p = self.parameters
        return (h + p.relaxation_time, 1.0) if p.acts_ahead else (0.0, 0.0)

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law."""
        if self.parameters.weight == 'delassus':
            return TimeStepping(workspace, self)
        return TimeStepping(workspace, MassDiagonalSap(workspace, **vars(self.parameters)))

    def solve(self, problem: ContactProblem, guess: Array | None = None) -> ContactSolution:
        """Return the impulses that answer `problem`, starting from `guess` [N s]."""
        if self.parameters.weight == 'mass_diagonal':
            every = np.arange(problem.n_rows)
            weight = np.empty(problem.n_rows)
            columns = np.ascontiguousarray(problem.jacobian.T)
            fill_weight(columns, problem.inertia, every, problem.n_contacts, weight)
            problem = replace(problem, inverse_weight=weight)
        return super().solve(problem, guess)

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        return solve_sap(  # type: ignore[no-any-return]
            rows.delassus, rows.free_velocity, rows.friction, rows.gap, rows.lower, rows.upper,
            rows.inverse_weight, rows.impulse, rows.nc, rows.n, rows.time_step, p.stiffness,
            p.relaxation_time, p.sigma, p.beta, p.weight == 'delassus', p.acts_ahead, p.tolerance,
            p.max_iterations,
        )  # fmt: skip


class MassDiagonalSap(Sap):
    """Sap with w from the diagonal of the mass matrix of one simulation."""

    def __init__(self, workspace: Workspace, **parameters: float | str | bool) -> None:
        super().__init__(**parameters)
        record = workspace.record
        self._arrays = record.jacobian_transposed, record.inertia, workspace.row_of

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        columns, inertia, row_of = self._arrays
        fill_weight(columns, inertia, row_of[: rows.n], rows.nc, rows.inverse_weight)
        return super().solve_rows(rows)


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
def fill_compliance(
    G, gap, nc, h, stiffness, relaxation_time, sigma, beta, weight, exact, acts_ahead, R, v_hat
):
    """Fill R and v̂ of every row."""
    for i in range(nc):
        r = 3 * i
        w = rms_weight(G, r) if exact else weight[r]
        near_rigid = beta**2 / (4.0 * np.pi**2) * w
        R[r] = R[r + 1] = sigma * w
        R[r + 2] = max(near_rigid, 1.0 / (h * stiffness * (h + relaxation_time)))
        v_hat[r] = v_hat[r + 1] = 0.0
        touches = acts_ahead or gap[i] < 0.0
        v_hat[r + 2] = -gap[i] / (h + relaxation_time) if touches else -OUT_OF_REACH
    for r in range(3 * nc, G.shape[0]):
        R[r] = sigma * (G[r, r] if exact else weight[r])
        v_hat[r] = 0.0


@kernel
def solve_sap(
    delassus, u_free, mu, gap, lower, upper, weight, impulse, nc, n, h, stiffness, relaxation_time,
    sigma, beta, exact, acts_ahead, tolerance, max_iterations,
):  # fmt: skip
    """Solve the first `nc` contacts and `n` rows; return (status code, iterations, residual)."""
    G = delassus[: n * n].reshape(n, n)
    R, v_hat = np.empty(n), np.empty(n)
    fill_compliance(
        G, gap, nc, h, stiffness, relaxation_time, sigma, beta, weight, exact, acts_ahead, R, v_hat
    )
    iterations, residual, converged = newton(
        Rows(G, u_free[:n], mu[:nc], lower, upper), v_hat, R, impulse[:n], tolerance,
        max_iterations,
    )  # fmt: skip
    if converged:
        return CONVERGED, iterations, residual
    if not np.isfinite(residual):
        impulse[:n] = 0.0
        return NONFINITE, iterations, residual
    return MAX_ITERATIONS, iterations, residual
