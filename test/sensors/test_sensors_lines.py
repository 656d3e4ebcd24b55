"""Latency, contact flags and foot forces, exact to the step; and what is refused."""

import numpy as np
import pytest
from robots import axle, ball, sled, stand

from contact_sim import InvalidInput, Planes, Simulator, UnknownName, Worlds, load_robot
from contact_sim.sensors import (
    ContactFlags,
    ContactSensing,
    DelayedSensor,
    Encoders,
    EncoderSensing,
    FootForces,
    ForceSensing,
    Imu,
    ImuSensing,
    NoiseParameters,
)

H = 1e-3


@pytest.fixture(scope='module')
def pressed():
    """Return a ball of weight 9.81 N, and reports of 40 steps in which a force presses it.

    The normal force of step k is LOAD[k], that of the weight and of the push; friction acts, too.
    """
    robot = ball(mass=1.0)
    sim = Simulator(robot)
    return robot, [sim.step([], {'body': [3.0, 0, 9.81 - load, 0, 0, 0]}) for load in LOAD]


LOAD = np.concatenate([np.linspace(1.0, 20.0, 20), np.linspace(19.5, 0.5, 20)])


def flags(robot, reports, **sensing):
    line = DelayedSensor(ContactFlags(robot, ContactSensing(**sensing)))
    return [bool(line.read(report).measured.flag[0]) for report in reports]


def test_the_load_is_the_force_that_presses(pressed):
    robot, reports = pressed
    assert max(abs(report.contacts.force[0, 0]) for report in reports) > 0.5
    load = [ContactFlags(robot).load(report)[0] for report in reports]
    assert load == pytest.approx(LOAD, abs=1e-6)


def test_without_thresholds_a_flag_is_on_where_the_ground_presses():
    sim = Simulator(load_robot('go1'))
    sensor = ContactFlags(sim.robot)
    q = sim.standing_configuration().copy()
    q[2] += 0.01
    sim.reset(q)
    line, seen = DelayedSensor(sensor), set()
    for _ in range(300):
        report = sim.step(np.zeros(12))
        reading = line.read(report)
        assert reading.measured.flag.tolist() == report.feet.loaded.tolist()
        assert reading.truth.flag.tolist() == report.feet.loaded.tolist()
        seen |= set(report.feet.loaded.tolist())
    assert seen == {False, True}


def test_a_flag_switches_in_the_step_in_which_the_force_passes_its_thresholds(pressed):
    expected, on = [], False
    for load in LOAD:
        on = load > 12.3 or (on and load > 6.2)
        expected.append(on)
    assert expected.index(True) == 12  # 13 N, and 12 N is not enough
    assert expected.index(False, 12) == 34  # 5.5 N, and 6.5 N still is
    assert flags(*pressed, on_threshold=12.3, off_threshold=6.2) == expected
    assert flags(*pressed, on_threshold=12.3, off_threshold=12.3) == (LOAD > 12.3).tolist()


@pytest.mark.parametrize('latency', [1, 5, 17])
def test_a_flag_arrives_exactly_its_latency_later(pressed, latency):
    prompt = flags(*pressed, on_threshold=12.3, off_threshold=6.2)
    late = flags(*pressed, on_threshold=12.3, off_threshold=6.2, latency=latency)
    assert late == [prompt[0]] * latency + prompt[:-latency]


def test_truth_and_time_of_a_late_sample_are_told(pressed):
    robot, reports = pressed
    line = DelayedSensor(ContactFlags(robot, ContactSensing(on_threshold=12.3, latency=5)))
    readings = [line.read(report) for report in reports]
    assert [reading.time for reading in readings] == [report.time for report in reports]
    sampled = [round(reading.sampled / H) for reading in readings]
    assert sampled == [1] * 5 + list(range(1, 36))
    assert all(reading.truth.flag[0] for reading in readings)  # it is pressed all the time


