"""Derivatives of a robot with springs in its joints, against central differences of its steps."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from step_differences import compare, outcome, subtract

import contact_sim
from contact_sim.robot import JointSpring

LAWS = {
    'ncp': contact_sim.Ncp(tolerance=1e-13),
    'todorov': contact_sim.Todorov(tolerance=1e-14),
    'sap': contact_sim.Sap(tolerance=1e-14),
}
ACCURACY = 1e-7


def on_springs(law: str, time_step: float = 2e-3) -> contact_sim.Simulator:
    """Return go1 with stiff springs at its calves, moving on all feet."""
    robot = contact_sim.load_robot('go1')
    springs = [JointSpring(name, 300.0, -1.2) for name in robot.joint_names if 'calf' in name]
    sim = contact_sim.Simulator(
        robot.with_springs(springs), contact_model=LAWS[law], time_step=time_step
    )
    q, v = sim.q.copy(), 0.05 * np.random.default_rng(3).normal(size=18)
    q[2] -= 1e-3
    q[3:7] = [1e-3, 5e-4, 0.0, np.sqrt(1.0 - 1.25e-6)]
    sim.reset(q, v)
    return sim


EFFORT = np.random.default_rng(4).normal(size=12)


@pytest.mark.parametrize('law', LAWS)
def test_derivatives_with_springs_are_those_of_the_step(law: str) -> None:
    sim = on_springs(law)
    error, share = compare(sim, EFFORT, sim.derivatives(EFFORT), 8, ACCURACY)
    assert error < ACCURACY
    assert share > 0.6


@pytest.mark.parametrize('law', ['ncp', 'sap'])
def test_the_derivative_to_the_time_step_contains_the_springs(law: str) -> None:
    own = on_springs(law).derivatives(EFFORT).with_respect_to('time_step')
    h, size = 2e-3, 1e-6
    ends = []
    for s in (size, -size):
        sim = on_springs(law, h + s)
        ends.append(outcome(sim, sim.snapshot(), EFFORT, {}))
    sim = on_springs(law)
    base = outcome(sim, sim.snapshot(), EFFORT, {})['configuration']
    found = subtract(sim.robot.pinocchio_model, base, *ends)['velocity'] / (2.0 * size)
    assert np.abs(own.velocity[:, 0] - found).max() < 1e-6 * np.abs(found).max()


@pytest.mark.parametrize('law', LAWS)
def test_the_matrix_of_a_step_contains_damping_and_springs(law: str) -> None:
    """M̂ = M + h D + h² K, of derivatives and of a report that fills it again."""
    sim, h = on_springs(law), 2e-3
    model, calves = sim.robot.pinocchio_model, [8, 11, 14, 17]
    M = np.triu(pin.crba(model, model.createData(), sim.q))
    expected = M + np.triu(M, 1).T + h * np.diag(model.damping)
    if law != 'todorov':  # as MuJoCo it takes springs at the start of the step
        expected[calves, calves] += h * h * 300.0
    size = np.abs(expected).max()
    np.testing.assert_allclose(sim.derivatives(EFFORT).inertia, expected, atol=1e-14 * size)
    np.testing.assert_allclose(sim.step(EFFORT).problem.inertia, expected, atol=1e-14 * size)


def test_springs_under_the_form_of_2014_are_refused() -> None:
    robot = on_springs('ncp').robot
    sim = contact_sim.Simulator(robot, contact_model=contact_sim.Todorov(form='2014'))
    with pytest.raises(contact_sim.InvalidInput, match='springs of joints'):
        sim.derivatives(EFFORT)
