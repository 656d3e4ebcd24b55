"""From a sensor to whoever reads it: what a sensor is, and the line on which its samples wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput, of_type, shown
from contact_sim.numbers import whole
from contact_sim.parameters import Parameters
from contact_sim.robot.model import RobotModel
from contact_sim.sensors.noise import step_number
from contact_sim.sensors.part_report import Report

Array = NDArray[np.float64]
Values = TypeVar('Values')


class Sensor(ABC, Generic[Values]):
    """What a sensor says of a step, and what is true of it; subclasses are frozen dataclasses.

    Raises:
        InvalidInput: a robot, parameters or a seed of another type than declared, a seed < 0.
    """

    robot: RobotModel
    seed: int

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if not isinstance(self.robot, RobotModel):
            raise InvalidInput(f'{kind}.robot = {shown(self.robot)}: expected a RobotModel')
        for declared in fields(self):  # type: ignore[arg-type]
            value, default = getattr(self, declared.name), declared.default
            if isinstance(default, Parameters) and not isinstance(value, type(default)):
                expected = type(default).__name__
                raise InvalidInput(
                    f'{kind}.{declared.name} = {shown(value)}: expected {expected}(...)'
                )
        if whole(f'{kind}.seed', self.seed) < 0:
            raise InvalidInput(f'{kind}.seed = {shown(self.seed)}: expected a whole number >= 0')

    @property
    @abstractmethod
    def latency(self) -> int:
        """Steps after which a sample arrives."""

    @property
    def remembers(self) -> bool:
        """Whether what it says of a step depends on those before: show it all of them."""
        return self.latency > 0

    @property
    def variance(self) -> Mapping[str, Array]:
        """Variance per axis of what is said about what was true in the sampled step, by name.

        The diagonal of the covariance; the rest of it is 0. What is no noise is not in it: bias,
        scale errors, misalignment.
        """
        return {}

    @abstractmethod
    def truth(self, report: Report) -> Values:
        """Return the true values at the end of a step."""

    def keep(self, report: Report, last: Any) -> Any:
        """Return what is known of a step until it is read; `last` is the same of the step before.

        `last` is None at the start.
        """
        return report

    @abstractmethod
    def measure(self, kept: Any) -> Values:
        """Return what the sensor says of the step of which this was kept."""


@dataclass(frozen=True, eq=False)
class Reading(Generic[Values]):
    """What arrives from a sensor in one step, beside what is true in it."""

    time: float
    """Simulated time at which it arrives [s]."""
    sampled: float
    """Simulated time of which it speaks [s]; the latency ago."""
    measured: Values
    """What the sensor says."""
    truth: Values
    """What is true at `time`."""
    variance: Mapping[str, Array]
    """`Sensor.variance`: of `measured` about what was true at `sampled`."""


class Sample(NamedTuple):
    """What is on the line of one step."""

    step: int
    time: float
    kept: Any


class Memory(NamedTuple):
    """Everything that a line remembers; `Line.memory`."""

    since: float
    """Time of the reset that the samples follow [s]."""
    samples: tuple[Sample, ...]


class Line(Generic[Values]):
    """Hands on what a sensor says, its latency later.

    Show it the report of every step, by `observe` or `read`; those that are read will do for a
    sensor that remembers nothing. Before the first sample is old enough the oldest known one
    arrives; after steps that were not shown, the newest that is old enough. A repeated step
    replaces what was known of it and of later ones. A reset of the simulation empties the line.
    After `Simulator.restore` give `memory` back, too.
    """

    @checked
    def __init__(self, sensor: Sensor[Values]) -> None:
        self.sensor = sensor
        self._since = np.nan
        self._samples: deque[Sample] = deque()

    @property
    def memory(self) -> Memory:
        """All that is remembered; assign it to go on from there."""
        return Memory(self._since, tuple(self._samples))

    @memory.setter
    def memory(self, memory: Memory) -> None:
        for sample in of_type('memory', memory, Memory).samples:
            of_type('sample', sample, Sample)
        self._since, self._samples = memory.since, deque(memory.samples)

    @checked
    def observe(self, report: Report) -> None:
        """Take the sample of a step."""
        samples, step = self._samples, step_number(report)
        since = float(report.record.clock[1])
        if since != self._since:
            self._since = since
            samples.clear()
        while samples and samples[-1].step >= step:
            samples.pop()
        last = samples[-1].kept if samples else None
        samples.append(Sample(step, report.time, self.sensor.keep(report, last)))
        due = step - self.sensor.latency
        # the one before the due one stays, for a step that is repeated
        while len(samples) > 2 and samples[2].step <= due:
            samples.popleft()

    def arriving(self) -> Sample:
        """Return the sample that arrives in the last step that was shown; there must be one."""
        due = self._samples[-1].step - self.sensor.latency
        at_hand = self._samples[0]
        for sample in self._samples:
            if sample.step > due:
                break
            at_hand = sample
        return at_hand

    def measured(self) -> Values:
        """Return what the sensor says in the last step that was shown."""
        return self.sensor.measure(self.arriving().kept)

    @checked
    def read(self, report: Report) -> Reading[Values]:
        """Take the sample of a step and return what arrives in it."""
        self.observe(report)
        return Reading(
            time=report.time,
            sampled=self.arriving().time,
            measured=self.measured(),
            truth=self.sensor.truth(report),
            variance=self.sensor.variance,
        )
