"""From the simulation to messages: frames, signs and units, without a network."""

import math
import struct

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import sensor_msgs.msg
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from robots import FREE_FLYER, ball, cube, rigid_body, stand
from ros_session import vector
from sent import SentMessages, received, received_markers
from visualization_msgs.msg import Marker

from contact_sim import ContactSimError, InclinedPlane, RobotModel, Simulator, joined, load_robot
from contact_sim.collision._terrain import SphereGround, as_terrain
from contact_sim.drawing._step_shapes import ABOVE, border_lines, ground_triangles
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._conversions import (
    joint_values,
    odometry_values,
    set_quaternion,
    set_stamp,
    set_vector,
)
from contact_sim.ros._parameters import PARAMETER_GROUPS, NodeParameters
from contact_sim.ros._publishers import check_definition
from contact_sim.ros.controllers.stance import StanceEfforts
from contact_sim.sensors import (
    ContactFlags,
    Encoders,
    FootForces,
    Imu,
    NoiseParameters,
)
from contact_sim.terrain import HeightField, Region
from contact_sim.topics._markers import ContactMarkers, ground_markers
from contact_sim.topics._messages import Step
from contact_sim.topics._robot_topics import SensorMessages, imu_covariances, wrenches
from contact_sim.topics._table import (
    FOOT_CONTACTS,
    FOOT_WRENCH,
    IMU,
    JOINT_STATES,
    PUBLISHED,
    nanoseconds,
)
from contact_sim.topics._world_topics import SimulationTopics, SolverNumbers

GRAVITY = 9.81


def rotation(o):
    return pin.Quaternion(o.w, o.x, o.y, o.z).matrix()


@pytest.fixture(scope='module')
def standing_on_slope():
    """Return go1 at rest on a slope of 15° that falls towards +y, and the last report."""
    terrain = InclinedPlane(math.radians(15.0), math.radians(90.0))
    sim = Simulator(load_robot('go1'), terrain=terrain)
    return sim, stand(sim, 3000)[-1]


# -------------------------------------------------------------------- time


@pytest.mark.parametrize(
    ('time', 'sec', 'nanosec'),
    [(0.001, 0, 1_000_000), (0.1 + 0.2, 0, 300_000_000), (2.9999999996, 3, 0),
     (86400.001, 86400, 1_000_000)],
)  # fmt: skip
def test_stamps_are_rounded_to_the_nanosecond(time, sec, nanosec):
    from builtin_interfaces.msg import Time

    stamp = Time()
    set_stamp(stamp, time)
    assert (stamp.sec, stamp.nanosec) == (sec, nanosec)


# -------------------------------------------------------------------- state


def settings_of(**values):
    """Return the settings of the node with some frames changed."""
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    return settings | {'': NodeParameters(**values)}


def sensor_messages(robot, **values):
    (part,) = parts_of(robot)
    return SensorMessages(part, settings_of(**values))


def joint_state(robot, report):
    """Return the message of exact encoders."""
    values = Encoders(robot).truth(report)
    (content,) = sensor_messages(robot).joints(nanoseconds(report.time), values)
    return received(JOINT_STATES, content)


def test_joint_states_are_what_acts():
    robot = load_robot('go1')
    sim = Simulator(robot)
    message = joint_state(robot, sim.step(np.full(12, 1e6)))
    assert list(message.name) == list(robot.joint_names)
    assert message.header.stamp.nanosec == 1_000_000
    assert list(message.position) == robot.joint_positions(sim.q).tolist()
    assert list(message.velocity) == robot.joint_velocities(sim.v).tolist()
    assert list(message.effort) == robot.effort_limit.tolist()


def test_joint_states_of_continuous_joints_are_angles():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), 'wheel')
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    robot = RobotModel.from_pinocchio(model)
    sim = Simulator(robot)
    sim.reset(np.array([math.cos(2.0), math.sin(2.0)]))
    message = joint_state(robot, sim.step([0.0]))
    assert list(message.position) == pytest.approx([2.0], abs=1e-6)


def topics_of(sim, **values):
    """Return the topics of a simulation, and the messages that they publish."""
    sent = SentMessages()
    return SimulationTopics(sim, settings_of(**values), (), sent), sent


