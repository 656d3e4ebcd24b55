"""Base class of sensors, delay of their samples, and errors common to all sensors."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, Vector
from contact_sim._validation import checked, whole
from contact_sim.errors import InvalidInput, of_type, one_line, shown, summary
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot import _coordinates as of_model
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.sensors._robot_view import Report

# --- Sensors and their delay

Values = TypeVar('Values')


class Sensor(ABC, Generic[Values]):
    """Computes measured and true values of a step; subclasses are frozen dataclasses.

    Raises:
        InvalidInput: a robot, parameters or a seed of another type than declared, a seed < 0.
    """

    robot: RobotModel
    sensing: Any
    """Errors of the sensor, with a latency."""
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
    def latency(self) -> int:
        """Steps after which a sample arrives."""
        return int(self.sensing.latency)

    @property
    def remembers(self) -> bool:
        """Whether measured values depend on earlier steps: all of them must be observed."""
        return self.latency > 0

    @property
    def variance(self) -> Mapping[str, Array]:
        """Variance per axis of the measured values about the true ones, by name.

        The diagonal of the covariance; the rest of it is 0. Bias, scale errors and misalignment
        are no noise and not in it.
        """
        return {}

    @abstractmethod
    def truth(self, report: Report) -> Values:
        """Return the true values at the end of a step."""

    def sample(self, report: Report, last: Any) -> Any:
        """Return the data of a step that are stored until the sample arrives.

        `last` is the sample of the step before, None at the start.
        """
        return report

    @abstractmethod
    def measure(self, sample: Any) -> Values:
        """Return the measured values of a sampled step."""


@dataclass(frozen=True, eq=False)
class Reading(Generic[Values]):
    """Measured values that arrive in one step, and the true values in it."""

    time: float
    """Simulated time at which it arrives [s]."""
    sampled: float
    """Simulated time at which it was sampled [s]; the latency ago."""
    measured: Values
    """Measured values at `sampled`."""
    truth: Values
    """True values at `time`."""
    variance: Mapping[str, Array]
    """`Sensor.variance`: of `measured` about the true values at `sampled`."""

    __repr__ = one_line


class Sample(NamedTuple):
    """Sample of an observed step that has not arrived yet."""

    step: int
    time: float
    value: Any
    """What `Sensor.sample` returned."""


class Memory(NamedTuple):
    """The state of a `DelayedSensor`."""

    since: float
    """Time of the reset that the samples follow [s]."""
    samples: tuple[Sample, ...]


class DelayedSensor(Generic[Values]):
    """Delays the samples of a sensor by its latency.

    Pass it the report of every step, by `observe` or `read`; those that are read will do for a
    sensor that remembers nothing. Before the first sample is old enough the oldest one arrives;
    after steps that were not observed, the newest that is old enough. A repeated step replaces its
    sample and all later ones. A reset of the simulation drops all samples. After
    `Simulator.restore` restore `memory`, too.
    """

    @checked
    def __init__(self, sensor: Sensor[Values]) -> None:
        self.sensor = sensor
        self._since = np.nan
        self._samples: deque[Sample] = deque()

    @property
    def memory(self) -> Memory:
        """State of the sensor with the samples that have not arrived yet; assignable."""
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
        last = samples[-1].value if samples else None
        samples.append(Sample(step, report.time, self.sensor.sample(report, last)))
        due = step - self.sensor.latency
        # the one before the due one stays, for a step that is repeated
        while len(samples) > 2 and samples[2].step <= due:
            samples.popleft()

    def arriving(self) -> Sample:
        """Return the sample that arrives in the last step that was observed.

        Raises:
            InvalidInput: none was since the start.
        """
        if not self._samples:
            raise InvalidInput(
                'DelayedSensor: no step was observed yet, there is no reading: pass the report of '
                'a step to observe() or read() first'
            )
        due = self._samples[-1].step - self.sensor.latency
        old_enough = [sample for sample in self._samples if sample.step <= due]
        return old_enough[-1] if old_enough else self._samples[0]

    def measured(self) -> Values:
        """Return the measured values that arrive in the last step that was observed."""
        return self.sensor.measure(self.arriving().value)

    @checked
    def read(self, report: Report) -> Reading[Values]:
        """Observe a step and return the values that arrive in it."""
        self.observe(report)
        return Reading(
            time=report.time,
            sampled=self.arriving().time,
            measured=self.measured(),
            truth=self.sensor.truth(report),
            variance=self.sensor.variance,
        )

    def __repr__(self) -> str:
        return summary(self, sensor=self.sensor)


# --- White noise, quantisation, and the variance they add up to

LARGEST = 1e3
"""Bound of standard deviations, of resolutions and of thresholds."""
LARGEST_FORCE = 1e6
"""The same of forces [N] and torques [N m]."""
LONGEST = 1000
"""Bound of latencies [steps]: so many reports are kept."""
SMALLEST_VARIANCE = 1e-9
"""Variance of what is exact: 0 would say 'unknown' (sensor_msgs/Imu), and robot_localization takes
whatever is smaller for this number."""


@dataclass(frozen=True)
class NoiseParameters(Parameters):
    """Standard deviations of white noise per sample; seed and step number determine the values.

    The simulation, odom and the PD gains go on with the exact values.
    """

    joint_position: float = parameter(
        0.0, 'rad', 'noise of positions in joint_states, [m] of a sliding joint; 0: exact',
        at_least=0.0, at_most=LARGEST, live=True,
    )  # fmt: skip
    joint_velocity: float = parameter(
        0.0, 'rad/s', 'noise of velocities in joint_states, [m/s] of a sliding joint; 0: exact',
        at_least=0.0, at_most=LARGEST, live=True,
    )  # fmt: skip
    imu_gyro: float = parameter(
        0.0, 'rad/s', 'noise of angular velocity in imu/data, its covariance says so; 0: exact',
        at_least=0.0, at_most=LARGEST, live=True,
    )  # fmt: skip
    imu_accel: float = parameter(
        0.0, 'm/s^2', 'noise of acceleration in imu/data, its covariance says so; 0: exact',
        at_least=0.0, at_most=LARGEST, live=True,
    )  # fmt: skip
    foot_force: float = parameter(
        0.0, 'N', 'noise of every axis of the force in contacts/<foot>/wrench; 0: exact',
        at_least=0.0, at_most=LARGEST_FORCE, live=True,
    )  # fmt: skip
    foot_torque: float = parameter(
        0.0, 'N m', 'noise of every axis of the torque in contacts/<foot>/wrench; 0: exact',
        at_least=0.0, at_most=LARGEST_FORCE, live=True,
    )  # fmt: skip


EXACT = NoiseParameters()
"""No white noise."""


def latency(what: str) -> Any:
    """Return the declaration of a latency of `what`."""
    return parameter(
        0, '', f'steps after which {what} arrives, under the stamp of its arrival', at_least=0,
        at_most=LONGEST, live=True,
    )  # fmt: skip


def resolution(unit: str, what: str, at_most: float = LARGEST) -> Any:
    """Return the declaration of the resolution of `what`."""
    return parameter(
        0.0, unit, f'{what} is a multiple of this; 0: not rounded', at_least=0.0, at_most=at_most,
        live=True,
    )  # fmt: skip


FINEST = 1e-100
"""Resolution below which rounding changes no number."""


def step_number(report: Report) -> int:
    """Return the number of the step that a report is of: its time over h."""
    return round(report.time / float(report.record.time_step[0]))


def with_errors(
    truth: Array, step: int, stream: Stream, deviation: float, resolution: float = 0.0
) -> Array:
    """Return true values with white noise of a standard deviation, then rounded; same shape.

    `truth` itself where there is neither.
    """
    values = truth
    if deviation > 0.0:
        values = values + deviation * stream.normal(step, values.shape)
    if resolution > FINEST:
        values = resolution * np.round(values / resolution)
    return values


def variance(shape: tuple[int, ...], deviation: float, resolution: float = 0.0) -> Array:
    """Return the variance of `with_errors`, at least SMALLEST_VARIANCE.

    That of rounding is that of a uniform error, Δ²/12: it holds where values move by more than Δ.
    """
    return np.full(shape, max(deviation**2 + resolution**2 / 12.0, SMALLEST_VARIANCE))


# --- Scale errors and misalignment of a triad of axes
#
#     measured = S R(θ) true + bias + noise,   S = I + diag(scale),   R(θ) = exp [θ]×
#
# θ is a rotation vector in the axes of the frame [rad]: the triad reads what an ideal one would of
# values turned by θ; its own axes are those of the frame turned by −θ. S R is the sensitivity. It
# is constant; what is drawn of it depends on the seed and the name of the sensor alone.

ZERO: Vector = (0.0, 0.0, 0.0)
IDEAL: Array = np.eye(3)
"""Sensitivity without errors; `sensed` knows it by identity."""
IDEAL.setflags(write=False)


def scales(what: str) -> Any:
    """Return the declaration of the scale errors of a triad."""
    return parameter(
        ZERO, '-', f'scale errors of the axes of {what}: 0.01 reads 1 % more, -1 nothing',
        at_least=-1.0, at_most=1.0, live=True,
    )  # fmt: skip


def spread_of_scales(what: str) -> Any:
    """Return the declaration of how far the scale errors that are drawn spread."""
    return parameter(
        0.0, '-', f'standard deviation of constant scale errors of {what}, drawn per axis from '
        'the seed and added', at_least=0.0, at_most=1.0, live=True,
    )  # fmt: skip


def turn(what: str) -> Any:
    """Return the declaration of the rotation vector by which a triad reads values turned."""
    return parameter(
        ZERO, 'rad', f'rotation vector, in the axes of the frame, by which {what} reads values '
        'turned', at_least=-np.pi, at_most=np.pi, live=True,
    )  # fmt: skip


def spread_of_turn(what: str) -> Any:
    """Return the declaration of how far the misalignment that is drawn spreads."""
    return parameter(
        0.0, 'rad', f'standard deviation of a constant misalignment of {what}, drawn per axis '
        'from the seed and added to the rotation vector', at_least=0.0, at_most=1.0, live=True,
    )  # fmt: skip


def sensitivity(scale: Array, misalignment: Array) -> Array:
    """Return S R(θ), shape (3, 3), of scale errors (3,) and a rotation vector (3,) [rad]."""
    if not (scale.any() or misalignment.any()):
        return IDEAL
    return np.asarray((1.0 + scale)[:, np.newaxis] * pin.exp3(misalignment))


def sensed(sensitivity: Array, true: Array) -> Array:
    """Return true values (3,) as a triad reads them; `true` itself under IDEAL."""
    return true if sensitivity is IDEAL else sensitivity @ true


# --- Random numbers that depend on a seed, a name and a step number alone
#
# The numbers of a step are drawn from a counter-based generator, Philox 4x64, whose key is (seed,
# name) and whose counter holds the step: no stream has to be advanced, so a step that is repeated,
# skipped or read twice has the same numbers.
#
# A random walk is a sum over all steps before. It gets the same property by Lévy's construction of
# Brownian motion. W(0) = 0, ξ(k) is standard normal and belongs to the whole number k alone:
#
#     W(2^(j+1)) = W(2^j) + √(2^j) ξ(2^(j+1)),   W(1) = ξ(1)
#     W((a+b)/2) = (W(a) + W(b))/2 + √((b − a)/4) ξ((a+b)/2)    for the neighbours a, b of a level
#
# The increments of W are independent standard normal numbers, and any W(k) takes at most 2 log₂ k
# of the ξ [Lévy 1948; Glasserman, Monte Carlo Methods in Financial Engineering, 3.1].

WORD = 2**64
WHITE, WALK, CONSTANT = 0, 1, 2
"""What the numbers of a step are for; the third word of the counter."""


@dataclass(frozen=True)
class Stream:
    """Random numbers of one quantity of one sensor."""

    seed: int
    """At least 0."""
    name: str
    """Streams with other names are independent."""

    @cached_property
    def _key(self) -> NDArray[np.uint64]:
        digest = hashlib.blake2b(self.name.encode(), digest_size=8).digest()
        return np.array([self.seed % WORD, int.from_bytes(digest, 'little')], dtype=np.uint64)

    def normal(self, step: int, shape: tuple[int, ...], purpose: int = WHITE) -> Array:
        """Return the standard normal numbers of a step."""
        return self._generator(step, purpose).standard_normal(shape)

    def constant(self, shape: tuple[int, ...]) -> Array:
        """Return standard normal numbers that belong to no step, the same at every time."""
        return self.normal(0, shape, CONSTANT)

    def uniform(self, step: int, shape: tuple[int, ...]) -> Array:
        """Return the numbers of a step that are uniform in [0, 1)."""
        return self._generator(step, WHITE).random(shape)

    def _generator(self, step: int, purpose: int) -> np.random.Generator:
        # the first word counts what is drawn in the step
        counter = np.array([0, step % WORD, purpose, 0], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self._key, counter=counter))


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """W of the module's docstring, `n` independent ones side by side; W(−k) is another walk."""

    stream: Stream
    n: int
    _path: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    def at(self, step: int) -> Array:
        """Return W(step), variance |step|, shape (n,).

        The way to it is kept, since the next step shares most of it; no value depends on that.
        """
        side, k = (-1 if step < 0 else 1), abs(step)
        path: dict[int, Array] = {0: np.zeros(self.n)}
        a = b = 0
        while b < k:  # the first power of two that is not below k
            a, b = b, max(1, 2 * b)
            path[side * b] = self._known(side * b, path[side * a], None, math.sqrt(b - a))
        while k not in (a, b):
            middle = (a + b) // 2
            ends = path[side * a], path[side * b]
            path[side * middle] = self._known(side * middle, *ends, 0.5 * math.sqrt(b - a))
            a, b = (middle, b) if middle <= k else (a, middle)
        self._path.clear()
        self._path.update(path)
        return path[step]

    def _known(self, k: int, left: Array, right: Array | None, deviation: float) -> Array:
        """Return W(k), normal about its neighbours, or about the left one alone."""
        if k in self._path:
            return self._path[k]
        mean = left if right is None else 0.5 * (left + right)
        return mean + deviation * self.stream.normal(k, (self.n,), WALK)


