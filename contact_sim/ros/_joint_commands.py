"""Commands from messages: checked as a whole, by joint name; imports no ROS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.errors import InvalidInput, shortened
from contact_sim.robot._actuators import JointCommand, holding
from contact_sim.ros._parameters import TrajectoryParameters
from contact_sim.ros._trajectories import (
    Change,
    Following,
    GivenPoint,
    Trajectory,
    check_complete,
    check_times,
    checked_points,
    checked_values,
)

Joints = slice | NDArray[np.int64]
"""Some of all joints, in an order."""
ALL = slice(None)
"""Every joint."""


@dataclass(frozen=True, eq=False)
class Commanded:
    """Everything that is in force, to be returned to later."""

    command: JointCommand
    follows_position: NDArray[np.bool_]
    """Joints whose position is followed, shape (n_joints,)."""
    follows_velocity: NDArray[np.bool_]
    """Joints whose velocity is followed, shape (n_joints,)."""
    following: Following
    """Trajectories under way."""


class CommandInbox:
    """Latest command of every joint; written by callbacks, read by the simulation loop.

    Until the first command the robots hold `pose`. A joint that is not named keeps its command.

    Args:
        joint_names: all actuated joints.
        pose: their positions (n_joints,).
        stiffness: PD gains [N m/rad], shape (n_joints,).
        damping: PD gains [N m s/rad], shape (n_joints,).
        turning: joints that turn without end, mask (n_joints,); None: none of them.

    Attributes:
        accepted: number of messages taken.
        dropped: number of messages refused.
        last_refusal: why the last one was refused.
        deliver: called with each checked message and its stamp [ns], None without one; may raise
            InvalidInput to refuse it. It lets the message act at once, unless somebody else puts
            it off (Lockstep).
        rules: for trajectories.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        pose: Array,
        stiffness: Array,
        damping: Array,
        turning: NDArray[np.bool_] | None = None,
    ) -> None:
        self._names = tuple(joint_names)
        self._index = {name: k for k, name in enumerate(joint_names)}
        self._lock = threading.Lock()
        self._stiffness, self._damping = stiffness, damping
        self.accepted = 0
        self.dropped = 0
        self.last_refusal = ''
        n = len(self._names)
        self._arrived = np.full(n, np.nan)  # wall time of the last command, by joint
        self._follows_position, self._follows_velocity = np.ones((2, n), dtype=bool)
        self._command = holding(pose, stiffness, damping)
        self._turning = np.zeros(n, dtype=bool) if turning is None else turning
        self._following = Following()
        self.rules = TrajectoryParameters()
        self.deliver: Callable[[Change | Trajectory, int | None], None] = self._act_at_once

    def hold(self, pose: Array, joints: slice = ALL) -> None:
        """Forget the commands of these joints and have them hold the positions `pose` (n,)."""
        with self._lock:
            position, velocity, effort = (
                getattr(self._command, name).copy() for name in ('position', 'velocity', 'effort')
            )
            position[joints] = pose
            velocity[joints] = effort[joints] = 0.0
            self._follows_position[joints] = self._follows_velocity[joints] = True
            self._following = self._following.without(self._mask(joints))
            self._replace(position, velocity, effort)
            self._arrived[joints] = np.nan

    @property
    def current(self) -> JointCommand:
        """The command in force: an immutable value, swapped as a whole."""
        return self._command

    def age(self, joints: slice = ALL) -> float | None:
        """Return the wall seconds since the last command of any of these joints, or None.

        A trajectory commands its joints until its last point.
        """
        arrived = self._arrived[joints]
        known = arrived[~np.isnan(arrived)]
        return time.monotonic() - float(known.max()) if len(known) else None

    def at(self, now: int, position: Array, velocity: Array) -> JointCommand:
        """Return the command for the step from simulated time `now` [ns].

        Args:
            now: simulated time [ns].
            position: of the joints now, [rad] or [m], shape (n_joints,).
            velocity: of the joints now, [rad/s] or [m/s], shape (n_joints,).
        """
        if not self._following.idle:
            with self._lock:
                self._follow(now, position, velocity)
        return self._command

    @property
    def state(self) -> Commanded:
        """Everything in force, to be assigned later; `shift` it by the time between."""
        with self._lock:
            follows = self._follows_position.copy(), self._follows_velocity.copy()
            return Commanded(self._command, *follows, self._following)

    @state.setter
    def state(self, kept: Commanded) -> None:
        with self._lock:
            self._follows_position = kept.follows_position.copy()
            self._follows_velocity = kept.follows_velocity.copy()
            self._following = kept.following
            old = kept.command
            self._replace(old.position, old.velocity, old.effort)

    def shift(self, time: int) -> None:
        """Let trajectories go on where they are after simulated time was set on by `time` [ns]."""
        with self._lock:
            self._following = self._following.shifted(time)

    def set_gains(self, stiffness: Array, damping: Array) -> None:
        """Follow commands with other PD gains [N m/rad], [N m s/rad], shape (n_joints,)."""
        with self._lock:
            self._stiffness, self._damping = stiffness, damping
            old = self._command
            self._replace(old.position, old.velocity, old.effort)

    def take_joint_state(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
        stamp: int | None = None,
    ) -> str | None:
        """Take a JointState command by name; return why it is refused, or None."""
        return self._take(lambda: self._joint_change(names, position, velocity, effort), stamp)

    def take_efforts(self, efforts: Sequence[float], joints: Joints = ALL) -> str | None:
        """Take pure efforts [N m] of these joints in their order; return why refused, or None."""
        return self._take(lambda: self._effort_change(efforts, joints), None)

    def take_trajectory(
        self,
        names: Sequence[str],
        points: Sequence[GivenPoint],
        stamp: int,
        now: int,
        joints: Joints = ALL,
    ) -> str | None:
        """Take a trajectory; return why it is refused, or None.

        Args:
            names: of the joints that its points are about.
            points: none for joints that are to hold their position.
            stamp: simulated time of its start [ns], 0 for the next step.
            now: simulated time [ns].
            joints: all of the robot, of which none may be left out, see `rules`.
        """
        return self._take(lambda: self._trajectory(names, points, stamp, now, joints), stamp)

    def act_on(self, change: Change | Trajectory) -> None:
        """Let a change take effect: the joints it names follow it and nothing else."""
        joints = change.joints
        with self._lock:
            self._following = self._following.without(self._mask(joints))
            if isinstance(change, Trajectory):
                self._following = self._following.with_new(change)
                return
            old = self._command
            merged = {}
            for field in ('position', 'velocity', 'effort'):
                value = getattr(change, field)
                merged[field] = getattr(old, field).copy()
                merged[field][joints] = 0.0 if value is None else value
            self._follows_position[joints] = change.position is not None
            follows = change.position is not None or change.velocity is not None
            self._follows_velocity[joints] = follows
            self._replace(**merged)

    def release(self, chosen: NDArray[np.bool_]) -> None:
        """Command zero effort to the joints in the mask `chosen` (n_joints,)."""
        joints = np.flatnonzero(chosen)
        self.act_on(Change(joints, None, None, np.zeros(len(joints))))

    def deliver_at_once(self) -> None:
        """Let messages act when they arrive."""
        self.deliver = self._act_at_once

    def _act_at_once(self, change: Change | Trajectory, _: int | None) -> None:
        self.act_on(change)

    def _take(self, read: Callable[[], Change | Trajectory], stamp: int | None) -> str | None:
        try:
            change = read()
            self.deliver(change, stamp)
        except InvalidInput as error:
            self.dropped += 1
            self.last_refusal = str(error)
            return self.last_refusal
        self.accepted += 1
        self._arrived[change.joints] = time.monotonic()
        return None

    def _joint_change(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> Change:
        joints = self._joints(names)
        values = (
            checked_values('position', position, names),
            checked_values('velocity', velocity, names),
            checked_values('effort', effort, names),
        )
        if all(value is None for value in values):
            raise InvalidInput('joint command without position, velocity and effort: give one')
        return Change(np.array(joints), *values)

    def _effort_change(self, efforts: Sequence[float], joints: Joints) -> Change:
        numbers = np.arange(len(self._names))[joints]
        names = [self._names[k] for k in numbers]
        if len(efforts) != len(names):
            raise InvalidInput(
                f'{len(efforts)} efforts: expected {len(names)} in the order ' + ', '.join(names)
            )
        value = checked_values('effort', efforts, names)
        return Change(numbers, None, None, value)

    def _trajectory(
        self,
        names: Sequence[str],
        points: Sequence[GivenPoint],
        stamp: int,
        now: int,
        joints: Joints,
    ) -> Trajectory:
        of_robot = [self._names[k] for k in np.arange(len(self._names))[joints]]
        if not points and not names:  # the robot is to stop
            names = of_robot
        numbers = self._joints(names)
        if not self.rules.allow_partial_joints_goal:
            check_complete(names, of_robot)
        checked = checked_points(points, names)
        check_times(stamp, checked[-1].time if checked else 0, now)
        return Trajectory(np.array(numbers), stamp or None, checked)

    def _follow(self, now: int, position: Array, velocity: Array) -> None:
        """Let the command be that of the trajectories at simulated time `now` [ns]."""
        old, new = self._command, self._following.new_joints(len(self._names))
        wanted, speed, effort = old.position.copy(), old.velocity.copy(), old.effort.copy()
        desired = self._follows_position & self.rules.interpolate_from_desired_state
        present = new & ~desired
        wanted[present], speed[present] = position[present], velocity[present]
        self._follows_position |= new
        self._follows_velocity |= new
        self._arrived[self._following.joints(len(self._names))] = time.monotonic()
        self._following = self._following.at(now, wanted, speed, effort, self._turning)
        self._replace(wanted, speed, effort)

    def _mask(self, joints: Joints) -> NDArray[np.bool_]:
        """Return some of the joints as a mask (n_joints,)."""
        mask = np.zeros(len(self._names), dtype=bool)
        mask[joints] = True
        return mask

    def _replace(self, position: Array, velocity: Array, effort: Array) -> None:
        self._command = JointCommand(
            position,
            velocity,
            effort,
            np.where(self._follows_position, self._stiffness, 0.0),
            np.where(self._follows_velocity, self._damping, 0.0),
        )

    def _joints(self, names: Sequence[str]) -> list[int]:
        """Return the indices of the named joints."""
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
