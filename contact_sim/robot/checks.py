"""Refuse a URDF that cannot be a robot, with a message that names the link or joint.

Pinocchio accepts zero and negative masses silently, and reports a broken tree without saying
where. Link inertias must be positive semi-definite; the triangle inequality of principal moments
is not asked for, because robots in daily use (hyq's foot links) break it in negligible links.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

import numpy as np

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.numbers import number, vector

MOST_LINKS = 1000
"""Largest number of links: parsers descend the tree link by link, and end at some depth."""
ROUNDED_MOMENT = 1e-7
"""Largest negative principal moment that counts as rounded [kg m^2]: files with seven decimals."""
_JOINT_TYPES = ('fixed', 'revolute', 'continuous', 'prismatic', 'planar', 'floating')
_LIMITED_TYPES = ('revolute', 'prismatic')
_AXIS_TYPES = ('revolute', 'continuous', 'prismatic')


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
    if len(links) > MOST_LINKS:
        raise RobotDescriptionError(f'{place}: {len(links)} links, expected at most {MOST_LINKS}')
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


def floats_by_itself(robot: Element) -> bool:
    """Return whether the root link is a world without mass from which one floating joint leads."""
    joints = robot.findall('joint')
    children = {child_of(joint) for joint in joints}
    root = next(link for link in robot.iterfind('link') if link.get('name') not in children)
    kinds = [joint.get('type') for joint in joints if parent_of(joint) == root.get('name')]
    return kinds == ['floating'] and link_mass(root) == 0.0


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
            number(dynamics, key, f'{where}: <dynamics>', at_least=0.0)
    axis = joint.find('axis')
    if (
        kind in _AXIS_TYPES
        and axis is not None
        and not any(vector(axis, 'xyz', '1 0 0', f'{where}: <axis>'))
    ):
        raise RobotDescriptionError(f'{where}: <axis> xyz is 0 0 0, expected a direction')
    _check_origins(joint, where)


def _check_limit(limit: Element, where: str) -> None:
    for key in ('effort', 'velocity'):
        number(limit, key, f'{where}: <limit>', at_least=0.0, infinite=True, required=True)
    lower = number(limit, 'lower', f'{where}: <limit>', infinite=True)
    upper = number(limit, 'upper', f'{where}: <limit>', infinite=True)
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
    number(mass, 'value', f'{where}: <mass>', at_least=0.0, required=True, unit=' kg')
    _check_inertia(inertia, where)


def _check_inertia(inertia: Element, where: str) -> None:
    keys = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    xx, xy, xz, yy, yz, zz = (
        number(inertia, key, f'{where}: <inertia>', required=True) for key in keys
    )
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if moments[0] >= -1e-9 * max(abs(moments[0]), moments[2]):
        return
    listed = ', '.join(f'{moment:.3g}' for moment in moments)
    what = f'{where}: <inertia> has the principal moments {listed} kg m^2, expected none below 0'
    if moments[0] < -ROUNDED_MOMENT:
        raise RobotDescriptionError(what)
    warnings.warn(f'{what}; taken for rounding, as it is above -{ROUNDED_MOMENT:g}', stacklevel=5)


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


def _subtree(link: str, joints_below: Mapping[str, list[Element]]) -> Iterator[str]:
    to_visit = [link]
    while to_visit:
        current = to_visit.pop()
        yield current
        to_visit.extend(child_of(joint) for joint in joints_below[current])


def _check_origins(element: Element, where: str) -> None:
    for origin in element.iter('origin'):
        for key in ('xyz', 'rpy'):
            vector(origin, key, '0 0 0', f'{where}: <origin>')
