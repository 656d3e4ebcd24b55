"""Inertial sensor at any frame of the robot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Vector
from contact_sim._validation import checked
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
        """Gyroscope and accelerometer."""
        name = f'imu/{self.frame or self.robot.base_frame}'
        return Stream(self.seed, f'{name}/gyro'), Stream(self.seed, f'{name}/accel')

    @cached_property
    def _walks(self) -> tuple[RandomWalk, RandomWalk]:
        gyro, accel = self._streams
        return RandomWalk(gyro, 3), RandomWalk(accel, 3)

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
