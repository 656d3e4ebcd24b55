"""Chains of a hundred links: long limbs have loops of their own in the factor and the solves."""

import numpy as np
import pinocchio as pin
import pytest
from robots import chain, hanging

from contact_sim import RobotModel, Simulator, joined

LINKS = 120


@pytest.fixture(scope='module')
def robot():
    return chain(LINKS)


def any_state(robot, seed):
    """Return a state in which all joints are bent and move."""
    rng = np.random.default_rng(seed)
    q = pin.integrate(robot.pinocchio_model, pin.neutral(robot.pinocchio_model),
                      rng.uniform(-0.3, 0.3, robot.nv))  # fmt: skip
    q[2] = 20.0
    return q, rng.uniform(-0.2, 0.2, robot.nv)


def forked():
    """Return a chain with a second one of forty links on its tenth, all masses unlike."""
    model = pin.Model(chain(70).pinocchio_model)
    joint = model.getJointId('joint_10')
    for k in range(40):
        kind = pin.JointModelRX() if k % 2 else pin.JointModelRZ()
        place = pin.SE3(np.eye(3), np.array([0.0, 0.05, 0.0]))
        joint = model.addJoint(joint, kind, place, f'side_{k}')
        link = pin.Inertia(0.02 + 0.001 * k, np.array([0.0, 0.02, 0.0]), 1e-4 * np.eye(3))
        model.appendBodyToJoint(joint, link, pin.SE3.Identity())
    return RobotModel.from_pinocchio(model, actuated_joints=())


@pytest.mark.parametrize('make', [lambda: chain(LINKS), forked])
def test_acceleration_in_flight_is_that_of_the_articulated_body_algorithm(make):
    """M v̇ + nle = 0 by composite bodies and a factor, against an algorithm without M."""
    robot = make()
    model = robot.pinocchio_model
    sim = Simulator(robot, time_step=1e-4)
    for seed in range(3):
        q, v = any_state(robot, seed)
        sim.reset(q, v)
        acceleration = sim.step(np.zeros(0)).acceleration
        expected = pin.aba(model, model.createData(), q, v, np.zeros(robot.nv))
        assert np.abs(expected).max() > 1.0
        assert acceleration == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())


def test_contact_of_both_ends_equals_dense_matrices():
    """G = J M̂⁻¹ Jᵀ and v⁺ = v_f + M̂⁻¹ Jᵀ λ, with M of Pinocchio."""
    robot = chain(LINKS, damping=0.05)
    model = robot.pinocchio_model
    sim = Simulator(robot)
    q, v = hanging(robot), np.zeros(robot.nv)
    sim.reset(q, v)
    report = sim.step(np.zeros(0))
    upper = np.triu(pin.crba(model, model.createData(), q))
    inertia = upper + np.triu(upper, 1).T + np.diag(1e-3 * robot.joint_damping)
    J = report.problem.jacobian
    assert J.shape[0] == 6
    exact = J @ np.linalg.solve(inertia, J.T)
    assert report.problem.delassus == pytest.approx(exact, abs=1e-9 * np.abs(exact).max())
    # both ends stick: u⁺ = 0
    impulse = np.linalg.solve(exact, -report.problem.free_velocity)
    normal, tangential = impulse[2::3], np.hypot(impulse[::3], impulse[1::3])
    assert (tangential < 0.8 * normal).all()
    next_velocity = report.problem.free_motion + np.linalg.solve(inertia, J.T @ impulse)
    assert np.abs(next_velocity).max() > 1e-3
    assert 1e-3 * report.acceleration == pytest.approx(next_velocity, abs=1e-9)
    assert report.contacts.normal_force == pytest.approx(1e3 * normal, rel=1e-7)
    assert report.residuals.momentum < 1e-12


def test_energy_of_a_swing():
    """Undamped, held by its ends on the ground: the drift of energy is of first order in h."""
    robot = chain(100)
    drift = []
    for h in (1e-3, 5e-4):
        sim = Simulator(robot, friction=2.0, time_step=h)
        sim.reset(hanging(robot))
        work = 0.0
        for _ in range(round(0.1 / h)):
            work += sim.step(np.zeros(0)).residuals.energy_balance.change
        drift.append(abs(work))
        assert np.abs(sim.v).max() > 0.1
    assert drift[1] < 0.6 * drift[0]


def test_a_chain_beside_others_moves_as_alone(robot):
    """Behind a robot with other dofs its limb has no trunk: another path through the factor."""
    both = joined({'short': chain(30), 'long': robot}, {'long': (5.0, 0.0)})
    own_q, own_v, _ = both.of('long')
    alone, together = Simulator(robot), Simulator(both)
    q = np.concatenate([hanging(chain(30)), hanging(robot)])
    alone.reset(q[own_q])
    together.reset(q)
    for _ in range(20):
        force = alone.step(np.zeros(0)).contacts.force
        assert together.step(np.zeros(0)).contacts.force[2:] == pytest.approx(force, abs=1e-7)
    assert together.q[own_q] == pytest.approx(alone.q, abs=1e-11)
    assert together.v[own_v] == pytest.approx(alone.v, abs=1e-8)
