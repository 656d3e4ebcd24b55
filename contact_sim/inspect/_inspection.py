"""Inspect a robot description: load it, propose feet, test standing, and report as text."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.control._balance import Balance, Footing
from contact_sim.errors import ContactSimError, RobotDescriptionError
from contact_sim.robot._actuators import holding
from contact_sim.robot._catalogue import in_catalogue
from contact_sim.robot._coordinates import neutral_configuration
from contact_sim.robot._files import XacroArguments, missing_meshes
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import (
    STANDING,
    lowest_heights,
    polygon_centre,
    polygon_margin,
)
from contact_sim.robot._trees import data_of
from contact_sim.robot._urdf import link_mass, parse_xml
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator

# --- Loading a description, with everything that was noticed


@dataclass(frozen=True)
class Source:
    """Arguments of `load_robot`."""

    robot: str
    """Name in the catalogue, path of a URDF or xacro file, or its text."""
    feet: tuple[str, ...] | None = None
    srdf: str | None = None
    floating_base: bool = True
    xacro_arguments: XacroArguments | None = None


@dataclass(frozen=True, eq=False)
class Inspection:
    """A robot and what was noticed while it was loaded."""

    source: Source
    robot: RobotModel
    why_feet: str
    """Origin of its feet, in words."""
    proposed: bool
    """Whether the feet are a proposal, which has to be passed to `load_robot`."""
    meshes_missing: tuple[str, ...]
    """Meshes that are not on this machine."""
    warnings: tuple[str, ...]

    @property
    def root(self) -> Element:
        """The <robot> element."""
        return parse_xml(self.robot.description, self.robot.name)

    @property
    def massless(self) -> tuple[str, ...]:
        """Links without mass that carry geometry."""
        return tuple(
            link.get('name', '')
            for link in self.root.iterfind('link')
            if link_mass(link) == 0.0 and link.find('collision') is not None
        )


def inspect_robot(source: Source) -> Inspection:
    """Load a robot with the feet that are named, known, or else proposed."""

    def loaded(feet: Sequence[str] | None) -> RobotModel:
        return load_robot(
            source.robot, source.floating_base, feet, srdf=source.srdf, check_meshes=False,
            xacro_arguments=source.xacro_arguments,
        )  # fmt: skip

    known = in_catalogue(source.robot)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        robot, proposed = loaded(source.feet), False
        if source.feet is not None:
            why = 'as given'
        else:
            own = 'called so there' if source.srdf is None else 'end effectors of the SRDF'
            why = 'of the catalogue' if known else own
        if source.feet is None and not robot.feet and robot.floating_base:
            proposal = proposed_feet(robot)
            proposed = bool(proposal.links)
            why = f'proposed: {proposal.why}'
            robot = loaded(proposal.links)
    texts = dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning)
    others = tuple(text for text in texts if 'no feet are known' not in text)
    missing: tuple[str, ...] = ()
    if not known:
        file = Path(source.robot) if not source.robot.lstrip().startswith('<') else None
        try:
            root = parse_xml(robot.description, source.robot)
        except RobotDescriptionError:
            pass
        else:
            missing = tuple(dict.fromkeys(mesh.uri for mesh, _ in missing_meshes(root, file)))
    return Inspection(source, robot, why, proposed, missing, others)


# --- The report

LEVEL = 1e-3
"""Height above the lowest point up to which contact points stand [m]."""
MOST_NAMES = 8
COLUMNS = 'lower', 'upper', 'effort', 'speed', 'damping', 'friction'


def lines(inspection: Inspection) -> Iterator[str]:
    """Yield the report: bodies, joints, feet, poses, gains, and what is missing."""
    robot = inspection.robot
    links = len(inspection.root.findall('link'))
    base = 'floating base' if robot.floating_base else 'fixed base'
    yield (
        f'{robot.name}: {robot.total_mass:.3f} kg, {links} links, {robot.n_joints} driven joints, '
        f'{base} {robot.base_frame!r}'
    )
    yield from _joints(robot)
    yield from _feet(inspection)
    yield from _poses(robot)
    yield from _gains(robot)
    yield from _approximated(inspection)


def _joints(robot: RobotModel) -> Iterator[str]:
    yield ''
    if robot.n_joints == 0:
        yield 'joints: none is driven'
        return
    actuators, width = robot.actuators, max(map(len, robot.joint_names))
    yield ' '.join([f'{"joint":{width}} ', *(f'{column:>8}' for column in COLUMNS)])
    limits = {limit.joints[0]: limit for limit in robot.position_limits if len(limit.joints) == 1}
    for i, name in enumerate(robot.joint_names):
        limit = limits.get(name)
        lower, upper = (limit.lower, limit.upper) if limit else (-np.inf, np.inf)
        numbers = (
            lower, upper, actuators.effort_limit[i], actuators.velocity_limit[i],
            actuators.viscous_friction[i], actuators.dry_friction[i],
        )  # fmt: skip
        yield ' '.join([f'{name:{width}} ', *(f'{_number(value):>8}' for value in numbers)])
    for constraint in robot.constraints:
        yield f'held together: {constraint}'
    own = list(robot.pinocchio_model.names)[2 if robot.floating_base else 1 :]
    passive = set(own) - set(robot.joint_names)
    if passive:
        yield f'not driven: {_listed(sorted(passive))}'


def _feet(inspection: Inspection) -> Iterator[str]:
    robot = inspection.robot
    yield ''
    if not robot.feet:
        yield 'feet: none; nothing touches the ground'
        return
    yield f'feet ({inspection.why_feet}):'
    q = robot.reference_configuration()
    low = lowest_heights(robot.pinocchio_model, robot.contact_points, q)
    for foot in robot.feet:
        points = [robot.contact_points[k] for k in foot.points]
        radii = sorted({point.radius for point in points})
        sizes = ', '.join(f'{1e3 * radius:g}' for radius in radii)
        down = sum(low[k] < low.min() + LEVEL for k in foot.points)
        yield (
            f'  {foot.name}: {len(points)} contact point{"s" if len(points) > 1 else ""}, radius '
            f'{sizes} mm, on what {foot.joint} moves; {down} on the ground in {STANDING!r}'
        )


def _poses(robot: RobotModel) -> Iterator[str]:
    yield ''
    yield f'poses: {", ".join(robot.reference_configurations)}'
    q = robot.reference_configuration(STANDING)
    moved = [
        f'{name}={angle:.4g}'
        for name, angle in zip(robot.joint_names, robot.joint_positions(q), strict=True)
        if abs(angle) > 5e-5
    ]
    yield f'  {STANDING}: {" ".join(moved) or "all joints at 0"}'
    if robot.floating_base:
        yield f'  base {q[2]:.3f} m above the ground'


def _gains(robot: RobotModel) -> Iterator[str]:
    if robot.n_joints == 0:
        return
    kp, kd = robot.default_gains
    yield ''
    yield (
        f'default gains: kp {kp.min():.3g} to {kp.max():.3g}, kd {kd.min():.3g} to {kd.max():.3g} '
        f'(N m/rad, N m s/rad), stable up to a time step of {1e3 * robot.gains_time_step:.2g} ms'
    )


def _approximated(inspection: Inspection) -> Iterator[str]:
    robot, notes = inspection.robot, list(inspection.robot.notes)
    if inspection.meshes_missing:
        notes.append(
            f'{len(inspection.meshes_missing)} meshes are not on this machine: '
            f'{_listed(inspection.meshes_missing)}; they play no part in the dynamics'
        )
    if inspection.massless:
        notes.append(f'links with geometry and without mass: {_listed(inspection.massless)}')
    endless = [
        name
        for name, most in zip(robot.joint_names, robot.effort_limit, strict=True)
        if not np.isfinite(most) or most > 1e6
    ]
    if endless:
        notes.append(f'joints without an effort limit: {_listed(endless)}')
    if not notes and not inspection.warnings:
        return
    yield ''
    yield 'decided, approximated or missing:'
    for note in (*notes, *inspection.warnings):
        yield f'  - {note}'


def run_next(inspection: Inspection) -> Iterator[str]:
    """Yield the lines that use the robot: in Python and with ROS 2."""
    source, robot = inspection.source, inspection.robot
    feet = tuple(foot.frame for foot in robot.feet)
    python = [repr(source.robot)]
    is_path = '/' in source.robot or '.' in source.robot
    ros = [f'urdf:={shlex.quote(source.robot)}' if is_path else f'robot:={source.robot}']
    if not source.floating_base:
        python.append('floating_base=False')
    if inspection.proposed or source.feet is not None:
        python.append(f'feet={list(feet)!r}')
        ros.append(f'feet:={shlex.quote(" ".join(feet))}')
    if source.srdf:
        python.append(f'srdf={source.srdf!r}')
    if inspection.meshes_missing:
        python.append('check_meshes=False')
        ros.append('check_meshes:=false')
    if source.xacro_arguments is not None:
        python.append(f'xacro_arguments={dict(source.xacro_arguments)!r}')
        words = ' '.join(f'{name}:={value}' for name, value in source.xacro_arguments.items())
        ros += [f'xacro_arguments:={shlex.quote(words)}'] if words else []
    yield 'run next:'
    yield f'  ros2 launch contact_sim simulation.launch.py {" ".join(ros)} rviz:=true'
    yield f'  python: robot = contact_sim.load_robot({", ".join(python)})'


def _number(value: float) -> str:
    return 'none' if not np.isfinite(value) or abs(value) > 1e6 else f'{value:.4g}'


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ', '.join(names[:MOST_NAMES]) + (f' and {more} more' if more > 0 else '')


# --- Proposal of feet
#
# First the links called foot, sole, toe or paw at the ends of limbs; else the lowest ends of limbs
# in the neutral pose.

FOOT_NAME = re.compile('foot|feet|sole|toe|paw', re.IGNORECASE)
NO_FOOT = re.compile('sensor|imu|gyro|camera|rotor|rod|bumper|skin|six|force', re.IGNORECASE)
LOW = 0.15
"""Height above the lowest link, as a share of the robot's, up to which ends of limbs are feet."""
LEAST = 2
"""Number of feet below which names are not trusted."""


