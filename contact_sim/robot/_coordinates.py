"""Coordinates of a Pinocchio model: configurations, actuated joints, frames, position limits."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import (
    LARGEST,
    as_tuple,
    check_unique,
    checked_fields,
    is_finite,
    real_array,
)
from contact_sim.errors import InvalidInput, UnknownName, of_type

# ---------------------------------------------- vectors: lengths, finite values, unit quaternions

UNIT_TOLERANCE = 1e-6
"""Largest distance of the norm of a quaternion from 1; within it the norm is made 1."""
EPSILON = float(np.finfo(float).eps)

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


def checked_vector(
    place: str, values: npt.ArrayLike, length: int, names: Sequence[str] = ()
) -> Array:
    """Return `values` as a new float array (length,); an error says which entry is wrong."""
    vector = np.array(real_array(place, values))
    if vector.shape != (length,):
        raise InvalidInput(f'{place}: shape {vector.shape}, expected ({length},)')
    if not is_finite(vector):
        bad = np.flatnonzero(~(np.abs(vector) <= LARGEST))
        label = f' ({names[bad[0]]})' if names else ''
        raise InvalidInput(
            f'{place}: entry {bad[0]}{label} is {vector[bad[0]]}, not finite, expected numbers up '
            f'to {LARGEST:g}'
        )
    return vector


def checked_rows(place: str, values: npt.ArrayLike, length: int) -> Array:
    """Return `values` as a new float array (n, length), each row as `checked_vector`."""
    rows = np.array(real_array(place, values))
    if rows.ndim != 2 or rows.shape[1] != length:
        raise InvalidInput(f'{place}: shape {rows.shape}, expected (n, {length})')
    if not is_finite(rows.ravel()):
        for k, row in enumerate(rows):
            checked_vector(f'{place}, row {k}', row, length)
    return rows


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
    """Normalise the unit blocks of `q` in place and return it; refuse one far from norm 1."""
    for what, start, length in blocks:
        block = q[start : start + length]
        norm = math.sqrt(block.dot(block))
        if abs(norm - 1.0) > UNIT_TOLERANCE:
            raise InvalidInput(
                f'{place}: q[{start}:{start + length}] = {block.tolist()}, the {what}, has norm '
                f'{norm:.9g}, expected 1 within {UNIT_TOLERANCE:g}'
            )
        if abs(norm - 1.0) > EPSILON:  # leave what is exact bit for bit
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


def moving_dofs(model: pin.Model, joint: int) -> Array:
    """Return 1 where a dof moves the body of a joint and 0 elsewhere, (nv,)."""
    moved = np.zeros(model.nv)
    for j in list(model.supports[joint])[1:]:
        moved[model.joints[j].idx_v : model.joints[j].idx_v + model.joints[j].nv] = 1.0
    return moved


# ----------------------------------------------------------------------------- actuated joints


def actuated_joint_names(
    model: pin.Model, names: Iterable[str] | None, passive: Container[str] = ()
) -> tuple[str, ...]:
    """Return the driven joints in Pinocchio order; None: all with one dof but the `passive`."""
    if names is None:
        joints = list(zip(model.names, model.joints, strict=True))[1:]  # without the universe
        driven = (str(name) for name, joint in joints if joint.nv == 1)
        return tuple(name for name in driven if name not in passive)
    chosen = as_tuple('actuated_joints', names, 'a list of joint names')
    check_actuated_joints(model, chosen)
    return tuple(sorted(chosen, key=model.getJointId))


def check_actuated_joints(model: pin.Model, names: Sequence[str]) -> None:
    """Check that `names` are joints with one degree of freedom, each listed once."""
    check_unique('actuated joint', names)
    known = list(model.names)[1:]
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UnknownName('actuated joint', name, known)
        freedoms = model.joints[model.getJointId(name)].nv
        if freedoms != 1:
            raise InvalidInput(
                f'actuated joint {name!r} has {freedoms} degrees of freedom: only joints with one '
                'can be driven, leave it out to make it passive'
            )


# -------------------------------------------------------------------------------------- frames


def find_frame(model: pin.Model, name: str, what: str = 'frame') -> pin.Frame:
    """Return the frame of this name, the link where a joint shares it; errors call it `what`."""
    frames = [frame for frame in model.frames if frame.name == name]
    if not frames:
        raise UnknownName(what, name, [frame.name for frame in model.frames])
    return next((frame for frame in frames if frame.type == pin.FrameType.BODY), frames[0])


# ----------------------------------------------------------------------------- position limits
#
#     lower ≤ Σ_i share_i · position_i ≤ upper
#
# A joint limit has one share, 1. In the step each is one interval row of the contact problem
# (theory 4.3). A sum with equal limits is a constraint, `JointCoupling`.

MOST_JOINTS = 2
UNBOUNDED = 1e300
"""From here on a limit is none: Pinocchio's own models have the largest float there."""


