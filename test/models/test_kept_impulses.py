"""Impulses of the last step that a robot at rest keeps, without a Delassus matrix or a solve."""

from __future__ import annotations

import numpy as np
import pytest

import contact_sim
from contact_sim import Anitescu, Lcp, Ncp, NullSpace, RobotModel
from contact_sim.arrays._views import arrays_of
from contact_sim.contact_models._kept_impulses import fill_rho_bounds
from contact_sim.robot._actuators import JointCommand

LAWS = [
    Ncp(), Anitescu(), Anitescu(sides=8), Lcp(), Lcp(friction_law='box'), NullSpace()
]  # fmt: skip
FALL = 9.81e-3
"""Speed that a fall gains in a step [m/s]."""
TOLERANCE = 1e-10
STEPS = 400


def stand(robot: RobotModel) -> JointCommand:
    (kp, kd), pose = robot.default_gains, robot.joint_positions(robot.reference_configuration())
    zero = np.zeros(robot.n_joints)
    return JointCommand(pose, zero, zero, kp, kd)


@pytest.mark.parametrize(
    ('model', 'place'), [*((law, 'plane') for law in LAWS), (Ncp(), 'far'), (Ncp(), 'fallen')],
    ids=repr,
)  # fmt: skip
def test_a_robot_at_rest_keeps_its_impulses(model, place):
    robot = contact_sim.load_robot('go1')
    ground = contact_sim.Plane(offset=3.0 if place == 'far' else 0.0)
    sim, solved = (contact_sim.Simulator(robot, model, ground) for _ in range(2))
    command, q = stand(robot), sim.q.copy()
    if place == 'far':  # where gaps are rounded to 1e-15 m
        q[:2] += 40.0, -30.0
    if place == 'fallen':
        q[3:7] = np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)
    sim.reset(q)
    sim.follow(command, 2500)
    height, kept = sim.q[2], 0
    for _ in range(STEPS):
        sim._workspace.delassus[:] = np.nan  # a step that reads it is not finite
        impulse = sim._data.impulse.copy()
        solved.restore(sim.snapshot())
        solved._data.impulse[:] *= 1.001  # do not hold, so that this one solves every step
        expected, report = solved.follow(command, 1), sim.follow(command, 1)
        same = np.array_equal(impulse, report.record.impulse)
        kept += same and bool(np.isnan(sim._workspace.delassus[1]))
        assert report.v == pytest.approx(expected.v, abs=200.0 * TOLERANCE * FALL)
        assert report.residuals.ncp <= 10.0 * TOLERANCE * abs(impulse).max()
        assert report.solver.converged
        assert expected.solver.converged
        assert not np.array_equal(expected.record.impulse, 1.001 * impulse)
    assert kept > STEPS // 2
    sim.follow(command, 20_000)
    assert sim.q[2] == pytest.approx(height, abs=1e-9)


@pytest.mark.parametrize('model', LAWS, ids=repr)
def test_without_bounds_of_step_lengths_impulses_are_tried_with_the_delassus_matrix(model):
    robot, kept = contact_sim.load_robot('go1'), 0
    sim, command = contact_sim.Simulator(robot, model), stand(robot)
    sim._workspace.floats[:] = 0
    sim.follow(command, 2500)
    for _ in range(STEPS):
        impulse = sim._data.impulse.copy()
        report = sim.follow(command, 1)
        kept += np.array_equal(impulse, report.record.impulse)
        assert report.residuals.ncp <= 10.0 * TOLERANCE * abs(impulse).max()
    assert kept > STEPS // 2


@pytest.mark.parametrize('model', LAWS, ids=repr)
def test_a_robot_that_is_pushed_moves_at_once(model):
    robot = contact_sim.load_robot('go1')
    sim, solved = (contact_sim.Simulator(robot, model) for _ in range(2))
    command = stand(robot)
    sim.follow(command, 3000)
    solved.restore(sim.snapshot())
    solved._data.impulse[:] *= 1.001
    pushed = JointCommand(
        command.position + 0.01, command.velocity, command.effort, command.stiffness,
        command.damping,
    )  # fmt: skip
    for _ in range(20):
        report, expected = sim.follow(pushed, 1), solved.follow(pushed, 1)
        assert report.v == pytest.approx(expected.v, abs=1e-9)
    assert abs(report.v).max() > 1e-3


def test_of_two_robots_the_one_that_needs_other_impulses_is_solved():
    robot = contact_sim.load_robot('go1')
    pair = contact_sim.joined({'a': robot, 'b': robot}, {'b': (2.0, 1.0, 0.0)})
    command, zero = stand(pair), np.zeros(24)
    sim, solved = (contact_sim.Simulator(pair, Ncp()) for _ in range(2))
    sim.follow(command, 3000)
    joints, kept, base = pair.of('b')[2], 0, sim._workspace
    own = base.contact_island[: len(pair.contact_points)] == base.contact_island[0]
    rng = np.random.default_rng(1)
    for _ in range(100):
        target = command.position.copy()
        target[joints] += rng.uniform(-1e-8, 1e-8, 12)  # within the dry friction of the joints
        moved = JointCommand(target, zero, zero, command.stiffness, command.damping)
        before = sim._data.contact_force.copy()
        solved.restore(sim.snapshot())
        solved._data.impulse[:] *= 1.001
        report, expected = sim.follow(moved, 1), solved.follow(moved, 1)
        assert report.v == pytest.approx(expected.v, abs=200.0 * TOLERANCE * FALL)
        same = (before == sim._data.contact_force).all(axis=1)
        kept += bool(same[: len(own)][own].all())
        assert not same[: len(own)][~own].all()
    assert kept > 30


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12', 'hyq'])
def test_bounds_of_step_lengths_hold_in_all_poses(name):
    robot = contact_sim.load_robot(name)
    sim = contact_sim.Simulator(robot)
    rng, checked = np.random.default_rng(4), 0
    for _ in range(40):
        q = robot.reference_configuration()
        q[7:] += rng.uniform(-0.4, 0.4, len(q) - 7) * (rng.random() < 0.9)
        q[2] -= rng.uniform(0.0, 0.3)
        sim.reset(q, rng.normal(size=robot.nv))
        report = sim.step(np.zeros(robot.n_joints))
        problem = report.problem
        bounds, nc = np.empty(problem.n_rows), problem.n_contacts
        fill_rho_bounds(arrays_of(*sim._workspace.arrays, 0), nc, bounds)
        G = problem.delassus
        for r in range(0, 3 * nc, 3):
            largest = np.linalg.eigvalsh(G[r : r + 3, r : r + 3])[-1]
            assert bounds[r : r + 3] * largest == pytest.approx(bounds[r] * largest)
            assert bounds[r] * largest >= 1.0 - 1e-9
            checked += 1
        assert (bounds[3 * nc :] * np.diag(G)[3 * nc :] >= 1.0 - 1e-9).all()
    assert checked > 40
