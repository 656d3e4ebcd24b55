"""Laws do not care in which order contacts come, nor where north is: all models, two robots."""

import numpy as np
import pinocchio as pin
import pytest
from robots import StandingController

from contact_sim import Lcp, RobotModel, Simulator, Todorov, contact_models, load_robot

GRAVITY = 9.81
ROBOTS = ('go1', 'solo8')
ISOTROPIC = {
    **{model: model for model in contact_models() if model != 'lcp'},
    'todorov': Todorov(cone='elliptic'),
}
"""lcp and todorov by default have pyramids: only what turns those into themselves may change
nothing."""
YAW = 0.7
PYRAMIDS = {
    '4 sides': (Lcp(sides=4), np.pi / 2),
    '8 sides': (Lcp(sides=8), np.pi / 4),
    '16 sides': (Lcp(sides=16), -3 * np.pi / 8),
    'box': (Lcp(friction_law='box'), np.pi / 2),
    'todorov': (Todorov(), np.pi / 2),
}
"""Polyhedral friction and an angle that turns it into itself."""
ORDER = [2, 0, 3, 1]
SIDEWAYS = {'go1': 0.06, 'solo8': 0.0}
"""Push over the weight; solo8 has no joint that yields sideways, its stance would have to pull."""


def begin(sim, turn):
    """Put the robot before an oblique landing, or in its stance for a model without impacts."""
    q, v = sim.q.copy(), np.zeros(sim.robot.nv)
    q[3:7] = (turn * pin.Quaternion(q[6], q[3], q[4], q[5])).coeffs()
    if sim.contact_model != 'null_space':
        q[2] += 2e-3
        v[:3] = 0.3, 0.15, -0.2
    sim.reset(q, v)


def motion(robot, model, yaw=0.0, steps=40):
    """Return the sum of the contact forces, world axes turned back by `yaw`, and joint speeds.

    The robot lands obliquely; under null_space it stands, and its base is pushed as obliquely.
    """
    sim = Simulator(robot, model)
    controller = StandingController(sim)
    turn = pin.Quaternion(np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
    begin(sim, turn)
    push, weight = np.zeros(6), robot.total_mass * GRAVITY
    if model == 'null_space':
        push[:3] = turn * (weight * np.array([0.08, SIDEWAYS[robot.name], 0.0]))
    base = robot.pinocchio_model.names[1]
    forces, speeds = [], []
    for _ in range(steps):
        report = sim.step(controller(sim), {base: push})
        assert report.solver.converged
        if model == 'null_space':
            assert report.solver.status.physical
            assert report.contacts.normal_force.min() > 0.0
        forces.append(report.contacts.force.sum(axis=0) @ turn.toRotationMatrix())
        speeds.append(robot.joint_velocities(report.v))
    return np.array(forces), np.array(speeds)


def difference(robot, model, yaw):
    """Return how much a turn by `yaw` changes: forces over the weight, and joint speeds."""
    (force, speed), (turned_force, turned_speed) = motion(robot, model), motion(robot, model, yaw)
    assert np.abs(speed).max() > 0.1
    weight = robot.total_mass * GRAVITY
    return np.abs(turned_force - force).max() / weight, np.abs(turned_speed - speed).max()


@pytest.mark.parametrize('model', ISOTROPIC)
@pytest.mark.parametrize('name', ROBOTS)
def test_turning_the_scene_about_the_vertical_turns_the_answer(name, model):
    force, speed = difference(load_robot(name), ISOTROPIC[model], YAW)
    assert speed <= 1e-9
    assert force <= 1e-7


@pytest.mark.parametrize('pyramid', PYRAMIDS)
@pytest.mark.parametrize('name', ROBOTS)
def test_turning_a_pyramid_into_itself_turns_the_answer(name, pyramid):
    model, angle = PYRAMIDS[pyramid]
    force, speed = difference(load_robot(name), model, angle)
    assert speed <= 1e-9
    assert force <= 1e-7


@pytest.mark.parametrize('pyramid', PYRAMIDS)
def test_turning_a_pyramid_by_half_a_side_changes_the_answer(pyramid):
    model, angle = PYRAMIDS[pyramid]
    _, speed = difference(load_robot('go1'), model, 0.5 * angle)
    assert speed > 1e-2


@pytest.mark.parametrize('model', contact_models())
@pytest.mark.parametrize('name', ROBOTS)
def test_the_order_of_contacts_does_not_matter(name, model):
    robot = load_robot(name)
    shuffled = RobotModel.from_pinocchio(
        robot.pinocchio_model, [robot.contact_points[i] for i in ORDER], name=name
    )
    q = Simulator(robot, model).q
    speeds, forces = [], []
    for body in (robot, shuffled):
        sim = Simulator(body, model)
        sim.reset(q)
        begin(sim, pin.Quaternion.Identity())
        for _ in range(15):
            report = sim.step(np.zeros(body.n_joints))
        speeds.append(sim.v)
        forces.append(report.contacts.force.sum(axis=0))
    assert np.abs(speeds[0]).max() > 0.1
    assert speeds[0] == pytest.approx(speeds[1], abs=1e-9)
    assert forces[0] == pytest.approx(forces[1], abs=1e-7 * robot.total_mass * GRAVITY)
