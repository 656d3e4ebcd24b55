"""The pose of robots whose description has none: bent legs, level, balanced, within limits."""

import time

import numpy as np
import pinocchio as pin
import pytest
from legged import biped, quadruped

from contact_sim import Simulator, joined, load_robot
from contact_sim.robot._actuators import holding
from contact_sim.robot._standing_pose import lowest_heights, polygon_centre, polygon_margin

FEET = ('foot_fl', 'foot_fr', 'foot_hl', 'foot_hr')
SOLES = ('sole_l', 'sole_r')


def two_legs(**said):
    return load_robot(biped(**said), feet=SOLES)


def four_legs(**said):
    return load_robot(quadruped(**said), feet=FEET)


ROBOTS = {
    'quadruped': four_legs,
    'quadruped with a heavy head': lambda: four_legs(head=6.0),
    'knees ahead': lambda: four_legs(knee=(0.1, 2.6)),
    'biped': two_legs,
    'biped with a load before it': lambda: two_legs(load=4.0),
    'biped with soles of spheres': lambda: two_legs(spheres=True),
}


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    return ROBOTS[request.param]()


def ground_points(robot, q):
    """Where the contact points are that are on the ground, and the height of each foot."""
    low = lowest_heights(robot.pinocchio_model, robot.contact_points, q)
    data = robot.pinocchio_model.createData()
    pin.forwardKinematics(robot.pinocchio_model, data, q)
    index = robot.pinocchio_model.getJointId
    places = [data.oMi[index(p.joint)].act(p.offset)[:2] for p in robot.contact_points]
    feet = [min(low[list(foot.points)]) for foot in robot.feet]
    return np.array(places)[low < 1e-6], np.array(feet)


def test_feet_are_at_one_height_and_soles_are_level(robot):
    points, feet = ground_points(robot, robot.reference_configuration())
    assert np.abs(feet).max() < 1e-6
    assert len(points) == (4 if len(feet) == 4 else 8)


def test_the_centre_of_mass_is_well_inside_the_support_polygon(robot):
    q = robot.reference_configuration()
    points, _ = ground_points(robot, q)
    model = robot.pinocchio_model
    mass = pin.centerOfMass(model, model.createData(), q)[:2]
    middle = polygon_margin(points, polygon_centre(points))
    assert polygon_margin(points, mass) > 0.7 * middle > 0.01


def test_joints_are_within_their_limits_and_knees_are_bent(robot):
    q = robot.joint_positions(robot.reference_configuration())
    assert (q > robot.lower_position_limit).all()
    assert (q < robot.upper_position_limit).all()
    knees = [k for k, name in enumerate(robot.joint_names) if 'knee' in name]
    assert (np.abs(q[knees]) > 0.4).all()
    assert robot.reference_configuration()[3:7].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_left_and_right_are_mirrored(robot):
    angle = dict(
        zip(robot.joint_names, robot.joint_positions(robot.reference_configuration()), strict=True)
    )
    for name, value in angle.items():
        if name.endswith('l') and 'knee' in name:
            assert angle[name[:-1] + 'r'] == pytest.approx(value, abs=1e-6)


def test_it_stands_for_two_seconds_under_ncp(robot):
    """On gains of its own: this is about the pose."""
    sim = Simulator(robot, 'ncp', friction=0.8)
    start = robot.reference_configuration()
    stiff = np.full(robot.n_joints, 300.0)
    report = sim.follow(holding(robot.joint_positions(start), stiff, 0.03 * stiff), 2000)
    assert report.q[2] > 0.97 * start[2]
    assert pin.Quaternion(report.q[3:7]).angularDistance(pin.Quaternion(start[3:7])) < 0.1
    weight = robot.total_mass * 9.81
    assert report.contacts.normal_force.sum() == pytest.approx(weight, rel=1e-2)


