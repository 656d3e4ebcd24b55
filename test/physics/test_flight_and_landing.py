"""Free flight against Pinocchio, drops at many time steps, and what the forces add up to."""

import numpy as np
import pinocchio as pin
import pytest
from robots import StandingController, centroidal_momentum, cube, pose, rigid_body

from contact_sim import Simulator, load_robot
from contact_sim.dynamics import mechanical_energy
from contact_sim.dynamics._integration import INTEGRATORS

GRAVITY = 9.81


def airborne(name, seed, **settings):
    """Return a simulation of a tumbling robot far from the ground."""
    robot = load_robot(name).with_position_limits(())  # random poses, and legs that swing freely
    sim = Simulator(robot, **settings)
    rng = np.random.default_rng(seed)
    q = robot.reference_configuration('standing')
    q[2] += 100.0
    sim.reset(pin.integrate(robot.pinocchio_model, q, rng.standard_normal(robot.nv)))
    sim.reset(sim.q, rng.standard_normal(robot.nv))
    return sim, rng


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', ['a1', 'anymal_b', 'solo12', 'solo8'])
def test_flight_equals_the_articulated_body_algorithm(name, seed):
    sim, rng = airborne(name, seed)
    robot = sim.robot
    assert not robot.joint_damping.any()
    assert not robot.joint_friction.any()
    effort = rng.uniform(-5.0, 5.0, robot.n_joints)
    q, v = sim.q, sim.v
    report = sim.step(effort)
    model = robot.pinocchio_model
    expected = pin.aba(model, model.createData(), q, v, robot.selection_matrix.T @ effort)
    scale = np.abs(expected).max()
    assert np.abs(report.acceleration - expected).max() <= 1e-12 * scale
    assert np.all(report.contacts.force == 0.0)


def test_flight_with_damping_and_dry_friction_obeys_newton_euler():
    sim, rng = airborne('go1', 3)
    robot, model = sim.robot, sim.robot.pinocchio_model
    effort = rng.uniform(-5.0, 5.0, robot.n_joints)
    q, v = sim.q, sim.v
    report = sim.step(effort)
    needed = pin.rnea(model, model.createData(), q, v, report.acceleration)
    joint = robot.joint_velocity_index
    passive = needed - robot.selection_matrix.T @ effort
    dry = passive + robot.joint_damping * report.record.v_next
    assert np.abs(needed[:6]).max() <= 1e-10
    speed = report.record.v_next[joint]
    turning = np.abs(speed) > 1e-9
    assert turning.sum() >= 10
    assert dry[joint][turning] == pytest.approx(-0.2 * np.sign(speed[turning]), abs=1e-9)
    assert np.all(np.abs(dry[joint]) <= 0.2 + 1e-9)


def test_base_moves_in_a_straight_line_in_the_world():
    # world-frame update (theory 2.0): a spinning free body keeps v and E to rounding
    body = rigid_body('plate', 2.0, np.diag([0.1, 0.2, 0.3]), [])
    sim = Simulator(body, gravity=0.0)
    sim.reset(pose(z=1.0), np.array([1.0, -0.5, 0.3, 2.0, 1.0, -3.0]))
    start = sim.q[:3]
    momentum = centroidal_momentum(body.pinocchio_model, sim.q, sim.v)
    for _ in range(1000):
        sim.step(np.zeros(0))
    assert sim.q[:3] - start == pytest.approx([1.0, -0.5, 0.3], abs=1e-12)
    after = centroidal_momentum(body.pinocchio_model, sim.q, sim.v)
    assert after[:3] == pytest.approx(momentum[:3], abs=1e-12)


def relative_drift(name, h, seconds):
    """Relative drift of energy and linear momentum of a tumbling robot without gravity."""
    sim, _ = airborne(name, 0, gravity=0.0, time_step=h)
    model = sim.robot.pinocchio_model
    no_gravity = np.zeros(3)
    energy = mechanical_energy(model, sim.q, sim.v, no_gravity)
    momentum = centroidal_momentum(model, sim.q, sim.v)[:3]
    balance = 0.0
    for _ in range(round(seconds / h)):
        balance += sim.step(np.zeros(sim.robot.n_joints)).residuals.energy
    change = mechanical_energy(model, sim.q, sim.v, no_gravity) - energy
    drift = np.linalg.norm(centroidal_momentum(model, sim.q, sim.v)[:3] - momentum)
    assert balance == pytest.approx(change, rel=1e-6, abs=1e-9)  # reported, not hidden
    return abs(change) / energy, drift / np.linalg.norm(momentum)


