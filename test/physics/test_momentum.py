"""The integrator `momentum` (theory 2.0): what flight keeps and what contact adds."""

import numpy as np
import pinocchio as pin
import pytest
from robots import ball, pose, rigid_body, stand

from contact_sim import (
    ContactPoint,
    InvalidInput,
    RobotModel,
    Simulator,
    UnknownName,
    Worlds,
    contact_models,
    joined,
    load_robot,
)
from contact_sim.constraints import (
    FrameAnchor,
    Holonomic,
    JointCoupling,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
)
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.dynamics import mechanical_energy
from contact_sim.dynamics._integration import INTEGRATORS
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot._actuators import JointCommand

GRAVITY = np.array([0.0, 0.0, -9.81])
LAWS = [name for name, model in CONTACT_MODELS.items() if issubclass(model, TimeSteppingModel)]


def momentum_of(robot, q, v):
    """Return momentum, angular momentum about the centre of mass, and that centre, in world.

    By Pinocchio, near the origin: far from it, it loses digits.
    """
    model, near = robot.pinocchio_model, np.array(q)
    data, near[:3] = robot.pinocchio_model.createData(), 0.0
    both = pin.computeCentroidalMomentum(model, data, near, v)
    return np.array(both.linear), np.array(both.angular), data.com[0] + q[:3]


def tumbling(name, gravity, integrator, h, seed=0):
    """Return a simulation of a robot that tumbles 100 m above the ground, and a rng."""
    robot = load_robot(name).with_position_limits(())
    sim = Simulator(robot, gravity=-gravity[2], integrator=integrator, time_step=h)
    rng = np.random.default_rng(seed)
    q = robot.reference_configuration('standing')
    q[2] += 100.0
    q = pin.integrate(robot.pinocchio_model, q, rng.standard_normal(robot.nv))
    sim.reset(q, rng.standard_normal(robot.nv))
    return sim, rng


def swung(sim, rng):
    """Return PD that swings the legs of a robot about a random pose."""
    joints, mass = sim.robot.joint_positions(sim.q), sim.robot.total_mass
    zeros, target = np.zeros(len(joints)), joints + 0.3 * rng.standard_normal(len(joints))
    return JointCommand(target, zeros, zeros, zeros + 2.0 * mass, zeros + 0.03 * mass)


def drift_in_flight(name, gravity, integrator, h=1e-3, seconds=1.0):
    """Largest relative drift of P, L and L about the world's origin, and of the centre [m]."""
    sim, rng = tumbling(name, gravity, integrator, h)
    mass = sim.robot.total_mass
    P, L, c = momentum_of(sim.robot, sim.q, sim.v)
    sim.follow(swung(sim, rng), round(seconds / h))
    P_end, L_end, c_end = momentum_of(sim.robot, sim.q, sim.v)
    t = sim.time
    moment = mass * np.cross(c * t + P / mass * t**2 / 2, gravity)
    origin = L + np.cross(c, P) + moment
    errors = P_end - P - mass * t * gravity, L_end - L, L_end + np.cross(c_end, P_end) - origin
    scales = np.linalg.norm(P), np.linalg.norm(L), np.linalg.norm(origin)
    drifts = [np.abs(error).max() / scale for error, scale in zip(errors, scales, strict=True)]
    return max(drifts), np.abs(c_end - c - P / mass * t - gravity * t**2 / 2).max()


@pytest.mark.parametrize('gravity', [0.0 * GRAVITY, GRAVITY])
@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12'])
def test_flight_keeps_momentum_while_the_legs_swing(name, gravity):
    drift, miss = drift_in_flight(name, gravity, 'momentum')
    assert drift <= 1e-12
    assert miss <= 1e-12  # the centre of mass is on its parabola
    coarse = drift_in_flight(name, gravity, 'momentum', h=4e-3)
    assert max(coarse) <= 1e-12
    assert drift_in_flight(name, gravity, 'semi_implicit')[0] >= 1e-5


