"""Steps of deep trees, whose mass matrix is never formed, against those of the same robots that
form it: every law and option that reads the matrix.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import (
    ContactPoint,
    RobotModel,
    Sap,
    Simulator,
    Todorov,
    Worlds,
    contact_models,
    joined,
    load_robot,
)
from contact_sim.constraints import FrameAnchor, JointCoupling, JointLock
from contact_sim.dynamics import _articulated
from contact_sim.robot import JointSpring
from contact_sim.step._workspace import Workspace

LINKS, LENGTH, MASS, RADIUS = 24, 0.1, 0.2, 0.03
STEPS, RELATIVE = 40, 1e-9


def add_link(model, before, kind, place, number):
    joint = model.addJoint(before, kind, pin.SE3(np.eye(3), place), f'joint_{number}')
    inertia = pin.Inertia(MASS, np.array([0.5 * LENGTH, 0.0, 0.0]), np.diag([1e-4, 2e-4, 2e-4]))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.addBodyFrame(f'link_{number}', joint, pin.SE3.Identity(), 0)
    return joint


def worm():
    """Return a floating chain with a branch, joints of several kinds, springs and dry friction.

    Feet are at both ends, in the middle, and at the end of the branch.
    """
    model, ahead = pin.Model(), np.array([LENGTH, 0.0, 0.0])
    turning = [pin.JointModelRY(), pin.JointModelRZ(), pin.JointModelRevoluteUnaligned(
        np.array([0.6, 0.0, 0.8]))]  # fmt: skip
    joint = add_link(model, 0, pin.JointModelFreeFlyer(), np.zeros(3), 0)
    for k in range(1, LINKS):
        kind = turning[k % 3]
        if k == 12:
            middle = joint
        joint = add_link(model, joint, pin.JointModelSpherical() if k == 9 else kind, ahead, k)
    side = add_link(model, middle, pin.JointModelRX(), np.array([0.0, LENGTH, 0.0]), LINKS)
    add_link(model, side, pin.JointModelPZ(), ahead, LINKS + 1)
    model.damping[6:] = 0.05
    model.armature[6:] = 1e-4
    model.friction[8:12] = 0.02
    feet = [
        ContactPoint(f'foot_{k}', f'link_{k}', f'joint_{k}', np.array([x, 0.0, 0.0]), RADIUS)
        for k, x in ((0, 0.0), (11, 0.0), (LINKS - 1, LENGTH), (LINKS + 1, LENGTH))
    ]
    robot = RobotModel.from_pinocchio(model, feet, name='worm')
    return robot.with_springs([JointSpring('joint_5', 2.0, 0.1), JointSpring('joint_20', 3.0)])


@pytest.fixture(scope='module')
def robot():
    return worm()


@pytest.fixture
def choose(monkeypatch):
    """Return what makes a simulation with the mass matrix formed, or without it."""

    def choose(deep):
        monkeypatch.setattr(_articulated, 'DEEP', 0.0 if deep else np.inf)

    return choose


def start(robot):
    """Return q and v of a worm that lies bent on the ground and moves."""
    rng = np.random.default_rng(3)
    q = pin.neutral(robot.pinocchio_model)
    q[2] = RADIUS - 1e-4
    v = 0.1 * rng.normal(size=robot.nv)
    v[2] = -0.05
    return q, v


def pair(robot, choose, law, **options):
    """Return simulations of one start, with the mass matrix formed and without it."""
    sims = []
    for deep in (False, True):
        choose(deep)
        sims.append(Simulator(robot, law, **options))
        assert sims[-1]._workspace.sizes.deep is deep
        sims[-1].reset(*start(robot))
    return sims


def assert_near(found, expected, relative=RELATIVE):
    scale = np.abs(expected).max(initial=0.0)
    assert np.abs(np.asarray(found) - expected).max(initial=0.0) <= relative * scale


def compare_steps(formed, deep, steps=STEPS, contacts=2):
    """Take steps in both and compare; return the last reports."""
    robot, most = formed.robot, 0
    for k in range(steps):
        effort = 0.05 * np.sin(0.3 * k + np.arange(robot.n_joints))
        reports = formed.step(effort), deep.step(effort)
        assert_near(deep.q, formed.q)
        assert_near(deep.v, formed.v)
        assert reports[0].solver.status == reports[1].solver.status
        most = max(most, int((reports[0].contacts.mode > 0).sum()))
    assert most >= contacts
    return reports


@pytest.mark.parametrize('law', contact_models())
def test_steps_of_every_law(robot, choose, law):
    formed, deep = pair(robot, choose, law)
    one, other = compare_steps(formed, deep)
    forces = one.contacts.force
    assert_near(other.contacts.force, forces, 1e-7)
    for name in ('energy_change', 'energy_contact', 'dissipated'):
        expected = getattr(one.residuals, name)
        assert getattr(other.residuals, name) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    # zero but for hybrid, whose steps have no single matrix
    assert other.residuals.momentum == pytest.approx(one.residuals.momentum, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    'law', [Todorov(form='2014'), Sap(weight='delassus'), Sap(approximation='lagged')],
    ids=['todorov 2014', 'sap delassus', 'sap lagged'],
)  # fmt: skip
def test_steps_of_options_that_read_the_matrix(robot, choose, law):
    compare_steps(*pair(robot, choose, law))


@pytest.mark.parametrize('law', ['ncp', 'null_space'])
def test_the_momentum_of_bases(robot, choose, law):
    """Bases follow their momentum; here also in flight, after a push upwards."""
    formed, deep = pair(robot, choose, law, integrator='momentum')
    compare_steps(formed, deep)
    for sim in (formed, deep):
        q, v = start(robot)
        q[2] += 1.0
        sim.reset(q, v)
    for _ in range(20):
        formed.step(np.zeros(robot.n_joints)), deep.step(np.zeros(robot.n_joints))
    assert_near(deep.q, formed.q)
    assert_near(deep.v, formed.v)


@pytest.mark.parametrize('law', ['ncp', 'todorov', 'hybrid'])
def test_bilateral_constraints(robot, choose, law):
    rows = [FrameAnchor('link_0'), JointLock('joint_7'), JointCoupling('joint_14', 'joint_16')]
    sims = pair(robot, choose, law, constraints=rows)
    # not longer: hybrid then has events that rounding splits in one or several
    one, other = compare_steps(*sims, steps=30, contacts=1)
    assert_near(other.record.bilateral_impulse, one.record.bilateral_impulse, 1e-6)


def test_moments_of_contacts(robot, choose):
    options = {'torsional_friction': 0.01, 'rolling_friction': 0.005}
    compare_steps(*pair(robot, choose, 'ncp', **options))


def test_two_trees(robot, choose):
    """A worm and a robot with legs, neither of which is the whole."""
    both = joined({'worm': robot, 'go1': load_robot('go1')}, {'worm': (0.0, 3.0)})
    sims = []
    for deep in (False, True):
        choose(deep)
        sims.append(Simulator(both, 'sap'))
        sims[-1].reset()
    for _ in range(STEPS):
        reports = [sim.step(np.zeros(both.n_joints)) for sim in sims]
    assert_near(sims[1].q, sims[0].q)
    assert_near(sims[1].v, sims[0].v)
    assert (reports[0].contacts.mode > 0).sum() >= 2


def test_a_contact_problem_has_the_matrix(robot, choose):
    formed, deep = pair(robot, choose, 'ncp')
    one, other = compare_steps(formed, deep, 25)
    expected, found = one.problem, other.problem
    assert_near(found.inertia, expected.inertia, 1e-10)
    assert_near(found.delassus, expected.delassus, 1e-9)
    J = found.jacobian
    assert_near(found.delassus, J @ np.linalg.solve(found.inertia, J.T), 1e-9)


@pytest.mark.parametrize('law', ['ncp', 'sap'])
def test_derivatives_are_those_of_the_formed_matrix(robot, choose, law):
    formed, deep = pair(robot, choose, law)
    compare_steps(formed, deep, 25)
    effort = np.zeros(robot.n_joints)
    one, other = formed.derivatives(effort), deep.derivatives(effort)
    assert_near(other.state_matrix, one.state_matrix, 1e-6)
    assert_near(other.input_matrix, one.input_matrix, 1e-6)
    deep.step(effort)
    assert_near(other.step.v, deep.v)


def test_worlds(robot, choose):
    """Worlds, too; a world's report has the matrix, and its derivatives are those of one."""
    choose(True)
    worlds, alone = Worlds(robot, 2, 'ncp'), Simulator(robot, 'ncp')
    q, v = start(robot)
    worlds.reset(np.tile(q, (2, 1)), np.tile(v, (2, 1)))
    alone.reset(q, v)
    for _ in range(5):
        worlds.step(np.zeros((2, robot.n_joints)))
        report = alone.step(np.zeros(robot.n_joints))
    assert np.array_equal(worlds.q[1], alone.q)
    assert np.array_equal(worlds.report(1).problem.inertia, report.problem.inertia)
    effort = np.zeros(robot.n_joints)
    slopes = worlds.derivatives(np.tile(effort, (2, 1)))
    assert np.array_equal(slopes.state[1], alone.derivatives(effort).state_matrix)


def test_no_matrix_is_formed(robot):
    """A deep tree has no room for a matrix of nv², neither in its steps nor in their reports.

    Newton's method along the tree and derivatives have room of their own.
    """
    sim = Simulator(robot)
    work, nv = sim._workspace, robot.nv
    assert work.sizes.deep
    for name in ('mass_matrix', 'inertia', 'factor', 'undamped_factor'):
        assert getattr(work, name).shape == (0, 0)
    rows = {'row_response', 'delassus', 'newton_matrix', 'jacobian_transposed'}
    for name, (first, last, _) in work._places.items():
        if name not in rows:
            assert last - first <= 25 * (nv + 2), name
    assert Workspace(robot, sim.terrain, 1e-3, formed=True).mass_matrix.shape == (nv, nv)


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12', 'four_bar_quadruped'])
def test_robots_with_legs_form_it(name):
    robot = load_robot(name)
    assert not Simulator(robot)._workspace.sizes.deep
    assert not Simulator(
        joined({k: robot for k in 'abc'}, {'b': (2.0, 0.0), 'c': (4.0, 0.0)})
    )._workspace.sizes.deep