def test_hysteresis_and_latency_are_the_same_when_readings_are_rare(pressed):
    """Every step is observed, every fourth one read, twice."""
    robot, reports = pressed
    sensing = ContactSensing(on_threshold=12.3, off_threshold=6.2, latency=3)
    often, rarely = (DelayedSensor(ContactFlags(robot, sensing)) for _ in range(2))
    for k, report in enumerate(reports):
        expected = often.read(report).measured.flag
        rarely.observe(report)
        if k % 4 == 0:
            assert rarely.measured().flag.tolist() == expected.tolist()
            assert rarely.read(report).measured.flag.tolist() == expected.tolist()


def test_a_repeated_step_replaces_what_was_known_of_it(pressed):
    """The hysteresis goes on from the step before, not from the one that is repeated."""
    robot, reports = pressed
    line = DelayedSensor(ContactFlags(robot, ContactSensing(on_threshold=12.3, off_threshold=6.2)))
    for report in reports[:12]:
        line.observe(report)
    for _ in range(3):
        assert line.read(reports[12]).measured.flag[0]
        assert not line.read(reports[11]).measured.flag[0]
    for report in reports[12:31]:
        line.observe(report)
    for _ in range(3):
        assert line.read(reports[30]).measured.flag[0]  # 9.5 N, between the thresholds


def test_a_step_that_is_repeated_otherwise_has_another_flag():
    sim = Simulator(ball(mass=1.0))
    line = DelayedSensor(
        ContactFlags(sim.robot, ContactSensing(on_threshold=12.3, off_threshold=6.2))
    )
    assert not line.read(sim.step([])).measured.flag[0]
    kept = sim.snapshot()
    assert line.read(sim.step([], {'body': [0, 0, -5.0, 0, 0, 0]})).measured.flag[0]
    sim.restore(kept)
    assert not line.read(sim.step([])).measured.flag[0]  # 9.81 N after 9.81 N


def test_a_line_goes_on_from_its_memory(pressed):
    robot, reports = pressed
    sensing = ContactSensing(on_threshold=12.3, off_threshold=6.2, latency=4)
    line = DelayedSensor(ContactFlags(robot, sensing))
    for report in reports[:25]:
        line.observe(report)
    memory = line.memory
    first = [line.read(report).measured.flag[0] for report in reports[25:]]
    line.memory = memory
    assert [line.read(report).measured.flag[0] for report in reports[25:]] == first
    assert True in first
    assert False in first


def test_after_a_reset_the_first_sample_is_the_oldest():
    sim = Simulator(ball())
    line = DelayedSensor(Encoders(sim.robot, sensing=EncoderSensing(latency=10)))
    imu = DelayedSensor(Imu(sim.robot, sensing=ImuSensing(latency=10)))
    for _ in range(20):
        line.read(sim.step([]))
    sim.reset(time=sim.time)
    assert line.read(sim.step([])).sampled == sim.time
    assert imu.read(sim.last_report).sampled == sim.time
    sim.reset()
    assert line.read(sim.last_report).sampled == 0.0


def test_steps_that_were_not_shown_leave_the_newest_that_is_old_enough():
    sim = Simulator(ball())
    line = DelayedSensor(Imu(sim.robot, sensing=ImuSensing(latency=5)))
    arrived = []
    for k in range(1, 31):
        report = sim.step([])
        if k % 3 == 0:
            arrived.append(round(line.read(report).sampled / H))
    assert arrived == [3, 3, 3, 6, 9, 12, 15, 18, 21, 24]


def test_only_so_many_samples_are_kept():
    sim = Simulator(ball())
    line = DelayedSensor(Imu(sim.robot, sensing=ImuSensing(latency=7)))
    for _ in range(100):
        line.observe(sim.step([]))
    assert len(line.memory.samples) <= 9


