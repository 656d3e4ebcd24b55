"""Trotting with inverse dynamics, against the simulator."""

import os
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import InvalidInput, NullSpace, Simulator, contact_models, load_robot
from contact_sim.control import Trot
from contact_sim.control._stance import yaw_of
from contact_sim.control._trot import Gait, diagonal_pairs, swing_motion

CONTROL_PERIOD = 2
"""Steps per effort: control at 500 Hz."""


def walk(sim, trot, seconds):
    """Return time series of base height, heading and velocity in the heading."""
    height, yaw, velocity = [], [], []
    for k in range(round(seconds / sim.time_step)):
        if k % CONTROL_PERIOD == 0:
            effort = trot.effort(sim.time, sim.q, sim.v)
        sim.step(effort)
        R = pin.Quaternion(np.array(sim.q[3:7])).toRotationMatrix()
        psi, v = yaw_of(R), R @ sim.v[:3]
        height.append(sim.q[2])
        yaw.append(psi)
        velocity.append(
            [np.cos(psi) * v[0] + np.sin(psi) * v[1], np.cos(psi) * v[1] - np.sin(psi) * v[0]]
        )
    return np.array(height), np.unwrap(yaw), np.array(velocity)


@pytest.mark.parametrize('name', ['go1', 'anymal_b'])
def test_it_walks_and_turns_for_twenty_seconds(name):
    robot = load_robot(name)
    sim, trot = Simulator(robot, 'ncp'), Trot(robot)
    trot.velocity = (0.3, 0.0, 0.3)
    height, yaw, velocity = walk(sim, trot, 20.0)
    standing = robot.reference_configuration()[2]
    assert np.abs(height - standing).max() < 0.03
    assert velocity[2000:, 0].mean() == pytest.approx(0.3, abs=0.02)
    assert (yaw[-1] - yaw[2000]) / 18.0 == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize('name', contact_models())
def test_it_walks_under_every_contact_model(name):
    """By itself `null_space` never gives a foot back: it walks with its option `release`."""
    model = NullSpace(release=True) if name == 'null_space' else name
    robot = load_robot('go1')
    sim, trot = Simulator(robot, model), Trot(robot)
    trot.velocity = (0.3, 0.0, 0.3)
    height, _, velocity = walk(sim, trot, 1.2)
    assert np.abs(height - robot.reference_configuration()[2]).max() < 0.03
    assert velocity[800:, 0].mean() == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize('command', ['0.3', (0.3, 0.0), (0.3, 0.0, np.nan)])
def test_bad_commands_are_refused_and_the_old_one_stays(command):
    trot = Trot(load_robot('go1'))
    trot.velocity = (0.1, 0.0, 0.0)
    with pytest.raises((InvalidInput, ValueError)):
        trot.velocity = command
    assert trot.velocity.tolist() == [0.1, 0.0, 0.0]


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12', 'hyq'])
def test_pairs_are_diagonal(name):
    robot = load_robot(name)
    feet = Trot(robot).dynamics.foot[:, :2]
    pair = diagonal_pairs(feet)
    for k in (0, 1):
        one, other = feet[pair == k] - feet.mean(axis=0)
        assert one[0] * other[0] < 0.0
        assert one[1] * other[1] < 0.0


def test_a_trot_needs_four_feet():
    with pytest.raises(InvalidInput, match='four feet'):
        diagonal_pairs(np.zeros((3, 2)))


def test_pairs_take_turns():
    gait = Gait(0.4, 0.6)
    for time in np.linspace(0.4, 1.2, 81):
        first, second = (gait.swing(time, offset) for offset in (0.0, 0.5))
        assert first is None or second is None
    assert gait.swing(0.32, 0.0) == pytest.approx(0.5)
    assert gait.swing(0.32 + 0.2, 0.5) == pytest.approx(0.5)
    assert gait.swing(0.1, 0.5) is None  # each begins with a stance


def test_a_swing_starts_and_ends_at_rest_and_its_derivatives_agree():
    start, end, h = np.array([0.1, 0.2, 0.0]), np.array([0.3, 0.1, -0.01]), 1e-6
    for share, place in ((0.0, start), (1.0, end)):
        position, velocity, acceleration = swing_motion(start, end, 0.05, share, 0.2)
        np.testing.assert_allclose(position, place, atol=1e-15)
        np.testing.assert_allclose([velocity, acceleration], 0.0, atol=1e-12)
    assert swing_motion(start, end, 0.05, 0.5, 0.2)[0][2] == pytest.approx(-0.005 + 0.05)
    for share in (0.2, 0.5, 0.9):
        (x0, v0, _), (_, v, a), (x1, v1, _) = (
            swing_motion(start, end, 0.05, share + d, 0.2) for d in (-h, 0.0, h)
        )
        np.testing.assert_allclose((x1 - x0) / (2 * h * 0.2), v, atol=1e-8)
        np.testing.assert_allclose((v1 - v0) / (2 * h * 0.2), a, atol=1e-6)


def perturbed(robot, rng):
    """Return a robot whose bodies are up to 1 % heavier or lighter than the controller's."""
    model = robot.pinocchio_model.copy()
    for inertia in model.inertias:
        inertia.mass *= 1.0 + 0.01 * rng.uniform(-1.0, 1.0)
    return replace(robot, pinocchio_model=model)


@pytest.mark.parametrize('name', ['go1', 'anymal_b'])
@pytest.mark.parametrize('seed', range(int(os.environ.get('TROT_SEEDS', '2'))))
def test_it_bears_wrong_masses_and_friction(name, seed):
    """TROT_SEEDS=20 TROT_SECONDS=20 is the full run: masses and friction off by 1 %."""
    rng, robot = np.random.default_rng(seed), load_robot(name)
    real = perturbed(robot, rng)
    assert real.total_mass != robot.total_mass
    friction = 0.8 * (1.0 + 0.01 * rng.uniform(-1.0, 1.0, size=4))
    sim, trot = Simulator(real, 'ncp', friction=friction), Trot(robot)
    trot.velocity = (0.3, 0.0, 0.3)
    height, _, velocity = walk(sim, trot, float(os.environ.get('TROT_SECONDS', '2')))
    assert np.abs(height - robot.reference_configuration()[2]).max() < 0.03
    assert velocity[1000:, 0].mean() == pytest.approx(0.3, abs=0.05)
