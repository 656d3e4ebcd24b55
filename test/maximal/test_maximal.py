"""Maximal coordinates against Pinocchio, and against what rows and sums have to obey."""

import numpy as np
import pinocchio as pin
import pytest
from linkages import chain

from contact_sim import (
    InvalidInput,
    NonFiniteState,
    Plane,
    RobotModel,
    UnknownName,
    load_robot,
    robots,
)
from contact_sim.constraints import Baumgarte, JointCoupling, Projection
from contact_sim.maximal import MaximalSimulator
from contact_sim.maximal._mechanism import BodyState
from contact_sim.terrain import Region

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
GRAVITY = np.array([0.8, -0.5, -9.81])
KINDS = {
    'revolute': lambda rng: pin.JointModelRevoluteUnaligned(unit(rng)),
    'continuous': lambda rng: pin.JointModelRUBY(),
    'prismatic': lambda rng: pin.JointModelPrismaticUnaligned(unit(rng)),
    'spherical': lambda rng: pin.JointModelSpherical(),
    'planar': lambda rng: pin.JointModelPlanar(),
    'free_flyer': lambda rng: pin.JointModelFreeFlyer(),
    'universal': lambda rng: pin.JointModelUniversal(*pin.exp3(rng.normal(size=3))[:2]),
    'translation': lambda rng: pin.JointModelTranslation(),
}


def unit(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def placement(rng):
    return pin.SE3(pin.exp3(rng.uniform(-2.0, 2.0, 3)), rng.uniform(-0.5, 0.5, 3))


def random_tree(seed, root):
    """Return a robot of eight joints, of which the first is of the kind `root`."""
    rng = np.random.default_rng(seed)
    model, branch = pin.Model(), [0]
    for k in range(8):
        kind = root if k == 0 else rng.choice(list(KINDS))
        branch = branch[: 1 + rng.integers(len(branch))] if rng.random() < 0.4 else branch
        joint = model.addJoint(branch[-1], KINDS[kind](rng), placement(rng), f'{kind}_{k}')
        branch.append(joint)
        pin.seed(seed * 10 + k)
        model.appendBodyToJoint(joint, pin.Inertia.Random(), placement(rng))
    return RobotModel.from_pinocchio(model)


def frictionless(name):
    robot = load_robot(name)
    return robot.with_actuators(viscous_friction=0.0, dry_friction=0.0)


def random_state(robot, rng):
    model = robot.pinocchio_model
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.5, 1.5, model.nv))
    return q, rng.uniform(-2.0, 2.0, model.nv)


def started(robot, rng, **settings):
    sim = MaximalSimulator(robot, gravity=GRAVITY, **settings)
    sim.reset(*random_state(robot, rng))
    return sim


def accelerations(robot, q, v, effort):
    """Return those of the bodies by Pinocchio's articulated-body algorithm, by joint, (n, 6)."""
    model = robot.pinocchio_model.copy()
    model.gravity.linear = GRAVITY
    data = model.createData()
    a = pin.aba(model, data, q, v, robot.selection_matrix.T @ effort)
    pin.forwardKinematics(model, data, q, v, a)
    found = np.zeros((model.njoints, 6))
    for j in range(1, model.njoints):
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        w, turn = (f(model, data, j, axes).angular for f in (pin.getVelocity, pin.getAcceleration))
        lever = data.oMi[j].rotation @ model.inertias[j].lever
        linear = pin.getClassicalAcceleration(model, data, j, axes).linear
        found[j, :3] = linear + np.cross(turn, lever) + np.cross(w, np.cross(w, lever))
        found[j, 3:] = turn
    return found


def assert_moves_as_pinocchio_says(robot, rng):
    sim = started(robot, rng)
    q, v = random_state(robot, rng)
    sim.reset(q, v)
    effort = 5.0 * rng.normal(size=robot.n_joints)
    expected = accelerations(robot, q, v, effort)
    found = sim.acceleration(effort)[0][sim.mechanism.tree.body_of_joint]
    assert np.abs(found - expected).max() <= 1e-8 * np.abs(expected).max()
    q_back, v_back = sim.q, sim.v
    model = robot.pinocchio_model
    assert pin.difference(model, q, q_back) == pytest.approx(np.zeros(model.nv), abs=1e-12)
    assert v_back == pytest.approx(v, abs=1e-11)