def test_a_world_among_many_is_read_by_its_reports():
    """Worlds fall from other heights; each has the readings that it would have alone."""
    robot, heights = load_robot('go1'), (0.0, 0.004)
    worlds = Worlds(robot, 2)
    noise, sensing = NoiseParameters(imu_accel=0.1), ImuSensing(accel_bias_walk=0.1, latency=2)
    starts = []
    for height in heights:
        starts.append(robot.reference_configuration('standing').copy())
        starts[-1][2] += height
    worlds.reset(np.array(starts))
    lines = [DelayedSensor(Imu(robot, 'FL_calf', noise, sensing, seed)) for seed in range(2)]
    told = []
    for _ in range(12):
        worlds.step(np.zeros(12))
        told.append([line.read(worlds.report(k)).measured for k, line in enumerate(lines)])
    for k, start in enumerate(starts):
        sim, line = Simulator(robot), DelayedSensor(Imu(robot, 'FL_calf', noise, sensing, k))
        sim.reset(start)
        for readings in told:
            alone = line.read(sim.step(np.zeros(12))).measured
            assert alone.specific_force.tobytes() == readings[k].specific_force.tobytes()
            assert alone.angular_velocity.tobytes() == readings[k].angular_velocity.tobytes()


# -------------------------------------------------------------------- faults


def test_stuck_flags_and_flags_that_drop_out():
    sim = Simulator(load_robot('go1'))
    faults = ContactSensing(
        stuck_off=('FL_foot',), dropout=0.2, dropout_feet=('FR_foot', 'RR_foot')
    )
    sensor, reports = ContactFlags(sim.robot, faults, seed=1), stand(sim, 2000)
    assert all(report.feet.loaded.all() for report in reports[500:])
    said = np.array([sensor.measure(sensor.sample(report, None)).flag for report in reports[500:]])
    off = 1.0 - said.mean(axis=0)
    bound = 4.0 * np.sqrt(0.2 * 0.8 / len(said))
    assert [off[0], off[2]] == [1.0, 0.0]
    assert off[[1, 3]] == pytest.approx([0.2, 0.2], abs=bound)
    drops = ~said[:, [1, 3]] - off[[1, 3]]
    assert abs((drops[:, 0] * drops[:, 1]).mean()) < 4.0 * 0.16 / np.sqrt(len(said))
    assert abs((drops[1:] * drops[:-1]).mean()) < 4.0 * 0.16 / np.sqrt(2 * len(said))
    again = [sensor.measure(sensor.sample(report, None)).flag for report in reports[500:540]]
    assert np.array_equal(again, said[:40])


def test_a_flag_that_is_stuck_on_is_on_in_the_air():
    sim = Simulator(sled())
    sim.reset([0.0, 0.0, 1.0, 0, 0, 0, 1.0])
    line = DelayedSensor(ContactFlags(sim.robot, ContactSensing(stuck_on=('right',), dropout=1.0)))
    reading = line.read(sim.step([]))
    assert reading.measured.flag.tolist() == [False, True]
    assert reading.truth.flag.tolist() == [False, False]


# -------------------------------------------------------------------- forces


def test_forces_are_those_of_the_feet_in_either_axes():
    """The forces of a foot sum to the weight; torques agree with those of the report."""
    sim = Simulator(sled(2.0, (0.02, 0.13)))
    sim.reset([1.0, 0.0, 0.12, 0.0, 0.0, np.sin(0.35), np.cos(0.35)])
    for _ in range(300):
        report = sim.step([])
    local = FootForces(sim.robot).truth(report)
    world = FootForces(sim.robot, 'world').truth(report)
    for k, name in enumerate(('left', 'right')):
        axes = sim.frame_placement(name).rotation
        assert axes @ local.force[k] == pytest.approx(report.feet.force[k], abs=1e-9)
        assert axes @ local.torque[k] == pytest.approx(report.feet.torque[k], abs=1e-9)
        assert world.force[k] == pytest.approx(report.feet.force[k], abs=1e-12)
    assert world.force.sum(axis=0) == pytest.approx([0.0, 0.0, 2.0 * 9.81], abs=1e-7)


