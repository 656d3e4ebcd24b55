"""load_robot: create a RobotModel from a name, a URDF, a xacro, an MJCF or an SDF."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

import pinocchio as pin

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import as_tuple, flag, named_keywords
from contact_sim.errors import InvalidInput, RobotDescriptionError, known_name, shown
from contact_sim.robot import _mjcf, _sdf
from contact_sim.robot._catalogue import CATALOGUE, CatalogueEntry, robot_file, robots
from contact_sim.robot._collision_pairs import (
    NO_COLLISIONS,
    Collisions,
    clear_of_ground,
    grounded_solids,
    solids_of,
)
from contact_sim.robot._constraints import JointCoupling, described_constraints
from contact_sim.robot._contact_points import FEET, ContactPoint, contact_points_at, soles_of
from contact_sim.robot._coordinates import JointSpring, actuated_joint_names, described_limits
from contact_sim.robot._files import XacroArguments, check_meshes_exist, mesh_folders
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING, Poses, has_floating_base, reference_poses
from contact_sim.robot._urdf import (
    Description,
    JointValues,
    Semantics,
    build_model,
    check_description,
    floats_by_itself,
    gear_ratios,
    is_xml,
    lift_limits_of_zero,
    number,
    read_description,
    read_srdf,
)

NO_FEET = (
    'no feet are known, only other links touch the ground; name their links (feet). '
    'python -m contact_sim.inspect tells which they may be'
)


@named_keywords
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
    body_contacts: bool = True,
) -> RobotModel:
    """Return the robot described by `source`.

    Masses, inertias, damping, dry friction, limits and gear ratios are those of the URDF, see
    `RobotModel.actuators`. An effort limit of 0 is taken for no limit, with a warning. <mimic> and
    <loop_joint> become constraints of the robot (robot/_constraints.py). An MJCF (its root is
    <mujoco>) is read by MuJoCo's compiler, which the extra `mjcf` installs; an SDF has one model.
    What they say and a robot cannot have is in `RobotModel.notes` (robot/_mjcf.py, _sdf.py).

    Args:
        source: a name of the catalogue (`robots()`, `textbook_systems()`), a path to a URDF, a
            .xacro, an MJCF or SDF, or text of a URDF, MJCF or SDF (it starts with '<'). A xacro is
            a program and runs with your rights.
        floating_base: whether the root link moves freely; else it is fixed to the world. A root
            link without mass, whose only joint is a floating one, is fixed in any case, and so is
            that of most systems of the textbook, of an MJCF without a free joint, and of an SDF
            with a joint to the world.
        feet: frames of the feet, or contact points. A frame touches with all spheres of its
            link's collision geometry; else with the corners of boxes, cylinders and meshes there;
            else with its origin. In an MJCF a geom or site names the link that touches there.
            None: the feet of the catalogue, else the end effectors of the SRDF, else what an MJCF
            calls feet, else none, with a warning.
        actuated_joints: names of driven joints; None: those of the catalogue, else those with an
            actuator of an MJCF, else every joint with one degree of freedom that follows no other
            and that the SRDF does not call passive.
        srdf: a path to an SRDF, or its text, with reference poses and end effectors; None: the
            catalogue's, else none.
        poses: reference poses: by name, values by joint [rad or m]. They replace those of the
            SRDF; joints left out are at neutral. Without a pose 'standing', a robot with legs gets
            one on bent legs (robot/_standing_pose.py).
        check_meshes: whether a mesh that is not on this machine is an error. Meshes play no part
            in the dynamics.
        xacro_arguments: values of the arguments of a xacro, by name. Given, even if empty, any
            file or text is run as a xacro; None: only files called .xacro are.
        body_contacts: whether links that are no feet touch the ground with their collision
            geometry, as `RobotModel.with_body_contacts` has it. Those that are not above the feet
            in the standing pose do not. `RobotModel.notes` names them, and a geometry that cannot
            be read. Wrenches of their own are published of links of `with_body_contacts` only.

    Raises:
        UnknownName: an unknown robot, contact frame or joint.
        InvalidInput: something listed twice, or a joint or frame that cannot be used.
        RobotDescriptionError: a file that is missing, malformed or physically impossible.
    """
    flag('floating_base', floating_base)
    flag('check_meshes', check_meshes)
    flag('body_contacts', body_contacts)
    name, entry = _entry(source)
    file = robot_file(entry, entry.urdf) if entry.urdf else source
    description = _checked_description(file, entry, check_meshes, xacro_arguments)
    urdf, place, extras = description.root, description.place, description.extras
    package_dirs = mesh_folders(urdf, description.file)
    # the model: bodies and joints, limits, closed loops
    fixed = floats_by_itself(urdf) or not entry.floating_base or extras.floats is False
    model = build_model(urdf, place, floating_base and not fixed)
    lift_limits_of_zero(model, urdf, place)
    limits = described_limits(model, urdf)
    constraints = described_constraints(model, urdf, place)
    # what a URDF does not say: feet, driven joints, poses
    if srdf is None and entry.srdf is not None:
        srdf = robot_file(entry, entry.srdf)
    semantics = Semantics() if srdf is None else read_srdf(srdf)
    if feet is not None:
        feet = _links_of_feet(feet, extras.stands_for)
    else:
        feet = entry.feet if entry.urdf else semantics.end_effectors or extras.feet
        if not (entry.urdf or feet) and has_floating_base(model):
            warnings.warn(f'{place}: {NO_FEET}', stacklevel=3)
    contact_points, notes = _contact_points(model, urdf, package_dirs, feet, entry, place)
    if actuated_joints is None:  # of some systems in the catalogue none is driven
        driven = entry.actuated_joints
        actuated_joints = extras.actuated_joints if driven is None else driven
    followers = {one.joint for one in constraints if isinstance(one, JointCoupling)}
    joint_names = actuated_joint_names(
        model, actuated_joints, semantics.passive_joints | followers
    )
    described_poses = {**extras.poses, **_described_poses(model, semantics, entry)}
    references, more_notes = reference_poses(
        model, described_poses, poses, contact_points, limits, constraints
    )
    if entry.solids:
        collisions = Collisions(entry.solids, grounded=tuple(solid.name for solid in entry.solids))
        left_out: tuple[str, ...] = ()
    else:
        standing = references.get(STANDING, pin.neutral(model)) if body_contacts else None
        collisions, left_out = _on_ground(
            model, description.text, package_dirs, contact_points, standing
        )
    return RobotModel(
        name=name or model.name,
        pinocchio_model=model,
        joint_names=joint_names,
        contact_points=contact_points,
        references=references,
        description=description.text,
        package_dirs=package_dirs,
        gear_ratios=gear_ratios(urdf, place),
        position_limits=limits,
        notes=extras.notes + notes + more_notes + left_out,
        collisions=collisions,
        constraints=constraints,
        springs=_springs(urdf, place),
        described_gains=extras.gains,
    )


def _checked_description(
    source: str | Path,
    entry: CatalogueEntry,
    check_meshes: bool,
    xacro_arguments: XacroArguments | None,
) -> Description:
    """Return a description after its checks; an MJCF or SDF as a URDF."""
    description = read_description(source, entry.corrections, xacro_arguments)
    if description.root.tag == 'mujoco':
        description = _mjcf.translated(description, check_meshes)
    elif description.root.tag == 'sdf':
        description = _sdf.translated(description)
    check_description(description.root, description.place)
    if check_meshes:
        check_meshes_exist(description.root, description.file, description.place)
    return description


def _springs(robot: Element, place: str) -> tuple[JointSpring, ...]:
    """Return the springs of a <robot>: spring_stiffness and spring_reference of <dynamics>."""
    springs = []
    for joint in robot.iterfind('joint'):
        name, dynamics = joint.get('name', ''), joint.find('dynamics')
        if dynamics is None or dynamics.get('spring_stiffness') is None:
            continue
        where = f'{place}: joint {name!r}: <dynamics>'
        stiffness = number(dynamics, 'spring_stiffness', where, at_least=0.0)
        rest = number(dynamics, 'spring_reference', where)
        if stiffness:
            springs.append(JointSpring(name, stiffness, rest))
    return tuple(springs)


def _contact_points(
    model: pin.Model,
    urdf: Element,
    package_dirs: tuple[str, ...],
    feet: Iterable[str | ContactPoint],
    entry: CatalogueEntry,
    place: str,
) -> tuple[tuple[ContactPoint, ...], tuple[str, ...]]:
    """Return the contact points of the feet, and notes on them."""
    frames = as_tuple('feet', feet, f'a list of {FEET}')
    known = {foot: (entry.foot,) for foot in entry.feet} if entry.foot else {}
    spheres, notes = soles_of(model, urdf, package_dirs, frames, place, known)
    points = contact_points_at(model, 'feet', frames, spheres)
    needed = 16.0 * (3.0 * len(points)) ** 2  # two matrices over the rows of a step
    if needed > _reading.limits().bytes:
        what = f'a step with {len(points)} contact points takes {needed / 1e6:.0f} MB'
        raise _reading.beyond(place, what, 'bytes')
    return points, notes


def _links_of_feet(
    feet: Iterable[str | ContactPoint], stands_for: Mapping[str, tuple[str, ...]]
) -> tuple[str | ContactPoint, ...]:
    """Return feet, each link once, where geoms and sites of an MJCF are named."""
    if not stands_for:
        return tuple(as_tuple('feet', feet, f'a list of {FEET}'))
    frames = as_tuple('feet', feet, f'a list of {FEET}')
    links: list[str | ContactPoint] = []
    for foot in frames:
        own = stands_for.get(foot, (foot,)) if isinstance(foot, str) else (foot,)
        links += [link for link in own if own == (foot,) or link not in links]
    return tuple(links)


def _on_ground(
    model: pin.Model,
    description: str,
    package_dirs: tuple[str, ...],
    feet: tuple[ContactPoint, ...],
    standing: Array | None,
) -> tuple[Collisions, tuple[str, ...]]:
    """Return the solids that the ground may touch by default, and notes on what it may not.

    None without a pose.
    """
    if standing is None:
        return NO_COLLISIONS, ()
    try:
        solids = solids_of(model, description, package_dirs, feet)
    except RobotDescriptionError as error:
        return NO_COLLISIONS, (f'only the feet touch the ground: {error}',)
    chosen = set(grounded_solids(model, solids, None, {point.frame for point in feet}))
    moving = [solid for solid in solids if solid.name in chosen]
    grounded = clear_of_ground(model, moving, standing, feet)
    low = ', '.join(solid.name for solid in moving if solid.name not in grounded)
    notes = (
        (f'not above the feet, standing, so the ground does not touch it: {low}',) if low else ()
    )
    return Collisions(solids, grounded=grounded), notes


def _entry(source: str | Path) -> tuple[str, CatalogueEntry]:
    """Return name and entry in the catalogue; those of a file or text state nothing."""
    unnamed = '', CatalogueEntry(urdf='')
    if isinstance(source, Path):
        return unnamed
    if not isinstance(source, str) or not source.strip():
        raise InvalidInput(
            f'robot = {shown(source)}: expected a name ({", ".join(robots())}), a path or '
            'URDF text'
        )
    looks_like_file = '/' in source or source.endswith(
        ('.urdf', '.xacro', '.xml', '.mjcf', '.sdf')
    )
    if source not in CATALOGUE and (is_xml(source) or looks_like_file or os.path.exists(source)):
        return unnamed
    name = known_name('robot or file', source, CATALOGUE)
    return name, CATALOGUE[name]


def _described_poses(
    model: pin.Model, semantics: Semantics, entry: CatalogueEntry
) -> Mapping[str, JointValues]:
    """Return the poses of the SRDF, and 'standing' from the catalogue where the SRDF has none."""
    poses = dict(semantics.poses)
    if entry.standing and STANDING not in poses:
        poses[STANDING] = {
            name: (angle,)
            for name in model.names
            for ending, angle in entry.standing.items()
            if name.endswith(ending)
        }
    return poses
