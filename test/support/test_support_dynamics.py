"""Floating-base dynamics against the numbers of theory 1.3 and against Pinocchio."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from robots import stand
from urdf_texts import robot as urdf_robot

from contact_sim import (
    InvalidInput,
    RobotModel,
    Simulator,
    UnknownName,
    analyse_support,
    load_robot,
    support,
)

GRAVITY = 9.81
NAMES = ('go1', 'anymal_b', 'solo12', 'solo8', 'hyq')
robot_of = cache(load_robot)


def bent(robot, seed, size=0.3):
    rng = np.random.default_rng(seed)
    standing = robot.reference_configuration()
    q = pin.integrate(robot.pinocchio_model, standing, size * rng.standard_normal(robot.nv))
    return q, rng.standard_normal(robot.nv), rng.standard_normal(robot.n_joints)


def on_points(name):
    """The robot on the centres of its feet: points fixed to the feet, as Pinocchio has them."""
    robot = robot_of(name)
    points = [replace(point, radius=0.0) for point in robot.contact_points]
    names = robot.joint_names
    return RobotModel.from_pinocchio(robot.pinocchio_model, points, names, name)


# -------------------------------------------------------------------- cart-pendulum (E6, E11-E13)

LENGTH, ANGLE = 0.5, 0.6
CART = urdf_robot(
    '<link name="world_link"/>',
    '<link name="cart"><inertial><mass value="2"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>',
    '<link name="pendulum"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>'
    f'<inertia ixx="{0.25 / 3}" ixy="0" ixz="0" iyy="{0.25 / 3}" iyz="0" izz="0.01"/>'
    '</inertial></link><link name="P"/>',
    '<joint name="slide" type="prismatic"><parent link="world_link"/><child link="cart"/>'
    '<axis xyz="1 0 0"/><limit lower="-9" upper="9" effort="1" velocity="9"/></joint>',
    '<joint name="swing" type="revolute"><parent link="cart"/><child link="pendulum"/>'
    '<axis xyz="0 -1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>',
    '<joint name="tip" type="fixed"><parent link="pendulum"/><child link="P"/>'
    '<origin xyz="0 0 -1"/></joint>',
    name='cart_pendulum',
)
BOTH, VERTICAL, HORIZONTAL = ('t1', 'n'), ('n',), ('t1',)
VELOCITY = {
    BOTH: (0.0, 0.0),
    VERTICAL: (0.3, 0.0),
    HORIZONTAL: (-2 * LENGTH * np.cos(ANGLE) * 0.8, 0.8),
}
"""Consistent with the locked directions."""
Q = np.array([0.0, ANGLE])


@pytest.fixture(scope='module')
def cart():
    return load_robot(CART, False, feet=['P'], actuated_joints=['swing'])


def locked(cart, directions, v=None):
    return support.stance_dynamics(cart, Q, v or VELOCITY[directions], ['P'], directions)


def test_cart_pendulum_has_the_matrices_of_the_lecture(cart):
    s = support.stance_dynamics(cart, Q, (0.3, 0.8), ['P'], BOTH)
    m, c = LENGTH * np.cos(ANGLE), 2 * LENGTH
    assert s.inertia == pytest.approx(np.array([[3.0, m], [m, 0.25 + 0.25 / 3]]), abs=1e-12)
    h = (-(0.8**2) * LENGTH * np.sin(ANGLE), GRAVITY * LENGTH * np.sin(ANGLE))
    assert s.nonlinear_effects == pytest.approx(h, abs=1e-12)
    jacobian = np.array([[1.0, c * np.cos(ANGLE)], [0.0, c * np.sin(ANGLE)]])
    assert s.contact_jacobian == pytest.approx(jacobian, abs=1e-12)
    assert np.array_equal(s.selection_matrix, [[0.0, 1.0]])
    tau = support.generalized_force(cart, [1.5])
    free = support.free_acceleration(s, tau)
    assert free == pytest.approx([0.70403282, -4.68030904], abs=1e-8)


@pytest.mark.parametrize(
    ('directions', 'ranks'), [(BOTH, (2, 1, 1)), (VERTICAL, (1, 0, 1)), (HORIZONTAL, (1, 1, 0))]
)
def test_cart_pendulum_ranks(cart, directions, ranks):
    """theory E6; the base is the cart, which no motor drives."""
    s = analyse_support(cart, Q, ['P'], directions)
    assert (s.rank, s.base_rank, s.internal_constraints) == ranks
    assert s.uncontrollable_base_dof == 1 - s.base_rank
    with pytest.raises(InvalidInput, match='base of robot cart_pendulum is fixed'):
        _ = s.uncontrollable_base_directions


@pytest.mark.parametrize(
    ('directions', 'source_force', 'acceleration', 'projected_torque'),
    [
        (BOTH, (0.0, -2.2484517), (0.0, 0.0), (0.0, 0.0)),
        (VERTICAL, (-2.2484517,), (0.0, 0.0), (0.0, 0.0)),
        (HORIZONTAL, (-1.72242383,), (0.68896953, -0.39692744), (-1.21681305, -0.00427914)),
    ],
)
def test_cart_pendulum_forces_and_motion(
    cart, directions, source_force, acceleration, projected_torque
):
    """theory E11; the force of the source is exerted by the robot, ours acts on it."""
    s, tau = locked(cart, directions), support.generalized_force(cart, {'swing': 1.5})
    force = support.constraint_force(s, tau)
    assert force == pytest.approx(-np.array(source_force), abs=1e-8)
    forms = [
        support.acceleration(s, tau),
        support.projected_acceleration(s, tau),
        support.minimal_acceleration(s, tau)[0],
        support.free_acceleration(s, tau + s.contact_jacobian.T @ force),
    ]
    for form in forms:
        assert form == pytest.approx(acceleration, abs=1e-8)
    N = support.null_space_projector(s.inertia, s.contact_jacobian)
    assert N.T @ s.selection_matrix[0] == pytest.approx(projected_torque, abs=1e-8)
    free_torques = support.effort_null_space(s).shape[1]
    assert free_torques == (0 if directions == HORIZONTAL else 1)
    if free_torques:  # E11: a torque changes the force, not the motion
        change = support.force_of_effort(s, [1.0])
        more = support.constraint_force(s, support.generalized_force(cart, [2.5]))
        assert more - force == pytest.approx(change, abs=1e-9)
        assert np.abs(change).max() > 0.5


def test_cart_pendulum_null_space_of_the_lecture(cart):
    c = 2 * LENGTH * np.cos(ANGLE)
    for directions, printed in ((VERTICAL, (1.0, 0.0)), (HORIZONTAL, (c, -1.0))):
        Z = support.null_space_basis(locked(cart, directions).contact_jacobian)
        assert Z.shape == (2, 1)
        assert np.linalg.det(np.column_stack([Z, printed])) == pytest.approx(0.0, abs=1e-12)


def test_cart_pendulum_minimal_coordinates(cart):
    """theory E13."""
    s = locked(cart, HORIZONTAL)
    Q_xi, chosen = support.minimal_coordinates(s.contact_jacobian, np.array([1]))
    assert Q_xi[:, 0] == pytest.approx([-2 * LENGTH * np.cos(ANGLE), 1.0], abs=1e-12)
    assert chosen.tolist() == [1]
    tau = support.generalized_force(cart, [1.5])
    _, xi = support.minimal_acceleration(s, tau, np.array([1]))
    assert xi == pytest.approx([-0.3969274367], abs=1e-9)
    with pytest.raises(InvalidInput, match='do not determine'):
        support.minimal_coordinates(locked(cart, VERTICAL).contact_jacobian, np.array([1]))
    with pytest.raises(InvalidInput, match='1 are needed'):
        support.minimal_coordinates(s.contact_jacobian, np.array([0, 1]))


@pytest.mark.parametrize(
    ('directions', 'source_impulse', 'after', 'energy'),
    [
        (BOTH, (1.00479863, -1.81169898), (0.0, 0.0), -0.3673993155),
        (HORIZONTAL, (-0.23995511,), (0.4979015, -0.60327155), -0.05883732143),
        (VERTICAL, (-0.58777391,), (0.33493288, 0.0), -0.1991292674),
    ],
)
def test_cart_pendulum_impulse_transfer(cart, directions, source_impulse, after, energy):
    """theory E12; the impulse of the source is exerted by the robot."""
    hit = support.impulse_transfer(locked(cart, directions, (0.5, -1.2)))
    assert hit.impulse == pytest.approx(-np.array(source_impulse), abs=1e-8)
    assert hit.velocity == pytest.approx(after, abs=1e-8)
    assert hit.energy_change == pytest.approx(energy, abs=1e-9)
    assert hit.energy_change_by_velocity == pytest.approx(energy, abs=1e-9)
    assert hit.energy_change_by_contact == pytest.approx(energy, abs=1e-9)


# -------------------------------------------------------------------- coordinates (E1, E2, T3)


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12'])
def test_both_velocity_conventions(name):
    """theory E2: J_ETH u = J_pin v with J_ETH built from the formula of the lecture."""
    robot = robot_of(name)
    model, (q, v, _) = robot.pinocchio_model, bent(robot, 1)
    data, X = model.createData(), support.velocity_map(robot, q)
    u = support.world_velocity(robot, q, v)
    assert u == pytest.approx(X @ v, abs=1e-14)
    assert support.body_velocity(robot, q, u) == pytest.approx(v, abs=1e-13)
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    at_origin = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q[7:]])
    base = model.createData()
    pin.computeJointJacobians(model, base, at_origin)
    pin.updateFramePlacements(model, base)
    R, LWA = data.oMi[1].rotation, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for point in robot.contact_points:
        frame = model.getFrameId(point.frame)
        B_r = base.oMf[frame].translation
        J_joints = pin.getFrameJacobian(model, base, frame, LWA)[:3, 6:]
        J_eth = np.hstack([np.eye(3), -R @ pin.skew(B_r), R @ J_joints])
        J_pin = pin.getFrameJacobian(model, data, frame, LWA)[:3]
        assert J_eth @ u == pytest.approx(J_pin @ v, abs=1e-10)
        assert support.in_world_velocity(robot, q, J_pin) == pytest.approx(J_eth, abs=1e-10)


@pytest.mark.parametrize('name', ['go1', 'anymal_b'])
def test_velocity_is_the_map_of_the_coordinate_rates(name):
    """E1: u = E_fb q̇, q̇ by differences of Pinocchio's integrate; anymal_b's joints are angles."""
    robot = robot_of(name)
    model, (q, v, _) = robot.pinocchio_model, bent(robot, 2)
    h = 1e-6
    rate = (pin.integrate(model, q, h * v) - pin.integrate(model, q, -h * v)) / (2 * h)
    u = support.world_velocity(robot, q, v)
    assert support.rate_map(robot, q) @ rate == pytest.approx(u, abs=1e-8)
    assert support.coordinate_rate(robot, q, v) == pytest.approx(rate, abs=1e-8)


def test_continuous_joints_have_rates_too():
    model = pin.Model()
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    wheel = model.addJoint(root, pin.JointModelRUBY(), pin.SE3.Identity(), 'wheel')
    for joint in (root, wheel):
        model.appendBodyToJoint(
            joint, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity()
        )
    robot = RobotModel.from_pinocchio(model, name='wheel')
    q, v, _ = bent(robot, 3, size=1.0)
    h = 1e-6
    rate = (pin.integrate(model, q, h * v) - pin.integrate(model, q, -h * v)) / (2 * h)
    assert support.coordinate_rate(robot, q, v) == pytest.approx(rate, abs=1e-8)


# -------------------------------------------------------------------- forms agree (E10)


def pinocchio_acceleration(robot, q, v, tau, feet):
    """v̇ and forces of Pinocchio's constraintDynamics, points fixed to the feet."""
    model = pin.Model(robot.pinocchio_model)
    data, models = model.createData(), pin.StdVec_RigidConstraintModel()
    for k in feet:
        point = robot.contact_points[k]
        at = pin.SE3(np.eye(3), np.array(point.offset))
        models.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, model, model.getJointId(point.joint), at
            )
        )
    datas = pin.StdVec_RigidConstraintData()
    for one in models:
        datas.append(one.createData())
    # Pinocchio 4 also wants the data
    more = (datas,) if int(pin.__version__.split('.')[0]) > 3 else ()
    pin.initConstraintDynamics(model, data, models, *more)
    settings = pin.ProximalSettings(1e-14, 1e-14, 1e-10, 200)
    return np.array(pin.constraintDynamics(model, data, q, v, tau, models, datas, settings))


