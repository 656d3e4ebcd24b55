"""A URDF in the words that Pinocchio's parser (urdfdom) is sure to read.

That parser is stricter than URDFs in daily use: at a blank behind a mass, a line break in an
`xyz`, or a number like 0x10 it leaves the whole <inertial> or <collision> away, and goes on. So
it is given a text of its own, made from numbers that were read and checked here, with only those
elements from which it makes something.
"""

from __future__ import annotations

import sys
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.numbers import number, vector

_MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
_LENGTHS = {
    'sphere': ('radius',),
    'cylinder': ('radius', 'length'),
    'capsule': ('radius', 'length'),
}
LIMITED_TYPES = ('revolute', 'prismatic', 'continuous')
"""Types of joints whose axis, limits and friction act."""


def kinematics_text(robot: Element, place: str) -> str:
    """Return a URDF of the links, masses and joints of `robot`, an element that was checked.

    Args:
        robot: the <robot> element.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: a number that is none.
    """
    return _text(_kinematics(robot, place))


def collision_text(robot: Element, place: str) -> str:
    """Return `kinematics_text` with the collision geometry of the links.

    Raises:
        RobotDescriptionError: a number that is none, a length below 0.
    """
    result = _kinematics(robot, place)
    for link, copy in zip(robot.iterfind('link'), result.iterfind('link'), strict=True):
        where = f'{place}: link {link.get("name")!r}: <collision>'
        for collision in link.iterfind('collision'):
            _add_collision(copy, collision, where)
    return _text(result)


def _kinematics(robot: Element, place: str) -> Element:
    result = Element('robot', name=robot.get('name') or 'robot')
    for link in robot.iterfind('link'):
        name = link.get('name', '')
        copy = SubElement(result, 'link', name=name)
        inertial = link.find('inertial')
        if inertial is not None:
            _add_inertial(copy, inertial, f'{place}: link {name!r}')
    for joint in robot.iterfind('joint'):
        _add_joint(result, joint, f'{place}: joint {joint.get("name")!r}')
    return result


def _add_inertial(link: Element, inertial: Element, where: str) -> None:
    copy = SubElement(link, 'inertial')
    _add_origin(copy, inertial, where)
    _add_numbers(copy, inertial.find('mass'), ('value',), where)
    _add_numbers(copy, inertial.find('inertia'), _MOMENTS, where)


def _add_joint(robot: Element, joint: Element, where: str) -> None:
    kind = joint.get('type', '')
    copy = SubElement(robot, 'joint', name=joint.get('name', ''), type=kind)
    for role in ('parent', 'child'):
        link = joint.find(role)
        SubElement(copy, role, link=link.get('link', '') if link is not None else '')
    _add_origin(copy, joint, where)
    if kind not in LIMITED_TYPES:
        return
    axis = vector(joint.find('axis'), 'xyz', '1 0 0', f'{where}: <axis>')
    SubElement(copy, 'axis', xyz=_words(*axis))
    limit = ('lower', 'upper', 'effort', 'velocity')
    _add_numbers(copy, joint.find('limit'), limit, where, infinite=True)
    _add_numbers(copy, joint.find('dynamics'), ('damping', 'friction'), where)


def _add_collision(link: Element, collision: Element, where: str) -> None:
    shape = collision.find('geometry/*')
    if shape is None:
        raise RobotDescriptionError(f'{where}: no shape in <geometry>')
    copy = SubElement(link, 'collision')
    _add_origin(copy, collision, where)
    geometry = SubElement(copy, 'geometry')
    if shape.tag == 'mesh':
        scale = vector(shape, 'scale', '1 1 1', f'{where}: <mesh>')
        SubElement(geometry, 'mesh', filename=shape.get('filename', ''), scale=_words(*scale))
    elif shape.tag == 'box':
        size = vector(shape, 'size', '', f'{where}: <box>')
        if min(size) < 0.0:
            raise RobotDescriptionError(f'{where}: <box> size = {size}, expected none below 0')
        SubElement(geometry, 'box', size=_words(*size))
    elif shape.tag in _LENGTHS:
        for key in _LENGTHS[shape.tag]:
            number(shape, key, f'{where}: <{shape.tag}>', at_least=0.0, required=True, unit=' m')
        _add_numbers(geometry, shape, _LENGTHS[shape.tag], where)
        if shape.tag == 'capsule':
            _mark_as_capsule(link, copy, geometry[0])
    else:
        known = ', '.join(('mesh', 'box', *_LENGTHS))
        raise RobotDescriptionError(f'{where}: <{shape.tag}>, expected one of {known}')


def _mark_as_capsule(link: Element, collision: Element, shape: Element) -> None:
    """Say capsule as Pinocchio does: a cylinder named in a list. urdfdom knows no capsules."""
    shape.tag = 'cylinder'
    collision.set('name', f'capsule {len(link)}')
    listed = link.find('collision_checking')
    if listed is None:
        listed = SubElement(link, 'collision_checking')
    SubElement(listed, 'capsule', name=collision.get('name', ''))


def _add_origin(copy: Element, element: Element, where: str) -> None:
    origin = element.find('origin')
    xyz, rpy = (vector(origin, key, '0 0 0', f'{where}: <origin>') for key in ('xyz', 'rpy'))
    SubElement(copy, 'origin', xyz=_words(*xyz), rpy=_words(*rpy))


def _add_numbers(
    copy: Element,
    element: Element | None,
    keys: tuple[str, ...],
    where: str,
    infinite: bool = False,
) -> None:
    """Copy an element with the numbers of `keys`, 0 where one is missing."""
    if element is not None:
        what = f'{where}: <{element.tag}>'
        numbers = {key: _words(number(element, key, what, infinite=infinite)) for key in keys}
        SubElement(copy, element.tag, numbers)


def _words(*values: float) -> str:
    """Return numbers, to be read back to the bit; infinity has no word: the largest instead."""
    largest = sys.float_info.max
    return ' '.join(repr(min(max(value, -largest), largest)) for value in values)


def _text(robot: Element) -> str:
    return ElementTree.tostring(robot, encoding='unicode')