@pytest.mark.parametrize('root', KINDS)
@pytest.mark.parametrize('seed', [1, 2])
def test_trees_move_as_pinocchio_says(root, seed):
    """2.14: free bodies with joint forces have the accelerations of reduced coordinates."""
    rng = np.random.default_rng(seed)
    assert_moves_as_pinocchio_says(random_tree(seed, root), rng)


@pytest.mark.parametrize('name', ['quadruped', 'go1', 'solo12', 'anymal_b'])
def test_quadrupeds_move_as_pinocchio_says(name):
    if name not in robots():
        pytest.skip('example-robot-data is not installed')
    assert_moves_as_pinocchio_says(frictionless(name), np.random.default_rng(3))


def test_c7_chain_at_a_random_state():
    """C7: reduced and maximal coordinates agree in motion too, in the plane and in space."""
    for plane in ('xz', None):
        robot, rng = chain(5), np.random.default_rng(5)
        sim = MaximalSimulator(robot, plane=plane)
        q, v = random_state(robot, rng)
        sim.reset(q, v)
        model = robot.pinocchio_model
        turn = np.cumsum(pin.aba(model, model.createData(), q, v, np.zeros(5)))
        assert -sim.acceleration()[0][1:, 4] == pytest.approx(turn, rel=1e-8)


def test_a_slide_in_a_plane_moves_as_in_space():
    """A cart with a pendulum, and a slide on it, turned in the plane x-y."""
    model, upright = pin.Model(), pin.Inertia(1.3, np.array([0.2, 0.1, 0.0]), 0.1 * np.eye(3))
    kinds = [pin.JointModelPX(), pin.JointModelRZ(), pin.JointModelPY(), pin.JointModelRUBZ()]
    joint = 0
    for k, kind in enumerate(kinds):
        place = pin.SE3(pin.utils.rotate('z', 0.3 * k), np.array([0.1 * k, 0.2, 0.0]))
        joint = model.addJoint(joint, kind, place, f'joint{k}')
        model.appendBodyToJoint(joint, upright, pin.SE3.Identity())
    robot, rng = RobotModel.from_pinocchio(model), np.random.default_rng(6)
    q, v = random_state(robot, rng)
    effort, found = rng.normal(size=4), []
    for plane, size in (('xy', 12 + 8), (None, 24 + 20)):
        sim = MaximalSimulator(robot, gravity=(0.3, -9.8, 0.0), plane=plane)
        sim.reset(q, v)
        found.append(sim.acceleration(effort)[0])
        assert sim.system.size == size
        assert sim.v == pytest.approx(v, abs=1e-12)
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-9)


def off_the_joints(sim, rng):
    """Return bodies that are not where their joints want them, with any velocities."""
    count = len(sim.state.position)
    moved = sim.state.moved(0.3 * rng.normal(size=(count, 6)))
    velocity = rng.normal(size=(count, 6))
    position, rotation = moved.position.copy(), moved.rotation.copy()
    position[0], rotation[0], velocity[0] = 0.0, np.eye(3), 0.0
    return BodyState(position, rotation, velocity)


@pytest.mark.parametrize('root', ['revolute', 'prismatic', 'planar'])
def test_rates_are_derivatives_of_the_errors(root):
    """H v and Ḣ v against differences along a motion with constant velocities, off h = 0."""
    rng = np.random.default_rng(2)
    sim = started(random_tree(4, root), rng)
    state, rows = off_the_joints(sim, rng), sim.mechanism.rows

    def error(t):
        return rows.at(state.moved(t * state.velocity)).error

    h, here = 1e-4, rows.at(state)
    slope = (8.0 * (error(h) - error(-h)) - error(2.0 * h) + error(-2.0 * h)) / (12.0 * h)
    bend = (error(h) - 2.0 * error(0.0) + error(-h)) / h**2
    assert here.rate(state.velocity) == pytest.approx(slope, abs=1e-9)
    assert here.drift(state.velocity) == pytest.approx(bend, abs=1e-5)
    outside = here.jacobian[~rows.structure & (rows.parent[rows.joint] > 0)[:, None, None]]
    assert np.abs(outside).max(initial=0.0) == 0.0  # what the pattern leaves out


