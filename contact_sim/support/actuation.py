"""Efforts of the actuated joints and generalized forces: τ ↦ Sᵀτ and back (theory E8)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.numbers import real_array, real_number
from contact_sim.robot.configuration import checked_vector
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


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
            _check_driven(robot, name)
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
        name = _joint_of(robot, int(bad[0]))
        raise InvalidInput(
            f'generalized force on robot {robot.name}: entry {bad[0]} is {tau[bad[0]]:g}, but '
            f'nothing drives joint {name!r}; expected 0 there'
        )
    return np.asarray(tau[robot.joint_velocity_index])


def _check_driven(robot: RobotModel, name: str) -> None:
    if name in robot.joint_names:
        return
    if name in list(robot.pinocchio_model.names)[1:]:
        raise InvalidInput(
            f'effort of joint {name!r} of robot {robot.name}: nothing drives it; driven are '
            + ', '.join(robot.joint_names)
        )
    raise UnknownName(f'joint of robot {robot.name}', name, robot.joint_names)


def _joint_of(robot: RobotModel, dof: int) -> str:
    model = robot.pinocchio_model
    owner = next(
        j for j in range(1, model.njoints) if 0 <= dof - model.joints[j].idx_v < model.joints[j].nv
    )
    return str(model.names[owner])
