"""RobotModel: joints, configurations and contact points of any Pinocchio model."""

import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from urdf_texts import joint, link, robot

from contact_sim import ContactPoint, RobotModel, load_robot, robots
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName

# a loaded machine is no failure
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

MIXED = load_robot(
    robot(
        link('base', 3.0),
        link('wheel'),
        link('arm'),
        link('slider'),
        joint('turn', 'base', 'wheel', 'continuous', '0 0 1', '<limit effort="7" velocity="9"/>'),
        joint('lift', 'wheel', 'arm', 'revolute'),
        joint('slide', 'arm', 'slider', 'prismatic'),
    )
)
"""A wheel that turns without end, a revolute joint and a slider on a floating base."""


load_robot_once = cache(load_robot)


def body(mass=1.0):
    return pin.Inertia(mass, np.array([0.0, 0.0, -0.1]), 0.01 * np.eye(3))


def chain(*joints, mass=1.0):
    """Return a fixed-base model of joints one after the other."""
    model, parent = pin.Model(), 0
    for k, kind in enumerate(joints):
        parent = model.addJoint(parent, kind, pin.SE3.Identity(), f'joint_{k}')
        model.appendBodyToJoint(parent, body(mass), pin.SE3.Identity())
        model.addBodyFrame(f'body_{k}', parent, pin.SE3.Identity(), 0)
    return model


def test_continuous_joints_are_angles_at_the_border():
    assert MIXED.nq == 7 + 2 + 1 + 1
    assert MIXED.joint_names == ('turn', 'lift', 'slide')
    assert MIXED.continuous_joints.tolist() == [True, False, False]
    q = MIXED.with_joint_positions(MIXED.reference_configuration(), [2.0, 0.5, 0.3])
    assert q[7:] == pytest.approx([np.cos(2.0), np.sin(2.0), 0.5, 0.3])
    assert MIXED.joint_positions(q) == pytest.approx([2.0, 0.5, 0.3])


def test_limits_of_a_continuous_joint():
    assert MIXED.lower_position_limit.tolist() == [-np.inf, -1.0, -1.0]
    assert MIXED.upper_position_limit.tolist() == [np.inf, 2.0, 2.0]
    assert MIXED.effort_limit.tolist() == [7.0, 30.0, 30.0]
    assert MIXED.velocity_limit.tolist() == [9.0, 20.0, 20.0]


@patient
@given(
    st.floats(-1e3, 1e3),
    st.floats(-10.0, 10.0),
    st.floats(-10.0, 10.0),
)
def test_joint_positions_come_back(turn, lift, slide):
    q = MIXED.reference_configuration()
    moved = MIXED.with_joint_positions(q, [turn, lift, slide])
    positions = MIXED.joint_positions(moved)
    assert positions[1:].tolist() == [lift, slide]
    assert -np.pi <= positions[0] <= np.pi
    assert np.cos(positions[0] - turn) == pytest.approx(1.0)
    assert np.array_equal(moved[:7], q[:7])
    assert np.array_equal(MIXED.checked_configuration(moved)[7:9], moved[7:9])


@patient
@given(st.lists(st.floats(-0.5, 0.5), min_size=9, max_size=9), st.floats(1e-4, 1.0))
def test_joint_velocities_are_the_rate_of_joint_positions(direction, speed):
    v = speed * np.array(direction)
    q = MIXED.with_joint_positions(MIXED.reference_configuration(), [0.4, 0.5, 0.3])
    moved = pin.integrate(MIXED.pinocchio_model, q, v)
    change = MIXED.joint_positions(moved) - MIXED.joint_positions(q)
    assert change == pytest.approx(MIXED.joint_velocities(v), abs=1e-12)


@patient
@given(st.data())
def test_joint_positions_come_back_on_every_robot(data):
    robot = load_robot_once(data.draw(st.sampled_from(robots())))
    angles = st.floats(-3.0, 3.0)
    positions = data.draw(st.lists(angles, min_size=robot.n_joints, max_size=robot.n_joints))
    start = robot.reference_configuration()
    q = robot.with_joint_positions(start, positions)
    assert robot.joint_positions(q).tolist() == positions
    moved = np.flatnonzero(q != start)  # of joints without motors nothing
    assert len(moved) <= robot.n_joints
    assert (moved >= 7).all()


def test_with_joint_positions_leaves_its_argument_alone():
    q = MIXED.reference_configuration()
    before = q.copy()
    MIXED.with_joint_positions(q, [1.0, 1.0, 1.0])
    assert np.array_equal(q, before)


