"""Sensors of motion: encoders of the joints, and an inertial sensor at any frame of the robot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, Vector
from contact_sim._validation import as_tuple, check_unique, checked
from contact_sim.errors import UnknownName, one_line
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot._model import RobotModel
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._sensor import (
    EXACT,
    LARGEST,
    SMALLEST_VARIANCE,
    Frames,
    NoiseParameters,
    RandomWalk,
    Sensor,
    Stream,
    latency,
    resolution,
    scales,
    sensed,
    sensitivity,
    sensor_frame,
    spread_of_scales,
    spread_of_turn,
    step_number,
    turn,
    variance,
    with_errors,
)

# --- Encoders: of joints without a motor as well, as drawing needs the position of every joint


@dataclass(frozen=True)
class EncoderSensing(Parameters):
    """Errors of the encoders besides `NoiseParameters`."""

    position_resolution: float = resolution('rad', 'a position ([m] of a sliding joint)')
    velocity_resolution: float = resolution('rad/s', 'a velocity ([m/s] of a sliding joint)')
    latency: int = latency('a sample')


@dataclass(frozen=True, eq=False)
class JointValues:
    """Joints, each array in the order of the sensor's `joints`."""

    position: Array
    """[rad], or [m] of sliding joints, shape (n,)."""
    velocity: Array
    """[rad/s], or [m/s], shape (n,)."""
    effort: Array
    """What acted in the step after saturation [N m], or [N], shape (n,); never with errors. 0 of
    joints without a motor."""

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class Encoders(Sensor[JointValues]):
    """Encoders of joints with one degree of freedom.

    A value is round((true + noise) / resolution) × resolution. The noise of a joint does not
    depend on which other joints are measured.

    Raises:
        InvalidInput: a joint listed twice.
        UnknownName: no such joint of the robot.
    """

    robot: RobotModel
    joints: tuple[str, ...] | None = None
    """Names of the measured joints; None: all actuated ones, in the order of the robot."""
    noise: NoiseParameters = EXACT
    sensing: EncoderSensing = EncoderSensing()
    seed: int = 0
    """Which noise is drawn, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        actuated = self.robot.joint_names
        known = (*actuated, *self.robot.passive_joint_names)
        joints = actuated
        if self.joints is not None:
            joints = as_tuple('joints', self.joints, 'a list of joint names')
        check_unique('joint', joints)
        for name in joints:
            if not isinstance(name, str) or name not in known:
                raise UnknownName('joint', name, known)
        object.__setattr__(self, 'joints', joints)

    @cached_property
    def _chosen(self) -> NDArray[np.intp]:
        names = (*self.robot.joint_names, *self.robot.passive_joint_names)
        return np.array([names.index(name) for name in self.joints or ()], dtype=np.intp)

    @cached_property
    def _streams(self) -> tuple[Stream, Stream]:
        return Stream(self.seed, 'joints/position'), Stream(self.seed, 'joints/velocity')

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variances of position and velocity, each (n,)."""
        noise, sensing, n = self.noise, self.sensing, len(self.joints or ())
        return {
            'position': variance((n,), noise.joint_position, sensing.position_resolution),
            'velocity': variance((n,), noise.joint_velocity, sensing.velocity_resolution),
        }

    @checked
    def truth(self, report: Report) -> JointValues:
        """Return the true values at the end of a step."""
        return self._of_chosen(*self._all(report))

    def measure(self, sample: Report) -> JointValues:
        """Return the measured values of a step."""
        position, velocity, effort = self._all(sample)
        noise, sensing, step = self.noise, self.sensing, step_number(sample)
        of_position, of_velocity = self._streams
        position = with_errors(
            position, step, of_position, noise.joint_position, sensing.position_resolution
        )
        velocity = with_errors(
            velocity, step, of_velocity, noise.joint_velocity, sensing.velocity_resolution
        )
        return self._of_chosen(position, velocity, effort)

    def _all(self, report: Report) -> tuple[Array, Array, Array]:
        robot, passive = self.robot, self.robot.passive_joints
        if not passive.n_joints:
            return (
                robot.joint_positions(report.q), robot.joint_velocities(report.v), report.effort
            )  # fmt: skip
        return (
            np.concatenate([part.joint_positions(report.q) for part in (robot, passive)]),
            np.concatenate([part.joint_velocities(report.v) for part in (robot, passive)]),
            np.concatenate([report.effort, np.zeros(passive.n_joints)]),
        )

    def _of_chosen(self, position: Array, velocity: Array, effort: Array) -> JointValues:
        chosen = self._chosen
        return JointValues(position[chosen], velocity[chosen], effort[chosen])

    __repr__ = one_line


