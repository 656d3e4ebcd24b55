"""Compare the model that Pinocchio made of a URDF with the URDF, number by number.

What is read here is read a second time and independently: a parser that passes over an element,
or understands it otherwise, is found out before anything moves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.numbers import number, vector
from contact_sim.robot.rewritten import LIMITED_TYPES

Array = NDArray[np.float64]
TOLERANCE = 1e-9
"""Largest difference, relative to the numbers compared; lengths below 1 m: in metres."""
_PROBE = 0.3
"""Position at which the motion of a joint is compared [rad or m]."""


@dataclass
class _Body:
    """All links that one joint moves: those behind fixed joints are one body with it."""

    joint: Element | None
    """The joint that moves it; None for the body of the root link."""
    parent: str
    """Name of the joint that moves the parent's body; '' for that of the root link."""
    placement: Array
    """Of the joint in the parent's body, homogeneous (4, 4)."""
    links: list[str] = field(default_factory=list)
    inertia: Array = field(default_factory=lambda: np.zeros((6, 6)))
    """Spatial inertia about the joint's origin, in its axes (6, 6)."""
    size: Array = field(default_factory=lambda: np.zeros((6, 6)))
    """Sum of the absolute values of those of its links: what rounding is measured by."""


def check_agreement(model: pin.Model, robot: Element, floating_base: bool, place: str) -> None:
    """Check masses, centres, inertias, placements, axes and limits of `model` against a URDF.

    Args:
        model: what Pinocchio made of it.
        robot: the <robot> element, checked.
        floating_base: whether the root link was given a joint, the first, to move freely.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: the first number in which they differ.
    """
    for body in _bodies(robot, place):
        if body.joint is None:
            index = int(floating_base)
        else:
            name = body.joint.get('name', '')
            if not model.existJointName(name):
                raise RobotDescriptionError(f'{place}: joint {name!r}: Pinocchio left it out')
            index = model.getJointId(name)
            _check_placement(model, index, body, place)
            if body.joint.get('type') in LIMITED_TYPES:
                _check_axis(model.joints[index], body.joint, place)
                _check_numbers(model, model.joints[index], body.joint, place)
        _check_inertia(model.inertias[index], body, place)


def _bodies(robot: Element, place: str) -> Iterator[_Body]:
    """Yield the bodies of a URDF, the root's first."""
    links = {link.get('name', ''): link for link in robot.iterfind('link')}
    below: dict[str, list[tuple[str, Element]]] = {name: [] for name in links}
    roots = set(links)
    for joint in robot.iterfind('joint'):
        parent, child = (joint.find(role).get('link', '') for role in ('parent', 'child'))  # type: ignore[union-attr]
        below[parent].append((child, joint))
        roots.discard(child)
    to_visit = [(roots.pop(), _Body(None, '', np.eye(4)))]
    while to_visit:
        first, body = to_visit.pop()
        fixed = [(first, np.eye(4))]
        name = body.joint.get('name', '') if body.joint is not None else ''
        while fixed:
            link, at = fixed.pop()
            body.links.append(link)
            inertia = _link_inertia(links[link], at, f'{place}: link {link!r}')
            body.inertia += inertia
            body.size += np.abs(inertia)
            for child, joint in below[link]:
                placed = at @ _origin(joint, f'{place}: joint {joint.get("name")!r}')
                if joint.get('type') == 'fixed':
                    fixed.append((child, placed))
                else:
                    to_visit.append((child, _Body(joint, name, placed)))
        yield body


def _link_inertia(link: Element, at: Array, where: str) -> Array:
    """Return the spatial inertia (6, 6) of a link placed at `at`, about the origin of its body."""
    inertial = link.find('inertial')
    if inertial is None:
        return np.zeros((6, 6))
    mass, said = inertial.find('mass'), inertial.find('inertia')
    assert mass is not None  # the description was checked
    assert said is not None
    m = number(mass, 'value', where)
    xx, xy, xz, yy, yz, zz = (
        number(said, key, where) for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    )
    placed = at @ _origin(inertial, where)
    turn, across = placed[:3, :3], _cross(placed[:3, 3])
    own = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    return np.block([[m * np.eye(3), -m * across], [m * across, own - m * across @ across]])


def _origin(element: Element, where: str) -> Array:
    origin = element.find('origin')
    roll, pitch, yaw = vector(origin, 'rpy', '0 0 0', f'{where}: <origin>')
    placed = np.eye(4)
    placed[:3, :3] = _about(2, yaw) @ _about(1, pitch) @ _about(0, roll)
    placed[:3, 3] = vector(origin, 'xyz', '0 0 0', f'{where}: <origin>')
    return placed


