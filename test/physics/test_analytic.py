"""Small bodies with closed-form motion; numbers from theory 3."""

import numpy as np
import pinocchio as pin
import pytest
from robots import axle, ball, cube, lay_on_slope, point_mass, pose, rigid_body

from contact_sim import InclinedPlane, Lcp, Ncp, Plane, Simulator

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)


def run(sim, steps, **kwargs):
    for _ in range(steps):
        report = sim.step(NO_EFFORT, **kwargs)
    return report


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'hybrid'])
@pytest.mark.parametrize(('degrees', 'speed'), [(20.0, 0.0), (25.0, 0.2947667)])
def test_box_on_a_slope_sticks_or_slides(model, degrees, speed):
    # X4: μ = 0.4; at rest the moments give normal forces mg cos α/4 (1 ± tan α)
    angle = np.deg2rad(degrees)
    sim = Simulator(cube(), model, terrain=InclinedPlane(angle), friction=0.4)
    lay_on_slope(sim, angle, 0.1)
    report = run(sim, 500)
    assert np.linalg.norm(report.v[:3]) == pytest.approx(speed, abs=2e-7)
    normal = report.contacts.normal_force
    if speed == 0.0:
        front, back = normal[2:].sum() / 2, normal[:2].sum() / 2
        share = GRAVITY * np.cos(angle) / 4
        expected = [share * (1 + np.tan(angle)), share * (1 - np.tan(angle))]
        assert [front, back] == pytest.approx(expected, abs=1e-6)


def test_resting_box_has_redundant_forces_but_one_wrench():
    # X7: rank of G is 6, the wrench on the body is unique
    report = run(Simulator(cube()), 50)
    problem = report.problem
    assert np.linalg.matrix_rank(problem.delassus, tol=1e-9) == 6
    wrench = problem.jacobian.T @ report.record.impulse / problem.time_step
    assert wrench == pytest.approx([0, 0, GRAVITY, 0, 0, 0], abs=1e-9)
    assert np.abs(report.record.u_next[:12]).max() <= 1e-12


def test_sphere_slips_then_rolls():
    # X9: v0 = 1, μ = 0.2, r = 0.1: v = 5/7 after 2 v0 / 7 μ g; h = 1 ms: 0.1249465 m at 0.146 s
    sim = Simulator(ball(), friction=0.2)
    sim.reset(pose(z=0.1), np.array([1.0, 0, 0, 0, 0, 0]))
    rolls_at, distance = None, None
    for _ in range(300):
        report = sim.step(NO_EFFORT)
        if rolls_at is None and report.contacts.slip_speed[0] < 1e-9:
            rolls_at, distance = sim.time, sim.q[0]
    assert rolls_at == pytest.approx(0.146, abs=1e-9)
    assert distance == pytest.approx(0.1249465, abs=1e-6)
    world_velocity = pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ sim.v[:3]
    assert world_velocity[0] == pytest.approx(5 / 7, abs=1e-9)
    assert np.linalg.norm(sim.v[3:]) == pytest.approx(7.142857, abs=1e-6)


def test_friction_opposes_the_slip_not_an_edge_of_a_pyramid():
    # X11a: point 0.2 kg, h = 0.01, μ = 0.3, force (−1, 0.8, 0), 50 steps
    sim = Simulator(point_mass(0.2), friction=0.3, time_step=0.01)
    sim.reset(np.zeros(3))
    for _ in range(50):
        sim.step(NO_EFFORT, external_wrenches={'point': [-1.0, 0.8, 0.0, 0.0, 0.0, 0.0]})
    assert sim.q[:2] == pytest.approx([-0.34449264, 0.27559412], abs=1e-8)
    assert np.degrees(np.arctan2(sim.q[1], -sim.q[0])) == pytest.approx(38.6598, abs=1e-4)
    assert sim.q[2] == pytest.approx(0.0, abs=1e-12)


EXACT_IN_A_PLANE = pytest.mark.parametrize(
    'model', [Ncp(), Ncp(solver='staggered'), Ncp(solver='pgs'), Lcp(sides=4), Lcp(sides=8)],
    ids=['ncp', 'staggered', 'pgs', 'lcp4', 'lcp8'],
)  # fmt: skip


@EXACT_IN_A_PLANE
def test_brick_of_the_textbook(model):
    # T18: m = 1, μ = 0.5, h = 0.1, g = 9.81: v 1 → 0.5095 → 0.019 → 0 → 0
    sim = Simulator(point_mass(1.0), model, friction=0.5, time_step=0.1)
    sim.reset(np.zeros(3), np.array([1.0, 0.0, 0.0]))
    speeds, forces = [], []
    for _ in range(4):
        report = sim.step(NO_EFFORT)
        speeds.append(sim.v[0])
        forces.append(-report.contacts.force[0, 0])
    assert speeds == pytest.approx([0.5095, 0.019, 0.0, 0.0], abs=1e-9)
    assert forces == pytest.approx([4.905, 4.905, 0.19, 0.0], abs=1e-10)


@EXACT_IN_A_PLANE
@pytest.mark.parametrize(('push', 'speed', 'force'), [(3.0, 0.0, 3.0), (6.0, 0.1095, 4.905)])
def test_brick_sticks_or_starts(model, push, speed, force):
    # T18: u = 3 sticks with f = 3, u = 6 moves with v' = 0.1095
    sim = Simulator(point_mass(1.0), model, friction=0.5, time_step=0.1)
    sim.reset(np.zeros(3))
    report = sim.step(NO_EFFORT, {'point': [push, 0, 0, 0, 0, 0]})
    assert sim.v[0] == pytest.approx(speed, abs=1e-12)
    assert -report.contacts.force[0, 0] == pytest.approx(force, abs=1e-10)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu'])
