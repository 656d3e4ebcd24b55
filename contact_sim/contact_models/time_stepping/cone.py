"""The law shared by models with an exact, circular friction cone.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

κ = 0: Signorini and Coulomb (ncp); κ = 1: the minimum of ½ λᵀ G λ + gᵀ λ over the cones
(anitescu). Newton steps on the contact modes and block Gauss-Seidel from a warm start; a problem
on which they stall goes to ADMM, and the status says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.contact.solution import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    MAX_ITERATIONS,
    NONFINITE,
)
from contact_sim.contact.workspace import ContactRows
from contact_sim.contact_models.law import Law
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_admm import admm
from contact_sim.solvers.cone_block import block_gauss_seidel
from contact_sim.solvers.jit import kernel


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
    """Solve the first `nc` contacts and `n` rows in place: Gauss-Seidel, then ADMM if it stalls.

    Returns (status code, iterations, natural map [N s]).
    """
    G = delassus[: n * n].reshape(n, n)
    g, mu, impulse = g[:n], mu[:nc], impulse[:n]
    sweeps, residual, converged = block_gauss_seidel(
        G, g, mu, lower, upper, impulse, tolerance, max_sweeps, associated
    )
    if converged:
        return CONVERGED, sweeps, residual
    if not np.isfinite(residual):
        impulse[:] = 0.0
        return NONFINITE, sweeps, residual
    if max_admm_iterations == 0:
        return MAX_ITERATIONS, sweeps, residual
    best = impulse.copy()
    iterations, admm_residual, converged = admm(
        G, g, mu, lower, upper, impulse, tolerance, max_admm_iterations, associated
    )
    if converged:
        return CONVERGED_BY_FALLBACK, sweeps + iterations, admm_residual
    if not admm_residual < residual:
        impulse[:] = best
    return MAX_ITERATIONS, sweeps + iterations, min(residual, admm_residual)