def test_feedback_acts_as_baumgarte_says():
    """C6: ḧ = −kd ḣ − kp h, for bodies that are not where their joints want them."""
    rng = np.random.default_rng(7)
    sim = started(random_tree(6, 'spherical'), rng, stabilisation=Baumgarte(kp=30.0, kd=4.0))
    state = off_the_joints(sim, rng)
    sim._go_to(state)
    here, found = sim.mechanism.rows.at(state), sim.acceleration()[0]
    second = here.rate(found) + here.drift(state.velocity)
    assert second == pytest.approx(-4.0 * here.rate(state.velocity) - 30.0 * here.error, abs=1e-8)


def test_joints_exert_no_force_on_the_whole():
    """2.14: momentum of a robot in flight changes by gravity alone, whatever its joints do."""
    robot, rng = frictionless('quadruped'), np.random.default_rng(8)
    sim = started(robot, rng)
    mass, state = sim.mechanism.mass[:, None], sim.state
    blocks = sim.mechanism.inertia_blocks(state)
    found = sim.acceleration(3.0 * rng.normal(size=robot.n_joints))[0]
    assert (mass * found[:, :3]).sum(axis=0) == pytest.approx(mass.sum() * GRAVITY, rel=1e-10)
    w, inertia = state.velocity[:, 3:, None], blocks[:, 3:, 3:]
    spin = (inertia @ found[:, 3:, None])[:, :, 0] + np.cross(w, inertia @ w, axis=1)[:, :, 0]
    torque = (np.cross(state.position, mass * (found[:, :3] - GRAVITY)) + spin).sum(axis=0)
    assert torque == pytest.approx(np.zeros(3), abs=1e-9)


def reference(robot, q, v, seconds, steps=1000):
    """Return q and v by Pinocchio and Runge-Kutta's method of fourth order."""
    model, h = robot.pinocchio_model, seconds / steps
    data, none = model.createData(), np.zeros(robot.nv)

    def slope(place, speed):
        return speed, pin.aba(model, data, place, speed, none)

    for _ in range(steps):
        a = slope(q, v)
        b = slope(q + 0.5 * h * a[0], v + 0.5 * h * a[1])
        c = slope(q + 0.5 * h * b[0], v + 0.5 * h * b[1])
        d = slope(q + h * c[0], v + h * c[1])
        q, v = (
            x + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]) for i, x in enumerate((q, v))
        )
    return q, v


@pytest.mark.parametrize('stabilisation', [Projection(), Baumgarte(0.0), Baumgarte(20.0)])
def test_2_14_trajectories_agree_to_the_order_of_the_step(stabilisation):
    """2.14: the error against reduced coordinates halves with h, and so does drift left alone."""
    robot, seconds = chain(5), 0.4
    q, v = np.array([0.4, -0.8, 0.5, 0.3, -0.6]), np.array([1.0, -0.5, 0.8, 0.2, -1.0])
    exact = np.concatenate(reference(robot, q, v, seconds))
    errors, drifts = [], []
    for h in (2e-3, 1e-3, 5e-4):
        sim = MaximalSimulator(robot, h, stabilisation=stabilisation, plane='xz')
        sim.reset(q, v)
        for _ in range(round(seconds / h)):
            report = sim.step()
        errors.append(np.abs(np.concatenate([report.q, report.v]) - exact).max())
        drifts.append(report.drift)
    assert errors[0] < 0.1
    assert np.divide(errors[:-1], errors[1:]) == pytest.approx([2.0, 2.0], rel=0.1)
    if stabilisation == Projection():
        assert max(drifts) <= 5e-13
    else:
        assert np.divide(drifts[:-1], drifts[1:]) == pytest.approx([2.0, 2.0], rel=0.2)


def test_a_robot_in_flight_keeps_together():
    """0.2 s of a tumbling quadruped against Pinocchio at a tenth of the step; and its energy."""
    robot = frictionless('quadruped')
    sim = MaximalSimulator(robot)
    q, v = robot.reference_configuration(), np.random.default_rng(9).uniform(-2.0, 2.0, robot.nv)
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    ends = {}
    for h in (2e-3, 1e-3):
        sim = MaximalSimulator(robot, h)
        sim.reset(q, v)
        start = sim.energy
        for _ in range(round(0.2 / h)):
            report = sim.step()
        assert report.drift <= 2e-13
        ends[h] = report
    place, speed, h = q, v, 5e-5
    for _ in range(4000):  # midpoint rule
        a = pin.aba(model, data, place, speed, np.zeros(model.nv))
        half, between = pin.integrate(model, place, 0.5 * h * speed), speed + 0.5 * h * a
        a = pin.aba(model, data, half, between, np.zeros(model.nv))
        place, speed = pin.integrate(model, place, h * between), speed + h * a
    errors = [np.abs(pin.difference(model, place, ends[h].q)).max() for h in (2e-3, 1e-3)]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    losses = [abs(ends[h].energy - start) for h in (2e-3, 1e-3)]
    assert losses[0] / losses[1] == pytest.approx(2.0, rel=0.2)