def test_drift_in_flight_is_first_order_and_reported():
    coarse, fine = relative_drift('anymal_b', 2e-3, 0.5), relative_drift('anymal_b', 5e-4, 0.5)
    assert coarse[0] <= 0.05
    assert coarse[1] <= 0.05
    assert fine[0] == pytest.approx(coarse[0] / 4, rel=0.3)
    assert fine[1] == pytest.approx(coarse[1] / 4, rel=0.3)


@pytest.mark.parametrize('integrator', INTEGRATORS)
@pytest.mark.parametrize('h', [0.25e-3, 0.5e-3, 1e-3, 2e-3, 5e-3])
@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12'])
def test_drop_lands_cleanly(name, h, integrator):
    robot = load_robot(name)
    sim = Simulator(robot, time_step=h, integrator=integrator)
    controller = StandingController(sim)
    controller.damping *= min(1.0, 1e-3 / h)  # explicit joint damping, stable at every h here
    q = sim.q.copy()
    q[2] += 0.1
    sim.reset(q)
    landed, forces = False, []
    for _ in range(round(0.5 / h)):
        before = sim.step_count
        report = sim.step(controller(sim))
        record = report.record
        contacts = report.contacts
        assert np.isfinite(sim.q).all()
        assert np.isfinite(sim.v).all()
        fastest = np.abs(record.u_start[2 : 3 * len(record.gap) : 3]).max() + GRAVITY * h
        assert record.gap.min() >= -h * fastest
        # force only where the gap closes within this very step
        for k in np.flatnonzero(contacts.normal_force > 0.0):
            free = record.gap_start[k] + h * record.u_free[3 * k + 2]
            assert record.gap_start[k] <= 0.0 or free <= 0.0 or landed
        forces.append(record.contact_force[:, 2].sum())  # of bodies, too
        landed = landed or contacts.normal_force.sum() > 0.0
        assert report.residuals.force_at_distance == 0.0 or landed
        assert sim.step_count == before + 1
    # free fall takes sqrt(2·0.1/g) = 0.1428 s; the rest of the 0.5 s is spent on the ground
    first = np.flatnonzero(forces)[0]
    assert first * h == pytest.approx(0.1428, abs=2 * h)
    # ∫ F dt = m g t + Δp, up to the momentum drift of the step
    momentum = centroidal_momentum(robot.pinocchio_model, sim.q, sim.v)[2]
    weight_impulse = robot.total_mass * GRAVITY * len(forces) * h
    assert h * np.sum(forces) - momentum == pytest.approx(weight_impulse, rel=20.0 * h)


@pytest.mark.parametrize('h', [0.5e-3, 1e-3, 2e-3])
def test_impulses_of_a_drop_add_up_to_the_momentum(h):
    # ∫ F dt = m g t + change of momentum, exactly for a rigid body
    sim = Simulator(cube(), time_step=h)
    sim.reset(pose(z=0.2))
    total, steps = 0.0, round(1.0 / h)
    first_force = None
    for k in range(steps):
        force = sim.step(np.zeros(0)).contacts.force[:, 2].sum()
        total += force * h
        if first_force is None and force > 0.0:
            first_force = (k + 1) * h
    assert total == pytest.approx(GRAVITY * steps * h, rel=1e-9)
    assert first_force == pytest.approx(np.sqrt(0.2 / GRAVITY), abs=2 * h)


def test_plastic_landing_loses_what_the_impact_takes():
    sim = Simulator(cube())
    sim.reset(pose(z=0.2))
    energies = [sim.step(np.zeros(0)).residuals.energy_balance for _ in range(400)]
    contact = sum(balance.contact for balance in energies)
    integration = sum(balance.integration for balance in energies)
    assert contact + integration == pytest.approx(-GRAVITY * 0.1, rel=1e-9)
    assert contact == pytest.approx(-GRAVITY * 0.1, rel=0.02)
    assert all(balance.contact <= 1e-12 for balance in energies)
