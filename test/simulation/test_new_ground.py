"""Another ground at a reset."""

import numpy as np
import pytest
from robots import ball, cube, pose

from contact_sim import (
    InclinedPlane,
    InvalidInput,
    Plane,
    Planes,
    Simulator,
    SphereGround,
    Worlds,
    contact_models,
    load_robot,
)
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.replay.__main__ import main
from contact_sim.terrain import HeightField, Region

HILL = HeightField.of_function(lambda x, y: 0.2 - 0.1 * (x**2 + y**2), (2.0, 2.0), 0.1, (-1, -1))
GROUNDS = [
    InclinedPlane(0.2),
    SphereGround(),
    Planes(),
    HILL,
    Plane().with_regions([Region((-9.0, 9.0), (-9.0, 9.0), friction=0.05)]),
]
SETTINGS = {'friction': 0.3, 'restitution': 0.2, 'time_step': 2e-3, 'gravity': [0.5, 0.0, -9.0],
            'integrator': 'momentum'}  # fmt: skip


def motion(sim, steps=30):
    return np.array([np.append(sim.step([]).q, sim.v) for _ in range(steps)])


@pytest.mark.parametrize('model', contact_models())
def test_a_simulation_on_new_ground_is_as_one_made_there(model):
    sim = Simulator(cube(), model, **SETTINGS)
    sim.baumgarte, sim.restitution_threshold = 0.3, 0.1
    sim.shadow = ['ncp']
    before = motion(sim)
    kept = sim.last_report
    said = kept.contacts.force.copy(), kept.residuals
    for ground in GROUNDS:
        sim.reset(v=[1.0, 0.2, 0.0, 0.0, 0.0, 0.0], terrain=ground)
        other = Simulator(cube(), model, ground, **SETTINGS)
        other.baumgarte, other.restitution_threshold = 0.3, 0.1
        other.reset(v=[1.0, 0.2, 0.0, 0.0, 0.0, 0.0])
        assert np.array_equal(motion(sim), motion(other))
        assert np.array_equal(
            sim.last_report.contacts.friction, other.last_report.contacts.friction
        )
        said_by = [list(one.last_report.residuals) for one in (sim, other)]
        assert np.array_equal(*said_by, equal_nan=True)
        assert set(sim.step([]).shadows) == {'ncp'}
    sim.reset(terrain='plane')
    assert np.array_equal(motion(sim), before)
    assert np.array_equal(kept.contacts.force, said[0])
    assert np.array_equal(list(kept.residuals), list(said[1]), equal_nan=True)


def test_friction_per_contact_point_follows_to_other_features():
    sim = Simulator(cube(), friction=[0.1, 0.2, 0.3, 0.4])
    sim.reset(terrain=Planes())
    assert sim.friction.tolist() == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4]
    sim.friction = np.linspace(0.1, 0.8, 8)
    sim.reset(terrain=Planes(Planes().planes))
    assert sim.friction.tolist() == np.linspace(0.1, 0.8, 8).tolist()
    q, ground = sim.q, sim.terrain
    with pytest.raises(
        InvalidInput, match='friction is given for each of 2 contacts of a contact'
    ):
        sim.reset(terrain='plane')
    assert sim.terrain is ground
    assert np.array_equal(sim.q, q)
    sim.friction = 0.5
    sim.reset(terrain='plane')
    assert sim.friction.tolist() == [0.5] * 4


def test_a_reset_that_is_refused_leaves_the_ground():
    sim = Simulator(ball())
    island = HeightField(np.zeros((3, 3)), 0.1, (5.0, 5.0))
    for arguments in ({'terrain': island}, {'terrain': HILL, 'v': [0.0]},
                      {'terrain': HILL, 'time': np.nan}):  # fmt: skip
        with pytest.raises(InvalidInput):
            sim.reset(**arguments)
        assert sim.terrain == Plane()
    snapshot = sim.snapshot()
    sim.reset(terrain=HILL)
    with pytest.raises(InvalidInput, match='the ground other features'):
        sim.restore(snapshot)


def test_a_robot_without_contact_points_takes_any_ground():
    from robots import axle

    sim = Simulator(axle())
    sim.reset(terrain=Planes())
    assert sim.step([1.0]).v[0] > 0.0


def test_worlds_change_their_grounds(tmp_path):
    grounds = [InclinedPlane(0.1), Plane(), SphereGround()]
    worlds = Worlds(cube(), 3, friction=0.3, threads=1)
    worlds.step(np.zeros((3, 0)), 20)
    worlds.reset(terrain=grounds)
    worlds.reset(terrain='inclined_plane', worlds=[1])
    worlds.step(np.zeros((3, 0)), 50)
    for k, ground in enumerate([grounds[0], 'inclined_plane', grounds[2]]):
        sim = Simulator(cube(), terrain=ground, friction=0.3)
        motion(sim, 50)
        assert np.array_equal(worlds.q[k], sim.q)
    with pytest.raises(InvalidInput, match='terrain of world 2 has 2 features, that of world 0 1'):
        worlds.reset(terrain=[Plane(), Plane(), Planes()])
    assert worlds.report(2).contacts.force.shape == (4, 3)


def test_recordings_know_every_ground(tmp_path, capsys):
    path = tmp_path / 'run.npz'
    sim = Simulator(cube(), friction=0.4)
    with Recorder(sim, path, chunk=40):
        motion(sim, 30)
        for ground in GROUNDS:
            sim.reset(pose(z=0.4), [1.0, 0.2, 0.0, 0.0, 2.0, 0.0], terrain=ground)
            motion(sim, 100)
        sim.contact_model = 'sap'
        sim.reset(terrain='plane')
        motion(sim, 30)
    recording = Recording(path)
    outcome = repeat(recording)
    assert outcome.equal
    assert outcome.steps == 560
    assert [event['kind'] for event in recording.events].count('terrain') == 6
    assert main([str(path), '--model', 'lcp']) == 0
    said = capsys.readouterr().out
    assert 'before step 31: another terrain' in said


def test_a_walking_machine_keeps_its_settings():
    robot = load_robot('solo12')
    sim = Simulator(robot, 'null_space')
    sim.reset(terrain=InclinedPlane(0.1))
    command = np.zeros(robot.n_joints)
    other = Simulator(robot, 'null_space', InclinedPlane(0.1))
    for _ in range(20):
        assert np.array_equal(sim.step(command).q, other.step(command).q)


def test_a_push_ends_with_its_step_also_where_the_ground_changes():
    """The ball flies on without what pushed it before: v = v0 + g t, exactly as many steps."""
    sim, h = Simulator(ball()), 1e-3
    sim.step([], {'body': [50.0, 0.0, 0.0, 0.0, 0.0, 0.0]})
    sim.reset(pose(z=5.0), np.zeros(6), terrain=InclinedPlane(0.2))
    for _ in range(10):
        sim.step([])
    np.testing.assert_allclose(sim.v, [0.0, 0.0, -10 * h * 9.81, 0.0, 0.0, 0.0], atol=1e-12)
