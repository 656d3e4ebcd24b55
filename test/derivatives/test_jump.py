"""The example that lets a go1 jump by derivatives of steps."""

import sys

import numpy as np
import pytest
from markdown_pages import ROOT

from contact_sim import Simulator, load_robot

pytest.importorskip('crocoddyl', reason='the extra optimal is not installed')


@pytest.fixture(scope='module')
def jump():
    sys.path.insert(0, str(ROOT / 'examples'))
    import jump

    yield jump
    sys.path.remove(str(ROOT / 'examples'))


def test_a_jump_that_was_planned_under_one_law_is_one_under_others(jump):
    sim = Simulator(load_robot('go1'), contact_model='todorov', time_step=jump.PERIOD)
    start = jump.stance(sim)
    plan = jump.planned(sim, start, height=0.2, iterations=60)
    assert plan.xs[-1][2] - start.x[2] == pytest.approx(0.2, abs=0.01)
    limit = sim.robot.actuators.effort_limit
    assert all(np.all(np.abs(effort) <= limit) for effort in plan.us)
    for law in ('todorov', 'ncp'):
        base, feet = jump.tried(law, start, plan)
        assert base == pytest.approx(0.2, abs=0.03)
        assert feet > 0.1
