"""PD gains that hold a robot on its feet without upsetting the time stepping."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.robot.contact_point import Array

Gains = tuple[float, float]
"""(kp [N m/rad], kd [N m s/rad]), the same for every joint."""

STIFFNESS_PER_MASS = 5.0
"""kp per total mass [N m/(rad kg)]: a leg sags by a few hundredths of a radian."""
DAMPING_TIME = 0.03
"""kd/kp [s]: the slow sway of a stance dies out in a second or two."""
SLOWEST_STEP = 0.002
"""kd stays below the inertia of the lightest joint motion over this time [s]: an effort held over
a step is stable up to twice the time, 4 ms."""


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
    kp = STIFFNESS_PER_MASS * pin.computeTotalMass(model)
    if not len(joint_velocity_index):
        return kp, DAMPING_TIME * kp
    fastest = fastest_inverse_inertia(model, joint_velocity_index, q)
    return kp, min(DAMPING_TIME * kp, 1.0 / (SLOWEST_STEP * fastest))
