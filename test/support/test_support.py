"""Support analysis on robots: the tables of theory E5 and E7, Jacobians, bad input."""

from functools import cache
from itertools import combinations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim import (
    InvalidInput,
    Plane,
    RobotModel,
    Simulator,
    UnknownName,
    analyse_support,
    load_robot,
    robots,
    support,
)

TWELVE_JOINTS = ('anymal_b', 'go1', 'solo12', 'hyq')
QUADRUPEDS = (*TWELVE_JOINTS, 'solo8')
SUBSETS = [feet for count in range(5) for feet in combinations(range(4), count)]
TABLE = {0: (0, 0, 0, 6), 1: (3, 3, 0, 3), 2: (6, 5, 1, 1), 3: (9, 6, 3, 0), 4: (12, 6, 6, 0)}
"""Feet to rank J, rank J_b, internal constraints, uncontrollable motions; theory E7."""
robot_of = cache(load_robot)


def ranks(s):
    return s.rank, s.base_rank, s.internal_constraints, s.uncontrollable_base_dof


def bent(robot, seed, size=0.3):
    """A configuration around the standing pose, base turned and moved too."""
    rng = np.random.default_rng(seed)
    standing = robot.reference_configuration()
    return pin.integrate(robot.pinocchio_model, standing, size * rng.standard_normal(robot.nv))


def ball_feet_velocity(robot, seed):
    return np.random.default_rng(seed + 1).standard_normal(robot.nv)


# -------------------------------------------------------------------- ranks


@pytest.mark.parametrize('feet', SUBSETS, ids=str)
@pytest.mark.parametrize('name', TWELVE_JOINTS)
def test_ranks_of_every_subset_of_feet(name, feet):
    # E7
    robot = robot_of(name)
    for q in (robot.reference_configuration(), bent(robot, 3)):
        s = analyse_support(robot, q, feet)
        assert ranks(s) == TABLE[len(feet)]
        assert s.base_mobility == 6  # three joints a leg: every leg can follow
        assert len(s.uncontrollable_base_directions) == s.uncontrollable_base_dof


@pytest.mark.parametrize('feet', SUBSETS, ids=str)
def test_solo8_lacks_sideways_joints(feet):
    """The legs of solo8 move in planes of constant y of the base.

    Two rows of each foot are followed by its two joints. What is left is the sideways velocity
    v_y + ω_z x_i − ω_x z_i of the feet, a matter of the base alone: rank J = 2 k + rank [1 x z].
    """
    robot = robot_of('solo8')
    q = robot.reference_configuration()
    s = analyse_support(robot, q, feet)
    arm = s.stance.position - q[:3]
    sideways = np.stack([np.ones(len(feet)), arm[:, 0], arm[:, 2]], axis=1)
    held_by_base = np.linalg.matrix_rank(sideways, tol=1e-8) if feet else 0
    assert s.rank == 2 * len(feet) + held_by_base
    assert s.base_rank == TABLE[len(feet)][1]  # the feet are where other robots have theirs
    assert s.base_mobility == 6 - held_by_base
    if len(feet) == 4:
        assert ranks(s) == (10, 6, 4, 0)


@pytest.mark.parametrize('name', ['go1', 'solo12', 'anymal_b'])
def test_stretched_legs_lose_joint_rank_only(name):
    """theory E5: all joints 0; anymal_b's feet stand beside the axes of its joints."""
    robot = robot_of(name)
    q = robot.with_joint_positions(robot.reference_configuration(), np.zeros(robot.n_joints))
    s = analyse_support(robot, q, range(4))
    assert s.joint_rank == (12 if name == 'anymal_b' else 8)
    assert ranks(s) == (12, 6, 6, 0)


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', QUADRUPEDS)
def test_two_feet_leave_the_line_between_them(name, seed):
    robot = robot_of(name)
    for feet in combinations(range(4), 2):
        q = bent(robot, seed) if name != 'solo8' else robot.reference_configuration()
        s = analyse_support(robot, q, feet)
        (motion,) = s.uncontrollable_base_directions
        a, b = s.stance.position
        line = (b - a) / np.linalg.norm(b - a)
        assert abs(motion.direction @ line) == pytest.approx(1.0, abs=1e-9)
        assert np.linalg.norm(np.cross(line, motion.point - a)) <= 1e-9
        assert abs(motion.pitch) <= 1e-9
        assert motion.name == 'rotation about the line {} - {}'.format(*s.feet)
        # the one internal force, where there is one: along the line, equal and opposite
        force = np.concatenate([s.stance.frame[0] @ line, -s.stance.frame[1] @ line])
        assert np.abs(s.base_jacobian.T @ force).max() <= 1e-9