def test_arrays_are_read_only():
    point = load_robot('solo8').contact_points[0]
    for array in (MIXED.selection_matrix, MIXED.effort_limit, MIXED.joint_damping, point.offset):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 1.0


def test_reference_configuration_is_a_copy():
    MIXED.reference_configuration()[:] = 0.0
    assert MIXED.reference_configuration()[6] == 1.0


def test_fixed_base_from_pinocchio():
    arm = RobotModel.from_pinocchio(chain(pin.JointModelRX(), pin.JointModelRY()), ['body_1'])
    assert not arm.floating_base
    assert arm.base_frame == 'universe'
    assert arm.joint_names == ('joint_0', 'joint_1')
    assert np.array_equal(arm.selection_matrix, np.eye(2))
    assert arm.contact_points[0].radius == 0.0
    assert arm.contact_points[0].joint == 'joint_1'
    assert arm.total_mass == 2.0
    assert arm.description == ''
    assert arm.name == 'robot'
    assert arm.reference_configuration().tolist() == [0.0, 0.0]


def test_joints_with_more_freedom_are_passive():
    model = chain(pin.JointModelFreeFlyer(), pin.JointModelSpherical(), pin.JointModelRZ())
    ball = RobotModel.from_pinocchio(model)
    assert ball.joint_names == ('joint_2',)
    assert ball.selection_matrix.tolist() == [[0.0] * 9 + [1.0]]
    with pytest.raises(InvalidInput, match="'joint_1' has 3 degrees of freedom"):
        RobotModel.from_pinocchio(model, actuated_joints=['joint_1'])
    with pytest.raises(InvalidInput, match="'joint_0' has 6 degrees of freedom"):
        RobotModel.from_pinocchio(model, actuated_joints=['joint_0'])


def test_passive_joints_and_order():
    model = chain(pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ())
    some = RobotModel.from_pinocchio(model, actuated_joints=['joint_2', 'joint_0'])
    assert some.joint_names == ('joint_0', 'joint_2')
    assert some.selection_matrix.tolist() == [[1, 0, 0], [0, 0, 1]]
    none = RobotModel.from_pinocchio(model, actuated_joints=())
    assert none.n_joints == 0
    assert none.selection_matrix.shape == (0, 3)
    assert [gain.shape for gain in none.default_gains] == [(0,), (0,)]


def test_a_robot_does_not_follow_later_changes_of_the_model():
    model = chain(pin.JointModelRX())
    copy = RobotModel.from_pinocchio(model)
    model.inertias[1] = body(7.0)
    model.effortLimit = np.array([1.0])
    assert copy.total_mass == 1.0
    assert copy.pinocchio_model.inertias[1].mass == 1.0
    assert copy.effort_limit[0] > 1e300


def test_contact_point_of_a_sphere():
    model = chain(pin.JointModelFreeFlyer())
    point = ContactPoint('foot', 'body_0', 'joint_0', [0.0, 0.0, -0.3], 0.05)
    ball = RobotModel.from_pinocchio(model, [point])
    assert ball.contact_points == (point,)
    assert ball.reference_configuration()[2] == pytest.approx(0.35, abs=1e-15)


def test_contact_point_at_a_frame_keeps_its_place():
    model = chain(pin.JointModelFreeFlyer())
    placement = pin.SE3(pin.utils.rotate('x', 0.5), np.array([0.1, 0.2, -0.4]))
    model.addFrame(pin.Frame('toe', 1, placement, pin.FrameType.OP_FRAME))
    toe = RobotModel.from_pinocchio(model, ['toe']).contact_points[0]
    assert (toe.name, toe.frame, toe.joint) == ('toe', 'toe', 'joint_0')
    assert toe.offset == pytest.approx([0.1, 0.2, -0.4])


def test_a_link_wins_over_another_frame_of_its_name():
    model = chain(pin.JointModelFreeFlyer())
    for x, kind in ((0.1, pin.FrameType.SENSOR), (0.2, pin.FrameType.BODY)):
        placement = pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))
        model.addFrame(pin.Frame('toe', 1, placement, kind))
    (toe,) = RobotModel.from_pinocchio(model, ['toe']).contact_points
    assert toe.offset.tolist() == [0.2, 0.0, 0.0]


