"""Multiple impacts: rows and clusters of balls whose impacts follow one another (theory 2.8)."""

import math

import numpy as np
import pytest

from contact_sim import Simulator, Worlds, contact_models, joined, load_robot, loose_ball
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.replay import Recorder, Recording, repeat

RADIUS = 0.05
TOUCHING, APART = 1e-9, 1e-4
"""Air between balls [m]."""
RIGID = ('ncp', 'lcp', 'anitescu', 'hybrid')
THRESHOLD = 1e-6
"""Approach speed below which an impact is plastic [m/s]."""
EXACT = 2e-7
"""Error of speeds of 1 m/s: hybrid takes out 1 nm of air at a rate of 50/s."""


def sequential(model, **parameters):
    return CONTACT_MODELS[model](multiple_impacts='sequential', **parameters)


def row_of_balls(masses, air=TOUCHING, coupled=-1):
    """Return balls that slide along x, each at rest at q = 0 with air to its neighbours.

    The ball `coupled` follows the one before it: a bilateral constraint.
    """
    parts = ['<link name="rail"/>']
    for k, mass in enumerate(masses):
        inertia = ' '.join(f'{axis}="{0.4 * mass * RADIUS**2}"' for axis in ('ixx', 'iyy', 'izz'))
        parts.append(f"""
          <link name="ball_{k}">
            <inertial><mass value="{mass}"/><inertia {inertia} ixy="0" ixz="0" iyz="0"/></inertial>
            <collision><geometry><sphere radius="{RADIUS}"/></geometry></collision>
          </link>
          <joint name="slide_{k}" type="prismatic">
            <origin xyz="{k * (2 * RADIUS + air)} 0 1"/><axis xyz="1 0 0"/>
            <parent link="rail"/><child link="ball_{k}"/>
            <limit lower="-10" upper="10" effort="1" velocity="100"/>
            {f'<mimic joint="slide_{k - 1}"/>' if k == coupled else ''}
          </joint>""")
    pairs = [(f'ball_{k}', f'ball_{k + 1}') for k in range(len(masses) - 1) if k + 1 != coupled]
    text = f'<robot name="row">{"".join(parts)}</robot>'
    return load_robot(text, floating_base=False, feet=[]).with_self_collision(pairs)


def speeds_after(model, masses, v, restitution, air=TOUCHING, steps=1):
    """Return the speeds of a row of balls after some steps of 1 ms."""
    sim = Simulator(row_of_balls(masses, air), model, friction=0.0, restitution=restitution)
    sim.restitution_threshold = THRESHOLD
    sim.reset(np.zeros(len(v)), v)
    for _ in range(steps):
        report = sim.step(np.zeros(len(v)))
        assert report.solver.converged
    return sim.v


def one_by_one(masses, v, restitution):
    """Return the speeds after impacts of neighbours, always the pair that approaches fastest."""
    v = np.array(v, dtype=float)
    while True:
        approach = v[:-1] - v[1:]
        k = int(np.argmax(approach))
        if approach[k] <= THRESHOLD:
            return v
        # m_a v_a + m_b v_b is kept, v_b⁺ − v_a⁺ = e (v_a − v_b)
        impulse = (1.0 + restitution) * approach[k] / (1.0 / masses[k] + 1.0 / masses[k + 1])
        v[k] -= impulse / masses[k]
        v[k + 1] += impulse / masses[k + 1]


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('air', [TOUCHING, APART])
@pytest.mark.parametrize('count', [3, 4, 5])
def test_as_many_balls_fly_off_a_cradle_as_came_in(model, air, count):
    # X14
    for coming in range(1, count):
        v = [1.0] * coming + [0.0] * (count - coming)
        after = speeds_after(sequential(model), [1.0] * count, v, 1.0, air, 1 + 2 * (air == APART))
        assert after == pytest.approx(v[::-1], abs=EXACT)


