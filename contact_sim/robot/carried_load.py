"""How stiff joints have to be to carry a robot on its feet (theory 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.robot.closed_loops import ClosedLoops
from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.feet import feet_of

SAG = 0.5
"""Deflection of a joint under the weight that it carries, at the stiffness asked for [rad]."""
LEVEL = 0.1
"""A foot stands if it is within this share of the height of the centre of mass of the lowest."""


def carried_stiffness(
    model: pin.Model,
    joint_velocity_index: npt.NDArray[np.intp],
    q: Array,
    points: Sequence[ContactPoint],
    loops: ClosedLoops,
) -> Array:
    """Return the stiffness that standing at `q` asks of each joint, shape (n_joints,).

    Every foot that stands carries an equal share W of the weight. A joint between it and the rest
    of the robot has to keep the weight from tipping over the foot, and the foot from giving way:

        k = W max(r² / l) + |W ∂z/∂q| / SAG      over the foot and the centre of mass

    where l is the distance of that point from the joint, r = |∂x/∂q| its speed for unit speed of
    the joint, and W/l the stiffness of a pendulum of this length. A joint with no foot beyond it
    has 0. What a passive joint would need is asked of those that move it, by the square of the
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
    """Return the stiffness of joints that move on their own, see `carried_stiffness`."""
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
        asked = share * (np.max(tipping, axis=0) + np.abs(speeds[0][:, 2]) / SAG)
        stiffness += np.where(np.isin(joints, list(model.supports[carrier])), asked, 0.0)
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
