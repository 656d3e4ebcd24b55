"""A surface that stands on points (T24): it carries moments until one edge is all that is left."""

import numpy as np
import pytest
from robots import cube, pose

from contact_sim import Simulator

GRAVITY, HALF = 9.81, 0.1


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu', 'hybrid'])
@pytest.mark.parametrize('share', [0.0, 0.5, 0.95])
def test_t24_the_centre_of_pressure_goes_with_the_moment(model, share):
    """T24: four points under a cube of 1 kg; F at its centre moves the pressure by 0.1 F/(m g)."""
    sim = Simulator(cube(), model, friction=2.0)
    sim.reset(pose(z=HALF))
    push = share * GRAVITY
    for _ in range(50):
        report = sim.step(np.zeros(0), {'body': [push, 0.0, 0.0, 0.0, 0.0, 0.0]})
    assert np.abs(sim.v).max() <= 1e-8
    normal, place = report.contacts.normal_force, report.contacts.position
    assert normal.sum() == pytest.approx(GRAVITY, rel=1e-7)
    assert normal @ place[:, :2] / normal.sum() == pytest.approx([HALF * share, 0.0], abs=1e-7)
    assert report.contacts.force.sum(axis=0)[0] == pytest.approx(-push, abs=1e-7)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu', 'hybrid'])
def test_t24_it_tips_when_the_pressure_would_leave_the_points(model):
    """T24: 1.05 m g at the centre: about the edge with 0.05 m g · 0.1 m over I + 2 m · 0.1²."""
    sim = Simulator(cube(), model, friction=2.0)
    sim.reset(pose(z=HALF))
    report = sim.step(np.zeros(0), {'body': [1.05 * GRAVITY, 0.0, 0.0, 0.0, 0.0, 0.0]})
    turning = 0.05 * GRAVITY * HALF / (0.2**2 / 6.0 + 2.0 * HALF**2)
    assert report.acceleration[4] == pytest.approx(turning, rel=1e-4)
