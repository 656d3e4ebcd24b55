"""A robot as free bodies and joint rows, and its coordinates on the way there and back.

A joint of a robot with several axes in a row (universal) is a chain of bodies without mass
(dynamics/tree.py): the rows hold them.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.dynamics.kinematics import place
from contact_sim.dynamics.tree import (
    CONTINUOUS,
    FREE_FLYER,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    tree_of,
)
from contact_sim.errors import InvalidInput, shown
from contact_sim.maximal.bodies import Array, BodyState, cross, turned
from contact_sim.maximal.joints import coordinates_of, joint_rows, normal_of
from contact_sim.maximal.rows import Index
from contact_sim.robot.model import RobotModel

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
        self.names = _joint_of_bodies(robot, tree.body_of_joint)
        """Joint that carries each body, length nb; the first is the universe."""
        to_joint = tree.placement[:, 9:12] - tree.body[tree.parent, 1:4]
        to_joint[0] = 0.0
        self._neutral = self._placed(pin.neutral(robot.pinocchio_model), None).rotation
        self.rows = joint_rows(
            tree, self._neutral, (to_joint, -tree.body[:, 1:4]), plane, self.names
        )
        joints = [robot.pinocchio_model.getJointId(name) for name in robot.joint_names]
        self._driven: Index = tree.body_of_joint[joints].astype(np.intp)
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
            self._check_plane(state, normal)
        return state

    def _placed(self, q: Array, v: Array | None) -> BodyState:
        """Return the bodies at q and v, wherever they are."""
        tree, nb, nv = self.tree, len(self.tree.kind), self.robot.nv
        origin, pose, columns = np.zeros(3), np.zeros((nb, 12)), np.zeros((nv, 6))
        place(
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

    def _check_plane(self, state: BodyState, normal: Array) -> None:
        """Refuse bodies that are turned out of the plane or move out of it."""
        turn = state.rotation @ self._neutral.transpose(0, 2, 1)
        out = np.setdiff1d(range(6), self.coordinates)
        if (
            np.abs(turn @ normal - normal).max() > OUT_OF_PLANE
            or np.abs(state.velocity[:, out]).max() > OUT_OF_PLANE
        ):
            raise InvalidInput(f'q and v: bodies leave the plane {self.plane}')

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
        """Return what efforts (n_joints,) of the driven joints exert on the bodies, (nb, 6)."""
        j = self._driven
        parent, R = self.tree.parent[j], state.rotation[j]
        force = turned(R, effort[:, None] * self._axes[:, :3])
        torque = turned(R, effort[:, None] * self._axes[:, 3:])
        origin = state.position[j] + turned(R, self.rows.child_anchor[j])
        found = np.zeros((len(self.mass), 6))
        for body, sign in ((j, 1.0), (parent, -1.0)):
            lever = cross(origin - state.position[body], force)
            np.add.at(found, body, sign * np.hstack([force, torque + lever]))
        return found

    def energy(self, state: BodyState, gravity: Array) -> float:
        """Return T + U [J]; U = 0 with the centre of mass in the origin."""
        v = state.velocity
        momentum = (self.inertia_blocks(state) @ v[:, :, None])[:, :, 0]
        return float(0.5 * (v * momentum).sum() - self.mass @ state.position @ gravity)


def _check_joints(robot: RobotModel) -> None:
    """Refuse what acts in the joints of a robot and has no place here."""
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
    ):
        if held:
            raise InvalidInput(
                f'{held[0]}: maximal coordinates know neither loops nor joints that are held or '
                f'follow others: take robot.{without}(())'
            )
    unknown = tree_of(model).unsupported
    if unknown:
        raise InvalidInput(
            f'joint {shown(unknown[0])}: no joint whose rows maximal coordinates know'
        )


def _joint_of_bodies(robot: RobotModel, body_of_joint: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the name of the joint that carries each body; bodies of a chain share it."""
    names = [str(name) for name in robot.pinocchio_model.names]
    bodies = range(int(body_of_joint[-1]) + 1)
    return tuple(names[int(np.searchsorted(body_of_joint, body))] for body in bodies)


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
