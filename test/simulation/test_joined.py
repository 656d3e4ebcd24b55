"""Robots joined in one world move as each of them does alone."""

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import (
    Compliant,
    InclinedPlane,
    InvalidInput,
    Plane,
    Simulator,
    UnknownName,
    Worlds,
    contact_models,
    joined,
    load_robot,
)
from contact_sim.arrays._views import Arrays
from contact_sim.contact_models._stages import combine_outcomes
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import repeat
from contact_sim.robot._model import RobotModel
from contact_sim.solvers._cone_problem import NONFINITE, PULLING
from contact_sim.step._workspace import Workspace

PLACES = {'b': (2.0, 1.0, 0.7)}
MODELS = [name for name in contact_models() if name != 'hybrid']


@pytest.fixture(scope='module')
def robots():
    return {'a': load_robot('go1'), 'b': load_robot('anymal_b')}


@pytest.fixture(scope='module')
def both(robots):
    return joined(robots, PLACES)


def model_of(name):
    """Compliant with a stiffness of its own: that for a penetration follows the whole weight."""
    return Compliant(stiffness=2e6) if name == 'compliant' else name


def swaying(sim, start, gains):
    """Efforts of a PD that follows a sine, strong enough to lift feet."""
    error = start + 0.1 * np.sin(12.0 * sim.time) - sim.robot.joint_positions(sim.q)
    return gains[0] * error - gains[1] * sim.robot.joint_velocities(sim.v)


@pytest.mark.parametrize('integrator', ['semi_implicit', 'momentum'])
@pytest.mark.parametrize('name', MODELS)
def test_each_moves_as_it_would_alone(name, integrator, robots, both):
    """With lift-off, slip, touch-down, dry friction, joint limits and restitution."""
    options = {'friction': 0.5, 'restitution': 0.3, 'integrator': integrator}
    alone = [Simulator(robot, model_of(name), **options) for robot in robots.values()]
    together = Simulator(both, model_of(name), **options)
    q = both.reference_configuration()
    places = [both.of(key) for key in robots]
    for sim, (mine, _, _) in zip(alone, places, strict=True):
        sim.reset(q[mine])
    together.reset(q)
    start = [sim.robot.joint_positions(sim.q) for sim in alone]
    lifted = 0
    for _ in range(200):
        efforts = [
            swaying(sim, pose, sim.robot.default_gains)
            for sim, pose in zip(alone, start, strict=True)
        ]
        reports = [sim.step(effort) for sim, effort in zip(alone, efforts, strict=True)]
        report = together.step(np.concatenate(efforts))
        force = np.concatenate([one.contacts.normal_force for one in reports])
        lifted += int((force == 0.0).any())
        assert report.contacts.normal_force == pytest.approx(force, rel=1e-6, abs=1e-5)
        for sim, (mine, own, _) in zip(alone, places, strict=True):
            assert together.q[mine] == pytest.approx(sim.q, abs=1e-10)
            assert together.v[own] == pytest.approx(sim.v, abs=1e-7)
    assert lifted > 10 or name == 'null_space'  # it holds what it has


def test_hybrid_shares_the_events_of_all(robots, both):
    """A step ends at those of every robot; standing there are few."""
    alone = [Simulator(robot, 'hybrid') for robot in robots.values()]
    together, q = Simulator(both, 'hybrid'), both.reference_configuration()
    together.reset(q)
    for sim, key in zip(alone, robots, strict=True):
        sim.reset(q[both.of(key)[0]])
    start = [sim.robot.joint_positions(sim.q) for sim in alone]
    for _ in range(50):
        efforts = []
        for sim, pose in zip(alone, start, strict=True):
            kp, kd = sim.robot.default_gains
            error = pose - sim.robot.joint_positions(sim.q)
            efforts.append(kp * error - kd * sim.robot.joint_velocities(sim.v))
            sim.step(efforts[-1])
        assert together.step(np.concatenate(efforts)).solver.converged
    for sim, key in zip(alone, robots, strict=True):
        assert together.q[both.of(key)[0]] == pytest.approx(sim.q, abs=1e-8)


def test_what_has_a_name_carries_that_of_its_robot(robots, both):
    assert both.joint_names[0] == 'a/FL_hip_joint'
    assert [foot.name.split('/')[0] for foot in both.feet] == 4 * ['a'] + 4 * ['b']
    assert both.total_mass == pytest.approx(sum(robot.total_mass for robot in robots.values()))
    assert both.n_joints == 24
    assert repr(both) == "RobotModel('joined', floating base, 24 joints, 8 feet)"
    assert both.nv == 36
    limits = np.concatenate([robot.effort_limit for robot in robots.values()])
    assert np.array_equal(both.effort_limit, limits)
    assert np.array_equal(
        both.actuators.dry_friction, both.joint_friction[both.joint_velocity_index]
    )
    wrench = np.array([10.0, 0.0, 50.0, 0.0, 5.0, 0.0])
    alone = Simulator(robots['b']).step(np.zeros(12), {'base': wrench})
    together = Simulator(joined(robots)).step(np.zeros(24), {'b/base': wrench})
    pushed = together.contacts.force[4:]
    assert pushed == pytest.approx(alone.contacts.force, abs=1e-8)


