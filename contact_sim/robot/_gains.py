"""PD gains with which a robot stands and the time stepping is stable (theory 4.5).

Explicit PD under semi-implicit Euler with time step h, in joint space with mass matrix M,

    v_next = v - h M^-1 (K q + D v),    q_next = q + h v_next

is stable if a + 2 b < 4 with a = h^2 max eig(M^-1 K) and b = h max eig(M^-1 D): multiply the
quadratic eigenvalue problem by the eigenvector and each root is that of a scalar with a' <= a,
b' <= b. M^-1 here is S M^-1 S^T of the robot in the air, where its legs are lightest, with the
part that its constraints leave, M^-1 - M^-1 H^T (H M^-1 H^T)^+ H M^-1. On the ground the slow sway
of the trunk needs damping above all, so b is large, and each joint is damped in proportion to the
inertia that it moves.

K is diagonal, and shared between two that are stable: one in proportion to the stiffness that
standing needs, one in proportion to the inertia that it moves. The set of stable K, those with
K <= a/h^2 M as quadratic forms, is convex: between two of them all are stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.robot._constraints import ClosedLoops
from contact_sim.robot._contact_points import ContactPoint, feet_of

# ------------------------------------------------------ stiffness that standing needs (theory 4.5)

SAG = 0.5
"""Deflection of a joint under the weight that it carries, at the required stiffness [rad]."""
LEVEL = 0.1
"""A foot stands if it is within this share of the height of the centre of mass of the lowest."""


def required_stiffness(
    model: pin.Model,
    joint_velocity_index: npt.NDArray[np.intp],
    q: Array,
    points: Sequence[ContactPoint],
    loops: ClosedLoops,
) -> Array:
    """Return the stiffness of each joint that standing at `q` needs, shape (n_joints,).

    Every foot that stands carries an equal share W of the weight. A joint between it and the rest
    of the robot has to keep the weight from tipping over the foot, and the foot from giving way:

        k = W max(r² / l) + |W ∂z/∂q| / SAG      over the foot and the centre of mass

    where l is the distance of that point from the joint, r = |∂x/∂q| its speed for unit speed of
    the joint, and W/l the stiffness of a pendulum of this length. A joint with no foot beyond it
    has 0. The stiffness of a passive joint is added to those that move it, times the square of the
    gear ratio at q.

    Args:
        model: of the robot.
        joint_velocity_index: where the joints are in v, shape (n_joints,).
        q: configuration, z up, shape (nq,).
        points: contact points, grouped to feet by their frames.
        loops: how passive joints move with the others.

    Returns:
        [N m/rad] of revolute joints, [N/m] of prismatic ones.
    """
    if not len(loops):
        return _of_each(model, joint_velocity_index, q, points)
    single = np.array([joint.idx_v for joint in list(model.joints)[1:] if joint.nv == 1])
    motion, _ = loops.motion(loops.jacobian(q), joint_velocity_index)
    return np.asarray((motion[single] ** 2).T @ _of_each(model, single, q, points))


def _of_each(
    model: pin.Model,
    joint_velocity_index: npt.NDArray[np.intp],
    q: Array,
    points: Sequence[ContactPoint],
) -> Array:
    """Return the stiffness of joints without constraints, see `required_stiffness`."""
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    centre = np.array(pin.centerOfMass(model, data, q))
    feet = _standing_feet(model, data, points, centre)
    of_dof = {int(joint.idx_v): i for i, joint in enumerate(model.joints) if i}
    joints = [of_dof[int(dof)] for dof in joint_velocity_index]
    origins = np.array([data.oMi[joint].translation for joint in joints]).reshape(-1, 3)
    columns = np.reshape(data.J, (6, model.nv))[:, joint_velocity_index].T  # a vector if nv = 1
    stiffness = np.zeros(len(joints))
    for carrier, place in feet:
        share = _weight(model) / len(feet)
        speeds = [_speeds(columns, point) for point in (place, centre)]
        tipping = [
            _over(np.sum(speed**2, axis=1), np.linalg.norm(point - origins, axis=1))
            for speed, point in zip(speeds, (place, centre), strict=True)
        ]
        required = share * (np.max(tipping, axis=0) + np.abs(speeds[0][:, 2]) / SAG)
        stiffness += np.where(np.isin(joints, list(model.supports[carrier])), required, 0.0)
    return stiffness


def _weight(model: pin.Model) -> float:
    gravity = float(np.linalg.norm(model.gravity.linear))
    return float(pin.computeTotalMass(model)) * gravity


def _standing_feet(
    model: pin.Model, data: pin.Data, points: Sequence[ContactPoint], centre: Array
) -> list[tuple[int, Array]]:
    """Return the joint that carries each foot on which the robot stands, and the foot's place."""
    joints = [model.getJointId(point.joint) for point in points]
    low = [
        data.oMi[joint].act(point.offset) - np.array([0.0, 0.0, point.radius])
        for joint, point in zip(joints, points, strict=True)
    ]
    feet = [
        (joints[foot.points[0]], np.array([low[i] for i in foot.points]))
        for foot in feet_of(points)
    ]
    ground = min((places[:, 2].min() for _, places in feet), default=0.0)
    reach = ground + LEVEL * abs(float(centre[2]) - ground)
    return [(joint, places.mean(axis=0)) for joint, places in feet if places[:, 2].min() <= reach]


def _speeds(columns: Array, point: Array) -> Array:
    """Return ∂x/∂q of a point that each joint carries; `columns` are twists about the origin."""
    return columns[:, :3] + np.cross(columns[:, 3:], point)


def _over(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0.0)


# ------------------------------------------------------------------------------ gains (theory 4.5)

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
"""Least ratio of kp to the required stiffness [-], where a time step of SHORTEST allows it."""


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
    required = required_stiffness(model, joint_velocity_index, q, points, loops)
    inertia = 1.0 / np.diagonal(mobility)
    of_load, of_inertia = _largest(required, mobility), _largest(inertia, mobility)
    shared = LOAD_SHARE * of_load + (1.0 - LOAD_SHARE) * of_inertia
    stiffness = STIFFNESS_NUMBER * _largest(shared, mobility)
    h = _time_step(stiffness, required)
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


def _time_step(stiffness: Array, required: Array) -> float:
    """Return the largest h [s] at which stiffness/h² [N m/rad] has the margin over `required`."""
    carrying = required > 0.0
    ratio = np.min(stiffness[carrying] / required[carrying], initial=np.inf)
    return float(np.clip(np.sqrt(ratio / MARGIN), SHORTEST, TIME_STEP))


def _largest_eigenvalue(matrix: Array) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else 0.0
