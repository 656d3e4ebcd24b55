"""Numbers of physics.md that no other test asks for, each through the package itself.

T10 sizing, stiffness limit, creep      T16 cart at the wall         T17 LCP is a QP
T20 unique velocity, lift-off           T26 two blocks               X7 one wrench, many forces
X8 ADMM on stacks                       C8 square on a slope         X9 rolling under every model
X19 statics of a stance under every model
"""

import numpy as np
import pinocchio as pin
import pytest
from problems import GRAVITY, box_stack
from robots import ball, cube, point_mass, pose, rigid_body, stand
from scipy.optimize import nnls

from contact_sim import (
    Anitescu,
    Compliant,
    ContactProblem,
    InclinedPlane,
    Lcp,
    Ncp,
    Plane,
    Simulator,
    contact_models,
    load_robot,
)
from contact_sim.contact.solution import SolverStatus

NO_EFFORT = np.zeros(0)


def test_t10_stiffness_from_the_wanted_penetration():
    # 180 kg on eight corners, 1 mm: 220 725 N/m each
    corners = [([x, y, z], 0.0) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    body = rigid_body('crate', 180.0, 100.0 * np.eye(3), corners)
    sim = Simulator(body, Compliant(normal_law='linear', penetration=1e-3))
    assert sim._record.stiffness[0] == pytest.approx(220725.0, rel=1e-12)


@pytest.mark.parametrize(
    ('mass', 'stiffness', 'limit'), [(180.0, 1.7658e6, 20.2e-3), (1.0, 220725.0, 4.26e-3)]
)
def test_t10_explicit_springs_have_a_longest_step(mass, stiffness, limit):
    for h, status in (
        (0.997 * limit, SolverStatus.CONVERGED), (1.003 * limit, SolverStatus.UNSTABLE)
    ):  # fmt: skip
        model = Compliant(normal_law='linear', stiffness=stiffness, integration='explicit')
        sim = Simulator(point_mass(mass), model, time_step=h)
        sim.reset(np.array([0.0, 0.0, -mass * GRAVITY / stiffness]))
        assert sim.step(NO_EFFORT).solver.status is status


def test_2_2_smooth_step_creeps_at_its_root():
    # x = 1 − √(1 − f_t/(μ f_n)): 0.29289 v_s at half the friction
    model = Compliant(normal_law='kelvin_voigt', friction_law='stribeck', stiffness=1e4)
    sim = Simulator(point_mass(1.0), model, friction=0.5)
    sim.reset(np.array([0.0, 0.0, -GRAVITY / 1e4]))
    for _ in range(500):
        sim.step(NO_EFFORT, {'point': [0.25 * GRAVITY, 0, 0, 0, 0, 0]})
    assert sim.v[0] == pytest.approx(0.29289e-3, rel=1e-4)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu'])
@pytest.mark.parametrize(
    ('q', 'v', 'u', 'expected'),
    [
        (0.0, 0.0, -2.0, (0.0, 2.0)),
        (0.05, -1.0, 0.0, (0.0, 5.0)),
        (0.3, -1.0, 0.0, (0.2, 0.0)),
        (0.0, 2.0, 0.0, (0.2, 0.0)),
    ],
)
def test_t16_r1_cart_at_the_wall(model, q, v, u, expected):
    wall = Plane((1.0, 0.0, 0.0))
    sim = Simulator(point_mass(1.0), model, terrain=wall, friction=0.0, time_step=0.1, gravity=0.0)
    sim.reset(np.array([q, 0.0, 0.0]), np.array([v, 0.0, 0.0]))
    report = sim.step(NO_EFFORT, {'point': [u, 0, 0, 0, 0, 0]})
    assert (sim.q[0], report.contacts.force[0, 0]) == pytest.approx(expected, abs=1e-9)


def landing_cube(friction, v):
    """The problem of a cube on its four corners, and its normal rows."""
    sim = Simulator(cube(), friction=friction)
    sim.reset(pose(z=0.1), np.array(v, dtype=float))
    return sim.step(NO_EFFORT).problem


@pytest.mark.parametrize('model', [Lcp(), Ncp(), Anitescu(), Anitescu(sides=8)])
def test_t17_frictionless_contact_is_a_quadratic_program(model):
    problem = landing_cube(0.0, [0.3, 0.1, -0.5, 0.4, -0.7, 0.2])
    N, M = problem.jacobian[2::3], problem.inertia
    assert np.linalg.matrix_rank(N @ np.linalg.solve(M, N.T), tol=1e-9) == 3
    # dual: min ½ |L⁻¹ Nᵀ λ + Lᵀ v_f|² over λ ≥ 0, with M = L Lᵀ and no gap
    assert np.abs(problem.bias).max() <= 1e-12
    L = np.linalg.cholesky(M)
    impulse, _ = nnls(np.linalg.solve(L, N.T), -L.T @ problem.free_motion)
    expected = problem.free_motion + np.linalg.solve(M, N.T @ impulse)
    found = model.solve(problem).impulse
    v = problem.free_motion + np.linalg.solve(M, problem.jacobian.T @ found)
    assert v == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize('sides', [0, 4, 8])
def test_t20_velocity_is_unique_and_forces_are_not(sides):
    problem, model = landing_cube(0.4, np.zeros(6)), Anitescu(sides=sides)
    first = model.solve(problem)
    share = GRAVITY * 1e-3 / 2  # two diagonal corners carry all
    second = model.solve(problem, np.array([0, 0, share, 0, 0, 0, 0, 0, 0, 0, 0, share]))
    G = problem.delassus
    assert G @ first.impulse == pytest.approx(G @ second.impulse, abs=1e-8)
    assert np.abs(first.impulse - second.impulse).max() > 1e-3


def test_t20_starting_in_contact_it_lifts_off():
    # u_n = μ |u_t| after the first step
    problem = landing_cube(0.4, [1.0, 0, 0, 0, 0, 0])
    solution = Anitescu().solve(problem)
    u = (problem.delassus @ solution.impulse + problem.free_velocity).reshape(-1, 3)
    carries = solution.impulse[2::3] > 1e-6
    lift = 0.4 * np.hypot(u[:, 0], u[:, 1])
    assert carries.any()
    assert u[carries, 2] == pytest.approx(lift[carries], abs=1e-8)


@pytest.mark.parametrize('model', [Ncp(), Anitescu(), Lcp()])
def test_t26_two_blocks(model):
    # steps 1–3: (q_A, v_A, q_B, v_B, f)
    q, v, seen = np.array([-2.0, 0.0]), np.array([3.0, 0.0]), []
    row = np.array([[-1.0, 1.0]])
    for _ in range(3):
        gap = q[1] - q[0] - 1.0
        problem = ContactProblem.from_dynamics(
            np.eye(2), row, v, v, [], [], [gap], 1.0, lower=[0.0], upper=[np.inf]
        )
        force = model.solve(problem).impulse
        v = v + row.T @ force
        q = q + v
        seen.append([q[0], v[0], q[1], v[1], force[0]])
    expected = [[0, 2, 1, 1, 1], [1.5, 1.5, 2.5, 1.5, 0.5], [3, 1.5, 4, 1.5, 0]]
    assert np.array(seen) == pytest.approx(np.array(expected), abs=1e-9)


def test_x7_one_wrench_whatever_the_forces():
    forces = {}
    for name in ('ncp', 'lcp', 'anitescu'):
        sim = Simulator(cube(), name)
        sim.reset(pose(z=0.1))
        for _ in range(20):
            report = sim.step(NO_EFFORT)
        wrench = report.problem.jacobian.T @ report.record.impulse / report.problem.time_step
        assert wrench == pytest.approx([0, 0, GRAVITY, 0, 0, 0], abs=1e-7)
        forces[name] = report.contacts.normal_force
    assert np.abs(forces['ncp'] - forces['lcp']).max() > 1.0


@pytest.mark.parametrize('ratio', [1e1, 1e3, 1e6])
def test_x8_admm_carries_stacks(ratio):
    problem, mass = box_stack(ratio)
    solution = Ncp(max_sweeps=1, max_admm_iterations=5000).solve(problem)
    assert solution.solver.converged
    bottom = solution.impulse[2:12:3].sum() / problem.time_step
    assert bottom / (mass.sum() * GRAVITY) == pytest.approx(1.0, abs=1e-7)
    if ratio == 1e6:
        assert bottom == pytest.approx(12503.87639, rel=1e-6)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu'])
def test_c8_square_on_a_frictionless_slope(model):
    # mg cos α/2 = 4.6091923 N per edge
    angle = np.deg2rad(20.0)
    sim = Simulator(cube(1.0), model, terrain=InclinedPlane(angle), friction=0.0)
    q = sim.q.copy()
    q[:3] = 0.5 * sim.terrain.plane[:3]
    q[3:] = [0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)]
    sim.reset(q)
    normal = sim.step(NO_EFFORT).contacts.normal_force
    assert [normal[:2].sum(), normal[2:].sum()] == pytest.approx([4.6091923] * 2, abs=1e-6)


