"""Coefficients of the contacts of a simulation, which may change while it runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.contact.workspace import Workspace
from contact_sim.numbers import number_within
from contact_sim.robot.configuration import frozen
from contact_sim.simulation.checks import per_contact

Array = NDArray[np.float64]


class ContactSettings:
    """Friction, restitution and stabilisation of the contacts in a workspace."""

    _workspace: Workspace

    @property
    def friction(self) -> Array:
        """μ of every contact outside of regions [-], shape (nc,); assign as in the constructor.

        What acted in a step is in `StepReport.contacts`.
        """
        return frozen(self._workspace.default_friction)

    @friction.setter
    def friction(self, value: float | ArrayLike) -> None:
        self._workspace.default_friction[:] = per_contact('friction', value, self._workspace.sizes)

    @property
    def restitution(self) -> Array:
        """Newton coefficient of every contact outside of regions [-], shape (nc,); as friction."""
        return frozen(self._workspace.default_restitution)

    @restitution.setter
    def restitution(self, value: float | ArrayLike) -> None:
        chosen = per_contact('restitution', value, self._workspace.sizes, 1.0)
        self._workspace.default_restitution[:] = chosen

    @property
    def baumgarte(self) -> float:
        """Share β of a penetration taken out per step [-], in [0, 1]; assignable."""
        return float(self._workspace.stabilisation[0])

    @baumgarte.setter
    def baumgarte(self, value: float) -> None:
        self._workspace.stabilisation[0] = number_within('baumgarte', value, 1.0)

    @property
    def restitution_threshold(self) -> float:
        """Approach speed below which impacts are plastic [m/s]; assignable."""
        return float(self._workspace.stabilisation[1])

    @restitution_threshold.setter
    def restitution_threshold(self, value: float) -> None:
        chosen = number_within('restitution_threshold', value, np.inf)
        self._workspace.stabilisation[1] = chosen
