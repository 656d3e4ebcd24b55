"""Convert a URDF or xacro to a Pinocchio model, and read its SRDF.

    file or text → xacro → XML tree → checks → pin.Model, collision geometry, gear ratios

Pinocchio's own parser (urdfdom) is not used. It accepts zero and negative masses silently and
reports a broken tree without a name; and at a blank behind a mass, a line break in an `xyz`, or a
number like 0x10 it leaves the whole <inertial> or <collision> out and goes on. The model that is
built here equals its model of a text in which it reads every number, bit for bit
(test/robot/test_robot_agreement.py).
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import coal
import numpy as np
import pinocchio as pin

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import LARGEST
from contact_sim.errors import InvalidInput, RobotDescriptionError, shown
from contact_sim.robot._files import XacroArguments, mesh_file, run_xacro, uses_xacro

# --------------------------------------------------------------------- from a file to a tree

JointValues = Mapping[str, tuple[float, ...]]
"""Joint name -> its values in q; one angle also for a continuous joint."""
_BLANK = '\ufeff \t\r\n'
DRAKE_NAMESPACE = 'http://drake.mit.edu'
"""Of the elements with which Drake extends SDF and URDF."""


@dataclass(frozen=True)
class Extras:
    """What a description in another format says and a URDF has no place for."""

    floats: bool | None = None
    """Whether its root floats; None: it does not say."""
    feet: tuple[str, ...] = ()
    """Links that are called feet."""
    stands_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Links that touch the ground where a foot is called by another name of the description."""
    actuated_joints: tuple[str, ...] | None = None
    """Joints with a motor; None: it does not say."""
    poses: Mapping[str, JointValues] = field(default_factory=dict)
    """Reference poses by name."""
    gains: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """kp and kd of servos, by joint."""
    notes: tuple[str, ...] = ()
    """What was decided or left out, as sentences."""


@dataclass(frozen=True)
class Description:
    """A URDF after xacro."""

    text: str
    root: ElementTree.Element
    """The <robot> element."""
    file: Path | None
    """File it was read from; None for text."""
    place: str
    """Name of the description in messages."""
    extras: Extras = Extras()


def read_description(
    source: str | Path,
    corrections: Sequence[tuple[str, str]] = (),
    xacro_arguments: XacroArguments | None = None,
) -> Description:
    """Read a URDF or a xacro: the path of a file, or text that begins with '<'.

    `corrections`, pairs (wrong, right), are replaced in the text of a file. Without arguments of a
    xacro only a file called .xacro is run.
    """
    if isinstance(source, str) and is_xml(source):
        file, text, place = None, source.strip(_BLANK), 'URDF text'
    else:
        file = Path(source)
        text, place = read_text(file), str(file)
        for wrong, right in corrections:
            text = text.replace(wrong, right)
        if xacro_arguments is None and file.suffix == '.xacro':
            xacro_arguments = {}
    root = parse_xml(text, place)
    if xacro_arguments is not None:
        text = run_xacro(text, file, place, xacro_arguments)
        root = parse_xml(text, f'{place} (after xacro)')
    if uses_xacro(root):
        raise RobotDescriptionError(
            f'{place} is a xacro, a program that can do anything on this machine: it is run only '
            'if its file is called .xacro, or if xacro_arguments are given'
        )
    return Description(text, root, file, place)


def is_xml(source: str) -> bool:
    """Return whether `source` is XML text and not a name or a path."""
    return source.lstrip(_BLANK).startswith('<')


def read_text(file: Path) -> str:
    """Return the text of `file`, or raise RobotDescriptionError."""
    with _reading.reading(file, RobotDescriptionError):
        return _reading.file_text(file)