@patient
@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).filter(lambda q: np.dot(q, q) > 0.1))
def test_lowest_point_touches_whatever_the_attitude(quaternion):
    attitude = np.array(quaternion) / np.linalg.norm(quaternion)
    corners = [
        ContactPoint(f'corner_{k}', 'body_0', 'joint_0', [x, y, -0.3], 0.02)
        for k, (x, y) in enumerate([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)])
    ]
    model = chain(pin.JointModelFreeFlyer())
    tilted = np.concatenate([[3.0, -1.0, 5.0], attitude])
    box = RobotModel('box', pin.Model(model), (), tuple(corners), {'tilted': tilted})
    q = box.reference_configuration('tilted')
    placement = pin.XYZQUATToSE3(q)
    lowest = min(placement.act(point.offset)[2] - point.radius for point in corners)
    assert abs(lowest) < 1e-12
    assert q[[0, 1]].tolist() == [3.0, -1.0]


def test_a_base_that_is_mounted_askew_still_moves_along_the_vertical():
    model = pin.Model()
    askew = pin.SE3(pin.utils.rotate('y', 0.6), np.array([0.3, 0.0, 2.0]))
    model.addJoint(0, pin.JointModelFreeFlyer(), askew, 'float')
    model.appendBodyToJoint(1, body(), pin.SE3.Identity())
    model.addBodyFrame('body', 1, pin.SE3.Identity(), 0)
    point = ContactPoint('foot', 'body', 'float', [0.0, 0.0, -0.5], 0.1)
    q = RobotModel.from_pinocchio(model, [point]).reference_configuration()
    placement = askew * pin.XYZQUATToSE3(q)
    assert placement.act(point.offset)[2] == pytest.approx(0.1, abs=1e-12)
    assert placement.translation[:2] == pytest.approx([0.3, 0.0], abs=1e-12)


def test_only_feet_that_the_base_carries_place_it():
    model = chain(pin.JointModelFreeFlyer())
    second = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'other')
    model.appendBodyToJoint(second, body(), pin.SE3.Identity())
    model.addBodyFrame('other_body', second, pin.SE3.Identity(), 0)
    points = [
        ContactPoint('own', 'body_0', 'joint_0', [0.0, 0.0, -0.1], 0.0),
        ContactPoint('other', 'other_body', 'other', [0.0, 0.0, -9.0], 0.0),
    ]
    q = RobotModel.from_pinocchio(model, points).reference_configuration()
    assert q[2] == pytest.approx(0.1, abs=1e-15)
    assert q[9] == 0.0


def test_neutral_joints_respect_the_limits():
    knee = robot(
        link('base'),
        link('shank'),
        joint(
            'knee', 'base', 'shank', limit='<limit lower="0.4" upper="2" effort="1" velocity="1"/>'
        ),
    )
    bent = load_robot(knee)
    assert bent.reference_configurations == ('standing',)
    assert bent.joint_positions(bent.reference_configuration()).tolist() == [0.4]


def test_robots_can_be_pickled():
    solo = load_robot('solo8')
    copy = pickle.loads(pickle.dumps(solo))
    assert copy.joint_names == solo.joint_names
    assert np.array_equal(copy.reference_configuration(), solo.reference_configuration())


def test_repr_is_short():
    assert repr(load_robot('solo8')) == "RobotModel('solo8', floating base, 8 joints, 4 feet)"


def test_checked_configuration_normalises_within_the_tolerance():
    q = MIXED.reference_configuration()
    assert np.array_equal(MIXED.checked_configuration(q), q)
    nearly = q.copy()
    nearly[3:7] *= 1.0 + 5e-7
    assert np.linalg.norm(MIXED.checked_configuration(nearly)[3:7]) == pytest.approx(
        1.0, abs=1e-15
    )
    assert nearly[6] == pytest.approx(1.0 + 5e-7, abs=1e-12)  # the argument is left alone


@patient
@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).filter(lambda q: np.dot(q, q) > 0.1))
def test_checking_twice_changes_nothing(quaternion):
    q = MIXED.reference_configuration()
    q[3:7] = np.array(quaternion) / np.linalg.norm(quaternion)
    once = MIXED.checked_configuration(q)
    assert np.array_equal(MIXED.checked_configuration(once), once)


def bad_configuration(index, value):
    q = MIXED.reference_configuration()
    q[index] = value
    return q


