"""SAP: Drake's example, and the artefacts that its formulas predict."""

import numpy as np
import pytest
from problems import random_problem
from robots import pose, rigid_body, stand

from contact_sim import InclinedPlane, InvalidInput, Sap, Simulator, load_robot

NO_EFFORT = np.zeros(0)


def pizza_saver(moment, steps=500):
    """physics.md 2.3: m = 3, R = 1.5, I = 6.75, g = 10, h = 0.01, three legs, μ = 2/3."""
    angles = np.deg2rad([90.0, 210.0, 330.0])
    legs = [([1.5 * np.cos(a), 1.5 * np.sin(a), 0.0], 0.0) for a in angles]
    body = rigid_body('pizza_saver', 3.0, np.diag([3.375, 3.375, 6.75]), legs)
    model = Sap(stiffness=1e4, relaxation_time=0.01, sigma=1e-3, beta=0.0)
    sim = Simulator(body, model, friction=2 / 3, gravity=10.0, time_step=0.01)
    sim.reset(pose(z=-0.0005))
    for _ in range(steps):
        report = sim.step(NO_EFFORT, {'body': [0, 0, 0, 0, 0, moment]})
    return sim, report


def tangential_force(report):
    return np.linalg.norm(report.contacts.force[:, :2], axis=1)


def test_rest_depth_is_weight_over_stiffness():
    sim, report = pizza_saver(0.0)
    assert sim.q[2] == pytest.approx(-1e-3, abs=1e-9)
    assert report.contacts.normal_force == pytest.approx([10.0] * 3, abs=1e-6)


def test_sticks_with_bounded_slip():
    _, report = pizza_saver(20.0)
    assert tangential_force(report) == pytest.approx([40 / 9] * 3, rel=1e-6)
    assert report.contacts.slip_speed.max() <= 1e-3 * 0.01 * 10.0


def test_slides_with_the_right_acceleration():
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


def test_creeps_on_a_slope_as_its_formula_says():
    # u_t = σ h g sin α for a point of its own mass: R_t γ_t = σ w m g sin α h, w = 1/m
    angle = np.deg2rad(10.0)
    body = rigid_body('point', 1.0, np.eye(3) * 1e9, [([0.0, 0.0, 0.0], 0.0)])
    sim = Simulator(body, Sap(), terrain=InclinedPlane(angle), friction=0.8, time_step=0.01)
    sim.reset(pose())
    for _ in range(400):
        report = sim.step(NO_EFFORT)
    w = np.sqrt(3.0) / 3.0
    assert report.contacts.slip_speed[0] == pytest.approx(
        1e-3 * w * 0.01 * 9.81 * np.sin(angle), rel=1e-4
    )


def test_glides_at_the_gap_of_its_formula():
    # physics.md 2.3: gap (h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n) at 1 m/s, μ = 0.5
    h, tau, mu = 0.01, 0.05, 0.5
    body = rigid_body('point', 1.0, np.eye(3) * 1e9, [([0.0, 0.0, 0.0], 0.0)])
    model = Sap(stiffness=1e5, relaxation_time=tau, sigma=1e-3, beta=0.0)
    sim = Simulator(body, model, friction=mu, time_step=h)
    sim.reset(pose(), np.array([1.0, 0, 0, 0, 0, 0]))
    for _ in range(200):
        pull = {'body': [mu * 9.81, 0, 0, 0, 0, 0]}  # holds the speed against friction
        report = sim.step(NO_EFFORT, pull)
    speed = report.contacts.slip_speed[0]
    normal = 9.81 * h
    rn, rt = 1.0 / (h * 1e5 * (h + tau)), 1e-3 * np.sqrt(3.0) / 3.0
    gap = (h + tau) * (mu * speed - (rn + mu**2 * rt) * normal)
    assert report.contacts.gap[0] == pytest.approx(gap, rel=1e-3)
    assert report.contacts.gap[0] > 0.01


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_robots_stand_on_springs(name):
    robot = load_robot(name)
    reports = stand(Simulator(robot, 'sap'), 3000)
    force = reports[-1].contacts.force.sum(axis=0) / robot.total_mass
    assert force == pytest.approx([0.0, 0.0, 9.81], abs=0.02)
    assert all(report.solver.converged for report in reports)
    depth = 9.81 * robot.total_mass / (4 * 1e5)
    assert reports[-1].residuals.penetration == pytest.approx(depth, rel=0.6)


@pytest.mark.parametrize(
    ('parameter', 'value'),
    [('stiffness', 0.0), ('stiffness', np.nan), ('relaxation_time', -1.0), ('sigma', 0.0)],
)
def test_bad_parameters_name_themselves(parameter, value):
    with pytest.raises(InvalidInput, match=f'SapParameters.{parameter}'):
        Sap(**{parameter: value})
