"""Constraints that a URDF states: <mimic> joints, and <loop_joint>, which closes a loop.

A URDF is a tree. A loop is cut somewhere, and an element that other parsers pass over says what
holds the ends together, in the form of Drake's first parser and of Isaac Sim:

    <loop_joint name="knee" type="spherical">
      <link1 link="rod" xyz="0 0 -0.2" rpy="0 0 0"/>
      <link2 link="shank" xyz="0 0 0.04" rpy="0 0 0"/>
      <axis xyz="0 1 0"/>  <!-- of revolute and continuous ones, in the axes of both ends -->
    </loop_joint>

Each is made of points that stay together: one for a ball joint, a second on its axis for a hinge,
three for what is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim.errors import RobotDescriptionError, shown
from contact_sim.robot.constraints import Constraint, JointCoupling, LoopClosure
from contact_sim.robot.numbers import number, vector

SPACING = 0.1
"""Distance of the further points of a hinge, or of what is fixed, from the first [m]."""
BALLS, HINGES, FIXED = ('spherical', 'ball'), ('revolute', 'continuous'), ('fixed',)
"""Types of loop joints."""


def described_constraints(
    model: pin.Model, robot: Element, place: str
) -> tuple[tuple[Constraint, ...], tuple[str, ...]]:
    """Return the constraints of a URDF, and who ought to follow another joint but cannot.

    Joints without a single coordinate (continuous ones) can neither follow nor be followed.

    Args:
        model: what Pinocchio made of it.
        robot: the <robot> element.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: a <mimic> of no other joint, a loop joint without two links, of
            another type, or called like another joint, or numbers that are none.
    """
    single = {str(name) for name, j in zip(model.names, model.joints, strict=True) if j.nq == 1}
    joints = list(robot.iterfind('joint'))
    names = {joint.get('name', '') for joint in joints}
    found: list[Constraint] = []
    alone = []
    for joint in joints:
        mimic, name = joint.find('mimic'), joint.get('name', '')
        if mimic is None or joint.get('type') == 'fixed':
            continue
        where, leader = f'{place}: joint {shown(name)}: <mimic>', mimic.get('joint', '')
        if leader not in names or leader == name:
            raise RobotDescriptionError(f'{where} joint = {shown(leader)}: expected another joint')
        if {name, leader} <= single:
            found.append(_coupling(mimic, name, where))
        else:
            alone.append(f'joint {shown(name)} (of {shown(leader)})')
    links = {link.get('name', '') for link in robot.iterfind('link')}
    for loop in robot.iterfind('loop_joint'):
        name = loop.get('name', '')
        where = f'{place}: loop_joint {shown(name)}'
        if not name or name in names:
            raise RobotDescriptionError(f'{where}: expected a name that no other joint has')
        names.add(name)
        found += _closures(loop, name, links, where)
    return tuple(found), tuple(alone)


def _coupling(mimic: Element, name: str, where: str) -> JointCoupling:
    """Return position = multiplier · leader + offset."""
    ratio = number(mimic, 'multiplier', where) if mimic.get('multiplier') is not None else 1.0
    offset = number(mimic, 'offset', where)
    return JointCoupling(
        joint=name, leader=mimic.get('joint', ''), ratio=ratio, offset=offset,
        name=f'{name} (mimic)',
    )  # fmt: skip


def _closures(loop: Element, name: str, links: set[str], where: str) -> Iterator[LoopClosure]:
    """Yield the points that a loop joint keeps together."""
    kind = loop.get('type')
    if kind not in BALLS + HINGES + FIXED:
        allowed = ', '.join(BALLS + HINGES + FIXED)
        raise RobotDescriptionError(f'{where}: type = {shown(kind)}, expected one of {allowed}')
    (one, here), (other, there) = (_end(loop, tag, links, where) for tag in ('link1', 'link2'))
    if one == other:
        raise RobotDescriptionError(f'{where}: both ends are on link {shown(one)}')
    for k, offset in enumerate(_points(loop, kind, where)):
        a, b = here.act(offset), there.act(offset)
        own = name if k == 0 else f'{name} {k + 1}'
        yield LoopClosure(one, other, tuple(a.tolist()), tuple(b.tolist()), name=own)


def _points(loop: Element, kind: str | None, where: str) -> np.ndarray:
    """Return the points that stay together in the axes of both ends [m], shape (n, 3)."""
    if kind in BALLS:
        return np.zeros((1, 3))
    if kind in FIXED:
        return SPACING * np.eye(3)
    axis = np.array(vector(loop.find('axis'), 'xyz', '1 0 0', f'{where}: <axis>'))
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        raise RobotDescriptionError(f'{where}: <axis> xyz is 0 0 0, expected a direction')
    return np.array([np.zeros(3), SPACING * axis / length])


def _end(loop: Element, tag: str, links: set[str], where: str) -> tuple[str, pin.SE3]:
    """Return the link of an end, and where the end is in its axes."""
    ends = loop.findall(tag)
    link = ends[0].get('link', '') if len(ends) == 1 else None
    if link is None or link not in links:
        raise RobotDescriptionError(
            f'{where}: <{tag}> link = {shown(link)}: expected one link of the robot'
        )
    at = [np.array(vector(ends[0], key, '0 0 0', f'{where}: <{tag}>')) for key in ('xyz', 'rpy')]
    return link, pin.SE3(pin.rpy.rpyToMatrix(at[1]), at[0])
