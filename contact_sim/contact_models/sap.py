"""SAP: compliant contact with dissipation as an unconstrained convex problem.

    normal      γ_n/h = k (−φ − (h + τ_d) u_n)₊         at the end of the step
    R_n = max(β²/(4π²) w, 1/(h k (h + τ_d))),   R_t = σ w,   w = |G_ii|_F / 3
    v̂_n = −φ/(h + τ_d),   v̂_t = 0                                               (physics.md 2.3)

A contact that sticks creeps with u_t = σ w γ_t; one that slides glides at a gap of
(h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n). Dry friction of joints is a box with R = σ G_ss: it creeps
alike.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.contact.solution import CONVERGED, MAX_ITERATIONS, NONFINITE
from contact_sim.contact.workspace import ContactRows
from contact_sim.contact_models.law import Law
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_newton import newton
from contact_sim.solvers.jit import kernel


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

    def __init__(self, **parameters: float) -> None:
        self.parameters: SapParameters = SapParameters(**parameters)  # type: ignore[arg-type]

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h + τ_d, 1): dissipation acts ahead of contact, friction lifts while sliding."""
        return h + self.parameters.relaxation_time, 1.0

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        return solve_sap(  # type: ignore[no-any-return]
            rows.delassus, rows.free_velocity, rows.friction, rows.gap, rows.lower, rows.upper,
            rows.impulse, rows.nc, rows.n, rows.time_step, p.stiffness, p.relaxation_time, p.sigma,
            p.beta, p.tolerance, p.max_iterations,
        )  # fmt: skip


@kernel
def fill_compliance(G, gap, nc, h, stiffness, relaxation_time, sigma, beta, R, v_hat):
    """Fill R and v̂ of every row."""
    for i in range(nc):
        r = 3 * i
        total = 0.0
        for a in range(3):
            for b in range(3):
                total += G[r + a, r + b] ** 2
        w = np.sqrt(total) / 3.0
        near_rigid = beta**2 / (4.0 * np.pi**2) * w
        R[r] = R[r + 1] = sigma * w
        R[r + 2] = max(near_rigid, 1.0 / (h * stiffness * (h + relaxation_time)))
        v_hat[r] = v_hat[r + 1] = 0.0
        v_hat[r + 2] = -gap[i] / (h + relaxation_time)
    for r in range(3 * nc, G.shape[0]):
        R[r] = sigma * G[r, r]
        v_hat[r] = 0.0


@kernel
def solve_sap(
    delassus, u_free, mu, gap, lower, upper, impulse, nc, n, h, stiffness, relaxation_time, sigma,
    beta, tolerance, max_iterations,
):  # fmt: skip
    """Solve the first `nc` contacts and `n` rows; return (status code, iterations, residual)."""
    G = delassus[: n * n].reshape(n, n)
    R, v_hat = np.empty(n), np.empty(n)
    fill_compliance(G, gap, nc, h, stiffness, relaxation_time, sigma, beta, R, v_hat)
    iterations, residual, converged = newton(
        G, u_free[:n], v_hat, R, mu[:nc], lower, upper, impulse[:n], tolerance, max_iterations
    )
    if converged:
        return CONVERGED, iterations, residual
    if not np.isfinite(residual):
        impulse[:n] = 0.0
        return NONFINITE, iterations, residual
    return MAX_ITERATIONS, iterations, residual
