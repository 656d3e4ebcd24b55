"""The Simulator as people use it: state, snapshots, two faces, invariances, bad input."""

import copy

import numpy as np
import pinocchio as pin
import pytest
from robots import StandingController, ball, pose, stand

import contact_sim
from contact_sim import (
    ContactPoint,
    InclinedPlane,
    InvalidInput,
    Ncp,
    NonFiniteState,
    Plane,
    RobotModel,
    Simulator,
    UnknownName,
    Worlds,
    load_robot,
)


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def test_public_names():
    assert 'ncp' in contact_sim.contact_models()
    assert 'go1' in contact_sim.robots()
    assert contact_sim.__version__


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_snapshot_restores_to_the_bit(name):
    sim = Simulator(load_robot(name))
    controller = StandingController(sim)
    stand(sim, 120)
    snapshot = sim.snapshot()
    first = [sim.step(controller(sim)).record.buffer for _ in range(200)]
    sim.friction = 0.1
    sim.step(np.zeros(sim.robot.n_joints))
    sim.restore(snapshot)
    second = [sim.step(controller(sim)).record.buffer for _ in range(200)]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_two_simulators_do_the_same_to_the_bit(go1):
    runs = [stand(Simulator(go1), 300)[-1].record.buffer.tobytes() for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_the_explicit_problem_gives_the_same_bits(name):
    """ContactProblem → Ncp.solve and Simulator.step call the same kernels."""
    sim = Simulator(load_robot(name))
    controller = StandingController(sim)
    q = sim.q.copy()
    q[2] += 0.01
    sim.reset(q)
    compared = 0
    for _ in range(150):
        before = sim.step(controller(sim))
        guess = before.record.impulse
        report = sim.step(controller(sim))
        rows = report.active_rows
        joined = not np.array_equal(before.record.active, report.record.active)
        if len(rows) == 0 or joined:  # what closes within a step is solved again, from that answer
            continue
        solution = Ncp().solve(report.problem, guess[rows])
        assert solution.impulse.tobytes() == report.record.impulse[rows].tobytes()
        compared += 1
    assert compared > 50


def test_reports_stay_valid_after_later_steps(go1):
    sim = Simulator(go1)
    first = sim.step(np.zeros(12))
    time, q = first.time, first.q.copy()
    for _ in range(10):
        sim.step(np.zeros(12))
    assert first.time == time == 0.001
    assert np.array_equal(first.q, q)


def test_state_is_read_only(go1):
    sim = Simulator(go1)
    with pytest.raises(ValueError, match='read-only'):
        sim.q[0] = 1.0


def test_time_is_a_multiple_of_the_step(go1):
    sim = Simulator(go1, time_step=1e-3)
    sim.reset(time=5.0)
    for _ in range(1000):
        report = sim.step(np.zeros(12))
    assert report.time == sim.time == 6.0
    assert sim.step_count == 1000


def turned(q, yaw):
    """Return q with the whole robot turned about the vertical through the origin."""
    turn = pin.Quaternion(pin.utils.rotate('z', yaw))
    q = q.copy()
    q[:3] = turn.matrix() @ q[:3]
    q[3:7] = (turn * pin.Quaternion(*q[[6, 3, 4, 5]])).coeffs()
    return q


def test_turning_about_the_vertical_turns_the_answer(go1):
    straight, skewed = Simulator(go1, friction=0.4), Simulator(go1, friction=0.4)
    v = np.zeros(18)
    v[:2] = [0.8, 0.3]  # body frame: turns with the robot
    straight.reset(v=v)
    skewed.reset(turned(straight.q, 1.1), v)
    a, b = stand(straight, 200)[-1], stand(skewed, 200)[-1]
    rotation = pin.utils.rotate('z', 1.1)
    assert b.contacts.force == pytest.approx(a.contacts.force @ rotation.T, abs=1e-5)
    assert skewed.q[:3] == pytest.approx(rotation @ straight.q[:3], abs=1e-8)


def test_the_order_of_feet_does_not_matter(go1):
    mirrored = load_robot('go1', feet=[p.name for p in go1.contact_points[::-1]])
    sims = Simulator(go1), Simulator(mirrored)
    v = np.zeros(18)
    v[0] = 0.5
    for sim in sims:
        sim.reset(v=v)
    forward, backward = (stand(sim, 100)[-1] for sim in sims)
    assert backward.contacts.names == forward.contacts.names[::-1]
    assert sims[1].q == pytest.approx(sims[0].q, abs=1e-7)


@pytest.mark.parametrize('gravity', [3.71, 0.0, [1.0, 0.0, -9.0]])
def test_any_gravity(gravity):
    sim = Simulator(ball(), gravity=gravity)
    sim.reset(pose(z=5.0))
    sim.step(np.zeros(0))
    expected = np.array([0, 0, -gravity]) if np.isscalar(gravity) else np.array(gravity)
    assert sim.v[:3] == pytest.approx(1e-3 * expected, abs=1e-15)


def test_external_wrench_acts_at_the_frame():
    sim = Simulator(load_robot('anymal_b'), gravity=0.0)
    q = sim.q.copy()
    q[2] += 10.0
    sim.reset(q)
    wrench = np.array([3.0, -2.0, 5.0, 0.4, 0.1, -0.2])
    frame = 'LF_FOOT'
    report = sim.step(np.zeros(12), external_wrenches={frame: wrench})
    model = sim.robot.pinocchio_model.copy()
    model.gravity.linear = np.zeros(3)
    data = model.createData()
    J = pin.computeFrameJacobian(model, data, q, model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)
    expected = pin.aba(model, data, q, np.zeros(18), J.T @ wrench)
    assert report.acceleration == pytest.approx(expected, abs=1e-9)


def test_efforts_are_saturated(go1):
    report = Simulator(go1).step(np.full(12, 1e4))
    assert np.array_equal(report.effort, go1.effort_limit)


def test_friction_changes_while_running(go1):
    sim = Simulator(go1, terrain=InclinedPlane(np.deg2rad(20.0)))
    assert stand(sim, 500)[-1].residuals.slip < 1e-6
    sim.friction = 0.2
    assert stand(sim, 200)[-1].residuals.slip > 0.1
    sim.friction = [0.2, 0.3, 0.4, 0.5]
    assert np.array_equal(sim.friction, [0.2, 0.3, 0.4, 0.5])


def test_switching_the_contact_model_keeps_state_and_warm_start(go1):
    sim = Simulator(go1)
    controller = StandingController(sim)
    stand(sim, 300)
    before = sim.snapshot()
    unswitched = sim.step(controller(sim)).record.buffer
    sim.restore(before)
    sim.contact_model = Ncp()  # another instance of the same law: not one bit may change
    assert sim.contact_model == 'ncp'
    assert sim.step(controller(sim)).record.buffer.tobytes() == unswitched.tobytes()
    sim.contact_model = Ncp(tolerance=1e-6)
    sim.restore(before)
    assert sim.model.parameters.tolerance == 1e-10  # a snapshot remembers its model


def test_contacts_left_out_join_when_others_push_them_down():
    # a see-saw plate: one corner is in the ground with high speed, the far one above it
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    inertia = pin.Inertia(1.0, np.zeros(3), np.diag([1e-3, 1e-3, 1e-3]))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.addBodyFrame('plate', joint, pin.SE3.Identity(), 0)
    points = [
        ContactPoint('near', 'plate', 'root_joint', np.array([0.2, 0, 0]), 0.0),
        ContactPoint('far', 'plate', 'root_joint', np.array([-0.2, 0, 0.004]), 0.0),
    ]
    robot = RobotModel.from_pinocchio(model, points, name='plate')
    sim = Simulator(robot)
    sim.reset(pose(), np.array([0, 0, -3.0, 0, 0, 0]))
    report = sim.step(np.zeros(0))
    assert report.record.active.tolist() == [1.0, 1.0]
    assert report.contacts.normal_force[1] > 0.0
    assert (report.record.gap_start + 1e-3 * report.record.u_next[[2, 5]] >= -1e-12).all()


@pytest.mark.parametrize(
    ('settings', 'error', 'message'),
    [
        ({'contact_model': 'magic'}, UnknownName, 'known: .*ncp'),
        ({'contact_model': 7}, InvalidInput, 'contact_model'),
        ({'terrain': 'moon'}, UnknownName, 'known: .*plane'),
        ({'terrain': 3}, InvalidInput, 'terrain'),
        ({'friction': -0.1}, InvalidInput, 'friction = -0.1'),
        ({'friction': np.nan}, InvalidInput, 'friction'),
        ({'friction': [0.1, 0.2]}, InvalidInput, 'expected one number or 4'),
        ({'friction': 'rough'}, InvalidInput, 'friction'),
        ({'restitution': 1.5}, InvalidInput, 'restitution'),
        ({'time_step': 0.0}, InvalidInput, 'time_step'),
        ({'time_step': -1e-3}, InvalidInput, 'time_step'),
        ({'time_step': np.inf}, InvalidInput, 'time_step'),
        ({'gravity': [1.0, 2.0]}, InvalidInput, 'gravity'),
        ({'gravity': np.nan}, InvalidInput, 'gravity'),
        ({'constraints': ['weld']}, InvalidInput, 'constraints'),
    ],
)
def test_bad_settings_are_refused(go1, settings, error, message):
    with pytest.raises(error, match=message):
        Simulator(go1, **settings)


def test_robot_must_be_a_robot():
    with pytest.raises(InvalidInput, match='load_robot'):
        Simulator('go1')


@pytest.mark.parametrize(
    ('effort', 'message'),
    [
        (np.zeros(11), 'shape'),
        (0.0, 'shape'),
        (np.full(12, np.nan), 'FL_hip_joint.*finite'),
        (np.full(12, np.inf), 'finite'),
        ('push', 'numbers'),
        (None, 'effort'),
    ],
)
def test_bad_effort_is_refused_and_nothing_moves(go1, effort, message):
    sim = Simulator(go1)
    q = sim.q
    with pytest.raises(InvalidInput, match=message):
        sim.step(effort)
    assert np.array_equal(sim.q, q)
    assert sim.time == 0.0


@pytest.mark.parametrize(
    ('wrenches', 'error', 'message'),
    [
        ({'nose': np.zeros(6)}, UnknownName, 'nose'),
        ({'trunk': np.zeros(5)}, InvalidInput, 'trunk'),
        ({'trunk': [0, 0, np.nan, 0, 0, 0]}, InvalidInput, 'trunk'),
        ({'trunk': 'hard'}, InvalidInput, 'trunk'),
    ],
)
def test_bad_wrenches_are_refused(go1, wrenches, error, message):
    with pytest.raises(error, match=message):
        Simulator(go1).step(np.zeros(12), external_wrenches=wrenches)


@pytest.mark.parametrize(
    ('state', 'message'),
    [
        ({'q': np.zeros(18)}, '18'),
        ({'q': np.full(19, np.nan)}, 'finite'),
        ({'v': np.zeros(17)}, '17'),
        ({'v': np.full(18, np.inf)}, 'finite'),
        ({'time': np.nan}, 'time'),
    ],
)
def test_bad_states_are_refused(go1, state, message):
    with pytest.raises(InvalidInput, match=message):
        Simulator(go1).reset(**state)


def test_quaternion_must_be_unit(go1):
    sim = Simulator(go1)
    q = sim.q.copy()
    q[3:7] *= 1.1
    with pytest.raises(InvalidInput, match='quaternion'):
        sim.reset(q)


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: Plane((0.0, 0.0, 0.0)), 'normal'),
        (lambda: Plane(offset=np.nan), 'offset'),
        (lambda: InclinedPlane(2.0), 'angle'),
        (lambda: InclinedPlane(np.nan), 'angle'),
        (lambda: InclinedPlane(0.1, np.inf), 'heading'),
    ],
)
def test_bad_terrain_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_non_finite_state_stops_and_waits_for_reset(go1):
    sim = Simulator(go1)
    v = np.zeros(18)
    v[8] = 1e99  # squared in the Coriolis terms
    sim.reset(v=v)
    with pytest.raises(NonFiniteState, match='step 1 '):
        sim.step(np.zeros(12))
    assert np.isfinite(sim.q).all()
    with pytest.raises(NonFiniteState, match='reset'):
        sim.step(np.zeros(12))
    sim.reset()
    assert stand(sim, 10)[-1].solver.converged


def test_snapshot_of_another_robot_is_refused(go1):
    snapshot = Simulator(load_robot('a1')).snapshot()
    with pytest.raises(InvalidInput, match="'a1'"):
        Simulator(go1).restore(snapshot)


def test_copies_are_refused_with_what_to_do_instead(go1):
    sim, worlds = Simulator(go1), Worlds(go1, 2)
    with pytest.raises(InvalidInput, match=r'second one .* `restore` the `snapshot\(\)`'):
        copy.deepcopy(sim)
    with pytest.raises(InvalidInput, match='with the same arguments and `reset` them'):
        copy.deepcopy(worlds)
