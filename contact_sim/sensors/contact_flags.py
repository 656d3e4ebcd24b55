"""Contact switches of the feet: threshold, hysteresis, latency and faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot.model import RobotModel
from contact_sim.robot.solids import link_names
from contact_sim.sensors.line import Sensor
from contact_sim.sensors.noise import LARGEST_FORCE, latency, step_number
from contact_sim.sensors.part_report import Report
from contact_sim.sensors.random_numbers import Stream

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ContactSensing(Parameters):
    """When a contact switch says that its foot stands, and its faults.

    Raises:
        InvalidInput: off_threshold above on_threshold, a foot that is stuck on and off.
    """

    on_threshold: float = parameter(
        0.0, 'N', 'normal force on a foot above which its flag goes on', at_least=0.0,
        at_most=LARGEST_FORCE, live=True,
    )  # fmt: skip
    off_threshold: float = parameter(
        0.0, 'N', 'normal force at or below which it goes off again; at most on_threshold, less '
        'is hysteresis', at_least=0.0, at_most=LARGEST_FORCE, live=True,
    )  # fmt: skip
    latency: int = latency('a flag')
    stuck_on: tuple[str, ...] = parameter((), '', 'feet whose flag is always on', live=True)
    stuck_off: tuple[str, ...] = parameter((), '', 'feet whose flag is always off', live=True)
    dropout: float = parameter(
        0.0, '-', 'probability that a flag is off in a step whatever the force', at_least=0.0,
        at_most=1.0, live=True,
    )  # fmt: skip
    dropout_feet: tuple[str, ...] = parameter(
        (), '', 'feet whose flags drop out; empty: all', live=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.off_threshold > self.on_threshold:
            raise InvalidInput(
                f'ContactSensing.off_threshold = {self.off_threshold:g} N is above on_threshold = '
                f'{self.on_threshold:g} N: expected at most that, less for hysteresis'
            )
        if both := set(self.stuck_on) & set(self.stuck_off):
            raise InvalidInput(
                f'ContactSensing: foot {min(both)!r} is in stuck_on and in stuck_off; '
                'expected in one of them'
            )


@dataclass(frozen=True, eq=False)
class ContactValues:
    """What contact switches tell."""

    flag: Flags
    """Whether each foot stands, in the order of `robot.feet`, shape (n,)."""


class Switched(NamedTuple):
    """Flags of a step behind the thresholds, without faults."""

    step: int
    flag: Flags


@dataclass(frozen=True, eq=False)
class ContactFlags(Sensor[ContactValues]):
    """A contact switch under every foot.

    It goes on in the step in which the normal force on its foot exceeds on_threshold, and off in
    that in which the force is at most off_threshold; between them it stays, off at the start. It
    is true that a foot stands where the ground presses on it at all.

    Raises:
        UnknownName: a fault of a foot that the robot does not have.
    """

    robot: RobotModel
    sensing: ContactSensing = ContactSensing()
    seed: int = 0
    """Which steps drop out, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        sensing, names = self.sensing, self._names
        for faulty in (sensing.stuck_on, sensing.stuck_off, sensing.dropout_feet):
            for name in faulty:
                if name not in names:
                    raise UnknownName('foot', name, names)

    @cached_property
    def _dropout(self) -> Array:
        """Probability of every foot, (n,)."""
        sensing = self.sensing
        feet = self._feet_in(sensing.dropout_feet or self._names)
        return np.where(feet, sensing.dropout, 0.0)

    @cached_property
    def _stuck(self) -> tuple[Flags, Flags]:
        return self._feet_in(self.sensing.stuck_on), self._feet_in(self.sensing.stuck_off)

    @cached_property
    def _stream(self) -> Stream:
        return Stream(self.seed, 'contacts/dropout')

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(foot.name for foot in self.robot.feet)

    @cached_property
    def _points(self) -> Array:
        """1 where a contact point belongs to a foot, shape (feet, candidates)."""
        member = np.zeros((len(self._names), len(self.robot.candidates)))
        for row, foot in enumerate(self.robot.feet):
            member[row, list(foot.points)] = 1.0
        return member

    @cached_property
    def _links(self) -> tuple[frozenset[str], ...]:
        """Names of the link of each foot, which other bodies touch."""
        return tuple(link_names(self.robot.pinocchio_model, foot) for foot in self.robot.feet)

    def _feet_in(self, chosen: Sequence[str]) -> Flags:
        return np.array([name in chosen for name in self._names], dtype=bool)

    @property
    def latency(self) -> int:
        """Steps after which a sample arrives."""
        return self.sensing.latency

    @property
    def remembers(self) -> bool:
        """Whether what it says of a step depends on those before."""
        return self.latency > 0 or self.sensing.off_threshold < self.sensing.on_threshold

    @checked
    def load(self, report: Report) -> Array:
        """Return the normal force on each foot [N], shape (n,); pulls count 0."""
        pressing = np.maximum(report.contacts.normal_force, 0.0)
        load = np.zeros(len(self._names))
        if len(pressing):
            load += self._points @ pressing.reshape(self._points.shape[1], -1).sum(axis=1)
        if len(report.pairs):
            load += [report.pairs.load_on(links) for links in self._links]
        return load

    @checked
    def truth(self, report: Report) -> ContactValues:
        """Return which feet the ground presses on in a step."""
        return ContactValues(self.load(report) > 0.0)

    def keep(self, report: Report, last: Switched | None) -> Switched:
        """Return the flags of a step, which those of the step before decide about, too."""
        load, sensing = self.load(report), self.sensing
        flag = load > sensing.on_threshold
        if last is not None:
            flag = flag | (last.flag & (load > sensing.off_threshold))
        return Switched(step_number(report), flag)

    def measure(self, kept: Switched) -> ContactValues:
        """Return what the switches say of a step, faults included."""
        flag, sensing = kept.flag, self.sensing
        if sensing.dropout > 0.0:
            flag = flag & (self._stream.uniform(kept.step, flag.shape) >= self._dropout)
        stuck_on, stuck_off = self._stuck
        return ContactValues((flag | stuck_on) & ~stuck_off)