def test_cart_meets_a_wall_in_two_steps(model):
    # T16: m = 1, h = 0.1: (q, v, f) = (0.05, −1) → (0, −0.5, 5) → (0, 0, 5) → (0, 0, 0)
    wall = Plane((1.0, 0.0, 0.0))
    sim = Simulator(point_mass(1.0), model, terrain=wall, friction=0.0, time_step=0.1, gravity=0.0)
    sim.reset(np.array([0.05, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0]))
    seen = []
    for _ in range(3):
        report = sim.step(NO_EFFORT)
        seen.append((sim.q[0], sim.v[0], report.contacts.force[0, 0]))
    assert np.array(seen) == pytest.approx(
        np.array([(0.0, -0.5, 5.0), (0.0, 0.0, 5.0), (0.0, 0.0, 0.0)]), abs=1e-9
    )


def test_joint_friction_holds_exactly_and_limits_the_speed():
    # T10: effort 0.4 rests exactly; effort 1 tends to (1 − 0.5)/0.2 = 2.5, 2.49916 after 40 s
    sim = Simulator(axle(), time_step=1e-2)
    for _ in range(100):
        sim.step(np.array([0.4]))
    assert sim.v[0] == 0.0
    for _ in range(4000):
        sim.step(np.array([1.0]))
    exact = 2.5 * (1.0 - np.exp(-0.2 * 40.0))
    assert exact == pytest.approx(2.49916, abs=1e-5)
    assert sim.v[0] == pytest.approx(exact, abs=2e-5)


def first_apexes(sim, count, seconds):
    """Return the first apex heights of the lowest point, each from the parabola it sits on."""
    apexes, rising = [], False
    while sim.time < seconds and len(apexes) < count:
        sim.step(NO_EFFORT)
        if rising and sim.v[2] <= 0.0:
            apexes.append(sim.q[2] - 0.1 + sim.v[2] ** 2 / (2 * GRAVITY))
        rising = sim.v[2] > 0.0
    return apexes


def test_bouncing_ball_keeps_its_restitution():
    # X1: H = 1, e = 0.8: apexes 0.64, 0.4096, 0.262144; the step adds an error O(h v)
    sim = Simulator(ball(), restitution=0.8, time_step=1e-4)
    sim.reset(pose(z=1.1))
    apexes = first_apexes(sim, 3, seconds=3.0)
    assert apexes == pytest.approx([0.64, 0.4096, 0.262144], abs=2e-3)


def test_bounces_converge_with_the_time_step():
    errors = []
    for h in (4e-4, 1e-4, 2.5e-5):
        sim = Simulator(ball(), restitution=0.8, time_step=h)
        sim.reset(pose(z=1.1))
        apexes = first_apexes(sim, 2, seconds=2.0)
        errors.append(abs(apexes[0] - 0.64) + abs(apexes[1] - 0.4096))
    assert errors[-1] <= 5e-4
    assert errors[-1] <= 0.5 * errors[0]


def test_bouncing_comes_to_rest():
    sim = Simulator(ball(), restitution=0.8)
    sim.reset(pose(z=1.1))
    report = run(sim, 6000)  # Zeno time 4.06 s
    assert abs(sim.v[2]) <= 1e-9
    assert report.contacts.force[0, 2] == pytest.approx(GRAVITY, rel=1e-9)


def falling_rod(restitution):
    """X15: uniform rod of length 1, θ = 0.75, v = (−0.25, −1), ω = 6, μ = 0.5, about to land."""
    # m = 1 and half length 1/2: the tip is at the end of the rod below the centre
    body = rigid_body('rod', 1.0, np.eye(3) / 12.0, [([-0.5, 0.0, 0.0], 0.0)])
    sim = Simulator(body, friction=0.5, restitution=restitution, gravity=0.0, time_step=1e-6)
    angle = 0.75
    tip = 0.5 * np.sin(angle)
    q = np.array([0.0, 0.0, tip, 0.0, -np.sin(angle / 2), 0.0, np.cos(angle / 2)])
    turn = pin.Quaternion(*q[[6, 3, 4, 5]]).matrix()
    v = np.concatenate([turn.T @ [-0.25, 0.0, -1.0], [0.0, -6.0, 0.0]])
    sim.reset(q, v)
    return sim


def test_plastic_impact_takes_energy_out():
    sim = falling_rod(restitution=0.0)
    report = sim.step(NO_EFFORT)
    assert report.residuals.energy_balance.contact < -0.1
    assert report.record.u_next[2] == pytest.approx(0.0, abs=1e-9)


def test_energy_guard_reduces_restitution_to_what_energy_allows():
    # theory 2.8: Newton's law would add 1.09567 J; the guard stops at e = 0.80082523
    sim = falling_rod(restitution=1.0)
    report = sim.step(NO_EFFORT)
    record = report.record
    assert record.u_start[2] < -0.05
    ratio = -record.u_next[2] / record.u_start[2]
    assert ratio == pytest.approx(0.80082523, abs=1e-6)
    assert report.residuals.energy_balance.contact == pytest.approx(0.0, abs=1e-8)
