"""Laws do not care in which order contacts come, nor where north is: all models, four robots."""

import numpy as np
import pinocchio as pin
import pytest
from robots import StandingController

from contact_sim import RobotModel, Simulator, load_robot

ROBOTS = ('go1', 'anymal_b', 'solo12', 'solo8')
ISOTROPIC = ('compliant', 'anitescu', 'todorov', 'sap', 'ncp')
"""lcp has a pyramid: its friction depends on the direction by construction (test_lcp.py)."""
YAW = 0.7


def landing(robot, model, yaw=0.0, steps=40):
    """Contact forces of an oblique landing, world axes turned back by `yaw`, and joint speeds."""
    sim = Simulator(robot, model)
    controller = StandingController(sim)
    q, v = sim.q.copy(), np.zeros(robot.nv)
    turn = pin.Quaternion(np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
    q[3:7] = (turn * pin.Quaternion(q[6], q[3], q[4], q[5])).coeffs()
    q[2] += 2e-3
    v[:3] = 0.3, 0.15, -0.2
    sim.reset(q, v)
    forces, speeds = [], []
    for _ in range(steps):
        report = sim.step(controller(sim))
        forces.append(report.contacts.force @ turn.toRotationMatrix())
        speeds.append(robot.joint_velocities(report.v))
    return np.array(forces), np.array(speeds)


@pytest.mark.parametrize('model', ISOTROPIC)
@pytest.mark.parametrize('name', ROBOTS)
def test_turning_the_scene_about_the_vertical_turns_the_answer(name, model):
    robot = load_robot(name)
    (_, plain), (_, turned) = landing(robot, model), landing(robot, model, YAW)
    assert np.abs(plain).max() > 0.1
    assert turned == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize('model', ['lcp', *ISOTROPIC])
@pytest.mark.parametrize('name', ROBOTS)
def test_the_order_of_contacts_does_not_matter(name, model):
    robot, order = load_robot(name), [2, 0, 3, 1]
    shuffled = RobotModel.from_pinocchio(
        robot.pinocchio_model, [robot.contact_points[i] for i in order], name=name
    )
    target = Simulator(robot, model)
    q, v = target.q.copy(), np.zeros(robot.nv)
    q[2] += 2e-3
    v[:3] = 0.3, 0.15, -0.2
    speeds = []
    for body in (robot, shuffled):
        sim = Simulator(body, model)
        sim.reset(q, v)
        for _ in range(15):
            sim.step(np.zeros(body.n_joints))
        speeds.append(sim.v)
    assert speeds[0] == pytest.approx(speeds[1], abs=1e-9)
