"""Convert the contents of command messages to the inputs of a step; imports no ROS.

A message about joints is checked as a whole and by joint name. It becomes a `PartialCommand` or a
`TrajectoryCommand` of the joints that it names, and `CommandBuffer` merges these into the one
command that the simulation loop applies in a step. Trajectories are interpolated as
joint_trajectory_controller does: between two points a joint moves linearly, with velocities at
both of them on a cubic, with accelerations as well on a quintic. The segment before the first
point begins where the joints are, or where they were commanded to be, when the trajectory is
taken up. `Pushes` are wrenches on links.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, Mask
from contact_sim._validation import finite_array, positive, shaped
from contact_sim.errors import InvalidInput, UnknownName, shortened
from contact_sim.robot._actuators import JointCommand, holding
from contact_sim.robot._model import RobotModel
from contact_sim.ros._parameters import PushParameters, TrajectoryParameters
from contact_sim.simulation._simulator import Simulator
from contact_sim.topics._table import nanoseconds
from contact_sim.view._session import Spring

SECOND = 1_000_000_000
LARGEST = 1e6
"""Bound of every commanded number: with the bound of the gains it keeps every effort finite."""
MAX_PUSHES = 100
"""Pushes that may be under way or waiting for their time."""
MOST_POINTS = 20_000
"""Points of one trajectory."""
LONGEST_WAIT = 3600 * SECOND
"""Simulated time [ns] by which a trajectory may begin later; a stamp of the wall clock is more."""
AT_REST = 1.2e-7
"""Speed of the last point that still counts as none [rad/s], as in joint_trajectory_controller."""

Joints = slice | NDArray[np.int64]
"""Some of all joints, in an order."""
ALL = slice(None)
"""Every joint."""


# -------------------------------------------------------------------- contents of messages


@dataclass(frozen=True, eq=False)
class PartialCommand:
    """Command of some joints; a field that is None is not commanded."""

    joints: NDArray[np.int64]  # indices of the joints, shape (n,)
    position: Array | None  # [rad] or [m], shape (n,)
    velocity: Array | None  # [rad/s] or [m/s], shape (n,)
    effort: Array | None  # [N m] or [N], shape (n,)

    def only(self, chosen: Mask) -> PartialCommand:
        """Return the part about the joints in the mask `chosen` (n_joints,)."""
        own = chosen[self.joints]
        fields = (self.position, self.velocity, self.effort)
        return PartialCommand(self.joints[own], *(_masked(field, own) for field in fields))


@dataclass(frozen=True)
class UncheckedPoint:
    """One point of a trajectory message; an empty list means that the field is not used."""

    time: int  # time_from_start [ns]
    positions: Sequence[float] = ()
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()
    effort: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class TrajectoryPoint:
    """State of joints at a time; a field that is None is not used."""

    time: int  # from the start of the trajectory [ns]
    position: Array  # [rad] or [m], shape (n,)
    velocity: Array | None = None  # [rad/s] or [m/s], shape (n,)
    acceleration: Array | None = None  # [rad/s²] or [m/s²], shape (n,)
    effort: Array | None = None  # feed-forward [N m] or [N], shape (n,)

    def only(self, own: Mask) -> TrajectoryPoint:
        """Return the point of some of its joints, mask (n,)."""
        fields = (self.velocity, self.acceleration, self.effort)
        return TrajectoryPoint(
            self.time, self.position[own], *(_masked(field, own) for field in fields)
        )


@dataclass(frozen=True, eq=False)
class TrajectoryCommand:
    """Points that joints pass. Without points the joints hold their position."""

    joints: NDArray[np.int64]  # indices of the joints, shape (n,)
    start: int | None  # simulated time of its start [ns]; None: when it is taken up
    points: tuple[TrajectoryPoint, ...]  # in the order of time
    before: TrajectoryPoint | None = None
    """State when it was taken up, its time is counted from the start, too; None: not yet."""

    def only(self, chosen: Mask) -> TrajectoryCommand:
        """Return the part about the joints in the mask `chosen` (n_joints,)."""
        own = chosen[self.joints]
        points = tuple(point.only(own) for point in self.points)
        before = None if self.before is None else self.before.only(own)
        return TrajectoryCommand(self.joints[own], self.start, points, before)

    def taken_up(self, now: int, before: TrajectoryPoint, continuous: Mask) -> TrajectoryCommand:
        """Return the same under way from simulated time `now` [ns] and the state `before`."""
        start = now if self.start is None else self.start
        position = before.position
        if self.points:  # joints that turn without end take the short way to the first point
            target = self.points[0].position
            short = np.mod(target - position + np.pi, 2 * np.pi) - np.pi
            position = np.where(continuous, target - short, position)
        at_rest = np.zeros(len(position))
        before = replace(before, time=now - start, position=position, acceleration=at_rest)
        return replace(self, start=start, before=before)

    def at(self, now: int) -> tuple[Array, Array, Array, bool]:
        """Return position, velocity, effort (n,) at `now` [ns], and whether it is over then."""
        assert self.start is not None
        assert self.before is not None
        points, time, zero = self.points, now - self.start, np.zeros(len(self.joints))
        if not points:
            return self.before.position, zero, zero, True
        passed = bisect_right(points, time, key=lambda point: point.time)
        if passed < len(points):
            first = points[passed - 1] if passed else self.before
            return *interpolate(first, points[passed], time), False
        last = points[-1]
        velocity = zero if last.velocity is None else last.velocity
        return last.position, velocity, zero if last.effort is None else last.effort, True


def renumbered(
    command: PartialCommand | TrajectoryCommand, numbers: NDArray[np.int64]
) -> PartialCommand | TrajectoryCommand:
    """Return a command about the same joints under other numbers, of which −1 is none."""
    own = command.only(numbers >= 0)
    return replace(own, joints=numbers[own.joints])


def new_numbers(before: Sequence[str], now: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers that joints have from now on, −1 for those that are gone."""
    known = {name: k for k, name in enumerate(now)}
    return np.array([known.get(name, -1) for name in before], dtype=np.int64)


