"""The law shared by models with an exact, circular friction cone.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

κ = 0: Signorini and Coulomb (ncp); κ = 1: the minimum of ½ λᵀ G λ + gᵀ λ over the cones
(anitescu). Newton steps on the contact modes and block Gauss-Seidel from a warm start; a problem
on which they stall goes to ADMM, and the status says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contact_sim.contact.workspace import ContactRows
from contact_sim.contact_models.law import Law
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cones import solve_cones as solve_rows
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows, cone_work


@dataclass(frozen=True)
class ConeParameters(Parameters):
    """Numerics of a model with exact cones; there is no physical parameter besides friction."""

    tolerance: float = parameter(
        1e-10, '-', 'natural-map residual relative to the largest impulse', above=0.0, below=1.0,
        live=True,
    )  # fmt: skip
    max_sweeps: int = parameter(
        50, '-', 'block Gauss-Seidel sweeps before ADMM takes over', at_least=1, at_most=100000,
        live=True,
    )  # fmt: skip
    max_admm_iterations: int = parameter(
        1000, '-', 'ADMM iterations; 0 switches the fallback off', at_least=0, at_most=1000000,
        live=True,
    )  # fmt: skip


class ConeLaw(Law):
    """Base of the models with exact cones; a subclass names itself and its κ."""

    associated: ClassVar[float]
    parameters: ConeParameters

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, κ): the relaxation acts on whatever slides over the ground fast enough."""
        return h, self.associated

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        return solve_cones(  # type: ignore[no-any-return]
            rows.delassus, rows.g, rows.friction, rows.lower, rows.upper, rows.impulse, rows.nc,
            rows.n, p.tolerance, p.max_sweeps, p.max_admm_iterations, self.associated,
        )  # fmt: skip


@kernel
def solve_cones(
    delassus, g, mu, lower, upper, impulse, nc, n, tolerance, max_sweeps, max_admm_iterations,
    associated,
):  # fmt: skip
    """Solve the first `nc` contacts and `n` rows in place by `cones.solve_cones`.

    Returns (status code, iterations, natural map [N s]).
    """
    rows = Rows(delassus[: n * n].reshape(n, n), g[:n], mu[:nc], lower, upper)
    return solve_rows(
        rows, impulse[:n], cone_work(n), tolerance, max_sweeps, max_admm_iterations, associated
    )
