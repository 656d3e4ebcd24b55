"""Links that touch the ground: what they are called, how hard they press, and who must not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contact_sim.errors import UnknownName
from contact_sim.robot.body_points import link_of
from contact_sim.arguments import as_tuple
from contact_sim.robot.contact_point import ContactPoint
from contact_sim.robot.feet import Foot
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.report import StepReport


@dataclass(frozen=True)
class Touch:
    """A link that presses on the ground."""

    link: str
    time: float
    """At the end of the step [s]."""
    force: float
    """Sum of the normal forces of its contacts [N]."""

    def __str__(self) -> str:
        return f'{self.link} touches the ground at t = {self.time:.9g} s with {self.force:.4g} N'


class TouchGuard:
    """Finds the first touch of links that must not touch.

    Args:
        robot: what moves.
        links: names of links, or of feet, that have contact points.

    Raises:
        InvalidInput: no list of names.
        UnknownName: a link without contact points.
    """

    def __init__(self, robot: RobotModel, links: Iterable[str]) -> None:
        parts: dict[str, list[int]] = {}
        for k, point in enumerate(robot.candidates):
            for name in _names_of(robot, point):
                parts.setdefault(name, []).append(k)
        chosen = as_tuple('end_on_contact', links, 'names of links')
        for name in chosen:
            if name not in parts:
                raise UnknownName('link with contact points', name, parts)
        self._candidates = len(robot.candidates)
        self._parts = {name: parts[name] for name in chosen}

    def touch(self, report: StepReport) -> Touch | None:
        """Return the link that presses most, or None where none of them presses."""
        pressing = {
            name: normal_force(report, points, self._candidates)
            for name, points in self._parts.items()
        }
        link = max(pressing, key=pressing.__getitem__, default='')
        if not link or pressing[link] <= 0.0:
            return None
        return Touch(link, report.time, pressing[link])


def _names_of(robot: RobotModel, point: ContactPoint) -> set[str]:
    """Return the names by which people know what a contact point is on."""
    return {point.frame, link_of(robot.pinocchio_model, point.frame)}


def normal_force(report: StepReport, points: Sequence[int], candidates: int) -> float:
    """Return the sum of the normal forces of contact points, by their index [N].

    Args:
        report: of the step.
        points: indices into `robot.candidates`.
        candidates: how many there are.
    """
    force = report.contacts.normal_force.reshape(candidates, -1)
    return float(force[list(points)].clip(min=0.0).sum())


def touching_links(robot: RobotModel) -> tuple[Foot, ...]:
    """Return the links with body contacts, in the order of their first points.

    Their points are indices into `robot.candidates`; torques are about the origin of the link.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for k, point in enumerate(robot.body_points, len(robot.contact_points)):
        groups.setdefault((point.frame, point.joint), []).append(k)
    return tuple(
        Foot(frame, frame, joint, tuple(points)) for (frame, joint), points in groups.items()
    )
