"""Steps of hybrid without events: no choice of modes, and at rest not even an arc."""

import numpy as np
import pytest
from robots import StandingController, ball, pose

from contact_sim import InclinedPlane, Simulator, load_robot
from contact_sim.contact_models.hybrid import _hybrid
from contact_sim.contact_models.hybrid._event_free import STARTED

GRAVITY, LENGTH = 9.81, 0.5
PENDULUM = f"""<robot name="pendulum"><link name="base"/>
<link name="bob"><inertial><origin xyz="0 0 {LENGTH}"/><mass value="2"/>
<inertia ixx="1e-9" iyy="1e-9" izz="1e-9" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="bob"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="90" velocity="9"/></joint></robot>"""


def settled(sim, seconds):
    """Let a robot come to rest in its stance; return the controller that holds it."""
    controller = StandingController(sim)
    for _ in range(round(seconds / sim.time_step)):
        sim.step(controller(sim))
    return controller


def choosing_always(monkeypatch, sim):
    """Make `sim` choose its modes in every step."""
    stepper = sim._stepper

    def advance(*_):
        stepper._fallback.begin()
        return STARTED, _hybrid.start_step(*stepper._arrays), False, 0

    monkeypatch.setattr(_hybrid, 'advance_without_events', advance)


def trotting_go1():
    """A robot, its settings, and the efforts of a trot on the spot."""
    sim = Simulator(load_robot('go1'), 'hybrid', friction=0.7)
    controller, efforts = StandingController(sim), []
    stance = controller.target.reshape(4, 3).copy()
    for _ in range(300):
        phase = np.sin(2 * np.pi * 2.5 * sim.time + np.array([0.0, np.pi, np.pi, 0.0]))
        lift = 0.25 * np.sign(stance[:, 2]) * np.maximum(phase, 0.0)
        controller.target = (stance + np.stack([0.0 * lift, -lift, 2.0 * lift], axis=1)).ravel()
        efforts.append(controller(sim))
        sim.step(efforts[-1])
    return sim.robot, {'friction': 0.7}, efforts


def rolling_ball():
    slope = InclinedPlane(0.1)
    return ball(), {'friction': 0.5, 'terrain': slope}, [np.zeros(0)] * 300


def swinging_pendulum():
    efforts = [np.array([3.0 * np.sin(0.05 * k)]) for k in range(300)]
    return load_robot(PENDULUM, floating_base=False), {}, efforts


@pytest.mark.parametrize('case', [trotting_go1, rolling_ball, swinging_pendulum])
def test_steps_are_those_in_which_modes_are_chosen(case, monkeypatch):
    robot, settings, efforts = case()
    runs, taken = [], []
    real = _hybrid.advance_without_events
    for chooses in (False, True):
        sim = Simulator(robot, 'hybrid', **settings)
        if case is rolling_ball:
            sim.reset(pose(z=0.1 / np.cos(0.1)))
        with monkeypatch.context() as patch:
            if chooses:
                choosing_always(patch, sim)
            else:

                def counted(*arguments):
                    found = real(*arguments)
                    taken.append(found[0] != STARTED)
                    return found

                patch.setattr(_hybrid, 'advance_without_events', counted)
            runs.append([sim.step(effort) for effort in efforts])
    assert np.mean(taken) > 0.5
    for report, expected in zip(*runs, strict=True):
        assert report.q == pytest.approx(expected.q, abs=1e-8)
        assert report.v == pytest.approx(expected.v, abs=1e-7)
        assert report.record.energy == pytest.approx(expected.record.energy, abs=1e-6)
        assert report.contacts.gap == pytest.approx(expected.contacts.gap, abs=1e-8)
        assert report.solver.status == expected.solver.status
        # a landing of several feet has events that rounding splits in one or several
        more = abs(report.solver.iterations - expected.solver.iterations)
        assert more <= (5 if case is trotting_go1 else 0)
        total, other = (one.contacts.force.sum(axis=0) for one in (report, expected))
        assert total == pytest.approx(other, abs=1e-3)