@pytest.mark.parametrize(
    ('name', 'constraints'),
    [
        ('four_bar_quadruped', []),  # its knees are loops
        ('go1', [JointCoupling('FL_hip_joint', 'FR_hip_joint', ratio=-1.0),
                 JointLock('RL_calf_joint'), JointVelocity('RR_calf_joint', 2.0)]),
    ],
)  # fmt: skip
def test_constraints_within_a_robot_take_no_momentum(name, constraints):
    def run(integrator):
        robot = load_robot(name).with_position_limits(())
        sim = Simulator(robot, integrator=integrator, constraints=constraints)
        q, v = sim.q.copy(), np.zeros(robot.nv)
        q[2], v[:6] = 3.0, [0.5, 0.2, 2.0, 1.0, 2.0, -1.5]
        sim.reset(q, v)
        sim.step(np.zeros(robot.n_joints))
        (P, L, c), start = momentum_of(robot, sim.q, sim.v), sim.time
        for k in range(300):
            report = sim.step(2.0 * np.sin(0.02 * k + np.arange(robot.n_joints)))
        P_end, L_end, c_end = momentum_of(robot, sim.q, sim.v)
        t, m = sim.time - start, robot.total_mass
        drifts = (P_end - P) / m - GRAVITY * t, (L_end - L) / np.linalg.norm(L)
        held = max(force.drift for force in report.constraints.values())
        miss = np.abs(c_end - c - P / m * t - GRAVITY * t**2 / 2).max()
        return max(np.abs(drift).max() for drift in drifts), miss, held

    drift, miss, held = run('momentum')
    assert max(drift, miss, held) <= 1e-12
    assert run('semi_implicit')[0] >= 1e-4


@pytest.mark.parametrize(
    'constraint',
    [FrameAnchor('trunk', name='stand'), PointAnchor('FL_foot', name='stand'),
     Holonomic(lambda q: q[2:3] - 0.3, lambda q: np.eye(1, 18, 2), 1, name='stand')],
)  # fmt: skip
def test_constraints_that_may_take_momentum_are_refused(constraint):
    with pytest.raises(InvalidInput, match="'stand' may take momentum"):
        Simulator(load_robot('go1'), integrator='momentum', constraints=[constraint])


def test_a_loop_between_two_robots_takes_momentum_from_both():
    quadruped = load_robot('quadruped')
    both = joined({'a': quadruped, 'b': quadruped}, {'b': (2.0, 0.0, 0.0)})
    sim = Simulator(both, integrator='momentum')
    grasp = LoopClosure('a/base_link', 'b/base_link', point=(2.0, 0.0, 0.0), name='grasp')
    with pytest.raises(InvalidInput, match="'grasp' may take momentum"):
        sim.add_constraint(grasp)
    assert not sim.constraints
    sim.step(np.zeros(both.n_joints))


@pytest.mark.parametrize('h', [1e-2, 4e-3, 1e-3])
def test_energy_of_a_fall(h):
    """2.0: the fall of the centre of mass costs no energy: what remains is of the legs."""

    def error(integrator):
        sim, _ = tumbling('anymal_b', GRAVITY, integrator, h)
        model = sim.robot.pinocchio_model
        start, squares = mechanical_energy(model, sim.q, sim.v, GRAVITY), []
        for _ in range(round(1.0 / h)):
            sim.step(np.zeros(12))
            squares.append((mechanical_energy(model, sim.q, sim.v, GRAVITY) - start) ** 2)
        return np.mean(squares)

    assert error('semi_implicit') == pytest.approx(75.0 * (h / 0.01) ** 2, rel=0.1)
    assert error('momentum') == pytest.approx(7.2e-6 * (h / 0.01) ** 2, rel=0.1)


@pytest.mark.parametrize('h', [1e-2, 4e-3, 1e-3])
def test_x17_energy_of_limp_legs_thrown_up(h):
    """X17 (ANYmal's energy in SimBenchmark): 2 m g on the base for 1 s, then 2 s of free fall.

    Legs that whirl limp cost most of the energy. `semi_implicit` has the errors of MuJoCo's Euler;
    `momentum` has them in the joints alone, of first order, too: more at 10 ms, less below.
    """
    robot = load_robot('anymal_b').with_position_limits(())
    model, pull = robot.pinocchio_model, 2.0 * robot.total_mass * 9.81
    leg = np.array([0.03, 0.4, -0.8])
    signs = [(1, 1, 1), (1, -1, -1), (-1, 1, 1), (-1, -1, -1)]

    def error(integrator):
        sim = Simulator(robot, time_step=h, integrator=integrator)
        q = sim.q.copy()
        q[2], q[7:] = 2.0, np.concatenate([leg * sign for sign in signs])
        sim.reset(q)
        for _ in range(round(1.0 / h)):
            sim.step(np.zeros(12), {'base': [0.0, 0.0, pull, 0.0, 0.0, 0.0]})
        start, squares = mechanical_energy(model, sim.q, sim.v, GRAVITY), []
        for _ in range(round(2.0 / h)):
            squares.append((mechanical_energy(model, sim.q, sim.v, GRAVITY) - start) ** 2)
            sim.step(np.zeros(12))
        return np.mean(squares)

    euler, carried = {1e-2: (231.0, 437.8), 4e-3: (25.0, 11.5), 1e-3: (1.88, 0.503)}[h]
    assert error('semi_implicit') == pytest.approx(euler, rel=0.02)
    assert error('momentum') == pytest.approx(carried, rel=0.05)


