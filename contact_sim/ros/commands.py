"""Commands from messages: checked as a whole, by joint name; imports no ROS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput
from contact_sim.robot.actuation import JointCommand, holding

Array = NDArray[np.float64]
LARGEST = 1e6
"""Bound of every commanded number: with the bound of the gains it keeps every effort finite."""


class CommandInbox:
    """Latest command of every joint; written by callbacks, read by the simulation loop.

    Until the first command the robot holds `pose`. A joint that is not named keeps its command.

    Attributes:
        accepted: number of messages taken.
        dropped: number of messages refused.
        last_refusal: why the last one was refused.
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
        self._arrived: float | None = None
        self.hold(pose)

    def hold(self, pose: Array) -> None:
        """Forget all commands and hold the joint positions `pose` (n_joints,)."""
        n = len(self._names)
        with self._lock:
            self._follows_position = np.ones(n, dtype=bool)
            self._follows_velocity = np.ones(n, dtype=bool)
            self._command = holding(pose, self._stiffness, self._damping)
            self._arrived = None

    @property
    def current(self) -> JointCommand:
        """The command in force: an immutable value, swapped as a whole."""
        return self._command

    @property
    def age(self) -> float | None:
        """Wall seconds since the last command; None before the first."""
        return None if self._arrived is None else time.monotonic() - self._arrived

    def set_gains(self, stiffness: Array, damping: Array) -> None:
        """Follow commands with other PD gains [N m/rad], [N m s/rad], shape (n_joints,)."""
        with self._lock:
            self._stiffness, self._damping = stiffness, damping
            old = self._command
            self._replace(old.position, old.velocity, old.effort)

    def gain_ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (smallest, largest) of the stiffnesses and of the dampings, 0 without joints."""
        stiffness, damping = (
            (float(gain.min(initial=np.inf)), float(gain.max(initial=0.0)))
            for gain in (self._stiffness, self._damping)
        )
        return stiffness, damping

    def take_joint_state(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> str | None:
        """Take a JointState command by name; return why it is refused, or None."""
        return self._take(lambda: self._from_joint_state(names, position, velocity, effort))

    def take_efforts(self, efforts: Sequence[float]) -> str | None:
        """Take pure efforts [N m] in the order of joint_names; return why refused, or None."""
        return self._take(lambda: self._from_efforts(efforts))

    def _take(self, change: Callable[[], None]) -> str | None:
        with self._lock:
            try:
                change()
            except InvalidInput as error:
                self.dropped += 1
                self.last_refusal = str(error)
                return self.last_refusal
            self.accepted += 1
            self._arrived = time.monotonic()
            return None

    def _from_joint_state(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> None:
        joints = self._joints(names)
        values = {
            'position': self._values('position', position, names),
            'velocity': self._values('velocity', velocity, names),
            'effort': self._values('effort', effort, names),
        }
        if all(value is None for value in values.values()):
            raise InvalidInput('joint command without position, velocity and effort: give one')
        old = self._command
        merged = {}
        for field, value in values.items():
            merged[field] = getattr(old, field).copy()
            merged[field][joints] = 0.0 if value is None else value
        self._follows_position[joints] = values['position'] is not None
        follows = values['position'] is not None or values['velocity'] is not None
        self._follows_velocity[joints] = follows
        self._replace(**merged)

    def _from_efforts(self, efforts: Sequence[float]) -> None:
        if len(efforts) != len(self._names):
            raise InvalidInput(
                f'{len(efforts)} efforts: expected {len(self._names)} in the order '
                + ', '.join(self._names)
            )
        value = self._values('effort', efforts, self._names)
        self._follows_position[:] = False
        self._follows_velocity[:] = False
        self._replace(self._command.position, np.zeros(len(efforts)), np.asarray(value))

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
