"""Interval rows of the event-driven model: two bounds, none, one; joints that Pinocchio fills."""

import numpy as np
import pytest
from interpreted import interpreted
from robots import StandingController, axle

from contact_sim import Hybrid, InvalidInput, Simulator, load_robot
from contact_sim.contact_models.hybrid._impacts import eliminate_bilateral, restore_bilateral


def bounded_axle(lower, upper):
    """An axle at rest whose row takes forces in [lower, upper] [N m]."""
    sim = Simulator(axle(), 'ncp')
    work = sim._workspace
    work.interval_lower[:], work.interval_upper[:] = lower, upper
    work.set_time_step(sim.time_step)
    sim.contact_model = 'hybrid'
    return sim


def test_a_row_without_bounds_is_held_whatever_it_takes():
    sim = bounded_axle(-np.inf, np.inf)
    for effort in (0.4, 7.0, -300.0):
        report = sim.step(np.array([effort]))
        assert sim.v[0] == 0.0
        assert report.record.impulse[-1] == pytest.approx(-effort * sim.time_step, rel=1e-12)
        assert report.solver.converged
    sim.reset(v=[0.3])
    report = sim.step(np.zeros(1))  # a velocity that is not allowed ends with the step
    assert sim.v[0] == pytest.approx(0.0, abs=1e-15)
    assert not np.isnan(report.record.buffer).any()


def test_bounds_need_not_be_symmetric():
    # I = 1, damping 0.2: held between −0.2 and 0.7 N m; pushed by 1 N m against 0.2: 0.8 rad/s²
    sim = bounded_axle(-0.2, 0.7)
    for _ in range(50):
        sim.step(np.array([-0.65]))
    assert sim.v[0] == 0.0
    for _ in range(100):
        sim.step(np.array([1.0]))
    assert sim.v[0] == pytest.approx(4.0 * (1.0 - np.exp(-0.2 * 0.1)), abs=1e-10)


@pytest.mark.parametrize(('lower', 'upper'), [(0.0, np.inf), (-np.inf, 0.0)])
def test_a_row_with_one_bound_is_refused(lower, upper):
    with pytest.raises(InvalidInput, match=r'hybrid: interval row 0 \(dof 0\).*time-stepping'):
        bounded_axle(lower, upper)


@interpreted()
@pytest.mark.parametrize('redundant', [False, True])
def test_bilateral_rows_hold_during_an_impact(redundant):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((8, 9))
    if redundant:
        A[7] = A[6]  # the same constraint twice
    G, u, m = A @ A.T, A @ rng.standard_normal(9), 6
    left, velocity, impulse = G.copy(), u.copy(), np.zeros(8)
    eliminate_bilateral(left, velocity, m)
    last = 7 if redundant else 8
    inverse = np.linalg.inv(G[m:last, m:last])
    expected = G[:m, :m] - G[:m, m:last] @ inverse @ G[m:last, :m]
    assert left[:m, :m] == pytest.approx(expected, abs=1e-10)
    impulse[:m] = rng.standard_normal(m)
    restore_bilateral(left, velocity, m, impulse)
    after = u + G @ impulse
    assert after[m:] == pytest.approx(0.0, abs=1e-10)
    assert after[:m] == pytest.approx(velocity[:m] + left[:m, :m] @ impulse[:m], abs=1e-10)


def test_terms_that_pinocchio_fills_give_the_same_motion():
    def drop(given):
        sim = Simulator(load_robot('go1'), 'ncp', restitution=0.2)
        sim._workspace.external_terms[0] = given
        sim.contact_model = Hybrid()
        controller = StandingController(sim)
        q = sim.q.copy()
        q[2] += 0.02
        sim.reset(q)
        reports = [sim.step(controller(sim)) for _ in range(90)]
        return np.array([[*report.q, *report.v] for report in reports]), reports

    motion, reports = drop(0)
    given, others = drop(1)
    assert reports[-1].contacts.normal_force.max() > 0.0
    assert given == pytest.approx(motion, abs=1e-7)
    for report, other in zip(reports, others, strict=True):
        effects = report.record.nonlinear_effects
        assert other.record.nonlinear_effects == pytest.approx(effects, abs=1e-6)