def parse_xml(text: str, place: str) -> ElementTree.Element:
    """Return the root element of `text`, or raise RobotDescriptionError."""
    if '<drake:' in text and 'xmlns:drake' not in text:  # Drake's own files use it undeclared
        text = text.replace('<sdf', f'<sdf xmlns:drake="{DRAKE_NAMESPACE}"', 1)
    with _reading.reading(place, RobotDescriptionError):
        try:
            encoded = text.encode()
        except UnicodeEncodeError as error:
            raise RobotDescriptionError(f'{place} is not well-formed XML: {error}') from error
        return _reading.xml_root(encoded, _WithoutDoctype(place), place)


class _WithoutDoctype(_reading.BoundedTree):
    """Refuse <!DOCTYPE>: parsers disagree about its entities."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Raise RobotDescriptionError."""
        raise RobotDescriptionError(
            f'{self.place}: <!DOCTYPE {name}> is not allowed in a robot description'
        )


# --------------------------------------------------------------------------- numbers in attributes

_NUMBER = re.compile(r'(?ai)[+-]?(inf|infinity|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)')
"""A number that every parser accepts; Python also reads 1_0 and digits of other scripts."""


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
    """Return an attribute of `element`; 0 where it is missing and not `required`."""
    text = element.get(key)
    if text is None and not required:
        return 0.0
    value = parse_number(text or '')
    if value >= at_least and (infinite or abs(value) <= LARGEST):
        return value
    what = 'a number' if infinite else f'a finite number up to {LARGEST:g}'
    bound = f' of at least {at_least:g}' if at_least > -math.inf else ''
    raise RobotDescriptionError(f'{where} {key} = {text!r}{unit}, expected {what}{bound}')


def vector(
    element: Element | None, key: str, default: str, where: str
) -> tuple[float, float, float]:
    """Return an attribute that holds three numbers; `default` where it is missing."""
    text = element.get(key, default) if element is not None else default
    values = [parse_number(part) for part in text.split()]
    if len(values) != 3 or not all(abs(value) <= LARGEST for value in values):
        raise RobotDescriptionError(
            f'{where} {key} = {shown(text)}, expected three finite numbers'
        )
    return values[0], values[1], values[2]


# ------------------------------------------------------------------------------------- checks
#
# Link inertias must be positive semi-definite; the triangle inequality of principal moments is not
# checked, because robots in daily use (hyq's foot links) break it in negligible links.

MOST_LINKS = 1000
"""Largest number of links."""
ROUNDED_MOMENT = 1e-7
"""Largest negative principal moment that counts as rounded [kg m^2]: files with seven decimals."""
_JOINT_TYPES = (
    'fixed', 'revolute', 'continuous', 'prismatic', 'planar', 'floating', 'spherical',
)  # fmt: skip
"""Those of URDF, and the ball joint, which it lacks."""
_LIMITED_TYPES = ('revolute', 'prismatic')
AXIS_TYPES = ('revolute', 'continuous', 'prismatic')
"""Types of joints whose axis, limits and friction act."""
_MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


