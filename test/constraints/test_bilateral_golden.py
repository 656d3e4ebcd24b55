"""Bilateral constraints against the numbers of the theory: T4 to T7, the four-bar."""

import numpy as np
import pinocchio as pin
import pytest
from linkages import double_pendulum, four_bar

from contact_sim import Simulator
from contact_sim.constraints import (
    Baumgarte,
    Holonomic,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
    Projection,
)
from contact_sim.constraints._elimination import gauss_dual, gauss_primal

Q, V, EFFORT = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([0.5, -0.2])
H = 1e-4
FREE, RATES = np.array([1.2, 0.27341389, 1.37755106]), np.array([1.5, -0.14832411, 0.89530346])
"""Angles of crank, coupler and rocker of the four-bar, and their rates; absolute."""


def tip_line(robot, alpha, error=0.0):
    """Return the constraint of T4: the tip stays on the vertical line through its x at Q."""
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    tip = model.getFrameId('tip')

    def x(q):
        pin.framesForwardKinematics(model, data, q)
        return data.oMf[tip].translation[:1].copy()

    def jacobian(q):
        return pin.computeFrameJacobian(model, data, q, tip, pin.LOCAL_WORLD_ALIGNED)[:1]

    start = x(Q)
    return Holonomic(lambda q: x(q) - start + error, jacobian, 1, stabilisation=Baumgarte(alpha))


def first_step(constraints, v=V):
    sim = Simulator(double_pendulum(), time_step=H)
    sim.reset(Q, v)
    for constraint in constraints:
        sim.add_constraint(constraint)
    return sim.step(EFFORT)


def test_t4_point_on_a_line():
    """T4: a pendulum whose tip stays on a vertical line, without and with feedback."""
    robot = double_pendulum()
    report = first_step([tip_line(robot, 0.0)])
    assert report.acceleration == pytest.approx([-8.73664421, 27.42944962], abs=5e-9)
    (state,) = report.constraints.values()
    assert state.force == pytest.approx([-3.76836869], abs=5e-9)
    (state,) = first_step([tip_line(robot, 5.0, 0.01)]).constraints.values()
    assert state.force == pytest.approx([-34.25989494], abs=5e-9)


def test_t4_rows_given_twice_share_the_force():
    """T4: redundant rows change no motion and split the force equally."""
    robot = double_pendulum()
    line = tip_line(robot, 0.0)
    twice = Holonomic(line.error, line.jacobian, 1, stabilisation=Baumgarte(0.0), name='again')
    report = first_step([line, twice])
    assert report.acceleration == pytest.approx([-8.73664421, 27.42944962], abs=5e-9)
    for state in report.constraints.values():
        assert state.force == pytest.approx([-3.76836869 / 2.0], abs=5e-9)


def test_t5_gauss_principle():
    """T5: primal and dual give the motion and the forces of the simulator."""
    robot = double_pendulum()
    report = first_step([PointAnchor('tip', stabilisation=Baumgarte(0.0))])
    state = report.constraints['point_anchor tip']
    jacobian, M = report.record.bilateral_jacobian, report.problem.inertia
    free = first_step([]).acceleration
    tiny, model = 1e-6, robot.pinocchio_model
    drift = (tip_jacobian(model, Q + tiny * V) - tip_jacobian(model, Q - tiny * V)) @ V / 2 / tiny
    assert gauss_primal(M, free, jacobian, drift) == pytest.approx(report.acceleration, abs=1e-7)
    assert gauss_dual(M, free, jacobian, drift) == pytest.approx(state.force, abs=1e-6)


def tip_jacobian(model, q):
    data, tip = model.createData(), model.getFrameId('tip')
    return pin.computeFrameJacobian(model, data, q, tip, pin.LOCAL_WORLD_ALIGNED)[:3]


def test_t6_velocity_constraint():
    """T6: the second joint is driven to 0.2 rad/s with α = 3 1/s."""
    report = first_step([JointVelocity('q2', 0.2, alpha=3.0)])
    assert report.acceleration == pytest.approx([-1.2306627, 1.8], abs=5e-8)
    assert report.constraints['joint_velocity q2'].force == pytest.approx([-5.05629144], abs=5e-9)


