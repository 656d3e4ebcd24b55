"""Robots on grounds of many facets: walking, falling, and rolling without ghosts."""

import numpy as np
import pytest
from ground_walks import GROUNDS, walk
from robots import ball

from contact_sim import Simulator, Worlds, contact_models, load_robot, loose_box
from contact_sim.collision._terrain import FieldGround, MeshGround
from contact_sim.errors import InvalidInput
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.replay._format import RecordingError, ground_header, ground_of
from contact_sim.terrain import HeightField, Terraces, boxes, concatenate, united

GRAVITY, STEP, RADIUS = 9.81, 1e-3, 0.1
FLAT = HeightField(np.zeros((61, 41)), 0.05, (-0.5, -1.0))
SEAM = concatenate(
    [
        HeightField(np.zeros((16, 41)), 0.05, (-0.5, -1.0)).as_mesh(),
        HeightField(np.zeros((26, 21)), 0.1, (0.25, -1.0)).as_mesh(),
    ]
)
"""Two meshes of the plane side by side, with other corners along their seam."""


def rolled(model, terrain, velocity, friction=0.6, steps=600):
    sim = Simulator(ball(1.0, RADIUS), model, terrain, friction=friction)
    sim.reset([0.013, 0.007, RADIUS, 0.0, 0.0, 0.0, 1.0], velocity)
    return np.array(
        [np.append(report.q, report.v) for report in (sim.step([]) for _ in range(steps))]
    )


@pytest.mark.parametrize('model', contact_models())
@pytest.mark.parametrize('terrain', [FLAT, FLAT.as_mesh(), SEAM], ids=['field', 'mesh', 'seam'])
def test_a_ball_feels_no_edge_in_a_flat_floor(model, terrain):
    """It slides, then rolls, over many facets exactly as on a plane."""
    velocity = np.array([2.0, 0.3, 0.0, 0.5, 0.0, 1.0])
    motion = rolled(model, terrain, velocity)
    assert motion[-1, 0] > 0.8
    assert np.abs(motion - rolled(model, 'plane', velocity)).max() < 1e-12


def slid(model, terrain):
    """Return how far a box slides that starts at 2.06 m/s; μ = 0.3, so v²/2 μ g = 0.721 m."""
    sim = Simulator(loose_box((0.2, 0.15, 0.1), 1.0), model, terrain, friction=0.3)
    sim.reset([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0], [2.06, 0.0, 0.0, 0.0, 0.0, 0.0])
    for _ in range(800):
        sim.step([])
    return float(sim.q[0])


@pytest.mark.parametrize('model', contact_models())
def test_tiles_that_differ_by_less_than_a_micrometre_do_not_stop_a_slide(model):
    plane = slid(model, 'plane')
    for step in (0.0, 1e-9, -1e-9, 9e-7):  # one tile and two that are higher or lower than it
        low, high = [-1.0, -2.0, -1.0], [0.4, 2.0, 0.0]
        tiles = [[0.4, -1.5, -1.0], [0.4, 0.3, -1.0]], [[4.0, 0.3, step], [4.0, 1.5, -step]]
        floor = boxes([low, *tiles[0]], [high, *tiles[1]])
        assert slid(model, floor) == pytest.approx(plane, abs=1e-4)


def test_a_step_of_a_millimetre_stops_a_slide():
    assert slid('ncp', boxes([[-1, -2, -1], [0.4, -2, -1]], [[0.4, 2, 0], [4, 2, 1e-3]])) < 0.31


def test_solids_that_overlap_are_one():
    one, other = ([0, 0, 0], [2, 1, 1]), ([1, 0.5, 0.5], [3, 2, 2])
    both = united(boxes([one[0], other[0]], [one[1], other[1]]))
    a, b, c = np.moveaxis(both.vertices[both.triangles], 1, 0)
    volume = np.einsum('ij,ij->i', a, np.cross(b, c)).sum() / 6.0
    assert (both.neighbours >= 0).all()
    assert volume == pytest.approx(2.0 + 2.0 * 1.5 * 1.5 - 1.0 * 0.5 * 0.5, rel=1e-12)
    apart = boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]])
    assert united(apart) is apart


def test_a_ball_that_slides_over_hills_keeps_its_energy_to_the_order_of_the_step():
    def height(x, y):
        return 0.05 * np.cos(3.0 * x) + 0.03 * np.sin(4.0 * y)

    hills = HeightField.of_function(height, (4.0, 4.0), 0.02, (-2.0, -2.0))

    def worst_error(time_step):
        sim = Simulator(ball(1.0, RADIUS), 'ncp', hills, friction=0.0, time_step=time_step)
        q = sim.standing_configuration()
        sim.reset(q, [0.3, 0.1, 0.0, 0.0, 0.0, 0.0])
        start = 0.5 * 0.1 + GRAVITY * q[2]
        errors = []
        for _ in range(round(1.0 / time_step)):
            report = sim.step([])
            errors.append(0.5 * report.v[:3] @ report.v[:3] + GRAVITY * report.q[2] - start)
            assert -1e-5 < report.contacts.gap.min() < 1e-3
        return max(errors), min(errors)

    gain, loss = worst_error(1e-3)
    finer_gain, finer_loss = worst_error(2.5e-4)
    assert gain < 2e-3  # of 0.5 J that it exchanges
    assert finer_gain < 0.5 * gain + 1e-5
    assert abs(finer_loss) < 0.6 * abs(loss) + 1e-5


