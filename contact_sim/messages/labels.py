"""Names and units of the numbers in q and v."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contact_sim.robot.model import RobotModel

POSE = {'x': 'm', 'y': 'm', 'z': 'm', 'qx': '-', 'qy': '-', 'qz': '-', 'qw': '-'}
"""Pose of a floating base in the world, and units."""
BASE = ('v_x', 'v_y', 'v_z', 'w_x', 'w_y', 'w_z')
"""Velocity of a floating base: linear and angular, in its axes at the start of the step."""


def velocity_labels(robot: RobotModel) -> list[str]:
    """Return a name for every velocity coordinate; joints with several are numbered."""
    return [label for label, _ in velocity_units(robot)]


def velocity_units(robot: RobotModel) -> Iterator[tuple[str, str]]:
    """Yield name and unit of every velocity coordinate."""
    for name, joint in _joints(robot):
        if joint.id == 1 and robot.floating_base:
            yield from zip(BASE, 3 * ('m/s',) + 3 * ('rad/s',), strict=True)
        elif joint.nv == 1:
            yield name, f'{unit_of(joint)}/s'
        else:
            yield from ((f'{name}.{k}', '') for k in range(joint.nv))


def coordinate_units(robot: RobotModel) -> Iterator[tuple[str, str]]:
    """Yield name and unit of every number in q; of continuous joints cosine and sine."""
    for name, joint in _joints(robot):
        if joint.id == 1 and robot.floating_base:
            yield from POSE.items()
        elif joint.nq == 1:
            yield name, unit_of(joint)
        elif joint.nv == 1:
            yield from ((f'{name}.{part}', '-') for part in ('cos', 'sin'))
        else:
            yield from ((f'{name}.{k}', '') for k in range(joint.nq))


def joint_units(robot: RobotModel) -> list[str]:
    """Return the unit of the position of every actuated joint: rad, or m of sliding ones."""
    units = {name: unit_of(joint) for name, joint in _joints(robot) if joint.nv == 1}
    return [units[name] for name in robot.joint_names]


def unit_of(joint: Any) -> str:
    """Return the unit of the position of a Pinocchio joint with one degree of freedom."""
    kind: str = joint.shortname()
    return 'm' if kind.removeprefix('JointModel').startswith('P') else 'rad'


def _joints(robot: RobotModel) -> Iterator[tuple[str, Any]]:
    model = robot.pinocchio_model
    for name, joint in list(zip(model.names, model.joints, strict=True))[1:]:  # 0 is the world
        yield str(name), joint
