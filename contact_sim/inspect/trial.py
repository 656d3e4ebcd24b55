"""Does the robot stand? Its reference pose, held by its default gains on a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.errors import ContactSimError
from contact_sim.robot.actuation import holding
from contact_sim.robot.model import STANDING, RobotModel
from contact_sim.robot.placement import lowest_heights
from contact_sim.robot.support_polygon import centre, margin
from contact_sim.simulation.simulator import Simulator

Array = NDArray[np.float64]
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


@dataclass(frozen=True)
class Trial:
    """How a robot stood."""

    stands: bool
    why: str
    """In words."""


def standing_trial(robot: RobotModel, contact_model: str = 'ncp') -> Trial:
    """Return whether a robot keeps height and attitude for DURATION, and what happened."""
    if not robot.floating_base:
        return Trial(False, 'fixed base: it need not stand')
    if not robot.contact_points:
        return Trial(False, 'no contact points: nothing touches the ground')
    h = min(TIME_STEP, robot.gains_time_step)
    try:
        sim = Simulator(robot, contact_model, friction=FRICTION, time_step=h)
        return _stood(sim, robot)
    except ContactSimError as error:
        return Trial(False, f'no step: {error}')


def _stood(sim: Simulator, robot: RobotModel) -> Trial:
    start = robot.reference_configuration(STANDING)
    height = _height(robot, start)
    command = holding(robot.joint_positions(start), *robot.default_gains)
    piece = max(1, round(0.05 / sim.time_step))
    done, report = 0.0, None
    while done < DURATION:
        try:
            report = sim.follow(command, piece)
        except ContactSimError as error:
            return Trial(False, f'ends at {done:.2f} s: {error}')
        done += piece * sim.time_step
        lost, tilt = 1.0 - _height(robot, report.q) / height, _tilt(start, report.q)
        if lost > FALLEN or tilt > TILTED:
            return Trial(
                False,
                f'falls: at {done:.2f} s {100 * lost:.0f} % lower, tilted by '
                f'{np.degrees(tilt):.0f}°{_limited(robot, report.effort)}{_unsupported(robot)}',
            )
    assert report is not None
    return Trial(
        True,
        f'stands {DURATION:g} s: {100 * lost:.1f} % lower, tilted by {np.degrees(tilt):.1f}°'
        f'{_limited(robot, report.effort)}',
    )


def _unsupported(robot: RobotModel) -> str:
    """Return why the contact points cannot carry the pose 'standing', in words."""
    q = robot.reference_configuration(STANDING)
    low = lowest_heights(robot.pinocchio_model, robot.contact_points, q)
    model = robot.pinocchio_model
    data = model.createData()
    mass = pin.centerOfMass(model, data, q)[:2]
    down = [p for p, z in zip(robot.contact_points, low, strict=True) if z < low.min() + ON_GROUND]
    places = [data.oMi[model.getJointId(p.joint)].act(p.offset)[:2] for p in down]
    feet = np.array(places)
    inside = margin(feet, mass)
    if inside == -np.inf or margin(feet, centre(feet)) < LINE:
        return f"; in 'standing' {len(down)} contact points are down and enclose no area"
    if inside < 0.0:
        return f"; in 'standing' the centre of mass is {-1e3 * inside:.0f} mm beside its support"
    return ''


def _height(robot: RobotModel, q: Array) -> float:
    """Return the height of the centre of mass [m]; the base of some robots is at their feet."""
    model = robot.pinocchio_model
    return float(pin.centerOfMass(model, model.createData(), q)[2])


def _tilt(start: Array, q: Array) -> float:
    """Return the angle between the verticals of the trunk then and now [rad]."""
    then, now = (pin.Quaternion(state[3:7]).matrix()[2] for state in (start, q))
    return float(np.arccos(np.clip(then @ now, -1.0, 1.0)))


def _limited(robot: RobotModel, effort: Array) -> str:
    """Return which joints are at their effort limits, in words."""
    limit = robot.effort_limit
    at = [
        name
        for name, e, most in zip(robot.joint_names, effort, limit, strict=True)
        if abs(e) >= most * (1.0 - 1e-9)
    ]
    return f'; at their effort limits: {", ".join(at[:4])}' if at else ''
