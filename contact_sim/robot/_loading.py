"""load_robot: from a name, a URDF or a xacro to a RobotModel."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import as_tuple, flag
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, shown
from contact_sim.robot._catalogue import (
    CatalogueEntry,
    catalogue_entry,
    in_catalogue,
    robot_file,
    robots,
    textbook_systems,
)
from contact_sim.robot._constraints import Constraint, JointCoupling, described_constraints
from contact_sim.robot._contact_points import FEET, ContactPoint, contact_points_at, soles_of
from contact_sim.robot._coordinates import actuated_joint_names
from contact_sim.robot._files import XacroArguments, check_meshes_exist, mesh_folders
from contact_sim.robot._joint_limits import described_limits
from contact_sim.robot._model import RobotModel
from contact_sim.robot._srdf import JointValues, Semantics, read_srdf
from contact_sim.robot._standing_pose import STANDING, Poses, has_floating_base, reference_poses
from contact_sim.robot._urdf import (
    LIMITED_TYPES,
    Description,
    check_description,
    description_from_file,
    description_from_text,
    floats_by_itself,
    gear_ratios,
    is_xml,
    kinematics_text,
    number,
    vector,
)

# --- Compare the model that Pinocchio made of a URDF with the URDF, number by number.
#
# What is read here is read a second time and independently: a parser that passes over an element,
# or understands it otherwise, is found out before anything moves.

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


# --- load_robot: from a name, a URDF or a xacro to a RobotModel.


def load_robot(
    source: str | Path,
    floating_base: bool = True,
    feet: Iterable[str | ContactPoint] | None = None,
    actuated_joints: Iterable[str] | None = None,
    srdf: str | Path | None = None,
    *,
    poses: Poses | None = None,
    check_meshes: bool = True,
    xacro_arguments: XacroArguments | None = None,
) -> RobotModel:
    """Return the robot described by `source`.

    Masses and inertias are Pinocchio's, untouched; damping, dry friction, limits and gear ratios
    are those of the URDF, see `RobotModel.actuators`. effort="0" there is no limit, and a warning.
    A <mimic> joint follows its leader, and a <loop_joint> closes a loop, by constraints of the
    robot (robot/_constraints.py).

    Args:
        source: a name of the catalogue (`robots()`, `textbook_systems()`), a path to a .urdf or
            .xacro file, or URDF text (it starts with '<'). A xacro is a program: it can do
            whatever you can.
        floating_base: whether the root link moves freely; else it is fixed to the world. A root
            link without mass, whose one joint is a floating one, is the world either way; that of
            most systems of the textbook, too.
        feet: frames of the feet, or contact points ready made. A frame touches with all spheres
            of its link's collision geometry; else with the corners of boxes, cylinders and
            meshes there; else with its origin. None: the feet of the catalogue,
            else the end effectors of the SRDF, else none, with a warning.
        actuated_joints: names of driven joints; None: those of the catalogue, else every joint
            with one degree of freedom that follows no other and that the SRDF does not call
            passive.
        srdf: a path to an SRDF, or its text, with reference poses and end effectors; None: the
            catalogue's, else none.
        poses: reference poses, values by joint [rad or m] by name of the pose, which win over
            those of the SRDF; joints left out are at neutral. Without a pose 'standing' there and
            here, a robot with legs gets one that stands on bent legs (robot/_standing_pose.py).
        check_meshes: whether a mesh that is not on this machine is an error. Meshes play no part
            in the dynamics.
        xacro_arguments: values of the arguments of a xacro, by name. Given, even if empty, any
            file or text is run as a xacro; None: only files called .xacro are.

    Raises:
        UnknownName: an unknown robot, contact frame or joint.
        InvalidInput: something listed twice, or a joint or frame that cannot be used.
        RobotDescriptionError: a file that is missing, malformed or physically impossible.
    """
    flag('floating_base', floating_base)
    flag('check_meshes', check_meshes)
    entry = _entry(source)
    description = _checked(_description(source, entry, xacro_arguments), check_meshes)
    floating_base = floating_base and not _on_the_world(description, entry)
    model = _pinocchio_model(description, floating_base)
    semantics = _semantics(srdf, entry)
    soles = _soles(description, model, entry, semantics, feet)
    limits = described_limits(model, description.root)
    constraints = _constraints(description, model)
    references = reference_poses(
        model, _poses(model, semantics, entry), poses, soles[0], limits, constraints
    )
    following = {one.joint for one in constraints if isinstance(one, JointCoupling)}
    passive = semantics.passive_joints | following
    return RobotModel(
        name=str(source) if entry is not None else description.name,
        pinocchio_model=model,
        joint_names=_actuated_joints(model, entry, actuated_joints, passive),
        contact_points=soles[0],
        references=references.poses,
        description=description.text,
        package_dirs=mesh_folders(description.root, description.file),
        gear_ratios=gear_ratios(description.root, description.place),
        position_limits=limits,
        notes=(*soles[1], *references.notes),
        constraints=constraints,
    )


def _entry(source: str | Path) -> CatalogueEntry | None:
    """Return the catalogue's entry when `source` is a name of the catalogue, None for the rest."""
    if isinstance(source, Path):
        return None
    if not isinstance(source, str) or not source.strip():
        raise InvalidInput(
            f'robot = {shown(source)}: expected a name ({", ".join(robots())}), a path or '
            'URDF text'
        )
    if in_catalogue(source):
        return catalogue_entry(source)
    looks_like_file = '/' in source or source.endswith(('.urdf', '.xacro', '.xml'))
    if not (is_xml(source) or looks_like_file or os.path.exists(source)):
        raise UnknownName('robot or file', source, robots() + textbook_systems())
    return None


