"""Noise of the sensors: its statistics, and that seed and step number alone decide about it."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from robots import stand
from ros_session import vector

from contact_sim import Simulator, load_robot
from contact_sim.ros.outputs.messages import ImuMessage, JointStateMessage
from contact_sim.ros.outputs.noise import SensorNoise
from contact_sim.ros.settings.declarations import NoiseParameters

SIGMA = {'joint_position': 1e-3, 'joint_velocity': 0.05, 'imu_gyro': 0.02, 'imu_accel': 0.3}
TICKS = 2500


def drawn(seed):
    """Return the noise of joints and IMU over their standard deviations, (TICKS, 4, 3)."""
    noise = SensorNoise(NoiseParameters(**SIGMA), seed)
    deviations = np.array(list(SIGMA.values()))[:, None]
    rows = [np.vstack([noise.of_joints(k, 3), noise.of_imu(k)]) for k in range(TICKS)]
    return np.array(rows) / deviations


@pytest.fixture(scope='module')
def samples():
    return drawn(seed=0)


def test_noise_is_normal_with_the_deviations_asked_for(samples):
    """Bounds are four standard errors of TICKS or 3 TICKS independent normal numbers."""
    per_axis, per_sensor = 4.0 / np.sqrt(TICKS), 4.0 / np.sqrt(3 * TICKS)
    assert np.abs(samples.mean(axis=0)).max() < per_axis
    assert np.abs(samples.std(axis=(0, 2)) - 1.0).max() < per_sensor / np.sqrt(2.0)
    skew, kurtosis = (samples**3).mean(axis=(0, 2)), (samples**4).mean(axis=(0, 2))
    assert np.abs(skew).max() < per_sensor * np.sqrt(15.0)
    assert np.abs(kurtosis - 3.0).max() < per_sensor * np.sqrt(96.0)


def test_noise_is_white_and_independent_between_axes_sensors_and_seeds(samples):
    bound = 4.5 / np.sqrt(TICKS)  # of 354 correlations none is that large by chance
    now, later = samples[:-1].reshape(TICKS - 1, 12), samples[1:].reshape(TICKS - 1, 12)
    other = drawn(seed=1)[:-1].reshape(TICKS - 1, 12)
    together = np.corrcoef(np.hstack([now, later, other]).T)
    assert np.abs(together[:12] - np.eye(36)[:12]).max() < bound


def test_noise_depends_on_seed_and_step_alone(samples):
    noise = SensorNoise(NoiseParameters(joint_velocity=0.05), 0)
    noise.of_imu(3)
    assert noise.of_joints(7, 3)[1].tobytes() == (0.05 * samples[7, 1]).tobytes()
    assert noise.of_joints(2**40, 3) is not None
    assert not np.any(noise.of_joints(7, 3)[0])


def test_without_deviation_there_is_no_noise():
    noise = SensorNoise(NoiseParameters(joint_velocity=0.05), 0)
    assert noise.of_imu(3) is None
    assert SensorNoise(NoiseParameters(imu_accel=0.1), 0).of_joints(3, 12) is None


def test_messages_bear_the_noise_and_say_how_much():
    sim = Simulator(load_robot('go1'))
    report = stand(sim, 3)[-1]
    joints, imu = JointStateMessage(sim.robot), ImuMessage(sim.robot, 'imu_link', 'imu_link')
    exact = joints.fill(report)
    position, velocity = np.array(exact.position), np.array(exact.velocity)
    assert position.tobytes() == sim.robot.joint_positions(sim.q).tobytes()
    noise = np.random.default_rng(0).standard_normal((2, 12))
    noisy = joints.fill(report, noise)
    assert np.array(noisy.position).tobytes() == (position + noise[0]).tobytes()
    assert np.array(noisy.velocity).tobytes() == (velocity + noise[1]).tobytes()
    exact = imu.fill(report)
    spin, force = vector(exact.angular_velocity), vector(exact.linear_acceleration)
    imu.set_deviations(0.02, 0.3)
    noisy = imu.fill(report, noise[:, :3])
    assert vector(noisy.angular_velocity).tobytes() == (spin + noise[0, :3]).tobytes()
    assert vector(noisy.linear_acceleration).tobytes() == (force + noise[1, :3]).tobytes()
    assert noisy.angular_velocity_covariance == pytest.approx(4e-4 * np.eye(3).ravel())
    assert noisy.linear_acceleration_covariance == pytest.approx(0.09 * np.eye(3).ravel())
