"""load_robot: from a name, a URDF or a xacro to a RobotModel."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import pinocchio as pin

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
from contact_sim.robot._constraints import JointCoupling, described_constraints
from contact_sim.robot._contact_points import FEET, ContactPoint, contact_points_at, soles_of
from contact_sim.robot._coordinates import actuated_joint_names
from contact_sim.robot._files import XacroArguments, check_meshes_exist, mesh_folders
from contact_sim.robot._joint_limits import described_limits
from contact_sim.robot._model import RobotModel
from contact_sim.robot._srdf import JointValues, Semantics, read_srdf
from contact_sim.robot._standing_pose import STANDING, Poses, has_floating_base, reference_poses
from contact_sim.robot._urdf import (
    Description,
    build_model,
    check_description,
    floats_by_itself,
    gear_ratios,
    is_xml,
    lift_limits_of_zero,
    read_description,
)


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

    Masses, inertias, damping, dry friction, limits and gear ratios are those of the URDF, see
    `RobotModel.actuators`. An effort limit of 0 is taken for no limit, with a warning. <mimic> and
    <loop_joint> become constraints of the robot (robot/_constraints.py).

    Args:
        source: a name of the catalogue (`robots()`, `textbook_systems()`), a path to a .urdf or
            .xacro file, or URDF text (it starts with '<'). A xacro is a program and runs with
            your rights.
        floating_base: whether the root link moves freely; else it is fixed to the world. A root
            link without mass, whose only joint is a floating one, is fixed in any case, and so is
            that of most systems of the textbook.
        feet: frames of the feet, or contact points. A frame touches with all spheres of its
            link's collision geometry; else with the corners of boxes, cylinders and meshes there;
            else with its origin. None: the feet of the catalogue, else the end effectors of the
            SRDF, else none, with a warning.
        actuated_joints: names of driven joints; None: those of the catalogue, else every joint
            with one degree of freedom that follows no other and that the SRDF does not call
            passive.
        srdf: a path to an SRDF, or its text, with reference poses and end effectors; None: the
            catalogue's, else none.
        poses: reference poses: by name, values by joint [rad or m]. They replace those of the
            SRDF; joints left out are at neutral. Without a pose 'standing', a robot with legs gets
            one on bent legs (robot/_standing_pose.py).
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
    if entry is not None:
        file = robot_file(entry, entry.urdf)
        description = read_description(file, entry.corrections, xacro_arguments)
    else:
        description = read_description(source, xacro_arguments=xacro_arguments)
    urdf, place = description.root, description.place
    check_description(urdf, place)
    if check_meshes:
        check_meshes_exist(urdf, description.file, place)
    package_dirs = mesh_folders(urdf, description.file)

    fixed = floats_by_itself(urdf) or (entry is not None and not entry.floating_base)
    model = _pinocchio_model(description, floating_base and not fixed)
    limits = described_limits(model, urdf)
    constraints, ignored = described_constraints(model, urdf, place)
    if ignored:
        warnings.warn(
            f'{place}: <mimic> needs joints with one coordinate, these move on their own: '
            f'{", ".join(ignored)}',
            stacklevel=2,
        )

    semantics = _semantics(srdf, entry)
    if feet is None:
        feet = entry.feet if entry is not None else semantics.end_effectors
        if entry is None and not feet and has_floating_base(model):
            warnings.warn(
                f'{place}: no feet are known, so nothing touches the ground; name their links '
                '(feet). python -m contact_sim.inspect tells which they may be',
                stacklevel=2,
            )
    frames = as_tuple('feet', feet, f'a list of {FEET}')
    foot_spheres = {foot: (entry.foot,) for foot in entry.feet} if entry and entry.foot else {}
    soles = soles_of(model, urdf, package_dirs, frames, place, foot_spheres)
    contact_points = contact_points_at(model, 'feet', frames, soles.spheres)

    if actuated_joints is None and entry is not None:
        actuated_joints = entry.actuated_joints
    followers = {one.joint for one in constraints if isinstance(one, JointCoupling)}
    joint_names = actuated_joint_names(
        model, actuated_joints, semantics.passive_joints | followers
    )
    described_poses = _described_poses(model, semantics, entry)
    references = reference_poses(
        model, described_poses, poses, contact_points, limits, constraints
    )
    return RobotModel(
        name=str(source) if entry is not None else description.name,
        pinocchio_model=model,
        joint_names=joint_names,
        contact_points=contact_points,
        references=references.poses,
        description=description.text,
        package_dirs=package_dirs,
        gear_ratios=gear_ratios(urdf, place),
        position_limits=limits,
        notes=(*soles.notes, *references.notes),
        constraints=constraints,
    )


def _entry(source: str | Path) -> CatalogueEntry | None:
    """Return the entry of a name of the catalogue; None for a file or text."""
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


def _pinocchio_model(description: Description, floating_base: bool) -> pin.Model:
    robot, place = description.root, description.place
    _check_reserved_names(description, floating_base)
    model = build_model(robot, place, floating_base)
    unlimited = lift_limits_of_zero(model, robot, place)
    if unlimited:
        warnings.warn(
            f'{place}: <limit> effort="0" is taken for no limit: {", ".join(unlimited)}',
            stacklevel=3,
        )
    return model


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


def _described_poses(
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
