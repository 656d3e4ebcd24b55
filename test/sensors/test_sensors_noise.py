"""Noise and bias: their statistics, and that seed and step number alone decide about them."""

import numpy as np
import pytest
from robots import ball, stand

from contact_sim import Simulator, load_robot
from contact_sim.sensors import (
    DelayedSensor,
    Encoders,
    EncoderSensing,
    FootForces,
    ForceSensing,
    Imu,
    ImuSensing,
    NoiseParameters,
)
from contact_sim.sensors._sensor import RandomWalk, Stream

STEPS = 2500
SIGMA = NoiseParameters(
    joint_position=1e-3, joint_velocity=0.05, imu_gyro=0.02, imu_accel=0.3, foot_force=2.0,
    foot_torque=0.1,
)  # fmt: skip


def sensors(robot, noise=SIGMA, seed=0):
    return (
        Encoders(robot, noise=noise, seed=seed),
        Imu(robot, 'imu_link', noise, seed=seed),
        FootForces(robot, noise=noise, seed=seed),
    )


@pytest.fixture(scope='module')
def reports():
    return stand(Simulator(load_robot('go1', body_contacts=False)), STEPS)


def errors(reports, noise=SIGMA, seed=0):
    """Return measured − true over the square root of the stated variance, (STEPS, 12) by name."""
    rows = {}
    robot = load_robot('go1')
    for sensor in sensors(robot, noise, seed):
        pairs = [(sensor.measure(report), sensor.truth(report)) for report in reports]
        for name, variance in sensor.variance.items():
            if name != 'orientation':
                difference = [getattr(said, name) - getattr(true, name) for said, true in pairs]
                scaled = np.array(difference) / np.sqrt(variance)
                rows[name] = scaled.reshape(len(reports), -1)
    return rows


@pytest.fixture(scope='module')
def samples(reports):
    return errors(reports)


def test_noise_is_normal_with_the_covariance_it_states(samples):
    """Bounds are four standard errors of as many independent normal numbers."""
    for name, values in samples.items():
        per_axis, all_axes = 4.0 / np.sqrt(len(values)), 4.0 / np.sqrt(values.size)
        assert np.abs(values.mean(axis=0)).max() < per_axis, name
        assert abs(values.std() - 1.0) < all_axes / np.sqrt(2.0), name
        assert abs((values**3).mean()) < all_axes * np.sqrt(15.0), name
        assert abs((values**4).mean() - 3.0) < all_axes * np.sqrt(96.0), name


def test_noise_is_white_and_independent_between_axes_sensors_and_seeds(reports, samples):
    now = np.hstack(list(samples.values()))
    other = np.hstack(list(errors(reports, seed=1).values()))
    n = now.shape[1]
    together = np.corrcoef(np.hstack([now[:-1], now[1:], other[:-1]]).T)[:n]
    bound = 5.0 / np.sqrt(STEPS)  # of n × 3 n correlations none is that large by chance
    assert n == 54
    assert np.abs(together - np.eye(n, 3 * n)).max() < bound


def test_noise_depends_on_seed_and_step_alone(reports):
    for one, other in zip(*(sensors(load_robot('go1')) for _ in range(2)), strict=True):
        forwards = [one.measure(report) for report in reports[:40]]
        backwards = [other.measure(report) for report in reports[39:2:-3]]
        for a, b in zip(forwards[39:2:-3], backwards, strict=True):
            for name in one.variance:
                assert getattr(a, name).tobytes() == getattr(b, name).tobytes()


def test_noise_of_a_joint_does_not_depend_on_which_others_are_measured(reports):
    robot = load_robot('go1')
    whole = Encoders(robot, noise=SIGMA).measure(reports[7])
    part = Encoders(robot, ('RR_calf_joint', 'FL_hip_joint'), SIGMA).measure(reports[7])
    assert robot.joint_names[11] == 'RR_calf_joint'
    assert part.position.tolist() == whole.position[[11, 0]].tolist()


