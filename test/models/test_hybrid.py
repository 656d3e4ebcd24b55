"""The event-driven model against closed forms: bounces, rolling, rods, Painlevé (theory 3)."""

import numpy as np
import pinocchio as pin
import pytest
from robots import (
    StandingController,
    axle,
    ball,
    centroidal_momentum,
    cube,
    point_mass,
    pose,
    stand,
    world_velocity,
)
from rods import leaning_rod, planar, tip_velocity
from scipy.optimize import brentq

from contact_sim import Hybrid, InclinedPlane, InvalidInput, Plane, Simulator, load_robot
from contact_sim.contact_models.hybrid._impacts import IMPACT_LAWS
from contact_sim.dynamics import mechanical_energy
from contact_sim.step._problem import SolverStatus

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)


def run(sim, seconds):
    for _ in range(round(seconds / sim.time_step)):
        report = sim.step(NO_EFFORT)
    return report


def event_time(sim, speed_after):
    """Instant at which a body in flight left the ground with `speed_after` upwards."""
    return sim.time + (world_velocity(sim)[2] - speed_after) / GRAVITY


# ---------------------------------------------------------------- bounces (X1, T15)


def bouncing_ball(e=0.8, **settings):
    sim = Simulator(ball(), Hybrid(**settings), restitution=e)
    sim.reset(pose(z=1.1))
    return sim


def test_bounces_happen_when_and_as_high_as_they_should():
    # X1: H = 1, e = 0.8: 0.45152364, 1.17396147, 1.75191173 s; apexes 0.64, 0.4096, 0.262144
    sim, speed = bouncing_ball(), np.sqrt(2 * GRAVITY)
    exact = np.sqrt(2 / GRAVITY) * (1 + 2 * np.cumsum([0.0, 0.8, 0.64]))
    assert exact == pytest.approx([0.45152364, 1.17396147, 1.75191173], abs=1e-8)
    for k, (time, apex) in enumerate(zip(exact, [0.64, 0.4096, 0.262144], strict=True)):
        while sim.time < time + 0.01:
            report = sim.step(NO_EFFORT)
        assert event_time(sim, 0.8 ** (k + 1) * speed) == pytest.approx(time, abs=1e-10)
        height = sim.q[2] - 0.1 + sim.v[2] ** 2 / (2 * GRAVITY)
        assert height == pytest.approx(apex, abs=1e-10)
        assert report.residuals.penetration <= 1e-12


def test_an_infinity_of_bounces_ends_at_the_zeno_time():
    # X1, T15: all bounces end at 4.06371277 s; below the threshold an impact is plastic
    sim = bouncing_ball()
    sim.restitution_threshold = 1e-5
    run(sim, 4.063)
    assert abs(sim.v[2]) > 1e-4
    solver = sim.step(NO_EFFORT).solver
    assert solver.iterations > 20
    assert solver.status is SolverStatus.CONVERGED
    report = sim.step(NO_EFFORT)
    assert sim.v[2] == pytest.approx(0.0, abs=1e-12)
    assert report.contacts.force[0, 2] == pytest.approx(GRAVITY, abs=1e-9)


def test_without_a_threshold_the_step_of_infinite_bounces_falls_back_and_says_so():
    # 2.6: more events than allowed: a status, and one time-stepping step
    sim = bouncing_ball(max_events=20)
    sim.restitution_threshold = 0.0
    statuses = set()
    while sim.time < 4.1:
        statuses.add(sim.step(NO_EFFORT).solver.status)
    assert SolverStatus.TOO_MANY_EVENTS in statuses
    assert np.abs(sim.v).max() <= 0.05
    assert abs(sim.q[2] - 0.1) <= 1e-4


def test_the_force_of_a_bounce_is_its_impulse():
    sim, total = bouncing_ball(), 0.0
    while sim.time < 0.5:
        total += sim.step(NO_EFFORT).contacts.force[0, 2] * sim.time_step
    assert total == pytest.approx(1.8 * np.sqrt(2 * GRAVITY), rel=1e-12)


