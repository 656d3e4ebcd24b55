"""NCP: Signorini's condition, the isotropic Coulomb cone and maximum dissipation, all exact.

    K*_μ ∋ w + Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

The reference among the models: no penetration, no creep, no force at a distance. physics.md 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contact_sim.contact_models.cone_law import ConeLaw, ConeParameters
from contact_sim.parameters import Parameters


@dataclass(frozen=True)
class NcpParameters(ConeParameters):
    """Numerics of the exact-cone model; it has no physical parameter besides friction."""


class Ncp(ConeLaw):
    """The exact-cone model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'ncp'
    associated: ClassVar[float] = 0.0
    parameter_class: ClassVar[type[Parameters]] = NcpParameters

    def __init__(self, **parameters: float) -> None:
        self.parameters = NcpParameters(**parameters)  # type: ignore[arg-type]
