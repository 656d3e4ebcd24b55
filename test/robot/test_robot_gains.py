"""Default gains: what joints carry, stability, and robots of all kinds that stand with them."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import ContactPoint, RobotModel, Simulator, joined, load_robot
from contact_sim.robot._actuators import (
    DAMPING_NUMBER,
    LEVEL,
    MARGIN,
    SAG,
    STIFFNESS_NUMBER,
    TIME_STEP,
    holding,
    joint_mobility,
    largest_time_step,
    required_stiffness,
    stability_number,
)
from contact_sim.robot._catalogue import CATALOGUE, robot_file
from contact_sim.robot._collision_pairs import NO_COLLISIONS
from contact_sim.robot._model import describe_gains, gain_table

ROBOTS = robot_file(CATALOGUE['go1'], CATALOGUE['go1'].urdf).parents[2]
G = 9.81


def stilt(mass=10.0, length=0.8):
    """Return a point mass on a light leg that ends in an ankle and a sole."""
    model = pin.Model()
    base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    model.appendBodyToJoint(
        base, pin.Inertia(mass, np.zeros(3), 1e-6 * np.eye(3)), pin.SE3.Identity()
    )
    down = pin.SE3(np.eye(3), np.array([0.0, 0.0, -length]))
    ankle = model.addJoint(base, pin.JointModelRY(), down, 'ankle')
    model.appendBodyToJoint(
        ankle, pin.Inertia(1e-3, np.zeros(3), 1e-2 * np.eye(3)), pin.SE3.Identity()
    )
    model.addBodyFrame('foot', ankle, pin.SE3.Identity(), 0)
    points = [
        ContactPoint(f'{x}{y}', 'foot', 'ankle', np.array([0.3 * x, 0.1 * y, 0.0]), 0.0)
        for x in (-1, 1)
        for y in (-1, 1)
    ]
    return RobotModel.from_pinocchio(model, points, name='stilt')


def asked_of(robot, q=None):
    q = robot.references['standing'] if q is None else q
    joints = robot.joint_velocity_index
    return required_stiffness(robot.pinocchio_model, joints, q, robot.contact_points, robot.loops)


def mobility_of(robot):
    q = robot.references['standing']
    return joint_mobility(robot.pinocchio_model, robot.joint_velocity_index, q, robot.loops)


# ---------------------------------------------------------------- what standing asks for


def test_an_ankle_has_to_keep_its_load_from_tipping():
    """m g l, where an inverted pendulum on a spring becomes stable."""
    robot = stilt()
    assert asked_of(robot) == pytest.approx([10.0 * G * 0.8], rel=1e-3)
    for share, stands in ((0.9, False), (1.1, True)):
        sim = Simulator(robot, time_step=1e-3)
        kp, kd = share * asked_of(robot), np.array([10.0])
        start = sim.q.copy()
        start[3:7] = 0.0, np.sin(0.005), 0.0, np.cos(0.005)  # the ankle does the rest
        sim.reset(robot.with_joint_positions(start, [-0.01]))
        sim.follow(holding(np.zeros(1), kp, kd), 4000)
        lean = abs(sim.q[4])
        assert (lean < 0.005) == stands


def test_a_knee_in_front_of_its_foot_has_to_carry_the_weight():
    """W ∂z/∂q / SAG of static equilibrium, on top of what keeps it from tipping."""
    robot = load_robot('go1')
    model = robot.pinocchio_model
    data, q = model.createData(), robot.references['standing']
    vertical = np.array(
        [
            pin.computeFrameJacobian(
                model, data, q, model.getFrameId(point.frame), pin.LOCAL_WORLD_ALIGNED
            )[2, 6:]
            for point in robot.contact_points
        ]
    )
    sag = np.abs(vertical).sum(axis=0) * robot.total_mass * G / 4 / SAG
    tipping = asked_of(robot) - sag
    reach = 0.213  # thigh and shank are 0.213 m long
    quarter = robot.total_mass * G / 4
    assert np.all(tipping > 0.9 * quarter * reach)
    assert np.all(tipping < quarter * 2.0 * reach)


def test_where_the_robot_stands_and_looks_does_not_matter():
    robot = load_robot('anymal_b')
    q = robot.references['standing'].copy()
    q[:2] = 3.0, -2.0
    q[3:7] = 0.0, 0.0, np.sin(0.7), np.cos(0.7)
    assert asked_of(robot, q) == pytest.approx(asked_of(robot), rel=1e-12)


def test_a_hand_above_the_ground_carries_nothing():
    """SRDFs call hands end effectors, too; what is LEVEL of the height up does not stand."""
    feet = load_robot(*B1_Z1, feet=[f'{leg}_foot' for leg in ('FL', 'FR', 'RL', 'RR')])
    with_hand = load_robot(B1_Z1[0], srdf=B1_Z1_SRDF)
    feet = replace(feet, references=with_hand.references)
    assert len(with_hand.feet) == 5
    assert LEVEL < 0.5
    pose = 'standing_with_arm_up'
    for robot in (feet, with_hand):
        assert asked_of(robot, robot.references[pose]) == pytest.approx(
            asked_of(feet, feet.references[pose]), rel=1e-12
        )
    assert not asked_of(feet)[12:].any()


# ---------------------------------------------------------------- stability


B1_Z1 = (ROBOTS / 'b1_description/urdf/b1-z1.urdf',)
B1_Z1_SRDF = ROBOTS / 'b1_description/srdf/b1-z1.srdf'
STRANGERS = {
    'b1-z1': ('b1_description', 'urdf/b1-z1.urdf', 'srdf/b1-z1.srdf', 'standing_with_arm_home'),
    'anymal-kinova': (
        'anymal_b_simple_description', 'robots/anymal-kinova.urdf', 'srdf/anymal-kinova.srdf',
        'standing_with_arm_up',
    ),
    'g1': ('g1_description', 'urdf/g1_29dof_rev_1_0.urdf', None, 'standing'),
    'talos': ('talos_data', 'robots/talos_reduced.urdf', 'srdf/talos.srdf', 'half_sitting'),
    'romeo': (
        'romeo_description', 'urdf/romeo_small.urdf', 'srdf/romeo_small.srdf', 'half_sitting',
    ),
}  # fmt: skip
SOLES = {
    'g1': ('left_ankle_roll_link', 'right_ankle_roll_link'),
    'talos': ('leg_left_6_link', 'leg_right_6_link'),
    'romeo': ('l_ankle', 'r_ankle'),
}


def stranger(name):
    """Return a robot of example-robot-data that has no entry in the catalogue, on its soles."""
    folder, urdf, srdf, pose = STRANGERS[name]
    robot = load_robot(
        ROBOTS / folder / urdf, srdf=srdf and ROBOTS / folder / srdf, check_meshes=False,
    )  # fmt: skip
    robot = replace(robot, references={'standing': robot.references[pose]})
    if name not in SOLES:
        return robot
    bare = replace(robot, contact_points=()).with_body_contacts(SOLES[name])
    return replace(bare, contact_points=bare.body_points, collisions=NO_COLLISIONS)


@pytest.fixture(scope='module', params=STRANGERS)
def unknown(request):
    return stranger(request.param)


def test_gains_are_stable_up_to_the_time_step_they_declare(unknown):
    kp, kd = unknown.default_gains
    mobility, h = mobility_of(unknown), unknown.gains_time_step
    a, b = stability_number(mobility, kp, kd, h)
    assert a == pytest.approx(STIFFNESS_NUMBER, rel=1e-9)
    assert b == pytest.approx(DAMPING_NUMBER * h / TIME_STEP, rel=1e-9)
    n = unknown.n_joints
    for step in (0.2 * h, h):
        velocity = np.hstack([-step * mobility * kp, np.eye(n) - step * mobility * kd])
        position = np.hstack([np.eye(n), np.zeros((n, n))]) + step * velocity
        assert np.abs(np.linalg.eigvals(np.vstack([position, velocity]))).max() < 1.0


def test_a_time_step_below_5_ms_buys_the_margin_or_is_the_shortest(unknown):
    asked, kp = asked_of(unknown), unknown.default_gains[0]
    margin, h = np.min(kp[asked > 0.0] / asked[asked > 0.0]), unknown.gains_time_step
    assert 1e-3 <= h <= TIME_STEP
    if 1e-3 < h < TIME_STEP:
        assert margin == pytest.approx(MARGIN)
    else:
        assert (margin < MARGIN) == (h == 1e-3)


@pytest.mark.parametrize('name', ['a1', 'go2', 'anymal_c', 'solo8', 'hyq', 'quadruped'])
def test_quadrupeds_are_stable_up_to_5_ms(name):
    assert load_robot(name).gains_time_step == TIME_STEP


def test_a_finger_does_not_soften_the_legs():
    """A joint of 1e-8 kg m²: with one kp for all it would leave 4e-4 N m/rad to the legs."""
    robot = load_robot('go1')
    model = pin.Model(robot.pinocchio_model)
    finger = model.addJoint(
        1, pin.JointModelRX(), pin.SE3(np.eye(3), np.array([0.3, 0.0, 0.1])), 'finger'
    )
    model.appendBodyToJoint(
        finger, pin.Inertia(1e-4, np.zeros(3), 1e-8 * np.eye(3)), pin.SE3.Identity()
    )
    pose = pin.neutral(model)
    known = robot.references['standing']
    pose[:7] = known[:7]
    for name in robot.joint_names:
        new, old = model.joints[model.getJointId(name)], robot.pinocchio_model
        pose[new.idx_q] = known[old.joints[old.getJointId(name)].idx_q]
    fingered = replace(
        RobotModel.from_pinocchio(model, robot.contact_points), references={'standing': pose}
    )
    mine = dict(zip(fingered.joint_names, fingered.default_gains[0], strict=True))
    legs = dict(zip(robot.joint_names, robot.default_gains[0], strict=True))
    assert 0.0 < mine.pop('finger') < 1e-8 / TIME_STEP**2
    assert mine == pytest.approx(legs, rel=0.05)


def test_the_gains_of_joined_robots_are_stable_as_those_of_the_least():
    pair = joined({'dog': load_robot('go1'), 'man': stranger('g1')})
    assert pair.gains_time_step == stranger('g1').gains_time_step < TIME_STEP


def test_a_leg_of_one_joint_on_a_fixed_base_has_gains():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), 'knee')
    model.appendBodyToJoint(
        joint, pin.Inertia(1.0, np.array([0.0, 0.0, -0.2]), 1e-3 * np.eye(3)), pin.SE3.Identity()
    )
    model.addBodyFrame('shin', joint, pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.4])), 0)
    robot = RobotModel.from_pinocchio(model, ['shin'])
    kp, kd = robot.default_gains
    inertia = 1e-3 + 0.04
    assert kp == pytest.approx(STIFFNESS_NUMBER * inertia / robot.gains_time_step**2)
    assert kd == pytest.approx(DAMPING_NUMBER * inertia / TIME_STEP)


@pytest.mark.parametrize(('kp', 'kd'), [(1.0, 0.0), (0.0, 1.0), (7.0, 0.3)])
def test_the_largest_time_step_is_the_limit_of_stability(kp, kd):
    mobility = np.array([[2.0]])
    h = largest_time_step(mobility, np.array([kp]), np.array([kd]))
    a, b = stability_number(mobility, np.array([kp]), np.array([kd]), h)
    assert a + 2.0 * b == pytest.approx(4.0)
    assert largest_time_step(mobility, np.zeros(1), np.zeros(1)) == np.inf


# ---------------------------------------------------------------- standing


def stands(robot, h):
    """Return by how much the base sinks [m], and its lean [rad], after 5 s in default gains."""
    sim = Simulator(robot, time_step=h)
    start = sim.q.copy()
    hold = holding(robot.joint_positions(start), *robot.default_gains)
    sim.follow(hold, round(5.0 / h))
    up, was = (pin.XYZQUATToSE3(q[:7]).rotation for q in (sim.q, start))
    return start[2] - sim.q[2], np.arccos(np.clip((was.T @ up)[2, 2], -1.0, 1.0))


@pytest.mark.parametrize('name', STRANGERS)
def test_robots_with_arms_and_humanoids_stand_on_their_soles(name):
    sunk, lean = stands(stranger(name), 1e-3)
    assert abs(sunk) < 0.01
    assert lean < np.radians(3.0)


@pytest.mark.parametrize('name', ['b1-z1', 'anymal-kinova'])
def test_quadrupeds_with_arms_stand_at_the_time_step_of_their_gains(name):
    robot = stranger(name)
    sunk, lean = stands(robot, robot.gains_time_step)
    assert abs(sunk) < 0.02
    assert lean < np.radians(3.0)


# ---------------------------------------------------------------- in words


def test_a_line_says_which_gains_act():
    robot = load_robot('go1')
    q = robot.references['standing']
    kp, kd = robot.default_gains
    line = describe_gains(robot, kp, kd, q)
    assert "the robot's own in 12 of 12 joints" in line
    assert f'{kp.min():.4g} (' in line
    assert 'below 0.0052 s' in line
    assert '\n' not in line
    stiff = describe_gains(robot, np.full(12, 1e4), kd, q)
    assert 'own in 0 of 12' in stiff
    assert float(stiff.split('below ')[1].split()[0]) < 2e-3
    assert gain_table(robot, kp, kd).count(' p ') == 12
    still = RobotModel.from_pinocchio(robot.pinocchio_model, actuated_joints=())
    assert describe_gains(still, *still.default_gains, q) == 'PD gains: no joint is driven'
