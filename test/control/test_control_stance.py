"""Standing, squatting and swaying with inverse dynamics, against the simulator."""

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import InvalidInput, Simulator, UnknownName, load_robot
from contact_sim.control import Stance
from contact_sim.control._inverse_dynamics import LeggedDynamics
from contact_sim.control._stance import BaseMotion
from contact_sim.support import stance_dynamics

ROBOTS = ('go1', 'anymal_b', 'solo12')


def run(sim, controller, steps):
    """Return the largest tracking error [m] and the slip of every foot [m]."""
    error, slip = 0.0, 0.0
    for _ in range(steps):
        report = sim.step(controller.effort(sim.time, sim.q, sim.v))
        slip = slip + np.linalg.norm(report.contacts.velocity[:, :2], axis=1) * sim.time_step
        wanted = controller.reference(sim.time).position
        error = max(error, float(np.linalg.norm(sim.q[:3] - wanted)))
    return error, slip


@pytest.mark.parametrize('name', ROBOTS)
def test_the_dynamics_are_those_of_the_support_analysis(name):
    robot = load_robot(name)
    rng = np.random.default_rng(1)
    q = pin.integrate(
        robot.pinocchio_model, robot.reference_configuration(), 0.3 * rng.normal(size=robot.nv)
    )
    v = rng.normal(size=robot.nv)
    dynamics = LeggedDynamics(robot)
    dynamics.update(q, v)
    expected = stance_dynamics(robot, q, v, range(4))
    world = np.zeros((12, 12))
    for i in range(4):
        world[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = expected.frame[i].T
    np.testing.assert_allclose(dynamics.jacobian, world @ expected.contact_jacobian, atol=1e-12)
    np.testing.assert_allclose(dynamics.drift, world @ expected.drift, atol=1e-10)
    np.testing.assert_allclose(dynamics.foot, expected.position, atol=1e-12)
    np.testing.assert_allclose(dynamics.inertia, expected.inertia, atol=1e-12)


def test_go1_sways_on_an_ellipse_without_slipping():
    sim = Simulator(load_robot('go1'), 'ncp')
    error, slip = run(sim, Stance(sim.robot, BaseMotion('sway', 0.03, 0.5)), 10_000)
    assert error < 2e-3
    assert slip.max() < 1e-6


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('motion', ['hold', 'squat', 'sway'])
def test_motions(name, motion):
    sim = Simulator(load_robot(name), 'ncp')
    error, slip = run(sim, Stance(sim.robot, motion), 1500)
    assert error < 2e-3
    assert slip.max() < 1e-6


def test_what_it_announces_happens():
    """Forces and acceleration of the controller are those of the next step, to first order."""
    sim = Simulator(load_robot('anymal_b'), 'ncp')
    controller = Stance(sim.robot, 'sway')
    for _ in range(700):
        answer = controller.answer(sim.time, sim.q, sim.v)
        report = sim.step(answer.effort)
    assert answer.solved
    weight = 9.81 * sim.robot.total_mass
    np.testing.assert_allclose(report.contacts.force, answer.force, atol=1e-2 * weight)
    np.testing.assert_allclose(report.acceleration[:6], answer.acceleration[:6], atol=2e-2)


def test_forces_stay_in_their_cones_on_slippery_ground():
    """Pushed sideways the least-norm forces would leave cones of 0.2; these do not."""
    sim = Simulator(load_robot('go1'), 'ncp', friction=0.2)
    controller = Stance(sim.robot, friction=0.18)
    for k in range(400):
        push = {sim.robot.base_frame: [0.0, 12.0 * (k > 200), 0.0, 0.0, 0.0, 0.0]}
        answer = controller.answer(sim.time, sim.q, sim.v)
        sim.step(answer.effort, push)
        tangential = np.linalg.norm(answer.force[:, :2], axis=1)
        assert (tangential <= 0.18 * answer.force[:, 2] * (1 + 1e-3) + 1e-4).all()
        assert (np.abs(answer.effort) <= sim.robot.effort_limit).all()


def test_robots_without_three_joints_per_leg_are_refused():
    with pytest.raises(InvalidInput, match=r'three driven joints per leg.*8 driven'):
        Stance(load_robot('solo8'))
    with pytest.raises(InvalidInput, match='floating base'):
        Stance(load_robot('go1', floating_base=False))


def test_bad_motions_are_refused():
    with pytest.raises(UnknownName, match='dance'):
        BaseMotion('dance')
    with pytest.raises(InvalidInput, match='amplitude'):
        BaseMotion('sway', np.nan)
    with pytest.raises(InvalidInput, match='frequency'):
        BaseMotion('sway', 0.03, -1.0)


@pytest.mark.parametrize('motion', ['squat', 'sway'])
def test_velocity_and_acceleration_are_derivatives(motion):
    curve, h = BaseMotion(motion), 1e-5
    for time in (0.3, 0.8, 1.3):
        (x0, v0, _), (_, v, a), (x1, v1, _) = (curve.at(time + d) for d in (-h, 0.0, h))
        np.testing.assert_allclose((x1 - x0) / (2 * h), v, atol=1e-8)
        np.testing.assert_allclose((v1 - v0) / (2 * h), a, atol=1e-6)