@pytest.mark.parametrize(
    ('q', 'message'),
    [
        (np.zeros(4), r'configuration q of robot tiny: shape \(4,\), expected \(11,\)'),
        (np.zeros((11, 1)), r'shape \(11, 1\), expected \(11,\)'),
        (bad_configuration(2, np.nan), 'entry 2 is nan, not finite'),
        (bad_configuration(10, np.inf), 'entry 10 is inf, not finite'),
        (bad_configuration(6, 1.1), r"q\[3:7\] = \[0.0, 0.0, 0.0, 1.1\].*'root_joint'.*norm 1.1"),
        (bad_configuration(6, 0.0), 'has norm 0, expected 1 within 1e-06'),
        (bad_configuration(7, 0.5), "cosine and sine of joint 'turn', has norm 0.5"),
        (['a'] * 11, 'expected real numbers'),
        (None, 'expected real numbers'),
    ],
)
def test_bad_configurations(q, message):
    with pytest.raises(InvalidInput, match=message):
        MIXED.checked_configuration(q)


@pytest.mark.parametrize(
    ('v', 'message'),
    [
        (np.zeros(11), r'velocity v of robot tiny: shape \(11,\), expected \(9,\)'),
        (np.array([0.0] * 8 + [-np.inf]), 'entry 8 is -inf, not finite'),
    ],
)
def test_bad_velocities(v, message):
    with pytest.raises(InvalidInput, match=message):
        MIXED.checked_velocity(v)


def test_bad_joint_positions_name_the_joint():
    q = MIXED.reference_configuration()
    with pytest.raises(InvalidInput, match=r'entry 1 \(lift\) is nan, not finite'):
        MIXED.with_joint_positions(q, [0.0, np.nan, 0.0])
    with pytest.raises(InvalidInput, match=r'shape \(2,\), expected \(3,\)'):
        MIXED.with_joint_positions(q, [0.0, 0.0])


def test_contact_points_have_to_fit_the_model():
    model = chain(pin.JointModelRX())
    with pytest.raises(UnknownName, match="unknown contact frame 'toe'; known: body_0"):
        RobotModel.from_pinocchio(model, ['toe'])
    with pytest.raises(UnknownName, match=r"joint of contact point 'foot': 'hip'; known: joint_0"):
        RobotModel.from_pinocchio(model, [ContactPoint('foot', 'body_0', 'hip', np.zeros(3), 0.0)])
    with pytest.raises(
        UnknownName, match=r"frame of contact point 'foot': 'toe'; known: .*body_0"
    ):
        RobotModel.from_pinocchio(
            model, [ContactPoint('foot', 'toe', 'joint_0', np.zeros(3), 0.0)]
        )
    with pytest.raises(InvalidInput, match="contact point 'body_0' is listed more than once"):
        RobotModel.from_pinocchio(model, ['body_0', 'body_0'])


def test_actuated_joints_have_to_exist_once():
    model = chain(pin.JointModelRX(), pin.JointModelRX())
    with pytest.raises(
        UnknownName, match="unknown actuated joint 'knee'; known: joint_0, joint_1"
    ):
        RobotModel.from_pinocchio(model, actuated_joints=['knee'])
    with pytest.raises(InvalidInput, match="actuated joint 'joint_0' is listed more than once"):
        RobotModel.from_pinocchio(model, actuated_joints=['joint_0', 'joint_0'])
    with pytest.raises(InvalidInput, match='expected a list of joint names'):
        RobotModel.from_pinocchio(model, actuated_joints='joint_0')


@pytest.mark.parametrize('mass', [0.0, -1.0, np.nan])
def test_masses_that_cannot_move(mass):
    model = chain(pin.JointModelRX())
    model.inertias[1] = pin.Inertia(mass, np.zeros(3), np.zeros((3, 3)))
    with pytest.raises(RobotDescriptionError, match='mass'):
        RobotModel.from_pinocchio(model, name='empty')


@pytest.mark.parametrize('mass', [-1.0, np.inf])
def test_masses_that_a_motor_would_hide(mass):
    model = chain(pin.JointModelRX(), pin.JointModelRY())
    model.armature = np.array([50.0, 50.0])
    model.inertias[2] = pin.Inertia(mass, np.zeros(3), 0.01 * np.eye(3))
    with pytest.raises(
        RobotDescriptionError, match=f"the body of joint 'joint_1' has mass {mass} kg, expected"
    ):
        RobotModel.from_pinocchio(model)


def test_a_point_mass_on_a_rod_is_fine():
    model = chain(pin.JointModelRX())
    model.inertias[1] = pin.Inertia(2.0, np.array([0.0, 0.0, -0.5]), np.zeros((3, 3)))
    assert RobotModel.from_pinocchio(model).total_mass == 2.0