def _on_the_world(description: Description, entry: CatalogueEntry | None) -> bool:
    """Return whether the root link is fixed to the world whatever the caller says."""
    fixed = entry is not None and not entry.floating_base
    return fixed or floats_by_itself(description.root)


def _actuated_joints(
    model: pin.Model,
    entry: CatalogueEntry | None,
    joints: Iterable[str] | None,
    passive: frozenset[str],
) -> tuple[str, ...]:
    known = entry.actuated_joints if entry is not None else None
    return actuated_joint_names(model, known if joints is None else joints, passive)


def _description(
    source: str | Path, entry: CatalogueEntry | None, xacro_arguments: XacroArguments | None
) -> Description:
    if entry is not None:
        return description_from_file(
            robot_file(entry, entry.urdf), entry.corrections, xacro_arguments
        )
    if isinstance(source, str) and is_xml(source):
        return description_from_text(source, xacro_arguments)
    return description_from_file(Path(source), xacro_arguments=xacro_arguments)


def _checked(description: Description, check_meshes: bool) -> Description:
    """Return a description that holds what a robot needs, or raise RobotDescriptionError."""
    check_description(description.root, description.place)
    if check_meshes:
        check_meshes_exist(description.root, description.file, description.place)
    return description


def _constraints(description: Description, model: pin.Model) -> tuple[Constraint, ...]:
    """Return those of the URDF; name the joints that ought to follow others but do not."""
    constraints, alone = described_constraints(model, description.root, description.place)
    if alone:
        warnings.warn(
            f'{description.place}: <mimic> needs joints with one coordinate, these move on their '
            f'own: {", ".join(alone)}',
            stacklevel=3,
        )
    return constraints


def _pinocchio_model(description: Description, floating_base: bool) -> pin.Model:
    _check_reserved_names(description, floating_base)
    root = (pin.JointModelFreeFlyer(),) if floating_base else ()
    text = kinematics_text(description.root, description.place)
    try:
        model = pin.buildModelFromXML(text, *root)
    except Exception as error:  # Pinocchio passes on whatever C++ throws
        raise RobotDescriptionError(
            f'{description.place}: Pinocchio cannot read it: {error}'
        ) from error
    check_agreement(model, description.root, floating_base, description.place)
    _lift_limits_of_zero(model, description)
    return model


def _lift_limits_of_zero(model: pin.Model, description: Description) -> None:
    """Take effort="0" for what its authors mean, no limit; a joint that cannot act is none."""
    names = [
        joint.get('name', '')
        for joint in description.root.iterfind('joint')
        if joint.get('type') in LIMITED_TYPES
        and (limit := joint.find('limit')) is not None
        and number(limit, 'effort', description.place, infinite=True) == 0.0
    ]
    if names:
        limits = model.effortLimit.copy()
        limits[[model.joints[model.getJointId(name)].idx_v for name in names]] = np.inf
        model.effortLimit = limits
        warnings.warn(
            f'{description.place}: <limit> effort="0" is taken for no limit: {", ".join(names)}',
            stacklevel=4,
        )


def _check_reserved_names(description: Description, floating_base: bool) -> None:
    reserved = ('universe', 'root_joint') if floating_base else ('universe',)
    for joint in description.root.iterfind('joint'):
        if joint.get('name') in reserved:
            raise RobotDescriptionError(
                f'{description.place}: joint {joint.get("name")!r}: Pinocchio gives this name to '
                'the world or the floating base; rename the joint, or, if this joint is the '
                'floating base, load the robot with floating_base false'
            )


def _semantics(srdf: str | Path | None, entry: CatalogueEntry | None) -> Semantics:
    if srdf is not None:
        return read_srdf(srdf)
    if entry is not None and entry.srdf is not None:
        return read_srdf(robot_file(entry, entry.srdf))
    return Semantics()


def _poses(
    model: pin.Model, semantics: Semantics, entry: CatalogueEntry | None
) -> Mapping[str, JointValues]:
    """Return the poses of the SRDF, and 'standing' from the catalogue where the SRDF has none."""
    poses = dict(semantics.poses)
    if entry is not None and entry.standing and STANDING not in poses:
        poses[STANDING] = {
            name: (angle,)
            for name in model.names
            for ending, angle in entry.standing.items()
            if name.endswith(ending)
        }
    return poses


def _soles(
    description: Description,
    model: pin.Model,
    entry: CatalogueEntry | None,
    semantics: Semantics,
    feet: Iterable[str | ContactPoint] | None,
) -> tuple[tuple[ContactPoint, ...], tuple[str, ...]]:
    """Return the contact points of the feet, and what was approximated in words."""
    known = entry.feet if entry is not None else semantics.end_effectors
    frames = as_tuple('feet', known if feet is None else feet, f'a list of {FEET}')
    given = {foot: (entry.foot,) for foot in entry.feet} if entry and entry.foot else {}
    folders = mesh_folders(description.root, description.file)
    soles = soles_of(model, description.root, folders, frames, description.place, given)
    if feet is None and entry is None and not frames and has_floating_base(model):
        warnings.warn(
            f'{description.place}: no feet are known, so nothing touches the ground; name their '
            'links (feet). python -m contact_sim.inspect tells which they may be',
            stacklevel=3,
        )
    return contact_points_at(model, 'feet', frames, soles.spheres), soles.notes
