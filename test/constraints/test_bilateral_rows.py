"""Bilateral constraints under every contact model, their rows, and what comes in from outside."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from linkages import chain, double_pendulum
from robots import centre_of_mass_acceleration

from contact_sim import Simulator, contact_models, load_robot
from contact_sim.constraints import (
    Baumgarte,
    FrameAnchor,
    Holonomic,
    JointCoupling,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
)
from contact_sim.constraints._constraint_rows import constraint_from_dict, constraint_to_dict
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.step._bilateral_rows import PythonConstraints

MODELS = contact_models()
EVERY_KIND = (
    PointAnchor('RL_foot', point=(0.01, 0.02, -0.03), stabilisation=Baumgarte(1.0)),
    FrameAnchor('trunk', stabilisation=Baumgarte(1.0)),
    LoopClosure('FL_foot', 'RR_calf', full=True, stabilisation=Baumgarte(1.0)),
    JointCoupling('FR_calf_joint', 'FR_thigh_joint', ratio=-1.5, stabilisation=Baumgarte(1.0)),
    JointLock('FR_hip_joint'),
    JointVelocity('RR_hip_joint', 0.3),
)


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def standing(sim, steps):
    """Step with joint PD around the pose at hand; return the last report."""
    robot, (kp, kd) = sim.robot, sim.robot.default_gains
    start = robot.joint_positions(sim.q)
    for _ in range(steps):
        error = start - robot.joint_positions(sim.q)
        report = sim.step(kp * error - kd * robot.joint_velocities(sim.v))
    return report


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_are_those_of_the_errors(seed):
    """H v = ḣ and H v̇ + Ḣ v = −2 α ḣ − α² h, the rates by differences, at random states."""
    random, robot, dt = np.random.default_rng(seed), load_robot('go1'), 1e-6
    model = robot.pinocchio_model
    sim = Simulator(robot, constraints=EVERY_KIND[:4])
    work, rows = sim._workspace, PythonConstraints(sim._workspace)
    q = pin.integrate(model, sim.q, 0.2 * random.normal(size=model.nv))
    q[2] += 2.0
    v = random.normal(size=model.nv)

    def rows_at(time):
        rows.place(pin.integrate(model, q, time * v))
        return work.data.bilateral_error.copy(), work.data.bilateral_jacobian.copy()

    (ahead, H_ahead), (behind, H_behind), (error, H) = map(rows_at, (dt, -dt, 0.0))
    not_angles = np.r_[0:6, 9:12, 15]  # H of an angle is its rate only where it is 0
    rate, drift = (ahead - behind) / (2.0 * dt), (H_ahead - H_behind) @ v / (2.0 * dt)
    assert rate[not_angles] == pytest.approx((H @ v)[not_angles], abs=1e-7)
    sim._declared = work.table.constraints  # their places stay where they are
    sim.reset(q, v)
    report = sim.step(np.zeros(12))
    assume(report.solver.status.name != 'INCONSISTENT')  # rows that depend on each other, nearly
    acceleration = H @ report.acceleration
    assert acceleration + drift == pytest.approx(-2.0 * H @ v - error, abs=1e-5)


@pytest.mark.parametrize('model', MODELS)
def test_under_every_model(go1, model):
    """The place of the trunk and a knee hold to rounding beside contacts; forces balance."""
    sim = Simulator(go1, model, constraints=[PointAnchor('trunk'), JointLock('RL_calf_joint')])
    report = standing(sim, 300)
    for state in report.constraints.values():
        assert state.drift < 1e-12
        assert state.drift_rate < 1e-9
    up = report.constraints['point_anchor trunk'].force[2] + report.contacts.force[:, 2].sum()
    rise = centre_of_mass_acceleration(go1, report)[2]
    assert up == pytest.approx(
        go1.total_mass * (9.81 + rise), abs=1e-3 if model == 'hybrid' else 1e-9
    )
    assert report.residuals.momentum < 1e-12
    assert report.solver.converged
    assert abs(report.residuals.energy) < 1e-6


@pytest.mark.parametrize('model', ['ncp', 'sap', 'todorov'])
def test_a_wheel_on_a_gear(go1, model):
    """A coupling moves both joints; the driven joint turns at its speed, at once."""
    sim = Simulator(go1, model)
    sim.reset(sim.q + np.r_[0.0, 0.0, 1.0, np.zeros(sim.robot.nq - 3)])  # in the air
    positions = dict(zip(go1.joint_names, go1.joint_positions(sim.q), strict=True))
    offset = positions['FR_calf_joint'] + 1.5 * positions['FR_thigh_joint']
    sim.add_constraint(JointCoupling('FR_calf_joint', 'FR_thigh_joint', -1.5, offset))
    sim.add_constraint(JointVelocity('FR_thigh_joint', 0.3))
    for _ in range(200):
        report = sim.step(np.zeros(12))
    speeds = dict(zip(go1.joint_names, go1.joint_velocities(sim.v), strict=True))
    assert speeds['FR_thigh_joint'] == pytest.approx(0.3, abs=1e-12)
    assert speeds['FR_calf_joint'] == pytest.approx(-0.45, abs=1e-12)
    now = dict(zip(go1.joint_names, go1.joint_positions(sim.q), strict=True))
    assert now['FR_calf_joint'] + 1.5 * now['FR_thigh_joint'] == pytest.approx(offset, abs=1e-12)
    energy = report.residuals.energy_balance
    assert abs(energy.constraints) > 1e-8  # the drive works


def test_contradictions_are_reported(go1):
    """A joint locked and driven: half of both, and the status says so."""
    sim = Simulator(
        go1, constraints=[JointLock('RL_hip_joint'), JointVelocity('RL_hip_joint', 1.0)]
    )
    report = standing(sim, 20)
    assert report.solver.status.name == 'INCONSISTENT'
    for state in report.constraints.values():
        assert state.drift_rate == pytest.approx(0.5, abs=1e-9)
    assert np.abs(sim.v).max() < 2.0


def test_come_and_go(go1):
    """Held by the trunk and let go: it hangs, then falls as all things do."""
    sim = Simulator(go1)
    sim.reset(sim.q + np.r_[0.0, 0.0, 1.0, np.zeros(sim.robot.nq - 3)])
    sim.add_constraint(FrameAnchor('trunk', name='stand'))
    before = sim.q[:7]
    report = standing(sim, 100)
    assert sim.q[:7] == pytest.approx(before, abs=1e-12)
    assert report.constraints['stand'].force[2] == pytest.approx(go1.total_mass * 9.81, rel=1e-2)
    sim.remove_constraint('stand')
    assert sim.constraints == ()
    standing(sim, 100)
    assert sim.q[2] < before[2] - 0.04


def test_snapshot_and_recording(go1, tmp_path):
    """Constraints come back with a snapshot, and a recording repeats to the bit."""
    sim = Simulator(go1, constraints=[JointLock('FL_calf_joint')])
    snapshot = sim.snapshot()
    path = tmp_path / 'run.npz'
    with Recorder(sim, path):
        standing(sim, 20)
        sim.add_constraint(PointAnchor('trunk'))
        standing(sim, 20)
        sim.remove_constraint('joint_lock FL_calf_joint')
        standing(sim, 20)
    assert repeat(Recording(path)).equal
    end = sim.q
    sim.restore(snapshot)
    assert [one.name for one in sim.constraints] == ['joint_lock FL_calf_joint']
    standing(sim, 20)
    assert not np.array_equal(sim.q, end)


def test_words_and_back():
    for constraint in EVERY_KIND:
        assert constraint_from_dict(constraint_to_dict(constraint)) == constraint


def test_reference_pose_is_assembled():
    """A chain whose ends are tied starts with the loop closed."""
    robot = chain(5)
    sim = Simulator(
        robot, constraints=[LoopClosure('tip', 'universe', other_point=(3.0, 0.0, 0.5))]
    )
    assert sim.frame_placement('tip').translation == pytest.approx([3.0, 0.0, 0.5], abs=1e-11)
    report = sim.step(np.zeros(5))
    assert next(iter(report.constraints.values())).drift < 1e-12


def pendulum(constraint):
    return lambda: Simulator(double_pendulum(), constraints=[constraint])


@pytest.mark.parametrize(
    ('make', 'error', 'message'),
    [
        (pendulum(PointAnchor('tp')), UnknownName, "did you mean 'tip'"),
        (pendulum(JointLock('q3')), UnknownName, "unknown joint of a constraint: 'q3'"),
        (pendulum(LoopClosure('tip', 'tip')), InvalidInput, 'removes no freedom'),
        (pendulum(FrameAnchor('universe')), InvalidInput, 'removes no freedom'),
        (lambda: Simulator(double_pendulum()).add_constraint(PointAnchor('tip', at=(0, 0, -1))),
         InvalidInput, 'Baumgarte'),
        (pendulum(PointAnchor('tip', at=(0.0, 0.0, -2.0))), InvalidInput, 'cannot be moved onto'),
        (
            pendulum(Holonomic(lambda q: q[:1], lambda q: np.eye(3)[:1], 1)),
            InvalidInput,
            r'jacobian\(q\) has the shape \(1, 3\), expected \(1, 2\)',
        ),
        (
            pendulum(Holonomic(lambda q: [np.nan], lambda q: np.eye(2)[:1], 1)),
            InvalidInput,
            r'error\(q\) is not finite',
        ),
        (lambda: Simulator(load_robot('go1'), constraints=[JointLock('root_joint')]), InvalidInput,
         'FrameAnchor holds a base'),
        (lambda: Simulator(double_pendulum(), constraints='tip'), InvalidInput, 'constraints ='),
        (lambda: Simulator(double_pendulum(), constraints=[JointLock('q1'), JointLock('q1')]),
         InvalidInput, 'two are called'),
        (lambda: PointAnchor('tip', at=(0.0, np.nan, 0.0)), InvalidInput, 'three finite numbers'),
        (lambda: FrameAnchor('tip', at=(0, 0, 0, 0, 0, 0, 2)), InvalidInput, 'unit quaternion'),
        (lambda: Baumgarte(-1.0), InvalidInput, 'alpha = -1'),
        (lambda: Baumgarte(kp=1.0), InvalidInput, 'expected alpha, or kp and kd'),
        (lambda: JointVelocity('q1', np.inf), InvalidInput, 'velocity = inf'),
        (lambda: Holonomic(1.0, 2.0, 1), InvalidInput, 'expected a function'),
        (
            lambda: constraint_from_dict({'kind': 'weld'}),
            UnknownName,
            "unknown kind of constraint 'weld'",
        ),
        (
            lambda: constraint_from_dict({'kind': 'joint_lock', 'joit': 'q1'}),
            UnknownName,
            "mean 'joint'",
        ),
        (lambda: constraint_from_dict({'kind': 'joint_lock'}), InvalidInput, 'joint'),
        (lambda: constraint_from_dict(3), InvalidInput, 'expected a mapping'),
    ],
)  # fmt: skip
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
