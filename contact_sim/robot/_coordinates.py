"""Configurations, actuated joints and frames of a Pinocchio model: checks and look-ups."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import LARGEST, as_tuple, check_unique, real_array
from contact_sim.errors import InvalidInput, UnknownName

# ---------------------------------------------- vectors: lengths, finite values, unit quaternions

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


# ----------------------------------------------------------------------------- actuated joints


def actuated_joint_names(
    model: pin.Model, names: Iterable[str] | None, passive: Container[str] = ()
) -> tuple[str, ...]:
    """Return the names of the driven joints in Pinocchio order.

    Args:
        model: of the robot.
        names: of the driven joints; None: all with one degree of freedom that are not `passive`.
        passive: joints that are known to have no motor.

    Raises:
        InvalidInput: a joint listed twice, or one with more than one degree of freedom.
        UnknownName: a joint that the model does not have.
    """
    if names is None:
        known = list(model.names)[1:]  # without the universe
        driven = [name for name in known if _degrees_of_freedom(model, name) == 1]
        return tuple(str(name) for name in driven if name not in passive)
    chosen = as_tuple('actuated_joints', names, 'a list of joint names')
    check_actuated_joints(model, chosen)
    return tuple(sorted(chosen, key=model.getJointId))


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


# -------------------------------------------------------------------------------------- frames


def find_frame(model: pin.Model, name: str, what: str = 'frame') -> pin.Frame:
    """Return the frame of this name; the link where a joint shares it.

    Raises:
        UnknownName: there is none; the message calls it `what`.
    """
    frames = [frame for frame in model.frames if frame.name == name]
    if not frames:
        raise UnknownName(what, name, [frame.name for frame in model.frames])
    return next((frame for frame in frames if frame.type == pin.FrameType.BODY), frames[0])
