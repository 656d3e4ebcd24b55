"""Which feet stand, and which of their directions are held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot.feet import points_called
from contact_sim.robot.model import RobotModel

DIRECTIONS = ('t1', 't2', 'n')
"""Rows of a contact frame, in the order of the contact Jacobian."""


def foot_indices(robot: RobotModel, active: Iterable[str | int]) -> tuple[int, ...]:
    """Return the indices into `robot.contact_points` of `active`, in the order given.

    Args:
        robot: whose feet.
        active: what is in contact: names of feet (all their contact points), names or indices
            of contact points; empty in flight.

    Raises:
        UnknownName: a foot that does not exist.
        InvalidInput: a contact point listed twice, or something that is neither a name nor an
            index.
    """
    if isinstance(active, str) or not isinstance(active, Iterable):
        raise InvalidInput(
            f'active = {shown(active)}: expected a list of names or indices of feet'
        )
    indices = tuple(index for foot in active for index in _points(robot, foot))
    if len(set(indices)) < len(indices):
        names = [point.name for point in robot.contact_points]
        twice = sorted({names[i] for i in indices if indices.count(i) > 1})
        raise InvalidInput(f'active: foot {", ".join(twice)} is listed more than once')
    return indices


def _points(robot: RobotModel, foot: Any) -> tuple[int, ...]:
    """Return the contact points that one entry stands for."""
    points = robot.contact_points
    if isinstance(foot, str):
        return points_called('foot', foot, robot.feet, points)
    if not hasattr(foot, '__index__') or isinstance(foot, bool):
        raise InvalidInput(f'active: {shown(foot)} is neither the name nor the index of a foot')
    index = int(foot.__index__())
    if not 0 <= index < len(points):
        raise UnknownName('index of a foot', index, range(len(points)))
    return (index,)


def held_rows(directions: Sequence[str], feet: Iterable[int]) -> list[int]:
    """Return the rows (t1, t2, n per contact point) that `directions` holds of `feet`.

    Raises:
        InvalidInput: no direction, one twice, or one that is none of t1, t2, n.
    """
    valid = (
        not isinstance(directions, str)
        and len(directions) > 0
        and set(directions) <= set(DIRECTIONS)
        and len(set(directions)) == len(directions)
    )
    if not valid:
        raise InvalidInput(
            f'directions = {shown(directions)}: expected some of {DIRECTIONS}, each once'
        )
    rows = [DIRECTIONS.index(direction) for direction in directions]
    return [3 * foot + row for foot in feet for row in rows]
