"""Kinematics of bilateral constraints, and their serialisation (theory 4.6).

    point    h = p_A − p_B                       H = J_A − J_B
    frame    then the angle of R_A R_Bᵀ          H = ω_A − ω_B
    joints   h = Σ coefficient q − value

in world axes. H of the angle is exact at angle zero. Constraints that are Python functions
(FUNCTION) are evaluated in step/_bilateral_rows.py; the kernels here skip their rows.
"""

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
from contact_sim.dynamics._rigid_body import point_bias
from contact_sim.dynamics._tree import Tree
from contact_sim.dynamics._vectors import add, cross, put, rotated, scaled, sub, vec
from contact_sim.errors import InvalidInput, UnknownName, one_line, shown
from contact_sim.robot._constraints import (
    MAX_START_ERROR,
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
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.solvers._jit import kernel

POINT, FRAME, JOINTS, FUNCTION = range(4)
"""Kinds of rows: relative position (3), relative placement (6), a sum over joints (1), h(q)."""
PROJECTED, DAMPED, DRIVEN, DRIVEN_SLOWLY = range(4)
"""Laws: position by projection or Baumgarte feedback, velocity at once or with rate α."""
KIND, FIRST, COUNT, UNBOUNDED, A, B, DOF_A, DOF_B = range(8)
"""Indices: kind, first row, rows, whether the first joint has no bounds, then two bodies and their
last dofs, or coordinates and dofs of two joints."""
LAW, KP, KD, VALUE, COEFFICIENT_A, COEFFICIENT_B = range(6)
"""Numbers: law, its feedback, position or velocity of a joint, coefficients of two joints."""

# --- The constraint table: names looked up in a robot, reference poses as numbers.

WORLD = 'universe'  # Pinocchio's name of the frame of the world


@dataclass(frozen=True)
class ConstraintTable:
    """Parameters of all constraints as arrays for kernels."""

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

    __repr__ = one_line


def constraint_table(
    robot: RobotModel, tree: Tree, constraints: Sequence[Constraint]
) -> ConstraintTable:
    """Return the table of constraints that went through `with_reference_pose`."""
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
        stabilisation = getattr(constraint, 'stabilisation', None)
        if isinstance(constraint, JointVelocity):
            laws[i, LAW] = DRIVEN if constraint.alpha is None else DRIVEN_SLOWLY
            laws[i, KD] = constraint.alpha or 0.0
        elif isinstance(stabilisation, Baumgarte):
            laws[i, : KD + 1] = DAMPED, stabilisation.kp, stabilisation.kd
        else:
            laws[i, LAW] = PROJECTED
        if isinstance(constraint, Holonomic):
            indices[i, 0], indices[i, 2] = FUNCTION, constraint.rows
        elif isinstance(constraint, JointLock | JointVelocity | JointCoupling):
            _fill_joints(robot, constraint, indices[i], laws[i])
        else:
            _fill_frames(robot, tree, constraint, indices[i], places[i])
        row += int(indices[i, 2])
    return ConstraintTable(tuple(constraints), indices, places, laws, robot.nv)


def with_reference_pose(robot: RobotModel, constraint: Constraint, q: Array) -> Constraint:
    """Return the constraint with a reference pose: its own, or that of the robot at q (nq,)."""
    if isinstance(constraint, PointAnchor | FrameAnchor) and constraint.at is None:
        frame, data = _frame(robot, constraint.frame), data_of(robot.pinocchio_model)
        pin.forwardKinematics(robot.pinocchio_model, data, q)
        placement = data.oMi[frame.parentJoint] * frame.placement
        if isinstance(constraint, FrameAnchor):
            return replace(constraint, at=tuple(pin.SE3ToXYZQUAT(placement).tolist()))
        return replace(constraint, at=tuple(placement.act(np.array(constraint.point)).tolist()))
    if isinstance(constraint, JointLock) and constraint.at is None:
        joint = _single(robot, constraint.joint)
        at = q[joint.idx_q] if joint.nq == 1 else np.arctan2(q[joint.idx_q + 1], q[joint.idx_q])
        return replace(constraint, at=float(at))
    return constraint


def check_start(constraint: Constraint, error: Array, jacobian: Array) -> None:
    """Check h (rows,) and H (rows, nv) of a constraint where it is added."""
    if not (np.abs(jacobian) > 1e-9).any():
        raise InvalidInput(
            f'constraint {constraint.name!r} removes no freedom: nothing of the robot can move '
            'what it holds'
        )
    projected = not isinstance(getattr(constraint, 'stabilisation', Baumgarte(0.0)), Baumgarte)
    if projected and np.abs(error).max() > MAX_START_ERROR:
        raise InvalidInput(
            f'constraint {constraint.name!r}: its error is {np.abs(error).max():.4g} m or rad: '
            'start where it holds, or let Baumgarte(alpha=10) close it'
        )


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
    return find_frame(robot.pinocchio_model, name, 'frame of a constraint:')


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


# --- Errors h, Jacobians H and Ḣ v of the rows.


@kernel
def fill_errors(table, pose, q, error):
    """Fill h [m, rad] of all rows but those of FUNCTION, shape (nb,).

    `table` is (indices, places, laws), see `ConstraintTable`; `pose` that of `forward_kinematics`.
    """
    indices, places, laws = table
    for i in range(places.shape[0]):
        entry = indices[CONSTRAINT_INDICES * i : CONSTRAINT_INDICES * (i + 1)]
        row = entry[FIRST]
        if entry[KIND] == JOINTS:
            k = entry[A]
            first = np.arctan2(q[k + 1], q[k]) if entry[UNBOUNDED] else q[k]
            value = laws[i, COEFFICIENT_A] * first
            error[row] = value + laws[i, COEFFICIENT_B] * q[entry[B]] - laws[i, VALUE]
            # driven joints have no position error
            if laws[i, LAW] >= DRIVEN:
                error[row] = 0.0
            if entry[UNBOUNDED]:  # continuous joint: the shorter way round
                error[row] = np.arctan2(np.sin(error[row]), np.cos(error[row]))
        elif entry[KIND] != FUNCTION:
            # point and frame: p_A − p_B, then the angle
            p = world_point(pose, entry[A], places[i], 0)
            put(error, row, sub(p, world_point(pose, entry[B], places[i], 12)))
            if entry[KIND] == FRAME:
                put(error, row + 3, angle_between(pose, entry, places[i]))


@kernel
def world_point(pose, body, place, first):
    """Return a point of a body in world; its place in the axes of the body from `first` on."""
    P = pose[body]
    return add(rotated(vec(P, 0), vec(P, 3), vec(P, 6), vec(place, first + 9)), vec(P, 9))


@kernel
def angle_between(pose, entry, place):
    """Return the angle vector of R_A R_Bᵀ in world axes [rad]."""
    P, Q = pose[entry[A]], pose[entry[B]]
    w, trace = (0.0, 0.0, 0.0), 0.0
    for c in range(0, 9, 3):
        x = rotated(vec(P, 0), vec(P, 3), vec(P, 6), vec(place, c))
        y = rotated(vec(Q, 0), vec(Q, 3), vec(Q, 6), vec(place, 12 + c))
        w = add(w, cross(y, x))
        trace += x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
    sine = 0.5 * np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    angle = np.arctan2(sine, 0.5 * (trace - 1.0))
    return scaled(0.5 * (angle / sine if sine > 0.0 else 1.0), w)


@kernel
def fill_jacobian(table, pose, columns, origin, dof_parent, H):
    """Fill H (nb, nv) of all rows but those of FUNCTION; `columns` are about `origin`."""
    indices, places, laws = table
    for i in range(places.shape[0]):
        entry = indices[CONSTRAINT_INDICES * i : CONSTRAINT_INDICES * (i + 1)]
        row = entry[FIRST]
        if entry[KIND] == FUNCTION:
            continue
        for r in range(row, row + entry[COUNT]):
            for k in range(H.shape[1]):
                H[r, k] = 0.0
        # joints: the coefficients at their dofs
        if entry[KIND] == JOINTS:
            H[row, entry[DOF_A]] = laws[i, COEFFICIENT_A]
            if laws[i, COEFFICIENT_B] != 0.0:
                H[row, entry[DOF_B]] = laws[i, COEFFICIENT_B]
            continue
        # point and frame: + along the branch of A, − along that of B
        angles = entry[KIND] == FRAME
        p = sub(world_point(pose, entry[A], places[i], 0), vec(origin, 0))
        add_branch_rows(columns, entry[DOF_A], dof_parent, p, 1.0, row, angles, H)
        p = sub(world_point(pose, entry[B], places[i], 12), vec(origin, 0))
        add_branch_rows(columns, entry[DOF_B], dof_parent, p, -1.0, row, angles, H)


@kernel
def add_branch_rows(columns, last, dof_parent, p, sign, row, angles, H):
    """Add `sign` times the velocity of the point p, and with `angles` ω, along a branch."""
    k = last
    while k >= 0:
        w = vec(columns[k], 3)
        v = add(vec(columns[k], 0), cross(w, p))
        for e in range(3):
            H[row + e, k] += sign * v[e]
            if angles:
                H[row + 3 + e, k] += sign * w[e]
        k = dof_parent[k]


@kernel
def fill_drift(table, pose, motion, drift):
    """Fill Ḣ v [m/s², rad/s²] of all rows but those of FUNCTION, shape (nb,).

    `motion` is (twist, bias, origin, gravity), see `bias_forces`.
    """
    indices, places, _ = table
    twist, bias, origin, gravity = motion
    for i in range(places.shape[0]):
        entry = indices[CONSTRAINT_INDICES * i : CONSTRAINT_INDICES * (i + 1)]
        row = entry[FIRST]
        if entry[KIND] == JOINTS:
            drift[row] = 0.0
        elif entry[KIND] != FUNCTION:
            put(drift, row, (0.0, 0.0, 0.0))
            if entry[KIND] == FRAME:
                put(drift, row + 3, (0.0, 0.0, 0.0))
            # J̇ v of the point on A minus that on B; of a frame also ω̇
            for body, first, sign in ((entry[A], 0, 1.0), (entry[B], 12, -1.0)):
                if body > 0:
                    p = sub(world_point(pose, body, places[i], first), vec(origin, 0))
                    a = point_bias(twist[body], bias[body], gravity, p)
                    put(drift, row, add(vec(drift, row), scaled(sign, a)))
                    if entry[KIND] == FRAME:
                        angular = scaled(sign, vec(bias[body], 3))
                        put(drift, row + 3, add(vec(drift, row + 3), angular))


# --- Serialisation to values that JSON and YAML have, for recordings and the node's parameters:
#
#     {'kind': 'loop_closure', 'frame': 'rod', 'other': 'knee', 'stabilisation': {'alpha': 10.0}}

KINDS: dict[str, type[Constraint]] = {
    kind.kind: kind
    for kind in (PointAnchor, FrameAnchor, LoopClosure, JointLock, JointCoupling, JointVelocity)
}
"""Kinds of constraints that can be serialised."""


def constraint_to_dict(constraint: Constraint) -> dict[str, Any]:
    """Return a constraint as a dictionary, without fields that have their default value."""
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
    """Return the constraint of a dictionary of `constraint_to_dict`."""
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
