"""Energy and momentum of a robot, for diagnostics and tests; not part of the loop."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]


def mechanical_energy(model: pin.Model, q: Array, v: Array, gravity: Array) -> float:
    """Return T + U [J] at q (nq,), v (nv,): T with armature, U = −m g·c, c the centre of mass."""
    data = model.createData()
    kinetic = pin.computeKineticEnergy(model, data, q, v)
    weight = pin.computeTotalMass(model) * gravity
    return float(kinetic - weight @ pin.centerOfMass(model, data, q))


def centroidal_momentum(model: pin.Model, q: Array, v: Array) -> Array:
    """Return linear [N s] and angular momentum about the centre of mass [N m s], world, (6,)."""
    data = model.createData()
    return np.array(pin.computeCentroidalMomentum(model, data, q, v).vector)
