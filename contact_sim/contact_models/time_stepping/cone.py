"""The law shared by models with an exact, circular friction cone.

    K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

κ = 0: Signorini and Coulomb (ncp); κ = 1: the minimum of ½ λᵀ G λ + gᵀ λ over the cones
(anitescu). Interval rows obey w ⊥ [lower, upper] in both. How it is solved: solvers/cones.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contact_sim.contact_models.time_stepping.model import TimeSteppingModel
from contact_sim.parameters import Parameters, parameter, relative_tolerance
from contact_sim.solvers.jit import kernel

TOLERANCE, MAX_POINTS, MAX_SWEEPS, MAX_ADMM_ITERATIONS = range(4)
"""Places of the common parameters in the numbers of the law."""
FIRST_OWN = 4
"""Place of the first number of one model alone."""


@dataclass(frozen=True)
class ConeParameters(Parameters):
    """Numerics of a model with exact cones; there is no physical parameter besides friction."""

    tolerance: float = relative_tolerance(
        1e-10, 'natural-map residual relative to the largest impulse'
    )
    max_points: int = parameter(
        400, '-', 'proximal points; 0 leaves all to Gauss-Seidel and ADMM', at_least=0,
        at_most=100000, live=True,
    )  # fmt: skip
    max_sweeps: int = parameter(
        50, '-', 'block Gauss-Seidel sweeps where proximal points fail, then ADMM', at_least=1,
        at_most=100000, live=True,
    )  # fmt: skip
    max_admm_iterations: int = parameter(
        1000, '-', 'ADMM iterations; 0 switches the fallback off', at_least=0, at_most=1000000,
        live=True,
    )  # fmt: skip


class ConeModel(TimeSteppingModel):
    """Base of the models with exact cones; a subclass names itself and its κ."""

    associated: ClassVar[float]
    parameters: ConeParameters

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, κ): the relaxation acts on whatever slides over the ground fast enough."""
        return h, self.associated

    def law_numbers(self) -> tuple[float, ...]:
        """Return tolerance and limits of the iterations."""
        p = self.parameters
        limits = p.max_points, p.max_sweeps, p.max_admm_iterations
        return p.tolerance, *(float(limit) for limit in limits)


@kernel
def limits_of(law):
    """Return the limits of `cones.solve_cones` in the numbers of the law."""
    return int(law[MAX_POINTS]), int(law[MAX_SWEEPS]), int(law[MAX_ADMM_ITERATIONS])
