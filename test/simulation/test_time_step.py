"""A time step that changes while the simulation runs."""

import numpy as np
import pytest
from robots import ball

import contact_sim
from contact_sim import InvalidInput, Simulator, load_robot
from contact_sim.replay import Recorder, Recording, repeat

G = 9.81
NO_EFFORT = np.zeros(0)


def falling(model='ncp', time_step=1e-3):
    sim = Simulator(ball(), model, time_step=time_step)
    q = sim.q.copy()
    q[2] += 0.02
    sim.reset(q)
    return sim


def test_free_fall_over_a_change_of_the_time_step():
    sim = falling()
    z = sim.q[2]
    steps = [1e-3] * 20 + [2.5e-4] * 40 + [2e-3] * 5
    t = fall = 0.0
    for h in steps:
        sim.time_step = h
        sim.step(NO_EFFORT)
        t += h
        fall += h * G * t  # semi-implicit Euler: the velocity after the step moves the body
    assert sim.time_step == 2e-3
    assert sim.step_count == len(steps)
    assert sim.time == pytest.approx(t, abs=1e-14)
    assert sim.v[2] == pytest.approx(-G * t, rel=1e-13)
    assert sim.q[2] == pytest.approx(z - fall, rel=1e-13)


@pytest.mark.parametrize('model', contact_sim.contact_models())
def test_after_the_change_all_is_as_in_a_simulation_of_that_time_step(model):
    sim = falling(model)
    for _ in range(10):
        sim.step(NO_EFFORT)
    sim.time_step = 4e-4
    other = falling(model, time_step=4e-4)
    other.reset(sim.q, sim.v)
    for _ in range(200):  # it lands
        sim.step(NO_EFFORT)
        report = other.step(NO_EFFORT)
    assert report.contacts.force[0, 2] > 0.0
    np.testing.assert_array_equal(sim.q, other.q)
    np.testing.assert_array_equal(sim.v, other.v)


def test_a_snapshot_brings_its_time_step_back(tmp_path):
    sim = falling('sap')
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(100):
            sim.step(NO_EFFORT)
        kept = sim.snapshot()
        after = [sim.step(NO_EFFORT).record.buffer.copy() for _ in range(3)]
        sim.time_step = 5e-4
        sim.step(NO_EFFORT)
        sim.restore(kept)
        assert sim.time_step == 1e-3
        again = [sim.step(NO_EFFORT).record.buffer.copy() for _ in range(3)]
        sim.time_step = 5e-4
        sim.step(NO_EFFORT)
    np.testing.assert_array_equal(after, again)
    assert repeat(Recording(tmp_path / 'run.npz')).equal


def test_a_time_step_that_cannot_be_is_refused():
    quadruped = load_robot('quadruped')
    delayed = quadruped.with_actuators(delay=2e-3)
    sim = Simulator(delayed)
    effort = np.arange(12.0)
    sim.step(effort)
    for bad in (0.0, -1e-3, np.nan, '1 ms'):
        with pytest.raises(InvalidInput, match='time_step'):
            sim.time_step = bad
    with pytest.raises(InvalidInput, match='multiple of the time step'):
        sim.time_step = 1.5e-3
    assert sim.time_step == 1e-3
    sim.time_step = 5e-4
    report = sim.step(np.zeros(12))
    np.testing.assert_array_equal(report.effort, np.minimum(effort, quadruped.effort_limit))
    for _ in range(3):
        sim.step(np.zeros(12))
    np.testing.assert_array_equal(sim.step(np.zeros(12)).effort, np.zeros(12))
