"""Trajectories under way: where each has got to, and how a new one replaces it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contact_sim.ros.commands.trajectory import Point, Trajectory, between

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Followed:
    """A trajectory under way, from the state before it on."""

    trajectory: Trajectory
    start: int
    """Simulated time of its start [ns]."""
    before: Point
    """Where the joints were when it was taken up; its time is counted from the start, too."""

    @classmethod
    def from_now(
        cls, trajectory: Trajectory, now: int, before: Point, turning: NDArray[np.bool_]
    ) -> Followed:
        """Return a trajectory that is taken up at simulated time `now` [ns].

        Args:
            trajectory: whose joints are where.
            now: simulated time [ns].
            before: position, velocity and effort of the joints now.
            turning: joints that turn without end, mask (n,): these take the short way.
        """
        start = now if trajectory.start is None else trajectory.start
        position = before.position
        if trajectory.points:
            target = trajectory.points[0].position
            short = np.mod(target - position + np.pi, 2 * np.pi) - np.pi
            position = np.where(turning, target - short, position)
        at_rest = np.zeros(len(position))
        return cls(
            trajectory,
            start,
            replace(before, time=now - start, position=position, acceleration=at_rest),
        )

    @property
    def joints(self) -> NDArray[np.int64]:
        """Indices of its joints, shape (n,)."""
        return self.trajectory.joints

    def only(self, chosen: NDArray[np.bool_]) -> Followed:
        """Return the part about the joints in the mask `chosen` (n_joints,)."""
        kept = chosen[self.joints]
        return Followed(self.trajectory.only(chosen), self.start, self.before.of(kept))

    def is_over(self, now: int) -> bool:
        """Return whether nothing changes any more from `now` [ns] on."""
        points = self.trajectory.points
        return not points or now - self.start >= points[-1].time

    def at(self, now: int) -> tuple[Array, Array, Array]:
        """Return position, velocity and effort at simulated time `now` [ns], each (n,)."""
        points, time = self.trajectory.points, now - self.start
        passed = bisect_right(points, time, key=lambda point: point.time)
        if not points:
            return self.before.position, np.zeros(len(self.joints)), np.zeros(len(self.joints))
        if passed == len(points):
            last = points[-1]
            return last.position, _or_zero(last.velocity, last), _or_zero(last.effort, last)
        return between(points[passed - 1] if passed else self.before, points[passed], time)


def _or_zero(part: Array | None, point: Point) -> Array:
    return np.zeros(len(point.position)) if part is None else part


@dataclass(frozen=True, eq=False)
class Following:
    """The trajectories that joints follow; a joint follows one at most.

    A value: what changes it returns another.
    """

    begun: tuple[Followed, ...] = ()
    """Those under way."""
    waiting: tuple[Trajectory, ...] = ()
    """Those that the next step takes up."""

    @property
    def idle(self) -> bool:
        """Whether no joint follows any."""
        return not self.begun and not self.waiting

    def with_new(self, trajectory: Trajectory) -> Following:
        """Return the same with one more, whose joints follow no other."""
        return Following(self.begun, (*self.waiting, trajectory))

    def without(self, joints: Mask) -> Following:
        """Return the same in which the joints of a mask (n_joints,) follow none."""
        if self.idle:
            return self
        return Following(
            tuple(one.only(~joints) for one in self.begun if not joints[one.joints].all()),
            tuple(one.only(~joints) for one in self.waiting if not joints[one.joints].all()),
        )

    def shifted(self, time: int) -> Following:
        """Return the same, each where it is, after simulated time was set on by `time` [ns]."""
        return Following(
            tuple(replace(one, start=one.start + time) for one in self.begun),
            tuple(
                one if one.start is None else replace(one, start=one.start + time)
                for one in self.waiting
            ),
        )

    def new_joints(self, n_joints: int) -> Mask:
        """Return the joints of those that the next step takes up, mask (n_joints,)."""
        return _joints_of(self.waiting, n_joints)

    def joints(self, n_joints: int) -> Mask:
        """Return the joints that follow one, mask (n_joints,)."""
        return _joints_of((*self.begun, *self.waiting), n_joints)

    def at(
        self, now: int, position: Array, velocity: Array, effort: Array, turning: Mask
    ) -> Following:
        """Write what is wanted at simulated time `now` [ns]; return what is then under way.

        Args:
            now: simulated time [ns].
            position: of all joints, (n_joints,): before, those in `waiting` begin there.
            velocity: of all joints, (n_joints,), likewise.
            effort: of all joints, (n_joints,), likewise.
            turning: joints that turn without end, mask (n_joints,).
        """
        begun = [*self.begun]
        for one in self.waiting:
            j = one.joints
            before = Point(0, position[j], velocity[j], effort=effort[j])
            begun.append(Followed.from_now(one, now, before, turning[j]))
        for under_way in begun:
            j = under_way.joints
            position[j], velocity[j], effort[j] = under_way.at(now)
        return Following(tuple(one for one in begun if not one.is_over(now)))


def _joints_of(trajectories: Iterable[Followed | Trajectory], n_joints: int) -> Mask:
    named = np.zeros(n_joints, dtype=bool)
    for one in trajectories:
        named[one.joints] = True
    return named
