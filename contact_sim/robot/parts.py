"""The robots of a world one by one: where each is in what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from contact_sim.robot.joined import SEPARATOR, JoinedRobots, joined
from contact_sim.robot.model import RobotModel

IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RobotPart:
    """One of the robots in a world; a robot that is alone is the only part."""

    number: int
    """Place among the parts."""
    name: str
    """Name among the others, '' alone."""
    robot: RobotModel
    """The robot as it is alone, with names of its own."""
    q: slice
    """Its configuration in q."""
    v: slice
    """Its velocity in v."""
    joints: slice
    """Its actuated joints among all, in efforts and commands."""
    candidates: IndexArray
    """Its contact points, then its body points: indices into `candidates` of all."""

    @property
    def prefix(self) -> str:
        """What stands before each of its names among the others, such as 'a/'; '' alone."""
        return f'{self.name}{SEPARATOR}' if self.name else ''

    def called(self, name: str) -> str:
        """Return the name that something of this robot has among the others."""
        return self.prefix + name

    def own(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the names among the others that are of this robot, as it has them."""
        prefix = self.prefix
        return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def parts_of(robot: RobotModel) -> tuple[RobotPart, ...]:
    """Return the robots that were joined, or the one that is alone, in the order of q."""
    alone = [('', robot)]
    named = [(p.name, p.robot) for p in robot.parts] if isinstance(robot, JoinedRobots) else alone
    feet, body = 0, len(robot.contact_points)  # points of the bodies stand behind those of feet
    first = np.zeros(3, dtype=int)
    parts = []
    for number, (name, own) in enumerate(named):
        last = first + (own.nq, own.nv, own.n_joints)
        n_feet, n_body = len(own.contact_points), len(own.body_points)
        candidates = np.r_[feet : feet + n_feet, body : body + n_body].astype(np.intp)
        candidates.setflags(write=False)
        q, v, joints = map(slice, first.tolist(), last.tolist())
        parts.append(RobotPart(number, name, own, q, v, joints, candidates))
        first, feet, body = last, feet + n_feet, body + n_body
    return tuple(parts)


def with_each(robot: RobotModel, change: Callable[[RobotPart], RobotModel]) -> RobotModel:
    """Return the world in which each robot is what `change` makes of it, at its place."""
    parts = parts_of(robot)
    changed = [change(part) for part in parts]
    if all(new is part.robot for new, part in zip(changed, parts, strict=True)):
        return robot
    if not isinstance(robot, JoinedRobots):
        return changed[0]
    places = {part.name: part.place for part in robot.parts}
    other = joined(dict(zip(places, changed, strict=True)), places, robot.name)
    return replace(other, collisions=robot.collisions)
