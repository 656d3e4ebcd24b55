"""Constraints given as functions under the event-driven model: closed forms, and built-in rows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from linkages import double_pendulum
from robots import ball, point_mass
from scipy.integrate import solve_ivp

from contact_sim import Hybrid, InvalidInput, Simulator, load_robot
from contact_sim.constraints import Baumgarte, Holonomic, JointLock, PointAnchor, Projection
from contact_sim.dynamics._tree import tree_of
from contact_sim.step import _workspace
from contact_sim.step._workspace import OPEN, SLIP, STICK

NO_EFFORT = np.zeros(0)
GRAVITY = 9.81
BOTH = pytest.mark.parametrize('stabilisation', [Baumgarte(5.0), Projection()])


def bead(time_step, stabilisation, **settings):
    """Return C6's bead, 1 kg, on a unit circle about the origin of the x-z plane."""
    circle = Holonomic(
        lambda q: np.array([0.5 * (q @ q - 1.0)]), lambda q: q[None, :].copy(), 1,
        stabilisation=stabilisation,
    )  # fmt: skip
    model = Hybrid(max_substep=time_step)
    return Simulator(
        load_robot('bead'), model, time_step=time_step, constraints=[circle], **settings
    )


@BOTH
def test_c6_a_bead_goes_round(stabilisation):
    """C6 between events, h = 5 ms: 2 s at 1 m/s are 2 rad, and the circle pulls with 1 N."""
    sim = bead(0.005, stabilisation, gravity=0.0)
    sim.reset((1.0, 0.0), (0.0, 1.0))
    for _ in range(400):
        report = sim.step(NO_EFFORT)
    assert sim.q == pytest.approx([np.cos(2.0), np.sin(2.0)], abs=1e-9)
    (state,) = report.constraints.values()
    assert state.force == pytest.approx([-1.0], abs=1e-7)
    assert state.drift <= (1e-13 if stabilisation == Projection() else 1e-9)


def swing(_, state):
    """Return (θ̇, θ̈) of a pendulum of 1 m, θ from hanging."""
    return state[1], -GRAVITY * np.sin(state[0])


def swung(time_step, stabilisation):
    """Return the angle from hanging after 0.8 s from (1, 0), at rest [rad]."""
    sim = bead(time_step, stabilisation)
    sim.reset((1.0, 0.0), (0.0, 0.0))
    for _ in range(round(0.8 / time_step)):
        report = sim.step(NO_EFFORT)
    (state,) = report.constraints.values()
    assert state.drift == pytest.approx(abs(0.5 * (sim.q @ sim.q - 1.0)), abs=1e-15)
    assert state.drift < (1e-13 if stabilisation == Projection() else 1e-6)
    return np.arctan2(sim.q[0], -sim.q[1])


@BOTH
def test_a_pendulum_swings_as_accurately_as_runge_kutta(stabilisation):
    """Against θ̈ = −g sin θ: halving the step divides the error by 16, where it is not rounding."""
    exact = solve_ivp(
        swing, (0.0, 0.8), (0.5 * np.pi, 0.0), method='DOP853', rtol=1e-13, atol=1e-13
    ).y[0, -1]
    coarse, fine = (abs(swung(h, stabilisation) - exact) for h in (0.01, 0.005))
    assert 1e-9 < coarse < 1e-5
    assert coarse / fine == pytest.approx(16.0, rel=0.25)


def test_a_start_that_the_constraint_does_not_allow():
    """The part of v along H goes at once; what is left turns with Ḣ v of itself, not of v."""
    sim = bead(0.01, Projection(), gravity=0.0)
    sim.reset((1.0, 0.0), (3.0, 1.0))
    sim.step(NO_EFFORT)
    assert sim.q == pytest.approx([np.cos(0.01), np.sin(0.01)], abs=1e-9)
    assert sim.v == pytest.approx([-np.sin(0.01), np.cos(0.01)], abs=1e-9)


def test_a_function_beside_the_constraint_that_it_repeats():
    """A joint locked twice, once by a function, moves as if locked once; both share the force."""
    lock = JointLock('q2', at=-0.7)
    again = Holonomic(lambda q: q[1:] + 0.7, lambda q: np.eye(2)[1:], 1)
    ends = []
    for constraints in ([lock], [lock, again], [again]):
        sim = Simulator(double_pendulum(), 'hybrid')
        sim.reset([0.3, -0.7], [1.1, 0.0])
        for one in constraints:
            sim.add_constraint(one)
        for _ in range(100):
            report = sim.step([0.5, -0.2])
        forces = np.concatenate([state.force for state in report.constraints.values()])
        assert forces == pytest.approx(np.full(len(forces), forces.sum() / len(forces)), rel=1e-9)
        ends.append([*sim.q, *sim.v, forces.sum()])
    assert ends[1] == pytest.approx(ends[0], abs=1e-9)
    assert ends[2] == pytest.approx(ends[0], abs=1e-9)


# ---------------------------------------------------------------- beside contacts


def bounced(angle, touching, seconds, restitution):
    """Return (θ, θ̇) of θ̈ = −g sin θ from rest, θ̇ ← −e θ̇ at `touching`, and the impacts."""
    state, t, impacts = np.array([angle, 0.0]), 0.0, 0

    def touches(_, y):
        return y[0] - touching

    touches.terminal, touches.direction = True, -1.0
    while t < seconds:
        way = solve_ivp(
            swing, (t, seconds), state, method='DOP853', rtol=1e-13, atol=1e-13, events=touches
        )
        t, state = way.t[-1], way.y[:, -1]
        if t < seconds:
            state, impacts = np.array([touching, -restitution * state[1]]), impacts + 1
    return state, impacts


