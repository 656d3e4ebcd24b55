"""What the topics say obeys the laws of motion: a jump, judged from its messages alone."""

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import SECOND, Session, published_topics, stamp_of, vector
from sensor_msgs.msg import JointState

from contact_sim import load_robot

STEP, RATE, GRAVITY, FRICTION = 1e-3, 1000.0, 9.81, 0.5
ROBOT = load_robot('go1')
FEET = tuple(foot.name for foot in ROBOT.feet)
WRENCHES = [f'/contacts/{foot}/wrench' for foot in FEET]
TOPICS = {
    topic: kind
    for topic, kind in published_topics(FEET).items()
    if topic in ('/clock', '/diagnostics', '/odom', '/joint_states', '/imu/data', *WRENCHES)
}
PARAMETERS = {
    'start_paused': True,
    'friction.mu': FRICTION,
    'contact_wrench_frame': 'odom',
    **{f'publish_rate.{name}': RATE for name in ('odom', 'joint_states', 'imu', 'wrenches')},
}
LEG = np.array([0.0, 0.5, -1.0])
"""Direction of the joints of a leg in which the foot moves towards the hip."""
UNEVEN = np.array([1.0, 0.9, 0.95, 1.0])
"""Left and right, front and hind legs push differently, so that the trunk turns as well."""


@pytest.fixture(scope='module')
def jump(tmp_path_factory):
    """Return the messages, by topic, in which go1 crouches, jumps and lands: 1.2 s."""
    stand = ROBOT.joint_positions(ROBOT.reference_configuration())
    folder = tmp_path_factory.mktemp('momentum')
    with Session(folder, TOPICS, PARAMETERS) as session:
        session.started().step(300)
        session.settle()
        commands = session.node.create_publisher(JointState, 'joint_commands', 1)
        session.wait_for_subscriber(commands)
        session.clear()
        for accepted, bend in enumerate((0.1, -0.15, 0.0), 1):
            target = stand + bend * np.outer(UNEVEN, LEG).ravel()
            commands.publish(JointState(name=ROBOT.joint_names, position=target.tolist()))
            session.wait(
                lambda n=accepted: session.diagnostics()['commands_accepted'] == str(n), 'command'
            )
            assert session.step(400).success
            session.settle()
        yield {topic: list(messages) for topic, messages in session.messages.items()}


@pytest.fixture(scope='module')
def momentum(jump):
    """Return momentum and angular momentum about the origin, (n, 6), and the CoM (n, 3)."""
    model = ROBOT.pinocchio_model
    data = model.createData()
    rows, centres = [], []
    for odom, joints in zip(jump['/odom'], jump['/joint_states'], strict=True):
        o, twist = odom.pose.pose.orientation, odom.twist.twist
        base = [*vector(odom.pose.pose.position), o.x, o.y, o.z, o.w]
        q = np.array([*base, *joints.position])
        v = np.array([*vector(twist.linear), *vector(twist.angular), *joints.velocity])
        about_centre = pin.computeCentroidalMomentum(model, data, q, v)
        linear, centre = about_centre.linear.copy(), data.com[0].copy()
        rows.append([*linear, *(about_centre.angular + np.cross(centre, linear))])
        centres.append(centre)
    return np.array(rows), np.array(centres)


@pytest.fixture(scope='module')
def wrench(jump):
    """Return force and torque about the origin of each foot, shape (n, feet, 6)."""
    return np.array(
        [
            [[*vector(m.wrench.force), *vector(m.wrench.torque)] for m in messages]
            for messages in zip(*(jump[topic] for topic in WRENCHES), strict=True)
        ]
    )


