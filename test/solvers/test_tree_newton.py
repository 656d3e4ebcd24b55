"""Newton's step in joint velocities: the same as that in rows."""

import numpy as np
import pytest
from robots import ball, pose

import contact_sim
from contact_sim import Compliant, Sap, Todorov
from contact_sim.step._tree_newton import DOFS, tree_numbers

LAWS = [
    Todorov(), Todorov(cone='elliptic'), Sap(), Sap(approximation='similar'),
    Sap(approximation='sap'), Compliant(),
]  # fmt: skip


@pytest.mark.parametrize('model', LAWS, ids=repr)
@pytest.mark.parametrize('moving', [False, True])
def test_a_step_in_joint_velocities_is_that_in_rows(model, moving):
    robot, used = contact_sim.load_robot('go1'), 0
    along_tree, in_rows = (contact_sim.Simulator(robot, model) for _ in range(2))
    in_rows._workspace.tree_end[:] = 0  # no rows are on one tree
    rng = np.random.default_rng(3)
    for _ in range(60):
        effort = rng.uniform(-3.0, 3.0, robot.n_joints) if moving else np.zeros(robot.n_joints)
        in_rows.restore(along_tree.snapshot())
        found, expected = along_tree.step(effort), in_rows.step(effort)
        assert in_rows._workspace.tree_task[DOFS] == 0
        used += along_tree._workspace.tree_task[DOFS] == robot.nv
        assert found.solver.status == expected.solver.status
        assert found.v == pytest.approx(expected.v, rel=1e-8, abs=1e-9)
        impulse = expected.record.impulse
        assert found.record.impulse == pytest.approx(impulse, abs=1e-8 * abs(impulse).max())
    assert used > 30


@pytest.mark.parametrize('model', LAWS, ids=repr)
def test_a_tree_with_more_dofs_than_there_are_rows(model):
    along_tree, in_rows = (contact_sim.Simulator(ball(), model, friction=0.4) for _ in range(2))
    in_rows._workspace.tree_end[:] = 0
    rng, used = np.random.default_rng(4), 0
    for _ in range(40):
        along_tree.reset(pose(z=0.099), rng.uniform(-0.5, 0.5, 6))
        for _ in range(10):
            in_rows.restore(along_tree.snapshot())
            found, expected = along_tree.step([]), in_rows.step([])
            used += along_tree._workspace.tree_task[DOFS] == 6
            assert found.solver.status == expected.solver.status
            impulse = expected.record.impulse
            assert found.record.impulse == pytest.approx(impulse, abs=1e-8 * abs(impulse).max())
    assert used > 100


@pytest.mark.parametrize('model', LAWS, ids=repr)
def test_a_robot_that_stands_needs_no_delassus_matrix(model):
    robot = contact_sim.load_robot('go1')
    sim, in_rows = (contact_sim.Simulator(robot, model) for _ in range(2))
    in_rows._workspace.tree_end[:] = 0
    stand = robot.reference_configuration()
    (kp, kd), pose = robot.default_gains, robot.joint_positions(stand)
    unformed = 0
    for step in range(1800):
        if step == 1500:  # it has settled
            unformed = 0
        sim._workspace.delassus[:] = np.nan  # a step that reads it is not finite
        q, v = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
        effort = kp * (pose - q) - kd * v
        in_rows.restore(sim.snapshot())
        report, expected = sim.step(effort), in_rows.step(effort).record.impulse
        assert report.record.impulse == pytest.approx(expected, abs=1e-8 * abs(expected).max())
        unformed += bool(np.isnan(sim._workspace.delassus[1]))  # G_01
    assert unformed == 300
    assert report.solver.converged
    assert report.contacts.force.sum(axis=0)[2] == pytest.approx(9.81 * robot.total_mass, rel=1e-2)


def test_trees_are_known_by_their_first_and_last_dofs():
    # a trunk of six dofs with two limbs, a chain, and two trees whose dofs alternate
    parent = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 5, -1, 9, -1, -1, 11, 12])
    first, end, rooted, within, limb = tree_numbers(parent)
    assert first.tolist() == 9 * [0] + [9, 9, 0, 0, 0, 0]
    assert end.tolist() == 9 * [9] + [11, 11, 0, 0, 0, 0]
    assert rooted.tolist() == 9 * [9] + 6 * [0]
    assert within[:11].tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 5, -1, 0]
    assert limb[:11].tolist() == 6 * [-1] + [6, 6, 8, 0, 0]
