"""Commands from messages: checked as a whole, by joint name; imports no ROS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput
from contact_sim.robot.actuation import JointCommand, holding

Array = NDArray[np.float64]
LARGEST = 1e6
"""Bound of every commanded number: with the bound of the gains it keeps every effort finite."""

ALL = slice(None)
"""Every joint."""


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


class CommandInbox:
    """Latest command of every joint; written by callbacks, read by the simulation loop.

    Until the first command the robots hold `pose`. A joint that is not named keeps its command.

    Attributes:
        accepted: number of messages taken.
        dropped: number of messages refused.
        last_refusal: why the last one was refused.
        deliver: called with each checked message and its stamp [ns], None without one; may raise
            InvalidInput to refuse it. It lets the message act at once, unless somebody else puts
            it off (Lockstep).
    """

    def __init__(
        self, joint_names: Sequence[str], pose: Array, stiffness: Array, damping: Array
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
        self.deliver: Callable[[Change, int | None], None] = self._act_at_once

    def hold(self, pose: Array, joints: slice = ALL) -> None:
        """Forget the commands of these joints and have them hold the positions `pose` (n,)."""
        with self._lock:
            position, velocity, effort = (
                getattr(self._command, name).copy() for name in ('position', 'velocity', 'effort')
            )
            position[joints] = pose
            velocity[joints] = effort[joints] = 0.0
            self._follows_position[joints] = self._follows_velocity[joints] = True
            self._replace(position, velocity, effort)
            self._arrived[joints] = np.nan

    @property
    def current(self) -> JointCommand:
        """The command in force: an immutable value, swapped as a whole."""
        return self._command

    def age(self, joints: slice = ALL) -> float | None:
        """Return the wall seconds since the last command of any of these joints, or None."""
        arrived = self._arrived[joints]
        known = arrived[~np.isnan(arrived)]
        return time.monotonic() - float(known.max()) if len(known) else None

    @property
    def state(self) -> tuple[JointCommand, NDArray[np.bool_], NDArray[np.bool_]]:
        """The command in force and what follows it, to be assigned later."""
        with self._lock:
            return self._command, self._follows_position.copy(), self._follows_velocity.copy()

    @state.setter
    def state(self, kept: tuple[JointCommand, NDArray[np.bool_], NDArray[np.bool_]]) -> None:
        with self._lock:
            old, position, velocity = kept
            self._follows_position, self._follows_velocity = position.copy(), velocity.copy()
            self._replace(old.position, old.velocity, old.effort)

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

    def take_efforts(self, efforts: Sequence[float], joints: slice = ALL) -> str | None:
        """Take pure efforts [N m] of these joints in their order; return why refused, or None."""
        return self._take(lambda: self._effort_change(efforts, joints), None)

    def act_on(self, change: Change) -> None:
        """Let a change take effect: the joints it names follow it and nothing else."""
        joints = change.joints
        with self._lock:
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

    def _act_at_once(self, change: Change, _: int | None) -> None:
        self.act_on(change)

    def _take(self, read: Callable[[], Change], stamp: int | None) -> str | None:
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
            self._values('position', position, names),
            self._values('velocity', velocity, names),
            self._values('effort', effort, names),
        )
        if all(value is None for value in values):
            raise InvalidInput('joint command without position, velocity and effort: give one')
        return Change(np.array(joints), *values)

    def _effort_change(self, efforts: Sequence[float], joints: slice) -> Change:
        names = self._names[joints]
        if len(efforts) != len(names):
            raise InvalidInput(
                f'{len(efforts)} efforts: expected {len(names)} in the order ' + ', '.join(names)
            )
        value = self._values('effort', efforts, names)
        return Change(np.arange(len(self._names))[joints], None, None, value)

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
                f'unknown joint {unknown[0]!r} in a command; known: {", ".join(self._names)}'
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise InvalidInput(f'joint {twice!r} named twice in a command')
        return [self._index[name] for name in names]

    @staticmethod
    def _values(field: str, values: Sequence[float], names: Sequence[str]) -> Array | None:
        """Return the values of one field, None where the field is empty."""
        if len(values) == 0:
            return None
        if len(values) != len(names):
            raise InvalidInput(
                f'{len(values)} values of {field} for {len(names)} joints: expected 0 or '
                f'{len(names)}'
            )
        array = np.array(values, dtype=float)
        bad = np.flatnonzero(~(np.abs(array) <= LARGEST))  # NaN too
        if len(bad):
            raise InvalidInput(
                f'{field} of joint {names[bad[0]]!r} = {array[bad[0]]}: must be finite, at most '
                f'{LARGEST:g}'
            )
        return array
