"""SAP: Drake's example, and the artefacts that its formulas predict."""

import numpy as np
import pytest
from problems import random_problem
from robots import pose, rigid_body, stand

from contact_sim import InclinedPlane, InvalidInput, Sap, Simulator, load_robot

NO_EFFORT = np.zeros(0)
SIGMA = 1e-3 * np.sqrt(3.0)
"""Gives R_t = 1e-3/m, that of the numbers of 2.3, to a point of mass m: its w is 1/(√3 m)."""


def pizza_saver(moment, steps=500):
    """2.3: m = 3, R = 1.5, I = 6.75, g = 10, h = 0.01, three legs, μ = 2/3; it does not tip."""
    angles = np.deg2rad([90.0, 210.0, 330.0])
    legs = [([1.5 * np.cos(a), 1.5 * np.sin(a), 0.0], 0.0) for a in angles]
    body = rigid_body('pizza_saver', 3.0, np.diag([1e9, 1e9, 6.75]), legs)
    model = Sap(stiffness=1e4, relaxation_time=0.01, sigma=1e-3, beta=0.0)
    sim = Simulator(body, model, friction=2 / 3, gravity=10.0, time_step=0.01)
    sim.reset(pose(z=-0.0005))
    for _ in range(steps):
        report = sim.step(NO_EFFORT, {'body': [0, 0, 0, 0, 0, moment]})
    return sim, report


def tangential_force(report):
    return np.linalg.norm(report.contacts.force[:, :2], axis=1)


def test_2_3_rest_depth_is_weight_over_stiffness():
    sim, report = pizza_saver(0.0)
    assert sim.q[2] == pytest.approx(-1e-3, abs=1e-9)
    assert report.contacts.normal_force == pytest.approx([10.0] * 3, abs=1e-6)


def test_2_3_sticks_with_bounded_slip():
    # slips at 1.21e-5 m/s ≤ σ h g
    _, report = pizza_saver(20.0)
    assert tangential_force(report) == pytest.approx([40 / 9] * 3, rel=1e-6)
    assert report.contacts.slip_speed == pytest.approx([1.21e-5] * 3, abs=5e-8)
    assert report.contacts.slip_speed.max() <= 1e-3 * 0.01 * 10.0


def test_2_3_slides_with_the_right_acceleration():
    _, report = pizza_saver(40.0)
    assert tangential_force(report) == pytest.approx([20 / 3] * 3, rel=1e-6)
    assert report.acceleration[5] == pytest.approx(1.48148148, rel=1e-6)


@pytest.mark.parametrize('seed', range(40))
def test_impulses_obey_the_compliant_law(seed):
    """γ = P(R⁻¹(v̂ − u)) at the velocity that γ itself causes."""
    problem = random_problem(seed, 3)
    solution = Sap(stiffness=50.0, relaxation_time=0.1).solve(problem)
    assert solution.solver.converged
    u = (problem.delassus @ solution.impulse + problem.free_velocity).reshape(-1, 3)
    for i, gamma in enumerate(solution.impulse.reshape(-1, 3)):
        block = problem.delassus[3 * i : 3 * i + 3, 3 * i : 3 * i + 3]
        w = np.linalg.norm(block) / 3
        rn = max(w / (4 * np.pi**2), 1 / (50.0 * (1.0 + 0.1)))
        rt, mu = 1e-3 * w, problem.friction[i]
        # the optimality conditions: s = u + R γ (v̂ = 0 here) in the dual cone, s ⊥ γ in the cone
        s = u[i] + np.array([rt, rt, rn]) * gamma
        assert np.hypot(gamma[0], gamma[1]) <= mu * gamma[2] + 1e-7
        assert mu * np.hypot(s[0], s[1]) <= s[2] + 1e-6
        assert abs(s @ gamma) <= 1e-6


def point(friction, time_step, relaxation_time=0.02, beta=1.0, **settings):
    """A point of 1 kg that is too inert to turn, at rest on the ground."""
    body = rigid_body('point', 1.0, np.eye(3) * 1e9, [([0.0, 0.0, 0.0], 0.0)])
    model = Sap(stiffness=1e5, relaxation_time=relaxation_time, sigma=SIGMA, beta=beta)
    sim = Simulator(body, model, friction=friction, time_step=time_step, **settings)
    sim.reset(pose())
    return sim


def test_2_3_creeps_on_a_slope_as_its_formula_says():
    # R_t γ_t = σ h g sin α at 10°: 1.7035e-5 m/s
    angle = np.deg2rad(10.0)
    sim = point(0.8, 0.01, terrain=InclinedPlane(angle))
    for _ in range(400):
        report = sim.step(NO_EFFORT)
    assert report.contacts.slip_speed[0] == pytest.approx(1.7035e-5, rel=1e-5)


def test_2_3_glides_at_the_gap_of_its_formula():
    # (h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n) = 0.0299004 m at 1 m/s, μ = 0.5
    mu = 0.5
    sim = point(mu, 0.01, relaxation_time=0.05, beta=0.0)
    sim.reset(v=np.array([1.0, 0, 0, 0, 0, 0]))
    for _ in range(400):
        pull = mu * 9.81 + 20.0 * (1.0 - sim.v[0])  # holds the speed against friction
        report = sim.step(NO_EFFORT, {'body': [pull, 0, 0, 0, 0, 0]})
    assert report.contacts.slip_speed[0] == pytest.approx(1.0, abs=1e-9)
    assert report.contacts.gap[0] == pytest.approx(0.0299004, abs=1e-7)


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_robots_stand_on_springs(name):
    robot = load_robot(name)
    reports = stand(Simulator(robot, 'sap'), 3000)
    force = reports[-1].contacts.force.sum(axis=0) / robot.total_mass
    assert force == pytest.approx([0.0, 0.0, 9.81], abs=0.02)
    assert all(report.solver.converged for report in reports)
    contacts = reports[-1].contacts
    assert -contacts.gap == pytest.approx(contacts.normal_force / 1e5, rel=1e-3)


@pytest.mark.parametrize(
    ('parameter', 'value'),
    [('stiffness', 0.0), ('stiffness', np.nan), ('relaxation_time', -1.0), ('sigma', 0.0)],
)
def test_bad_parameters_name_themselves(parameter, value):
    with pytest.raises(InvalidInput, match=f'SapParameters.{parameter}'):
        Sap(**{parameter: value})
