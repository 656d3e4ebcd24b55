"""A robot as free bodies and joint rows, and the map to and from its reduced coordinates.

A joint of a robot with several axes in a row (universal) is a chain of bodies without mass
(dynamics/_tree.py): the rows hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, IndexArray
from contact_sim.dynamics._rigid_body import forward_kinematics
from contact_sim.dynamics._tree import (
    CONTINUOUS,
    FREE_FLYER,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    Tree,
    tree_of,
)
from contact_sim.errors import InvalidInput, UnknownName, one_line, shown, summary
from contact_sim.robot._model import RobotModel

# --- States of free bodies, in world axes
#
# Row 0 is the world, at rest; body j is tree body j (dynamics/_tree.py).

TINY = np.finfo(float).tiny
FOLLOWING, BEFORE = np.array([1, 2, 0]), np.array([2, 0, 1])


@dataclass(frozen=True, eq=False)
class BodyState:
    """Positions and velocities of nb bodies, the world included."""

    position: Array
    """Centres of mass [m], shape (nb, 3)."""
    rotation: Array
    """Axes of the bodies as columns, shape (nb, 3, 3)."""
    velocity: Array
    """Of the centres of mass [m/s], then angular [rad/s], shape (nb, 6)."""

    def moved(self, displacement: Array) -> BodyState:
        """Return the state after translations and rotation vectors (nb, 6), velocities kept."""
        return BodyState(
            self.position + displacement[:, :3],
            orthonormal(rotations(displacement[:, 3:]) @ self.rotation),
            self.velocity,
        )

    __repr__ = one_line


def cross(a: Array, b: Array) -> Array:
    """Return a × b for vectors in the last axis; np.cross takes five times as long."""
    return np.asarray(a[..., FOLLOWING] * b[..., BEFORE] - a[..., BEFORE] * b[..., FOLLOWING])


def turned(rotation: Array, vector: Array) -> Array:
    """Return R a for rotations (n, 3, 3) and vectors (n, 3)."""
    return np.asarray((rotation @ vector[:, :, None])[:, :, 0])


def rotations(vectors: Array) -> Array:
    """Return exp([θ]×) of rotation vectors (n, 3) [rad], shape (n, 3, 3)."""
    angle = np.sqrt((vectors**2).sum(axis=1))[:, None, None]
    axis = vectors / np.maximum(angle[:, 0], TINY)
    skew = np.zeros((len(vectors), 3, 3))
    skew[:, BEFORE, FOLLOWING] = axis
    skew[:, FOLLOWING, BEFORE] = -axis
    return np.asarray(np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * (skew @ skew))


def orthonormal(rotation: Array) -> Array:
    """Return rotations without the rounding errors that products of many gather."""
    product = rotation.transpose(0, 2, 1) @ rotation
    return np.asarray(rotation @ (1.5 * np.eye(3) - 0.5 * product))


# --- Constraint rows of joints between free bodies, from two primitives (theory 2.14)
#
#     point    h = d · (x_c − x_p)      the joint's origin on child and parent; d is fixed in the
#                                       world, or in the parent where the joint slides
#     angle    h = s_c · s_p            vectors fixed in child and parent that stay perpendicular
#
# ḣ = J v over the velocities (ṗ, ω) of parent and child; ḧ = J v̇ + J̇ v.


@dataclass(frozen=True, eq=False)
class JointRows:
    """The rows of all joints: those of points first, then those of angles.

    Joint j is between body j, its child, and body parent[j]; nb bodies, the world included.
    """

    parent: IndexArray
    """Shape (nb,)."""
    parent_anchor: Array
    """Origin of each joint from the parent's centre of mass, parent's axes [m], shape (nb, 3)."""
    child_anchor: Array
    """The same from the child's centre of mass, child's axes [m], shape (nb, 3)."""
    point_joint: IndexArray
    """Joint of each point row, shape (n,)."""
    direction: Array
    """d, in world or parent's axes, shape (n, 3)."""
    slides: NDArray[np.bool_]
    """Whether d is fixed in the parent, shape (n,)."""
    angle_joint: IndexArray
    """Joint of each angle row, shape (a,)."""
    of_parent: Array
    """s_p in the parent's axes, shape (a, 3)."""
    of_child: Array
    """s_c in the child's axes, shape (a, 3)."""

    @cached_property
    def joint(self) -> IndexArray:
        """Joint of each row, shape (m,), m = n + a."""
        return np.concatenate([self.point_joint, self.angle_joint])

    @cached_property
    def structure(self) -> NDArray[np.bool_]:
        """Which entries of J may differ from 0, shape (m, 2, 6): parent, child."""
        entries = np.zeros((len(self.joint), 2, 6), dtype=bool)
        n = len(self.point_joint)
        along = (self.direction != 0.0) | self.slides[:, None]
        across = np.stack([along[:, [1, 2]].any(axis=1), along[:, [2, 0]].any(axis=1),
                           along[:, [0, 1]].any(axis=1)], axis=1)  # fmt: skip
        entries[:n, :, :3], entries[:n, :, 3:] = along[:, None], across[:, None]
        entries[n:, :, 3:] = True
        entries[:, 0] &= (self.parent[self.joint] > 0)[:, None]  # the world does not move
        return entries

    def at(self, state: BodyState) -> PlacedRows:
        """Return the rows of bodies at their places."""
        return PlacedRows(self, state)

    __repr__ = one_line


