"""Our own quadruped: sensible numbers from the xacro."""

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from robots import centre_of_mass_acceleration, stand

from contact_sim import Simulator, load_robot
from contact_sim.robot._files import share_path

ROBOT = load_robot('quadruped')
URDF = ElementTree.fromstring(ROBOT.description)
LINKS = {link.get('name'): link for link in URDF.iterfind('link')}
MASSIVE = [name for name, link in LINKS.items() if link.find('inertial') is not None]


def inertia_of(name):
    entry = LINKS[name].find('inertial/inertia')
    xx, xy, xz, yy, yz, zz = (
        float(entry.get(key)) for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    )
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def mass_of(name):
    return float(LINKS[name].find('inertial/mass').get('value'))


@pytest.mark.parametrize('name', MASSIVE)
def test_moments_obey_the_triangle_inequality(name):
    low, middle, high = np.linalg.eigvalsh(inertia_of(name))
    assert low > 0.0
    assert high <= low + middle + 1e-15


def test_inertias_of_the_three_shapes():
    # the textbook's formulas at the dimensions of the file
    x, y, z = 0.38, 0.17, 0.11
    trunk = 5.6 / 12 * np.diag([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    assert inertia_of('trunk') == pytest.approx(trunk)
    radius, length = 0.012, 0.21
    across = 0.2 * (radius**2 / 4 + length**2 / 12)
    assert inertia_of('LF_SHANK') == pytest.approx(np.diag([across, across, 0.1 * radius**2]))
    assert inertia_of('RH_FOOT') == pytest.approx(2 / 5 * 0.06 * 0.022**2 * np.eye(3))


def test_mass():
    assert ROBOT.total_mass == pytest.approx(5.6 + 4 * (0.7 + 0.4 + 0.64 + 0.2 + 0.06))


def test_left_and_right_are_mirror_images():
    model, data = ROBOT.pinocchio_model, ROBOT.pinocchio_model.createData()
    q = ROBOT.reference_configuration('standing')
    centre = pin.centerOfMass(model, data, q)
    assert centre[1] == pytest.approx(0.0, abs=1e-12)
    assert abs(centre[0]) < 0.02


def test_the_weight_falls_between_the_feet():
    model, data = ROBOT.pinocchio_model, ROBOT.pinocchio_model.createData()
    q = ROBOT.reference_configuration('standing')
    pin.framesForwardKinematics(model, data, q)
    feet = {p.name: data.oMf[model.getFrameId(p.frame)].translation for p in ROBOT.contact_points}
    centre = pin.centerOfMass(model, data, q)
    assert feet['LH_FOOT'][0] < centre[0] < feet['LF_FOOT'][0]
    assert feet['RF_FOOT'][1] < centre[1] < feet['LF_FOOT'][1]


@pytest.mark.parametrize(
    ('pose', 'thigh'), [('standing', 0.75), ('crouching', 1.1), ('straight_standing', 0.4)]
)
def test_heights_of_the_poses(pose, thigh):
    # both segments are 0.21 m and make the same angle with the vertical
    height = ROBOT.reference_configuration(pose)[2]
    assert height == pytest.approx(0.42 * np.cos(thigh) + 0.022, abs=1e-12)


def test_poses_are_within_the_limits():
    for pose in ROBOT.reference_configurations:
        positions = ROBOT.joint_positions(ROBOT.reference_configuration(pose))
        assert np.all(ROBOT.lower_position_limit < positions)
        assert np.all(positions < ROBOT.upper_position_limit)


def test_no_meshes_and_an_imu():
    assert URDF.find('.//mesh') is None
    assert ROBOT.pinocchio_model.existFrame('imu_link')


def test_it_stands_on_half_its_torque():
    model, data = ROBOT.pinocchio_model, ROBOT.pinocchio_model.createData()
    q = ROBOT.reference_configuration('standing')
    pin.computeJointJacobians(model, data, q)
    pin.framesForwardKinematics(model, data, q)
    effort = pin.computeGeneralizedGravity(model, data, q)
    for point in ROBOT.contact_points:
        frame = model.getFrameId(point.frame)
        jacobian = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        effort -= jacobian.T[:, 2] * ROBOT.total_mass * 9.81 / 4
    assert np.all(np.abs(effort[6:]) < 0.5 * ROBOT.effort_limit)


def test_it_stands():
    sim = Simulator(ROBOT, 'ncp', friction=0.8)
    reports = stand(sim, 3000)
    weight = ROBOT.total_mass * 9.81
    upward = np.array([0.0, 0.0, 9.81])
    for report in reports[-500:]:
        contacts = report.contacts
        acceleration = centre_of_mass_acceleration(ROBOT, report)
        expected = ROBOT.total_mass * (acceleration + upward)
        assert np.abs(contacts.force.sum(axis=0) - expected).max() < 1e-9 * weight
        # the trunk still sways a little on its springs
        assert contacts.force[:, 2].sum() == pytest.approx(weight, rel=0.01)
        assert contacts.force[:, 2].min() > 0.15 * weight  # every leg carries its part
        assert np.abs(contacts.gap).max() < 1e-6
        assert contacts.slip_speed.max() < 1e-9
    start = ROBOT.reference_configuration('standing')
    assert np.abs(sim.q[:3] - start[:3]).max() < 0.02  # m, the sag of soft joints
    assert sim.q[6] > 0.999  # upright


def test_mass_is_that_of_a_small_quadruped():
    assert 12.0 < ROBOT.total_mass < 15.0


def test_loading_by_path_gives_the_same_robot():
    by_path = load_robot(
        share_path('urdf', 'quadruped.urdf.xacro'), srdf=share_path('urdf', 'quadruped.srdf')
    )
    assert by_path.name == 'quadruped'
    assert [p.name for p in by_path.contact_points] == [p.name for p in ROBOT.contact_points]
    assert [p.radius for p in by_path.contact_points] == [0.022] * 4
    standing = by_path.reference_configuration('standing')
    assert np.array_equal(standing, ROBOT.reference_configuration('standing'))
