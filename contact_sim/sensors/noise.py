"""Errors that all sensors have: white noise, quantisation, and the variance these add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.parameters import Parameters, parameter
from contact_sim.sensors.part_report import Report
from contact_sim.sensors.random_numbers import Stream

Array = NDArray[np.float64]
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
    """Standard deviations of white noise per sample; seed and step number decide what is drawn.

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


def latency(what: str) -> int:
    """Return the declaration of a latency of `what`."""
    declared: int = parameter(
        0, '', f'steps after which {what} arrives, under the stamp of its arrival', at_least=0,
        at_most=LONGEST, live=True,
    )  # fmt: skip
    return declared


def resolution(unit: str, what: str, at_most: float = LARGEST) -> float:
    """Return the declaration of the resolution of `what`."""
    declared: float = parameter(
        0.0, unit, f'{what} is a multiple of this; 0: not rounded', at_least=0.0, at_most=at_most,
        live=True,
    )  # fmt: skip
    return declared


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
    if resolution > 0.0:
        values = resolution * np.round(values / resolution)
    return values


def variance(shape: tuple[int, ...], deviation: float, resolution: float = 0.0) -> Array:
    """Return the variance of `with_errors`, at least SMALLEST_VARIANCE.

    That of rounding is that of a uniform error, Δ²/12: it holds where values move by more than Δ.
    """
    return np.full(shape, max(deviation**2 + resolution**2 / 12.0, SMALLEST_VARIANCE))
