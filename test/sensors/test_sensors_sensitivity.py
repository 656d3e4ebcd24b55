"""Scale errors and misalignment against closed forms, and which of them are drawn."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from robots import ball, sled, stand

from contact_sim import InvalidInput, Simulator, load_robot
from contact_sim.sensors import (
    DelayedSensor,
    FootForces,
    ForceSensing,
    Imu,
    ImuSensing,
    NoiseParameters,
)

G = 9.81
SCALE, TURN = (0.02, -0.05, 0.01), (0.03, -0.4, 0.2)
NOISE = NoiseParameters(imu_gyro=0.02, imu_accel=0.3, foot_force=2.0, foot_torque=0.1)


def by_rodrigues(turn):
    """Return exp [θ]× by Rodrigues' formula (3, 3), independent of Pinocchio."""
    angle = np.linalg.norm(turn)
    x, y, z = np.array(turn) / angle
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


EXPECTED = np.diag(1.0 + np.array(SCALE)) @ by_rodrigues(TURN)


def spinning_ball(spin):
    sim = Simulator(ball())
    sim.reset([0.0, 0.0, 5.0, 0, 0, 0, 1.0], [0.0, 0.0, 0.0, *spin])
    return sim


def test_an_accelerometer_at_rest_feels_gravity_turned_and_scaled():
    """True is g along z; turned by a about x that is g (0, −sin a, cos a)."""
    sim = Simulator(ball())
    sensing = ImuSensing(accel_scale=(0.3, 0.02, -0.05), accel_misalignment=(0.1, 0.0, 0.0))
    reading = DelayedSensor(Imu(sim.robot, sensing=sensing)).read(sim.step([]))
    turned = G * np.array([0.0, -1.02 * np.sin(0.1), 0.95 * np.cos(0.1)])
    assert reading.measured.specific_force == pytest.approx(turned, abs=1e-12)
    assert reading.truth.specific_force == pytest.approx([0.0, 0.0, G], abs=1e-12)
    assert not reading.measured.angular_velocity.any()


def test_a_gyroscope_reads_its_spin_turned_and_scaled():
    """True is w along z; turned by b about y that is w (sin b, 0, cos b)."""
    sim = spinning_ball([0.0, 0.0, 4.0])
    sensing = ImuSensing(gyro_scale=(0.02, 0.3, -1.0), gyro_misalignment=(0.0, 0.2, 0.0))
    reading = DelayedSensor(Imu(sim.robot, sensing=sensing)).read(sim.step([]))
    expected = [4.0 * 1.02 * np.sin(0.2), 0.0, 0.0]  # z is dead
    assert reading.measured.angular_velocity == pytest.approx(expected, abs=1e-12)
    assert reading.truth.angular_velocity == pytest.approx([0.0, 0.0, 4.0], abs=1e-12)


def test_a_fit_to_readings_finds_scale_misalignment_and_bias():
    """measured = A true + b by least squares over a thrown body, as in a calibration."""
    robot = load_robot('go1')
    sim = Simulator(robot)
    sim.reset(v=np.concatenate([np.zeros(6), np.linspace(-3.0, 3.0, 12)]))
    sensing = ImuSensing(
        gyro_scale=SCALE, gyro_misalignment=TURN, accel_scale=SCALE, accel_misalignment=TURN
    )
    imu = Imu(robot, 'FL_calf', sensing=sensing)
    reports = [sim.step(np.zeros(12)) for _ in range(60)]
    for name, sensitivity in zip(
        ('angular_velocity', 'specific_force'), imu.sensitivity, strict=True
    ):
        said = np.array([getattr(imu.measure(report), name) for report in reports])
        true = np.array([getattr(imu.truth(report), name) for report in reports])
        fitted = np.linalg.lstsq(np.hstack([true, np.ones((60, 1))]), said, rcond=None)[0]
        assert np.abs(fitted[:3].T - EXPECTED).max() < 1e-10
        assert fitted[3] == pytest.approx(np.zeros(3), abs=1e-10)
        assert sensitivity == pytest.approx(EXPECTED, abs=1e-14)


