"""load_robot: from a name, a URDF or a xacro to a RobotModel."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName
from contact_sim.numbers import flag
from contact_sim.robot.agreement import check_agreement
from contact_sim.robot.catalogue import CatalogueEntry, catalogue_entry, robot_file, robots
from contact_sim.robot.checks import check_description, child_of, floats_by_itself
from contact_sim.robot.configuration import neutral_configuration
from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.description import (
    Description,
    description_from_file,
    description_from_text,
    is_xml,
)
from contact_sim.robot.feet import Sphere, contact_points_at
from contact_sim.robot.joints import actuated_joint_names
from contact_sim.robot.meshes import check_meshes_exist, package_folders
from contact_sim.robot.model import STANDING, RobotModel
from contact_sim.robot.numbers import number, vector
from contact_sim.robot.position_limits import PositionLimit, described_limits
from contact_sim.robot.rewritten import LIMITED_TYPES, kinematics_text
from contact_sim.robot.srdf import Semantics, configuration, read_srdf
from contact_sim.robot.transmissions import gear_ratios
from contact_sim.robot.xacro_program import XacroArguments


def load_robot(
    source: str | Path,
    floating_base: bool = True,
    contact_frames: Iterable[str | ContactPoint] | None = None,
    actuated_joints: Iterable[str] | None = None,
    srdf: str | Path | None = None,
    *,
    check_meshes: bool = True,
    xacro_arguments: XacroArguments | None = None,
) -> RobotModel:
    """Return the robot described by `source`.

    Masses and inertias are Pinocchio's, untouched; damping, dry friction, limits and gear ratios
    are those of the URDF, see `RobotModel.actuators`. effort="0" there is no limit, and a warning.
    A <mimic> joint is held to the one it follows by the contact problem.

    Args:
        source: a name of the catalogue (`robots()`), a path to a .urdf or .xacro file, or URDF
            text (it starts with '<'). A xacro is a program: it can do whatever you can.
        floating_base: whether the root link moves freely; else it is fixed to the world. A root
            link without mass, whose one joint is a floating one, is the world either way.
        contact_frames: frames of the feet, or contact points ready made. A frame whose link has
            exactly one sphere as collision geometry touches with that sphere, any other frame with
            its origin. None: the feet of the catalogue, else the end effectors of the SRDF, else
            none.
        actuated_joints: names of driven joints; None means every joint with one degree of freedom.
        srdf: a path to an SRDF, or its text, with reference poses and end effectors; None: the
            catalogue's, else none.
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
    floating_base = floating_base and not floats_by_itself(description.root)
    model = _pinocchio_model(description, floating_base)
    semantics = _semantics(srdf, entry)
    known = entry.feet if entry is not None else semantics.end_effectors
    frames = known if contact_frames is None else contact_frames
    return RobotModel(
        name=str(source) if entry is not None else description.name,
        pinocchio_model=model,
        joint_names=actuated_joint_names(model, actuated_joints),
        contact_points=contact_points_at(
            model, 'contact_frames', frames, _spheres(description, entry)
        ),
        references=_references(model, semantics, entry),
        description=description.text,
        package_dirs=package_folders(description.root, description.file),
        gear_ratios=gear_ratios(description.root, description.place),
        position_limits=_position_limits(description, model),
    )


def _entry(source: str | Path) -> CatalogueEntry | None:
    """Return the catalogue's entry when `source` is a name of the catalogue, None for the rest."""
    if isinstance(source, Path):
        return None
    if not isinstance(source, str) or not source.strip():
        raise InvalidInput(
            f'robot = {source!r}: expected a name ({", ".join(robots())}), a path or URDF text'
        )
    if source in robots():
        return catalogue_entry(source)
    looks_like_file = '/' in source or source.endswith(('.urdf', '.xacro', '.xml'))
    if not (is_xml(source) or looks_like_file or os.path.exists(source)):
        raise UnknownName('robot or file', source, robots())
    return None


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


def _position_limits(description: Description, model: pin.Model) -> tuple[PositionLimit, ...]:
    """Return the limits of the URDF; name the joints that ought to follow others but do not."""
    limits, alone = described_limits(model, description.root, description.place)
    if alone:
        warnings.warn(
            f'{description.place}: <mimic> needs joints with one coordinate, these move on their '
            f'own: {", ".join(alone)}',
            stacklevel=3,
        )
    return limits


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


def _references(
    model: pin.Model, semantics: Semantics, entry: CatalogueEntry | None
) -> Mapping[str, Array]:
    """Return the poses of the SRDF, and 'standing' from the catalogue where the SRDF has none."""
    poses = dict(semantics.poses)
    if entry is not None and entry.standing and STANDING not in poses:
        poses[STANDING] = {
            name: (angle,)
            for name in model.names
            for ending, angle in entry.standing.items()
            if name.endswith(ending)
        }
    neutral = neutral_configuration(model)
    return {
        name: configuration(model, neutral, values, f'reference pose {name!r}')
        for name, values in poses.items()
    }


def _spheres(description: Description, entry: CatalogueEntry | None) -> Mapping[str, Sphere]:
    """Return the contact sphere of every frame that has one, by link and by fixed joint."""
    spheres, robot = {}, description.root
    for link in robot.iterfind('link'):
        found = [c for c in link.iterfind('collision') if c.find('geometry/sphere') is not None]
        if len(found) == 1:
            spheres[link.get('name', '')] = _sphere(
                found[0], f'{description.place}: link {link.get("name")!r}'
            )
    if entry is not None and entry.foot is not None:
        spheres.update(dict.fromkeys(entry.feet, entry.foot))
    for joint in robot.iterfind('joint'):
        if joint.get('type') == 'fixed' and child_of(joint) in spheres:
            spheres.setdefault(joint.get('name', ''), spheres[child_of(joint)])
    return spheres


def _sphere(collision: Element, where: str) -> Sphere:
    centre = vector(collision.find('origin'), 'xyz', '0 0 0', f'{where}: <origin>')
    sphere = collision.find('geometry/sphere')
    assert sphere is not None  # the caller looked
    radius = number(sphere, 'radius', f'{where}: <sphere>', at_least=0.0, required=True, unit=' m')
    return Sphere(centre, radius)