def test_a_snapshot_in_the_middle_of_bouncing_is_exact():
    sim = bouncing_ball()
    run(sim, 0.6)
    snapshot = sim.snapshot()
    first = [sim.step(NO_EFFORT).record.buffer.tobytes() for _ in range(700)]
    sim.restore(snapshot)
    assert [sim.step(NO_EFFORT).record.buffer.tobytes() for _ in range(700)] == first


def test_switching_away_and_back_keeps_the_bounce():
    sim = bouncing_ball()
    run(sim, 0.3)
    sim.contact_model = 'ncp'
    sim.contact_model = Hybrid()
    run(sim, 0.2)
    assert event_time(sim, 0.8 * np.sqrt(2 * GRAVITY)) == pytest.approx(0.451523641, abs=1e-9)


# ---------------------------------------------------------------- slip and roll (X9)


def sliding_ball(spin=0.0, friction=0.2, **settings):
    sim = Simulator(ball(), 'hybrid', friction=friction, **settings)
    sim.reset(pose(z=0.1), np.array([1.0, 0.0, 0.0, 0.0, spin, 0.0]))
    return sim


def test_sphere_slips_until_it_rolls():
    # X9: v = 5/7, ω = 7.142857 after 2 v0/7 μ g = 0.1456240 s and 12 v0²/49 μ g = 0.1248206 m
    sim = sliding_ball()
    end = 2 / (7 * 0.2 * GRAVITY)
    run(sim, 0.145)
    before = world_velocity(sim)[0]
    run(sim, 0.055)
    assert world_velocity(sim)[0] == pytest.approx(5 / 7, abs=1e-10)
    assert sim.v[4] == pytest.approx(50 / 7, abs=1e-9)
    # where both straight lines of v(t) meet, and how far it has rolled since
    assert 0.145 + (before - 5 / 7) / (0.2 * GRAVITY) == pytest.approx(end, abs=1e-10)
    distance = 12 / (49 * 0.2 * GRAVITY)
    assert end == pytest.approx(0.1456240, abs=1e-7)
    assert distance == pytest.approx(0.1248206, abs=1e-7)
    assert sim.q[0] - 5 / 7 * (0.2 - end) == pytest.approx(distance, abs=1e-10)


def test_backspin_brings_the_sphere_back():
    # X9: ω0 = −50 rad/s: v = (5 v0 + 2 r ω0)/7 = −0.714286
    sim = sliding_ball(spin=-50.0)
    run(sim, 1.2)
    assert world_velocity(sim)[0] == pytest.approx((5 - 10) / 7, abs=1e-8)
    assert sim.q[2] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize(('friction', 'rolls'), [(0.0766, True), (0.0765, False)])
def test_sphere_on_a_slope_rolls_if_friction_allows(friction, rolls):
    # X9: 15°, r = 0.05, m = 0.1: a = 1.813582, F_t = 0.07254328 N; needs μ ≥ 0.07655691
    angle = np.deg2rad(15.0)
    slope = InclinedPlane(angle)
    sim = Simulator(ball(0.1, 0.05), 'hybrid', terrain=slope, friction=friction)
    q = pose()
    q[:3] = 0.05 * slope.plane[:3]
    sim.reset(q)
    report = run(sim, 1.0)
    slides = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
    expected = 5 / 7 * GRAVITY * np.sin(angle) if rolls else slides
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(expected, abs=1e-8)
    force = report.contacts.force[0]
    normal = report.contacts.normal_force[0]
    tangential = np.sqrt(force @ force - normal**2)
    assert tangential == pytest.approx(0.07254328 if rolls else friction * normal, abs=1e-8)
    assert (report.contacts.slip_speed[0] <= 1e-9) == rolls


