"""PD gains that hold a robot on its feet without upsetting the time stepping (theory 4.5).

Explicit PD under semi-implicit Euler with time step h, in joint space with mass matrix M,

    v_next = v - h M^-1 (K q + D v),    q_next = q + h v_next

is stable if a + 2 b < 4 with a = h^2 max eig(M^-1 K) and b = h max eig(M^-1 D): multiply the
quadratic eigenvalue problem by the eigenvector and each root is that of a scalar with a' <= a,
b' <= b. M^-1 here is S M^-1 S^T of the robot in the air, where its legs are lightest, with the
part that its constraints leave, M^-1 - M^-1 H^T (H M^-1 H^T)^+ H M^-1. On the ground the slow sway
of the trunk needs damping above all, so b is large, and each joint is damped in proportion to the
inertia that it moves.

K is diagonal, and shared between two that are stable: one in proportion to what standing asks of
each joint, one in proportion to the inertia that it moves. The set of stable K, those with
K <= a/h^2 M as quadratic forms, is convex: between two of them all are stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.robot.carried_load import carried_stiffness
from contact_sim.robot.closed_loops import ClosedLoops
from contact_sim.robot.contact_point import Array, ContactPoint

Gains = tuple[Array, Array]
"""kp [N m/rad], kd [N m s/rad], each of shape (n_joints,)."""

TIME_STEP = 5e-3
"""Time step of the gains where joints are heavy enough for what they carry [s]."""
SHORTEST = 1e-3
"""Least time step of the gains of other robots: the simulator's own [s]."""
STIFFNESS_NUMBER = 1.0
"""a at the time step of the gains [-]."""
DAMPING_NUMBER = 1.4
"""b at TIME_STEP [-]; a + 2 b = 3.8 leaves 5 % for the poses around the standing one."""
LOAD_SHARE = 0.7
"""Share of the stiffness that goes by what joints carry, the rest by the inertia they move [-]."""
MARGIN = 4.0
"""Least ratio of kp to what standing asks for [-], where a time step of SHORTEST allows it."""


@dataclass(frozen=True, eq=False)
class StandingGains:
    """PD gains, and the time step up to which they are stable."""

    stiffness: Array
    """kp [N m/rad], of prismatic joints [N/m], shape (n_joints,)."""
    damping: Array
    """kd [N m s/rad], of prismatic joints [N s/m], shape (n_joints,)."""
    time_step: float
    """Largest time step at which they are stable [s]."""


def standing_gains(
    model: pin.Model,
    joint_velocity_index: npt.NDArray[np.intp],
    q: Array,
    points: Sequence[ContactPoint],
    loops: ClosedLoops,
) -> StandingGains:
    """Return gains with which the robot stands at the configuration `q` (nq,) on its feet.

    They are stable up to TIME_STEP, and up to less where joints are light for what they carry:
    then up to the time step, not below SHORTEST, that allows MARGIN. The damping is the same.
    """
    mobility = joint_mobility(model, joint_velocity_index, q, loops)
    asked = carried_stiffness(model, joint_velocity_index, q, points, loops)
    inertia = 1.0 / np.diagonal(mobility)
    of_load, of_inertia = _largest(asked, mobility), _largest(inertia, mobility)
    shared = LOAD_SHARE * of_load + (1.0 - LOAD_SHARE) * of_inertia
    stiffness = STIFFNESS_NUMBER * _largest(shared, mobility)
    h = _time_step(stiffness, asked)
    return StandingGains(stiffness / h**2, DAMPING_NUMBER / TIME_STEP * of_inertia, h)


def joint_mobility(
    model: pin.Model, joint_velocity_index: npt.NDArray[np.intp], q: Array, loops: ClosedLoops
) -> Array:
    """Return S M(q)^-1 S^T under the constraints [1/(kg m^2)], shape (n_joints, n_joints)."""
    upper = np.triu(pin.computeMinverse(model, model.createData(), q))
    inverse: Array = upper + np.triu(upper, 1).T
    if len(loops):
        rows = loops.jacobian(q)
        response = inverse @ rows.T
        inverse = inverse - response @ np.linalg.pinv(rows @ response, rcond=1e-9) @ response.T
    return inverse[np.ix_(joint_velocity_index, joint_velocity_index)]


def stability_number(mobility: Array, kp: Array, kd: Array, h: float) -> tuple[float, float]:
    """Return a = h² max eig(M⁻¹ K) and b = h max eig(M⁻¹ D) of joints of this mobility [-]."""
    a, b = (_largest_eigenvalue(np.sqrt(np.outer(gain, gain)) * mobility) for gain in (kp, kd))
    return h * h * a, h * b


def largest_time_step(mobility: Array, kp: Array, kd: Array) -> float:
    """Return h [s] with a + 2 b = 4, below which these gains are stable; inf without gains."""
    a, b = stability_number(mobility, kp, kd, 1.0)
    return float(4.0 / (b + np.sqrt(b * b + 4.0 * a))) if a > 0.0 or b > 0.0 else np.inf


def _largest(gain: Array, mobility: Array) -> Array:
    """Return `gain` scaled to max eig(M⁻¹ K) = 1; gains that are all zero remain so."""
    largest = _largest_eigenvalue(np.sqrt(np.outer(gain, gain)) * mobility)
    return gain / largest if largest > 0.0 else gain


def _time_step(stiffness: Array, asked: Array) -> float:
    """Return the largest h [s] at which stiffness/h² [N m/rad] has the margin over `asked`."""
    carrying = asked > 0.0
    ratio = np.min(stiffness[carrying] / asked[carrying], initial=np.inf)
    return float(np.clip(np.sqrt(ratio / MARGIN), SHORTEST, TIME_STEP))


def _largest_eigenvalue(matrix: Array) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else 0.0
