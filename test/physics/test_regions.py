"""Regions of the ground with a friction and restitution of their own."""

import numpy as np
import pytest
from robots import ball, cube, point_mass, pose, sled

from contact_sim import InvalidInput, Plane, Planes, Simulator, Worlds, contact_models
from contact_sim.collision._terrain import as_terrain
from contact_sim.contact_models.hybrid._hybrid import Hybrid
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.step._problem import SolverStatus
from contact_sim.terrain import HeightField, Region, TerrainGenerator

GRAVITY, STEP = 9.81, 1e-3
ROUGH, ICE = 0.8, 0.1
SPEED, BORDER = 3.0, 0.4
SLIDING = [model for model in contact_models() if model != 'null_space']
"""null_space holds every foot, and tells when friction would not."""
SOFT = ('compliant', 'todorov', 'sap')
ICY = [Region((BORDER, 9.0), (-9.0, 9.0), friction=ICE)]
FLAT = HeightField(np.zeros((61, 41)), 0.1, (-1.0, -2.0))


def slid(model, steps=250, time_step=STEP, terrain='plane'):
    """Return time, speed along x and z, force and reports of 1 kg that slides onto the ice."""
    ground = as_terrain(terrain).with_regions(ICY)
    sim = Simulator(point_mass(1.0), model, ground, friction=ROUGH, time_step=time_step)
    sim.reset(np.zeros(3))
    for _ in range(400 if model in SOFT else 0):
        sim.step([])
    height = time_step * ROUGH * SPEED if model == 'anitescu' else sim.q[2]  # where it glides
    sim.reset([0.0, 0.0, height], [SPEED, 0.0, 0.0])
    reports = [sim.step([]) for _ in range(steps)]
    x = np.array([0.0, *(report.q[0] for report in reports)])
    v = np.array([[SPEED, 0.0, 0.0], *(report.v for report in reports)])
    return x, v, reports


@pytest.mark.parametrize('terrain', ['plane', FLAT], ids=['plane', 'field'])
@pytest.mark.parametrize('model', SLIDING)
def test_a_mass_slows_down_with_the_friction_below_it(model, terrain):
    """Δv_x = −μ (g h + Δv_z) in every step, with μ where it begins."""
    x, v, reports = slid(model, terrain=terrain)
    mu = np.where(x[:-1] >= BORDER, ICE, ROUGH)
    assert 100 < np.count_nonzero(mu == ROUGH) < 200
    expected = -mu * (GRAVITY * STEP + np.diff(v[:, 2]))
    assert np.diff(v[:, 0]) == pytest.approx(expected, abs=1e-10)
    assert np.array_equal([report.contacts.friction[0] for report in reports], mu)
    assert max(report.residuals.cone for report in reports) < 1e-12
    if model not in ('anitescu', 'todorov'):  # what leaves the ground on its way is not braked
        at_border = np.sqrt(SPEED**2 - 2.0 * ROUGH * GRAVITY * BORDER)
        beyond = len(reports) * STEP - (SPEED - at_border) / (ROUGH * GRAVITY)
        late = 1.5 * (ROUGH - ICE) * GRAVITY * STEP  # by up to a step, and a little sinking
        assert v[-1, 0] == pytest.approx(at_border - ICE * GRAVITY * beyond, abs=late)


def test_the_arcs_of_hybrid_change_friction_where_they_begin():
    """A step of 10 ms meets the border anywhere; the speed misses by one arc of braking."""
    _, v, _ = slid(Hybrid(max_substep=1e-4), steps=25, time_step=1e-2)
    at_border = np.sqrt(SPEED**2 - 2.0 * ROUGH * GRAVITY * BORDER)
    beyond = 0.25 - (SPEED - at_border) / (ROUGH * GRAVITY)
    exact = at_border - ICE * GRAVITY * beyond
    assert v[-1, 0] == pytest.approx(exact, abs=(ROUGH - ICE) * GRAVITY * 1e-4)