def test_a_wrench_in_flight_changes_momentum_by_its_impulse():
    sim, rng = tumbling('go1', GRAVITY, 'momentum', 1e-3)
    robot, force, torque = sim.robot, np.array([30.0, -20.0, 10.0]), np.array([1.0, 2.0, -3.0])
    for _ in range(50):
        P, L, c = momentum_of(robot, sim.q, sim.v)
        arm = sim.frame_placement('FL_foot').translation - c
        sim.step(rng.uniform(-5.0, 5.0, 12), {'FL_foot': [*force, *torque]})
        P_end, L_end, _ = momentum_of(robot, sim.q, sim.v)
        weight = robot.total_mass * GRAVITY
        assert np.abs(P_end - P - 1e-3 * (force + weight)).max() <= 1e-12
        assert np.abs(L_end - L - 1e-3 * (torque + np.cross(arm, force))).max() <= 1e-12


@pytest.mark.parametrize('model', LAWS)
def test_impulses_are_the_momentum_in_every_step(model):
    """About a fixed point, while a robot drops, slides and comes to rest; by Pinocchio."""
    robot = load_robot('go1')
    sim = Simulator(robot, model, friction=0.3, integrator='momentum')
    q, v = sim.q.copy(), np.zeros(robot.nv)
    q[2] += 0.02
    v[:6] = 0.8, 0.3, -0.5, 0.5, -1.0, 2.0
    sim.reset(q, v)
    mass, h, landed = robot.total_mass, sim.time_step, 0
    state = momentum_of(robot, sim.q, sim.v)
    for report in stand_one_by_one(sim, 200):
        (P, L, c), (P_end, L_end, c_end) = state, momentum_of(robot, sim.q, sim.v)
        record, force = report.record, report.record.contact_force
        touching = record.active.any()
        # forces act halfway between foot, or body, and ground
        at = record.position_start - 0.5 * record.gap_start[:, None] * record.frame_start[:, 2]
        # in flight gravity acts along the way, in contact where all impulses act: at the start
        centre = c if touching else 0.5 * (c + c_end)
        moment = np.cross(at - c, force).sum(axis=0) + np.cross(centre - c, mass * GRAVITY)
        linear = P_end - P - h * (force.sum(axis=0) + mass * GRAVITY)
        angular = L_end + np.cross(c_end - c, P_end) - L - h * moment
        assert np.abs(linear).max() <= 1e-12 * mass
        assert np.abs(angular).max() <= 1e-12 * mass
        assert report.residuals.momentum <= 1e-10
        state, landed = (P_end, L_end, c_end), landed + touching
    assert landed > 100


def stand_one_by_one(sim, steps):
    for _ in range(steps):
        yield stand(sim, 1)[0]


def gap_error(integrator, h):
    """Largest |φ(q⁺) − φ − h u_n⁺| of loaded feet while a robot lands askew and settles [m]."""
    robot = load_robot('go1')
    sim = Simulator(robot, friction=0.4, time_step=h, integrator=integrator)
    q, v = sim.q.copy(), np.zeros(robot.nv)
    q[2] += 0.01
    v[:6] = 0.5, 0.2, -0.3, 0.5, -0.5, 1.0
    sim.reset(q, v)
    worst = 0.0
    for report in stand(sim, round(0.1 / h)):
        record, loaded = report.record, report.contacts.normal_force > 0.0
        error = record.gap[:4] - record.gap_start[:4] - h * record.u_next[2:12:3]
        worst = max(worst, np.abs(error[loaded]).max(initial=0.0))
    return worst


def test_gaps_are_those_that_the_contact_problem_foresaw():
    coarse, fine = gap_error('momentum', 2e-3), gap_error('momentum', 1e-3)
    assert coarse <= 1.2 * gap_error('semi_implicit', 2e-3)
    assert fine <= 1.2 * gap_error('semi_implicit', 1e-3)
    assert fine <= 0.4 * coarse  # of second order