def odometry(sim, **values):
    """Take a step; return the message."""
    topics, sent = topics_of(sim, **values)
    topics.publish(Step(sim.step(np.zeros(sim.robot.n_joints)), {'odom'}))
    (message,) = sent['odom']
    return message


def test_odometry_twist_is_the_motion_of_the_pose_in_the_base_frame():
    """Finite differences of a tumbling body's pose, turned into the child frame."""
    sim = Simulator(ball())
    sim.reset(np.array([0, 0, 5.0, 0, 0, 0, 1.0]), np.array([1.0, -2.0, 3.0, 4.0, -5.0, 6.0]))
    poses = []
    for _ in range(101):
        filled = odometry(sim, base_frame='base')
        pose = filled.pose.pose
        poses.append((vector(pose.position), rotation(pose.orientation)))
    (p0, R0), (p1, R1) = poses[-2:]
    twist = filled.twist.twist
    assert vector(twist.linear) == pytest.approx(R1.T @ (p1 - p0) / 1e-3, abs=0.02)
    assert vector(twist.angular) == pytest.approx(pin.log3(R0.T @ R1) / 1e-3, abs=0.02)
    assert (filled.header.frame_id, filled.child_frame_id) == ('odom', 'base')


def imu_message(robot, report, frame=''):
    """Return the message of an exact sensor at a frame."""
    sensor = Imu(robot, frame)
    values, covariances = sensor.truth(report), imu_covariances(sensor)
    (content,) = sensor_messages(robot).imu(nanoseconds(report.time), values, covariances)
    return received(IMU, content)


def test_imu_in_free_fall_feels_nothing():
    sim = Simulator(ball())
    sim.reset(np.array([0, 0, 5.0, 0, 0, 0, 1.0]), np.array([1.0, 2.0, 0.0, 0.0, 0.0, 0.0]))
    imu = imu_message(sim.robot, sim.step([]))
    assert vector(imu.linear_acceleration) == pytest.approx(np.zeros(3), abs=1e-9)


def test_imu_feels_a_push():
    sim = Simulator(ball(mass=2.0))
    sim.reset(np.array([0, 0, 5.0, 0, 0, 0, 1.0]))
    report = sim.step([], {'body': [6.0, 0.0, 0.0, 0.0, 0.0, 0.0]})
    imu = imu_message(sim.robot, report)
    assert vector(imu.linear_acceleration) == pytest.approx([3.0, 0.0, 0.0], abs=1e-9)


def test_imu_away_from_the_centre_of_a_spinning_body_feels_the_centripetal_force():
    arm, spin = np.array([0.3, 0.0, 0.0]), np.array([0.0, 0.0, 7.0])
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, math.pi / 2), arm)
    free = rigid_body('top', 1.0, np.eye(3), [([0.0, 0.0, 0.0], 0.1)])
    model = pin.Model(free.pinocchio_model)
    model.addFrame(
        pin.Frame('imu_link', model.getJointId(FREE_FLYER), turned, pin.FrameType.OP_FRAME)
    )
    sim = Simulator(RobotModel.from_pinocchio(model))
    sim.reset(np.array([0, 0, 5.0, 0, 0, 0, 1.0]), np.concatenate([np.zeros(3), spin]))
    imu = imu_message(sim.robot, sim.step([]), 'imu_link')
    late = pin.exp3(-0.5e-3 * spin)  # over the step the acceleration points along the chord
    in_base = late @ np.cross(spin, np.cross(spin, arm)) * np.sinc(0.5e-3 * 7.0 / np.pi)  # −ω² r
    assert vector(imu.linear_acceleration) == pytest.approx(turned.rotation.T @ in_base, abs=1e-9)
    assert vector(imu.angular_velocity) == pytest.approx(spin, abs=1e-9)
    yaw = pin.rpy.matrixToRpy(rotation(imu.orientation))[2]
    assert yaw == pytest.approx(math.pi / 2 + 7.0 * 1e-3, abs=1e-6)


def test_imu_on_a_slope_feels_gravity_in_its_own_axes(standing_on_slope):
    sim, report = standing_on_slope
    imu = imu_message(sim.robot, report, 'imu_link')
    up = rotation(imu.orientation).T @ np.array([0.0, 0.0, GRAVITY])
    assert vector(imu.linear_acceleration) == pytest.approx(up, abs=1e-5)
    assert abs(vector(imu.linear_acceleration)[1]) > 2.0  # it is tilted sideways