def test_motions_of_one_foot_and_of_none_have_plain_names():
    robot = robot_of('go1')
    q = robot.reference_configuration()
    one = analyse_support(robot, q, ['FL_foot']).uncontrollable_base_directions
    assert [m.name for m in one] == [f'rotation about {axis} through FL_foot' for axis in 'xyz']
    flight = analyse_support(robot, q, []).uncontrollable_base_directions
    assert [m.name for m in flight][:3] == [f'translation along {axis}' for axis in 'xyz']
    twists = np.array([m.twist for m in flight])
    assert np.linalg.matrix_rank(twists) == 6


def test_conditioning_grows_as_two_feet_come_together():
    robot = robot_of('go1')
    q = robot.reference_configuration()
    apart = analyse_support(robot, q, ['FL_foot', 'FR_foot'])
    inward = robot.joint_positions(q) + np.array([-0.3, 0, 0, 0.3, 0, 0, 0, 0, 0, 0, 0, 0])
    close = analyse_support(robot, robot.with_joint_positions(q, inward), ['FL_foot', 'FR_foot'])
    assert apart.base_conditioning < close.base_conditioning < 1e4
    values = np.linalg.svd(apart.base_jacobian, compute_uv=False)
    assert apart.base_conditioning == pytest.approx(values[0] / values[4], rel=1e-12)


def test_polygon_and_margin():
    robot = robot_of('anymal_b')
    q = robot.reference_configuration()
    s = analyse_support(robot, q, range(4))
    feet = s.stance.position
    x, y = s.polygon[:, 0], s.polygon[:, 1]
    area = 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
    assert len(s.polygon) == 4
    assert area == pytest.approx(np.ptp(feet[:, 0]) * np.ptp(feet[:, 1]), rel=1e-9)  # positive
    edge = np.min(np.abs(feet[:, 1] - s.centre_of_mass[1]))
    assert s.margin == pytest.approx(edge, abs=1e-9)
    assert analyse_support(robot, q, ['LF_FOOT', 'RF_FOOT', 'LH_FOOT']).margin < 0.01
    beside = analyse_support(robot, q, ['LF_FOOT', 'LH_FOOT'])
    assert beside.margin == pytest.approx(s.centre_of_mass[1] - feet[0, 1], abs=1e-9)
    assert analyse_support(robot, q, []).margin == -np.inf


# -------------------------------------------------------------------- Jacobians


@pytest.mark.parametrize('name', QUADRUPEDS)
def test_jacobian_equals_finite_differences_on_the_manifold(name):
    """The material point below each sphere, moved by q ⊕ ε."""
    robot = robot_of(name)
    model, q = robot.pinocchio_model, bent(robot, 5)
    data, J = model.createData(), support.contact_jacobian(robot, q, range(4))
    pin.forwardKinematics(model, data, q)
    points = support.stance_dynamics(robot, q, None, range(4)).position
    joints = [model.getJointId(p.joint) for p in robot.contact_points]
    local = [data.oMi[j].actInv(p) for j, p in zip(joints, points, strict=True)]

    def places(step):
        pin.forwardKinematics(model, data, pin.integrate(model, q, step))
        return np.concatenate([data.oMi[j].act(p) for j, p in zip(joints, local, strict=True)])

    eps = 1e-5
    differences = [places(eps * e) - places(-eps * e) for e in np.eye(robot.nv)]
    assert np.abs(J - np.array(differences).T / (2 * eps)).max() <= 1e-7


@pytest.mark.parametrize('name', QUADRUPEDS)
def test_drift_equals_finite_differences_along_the_motion(name):
    robot = robot_of(name)
    model, q, v = robot.pinocchio_model, bent(robot, 7), ball_feet_velocity(robot, 7)
    ground = Plane((0.1, -0.2, 1.0), 0.05)

    def speed(t):
        moved = pin.integrate(model, q, t * v)
        return support.contact_jacobian(robot, moved, range(4), terrain=ground) @ v

    eps = 1e-5
    drift = support.contact_drift(robot, q, v, range(4), terrain=ground)
    assert np.abs(drift).max() > 0.1
    assert np.abs(drift - (speed(eps) - speed(-eps)) / (2 * eps)).max() <= 1e-7


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_jacobian_is_that_of_the_simulation(name):
    robot = robot_of(name)
    sim = Simulator(robot)
    v = 0.1 * ball_feet_velocity(robot, 1)
    sim.reset(v=v)
    record = sim.step(np.zeros(robot.n_joints)).record
    J = support.contact_jacobian(robot, record.q_start, range(4))
    rows = 3 * len(robot.contact_points)
    # the simulation takes the point halfway to the ground: the gap times an angular velocity
    allowed = 1e-12 + np.abs(record.gap_start[:4]).max()
    assert np.abs(sim._workspace.jacobian_transposed.T[:rows] - J).max() <= allowed


def test_rows_and_directions_follow_the_order_given():
    robot = robot_of('go1')
    q = bent(robot, 2)
    J = support.contact_jacobian(robot, q, range(4))
    picked = support.contact_jacobian(robot, q, ['RR_foot', 1], directions=('n', 't1'))
    assert np.array_equal(picked, J[[11, 9, 5, 3]])


