"""What a step in maximal coordinates came to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_sim.maximal.bodies import Array, BodyState
from contact_sim.maximal.contact import ContactForces
from contact_sim.maximal.mechanism import Mechanism
from contact_sim.maximal.rows import PlacedRows


@dataclass(frozen=True, eq=False)
class MaximalReport:
    """State, drift and energy after a step; accelerations and forces during it."""

    time: float
    """At the end of the step [s]."""
    state: BodyState
    """At the end of the step."""
    acceleration: Array
    """Of the centres of mass [m/s²], then angular [rad/s²], world axes, shape (nb, 6)."""
    multipliers: Array
    """λ, force along the rows, shape (m,)."""
    contacts: ContactForces | None
    """What the ground did; None without a contact model."""
    _rows_before: PlacedRows
    _rows: PlacedRows
    _mechanism: Mechanism
    _gravity: Array

    @property
    def drift(self) -> float:
        """Largest |h|: how far joints are apart [m], and cosines of angles that are right."""
        return float(np.abs(self._rows.error).max(initial=0.0))

    @property
    def drift_rate(self) -> float:
        """Largest |ḣ| [m/s, 1/s]."""
        return float(np.abs(self._rows.rate(self.state.velocity)).max(initial=0.0))

    @property
    def joint_force(self) -> Array:
        """Force of the joint that carries each body on it, world axes [N], shape (nb, 3).

        What its rows exert; the effort of a joint that slides is not part of it.
        """
        return self._rows_before.wrenches(self.multipliers)[:, :3]

    @property
    def energy(self) -> float:
        """T + U of all bodies [J]; U = 0 with the centre of mass in the origin."""
        return self._mechanism.energy(self.state, self._gravity)

    @property
    def q(self) -> Array:
        """Configuration in Pinocchio's convention, angles in (−π, π], shape (nq,)."""
        return self._mechanism.reduced(self.state)[0]

    @property
    def v(self) -> Array:
        """Velocity in Pinocchio's convention, shape (nv,)."""
        return self._mechanism.reduced(self.state)[1]
