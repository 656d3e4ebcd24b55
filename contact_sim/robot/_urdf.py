"""A URDF in the words that Pinocchio's parser (urdfdom) is sure to read.

That parser is stricter than URDFs in daily use: at a blank behind a mass, a line break in an
`xyz`, or a number like 0x10 it leaves the whole <inertial> or <collision> away, and goes on. So
it is given a text of its own, made from numbers that were read and checked here, with only those
elements from which it makes something.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot._files import XacroArguments, run_xacro, uses_xacro

# --- Numbers in the attributes of a URDF, checked.

_NUMBER = re.compile(r'(?ai)[+-]?(inf|infinity|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)')
"""What is a number to everybody: Python alone knows 1_0 and digits of other scripts."""


def parse_number(text: str) -> float:
    """Return the number in `text`, blanks around it passed over; NaN where it is none."""
    return float(text) if _NUMBER.fullmatch(text.strip()) else math.nan


def number(
    element: Element,
    key: str,
    where: str,
    *,
    at_least: float = -math.inf,
    infinite: bool = False,
    required: bool = False,
    unit: str = '',
) -> float:
    """Return an attribute of `element`; 0 where it is missing and not required.

    Args:
        element: an element of a URDF.
        key: name of the attribute.
        where: how a message begins, e.g. "file: joint 'knee': <limit>".
        at_least: smallest number allowed.
        infinite: whether plus and minus infinity are allowed.
        required: whether the attribute has to be there.
        unit: what a message puts behind the value.

    Raises:
        RobotDescriptionError: missing, not a number, or not allowed.
    """
    text = element.get(key)
    if text is None and not required:
        return 0.0
    value = parse_number(text or '')
    if value >= at_least and (infinite or math.isfinite(value)):
        return value
    what = 'a number' if infinite else 'a finite number'
    bound = f' of at least {at_least:g}' if at_least > -math.inf else ''
    raise RobotDescriptionError(f'{where} {key} = {text!r}{unit}, expected {what}{bound}')


def vector(
    element: Element | None, key: str, default: str, where: str
) -> tuple[float, float, float]:
    """Return an attribute that holds three numbers; `default` where it is missing.

    Raises:
        RobotDescriptionError: not three finite numbers.
    """
    text = element.get(key, default) if element is not None else default
    values = [parse_number(part) for part in text.split()]
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise RobotDescriptionError(f'{where} {key} = {text!r}, expected three finite numbers')
    return values[0], values[1], values[2]


# --- Refuse a URDF that cannot be a robot, with a message that names the link or joint.
#
# Pinocchio accepts zero and negative masses silently, and reports a broken tree without saying
# where. Link inertias must be positive semi-definite; the triangle inequality of principal moments
# is not asked for, because robots in daily use (hyq's foot links) break it in negligible links.

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


# --- Gear ratios of a URDF: <mechanicalReduction>, and <mechanical_reduction> of ros2_control.

_TAGS = ('actuator/mechanicalReduction', 'joint/mechanicalReduction', 'joint/mechanical_reduction')
"""Where a transmission states its reduction: URDF, URDF of old, ros2_control."""


def gear_ratios(robot: Element, place: str) -> Mapping[str, float]:
    """Return the gear ratio of every joint whose transmission states one [-].

    The sign of a ratio, which says that the motor turns the other way, is left out: efforts and
    limits are those of the joint. A transmission of several joints has no ratio of one of them.

    Args:
        robot: the <robot> element.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: a ratio that is not a finite number other than 0, or two of them.
    """
    ratios: dict[str, float] = {}
    for transmission in robot.iter('transmission'):
        names = [joint.get('name', '') for joint in transmission.iterfind('joint')]
        stated = [found for tag in _TAGS for found in transmission.iterfind(tag)]
        if len(names) != 1 or not stated:
            continue
        values = {_ratio(one, f'{place}: transmission of joint {names[0]!r}') for one in stated}
        values |= {ratios[name] for name in names if name in ratios}
        if len(values) > 1:
            listed = ' and '.join(f'{value:g}' for value in sorted(values))
            raise RobotDescriptionError(f'{place}: joint {names[0]!r} has gear ratios {listed}')
        ratios[names[0]] = values.pop()
    return ratios


def _ratio(element: Element, where: str) -> float:
    text = element.text or ''
    ratio = abs(parse_number(text))
    if not (ratio > 0.0 and math.isfinite(ratio)):
        raise RobotDescriptionError(
            f'{where}: <{element.tag}> = {text.strip()!r}, expected a finite number other than 0'
        )
    return ratio


# --- Read a robot description: URDF or xacro, from a file or as text.

_BLANK = '\ufeff \t\r\n'


@dataclass(frozen=True)
class Description:
    """A URDF after xacro."""

    text: str
    root: ElementTree.Element
    """The <robot> element."""
    file: Path | None
    """File it was read from; None for text."""

    @property
    def place(self) -> str:
        """Name of the description in messages."""
        return str(self.file) if self.file is not None else 'URDF text'

    @property
    def name(self) -> str:
        """Name of the robot in the URDF."""
        return self.root.get('name') or 'robot'


def description_from_file(
    file: Path,
    corrections: tuple[tuple[str, str], ...] = (),
    xacro_arguments: XacroArguments | None = None,
) -> Description:
    """Read a URDF; every pair (wrong, right) of `corrections` is replaced.

    A file called .xacro is run, and any file where `xacro_arguments` are given.

    Raises:
        RobotDescriptionError: no such file, not text, not XML, xacro refuses it, or it is a xacro
            that is not to be run.
    """
    text = read_text(file)
    for wrong, right in corrections:
        text = text.replace(wrong, right)
    if xacro_arguments is None and file.suffix == '.xacro':
        xacro_arguments = {}
    return _description(text, file, xacro_arguments)


def description_from_text(text: str, xacro_arguments: XacroArguments | None = None) -> Description:
    """Return the description in `text`: a URDF, or a xacro where `xacro_arguments` are given.

    Raises:
        RobotDescriptionError: not XML, xacro refuses it, or it is a xacro that is not to be run.
    """
    return _description(text.strip(_BLANK), None, xacro_arguments)


def is_xml(source: str) -> bool:
    """Return whether `source` is XML text and not a name or a path."""
    return source.lstrip(_BLANK).startswith('<')


def read_text(file: Path) -> str:
    """Return the text of `file`, or raise RobotDescriptionError."""
    try:
        return file.read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise RobotDescriptionError(f'cannot read {file}: it is not UTF-8 text') from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, 'strerror', None) or str(error)
        raise RobotDescriptionError(f'cannot read {file}: {reason}') from error


def parse_xml(text: str, place: str) -> ElementTree.Element:
    """Return the root element of `text`, or raise RobotDescriptionError."""
    parser = ElementTree.XMLParser(target=_WithoutDoctype(place))
    try:
        return ElementTree.fromstring(text.encode(), parser)
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # encodings of no name
        raise RobotDescriptionError(f'{place} is not well-formed XML: {error}') from error


class _WithoutDoctype(ElementTree.TreeBuilder):
    """Refuses <!DOCTYPE>: its entities are text that every parser reads otherwise."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Raise RobotDescriptionError."""
        raise RobotDescriptionError(
            f'{self._place}: <!DOCTYPE {name}> is not allowed in a robot description'
        )


def _description(
    text: str, file: Path | None, xacro_arguments: XacroArguments | None
) -> Description:
    place = str(file) if file is not None else 'URDF text'
    root = parse_xml(text, place)
    if xacro_arguments is not None:
        text = run_xacro(text, file, place, xacro_arguments)
        root = parse_xml(text, f'{place} (after xacro)')
    if uses_xacro(root):
        raise RobotDescriptionError(
            f'{place} is a xacro, a program that can do anything on this machine: it is run only '
            'if its file is called .xacro, or if xacro_arguments are given'
        )
    return Description(text, root, file)


# --- A URDF in the words that Pinocchio's parser (urdfdom) is sure to read.

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