def test_an_impact_shows_as_velocity_change_over_the_time_step():
    sim = Simulator(ball(radius=0.1))
    sim.reset(np.array([0, 0, 0.1 + 1e-4, 0, 0, 0, 1.0]), np.array([0, 0, -1.0, 0, 0, 0]))
    imu = imu_message(sim.robot, sim.step([]))
    assert vector(imu.linear_acceleration)[2] == pytest.approx(0.9 / 1e-3 + GRAVITY, rel=1e-6)


def test_messages_of_a_fixed_base_robot_stay_at_the_origin():
    robot = load_robot('go1', floating_base=False)
    sim = Simulator(robot)
    odom = odometry(sim)
    imu = imu_message(robot, sim.last_report)
    assert odom.pose.pose.orientation.w == 1.0
    assert vector(imu.linear_acceleration) == pytest.approx([0.0, 0.0, GRAVITY])


def test_covariances_are_never_unknown_and_state_the_noise():
    """robot_localization takes 1e-9 for whatever is smaller; all 0 means unknown (REP 145)."""
    sim = Simulator(ball())
    odom = odometry(sim)
    exact, noisy = (
        {name: one.value for name, one in imu_covariances(sensor).items()}
        for sensor in (
            Imu(sim.robot),
            Imu(sim.robot, '', NoiseParameters(imu_gyro=0.02, imu_accel=0.3)),
        )
    )
    message = imu_message(sim.robot, sim.last_report)
    smallest = 1e-9 * np.eye(3).ravel()
    assert np.array_equal(message.orientation_covariance, smallest)
    assert np.array_equal(message.angular_velocity_covariance, smallest)
    assert np.array_equal(message.linear_acceleration_covariance, smallest)
    assert all(np.array_equal(covariance, smallest) for covariance in exact.values())
    assert np.array_equal(noisy['orientation'], smallest)
    gyro, accel = 4e-4 * np.eye(3).ravel(), 0.09 * np.eye(3).ravel()
    assert noisy['angular_velocity'] == pytest.approx(gyro)
    assert noisy['specific_force'] == pytest.approx(accel)
    for covariance in (odom.pose.covariance, odom.twist.covariance):
        assert np.array_equal(covariance, 1e-9 * np.eye(6).ravel())


# -------------------------------------------------------------------- contacts


def foot_wrenches(sim, report, in_foot_frame):
    axes = 'foot' if in_foot_frame else 'world'
    frames = [foot.frame if in_foot_frame else 'odom' for foot in sim.robot.feet]
    values = FootForces(sim.robot, axes).truth(report)
    return [received(FOOT_WRENCH, content) for content in wrenches(0, frames, values)]


def test_wrenches_in_the_world_are_forces_on_the_robot(standing_on_slope):
    sim, report = standing_on_slope
    messages = foot_wrenches(sim, report, in_foot_frame=False)
    total = sum(vector(message.wrench.force) for message in messages)
    assert total == pytest.approx([0.0, 0.0, sim.robot.total_mass * GRAVITY], abs=1e-4)
    moment = sum(vector(message.wrench.torque) for message in messages)
    centre = pin.centerOfMass(
        sim.robot.pinocchio_model, sim.robot.pinocchio_model.createData(), report.q
    )
    assert moment == pytest.approx(np.cross(centre, total), abs=1e-4)  # about the origin of odom


def test_wrenches_in_the_foot_frame_are_the_same_seen_from_the_foot(standing_on_slope):
    sim, report = standing_on_slope
    for name, local, world in zip(
        report.contacts.names, foot_wrenches(sim, report, True), foot_wrenches(sim, report, False),
        strict=True,
    ):  # fmt: skip
        foot = sim.frame_placement(name)
        force = foot.rotation @ vector(local.wrench.force)
        assert force == pytest.approx(vector(world.wrench.force), abs=1e-9)
        at_foot = vector(world.wrench.torque) - np.cross(foot.translation, force)
        torque = foot.rotation @ vector(local.wrench.torque)
        assert torque == pytest.approx(at_foot, abs=1e-9)
        assert np.linalg.norm(torque) <= 0.02 * np.linalg.norm(force) + 1e-9  # r = 20 mm
        assert (local.header.frame_id, world.header.frame_id) == (name, 'odom')