def check_description(robot: Element, place: str) -> None:
    """Check the tree, the limits and the masses of a <robot>; refuse the first that is wrong."""
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
    """Return whether the root link is massless and a floating joint alone leads from it."""
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
    limit, in_limit = joint.find('limit'), f'{where}: <limit>'
    if limit is None:
        if kind in _LIMITED_TYPES:
            raise RobotDescriptionError(f'{where}: a {kind} joint needs a <limit>')
    elif kind != 'fixed':
        for key in ('effort', 'velocity'):
            number(limit, key, in_limit, at_least=0.0, infinite=True, required=True)
        lower, upper = (number(limit, key, in_limit, infinite=True) for key in ('lower', 'upper'))
        if lower > upper:
            raise RobotDescriptionError(
                f'{where}: lower limit {lower} is above upper limit {upper}'
            )
    dynamics = joint.find('dynamics')
    if dynamics is not None:
        for key in ('damping', 'friction', 'armature'):
            number(dynamics, key, f'{where}: <dynamics>', at_least=0.0)
    axis = joint.find('axis')
    if (
        kind in AXIS_TYPES
        and axis is not None
        and not any(vector(axis, 'xyz', '1 0 0', f'{where}: <axis>'))
    ):
        raise RobotDescriptionError(f'{where}: <axis> xyz is 0 0 0, expected a direction')
    _check_origins(joint, where)


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
    xx, xy, xz, yy, yz, zz = (
        number(inertia, key, f'{where}: <inertia>', required=True) for key in _MOMENTS
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
    children: dict[str, list[str]] = {name: [] for name in masses}
    for joint in joints:
        children[parent_of(joint)].append(child_of(joint))
    for joint in joints:
        child, moved = child_of(joint), 0.0
        to_visit = [child]
        while to_visit:
            link = to_visit.pop()
            moved += masses[link]
            to_visit += children[link]
        if joint.get('type') != 'fixed' and not moved > 0.0:
            raise RobotDescriptionError(
                f'{place}: joint {joint.get("name")!r} moves link {child!r}, whose mass is 0 kg '
                'with all that hangs on it; expected a mass above 0'
            )
    if not sum(masses.values()) > 0.0:
        raise RobotDescriptionError(f'{place}: no link has a mass above 0 kg')


def _check_origins(element: Element, where: str) -> None:
    for origin in element.iter('origin'):
        for key in ('xyz', 'rpy'):
            vector(origin, key, '0 0 0', f'{where}: <origin>')


# ------------------------------------------------------------------------ the Pinocchio model
#
# The order of joints, frames and floating-point operations is that of Pinocchio's parser: depth
# first, the children of a link sorted by the names of their joints. A fixed joint adds the inertia
# of its child to the body that carries it.

_JOINT_MODELS = {
    'revolute': ('RX', 'RY', 'RZ', 'RevoluteUnaligned'),
    'continuous': ('RUBX', 'RUBY', 'RUBZ', 'RevoluteUnboundedUnaligned'),
    'prismatic': ('PX', 'PY', 'PZ', 'PrismaticUnaligned'),
}
"""Names of joint models along x, y, z and any other axis."""
_ALIGNED = 1e-12
"""Distance of an axis from that of a coordinate up to which it is that one."""
_UNIT_RANGE = 1.01
"""Position limit of cosines, sines and parts of quaternions."""


def build_model(robot: Element, place: str, floating_base: bool) -> pin.Model:
    """Build the Pinocchio model of a checked <robot>; a floating base is 'root_joint'."""
    reserved = ('universe', 'root_joint') if floating_base else ('universe',)
    for joint in robot.iterfind('joint'):
        if joint.get('name') in reserved:
            raise RobotDescriptionError(
                f'{place}: joint {joint.get("name")!r}: Pinocchio gives this name to '
                'the world or the floating base; rename the joint, or, if this joint is the '
                'floating base, load the robot with floating_base false'
            )
    model = pin.Model()
    model.name = robot.get('name') or 'robot'
    links = {link.get('name', ''): link for link in robot.iterfind('link')}
    joints = sorted(robot.iterfind('joint'), key=lambda joint: joint.get('name', '').encode())
    below: dict[str, list[Element]] = {name: [] for name in links}
    for joint in joints:
        below[parent_of(joint)].append(joint)
    root = (links.keys() - {child_of(joint) for joint in joints}).pop()
    inertia = _link_inertia(links[root], place)
    if floating_base:
        index = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
        body = _add_body(model, model.addJointFrame(index, 0), inertia, root)
    else:
        body_type = pin.FrameType.BODY
        body = model.addFrame(pin.Frame(root, 0, 0, pin.SE3.Identity(), body_type, inertia))
    body_frames = {root: body}
    to_visit = below[root][::-1]
    while to_visit:
        joint = to_visit.pop()
        child, parent_frame = child_of(joint), body_frames[parent_of(joint)]
        inertia = _link_inertia(links[child], place)
        body_frames[child] = _add_joint(model, joint, parent_frame, inertia, place)
        to_visit += below[child][::-1]
    return model


def _add_joint(
    model: pin.Model, joint: Element, parent_frame: int, inertia: pin.Inertia, place: str
) -> int:
    """Add a joint and the link behind it; return the index of the link's frame."""
    name, child = joint.get('name', ''), child_of(joint)
    where = f'{place}: joint {name!r}'
    parent = model.frames[parent_frame]
    parent_joint = parent.parentJoint
    placement = parent.placement * _placement(joint, where)
    if joint.get('type') == 'fixed':
        fixed = pin.FrameType.FIXED_JOINT
        frame = model.addFrame(
            pin.Frame(name, parent_joint, parent_frame, placement, fixed, inertia)
        )
        return int(model.addBodyFrame(child, parent_joint, placement, frame))
    joint_model = _joint_model(joint, where)
    bounds = _bounds(joint, joint_model, where)
    index = model.addJoint(parent_joint, joint_model, placement, name, *bounds)
    dynamics = joint.find('dynamics')
    if dynamics is not None and joint.get('type') in (*AXIS_TYPES, 'spherical'):
        dof = slice(model.joints[index].idx_v, model.joints[index].idx_v + joint_model.nv)
        friction = number(dynamics, 'friction', where)
        if dynamics.get('armature') is not None:  # as MJCF calls it; no word of URDF
            armature = np.reshape(model.armature, -1).copy()
            armature[dof] = number(dynamics, 'armature', where)
            model.armature = armature
        model.damping[dof] = number(dynamics, 'damping', where)
        model.friction[dof] = friction
        if hasattr(model, 'lowerDryFrictionLimit'):  # from Pinocchio 4 on
            model.lowerDryFrictionLimit[dof] = -friction
    return _add_body(model, model.addJointFrame(index, parent_frame), inertia, child)


def _add_body(model: pin.Model, joint_frame: int, inertia: pin.Inertia, link: str) -> int:
    frame = model.frames[joint_frame]
    joint, placement = frame.parentJoint, frame.placement.copy()
    if not inertia.isZero(0.0):
        model.appendBodyToJoint(joint, inertia, placement)
    return int(model.addBodyFrame(link, joint, placement, joint_frame))


def _joint_model(joint: Element, where: str) -> Any:
    """Return the joint model of a joint that moves."""
    kind = joint.get('type', '')
    if kind == 'floating':
        return pin.JointModelFreeFlyer()
    if kind == 'planar':
        return pin.JointModelPlanar()
    if kind == 'spherical':
        return pin.JointModelSpherical()
    axis = np.array(vector(joint.find('axis'), 'xyz', '1 0 0', f'{where}: <axis>'))
    names = _JOINT_MODELS[kind]
    smaller = min(float(np.linalg.norm(axis)), 1.0)
    for name, unit in zip(names, np.eye(3), strict=False):
        if np.linalg.norm(axis - unit) <= _ALIGNED * smaller:
            return getattr(pin, f'JointModel{name}')()
    x, y, z = axis.tolist()
    if kind == 'continuous':  # in Python only Pinocchio's parser makes one about any axis
        return pin.buildModelFromXML(
            '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
            f'<parent link="a"/><child link="b"/><axis xyz="{x!r} {y!r} {z!r}"/></joint></robot>'
        ).joints[1]
    return getattr(pin, f'JointModel{names[3]}')(axis / math.sqrt(x * x + y * y + z * z))


def _bounds(joint: Element, joint_model: Any, where: str) -> tuple[Array, Array, Array, Array]:
    """Return the limits of effort, velocity and, below and above, of position."""
    nq, nv, kind = joint_model.nq, joint_model.nv, joint.get('type', '')
    effort, velocity = np.full(nv, np.inf), np.full(nv, np.inf)
    upper = np.full(nq, np.inf)
    unlimited = {'floating': 3, 'planar': 2, 'continuous': 0, 'spherical': 0}
    upper[unlimited.get(kind, nq) :] = _UNIT_RANGE
    lower = -upper
    limit = joint.find('limit')
    if limit is not None and kind in AXIS_TYPES:
        values = [
            number(limit, key, f'{where}: <limit>', infinite=True)
            for key in ('effort', 'velocity', 'lower', 'upper')
        ]
        largest = sys.float_info.max  # what Pinocchio's parser has in place of infinity
        bounds = np.clip(values, -largest, largest)
        effort[:], velocity[:] = bounds[:2]
        if nq == 1:
            lower[:], upper[:] = bounds[2:]
    return effort, velocity, lower, upper


def _link_inertia(link: Element, place: str) -> pin.Inertia:
    """Return the spatial inertia of a link in its own axes; zero without <inertial>."""
    spatial = pin.Inertia.Zero()
    inertial = link.find('inertial')
    if inertial is None:
        return spatial
    where = f'{place}: link {link.get("name")!r}'
    mass, moments = inertial.find('mass'), inertial.find('inertia')
    assert mass is not None  # checked
    assert moments is not None
    placement = _placement(inertial, where)
    xx, xy, xz, yy, yz, zz = (number(moments, key, where) for key in _MOMENTS)
    spatial.mass, spatial.lever = number(mass, 'value', where), placement.translation
    # R I Rᵀ, summed in the order of Eigen's product of 3 × 3 matrices: it computes two rows at
    # once, from left to right, and the third as a + (b + c)
    product = placement.rotation
    for right in (np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), placement.rotation.T):
        terms = product[:, :, None] * right[None, :, :]
        product = (terms[:, 0] + terms[:, 1]) + terms[:, 2]
        product[2] = terms[2, 0] + (terms[2, 1] + terms[2, 2])
    lower = np.tril(product)
    spatial.inertia = lower + np.tril(product, -1).T
    return spatial