def test_bias_and_noise_are_added_behind_it():
    """They are what they are without it, so a scale error does not touch the covariance."""
    sim = spinning_ball([1.0, -2.0, 4.0])
    report = sim.step([])
    walk = ImuSensing(gyro_bias_walk=0.01, accel_bias_walk=0.2)
    one = Imu(sim.robot, '', NOISE, walk)
    other = Imu(sim.robot, '', NOISE, replace(walk, gyro_scale=SCALE, gyro_misalignment=TURN))
    true, said, ideal = one.truth(report), other.measure(report), one.measure(report)
    added = said.angular_velocity - ideal.angular_velocity
    assert added == pytest.approx((EXPECTED - np.eye(3)) @ true.angular_velocity, abs=1e-14)
    assert said.specific_force.tobytes() == ideal.specific_force.tobytes()
    assert np.array_equal(one.variance['angular_velocity'], other.variance['angular_velocity'])


# -------------------------------------------------------------------- what is drawn


def drawn_by_imus(seeds):
    """Return scale errors and rotation vectors of gyroscope and accelerometer, (seeds, 12)."""
    sensing = ImuSensing(
        gyro_scale_deviation=0.01, gyro_misalignment_deviation=0.02, accel_scale_deviation=0.03,
        accel_misalignment_deviation=0.04,
    )  # fmt: skip
    robot, rows = ball(), []
    for seed in seeds:
        row = []
        for matrix in Imu(robot, sensing=sensing, seed=seed).sensitivity:
            scales = np.linalg.norm(matrix, axis=1)  # rows of a rotation have length 1
            row += [*(scales - 1.0), *pin.log3(matrix / scales[:, np.newaxis])]
        rows.append(row)
    return np.array(rows)


def test_drawn_constants_spread_as_stated_and_are_independent():
    rows = drawn_by_imus(range(1000)) / np.repeat([0.01, 0.02, 0.03, 0.04], 3)
    one = 1.0 / np.sqrt(rows.size)
    assert abs(rows.mean()) < 4.0 * one
    assert abs(rows.std() - 1.0) < 4.0 * one / np.sqrt(2.0)
    together = np.corrcoef(rows.T) - np.eye(12)
    assert np.abs(together).max() < 4.5 / np.sqrt(len(rows))


def test_drawn_constants_are_added_to_given_ones_and_stay():
    given = ImuSensing(accel_scale=SCALE, accel_misalignment=TURN)
    drawn = ImuSensing(accel_scale_deviation=0.03)
    both = replace(given, accel_scale_deviation=0.03)
    robot = ball()
    (_, of_given), (_, of_drawn), (_, of_both) = (
        Imu(robot, sensing=sensing, seed=3).sensitivity for sensing in (given, drawn, both)
    )
    scales = np.diag(of_drawn) + SCALE
    assert of_both == pytest.approx(np.diag(scales) @ by_rodrigues(TURN), abs=1e-14)
    assert of_given == pytest.approx(EXPECTED, abs=1e-14)
    again = Imu(ball(), sensing=both, seed=3).sensitivity[1]
    assert again.tobytes() == of_both.tobytes()
    elsewhere = Imu(load_robot('go1'), 'FL_calf', sensing=both, seed=3).sensitivity[1]
    assert np.abs(elsewhere - of_both).max() > 1e-3


# -------------------------------------------------------------------- forces


@pytest.fixture(scope='module')
def standing():
    """Return a report of a sled that stands turned about the vertical on two feet."""
    sim = Simulator(sled(2.0, (0.02, 0.13)))
    sim.reset([1.0, 0.0, 0.12, 0.0, 0.0, np.sin(0.35), np.cos(0.35)])
    for _ in range(300):
        report = sim.step([])
    return sim, report


