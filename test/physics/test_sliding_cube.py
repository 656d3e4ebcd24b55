"""A cube that slides on its four lower corners: what each model is known to do with it.

X2 stopping distance       X3 worst direction        X6 hop of the convex model
2.3 gliding gap of sap     2.4 creep of todorov      2.10 box friction on the diagonal
2.15 force at a distance   lift-off by sliding, over all models and their choices

1 kg, side 0.2 m, 1 m/s, h = 1 ms, μ = 0.4 if not said otherwise (theory 3).
"""

import numpy as np
import pytest
from robots import cube, lay_on_slope, pose

from contact_sim import (
    Anitescu,
    Compliant,
    Hybrid,
    InclinedPlane,
    Lcp,
    Ncp,
    NullSpace,
    Sap,
    Simulator,
    Todorov,
)
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models.guarantees import LIFTS_OFF
from contact_sim.parameters import declared_parameters

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)
CONTINUOUS = 0.127420999
"""v0²/(2 μ g) [m]."""
STEPPED = 0.12692126
"""The same as the sum of semi-implicit steps, v0 h/2 less [m]."""


def slide(model, heading=0.0, time_step=1e-3, seconds=0.5):
    """Return the simulation after `seconds` and its reports."""
    sim = Simulator(cube(), model, friction=0.4, time_step=time_step)
    direction = np.array([np.cos(heading), np.sin(heading), 0.0])
    sim.reset(pose(z=0.1), np.concatenate([direction, np.zeros(3)]))
    return sim, [sim.step(NO_EFFORT) for _ in range(round(seconds / time_step))]


def distance(model, heading=0.0, time_step=1e-3):
    sim, reports = slide(model, heading, time_step)
    assert np.abs(sim.v).max() <= 1e-8
    assert reports[-1].solver.converged
    return np.linalg.norm(sim.q[:2])


@pytest.mark.parametrize(
    'model',
    [Ncp(), Ncp(solver='pgs'), Ncp(solver='staggered', max_sweeps=2000), Lcp(sides=4),
     Lcp(sides=8), Lcp(sides=16), Lcp(friction_law='box')],
    ids=['ncp', 'pgs', 'staggered', 'lcp4', 'lcp8', 'lcp16', 'box'],
)  # fmt: skip
def test_x2_stops_where_semi_implicit_coulomb_says(model):
    sim, reports = slide(model)
    assert sim.q[0] == pytest.approx(STEPPED, abs=1e-8)
    assert np.abs(sim.v).max() <= 1e-8
    assert max(np.abs(report.contacts.gap).max() for report in reports) <= 1e-10


@pytest.mark.parametrize('heading', np.deg2rad([22.5, 30.0, 45.0]))
def test_x3_the_circular_cone_has_no_worst_direction(heading):
    # to 1e-9: distance and course are those along the axis
    sim, _ = slide(Ncp(), heading)
    direction = np.array([np.cos(heading), np.sin(heading), 0.0])
    assert np.linalg.norm(sim.q[:2]) == pytest.approx(distance(Ncp()), abs=1e-9)
    assert np.cross(direction, sim.q[:3])[2] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ('sides', 'measured', 'limit'),
    [(4, 1.4103, 1.4142), (8, 1.0785, 1.0824), (16, 1.0157, 1.0196)],
)
def test_x3_2_9_a_pyramid_is_weak_between_its_edges(sides, measured, limit):
    # friction μ cos(π/k): ratios to the continuous distance at 1 ms, and as h → 0
    coarse, fine = (distance(Lcp(sides=sides), np.pi / sides, h) for h in (1e-3, 5e-4))
    assert coarse / CONTINUOUS == pytest.approx(measured, abs=6e-5)
    assert (2.0 * fine - coarse) / CONTINUOUS == pytest.approx(limit, abs=6e-5)


def test_2_10_box_friction_is_strong_on_the_diagonal():
    # √2 μ: stops after 1/√2 of the distance
    model = Lcp(friction_law='box')
    coarse, fine = (distance(model, np.pi / 4, h) for h in (1e-3, 5e-4))
    assert (2.0 * fine - coarse) / CONTINUOUS == pytest.approx(np.sqrt(0.5), abs=6e-5)


@pytest.mark.parametrize('sides', [0, 4, 8])
def test_x2_x6_the_convex_model_stops_in_time_but_hops(sides):
    # the same distance; rises by 6.18 mm, at most (μ v0)²/2g = 8.15 mm
    sim, reports = slide(Anitescu(sides=sides), seconds=0.6)
    hop = max(report.contacts.gap.max() for report in reports)
    assert sim.q[0] == pytest.approx(STEPPED, abs=2e-6)
    assert hop == pytest.approx(6.18e-3, abs=5e-6)
    assert hop <= (0.4 * 1.0) ** 2 / (2 * GRAVITY)


@pytest.mark.parametrize(
    'model',
    [
        Compliant(friction_law='tanh'),
        Compliant(),
        Todorov(),
        Todorov(cone='elliptic', diagonal='exact'),
        Sap(),
    ],
)
def test_x2_soft_models_stop_near_by(model):
    sim, _ = slide(model)
    assert sim.q[0] == pytest.approx(CONTINUOUS, rel=1e-2)


def choices():
    """Return (model, option): '' for the defaults, and each other choice as 'name: value'."""
    for name, model in CONTACT_MODELS.items():
        yield name, ''
        for field in declared_parameters(model().parameters.__class__):
            for value in field.info.choices or ():
                if value != field.default:
                    yield name, f'{field.name}: {value}'


