"""Worlds: every world to the bit what a Simulator with its settings does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from robots import ball, rigid_body

from contact_sim import (
    Hybrid,
    InclinedPlane,
    InvalidInput,
    Plane,
    Planes,
    Sap,
    Simulator,
    SphereGround,
    UnknownName,
    Worlds,
    load_robot,
)
from contact_sim.constraints import (
    Baumgarte,
    FrameAnchor,
    Holonomic,
    JointCoupling,
    JointLock,
    JointVelocity,
    PointAnchor,
)
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.dynamics._tree import tree_of
from contact_sim.robot._actuators import JointCommand, holding
from contact_sim.simulation._worlds import with_masses
from contact_sim.step import _workspace
from contact_sim.step._problem import Residuals

STEPS = 120
LAWS = [name for name, model in CONTACT_MODELS.items() if issubclass(model, TimeSteppingModel)]


@cache
def robot():
    return load_robot('quadruped')


def commands(count):
    kp, kd = robot().default_gains
    pose = robot().joint_positions(robot().reference_configuration())
    return [holding(pose, (0.5 + 0.2 * k) * kp, kd) for k in range(count)]


def states(worlds):
    return np.concatenate([worlds.q, worlds.v], axis=1)


def taken(sim, command, steps=STEPS, **options):
    """Return the state after `steps` steps one by one from Python."""
    for _ in range(steps):
        positions = robot().joint_positions(sim.q)
        sim.step(command.effort_at(positions, robot().joint_velocities(sim.v)), **options)
    return np.concatenate([sim.q, sim.v])


@pytest.mark.parametrize('law', LAWS)
def test_every_world_is_to_the_bit_a_simulation_of_its_own(law):
    friction, gravity = [[0.2], [0.5], [0.9]], [[0, 0, -9.81], [0.5, 0, -9.0], [0, 1.0, -3.7]]
    restitution = [[0], [0.5], [1]]
    worlds = Worlds(robot(), 3, law, friction=friction, gravity=gravity, restitution=restitution)
    rollout = worlds.follow(commands(3), STEPS, every=STEPS // 2)
    for k in range(3):
        sim = Simulator(
            robot(),
            law,
            friction=friction[k][0],
            gravity=gravity[k],
            restitution=restitution[k][0],
        )
        expected = taken(sim, commands(3)[k])
        assert np.array_equal(states(worlds)[k], expected)
        assert np.array_equal(rollout.q[-1, k], expected[: robot().nq])
        last, report = sim.last_report.record, worlds.report(k).record
        assert np.array_equal(last.buffer, report.buffer)
        assert worlds.report(k).residuals == sim.last_report.residuals
    assert rollout.q.shape == (2, 3, robot().nq)
    assert np.array_equal(rollout.time[:, 0], [0.001 * (STEPS // 2), worlds.time[0]])


@pytest.mark.parametrize('threads', [1, 2, 3, 7])
def test_the_number_of_threads_changes_no_bit(threads):
    friction = np.linspace(0.1, 1.0, 9)[:, None]
    one, many = (Worlds(robot(), 9, friction=friction, threads=k) for k in (1, threads))
    for worlds in (one, many):
        worlds.follow(commands(9), STEPS)
    assert np.array_equal(states(one), states(many))
    assert len(np.unique(one.q[:, 0])) == 9


def test_masses_parameters_and_ground_are_those_of_each_world():
    base = np.array([inertia.mass for inertia in robot().pinocchio_model.inertias])[1:]
    masses = np.array([base, 1.3 * base])
    models = [Sap(stiffness=1e4), Sap(stiffness=1e6)]
    grounds = [InclinedPlane(0.05), InclinedPlane(0.1)]
    worlds = Worlds(robot(), 2, models, grounds, masses=masses)
    worlds.follow(commands(2), STEPS)
    for k in range(2):
        own = with_masses(robot(), masses[k])
        assert own.total_mass == pytest.approx(masses[k].sum(), rel=1e-12)
        sim = Simulator(own, models[k], grounds[k])
        assert np.array_equal(taken(sim, commands(2)[k]), states(worlds)[k])


def test_a_push_on_some_worlds_is_that_of_a_simulator():
    wrenches = np.zeros((2, 6))
    wrenches[1, :3] = 5.0, 20.0, 0.0
    worlds = Worlds(robot(), 2)
    worlds.push(robot().base_frame, wrenches)
    worlds.follow(commands(1)[0], 50)
    worlds.push(robot().base_frame, np.zeros(6))
    worlds.follow(commands(1)[0], 50)
    for k in range(2):
        sim = Simulator(robot())
        taken(sim, commands(1)[0], 50, external_wrenches={robot().base_frame: wrenches[k]})
        expected = taken(sim, commands(1)[0], 50)
        assert np.allclose(states(worlds)[k], expected, rtol=0, atol=1e-12)
    assert abs(worlds.v[1] - worlds.v[0]).max() > 1e-3


def test_a_vectorised_controller_is_asked_once_per_period():
    asked = []

    def controller(time, q, v):
        asked.append(time.copy())
        return np.array([commands(1)[0].effort_at(robot().joint_positions(a),
                                                  robot().joint_velocities(b))
                         for a, b in zip(q, v, strict=True)])  # fmt: skip

    worlds = Worlds(robot(), 2, friction=[[0.3], [0.7]], threads=2)
    rollout = worlds.run(controller, 100, period=10, every=50)
    assert np.allclose(np.array(asked)[:, 0], 0.01 * np.arange(10), rtol=0, atol=1e-15)
    assert rollout.v.shape == (2, 2, robot().nv)
    sim = Simulator(robot(), friction=0.7)
    for step in range(100):
        if step % 10 == 0:
            effort = controller(np.zeros(1), sim.q[None], sim.v[None])[0]
        sim.step(effort)
    assert np.array_equal(worlds.q[1], sim.q)


def test_a_world_that_is_no_longer_finite_stops_alone():
    body = rigid_body('point', 1.0, np.diag([1.0, 2.0, 2.5]), [([0.0, 0.0, 0.0], 0.0)])
    worlds = Worlds(body, 3)
    v = np.zeros((3, 6))
    v[1, 3:] = 1e99
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    worlds.reset(start, v)
    worlds.step(np.zeros((3, 0)), 100)
    assert worlds.running.tolist() == [True, False, True]
    assert list(worlds.stopped) == [1]
    assert 'world 1 stopped at t = 0 s: the step would not be finite' in worlds.stopped[1]
    assert np.isfinite(worlds.q).all()
    assert worlds.q[1, 2] == 1.0  # as before the step
    fallen = 0.5 * 9.81 * 1e-3**2 * 100 * 101
    assert worlds.q[[0, 2], 2] == pytest.approx(1.0 - fallen, rel=1e-12)
    worlds.reset(start, worlds=[1])
    worlds.step(np.zeros(0), 5)
    assert worlds.running.all()
    assert worlds.time == pytest.approx([0.105, 0.005, 0.105])


def test_efforts_that_are_not_finite_stop_their_world():
    worlds = Worlds(robot(), 2)

    def controller(time, q, v):
        efforts = np.zeros((2, robot().n_joints))
        efforts[0, 2] = np.nan
        return efforts

    worlds.run(controller, 3)
    joint = robot().joint_names[2]
    assert f'effort of joint {joint!r} is not finite' in worlds.stopped[0]
    assert worlds.time.tolist() == [0.0, 0.003]
    with pytest.raises(InvalidInput, match='effort: nan'):
        worlds.step(np.full(robot().n_joints, np.nan))


def test_worlds_start_standing_on_the_ground_of_each():
    grounds = [SphereGround((0.0, 0.0, -r), r) for r in (1.0, 50.0)]
    worlds = Worlds(ball(), 2, terrain=grounds)
    assert worlds.q[:, 2] == pytest.approx([0.1, 0.1], abs=1e-9)
    for k, ground in enumerate(grounds):
        assert np.array_equal(worlds.q[k], Simulator(ball(), terrain=ground).q)


def test_reports_follow_a_world_to_another_ground():
    """A report keeps what it needs of its world, but not the ground of before."""
    grounds = [SphereGround((0.0, 0.0, -r), r) for r in (1.0, 50.0)]
    worlds = Worlds(ball(), 2, 'compliant', terrain=grounds[0])
    worlds.step(np.zeros(0))
    worlds.report(1)
    worlds.reset(worlds=[1], terrain=grounds[1])
    worlds.step(np.zeros(0), 5)
    sim = Simulator(ball(), 'compliant', grounds[1])
    for _ in range(5):
        sim.step(np.zeros(0))
    assert worlds.report(1).residuals == sim.last_report.residuals
    assert worlds.report(1).problem.gap.tolist() == sim.last_report.problem.gap.tolist()


def test_memory_of_a_world_is_stated():
    assert 1_000 < Worlds(ball(), 2).bytes_per_world < 100_000


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'n': 0}, 'n = 0: expected a whole number from 1'),
        ({'n': 2.5}, 'n = 2.5'),
        ({'threads': -1}, 'threads = -1'),
        ({'friction': [0.1, 0.2, 0.3]}, r'friction: shape \(3,\)'),
        ({'friction': [[0.1], [-0.2]]}, 'friction: -0.2'),
        ({'friction': [[0.1], [np.nan]]}, 'friction = .*not finite'),
        ({'restitution': [[0.1], [1.2]]}, 'restitution: 1.2'),
        ({'masses': [1.0]}, r'masses: shape \(1,\)'),
        ({'masses': np.zeros((2, 13))}, 'masses: expected values > 0'),
        ({'gravity': np.zeros((3, 3))}, r'gravity: shape \(3, 3\)'),
        ({'time_step': 0.0}, 'time_step'),
        ({'contact_model': 'hybrid'}, 'hybrid'),
        ({'contact_model': [Sap(), Hybrid()]}, 'hybrid'),
        ({'contact_model': [Sap()]}, 'contact_model: 1 given, expected one or 2'),
        ({'contact_model': [Sap(), CONTACT_MODELS['ncp']()]}, 'expected one class'),
        ({'terrain': [Plane(), Planes()]}, 'terrain of world 1 has 2 features, that of world 0 1'),
        ({'robot': 'go1'}, 'expected RobotModel'),
    ],
)
def test_bad_settings_are_refused(options, message):
    settings = {'robot': robot(), 'n': 2, **options}
    with pytest.raises(InvalidInput, match=message):
        Worlds(**settings)


def test_bad_calls_are_refused():
    worlds = Worlds(robot(), 2)
    n = robot().n_joints
    kp = np.ones(3)
    short = JointCommand(kp, kp, kp, kp, kp)
    for call, message in (
        (lambda: worlds.step(np.zeros(n + 1)), 'effort: shape'),
        (lambda: worlds.step(np.zeros(n), 0), 'steps = 0'),
        (lambda: worlds.follow(short, 1), 'command.position: shape'),
        (lambda: worlds.follow(commands(3), 1), '3 commands, expected 2'),
        (lambda: worlds.run(lambda t, q, v: np.zeros(n), 1), 'controller: efforts of shape'),
        (lambda: worlds.run(lambda t, q, v: np.zeros((2, n)), 9, 2, 3), 'multiple of period'),
        (lambda: worlds.reset(np.zeros((3, robot().nq))), 'expected one row or 2'),
        (lambda: worlds.reset(worlds=[2]), r'expected whole numbers in \[0, 2\)'),
        (lambda: worlds.report(-1), r'expected whole numbers in \[0, 2\)'),
        (lambda: worlds.push(robot().base_frame, np.zeros(5)), 'wrenches: shape'),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()
    with pytest.raises(UnknownName, match='no_frame'):
        worlds.push('no_frame', np.zeros(6))
    assert worlds.time.tolist() == [0.0, 0.0]


def test_joints_without_kernels_are_named(monkeypatch):
    def unknown(model):
        return replace(tree_of(model), unsupported=('elbow',))

    monkeypatch.setattr(_workspace, 'tree_of', unknown)
    with pytest.raises(InvalidInput, match='joints elbow have no compiled kernels'):
        Worlds(robot(), 2)


def test_steps_of_all_worlds_are_written_as_their_reports_say():
    robot = load_robot('go1')
    worlds = Worlds(robot, 3, friction=[[0.3], [0.6], [0.9]])
    worlds.push(
        robot.base_frame, np.array([[0.0, 40.0 * k, 0.0, 0.0, 0.0, 0.0] for k in range(3)])
    )
    for _ in range(20):
        worlds.step(np.zeros(robot.n_joints))
    places = np.array([0, 7, 300])
    numbers, residuals = np.empty((3, 3)), np.empty((3, len(Residuals._fields)))
    worlds.write_steps(places, numbers, residuals)
    for k in range(3):
        report = worlds.report(k)
        assert numbers[k].tobytes() == report.record.buffer[places].tobytes()
        assert residuals[k].tobytes() == np.array(report.residuals).tobytes()
    assert len({row.tobytes() for row in residuals}) == 3
    with pytest.raises(InvalidInput, match='places'):
        worlds.write_steps([-1], numbers, residuals)
    with pytest.raises(InvalidInput, match='numbers'):
        worlds.write_steps(places, numbers[:2], residuals)
    with pytest.raises(InvalidInput, match='residuals'):
        worlds.write_steps(places, numbers, np.asfortranarray(residuals))


def test_rows_of_states_are_checked_as_each_of_them():
    robot = load_robot('go1')
    rows = np.tile(robot.reference_configuration(), (3, 1))
    rows[1, 3:7] *= 1.0 + 1e-8
    checked = robot.checked_configurations(rows)
    assert checked.tobytes() == np.array([*map(robot.checked_configuration, rows)]).tobytes()
    rows[2, 3:7] *= 1.1
    with pytest.raises(InvalidInput, match='norm'):
        robot.checked_configurations(rows)
    for wrong in (rows[0], rows, np.full((2, robot.nv), np.nan)):
        with pytest.raises(InvalidInput):
            robot.checked_velocities(wrong)


# --- Constraints of each world


def held_in(world):
    """Return the constraints of a world: anchored where it is, at angles and speeds of its own."""
    return [
        PointAnchor('trunk', point=(0.1, 0.0, 0.05), name='tether'),
        JointLock('RL_calf_joint', at=-1.8 + 0.05 * world, stabilisation=Baumgarte(alpha=20.0)),
        JointVelocity('FR_hip_joint', 0.5 * world),
        JointCoupling('FL_hip_joint', 'RL_hip_joint', ratio=1.0, name='geared'),
    ]


@pytest.mark.parametrize('law', ['ncp', 'sap', 'null_space'])
def test_constraints_of_each_world_are_those_of_a_simulator(law):
    robot, n = load_robot('go1'), 3
    worlds = Worlds(robot, n, law, constraints=[held_in(i) for i in range(n)])
    sims = [Simulator(robot, law, constraints=held_in(i)) for i in range(n)]
    efforts = np.linspace(-1.0, 1.0, n * 12).reshape(n, 12)

    def compare(steps):
        worlds.step(efforts, steps)
        for i, sim in enumerate(sims):
            for _ in range(steps):
                report = sim.step(efforts[i])
            assert np.array_equal(worlds.q[i], sim.q)
            assert np.array_equal(worlds.v[i], sim.v)
            own = worlds.report(i).constraints
            assert list(own) == list(report.constraints)
            assert np.array_equal(own['tether'].force, report.constraints['tether'].force)

    compare(20)
    # a world that is put elsewhere is anchored there
    q = sims[1].standing_configuration()
    q = sims[1].assembled(np.concatenate([q[:2] + 1.0, [q[2] + 0.2], q[3:]]))
    worlds.reset(q, worlds=[1])
    sims[1].reset(q)
    compare(20)
    assert worlds.q[1, 0] > 0.9


def test_a_world_starts_where_its_constraints_hold():
    robot, up = load_robot('go1'), [PointAnchor('trunk', at=(0.0, 0.0, 2.0))]
    worlds = Worlds(robot, 2, constraints=up)
    np.testing.assert_allclose(worlds.q[:, 2], 2.0, atol=1e-9)
    with pytest.raises(InvalidInput, match='start where it holds'):
        worlds.reset(robot.reference_configuration())


def test_constraints_for_all_worlds_and_their_derivatives():
    robot = load_robot('go1')
    stand = [FrameAnchor('trunk', name='stand')]
    worlds, sim = Worlds(robot, 2, constraints=stand), Simulator(robot, constraints=stand)
    assert worlds.report(1).constraints['stand'].drift == 0.0
    worlds.step(np.ones(12), 5)
    for _ in range(5):
        sim.step(np.ones(12))
    assert np.array_equal(worlds.q[1], sim.q)
    A = worlds.derivatives(np.ones(12)).state[0]
    np.testing.assert_allclose(A, sim.derivatives(np.ones(12)).state_matrix, atol=1e-9)


@pytest.mark.parametrize(
    ('constraints', 'message'),
    [
        ([[JointLock('RL_calf_joint')]], '1 lists given, expected one or 2'),
        ([[JointLock('RL_calf_joint')], [JointLock('RR_calf_joint')]], 'of world 1: expected'),
        ([[JointLock('RL_calf_joint')], []], 'of world 1: expected those of world 0'),
        ([Holonomic(lambda q: q[2:3], lambda q: np.eye(1, 18, 2), 1)], 'a Python function'),
        (3, 'constraints'),
        (['stand', 'lock'], 'constraints'),
    ],
)
def test_constraints_that_worlds_cannot_have(constraints, message):
    with pytest.raises(InvalidInput, match=message):
        Worlds(load_robot('go1'), 2, constraints=constraints)