def test_feet_in_the_air_have_zero_wrench_and_no_contact():
    robot = load_robot('go1')
    sim = Simulator(robot)
    q = sim.standing_configuration().copy()
    q[2] += 0.1
    sim.reset(q)
    report = sim.step(np.zeros(12))
    for message in foot_wrenches(sim, report, True):
        assert vector(message.wrench.force).tolist() == [0.0, 0.0, 0.0]
        assert vector(message.wrench.torque).tolist() == [0.0, 0.0, 0.0]
    flags = ContactFlags(robot).truth(report)
    (content,) = sensor_messages(robot).contacts(0, flags)
    assert list(received(FOOT_CONTACTS, content).data) == [0, 0, 0, 0]


def drawn(report):
    """Return the markers of the contacts of a step."""
    return received_markers(ContactMarkers().of(report))


def drawn_ground(terrain, time):
    """Return the markers of the ground."""
    return received_markers(ground_markers(terrain), nanoseconds(time))


def test_markers_follow_the_slope(standing_on_slope):
    sim, report = standing_on_slope
    plane = sim.terrain.plane
    markers = drawn(report)
    (_, ground) = drawn_ground(sim.terrain, 1.0)
    top = vector(ground.pose.position) + rotation(ground.pose.orientation) @ [
        0.0,
        0.0,
        0.5 * ground.scale.z,
    ]
    assert plane[:3] @ top == pytest.approx(plane[3], abs=1e-12)
    for k, cone in enumerate(m for m in markers if m.ns == 'friction_cone'):
        axis = rotation(cone.pose.orientation)[:, 2]
        assert axis == pytest.approx(plane[:3], abs=1e-9)
        assert vector(cone.pose.position) == pytest.approx(report.contacts.position[k])
    for k, arrow in enumerate(m for m in markers if m.ns == 'force'):
        along = vector(arrow.points[1]) - vector(arrow.points[0])
        assert along == pytest.approx(0.01 * report.contacts.force[k])


def test_a_ground_that_bends_is_drawn_where_it_is():
    bowl = SphereGround((0.0, 0.0, 6.0), 6.0, hollow=True)
    corners = ground_triangles(bowl)
    assert len(corners) % 3 == 0
    assert bowl.signed_distance(corners) == pytest.approx(np.zeros(len(corners)), abs=1e-12)
    across = corners.max(axis=0) - corners.min(axis=0)
    assert across[:2].min() > 6.0
    clear, ground = drawn_ground(bowl, 1.5)
    assert clear.action == Marker.DELETEALL
    assert ground.header.stamp.nanosec == 500_000_000
    assert ground.type == Marker.TRIANGLE_LIST
    drawn = np.array([[p.x, p.y, p.z] for p in ground.points])
    assert drawn == pytest.approx(corners)


def test_a_region_is_drawn_where_its_friction_acts():
    """The lines that come out of a message lie on the ground, around the region."""
    hill = HeightField.of_function(lambda x, y: 0.1 * x + 0 * y, (2.0, 2.0), 0.1, (-1.0, -1.0))
    regions = [
        Region((-0.5, 0.2), (0.0, 0.5), friction=0.1),
        Region((0.5, 3.0), (-0.5, 0.5), friction=0.2),
    ]
    terrain = as_terrain(hill).with_regions(regions)
    _, ground, *borders = drawn_ground(terrain, 0.0)
    drawn = np.array([[p.x, p.y, p.z] for p in ground.points])
    assert drawn[:, 2] == pytest.approx(0.1 * drawn[:, 0], abs=1e-9)
    assert [border.ns for border in borders] == ['region', 'region']
    assert {border.id for border in borders} == {0, 1}
    for border, region in zip(borders, regions, strict=True):
        ends = np.array([[p.x, p.y, p.z] for p in border.points])
        assert len(ends) % 2 == 0
        assert ends == pytest.approx(border_lines(terrain, region))
        assert ends[:, 2] == pytest.approx(0.1 * ends[:, 0] + ABOVE, abs=1e-9)
        low, high = ends[:, :2].min(axis=0), ends[:, :2].max(axis=0)
        assert low == pytest.approx([region.x_range[0], region.y_range[0]])
        assert high == pytest.approx([min(region.x_range[1], 1.0), region.y_range[1]], abs=0.07)


