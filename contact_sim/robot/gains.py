"""PD gains that hold a robot on its feet without upsetting the time stepping.

Explicit PD under semi-implicit Euler with time step h, in joint space with mass matrix M,

    v_next = v - h M^-1 (K q + D v),    q_next = q + h v_next

is stable if a + 2 b < 4 with a = h^2 max eig(M^-1 K) and b = h max eig(M^-1 D): multiply the
quadratic eigenvalue problem by the eigenvector and each root is that of a scalar with a' <= a,
b' <= b. M^-1 here is S M^-1 S^T of the robot in the air, where its legs are lightest. On the
ground the slow sway of the trunk needs damping above all, so b is large, and each joint is damped
in proportion to the inertia that it moves.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.robot.contact_point import Array

Gains = tuple[Array, Array]
"""kp [N m/rad], kd [N m s/rad], each of shape (n_joints,)."""

TIME_STEP = 5e-3
"""Largest time step at which the gains are stable [s]."""
STIFFNESS_NUMBER = 1.0
"""a at TIME_STEP [-]."""
DAMPING_NUMBER = 1.4
"""b at TIME_STEP [-]; a + 2 b = 3.8 leaves 5 % for the poses around the standing one."""


def standing_gains(
    model: pin.Model, joint_velocity_index: npt.NDArray[np.intp], q: Array
) -> Gains:
    """Return gains that are stable up to TIME_STEP around the configuration `q` (nq,).

    The joints share one kp; kd is proportional to the inertia that the joint moves.
    """
    mobility = joint_mobility(model, joint_velocity_index, q)
    own = np.diagonal(mobility)
    scaled = mobility / np.sqrt(np.outer(own, own))
    kd = DAMPING_NUMBER / (TIME_STEP * _largest_eigenvalue(scaled) * own)
    kp = STIFFNESS_NUMBER / (TIME_STEP**2 * _largest_eigenvalue(mobility))
    return np.full(len(own), kp), kd


def joint_mobility(
    model: pin.Model, joint_velocity_index: npt.NDArray[np.intp], q: Array
) -> Array:
    """Return S M(q)^-1 S^T [1/(kg m^2)], shape (n_joints, n_joints)."""
    upper = np.triu(pin.computeMinverse(model, model.createData(), q))
    inverse: Array = upper + np.triu(upper, 1).T
    return inverse[np.ix_(joint_velocity_index, joint_velocity_index)]


def stability_number(mobility: Array, kp: Array, kd: Array, h: float) -> tuple[float, float]:
    """Return a = h² max eig(M⁻¹ K) and b = h max eig(M⁻¹ D) of joints of this mobility [-]."""
    a, b = (_largest_eigenvalue(np.sqrt(np.outer(gain, gain)) * mobility) for gain in (kp, kd))
    return h * h * a, h * b


def _largest_eigenvalue(matrix: Array) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else np.inf