def _placement(element: Element, where: str) -> pin.SE3:
    """Return the placement that the <origin> of an element states."""
    origin = element.find('origin')
    translation = np.array(vector(origin, 'xyz', '0 0 0', f'{where}: <origin>'))
    roll, pitch, yaw = vector(origin, 'rpy', '0 0 0', f'{where}: <origin>')
    # the quaternion of R = Rz(yaw) Ry(pitch) Rx(roll), made a unit one, as urdfdom computes it
    (sr, cr), (sp, cp), (sy, cy) = (
        (math.sin(angle / 2.0), math.cos(angle / 2.0)) for angle in (roll, pitch, yaw)
    )
    x = sr * cp * cy - cr * sp * sy
    y = cr * sp * cy + sr * cp * sy
    z = cr * cp * sy - sr * sp * cy
    w = cr * cp * cy + sr * sp * sy
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    return pin.SE3(pin.Quaternion(w / norm, x / norm, y / norm, z / norm).matrix(), translation)


def add_joint(
    robot: Element, name: str, kind: str, parent: str, child: str, placement: pin.SE3
) -> Element:
    """Add a <joint> without an axis to a <robot>; return it."""
    joint = SubElement(robot, 'joint', name=name, type=kind)
    SubElement(joint, 'origin', origin_attributes(placement))
    SubElement(joint, 'parent', link=parent)
    SubElement(joint, 'child', link=child)
    return joint


