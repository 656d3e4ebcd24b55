"""Read an SRDF: <end_effector>, <group_state>, <passive_joint>, <disable_collisions>.

<chain> tags are not read: hyq's SRDF gives one leg the foot of another.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.errors import InvalidInput, RobotDescriptionError, shown
from contact_sim.robot._coordinates import unit_parts
from contact_sim.robot._urdf import is_xml, parse_number, parse_xml, read_text

ROUNDING = 0.01
"""Largest distance of the norm of a quaternion from 1: files hold a few digits."""

BEYOND = 0.1
"""Distance beyond a position limit at which a pose is still taken [rad or m]."""
MISSPELT = 0.9
"""Similarity of names (difflib) from which one is the other, misspelt."""

ROOT_JOINT = 'root_joint'
"""Name of the floating base in Pinocchio and in SRDFs."""

JointValues = Mapping[str, tuple[float, ...]]
"""Joint name -> its values in q; one angle also for a continuous joint."""


@dataclass(frozen=True)
class Semantics:
    """The parts of an SRDF that a simulation needs."""

    end_effectors: tuple[str, ...] = ()
    """Links that end a limb."""
    poses: Mapping[str, JointValues] = field(default_factory=dict)
    """Reference poses by name."""
    disabled_collisions: frozenset[frozenset[str]] = frozenset()
    """Pairs of links that are not to be checked for collision."""
    passive_joints: frozenset[str] = frozenset()
    """Joints without a motor."""


def read_srdf(source: str | Path) -> Semantics:
    """Read an SRDF file, or SRDF text (it starts with '<').

    Raises:
        InvalidInput: neither a path nor text.
        RobotDescriptionError: no such file, not XML, or values that are not numbers.
    """
    if not isinstance(source, str | Path) or not str(source).strip():
        raise InvalidInput(f'srdf = {shown(source)}: expected a path or SRDF text')
    is_text = isinstance(source, str) and is_xml(source)
    place = 'SRDF text' if is_text else str(source)
    root = parse_xml(str(source).strip() if is_text else read_text(Path(source)), place)
    if root.tag != 'robot':
        raise RobotDescriptionError(f'{place}: the root element is <{root.tag}>, expected <robot>')
    passive = frozenset(joint.get('name', '') for joint in root.iterfind('passive_joint'))
    return Semantics(
        _end_effectors(root, place), _poses(root, place), _disabled(root, place), passive
    )


def configuration(model: pin.Model, neutral: Array, values: JointValues, place: str) -> Array:
    """Return `neutral` (nq,) with the joints in `values` set.

    Joints that the model does not have are passed over: one SRDF may serve several versions of a
    robot (solo.srdf names the hip joints that solo8 lacks).

    Raises:
        RobotDescriptionError: none of the joints exists, one that is misspelt, a joint with the
            wrong number of values or beyond its limits, or a unit quaternion, cosine and sine that
            are none.
    """
    _check_some_known(model, values, place)
    _check_spelling(model, values, place)
    q = neutral.copy()
    for name, numbers in values.items():
        if model.existJointName(name):
            joint = model.joints[model.getJointId(name)]
            part = _joint_part(joint, numbers, f'{place}: {name}')
            _check_within_limits(model, joint, part, f'{place}: {name}')
            q[joint.idx_q : joint.idx_q + joint.nq] = part
    return np.asarray(pin.normalize(model, q))


def _joint_part(joint: pin.JointModel, numbers: tuple[float, ...], where: str) -> Array:
    part = np.array(numbers)
    if joint.nq == 2 and len(part) == 1:
        return np.array([np.cos(part[0]), np.sin(part[0])])
    if len(part) != joint.nq:
        raise RobotDescriptionError(f'{where} has {len(part)} values, expected {joint.nq}')
    for what, start, length in unit_parts(joint):
        norm = float(np.linalg.norm(part[start : start + length]))
        if abs(norm - 1.0) > ROUNDING:
            raise RobotDescriptionError(f'{where}: the {what} has norm {norm:.4g}, expected 1')
    return part


def _check_within_limits(model: pin.Model, joint: pin.JointModel, part: Array, where: str) -> None:
    """Refuse an angle in degrees, say; a pose may be as far beyond a limit as files round."""
    if joint.nq != 1:
        return
    lower, upper = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
    if lower < upper and not lower - BEYOND <= part[0] <= upper + BEYOND:
        raise RobotDescriptionError(
            f'{where} = {part[0]:g}, but the joint has the limits {lower:g} and {upper:g}'
        )


def _check_spelling(model: pin.Model, values: JointValues, place: str) -> None:
    """Refuse a joint that does not exist if one that nearly has its name is left out."""
    left_out = [str(name) for name in list(model.names)[1:] if name not in values]
    for name in values:
        if name != ROOT_JOINT and not model.existJointName(name):
            near = difflib.get_close_matches(name, left_out, n=1, cutoff=MISSPELT)
            if near:
                raise RobotDescriptionError(
                    f'{place}: the robot has no joint {shown(name)}; did you mean {near[0]!r}?'
                )


def _check_some_known(model: pin.Model, values: JointValues, place: str) -> None:
    joints = [name for name in values if name != ROOT_JOINT]
    if joints and not any(model.existJointName(name) for name in joints):
        known = ', '.join(list(model.names)[1:])
        raise RobotDescriptionError(
            f'{place}: the robot has none of its joints {", ".join(joints)}; known: {known}'
        )


def _end_effectors(root: Element, place: str) -> tuple[str, ...]:
    links = []
    for effector in root.iterfind('end_effector'):
        link = effector.get('parent_link')
        if not link:
            raise RobotDescriptionError(
                f'{place}: end_effector {effector.get("name")!r} has no parent_link'
            )
        links.append(link)
    return tuple(dict.fromkeys(links))  # two groups may end in one link


def _disabled(root: Element, place: str) -> frozenset[frozenset[str]]:
    pairs = set()
    for one in root.iterfind('disable_collisions'):
        links = one.get('link1'), one.get('link2')
        if not all(links):
            raise RobotDescriptionError(f'{place}: a disable_collisions without link1 and link2')
        pairs.add(frozenset(str(link) for link in links))
    return frozenset(pairs)


def _poses(root: Element, place: str) -> Mapping[str, JointValues]:
    """Return the poses; a name given to several groups is one pose of all their joints."""
    poses: dict[str, dict[str, tuple[float, ...]]] = {}
    for state in root.iterfind('group_state'):
        name = state.get('name')
        if not name:
            raise RobotDescriptionError(f'{place}: a group_state has no name')
        poses.setdefault(name, {}).update(_values(state, place))
    return poses


def _values(state: Element, place: str) -> JointValues:
    where = f'{place}: group_state {state.get("name")!r}'
    return {
        joint.get('name', ''): _numbers(joint.get('value', ''), f'{where}, {joint.get("name")!r}')
        for joint in state.iterfind('joint')
    }


def _numbers(text: str, where: str) -> tuple[float, ...]:
    values = tuple(parse_number(part) for part in text.split())
    if not all(map(math.isfinite, values)):
        raise RobotDescriptionError(f'{where}: value = {shown(text)}, expected numbers')
    return values
