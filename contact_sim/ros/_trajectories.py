"""Trajectories: points that joints pass at given times, as joint_trajectory_controller has them.

Between two points a joint moves linearly, with velocities at both of them on a cubic, with
accelerations as well on a quintic. What comes before the first point is where the joints are, or
where they were told to be, when the trajectory is taken up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array, Mask
from contact_sim.errors import InvalidInput, shortened

# --- What a checked message asks of joints at once, and the checks of its numbers.

LARGEST = 1e6
"""Bound of every commanded number: with the bound of the gains it keeps every effort finite."""


@dataclass(frozen=True, eq=False)
class Change:
    """Commands of a checked message; a part that is None is not commanded."""

    joints: NDArray[np.int64]
    """Indices of the joints it names, shape (n,)."""
    position: Array | None
    """[rad] or [m], shape (n,)."""
    velocity: Array | None
    """[rad/s] or [m/s], shape (n,)."""
    effort: Array | None
    """[N m] or [N], shape (n,)."""

    def only(self, chosen: NDArray[np.bool_]) -> Change:
        """Return the part about the joints in the mask `chosen` (n_joints,)."""
        kept = chosen[self.joints]
        parts = (
            None if part is None else part[kept]
            for part in (self.position, self.velocity, self.effort)
        )
        return Change(self.joints[kept], *parts)


def checked_values(field: str, values: Sequence[float], names: Sequence[str]) -> Array | None:
    """Return the values of one field, shape (n,), None where the field is empty.

    Raises:
        InvalidInput: another number of values than of joints, or one that is out of bounds.
    """
    if len(values) == 0:
        return None
    if len(values) != len(names):
        raise InvalidInput(
            f'{len(values)} values of {field} for {len(names)} joints: expected 0 or {len(names)}'
        )
    array = np.array(values, dtype=float)
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST))  # NaN too
    if len(bad):
        raise InvalidInput(
            f'{field} of joint {names[bad[0]]!r} = {array[bad[0]]}: must be finite, at most '
            f'{LARGEST:g}'
        )
    return array


# --- Trajectories: points that joints pass at given times, as joint_trajectory_controller has
# them.

SECOND = 1_000_000_000
MOST_POINTS = 20_000
"""Points of one trajectory."""
LONGEST_WAIT = 3600 * SECOND
"""Simulated time [ns] by which a trajectory may begin later; a stamp of the wall clock is more."""
AT_REST = 1.2e-7
"""Speed of the last point that still counts as none [rad/s], as in joint_trajectory_controller."""


@dataclass(frozen=True, eq=False)
class Point:
    """Where joints are at a time; what is None is not given."""

    time: int
    """From the start of the trajectory [ns]."""
    position: Array
    """[rad] or [m], shape (n,)."""
    velocity: Array | None = None
    """[rad/s] or [m/s], shape (n,)."""
    acceleration: Array | None = None
    """[rad/s²] or [m/s²], shape (n,)."""
    effort: Array | None = None
    """Feed-forward [N m] or [N], shape (n,)."""

    def of(self, kept: NDArray[np.bool_]) -> Point:
        """Return the point of some of its joints, mask (n,)."""
        parts = (self.velocity, self.acceleration, self.effort)
        return Point(
            self.time,
            self.position[kept],
            *(part if part is None else part[kept] for part in parts),
        )


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Points that joints pass, or none at all: they hold their position."""

    joints: NDArray[np.int64]
    """Indices of the joints it names, shape (n,)."""
    start: int | None
    """Simulated time of its start [ns]; None: when it is taken up."""
    points: tuple[Point, ...]
    """In the order of time."""

    def only(self, chosen: NDArray[np.bool_]) -> Trajectory:
        """Return the part about the joints in the mask `chosen` (n_joints,)."""
        kept = chosen[self.joints]
        points = tuple(point.of(kept) for point in self.points)
        return Trajectory(self.joints[kept], self.start, points)


@dataclass(frozen=True)
class GivenPoint:
    """One point of a message, unchecked; an empty list is not given."""

    time: int
    """time_from_start [ns]."""
    positions: Sequence[float] = ()
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()
    effort: Sequence[float] = ()


def between(first: Point, second: Point, time: int) -> tuple[Array, Array, Array]:
    """Return position, velocity and effort at a time [ns] from the first to the second point."""
    whole = (second.time - first.time) / SECOND
    share = (time - first.time) / (second.time - first.time)
    polynomial = _coefficients(first, second, whole)
    rates = [power * part for power, part in enumerate(polynomial)][1:]
    effort = np.zeros(len(first.position))
    if first.effort is not None and second.effort is not None:
        effort = first.effort + share * (second.effort - first.effort)
    position, velocity = _value(polynomial, share), _value(rates, share) / whole
    return np.clip(position, -LARGEST, LARGEST), np.clip(velocity, -LARGEST, LARGEST), effort