def origin_attributes(placement: pin.SE3) -> dict[str, str]:
    """Return the attributes of an <origin> from which `_placement` reads a placement again."""
    rotation = placement.rotation
    # one angle after the other, each taken out before the next: exact also near pitch = ±90°
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    rotation = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    pitch = math.atan2(-rotation[2, 0], rotation[0, 0])
    roll = math.atan2(-rotation[1, 2], rotation[1, 1])
    return {
        'xyz': ' '.join(repr(float(x)) for x in placement.translation),
        'rpy': ' '.join(repr(angle) for angle in (roll, pitch, yaw)),
    }


def lift_limits_of_zero(model: pin.Model, robot: Element, place: str) -> None:
    """Make effort="0" no limit, as its authors mean it, with a warning."""
    names = [
        joint.get('name', '')
        for joint in robot.iterfind('joint')
        if joint.get('type') in AXIS_TYPES
        and (limit := joint.find('limit')) is not None
        and number(limit, 'effort', place, infinite=True) == 0.0
    ]
    limits = model.effortLimit.copy()
    limits[[model.joints[model.getJointId(name)].idx_v for name in names]] = np.inf
    model.effortLimit = limits
    if names:
        warnings.warn(
            f'{place}: <limit> effort="0" is taken for no limit: {", ".join(names)}', stacklevel=4
        )