@pytest.mark.parametrize('feet', [(0,), (1, 2), (0, 1, 3), (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize('name', NAMES)
def test_all_forms_and_pinocchio_agree(name, feet):
    # E10
    robot = on_points(name)
    for seed in range(3):
        q, v, effort = bent(robot, seed)
        if name == 'solo8':  # rank 10 of 12; in motion its redundant rows contradict each other
            q, v = robot.reference_configuration(), np.zeros(robot.nv)
        s = support.stance_dynamics(robot, q, v, feet)
        tau = support.generalized_force(robot, 10.0 * effort)
        reference = support.acceleration(s, tau)
        scale = np.abs(reference).max()
        force = support.constraint_force(s, tau)
        forms = {
            'N_c': support.projected_acceleration(s, tau),
            'Q_xi': support.minimal_acceleration(s, tau)[0],
            'forces': support.free_acceleration(s, tau + s.contact_jacobian.T @ force),
            'nearest': support.consistent_acceleration(s, support.free_acceleration(s, tau)),
            'pinocchio': pinocchio_acceleration(robot, q, s.velocity, tau, feet),
        }
        for form, value in forms.items():
            assert np.abs(value - reference).max() <= 1e-9 * scale, form
        held = s.contact_jacobian @ reference + s.drift
        assert np.abs(held).max() <= 1e-9 * scale


@pytest.mark.parametrize('name', NAMES)
def test_impulse_transfer_of_quadrupeds(name):
    robot = robot_of(name)
    for seed, feet in enumerate([(0,), (0, 3), (0, 1, 2), (0, 1, 2, 3)]):
        q, v, _ = bent(robot, seed)
        s = support.stance_dynamics(robot, q, v, feet)
        hit = support.impulse_transfer(s)
        assert hit.energy_change < 0.0
        assert hit.energy_change_by_velocity == pytest.approx(hit.energy_change, rel=1e-9)
        assert hit.energy_change_by_contact == pytest.approx(hit.energy_change, rel=1e-9)
        assert np.abs(s.contact_jacobian @ hit.velocity).max() <= 1e-9
        push = s.inertia @ (hit.velocity - v)
        assert push == pytest.approx(s.contact_jacobian.T @ hit.impulse, abs=1e-9)
        if len(s.contact_jacobian) > analyse_support(robot, q, feet).rank:
            continue
        Lambda = np.linalg.inv(
            s.contact_jacobian @ np.linalg.solve(s.inertia, s.contact_jacobian.T)
        )
        assert hit.end_effector_inertia == pytest.approx(Lambda, rel=1e-6, abs=1e-9)


# -------------------------------------------------------------------- inverse dynamics (E8, E14)


@pytest.mark.parametrize('feet', [(0, 1, 2), (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12', 'hyq'])
def test_inverse_dynamics_gives_the_motion_back(name, feet):
    robot = robot_of(name)
    q, v, _ = bent(robot, 5)
    s = support.stance_dynamics(robot, q, v, feet)
    wanted = support.consistent_acceleration(s, np.random.default_rng(6).standard_normal(robot.nv))
    found = support.inverse_dynamics(s, wanted)
    assert np.abs(found.residual).max() <= 1e-9
    tau = support.generalized_force(robot, found.effort)
    assert support.acceleration(s, tau) == pytest.approx(wanted, abs=1e-8)
    assert support.constraint_force(s, tau) == pytest.approx(found.force, abs=1e-7)
    again = support.inverse_dynamics(s, wanted, found.force)
    assert again.effort == pytest.approx(found.effort, abs=1e-9)


def test_two_feet_cannot_turn_the_base_about_their_line():
    robot = robot_of('anymal_b')
    q, _, _ = bent(robot, 5)
    s = support.stance_dynamics(robot, q, None, [0, 3])
    (motion,) = analyse_support(robot, q, [0, 3]).uncontrollable_base_directions
    turned = np.zeros(robot.nv)
    turned[:6] = np.linalg.solve(support.velocity_map(robot, q)[:6, :6], motion.twist * 5)
    turned[3:6] = support.base_rotation(robot, q).T @ motion.twist[3:] * 5
    wanted = support.consistent_acceleration(s, turned)
    missing = support.inverse_dynamics(s, wanted).residual
    assert np.abs(missing[:6]).max() > 1.0
    assert not missing[6:].any()


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12', 'hyq'])
def test_torques_that_change_forces_but_not_motion(name):
    """theory E11 for a quadruped: six torques of a stance on four feet."""
    robot = robot_of(name)
    q, v, effort = bent(robot, 8, size=0.1)
    s = support.stance_dynamics(robot, q, 0.1 * v, range(4))
    T = support.effort_null_space(s)
    assert T.shape == (12, 6)
    change = support.force_of_effort(s, T[:, 0])
    weight = robot.total_mass * GRAVITY
    more = T[:, 0] * 0.5 * weight / np.abs(change).max()
    tau, changed = (support.generalized_force(robot, x) for x in (effort, effort + more))
    forces = [support.constraint_force(s, x) for x in (tau, changed)]
    assert np.abs(forces[1] - forces[0]).max() >= 0.1 * weight
    motions = [support.acceleration(s, x) for x in (tau, changed)]
    assert np.abs(motions[1] - motions[0]).max() < 1e-9
    # the whole robot does not feel them
    wrench = s.contact_jacobian[:, :6].T @ (forces[1] - forces[0])
    assert np.abs(wrench).max() <= 1e-8 * weight


def test_such_a_torque_in_the_simulation():
    robot = robot_of('anymal_b')
    sims = [Simulator(robot, 'ncp', friction=3.0) for _ in range(2)]
    for sim in sims:
        stand(sim, 500)
    s = support.stance_dynamics(robot, sims[0].q, sims[0].v, range(4))
    T = support.effort_null_space(s)
    weight = robot.total_mass * GRAVITY
    more = T[:, 0] * 0.15 * weight / np.abs(support.force_of_effort(s, T[:, 0])).max()
    kp, kd = robot.default_gains
    target = robot.joint_positions(robot.reference_configuration())
    hold = kp * (target - robot.joint_positions(sims[0].q)) - kd * robot.joint_velocities(
        sims[0].v
    )
    plain, loaded = sims[0].step(hold), sims[1].step(hold + more)
    assert np.abs(loaded.contacts.force - plain.contacts.force).max() >= 0.1 * weight
    assert np.abs(loaded.v - plain.v).max() < 1e-9


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_the_base_rows_are_newton_and_euler(name):
    """theory E14, X19: forces carry a standing robot, without moment about its centre."""
    robot = robot_of(name)
    report = stand(Simulator(robot, 'ncp'), 3000)[-1]
    record, rows = report.record, 3 * len(robot.contact_points)
    s = support.stance_dynamics(robot, record.q_start, record.v_start, range(4))
    blocks = support.split_base(s)
    force = record.impulse[:rows] / record.time_step[0]
    weight = robot.total_mass * GRAVITY
    residual = blocks.base_residual(report.acceleration, force)
    assert np.abs(residual).max() <= 1e-6 * weight
    total = report.contacts.force.sum(axis=0)
    assert total == pytest.approx([0, 0, weight], abs=2e-3 * weight)
    centre = analyse_support(robot, record.q_start, range(4)).centre_of_mass
    moment = np.cross(s.position - centre, report.contacts.force).sum(axis=0)
    assert np.abs(moment).max() <= 2e-3 * weight * 0.3
    M = np.block(
        [[blocks.inertia_bb, blocks.inertia_bj], [blocks.inertia_bj.T, blocks.inertia_jj]]
    )
    assert np.array_equal(M, s.inertia)
    assert np.array_equal(
        np.concatenate([blocks.nonlinear_effects_b, blocks.nonlinear_effects_j]),
        s.nonlinear_effects,
    )
    assert np.array_equal(
        np.hstack([blocks.contact_jacobian_b, blocks.contact_jacobian_j]), s.contact_jacobian
    )


# -------------------------------------------------------------------- efforts


def test_efforts_and_generalized_forces(cart):
    robot = robot_of('go1')
    tau = support.generalized_force(robot, np.arange(12.0))
    assert np.array_equal(tau, [0.0] * 6 + list(range(12)))
    assert np.array_equal(support.joint_effort(robot, tau), np.arange(12.0))
    assert support.generalized_force(cart, {}).tolist() == [0.0, 0.0]
    for bad, error, words in (
        ({'slide': 1.0}, InvalidInput, "'slide'.*nothing drives it; driven are swing"),
        ({'knee': 1.0}, UnknownName, "'knee'"),
        ([1.0, 2.0], InvalidInput, 'passive joints take none'),
        ([1.0, 2.0, 3.0], InvalidInput, 'shape'),
        ([np.nan], InvalidInput, 'not finite'),
    ):
        with pytest.raises(error, match=words):
            support.generalized_force(cart, bad)
    with pytest.raises(InvalidInput, match="nothing drives joint 'slide'"):
        support.joint_effort(cart, [1.0, 0.0])
    with pytest.raises(InvalidInput, match="nothing drives joint 'root_joint'"):
        support.joint_effort(robot, np.ones(18))
    s = locked(cart, BOTH)
    with pytest.raises(InvalidInput, match='acceleration'):
        support.inverse_dynamics(s, [1.0])
    with pytest.raises(InvalidInput, match=r'force.*not finite'):
        support.inverse_dynamics(s, [1.0, 1.0], [np.inf, 0.0])
