"""Numbers of the theory that no other test asks for, each through the package itself.

T10 sizing, stiffness limit, creep      T11 one normal at any depth  T16 cart at the wall
T17 LCP is a QP                         T20 unique velocity          T26 two blocks
2.12 limp robot under the convex model  C8 square on a slope         X1 bounces at 1 ms
X4 box on a slope                       X7 one wrench, many forces   X8 ADMM on stacks
X9 rolling under every model            X12 rolling balls            X19 stance under every model
X23 joint limit as a row
"""

import numpy as np
import pinocchio as pin
import pytest
from problems import GRAVITY, box_stack, rolling_balls
from robots import ball, cube, lay_on_slope, point_mass, pose, rigid_body, stand
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
from contact_sim.step._problem import SolverStatus

NO_EFFORT = np.zeros(0)


def test_t10_stiffness_from_the_wanted_penetration():
    # 180 kg on eight corners, 1 mm: 220 725 N/m each
    corners = [([x, y, z], 0.0) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    body = rigid_body('crate', 180.0, 100.0 * np.eye(3), corners)
    sim = Simulator(body, Compliant(normal_law='linear', penetration=1e-3))
    assert sim._data.springs[0] == pytest.approx(220725.0, rel=1e-12)


@pytest.mark.parametrize(
    ('mass', 'stiffness', 'limit'), [(180.0, 1.7658e6, 20.2e-3), (1.0, 220725.0, 4.26e-3)]
)
def test_t10_explicit_springs_have_a_longest_step(mass, stiffness, limit):
    for h, status in (
        (0.997 * limit, SolverStatus.CONVERGED), (1.003 * limit, SolverStatus.UNSTABLE)
    ):  # fmt: skip
        model = Compliant(
            normal_law='linear', friction_law='tanh', stiffness=stiffness, integration='explicit'
        )
        sim = Simulator(point_mass(mass), model, time_step=h)
        sim.reset(np.array([0.0, 0.0, -mass * GRAVITY / stiffness]))
        assert sim.step(NO_EFFORT).solver.status is status


@pytest.mark.parametrize('model', contact_models())
@pytest.mark.parametrize('depth', [1e-3, 0.05, 1.0])
def test_t11_a_half_space_has_one_normal_at_any_depth(model, depth):
    # normals flip inside a box where its medial axis is crossed; the ground has none: the frame of
    # first contact stays, forces are finite and push out
    slope = InclinedPlane(np.deg2rad(20.0), heading=0.4)
    normal = slope.plane[:3]
    sim = Simulator(point_mass(1.0), model, terrain=slope)
    sim.reset(-depth * normal)
    for _ in range(5):
        report = sim.step(NO_EFFORT)
        assert report.contacts.normal[0] == pytest.approx(normal, abs=1e-15)
        assert np.isfinite(report.contacts.force).all()
        assert report.contacts.normal_force[0] >= 0.0 or model == 'null_space'  # it may pull
    assert np.isfinite(sim.q).all()


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
    assert v == pytest.approx(expected, abs=1e-10 if isinstance(model, Lcp) else 1e-9)


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
    solution = Ncp(max_points=0, max_sweeps=1, max_admm_iterations=200).solve(problem)
    assert solution.solver.converged  # where 5 000 sweeps of pgs are not enough
    bottom = solution.impulse[2:12:3].sum() / problem.time_step
    assert bottom / (mass.sum() * GRAVITY) == pytest.approx(1.0, abs=1e-7)
    if ratio == 1e6:
        assert bottom == pytest.approx(12503.87639, rel=1e-6)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu', 'hybrid'])
def test_c8_square_on_a_frictionless_slope(model):
    # 2.7: mg cos α/2 = 4.6091923 N per edge; hybrid poses it for accelerations
    angle = np.deg2rad(20.0)
    sim = Simulator(cube(1.0), model, terrain=InclinedPlane(angle), friction=0.0)
    lay_on_slope(sim, angle, 0.5)
    normal = sim.step(NO_EFFORT).contacts.normal_force
    assert [normal[:2].sum(), normal[2:].sum()] == pytest.approx([4.6091923] * 2, abs=1e-6)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu'])
def test_x1_bounces_at_one_millisecond(model):
    # first apex 0.64039 m; the next depend on where the steps fall, within e² v h
    sim = Simulator(ball(), model, restitution=0.8, time_step=1e-3)
    sim.reset(pose(z=1.1))
    apexes, rising = [], False
    while len(apexes) < 3:
        sim.step(NO_EFFORT)
        if rising and sim.v[2] <= 0.0:
            apexes.append(sim.q[2] - 0.1 + sim.v[2] ** 2 / (2 * GRAVITY))
        rising = sim.v[2] > 0.0
    assert apexes[0] == pytest.approx(0.64039, abs=5e-6)
    assert apexes == pytest.approx([0.64039, 0.40966, 0.26287], abs=1.5e-3)


SLOPE_TOLERANCE = {
    'compliant': 2e-2, 'todorov': 1e-2, 'sap': 1e-2, 'anitescu': 1e-3, 'null_space': 1e-6,
    'hybrid': 1e-6, 'lcp': 1e-6, 'ncp': 1e-6,
}  # fmt: skip
"""Relative: the soft models creep with μ N v_s and the like, and rest tilted on their springs."""


@pytest.mark.parametrize('model', contact_models())
def test_x4_a_box_rests_on_a_slope(model):
    # 20°, μ = 0.4: mg cos α/4 (1 ± tan α) per corner in front and behind. 3.16518988/1.44400242
    # are one side of a solution that also squeezes the box by 0.0218 N; the sides differ freely
    angle, tolerance = np.deg2rad(20.0), SLOPE_TOLERANCE[model]
    sim = Simulator(cube(), model, terrain=InclinedPlane(angle), friction=0.4)
    lay_on_slope(sim, angle, 0.1)
    for _ in range(500):
        report = sim.step(NO_EFFORT)
    assert np.linalg.norm(sim.v[:3]) <= 0.4 * tolerance
    normal = report.contacts.normal_force
    found = np.array([normal[2:].sum(), normal[:2].sum()]) / 2
    share = GRAVITY * np.cos(angle) / 4
    expected = share * np.array([1 + np.tan(angle), 1 - np.tan(angle)])
    assert expected.sum() == pytest.approx(3.16518988 + 1.44400242, abs=1e-8)
    assert found == pytest.approx(expected, rel=tolerance)


ROLLING_TOLERANCE = {'compliant': 1e-2, 'todorov': 3e-3, 'sap': 2e-2, 'anitescu': 5e-3}
"""Relative; 1e-6 for the others. A contact that hovers or sinks changes the lever of friction."""


@pytest.mark.parametrize('model', contact_models())
@pytest.mark.parametrize(('spin', 'speed'), [(0.0, 5 / 7), (-50.0, -0.714286)])
def test_x9_a_sliding_sphere_ends_rolling(model, spin, speed):
    # (5 v0 + 2 r ω0)/7 of 1 m/s, r = 0.1, whatever the law of friction
    sim = Simulator(ball(), model, friction=0.2)
    sim.reset(pose(z=0.1), np.array([1.0, 0, 0, 0, spin, 0]))
    for _ in range(1200 if spin else 300):
        sim.step(NO_EFFORT)
    tolerance = ROLLING_TOLERANCE.get(model, 1e-6)
    velocity = pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ sim.v[:3]
    assert velocity == pytest.approx([speed, 0.0, 0.0], abs=tolerance)
    assert sim.v[3:] == pytest.approx([0.0, speed / 0.1, 0.0], abs=10.0 * tolerance)


@pytest.mark.parametrize('model', contact_models())
def test_x9_a_sphere_rolls_down_a_slope(model):
    # 15°, r = 0.05, m = 0.1: a = 1.813582, F_t = 0.07254328 N; below μ = 0.07655691 it slips
    angle, tolerance = np.deg2rad(15.0), ROLLING_TOLERANCE.get(model, 1e-6)
    for friction, rolls in ((0.08, True), (0.07, False)):
        sim = Simulator(ball(0.1, 0.05), model, terrain=InclinedPlane(angle), friction=friction)
        q = pose()
        q[:3] = 0.05 * sim.terrain.plane[:3]
        sim.reset(q)
        for _ in range(1000):
            report = sim.step(NO_EFFORT)
        force, normal = report.contacts.force[0], report.contacts.normal_force[0]
        tangential = np.sqrt(force @ force - normal**2)
        if model == 'null_space' and not rolls:  # holds by whatever force it takes, and says so
            assert tangential == pytest.approx(0.07254328, rel=1e-6)
            assert report.solver.status is SolverStatus.OUTSIDE_CONE
            continue
        slides = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
        speed = 1.813582 if rolls else slides
        assert np.linalg.norm(sim.v[:3]) == pytest.approx(speed, rel=tolerance)
        friction_force = 0.07254328 if rolls else friction * normal
        assert tangential == pytest.approx(friction_force, rel=2.0 * tolerance)


@pytest.mark.parametrize('solver', ['exact', 'staggered'])
def test_x12_balls_roll_on_a_pushed_box(solver):
    # 150 N against 0.4 · 35 kg: the box gets 0.7385 m/s², a ball 2/7 of it
    problem, course = rolling_balls(150.0), np.array([0.5, np.sqrt(0.75), 0.0])
    impulse = Ncp(solver=solver).solve(problem).impulse
    v = problem.free_motion + np.linalg.solve(problem.inertia, problem.jacobian.T @ impulse)
    box, ball_speed = 0.7385 * problem.time_step, 0.211 * problem.time_step
    assert v[:3] == pytest.approx(box * course, abs=1e-9)
    assert v[3:].reshape(-1, 6)[:, :3] == pytest.approx(np.tile(ball_speed * course, (25, 1)))


def test_2_10_x12_box_friction_holds_the_rolling_balls():
    # at 30° it bears up to μ N/cos 30° = 158.6 N: no motion under 150 N, whose error against the
    # exact speeds over 4 s is the 3.145 that ODE and DART got
    def speed(push):
        problem = rolling_balls(push)
        solution = Lcp(friction_law='box').solve(problem)
        assert solution.solver.converged
        change = np.linalg.solve(problem.inertia, problem.jacobian.T @ solution.impulse)
        return np.abs(problem.free_motion + change).max()

    assert speed(150.0) <= 1e-12
    assert speed(158.5) <= 1e-12
    assert speed(158.7) >= 1e-6
    time = 1e-3 * np.arange(4000)
    error = np.mean((0.7385 * time - speed(150.0)) ** 2 + (0.211 * time - speed(150.0)) ** 2)
    assert error == pytest.approx(3.145, abs=5e-4)


def test_2_12_the_convex_model_lifts_a_limp_robot_too_much():
    # one step of anymal_b without torques: its feet slip outwards, and get more than their share;
    # no difference where they stick or feel no friction
    def carried(model, friction):
        robot = load_robot('anymal_b')
        sim = Simulator(robot, model, friction=friction)
        force = sim.step(np.zeros(robot.n_joints)).contacts.force[:, 2].sum()
        return force / (robot.total_mass * GRAVITY)

    assert carried('anitescu', 0.5) >= 1.2 * carried('ncp', 0.5)
    for friction in (0.0, 0.8):
        assert carried('anitescu', friction) == pytest.approx(carried('ncp', friction), rel=1e-6)


@pytest.mark.parametrize('model', [Ncp(), Ncp(max_sweeps=1), Ncp(solver='pgs'), Lcp(), Anitescu()])
def test_x23_a_joint_limit_is_a_half_line(model):
    # go1 in the air pushes its knee against the lower limit: the row holds it, q̇ = 0, and never
    # pulls (23.0291 N m is the torque of a pose that the theory does not tell)
    robot = load_robot('go1')
    pinocchio, h = robot.pinocchio_model, 1e-3
    data, nv = pinocchio.createData(), robot.nv
    knee = robot.joint_names.index('FR_calf_joint')
    q = robot.reference_configuration('standing')
    angles = robot.joint_positions(q).copy()
    angles[knee] = robot.lower_position_limit[knee]
    q = robot.with_joint_positions(q, angles)
    inertia = pin.crba(pinocchio, data, q)
    inertia = np.triu(inertia) + np.triu(inertia, 1).T
    row = np.zeros((1, nv))
    row[0, robot.joint_velocity_index[knee]] = 1.0
    for push, holds in ((-25.0, True), (25.0, False)):
        tau = push * row[0] - pin.nonLinearEffects(pinocchio, data, q, np.zeros(nv))
        free = np.linalg.solve(inertia, h * tau)
        problem = ContactProblem.from_dynamics(
            inertia, row, np.zeros(nv), free, [], [], [0.0], h, lower=[0.0], upper=[np.inf]
        )
        torque = model.solve(problem).impulse[0] / h
        v = free + np.linalg.solve(inertia, row[0] * torque * h)
        if holds:
            assert torque > 20.0
            assert row[0] @ v == pytest.approx(0.0, abs=1e-12)
        else:
            assert torque == 0.0


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