def test_every_step_was_heard_on_every_topic(jump):
    for topic in ('/odom', '/joint_states', '/imu/data', *WRENCHES):
        stamps = [stamp_of(message) for message in jump[topic]]
        assert len(stamps) == 1200
        assert {later - earlier for earlier, later in pairwise(stamps)} == {SECOND // 1000}


def longest_flight(wrench):
    """Return the first and last step of the longest time without any contact force."""
    flying = np.flatnonzero((wrench == 0.0).all(axis=(1, 2)))
    flights = np.split(flying, np.flatnonzero(np.diff(flying) > 1) + 1)
    longest = max(flights, key=len)
    return longest[0], longest[-1]


def test_the_robot_pushed_off_flew_and_landed(wrench, momentum):
    begin, end = longest_flight(wrench)
    load = wrench[:, :, 2].sum(axis=1) / (ROBOT.total_mass * GRAVITY)
    assert end - begin > 50
    assert load[:begin].max() > 2.0
    assert load[end + 1 :].max() > 2.0
    assert np.ptp(momentum[0][:, 2]) > ROBOT.total_mass  # more than 1 m/s


def test_wrenches_and_gravity_are_all_that_changes_the_momentum(wrench, momentum):
    """Σ h (f + m g) = p − p₀, and likewise about the origin, at any time of the jump.

    Semi-implicit steps are right to first order in h, so a little of the momentum that went to
    and fro may be missing.
    """
    rows, centre = momentum
    weight = np.array([0.0, 0.0, -ROBOT.total_mass * GRAVITY])
    total = wrench.sum(axis=1)
    total[:, :3] += weight
    total[:, 3:] += np.cross(centre, weight)
    error = np.cumsum(STEP * total[1:], axis=0) - (rows[1:] - rows[0])
    turned = np.cumsum(np.abs(STEP * total[1:]), axis=0)[-1]
    assert np.abs(error[:, :3]).max() < 0.002 * turned[:3].max()
    assert np.abs(error[:, 3:]).max() < 0.01 * turned[3:].max()


def test_in_flight_only_gravity_acts(wrench, momentum):
    rows, _ = momentum
    begin, end = longest_flight(wrench)
    rate = (rows[end, :3] - rows[begin, :3]) / (STEP * (end - begin))
    weight = ROBOT.total_mass * GRAVITY
    assert rate == pytest.approx([0.0, 0.0, -weight], abs=0.001 * weight)


def test_forces_lie_in_their_friction_cones_and_only_push(wrench):
    force = wrench[:, :, :3]
    normal, tangential = force[:, :, 2], np.linalg.norm(force[:, :, :2], axis=2)
    assert normal.min() >= 0.0
    assert (tangential - FRICTION * normal).max() <= 1e-6 * normal.max()
    assert tangential.max() > 1.0  # the cone is not trivially kept


def test_torques_belong_to_forces_at_points_on_the_ground(wrench):
    """τ = p × f at a point of the plane z = 0 has τ · f = 0 and τ_x = p_y f_z, τ_y = −p_x f_z."""
    loaded = wrench[wrench[:, :, 2] > 1.0]
    force, torque = loaded[:, :3], loaded[:, 3:]
    x, y = -torque[:, 1] / force[:, 2], torque[:, 0] / force[:, 2]
    assert torque[:, 2] == pytest.approx(x * force[:, 1] - y * force[:, 0], abs=1e-3)
    assert np.abs(x).max() < 0.6
    assert np.abs(y).max() < 0.6


def test_the_imu_feels_what_the_odometry_shows(jump):
    """Specific force over time, turned into odom, plus gravity: the change of the velocity."""
    velocity, felt = [], []
    arm = imu_arm()
    for odom, imu in zip(jump['/odom'], jump['/imu/data'], strict=True):
        o, twist = odom.pose.pose.orientation, odom.twist.twist
        attitude = pin.Quaternion(o.w, o.x, o.y, o.z).matrix()
        spin = vector(twist.angular)
        velocity.append(attitude @ (vector(twist.linear) + np.cross(spin, arm)))
        i = imu.orientation
        felt.append(pin.Quaternion(i.w, i.x, i.y, i.z).matrix() @ vector(imu.linear_acceleration))
    change = np.array(velocity)[1:] - velocity[0]
    predicted = np.cumsum(STEP * (np.array(felt)[1:] - [0.0, 0.0, GRAVITY]), axis=0)
    assert np.abs(predicted - change).max() < 0.01 * np.ptp(change[:, 2])


def imu_arm():
    """Return where imu_link is in the base [m]."""
    model = ROBOT.pinocchio_model
    return model.frames[model.getFrameId('imu_link')].placement.translation