def test_markers_of_feet_in_the_air_are_removed():
    sim = Simulator(cube())
    q = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    sim.reset(q)
    report = sim.step([])
    markers = drawn(report)
    actions = {marker.ns: marker.action for marker in markers}
    assert actions['force'] == actions['friction_cone'] == actions['slip'] == Marker.DELETE
    assert actions['normal'] == Marker.ADD


def test_a_slipping_foot_shows_its_velocity():
    sim = Simulator(cube(), friction=0.1)
    sim.reset(np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.array([0.5, 0, 0, 0, 0, 0]))
    report = sim.step([])
    markers = drawn(report)
    slips = [marker for marker in markers if marker.ns == 'slip']
    # which corners carry the weight is not determined; those that do slip, and show it
    loaded = report.contacts.normal_force > 0.0
    assert loaded.sum() >= 2
    actions = [marker.action for marker in slips]
    assert actions == [Marker.ADD if carries else Marker.DELETE for carries in loaded]
    for marker in (slip for slip in slips if slip.action == Marker.ADD):
        along = vector(marker.points[1]) - vector(marker.points[0])
        assert along == pytest.approx([0.5 - 0.1 * GRAVITY * 1e-3, 0.0, 0.0], abs=1e-6)


def test_solver_state_has_the_same_labels_with_and_without_contact():
    sim = Simulator(load_robot('go1'))
    parts = parts_of(sim.robot)
    landed = SolverNumbers(parts, sim.terrain, ()).of(sim.step(np.zeros(12)), 1.0)
    q = sim.standing_configuration().copy()
    q[2] += 0.5
    sim.reset(q)
    values = SolverNumbers(parts, sim.terrain, ()).of(sim.step(np.zeros(12)), 1.0)
    assert list(values) == list(landed)
    assert values['contacts'] == 0.0
    assert values['force_at_distance'] == 0.0


# -------------------------------------------------------------------- TF, which has no wheel


def test_tf_carries_the_pose_of_the_odometry():
    pytest.importorskip('rosbags', reason='needs rosbags')
    sim = Simulator(ball())
    topics, sent = topics_of(sim, base_frame='base')
    topics.publish_static_transforms(0)
    topics.publish(Step(sim.step([]), {'odom'}))
    (odom,) = sent['odom']
    static, alias = sent['/tf_static'][0].transforms
    (moving,) = sent['/tf'][0].transforms
    assert (static.header.frame_id, static.child_frame_id) == ('world', 'odom')
    assert (moving.header.frame_id, moving.child_frame_id) == ('odom', 'base')
    assert (alias.header.frame_id, alias.child_frame_id) == ('base', 'base_link')
    assert alias.transform.rotation.w == 1.0
    assert not vector(alias.transform.translation).any()
    assert vector(moving.transform.translation) == pytest.approx(vector(odom.pose.pose.position))
    assert moving.header.stamp.nanosec == odom.header.stamp.nanosec


@pytest.mark.parametrize(
    ('robot', 'parameters', 'aliases'),
    [
        ('go1', {}, ['base_link']), ('go1', {'frame_prefix': 'left/'}, ['left/base_link']),
        ('go1', {'base_link': 'trunk_link'}, ['trunk_link']), ('go1', {'base_link': ''}, []),
        ('go1', {'base_frame': 'base_link'}, []), ('go1', {'publish_odom_tf': False}, []),
        ('solo12', {}, []),  # it has a link of this name
    ],
)  # fmt: skip
def test_the_base_has_the_name_of_rep_105_too(robot, parameters, aliases):
    pytest.importorskip('rosbags', reason='needs rosbags')
    topics, sent = topics_of(Simulator(load_robot(robot)), **parameters)
    topics.publish_static_transforms(0)
    transforms = sent['/tf_static'][0].transforms
    assert [t.child_frame_id for t in transforms if t.child_frame_id != 'odom'] == aliases