def test_it_says_so_and_is_quick_and_the_same_again():
    before = time.perf_counter()
    robot = two_legs()
    assert time.perf_counter() - before < 1.0
    (note,) = [note for note in robot.notes if note.startswith("pose 'standing'")]
    assert note == "pose 'standing': legs bent to 90 % of their length by a search"
    assert np.array_equal(two_legs().references['standing'], robot.references['standing'])


def test_joined_robots_say_it_of_each():
    both = joined({'a': four_legs(), 'b': four_legs(bent=0.5)}, {'b': (2.0, 0.0)})
    assert [note.partition(': ')[0] for note in both.notes] == ['a', 'b']


def test_a_neutral_pose_that_stands_on_bent_legs_stays():
    robot = four_legs(bent=0.5)
    assert np.array_equal(robot.joint_positions(robot.references['standing']), np.zeros(12))
    assert any('the neutral pose stands on bent legs' in note for note in robot.notes)


@pytest.mark.parametrize(
    ('text', 'feet', 'reason'),
    [
        (quadruped(knee=(-0.02, 0.02)), FEET, 'no bent legs within the position limits'),
        (quadruped(knee=(0.0, 0.0)), FEET, 'position limits without room: knee_fl'),
        (biped(), ['sole_l'], 'no legs to bend'),
        (quadruped(mimic=True), FEET, 'joints of the legs follow others or are in loops: '),
        (quadruped(head=400.0), FEET, 'no bent legs within the position limits'),
    ],
)
def test_where_legs_do_not_allow_it_the_pose_is_neutral(text, feet, reason):
    robot = load_robot(text, feet=feet)
    assert any(note.startswith(f"pose 'standing': {reason}") for note in robot.notes)
    assert not robot.references['standing'][:6].any()


def test_feet_with_corners_that_are_no_sole():
    """Their lowest point changes as they turn; without an ankle they are points."""
    box = '<box size="0.015 0.015 0.015"/>'
    robot = load_robot(quadruped().replace('<sphere radius="0.02"/>', box), feet=FEET)
    assert any('legs bent to 90 %' in note for note in robot.notes)
    _, feet = ground_points(robot, robot.reference_configuration())
    assert np.abs(feet).max() < 1e-6


def test_joints_whose_limit_says_no_positions_have_none():
    """Pinocchio reads 0 to 0; many exporters write so."""
    silent = quadruped().replace('lower="-2.5" upper="2.5" ', '')
    robot = load_robot(silent, feet=FEET)
    assert robot.notes == four_legs().notes
    poses = robot.references['standing'], four_legs().references['standing']
    assert np.abs(poses[0] - poses[1]).max() < 0.01


def test_feet_on_a_line_carry_nothing():
    """Two soles of two balls each, one behind the other, and a hair wide."""
    narrow = biped(spheres=True)
    for y in ('-0.03', '0.03'):
        narrow = narrow.replace(f'{y} -0.065', '0.0001 -0.065' if y[0] == '-' else '0 -0.065')
    robot = load_robot(narrow.replace('0 0.1 0', '0 0.001 0').replace('0 -0.1 0', '0 0 0'),
                       feet=SOLES)  # fmt: skip
    assert any('no bent legs' in note for note in robot.notes)


def test_poses_that_are_given_or_described_win():
    given = {'standing': {'knee_fl': -0.7}}
    robot = load_robot(quadruped(), feet=FEET, poses=given)
    q = robot.joint_positions(robot.references['standing'])
    assert q[robot.joint_names.index('knee_fl')] == -0.7
    assert sorted(q.tolist()) == [-0.7, -0.1, -0.1, -0.1, *[0.0] * 8]  # the rest is neutral
    assert robot.notes == ()
    go1 = load_robot('go1')
    assert go1.notes == ()


def test_no_pose_without_feet_or_with_a_fixed_base():
    for said in ({'feet': ()}, {'feet': FEET, 'floating_base': False}):
        robot = load_robot(quadruped(), **said)
        q = robot.joint_positions(robot.references['standing'])
        assert sorted(q.tolist()) == [*[-0.1] * 4, *[0.0] * 8]
        assert robot.notes == ()