class PlacedRows:
    """Joint rows at a state: their errors h, Jacobian J and drift J̇ v."""

    def __init__(self, rows: JointRows, state: BodyState) -> None:
        self._rows, parent = rows, rows.parent
        R_parent = state.rotation[parent]
        self.parent_lever = turned(R_parent, rows.parent_anchor)
        """From the parent's centre of mass to the joint, world axes [m], shape (nb, 3)."""
        self.child_lever = turned(state.rotation, rows.child_anchor)
        """The same from the child's, shape (nb, 3)."""
        self._apart = (
            state.position + self.child_lever - state.position[parent] - self.parent_lever
        )
        k = rows.point_joint
        own = turned(R_parent[k], rows.direction)
        self._d = np.where(rows.slides[:, None], own, rows.direction)
        self._s_parent = turned(R_parent[rows.angle_joint], rows.of_parent)
        self._s_child = turned(state.rotation[rows.angle_joint], rows.of_child)

    @cached_property
    def error(self) -> Array:
        """Errors h: distances [m], then cosines, shape (m,)."""
        points = (self._d * self._apart[self._rows.point_joint]).sum(axis=1)
        return np.concatenate([points, (self._s_parent * self._s_child).sum(axis=1)])

    @cached_property
    def jacobian(self) -> Array:
        """J over the velocities of parent and child of each row, shape (m, 2, 6)."""
        k, n, d = self._rows.point_joint, len(self._rows.point_joint), self._d
        J = np.zeros((len(self._rows.joint), 2, 6))
        # ḋ · (x_c − x_p) = (ω_p × d) · (x_c − x_p)
        reach = self.parent_lever[k] + self._rows.slides[:, None] * self._apart[k]
        J[:n, 0, :3], J[:n, 0, 3:] = -d, cross(d, reach)
        J[:n, 1, :3], J[:n, 1, 3:] = d, cross(self.child_lever[k], d)
        J[n:, 1, 3:] = cross(self._s_child, self._s_parent)
        J[n:, 0, 3:] = -J[n:, 1, 3:]
        return J

    def rate(self, velocity: Array) -> Array:
        """Return ḣ = J v for velocities (nb, 6), shape (m,)."""
        joint, parent = self._rows.joint, self._rows.parent
        both = np.stack([velocity[parent[joint]], velocity[joint]], axis=1)
        return np.asarray((self.jacobian * both).sum(axis=(1, 2)))

    def drift(self, velocity: Array) -> Array:
        """Return J̇ v, ḧ while v̇ = 0, for velocities (nb, 6), shape (m,)."""
        rows, parent = self._rows, self._rows.parent
        v, w = velocity[:, :3], velocity[:, 3:]
        swing_child = cross(w, self.child_lever)
        swing_parent = cross(w[parent], self.parent_lever)
        apart_rate = v + swing_child - v[parent] - swing_parent
        apart_acceleration = cross(w, swing_child) - cross(w[parent], swing_parent)
        k = rows.point_joint
        w_d = np.where(rows.slides[:, None], w[parent[k]], 0.0)
        d_rate = cross(w_d, self._d)
        points = (
            self._d * apart_acceleration[k]
            + 2.0 * d_rate * apart_rate[k]
            + cross(w_d, d_rate) * self._apart[k]
        ).sum(axis=1)
        a = rows.angle_joint
        w_p, w_c = w[parent[a]], w[a]
        normal_rate = cross(cross(w_c, self._s_child), self._s_parent) + cross(
            self._s_child, cross(w_p, self._s_parent)
        )
        return np.concatenate([points, ((w_c - w_p) * normal_rate).sum(axis=1)])

    def wrenches(self, multipliers: Array) -> Array:
        """Return force and torque that the joints exert on their children, shape (nb, 6).

        About the child's centre of mass, world axes [N, N m]; the parent feels the opposite force.
        """
        wrench = np.zeros((len(self._rows.parent), 6))
        np.add.at(wrench, self._rows.joint, multipliers[:, None] * self.jacobian[:, 1])
        return wrench

    def __repr__(self) -> str:
        return summary(self, rows=len(self.error))


