"""Sensors on their topics and the truth beside them, from parameters to messages; no network."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import vector
from sent import SentMessages

from contact_sim import InvalidInput, Simulator, UnknownName, joined, load_robot, loose_ball
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._parameters import PARAMETER_GROUPS
from contact_sim.sensors import ContactFlags, DelayedSensor, Encoders, FootForces, Imu
from contact_sim.sensors._robot_view import RobotView
from contact_sim.simulation import with_robots
from contact_sim.topics._messages import Step
from contact_sim.topics._robot_topics import RobotTopics, SensorSet, check_sensors
from contact_sim.topics._table import NODE
from contact_sim.topics._world_topics import SimulationTopics

TRUTH = '~/ground_truth/'


def settings_of(**values):
    """Return the settings of the node with some values changed, by prefix and name."""
    settings = {}
    for prefix, group in PARAMETER_GROUPS.items():
        own = {name: value for name, value in values.items() if name.rpartition('.')[0] == prefix}
        settings[prefix] = group(**{name.rpartition('.')[2]: own[name] for name in own})
    return settings


class Sensors:
    """The sensors of a robot with their topics; `sent` has the messages of each topic."""

    def __init__(self, sim, settings, heard=True):
        (part,) = parts_of(sim.robot)
        self.sent = SentMessages()
        self.sent.heard = heard
        self.topics = RobotTopics(part, sim.last_report, settings, self.sent, NODE)

    def publish(self, report, *due):
        """Publish sensors after the step that was observed last, by their rates."""
        for output in self.topics.sensors:
            output.publish(Step(report, due))


def run(sim, settings, steps, heard=True):
    sensors = Sensors(sim, settings, heard)
    for _ in range(steps):
        report = sim.step(np.zeros(sim.robot.n_joints))
        sensors.topics.observe(report)
        sensors.publish(report, 'joint_states', 'imu', 'wrenches')
    return sensors.sent, sensors


@pytest.fixture
def sim():
    sim = Simulator(load_robot('go1'))
    q = sim.standing_configuration().copy()
    q[2] += 0.005
    sim.reset(q)
    return sim


def forces(topics, topic):
    return np.array([vector(message.linear_acceleration) for message in topics[topic]])


def wrench_forces(topics, topic):
    return np.array([vector(message.wrench.force) for message in topics[topic]])


def test_scale_and_misalignment_of_the_settings_are_in_the_messages(sim):
    settings = settings_of(**{
        'sensors.imu.accel_scale': [0.1, 0.0, -0.05],
        'sensors.forces.misalignment_deviation': 0.1,
    })  # fmt: skip
    topics, sensors = run(sim, settings, 40)
    said, true = (forces(topics, topic) for topic in ('imu/data', TRUTH + 'imu'))
    assert np.abs(true).max() > 1.0
    assert said == pytest.approx([1.1, 1.0, 0.95] * true, abs=1e-12)
    wrench = 'contacts/FL_foot/wrench'
    said, true = (wrench_forces(topics, prefix + wrench) for prefix in ('', TRUTH))
    assert np.abs(true).max() > 1.0
    assert np.linalg.norm(said, axis=1) == pytest.approx(np.linalg.norm(true, axis=1))
    assert np.abs(said - true).max() > 0.01 * np.abs(true).max()
    # other errors, another sensor
    sensors.topics.configure(settings_of(**{'sensors.imu.accel_scale': (0.0, 0.0, 0.0)}))
    sensors.publish(sim.last_report, 'imu')
    said, true = (forces(topics, topic)[-1] for topic in ('imu/data', TRUTH + 'imu'))
    assert said.tobytes() == true.tobytes()


def test_truth_is_told_beside_what_is_late_noisy_and_broken(sim):
    settings = settings_of(**{
        'noise.imu_accel': 0.3, 'sensors.imu.accel_bias_walk': 0.1, 'noise.foot_force': 2.0,
        'sensors.joints.position_resolution': 1e-3, 'sensors.joints.latency': 4,
        'sensors.contacts.latency': 3, 'sensors.contacts.stuck_on': ('RR_foot',), 'seed': 5,
        'sensors.contacts.on_threshold': 5.0,
    })  # fmt: skip
    topics, _ = run(sim, settings, 60)
    told, true = topics['joint_states'], topics[f'{TRUTH}joint_states']
    for k in range(10, 60):
        rounded = 1e-3 * np.round(np.array(true[k - 4].position) / 1e-3)
        assert told[k].position == pytest.approx(rounded, abs=1e-12)
    errors = forces(topics, 'imu/data') - forces(topics, f'{TRUTH}imu')
    assert np.std(errors) == pytest.approx(0.3, rel=4.0 / np.sqrt(2 * 180))
    assert topics['imu/data'][0].linear_acceleration_covariance == pytest.approx(
        0.09 * np.eye(3).ravel()
    )
    exact = topics[f'{TRUTH}imu'][0].linear_acceleration_covariance
    assert exact.tolist() == (1e-9 * np.eye(3).ravel()).tolist()
    name = 'contacts/FL_foot/wrench'
    errors = wrench_forces(topics, name) - wrench_forces(topics, TRUTH + name)
    assert np.std(errors) == pytest.approx(2.0, rel=4.0 / np.sqrt(2 * 180))
    flags = np.array([message.data for message in topics['foot_contacts']])
    loaded = np.array([message.data for message in topics[f'{TRUTH}foot_contacts']])
    force = wrench_forces(topics, TRUTH + name)
    assert flags[:, 3].all()
    assert not loaded[0].any()
    landed = int(np.argmax(loaded[:, 0]))
    assert np.linalg.norm(force[landed]) > 6.0
    assert int(np.argmax(flags[:, 0])) == landed + 3


def test_flags_with_hysteresis_see_the_steps_that_are_not_published(sim):
    """The impact of the landing alone is above the threshold, and one step long."""
    values = {'sensors.contacts.on_threshold': 33.0, 'sensors.contacts.off_threshold': 0.5}
    sensors, loads = Sensors(sim, settings_of(**values)), []
    for _ in range(60):
        report = sim.step(np.zeros(12))
        loads.append(report.contacts.normal_force.max())
        sensors.topics.observe(report)
    sensors.publish(report, 'wrenches')
    assert (np.array(loads) > 33.0).sum() == 1
    assert list(sensors.sent['foot_contacts'][0].data) == [1, 1, 1, 1]


def test_what_nobody_listens_to_is_not_sent(sim):
    topics, _ = run(sim, settings_of(), 3, heard=False)
    assert len(topics) > 15
    assert not any(topics.values())


def test_what_nobody_listens_to_is_not_computed(sim, monkeypatch):
    for kind in (Encoders, Imu, FootForces, ContactFlags):
        monkeypatch.setattr(kind, 'truth', None)
        monkeypatch.setattr(kind, 'measure', None)
    run(sim, settings_of(), 3, heard=False)


def test_other_settings_leave_samples_under_way_alone(sim):
    values = {'sensors.joints.latency': 5}
    topics, sensors = run(sim, settings_of(**values), 10)
    sensors.topics.configure(settings_of(**values, **{'friction.mu': 0.3}))
    report = sim.step(np.zeros(12))
    sensors.topics.observe(report)
    sensors.publish(report, 'joint_states')
    true = topics[f'{TRUTH}joint_states']
    assert topics['joint_states'][-1].position == true[-6].position


@pytest.mark.parametrize(
    ('frame', 'stands_for'),
    [('', 'imu_link'), ('FL_calf', 'FL_calf'), ('trunk', 'trunk')],
)
def test_the_imu_may_be_on_any_link(sim, frame, stands_for):
    topics, _ = run(sim, settings_of(**{'imu.frame_id': frame, 'frame_prefix': 'a/'}), 2)
    (*_, message) = topics['imu/data']
    assert message.header.frame_id == f'a/{stands_for}'
    truth = Imu(sim.robot, stands_for).truth(sim.last_report)
    assert vector(message.linear_acceleration).tolist() == truth.specific_force.tolist()
    assert topics['contacts/FL_foot/wrench'][-1].header.frame_id == 'a/FL_foot'


def test_an_orientation_may_be_left_to_an_estimator(sim):
    """As sensor_msgs/Imu has it: -1 in the first element of the covariance."""
    q = sim.q.copy()
    q[3:7] = 0.0, np.sin(0.1), 0.0, np.cos(0.1)
    sim.reset(q)
    topics, _ = run(sim, settings_of(**{'sensors.imu.orientation': False}), 2)
    (*_, said), (*_, true) = topics['imu/data'], topics[f'{TRUTH}imu']
    assert said.orientation_covariance.tolist() == [-1.0] + 8 * [0.0]
    assert (said.orientation.y, said.orientation.w) == (0.0, 1.0)
    assert true.orientation_covariance[0] == 1e-9
    assert true.orientation.y == pytest.approx(np.sin(0.1), abs=1e-3)
    assert said.linear_acceleration == true.linear_acceleration


def test_wrenches_are_in_the_frame_that_was_asked_for(sim):
    topics, _ = run(sim, settings_of(contact_wrench_frame='odom', odom_frame='map'), 60)
    for prefix in ('', TRUTH):
        last = [topics[f'{prefix}contacts/{foot.name}/wrench'][-1] for foot in sim.robot.feet]
        assert {message.header.frame_id for message in last} == {'map'}
        forces = np.array([vector(message.wrench.force) for message in last])
        assert forces == pytest.approx(sim.last_report.feet.force)
    assert forces[:, 2].min() > 3.0


@pytest.mark.parametrize(
    ('values', 'error', 'message'),
    [
        ({'imu.frame_id': 'nose'}, UnknownName, "frame 'nose'.*imu_link"),
        ({'sensors.contacts.stuck_off': ('FL',)}, UnknownName, "foot 'FL'.*FL_foot"),
        ({'sensors.contacts.off_threshold': 3.0}, InvalidInput, 'above on_threshold'),
        ({'sensors.imu.latency': -1}, InvalidInput, 'latency = -1'),
        ({'sensors.contacts.dropout': float('nan')}, InvalidInput, 'dropout = nan'),
    ],
)
def test_settings_of_sensors_that_cannot_be_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        check_sensors(load_robot('go1'), settings_of(**values))


@pytest.mark.parametrize('errors', [{}, {'noise.imu_gyro': 0.1}, {'sensors.imu.latency': 2},
                                    {'sensors.joints.position_resolution': 0.01}])  # fmt: skip
def test_a_sensor_set_measures_what_its_sensors_measure(sim, errors):
    """The values of an exact sensor are not computed twice; that changes no bit."""
    (part,) = parts_of(sim.robot)
    sensors = SensorSet(part, settings_of(**errors))
    alone = {kind: DelayedSensor(s) for kind, s in sensors.sensors._asdict().items()}
    for _ in range(5):
        report = RobotView(sim.step(np.zeros(12)), part)
        sensors.observe(report)
        for kind, sensor in alone.items():
            reading = sensor.read(report)
            for own, values in (
                (sensors.measured(kind, report), reading.measured),
                (sensors.true(kind, report), reading.truth),
            ):
                for name, value in vars(values).items():
                    assert getattr(own, name).tobytes() == value.tobytes(), (kind, name)


def test_noise_and_latency_go_on_where_others_come(sim):
    """The messages of a robot are those of a run without the others; noise is 0.01 and 0.1."""
    settings = settings_of(**{
        'noise.imu_gyro': 0.1, 'noise.joint_position': 0.01, 'sensors.imu.latency': 4,
        'sensors.joints.latency': 6,
    })  # fmt: skip
    other = loose_ball(0.1, 1.0)
    sent = []
    for comes in (False, True):
        sim.reset()
        own, topics = SentMessages(), None
        for k in range(40):
            if topics is None or (comes and k == 20):
                before, now = topics, sim
                if topics is not None:
                    both = joined({'': sim.robot, 'ball': other}, {'ball': (1.0, 0.0)})
                    now = with_robots(sim, both)
                topics = SimulationTopics(now, settings, (), own, NODE)
                if before is not None:
                    topics.go_on_from(before, now)
            report = now.step(np.zeros(now.robot.n_joints))
            topics.publish(Step(report, {'joint_states', 'imu'}))
        sent.append(own)
    for topic, read in (
        ('joint_states', lambda message: message.position),
        ('imu/data', lambda message: vector(message.angular_velocity)),
    ):
        alone, among = ([read(message) for message in run[topic]] for run in sent)
        assert len(alone) == 40
        assert np.array(among) == pytest.approx(np.array(alone), abs=1e-9)
    assert 'ball/imu/data' in sent[1]