def test_one_quantity_keeps_its_noise_when_another_is_exact(reports):
    both = Imu(load_robot('go1'), 'imu_link', SIGMA).measure(reports[3])
    one = Imu(load_robot('go1'), 'imu_link', NoiseParameters(imu_gyro=0.02)).measure(reports[3])
    assert one.angular_velocity.tolist() == both.angular_velocity.tolist()
    assert one.specific_force.tolist() != both.specific_force.tolist()


def test_without_errors_the_truth_is_told_to_the_bit(reports):
    for sensor in sensors(load_robot('go1'), NoiseParameters()):
        said, true = sensor.measure(reports[5]), sensor.truth(reports[5])
        for name, variance in sensor.variance.items():
            assert np.array_equal(getattr(said, name), getattr(true, name))
            assert (variance == 1e-9).all()  # what robot_localization makes of anything smaller


# -------------------------------------------------------------------- resolution


def test_rounding_is_to_multiples_and_its_variance_is_that_of_a_uniform_error():
    """A ball that falls and turns crosses thousands of steps of each resolution."""
    robot = load_robot('go1', body_contacts=False)
    sim = Simulator(robot)
    sim.reset(v=np.concatenate([np.zeros(6), np.linspace(-3.0, 3.0, 12)]))
    efforts = np.random.default_rng(0).uniform(-15.0, 15.0, (400, 12))
    reports = [sim.step(effort) for effort in efforts]
    fine = EncoderSensing(position_resolution=1e-4, velocity_resolution=3e-3)
    imu = ImuSensing(gyro_resolution=1e-3, accel_resolution=5e-3)
    force = ForceSensing(force_resolution=0.5, torque_resolution=2e-3)
    for sensor in (
        Encoders(robot, sensing=fine),
        Imu(robot, 'FL_calf', sensing=imu),
        FootForces(robot, sensing=force),
    ):
        for name, step in vars(sensor.sensing).items():
            if not name.endswith('_resolution'):
                continue
            field = {'gyro': 'angular_velocity', 'accel': 'specific_force'}.get(
                name.removesuffix('_resolution'), name.removesuffix('_resolution')
            )
            said = np.array([getattr(sensor.measure(r), field) for r in reports])
            true = np.array([getattr(sensor.truth(r), field) for r in reports])
            assert said / step == pytest.approx(np.round(said / step), abs=1e-6)
            error = (said - true)[np.abs(true) > 3.0 * step]
            assert len(error) > 500
            assert np.abs(error).max() <= 0.5 * step * (1 + 1e-9)
            stated = sensor.variance[field].flat[0]
            assert stated == pytest.approx(max(step**2 / 12.0, 1e-9))
            if stated > 1e-9:
                spread = 4.0 * np.sqrt(0.8 / len(error))  # four standard errors, kurtosis 1.8
                assert error.var() == pytest.approx(step**2 / 12.0, rel=3.0 * spread)


# -------------------------------------------------------------------- the random walk


def test_a_random_walk_has_the_covariance_of_one():
    """E[W(j) W(k)] = min(j, k), over 20 000 independent walks, at steps in any order."""
    n, steps = 20_000, [13, 1, 7, 8, 9, 2, 3, 1000, 16, 1001, 999]
    walk = RandomWalk(Stream(0, 'walk'), n)
    values = np.array([walk.at(k) for k in steps])
    expected = np.minimum.outer(steps, steps).astype(float)
    # variance of a product of two normal numbers over that of the mean of n
    deviation = np.sqrt((np.outer(steps, steps) + expected**2) / n)
    assert (np.abs(values @ values.T / n - expected) < 4.5 * deviation).all()


def test_the_steps_of_a_random_walk_are_white_and_normal():
    walk = RandomWalk(Stream(3, 'walk'), 4)
    path = np.array([walk.at(k) for k in range(4097)])
    steps = np.diff(path, axis=0)
    bound = 4.5 / np.sqrt(steps.size)
    assert not path[0].any()
    assert abs(steps.mean()) < bound
    assert abs(steps.std() - 1.0) < bound / np.sqrt(2.0)
    assert abs((steps**4).mean() - 3.0) < bound * np.sqrt(96.0)
    for lag in (1, 2, 3, 64):
        assert abs((steps[lag:] * steps[:-lag]).mean()) < bound


