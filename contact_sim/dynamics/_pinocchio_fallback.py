"""Dynamics terms from Pinocchio, for robots with joints that the kernels do not support.

Slow: M, nle, placements and joint columns are copied into the workspace before every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.dynamics._integration import move_base


class PinocchioTerms:
    """Fills the workspace fields that otherwise the kernels of dynamics/ fill.

    The reference point of twists and inertias is the origin of the world.
    """

    def __init__(self, workspace: Any) -> None:
        self._work, self._tree = workspace, workspace.tree
        self._model = workspace.model.copy()
        self._data = self._model.createData()
        self._increment, self._velocity = np.zeros(self._model.nv), np.zeros(self._model.nv)

    def update_configuration(self, q: Array) -> None:
        """Fill `mass_matrix`, `columns`, `pose` and `world_inertia` at q, shape (nq,)."""
        model, data, work = self._model, self._data, self._work
        pin.crba(model, data, q)
        pin.computeJointJacobians(model, data, q)
        work.mass_matrix[:] = np.tril(data.M.T)
        work.columns[:] = data.J.T
        work.origin[:] = 0.0
        work.world_inertia[:] = 0.0
        for joint, placement in enumerate(data.oMi):
            body = self._tree.body_of_joint[joint]
            turned = placement.rotation @ self._tree.axes[body]
            work.pose[body, :9] = turned.ravel(order='F')
            work.pose[body, 9:] = placement.translation
            if joint:
                self._add_inertia(body, placement.act(self._model.inertias[joint]))

    def _add_inertia(self, body: int, inertia: pin.Inertia) -> None:
        row = self._work.world_inertia[body]
        row[0] += inertia.mass
        row[1:4] += inertia.mass * inertia.lever
        row[4:] += inertia.matrix()[3:, 3:][np.triu_indices(3)]

    def update_velocity(self, q: Array, v: Array) -> None:
        """Fill `nonlinear_effects`, `twist` and `bias_acceleration` at q (nq,), v (nv,)."""
        model, data, work = self._model, self._data, self._work
        model.gravity.linear = work.data.gravity
        work.data.nonlinear_effects[:] = pin.nonLinearEffects(model, data, q, v)
        for joint, placement in enumerate(data.oMi):
            body = self._tree.body_of_joint[joint]
            work.twist[body] = placement.act(data.v[joint]).vector
            work.bias_acceleration[body] = placement.act(data.a_gf[joint]).vector

    def moved(self, q: Array, displacement: Array) -> Array:
        """Return q ⊕ displacement, free flyers displaced along their axes, shape (nq,)."""
        flyers = self._work.free_flyer_v
        move_base(displacement, displacement, flyers, self._increment, self._velocity)
        return np.asarray(pin.integrate(self._model, q, self._increment))