def test_both_integrators_go_to_the_same_motion():
    """A landing: the difference falls with the time step."""

    def landed(integrator, h):
        robot = load_robot('go1')
        sim = Simulator(robot, friction=0.6, time_step=h, integrator=integrator)
        q = sim.q.copy()
        q[2] += 0.05
        sim.reset(q)
        target = robot.joint_positions(q)
        zeros = np.zeros(12)
        sim.follow(JointCommand(target, zeros, zeros, zeros + 40.0, zeros + 1.0), round(0.3 / h))
        return sim.q

    coarse, fine = (
        np.abs(landed('momentum', h) - landed('semi_implicit', h)).max() for h in (1e-3, 2.5e-4)
    )
    assert fine <= 0.4 * coarse
    assert coarse <= 5e-3


# ---------------------------------------------------------------- other trees


def two_bodies(turned=False):
    """Return two free bodies; the second, perhaps turned in the world, has a hinge."""
    place = pin.SE3(pin.exp3(np.array([0.4, -1.0, 0.7])), np.array([1.0, 2.0, 0.5]))
    place = place if turned else pin.SE3.Identity()
    model = pin.Model()
    first = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'first')
    second = model.addJoint(0, pin.JointModelFreeFlyer(), place, 'second')
    hinge = model.addJoint(second, pin.JointModelRX(), pin.SE3.Random(), 'hinge')
    pin.seed(5)
    for joint in (first, second, hinge):
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    model.addBodyFrame('first', first, pin.SE3.Identity(), 0)
    points = [ContactPoint('first', 'first', 'first', np.zeros(3), 0.1)]
    return RobotModel.from_pinocchio(model, points, actuated_joints=('hinge',), name='two bodies')


@pytest.mark.parametrize('turned', [False, True])
def test_every_free_body_keeps_its_own_momentum(turned):
    pin.seed(2)
    robot = two_bodies(turned)
    model = robot.pinocchio_model
    sim = Simulator(robot, gravity=GRAVITY, integrator='momentum')
    q = pin.neutral(model)
    q[2] = q[9] = 50.0
    v = np.random.default_rng(1).standard_normal(model.nv)
    sim.reset(q, v)

    def momenta():
        data = model.createData()
        pin.computeCentroidalMomentum(model, data, sim.q, sim.v)
        pin.forwardKinematics(model, data, sim.q, sim.v)
        own = [pin.computeSubtreeMasses, pin.centerOfMass]
        own[0](model, data)
        own[1](model, data, sim.q, sim.v)
        return [(data.mass[j] * data.vcom[j], data.com[j].copy()) for j in (1, 2)], data

    def world(joint, data, vector):
        return data.oMi[joint].rotation @ vector

    before, data = momenta()
    start = [(world(j + 1, data, p), data.oMi[j + 1].act(c)) for j, (p, c) in enumerate(before)]
    steps = 500
    for _ in range(steps):
        sim.step([0.2])
    after, data = momenta()
    t = steps * sim.time_step
    for j, (p, c) in enumerate(after):
        mass = data.mass[j + 1]
        p, c = world(j + 1, data, p), data.oMi[j + 1].act(c)
        p0, c0 = start[j]
        assert np.abs(p - p0 - mass * t * GRAVITY).max() <= 1e-11
        assert np.abs(c - c0 - p0 / mass * t - GRAVITY * t**2 / 2).max() <= 1e-11


def test_a_body_in_contact_does_not_hinder_the_flight_of_another():
    robot = two_bodies()
    sim = Simulator(robot, gravity=GRAVITY, integrator='momentum')
    q = pin.neutral(robot.pinocchio_model)
    q[2], q[9] = 0.1, 50.0
    sim.reset(q, np.zeros(robot.nv))
    height = pin.centerOfMass(robot.pinocchio_model, robot.pinocchio_model.createData(), sim.q)[2]
    assert sim.step([0.0]).contacts.normal_force[0] > 0.0
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    pin.centerOfMass(model, data, sim.q)
    other = model.createData()
    pin.centerOfMass(model, other, q)
    fallen = data.oMi[2].act(data.com[2])[2] - other.oMi[2].act(other.com[2])[2]
    assert fallen == pytest.approx(-9.81e-6 / 2, rel=1e-6)
    assert height > 0.0