@dataclass(frozen=True)
class ProposedFeet:
    """Links that may be feet."""

    links: tuple[str, ...]
    why: str


def proposed_feet(robot: RobotModel) -> ProposedFeet:
    """Return links that may be the feet of a robot with a description."""
    root = parse_xml(robot.description, robot.name)
    links = {link.get('name', ''): link for link in root.iterfind('link')}
    model = robot.pinocchio_model
    bodies: dict[int, list[str]] = {}  # the links that each joint of a limb moves
    for frame in model.frames:
        joint = frame.parentJoint
        of_limb = joint > 0 and model.joints[joint].shortname() != 'JointModelFreeFlyer'
        if of_limb and frame.type == pin.FrameType.BODY and frame.name in links:
            bodies.setdefault(joint, []).append(str(frame.name))
    named = {
        joint
        for joint, names in bodies.items()
        if any(FOOT_NAME.search(name) and not NO_FOOT.search(name) for name in names)
    }
    ends = _ends(model, named)
    if len(ends) >= LEAST:
        return ProposedFeet(_best_links(ends, bodies, links), 'links at the ends of limbs by name')
    low, trunk = _lowest(robot)
    casters = tuple(
        name
        for name in trunk
        if name in links and links[name].find('collision/geometry/sphere') is not None
    )
    why = f'lowest ends of limbs in the neutral pose, within {100 * LOW:.0f} % of the height'
    why += ', and balls of the trunk there' if casters else ''
    return ProposedFeet((*_best_links(low, bodies, links), *casters), why)