@pytest.mark.parametrize('model', contact_models())
def test_a_ball_is_stopped_by_a_wall_and_falls_off_a_step(model):
    wall = Terraces(np.array([-1.0, 0.5, 1.0]), np.array([-1.0, 1.0]), np.array([[0.0], [0.3]]))
    motion = rolled(model, wall.as_mesh(), np.array([1.0, 0, 0, 0, 10.0, 0]), steps=700)
    soft = model in ('compliant', 'todorov', 'sap')
    assert motion[:, 0].max() == pytest.approx(0.5 - RADIUS, abs=2e-2 if soft else 2e-4)
    assert motion[:, 2].min() > RADIUS - (1e-2 if soft else 1e-5)
    step = Terraces(np.array([-1.0, 0.5, 2.0]), np.array([-1.0, 1.0]), np.array([[0.0], [-0.2]]))
    motion = rolled(model, step.as_mesh(), np.array([1.0, 0, 0, 0, 10.0, 0]), steps=1200)
    assert motion[-1, 0] > (0.59 if model == 'null_space' else 0.7)  # it holds on to the wall
    assert motion[-1, 2] == pytest.approx(RADIUS - 0.2, abs=2e-2 if soft else 1e-4)


WALKS = [
    ('go1', 'slope', 'ncp'), ('anymal_b', 'slope', 'sap'), ('go1', 'grid', 'todorov'),
    ('anymal_b', 'grid', 'ncp'), ('go1', 'stairs', 'ncp'), ('anymal_b', 'stairs', 'todorov'),
    ('go1', 'stairs', 'sap'),
]  # fmt: skip
"""The rest of robots × grounds × models is left to the benchmark."""


@pytest.mark.parametrize(('name', 'ground', 'model'), WALKS)
def test_a_blind_trot_gets_over_it(name, ground, model):
    """Ten seconds up a slope, over blocks, up and down stairs; see benchmarks/ground_walks.py."""
    way = walk(name, ground, model)
    assert way.distance > 1.9
    assert way.upright > 0.9
    assert way.unsolved == 0
    assert way.depth < {'ncp': 1e-4, 'sap': 1e-2, 'todorov': 6e-2}[model]  # feet that hit a wall


@pytest.mark.parametrize('model', contact_models())
def test_every_model_falls_down_stairs(model):
    """No point of a rigid model ends deeper than one step of motion."""
    steps = 8
    heights = -0.15 * np.arange(steps + 1)
    cuts = [-1.0, *(0.2 + 0.3 * np.arange(steps)), 8.0]
    ground = Terraces(np.array(cuts), np.array([-2.0, 2.0]), heights[:, None]).as_mesh()
    robot = load_robot('go1').with_body_contacts(['trunk'], most=8)
    sim = Simulator(robot, model, ground)
    q = sim.q.copy()
    q[2] += 0.05
    velocity = np.zeros(robot.nv)
    velocity[[0, 4]] = 2.5, 3.0
    sim.reset(q, velocity)
    hard = model in ('ncp', 'lcp', 'anitescu', 'null_space', 'hybrid')
    for _ in range(800):
        report = sim.step(-0.5 * robot.joint_velocities(sim.v))
        speed = np.linalg.norm(report.contacts.velocity, axis=1).max() + 1.0
        deepest = -report.contacts.gap.min()
        assert deepest < (STEP * speed if hard else 0.04)
    assert np.isfinite(sim.q).all()
    assert sim.q[0] > 0.4
    assert sim.q[2] < 0.1


def test_worlds_and_simulator_agree_on_facets():
    robot = load_robot('go1')
    heights = np.random.default_rng(0).uniform(0.0, 0.04, (3, 61, 61))
    grounds = [FieldGround(HeightField(field, 0.05, (-1.5, -1.5))) for field in heights]
    worlds = Worlds(robot, 3, terrain=grounds)
    worlds.reset()
    effort = np.zeros((3, robot.n_joints))
    sims = [Simulator(robot, terrain=ground) for ground in grounds]
    for _ in range(100):
        worlds.step(effort)
        for sim in sims:
            sim.step(effort[0])
    for k, sim in enumerate(sims):
        assert np.array_equal(worlds.q[k], sim.q)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_recording_on_facets_repeats_to_the_bit(tmp_path, model):
    sim = Simulator(load_robot('go1'), model, GROUNDS['grid']())
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(60):
            sim.step(np.zeros(12))
    recording = Recording(tmp_path / 'run.npz')
    assert repeat(recording).equal


@pytest.mark.parametrize('relief', ['no base64!', 'AAAA', 7])
def test_a_damaged_relief_is_refused(relief):
    header = {'format': 4, 'ground': {**ground_header(FieldGround(FLAT)), 'relief': relief}}
    with pytest.raises(RecordingError, match='relief of the ground is damaged'):
        Simulator(ball(), terrain=ground_of(header))


def test_a_relief_that_does_not_fit_its_sizes_is_refused():
    for ground in (FieldGround(FLAT), MeshGround(FLAT.as_mesh())):
        said = ground_header(ground)
        said['data'][0] += 1.0
        with pytest.raises(InvalidInput, match='do not fit together'):
            Simulator(ball(), terrain=ground_of({'format': 4, 'ground': said}))
