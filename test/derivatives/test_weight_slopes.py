"""∂/∂q of the effective masses of soft laws: formulas against differences of the geometry."""

import numpy as np
import pytest
from robots import StandingController

from contact_sim import Simulator, load_robot
from contact_sim.contact_models import Compliant, Sap
from contact_sim.derivatives import _fields as d
from contact_sim.terrain import HeightField

LAWS = {
    'lagged': Sap(),
    'cone': Sap(approximation='sap'),
    'similar': Sap(approximation='similar'),
    'compliant': Compliant(),
    'damped': Compliant(normal_law='kelvin_voigt', friction_law='tanh'),
}


def hills():
    x = np.linspace(-1.0, 1.0, 41)
    return HeightField(0.01 * np.sin(3.0 * x)[:, None] * np.cos(2.0 * x)[None], 0.05)


@pytest.mark.parametrize('name', LAWS)
@pytest.mark.parametrize('curved', [False, True])
def test_slopes_of_effective_masses_equal_differences(name, curved):
    robot = load_robot('go1')
    options = {'terrain': hills()} if curved else {}
    sim = Simulator(robot, LAWS[name], **options)
    controller, rng, compared = StandingController(sim), np.random.default_rng(1), 0
    for _ in range(4):
        for _ in range(40):
            sim.step(controller(sim) + rng.uniform(-0.5, 0.5, robot.n_joints))
        sim.derivatives(controller(sim))
        arrays = sim._linearisation
        n, contacts = arrays._counts[d.ROWS], 3 * arrays._counts[d.CONTACTS]
        matters, found = arrays.view('on_weight')[:n], arrays.view('weight_slope')[:n].copy()
        arrays._fill_given()
        expected, nv = arrays.view('weight_slope')[:n], robot.nv
        largest = np.abs(expected).max()
        for a in [*range(0, contacts, 3), *range(contacts, n)]:
            for half in range(2):
                columns = slice(half * nv, (half + 1) * nv)
                if matters[a : a + (3 if a < contacts else 1), half].any():
                    assert found[a, columns] == pytest.approx(
                        expected[a, columns], abs=1e-9 * largest
                    )
                    compared += 1
    assert compared > 0