@pytest.mark.parametrize('model', RIGID)
def test_without_the_option_a_row_disperses(model):
    # all at once: only the first contact is approached, the others are asked for u_n⁺ = 0
    after = speeds_after(model, [1.0] * 3, [1.0, 0.0, 0.0], 1.0)
    assert after == pytest.approx([-1 / 3, 2 / 3, 2 / 3], abs=2e-6)


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('air', [TOUCHING, APART])
@pytest.mark.parametrize('restitution', [0.5, 0.8])
def test_a_row_passes_on_a_share_of_the_speed_in_each_impact(model, air, restitution):
    # equal balls: (1 + e)/2 of the speed in each impact; the last ball is not overtaken
    for count in (3, 4, 5):
        v = [1.0] + [0.0] * (count - 1)
        after = speeds_after(sequential(model), [1.0] * count, v, restitution, air, 3)
        assert after[-1] == pytest.approx(((1.0 + restitution) / 2.0) ** (count - 1), abs=EXACT)
        assert after.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize('model', RIGID)
def test_three_touching_balls_collide_until_none_approaches(model):
    # X14, e = ½: (1, 0, 0), (¼, ¾, 0), (¼, 3/16, 9/16), and once more (13/64, 15/64, 9/16)
    after = speeds_after(sequential(model), [1.0] * 3, [1.0, 0.0, 0.0], 0.5)
    assert after == pytest.approx([13 / 64, 15 / 64, 9 / 16], abs=EXACT)


@pytest.mark.parametrize('law', ['newton', 'poisson', 'moreau', 'frictionless'])
def test_all_impact_laws_of_hybrid_pass_on_the_speed(law):
    model = sequential('hybrid', impact=law)
    after = speeds_after(model, [1.0] * 3, [1.0, 0.0, 0.0], 0.5)
    assert after == pytest.approx([13 / 64, 15 / 64, 9 / 16], abs=EXACT)
    plastic = speeds_after(sequential('hybrid', impact='plastic'), [1.0] * 3, [1.0, 0.0, 0.0], 0.5)
    assert plastic == pytest.approx([1 / 3] * 3, abs=EXACT)


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('seed', range(8))
def test_unequal_masses_collide_in_the_order_of_their_approach(model, seed):
    rng = np.random.default_rng(seed)
    count = 3 + seed % 3
    masses = np.exp(rng.uniform(-1.5, 1.5, count))
    v, restitution = np.zeros(count), [1.0, 0.9, 0.6, 1.0][seed % 4]
    v[0] = 1.0
    if seed % 2 and model != 'hybrid':  # hybrid finds 1 nm of air, and the order that follows
        v[:] = rng.uniform(-1.0, 1.0, count)
    after = speeds_after(sequential(model), masses, v, restitution)
    # but for the plastic end of slow approaches
    assert after == pytest.approx(one_by_one(masses, v, restitution), abs=1e-5)
    assert masses @ after == pytest.approx(masses @ v, abs=1e-9)
    lost = 0.5 * masses @ np.square(v) - 0.5 * masses @ np.square(after)
    assert lost >= -1e-7
    if restitution == 1.0:
        assert lost == pytest.approx(0.0, abs=1e-7 if model == 'hybrid' else 1e-9)


@pytest.mark.parametrize('restitution', [1.0, 0.7])
@pytest.mark.parametrize('masses', [(1.0, 2.0, 0.5), (3.0, 1.0, 1.0), (1.0, 0.2, 4.0)])
def test_the_sequence_is_the_limit_of_small_gaps(masses, restitution):
    """Three balls that event by event collide as they come, with 0.1 µm and 0.1 mm of air."""
    v = [1.0, 0.0, 0.0]
    touching = speeds_after(sequential('hybrid'), masses, v, restitution)
    for air in (1e-7, APART):
        apart = speeds_after('hybrid', masses, v, restitution, air, 40)
        assert apart == pytest.approx(touching, abs=1e-5)


