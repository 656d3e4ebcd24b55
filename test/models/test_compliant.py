"""compliant: closed forms of its springs, dampers and friction laws (theory T10)."""

import numpy as np
import pytest
from robots import StandingController, ball, point_mass, pose, rigid_body, stand
from scipy.optimize import brentq

from contact_sim import Compliant, ContactProblem, InvalidInput, Simulator, load_robot, robots
from contact_sim.contact_models._compliant import FRICTION_LAWS, NORMAL_LAWS
from contact_sim.step._problem import SolverStatus

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)


def bounce(model, speed=1.0, h=1e-5, seconds=0.2):
    """Rebound speed over impact speed of a 1 kg point without gravity."""
    sim = Simulator(point_mass(1.0), model, gravity=0.0, time_step=h)
    sim.reset(np.array([0.0, 0.0, 1e-9]), np.array([0.0, 0.0, -speed]))
    for _ in range(round(seconds / h)):
        sim.step(NO_EFFORT)
        if sim.q[2] > 0.0 and sim.v[2] > 0.0:
            return sim.v[2] / speed
    raise AssertionError('no rebound')


@pytest.mark.parametrize('integration', ['implicit', 'explicit'])
def test_t10_static_depth_is_weight_over_stiffness(integration):
    # m = 1, k = 1e4: 0.981 mm
    model = Compliant(
        normal_law='kelvin_voigt', stiffness=1e4, damping_ratio=1.0, integration=integration
    )
    sim = Simulator(point_mass(1.0), model)
    sim.reset(np.zeros(3))
    for _ in range(1000):
        report = sim.step(NO_EFFORT)
    assert -report.contacts.gap[0] == pytest.approx(0.981e-3, rel=1e-6)


@pytest.mark.parametrize(('integration', 'error'), [('implicit', 2e-3), ('explicit', 2e-4)])
def test_t10_clamped_kelvin_voigt_rebounds_with_its_restitution(integration, error):
    # ζ = 0.2: e = exp(−ζ/√(1−ζ²) (π − atan2(2ζ√(1−ζ²), 1−2ζ²))) = 0.57174003
    model = Compliant(
        normal_law='kelvin_voigt', stiffness=1e4, damping_ratio=0.2, integration=integration
    )
    assert bounce(model) == pytest.approx(0.57174003, rel=error)


def test_t10_unclamped_kelvin_voigt_jumps_at_touch_down_and_pulls_at_release():
    # ζ = 0.2, m = 1, k = 1e4: d v0 = 40 N at once; released at x = 0 with e = 0.52662060
    model = Compliant(
        normal_law='unclamped', stiffness=1e4, damping_ratio=0.2, integration='explicit'
    )
    assert bounce(model) == pytest.approx(0.52662060, rel=1e-4)
    h = 1e-6
    sim = Simulator(point_mass(1.0), model, gravity=0.0, time_step=h)
    sim.reset(np.array([0.0, 0.0, -1e-12]), np.array([0.0, 0.0, -1.0]))
    assert sim.step(NO_EFFORT).contacts.force[0, 2] == pytest.approx(40.0, rel=1e-6)
    sim.reset(np.array([0.0, 0.0, -1e-5]), np.array([0.0, 0.0, 0.5]))
    assert sim.step(NO_EFFORT).contacts.force[0, 2] == pytest.approx(0.1 - 20.0, rel=1e-6)


@pytest.mark.parametrize(
    ('product', 'restitution'),
    [(0.1, 0.93747558), (1.0, 0.59362426), (10.0, 0.09998162), (100.0, 0.01)],
)
def test_t10_hunt_crossley_rebound_depends_on_speed_only(product, restitution):
    # a v_o + ln(1 − a v_o) = −(a v_i − ln(1 + a v_i)), whatever k and p
    def excess(y):
        return y + np.log(1.0 - y) + product - np.log(1.0 + product)

    largest = 1.0 - 1e-15  # a v_o = 1 is never passed
    rebound = brentq(excess, 1e-12, largest) if excess(largest) < 0.0 else largest
    assert rebound / product == pytest.approx(restitution, rel=1e-6)
    for stiffness, exponent in ((1e4, 1.0), (1e6, 1.5)):
        model = Compliant(
            normal_law='hunt_crossley', stiffness=stiffness, exponent=exponent,
            dissipation=product, integration='explicit',
        )  # fmt: skip
        assert bounce(model) == pytest.approx(restitution, rel=1e-6)


@pytest.mark.parametrize(
    ('friction_law', 'creep'), [('piecewise', 4.0775e-4), ('tanh', 4.3291e-4)]
)
def test_t10_a_stuck_block_creeps_as_its_law_says(friction_law, creep):
    # F = 2 N against μ f_n = 4.905 N, v_s = 1 mm/s
    model = Compliant(normal_law='kelvin_voigt', friction_law=friction_law, stiffness=1e4)
    sim = Simulator(point_mass(1.0), model, friction=0.5)
    sim.reset(np.array([0.0, 0.0, -0.981e-3]))
    for _ in range(1000):
        sim.step(NO_EFFORT, {'point': [2.0, 0, 0, 0, 0, 0]})
    assert sim.v[0] == pytest.approx(creep, rel=1e-4)