# ------------------------------------------------------------------------- collision geometry

_LENGTHS = {
    'sphere': ('radius',),
    'cylinder': ('radius', 'length'),
    'capsule': ('radius', 'length'),
}


@dataclass(frozen=True, eq=False)
class CollisionGeometry:
    """A collision shape of a link."""

    name: str
    """Name of the link, with a number."""
    joint: int
    """Index of the joint that moves it; 0: the world."""
    placement: pin.SE3
    """In the axes of the joint."""
    shape: Any
    """Shape of coal."""


def collision_geometry(
    model: pin.Model, description: str, package_dirs: Sequence[str]
) -> dict[str, list[CollisionGeometry]]:
    """Return the collision geometries of every link that has some, in the order of the model."""
    if not description:
        raise InvalidInput('the robot was made without a URDF: no collision geometry is known')
    robot = parse_xml(description, 'collision geometry')
    links = {link.get('name', ''): link for link in robot.iterfind('link')}
    bodies = [frame.name for frame in model.frames if frame.type == pin.FrameType.BODY]
    geometries = {
        name: link_geometry(model, links[name], package_dirs) for name in bodies if name in links
    }
    return {name: shapes for name, shapes in geometries.items() if shapes}


def link_geometry(
    model: pin.Model, link: Element, package_dirs: Sequence[str]
) -> list[CollisionGeometry]:
    """Return the collision geometries of a link."""
    name = link.get('name', '')
    where = f'collision geometry: link {name!r}: <collision>'
    frame = model.frames[model.getFrameId(name, pin.FrameType.BODY)]
    return [
        CollisionGeometry(
            f'{name}_{k}', int(frame.parentJoint), frame.placement * _placement(collision, where),
            _shape(collision, where, package_dirs),
        )
        for k, collision in enumerate(link.iterfind('collision'))
    ]  # fmt: skip


def _shape(collision: Element, where: str, package_dirs: Sequence[str]) -> Any:
    shape = collision.find('geometry/*')
    if shape is None:
        raise RobotDescriptionError(f'{where}: no shape in <geometry>')
    if shape.tag == 'mesh':
        scale = np.array(vector(shape, 'scale', '1 1 1', f'{where}: <mesh>'))
        try:
            file = mesh_file(shape.get('filename', ''), package_dirs)
            with _reading.reading(file):
                return coal.MeshLoader().load(str(_reading.mesh_file(file)), scale)
        except Exception as error:  # coal passes on whatever C++ throws
            raise RobotDescriptionError(f'{where}: {error}') from error
    if shape.tag == 'box':
        size = vector(shape, 'size', '', f'{where}: <box>')
        if min(size) < 0.0:
            raise RobotDescriptionError(f'{where}: <box> size = {size}, expected none below 0')
        return coal.Box(*size)
    if shape.tag not in _LENGTHS:
        known = ', '.join(('mesh', 'box', *_LENGTHS))
        raise RobotDescriptionError(f'{where}: <{shape.tag}>, expected one of {known}')
    lengths = [
        number(shape, key, f'{where}: <{shape.tag}>', at_least=0.0, required=True, unit=' m')
        for key in _LENGTHS[shape.tag]
    ]
    # urdfdom refuses a robot with a <capsule>; to it this is a cylinder
    capped = shape.tag == 'cylinder' and shape.get('caps') == 'sphere'
    return getattr(coal, 'Capsule' if capped else shape.tag.capitalize())(*lengths)


# ------------------------------------------------------------------------------- gear ratios