def test_each_stands_at_its_place(robots, both):
    q = both.reference_configuration()
    start = both.of('b')[0].start
    turn = pin.Quaternion(*q[start + np.array([6, 3, 4, 5])]).matrix()
    lone = robots['b'].reference_configuration()
    assert q[start : start + 3] == pytest.approx([2.0, 1.0, lone[2]])
    assert turn == pytest.approx(pin.rpy.rpyToMatrix(0.0, 0.0, 0.7), abs=1e-12)
    assert np.abs(Simulator(both).step(np.zeros(24)).contacts.gap).max() < 0.02


def test_each_stands_on_a_slope(robots, both):
    slope = InclinedPlane(0.1)
    gap = Simulator(both, terrain=slope).step(np.zeros(24)).contacts.gap
    for feet, robot in zip((gap[:4], gap[4:]), robots.values(), strict=True):
        alone = Simulator(robot, terrain=slope).step(np.zeros(12)).contacts.gap
        assert feet == pytest.approx(alone, abs=1e-11)


def test_a_loose_box_comes_to_rest_beside_a_robot():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'floating')
    model.appendBodyToJoint(joint, pin.Inertia.FromBox(2.0, 0.2, 0.2, 0.2), pin.SE3.Identity())
    for i, corner in enumerate(np.stack(np.meshgrid(*3 * [[-0.1, 0.1]]), -1).reshape(-1, 3)):
        place = pin.SE3(np.eye(3), corner)
        model.addFrame(pin.Frame(f'corner_{i}', joint, 0, place, pin.FrameType.OP_FRAME))
    box = RobotModel.from_pinocchio(model, [f'corner_{i}' for i in range(8)], name='box')
    world = joined({'robot': load_robot('go1'), 'box': box}, {'box': (1.0, 0.0)})
    sim = Simulator(world)
    q = sim.q.copy()
    q[world.of('box')[0].start + 2] += 0.2
    sim.reset(q)
    for _ in range(600):
        report = sim.step(np.zeros(12))
    own = world.of('box')
    assert sim.q[own[0]][2] == pytest.approx(0.1, abs=1e-6)
    assert np.abs(sim.v[own[1]]).max() < 1e-9
    assert report.contacts.normal_force[4:].sum() == pytest.approx(2.0 * 9.81, rel=1e-6)
    assert report.residuals.ncp < 1e-8


def test_worlds_and_snapshots_of_joined_robots(both):
    sim, worlds = Simulator(both), Worlds(both, 3)
    kept = sim.snapshot()
    for _ in range(20):
        sim.step(np.zeros(24))
    worlds.run(lambda time, q, v: np.zeros((3, 24)), 20)
    assert np.array_equal(worlds.q, np.tile(sim.q, (3, 1)))
    after = sim.q.copy()
    sim.restore(kept)
    for _ in range(20):
        sim.step(np.zeros(24))
    assert np.array_equal(sim.q, after)


@pytest.mark.parametrize(
    ('names', 'places', 'what'),
    [
        ((), {}, 'at least one'),
        (('a/b',), {}, 'without a slash'),
        (('a',), {'a': (0.0,)}, 'expected x, y, yaw'),
        (('a',), {'a': (0.0, np.nan)}, 'expected x, y, yaw'),
    ],
)
def test_bad_input(names, places, what, robots):
    with pytest.raises(InvalidInput, match=what):
        joined(dict.fromkeys(names, robots['a']), places)


def test_the_worst_outcome_of_the_islands_is_told(both):
    """A failed solve is worse than a stance that would have to pull; not-a-number is not lost."""
    work = Workspace(both, Plane(), 1e-3)
    work.island_solver[:] = [[NONFINITE, 1, np.nan], [PULLING, 2, 0.5]]
    combine_outcomes(Arrays(*(array.ctypes.data for array in work.arrays)))
    assert work.data.solver[:2].tolist() == [NONFINITE, 3]
    assert np.isnan(work.data.solver[2])


def test_bad_names(robots, both):
    with pytest.raises(InvalidInput, match='expected a RobotModel'):
        joined({'a': 'go1'})
    with pytest.raises(UnknownName, match='known: a, b'):
        both.of('c')
    with pytest.raises(UnknownName, match="places 'c'; known: a"):
        joined({'a': robots['a']}, {'c': (0.0, 0.0)})
    with pytest.raises(UnknownName):
        both.reference_configuration('no pose')


def test_a_recording_of_joined_robots_repeats_to_the_bit(both, tmp_path):
    sim = Simulator(both, friction=0.5, restitution=0.2)
    recorder = Recorder(sim, tmp_path / 'run.npz')
    for _ in range(50):
        sim.step(np.zeros(24))
    recorder.close()
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.steps == 50
    assert outcome.equal
