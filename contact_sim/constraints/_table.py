"""Constraints as numbers for the kernels, and as dictionaries for recordings and parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Indices
from contact_sim.arrays._fields import CONSTRAINT_INDICES, CONSTRAINT_LAW, CONSTRAINT_PLACES
from contact_sim.collision._detection import leaf_dof
from contact_sim.constraints._kinematics import (
    COUNT,
    DAMPED,
    DRIVEN,
    DRIVEN_SLOWLY,
    FRAME,
    FUNCTION,
    JOINTS,
    POINT,
    PROJECTED,
)
from contact_sim.dynamics._tree import Tree
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot._constraints import (
    FAR,
    Baumgarte,
    Constraint,
    FrameAnchor,
    Holonomic,
    JointCoupling,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
)
from contact_sim.robot._coordinates import frame_called
from contact_sim.robot._model import RobotModel

# Serialisation to values that JSON and YAML have, for recordings and the node's parameters:
#
#     {'kind': 'loop_closure', 'frame': 'rod', 'other': 'knee', 'stabilisation': {'alpha': 10.0}}

KINDS: dict[str, type[Constraint]] = {
    kind.kind: kind
    for kind in (PointAnchor, FrameAnchor, LoopClosure, JointLock, JointCoupling, JointVelocity)
}
"""Kinds of constraints that can be serialised."""


def constraint_to_dict(constraint: Constraint) -> dict[str, Any]:
    """Return a constraint as a dictionary, without fields that have their default value.

    Raises:
        InvalidInput: a function h(q) cannot be serialised.
    """
    if isinstance(constraint, Holonomic):
        raise InvalidInput(
            f'constraint {constraint.name!r} is a Python function: it can be neither recorded nor '
            'configured'
        )
    values: dict[str, Any] = {'kind': constraint.kind}
    for field in dataclasses.fields(constraint):
        value = getattr(constraint, field.name)
        if field.name == 'stabilisation':
            if isinstance(value, Baumgarte):
                values[field.name] = {'kp': value.kp, 'kd': value.kd}
        elif field.default is dataclasses.MISSING or value != field.default:
            values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def constraint_from_dict(values: Any) -> Constraint:
    """Return the constraint of a dictionary of `constraint_to_dict`.

    Raises:
        UnknownName: a kind or a field that does not exist.
        InvalidInput: no mapping, a missing field, or an invalid value.
    """
    if not isinstance(values, Mapping):
        raise InvalidInput(
            f'constraint {shown(values)}: expected a mapping with kind, frame or joint, ...'
        )
    fields = dict(values)
    kind = fields.pop('kind', None)
    if kind not in KINDS:
        raise UnknownName('kind of constraint', kind, KINDS)
    known = {field.name for field in dataclasses.fields(KINDS[kind])}
    for name in fields:
        if name not in known:
            raise UnknownName(f'field of {kind}', name, known)
    feedback = fields.get('stabilisation')
    if isinstance(feedback, Mapping):
        try:
            fields['stabilisation'] = Baumgarte(**feedback)
        except TypeError as error:
            raise InvalidInput(
                f'{kind}: stabilisation = {shown(dict(feedback))}: expected alpha, or kp and kd'
            ) from error
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    try:
        return KINDS[kind](**fields)
    except TypeError as error:
        raise InvalidInput(f'constraint {shown(dict(values))}: {error}') from error


# The constraint table: names looked up in a robot, reference poses as numbers.

WORLD = 'universe'  # Pinocchio's name of the frame of the world


@dataclass(frozen=True)
class ConstraintTable:
    """The numbers of all constraints, for the kernels of constraints/_kinematics.py."""

    constraints: tuple[Constraint, ...]
    indices: Indices
    """Shape (n, CONSTRAINT_INDICES)."""
    places: Array
    """Shape (n, CONSTRAINT_PLACES)."""
    laws: Array
    """Shape (n, CONSTRAINT_LAW)."""
    nv: int
    """Degrees of freedom of the robot."""

    @property
    def rows(self) -> int:
        """Rows of all constraints."""
        return int(self.indices[:, COUNT].sum())

    @property
    def coupled_dofs(self) -> list[list[int]]:
        """Dofs that each constraint couples, of its bodies or joints."""
        ties = []
        for row in self.indices:
            dofs = range(self.nv) if row[0] == FUNCTION else row[6:8]
            ties.append([int(dof) for dof in dofs if dof >= 0])
        return [tie for tie in ties if tie]

    @property
    def functions(self) -> list[tuple[int, Holonomic]]:
        """First row of every constraint that is a Python function, and the constraint."""
        return [
            (int(row[1]), constraint)
            for row, constraint in zip(self.indices, self.constraints, strict=True)
            if isinstance(constraint, Holonomic)
        ]


def constraint_table(
    robot: RobotModel, tree: Tree, constraints: Sequence[Constraint]
) -> ConstraintTable:
    """Return the table of constraints that have their reference poses, see `with_reference_pose`.

    Raises:
        UnknownName: a frame or joint that the robot does not have.
        InvalidInput: a joint with several degrees of freedom, unsupported joints.
    """
    n = len(constraints)
    indices = np.zeros((n, CONSTRAINT_INDICES), dtype=np.int64)
    places, laws = np.zeros((n, CONSTRAINT_PLACES)), np.zeros((n, CONSTRAINT_LAW))
    if n and tree.unsupported:
        raise InvalidInput(
            f'constraints: unsupported with joints of the kind of {", ".join(tree.unsupported)}'
        )
    row = 0
    for i, constraint in enumerate(constraints):
        indices[i, 1] = row
        _fill_law(constraint, laws[i])
        if isinstance(constraint, Holonomic):
            indices[i, 0], indices[i, 2] = FUNCTION, constraint.rows
        elif isinstance(constraint, JointLock | JointVelocity | JointCoupling):
            _fill_joints(robot, constraint, indices[i], laws[i])
        else:
            _fill_frames(robot, tree, constraint, indices[i], places[i])
        row += int(indices[i, 2])
    return ConstraintTable(tuple(constraints), indices, places, laws, robot.nv)


def with_reference_pose(robot: RobotModel, constraint: Constraint, q: Array) -> Constraint:
    """Return the constraint with a reference pose: its own, or else that of the robot at q (nq,).

    Raises:
        UnknownName: a frame or joint that the robot does not have.
        InvalidInput: a joint with several degrees of freedom.
    """
    if isinstance(constraint, PointAnchor | FrameAnchor) and constraint.at is None:
        frame = _frame(robot, constraint.frame)
        placement = _placement(robot, frame, q)
        if isinstance(constraint, FrameAnchor):
            return replace(constraint, at=tuple(pin.SE3ToXYZQUAT(placement).tolist()))
        return replace(constraint, at=tuple(placement.act(np.array(constraint.point)).tolist()))
    if isinstance(constraint, JointLock) and constraint.at is None:
        joint = _single(robot, constraint.joint)
        at = q[joint.idx_q] if joint.nq == 1 else np.arctan2(q[joint.idx_q + 1], q[joint.idx_q])
        return replace(constraint, at=float(at))
    return constraint


def check_start(constraint: Constraint, error: Array, jacobian: Array) -> None:
    """Check a constraint at the configuration where it is added: its h (rows,) and H (rows, nv).

    Raises:
        InvalidInput: it removes no freedom, or its error is too large for a projection.
    """
    if not (np.abs(jacobian) > 1e-9).any():
        raise InvalidInput(
            f'constraint {constraint.name!r} removes no freedom: nothing of the robot can move '
            'what it holds'
        )
    projected = not isinstance(getattr(constraint, 'stabilisation', Baumgarte(0.0)), Baumgarte)
    if projected and np.abs(error).max() > FAR:
        raise InvalidInput(
            f'constraint {constraint.name!r}: its error is {np.abs(error).max():.4g} m or rad: '
            'start where it holds, or let Baumgarte(alpha=10) close it'
        )


def _fill_law(constraint: Constraint, law: Array) -> None:
    stabilisation = getattr(constraint, 'stabilisation', None)
    if isinstance(constraint, JointVelocity):
        law[0] = DRIVEN if constraint.alpha is None else DRIVEN_SLOWLY
        law[2] = constraint.alpha or 0.0
    elif isinstance(stabilisation, Baumgarte):
        law[:3] = DAMPED, stabilisation.kp, stabilisation.kd
    else:
        law[0] = PROJECTED


def _fill_joints(
    robot: RobotModel,
    constraint: JointLock | JointVelocity | JointCoupling,
    indices: Indices,
    law: Array,
) -> None:
    joint = _single(robot, constraint.joint)
    indices[0], indices[2:] = JOINTS, (1, joint.nq == 2, joint.idx_q, 0, joint.idx_v, -1)
    law[4] = 1.0
    if isinstance(constraint, JointLock):
        law[3] = constraint.at
    elif isinstance(constraint, JointVelocity):
        law[3] = constraint.velocity
    else:
        leader = _single(robot, constraint.leader)
        if joint.nq != 1 or leader.nq != 1:
            raise InvalidInput(
                f'constraint {constraint.name!r}: joints without bounds have no position to follow'
            )
        indices[5], indices[7] = leader.idx_q, leader.idx_v
        law[3], law[5] = constraint.offset, -constraint.ratio


def _fill_frames(
    robot: RobotModel, tree: Tree, constraint: Any, indices: Indices, places: Array
) -> None:
    indices[0], indices[2] = POINT, 3
    here, there = pin.SE3.Identity(), pin.SE3.Identity()
    if isinstance(constraint, LoopClosure):
        frames = _frame(robot, constraint.frame), _frame(robot, constraint.other)
        here.translation, there.translation = (
            np.array(constraint.point),
            np.array(constraint.other_point),
        )
        full = constraint.full
    else:
        frames = _frame(robot, constraint.frame), robot.pinocchio_model.frames[0]
        full = isinstance(constraint, FrameAnchor)
        if isinstance(constraint, FrameAnchor):
            there = pin.XYZQUATToSE3(np.array(constraint.at))
        else:
            here.translation = np.array(constraint.point)
            there.translation = np.array(constraint.at)
    if full:
        indices[0], indices[2] = FRAME, 6
    for k, (frame, offset) in enumerate(zip(frames, (here, there), strict=True)):
        body = int(tree.body_of_joint[frame.parentJoint])
        indices[4 + k] = body
        indices[6 + k] = leaf_dof(robot.pinocchio_model.joints[frame.parentJoint])
        placement, turn = frame.placement * offset, tree.axes[body].T
        places[12 * k : 12 * k + 9] = (turn @ placement.rotation).ravel(order='F')
        places[12 * k + 9 : 12 * k + 12] = turn @ placement.translation


def _frame(robot: RobotModel, name: str) -> Any:
    return frame_called(robot.pinocchio_model, name, 'frame of a constraint:')


def _placement(robot: RobotModel, frame: Any, q: Array) -> pin.SE3:
    data = robot.pinocchio_model.createData()
    pin.forwardKinematics(robot.pinocchio_model, data, q)
    return data.oMi[frame.parentJoint] * frame.placement


def _single(robot: RobotModel, name: str) -> Any:
    """Return the joint `name`, which has to have one degree of freedom."""
    model = robot.pinocchio_model
    known = list(model.names)[1:]
    if name not in known:
        raise UnknownName('joint of a constraint:', name, known)
    joint = model.joints[model.getJointId(name)]
    if joint.nv != 1:
        raise InvalidInput(
            f'constraint of joint {name!r}: it has {joint.nv} degrees of freedom, expected one; '
            'FrameAnchor holds a base'
        )
    return joint