def test_a_robot_at_rest_neither_moves_nor_needs_the_delassus_matrix():
    sim = Simulator(load_robot('go1'), 'hybrid', friction=0.7)
    controller = settled(sim, 3.0)
    start, kept = sim.q.copy(), 0
    weight = sim.robot.total_mass * GRAVITY
    for _ in range(400):
        sim._workspace.delassus[:] = np.nan  # a step that reads it is not finite
        report = sim.step(controller(sim))
        kept += bool(np.isnan(sim._workspace.delassus[1]))
        assert report.solver.converged
        assert report.contacts.force.sum(axis=0) == pytest.approx([0.0, 0.0, weight], abs=1e-8)
        assert report.residuals.ncp <= 1e-9
    assert kept > 350
    assert sim.q == pytest.approx(start, abs=1e-12)


def test_a_robot_at_rest_answers_a_push_in_the_same_step(monkeypatch):
    sim, other = (Simulator(load_robot('go1'), 'hybrid', friction=0.7) for _ in range(2))
    effort = settled(sim, 3.0)(sim)
    other.restore(sim.snapshot())
    push = {'trunk': [0.0, 200.0, 0.0, 0.0, 0.0, 0.0]}
    reports = [sim.step(effort, push) for _ in range(20)]
    choosing_always(monkeypatch, other)
    for report in reports:
        assert report.v == pytest.approx(other.step(effort, push).v, abs=1e-9)
    assert np.abs(reports[-1].v).max() > 1e-2


def test_forces_end_with_their_contacts():
    sim = Simulator(load_robot('go1'), 'hybrid', friction=0.7)
    effort = settled(sim, 3.0)(sim)
    sim._data.q[2] += 0.01  # as if the ground had sunk
    sim._stepper.update_contacts()
    report = sim.step(effort)
    assert report.v[2] < -1e-3
    assert not report.contacts.force.any()


def test_an_unstable_equilibrium_is_left():
    # θ = θ₀ cosh(√(g/l) t); at 0 it stays
    sim = Simulator(load_robot(PENDULUM, floating_base=False), 'hybrid', time_step=1e-3)
    for angle in (1e-12, 0.0):
        sim.reset([angle])
        for _ in range(2000):
            sim.step(np.zeros(1))
        expected = angle * np.cosh(np.sqrt(GRAVITY / LENGTH) * 2.0)
        assert sim.q[0] == pytest.approx(expected, rel=0.01, abs=0.0)


def test_the_least_excess_of_a_torque_moves():
    # held level by a motor, 1e-11 too strong: θ̈ = −1e-11 g / l
    sim = Simulator(load_robot(PENDULUM, floating_base=False), 'hybrid', time_step=1e-3)
    sim.reset([0.5 * np.pi])
    hold = -2.0 * GRAVITY * LENGTH
    for _ in range(1000):
        sim.step([(1.0 + 1e-11) * hold])
    assert sim.v[0] == pytest.approx(-1e-11 * GRAVITY / LENGTH, rel=0.02)


def test_dry_friction_takes_what_a_motor_changes_at_rest():
    sim = Simulator(load_robot('go1'), 'hybrid', friction=0.7)
    effort, start = settled(sim, 3.0)(sim), sim.q.copy()
    more, exact = np.zeros(12), 0
    more[3] = 0.02
    # dry friction of 12 joints, then 12 limits of joints; few steps choose redundant forces anew,
    # and which ones, rounding decides
    for _ in range(30):
        before = sim.step(effort).record.impulse[-24:-12] / sim.time_step
        after = sim.step(effort + more).record.impulse[-24:-12] / sim.time_step
        exact += (after - before) == pytest.approx(-more, abs=1e-9)
    assert exact >= 25
    assert sim.q == pytest.approx(start, abs=1e-12)