# --- The rows that make a joint, in space and in a plane
#
# Axes of a joint are x, y and z, the axis of a joint that has one (dynamics/_tree.py). A revolute
# joint has five rows: its origins on both bodies meet, and z of the child stays perpendicular to x
# and y of the parent. All joints are made from such rows [Haug 1989].

X, Y, Z = range(3)
PLANES = {'xy': (0, 1, 5), 'xz': (0, 2, 4), 'yz': (1, 2, 3)}
"""Velocities (ṗ, ω) of a body that moves in a plane."""
ALIGNED = 1e-9
"""Cosine up to which unit vectors are perpendicular."""


class JointKind(NamedTuple):
    """The rows of one kind of joint."""

    coincident: bool  # whether its origins on both bodies meet: three rows in world axes
    fixed_axes: tuple[int, ...]  # axes of the parent along which the origins do not part
    perpendicular: tuple[tuple[int, int], ...]  # axes of child and parent that stay perpendicular


HINGE = JointKind(True, (), ((Z, X), (Z, Y)))
JOINT_KINDS = {
    REVOLUTE: HINGE,
    CONTINUOUS: HINGE,
    PRISMATIC: JointKind(False, (X, Y), ((Z, X), (Z, Y), (X, Y))),
    SPHERICAL: JointKind(True, (), ()),
    PLANAR: JointKind(False, (Z,), ((Z, X), (Z, Y))),
    FREE_FLYER: JointKind(False, (), ()),
}


def coordinates_of(plane: str | None) -> tuple[int, ...]:
    """Return which of the six velocities of a body are unknown; all of them in space."""
    if plane is None:
        return tuple(range(6))
    if plane not in PLANES:
        raise UnknownName('plane', plane, PLANES)
    return PLANES[plane]


def normal_of(plane: str | None) -> Array | None:
    """Return the world axis about which bodies turn in a plane, shape (3,); None in space."""
    return None if plane is None else np.eye(3)[coordinates_of(plane)[2] - 3]


