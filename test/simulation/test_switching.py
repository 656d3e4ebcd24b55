"""Live switches at random: the state survives, nothing explodes, the same switches, same bits."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from robots import StandingController

from contact_sim import Sap, Simulator, contact_models, load_robot

GRAVITY = 9.81
LANDING = [model for model in contact_models() if model != 'null_space']  # it has no impact law
ROBOTS = ('go1', 'anymal_b')


def switch(sim, model):
    """Switch the contact model; time, configuration and velocity keep every bit."""
    state = sim.time, sim.q.tobytes(), sim.v.tobytes()
    sim.contact_model = model
    assert (sim.time, sim.q.tobytes(), sim.v.tobytes()) == state


@cache
def landing(name, seed, steps=150):
    """Return (model, report) of every step of a sliding landing, models drawn at random."""
    draw = np.random.default_rng(seed)
    sim = Simulator(load_robot(name), LANDING[seed % len(LANDING)])
    controller = StandingController(sim)
    q, v = sim.q.copy(), np.zeros(sim.robot.nv)
    q[2] += 0.01
    v[:2] = 0.6, 0.3
    sim.reset(q, v)
    reports = []
    for _ in range(steps):
        if draw.random() < 0.3:
            switch(sim, str(draw.choice(LANDING)))
        reports.append((sim.contact_model, sim.step(controller(sim))))
    return reports


def buffers(name, seed):
    """Return everything the steps of a landing have left behind."""
    return b''.join(report.record.buffer.tobytes() for _, report in landing(name, seed))


@pytest.mark.parametrize('seed', range(6))
def test_random_switches_repeat_bit_by_bit(seed):
    first = buffers('go1', seed)
    landing.cache_clear()
    assert first == buffers('go1', seed)


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('name', ROBOTS)
def test_switches_create_no_energy(name, seed):
    """Only efforts and the published correction do work: −λᵀb pushes out what soft models let in.

    Springs that a switch relieves of their load lose their energy, they give none.
    """
    robot = load_robot(name)
    drop = robot.total_mass * GRAVITY * 0.01
    gained = 0.0
    for _, report in landing(name, seed):
        balance = report.residuals.energy_balance
        gained += balance.change - balance.actuation - balance.damping
        gained -= max(balance.correction, 0.0)
        assert gained <= 1e-6 * drop
    assert gained <= -0.1 * drop  # the landing has dissipated most of the fall and of the slide


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('name', ROBOTS)
def test_the_exact_model_is_exact_in_the_step_after_a_switch(name, seed):
    """Whatever guess another model leaves behind."""
    for model, report in landing(name, seed):
        if model == 'ncp':
            assert report.solver.converged
            assert report.residuals.ncp <= 1e-8


@cache
def standing(name, seed=None, steps=800):
    """Return (simulation, mean force) of a standing robot, models drawn at random by `seed`."""
    draw = np.random.default_rng(seed)
    sim = Simulator(load_robot(name))
    controller, total = StandingController(sim), np.zeros(3)
    for _ in range(steps):
        if seed is not None and draw.random() < 0.1:
            switch(sim, str(draw.choice(contact_models())))
        total += sim.step(controller(sim)).contacts.force.sum(axis=0)
    return sim, total / steps


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('name', ROBOTS)
def test_a_robot_stands_under_all_eight_models_in_turn(name, seed):
    """Soft ground gives way and comes back with every switch; the robot stays where it is."""
    (undisturbed, _), (sim, force) = standing(name), standing(name, seed)
    assert sim.q[:3] == pytest.approx(undisturbed.q[:3], abs=0.01)
    model, mass = sim.robot.pinocchio_model, sim.robot.total_mass
    data = model.createData()
    pin.centerOfMass(model, data, sim.q, sim.v)
    # no force is lost or counted twice: the impulses have made the momentum, to O(h²) per step
    expected = mass * (data.vcom[0] / sim.time + [0.0, 0.0, GRAVITY])
    assert force == pytest.approx(expected, abs=2e-5 * mass * GRAVITY)


@pytest.mark.parametrize(('share', 'peak'), [(0.2, np.inf), (0.02, 3.0), (0.0, 1.2)])
@pytest.mark.parametrize('soft', ['compliant', 'todorov', 'sap'])
@pytest.mark.parametrize('name', ROBOTS)
def test_what_a_soft_model_let_in_leaves_at_the_speed_asked_for(name, soft, share, peak):
    """β φ/h: a hop at β = 0.2, none at 0.02, where a few mm still leave within 0.3 s."""
    # Drake's own stiffness, 5e5 N/m, sinks by less than 0.1 mm
    sim = Simulator(load_robot(name), Sap(stiffness=1e5) if soft == 'sap' else soft)
    controller = StandingController(sim)
    for _ in range(600):
        report = sim.step(controller(sim))
    depth, weight = -report.contacts.gap, sim.robot.total_mass * GRAVITY
    assert depth.min() > 1e-4
    switch(sim, 'ncp')
    sim.baumgarte = share
    reports = [sim.step(controller(sim)) for _ in range(300)]
    first = reports[0].contacts
    assert first.normal_force.min() > 0.0
    assert first.velocity[:, 2] == pytest.approx(share * depth / sim.time_step, abs=1e-9)
    assert max(report.contacts.normal_force.sum() for report in reports) <= peak * weight
    left = -reports[-1].contacts.gap
    assert left == pytest.approx(depth if share == 0.0 else 0.0, abs=2e-5)
