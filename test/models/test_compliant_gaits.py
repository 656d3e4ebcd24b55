"""Newton of `compliant` where legs touch down and lift off: every step is answered."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'benchmarks'))
from gaits import gait

from contact_sim import Compliant, Simulator, load_robot


@pytest.mark.parametrize(
    ('robot', 'dissipation', 'time_step', 'motion', 'steps'),
    [
        # joints whose dry friction turns over: as far on one side as on the other, for ever
        ('go1', 1.0, 1e-3, 'trot', 1000),
        # feet about to leave, near 1/a, whose friction other feet feel
        ('anymal_b', 50.0, 2e-3, 'march', 600),
    ],
)
def test_every_step_of_a_gait_satisfies_the_law(robot, dissipation, time_step, motion, steps):
    model = load_robot(robot)
    sim = Simulator(model, Compliant(dissipation=dissipation), time_step=time_step)
    controller, iterations = gait(motion, model), []
    for _ in range(steps):
        report = sim.step(controller.effort(sim.time, sim.q, sim.v))
        assert report.solver.converged, report.solver
        impulse = time_step * report.contacts.normal_force
        assert report.solver.residual <= 1e-9 * max(impulse.max(initial=0.0), 1.0)
        iterations.append(report.solver.iterations)
    assert max(iterations) < 300
    assert np.mean(iterations) < 4.0
