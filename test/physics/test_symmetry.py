"""A symmetric robot under symmetric commands stays symmetric, whichever law stops its feet.

solo12 as published is no such robot: the hind shoulders have Ixy of the sign of the front ones,
turned by half a turn that is the wrong one, and a trot grows from there under every law and in
MuJoCo. Here those entries are mended.
"""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import Sap, Simulator, load_robot
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.robot._actuators import JointCommand

LAWS = {
    **{
        name: name
        for name, model in CONTACT_MODELS.items()
        if issubclass(model, TimeSteppingModel)
    },
    'sap similar': Sap(approximation='similar'),
    'sap original': Sap(approximation='sap'),
}
LARGEST = {'sap': 2e-6}
"""Asymmetry [m, rad] in 1.5 s where it is not 1e-8: the lagged default of sap takes the bound of
friction from the step before, which makes 5e-7 of its tolerance (7e-8 of one of 1e-13)."""
LEGS = {'FL': 'HR', 'HR': 'FL', 'FR': 'HL', 'HL': 'FR'}
"""Where half a turn about the vertical takes each leg."""


def symmetric_solo12():
    """Return solo12 that half a turn about the vertical takes into itself."""
    robot = load_robot('solo12')
    model = pin.Model(robot.pinocchio_model)
    for joint, name in enumerate(model.names):
        if name in ('HL_HAA', 'HR_HAA'):
            own = model.inertias[joint]
            inertia = np.array(own.inertia)
            inertia[0, 1] = inertia[1, 0] = -inertia[0, 1]
            model.inertias[joint] = pin.Inertia(own.mass, own.lever, inertia)
    return replace(robot, pinocchio_model=model)


def trot_targets(robot, pose, time, period, lift):
    """Return joint positions of diagonal legs that are drawn in by turns, without feedback."""
    target = pose.copy()
    bend = {'HFE': lift, 'KFE': 2.0 * lift}
    for k, name in enumerate(robot.joint_names):
        phase = 0.0 if name[:2] in ('FL', 'HR') else np.pi
        share = max(0.0, np.sin(2.0 * np.pi * time / period + phase))
        target[k] += share * np.sign(target[k]) * bend.get(name[3:], 0.0)
    return target


def asymmetry(robot, q):
    """Largest difference between q and q after half a turn [m, rad]."""
    names = robot.joint_names
    turned = [names.index(LEGS[name[:2]] + name[2:]) for name in names]
    sign = np.array([-1.0] * len(names))  # axes along x and y turn round
    joints = robot.joint_positions(q)
    up = pin.Quaternion(q[3:7]).toRotationMatrix()[:, 2]
    return max(np.abs([*q[:2], *up[:2]]).max(), np.abs(joints - sign * joints[turned]).max())


def trot(robot, law, period, lift, friction, steps=1500):
    """Return the largest asymmetry of an open-loop trot, seen every 5 steps."""
    sim = Simulator(robot, law, friction=friction)
    (kp, kd), zeros, worst = robot.default_gains, np.zeros(12), 0.0
    pose = robot.joint_positions(robot.reference_configuration('standing'))
    for k in range(steps):
        target = trot_targets(robot, pose, sim.time, period, lift)
        sim.follow(JointCommand(target, zeros, zeros, kp, kd), 1)
        if k % 5 == 4:
            worst = max(worst, asymmetry(robot, sim.q))
    assert np.abs(sim.q[2]) > 0.1  # it trots
    return worst


@pytest.mark.parametrize(('period', 'lift', 'friction'), [(0.2, 0.6, 0.3), (0.3, 0.6, 0.8)])
@pytest.mark.parametrize('law', LAWS)
def test_an_open_loop_trot_stays_symmetric(law, period, lift, friction):
    worst = trot(symmetric_solo12(), LAWS[law], period, lift, friction)
    assert worst <= LARGEST.get(law, 1e-8)


def test_solo12_as_published_is_not_symmetric():
    robot = load_robot('solo12')
    sim = Simulator(robot, 'ncp')
    target, zeros = robot.joint_positions(sim.q), np.zeros(12)
    sim.follow(JointCommand(target, zeros, zeros, *robot.default_gains), 1)
    assert 1e-9 < asymmetry(robot, sim.q) < 1e-6  # in one step from rest