@pytest.mark.parametrize('model', RIGID)
def test_balls_struck_from_both_sides_reflect(model):
    # equal approach: at once; unequal: equal balls with e = 1 exchange their speeds one by one
    equal = speeds_after(sequential(model), [1.0] * 3, [1.0, 0.0, -1.0], 1.0)
    assert equal == pytest.approx([-1.0, 0.0, 1.0], abs=EXACT)
    unequal = speeds_after(sequential(model), [1.0] * 3, [1.0, 0.0, -0.5], 1.0)
    assert unequal == pytest.approx([-0.5, 0.0, 1.0], abs=EXACT)
    # a heavy ball in the middle: G λ = −(1 + e) u⁻ with λ equal on both sides
    heavy = speeds_after(sequential(model), [1.0, 5.0, 1.0], [1.0, 0.0, -1.0], 0.5)
    assert heavy == pytest.approx([-0.5, 0.0, 0.5], abs=EXACT)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
@pytest.mark.parametrize('restitution', [1.0, 0.6])
def test_balls_under_a_constraint_collide_as_one(model, restitution):
    robot = row_of_balls([1.0, 0.5, 1.5, 3.0], coupled=2)
    sim = Simulator(robot, sequential(model), friction=0.0, restitution=restitution)
    sim.restitution_threshold = THRESHOLD
    sim.reset(np.zeros(4), [1.0, 0.0, 0.0, 0.0])
    assert sim.step(np.zeros(robot.n_joints)).solver.converged
    first, both, last = one_by_one([1.0, 2.0, 3.0], [1.0, 0.0, 0.0], restitution)
    assert sim.v == pytest.approx([first, both, both, last], abs=EXACT)


def test_rows_that_do_not_touch_collide_each_by_itself():
    rows = row_of_balls([1.0, 2.0, 0.5]), row_of_balls([0.3, 1.0, 1.0, 4.0])
    speeds = [1.0, 0.0, 0.0], [0.7, 0.0, -0.2, 0.0]
    robot = joined({'a': rows[0], 'b': rows[1]}, {'b': (0.0, 1.0, 0.0)})
    alone = []
    for row, v in zip((*rows, robot), (*speeds, [*speeds[0], *speeds[1]]), strict=True):
        sim = Simulator(row, sequential('ncp'), friction=0.0, restitution=0.7)
        sim.reset(np.zeros(len(v)), v)
        sim.step(np.zeros(len(v)))
        alone.append(sim.v)
    assert np.array_equal(alone[2], np.concatenate(alone[:2]))


def cluster(places, model, friction, restitution, masses=None):
    """Return a simulator of loose balls at these places (n, 3) [m], without gravity."""
    masses = np.ones(len(places)) if masses is None else masses
    balls = {f'b{k}': loose_ball(RADIUS, float(mass)) for k, mass in enumerate(masses)}
    robot = joined(balls, against_each_other=True)
    sim = Simulator(robot, model, friction=friction, restitution=restitution, gravity=0.0)
    sim.restitution_threshold = THRESHOLD
    return sim, np.concatenate([[*place, 0.0, 0.0, 0.0, 1.0] for place in places])


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('restitution', [1.0, 0.5])
def test_a_ball_that_hits_two_at_once(model, restitution):
    """Bernoulli's problem: λ/m = (1 + e) v cos 30° / (1 + 2 cos² 30°) on each of the two."""
    half = RADIUS + 0.5 * TOUCHING
    places = [[-math.sqrt(3.0) * half, 0.0, 1.0], [0.0, half, 1.0], [0.0, -half, 1.0]]
    sim, q = cluster(places, sequential(model), 0.0, restitution)
    v = np.zeros(18)
    v[0] = 1.0
    sim.reset(q, v)
    sim.step([])
    cosine = math.sqrt(3.0) / 2.0
    size = (1.0 + restitution) * cosine / (1.0 + 2.0 * cosine**2)
    after = sim.v.reshape(3, 6)[:, :3]
    assert after[0] == pytest.approx([1.0 - 2.0 * size * cosine, 0.0, 0.0], abs=EXACT)
    assert after[1] == pytest.approx([size * cosine, 0.5 * size, 0.0], abs=EXACT)
    assert after[2] == pytest.approx([size * cosine, -0.5 * size, 0.0], abs=EXACT)