def _ends(model: pin.Model, joints: set[int]) -> list[int]:
    """Return the joints that carry none of the others."""
    carrying = {int(above) for j in joints for above in list(model.supports[j])[:-1]}
    return sorted(joints - carrying)


def _lowest(robot: RobotModel) -> tuple[list[int], list[str]]:
    """Return the ends of limbs that are low in the neutral pose, and such links of the trunk."""
    model = robot.pinocchio_model
    data = data_of(model)
    pin.framesForwardKinematics(model, data, neutral_configuration(model))
    heights = np.array([placement.translation[2] for placement in data.oMf])
    reach = heights.min() + LOW * max(float(np.ptp(heights)), 1e-9)
    last = _ends(model, set(range(2, model.njoints)))
    low = [
        joint
        for joint in last
        if any(
            height <= reach
            for frame, height in zip(model.frames, heights, strict=True)
            if frame.parentJoint == joint
        )
    ]
    trunk = [
        str(frame.name)
        for frame, height in zip(model.frames, heights, strict=True)
        if frame.parentJoint == 1 and frame.type == pin.FrameType.BODY and height <= reach
    ]
    return low, trunk if low else []


def _best_links(
    joints: list[int], bodies: dict[int, list[str]], links: dict[str, Element]
) -> tuple[str, ...]:
    """Return the best foot of the links on each of the joints."""

    def merit(name: str) -> tuple[bool, bool, bool, int]:
        link = links[name]
        spheres = link.find('collision/geometry/sphere') is not None
        meant = bool(FOOT_NAME.search(name)) and not NO_FOOT.search(name)
        return spheres and meant, link.find('collision') is not None, meant, -len(name)

    return tuple(max(bodies[joint], key=merit) for joint in joints if joint in bodies)


