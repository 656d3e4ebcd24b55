"""Refuse a URDF that cannot be a robot, with a message that names the link or joint.

Pinocchio accepts zero and negative masses silently, and reports a broken tree without saying
where. Link inertias must be positive semi-definite; the triangle inequality of principal moments
is not asked for, because robots in daily use (hyq's foot links) break it in negligible links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from contact_sim.errors import RobotDescriptionError

_JOINT_TYPES = ('fixed', 'revolute', 'continuous', 'prismatic', 'planar', 'floating')
_LIMITED_TYPES = ('revolute', 'prismatic')


def check_description(robot: Element, place: str) -> None:
    """Check the tree, the limits and the masses of a URDF.

    Args:
        robot: the <robot> element.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: the first thing that is wrong.
    """
    if robot.tag != 'robot':
        raise RobotDescriptionError(
            f'{place}: the root element is <{robot.tag}>, expected <robot>'
        )
    links, joints = robot.findall('link'), robot.findall('joint')
    if not links:
        raise RobotDescriptionError(f'{place}: no <link> in <robot>')
    _check_names('link', links, place)
    _check_names('joint', joints, place)
    for joint in joints:
        _check_joint(joint, place)
    _check_tree(links, joints, place)
    for link in links:
        _check_inertial(link, place)
    _check_moving_masses(links, joints, place)


def link_mass(link: Element) -> float:
    """Return the mass of a link [kg], 0 without <inertial>."""
    mass = link.find('inertial/mass')
    return float(mass.get('value', 0.0)) if mass is not None else 0.0


def child_of(joint: Element) -> str:
    """Return the name of the link that `joint` carries."""
    child = joint.find('child')
    return child.get('link', '') if child is not None else ''


def parent_of(joint: Element) -> str:
    """Return the name of the link that `joint` is fixed to."""
    parent = joint.find('parent')
    return parent.get('link', '') if parent is not None else ''


def _check_names(kind: str, elements: list[Element], place: str) -> None:
    seen: set[str] = set()
    for element in elements:
        name = element.get('name', '')
        if not name:
            raise RobotDescriptionError(f'{place}: a <{kind}> has no name')
        if name in seen:
            raise RobotDescriptionError(f'{place}: two {kind}s are called {name!r}')
        seen.add(name)


def _check_joint(joint: Element, place: str) -> None:
    where = f'{place}: joint {joint.get("name")!r}'
    kind = joint.get('type')
    if kind not in _JOINT_TYPES:
        allowed = ', '.join(_JOINT_TYPES)
        raise RobotDescriptionError(f'{where}: type = {kind!r}, expected one of {allowed}')
    limit = joint.find('limit')
    if limit is None:
        if kind in _LIMITED_TYPES:
            raise RobotDescriptionError(f'{where}: a {kind} joint needs a <limit>')
    elif kind != 'fixed':
        _check_limit(limit, where)
    dynamics = joint.find('dynamics')
    if dynamics is not None:
        for key in ('damping', 'friction'):
            _number(dynamics, key, f'{where}: <dynamics>', at_least=0.0)
    _check_origins(joint, where)


def _check_limit(limit: Element, where: str) -> None:
    for key in ('effort', 'velocity'):
        _number(limit, key, f'{where}: <limit>', at_least=0.0, infinite=True)
    lower = _number(limit, 'lower', f'{where}: <limit>', infinite=True)
    upper = _number(limit, 'upper', f'{where}: <limit>', infinite=True)
    if lower > upper:
        raise RobotDescriptionError(f'{where}: lower limit {lower} is above upper limit {upper}')


def _check_tree(links: list[Element], joints: list[Element], place: str) -> None:
    names = {link.get('name', '') for link in links}
    parents: dict[str, str] = {}
    for joint in joints:
        where = f'{place}: joint {joint.get("name")!r}'
        parent, child = parent_of(joint), child_of(joint)
        for role, name in (('parent', parent), ('child', child)):
            if name not in names:
                raise RobotDescriptionError(f'{where}: {role} link {name!r} does not exist')
        if child in parents:
            raise RobotDescriptionError(f'{where}: link {child!r} already has a parent')
        parents[child] = parent
    _check_root(names, parents, place)


def _check_root(names: set[str], parents: dict[str, str], place: str) -> None:
    roots = sorted(names - set(parents))
    if len(roots) > 1:
        listed = ', '.join(roots)
        raise RobotDescriptionError(
            f'{place}: no joint connects the links {listed}; one root only'
        )
    for start in sorted(names):
        link = start
        for _ in parents:
            link = parents.get(link, link)
        if link in parents:
            raise RobotDescriptionError(f'{place}: link {start!r} is in a loop of joints')


def _check_inertial(link: Element, place: str) -> None:
    where = f'{place}: link {link.get("name")!r}'
    _check_origins(link, where)
    inertial = link.find('inertial')
    if inertial is None:
        return
    mass, inertia = inertial.find('mass'), inertial.find('inertia')
    if mass is None or inertia is None:
        raise RobotDescriptionError(f'{where}: <inertial> needs <mass> and <inertia>')
    _number(mass, 'value', f'{where}: <mass>', at_least=0.0, required=True, unit=' kg')
    _check_inertia(inertia, where)


def _check_inertia(inertia: Element, where: str) -> None:
    keys = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    xx, xy, xz, yy, yz, zz = (
        _number(inertia, key, f'{where}: <inertia>', required=True) for key in keys
    )
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if moments[0] < -1e-9 * max(abs(moments[0]), moments[2]):
        listed = ', '.join(f'{moment:.3g}' for moment in moments)
        raise RobotDescriptionError(
            f'{where}: <inertia> has the principal moments {listed} kg m^2, expected none below 0'
        )


def _check_moving_masses(links: list[Element], joints: list[Element], place: str) -> None:
    """Refuse a joint that moves nothing with mass; a massless link between two joints is fine."""
    masses = {link.get('name', ''): link_mass(link) for link in links}
    joints_below: dict[str, list[Element]] = {name: [] for name in masses}
    for joint in joints:
        joints_below[parent_of(joint)].append(joint)
    for joint in joints:
        child = child_of(joint)
        moved = sum(masses[name] for name in _subtree(child, joints_below))
        if joint.get('type') != 'fixed' and not moved > 0.0:
            raise RobotDescriptionError(
                f'{place}: joint {joint.get("name")!r} moves link {child!r}, whose mass is 0 kg '
                'with all that hangs on it; expected a mass above 0'
            )
    if not sum(masses.values()) > 0.0:
        raise RobotDescriptionError(f'{place}: no link has a mass above 0 kg')


def _subtree(link: str, joints_below: dict[str, list[Element]]) -> Iterator[str]:
    yield link
    for joint in joints_below[link]:
        yield from _subtree(child_of(joint), joints_below)


def _check_origins(element: Element, where: str) -> None:
    for origin in element.iter('origin'):
        for key in ('xyz', 'rpy'):
            text = origin.get(key, '0 0 0')
            numbers = [_finite(part) for part in text.split()]
            if len(numbers) != 3 or None in numbers:
                raise RobotDescriptionError(
                    f'{where}: <origin {key}={text!r}>, expected three finite numbers'
                )


def _number(
    element: Element,
    key: str,
    where: str,
    at_least: float = -math.inf,
    infinite: bool = False,
    required: bool = False,
    unit: str = '',
) -> float:
    text = element.get(key)
    if text is None and not required:
        return 0.0
    try:
        number = float(text or '')
    except ValueError:
        number = math.nan
    if number >= at_least and (infinite or math.isfinite(number)):
        return number
    what = 'a number' if infinite else 'a finite number'
    bound = f' of at least {at_least:g}' if at_least > -math.inf else ''
    raise RobotDescriptionError(f'{where} {key} = {text!r}{unit}, expected {what}{bound}')


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