def _masked(field: Array | None, mask: Mask) -> Array | None:
    return None if field is None else field[mask]


# -------------------------------------------------------------------- the commands in force


@dataclass(frozen=True, eq=False)
class CommandState:
    """Contents of a `CommandBuffer`, for snapshots."""

    command: JointCommand
    follows_position: Mask  # joints whose position is followed, shape (n_joints,)
    follows_velocity: Mask
    trajectories: tuple[TrajectoryCommand, ...]


class CommandBuffer:
    """Latest command of every joint; written by callbacks, read by the simulation loop.

    Until the first command the robots hold `pose`. A joint that is not named keeps its command.
    Arrays have shape (n_joints,), gains are [N m/rad] and [N m s/rad], the mask `continuous` has
    the joints that turn without end.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        pose: Array,
        stiffness: Array,
        damping: Array,
        continuous: Mask | None = None,
    ) -> None:
        self._names = tuple(joint_names)
        self._index = {name: k for k, name in enumerate(joint_names)}
        self._lock = threading.Lock()
        self._stiffness, self._damping = stiffness, damping
        self.accepted = self.dropped = 0  # messages
        self.last_refusal = ''
        n = len(self._names)
        self._arrived = np.full(n, np.nan)  # wall time of the last command, by joint
        self._follows_position, self._follows_velocity = np.ones((2, n), dtype=bool)
        self._command = holding(pose, stiffness, damping)
        self._continuous = np.zeros(n, dtype=bool) if continuous is None else continuous
        self._trajectories: tuple[TrajectoryCommand, ...] = ()  # a joint follows one at most
        self.rules = TrajectoryParameters()
        # called with each checked message and its stamp [ns], None without one; raises
        # InvalidInput to refuse it; at first a message acts at once, Lockstep delays it
        self.deliver: Callable[[PartialCommand | TrajectoryCommand, int | None], None]
        self.deliver_at_once()

    # ---------------------------------------------------------------- messages, from callbacks

    def take_joint_state(
        self,
        names: Sequence[str],
        position: Sequence[float] | Array,
        velocity: Sequence[float] | Array,
        effort: Sequence[float] | Array,
        stamp: int | None = None,
    ) -> str | None:
        """Take a JointState command by name; return why it is refused, or None."""

        def read() -> PartialCommand:
            joints = self._joints(names)
            values = (
                checked_values('position', position, names),
                checked_values('velocity', velocity, names),
                checked_values('effort', effort, names),
            )
            if all(value is None for value in values):
                raise InvalidInput('joint command without position, velocity and effort: give one')
            return PartialCommand(np.array(joints), *values)

        return self._take(read, stamp)

    def take_efforts(self, efforts: Sequence[float], joints: Joints = ALL) -> str | None:
        """Take pure efforts [N m] of these joints in their order; return why refused, or None."""

        def read() -> PartialCommand:
            numbers = np.arange(len(self._names))[joints]
            names = [self._names[k] for k in numbers]
            if len(efforts) != len(names):
                raise InvalidInput(
                    f'{len(efforts)} efforts: expected {len(names)} in the order '
                    + ', '.join(names)
                )
            value = checked_values('effort', efforts, names)
            return PartialCommand(numbers, None, None, value)

        return self._take(read, None)

    def take_trajectory(
        self,
        names: Sequence[str],
        points: Sequence[UncheckedPoint],
        stamp: int,
        now: int,
        joints: Joints = ALL,
    ) -> str | None:
        """Take a trajectory from `stamp` [ns] on, 0 for the next step; return why it is refused.

        Without points the joints are to hold their position. `joints` are all of the robot; the
        `rules` say whether some may be left out. `now` is the simulated time [ns].
        """

        def read() -> TrajectoryCommand:
            of_robot = [self._names[k] for k in np.arange(len(self._names))[joints]]
            named = of_robot if not points and not names else names  # the robot is to stop
            numbers = self._joints(named)
            missing = [name for name in of_robot if name not in named]
            if missing and not self.rules.allow_partial_joints_goal:
                raise InvalidInput(
                    f'trajectory without {shortened(", ".join(missing), 100)}: expected all '
                    f'{len(of_robot)} joints, or trajectory.allow_partial_joints_goal'
                )
            checked = checked_points(points, named)
            check_times(stamp, checked[-1].time if checked else 0, now)
            return TrajectoryCommand(np.array(numbers), stamp or None, checked)

        return self._take(read, stamp)

    def _take(
        self, read: Callable[[], PartialCommand | TrajectoryCommand], stamp: int | None
    ) -> str | None:
        try:
            command = read()
            self.deliver(command, stamp)
        except InvalidInput as error:
            self.dropped += 1
            self.last_refusal = str(error)
            return self.last_refusal
        self.accepted += 1
        self._arrived[command.joints] = time.monotonic()
        return None

    def _joints(self, names: Sequence[str]) -> list[int]:
        if not names:
            raise InvalidInput('joint command without joint names: fill `name`')
        unknown = [name for name in names if name not in self._index]
        if unknown:
            raise InvalidInput(
                f'unknown joint {shortened(unknown[0], 100)!r} in a command; known: '
                + ', '.join(self._names)
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise InvalidInput(f'joint {twice!r} named twice in a command')
        return [self._index[name] for name in names]

    # ---------------------------------------------------------------- changes of the command

    def deliver_at_once(self) -> None:
        """Let messages act when they arrive."""
        self.deliver = lambda command, stamp: self.apply(command)

    def apply(self, command: PartialCommand | TrajectoryCommand) -> None:
        """Let a command act: its joints follow it and nothing else."""
        joints = command.joints
        with self._lock:
            self._end_trajectories(joints)
            if isinstance(command, TrajectoryCommand):
                self._trajectories = (*self._trajectories, command)
                return
            merged = {}
            for field in ('position', 'velocity', 'effort'):
                value = getattr(command, field)
                merged[field] = getattr(self._command, field).copy()
                merged[field][joints] = 0.0 if value is None else value
            self._follows_position[joints] = command.position is not None
            follows = command.position is not None or command.velocity is not None
            self._follows_velocity[joints] = follows
            self._replace(**merged)

    def release(self, chosen: Mask) -> None:
        """Command zero effort to the joints in the mask `chosen` (n_joints,)."""
        joints = np.flatnonzero(chosen)
        self.apply(PartialCommand(joints, None, None, np.zeros(len(joints))))

    def hold(self, pose: Array, joints: slice = ALL) -> None:
        """Forget the commands of these joints and have them hold the positions `pose` (n,)."""
        with self._lock:
            old = self._command
            position, velocity = old.position.copy(), old.velocity.copy()
            effort = old.effort.copy()
            position[joints] = pose
            velocity[joints] = effort[joints] = 0.0
            self._follows_position[joints] = self._follows_velocity[joints] = True
            self._end_trajectories(joints)
            self._replace(position, velocity, effort)
            self._arrived[joints] = np.nan

    def set_gains(self, stiffness: Array, damping: Array) -> None:
        """Follow commands with other PD gains [N m/rad], [N m s/rad], shape (n_joints,)."""
        with self._lock:
            self._stiffness, self._damping = stiffness, damping
            self._replace(self._command.position, self._command.velocity, self._command.effort)

    def replace_joints(
        self, names: Sequence[str], pose: Array, gains: tuple[Array, Array], continuous: Mask
    ) -> None:
        """Command other joints; those that stay keep what is in force, the others hold `pose`."""
        with self._lock:
            numbers = new_numbers(self._names, names)
            stay, old, n = numbers >= 0, self._command, len(names)
            places = numbers[stay]
            position, velocity, effort = pose.copy(), np.zeros(n), np.zeros(n)
            arrived, follows = np.full(n, np.nan), np.ones((2, n), dtype=bool)
            for values, before in (
                (position, old.position), (velocity, old.velocity), (effort, old.effort),
                (arrived, self._arrived), (follows[0], self._follows_position),
                (follows[1], self._follows_velocity),
            ):  # fmt: skip
                values[places] = before[stay]
            self._trajectories = tuple(
                renumbered(trajectory, numbers)  # type: ignore[misc]
                for trajectory in self._trajectories
                if stay[trajectory.joints].any()
            )
            self._names, self._index = tuple(names), {name: k for k, name in enumerate(names)}
            self._stiffness, self._damping = gains
            self._arrived, self._continuous = arrived, continuous
            self._follows_position, self._follows_velocity = follows
            self._replace(position, velocity, effort)

    @property
    def state(self) -> CommandState:
        """Everything in force, to be assigned later; `shift` it by the time between."""
        with self._lock:
            follows = self._follows_position.copy(), self._follows_velocity.copy()
            return CommandState(self._command, *follows, self._trajectories)

    @state.setter
    def state(self, state: CommandState) -> None:
        with self._lock:
            self._follows_position = state.follows_position.copy()
            self._follows_velocity = state.follows_velocity.copy()
            self._trajectories = state.trajectories
            old = state.command
            self._replace(old.position, old.velocity, old.effort)

    def shift(self, time: int) -> None:
        """Shift trajectories in time, after simulated time was set on by `time` [ns]."""
        with self._lock:
            self._trajectories = tuple(
                trajectory
                if trajectory.start is None
                else replace(trajectory, start=trajectory.start + time)
                for trajectory in self._trajectories
            )

    def _end_trajectories(self, joints: Joints) -> None:
        if not self._trajectories:
            return
        others = np.ones(len(self._names), dtype=bool)
        others[joints] = False
        self._trajectories = tuple(
            trajectory.only(others)
            for trajectory in self._trajectories
            if others[trajectory.joints].any()
        )

    def _replace(self, position: Array, velocity: Array, effort: Array) -> None:
        self._command = JointCommand(
            position,
            velocity,
            effort,
            np.where(self._follows_position, self._stiffness, 0.0),
            np.where(self._follows_velocity, self._damping, 0.0),
        )

    # ---------------------------------------------------------------- read by the loop

    @property
    def current(self) -> JointCommand:
        """The command in force: an immutable value, swapped as a whole."""
        return self._command

    def age(self, joints: slice = ALL) -> float | None:
        """Return the wall seconds since the last command of any of these joints, or None."""
        arrived = self._arrived[joints]
        known = arrived[~np.isnan(arrived)]
        return time.monotonic() - float(known.max()) if len(known) else None

    def at(self, now: int, position: Array, velocity: Array) -> JointCommand:
        """Return the command at `now` [ns]; position and velocity now have shape (n_joints,)."""
        if not self._trajectories:
            return self._command
        with self._lock:
            old, under_way = self._command, []
            target, speed, effort = old.position.copy(), old.velocity.copy(), old.effort.copy()
            for trajectory in self._trajectories:
                j = trajectory.joints
                if trajectory.before is None:  # begins at the commanded position, or the present
                    desired = self._follows_position & self.rules.interpolate_from_desired_state
                    present = j[~desired[j]]
                    target[present], speed[present] = position[present], velocity[present]
                    self._follows_position[j] = self._follows_velocity[j] = True
                    before = TrajectoryPoint(0, target[j], speed[j], effort=effort[j])
                    trajectory = trajectory.taken_up(now, before, self._continuous[j])
                target[j], speed[j], effort[j], over = trajectory.at(now)
                self._arrived[j] = time.monotonic()  # it commands them until its last point
                if not over:
                    under_way.append(trajectory)
            self._trajectories = tuple(under_way)
            self._replace(target, speed, effort)
            return self._command


# -------------------------------------------------------------------- interpolation


def interpolate(
    first: TrajectoryPoint, second: TrajectoryPoint, time: int
) -> tuple[Array, Array, Array]:
    """Return position, velocity and effort at a time [ns] from the first to the second point."""
    duration = (second.time - first.time) / SECOND
    share = (time - first.time) / (second.time - first.time)
    coefficients = _coefficients(first, second, duration)
    derivative = [power * part for power, part in enumerate(coefficients)][1:]
    effort = np.zeros(len(first.position))
    if first.effort is not None and second.effort is not None:
        effort = first.effort + share * (second.effort - first.effort)
    position, velocity = _horner(coefficients, share), _horner(derivative, share) / duration
    return np.clip(position, -LARGEST, LARGEST), np.clip(velocity, -LARGEST, LARGEST), effort


def _coefficients(first: TrajectoryPoint, second: TrajectoryPoint, duration: float) -> list[Array]:
    """Return the polynomial in the share of the duration [s] that joins two points."""
    way = second.position - first.position
    if first.velocity is None or second.velocity is None:
        return [first.position, way]
    v, w = duration * first.velocity, duration * second.velocity
    if first.acceleration is None or second.acceleration is None:
        return [first.position, v, 3.0 * way - 2.0 * v - w, v + w - 2.0 * way]
    a, b = 0.5 * duration**2 * first.acceleration, 0.5 * duration**2 * second.acceleration
    return [
        first.position, v, a,
        10.0 * way - 6.0 * v - 4.0 * w - 3.0 * a + b,
        -15.0 * way + 8.0 * v + 7.0 * w + 3.0 * a - 2.0 * b,
        6.0 * way - 3.0 * (v + w) - a + b,
    ]  # fmt: skip


def _horner(coefficients: Sequence[Array], x: float) -> Array:
    value = coefficients[-1]
    for part in reversed(coefficients[:-1]):
        value = part + x * value
    return value


# -------------------------------------------------------------------- checks, raising InvalidInput


def checked_values(
    field: str, values: Sequence[float] | Array, names: Sequence[str]
) -> Array | None:
    """Return the values of one field, shape (n,), None where the field is empty."""
    if len(values) == 0:
        return None
    if len(values) != len(names):
        raise InvalidInput(
            f'{len(values)} values of {field} for {len(names)} joints: expected 0 or {len(names)}'
        )
    array = np.array(values, dtype=float)
    if (np.abs(array) <= LARGEST).all():  # False for NaN
        return array
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST))  # NaN too
    if len(bad):
        raise InvalidInput(
            f'{field} of joint {names[bad[0]]!r} = {array[bad[0]]}: must be finite, at most '
            f'{LARGEST:g}'
        )
    return array


def checked_points(
    points: Sequence[UncheckedPoint], names: Sequence[str]
) -> tuple[TrajectoryPoint, ...]:
    """Return the points of a message about the joints `names`."""
    # refused is what joint_trajectory_controller refuses, and besides numbers that are not
    # finite, too many points, and accelerations without velocities
    if len(points) > MOST_POINTS:
        raise InvalidInput(f'trajectory of {len(points)} points: expected at most {MOST_POINTS}')
    checked: list[TrajectoryPoint] = []
    before = -1
    for number, point in enumerate(points):
        if point.time <= before:
            raise InvalidInput(
                f'trajectory: time_from_start of point {number} is {point.time / SECOND:.9g} s: '
                + ('negative' if number == 0 else f'not after that of point {number - 1}')
            )
        before = point.time
        what = f'of point {number}'
        position = checked_values(f'position {what}', point.positions, names)
        if position is None:
            raise InvalidInput(f'trajectory: point {number} has no positions')
        velocity = checked_values(f'velocity {what}', point.velocities, names)
        acceleration = checked_values(f'acceleration {what}', point.accelerations, names)
        if acceleration is not None and velocity is None:
            raise InvalidInput(f'trajectory: point {number} has accelerations, but no velocities')
        effort = checked_values(f'effort {what}', point.effort, names)
        checked.append(TrajectoryPoint(point.time, position, velocity, acceleration, effort))
    if checked and checked[-1].velocity is not None:
        moving = np.flatnonzero(np.abs(checked[-1].velocity) > AT_REST)
        if len(moving):
            raise InvalidInput(
                f'trajectory: joint {names[moving[0]]!r} moves at the last point, with '
                f'{checked[-1].velocity[moving[0]]:g}: expected a velocity of 0'
            )
    return tuple(checked)


def check_times(start: int, last: int, now: int) -> None:
    """Refuse a trajectory from `start`, 0 for now, that is over or begins much later [ns]."""
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


# -------------------------------------------------------------------- pushes


@dataclass(frozen=True, eq=False)
class Push:
    """A wrench at the origin of a frame, from `start` until before `end` [ns]."""

    frame: str
    wrench: Array  # force [N] and torque [N m], shape (6,)
    in_world: bool  # whether its axes are the world's; otherwise they turn with the frame
    start: int
    end: int | None  # None: until the next push on this frame


def links_of(robot: RobotModel) -> tuple[str, ...]:
    """Return the names of all links."""
    bodies = [f.name for f in robot.pinocchio_model.frames if f.type == pin.FrameType.BODY]
    return tuple(name for name in bodies if name != 'universe')


class Pushes:
    """Wrenches on links for a while of simulated time; a later one on a frame replaces another.

    `prefix` is the parameter frame_prefix, `world_frames` are frames that cannot be pushed.
    """

    def __init__(self, sim: Simulator, prefix: str, world_frames: Sequence[str]) -> None:
        self._sim, self._prefix, self._world_frames = sim, prefix, tuple(world_frames)
        self._lock = threading.Lock()
        self._pushes: tuple[Push, ...] = ()
        self._spring: Spring | None = None
        self.links = links_of(sim.robot)
        self.accepted = self.refused = 0  # messages
        self.rules = PushParameters()

    def take(
        self,
        frame_id: str,
        stamp: int,
        force: Sequence[float],
        torque: Sequence[float],
        owner: str = '',
    ) -> str | None:
        """Take a push from `stamp` [ns] on, or at once; return why it is refused, or None."""
        try:
            # the prefix `owner` of the links of a robot, such as 'a/', may be left out
            frame = owner + frame_id.removeprefix(self._prefix).removeprefix(owner)
            wrench = np.array([*force, *torque], dtype=float)
            self._check(frame_id, frame, wrench)
            start = max(stamp, nanoseconds(self._sim.time))
            duration = nanoseconds(self.rules.duration)
            end = start + duration if duration else None
            self._add(Push(frame, wrench, self.rules.axes == 'world', start, end))
        except (InvalidInput, UnknownName) as error:
            self.refused += 1
            return str(error)
        self.accepted += 1
        return None

    def push(
        self, frame: str, force: Sequence[float], torque: Sequence[float], duration: float
    ) -> None:
        """Push a link from the next step on for a `duration` [s]; world axes, [N], [N m], (3,)."""
        wrench = np.array([*force, *torque], dtype=float)
        self._check(frame, frame, wrench)
        start = nanoseconds(self._sim.time)
        end = start + max(1, nanoseconds(positive('duration', duration, 's')))
        self._add(Push(frame, wrench, True, start, end))

    def drag(self, link: str, target: Sequence[float] | None) -> None:
        """Pull the origin of a link to `target` [m], world, (3,), between steps; None: let go."""
        if target is None:
            self._spring = None
            return
        end = shaped('target', finite_array('target', target), 3)
        if self._spring is None or self._spring.frame != link:
            self._spring = Spring(self._sim.robot, link, end, self._sim.q)
        self._spring.target = end

    def _add(self, push: Push) -> None:
        with self._lock:
            if len(self._pushes) >= MAX_PUSHES:
                raise InvalidInput(f'{MAX_PUSHES} pushes are under way or wait for their time')
            self._pushes = (*self._pushes, push)

    def _check(self, frame_id: str, frame: str, wrench: Array) -> None:
        if frame_id in self._world_frames and frame not in self.links:
            raise InvalidInput(f'push on {frame_id!r}: header.frame_id has to name a link')
        if frame not in self.links:
            raise UnknownName('link in external_wrench', frame_id, self.links)
        if not (np.abs(wrench) <= LARGEST).all():  # NaN too
            raise InvalidInput(
                f'push on {frame_id!r} = {wrench.tolist()}: expected finite numbers, at most '
                f'{LARGEST:g}'
            )

    def follow_robots(self) -> None:
        """Push the links that there are now; pushes on those that stay go on."""
        self.links = links_of(self._sim.robot)
        with self._lock:
            self._pushes = tuple(push for push in self._pushes if push.frame in self.links)
        before, self._spring = self._spring, None
        if before is not None and before.frame in self.links:
            self._spring = Spring(self._sim.robot, before.frame, before.target, self._sim.q)
            self._spring.mass = before.mass

    def clear(self) -> None:
        """End all pushes, and let go."""
        with self._lock:
            self._pushes = ()
        self._spring = None

    def acting(self, now: int) -> Mapping[str, Array]:
        """Return frame to force and torque in world axes (6,) in the step from `now` [ns]."""
        if not self._pushes and self._spring is None:
            return {}
        with self._lock:
            last = {push.frame: push for push in self._pushes if push.start <= now}
            self._pushes = tuple(
                push
                for push in self._pushes
                if push.start > now
                or (last[push.frame] is push and (push.end is None or now < push.end))
            )
            active = [push for push in self._pushes if push.start <= now]
        wrenches = {push.frame: self._in_world(push) for push in active if push.wrench.any()}
        if self._spring is not None:
            link, pull = self._spring.frame, self._spring.wrench(self._sim.q, self._sim.v)
            wrenches[link] = wrenches.get(link, 0.0) + pull
        return wrenches

    def _in_world(self, push: Push) -> Array:
        if push.in_world:
            return push.wrench
        rotation = self._sim.frame_placement(push.frame).rotation
        return np.concatenate([rotation @ push.wrench[:3], rotation @ push.wrench[3:]])