def world_motion(sim, masses):
    """Return momentum, angular momentum about the origin, and kinetic energy of loose balls."""
    momentum, angular, energy = np.zeros(3), np.zeros(3), 0.0
    for k, mass in enumerate(masses):
        x, quaternion = sim.q[7 * k : 7 * k + 3], sim.q[7 * k + 3 : 7 * k + 7]
        turn = rotation(quaternion)
        v, omega = (turn @ sim.v[6 * k + a : 6 * k + a + 3] for a in (0, 3))
        inertia = 0.4 * mass * RADIUS**2
        momentum += mass * v
        angular += mass * np.cross(x, v) + inertia * omega
        energy += 0.5 * mass * v @ v + 0.5 * inertia * omega @ omega
    return momentum, angular, energy


def rotation(quaternion):
    """Return the matrix of a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * K + 2.0 * K @ K


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('friction', [0.0, 0.3])
def test_a_break_keeps_momentum_and_makes_no_energy(model, friction):
    """A ball runs into a tetrahedron of touching balls of random masses, spinning."""
    edge = 2.0 * RADIUS + TOUCHING
    corners = edge * np.array([
        [0.0, 0.0, 0.0], [math.sqrt(0.75), 0.5, 0.0], [math.sqrt(0.75), -0.5, 0.0],
        [1.0 / math.sqrt(3.0), 0.0, math.sqrt(2.0 / 3.0)],
    ])  # fmt: skip
    for seed in range(4):
        rng = np.random.default_rng(seed)
        masses = np.exp(rng.uniform(-1.0, 1.0, 5))
        restitution = (1.0, 0.5)[seed % 2]
        places = np.vstack([[-edge, 0.0, 0.0], corners]) + [0.0, 0.0, 1.0]
        sim, q = cluster(places, sequential(model), friction, restitution, masses)
        v = np.zeros(30)
        v[:6] = 1.0, *rng.uniform(-0.3, 0.3, 2), *rng.uniform(-5.0, 5.0, 3)
        sim.reset(q, v)
        momentum, angular, energy = world_motion(sim, masses)
        assert sim.step([]).solver.converged
        after = world_motion(sim, masses)
        assert after[0] == pytest.approx(momentum, abs=1e-9)
        assert after[1] == pytest.approx(angular, abs=1e-9)
        assert after[2] <= energy + 1e-9
        if restitution == 1.0 and friction == 0.0:
            assert after[2] == pytest.approx(energy, abs=1e-8)
        # nothing approaches any more
        assert sim.last_report.record.u_next[2::3][sim.last_report.record.active > 0].min() > -1e-6


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_cradle_swings_from_end_to_end(model):
    """The last ball rises as high as the first was let go, and the others stay."""
    pairs = [('ball_1', 'ball_2'), ('ball_2', 'ball_3')]
    sim = Simulator(
        load_robot('newtons_cradle').with_self_collision(pairs), sequential(model),
        friction=0.0, restitution=1.0,
    )  # fmt: skip
    sim.reset([-0.1, 0.0, 0.0])
    highest, middle = 0.0, 0.0
    for _ in range(1200):  # half a period is 1.0 s
        sim.step([])
        highest, middle = max(highest, sim.q[2]), max(middle, abs(sim.q[1]))
    assert highest == pytest.approx(0.1, rel=5e-3 if model == 'ncp' else 1e-6)
    assert middle < 2e-3


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_robot_that_lands_on_four_feet_gains_no_energy(model):
    """It rolls and pitches: its feet hit the ground together, at 0.82 to 1.21 m/s.

    Their impacts are coupled by the trunk, which is much heavier than a foot: both choices turn
    each speed round, and the trunk moves on alike.
    """
    after = {}
    for choice in ('simultaneous', 'sequential'):
        law = CONTACT_MODELS[model](multiple_impacts=choice)
        sim = Simulator(load_robot('go1'), law, friction=0.6, restitution=0.5)
        q, v = sim.standing_configuration(), np.zeros(18)
        v[:6] = 0.2, 0.0, -1.0, 0.8, 0.5, 0.1
        sim.reset(q, v)
        q[2] += (2e-4 if model == 'ncp' else 0.0) - sim.last_report.contacts.gap.min()
        sim.reset(q, v)
        energies = []
        for step in range(200):
            report = sim.step(np.zeros(12))
            assert report.solver.converged
            kinetic, *moment = report.record.energy
            energies.append(kinetic + 9.81 * moment[2])
            if step == 0:
                speed = report.record.u_start[2::3][:4]
                rebound = report.record.u_next[2::3][:4]
                after[choice] = sim.v[:6].copy()
                assert speed == pytest.approx([-1.009, -1.212, -0.821, -1.023], abs=1e-3)
                # hybrid falls on for the rest of the step
                assert rebound == pytest.approx(-0.5 * speed, abs=2e-3 if model == 'ncp' else 0.03)
                assert report.residuals.energy_balance.contact < -0.1
        assert np.diff(energies).max() < 0.0
    assert after['sequential'] == pytest.approx(after['simultaneous'], abs=5e-3)


@pytest.mark.parametrize('model', RIGID)
def test_a_single_impact_is_that_of_the_default(model):
    """A ball with spin and friction, on the ground."""
    motions = []
    for choice in ('simultaneous', 'sequential'):
        law = CONTACT_MODELS[model](multiple_impacts=choice)
        sim = Simulator(loose_ball(0.1, 1.0), law, friction=0.4, restitution=0.8, gravity=0.0)
        sim.reset([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], [1.0, 0.2, -2.0, 0.0, 30.0, 5.0])
        motions.append(sim.step([]).record.v_next)
    assert motions[1] == pytest.approx(motions[0], abs=1e-9)
    assert motions[0][2] == pytest.approx(1.6, abs=1e-9)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_without_restitution_the_option_changes_nothing(model):
    motions = []
    for choice in ('simultaneous', 'sequential'):
        sim = Simulator(
            row_of_balls([1.0, 2.0, 3.0]), CONTACT_MODELS[model](multiple_impacts=choice)
        )
        sim.reset(np.zeros(3), [1.0, 0.0, -0.5])
        sim.step(np.zeros(3))
        motions.append(sim.v)
    assert motions[1] == pytest.approx(motions[0], abs=1e-12 if model == 'hybrid' else 0.0)
    assert motions[0] == pytest.approx(np.full(3, (1.0 - 1.5) / 6.0), abs=1e-5)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_snapshots_recordings_and_worlds_repeat_a_sequence(model, tmp_path):
    law = sequential(model)
    robot = row_of_balls([1.0, 2.0, 0.5, 1.0], 2e-4)
    sim = Simulator(robot, law, friction=0.3, restitution=0.8)
    start = np.zeros(4), [1.0, 0.0, 0.0, -0.7]
    sim.reset(*start)
    kept = sim.snapshot()
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(5):
            sim.step(np.zeros(4))
    end = sim.q.copy(), sim.v.copy()
    assert repeat(Recording(tmp_path / 'run.npz')).equal
    sim.restore(kept)
    for _ in range(5):
        sim.step(np.zeros(4))
    assert np.array_equal(sim.q, end[0])
    assert np.array_equal(sim.v, end[1])
    if model == 'ncp':  # worlds take time-stepping models
        worlds = Worlds(robot, 2, law, friction=0.3, restitution=0.8)
        worlds.reset(*start)
        worlds.step(np.zeros(4), 5)
        assert np.array_equal(worlds.v, np.tile(end[1], (2, 1)))


def test_the_end_of_too_many_impacts_is_plastic_and_reported():
    """A ball of 1 g between 1 t and a row that it cannot move: bounces without end at e = 1."""
    masses, v = [1e6, 1e-3, 1e6], [1.0, 0.0, 0.0]
    sim = Simulator(row_of_balls(masses), sequential('ncp'), friction=0.0, restitution=1.0)
    sim.reset(np.zeros(3), v)
    report = sim.step(np.zeros(3))
    assert report.solver.status.name == 'TOO_MANY_EVENTS'
    energy = 0.5 * np.array(masses) @ np.square(sim.v)
    assert energy <= 0.5 * masses[0] * (1.0 + 1e-9)


def test_models_without_restitution_have_no_such_option():
    for name in contact_models():
        has_option = hasattr(CONTACT_MODELS[name]().parameters, 'multiple_impacts')
        assert has_option == (name in RIGID)
