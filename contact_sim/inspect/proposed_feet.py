"""Which links may be feet, for descriptions that do not say.

First those called foot, sole, toe or paw, at the ends of limbs; else the lowest ends of limbs in
the neutral pose. A proposal: `load_robot` wants feet by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim.robot.configuration import neutral_configuration
from contact_sim.robot.description import parse_xml
from contact_sim.robot.model import RobotModel

NAMED = re.compile('foot|feet|sole|toe|paw', re.IGNORECASE)
NOT_MEANT = re.compile('sensor|imu|gyro|camera|rotor|rod|bumper|skin|six|force', re.IGNORECASE)
LOW = 0.15
"""Height above the lowest link, as a share of the robot's, up to which ends of limbs are feet."""
LEAST = 2
"""Number of feet below which names are not believed."""


@dataclass(frozen=True)
class ProposedFeet:
    """Links that may be feet."""

    links: tuple[str, ...]
    why: str


def proposed_feet(robot: RobotModel) -> ProposedFeet:
    """Return links that may be the feet of a robot with a description."""
    root = parse_xml(robot.description, robot.name)
    links = {link.get('name', ''): link for link in root.iterfind('link')}
    bodies = _links_by_joint(robot.pinocchio_model, links)
    named = {
        joint
        for joint, names in bodies.items()
        if any(NAMED.search(name) and not NOT_MEANT.search(name) for name in names)
    }
    ends = _ends(robot.pinocchio_model, named)
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


def _links_by_joint(model: pin.Model, links: dict[str, Element]) -> dict[int, list[str]]:
    """Return the links that each joint of a limb moves; the base is none."""
    bodies: dict[int, list[str]] = {}
    for frame in model.frames:
        joint = frame.parentJoint
        of_limb = joint > 0 and model.joints[joint].shortname() != 'JointModelFreeFlyer'
        if of_limb and frame.type == pin.FrameType.BODY and frame.name in links:
            bodies.setdefault(joint, []).append(str(frame.name))
    return bodies


def _ends(model: pin.Model, joints: set[int]) -> list[int]:
    """Return those of the joints that carry none of the others."""
    carrying = {int(above) for j in joints for above in list(model.supports[j])[:-1]}
    return sorted(joints - carrying)


def _lowest(robot: RobotModel) -> tuple[list[int], list[str]]:
    """Return the ends of limbs that are low in the neutral pose, and such links of the trunk."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.framesForwardKinematics(model, data, neutral_configuration(model))
    heights = np.array([placement.translation[2] for placement in data.oMf])
    reach = heights.min() + LOW * max(float(np.ptp(heights)), 1e-9)
    last = _ends(model, set(range(2, model.njoints)))
    low = [joint for joint in last if _lowest_frame(model, data, joint) <= reach]
    trunk = [
        str(frame.name)
        for frame, height in zip(model.frames, heights, strict=True)
        if frame.parentJoint == 1 and frame.type == pin.FrameType.BODY and height <= reach
    ]
    return low, trunk if low else []


def _lowest_frame(model: pin.Model, data: pin.Data, joint: int) -> float:
    return min(
        float(data.oMf[k].translation[2])
        for k, frame in enumerate(model.frames)
        if frame.parentJoint == joint
    )


def _best_links(
    joints: list[int], bodies: dict[int, list[str]], links: dict[str, Element]
) -> tuple[str, ...]:
    return tuple(
        max(bodies[joint], key=lambda name: _merit(links[name]))
        for joint in joints
        if joint in bodies
    )


def _merit(link: Element) -> tuple[bool, bool, bool, int]:
    """Return what makes a link the better foot of several that one joint moves."""
    name = link.get('name', '')
    spheres = link.find('collision/geometry/sphere') is not None
    meant = bool(NAMED.search(name)) and not NOT_MEANT.search(name)
    touches = link.find('collision') is not None
    return spheres and meant, touches, meant, -len(name)