def test_tf_carries_every_robot_in_one_message():
    pytest.importorskip('rosbags', reason='needs rosbags')
    sim = Simulator(joined({'a': ball(), 'b': ball()}, {'b': (1.0, 2.0, 0.0)}))
    topics, sent = topics_of(sim, world_frame='')
    topics.publish(Step(sim.step([]), {'odom', 'joint_states'}))
    (message,) = sent['/tf']
    a, b = message.transforms
    assert (a.child_frame_id, b.child_frame_id) == ('a/body', 'b/body')
    distance = vector(b.transform.translation) - vector(a.transform.translation)
    assert distance == pytest.approx([1.0, 2.0, 0.0])


def test_tf_can_be_left_to_an_estimator():
    sim = Simulator(ball())
    topics, sent = topics_of(sim, world_frame='', publish_odom_tf=False)
    topics.publish_static_transforms(0)
    topics.publish(Step(sim.step([]), {'odom'}))
    assert not {'/tf', '/tf_static'} & set(sent)


# -------------------------------------------------------------------- types of messages


def test_the_installed_types_are_those_that_are_written():
    for kind in {*PUBLISHED.values(), 'std_msgs/msg/String'}:
        check_definition(kind.replace('/msg/', '/'))


def test_another_installed_type_is_an_error(monkeypatch):
    class Fewer:
        @staticmethod
        def get_fields_and_field_types():
            return {'header': 'std_msgs/Header', 'name': 'sequence<string>'}

    monkeypatch.setattr(sensor_msgs.msg, 'JointState', Fewer)
    with pytest.raises(ContactSimError, match='sensor_msgs/JointState has the fields'):
        check_definition('sensor_msgs/JointState')


# -------------------------------------------------------------------- the controller


@pytest.mark.parametrize('name', ['go1', 'solo8', 'anymal_b'])
def test_stance_efforts_alone_nearly_hold_the_robot(name):
    """Without any PD the robot sinks by less than a millimetre in a tenth of a second."""
    robot = load_robot(name)
    sim = Simulator(robot)
    efforts = StanceEfforts(robot)
    begin = sim.q[2]
    for _ in range(100):
        sim.step(efforts.at(sim.q.copy(), sim.v.copy()))
    assert abs(sim.q[2] - begin) < 1e-3
    sim.reset()
    for _ in range(100):
        sim.step(np.zeros(robot.n_joints))
    assert begin - sim.q[2] > 1e-2


def test_stance_efforts_of_a_fixed_base_robot_hold_its_legs():
    robot = load_robot('go1', floating_base=False)
    q = robot.reference_configuration()
    model = robot.pinocchio_model
    gravity = pin.computeGeneralizedGravity(model, model.createData(), q)
    assert StanceEfforts(robot).at(q.copy(), np.zeros(12)) == pytest.approx(gravity)


@pytest.mark.parametrize('count', [0, 1, 3])
def test_serialised_messages_are_read_as_rclpy_reads_them(count):
    rng = np.random.default_rng(count)
    state = sensor_msgs.msg.JointState(name=['knee', 'ä', 'left_hip_joint'][:count])
    state.header.frame_id, state.header.stamp.sec = 'base', 3
    state.header.stamp.nanosec = 999_999_999
    state.position, state.effort = rng.normal(size=(2, count)).tolist()
    values = joint_values(serialize_message(state))
    assert values.stamp == 3_999_999_999
    assert values.name == state.name
    assert values.position.tolist() == state.position.tolist()
    assert values.velocity.tolist() == []
    assert values.effort.tolist() == state.effort.tolist()

    odometry = Odometry(child_frame_id='trunk'[:count])
    odometry.header.stamp.nanosec = 7
    pose, twist = rng.normal(size=7), rng.normal(size=6)
    set_vector(odometry.pose.pose.position, pose[:3])
    set_quaternion(odometry.pose.pose.orientation, pose[3:])
    set_vector(odometry.twist.twist.linear, twist[:3])
    set_vector(odometry.twist.twist.angular, twist[3:])
    read = odometry_values(serialize_message(odometry))
    assert read.stamp == 7
    assert read.pose.tolist() == pose.tolist()
    assert read.twist.tolist() == twist.tolist()


def test_messages_in_another_encoding_are_refused():
    big = b'\x00\x00\x00\x00' + struct.pack('>iIII', 1, 2, 1, 0) + bytes(16)
    assert joint_values(big).stamp == 1_000_000_002
    with pytest.raises(ContactSimError, match='plain CDR'):
        joint_values(b'\x00\x07\x00\x00' + bytes(40))
