"""Dozens of robots in one world: as each alone, no data of Pinocchio for all, clear limits."""

import numpy as np
import pinocchio as pin
import pytest
from robots import ball, chain

from contact_sim import (
    InvalidInput,
    RobotDescriptionError,
    RobotModel,
    Simulator,
    Worlds,
    joined,
    load_robot,
)
from contact_sim.dynamics import mechanical_energy
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._trees import MOST_FREEDOMS, data_of, trees_of
from contact_sim.step._workspace import reference_inverse_weights


def many(robot, n):
    """Return n joined robots in a row."""
    names = [f'robot_{k}' for k in range(n)]
    places = {name: (2.0 * k, 0.3 * k, 0.1 * k) for k, name in enumerate(names)}
    return joined(dict.fromkeys(names, robot), places)


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


@pytest.fixture(scope='module')
def herd(go1):
    return many(go1, 64)


def held(robot, n=1):
    """Return the command that holds the standing pose of n such robots."""
    pose = robot.joint_positions(robot.reference_configuration())
    kp, kd = robot.default_gains
    zeros = np.zeros(n * robot.n_joints)
    return JointCommand(np.tile(pose, n), zeros, zeros, np.tile(kp, n), np.tile(kd, n))


def test_a_report_grows_with_the_number_of_robots(go1, herd):
    one, many = Simulator(go1).step(np.zeros(12)), Simulator(herd).step(np.zeros(12 * 64))
    assert many.record.buffer.nbytes <= 64 * one.record.buffer.nbytes


@pytest.mark.parametrize('integrator', ['semi_implicit', 'momentum'])
@pytest.mark.parametrize('model', ['ncp', 'todorov'])
def test_64_robots_move_as_one(model, integrator, go1, herd):
    """Each dropped from another height and with another speed: sticking, sliding, in the air."""
    options = {'friction': 0.4, 'restitution': 0.2, 'integrator': integrator, 'threads': 1}
    if model == 'todorov':
        options['restitution'] = 0.0
    alone = Worlds(go1, 64, model, **options)
    together = Worlds(herd, 1, model, **options)
    q, v = herd.reference_configuration(), np.zeros(herd.nv)
    places = [herd.of(part.name) for part in herd.parts]
    for k, (own_q, own_v, _) in enumerate(places):
        q[own_q.start + 2] += 0.002 * (k % 5)
        v[own_v.start] = 0.02 * (k % 7)
    alone.reset([q[own] for own, _, _ in places], [v[own] for _, own, _ in places])
    together.reset(q, v)
    alone.follow(held(go1), 60)
    together.follow(held(go1, 64), 60)
    assert together.running.all()
    assert together.q[0] == pytest.approx(alone.q.ravel(), abs=1e-9)
    assert together.v[0] == pytest.approx(alone.v.ravel(), abs=1e-6)
    assert np.abs(alone.v).max() > 0.1


def test_impacts_of_64_balls_are_guarded_one_by_one():
    """Restitution bounces each as alone; every fourth has no approach to rebound from."""
    body = ball()
    world = many(body, 64)
    sim, q, v = Simulator(world, restitution=0.5), world.reference_configuration(), np.zeros(384)
    v[2::6] = -0.5 * (np.arange(64) % 4)
    q[2::7] += 1e-4
    sim.reset(q, v)
    report = sim.step(np.zeros(0))
    assert report.solver.converged
    expected = np.where(np.arange(64) % 4, 0.25 * (np.arange(64) % 4), -9.81e-3)
    assert sim.v[2::6] == pytest.approx(expected, abs=1e-2)


def test_reference_weights_of_many_are_those_of_one(go1, herd):
    """Above MOST_FREEDOMS they are found tree by tree."""
    dofs = go1.joint_velocity_index
    rows = np.zeros((go1.nv, len(dofs)))
    rows[dofs, np.arange(len(dofs))] = 1.0
    of_joints, of_rows = reference_inverse_weights(go1.pinocchio_model, rows)
    model = herd.pinocchio_model
    assert model.nv == 1152 > MOST_FREEDOMS
    all_joints, all_rows = reference_inverse_weights(model, np.kron(np.eye(64), rows))
    assert all_joints[1:] == pytest.approx(np.tile(of_joints[1:], 64), rel=1e-12)
    assert all_rows == pytest.approx(np.tile(of_rows, 64), rel=1e-12)
    # a row over two robots has the mobility of both
    across = np.zeros((model.nv, 1))
    across[[dofs[0], 18 + dofs[3]]] = 1.0
    both = reference_inverse_weights(model, across)[1]
    assert both == pytest.approx(of_rows[[0]] + of_rows[[3]], rel=1e-12)


def test_trees_are_models_of_their_own(go1):
    """Also where joints of the trees are numbered in turn."""
    world = many(go1, 3).pinocchio_model
    q = pin.randomConfiguration(go1.pinocchio_model, *2 * [np.ones(go1.nq)])
    whole = np.triu(pin.crba(world, world.createData(), np.tile(q, 3)))
    for k, tree in enumerate(trees_of(world)):
        assert tree.joints.tolist() == list(range(1 + 13 * k, 14 + 13 * k))
        own = np.triu(pin.crba(tree.model, tree.model.createData(), q))
        assert np.array_equal(own, whole[np.ix_(tree.dofs, tree.dofs)])
    mixed = pin.Model()
    for k in range(6):
        mixed.addJoint(max(0, k - 1), pin.JointModelRX(), pin.SE3.Identity(), f'joint_{k}')
    assert [tree.dofs.tolist() for tree in trees_of(mixed)] == [[0, 2, 4], [1, 3, 5]]


def test_what_is_too_large_is_refused(go1, herd, monkeypatch):
    model = chain(2).pinocchio_model
    for k in range(MOST_FREEDOMS):
        model.addJoint(k + 2, pin.JointModelRX(), pin.SE3.Identity(), f'more_{k}')
    with pytest.raises(RobotDescriptionError, match=r'on joint .joint_0., expected at most 400'):
        RobotModel.from_pinocchio(model, actuated_joints=())
    # what needs Pinocchio's data of all robots
    with pytest.raises(RobotDescriptionError, match=r'1152 degrees.*at most 400.*cube.*84 GB'):
        data_of(herd.pinocchio_model)
    with pytest.raises(RobotDescriptionError, match='1152 degrees of freedom'):
        mechanical_energy(herd.pinocchio_model, np.zeros(herd.nq), np.zeros(1152), np.zeros(3))
    # the memory of a step
    monkeypatch.setenv('CONTACT_SIM_READING', 'bytes=1e8')
    with pytest.raises(InvalidInput, match=r'1152 degrees of freedom and 2400 rows.* MB.*bytes='):
        Simulator(herd)


def test_inertia_that_is_missing_in_one_of_many_is_found():
    """The mass matrix is examined tree by tree."""
    model = pin.Model()
    for k in range(70):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f'joint_{k}')
        inertia = pin.Inertia(1.0, np.zeros(3), 0.1 * np.eye(3))
        if k != 66:
            model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    with pytest.raises(RobotDescriptionError, match='mass matrix is singular'):
        RobotModel.from_pinocchio(model, actuated_joints=())