# --- Trials: the reference pose, held by the default gains, and by Balance, on a plane

TIME_STEP = 1e-3
"""Time step of a trial, if the gains are stable there [s]."""
DURATION = 2.0
"""Simulated time of a trial [s]."""
FRICTION = 0.8
ON_GROUND = 1e-3
"""Height up to which a contact point supports [m]."""
LINE = 1e-3
"""Margin of its middle from which on a support polygon has an area [m]."""
FALLEN = 0.15
"""Share of its height that a robot which stands does not lose."""
TILTED = 0.26
"""Largest tilt of the trunk of a robot that stands [rad]."""
WEAK = 0.9
"""Share of the distance to the edge of the soles below which efforts limit the pressure."""


@dataclass(frozen=True)
class StandingTrial:
    """How a robot stood."""

    stands: bool
    why: str
    """In words."""


def standing_trial(robot: RobotModel, contact_model: str = 'ncp') -> StandingTrial:
    """Return whether a robot keeps height and attitude for DURATION, and what happened."""
    if not robot.floating_base:
        return StandingTrial(False, 'fixed base: it need not stand')
    if not robot.contact_points:
        return StandingTrial(False, 'no contact points: nothing touches the ground')
    h = min(TIME_STEP, robot.gains_time_step)
    start = robot.reference_configuration(STANDING)
    try:
        sim = Simulator(robot, contact_model, friction=FRICTION, time_step=h)
        command = holding(robot.joint_positions(start), *robot.default_gains)
    except ContactSimError as error:
        return StandingTrial(False, f'no step: {error}')
    return _trial(robot, lambda steps: sim.follow(command, steps), h, _unsupported(robot), '')


def balance_trial(robot: RobotModel, contact_model: str = 'ncp') -> StandingTrial:
    """Return whether `control.Balance` keeps a robot standing for DURATION, and how.

    Why not, where it falls or cannot be balanced; and how far the centre of pressure can move.
    """
    try:
        controller = Balance(robot)
        sim = Simulator(robot, contact_model, friction=FRICTION, time_step=TIME_STEP)
    except ContactSimError as error:
        return StandingTrial(False, f'cannot: {str(error).partition(": ")[2]}')

    def advance(steps: int) -> StepReport:
        for _ in range(steps):
            report = sim.step(controller.effort(sim.time, sim.q, sim.v))
        return report

    reach = f'; {pressure_words(controller.footing())}'
    return _trial(robot, advance, TIME_STEP, reach, reach)