def _about(axis: int, angle: float) -> Array:
    turn, (i, j) = np.eye(3), ((axis + 1) % 3, (axis + 2) % 3)
    turn[i, i] = turn[j, j] = np.cos(angle)
    turn[j, i] = np.sin(angle)
    turn[i, j] = -turn[j, i]
    return turn


def _cross(x: Array) -> Array:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def _check_placement(model: pin.Model, index: int, body: _Body, place: str) -> None:
    assert body.joint is not None  # the caller looked
    where = f'{place}: joint {body.joint.get("name")!r}'
    parent = model.names[model.parents[index]]
    if body.parent and parent != body.parent:
        raise RobotDescriptionError(f'{where}: Pinocchio hangs it on joint {parent!r}')
    found = np.asarray(model.jointPlacements[index].homogeneous)
    if not _agree(found[:3, :3], body.placement[:3, :3], 1.0) or not _agree(
        found[:3, 3], body.placement[:3, 3], max(1.0, _largest(body.placement[:3, 3]))
    ):
        raise RobotDescriptionError(
            f'{where}: Pinocchio places it at {found[:3].tolist()}, the file at '
            f'{body.placement[:3].tolist()}'
        )


def _check_axis(joint: Any, said: Element, place: str) -> None:
    """Compare where a joint moves at a position of 0.3 with Rodrigues' formula."""
    where = f'{place}: joint {said.get("name")!r}'
    axis = np.array(vector(said.find('axis'), 'xyz', '1 0 0', f'{where}: <axis>'))
    axis /= np.hypot(np.hypot(axis[0], axis[1]), axis[2])
    data = joint.createData()
    q = np.zeros(joint.idx_q + joint.nq)
    q[joint.idx_q :] = [np.cos(_PROBE), np.sin(_PROBE)] if joint.nq == 2 else _PROBE
    joint.calc(data, q)
    turn, shift = np.eye(3), np.zeros(3)
    if said.get('type') == 'prismatic':
        shift = _PROBE * axis
    else:
        across = _cross(axis)
        turn += np.sin(_PROBE) * across + (1.0 - np.cos(_PROBE)) * across @ across
    if not (_agree(data.M.rotation, turn, 1.0) and _agree(data.M.translation, shift, 1.0)):
        raise RobotDescriptionError(
            f'{where}: <axis> {axis.tolist()}: Pinocchio moves it about or along another one'
        )


def _check_numbers(model: pin.Model, joint: Any, said: Element, place: str) -> None:
    """Compare the limits of position, effort and speed, damping and dry friction."""
    where = f'{place}: joint {said.get("name")!r}'
    q, v = joint.idx_q, joint.idx_v
    limit = {'effort': model.effortLimit[v], 'velocity': model.velocityLimit[v]}
    if joint.nq == 1:
        limit['lower'], limit['upper'] = model.lowerPositionLimit[q], model.upperPositionLimit[q]
    dynamics = {'damping': model.damping[v], 'friction': model.friction[v]}
    for tag, values in (('limit', limit), ('dynamics', dynamics)):
        element = said.find(tag)
        if element is None:
            continue
        for key, found in values.items():
            expected = number(element, key, f'{where}: <{tag}>', infinite=True)
            expected = float(np.clip(expected, -sys.float_info.max, sys.float_info.max))
            if found != expected:
                raise RobotDescriptionError(
                    f'{where}: <{tag}> {key} = {expected}, but Pinocchio reads {found}'
                )


def _check_inertia(inertia: pin.Inertia, body: _Body, place: str) -> None:
    found = np.asarray(inertia.matrix())
    blocks = [(slice(0, 3), slice(0, 3)), (slice(3, 6), slice(0, 3)), (slice(3, 6), slice(3, 6))]
    if all(_agree(found[b], body.inertia[b], _largest(body.size[b])) for b in blocks):
        return
    mass = float(body.inertia[0, 0])
    raise RobotDescriptionError(
        f'{place}: links {", ".join(body.links)}: mass {mass} kg, moments about the joint '
        f'{np.diagonal(body.inertia)[3:].tolist()} kg m^2, but Pinocchio reads '
        f'{float(inertia.mass)} kg and {np.diagonal(found)[3:].tolist()} kg m^2'
    )


def _agree(found: Array, expected: Array, scale: float) -> bool:
    return bool(np.all(np.abs(found - expected) <= TOLERANCE * scale))


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values)))