@pytest.mark.parametrize('model', contact_models())
def test_x9_a_sliding_sphere_ends_rolling(model):
    # v = 5/7 of 1 m/s, ω = 7.142857 rad/s, whatever the law of friction; soft ones within 0.3 %
    sim = Simulator(ball(), model, friction=0.2)
    sim.reset(pose(z=0.1), np.array([1.0, 0, 0, 0, 0, 0]))
    for _ in range(300):
        sim.step(NO_EFFORT)
    tolerance = 3e-3 if model in ('compliant', 'todorov', 'sap') else 3e-4
    assert np.linalg.norm(sim.v[3:]) == pytest.approx(7.142857, rel=tolerance)
    velocity = pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ sim.v[:3]
    assert velocity == pytest.approx([5 / 7, 0.0, 0.0], abs=3e-3 if tolerance == 3e-3 else 3e-4)


@pytest.mark.parametrize('name', ['anymal_b', 'solo12'])
@pytest.mark.parametrize('model', contact_models())
def test_x19_a_stance_is_in_balance(model, name):
    # ΣF = m g, no moment about the centre of mass, every foot pushes: CoP inside the polygon
    robot = load_robot(name)
    sim = Simulator(robot, model)
    contacts = stand(sim, 2500)[-1].contacts
    weight = robot.total_mass * GRAVITY
    assert contacts.force.sum(axis=0) == pytest.approx([0.0, 0.0, weight], abs=2e-3 * weight)
    centre = pin.centerOfMass(robot.pinocchio_model, robot.pinocchio_model.createData(), sim.q)
    moment = np.cross(contacts.position - centre, contacts.force).sum(axis=0)
    assert np.abs(moment).max() <= 2e-3 * weight * centre[2]
    assert (contacts.force[:, 2] > 0.0).all()
