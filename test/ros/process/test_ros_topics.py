"""What the node says: topics, types, rates, stamps and numbers, heard in another process."""

import math
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from ros_session import SECOND, Session, published_topics, stamp_of, vector

from contact_sim import load_robot
from contact_sim.step._problem import Residuals
from contact_sim.topics._table import PublishRateParameters

STEP = SECOND // 1000
GRAVITY = 9.81
ROBOT = load_robot('go1')
FEET = tuple(foot.name for foot in ROBOT.feet)
TOPICS = published_topics(FEET)
WRENCHES = [topic for topic in TOPICS if topic.startswith('/contacts/')]
TRUTH = '/contact_sim/ground_truth'
TRUE = {
    '/joint_states': f'{TRUTH}/joint_states',
    '/imu/data': f'{TRUTH}/imu',
    **{topic: TRUTH + topic for topic in WRENCHES},
}
STAMPED = ['/joint_states', '/odom', '/imu/data', *WRENCHES, *TRUE.values()]
RATES = PublishRateParameters()
RATE = {
    '/clock': 1000.0,
    '/joint_states': RATES.joint_states,
    '/odom': RATES.odom,
    '/imu/data': RATES.imu,
    **dict.fromkeys(WRENCHES, RATES.wrenches),
    '/foot_contacts': RATES.wrenches,
    '/foot_contacts_stamped': RATES.wrenches,
    TRUE['/joint_states']: RATES.joint_states,
    TRUE['/imu/data']: RATES.imu,
    **{TRUE[topic]: RATES.wrenches for topic in WRENCHES},
    f'{TRUTH}/foot_contacts': RATES.wrenches,
    '/contact_sim/contact_markers': RATES.markers,
    '/contact_sim/solver_state': RATES.solver_state,
    '/contact_sim/shadow': 0.0,  # no model is asked by default
}


@pytest.fixture(scope='module')
def go1(tmp_path_factory):
    """Paused, go1 after two seconds of standing; what was published in them is forgotten."""
    folder = tmp_path_factory.mktemp('topics')
    with Session(folder, TOPICS, {'start_paused': True}) as session:
        session.started().step(2000)
        session.settle()
        yield session


@pytest.fixture(scope='module')
def second(go1):
    """Return the messages of exactly one more second, by topic."""
    begin = go1.time
    go1.clear()
    go1.step(1000)
    go1.settle()
    heard = {topic: list(messages) for topic, messages in go1.messages.items()}
    for topic in STAMPED:  # what a busy machine delivers late belongs to the seconds before
        heard[topic] = [message for message in heard[topic] if stamp_of(message) > begin]
    ticks = {stamp_of(message): message for message in heard['/clock']}  # the heartbeat repeats
    return heard | {'/clock': [ticks[stamp] for stamp in sorted(ticks) if stamp > begin]}


def state(second):
    """Return q and v as the last messages of the second tell them."""
    odom, joints = second['/odom'][-1], second['/joint_states'][-1]
    pose, twist = odom.pose.pose, odom.twist.twist
    o = pose.orientation
    q = np.concatenate([vector(pose.position), [o.x, o.y, o.z, o.w], joints.position])
    v = np.concatenate([vector(twist.linear), vector(twist.angular), joints.velocity])
    return q, v


def floats_of(message):
    """Yield every float in a message."""
    if isinstance(message, float):
        yield message
    elif hasattr(message, 'get_fields_and_field_types'):
        for name in message.get_fields_and_field_types():
            yield from floats_of(getattr(message, name))
    elif hasattr(message, '__iter__') and not isinstance(message, str | bytes):
        for item in message:
            yield from floats_of(item)


def test_every_topic_has_its_type(go1):
    seen = dict(go1.node.get_topic_names_and_types())
    assert {topic: seen.get(topic) for topic in TOPICS} == {t: [k] for t, k in TOPICS.items()}


def test_every_publisher_is_reliable(go1):
    """RViz shows nothing, and says OK, for best-effort wrenches; only the ground is kept."""
    for topic in TOPICS:
        for info in go1.node.get_publishers_info_by_topic(topic):
            assert info.qos_profile.reliability == ReliabilityPolicy.RELIABLE, topic
            kept = info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
            assert kept == topic.endswith('/terrain'), topic


@pytest.mark.parametrize('topic', RATE)
def test_rates_are_exact(second, topic):
    assert len(second[topic]) == RATE[topic]


def test_the_clock_ticks_once_per_step(second):
    stamps = [stamp_of(message) for message in second['/clock']]
    assert {later - earlier for earlier, later in pairwise(stamps)} == {STEP}


@pytest.mark.parametrize('topic', STAMPED)
def test_messages_carry_the_time_of_their_step(second, topic):
    stamps = [stamp_of(message) for message in second[topic]]
    steps = round(1000.0 / RATE[topic])
    assert {later - earlier for earlier, later in pairwise(stamps)} == {steps * STEP}
    assert set(stamps) <= {stamp_of(message) for message in second['/clock']}


def test_messages_of_one_step_carry_the_same_stamp(second):
    """What is published at 250 Hz has a partner on every faster topic, to the nanosecond."""
    stamps = {topic: {stamp_of(message) for message in second[topic]} for topic in STAMPED}
    assert all(stamps['/joint_states'] >= stamps[topic] for topic in WRENCHES)
    assert stamps['/joint_states'] == stamps['/odom'] == stamps['/imu/data']


def test_joint_states_are_whole_and_in_order(second):
    for message in second['/joint_states']:
        assert tuple(message.name) == ROBOT.joint_names
        lengths = {len(message.position), len(message.velocity), len(message.effort)}
        assert lengths == {ROBOT.n_joints}