def test_t7_joint_lock():
    """T7: a locked joint is its row and column deleted."""
    report = first_step([JointLock('q2')], v=np.array([1.1, 0.0]))
    assert report.acceleration == pytest.approx([-0.8702267216, 0.0], abs=5e-11)
    assert report.constraints['joint_lock q2'].force == pytest.approx([-5.50039681], abs=5e-9)


def closed(stabilisation, model='ncp'):
    """Return the four-bar of T4 at its state, closed to rounding, h = 2 ms."""
    sim = Simulator(four_bar(), model, time_step=2e-3)
    sim.reset(*newton(sim.robot))
    sim.add_constraint(LoopClosure('coupler_tip', 'rocker_tip', stabilisation=stabilisation))
    return sim


def newton(robot):
    """Return q and v that close the loop to rounding: FREE and RATES have eight digits."""
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    frames = [model.getFrameId(f'{name}_tip') for name in ('coupler', 'rocker')]
    q = np.array([FREE[0], FREE[1] - FREE[0], FREE[2]])
    for _ in range(10):
        pin.framesForwardKinematics(model, data, q)
        one, other = (data.oMf[frame].translation[[0, 2]] for frame in frames)
        J = [pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[[0, 2]]
             for frame in frames]  # fmt: skip
        loop = J[0] - J[1]
        q = q - np.array([0.0, *np.linalg.solve(loop[:, 1:], one - other)])
    v = np.array([RATES[0], *np.linalg.solve(loop[:, 1:], -loop[:, 0] * RATES[0])])
    assert [v[0] + v[1], v[2]] == pytest.approx(RATES[1:], abs=1e-8)
    return q, v


def test_t4_four_bar():
    """T4: accelerations and loop force of a four-bar of rods."""
    sim = closed(Baumgarte(0.0))
    report = sim.step(np.zeros(3))
    crank, coupler, rocker = report.acceleration
    found = [crank, crank + coupler, rocker]
    assert found == pytest.approx([-3.82325152, 0.95587181, -1.64423588], abs=2e-8)
    force = report.constraints['loop_closure coupler_tip rocker_tip'].force
    assert force[[0, 2]] == pytest.approx([1.61844923, 7.33439081], abs=2e-8)


@pytest.mark.parametrize(
    ('alpha', 'drifts'), [(0.0, (1947, 63108, 447518)), (10.0, (446, 2764, 2102))]
)
def test_t4_x24_drift_of_the_four_bar(alpha, drifts):
    """T4, X24: |h| after 1, 2 and 5 s at h = 2 ms, semi-implicit, to the micrometre."""
    sim = closed(Baumgarte(alpha))
    for step in range(1, 2501):
        report = sim.step(np.zeros(3))
        if step in (500, 1000, 2500):
            (state,) = report.constraints.values()
            expected = drifts[(500, 1000, 2500).index(step)]
            assert state.drift * 1e6 == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize(('alpha', 'largest'), [(0.0, (2e-4, 0.03, 0.4)), (10.0, (1e-3,) * 3)])
def test_t4_drift_of_the_four_bar_between_events(alpha, largest):
    """T4 with Runge-Kutta's arcs of hybrid: 1e-4, 0.028 and 0.37 µm, below 1e-3 µm with α = 10."""
    sim = closed(Baumgarte(alpha), 'hybrid')
    for step in range(1, 2501):
        report = sim.step(np.zeros(3))
        if step in (500, 1000, 2500):
            (state,) = report.constraints.values()
            assert state.drift * 1e6 < largest[(500, 1000, 2500).index(step)]
            assert state.drift > 0.0


def test_projection_keeps_the_loop_closed():
    """5 s of the same four-bar: no drift, and energy to the order of the step."""
    sim = closed(Projection())
    start = sim.last_report.record.energy @ [1.0, 0.0, 0.0, 9.81]
    for _ in range(2500):
        report = sim.step(np.zeros(3))
        assert next(iter(report.constraints.values())).drift < 2e-13
    end = report.record.energy @ [1.0, 0.0, 0.0, 9.81]
    assert end == pytest.approx(start, abs=0.05 * 9.81 * 4.5)