@checked_fields
@dataclass(frozen=True)
class PositionLimit:
    """Bounds of the position of a joint, or of a weighted sum of two.

    Raises:
        InvalidInput: not one or two joints, twice the same, shares of another number, zero or not
            finite, bounds that are no numbers or leave no position, restitution outside [0, 1].
    """

    joints: tuple[str, ...]
    """Names of one or two joints with one degree of freedom."""
    lower: float
    """Least value [rad or m]; −inf for none."""
    upper: float
    """Largest value [rad or m]; inf for none. Equal to `lower`: the joint is locked."""
    shares: tuple[float, ...] = (1.0,)
    """Share of each joint in the value [-]."""
    restitution: float = 0.0
    """Newton's e of a joint that hits its limit [-]."""

    def __post_init__(self) -> None:
        where = f'PositionLimit of {", ".join(self.joints) or "no joint"}'
        if not 1 <= len(self.joints) <= MOST_JOINTS or len(set(self.joints)) < len(self.joints):
            raise InvalidInput(f'{where}: expected one joint, or two different ones')
        if len(self.shares) != len(self.joints):
            raise InvalidInput(f'{where}: {len(self.shares)} shares for {len(self.joints)} joints')
        if not all(np.isfinite(share) and share != 0.0 for share in self.shares):
            raise InvalidInput(f'{where}: shares = {self.shares}: expected finite, not 0')
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise InvalidInput(
                f'{where}: lower = {self.lower}, upper = {self.upper}: expected lower <= upper'
            )
        if self.holds and len(self.joints) > 1:
            raise InvalidInput(
                f'{where}: lower = upper = {self.lower}: expected room; JointCoupling of '
                'contact_sim.constraints holds one joint to another'
            )
        if not 0.0 <= self.restitution <= 1.0:
            raise InvalidInput(
                f'{where}: restitution = {self.restitution}: expected a number in [0, 1]'
            )

    @property
    def holds(self) -> bool:
        """Whether the joint is locked."""
        return self.lower == self.upper

    def __str__(self) -> str:
        value = ' + '.join(
            joint if share == 1.0 else f'{share:g} * {joint}'
            for joint, share in zip(self.joints, self.shares, strict=True)
        )
        if self.holds:
            return f'{value} = {self.lower:g}'
        return f'{self.lower:g} <= {value} <= {self.upper:g}'


def joint_limits(model: pin.Model, restitution: float = 0.0) -> tuple[PositionLimit, ...]:
    """Return the position limits of `model`, of the joints with one coordinate that have any."""
    limits = []
    for name, joint in list(zip(model.names, model.joints, strict=True))[1:]:
        if joint.nq != 1 or joint.nv != 1:
            continue
        bounds = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        lower, upper = (
            float(bound) if abs(bound) < UNBOUNDED else sign * np.inf
            for bound, sign in zip(bounds, (-1.0, 1.0), strict=True)
        )
        # lower > upper is refused later, with all other numbers of the model
        if lower <= upper and (np.isfinite(lower) or np.isfinite(upper)):
            limits.append(PositionLimit((str(name),), lower, upper, restitution=restitution))
    return tuple(limits)


def described_limits(model: pin.Model, robot: Element) -> tuple[PositionLimit, ...]:
    """Return the position limits of a <robot>; a <limit> without lower and upper has none."""
    unlimited = {
        joint.get('name')
        for joint in robot.iterfind('joint')
        if (limit := joint.find('limit')) is not None
        and limit.get('lower') is None
        and limit.get('upper') is None
    }
    return tuple(limit for limit in joint_limits(model) if limit.joints[0] not in unlimited)


def with_locked_joints(model: pin.Model, limits: Sequence[PositionLimit], q: Array) -> Array:
    """Return a copy of `q` (nq,) with the joints of equal limits at these."""
    q = q.copy()
    for limit in limits:
        if limit.holds:
            joint = model.joints[model.getJointId(limit.joints[0])]
            q[joint.idx_q] = limit.lower / limit.shares[0]
    return q


def check_position_limits(model: pin.Model, limits: tuple[PositionLimit, ...]) -> None:
    """Check that the joints of `limits` exist and have one coordinate each."""
    known = list(model.names)[1:]
    for limit in limits:
        for name in of_type('position limit', limit, PositionLimit).joints:
            if name not in known:
                raise UnknownName('joint of a position limit:', name, known)
            joint = model.joints[model.getJointId(name)]
            if joint.nq != 1 or joint.nv != 1:
                raise InvalidInput(
                    f'position limit of joint {name!r}: it has {joint.nq} coordinates, expected '
                    'a joint with one'
                )


# ------------------------------------------------------------------------------ springs of joints


@checked_fields
@dataclass(frozen=True)
class JointSpring:
    """A spring beside the motor of a joint: its effort is −stiffness · (position − rest).

    Steps take its force at their end, which is stable at every stiffness; `todorov` takes it at
    the start, as MuJoCo does, and `hybrid` integrates it.

    Raises:
        InvalidInput: a negative stiffness, numbers that are not finite.
    """

    joint: str
    """Name of a joint with one coordinate."""
    stiffness: float
    """[N m/rad or N/m]."""
    rest: float = 0.0
    """Position without effort [rad or m]."""

    def __post_init__(self) -> None:
        where = f'JointSpring of {self.joint}'
        if not 0.0 <= self.stiffness < np.inf:
            raise InvalidInput(
                f'{where}: stiffness = {self.stiffness}: expected a finite number >= 0'
            )
        if not np.isfinite(self.rest):
            raise InvalidInput(f'{where}: rest = {self.rest}: expected a finite number')


def check_springs(model: pin.Model, springs: tuple[JointSpring, ...]) -> None:
    """Check that the joints of `springs` exist, each once, and have one coordinate."""
    known = list(model.names)[1:]
    check_unique('joint with a spring', [spring.joint for spring in springs])
    for spring in springs:
        if spring.joint not in known:
            raise UnknownName('joint of a spring:', spring.joint, known)
        joint = model.joints[model.getJointId(spring.joint)]
        if joint.nq != 1 or joint.nv != 1:
            raise InvalidInput(
                f'spring of joint {spring.joint!r}: it has {joint.nq} coordinates, expected a '
                'joint with one (a continuous joint: make it revolute, with limits)'
            )