def test_a_robot_on_the_world_has_no_momentum_of_its_own():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), 'hinge')
    inertia = pin.Inertia(1.0, np.array([0.0, 0.0, -0.5]), 0.1 * np.eye(3))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    robot = RobotModel.from_pinocchio(model, name='pendulum')
    states = []
    for integrator in INTEGRATORS:
        sim = Simulator(robot, integrator=integrator)
        sim.reset([0.5], [1.0])
        for _ in range(100):
            sim.step([0.0])
        states.append([*sim.q, *sim.v])
    assert states[0] == states[1]


def test_a_bounce_gains_one_step_of_height():
    """What speaks against it: a semi-implicit fall is late by as much as the bounce is early."""

    def gain(integrator):
        sim = Simulator(ball(), restitution=1.0, time_step=1e-3, integrator=integrator)
        sim.reset(pose(z=1.1))
        heights = []
        for _ in range(910):
            sim.step(np.zeros(0))
            heights.append(sim.q[2] - 0.1)
        return max(heights[500:]) - 1.0

    assert abs(gain('semi_implicit')) <= 1e-6
    assert gain('momentum') == pytest.approx(1e-3 * np.sqrt(2 * 9.81), rel=0.01)


# ---------------------------------------------------------------- state, names, other models


def test_snapshots_and_worlds_have_the_same_bits():
    robot = load_robot('quadruped')
    zeros = np.zeros(robot.n_joints)
    target, (kp, kd) = robot.joint_positions(robot.reference_configuration()), robot.default_gains
    command = JointCommand(target, zeros, zeros, zeros + kp, zeros + kd)
    sim = Simulator(robot, integrator='momentum')
    q = sim.q.copy()
    q[2] += 0.03
    v = 0.3 * np.random.default_rng(3).standard_normal(robot.nv)
    sim.reset(q, v)
    sim.follow(command, 60)
    snapshot = sim.snapshot()
    sim.follow(command, 120)
    end = sim.q.tobytes() + sim.v.tobytes()
    sim.restore(snapshot)
    sim.follow(command, 120)
    assert sim.q.tobytes() + sim.v.tobytes() == end
    worlds = Worlds(robot, 2, integrator='momentum')
    worlds.reset(q, v)
    worlds.follow(command, 180)
    assert worlds.q[1].tobytes() + worlds.v[1].tobytes() == end


def test_a_recording_repeats_under_its_own_integrator(tmp_path):
    sim = Simulator(load_robot('go1'), integrator='momentum')
    with Recorder(sim, tmp_path / 'run.npz'):
        stand(sim, 50)
        q = sim.q.copy()
        q[2] += 0.05
        sim.reset(q, np.full(sim.robot.nv, 0.2))
        stand(sim, 150)
    recording = Recording(tmp_path / 'run.npz')
    assert recording.simulator().integrator == 'momentum'
    outcome = repeat(recording)
    assert (outcome.steps, outcome.difference) == (200, '')


def test_names():
    robot = ball()
    assert [Simulator(robot, integrator=name).integrator for name in INTEGRATORS] == [*INTEGRATORS]
    assert Simulator(robot).integrator == 'semi_implicit'
    for make in (Simulator, lambda robot, **given: Worlds(robot, 2, **given)):
        with pytest.raises(UnknownName, match=r"integrator 'euler'.*semi_implicit, momentum"):
            make(robot, integrator='euler')
    with pytest.raises(InvalidInput):
        Simulator(robot, integrator='momentum', time_step=0.0)


def test_hybrid_integrates_with_arcs_of_its_own():
    assert 'hybrid' in contact_models()
    states = []
    for integrator in INTEGRATORS:
        sim = Simulator(load_robot('go1'), 'hybrid', integrator=integrator)
        sim.reset(v=np.r_[0.3, 0.0, 0.5, np.zeros(15)])
        states.append(stand(sim, 60)[-1].record.buffer.tobytes())
    assert states[0] == states[1]


def test_a_tumbling_body_keeps_its_angular_momentum():
    body = rigid_body('plate', 2.0, np.diag([0.1, 0.2, 0.28]), [])
    sim = Simulator(body, gravity=0.0, integrator='momentum')
    sim.reset(pose(z=1.0), np.array([1.0, -0.5, 0.3, 2.0, 1.0, -3.0]))
    P, L, _ = momentum_of(body, sim.q, sim.v)
    for _ in range(1000):
        sim.step(np.zeros(0))
    P_end, L_end, _ = momentum_of(body, sim.q, sim.v)
    assert np.abs(P_end - P).max() <= 1e-12
    assert np.abs(L_end - L).max() <= 1e-12
