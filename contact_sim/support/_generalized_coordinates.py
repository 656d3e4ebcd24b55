"""Generalized velocities and forces: conventions of the base velocity, efforts of the joints.

    v = (B_v_B, B_ω_IB, q̇_j)     Pinocchio's, base velocity in the axes of the base
    u = (I_v_B, B_ω_IB, q̇_j)     the lecture's, linear velocity in the axes of the world
    u = X v,  X = blkdiag(R_IB, I₃, I_n);   u = E_fb q̇,  E_fb = blkdiag(I₃, E_χ, I_n)

χ is Pinocchio's quaternion (x, y, z, w): B_ω_IB = E_χ χ̇ with E_χ = 2 H̄(χ). Theory 0, E1, T3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import checked, real_array, real_number
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.robot._coordinates import checked_vector
from contact_sim.robot._model import RobotModel


def require_floating_base(robot: RobotModel, purpose: str) -> None:
    """Raise InvalidInput for a robot without a floating base."""
    if not robot.floating_base:
        raise InvalidInput(
            f'{purpose}: needs a floating base, but the base of robot {robot.name} is fixed; '
            'it has one where floating_base is true as it is loaded'
        )


@checked
def base_rotation(robot: RobotModel, q: ArrayLike) -> Array:
    """Return R_IB, axes of the base in the world, shape (3, 3).

    Raises:
        InvalidInput: a fixed base, a wrong length, a value that is not finite.
    """
    require_floating_base(robot, 'base_rotation')
    q = robot.checked_configuration(q)
    attached = np.array(robot.pinocchio_model.jointPlacements[1].rotation)
    return np.asarray(attached @ pin.Quaternion(q[3:7]).toRotationMatrix())


@checked
def velocity_map(robot: RobotModel, q: ArrayLike) -> Array:
    """Return X with u = X v, shape (nv, nv); orthogonal.

    Raises:
        InvalidInput: as `base_rotation`.
    """
    X = np.eye(robot.nv)
    X[:3, :3] = base_rotation(robot, q)
    return X


@checked
def world_velocity(robot: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Return u of Pinocchio's v, shape (nv,).

    Raises:
        InvalidInput: as `base_rotation`.
    """
    return np.asarray(velocity_map(robot, q) @ robot.checked_velocity(v))


@checked
def body_velocity(robot: RobotModel, q: ArrayLike, u: ArrayLike) -> Array:
    """Return Pinocchio's v of u, shape (nv,).

    Raises:
        InvalidInput: as `base_rotation`.
    """
    return np.asarray(velocity_map(robot, q).T @ robot.checked_velocity(u))


@checked
def rate_map(robot: RobotModel, q: ArrayLike) -> Array:
    """Return E_fb with u = E_fb q̇, q̇ the derivative of Pinocchio's q, shape (nv, nq).

    A `continuous` joint is (cos, sin) in q: its speed is cos · d sin − sin · d cos.

    Raises:
        InvalidInput: as `base_rotation`, or a joint that is neither the base nor has one dof.
    """
    require_floating_base(robot, 'rate_map')
    q = robot.checked_configuration(q)
    E = np.zeros((robot.nv, robot.nq))
    E[:3, :3] = robot.pinocchio_model.jointPlacements[1].rotation
    x, y, z, w = q[3:7]
    E[3:6, 3:7] = 2.0 * np.array([[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z]])
    for joint in list(robot.pinocchio_model.joints)[2:]:
        if (joint.nq, joint.nv) == (1, 1):
            E[joint.idx_v, joint.idx_q] = 1.0
        elif (joint.nq, joint.nv) == (2, 1):
            cosine, sine = q[joint.idx_q : joint.idx_q + 2]
            E[joint.idx_v, joint.idx_q : joint.idx_q + 2] = -sine, cosine
        else:
            raise InvalidInput(
                f'rate_map: joint {joint.shortname()} with {joint.nv} dofs is not supported'
            )
    return E


@checked
def coordinate_rate(robot: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Return q̇ = N(q) v with v Pinocchio's, shape (nq,); theory T3.

    Raises:
        InvalidInput: as `rate_map`.
    """
    E = rate_map(robot, q)
    u = world_velocity(robot, q, v)
    rate = np.asarray(E.T @ u)  # the rows of E are orthogonal; those of the quaternion 2 long
    rate[3:7] *= 0.25
    return rate


@checked
def in_world_velocity(robot: RobotModel, q: ArrayLike, jacobian: ArrayLike) -> Array:
    """Return the Jacobian that multiplies u instead of v, J X⁻¹, shape (m, nv); theory E2.

    Raises:
        InvalidInput: as `base_rotation`, or rows of a wrong length.
    """
    rows = [checked_vector('row of jacobian', row, robot.nv) for row in np.atleast_2d(jacobian)]
    return np.asarray(np.array(rows).reshape(-1, robot.nv) @ velocity_map(robot, q).T)


# --- Efforts of the actuated joints and generalized forces: τ ↦ Sᵀτ and back (theory E8)


@checked
def generalized_force(robot: RobotModel, effort: ArrayLike | Mapping[str, float]) -> Array:
    """Return Sᵀτ [N, N m], shape (nv,).

    Args:
        robot: whose joints.
        effort: τ [N m or N], shape (n_joints,), or effort by name of the joint, others zero.

    Raises:
        InvalidInput: a wrong length, a value that is not finite, a joint that nothing drives.
        UnknownName: a joint that does not exist.
    """
    if isinstance(effort, Mapping):
        for name in effort:
            if name in robot.joint_names:
                continue
            if name in list(robot.pinocchio_model.names)[1:]:
                raise InvalidInput(
                    f'effort of joint {name!r} of robot {robot.name}: nothing drives it; driven '
                    'are ' + ', '.join(robot.joint_names)
                )
            raise UnknownName(f'joint of robot {robot.name}', name, robot.joint_names)
        effort = [real_number(name, effort.get(name, 0.0)) for name in robot.joint_names]
    place = f'effort of robot {robot.name}'
    effort = real_array(place, effort)
    if effort.shape == (robot.nv,) != (robot.n_joints,):
        raise InvalidInput(
            f'{place}: shape ({robot.nv},) is a generalized force, expected the efforts of the '
            f'{robot.n_joints} actuated joints; the base and passive joints take none'
        )
    tau = checked_vector(place, effort, robot.n_joints, robot.joint_names)
    return np.asarray(robot.selection_matrix.T @ tau)


@checked
def joint_effort(robot: RobotModel, force: ArrayLike) -> Array:
    """Return τ with Sᵀτ = `force` (nv,), shape (n_joints,).

    Raises:
        InvalidInput: a wrong length, a value that is not finite, a force on the base or on a joint
            that nothing drives.
    """
    tau = checked_vector(f'generalized force on robot {robot.name}', force, robot.nv)
    passive = np.setdiff1d(np.arange(robot.nv), robot.joint_velocity_index)
    bad = passive[tau[passive] != 0.0]
    if bad.size:
        names, joints = robot.pinocchio_model.names, robot.pinocchio_model.joints
        name = next(
            str(names[j]) for j in range(1, len(joints))
            if 0 <= int(bad[0]) - joints[j].idx_v < joints[j].nv
        )  # fmt: skip
        raise InvalidInput(
            f'generalized force on robot {robot.name}: entry {bad[0]} is {tau[bad[0]]:g}, but '
            f'nothing drives joint {name!r}; expected 0 there'
        )
    return np.asarray(tau[robot.joint_velocity_index])