def test_joint_efforts_and_foot_forces_balance_gravity(second):
    """τ = g_j − J_jᵀ f: effort is what acts, and forces are those of the ground on the robot."""
    q, v = state(second)
    model = ROBOT.pinocchio_model
    data = model.createData()
    gravity = pin.computeGeneralizedGravity(model, data, q)
    pin.computeJointJacobians(model, data, q)
    pin.framesForwardKinematics(model, data, q)
    generalized = np.zeros(model.nv)
    for foot, topic in zip(FEET, WRENCHES, strict=True):
        wrench = second[topic][-1].wrench
        frame = model.getFrameId(foot)
        jacobian = pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL)
        local = np.concatenate([vector(wrench.force), vector(wrench.torque)])
        generalized += jacobian.T @ local
    assert np.abs(v).max() < 1e-6
    assert np.abs((gravity - generalized)[:6]).max() < 1e-4 * ROBOT.total_mass * GRAVITY
    effort = np.array(second['/joint_states'][-1].effort)
    # dry friction of up to 0.2 N m per joint stands between the effort and the balance
    assert np.abs(effort - (gravity - generalized)[6:]).max() <= 0.2 + 1e-6


def test_wrenches_name_the_foot_as_their_frame(second):
    for foot, topic in zip(FEET, WRENCHES, strict=True):
        assert {message.header.frame_id for message in second[topic]} == {foot}


def test_odometry_frames(second):
    (odom_frame,) = {message.header.frame_id for message in second['/odom']}
    (child_frame,) = {message.child_frame_id for message in second['/odom']}
    assert (odom_frame, child_frame) == ('odom', ROBOT.base_frame)


def test_imu_at_rest_shows_gravity_upwards(second):
    message = second['/imu/data'][-1]
    assert message.header.frame_id == 'imu_link'
    o = message.orientation
    up = pin.Quaternion(o.w, o.x, o.y, o.z).matrix().T @ np.array([0.0, 0.0, 1.0])
    assert vector(message.linear_acceleration) == pytest.approx(GRAVITY * up, abs=1e-4)
    assert vector(message.angular_velocity) == pytest.approx(np.zeros(3), abs=1e-6)
    # REP 145: zero covariance means unknown, −1 in the first element means not measured; what is
    # exact has the least variance that robot_localization knows
    assert list(message.linear_acceleration_covariance) == [1e-9, 0, 0, 0, 1e-9, 0, 0, 0, 1e-9]


def test_without_errors_sensors_tell_the_ground_truth(second):
    for topic, true in {**TRUE, '/foot_contacts': f'{TRUTH}/foot_contacts'}.items():
        assert second[true] == second[topic]


def test_foot_contacts_say_that_all_feet_stand(second):
    message = second['/foot_contacts'][-1]
    assert list(message.data) == [1, 1, 1, 1]
    (feet,) = message.layout.dim
    assert tuple(feet.label.split()) == FEET
    assert feet.size == feet.stride == len(message.data)
    stamped = second['/foot_contacts_stamped'][-1]
    assert tuple(stamped.name) == FEET
    assert list(stamped.position) == [1.0, 1.0, 1.0, 1.0]
    assert stamped.header.stamp == second[WRENCHES[0]][-1].header.stamp


def test_markers_draw_forces_cones_and_normals(second):
    markers = second['/contact_sim/contact_markers'][-1].markers
    by_kind = {}
    for marker in markers:
        by_kind.setdefault(marker.ns, []).append(marker)
        assert marker.header.frame_id == 'odom'
    support = {'support_polygon', 'centre_of_mass'}
    assert set(by_kind) == {'force', 'friction_cone', 'normal', 'slip'} | support
    assert len(by_kind['support_polygon'][0].points) == 5  # four feet, closed
    assert all(len(by_kind[kind]) == 4 for kind in ('force', 'friction_cone', 'normal', 'slip'))
    lifts = [vector(m.points[1])[2] - vector(m.points[0])[2] for m in by_kind['force']]
    assert sum(lifts) == pytest.approx(0.01 * ROBOT.total_mass * GRAVITY, rel=1e-3)
    for cone in by_kind['friction_cone']:
        rim = np.array([vector(point) for point in cone.points if vector(point).any()])
        opening = np.linalg.norm(rim[:, :2], axis=1) / rim[:, 2]
        assert opening == pytest.approx(np.full(len(rim), 0.8))


def test_solver_state_is_labelled_and_good(second):
    message = second['/contact_sim/solver_state'][-1]
    labels = [dim.label for dim in message.layout.dim]
    assert len(labels) == len(set(labels)) == len(message.data)
    values = dict(zip(labels, message.data, strict=True))
    residuals = set(Residuals._fields)
    assert residuals <= set(labels)
    assert values['converged'] == 1.0
    assert values['contacts'] == 4.0
    assert values['ncp'] <= 1e-8
    assert values['penetration'] <= 1e-6
    held = [values[f'support_{name}'] for name in ('rank', 'base_rank', 'internal_constraints')]
    assert held == [12.0, 6.0, 6.0]  # theory E7
    assert values['support_uncontrollable_base_dof'] == 0.0
    assert 0.1 < values['support_margin'] < 0.15
    assert values['physical'] == 1.0


def test_diagnostics_are_in_order(go1):
    values = go1.diagnostics()
    assert values['level'] == 0
    assert values['contact_model'] == 'ncp'
    assert int(values['solver_converged']) > 0
    assert (values['commands_accepted'], values['commands_dropped']) == ('0', '0')


def test_no_number_is_nan(second):
    for topic, messages in second.items():
        for message in messages[-3:]:
            assert all(math.isfinite(value) for value in floats_of(message)), topic