# -------------------------------------------------------------------- projector


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**31), feet=st.sets(st.integers(0, 3)))
@pytest.mark.parametrize('name', robots())
def test_projector_over_random_configurations(name, seed, feet):
    robot = robot_of(name)
    s = analyse_support(robot, bent(robot, seed, size=1.0), sorted(feet))
    M, J, N = s.stance.inertia, s.contact_jacobian, s.null_space_projector
    assert np.abs(N @ N - N).max() <= 1e-10
    assert np.abs(J @ N).max(initial=0.0) <= 1e-10
    assert np.abs(M @ N - N.T @ M).max() <= 1e-10 * np.abs(M).max()
    assert np.trace(N) == pytest.approx(robot.nv - s.rank, abs=1e-9)
    assert np.abs(N @ s.null_space_basis - s.null_space_basis).max(initial=0.0) <= 1e-10


def test_motion_in_the_null_space_keeps_the_feet():
    """theory E4: integrating N_c u moves the feet by O(h²) only."""
    robot = robot_of('go1')
    model, q = robot.pinocchio_model, bent(robot, 4)
    s = analyse_support(robot, q, range(4))
    v = s.null_space_projector @ ball_feet_velocity(robot, 4)

    def moved(h):
        return support.stance_dynamics(
            robot, pin.integrate(model, q, h * v), None, range(4)
        ).position

    # the centres of the spheres move; the point below a rolling foot goes with its centre
    feet = [model.getJointId(p.joint) for p in robot.contact_points]
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    spin = [data.oMi[j].rotation @ data.v[j].angular for j in feet]
    radius = robot.contact_points[0].radius
    rolling = radius * np.cross(spin, [0.0, 0.0, 1.0])
    errors = [np.abs(moved(h) - moved(0.0) - h * rolling).max() for h in (1e-3, 1e-4)]
    assert errors[0] <= 1e-4
    assert errors[1] <= 0.011 * errors[0]


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ('active', 'error', 'words'),
    [
        (['FL_foot', 'tail'], UnknownName, "foot 'tail'.*FL_foot"),
        ([4], UnknownName, 'index of a foot 4'),
        ([-1], UnknownName, 'index of a foot -1'),
        (['FL_foot', 0], InvalidInput, 'FL_foot is listed more than once'),
        ('FL_foot', InvalidInput, 'expected a list'),
        (3, InvalidInput, 'expected a list'),
        ([1.5], InvalidInput, 'neither the name nor the index'),
        ([True], InvalidInput, 'neither the name nor the index'),
    ],
)
def test_bad_feet(active, error, words):
    robot = robot_of('go1')
    with pytest.raises(error, match=words):
        analyse_support(robot, robot.reference_configuration(), active)


def test_bad_configurations_and_directions():
    robot = robot_of('go1')
    q = robot.reference_configuration().copy()
    with pytest.raises(InvalidInput, match='directions'):
        analyse_support(robot, q, [0], directions=('x',))
    with pytest.raises(InvalidInput, match='directions'):
        analyse_support(robot, q, [0], directions=())
    with pytest.raises(UnknownName, match='terrain'):
        analyse_support(robot, q, [0], terrain='moon')
    with pytest.raises(InvalidInput, match='expected \\(19,\\)'):
        analyse_support(robot, q[:5], [0])
    q[9] = np.nan
    with pytest.raises(InvalidInput, match='not finite'):
        analyse_support(robot, q, [0])
    with pytest.raises(InvalidInput, match='not finite'):
        support.stance_dynamics(robot, robot.reference_configuration(), np.full(18, np.inf), [0])


def test_robots_without_feet_or_floating_base():
    model = pin.buildSampleModelManipulator()
    arm = RobotModel.from_pinocchio(model, name='arm')
    q = arm.reference_configuration()
    flight = analyse_support(arm, q, [])
    assert ranks(flight) == (0, 0, 0, 0)
    with pytest.raises(UnknownName, match='known: none'):
        analyse_support(arm, q, ['hand'])
    for needs_base in (
        lambda: flight.uncontrollable_base_directions,
        lambda: support.velocity_map(arm, q),
        lambda: support.rate_map(arm, q),
    ):
        with pytest.raises(InvalidInput, match='needs a floating base, but the base of robot arm'):
            needs_base()
    with pytest.raises(InvalidInput, match='there is no base'):
        support.split_base(flight.stance)


def test_an_empty_support_where_one_is_needed():
    robot = robot_of('go1')
    held = support.stance_dynamics(robot, robot.reference_configuration(), None, [])
    tau = np.zeros(robot.nv)
    for needs_feet in (
        lambda: support.constraint_force(held, tau),
        lambda: support.impulse_transfer(held),
        lambda: support.force_of_effort(held, np.zeros(12)),
    ):
        with pytest.raises(InvalidInput, match='the support is empty'):
            needs_feet()