_TAGS = ('actuator/mechanicalReduction', 'joint/mechanicalReduction', 'joint/mechanical_reduction')
"""Where a transmission states its reduction: URDF, URDF of old, ros2_control."""


def gear_ratios(robot: Element, place: str) -> Mapping[str, float]:
    """Return the gear ratio of every joint whose transmission states one [-].

    The sign of a ratio, which says that the motor turns the other way, is left out: efforts and
    limits are those of the joint. A transmission of several joints has no ratio of one of them.
    """
    ratios: dict[str, float] = {}
    for transmission in robot.iter('transmission'):
        names = [joint.get('name', '') for joint in transmission.iterfind('joint')]
        stated = [found for tag in _TAGS for found in transmission.iterfind(tag)]
        if len(names) != 1 or not stated:
            continue
        values = {ratios[name] for name in names if name in ratios}
        for element in stated:
            text = element.text or ''
            ratio = abs(parse_number(text))
            if not (ratio > 0.0 and math.isfinite(ratio)):
                raise RobotDescriptionError(
                    f'{place}: transmission of joint {names[0]!r}: <{element.tag}> = '
                    f'{text.strip()!r}, expected a finite number other than 0'
                )
            values.add(ratio)
        if len(values) > 1:
            listed = ' and '.join(f'{value:g}' for value in sorted(values))
            raise RobotDescriptionError(f'{place}: joint {names[0]!r} has gear ratios {listed}')
        ratios[names[0]] = values.pop()
    return ratios


# ------------------------------------------------------------------------------------- SRDF
#
# <end_effector>, <group_state>, <passive_joint>, <disable_collisions>. <chain> tags are not read:
# hyq's SRDF gives one leg the foot of another.


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
    """Read an SRDF file, or SRDF text (it starts with '<')."""
    if not isinstance(source, str | Path) or not str(source).strip():
        raise InvalidInput(f'srdf = {shown(source)}: expected a path or SRDF text')
    is_text = isinstance(source, str) and is_xml(source)
    place = 'SRDF text' if is_text else str(source)
    root = parse_xml(str(source).strip() if is_text else read_text(Path(source)), place)
    if root.tag != 'robot':
        raise RobotDescriptionError(f'{place}: the root element is <{root.tag}>, expected <robot>')
    passive = frozenset(joint.get('name', '') for joint in root.iterfind('passive_joint'))
    end_effectors = []
    for effector in root.iterfind('end_effector'):
        link = effector.get('parent_link')
        if not link:
            raise RobotDescriptionError(
                f'{place}: end_effector {effector.get("name")!r} has no parent_link'
            )
        end_effectors.append(link)
    unique = tuple(dict.fromkeys(end_effectors))  # two groups may end in one link
    poses = _poses(root, place)
    disabled = set()
    for pair in root.iterfind('disable_collisions'):
        links = pair.get('link1'), pair.get('link2')
        if not all(links):
            raise RobotDescriptionError(f'{place}: a disable_collisions without link1 and link2')
        disabled.add(frozenset(str(link) for link in links))
    return Semantics(unique, poses, frozenset(disabled), passive)


def _poses(root: Element, place: str) -> Mapping[str, JointValues]:
    """Return the poses; a name given to several groups is one pose of all their joints."""
    poses: dict[str, dict[str, tuple[float, ...]]] = {}
    for state in root.iterfind('group_state'):
        name = state.get('name')
        if not name:
            raise RobotDescriptionError(f'{place}: a group_state has no name')
        pose = poses.setdefault(name, {})
        for element in state.iterfind('joint'):
            joint, text = element.get('name', ''), element.get('value', '')
            values = tuple(parse_number(part) for part in text.split())
            if not all(map(math.isfinite, values)):
                raise RobotDescriptionError(
                    f'{place}: group_state {name!r}, {element.get("name")!r}: '
                    f'value = {shown(text)}, expected numbers'
                )
            pose[joint] = values
    return poses