# --- Inertial sensor


@dataclass(frozen=True)
class ImuSensing(Parameters):
    """Errors of the inertial sensor besides `NoiseParameters`."""

    gyro_bias_walk: float = parameter(
        0.0, 'rad/s^1.5', 'random walk of the bias of the gyroscope: its standard deviation after '
        '1 s, which grows with the root of time', at_least=0.0, at_most=LARGEST, live=True,
    )  # fmt: skip
    accel_bias_walk: float = parameter(
        0.0, 'm/s^2.5', 'the same of the accelerometer', at_least=0.0, at_most=LARGEST, live=True
    )
    gyro_resolution: float = resolution('rad/s', 'angular velocity')
    accel_resolution: float = resolution('m/s^2', 'acceleration')
    gyro_scale: Vector = scales('the gyroscope')
    gyro_scale_deviation: float = spread_of_scales('the gyroscope')
    gyro_misalignment: Vector = turn('the gyroscope')
    gyro_misalignment_deviation: float = spread_of_turn('the gyroscope')
    accel_scale: Vector = scales('the accelerometer')
    accel_scale_deviation: float = spread_of_scales('the accelerometer')
    accel_misalignment: Vector = turn('the accelerometer')
    accel_misalignment_deviation: float = spread_of_turn('the accelerometer')
    orientation: bool = parameter(
        True, '', 'imu/data tells the orientation, exactly; false: it does not, and says so by -1 '
        'in the first element of its covariance', live=True,
    )  # fmt: skip
    latency: int = latency('a sample')

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class ImuValues:
    """Values of an inertial sensor, in the axes of its frame."""

    angular_velocity: Array
    """Of the frame against the world [rad/s], shape (3,)."""
    specific_force: Array
    """Acceleration of the frame's origin minus gravity [m/s²], shape (3,); +g upwards at rest."""
    orientation: Array
    """Quaternion x, y, z, w from the axes of the frame to the world, shape (4,).

    The identity where a sensor does not tell it.
    """

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class Imu(Sensor[ImuValues]):
    """Gyroscope and accelerometer at a frame of the robot, on any link.

        f = Rᵀ ((v⁺ − v⁻) / h − g),   ω = Rᵀ ω⁺

    v⁻ and v⁺ are the velocities of the frame's origin before and after the step, in world axes at
    the configurations there, so lever arms and moving links are in them; R are the axes of the
    frame and ω⁺ its angular velocity after the step. Hence the sum of h (R f + g) over steps, with
    the orientation that stands beside f, is the change of the true velocity to rounding, and an
    impact is Δv/h. REP 145: at rest f points up. Of a state on which nothing has acted yet, after
    a reset, v⁺ = v⁻.

    The orientation is exact: seldom a sensor, but what a filter inside of one makes of it. Two
    sensors of one frame and one seed have the same noise, bias and drawn constants.

    Raises:
        UnknownName: a frame that the robot does not have.
    """

    robot: RobotModel
    frame: str = ''
    """Name of the frame; '' is the root body itself."""
    noise: NoiseParameters = EXACT
    sensing: ImuSensing = ImuSensing()
    seed: int = 0
    """Which noise is drawn, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._frames  # refuses a frame that does not exist

    @cached_property
    def _frames(self) -> Frames:
        return Frames(self.robot, [sensor_frame(self.robot, self.frame)])

    @cached_property
    def _streams(self) -> tuple[Stream, Stream]:
        name = f'imu/{self.frame or self.robot.base_frame}'
        return Stream(self.seed, f'{name}/gyro'), Stream(self.seed, f'{name}/accel')

    @cached_property
    def _walks(self) -> tuple[RandomWalk, ...]:
        return tuple(RandomWalk(stream, 3) for stream in self._streams)

    @cached_property
    def sensitivity(self) -> tuple[Array, Array]:
        """Sensitivity S R of gyroscope and accelerometer, each (3, 3)."""
        sensing, (gyro, accel) = self.sensing, (s.constant((2, 3)) for s in self._streams)
        return (
            sensitivity(
                sensing.gyro_scale + sensing.gyro_scale_deviation * gyro[0],
                sensing.gyro_misalignment + sensing.gyro_misalignment_deviation * gyro[1],
            ),
            sensitivity(
                sensing.accel_scale + sensing.accel_scale_deviation * accel[0],
                sensing.accel_misalignment + sensing.accel_misalignment_deviation * accel[1],
            ),
        )

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variances of angular_velocity and specific_force, and of turns about the axes, (3,).

        Those of the orientation are left out where it is not told.
        """
        noise, sensing = self.noise, self.sensing
        variances = {
            'angular_velocity': variance((3,), noise.imu_gyro, sensing.gyro_resolution),
            'specific_force': variance((3,), noise.imu_accel, sensing.accel_resolution),
        }
        if sensing.orientation:
            variances['orientation'] = np.full(3, SMALLEST_VARIANCE)
        return variances

    @checked
    def truth(self, report: Report) -> ImuValues:
        """Return the true values at the end of a step."""
        record = report.record
        (before,) = self._frames.velocities(record.q_start, record.v_start)
        (after,) = self._frames.velocities(report.q, report.v)
        (placement,) = self._frames.placements(report.q)
        into = np.array(placement.rotation).T
        acceleration = (after.linear - before.linear) / record.time_step[0]
        return ImuValues(
            into @ after.angular,
            into @ (acceleration - record.gravity),
            np.array(pin.Quaternion(placement.rotation).coeffs()),
        )

    def bias(self, report: Report) -> tuple[Array, Array]:
        """Return the biases of gyroscope [rad/s] and accelerometer [m/s²] in a step, each (3,).

        They walk from 0 at time 0.
        """
        step, h = step_number(report), float(report.record.time_step[0])
        deviations = self.sensing.gyro_bias_walk, self.sensing.accel_bias_walk
        gyro, accel = (
            deviation * math.sqrt(h) * walk.at(step) if deviation > 0.0 else np.zeros(3)
            for deviation, walk in zip(deviations, self._walks, strict=True)
        )
        return gyro, accel

    def measure(self, sample: Report) -> ImuValues:
        """Return the measured values of a step: S R true, plus bias and noise, rounded."""
        true, step = self.truth(sample), step_number(sample)
        gyro_bias, accel_bias = self.bias(sample)
        gyro, accel = self._streams
        of_gyro, of_accel = self.sensitivity
        velocity = sensed(of_gyro, true.angular_velocity) + gyro_bias
        force = sensed(of_accel, true.specific_force) + accel_bias
        noise, sensing = self.noise, self.sensing
        return ImuValues(
            with_errors(velocity, step, gyro, noise.imu_gyro, sensing.gyro_resolution),
            with_errors(force, step, accel, noise.imu_accel, sensing.accel_resolution),
            true.orientation if sensing.orientation else np.array([0.0, 0.0, 0.0, 1.0]),
        )

    __repr__ = one_line
