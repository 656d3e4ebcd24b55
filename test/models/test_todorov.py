"""todorov: its formulas. MuJoCo itself, step by step: test_todorov_mujoco.py."""

import numpy as np
import pytest
from problems import random_problem
from robots import cube, point_mass, pose, rigid_body, stand
from scipy.optimize import nnls

from contact_sim import InclinedPlane, InvalidInput, Plane, Simulator, Todorov, load_robot

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)


EXACT = {'cone': 'elliptic', 'diagonal': 'exact'}


def resting_point(slope, impedance_end=0.9, **parameters):
    """A point of unit mass, too inert to turn, after 4 s on a slope; constant impedance 0.9."""
    body = rigid_body('point', 1.0, np.eye(3) * 1e9, [([0.0, 0.0, 0.0], 0.0)])
    model = Todorov(impedance_start=0.9, impedance_end=impedance_end, **parameters)
    sim = Simulator(body, model, terrain=InclinedPlane(slope), friction=0.8, time_step=2e-3)
    sim.reset(pose())
    for _ in range(2000):
        report = sim.step(NO_EFFORT)
    return report


def test_2_4_sinks_as_its_formula_says():
    # g (1 − d) τ² ζ² = 3.924e-4 m for d = 0.9, τ = 0.02
    report = resting_point(0.0, **EXACT)
    assert -report.contacts.gap[0] == pytest.approx(3.924e-4, rel=1e-6)
    assert report.contacts.force[0, 2] == pytest.approx(GRAVITY, rel=1e-9)


def test_2_4_the_pyramid_sinks_and_creeps_as_its_formula_says():
    # edges with R = 2 μ² (1 + μ²) R_n: μ² (1 + μ²)/2 times the elliptic depth, 1 + μ² the creep
    mu = 0.8
    report = resting_point(0.0)
    assert -report.contacts.gap[0] == pytest.approx(
        0.5 * mu**2 * (1.0 + mu**2) * 3.924e-4, rel=1e-6
    )
    assert report.contacts.force[0, 2] == pytest.approx(GRAVITY, rel=1e-9)
    angle = np.deg2rad(10.0)
    creep = (1.0 + mu**2) * 0.1 / 0.9 * GRAVITY * np.sin(angle) * 0.9 * 0.02 / 2.0
    assert resting_point(angle).contacts.slip_speed[0] == pytest.approx(creep, rel=1e-6)


def test_a_contact_without_friction_has_that_of_mujoco():
    # μ ≥ 1e-5: on a slope a point gets g (sin α − 1e-5 cos α) and is carried by all edges
    body = rigid_body('point', 1.0, np.eye(3) * 1e9, [([0.0, 0.0, 0.0], 0.0)])
    angle = np.deg2rad(10.0)
    sim = Simulator(body, 'todorov', terrain=InclinedPlane(angle), friction=0.0)
    sim.reset(pose())
    reports = [sim.step(NO_EFFORT) for _ in range(500)]
    assert all(report.solver.converged for report in reports)
    carried = np.mean([report.contacts.normal_force[0] for report in reports[-300:]])
    assert carried == pytest.approx(GRAVITY * np.cos(angle), rel=1e-2)
    assert sim.v[0] == pytest.approx(0.5 * GRAVITY * np.sin(angle) * np.cos(angle), rel=1e-2)


