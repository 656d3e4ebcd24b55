"""Noise of the sensors; imports no ROS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.ros.settings.declarations import NoiseParameters

Array = NDArray[np.float64]
JOINTS, IMU = 0, 1


class SensorNoise:
    """Normal, white, and independent between sensors.

    What is drawn for a step depends on the seed and the number of the step alone, not on what was
    drawn before: a repeated step has the noise that it had, however often it is published.

    Args:
        parameters: standard deviations.
        seed: at least 0.
    """

    def __init__(self, parameters: NoiseParameters, seed: int) -> None:
        self._seed = seed
        self._joints = parameters.joint_position, parameters.joint_velocity
        self._imu = parameters.imu_gyro, parameters.imu_accel

    def of_joints(self, tick: int, count: int) -> Array | None:
        """Return what to add to positions [rad] and velocities [rad/s] after a step, (2, count).

        None where there is nothing to add.
        """
        return self._drawn(JOINTS, tick, self._joints, count) if any(self._joints) else None

    def of_imu(self, tick: int) -> Array | None:
        """Return what to add to the gyroscope [rad/s] and the accelerometer [m/s²], (2, 3).

        None where there is nothing to add.
        """
        return self._drawn(IMU, tick, self._imu, 3) if any(self._imu) else None

    def _drawn(self, sensor: int, tick: int, deviations: tuple[float, float], count: int) -> Array:
        bits = np.random.Philox(key=[self._seed, sensor], counter=[0, tick, 0, 0])
        drawn = np.random.Generator(bits).standard_normal((2, count))
        return np.array(deviations)[:, None] * drawn
