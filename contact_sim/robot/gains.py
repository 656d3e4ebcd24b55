"""PD gains that hold a robot on its feet without upsetting the time stepping."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.robot.contact_point import Array

Gains = tuple[float, float]
"""(kp [N m/rad], kd [N m s/rad]), the same for every joint."""


def fastest_inverse_inertia(
    model: pin.Model, joint_velocity_index: npt.NDArray[np.intp], q: Array
) -> float:
    """Return the largest eigenvalue of S M(q)^-1 S^T [1/(kg m^2)]: the lightest joint motion."""
    data = model.createData()
    inverse = pin.computeMinverse(model, data, q)
    upper = np.triu(inverse)
    full = upper + np.triu(upper, 1).T
    return float(np.linalg.eigvalsh(full[np.ix_(joint_velocity_index, joint_velocity_index)])[-1])


def gains_from_inertia(
    model: pin.Model, joint_velocity_index: npt.NDArray[np.intp], q: Array
) -> Gains:
    """Return gains for a robot that nobody has tuned."""
    mass = pin.computeTotalMass(model)
    kp = 8.0 * mass
    if not len(joint_velocity_index):
        return kp, 0.02 * kp
    kd = min(0.02 * kp, 1.0 / (0.005 * fastest_inverse_inertia(model, joint_velocity_index, q)))
    return kp, kd