@pytest.mark.parametrize(('push', 'acceleration'), [(7.84, 0.0), (7.86, 2.955), (8.0, 3.095)])
def test_t10_break_away_needs_the_static_friction(push, acceleration):
    # μ_s = 0.8, μ = 0.5, 1 kg: breaks away above 7.848 N, then a = 8 − 0.5·9.81 = 3.095
    model = Compliant(
        normal_law='kelvin_voigt', friction_law='stribeck', stiffness=1e4, static_ratio=1.6
    )
    sim = Simulator(point_mass(1.0), model, friction=0.5)
    sim.reset(np.array([0.0, 0.0, -0.981e-3]))
    for _ in range(2000):
        report = sim.step(NO_EFFORT, {'point': [push, 0, 0, 0, 0, 0]})
    assert report.acceleration[0] == pytest.approx(acceleration, abs=1e-6)


@pytest.mark.parametrize('friction_law', ['piecewise', 'tanh'])
def test_t10_explicit_friction_chatters_long_before_the_spring(friction_law):
    # h < 2 m v_s/(μ f_n) = 4.1e-4 s for 1 kg, v_s = 1e-3, μ = 0.5
    limit = 4.0775e-4

    def speed(h):
        model = Compliant(
            normal_law='linear', friction_law=friction_law, stiffness=1e4, integration='explicit'
        )
        sim = Simulator(point_mass(1.0), model, friction=0.5, time_step=h)
        sim.reset(np.array([0.0, 0.0, -0.981e-3]), np.array([1e-6, 0.0, 0.0]))
        for _ in range(2000):
            report = sim.step(NO_EFFORT)
        assert report.stiffness_ratio < 0.05
        return abs(sim.v[0])

    assert speed(0.99 * limit) <= 1e-12
    assert speed(1.01 * limit) >= 1e-4


def test_explicit_is_unstable_beyond_its_stiffness_ratio():
    # 2.1 without damping: h ω_max > 2, ω_max² = k λ_max(G_nn)
    def swing(stiffness):
        model = Compliant(
            normal_law='linear', friction_law='tanh', stiffness=stiffness, integration='explicit'
        )
        sim = Simulator(point_mass(1.0), model, time_step=1e-3)
        sim.reset(np.array([0.0, 0.0, -GRAVITY / stiffness - 1e-7]))
        first = sim.step(NO_EFFORT)
        ratio = first.stiffness_ratio
        assert first.solver.status is (
            SolverStatus.UNSTABLE if ratio > 2.0 else SolverStatus.CONVERGED
        )
        highest = max(abs(sim.step(NO_EFFORT).v[2]) for _ in range(400))
        return ratio, highest

    stable, unstable = swing(1e6), swing(5e6)
    assert stable[0] == pytest.approx(1.0, rel=1e-9)
    assert unstable[0] == pytest.approx(np.sqrt(5.0), rel=1e-9)
    assert stable[1] < 1e-3
    assert unstable[1] > 1e-2


def oscillation(model, time_step, along):
    """Return (first report, energy after over before) of a point of 1 kg that swings on a spring.

    Up and down, or along the ground on an anchor, by no more than it is pressed.
    """
    k = model.parameters.tangential_stiffness if along else model.parameters.stiffness
    sim = Simulator(point_mass(1.0), model, time_step=time_step, friction=1.0)
    rest = np.array([0.0, 0.0, -GRAVITY / model.parameters.stiffness])
    direction = np.array([1.0, 0.0, 0.0]) if along else np.array([0.0, 0.0, 1.0])
    sim.reset(rest, 1e-9 * direction)
    reports, energy = [], []
    for _ in range(1000):
        reports.append(sim.step(NO_EFFORT))
        energy.append(0.5 * (sim.v @ direction) ** 2 + 0.5 * k * ((sim.q - rest) @ direction) ** 2)
    return reports[0], max(energy[-10:]) / max(energy[:10])


