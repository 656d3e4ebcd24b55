"""The coordinates of a robot: q, v, and its actuated joints in them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from math import atan2
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim._types import Array, IndexArray
from contact_sim._validation import LARGEST, as_tuple, check_unique, finite_array, real_array
from contact_sim.errors import InvalidInput, UnknownName

# --- Check vectors that come from outside: lengths, finite values, unit quaternions.

UNIT_TOLERANCE = 1e-6
"""Largest distance of the norm of a quaternion from 1; within it the norm is made 1."""

UnitBlock = tuple[str, int, int]
"""A part of q that must have norm 1: its name, first index in q, length."""

_UNIT_PARTS: dict[str, UnitBlock] = {
    'JointModelFreeFlyer': ('quaternion (x, y, z, w)', 3, 4),
    'JointModelSpherical': ('quaternion (x, y, z, w)', 0, 4),
    'JointModelPlanar': ('cosine and sine', 2, 2),
    'JointModelRUBX': ('cosine and sine', 0, 2),
    'JointModelRUBY': ('cosine and sine', 0, 2),
    'JointModelRUBZ': ('cosine and sine', 0, 2),
    'JointModelRevoluteUnboundedUnaligned': ('cosine and sine', 0, 2),
}


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only copy."""
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


def wrong_shape(place: str, vector: Array, expected: tuple[int]) -> InvalidInput:
    """Return the error for a vector of another shape than expected."""
    return InvalidInput(f'{place}: shape {vector.shape}, expected ({expected[0]},)')


def checked_vector(
    place: str, values: npt.ArrayLike, length: int, names: Sequence[str] = ()
) -> Array:
    """Return `values` as a new float array of shape (length,).

    Raises:
        InvalidInput: not numbers, a wrong length, or a value that is not finite; the message says
            which one, by the name in `names` where given.
    """
    vector = np.array(real_array(place, values))
    if vector.shape != (length,):
        raise InvalidInput(f'{place}: shape {vector.shape}, expected ({length},)')
    bad = np.flatnonzero(~(np.abs(vector) <= LARGEST))
    if bad.size:
        label = f' ({names[bad[0]]})' if names else ''
        raise InvalidInput(
            f'{place}: entry {bad[0]}{label} is {vector[bad[0]]}, not finite, expected numbers up '
            f'to {LARGEST:g}'
        )
    return vector


def unit_blocks(model: pin.Model) -> tuple[UnitBlock, ...]:
    """Return the parts of q that must have norm 1."""
    return tuple(
        (f'{what} of joint {model.names[i]!r}', model.joints[i].idx_q + start, length)
        for i in range(1, model.njoints)
        for what, start, length in unit_parts(model.joints[i])
    )


def unit_parts(joint: pin.JointModel) -> tuple[UnitBlock, ...]:
    """Return the parts of a joint's own q that must have norm 1."""
    if joint.shortname() == 'JointModelComposite':
        first, parts = joint.idx_q, joint.extract().joints
        return tuple(
            (what, part.idx_q - first + start, length)
            for part in parts
            for what, start, length in unit_parts(part)
        )
    part = _UNIT_PARTS.get(joint.shortname())
    return () if part is None else (part,)


def normalised(place: str, blocks: Sequence[UnitBlock], q: Array) -> Array:
    """Normalise the unit blocks of `q` in place and return it.

    Raises:
        InvalidInput: a block whose norm is more than UNIT_TOLERANCE away from 1.
    """
    for what, start, length in blocks:
        block = q[start : start + length]
        norm = float(np.sqrt(block @ block))
        if abs(norm - 1.0) > UNIT_TOLERANCE:
            raise InvalidInput(
                f'{place}: q[{start}:{start + length}] = {block.tolist()}, the {what}, has norm '
                f'{norm:.9g}, expected 1 within {UNIT_TOLERANCE:g}'
            )
        if abs(norm - 1.0) > np.finfo(float).eps:  # leave what is exact bit for bit
            block /= norm
    return q


def neutral_configuration(model: pin.Model) -> Array:
    """Return Pinocchio's neutral q (nq,), joints moved into their position limits."""
    q: Array = pin.neutral(model)
    for i in range(1, model.njoints):
        joint = model.joints[i]
        if joint.nq == 1:
            k = joint.idx_q
            q[k] = np.clip(q[k], model.lowerPositionLimit[k], model.upperPositionLimit[k])
    return q


# --- The driven joints of a model.


def actuated_joint_names(
    model: pin.Model, wanted: Iterable[str] | None, passive: Container[str] = ()
) -> tuple[str, ...]:
    """Return the names of the driven joints in Pinocchio order.

    Args:
        model: of the robot.
        wanted: their names; None: every joint with one degree of freedom that is not `passive`.
        passive: joints that are known to have no motor.

    Raises:
        InvalidInput: a joint listed twice, or one with more than one degree of freedom.
        UnknownName: a joint that the model does not have.
    """
    if wanted is None:
        known = list(model.names)[1:]  # without the universe
        driven = [name for name in known if _degrees_of_freedom(model, name) == 1]
        return tuple(str(name) for name in driven if name not in passive)
    names = as_tuple('actuated_joints', wanted, 'a list of joint names')
    check_actuated_joints(model, names)
    return tuple(sorted(names, key=model.getJointId))


def check_actuated_joints(model: pin.Model, names: Sequence[str]) -> None:
    """Check that `names` are joints with one degree of freedom, each listed once.

    Raises:
        InvalidInput, UnknownName: see `actuated_joint_names`.
    """
    check_unique('actuated joint', names)
    known = list(model.names)[1:]
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UnknownName('actuated joint', name, known)
        freedoms = _degrees_of_freedom(model, name)
        if freedoms != 1:
            raise InvalidInput(
                f'actuated joint {name!r} has {freedoms} degrees of freedom: only joints with one '
                'can be driven, leave it out to make it passive'
            )


def _degrees_of_freedom(model: pin.Model, joint: str) -> int:
    return int(model.joints[model.getJointId(joint)].nv)


# --- Frames of a Pinocchio model by name.


def frame_called(model: pin.Model, name: str, what: str = 'frame') -> pin.Frame:
    """Return the frame of this name; the link where a joint shares it.

    Raises:
        UnknownName: there is none; `what` says of what kind in the message.
    """
    found = [frame for frame in model.frames if frame.name == name]
    if not found:
        raise UnknownName(what, name, [frame.name for frame in model.frames])
    return next((frame for frame in found if frame.type == pin.FrameType.BODY), found[0])


# --- The coordinates of a robot: q, v, and its actuated joints in them.


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
