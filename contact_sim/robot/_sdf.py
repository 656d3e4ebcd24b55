"""Read SDF: a <model> becomes a URDF, with poses of links and joints resolved.

    <sdf> → poses in the frame of the model → <robot> and `Extras`

SDF places links in the model and joints in their children, any frame by `relative_to`; a URDF
places a link in its parent and a joint at its child. A joint beside the origin of its child gets a
link without mass. A second joint to one child closes a loop and becomes a <loop_joint>. No library
with wheels reads SDF, so its words are read here, those of the specification 1.4 to 1.12 that a
robot can have; the rest is refused or noted by name.
"""

from __future__ import annotations

import math
import sys
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import LARGEST
from contact_sim.errors import RobotDescriptionError, shown
from contact_sim.robot._urdf import (
    DRAKE_NAMESPACE,
    Description,
    Extras,
    add_joint,
    origin_attributes,
    parse_number,
    parse_xml,
)

NO_LIMIT = sys.float_info.max
"""Effort, speed or position that limits nothing."""
UNLIMITED = 1e16
"""Position from which on a limit is none: the default of SDF."""
MODEL, WORLD = '__model__', 'world'
"""Names of frames that SDF reserves."""
MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
DRAKE = f'{{{DRAKE_NAMESPACE}}}'
"""Namespace of the inertia of a drive, which SDF has no word for."""
KINDS = {
    'fixed': 'fixed', 'revolute': 'revolute', 'continuous': 'revolute', 'prismatic': 'prismatic',
    'ball': 'spherical', 'universal': 'revolute',
}  # fmt: skip
"""Types of joints that are read, and what they are in a URDF."""
READ = {
    'model': ('pose', 'link', 'joint', 'frame', 'static', 'allow_auto_disable', 'enable_wind'),
    'link': ('pose', 'inertial', 'visual', 'collision', 'velocity_decay', 'kinematic'),
    'joint': (
        'pose',
        'parent',
        'child',
        'axis',
        'axis2',
        f'{DRAKE}rotor_inertia',
        f'{DRAKE}gear_ratio',
    ),
    'axis': ('xyz', 'limit', 'dynamics', 'use_parent_model_frame', 'initial_position', 'mimic'),
}
"""Elements within others that are read, or mean nothing here."""
SIZES = {'sphere': ('radius',), 'cylinder': ('radius', 'length'), 'capsule': ('radius', 'length')}


def translated(description: Description) -> Description:
    """Return a description whose root is <sdf> as a URDF and what a URDF does not say.

    Raises:
        RobotDescriptionError: not exactly one model, a joint that is not modelled, a frame that
            does not exist, a number that is none.
    """
    place = 'SDF text' if description.file is None else description.place
    robot, extras = _Model(description.root, place).robot()
    text = ElementTree.tostring(robot, encoding='unicode')
    return Description(text, parse_xml(text, place), description.file, place, extras)