# --- Kinematics of frames


def sensor_frame(robot: RobotModel, name: str) -> pin.Frame:
    """Return a frame, the link where a joint has the same name; '' is the root body itself."""
    if not isinstance(name, str):
        raise InvalidInput(f'frame = {shown(name)}: expected a name')
    if not name:
        root = 1 if robot.floating_base else 0
        return pin.Frame(name, root, pin.SE3.Identity(), pin.FrameType.OP_FRAME)
    return of_model.find_frame(robot.pinocchio_model, name)


class Frames:
    """Where frames of a robot are and how they move; not to be asked by two threads at once."""

    def __init__(self, robot: RobotModel, frames: Sequence[pin.Frame]) -> None:
        self._model = robot.pinocchio_model
        self._data = data_of(self._model)
        self._frames = [(frame.parentJoint, frame.placement.copy()) for frame in frames]

    def placements(self, q: Array) -> list[pin.SE3]:
        """Return the placement of every frame in world at q (nq,)."""
        pin.forwardKinematics(self._model, self._data, q)
        joints = self._data.oMi
        return [joints[joint] * placement for joint, placement in self._frames]

    def velocities(self, q: Array, v: Array) -> list[pin.Motion]:
        """Return the velocity of every frame about its origin, in world axes, at q and v (nv,)."""
        model, data, axes = self._model, self._data, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pin.forwardKinematics(model, data, q, v)
        return [
            pin.getFrameVelocity(model, data, joint, placement, axes)
            for joint, placement in self._frames
        ]
