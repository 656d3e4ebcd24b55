"""Reference poses of a robot: those that were given, of its SRDF, of the catalogue, or found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, shown
from contact_sim.numbers import real_array
from contact_sim.robot.bent_legs import bent_legs
from contact_sim.robot.closed_loops import ClosedLoops
from contact_sim.robot.configuration import neutral_configuration
from contact_sim.robot.constraints import Constraint
from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.placement import has_floating_base
from contact_sim.robot.position_limits import PositionLimit
from contact_sim.robot.srdf import JointValues, configuration

STANDING = 'standing'
"""Name of the reference pose that every robot has."""
Poses = Mapping[str, Mapping[str, Any]]
"""Joint values by joint, by pose: an angle or position [rad or m], or all values of the joint."""


@dataclass(frozen=True, eq=False)
class References:
    """Reference poses, and what was decided about them."""

    poses: Mapping[str, Array]
    """q (nq,) by name."""
    notes: tuple[str, ...] = ()
    """In words."""


def reference_poses(
    model: pin.Model,
    described: Mapping[str, JointValues],
    given: Poses | None,
    points: Sequence[ContactPoint],
    limits: Sequence[PositionLimit],
    constraints: Sequence[Constraint] = (),
) -> References:
    """Return the poses that are described and given, and 'standing' on bent legs if in neither.

    Args:
        model: of the robot.
        described: poses of SRDF and catalogue.
        given: poses that win over those; joints left out are at neutral.
        points: contact points.
        limits: of the joints.
        constraints: which joints depend on others.

    Raises:
        InvalidInput, UnknownName: see `checked_poses`.
        RobotDescriptionError: see `configuration`.
    """
    neutral = neutral_configuration(model)
    poses = {
        name: configuration(model, neutral, values, f'reference pose {shown(name)}')
        for name, values in described.items()
    }
    poses |= checked_poses(model, neutral, {} if given is None else given)
    if STANDING in poses or not points or not has_floating_base(model):
        return References(poses)
    found = bent_legs(model, points, neutral, limits, ClosedLoops(model, constraints).tied)
    if found.q is not None:
        poses[STANDING] = found.q
    return References(poses, (f'pose {shown(STANDING)}: {found.said}',))


def checked_poses(model: pin.Model, neutral: Array, given: Poses) -> dict[str, Array]:
    """Return the poses that a caller gives, q (nq,) by name.

    Raises:
        InvalidInput: no mapping of names to values by joint, a value that is no finite number or
            beyond the joint's limits, or the wrong number of values.
        UnknownName: a joint that the robot does not have.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f'poses = {shown(given)}: expected values by joint, by name of the pose'
        )
    return {
        name: _checked_pose(model, neutral, f'poses[{shown(name)}]', name, values)
        for name, values in given.items()
    }


def _checked_pose(model: pin.Model, neutral: Array, place: str, name: Any, values: Any) -> Array:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f'{place}: expected a name that is not empty')
    if not isinstance(values, Mapping):
        raise InvalidInput(f'{place} = {shown(values)}: expected values by joint')
    known = [str(joint) for joint in list(model.names)[1:]]
    numbers = {}
    for joint, value in values.items():
        if joint not in known:
            raise UnknownName(f'joint in {place}:', joint, known)
        array = np.atleast_1d(real_array(f'{place}[{shown(joint)}]', value))
        if array.ndim != 1 or not np.isfinite(array).all():
            raise InvalidInput(f'{place}[{joint!r}] = {shown(value)}: expected finite numbers')
        numbers[str(joint)] = tuple(array.tolist())
    try:
        return configuration(model, neutral, numbers, place)
    except RobotDescriptionError as error:
        raise InvalidInput(str(error)) from error
