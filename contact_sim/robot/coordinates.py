"""The coordinates of a robot: q, v, and its actuated joints in them."""

from __future__ import annotations

from functools import cached_property
from math import atan2
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.numbers import finite_array
from contact_sim.robot.configuration import (
    checked_vector,
    frozen,
    normalised,
    unit_blocks,
    wrong_shape,
)
from contact_sim.robot.contact_point import Array

IndexArray = npt.NDArray[np.intp]


class Coordinates:
    """Sizes of q and v, and positions, velocities and limits of the actuated joints.

    What has these coordinates says `name`, `pinocchio_model` and `joint_names`.
    """

    name: str
    pinocchio_model: pin.Model
    joint_names: tuple[str, ...]

    @property
    def nq(self) -> int:
        """Length of q."""
        return int(self.pinocchio_model.nq)

    @property
    def nv(self) -> int:
        """Length of v."""
        return int(self.pinocchio_model.nv)

    @property
    def n_joints(self) -> int:
        """Number of actuated joints."""
        return len(self.joint_names)

    @cached_property
    def passive_joint_names(self) -> tuple[str, ...]:
        """Joints with one degree of freedom that are not actuated, in Pinocchio order."""
        joints = list(zip(self.pinocchio_model.names, self.pinocchio_model.joints, strict=True))
        single = [str(name) for name, joint in joints[1:] if joint.nv == 1]
        return tuple(name for name in single if name not in self.joint_names)

    @cached_property
    def passive_joints(self) -> Coordinates:
        """The coordinates of the joints in `passive_joint_names`, as of actuated ones."""
        return _Joints(self.name, self.pinocchio_model, self.passive_joint_names)

    @cached_property
    def joint_velocity_index(self) -> IndexArray:
        """Index into v of each actuated joint, shape (n_joints,)."""
        return frozen(np.array([joint.idx_v for joint in self._joints], dtype=np.intp))

    @cached_property
    def selection_matrix(self) -> Array:
        """Selection matrix S (n_joints, nv): joint velocities = S v, force = S.T @ effort."""
        selection = np.zeros((self.n_joints, self.nv))
        selection[np.arange(self.n_joints), self.joint_velocity_index] = 1.0
        return frozen(selection)

    @cached_property
    def continuous_joints(self) -> npt.NDArray[np.bool_]:
        """Mask of the actuated joints that turn without end, angles in (-pi, pi]; (n_joints,)."""
        return frozen(np.array([joint.nq == 2 for joint in self._joints], dtype=bool))

    @cached_property
    def effort_limit(self) -> Array:
        """Largest effort of each actuated joint [N m or N], shape (n_joints,)."""
        return frozen(self.pinocchio_model.effortLimit[self.joint_velocity_index])

    @cached_property
    def velocity_limit(self) -> Array:
        """Largest speed of each actuated joint [rad/s or m/s], shape (n_joints,)."""
        return frozen(self.pinocchio_model.velocityLimit[self.joint_velocity_index])

    @cached_property
    def lower_position_limit(self) -> Array:
        """Smallest position [rad or m], -inf for continuous joints, shape (n_joints,)."""
        limit = self.pinocchio_model.lowerPositionLimit[self._joint_position_index]
        return frozen(np.where(self.continuous_joints, -np.inf, limit))

    @cached_property
    def upper_position_limit(self) -> Array:
        """Largest position [rad or m], inf for continuous joints, shape (n_joints,)."""
        limit = self.pinocchio_model.upperPositionLimit[self._joint_position_index]
        return frozen(np.where(self.continuous_joints, np.inf, limit))

    @cached_property
    def joint_damping(self) -> Array:
        """Viscous damping of every velocity coordinate [N m s/rad], shape (nv,)."""
        return frozen(self.pinocchio_model.damping)

    @cached_property
    def joint_friction(self) -> Array:
        """Dry friction of every velocity coordinate [N m], shape (nv,)."""
        return frozen(self.pinocchio_model.friction)

    def joint_positions(self, q: npt.ArrayLike) -> Array:
        """Return the positions of the actuated joints at `q` (nq,) [rad or m], shape (n_joints,).

        The angle of a continuous joint lies in (-pi, pi].

        Raises:
            InvalidInput: q has the wrong length.
        """
        q = finite_array('q', q)
        if q.shape != self._q_shape:
            raise wrong_shape(f'configuration q of robot {self.name}', q, self._q_shape)
        positions: Array = q[self._joint_position_index]
        for i, cosine, sine in self._continuous_place:
            positions[i] = atan2(q[sine], q[cosine])
        return positions

    def joint_velocities(self, v: npt.ArrayLike) -> Array:
        """Return the velocities of the actuated joints in `v` (nv,) [rad/s or m/s], (n_joints,).

        Raises:
            InvalidInput: v has the wrong length.
        """
        v = finite_array('v', v)
        if v.shape != self._v_shape:
            raise wrong_shape(f'velocity v of robot {self.name}', v, self._v_shape)
        return np.asarray(v[self.joint_velocity_index])

    def with_joint_positions(self, q: npt.ArrayLike, positions: npt.ArrayLike) -> Array:
        """Return a copy of `q` (nq,) whose actuated joints are at `positions` (n_joints,).

        Raises:
            InvalidInput: q or positions of the wrong length, or not finite.
        """
        place = f'joint positions of robot {self.name}'
        angles = checked_vector(place, positions, self.n_joints, self.joint_names)
        moved = checked_vector(f'configuration q of robot {self.name}', q, self.nq)
        moved[self._joint_position_index] = angles
        for i, cosine, sine in self._continuous_place:
            moved[cosine], moved[sine] = np.cos(angles[i]), np.sin(angles[i])
        return moved

    def checked_configuration(self, q: npt.ArrayLike) -> Array:
        """Return `q` as a new float array of shape (nq,), its quaternions exactly unit.

        Raises:
            InvalidInput: a wrong length, a value that is not finite, or a quaternion (or the
                cosine and sine of a continuous joint) whose norm is more than 1e-6 away from 1.
        """
        place = f'configuration q of robot {self.name}'
        return normalised(place, self._unit_blocks, checked_vector(place, q, self.nq))

    def checked_velocity(self, v: npt.ArrayLike) -> Array:
        """Return `v` as a new float array of shape (nv,).

        Raises:
            InvalidInput: a wrong length or a value that is not finite.
        """
        return checked_vector(f'velocity v of robot {self.name}', v, self.nv)

    @property  # not cached: Pinocchio's joints cannot be pickled
    def _joints(self) -> tuple[Any, ...]:
        model = self.pinocchio_model
        return tuple(model.joints[model.getJointId(name)] for name in self.joint_names)

    @cached_property
    def _joint_position_index(self) -> IndexArray:
        return np.array([joint.idx_q for joint in self._joints], dtype=np.intp)

    @cached_property
    def _continuous_place(self) -> tuple[tuple[int, int, int], ...]:
        """Place among the actuated joints, and of cosine and sine in q, of the continuous ones."""
        places = self._joint_position_index.tolist()
        chosen = np.flatnonzero(self.continuous_joints).tolist()
        return tuple((i, places[i], places[i] + 1) for i in chosen)

    @cached_property
    def _q_shape(self) -> tuple[int]:
        return (self.nq,)

    @cached_property
    def _v_shape(self) -> tuple[int]:
        return (self.nv,)

    @cached_property
    def _unit_blocks(self) -> tuple[tuple[str, int, int], ...]:
        return unit_blocks(self.pinocchio_model)


class _Joints(Coordinates):
    """Some joints of a robot."""

    def __init__(self, name: str, model: pin.Model, joint_names: tuple[str, ...]) -> None:
        self.name, self.pinocchio_model, self.joint_names = name, model, joint_names
