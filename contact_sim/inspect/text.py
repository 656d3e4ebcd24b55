"""What was understood, in lines for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np

from contact_sim.inspect.understanding import Understanding
from contact_sim.robot.actuators import Actuators
from contact_sim.robot.model import STANDING, RobotModel
from contact_sim.robot.placement import lowest_heights

LEVEL = 1e-3
"""Height above the lowest point up to which contact points stand [m]."""
MOST_NAMES = 8
COLUMNS = 'lower', 'upper', 'effort', 'speed', 'damping', 'friction'


def lines(found: Understanding) -> Iterator[str]:
    """Yield what is known of a robot: bodies, joints, feet, poses, gains, and what is missing."""
    robot = found.robot
    links = len(found.root.findall('link'))
    base = 'floating base' if robot.floating_base else 'fixed base'
    yield (
        f'{robot.name}: {robot.total_mass:.3f} kg, {links} links, {robot.n_joints} driven joints, '
        f'{base} {robot.base_frame!r}'
    )
    yield from _joints(robot)
    yield from _feet(found)
    yield from _poses(robot)
    yield from _gains(robot)
    yield from _approximated(found)


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
        numbers = (lower, upper, *_drive(actuators, i))
        yield ' '.join([f'{name:{width}} ', *(f'{_number(value):>8}' for value in numbers)])
    for constraint in robot.constraints:
        yield f'held together: {constraint}'
    own = list(robot.pinocchio_model.names)[2 if robot.floating_base else 1 :]
    passive = set(own) - set(robot.joint_names)
    if passive:
        yield f'not driven: {_listed(sorted(passive))}'


def _drive(actuators: Actuators, i: int) -> tuple[float, ...]:
    return tuple(
        float(values[i])
        for values in (
            actuators.effort_limit, actuators.velocity_limit, actuators.viscous_friction,
            actuators.dry_friction,
        )
    )  # fmt: skip


def _feet(found: Understanding) -> Iterator[str]:
    robot = found.robot
    yield ''
    if not robot.feet:
        yield 'feet: none; nothing touches the ground'
        return
    yield f'feet ({found.why_feet}):'
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


def _approximated(found: Understanding) -> Iterator[str]:
    robot, notes = found.robot, list(found.robot.notes)
    if found.meshes_missing:
        notes.append(
            f'{len(found.meshes_missing)} meshes are not on this machine: '
            f'{_listed(found.meshes_missing)}; they play no part in the dynamics'
        )
    if found.massless:
        notes.append(f'links with geometry and without mass: {_listed(found.massless)}')
    endless = [
        name
        for name, most in zip(robot.joint_names, robot.effort_limit, strict=True)
        if not np.isfinite(most) or most > 1e6
    ]
    if endless:
        notes.append(f'joints without an effort limit: {_listed(endless)}')
    if not notes and not found.warnings:
        return
    yield ''
    yield 'decided, approximated or missing:'
    for note in (*notes, *found.warnings):
        yield f'  - {note}'


def run_next(found: Understanding) -> Iterator[str]:
    """Yield the lines that use the robot: in Python and with ROS 2."""
    asked, robot = found.asked, found.robot
    feet = tuple(foot.frame for foot in robot.feet)
    told = found.proposed or asked.feet is not None
    python = [repr(asked.source)]
    ros = [f'robot:={asked.source}' if _by_name(asked.source) else f'urdf:={_word(asked.source)}']
    if not asked.floating_base:
        python.append('floating_base=False')
    if told:
        python.append(f'feet={list(feet)!r}')
        ros.append(f'feet:={_word(" ".join(feet))}')
    if asked.srdf:
        python.append(f'srdf={asked.srdf!r}')
    if found.meshes_missing:
        python.append('check_meshes=False')
        ros.append('check_meshes:=false')
    if asked.xacro_arguments is not None:
        python.append(f'xacro_arguments={dict(asked.xacro_arguments)!r}')
        words = ' '.join(f'{name}:={value}' for name, value in asked.xacro_arguments.items())
        ros += [f'xacro_arguments:={_word(words)}'] if words else []
    yield 'run next:'
    yield f'  ros2 launch contact_sim simulation.launch.py {" ".join(ros)} rviz:=true'
    yield f'  python: robot = contact_sim.load_robot({", ".join(python)})'


def _by_name(source: str) -> bool:
    return '/' not in source and '.' not in source


def _word(text: str) -> str:
    return shlex.quote(text)


def _number(value: float) -> str:
    return 'none' if not np.isfinite(value) or abs(value) > 1e6 else f'{value:.4g}'


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ', '.join(names[:MOST_NAMES]) + (f' and {more} more' if more > 0 else '')