class _Model:
    """The model of one file."""

    def __init__(self, root: Element, place: str) -> None:
        self.place = place
        models = [*root.iterfind('model'), *root.iterfind('world/model')]
        if len(models) != 1:
            names = ', '.join(shown(model.get('name')) for model in models) or 'none'
            raise RobotDescriptionError(f'{place}: models {names}: expected one <model>')
        self.model = models[0]
        for tag in ('include', 'model'):
            for nested in self.model.iterfind(tag):
                name = nested.get('name') or nested.findtext('uri') or nested.findtext('name')
                raise RobotDescriptionError(
                    f'{place}: <{tag}> {shown(name)} in a <model>: not read'
                )
        version = parse_number(root.get('version', '1.6').partition('.')[2])
        self.axes_in_model = version < 5  # before 1.5 axes were those of the model
        self.elements: dict[str, Element] = {}
        for tag in ('link', 'frame', 'joint'):  # a joint may be called as a link before 1.7
            taken = set[str]()
            for element in self.model.iterfind(tag):
                name = element.get('name', '')
                if not name or name in taken or name in (MODEL, WORLD):
                    raise RobotDescriptionError(
                        f'{place}: <{tag}> {shown(name)}: expected a name of its own'
                    )
                taken.add(name)
                self.elements.setdefault(name, element)
        self.placed: dict[str, pin.SE3] = {MODEL: pin.SE3.Identity()}
        pose = self.model.find('pose')
        self.placed[WORLD] = self._pose(pose, f'{place}: <model>').inverse()
        self.links = [e for e in self.model.iterfind('link')]
        self.joints = [e for e in self.model.iterfind('joint')]
        self.noted: dict[str, list[str]] = {}
        self.root = Element('robot', name=self.model.get('name') or 'robot')
        self.names = {element.get('name', '') for element in self.links}

    def robot(self) -> tuple[Element, Extras]:
        """Return the <robot> and what a URDF does not say."""
        if not self.links:
            raise RobotDescriptionError(f'{self.place}: no <link> in <model>')
        parents = [self._end(joint, 'parent') for joint in self.joints]
        children = [self._end(joint, 'child') for joint in self.joints]
        for element in (*self.links, *self.model.iterfind('frame'), *self.joints):
            self._placed(element)  # also those that nothing refers to
        fixed = WORLD in parents or self.model.findtext('static', '').strip() in ('1', 'true')
        if WORLD in parents:
            SubElement(self.root, 'link', name=WORLD)
        for link in self.links:
            self._link(link)
        carried: set[str] = set()
        for joint, parent, child in zip(self.joints, parents, children, strict=True):
            if WORLD in (child,) or child == parent:
                raise RobotDescriptionError(
                    f'{self.place}: joint {joint.get("name")!r}: parent {shown(parent)}, child '
                    f'{shown(child)}: expected two links'
                )
            if child in carried:
                self._loop(joint, parent, child)
            else:
                self._joint(joint, parent, child)
            carried.add(child)
        for frame in self.model.iterfind('frame'):
            self._frame(frame)
        for tag, read in READ.items():
            for element in [self.model] if tag == 'model' else self.model.iter(tag):
                for inner in element:
                    if inner.tag not in read:
                        name = inner.get('name') or element.get('name') or ''
                        self._note(f'<{inner.tag}> is left out', name)
        notes = tuple(
            f'{what}: {", ".join(names[:6])}'
            + (f' and {len(names) - 6} more' if len(names) > 6 else '')
            for what, names in self.noted.items()
        )
        return self.root, Extras(floats=not fixed, notes=notes)

    # ------------------------------------------------------------------------------------ frames

    def _at(self, name: str, where: str, within: tuple[str, ...] = ()) -> pin.SE3:
        """Return the placement of a link, joint or frame in the model."""
        if name in self.placed:
            return self.placed[name]
        element = self.elements.get(name)
        if element is None:
            raise RobotDescriptionError(f'{where}: no frame {shown(name)} in the model')
        if name in within:
            raise RobotDescriptionError(f'{where}: the poses of {" -> ".join(within)} are a cycle')
        self.placed[name] = self._placed(element, (*within, name))
        return self.placed[name]

    def _placed(self, element: Element, within: tuple[str, ...] = ()) -> pin.SE3:
        """Return the placement of an element in the model."""
        where = f'{self.place}: {element.tag} {element.get("name")!r}'
        usual = MODEL
        if element.tag == 'joint':
            usual = (element.findtext('child') or '').strip()
        elif element.tag == 'frame':
            usual = element.get('attached_to') or MODEL
        pose = element.find('pose')
        relative = pose.get('relative_to', '') if pose is not None else ''
        return self._at(relative or usual, where, within) * self._pose(pose, where)

    def _pose(self, pose: Element | None, where: str) -> pin.SE3:
        """Return the placement that a <pose> states in the frame that it is relative to."""
        if pose is None or not (pose.text or '').strip():
            return pin.SE3.Identity()
        if pose.get('frame'):
            raise RobotDescriptionError(f'{where}: <pose frame>: use relative_to')
        quaternion = pose.get('rotation_format', 'euler_rpy') == 'quat_xyzw'
        numbers = _numbers(pose.text or '', 7 if quaternion else 6, f'{where}: <pose>')
        if quaternion:
            x, y, z, w = np.array(numbers[3:]) / np.linalg.norm(numbers[3:])
            turn = pin.Quaternion(w, x, y, z).matrix()
        else:
            unit = math.pi / 180.0 if pose.get('degrees', '') in ('1', 'true') else 1.0
            turn = pin.rpy.rpyToMatrix(unit * np.array(numbers[3:]))
        return pin.SE3(turn, np.array(numbers[:3]))

    def _end(self, joint: Element, tag: str) -> str:
        """Return the link of an end of a joint."""
        name = (joint.findtext(tag) or '').strip()
        where = f'{self.place}: joint {joint.get("name")!r}: <{tag}>'
        if not name:
            raise RobotDescriptionError(f'{where}: expected the name of a link')
        return self._carrier(name, where)

    def _carrier(self, name: str, where: str) -> str:
        """Return the link that carries a frame, joint or link; of the model itself its first."""
        seen = set[str]()
        while name not in self.names and name != WORLD:
            element = self.elements.get(name)
            if name in ('', MODEL):
                return self.links[0].get('name', '')
            if element is None or name in seen:
                raise RobotDescriptionError(f'{where} {shown(name)}: no such link or frame')
            seen.add(name)
            inner = element.findtext('child') if element.tag == 'joint' else None
            name = (inner or element.get('attached_to') or '').strip()
        return name

    # -------------------------------------------------------------------------- links and joints

    def _link(self, link: Element) -> None:
        name = link.get('name', '')
        where, own = f'{self.place}: link {name!r}', SubElement(self.root, 'link', name=name)
        inertial = link.find('inertial')
        mass, moments = 1.0, dict(zip(MOMENTS, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0), strict=True))
        at = pin.SE3.Identity()
        if inertial is None:
            self._note('1 kg and 1 kg m² without an <inertial>, as SDF has it', name)
        else:
            if inertial.get('auto') in ('1', 'true'):
                raise RobotDescriptionError(f'{where}: <inertial auto>: give mass and inertia')
            at = self._pose(inertial.find('pose'), where)
            mass = _number(inertial, 'mass', 1.0, where)
            for key in MOMENTS:
                moments[key] = _number(inertial, f'inertia/{key}', moments[key], where)
            if inertial.find('fluid_added_mass') is not None:
                self._note('<fluid_added_mass> is left out', name)
        element = SubElement(own, 'inertial')
        SubElement(element, 'origin', origin_attributes(at))
        SubElement(element, 'mass', value=repr(mass))
        SubElement(element, 'inertia', {key: repr(value) for key, value in moments.items()})
        if (link.findtext('gravity') or '').strip() in ('0', 'false'):
            self._note('<gravity> is left out: gravity acts on the whole robot', name)
        for use in ('visual', 'collision'):
            for shape in link.iterfind(use):
                self._shape(own, shape, use, where)

    def _shape(self, link: Element, shape: Element, use: str, where: str) -> None:
        where = f'{where}: {use} {shape.get("name")!r}'
        pose = shape.find('pose')
        at = self._pose(pose, where)
        if pose is not None and pose.get('relative_to'):
            own = self._at(link.get('name', ''), where)
            at = own.inverse() * self._at(pose.get('relative_to', ''), where) * at
        geometry = shape.find('geometry/*')
        if geometry is None or geometry.tag not in ('box', 'mesh', *SIZES):
            tag = 'empty' if geometry is None else geometry.tag
            self._note(f'a {use} of type {tag} is left out', shape.get('name', ''))
            return
        sizes: dict[str, str] = {}
        if geometry.tag == 'box':
            size = _numbers(geometry.findtext('size', ''), 3, f'{where}: <size>')
            sizes['size'] = ' '.join(map(repr, size))
        elif geometry.tag == 'mesh':
            uri = (geometry.findtext('uri') or '').strip()
            sizes['filename'] = uri.replace('model://', 'package://', 1)
            scale = _numbers(geometry.findtext('scale', '1 1 1'), 3, f'{where}: <scale>')
            sizes['scale'] = ' '.join(map(repr, scale))
            if geometry.find('submesh') is not None:
                self._note('<submesh> is left out: the whole mesh counts', shape.get('name', ''))
        for key in SIZES.get(geometry.tag, ()):
            sizes[key] = repr(_number(geometry, key, math.nan, where))
        tag = geometry.tag
        if tag == 'capsule':  # of which other readers of URDFs know nothing
            tag, sizes['caps'] = 'cylinder', 'sphere'
        element = SubElement(link, use, name=shape.get('name', ''))
        SubElement(element, 'origin', origin_attributes(at))
        SubElement(SubElement(element, 'geometry'), tag, sizes)
        if use == 'collision' and shape.find('surface') is not None:
            self._note('<surface> is of the simulation, not of the robot', shape.get('name', ''))
        diffuse = (shape.findtext('material/diffuse') or '').split()
        if use == 'visual' and len(diffuse) in (3, 4):
            own = ' '.join((*diffuse, '1')[:4])
            SubElement(SubElement(element, 'material', name=f'rgba {own}'), 'color', rgba=own)

    def _joint(self, joint: Element, parent: str, child: str) -> None:
        """Add a joint; one beside the origin of its child is followed by a fixed one."""
        name, kind = joint.get('name', ''), self._kind(joint)
        where = f'{self.place}: joint {name!r}'
        above, below = self._at(parent, where), self._at(child, where)
        own = self._placed(joint)
        beside = below.inverse() * own  # the joint in the axes of its child
        at, reached = above.inverse() * below, parent
        if kind == 'fixed':
            add_joint(self.root, name, 'fixed', parent, child, at)
            return
        anchor = pin.SE3(np.eye(3), beside.translation)
        axes: list[Element | None] = [None if kind == 'spherical' else joint.find('axis')]
        if joint.get('type') == 'universal':
            axes.append(joint.find('axis2'))
        offset = bool(np.abs(anchor.translation).max() > 1e-15)
        for k, axis in enumerate(axes):
            last = k == len(axes) - 1 and not offset
            link = child if last else f'{name}_link{"" if k == 0 else k + 1}'
            if not last:
                SubElement(self.root, 'link', name=link)
            called = name if k == 0 else f'{name}_2'
            place = at * anchor if k == 0 else pin.SE3.Identity()
            element = add_joint(self.root, called, kind, reached, link, place)
            if axis is not None:
                self._axis(element, axis, joint, below.rotation.T)
            elif kind != 'spherical':
                raise RobotDescriptionError(f'{where}: no <axis>')
            reached = link
        if reached != child:
            add_joint(self.root, f'{name}_fixed', 'fixed', reached, child, anchor.inverse())

    def _kind(self, joint: Element) -> str:
        kind = joint.get('type', '')
        if kind not in KINDS:
            raise RobotDescriptionError(
                f'{self.place}: joint {joint.get("name")!r}: type {shown(kind)} is not modelled, '
                f'expected one of {", ".join(KINDS)}'
            )
        return KINDS[kind]

    def _axis(self, element: Element, axis: Element, joint: Element, to_child: Array) -> None:
        """Write axis, limits and friction of a joint; directions in the axes of its child."""
        name = element.get('name', '')
        where = f'{self.place}: joint {name!r}: <axis>'
        direction = to_child @ self._direction(axis, joint, where)
        SubElement(element, 'axis', xyz=' '.join(repr(float(x)) for x in direction))
        low = _number(axis, 'limit/lower', -UNLIMITED, where)
        high = _number(axis, 'limit/upper', UNLIMITED, where)
        endless = joint.get('type') == 'continuous'
        bounds = {
            'lower': -NO_LIMIT if low <= -UNLIMITED or endless else low,
            'upper': NO_LIMIT if high >= UNLIMITED or endless else high,
        }
        for key in ('effort', 'velocity'):
            value = _number(axis, f'limit/{key}', math.inf, where)
            bounds[key] = value if 0.0 <= value < NO_LIMIT else NO_LIMIT  # -1 is none
        SubElement(element, 'limit', {key: repr(value) for key, value in bounds.items()})
        dynamics = {
            key: _number(axis, f'dynamics/{key}', 0.0, where) for key in ('damping', 'friction')
        }
        rotor, ratio = (
            _number(joint, f'{DRAKE}{key}', usual, where)
            for key, usual in (('rotor_inertia', 0.0), ('gear_ratio', 1.0))
        )
        dynamics |= {'armature': ratio * ratio * rotor} if rotor else {}
        stiffness, rest = (
            _number(axis, f'dynamics/spring_{key}', 0.0, where)
            for key in ('stiffness', 'reference')
        )
        if stiffness:
            dynamics |= {'spring_stiffness': stiffness, 'spring_reference': rest}
        if any(dynamics.values()):
            SubElement(element, 'dynamics', {key: repr(x) for key, x in dynamics.items()})
        mimic = axis.find('mimic')
        if mimic is not None:
            ratio = _number(mimic, 'multiplier', 1.0, where)
            offset = _number(mimic, 'offset', 0.0, where)
            offset -= ratio * _number(mimic, 'reference', 0.0, where)
            SubElement(element, 'mimic', joint=mimic.get('joint', ''), multiplier=repr(ratio),
                       offset=repr(offset))  # fmt: skip

    def _direction(self, axis: Element, joint: Element, where: str) -> Array:
        """Return the direction of an axis in the model."""
        xyz = axis.find('xyz')
        text = '0 0 1' if xyz is None else xyz.text or ''
        direction = np.array(_numbers(text, 3, f'{where} <xyz>'))
        if not direction.any():
            raise RobotDescriptionError(f'{where} <xyz> is 0 0 0, expected a direction')
        frame = xyz.get('expressed_in', '') if xyz is not None else ''
        old = axis.find('use_parent_model_frame')
        in_model = self.axes_in_model
        if old is not None:
            in_model = (old.text or '').strip() in ('1', 'true')
        turn = np.eye(3)
        if not in_model:
            turn = (self._at(frame, where) if frame else self._placed(joint)).rotation
        return np.asarray(turn @ direction / np.linalg.norm(direction))

    def _loop(self, joint: Element, parent: str, child: str) -> None:
        """Add a joint that closes a loop."""
        name, kind = joint.get('name', ''), self._kind(joint)
        where = f'{self.place}: joint {name!r}'
        if kind == 'prismatic' or joint.get('type') == 'universal' or parent == WORLD:
            raise RobotDescriptionError(
                f'{where}: it closes a loop; expected a ball joint, a hinge or a fixed one '
                'between two links'
            )
        loop = SubElement(self.root, 'loop_joint', name=name, type=kind)
        own = self._placed(joint)
        for tag, link in (('link1', parent), ('link2', child)):
            at = self._at(link, where).inverse() * own
            SubElement(loop, tag, {'link': link, **origin_attributes(at)})
        axis = joint.find('axis')
        if axis is not None and kind == 'revolute':
            direction = own.rotation.T @ self._direction(axis, joint, where)
            SubElement(loop, 'axis', xyz=' '.join(repr(float(x)) for x in direction))
        self._note('joints that close a loop have no motor, limit or friction', name)

    def _frame(self, frame: Element) -> None:
        """Add a link without mass for a frame."""
        name, where = frame.get('name', ''), f'{self.place}: frame {frame.get("name")!r}'
        carrier = self._carrier(frame.get('attached_to', ''), where)
        if carrier == WORLD:
            self._note('frames of the world are left out', name)
            return
        at = self._at(carrier, where).inverse() * self._at(name, where)
        SubElement(self.root, 'link', name=name)
        add_joint(self.root, f'{name}_fixed', 'fixed', carrier, name, at)

    def _note(self, what: str, name: str) -> None:
        listed = self.noted.setdefault(what, [])
        if name and name not in listed:
            listed.append(name)


# ------------------------------------------------------------------------------------- numbers


def _numbers(text: str, count: int, where: str) -> list[float]:
    """Return the finite numbers of a text."""
    values = [parse_number(part) for part in text.split()]
    if len(values) != count or not all(abs(value) <= LARGEST for value in values):
        raise RobotDescriptionError(f'{where} {shown(text)}: expected {count} finite numbers')
    return values


def _number(element: Element, path: str, usual: float, where: str) -> float:
    """Return the number of an element within another one; `usual` where it is missing."""
    text = element.findtext(path)
    value = usual if text is None else parse_number(text)
    if math.isnan(value):
        raise RobotDescriptionError(f'{where}: <{path}> = {shown(text)}, expected a number')
    return value
