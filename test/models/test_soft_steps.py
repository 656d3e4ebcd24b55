"""Soft laws: steps along the tree of joints and steps with the Delassus matrix are the same."""

import numpy as np
import pytest

from contact_sim import Compliant, Sap, Simulator, Todorov, load_robot

TINY = 1e-14
"""Torsional friction [m] with which G is formed in every step, and which moves nothing."""


@pytest.mark.parametrize('motion', ['stands', 'slides', 'lands'])
@pytest.mark.parametrize(
    'law',
    [Todorov(), Todorov(cone='elliptic'), Sap(), Sap(approximation='lagged'), Compliant()],
    ids=['todorov', 'elliptic', 'sap', 'lagged', 'compliant'],
)
@pytest.mark.parametrize('name', ['go1', 'quadruped', 'anymal_b'])
def test_steps_along_the_tree_are_those_with_the_delassus_matrix(name, law, motion):
    robot = load_robot(name)
    sims = [
        Simulator(robot, law, friction=0.5, torsional_friction=torsion) for torsion in (0.0, TINY)
    ]
    rng, effort = np.random.default_rng(3), np.zeros(robot.n_joints)
    for _ in range(4):
        q, v = sims[0].standing_configuration().copy(), 0.05 * rng.standard_normal(robot.nv)
        q[2] -= 1e-3
        v[0] += 1.0 if motion == 'slides' else 0.0
        v[2] -= 0.5 if motion == 'lands' else 0.0
        for sim in sims:
            sim.reset(q, v)
        for _ in range(3):
            along, formed = (sim.step(effort) for sim in sims)
            assert along.solver.converged
            assert formed.solver.converged
            size = np.abs(formed.record.impulse).max()
            n = 3 * len(robot.contact_points)
            assert along.record.impulse[:n] == pytest.approx(
                formed.record.impulse[:n], abs=1e-6 * size
            )
            assert along.v == pytest.approx(formed.v, abs=1e-8)