def test_the_sensor_of_a_foot_reads_its_wrench_turned_and_scaled(standing):
    sim, report = standing
    sensing = ForceSensing(force_scale=SCALE, torque_scale=(0.1, 0.0, -0.2), misalignment=TURN)
    reading = DelayedSensor(FootForces(sim.robot, sensing=sensing)).read(report)
    of_torque = np.diag([1.1, 1.0, 0.8]) @ by_rodrigues(TURN)
    assert np.abs(reading.truth.force).max() > 9.0
    assert np.abs(reading.truth.torque).max() > 1e-3
    for k in range(2):
        true, said = reading.truth, reading.measured
        assert said.force[k] == pytest.approx(EXPECTED @ true.force[k], abs=1e-12)
        assert said.torque[k] == pytest.approx(of_torque @ true.torque[k], abs=1e-12)


def test_told_in_world_axes_the_sensor_is_still_fixed_to_the_foot(standing):
    sim, report = standing
    sensing = ForceSensing(force_scale=SCALE, torque_scale=(0.1, 0.0, -0.2), misalignment=TURN)
    local = FootForces(sim.robot, 'foot', sensing=sensing).measure(report)
    world = FootForces(sim.robot, 'world', sensing=sensing).measure(report)
    for k, name in enumerate(('left', 'right')):
        foot = sim.frame_placement(name)
        force = foot.rotation @ local.force[k]
        torque = foot.rotation @ local.torque[k] + np.cross(foot.translation, force)
        assert world.force[k] == pytest.approx(force, abs=1e-12)
        assert world.torque[k] == pytest.approx(torque, abs=1e-12)


@pytest.mark.parametrize('axes', ['foot', 'world'])
def test_without_errors_forces_are_told_to_the_bit(standing, axes):
    sim, report = standing
    sensor = FootForces(sim.robot, axes)
    said, true = sensor.measure(report), sensor.truth(report)
    assert said.force.tobytes() == true.force.tobytes()
    assert said.torque.tobytes() == true.torque.tobytes()


def test_every_foot_has_a_draw_of_its_own_whichever_are_measured():
    robot = load_robot('go1')
    reports = stand(Simulator(robot), 3)
    sensing = ForceSensing(force_scale_deviation=0.02, misalignment_deviation=0.05)
    whole = FootForces(robot, sensing=sensing, seed=2)
    part = FootForces(robot, sensing=sensing, seed=2, parts=robot.feet[2:])
    assert part.measure(reports[-1]).force == pytest.approx(whole.measure(reports[-1]).force[2:])
    matrices = np.array([pair for pair in whole.sensitivity])
    assert matrices.shape == (4, 2, 3, 3)
    for k in range(4):
        force, torque = matrices[k]
        assert torque @ torque.T == pytest.approx(np.eye(3), abs=1e-14)  # turned alone
        assert np.linalg.norm(force, axis=1)[:, np.newaxis] * torque == pytest.approx(force)
        assert all(np.abs(matrices[k] - matrices[j]).max() > 1e-3 for j in range(k))


@pytest.mark.parametrize(
    ('make', 'values', 'message'),
    [
        (ImuSensing, {'gyro_scale': (0.1, 0.1)}, r'gyro_scale = \(0.1, 0.1\): expected 3 values'),
        (ImuSensing, {'accel_scale': (-1.1, 0, 0)}, r'accel_scale = .* in \[-1, 1\]'),
        (ImuSensing, {'gyro_misalignment': (0, 0, np.nan)}, 'gyro_misalignment = .* rad'),
        (ForceSensing, {'misalignment': (4, 0, 0)}, 'misalignment = .* rad'),
        (ForceSensing, {'force_scale_deviation': -0.1}, 'force_scale_deviation = -0.1'),
    ],
)
def test_errors_that_mean_nothing_are_refused(make, values, message):
    with pytest.raises(InvalidInput, match=message):
        make(**values)