def test_a_foot_stands_on_each_side():
    ground = Plane().with_regions([Region((-9.0, 9.0), (-9.0, 0.0), friction=ICE)])
    sim = Simulator(sled(), terrain=ground, friction=ROUGH)
    sim.reset(pose(z=0.12), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for _ in range(20):
        contacts = sim.step([]).contacts
        assert contacts.friction.tolist() == 4 * [ROUGH] + 4 * [ICE]
        along = np.linalg.norm(contacts.force[:, :2], axis=1)
        assert along == pytest.approx(contacts.friction * contacts.force[:, 2], rel=1e-6)
    assert sim.v[5] > 0.1  # the left foot brakes more: it turns to the left


def test_null_space_says_what_ice_would_not_hold():
    gravity = [2.0, 0.0, -GRAVITY]  # along the ground 0.2 of the load
    for x, status in ((0.0, SolverStatus.CONVERGED), (2.0, SolverStatus.OUTSIDE_CONE)):
        sim = Simulator(cube(), 'null_space', Plane().with_regions(ICY), gravity=gravity)
        sim.reset(pose(x=x, z=0.1))
        assert {sim.step([]).solver.status for _ in range(5)} == {status}


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu', 'hybrid'])
def test_a_ball_bounces_as_the_region_below_it(model):
    """It leaves with e times the speed with which it came, on three sides of two borders."""
    regions = [
        Region((1.0, 9.0), (-9.0, 9.0), restitution=0.9),
        Region((2.0, 9.0), (-9.0, 9.0), restitution=0.2),
        Region((2.0, 9.0), (-9.0, 9.0), friction=0.3),
    ]
    sim = Simulator(ball(), model, Plane().with_regions(regions), restitution=0.5)
    for x, restitution in ((0.0, 0.5), (1.5, 0.9), (2.5, 0.2)):
        sim.reset(pose(x=x, z=0.15))
        speed = np.array([sim.step([]).v[2] for _ in range(130)])
        k = int(np.argmax(np.diff(speed) > 0.5))
        assert speed[k] == pytest.approx(-np.sqrt(2.0 * GRAVITY * 0.05), rel=2e-2)
        assert speed[k + 1] == pytest.approx(-restitution * speed[k], abs=2.0 * GRAVITY * STEP)


def test_of_regions_over_each_other_the_last_one_counts():
    layers = [
        Region((0.0, 4.0), (-1.0, 1.0), friction=0.1),
        Region((1.0, 3.0), (-1.0, 1.0), friction=0.2, restitution=0.4),
        Region((2.0, 4.0), (-1.0, 1.0), restitution=0.6),
    ]
    sim = Simulator(ball(), terrain=Plane().with_regions(layers), friction=0.8, restitution=0.3)
    for x, y, friction in ((-0.5, 0, 0.8), (0.5, 0, 0.1), (2.5, 0, 0.2), (3.5, 0, 0.1),
                           (0.0, -1.0, 0.1), (4.0, 0.0, 0.8), (0.5, 1.0, 0.8)):  # fmt: skip
        sim.reset(pose(x, y, 0.1))
        assert sim.last_report.contacts.friction.tolist() == [0.8]  # nothing has acted yet
        assert sim.step([]).contacts.friction.tolist() == [friction]
    assert sim.friction.tolist() == [0.8]
    assert sim.restitution.tolist() == [0.3]


def test_every_slot_of_a_groove_is_where_its_contact_point_is():
    ground = Planes().with_regions([Region((0.0, 9.0), (-9.0, 9.0), friction=ICE)])
    sim = Simulator(ball(), terrain=ground)
    contacts = sim.step([]).contacts
    assert contacts.friction.tolist() == np.where(contacts.position[:, 0] > 0, ICE, 0.8).tolist()
    assert set(contacts.friction) == {ICE, 0.8}


def test_a_region_that_says_what_is_anyway_changes_no_bit():
    everywhere = [Region((-99.0, 99.0), (-99.0, 99.0), friction=0.4, restitution=0.3)]
    motions = []
    for ground in (Plane(), Plane().with_regions(everywhere)):
        sim = Simulator(cube(), terrain=ground, friction=0.4, restitution=0.3)
        sim.reset(pose(z=0.2), [1.0, 0.3, 0.0, 1.0, 2.0, 0.0])
        motions.append([np.append(sim.step([]).q, sim.v) for _ in range(300)])
    assert np.array_equal(*motions)


def test_generated_ground_keeps_its_regions():
    kinds = {'flat': {'friction': 0.3}, 'random_grid': {'friction': 0.2, 'grid_width': 0.5,
                             'grid_height_range': [0.02, 0.05]}}  # fmt: skip
    for names in (('flat',), ('flat', 'random_grid')):
        kind = {name: kinds[name] | {'proportion': 1.0} for name in names}
        ground = TerrainGenerator(
            size=(2.0, 2.0), num_cols=len(names), curriculum=True, sub_terrains=kind
        ).generate()
        sim = Simulator(ball(), terrain=ground)
        sim.reset([*ground.origins[0, 0] + [0.0, 0.0, 0.1], 0, 0, 0, 1])
        assert sim.step([]).contacts.friction[0] == 0.3
        assert sim.terrain.regions == ground.regions


def test_worlds_have_regions_of_their_own():
    grounds = [Plane(), Plane().with_regions(ICY), Plane().with_regions(2 * ICY)]
    worlds = Worlds(cube(), 3, terrain=grounds, friction=[[0.3], [0.5], [0.7]], threads=2)
    starts = np.array([pose(z=0.1), pose(x=BORDER, z=0.1), pose(x=1.0, z=0.1)])
    velocity = [1.0, 0.2, 0.0, 0.0, 0.0, 0.0]
    worlds.reset(starts, velocity)
    worlds.step(np.zeros((3, 0)), 200)
    for k, (ground, friction) in enumerate(zip(grounds, (0.3, 0.5, 0.7), strict=True)):
        sim = Simulator(cube(), terrain=ground, friction=friction)
        sim.reset(starts[k], velocity)
        for _ in range(200):
            report = sim.step([])
        assert np.array_equal(worlds.q[k], sim.q)
        assert np.array_equal(worlds.report(k).contacts.friction, report.contacts.friction)
        assert (ICE in report.contacts.friction) == (k > 0)


def test_shadows_and_recordings_slide_on_the_same_ice(tmp_path):
    sim = Simulator(cube(), terrain=Plane().with_regions(ICY), friction=ROUGH)
    sim.shadow = ['ncp', 'sap']
    sim.reset(pose(z=0.1), [SPEED, 0.0, 0.0, 0.0, 0.0, 0.0])
    with Recorder(sim, tmp_path / 'run.npz'):
        for k in range(300):
            if k == 250:
                sim.friction, sim.restitution = 0.5, 0.1
            report = sim.step([])
            if k % 50 == 0:
                shadows = report.shadows
                assert np.array_equal(shadows['ncp'].force, report.contacts.force)
                friction = shadows['sap'].step.contacts.friction
                assert np.array_equal(friction, report.contacts.friction)
    assert report.contacts.friction.tolist() == 4 * [ICE]
    recording = Recording(tmp_path / 'run.npz')
    assert repeat(recording).equal
    again = recording.simulator()
    assert again.terrain.regions == tuple(ICY)
    assert again.friction.tolist() == 4 * [ROUGH]
    kinds = [event['kind'] for event in recording.events]
    assert kinds == ['friction', 'restitution']


def test_a_snapshot_keeps_friction_outside_of_regions():
    sim = Simulator(ball(), terrain=Plane().with_regions(ICY), friction=0.4)
    sim.reset(pose(x=1.0, z=0.1))
    sim.step([])
    kept = sim.snapshot()
    sim.friction = 0.7
    sim.restore(kept)
    assert sim.friction.tolist() == [0.4]
    assert np.array_equal(sim.snapshot().buffer, kept.buffer)


def test_other_things_are_no_regions():
    with pytest.raises(InvalidInput, match=r'regions\[0\] = \(0, 1\): expected Region'):
        Plane().with_regions([(0, 1)])