@pytest.mark.parametrize('impratio', [1.0, 10.0, 100.0])
def test_2_4_creeps_as_its_formula_says(impratio):
    # u_t = R_t f_t / b, R_t = (1 − d)/d / impratio, b = 2/(d τ)
    angle = np.deg2rad(10.0)
    report = resting_point(angle, impratio=impratio, **EXACT)
    compliance = 0.1 / 0.9 / impratio
    expected = compliance * GRAVITY * np.sin(angle) * 0.9 * 0.02 / 2.0
    assert report.contacts.slip_speed[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('impratio', [1.0, 10.0, 100.0])
def test_2_4_creep_under_the_defaults_of_mujoco(impratio):
    # 1.5385e-3 m/s at 10° with impratio 1, and inversely to it
    report = resting_point(np.deg2rad(10.0), impedance_end=0.95, impratio=impratio, **EXACT)
    assert report.contacts.slip_speed[0] * impratio == pytest.approx(1.5385e-3, abs=5e-8)


def test_2_4_noslip_takes_the_creep_out():
    report = resting_point(np.deg2rad(10.0), impedance_end=0.95, noslip_iterations=20, **EXACT)
    assert report.contacts.slip_speed[0] <= 1e-12


def test_acts_only_while_it_penetrates():
    sim = Simulator(cube(), 'todorov')
    sim.reset(pose(z=0.15))
    for _ in range(300):
        report = sim.step(NO_EFFORT)
        loaded = report.contacts.normal_force > 0.0
        assert np.all(report.record.gap_start[loaded] < 0.0)


@pytest.mark.parametrize(
    ('cone', 'rise', 'distance'), [('elliptic', 0.078, 3.659), ('pyramidal', 0.092, 3.824)]
)
def test_2_4_a_fast_slider_takes_off(cone, rise, distance):
    # a 10 cm cube at rest is launched at 6 m/s, μ = 0.5, h = 5 ms: rises by 7.8 / 9.2 cm where 0
    # would be right, and tumbles over 3.659 / 3.824 m where 3.670 m would be
    half = 0.05
    corners = [
        ([x, y, z], 0.0) for x in (-half, half) for y in (-half, half) for z in (-half, half)
    ]
    body = rigid_body('cube', 1.0, np.eye(3) / 600, corners)
    model = Todorov(cone=cone, tolerance=1e-14)
    sim = Simulator(body, model, friction=0.5, time_step=5e-3)
    sim.reset(pose(z=half))
    for _ in range(200):
        sim.step(NO_EFFORT)
    start = sim.q.copy()
    sim.reset(start, np.array([6.0, 0, 0, 0, 0, 0]))
    height = [sim.step(NO_EFFORT).q[2] for _ in range(600)]
    assert max(height) - start[2] == pytest.approx(rise, abs=5e-4)
    assert np.linalg.norm(sim.q[:2] - start[:2]) == pytest.approx(distance, abs=5e-4)


def cart(q, v, gravity=0.0, h=0.01, **parameters):
    """T22: m = 1, b = 0.1, ε = 0.05, κ = 0.1, h = 0.01, a wall at 0."""
    model = Todorov(
        form='2014', regularisation=0.05, error_reduction_time=0.1, damping_inertia=0.1,
        cone='elliptic', tolerance=1e-14, **parameters,
    )  # fmt: skip
    sim = Simulator(
        point_mass(1.0), model, terrain=Plane((1.0, 0.0, 0.0)), friction=0.0, time_step=h,
        gravity=[-gravity, 0.0, 0.0],
    )  # fmt: skip
    sim.reset(np.array([q, 0.0, 0.0]), np.array([v, 0.0, 0.0]))
    return sim


def test_t22_acts_at_a_distance_as_the_text_says():
    # T22: (0.02, −1) → (0.01180043, −0.81995671), f = 0.19704762 [N s]; (0.02, −0.05) → f = 0
    sim = cart(0.02, -1.0)
    report = sim.step(NO_EFFORT)
    assert [sim.q[0], sim.v[0]] == pytest.approx([0.01180043, -0.81995671], abs=5e-9)
    assert report.record.impulse[2] == pytest.approx(0.19704762, abs=5e-9)
    assert cart(0.02, -0.05).step(NO_EFFORT).record.impulse[2] == 0.0
    # active from q < 0.1991342 at v = −1
    assert cart(0.1991341, -1.0).step(NO_EFFORT).record.impulse[2] > 0.0
    assert cart(0.1991343, -1.0).step(NO_EFFORT).record.impulse[2] == 0.0


def test_t22_rests_at_the_depth_of_its_formula():
    # T22: κ² ε/(1 + ε) m g/(m + b) = 0.0042467532 m, with f/h = m g
    sim = cart(0.0, 0.0, gravity=GRAVITY)
    for _ in range(1000):
        report = sim.step(NO_EFFORT)
    assert -sim.q[0] == pytest.approx(0.0042467532, abs=5e-11)
    assert report.contacts.force[0, 0] == pytest.approx(GRAVITY, rel=1e-12)


def problem_of_2014(seed, cone, epsilon=0.05, kappa=0.5):
    """T21: a random problem without gaps, its v̂ = u⁻ − h B u⁻, and what the model answers."""
    problem = random_problem(seed, 3)
    model = Todorov(form='2014', regularisation=epsilon, error_reduction_time=kappa, cone=cone)
    solution = model.solve(problem)
    assert solution.solver.converged
    start, h = problem.start_velocity, problem.time_step
    return problem, start - h * 2 * (1 + epsilon) / kappa * start, solution.impulse


@pytest.mark.parametrize('seed', range(40))
def test_t21_form_of_2014_obeys_its_optimality(seed):
    """λ in the cone, s = (G + R) λ + u_f − v̂ in the dual cone, s ⊥ λ; R = ε diag(G)."""
    problem, v_hat, impulse = problem_of_2014(seed, 'elliptic')
    G, force = problem.delassus, impulse.reshape(-1, 3)
    s = (G @ impulse + problem.free_velocity - v_hat).reshape(-1, 3)
    for i, mu in enumerate(problem.friction):
        d = np.diag(G)[3 * i : 3 * i + 3]
        t = 0.5 * (d[0] + d[1])
        s[i] += 0.05 * np.array([t, t, d[2]]) * force[i]
        assert np.hypot(*force[i, :2]) <= mu * force[i, 2] + 1e-9
        assert mu * np.hypot(*s[i, :2]) <= s[i, 2] + 1e-6
        assert abs(s[i] @ force[i]) <= 1e-6


@pytest.mark.parametrize('seed', range(40))
def test_t21_pyramids_are_a_least_squares_problem_of_their_edges(seed):
    """λ = D β, min ½ βᵀ (Dᵀ G D + R) β + βᵀ Dᵀ (u_f − v̂) over β ≥ 0, edges n ± μ t_i."""
    problem, v_hat, impulse = problem_of_2014(seed, 'pyramidal')
    G, D, R = problem.delassus, np.zeros((9, 12)), np.zeros(12)
    for i, mu in enumerate(problem.friction):
        d = np.diag(G)[3 * i : 3 * i + 3]
        D[3 * i + 2, 4 * i : 4 * i + 4] = 1.0
        D[3 * i : 3 * i + 2, 4 * i : 4 * i + 4] = mu * np.array([[1, -1, 0, 0], [0, 0, 1, -1]])
        R[4 * i : 4 * i + 4] = 0.05 * (d[2] + mu**2 * 0.5 * (d[0] + d[1]))
    L = np.linalg.cholesky(D.T @ G @ D + np.diag(R))
    beta, _ = nnls(L.T, -np.linalg.solve(L, D.T @ (problem.free_velocity - v_hat)))
    assert impulse == pytest.approx(D @ beta, abs=1e-7)


@pytest.mark.parametrize('name', ['go1', 'solo12'])
def test_robots_stand_under_the_form_of_2014(name):
    robot = load_robot(name)
    reports = stand(Simulator(robot, Todorov(form='2014', cone='elliptic')), 1500)
    assert all(report.solver.converged for report in reports)
    force = reports[-1].contacts.force.sum(axis=0)
    assert force == pytest.approx([0, 0, robot.total_mass * GRAVITY], abs=0.05 * force[2])


def test_damping_inertia_slows_a_fall_down_and_is_gone_after_the_step():
    # (m + b) v̇ = m g − b v
    sim = cart(1.0, 0.0, gravity=GRAVITY, h=1e-3)
    speeds = [sim.step(NO_EFFORT).v[0] for _ in range(2)]
    first = -GRAVITY * 1e-3 / 1.1
    assert speeds == pytest.approx([first, 2 * first - 0.1 * first * 1e-3 / 1.1], rel=1e-12)
    sim.contact_model = 'ncp'
    assert sim.step(NO_EFFORT).acceleration[0] == pytest.approx(-GRAVITY, rel=1e-12)


@pytest.mark.parametrize(
    ('parameter', 'value'),
    [
        ('time_constant', 0.0),
        ('damping_ratio', -1.0),
        ('impedance_start', 1.0),
        ('impratio', 0.0),
        ('cone', 'round'),
        ('form', '2015'),
        ('regularisation', 0.0),
        ('error_reduction_time', 0.0),
        ('damping_inertia', -1.0),
        ('diagonal', 'none'),
        ('noslip_iterations', -1),
        ('refsafe', 'yes'),
    ],
)
def test_bad_parameters_name_themselves(parameter, value):
    with pytest.raises(InvalidInput, match=f'TodorovParameters.{parameter}'):
        Todorov(**{parameter: value})