def joint_rows(
    tree: Tree,
    rotation: Array,
    anchors: tuple[Array, Array],
    plane: str | None,
    names: Sequence[str],
) -> JointRows:
    """Return the rows of all joints of a tree whose bodies move in `plane`; None: in space.

    `rotation` is that of the bodies in the neutral pose, (nb, 3, 3), `anchors` the two of
    `JointRows`, and `names` what to call the joint of each body.
    """
    normal = normal_of(plane)
    points: list[tuple[int, Array, bool]] = []
    angles: list[tuple[int, Array, Array]] = []
    for j in range(1, len(tree.kind)):
        if int(tree.kind[j]) not in JOINT_KINDS:
            raise InvalidInput(
                f'joint {shown(names[j])}: maximal coordinates know revolute, prismatic, '
                'spherical, planar and universal joints, free flyers, and chains of these'
            )
        kind = JOINT_KINDS[int(tree.kind[j])]
        before, behind = rotation[tree.parent[j]], rotation[j]
        axes = _axes(behind, normal)
        of_parent = before.T @ axes
        own_points = [(j, d, False) for d in np.eye(3) if kind.coincident]
        own_points += [(j, of_parent[:, k], True) for k in kind.fixed_axes]
        own_angles = [
            (j, before.T @ axes[:, p], behind.T @ axes[:, c]) for c, p in kind.perpendicular
        ]
        if normal is not None:
            # rows that constrain no motion in the plane are left out; one that is askew is not
            own_points = [
                (j, d, slides) for j, d, slides in own_points
                if abs(normal @ (before @ d if slides else d)) < 1.0 - ALIGNED
            ]  # fmt: skip
            own_angles = [
                (j, s_p, s_c) for j, s_p, s_c in own_angles
                if abs(normal @ cross(behind @ s_c, before @ s_p)) > ALIGNED
            ]  # fmt: skip
            freedoms = tree.v_index[j + 1] - tree.v_index[j]
            if len(own_points) + len(own_angles) + min(freedoms, 3) != 3:
                raise InvalidInput(
                    f'joint {shown(names[j])} does not keep its body in the plane {plane}'
                )
        points += own_points
        angles += own_angles
    return JointRows(
        parent=tree.parent.astype(np.intp),
        parent_anchor=anchors[0],
        child_anchor=anchors[1],
        point_joint=np.array([j for j, _, _ in points], dtype=np.intp),
        direction=np.array([d for _, d, _ in points]).reshape(-1, 3),
        slides=np.array([slides for _, _, slides in points], dtype=bool),
        angle_joint=np.array([j for j, _, _ in angles], dtype=np.intp),
        of_parent=np.array([s_p for _, s_p, _ in angles]).reshape(-1, 3),
        of_child=np.array([s_c for _, _, s_c in angles]).reshape(-1, 3),
    )


def _axes(rotation: Array, normal: Array | None) -> Array:
    """Return x, y, z of a joint in world as columns; x is the normal of a plane unless z is."""
    z = rotation[:, Z]
    x = rotation[:, X] if normal is None else normal - (normal @ z) * z
    length = np.linalg.norm(x)
    x = x / length if length > ALIGNED else rotation[:, X]
    return np.column_stack([x, cross(z, x), z])


# --- The mechanism