def _coefficients(first: Point, second: Point, whole: float) -> list[Array]:
    """Return the polynomial in the share of the time `whole` [s] that joins two points."""
    way = second.position - first.position
    if first.velocity is None or second.velocity is None:
        return [first.position, way]
    v, w = whole * first.velocity, whole * second.velocity
    if first.acceleration is None or second.acceleration is None:
        return [first.position, v, 3.0 * way - 2.0 * v - w, v + w - 2.0 * way]
    a, b = 0.5 * whole**2 * first.acceleration, 0.5 * whole**2 * second.acceleration
    return [
        first.position, v, a,
        10.0 * way - 6.0 * v - 4.0 * w - 3.0 * a + b,
        -15.0 * way + 8.0 * v + 7.0 * w + 3.0 * a - 2.0 * b,
        6.0 * way - 3.0 * (v + w) - a + b,
    ]  # fmt: skip


def _value(polynomial: Sequence[Array], share: float) -> Array:
    value = polynomial[-1]
    for part in reversed(polynomial[:-1]):
        value = part + share * value
    return value


# -------------------------------------------------------------------- checks


def checked_points(given: Sequence[GivenPoint], names: Sequence[str]) -> tuple[Point, ...]:
    """Return the points of a message about the joints `names`.

    Raises:
        InvalidInput: anything that joint_trajectory_controller refuses, and numbers that are not
            finite, too many points or accelerations without velocities.
    """
    if len(given) > MOST_POINTS:
        raise InvalidInput(f'trajectory of {len(given)} points: expected at most {MOST_POINTS}')
    points: list[Point] = []
    before = -1
    for number, one in enumerate(given):
        if one.time <= before:
            raise InvalidInput(
                f'trajectory: time_from_start of point {number} is {one.time / SECOND:.9g} s: '
                + ('negative' if number == 0 else f'not after that of point {number - 1}')
            )
        before = one.time
        points.append(_checked_point(one, number, names))
    if points and points[-1].velocity is not None:
        moving = np.flatnonzero(np.abs(points[-1].velocity) > AT_REST)
        if len(moving):
            raise InvalidInput(
                f'trajectory: joint {names[moving[0]]!r} moves at the last point, with '
                f'{points[-1].velocity[moving[0]]:g}: expected a velocity of 0'
            )
    return tuple(points)


def _checked_point(given: GivenPoint, number: int, names: Sequence[str]) -> Point:
    what = f'of point {number}'
    position = checked_values(f'position {what}', given.positions, names)
    if position is None:
        raise InvalidInput(f'trajectory: point {number} has no positions')
    velocity = checked_values(f'velocity {what}', given.velocities, names)
    acceleration = checked_values(f'acceleration {what}', given.accelerations, names)
    if acceleration is not None and velocity is None:
        raise InvalidInput(f'trajectory: point {number} has accelerations, but no velocities')
    effort = checked_values(f'effort {what}', given.effort, names)
    return Point(given.time, position, velocity, acceleration, effort)


def check_times(start: int, last: int, now: int) -> None:
    """Refuse a trajectory that is over, or begins much later; all in simulated time [ns].

    Args:
        start: stamp of its start, 0 for now.
        last: time from its start to its last point.
        now: simulated time.

    Raises:
        InvalidInput: it is one of these.
    """
    if start and start + last < now:
        raise InvalidInput(
            f'trajectory from {start / SECOND:.9g} s to {(start + last) / SECOND:.9g} s is over '
            f'at t = {now / SECOND:.9g} s'
        )
    if start > now + LONGEST_WAIT:
        raise InvalidInput(
            f'trajectory stamped {start / SECOND:.9g} s at t = {now / SECOND:.9g} s: more than '
            f'{LONGEST_WAIT / SECOND:g} s ahead; is that the wall clock, without use_sim_time?'
        )


def check_complete(named: Sequence[str], all_joints: Sequence[str]) -> None:
    """Refuse a trajectory that leaves out joints.

    Raises:
        InvalidInput: which joints of `all_joints` it leaves out.
    """
    missing = [name for name in all_joints if name not in named]
    if missing:
        raise InvalidInput(
            f'trajectory without {shortened(", ".join(missing), 100)}: expected all '
            f'{len(all_joints)} joints, or trajectory.allow_partial_joints_goal'
        )


# --- Trajectories under way: where each has got to, and how a new one replaces it.


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