def test_all_contacts_of_a_foot_count():
    s, c = np.sin(0.6), np.cos(0.6)
    groove = Planes((((s, 0, c), 0.0), ((-s, 0, c), 0.0)))
    sim = Simulator(ball(1.5), terrain=groove, friction=0.0)
    for _ in range(200):
        report = sim.step([])
    assert FootForces(sim.robot, 'world').truth(report).force[0] == pytest.approx(
        [0.0, 0.0, 1.5 * 9.81], abs=1e-7
    )
    assert ContactFlags(sim.robot).load(report)[0] == pytest.approx(1.5 * 9.81 / c, abs=1e-7)


def test_forces_of_the_body_are_not_those_of_the_feet():
    robot = load_robot('go1').with_body_contacts(('trunk',))
    sim = Simulator(robot)
    q = sim.standing_configuration().copy()
    q[2] = 0.05
    sim.reset(q)
    for _ in range(5):
        report = sim.step(np.zeros(12))
    assert FootForces(robot, 'world').truth(report).force == pytest.approx(report.feet.force)
    assert (ContactFlags(robot).load(report) > 0.0).tolist() == report.feet.loaded.tolist()


def test_robots_without_feet_or_joints_have_empty_readings():
    sim = Simulator(axle())
    report = sim.step(np.zeros(sim.robot.n_joints))
    assert ContactFlags(sim.robot).truth(report).flag.shape == (0,)
    assert FootForces(sim.robot).truth(report).force.shape == (0, 3)


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ('make', 'values', 'message'),
    [
        (NoiseParameters, {'imu_gyro': -0.1}, r'imu_gyro = -0.1 rad/s: expected .*\[0, 1000\]'),
        (NoiseParameters, {'foot_force': np.nan}, 'foot_force = nan N'),
        (ImuSensing, {'accel_bias_walk': -1.0}, 'accel_bias_walk = -1.0'),
        (ImuSensing, {'latency': -1}, r'latency = -1: expected .*\[0, 1000\]'),
        (ImuSensing, {'latency': 1.5}, 'latency = 1.5: expected int'),
        (EncoderSensing, {'position_resolution': np.inf}, 'position_resolution = inf rad'),
        (ForceSensing, {'force_resolution': -2.0}, 'force_resolution = -2.0 N'),
        (ContactSensing, {'dropout': 1.1}, r'dropout = 1.1: expected .*\[0, 1\]'),
        (ContactSensing, {'off_threshold': 5.0}, 'off_threshold = 5 N is above on_threshold = 0'),
        (ContactSensing, {'stuck_on': ('a',), 'stuck_off': ('a',)}, "foot 'a' is in stuck_on and"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(make, values, message):
    with pytest.raises(InvalidInput, match=message):
        make(**values)


@pytest.mark.parametrize(
    ('make', 'error', 'message'),
    [
        (lambda robot: Encoders(robot, ('nee',)), UnknownName, "joint 'nee'"),
        (lambda robot: Encoders(robot, 'FL_hip_joint'), InvalidInput, 'joints = .*a list'),
        (lambda robot: Encoders(robot, ['FL_hip_joint'] * 2), InvalidInput, 'more than once'),
        (lambda robot: Imu(robot, noise=0.1), InvalidInput, r'Imu.noise = 0.1: expected Noise'),
        (lambda robot: Imu(robot, seed=-1), InvalidInput, 'Imu.seed = -1: expected a whole'),
        (lambda robot: Imu(robot, seed=0.5), InvalidInput, 'Imu.seed = 0.5'),
        (lambda robot: Imu('go1'), InvalidInput, "Imu.robot = 'go1': expected a RobotModel"),
        (lambda robot: FootForces(robot, 'odom'), InvalidInput, "axes = 'odom'"),
        (lambda robot: ContactFlags(robot, ContactSensing(stuck_on=('nose',))), UnknownName,
         "unknown foot 'nose'; known: FL_foot"),
        (lambda robot: ContactFlags(robot, ContactSensing(dropout_feet=('FL',))), UnknownName,
         "unknown foot 'FL'"),
    ],
)  # fmt: skip
def test_sensors_that_a_robot_cannot_have_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(load_robot('go1'))