def test_a_block_stops_where_coulomb_says_and_stays():
    # X2: μ = 0.4, v0 = 1 m/s: v0²/2μg = 0.127420999 m, in whatever direction
    heading = 0.7
    sim = Simulator(cube(), 'hybrid', friction=0.4)
    direction = np.array([np.cos(heading), np.sin(heading), 0.0])
    sim.reset(pose(z=0.1), np.concatenate([direction, np.zeros(3)]))
    report = run(sim, 0.5)
    assert sim.q[:3] @ direction == pytest.approx(0.127420999, abs=1e-9)
    assert np.cross(direction, sim.q[:3])[2] == pytest.approx(0.0, abs=1e-9)
    assert np.abs(sim.v).max() <= 1e-10
    assert report.contacts.force.sum(axis=0) == pytest.approx([0, 0, GRAVITY], abs=1e-9)


# ---------------------------------------------------------------- rods (T8, T12, T13, X15, X16)


@pytest.mark.parametrize('slides', [True, False])
def test_rod_on_its_end_accelerates_as_its_mode_says(slides):
    # T8: half length 1, I = 1/3, θ = 0.6. μ = 0.3, tip at +1 m/s, ω = 0.5: f_n = 2.79207831,
    # (−0.83762349, −7.01792169, −8.33207842). Stick: (f_t, f_n) = (3.22240488, 4.65706579)
    angle, h = 0.6, 1e-7
    omega = 0.5
    tip = np.array([1.0 if slides else 0.0, 0.0])
    middle = tip - tip_velocity((0.0, 0.0, omega), angle, 1.0)
    sim = leaning_rod(
        angle, 2.0, (*middle, omega), contact_model='hybrid', friction=0.3 if slides else 0.8,
        time_step=h,
    )  # fmt: skip
    before = planar(sim)
    report = sim.step(NO_EFFORT)
    force = report.contacts.force[0]
    acceleration = (planar(sim) - before) / h
    if slides:
        assert [force[0], force[2]] == pytest.approx([-0.3 * 2.79207831, 2.79207831], abs=2e-6)
        expected = [-0.83762349, -7.01792169, -8.33207842]
        assert acceleration == pytest.approx(expected, abs=1e-5)
    else:
        assert [force[0], force[2]] == pytest.approx([3.22240488, 4.65706579], abs=2e-6)
    assert report.record.u_next[2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(('friction', 'sticks'), [(0.692, True), (0.6918, False)])
def test_rod_sticks_from_the_friction_that_it_needs(friction, sticks):
    # T8: ratio f_t/f_n = 0.6919
    angle, omega = 0.6, 0.5
    middle = -tip_velocity((0.0, 0.0, omega), angle, 1.0)
    sim = leaning_rod(
        angle, 2.0, (*middle, omega), contact_model='hybrid', friction=friction, time_step=1e-6
    )
    report = sim.step(NO_EFFORT)
    assert (report.contacts.slip_speed[0] <= 1e-12) == sticks


@pytest.mark.parametrize(
    ('impact', 'expected'),
    [
        ('frictionless', (0.5, -0.36478465, -2.44559513)),  # T12
        ('infinite_friction', (0.6449054, -0.29822187, -2.28429644)),  # T13
    ],
)
def test_rod_lands_with_or_without_friction(impact, expected):
    # uniform rod, θ = 0.6, v = (0.5, −1, 0.7), e = 0.5; ncp and lcp land it alike
    friction = 5.0 if impact == 'infinite_friction' else 0.0
    for model in ('ncp', 'lcp'):
        sim = leaning_rod(
            0.6, 1.0, (0.5, -1.0, 0.7), contact_model=model, restitution=0.5, gravity=0.0,
            friction=friction, time_step=1e-9,
        )  # fmt: skip
        sim.step(NO_EFFORT)
        assert planar(sim) == pytest.approx(expected, abs=2e-8)
    sim = leaning_rod(
        0.6, 1.0, (0.5, -1.0, 0.7), contact_model=Hybrid(impact=impact), restitution=0.5,
        gravity=0.0, time_step=1e-9,
    )  # fmt: skip
    sim.step(NO_EFFORT)
    assert planar(sim) == pytest.approx(expected, abs=2e-8)
    if impact == 'infinite_friction':
        assert tip_velocity(planar(sim), 0.6) == pytest.approx([0.0, 0.64443373], abs=2e-8)


@pytest.mark.parametrize(
    ('impact', 'guard', 'gain'),
    [
        ('newton', False, 1.09567),
        ('newton', True, 0.0),
        ('poisson', True, -0.6441),
        ('moreau', True, 0.0),
    ],
)
def test_energy_of_the_rod_that_newton_lets_jump(impact, guard, gain):
    # X15: θ = 0.75, v = (−0.25, −1), ω = 6, μ = 0.5, e = 1, energy 2.0312 J before
    sim = leaning_rod(
        0.75, 1.0, (-0.25, -1.0, 6.0), contact_model=Hybrid(impact=impact, energy_guard=guard),
        restitution=1.0, friction=0.5, gravity=0.0, time_step=1e-9,
    )  # fmt: skip
    weight = np.array([1.0, 1.0, 1 / 12])
    before = planar(sim)
    assert 0.5 * weight @ before**2 == pytest.approx(2.03125, abs=1e-12)
    sim.step(NO_EFFORT)
    change = 0.5 * weight @ (planar(sim) ** 2 - before**2)
    assert change == pytest.approx(gain, abs=5e-5 if gain else 1e-9)
    if impact == 'moreau':  # the slip is reflected too, like that of a superball
        reflected = -tip_velocity(before, 0.75)
        assert tip_velocity(planar(sim), 0.75) == pytest.approx(reflected, abs=1e-8)
    if impact == 'newton' and guard:
        ratio = tip_velocity(planar(sim), 0.75)[1] / -tip_velocity(before, 0.75)[1]
        assert ratio == pytest.approx(0.80082523, abs=1e-8)


def painleve_rod(speed, model, **settings):
    """X16: l = 1, tan θ = 2, μ = 2."""
    return leaning_rod(
        np.arctan(2.0), 1.0, (speed, 0.0, 0.0), contact_model=model, friction=2.0, **settings
    )


def test_painleve_rod_slides_on_in_one_direction():
    # X16: p = 4, F_n = 9.81/4 = 2.4525
    for speed, consistent in ((-1.0, False), (1.0, True)):
        report = painleve_rod(speed, 'hybrid', time_step=1e-6).step(NO_EFFORT)
        assert (report.solver.status is SolverStatus.CONVERGED) == consistent
        if consistent:
            assert report.contacts.normal_force[0] == pytest.approx(2.4525, abs=1e-4)


def test_painleve_begins_at_its_friction():
    # X16: p = G_nn ± μ G_nt is 4 and −0.8 at μ = 2, and 0 at μ = 4/3
    def pushed(friction):
        sim = leaning_rod(
            np.arctan(2.0), 1.0, (-1.0, 0.0, 0.0), contact_model='hybrid', friction=friction,
            time_step=1e-6,
        )  # fmt: skip
        return sim.step(NO_EFFORT)

    G_tn, _, G_nn = pushed(2.0).problem.delassus[2]
    assert [G_nn - 2.0 * G_tn, G_nn + 2.0 * G_tn] == pytest.approx([4.0, -0.8], abs=1e-9)
    assert pushed(4 / 3 - 1e-3).solver.status is SolverStatus.CONVERGED
    assert pushed(4 / 3 + 1e-3).solver.status is SolverStatus.INCONSISTENT


@pytest.mark.parametrize('model', ['hybrid', 'ncp', 'lcp'])
def test_painleve_rod_jams_in_the_other(model):
    # X16: p = −0.8; the jam is finite: u_t = 0, P = (0.402943, 0.3083385), E 0.5 → 0.29706422
    sim = painleve_rod(-1.0, model)
    report = sim.step(NO_EFFORT)
    impulse = report.contacts.force[0] * sim.time_step
    assert [impulse[0], impulse[2]] == pytest.approx([0.402943, 0.3083385], abs=1e-6)
    assert report.record.u_next[0] == pytest.approx(0.0, abs=1e-9)
    v = report.record.v_next
    kinetic = 0.5 * (v[:3] @ v[:3] + v[4] ** 2 / 12)
    assert kinetic == pytest.approx(0.29706422, abs=1e-6)
    flagged = report.solver.status is SolverStatus.INCONSISTENT
    assert flagged == (model == 'hybrid')
    if flagged:
        assert 'Painlevé' in report.solver.message
        assert not report.solver.converged


def spinning_hollow_ball(model, friction):
    """T14: m = 2, r = 0.3, e = 0.8, (v_x, v_z, ω) = (1, −2, 4) before it bounces."""
    sim = Simulator(
        ball(2.0, 0.3, 2 / 3), model, friction=friction, restitution=0.8, gravity=0.0,
        time_step=1e-9,
    )  # fmt: skip
    # their ω turns the lower side towards +x: about −y
    sim.reset(pose(z=0.3), np.array([1.0, 0.0, -2.0, 0.0, -4.0, 0.0]))
    return sim, sim.step(NO_EFFORT)


@pytest.mark.parametrize('model', ['hybrid', 'ncp', 'lcp'])
def test_spinning_hollow_ball_bounces_as_the_textbook_says(model):
    # T14: (0.12, 1.6, −0.4), impulse (z, x) = (7.2, −1.76), ΔE = −3.376, from μ = 0.24444444
    sim, report = spinning_hollow_ball(model, 0.24445)
    assert [*sim.v[[0, 2]], -sim.v[4]] == pytest.approx([0.12, 1.6, -0.4], abs=2e-8)
    impulse = report.contacts.force[0] * sim.time_step
    assert impulse == pytest.approx([-1.76, 0.0, 7.2], abs=1e-8)
    assert report.residuals.energy_balance.contact == pytest.approx(-3.376, abs=1e-7)
    _, report = spinning_hollow_ball(model, 0.24444)
    assert report.contacts.slip_speed[0] > 1e-5


# ---------------------------------------------------------------- accuracy


def test_energy_in_flight_is_kept_to_fourth_order():
    # theory 2.0: anymal_b in free fall; halving the step divides the error by 16
    robot = load_robot('anymal_b')
    model = robot.pinocchio_model
    rng = np.random.default_rng(0)
    q = pin.integrate(model, robot.reference_configuration('standing'), rng.standard_normal(18))
    q[2] += 100.0
    v = rng.standard_normal(18)
    errors = []
    for h in (1e-2, 5e-3):
        sim = Simulator(robot, Hybrid(max_substep=h), time_step=h)
        sim.reset(q, v)
        energy = mechanical_energy(model, sim.q, sim.v, sim.gravity)
        for _ in range(round(0.5 / h)):
            sim.step(np.zeros(12))
        errors.append(abs(mechanical_energy(model, sim.q, sim.v, sim.gravity) - energy))
    assert errors[0] <= 5e-2
    assert 12.0 <= errors[0] / errors[1] <= 40.0


def test_motion_in_contact_is_of_fourth_order_too():
    # a rod that pivots about its stuck end: energy is kept, the end stays
    errors = []
    for h in (8e-3, 4e-3):
        sim = leaning_rod(
            1.2, 1.0, contact_model=Hybrid(max_substep=h), friction=10.0, time_step=h
        )
        model = sim.robot.pinocchio_model
        energy = mechanical_energy(model, sim.q, sim.v, sim.gravity)
        report = run(sim, 0.32)
        assert report.contacts.mode[0] == 1
        errors.append(abs(mechanical_energy(model, sim.q, sim.v, sim.gravity) - energy))
        assert np.abs(report.contacts.position[0][[0, 2]] - [-0.5 * np.cos(1.2), 0.0]).max() < 2e-6
    assert errors[0] <= 2e-5
    assert errors[0] / errors[1] >= 12.0


def test_hybrid_and_ncp_converge_to_each_other():
    # a rod lands on its end, slides and sticks. (An impact that turns the slip, or that throws
    # another contact off, is another impact when a time-stepping model takes it in two steps.)
    def landing(model, h):
        sim = leaning_rod(
            1.0, 1.0, (0.4, 0.0, 0.5), contact_model=model, friction=0.5, time_step=h
        )
        q = sim.q.copy()
        q[2] += 0.0213
        sim.reset(q, sim.v)
        run(sim, 0.2)
        return np.concatenate([sim.q[:3], planar(sim)])

    exact = landing('hybrid', 1e-3)
    assert landing('hybrid', 2.5e-4) == pytest.approx(exact, abs=1e-7)
    errors = [np.abs(landing('ncp', h) - exact).max() for h in (1e-3, 2.5e-4, 6.25e-5)]
    assert errors[0] <= 0.05
    assert errors[2] <= 1.5 / 16 * errors[0]


# ---------------------------------------------------------------- guards (T15)


def test_a_rod_that_swings_up_leaves_the_ground_when_its_force_ends():
    # T15: released where λ → 0. Frictionless: f_n ends at φ̇² cos φ = 2 g/L (φ from the vertical);
    # energy gives φ, and in flight φ̇ stays what it was at that instant
    start, omega = 1.2, -np.sqrt(2.854 * GRAVITY)

    def energy(phi, rate_squared):
        kinetic = (0.125 * np.sin(phi) ** 2 + 1 / 24) * rate_squared
        return kinetic + 0.5 * GRAVITY * np.cos(phi)

    lift_off = brentq(
        lambda phi: energy(phi, 2 * GRAVITY / np.cos(phi)) - energy(start, omega**2), 0.3, start
    )
    rate = np.sqrt(2 * GRAVITY / np.cos(lift_off))
    # the angle from the ground is π/2 − φ
    sim = leaning_rod(
        np.pi / 2 - start, 1.0, (0.0, -0.5 * np.sin(start) * omega, -omega), friction=0.0,
        contact_model='hybrid',
    )  # fmt: skip
    loaded, rates = [], []
    while not loaded or loaded[-1]:
        loaded.append(sim.step(NO_EFFORT).contacts.normal_force[0] > 0.0)
        rates.append(planar(sim)[2])
    assert len(loaded) > 50
    assert rates[-1] == pytest.approx(rate, abs=1e-9)
    assert np.all(np.abs(np.diff(rates[:-3])) > 1e-6)


def test_the_end_of_a_rod_starts_to_slip_at_its_cone():
    # pivoting about its end from rest: friction needed grows until μ; where it starts does not
    # depend on the step
    states = []
    for h in (2e-3, 1e-3, 1e-4):
        sim = leaning_rod(1.2, 1.0, contact_model='hybrid', friction=0.3, time_step=h)
        run(sim, 0.3)
        states.append([*sim.q, *sim.v])
    assert states[0] == pytest.approx(states[2], abs=1e-7)
    assert states[1] == pytest.approx(states[2], abs=1e-8)


def test_a_pushed_block_breaks_away_above_its_friction():
    # T18: μ m g = 4.905: 3 N hold, 6 N give 1.095 m/s²
    sim = Simulator(point_mass(1.0), 'hybrid', friction=0.5)
    for push, acceleration in ((3.0, 0.0), (6.0, 1.095), (3.0, -1.905)):
        sim.reset(np.zeros(3), [1.0 if acceleration < 0.0 else 0.0, 0.0, 0.0])
        before = sim.v[0]
        for _ in range(100):
            report = sim.step(NO_EFFORT, {'point': [push, 0, 0, 0, 0, 0]})
        assert (sim.v[0] - before) / 0.1 == pytest.approx(acceleration, abs=1e-9)
        assert abs(report.contacts.force[0, 0]) == pytest.approx(
            min(push, 4.905) if acceleration >= 0 else 4.905
        )


def test_joint_friction_holds_exactly_and_limits_the_speed():
    # T10: I = 1, τ_d = 0.5, b = 0.2: effort 0.4 rests; effort 1: 2.5 (1 − exp(−0.2 t)), and when
    # the effort ends the axle stops where (v₀ + 2.5) exp(−0.2 t) = 2.5
    sim = Simulator(axle(), 'hybrid', time_step=1e-2)
    for _ in range(100):
        sim.step(np.array([0.4]))
    assert sim.v[0] == 0.0
    for _ in range(400):
        sim.step(np.array([1.0]))
    speed = 2.5 * (1.0 - np.exp(-0.2 * 4.0))
    assert sim.v[0] == pytest.approx(speed, abs=1e-9)
    stop = np.log((speed + 2.5) / 2.5) / 0.2
    angle = sim.q[0] + 5.0 * (speed + 2.5) * (1.0 - np.exp(-0.2 * stop)) - 2.5 * stop
    for _ in range(300):
        sim.step(np.array([0.0]))
    assert sim.v[0] == 0.0
    assert sim.q[0] == pytest.approx(angle, abs=1e-9)


@pytest.mark.parametrize('impact', IMPACT_LAWS)
@pytest.mark.parametrize('seed', range(3))
def test_a_tumbling_cube_never_gains_energy_nor_sticks_to_the_ground(impact, seed):
    rng = np.random.default_rng(seed)
    sim = Simulator(
        cube(), Hybrid(impact=impact), terrain=[Plane(), InclinedPlane(0.3, 1.0)][seed % 2],
        friction=[0.2, 0.6, 0.9][seed], restitution=0.4,
    )  # fmt: skip
    q = pose(z=0.3)
    q[3:] = pin.Quaternion(pin.exp3(0.8 * rng.standard_normal(3))).coeffs()
    sim.reset(q, rng.standard_normal(6) * [1, 1, 1, 4, 4, 4])
    model = sim.robot.pinocchio_model
    energy = mechanical_energy(model, sim.q, sim.v, sim.gravity)
    for _ in range(500):
        report = sim.step(NO_EFFORT)
        before, energy = energy, mechanical_energy(model, sim.q, sim.v, sim.gravity)
        if report.solver.status in (SolverStatus.FREE, SolverStatus.CONVERGED):
            # Poisson's two phases of friction have no such bound at several contacts
            assert energy <= before + 1e-7 or impact == 'poisson'
            assert report.contacts.gap.min() >= -1e-5
        assert report.contacts.normal_force.min() >= -1e-3 * GRAVITY


# ---------------------------------------------------------------- robots


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12', 'solo8'])
def test_robots_stand_without_creep_or_penetration(name):
    robot = load_robot(name)
    sim = Simulator(robot, 'hybrid')
    reports = stand(sim, 1500)
    assert all(report.contacts.gap.min() >= -1e-6 for report in reports)
    last = reports[-200:]
    assert max(report.contacts.slip_speed.max() for report in last) <= 1e-8
    assert all(report.solver.status is SolverStatus.CONVERGED for report in last)
    weight = robot.total_mass * GRAVITY
    assert last[-1].contacts.force.sum(axis=0) == pytest.approx([0, 0, weight], abs=0.01 * weight)


def test_a_robot_slides_down_a_slope_at_the_right_rate():
    angle, friction = np.deg2rad(20.0), 0.3
    sim = Simulator(
        load_robot('anymal_b'), 'hybrid', terrain=InclinedPlane(angle), friction=friction
    )
    downhill = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    reports = stand(sim, 2000)
    places = np.array([reports[k].q[:3] @ downhill for k in (999, 1499, 1999)])
    acceleration = (places[2] - 2 * places[1] + places[0]) / 0.5**2
    expected = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
    assert acceleration == pytest.approx(expected, rel=0.01)
    assert all(report.solver.converged for report in reports)


def test_a_robot_drops_bounces_and_stands():
    # ∫ F dt = m g t + Δp, exactly: impacts, slips and stops included
    robot = load_robot('go1')
    sim = Simulator(robot, 'hybrid', restitution=0.2)
    controller = StandingController(sim)
    q = sim.q.copy()
    q[2] += 0.1
    sim.reset(q)
    reports = [sim.step(controller(sim)) for _ in range(1000)]
    assert all(report.solver.converged for report in reports)
    assert sum(report.solver.status is SolverStatus.TOO_MANY_EVENTS for report in reports) <= 5
    assert min(report.contacts.gap.min() for report in reports) >= -1e-6
    impulse = sum(report.contacts.force.sum(axis=0) for report in reports) * sim.time_step
    momentum = centroidal_momentum(robot.pinocchio_model, sim.q, sim.v)[:3]
    expected = momentum + [0.0, 0.0, robot.total_mass * GRAVITY]
    assert impulse == pytest.approx(expected, abs=1e-3 * robot.total_mass)


def trot(model, seconds):
    """go1 in an open-loop trot on the spot: diagonal legs lift in turn, 2.5 times a second."""
    sim = Simulator(load_robot('go1'), model, friction=0.7)
    controller = StandingController(sim)
    stance, reports = controller.target.reshape(4, 3).copy(), []
    for _ in range(round(seconds / sim.time_step)):
        phase = np.sin(2 * np.pi * 2.5 * sim.time + np.array([0.0, np.pi, np.pi, 0.0]))
        lift = 0.25 * np.sign(stance[:, 2]) * np.maximum(phase, 0.0)
        legs = stance + np.stack([0.0 * lift, -lift, 2.0 * lift], axis=1)
        controller.target = legs.ravel()
        reports.append(sim.step(controller(sim)))
    return sim, reports


def test_a_robot_trots():
    sim, reports = trot('hybrid', 1.2)
    other, _ = trot('ncp', 1.2)
    assert np.sum([report.contacts.normal_force == 0.0 for report in reports]) > 1000
    assert all(report.solver.converged for report in reports)
    assert np.abs(sim.q[:3] - other.q[:3]).max() <= 0.02
    assert min(report.q[2] for report in reports) >= 0.24


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ('setting', 'message'),
    [
        ({'impact': 'magic'}, 'HybridParameters.impact.*plastic, newton, poisson'),
        ({'max_substep': 0.0}, r'HybridParameters.max_substep = 0.0 s: .*\[1e-05, 0.01\]'),
        ({'max_events': 0}, 'HybridParameters.max_events = 0'),
        ({'stabilisation': np.nan}, 'HybridParameters.stabilisation = nan 1/s'),
        ({'energy_guard': 'yes'}, 'HybridParameters.energy_guard.*expected bool'),
        ({'event_tolerance': 1.0}, 'HybridParameters.event_tolerance'),
    ],
)
def test_bad_parameters_are_refused_by_name(setting, message):
    with pytest.raises(InvalidInput, match=message):
        Hybrid(**setting)


def test_nearly_redundant_forces_stay_inside_their_cones():
    # go1 on 15 degrees: a joint starts to turn, and the sideways forces of two feet hang on a
    # pivot below 1e-7; taken for a real one it asked for 300 N of internal force
    sim = Simulator(load_robot('go1'), 'hybrid', terrain=InclinedPlane(np.deg2rad(15.0)))
    controller = StandingController(sim)
    for _ in range(400):
        report = sim.step(controller(sim))
        assert report.residuals.cone <= 1e-9
        assert report.solver.converged