def test_dense_and_sparse_solve_the_same_system():
    robot, rng = random_tree(3, 'free_flyer'), np.random.default_rng(4)
    q, v = random_state(robot, rng)
    found = []
    for solver in ('sparse', 'dense'):
        sim = MaximalSimulator(robot, solver=solver)
        sim.reset(q, v)
        found.append(sim.acceleration()[0])
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-9)


def ran(sim, steps):
    for _ in range(steps):
        report = sim.step()
    return report


def robot_with(joint):
    model = pin.Model()
    body = model.addJoint(0, joint, pin.SE3.Identity(), 'hip')
    model.appendBodyToJoint(body, pin.Inertia.Random(), pin.SE3.Identity())
    return RobotModel.from_pinocchio(model)


def test_what_is_missing_is_refused():
    robot, leg = chain(2), robot_with(pin.JointModelRY())
    geared = robot.with_constraints([JointCoupling('joint2', 'joint1')])
    with pytest.raises(InvalidInput, match=r'joint2 = 1 \* joint1.*with_constraints'):
        MaximalSimulator(geared)
    with pytest.raises(InvalidInput, match=r"joint 'hip': maximal coordinates know revolute"):
        MaximalSimulator(robot_with(pin.JointModelHZ(0.1)))
    with pytest.raises(InvalidInput, match=r"'joint1' has dry friction.*dry_friction = 0"):
        MaximalSimulator(robot.with_actuators(dry_friction=0.1))
    with pytest.raises(InvalidInput, match=r"'joint1' has viscous friction"):
        MaximalSimulator(robot.with_actuators(viscous_friction=0.1))
    with pytest.raises(InvalidInput, match=r"'joint1' has rotor inertia"):
        MaximalSimulator(robot.with_actuators(armature=0.1))
    with pytest.raises(InvalidInput, match="joint 'hip' does not keep its body in the plane xy"):
        MaximalSimulator(leg, plane='xy')
    with pytest.raises(InvalidInput, match='does not keep'):
        MaximalSimulator(robot_with(pin.JointModelSpherical()), plane='xz')
    with pytest.raises(UnknownName, match=r"unknown plane 'zx'; known: xy, xz, yz"):
        MaximalSimulator(leg, plane='zx')
    with pytest.raises(InvalidInput, match=r'effort: shape \(3,\)'):
        MaximalSimulator(leg).step(np.zeros(3))
    with pytest.raises(InvalidInput, match='stabilisation = 3: expected'):
        MaximalSimulator(leg, stabilisation=3)
    with pytest.raises(InvalidInput, match="expected 'sparse' or 'dense'"):
        MaximalSimulator(leg, solver='qr')
    with pytest.raises(InvalidInput, match="contact is that of 'ncp'"):
        MaximalSimulator(leg, contact_model='sap')
    icy = Plane().with_regions([Region((-1.0, 1.0), (-1.0, 1.0), 0.1)])
    with pytest.raises(InvalidInput, match='friction and restitution of regions'):
        MaximalSimulator(leg, contact_model='ncp', terrain=icy)
    loose = MaximalSimulator(robot_with(pin.JointModelFreeFlyer()), plane='xz')
    with pytest.raises(InvalidInput, match='bodies leave the plane xz'):
        loose.reset(v=[0.0, 0.1, 0.0, 0.0, 0.0, 0.0])
    fast = MaximalSimulator(robot, stabilisation=Baumgarte(0.0))
    fast.reset(q=np.array([0.0, 1.0]), v=np.array([1e99, -1e98]))
    with pytest.raises(NonFiniteState, match=r'step from t = .* s: not finite; reset'):
        ran(fast, 20)


def test_projection_holds_joints_of_bodies_that_turn_far_in_a_step():
    """A chain at 500 rad/s and 1 ms: half a radian per step."""
    sim = MaximalSimulator(chain(2))
    sim.reset(v=np.array([500.0, -900.0]))
    for _ in range(20):
        assert sim.step().drift <= 2e-13