def test_a_random_walk_is_the_same_whichever_way_one_comes():
    path = RandomWalk(Stream(0, 'walk'), 3)
    forwards = {k: path.at(k).tobytes() for k in range(70)}
    for k in (69, 3, 64, 0, 33, 31, 32, 7):
        assert RandomWalk(Stream(0, 'walk'), 3).at(k).tobytes() == forwards[k]
        assert path.at(k).tobytes() == forwards[k]
    far = 2**40 + 12_345  # steps of a year and more
    one, two = (RandomWalk(Stream(0, 'walk'), 3) for _ in range(2))
    one.at(far - 1)
    assert one.at(far).tobytes() == two.at(far).tobytes()
    assert np.abs(one.at(far) - one.at(far - 1)).max() < 10.0
    assert np.abs(one.at(-5) - one.at(5)).min() > 0.0  # time may begin before 0
    assert len(one._path) < 200


def test_a_bias_walks_from_zero_as_far_as_its_parameter_says():
    """After t the standard deviation is σ √t; over 300 seeds, whatever the time step."""
    robot = ball()
    sensing = ImuSensing(gyro_bias_walk=0.01, accel_bias_walk=0.2)
    for h, t in ((1e-3, 4.0), (4e-3, 4.0)):
        sim = Simulator(robot, time_step=h)
        sim.reset(time=t)
        report = sim.last_report
        both = [Imu(robot, sensing=sensing, seed=s).bias(report) for s in range(300)]
        gyro, accel = np.array(both).transpose(1, 0, 2)
        bound = 4.0 / np.sqrt(2 * gyro.size)
        assert gyro.std() == pytest.approx(0.01 * 2.0, rel=bound)
        assert accel.std() == pytest.approx(0.2 * 2.0, rel=bound)
        assert abs(np.corrcoef(gyro.ravel(), accel.ravel())[0, 1]) < 4.0 / np.sqrt(gyro.size)
        sim.reset(time=0.0)
        assert not np.any(Imu(robot, sensing=sensing).bias(sim.last_report))


def test_the_bias_is_in_what_is_measured():
    robot = ball()
    sim = Simulator(robot)
    sim.reset(time=2.0)
    imu = Imu(robot, sensing=ImuSensing(gyro_bias_walk=0.01, accel_bias_walk=0.2))
    report = sim.step([])
    said, true, (gyro, accel) = imu.measure(report), imu.truth(report), imu.bias(report)
    assert said.angular_velocity - true.angular_velocity == pytest.approx(gyro, abs=1e-15)
    assert said.specific_force - true.specific_force == pytest.approx(accel, abs=1e-14)
    assert np.abs(accel).min() > 1e-4


def test_a_rewound_simulation_has_the_noise_that_it_had():
    robot = load_robot('go1')
    sim = Simulator(robot)
    walk = ImuSensing(gyro_bias_walk=0.01, accel_bias_walk=0.2, latency=3)
    line = DelayedSensor(Imu(robot, 'imu_link', SIGMA, walk, seed=5))
    for _ in range(20):
        line.read(sim.step(np.zeros(12)))
    kept, memory = sim.snapshot(), line.memory
    first = [line.read(sim.step(np.zeros(12))) for _ in range(10)]
    sim.restore(kept)
    line.memory = memory
    again = [line.read(sim.step(np.zeros(12))) for _ in range(10)]
    for a, b in zip(first, again, strict=True):
        assert (a.time, a.sampled) == (b.time, b.sampled)
        assert a.measured.specific_force.tobytes() == b.measured.specific_force.tobytes()
        assert a.measured.angular_velocity.tobytes() == b.measured.angular_velocity.tobytes()
