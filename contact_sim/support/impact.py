"""Impulse transfer when feet touch down and stay (theory E12).

    Λ = (J M⁻¹ Jᵀ)⁺,   𝓕 = −Λ J v⁻,   v⁺ = v⁻ + M⁻¹ Jᵀ 𝓕 = N_c v⁻

𝓕 acts on the robot; the source's impulse Λ J v⁻ is exerted by the robot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.arguments import checked
from contact_sim.support.projection import Weighted
from contact_sim.support.stance import Stance, require_feet

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ImpulseTransfer:
    """A plastic impact of all held rows at once."""

    impulse: Array
    """𝓕 on the robot [N s], rows as in `stance.contact_jacobian`, shape (m,)."""
    velocity: Array
    """v⁺ [m/s, rad/s], shape (nv,)."""
    end_effector_inertia: Array
    """Λ [kg], shape (m, m)."""
    energy_change: float
    """T(v⁺) − T(v⁻) [J], at most 0."""
    energy_change_by_velocity: float
    """The same as −½ Δvᵀ M Δv [J]."""
    energy_change_by_contact: float
    """The same as −½ ṙ⁻ᵀ Λ ṙ⁻ with ṙ⁻ = J v⁻ [J]."""


@checked
def impulse_transfer(stance: Stance) -> ImpulseTransfer:
    """Return what happens when the held rows stop at once, v⁻ = `stance.velocity`.

    Redundant rows share the impulse with least norm.

    Raises:
        InvalidInput: no foot is held.
    """
    require_feet(stance, 'impulse_transfer')
    M, J, before = stance.inertia, stance.contact_jacobian, stance.velocity
    weighted = Weighted.of(M, J)
    impulse = weighted.force(M @ before, np.zeros(len(J)))
    after = weighted.projector @ before
    change, approach = after - before, J @ before
    Lambda = weighted.delassus_inverse
    return ImpulseTransfer(
        impulse=impulse,
        velocity=after,
        end_effector_inertia=Lambda,
        energy_change=float(0.5 * (after @ M @ after - before @ M @ before)),
        energy_change_by_velocity=float(-0.5 * change @ M @ change),
        energy_change_by_contact=float(-0.5 * approach @ Lambda @ approach),
    )