def pressure_words(footing: Footing) -> str:
    """Return how far the centre of pressure can move, and what limits it, in words."""
    if not footing.carries:
        return 'its effort limits do not carry it'
    forward, back, left, right = (f'{1e3 * reach:.0f}' for reach in np.maximum(footing.reach, 0.0))
    words = (
        f'the centre of pressure can move {forward} mm forward, {back} back, {left} left, '
        f'{right} right'
    )
    if (footing.reach < WEAK * footing.edge).any():
        whole = ', '.join(f'{1e3 * edge:.0f}' for edge in footing.edge)
        words += f' (effort limits; to the edges of the soles: {whole} mm)'
    return words


def _trial(
    robot: RobotModel, advance: Callable[[int], StepReport], h: float, why: str, besides: str
) -> StandingTrial:
    """Return how a robot stood that `advance` moves on by a number of steps of h [s].

    In words, with `why` where it falls and `besides` where it stands.
    """
    start = robot.reference_configuration(STANDING)
    height, upright = _height(robot, start), pin.Quaternion(start[3:7]).matrix()[2]
    piece, done = max(1, round(0.05 / h)), 0.0
    while done < DURATION:
        try:
            report = advance(piece)
        except ContactSimError as error:
            return StandingTrial(False, f'ends at {done:.2f} s: {error}')
        done += piece * h
        lost = 1.0 - _height(robot, report.q) / height
        vertical = pin.Quaternion(report.q[3:7]).matrix()[2]
        tilt = float(np.arccos(np.clip(upright @ vertical, -1.0, 1.0)))
        if lost > FALLEN or tilt > TILTED:
            return StandingTrial(
                False,
                f'falls: at {done:.2f} s {100 * lost:.0f} % lower, tilted by '
                f'{np.degrees(tilt):.0f}°{_limited(robot, report.effort)}{why}',
            )
    return StandingTrial(
        True,
        f'stands {DURATION:g} s: {100 * lost:.1f} % lower, tilted by {np.degrees(tilt):.1f}°'
        f'{_limited(robot, report.effort)}{besides}',
    )


def _unsupported(robot: RobotModel) -> str:
    """Return why the contact points cannot carry the pose 'standing', in words."""
    q = robot.reference_configuration(STANDING)
    low = lowest_heights(robot.pinocchio_model, robot.contact_points, q)
    model = robot.pinocchio_model
    data = data_of(model)
    mass = pin.centerOfMass(model, data, q)[:2]
    down = [p for p, z in zip(robot.contact_points, low, strict=True) if z < low.min() + ON_GROUND]
    places = [data.oMi[model.getJointId(p.joint)].act(p.offset)[:2] for p in down]
    feet = np.array(places)
    inside = polygon_margin(feet, mass)
    if inside == -np.inf or polygon_margin(feet, polygon_centre(feet)) < LINE:
        return f"; in 'standing' {len(down)} contact points are down and enclose no area"
    if inside < 0.0:
        return f"; in 'standing' the centre of mass is {-1e3 * inside:.0f} mm beside its support"
    return ''


def _height(robot: RobotModel, q: Array) -> float:
    """Return the height of the centre of mass [m]; the base of some robots is at their feet."""
    model = robot.pinocchio_model
    return float(pin.centerOfMass(model, data_of(model), q)[2])


def _limited(robot: RobotModel, effort: Array) -> str:
    """Return which joints are at their effort limits, in words."""
    limit = robot.effort_limit
    at = [
        name
        for name, e, most in zip(robot.joint_names, effort, limit, strict=True)
        if abs(e) >= most * (1.0 - 1e-9)
    ]
    return f'; at their effort limits: {", ".join(at[:4])}' if at else ''