@pytest.mark.parametrize(('name', 'option'), list(choices()))
def test_the_table_of_lift_off_tells_the_truth(name, option):
    """A cube at rest gets 6 m/s, μ = 0.5, h = 5 ms; it may rise by no more than (μ v0)²/2g."""
    chosen = dict([option.split(': ')] if option else [])
    # explicit dampers of the defaults are far over their limit at this step
    calm = {'dissipation': 1.0} if option == 'integration: explicit' else {}
    model = CONTACT_MODELS[name](**chosen, **calm)
    sim = Simulator(cube(), model, friction=0.5, time_step=5e-3)
    sim.reset(pose(z=0.1))
    for _ in range(300):
        sim.step(NO_EFFORT)
    sim.reset(sim.q, np.array([6.0, 0, 0, 0, 0, 0]))
    rise = max(sim.step(NO_EFFORT).contacts.gap.min() for _ in range(300))
    lifts = LIFTS_OFF.get(name, {})
    # explicit springs gain 9 mm at this step, which is over their limit: no matter of sliding
    assert (rise > 0.05) == ('' in lifts or option in lifts)
    assert rise <= (0.5 * 6.0) ** 2 / (2 * GRAVITY)


@pytest.mark.parametrize('time_step', [1e-3, 5e-3])
@pytest.mark.parametrize('acts_ahead', [False, True])
def test_a_launched_cube_stays_on_the_ground_under_sap(acts_ahead, time_step):
    """On the ground it gets 6 m/s: no gap in any step, and it stops where Coulomb says."""
    sim = Simulator(cube(), Sap(acts_ahead=acts_ahead), friction=0.5, time_step=time_step)
    sim.reset(pose(z=0.1), np.array([6.0, 0, 0, 0, 0, 0]))
    reports = [sim.step(NO_EFFORT) for _ in range(round(1.5 / time_step))]
    assert max(report.contacts.gap.max() for report in reports) <= 0.0
    # the first step is without friction: its normal impulse before was nothing
    continuous = 6.0**2 / (2 * 0.5 * GRAVITY)
    assert sim.q[0] == pytest.approx(continuous, abs=6.0 * time_step)


def test_2_3_sap_glides_over_the_ground():
    # gap (h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n) at every corner
    h, tau, mu, stiffness, sigma = 0.01, 0.05, 0.5, 1e5, 1e-3
    model = Sap(
        approximation='sap', weight='delassus', acts_ahead=True, stiffness=stiffness,
        relaxation_time=tau, sigma=sigma, beta=0.0,
    )  # fmt: skip
    sim = Simulator(cube(), model, friction=mu, time_step=h)
    sim.reset(pose(z=0.1), np.array([1.0, 0, 0, 0, 0, 0]))
    lever = 0.1
    for _ in range(300):
        # holds the speed, pulling at the height of the contacts, which are halfway between corner
        # and ground: all carry the same
        pull = mu * GRAVITY + 20.0 * (1.0 - sim.v[0])
        report = sim.step(NO_EFFORT, {'body': [pull, 0, 0, 0, -lever * pull, 0]})
        lever = 0.1 + 0.5 * report.contacts.gap.mean()
    corner = report.problem.delassus[:3, :3]
    rn, rt = 1.0 / (h * stiffness * (h + tau)), sigma * np.linalg.norm(corner) / 3
    normal = GRAVITY / 4 * h
    expected = (h + tau) * (mu * 1.0 - (rn + mu**2 * rt) * normal)
    assert report.contacts.slip_speed == pytest.approx([1.0] * 4, abs=1e-6)
    assert report.contacts.gap == pytest.approx([expected] * 4, rel=1e-8)
    assert report.residuals.force_at_distance == pytest.approx(4 * normal, rel=1e-6)


@pytest.mark.parametrize(('impratio', 'creep'), [(1.0, 1.70348e-3), (10.0, 1.70348e-4)])
def test_2_4_todorov_creeps_down_a_slope(impratio, creep):
    # u_t = R_t f_t/b at 10°, d = 0.9: a corner is as soft as it is light, and creeps like a point
    angle = np.deg2rad(10.0)
    model = Todorov(
        impedance_start=0.9, impedance_end=0.9, impratio=impratio, cone='elliptic',
        diagonal='exact',
    )  # fmt: skip
    sim = Simulator(cube(), model, terrain=InclinedPlane(angle), friction=0.8)
    lay_on_slope(sim, angle, 0.1)
    for _ in range(1500):
        report = sim.step(NO_EFFORT)
    assert report.contacts.slip_speed == pytest.approx([creep] * 4, rel=1e-5)


@pytest.mark.parametrize(
    ('model', 'acts'),
    [(Ncp(), False), (Ncp(solver='staggered'), False), (Lcp(), False),
     (Lcp(friction_law='box'), False), (Compliant(), False), (Hybrid(), False),
     (NullSpace(), False), (Anitescu(), True), (Anitescu(sides=4), True), (Todorov(), True),
     (Todorov(cone='elliptic', diagonal='exact'), True), (Todorov(form='2014'), True),
     (Sap(), False), (Sap(acts_ahead=True), False), (Sap(approximation='similar'), True),
     (Sap(approximation='sap'), True)],
    ids=lambda value: getattr(value, 'name', None),
)  # fmt: skip
def test_2_15_force_at_a_distance_is_an_artefact_of_the_convex_models(model, acts):
    _, reports = slide(model)
    sliding, resting = reports[:120], reports[-50:]
    impulse = sum(report.residuals.force_at_distance for report in sliding)
    assert impulse > 1e-3 if acts else impulse == 0.0
    assert max(report.residuals.force_at_distance for report in resting) <= 1e-12
