"""Contact in maximal coordinates against that of reduced ones."""

from functools import partial

import numpy as np
import pytest
from linkages import chain

from contact_sim import InclinedPlane, Simulator, load_robot
from contact_sim.maximal import MaximalSimulator


@pytest.fixture(scope='module')
def robot():
    loaded = load_robot('quadruped').with_position_limits(())
    return loaded.with_actuators(viscous_friction=0.0, dry_friction=0.0)


@pytest.mark.parametrize('terrain', ['plane', InclinedPlane(0.1)])
def test_2_14_a_step_on_the_ground_is_that_of_reduced_coordinates(robot, terrain):
    """2.14: from rest, G and u_f of both coordinates are the same, and so are the forces."""
    effort = 4.0 * np.random.default_rng(1).normal(size=robot.n_joints)
    reduced = Simulator(robot, terrain=terrain)
    sim = MaximalSimulator(robot, contact_model='ncp', terrain=terrain)
    q = reduced.standing_configuration()
    q[2] -= 1e-5
    reduced.reset(q)
    sim.reset(q)
    expected, found = reduced.step(effort), sim.step(effort)
    assert (expected.contacts.mode > 0).any()
    force = expected.contacts.force
    assert found.contacts.force == pytest.approx(force, abs=1e-8 * np.abs(force).max())
    assert found.contacts.solver.converged


def test_what_cannot_touch_does_not_matter():
    """A chain without contact points."""
    flying, report = (MaximalSimulator(chain(3), contact_model=m).step() for m in (None, 'ncp'))
    assert (report.acceleration == flying.acceleration).all()
    assert report.contacts.force.shape == (0, 3)
    assert report.contacts.solver is None


def test_2_14_a_quadruped_lands_and_stands(robot):
    """2.14: 0.3 s under PD from 1 cm: it goes where Simulator goes, and forces move the whole."""
    ends = []
    for make in (Simulator, partial(MaximalSimulator, contact_model='ncp')):
        sim = make(robot, time_step=2e-3)
        q = robot.reference_configuration()
        q[2] += 0.01
        sim.reset(q)
        target, (kp, kd) = robot.joint_positions(q), robot.default_gains
        for _ in range(150):
            place, speed = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
            report = sim.step(kp * (target - place) - kd * speed)
        ends.append(sim.q)
    assert ends[1] == pytest.approx(ends[0], abs=1e-4)
    assert report.drift <= 2e-13
    mass = sim.mechanism.mass[:, None]
    push = (mass * report.acceleration[:, :3]).sum(axis=0) + robot.total_mass * np.array(
        [0, 0, 9.81]
    )
    assert report.contacts.force.sum(axis=0) == pytest.approx(push, abs=1e-9)
    assert push[2] > 0.5 * 9.81 * robot.total_mass
