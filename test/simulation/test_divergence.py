"""A motion that is not finite says which limit of explicit terms it crossed."""

import re

import numpy as np
import pinocchio as pin
import pytest
from robots import pose, rigid_body

from contact_sim import NonFiniteState, RobotModel, Simulator, Worlds, load_robot
from contact_sim.robot._actuators import JointCommand


def held(sim, stiffness, damping):
    """Return PD about the present joint positions."""
    zeros = np.zeros(sim.robot.n_joints)
    target = sim.robot.joint_positions(sim.q)
    return JointCommand(target, zeros, zeros, zeros + stiffness, zeros + damping)


def pendulum():
    """Return a hinge of inertia 0.35 kg m² without a limit of effort."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), 'hinge')
    inertia = pin.Inertia(1.0, np.array([0.0, 0.0, -0.5]), 0.1 * np.eye(3))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    return RobotModel.from_pinocchio(model, name='pendulum')


def test_legs_that_fold_too_fast_for_a_step():
    """go1 under 100 g: its motors are far too weak; gains do not matter, the time step does.

    Without joint limits, which would catch them.
    """
    robot = load_robot('go1', body_contacts=False).with_position_limits(())
    for gains in ((0.0, 0.0), robot.default_gains):
        sim = Simulator(robot, gravity=1000.0, time_step=1e-2)
        with pytest.raises(NonFiniteState, match='Coriolis and centrifugal') as caught:
            sim.follow(held(sim, *gains), 200)
        text = str(caught.value)
        since, turn = re.search(r'from t = (\S+) s on .* = (\S+) rad per step', text).groups()
        assert 0.0 < float(since) <= 0.04
        assert 1.0 < float(turn) < 3.0
        assert 'joint PD' not in text
        assert ('12 of 12 joints are at their effort limits' in text) == np.any(gains[0] > 0.0)
        assert np.isfinite(sim.q).all()
        assert np.isfinite(sim.v).all()
    sim = Simulator(robot, gravity=1000.0, time_step=1e-3)
    assert np.isfinite(sim.follow(held(sim, *robot.default_gains), 500).record.v).all()


@pytest.mark.parametrize(
    ('stiffness', 'damping', 'figure'), [(4.1, 0.0, '4.1 + 0'), (0.0, 2.05, '0 + 4.1')]
)
def test_gains_that_are_too_large_for_a_step(stiffness, damping, figure):
    """2.0: h² k_p/m + 2 h k_d/m = 4 is the limit of a joint, to the figure that is told."""
    robot, h, m = pendulum(), 1e-3, 0.35

    def swing(share):
        sim = Simulator(robot, gravity=0.0, time_step=h)
        command = held(sim, share * stiffness * m / h**2, share * damping * m / h)
        sim.reset(v=[1e-3])
        sim.follow(command, 8000)

    swing(0.95)
    with pytest.raises(NonFiniteState, match=r'explicit joint PD') as caught:
        swing(1.0)
    assert f'{figure}, stable below 4' in str(caught.value)
    assert 'a time_step below 0.00' in str(caught.value)


def test_worlds_tell_the_same():
    """Without limits, and on feet alone: with them nothing diverges."""
    robot = load_robot('go1', body_contacts=False).with_position_limits(())
    worlds = Worlds(robot, 2, gravity=[[0.0, 0.0, -1000.0], [0.0, 0.0, -9.81]], time_step=1e-2)
    worlds.step(np.zeros(12), 100)
    assert list(worlds.stopped) == [0]
    assert 'Coriolis and centrifugal' in worlds.stopped[0]


def test_a_wheel_may_turn_as_fast_as_it_likes():
    """Fast turning alone is no error, and what was fast before a reset is not blamed after it."""
    body = rigid_body('wheel', 1.0, np.diag([0.1, 0.2, 0.25]), [])
    sim = Simulator(body, gravity=0.0, time_step=1e-2)
    sim.reset(pose(z=1.0), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 300.0]))
    for _ in range(100):
        sim.step(np.zeros(0))
    assert sim.v[5] == pytest.approx(300.0, rel=1e-12)
    sim.reset(pose(z=1.0), np.zeros(6))
    sim.step(np.zeros(0))
    sim.reset(pose(z=1.0), np.array([0.0, 0.0, 0.0, 1e60, 1e60, 0.0]))
    with pytest.raises(NonFiniteState, match=r'from t = 0 s on .* = 1e\+58 rad per step'):
        sim.step(np.zeros(0))


@pytest.mark.parametrize('integrator', ['semi_implicit', 'momentum'])
def test_no_step_hands_out_a_state_that_is_not_finite(integrator):
    """v⁺ may be finite where q⁺, or the velocity in the axes of q⁺, no longer is."""
    sim = Simulator(load_robot('go1'), integrator=integrator)
    chance, refused = np.random.default_rng(1), 0
    for size in np.linspace(50.0, 100.0, 451):
        v = np.full(18, 10.0**size) * chance.choice([-1.0, 1.0], 18)
        sim.reset(v=v if chance.random() < 0.5 else v * (np.arange(18) == chance.integers(18)))
        before = sim.snapshot()
        try:
            sim.step(np.zeros(12))
        except NonFiniteState:
            refused += 1
            assert np.array_equal(sim.snapshot().buffer[:3], before.buffer[:3])  # the clock
        assert np.isfinite(sim.q).all()
        assert np.isfinite(sim.v).all()
    assert refused > 10


@pytest.mark.parametrize('joint', [pin.JointModelTranslation, pin.JointModelPZ])
def test_a_position_beyond_all_numbers(joint):
    """Two steps of 9e99 m; v⁺ stays finite. Pinocchio moves the one kind, kernels the other."""
    model = pin.Model()
    index = model.addJoint(0, joint(), pin.SE3.Identity(), 'slide')
    model.appendBodyToJoint(index, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    sim = Simulator(RobotModel.from_pinocchio(model), gravity=0.0, time_step=1.0)
    sim.reset(v=9e99 * np.eye(sim.robot.nv)[0])
    sim.step(np.zeros(sim.robot.n_joints))
    q = sim.q.copy()
    with pytest.raises(NonFiniteState):
        sim.step(np.zeros(sim.robot.n_joints))
    assert np.array_equal(sim.q, q)
    assert sim.time == 1.0