@pytest.mark.parametrize('stiffness', [1e4, 1e6])
@pytest.mark.parametrize('damping_ratio', [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize('along', [False, True])
def test_2_1_explicit_damped_springs_gain_energy_beyond_a_ratio_of_two(
    stiffness, damping_ratio, along
):
    # (h ω)² + 4 ζ h ω < 4: at ζ = 1 from h ω = 0.83 on, not 2
    limit = 2.0 * (np.sqrt(1.0 + damping_ratio**2) - damping_ratio) / np.sqrt(stiffness)
    model = Compliant(
        normal_law='kelvin_voigt', friction_law='anchored' if along else 'piecewise',
        stiffness=1.0 if along else stiffness, damping_ratio=0.0 if along else damping_ratio,
        tangential_stiffness=stiffness, tangential_damping_ratio=damping_ratio,
        slip_speed=1e3, integration='explicit',
    )  # fmt: skip
    first, growth = oscillation(model, 0.98 * limit, along)
    assert 1.9 < first.stiffness_ratio < 2.0
    assert growth < 1.0
    assert first.solver.status is SolverStatus.CONVERGED
    first, growth = oscillation(model, 1.02 * limit, along)
    assert 2.0 < first.stiffness_ratio < 2.1
    assert growth > 1e3
    assert first.solver.status is SolverStatus.UNSTABLE


def test_implicit_stays_at_rest_on_the_stiffest_ground():
    sim = Simulator(point_mass(1.0), Compliant(normal_law='linear', stiffness=1e12))
    sim.reset(np.zeros(3))
    for _ in range(200):
        report = sim.step(NO_EFFORT)
    assert abs(sim.v[2]) <= 1e-9
    assert report.contacts.force[0, 2] == pytest.approx(GRAVITY, rel=1e-6)


def test_force_never_pulls():
    body = rigid_body('plate', 1.0, np.eye(3) * 0.1, [([0.2, 0, 0], 0.0), ([-0.2, 0, 0], 0.0)])
    sim = Simulator(body, Compliant(normal_law='kelvin_voigt', damping_ratio=2.0))
    sim.reset(pose(z=0.01), np.array([0, 0, -1.0, 0, 2.0, 0]))
    for _ in range(500):
        assert sim.step(NO_EFFORT).contacts.normal_force.min() >= 0.0


@pytest.mark.parametrize('friction_law', FRICTION_LAWS)
@pytest.mark.parametrize('normal_law', NORMAL_LAWS)
@pytest.mark.parametrize('name', ['go1'])
def test_robots_sink_by_the_wanted_depth(name, normal_law, friction_law):
    robot = load_robot(name)
    model = Compliant(normal_law=normal_law, friction_law=friction_law, penetration=5e-4)
    reports = stand(Simulator(robot, model), 1500)
    contacts = reports[-1].contacts
    depth, load = -contacts.gap, contacts.normal_force
    share = robot.total_mass * GRAVITY / len(load)
    assert depth.mean() == pytest.approx(5e-4, rel=0.15)
    power = 1.5 if normal_law == 'hunt_crossley' else 1.0
    assert (depth / 5e-4) ** power == pytest.approx(load / share, rel=2e-3)
    assert np.mean([report.solver.converged for report in reports]) > 0.99


@pytest.mark.parametrize(
    ('name', 'friction_law'),
    [(name, ('anchored', 'tanh')[k % 2]) for k, name in enumerate(robots())],
)
def test_every_robot_is_stable_at_the_defaults(name, friction_law):
    """h = 1 ms: lands from 1 cm without a jump, then stands still on all feet."""
    robot = load_robot(name)
    sim = Simulator(robot, Compliant(friction_law=friction_law))
    controller = StandingController(sim)
    q = sim.q.copy()
    q[2] += 0.01
    sim.reset(q)
    drop = 0.01 + 1e-3
    for _ in range(2500):
        report = sim.step(controller(sim))
        assert report.contacts.gap.max() <= 1.5 * drop
        assert report.solver.status is not SolverStatus.NONFINITE
    assert report.solver.converged
    assert np.abs(sim.v).max() < 0.1
    assert (report.contacts.normal_force > 0.0).all()
    weight = robot.total_mass * GRAVITY
    assert report.contacts.force[:, 2].sum() == pytest.approx(weight, rel=0.05)
    # the implicit law stands where the explicit one does not: how stiff it is, is said
    assert 4.0 < report.stiffness_ratio < 8.0


@pytest.mark.parametrize('friction_law', ['tanh', 'anchored'])
@pytest.mark.parametrize('name', ['a1', 'go1', 'solo12'])
def test_with_little_dissipation_the_explicit_law_would_be_stable(name, friction_law):
    """a = 1 s/m; the dampers of the anchors count, and light feet have little to stop."""
    sim = Simulator(load_robot(name), Compliant(friction_law=friction_law, dissipation=1.0))
    controller = StandingController(sim)
    for _ in range(500):
        report = sim.step(controller(sim))
    assert report.solver.converged
    assert 0.0 < report.stiffness_ratio < (1.0 if friction_law == 'tanh' else 2.0)


def test_rolling_ball_does_not_slip():
    sim = Simulator(ball(), 'compliant', friction=0.5)
    sim.reset(pose(z=0.1), np.array([0.5, 0, 0, 0, 5.0, 0]))
    for _ in range(300):
        report = sim.step(NO_EFFORT)
    assert report.contacts.slip_speed[0] < 5e-3


def test_a_problem_without_a_robot_needs_a_stiffness():
    problem = ContactProblem.from_delassus(np.eye(3), [0.0, 0.0, -1.0], [0.5])
    with pytest.raises(InvalidInput, match='stiffness'):
        Compliant().solve(problem)


@pytest.mark.parametrize(
    ('parameter', 'value'),
    [
        ('stiffness', -1.0),
        ('penetration', 0.0),
        ('exponent', 0.5),
        ('slip_speed', 0.0),
        ('normal_law', 'rubber'),
        ('friction_law', 'ice'),
        ('integration', 'maybe'),
        ('static_ratio', 0.5),
    ],
)
def test_bad_parameters_name_themselves(parameter, value):
    with pytest.raises(InvalidInput, match=f'CompliantParameters.{parameter}'):
        Compliant(**{parameter: value})