OUT_OF_PLANE = 1e-9
"""Largest velocity [m/s, rad/s] and tilt [rad] that count as motion in a plane."""
TWISTS = {
    REVOLUTE: (5,), CONTINUOUS: (5,), PRISMATIC: (2,), SPHERICAL: (3, 4, 5), PLANAR: (0, 1, 5),
    FREE_FLYER: (0, 1, 2, 3, 4, 5),
}  # fmt: skip
"""Velocities in the joint's axes that are its degrees of freedom."""
SYMMETRIC = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Places of xx, xy, xz, yy, yz, zz in a matrix."""


class Mechanism:
    """Free bodies joined by rows, made from a robot.

    Args:
        robot: a tree of joints.
        plane: 'xy', 'xz' or 'yz' for bodies that move in that plane; None: in space.

    Raises:
        InvalidInput: joints of an unknown kind, joints that leave the plane, joints with friction,
            damping or rotor inertia, joints that follow others.
        UnknownName: another plane.
    """

    def __init__(self, robot: RobotModel, plane: str | None = None) -> None:
        _check_joints(robot)
        self.robot, self.plane = robot, plane
        self.coordinates = coordinates_of(plane)
        self.tree = tree = tree_of(robot.pinocchio_model)
        self.mass: Array = tree.body[:, 0]
        """[kg], shape (nb,)."""
        self.inertia: Array = tree.body[:, 4:][:, SYMMETRIC]
        """About the centre of mass in the axes of the body [kg m²], shape (nb, 3, 3)."""
        carriers = np.searchsorted(tree.body_of_joint, np.arange(len(tree.kind)))
        self.names = tuple(str(robot.pinocchio_model.names[int(joint)]) for joint in carriers)
        """Joint that carries each body, length nb; those of a chain share it."""
        to_joint = tree.placement[:, 9:12] - tree.body[tree.parent, 1:4]
        to_joint[0] = 0.0
        self._neutral = self._placed(pin.neutral(robot.pinocchio_model), None).rotation
        self.rows = joint_rows(
            tree, self._neutral, (to_joint, -tree.body[:, 1:4]), plane, self.names
        )
        joints = [robot.pinocchio_model.getJointId(name) for name in robot.joint_names]
        self._driven: IndexArray = tree.body_of_joint[joints].astype(np.intp)
        kinds = tree.kind[self._driven]
        self._axes = np.array([np.eye(6)[TWISTS[int(kind)][0]] for kind in kinds]).reshape(-1, 6)

    # ---------------------------------------------------------------- reduced coordinates

    def bodies_at(self, q: Array, v: Array | None = None) -> BodyState:
        """Return the bodies at q (nq,) with the velocities of v (nv,); None: at rest.

        Raises:
            InvalidInput: bodies out of the plane.
        """
        state = self._placed(q, v)
        normal = normal_of(self.plane)
        if normal is not None:
            turn = state.rotation @ self._neutral.transpose(0, 2, 1)
            out = np.setdiff1d(range(6), self.coordinates)
            if (
                np.abs(turn @ normal - normal).max() > OUT_OF_PLANE
                or np.abs(state.velocity[:, out]).max() > OUT_OF_PLANE
            ):
                raise InvalidInput(f'q and v: bodies leave the plane {self.plane}')
        return state

    def _placed(self, q: Array, v: Array | None) -> BodyState:
        """Return the bodies at q and v, wherever they are."""
        tree, nb, nv = self.tree, len(self.tree.kind), self.robot.nv
        origin, pose, columns = np.zeros(3), np.zeros((nb, 12)), np.zeros((nv, 6))
        forward_kinematics(
            tree.kind, tree.parent, tree.q_index, tree.v_index, tree.placement, q, origin, pose,
            columns,
        )  # fmt: skip
        twist = np.zeros((nb, 6))
        for j in range(1, nb):
            own = slice(tree.v_index[j], tree.v_index[j + 1])
            twist[j] = twist[tree.parent[j]]
            if v is not None:
                twist[j] += v[own] @ columns[own]
        rotation = pose[:, :9].reshape(-1, 3, 3).transpose(0, 2, 1).copy()
        position = pose[:, 9:] + turned(rotation, tree.body[:, 1:4])
        twist[:, :3] += cross(twist[:, 3:], position - origin)
        twist[0] = 0.0
        return BodyState(position, rotation, twist)

    def reduced(self, state: BodyState) -> tuple[Array, Array]:
        """Return q (nq,) and v (nv,) of bodies, angles in (−π, π].

        What the joints do not allow is left out: q and v are exact where the errors of the rows
        are zero.
        """
        tree, parent = self.tree, self.tree.parent
        origin = state.position - turned(state.rotation, tree.body[:, 1:4])
        into = state.rotation[parent].transpose(0, 2, 1)
        along = turned(into, origin - origin[parent]) - tree.placement[:, 9:12]
        placed = tree.placement[:, :9].reshape(-1, 3, 3)  # transposed: by columns
        along, turn = turned(placed, along), placed @ into @ state.rotation
        v, w = state.velocity[:, :3], state.velocity[:, 3:]
        v_origin = v + cross(w, origin - state.position)
        v_origin -= v[parent] + cross(w[parent], origin - state.position[parent])
        own = state.rotation.transpose(0, 2, 1)
        rates = np.hstack([turned(own, v_origin), turned(own, w - w[parent])])
        q, velocity = np.zeros(self.robot.nq), np.zeros(self.robot.nv)
        for j in range(1, len(tree.kind)):
            kind, i = int(tree.kind[j]), tree.q_index[j]
            values = _position(kind, along[j], turn[j])
            q[i : i + len(values)] = values
            velocity[tree.v_index[j] : tree.v_index[j + 1]] = rates[j, TWISTS[kind]]
        return q, velocity

    # ---------------------------------------------------------------- dynamics

    def inertia_blocks(self, state: BodyState) -> Array:
        """Return the block of M of every body, world axes, shape (nb, 6, 6)."""
        blocks = np.zeros((len(self.mass), 6, 6))
        blocks[:, [0, 1, 2], [0, 1, 2]] = self.mass[:, None]
        R = state.rotation
        blocks[:, 3:, 3:] = R @ self.inertia @ R.transpose(0, 2, 1)
        return blocks

    def forces(self, state: BodyState, blocks: Array, gravity: Array) -> Array:
        """Return weight and gyroscopic torque −ω × I ω of every body, shape (nb, 6)."""
        w = state.velocity[:, 3:]
        return np.hstack([self.mass[:, None] * gravity, -cross(w, turned(blocks[:, 3:, 3:], w))])

    def drive(self, state: BodyState, effort: Array) -> Array:
        """Return the wrenches of efforts (n_joints,) of the driven joints, shape (nb, 6)."""
        j = self._driven
        parent, R = self.tree.parent[j], state.rotation[j]
        force = turned(R, effort[:, None] * self._axes[:, :3])
        torque = turned(R, effort[:, None] * self._axes[:, 3:])
        origin = state.position[j] + turned(R, self.rows.child_anchor[j])
        wrench = np.zeros((len(self.mass), 6))
        for body, sign in ((j, 1.0), (parent, -1.0)):
            lever = cross(origin - state.position[body], force)
            np.add.at(wrench, body, sign * np.hstack([force, torque + lever]))
        return wrench

    def energy(self, state: BodyState, gravity: Array) -> float:
        """Return T + U [J]; U = 0 with the centre of mass in the origin."""
        v = state.velocity
        momentum = (self.inertia_blocks(state) @ v[:, :, None])[:, :, 0]
        return float(0.5 * (v * momentum).sum() - self.mass @ state.position @ gravity)

    def __repr__(self) -> str:
        return summary(
            self, robot=self.robot.name, bodies=len(self.names), rows=len(self.rows.joint)
        )


def _check_joints(robot: RobotModel) -> None:
    """Raise InvalidInput for a robot with properties that maximal coordinates leave out."""
    model = robot.pinocchio_model
    for what, field, values in (
        ('viscous friction', 'viscous_friction', robot.joint_damping),
        ('dry friction', 'dry_friction', robot.joint_friction),
        ('rotor inertia or armature', 'armature = rotor_inertia', np.array(model.armature)),
    ):
        some = np.flatnonzero(np.reshape(values, -1))
        if len(some):
            owner = next(
                name for name, joint in zip(model.names, model.joints, strict=True)
                if joint.idx_v <= some[0] < joint.idx_v + joint.nv
            )  # fmt: skip
            raise InvalidInput(
                f'joint {shown(str(owner))} has {what}, which maximal coordinates leave out: take '
                f'robot.with_actuators({field} = 0)'
            )
    for held, without in (
        (robot.constraints, 'with_constraints'),
        ([limit for limit in robot.position_limits if limit.holds], 'with_position_limits'),
        (robot.springs, 'with_springs'),
    ):
        if held:
            raise InvalidInput(
                f'{held[0]}: maximal coordinates know neither loops, nor springs, nor joints that '
                f'are held or follow others: take robot.{without}(())'
            )
    unknown = tree_of(model).unsupported
    if unknown:
        raise InvalidInput(
            f'joint {shown(unknown[0])}: no joint whose rows maximal coordinates know'
        )


def _position(kind: int, along: Array, turn: Array) -> Array:
    """Return the part of q of a joint whose child is at `along` (3,), turned by `turn` (3, 3)."""
    if kind == PRISMATIC:
        return along[2:]
    if kind == REVOLUTE:
        return np.array([np.arctan2(turn[1, 0], turn[0, 0])])
    if kind in (CONTINUOUS, PLANAR):
        angle = np.arctan2(turn[1, 0], turn[0, 0])
        where = along[:2] if kind == PLANAR else ()
        return np.array([*where, np.cos(angle), np.sin(angle)])
    where = along if kind == FREE_FLYER else ()
    return np.array([*where, *pin.Quaternion(turn).coeffs()])