def test_a_bead_on_a_ring_bounces_off_the_ground():
    """A ring of 1 m about 0.6 m above smooth ground, reached within steps, against its angle.

    Ḣ v = θ̇² is another one after every impact.
    """
    centre = np.array([0.0, 0.0, 0.6])
    ring = Holonomic(
        lambda q: np.array([0.5 * ((q - centre)[[0, 2]] @ (q - centre)[[0, 2]] - 1.0)]),
        lambda q: np.array([[q[0], 0.0, q[2] - 0.6]]), 1,
    )  # fmt: skip
    (angle, speed), impacts = bounced(1.5, np.arccos(0.6), 1.0, 0.5)
    assert impacts == 3
    sim = Simulator(point_mass(1.0), 'hybrid', time_step=2e-3, friction=0.0, restitution=0.5)
    sim.reset([np.sin(1.5), 0.0, 0.6 - np.cos(1.5)])
    sim.add_constraint(ring)
    for _ in range(500):
        report = sim.step(NO_EFFORT)
        assert report.solver.converged
    along = np.array([np.cos(angle), 0.0, np.sin(angle)])
    assert sim.q == pytest.approx(centre + [np.sin(angle), 0.0, -np.cos(angle)], abs=1e-9)
    assert sim.v == pytest.approx(speed * along, abs=1e-8)


def as_function(robot, frame, point, at, stabilisation):
    """Return a PointAnchor as a function, by Pinocchio."""
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    index = model.getFrameId(frame)

    def error(q):
        pin.framesForwardKinematics(model, data, q)
        return data.oMf[index].act(np.array(point)) - at

    def jacobian(q):
        J = pin.computeFrameJacobian(model, data, q, index, pin.LOCAL_WORLD_ALIGNED)
        pin.framesForwardKinematics(model, data, q)
        arm = data.oMf[index].rotation @ point
        return J[:3] - pin.skew(arm) @ J[3:]

    return Holonomic(error, jacobian, 3, stabilisation=stabilisation, name='anchor')


def on_a_string(given, stabilisation, friction):
    """Return (q, v, force of the string) and contact mode of a ball on a stiff string, 1.5 s.

    It hangs 1 m below a point 0.75 m above the ground, which stops it on its way down.
    """
    robot, top, hook = ball(), np.array([0.0, 0.0, 0.75]), np.array([0.0, 0.0, 1.0])
    turn = pin.rpy.rotate('y', -1.3)
    omega = turn.T @ [0.0, 0.0, 1.5]  # about the vertical
    sim = Simulator(robot, 'hybrid', time_step=5e-3, friction=friction, restitution=0.5)
    q = np.concatenate([top - turn @ hook, pin.Quaternion(turn).coeffs()])
    sim.reset(q, np.concatenate([np.cross(omega, -hook), omega]))
    if given:
        sim.add_constraint(as_function(robot, 'body', hook, top, stabilisation))
    else:
        sim.add_constraint(
            PointAnchor('body', top, hook, stabilisation=stabilisation, name='anchor')
        )
    rows, modes = [], []
    for _ in range(300):
        report = sim.step(NO_EFFORT)
        assert report.solver.converged
        rows.append(np.concatenate([sim.q, sim.v, report.constraints['anchor'].force]))
        modes.append(int(report.contacts.mode[0]))
    return np.array(rows), modes


@BOTH
@pytest.mark.parametrize(('friction', 'ends'), [(0.05, SLIP), (0.3, STICK)])
def test_a_ball_on_a_string_bounces_and_slides_or_rolls(stabilisation, friction, ends):
    """It hits the ground within a step, again and again, and goes round: as with PointAnchor."""
    expected, modes = on_a_string(False, stabilisation, friction)
    found, same = on_a_string(True, stabilisation, friction)
    assert sum(a != OPEN and b == OPEN for a, b in pairwise(modes)) >= 4
    assert modes[-20:] == [ends] * 20
    assert same == modes
    assert found[:, :13] == pytest.approx(expected[:, :13], abs=1e-9)
    unique = np.array(modes) != STICK  # both hold the ball along the line between them
    assert found[unique, 13:] == pytest.approx(expected[unique, 13:], abs=1e-7)


@pytest.mark.parametrize('model', ['hybrid', 'ncp'])
def test_a_function_that_fails_takes_the_step_back(model):
    """Whatever it raises in the middle of a step, the simulation is as before, and goes on."""
    left = np.inf

    def circle(q):
        nonlocal left
        left -= 1
        if left < 0:
            raise ZeroDivisionError
        return np.array([0.5 * (q @ q - 1.0)])

    one = Holonomic(circle, lambda q: q[None, :].copy(), 1)
    sim = Simulator(load_robot('bead'), model, time_step=0.01, constraints=[one])
    sim.reset((1.0, 0.0), (0.0, 1.0))
    start = sim.snapshot()
    expected = sim.step(NO_EFFORT).record.buffer.copy()
    sim.restore(start)
    for calls in range(1, 4):
        left = calls
        with pytest.raises(ZeroDivisionError):
            sim.step(NO_EFFORT)
        assert np.array_equal(sim.snapshot().buffer, start.buffer)
    left = np.inf
    assert np.array_equal(sim.step(NO_EFFORT).record.buffer, expected)


@pytest.mark.parametrize('model', ['hybrid', 'ncp'])
def test_functions_and_joints_that_only_pinocchio_knows(model, monkeypatch):
    """Both together are refused, and the joint is named."""
    monkeypatch.setattr(
        _workspace, 'tree_of', lambda tree: replace(tree_of(tree), unsupported=('odd',))
    )
    function = Holonomic(lambda q: q[:1], lambda q: np.eye(2)[:1], 1)
    with pytest.raises(InvalidInput, match='unsupported with joints of the kind of odd'):
        Simulator(load_robot('bead'), model, constraints=[function])
