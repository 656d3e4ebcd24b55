"""The robots of the catalogue against numbers measured without contact_sim."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import null_space

from contact_sim import load_robot, robots
from contact_sim.errors import RobotDescriptionError, UnknownName
from contact_sim.robot import _catalogue

UNITREE = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
ANYMAL = ('LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT')
SOLO = ('FL_FOOT', 'FR_FOOT', 'HL_FOOT', 'HR_FOOT')
HYQ = ('lf_foot', 'rf_foot', 'lh_foot', 'rh_foot')

# root link, mass [kg], feet, radius [m], height of the sphere above the foot frame along the leg
# [m], base height with the feet on the ground [m]: from the URDFs and meshes with Pinocchio alone
FACTS = {
    'a1': ('base', 13.741, UNITREE, 0.020, 0.0, 0.2657),
    'go1': ('base', 13.101, UNITREE, 0.020, 0.0, 0.2738),
    'go2': ('base', 16.085, UNITREE, 0.022, 0.0, 0.3351),
    'b1': ('base', 55.689, UNITREE, 0.040, 0.0, 0.5277),
    'laikago': ('trunk', 25.433, UNITREE, 0.0265, 0.0, 0.4316),
    'anymal_b': ('base', 30.475, ANYMAL, 0.031, 0.02325, 0.4881),
    'anymal_c': ('base', 52.135, ANYMAL, 0.030, 0.0225, 0.5406),
    'solo8': ('base_link', 2.178, SOLO, 0.016, 0.0, 0.2389),
    'solo12': ('base_link', 2.500, SOLO, 0.016, 0.0, 0.2320),
    'hyq': ('base_link', 86.774, HYQ, 0.02175, 0.0, 0.5993),
    'quadruped': ('base_link', 13.6, ANYMAL, 0.022, 0.0, 2 * 0.21 * np.cos(0.75) + 0.022),
    'four_bar_quadruped': (
        'base_link', 14.24, ANYMAL, 0.022, 0.0, 2 * 0.21 * np.cos(0.75) + 0.022,
    ),
}  # fmt: skip
OURS = 'quadruped', 'four_bar_quadruped'
PASSIVE = {'four_bar_quadruped': 8}
"""Joints without a motor: a knee and the bearing of a rod in each leg."""
# the table is rounded to 0.1 mm; the feet of go2 and solo12 (tilted discs) are meshes there
HEIGHT_TOLERANCE = dict.fromkeys(FACTS, 1e-4) | {'go2': 1e-3, 'solo12': 2e-4}

JOINT_ORDER = {
    'go1': [
        f'{leg}_{j}_joint' for leg in ('FL', 'FR', 'RL', 'RR') for j in ('hip', 'thigh', 'calf')
    ],
    'anymal_b': [f'{leg}_{j}' for leg in ('LF', 'LH', 'RF', 'RH') for j in ('HAA', 'HFE', 'KFE')],
    'solo8': [f'{leg}_{j}' for leg in ('FL', 'FR', 'HL', 'HR') for j in ('HFE', 'KFE')],
    'hyq': [f'{leg}_{j}_joint' for leg in ('lf', 'lh', 'rf', 'rh') for j in ('haa', 'hfe', 'kfe')],
    'quadruped': [f'{leg}_{j}' for leg in ('LF', 'LH', 'RF', 'RH') for j in ('HAA', 'HFE', 'KFE')],
}


@pytest.fixture(scope='module', params=robots())
def robot(request):
    return load_robot(request.param)


def sphere_bottoms(robot, q):
    """Return the lowest point of each foot, by frame kinematics and not by ours."""
    _, _, _, radius, above, _ = FACTS[robot.name]
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    pin.framesForwardKinematics(model, data, q)
    centre = np.array([-0.002 if robot.name == 'go2' else 0.0, 0.0, above])
    feet = [data.oMf[model.getFrameId(frame)] for frame in FACTS[robot.name][2]]
    return np.array([foot.act(centre)[2] - radius for foot in feet])


def test_the_catalogue_lists_these_robots():
    assert set(robots()) == set(FACTS)


def test_mass_is_the_sum_over_the_links(robot):
    text = ElementTree.fromstring(robot.description)
    total = sum(float(mass.get('value')) for mass in text.iterfind('link/inertial/mass'))
    assert robot.total_mass == pytest.approx(total, rel=1e-12)
    assert robot.total_mass == pytest.approx(FACTS[robot.name][1], abs=6e-4)


def test_sizes_and_base(robot):
    joints = 8 if robot.name == 'solo8' else 12
    moving = joints + PASSIVE.get(robot.name, 0)
    assert (robot.n_joints, robot.nq, robot.nv) == (joints, moving + 7, moving + 6)
    assert len(robot.passive_joint_names) == moving - joints
    assert robot.floating_base
    assert robot.base_frame == FACTS[robot.name][0]


def test_feet_are_spheres_of_the_known_radius(robot):
    _, _, feet, radius, above, _ = FACTS[robot.name]
    assert tuple(point.name for point in robot.contact_points) == feet
    assert tuple(point.frame for point in robot.contact_points) == feet
    assert [point.radius for point in robot.contact_points] == pytest.approx([radius] * 4)
    for point in robot.contact_points:
        frame = robot.pinocchio_model.frames[robot.pinocchio_model.getFrameId(point.frame)]
        assert robot.pinocchio_model.names[frame.parentJoint] == point.joint
        in_foot = frame.placement.actInv(point.offset)
        assert in_foot[2] == pytest.approx(above, abs=1e-12)
        assert np.hypot(in_foot[0], in_foot[1]) <= 0.002 + 1e-12


def test_standing_puts_the_lowest_foot_on_the_ground(robot):
    for pose in robot.reference_configurations:
        bottoms = sphere_bottoms(robot, robot.reference_configuration(pose))
        assert abs(bottoms.min()) < 1e-12
        assert bottoms.max() < 1e-3  # all four feet are down in every pose of the catalogue


def test_standing_height(robot):
    height = robot.reference_configuration('standing')[2]
    assert height == pytest.approx(FACTS[robot.name][5], abs=HEIGHT_TOLERANCE[robot.name])


@pytest.mark.parametrize(('name', 'height'), [('solo12', 0.2389), ('hyq', 0.6110)])
def test_straight_standing_height(name, height):
    pose = load_robot(name).reference_configuration('straight_standing')
    assert pose[2] == pytest.approx(height, abs=1e-4)


@pytest.mark.parametrize(
    ('name', 'leg', 'angles'),
    [
        ('a1', 'FL', (0.0, 0.8, -1.81)),
        ('go1', 'RR', (0.0, 0.8, -1.853)),
        ('go2', 'FR', (-0.068, 0.785, -1.44)),
        ('b1', 'RL', (0.0, 0.8, -1.6)),
        ('laikago', 'FL', (0.0, 0.67, -1.25)),
        ('anymal_b', 'RH', (0.1, -0.7, 1.0)),
        ('anymal_c', 'LF', (-0.1, 0.7, -1.0)),
        ('solo8', 'HL', (-0.8, 1.6)),
        ('solo12', 'FR', (-0.1, 0.8, -1.6)),
        ('hyq', 'lh', (-0.2, -0.75, 1.5)),
    ],
)
def test_standing_joints(name, leg, angles):
    robot = load_robot(name)
    positions = robot.joint_positions(robot.reference_configuration('standing'))
    of_leg = [p for joint, p in zip(robot.joint_names, positions, strict=True) if leg in joint]
    assert of_leg == pytest.approx(angles, abs=1e-12)


def test_standing_is_upright_and_within_the_limits(robot):
    q = robot.reference_configuration('standing')
    assert np.array_equal(q[:2], [0.0, 0.0])
    assert np.array_equal(q[3:7], [0.0, 0.0, 0.0, 1.0])
    positions = robot.joint_positions(q)
    assert np.all(robot.lower_position_limit <= positions)
    assert np.all(positions <= robot.upper_position_limit)


@pytest.mark.parametrize('name', JOINT_ORDER)
def test_joint_order_is_that_of_pinocchio(name):
    assert list(load_robot(name).joint_names) == JOINT_ORDER[name]


def test_selection_matrix_picks_the_joints(robot):
    selection = robot.selection_matrix
    v = np.random.default_rng(0).normal(size=robot.nv)
    model = robot.pinocchio_model
    dofs = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    assert np.array_equal(selection @ v, v[dofs])
    assert np.array_equal(selection @ v, robot.joint_velocities(v))
    assert np.array_equal(robot.joint_velocity_index, dofs)
    assert PASSIVE.get(robot.name) or dofs == list(range(6, robot.nv))
    assert np.array_equal(selection @ selection.T, np.eye(robot.n_joints))


@pytest.mark.parametrize(
    ('name', 'effort', 'velocity'),
    [
        ('a1', (33.5, 33.5, 33.5), (21.0, 21.0, 21.0)),
        ('go1', (23.7, 23.7, 35.55), (30.1, 30.1, 20.06)),
        ('go2', (23.7, 23.7, 45.43), (30.1, 30.1, 15.7)),
        ('laikago', (20.0, 55.0, 55.0), None),
        ('anymal_b', (80.0, 80.0, 80.0), (15.0, 15.0, 15.0)),
        ('anymal_c', (80.0, 80.0, 80.0), (7.5, 7.5, 7.5)),
        ('solo12', (1000.0, 1000.0, 1000.0), (1000.0, 1000.0, 1000.0)),
        ('hyq', (150.0, 150.0, 150.0), (12.0, 12.0, 12.0)),
        ('quadruped', (24.0, 24.0, 36.0), (30.0, 30.0, 20.0)),
    ],
)
def test_limits_of_effort_and_velocity(name, effort, velocity):
    robot = load_robot(name)
    assert robot.effort_limit.tolist() == list(effort) * 4
    if velocity is not None:
        assert robot.velocity_limit == pytest.approx(velocity * 4, abs=0.01)


@pytest.mark.parametrize(
    ('name', 'damping', 'friction'),
    [('go1', 0.01, 0.2), ('hyq', 0.1, 0.0), ('anymal_b', 0.0, 0.0), ('quadruped', 0.02, 0.0)],
)
def test_dynamics_of_the_urdf_are_kept(name, damping, friction):
    robot = load_robot(name)
    assert robot.joint_damping.tolist() == [0.0] * 6 + [damping] * robot.n_joints
    assert robot.joint_friction.tolist() == [0.0] * 6 + [friction] * robot.n_joints


def foot_jacobians(robot, q):
    """Return the Jacobians of the sphere centres, (n_feet, 6, nv), world axes."""
    model = pin.Model(robot.pinocchio_model)
    frames = [
        model.addFrame(
            pin.Frame(
                f'{point.name}_centre',
                model.getJointId(point.joint),
                pin.SE3(np.eye(3), point.offset),
                pin.FrameType.OP_FRAME,
            )
        )
        for point in robot.contact_points
    ]
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    axes = pin.LOCAL_WORLD_ALIGNED
    return np.array([pin.getFrameJacobian(model, data, frame, axes) for frame in frames])


@pytest.mark.parametrize(('name', 'rank'), [('solo8', 10), ('anymal_b', 12), ('go1', 12)])
def test_rank_of_the_four_feet(name, rank):
    robot = load_robot(name)
    linear = foot_jacobians(robot, robot.reference_configuration('standing'))[:, :3]
    assert np.linalg.matrix_rank(linear.reshape(12, robot.nv), tol=1e-9) == rank


def air_step(robot, h):
    """Return the matrix that steps (position error, velocity) of the joints in the air."""
    model, n = robot.pinocchio_model, robot.n_joints
    mass = pin.crba(model, model.createData(), robot.reference_configuration('standing'))
    mass = np.triu(mass) + np.triu(mass, 1).T
    H, driven = robot.loops.jacobian(robot.references['standing']), robot.joint_velocity_index
    free = null_space(H, rcond=1e-9) if len(H) else np.eye(robot.nv)  # v that its loops leave
    mobility = (free @ np.linalg.inv(free.T @ mass @ free) @ free.T)[np.ix_(driven, driven)]
    kp, kd = robot.default_gains
    velocity = np.hstack([-h * mobility * kp, np.eye(n) - h * mobility * kd])
    position = np.hstack([np.eye(n), np.zeros((n, n))]) + h * velocity
    return np.vstack([position, velocity])


@pytest.mark.parametrize('h', [0.25e-3, 1e-3, 2e-3, 5e-3])
def test_gains_are_stable_in_the_air(robot, h):
    assert np.abs(np.linalg.eigvals(air_step(robot, h))).max() < 1.0


def test_gains_carry_the_weight_with_a_small_sag(robot):
    kp, kd = robot.default_gains
    assert kp.shape == kd.shape == (robot.n_joints,)
    quarter = robot.total_mass * 9.81 / 4
    vertical = foot_jacobians(robot, robot.reference_configuration('standing'))[:, 2]
    H = robot.loops.jacobian(robot.references['standing'])
    free = null_space(H, rcond=1e-9) if len(H) else np.eye(robot.nv)
    with_joints = free @ np.linalg.inv(free[np.r_[0:6, robot.joint_velocity_index]])
    efforts = -quarter * (vertical.sum(axis=0) @ with_joints)[6:]
    assert np.abs(efforts / kp).max() < 0.08  # rad
    assert np.all(np.abs(efforts) < robot.effort_limit)


def test_gains_are_new_arrays_each_time(robot):
    robot.default_gains[0][:] = 0.0
    assert robot.default_gains[0].min() > 0.0


def test_every_mesh_is_found_without_ros(robot):
    text = ElementTree.fromstring(robot.description)
    inside = [mesh.get('filename').removeprefix('package://') for mesh in text.iter('mesh')]
    for path in inside:
        assert any(Path(folder, path).is_file() for folder in robot.package_dirs)
    assert bool(inside) == (robot.name not in OURS)


def test_b1_has_the_mesh_that_its_file_misplaces():
    assert 'package://b1_description' not in load_robot('b1').description


def test_visual_geometry_loads_with_package_dirs():
    robot = load_robot('hyq')
    geometry = pin.buildGeomFromUrdfString(
        robot.pinocchio_model,
        robot.description,
        pin.GeometryType.VISUAL,
        package_dirs=list(robot.package_dirs),
    )
    visuals = ElementTree.fromstring(robot.description).findall('link/visual')
    assert geometry.ngeoms == len(visuals) > 12


def test_fixed_base():
    robot = load_robot('go1', floating_base=False)
    assert not robot.floating_base
    assert (robot.nq, robot.nv, robot.n_joints) == (12, 12, 12)
    assert robot.base_frame == 'base'
    hanging = robot.reference_configuration('standing')
    assert hanging.tolist() == [0.0, 0.8, -1.853] * 4
    assert np.array_equal(robot.selection_matrix, np.eye(12))


def test_unknown_robot_lists_the_catalogue():
    with pytest.raises(
        UnknownName, match=r"unknown robot or file 'go3'; known: a1, go1, .*anymal_b"
    ):
        load_robot('go3')


def test_missing_data_package_names_both_packages(monkeypatch):
    monkeypatch.setattr(_catalogue, 'share_folders', lambda: ())
    with pytest.raises(RobotDescriptionError) as caught:
        load_robot('go1')
    message = str(caught.value)
    assert 'pip install example-robot-data' in message
    assert 'ROS package example_robot_descriptions' in message
    assert "'quadruped' comes with contact_sim" in message
    assert load_robot('quadruped').name == 'quadruped'  # ours needs no other package


def test_the_default_robot_is_ours_where_the_others_are_not_installed(monkeypatch, tmp_path):
    assert _catalogue.default_robot() == 'go1'
    (tmp_path / 'example-robot-data' / 'robots').mkdir(parents=True)
    for folders in ((), (tmp_path,)):  # no package, or one that has no go1
        monkeypatch.setattr(_catalogue, 'share_folders', lambda folders=folders: folders)
        assert _catalogue.default_robot() == 'quadruped'
        assert load_robot(_catalogue.default_robot()).total_mass > 0.0


def test_robots_of_a_ros_workspace(monkeypatch, tmp_path):
    """A workspace that has the robots, and a Python environment that does not."""
    pip = load_robot('go1')
    share = tmp_path / 'share'
    share.mkdir()
    (share / 'example-robot-data').symlink_to(Path(*pip.package_dirs, 'example-robot-data'))
    monkeypatch.setattr(sys, 'path', [])
    monkeypatch.setattr(sys, 'prefix', str(tmp_path / 'venv'))
    with pytest.raises(RobotDescriptionError, match=r'the robot files .* are not installed'):
        load_robot('go1')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    ros = load_robot('go1')
    assert ros.package_dirs == (str(share),)
    assert ros.description == pip.description


def test_data_package_without_the_robot(monkeypatch, tmp_path):
    (tmp_path / 'example-robot-data' / 'robots').mkdir(parents=True)
    monkeypatch.setattr(_catalogue, 'share_folders', lambda: (tmp_path,))
    with pytest.raises(RobotDescriptionError, match='no file robots/go1_description/urdf/go1'):
        load_robot('go1')
