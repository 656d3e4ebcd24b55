"""Stiffness of one soft contact against differences of its impulse, and Newton on springs."""

import numpy as np
import pytest

from contact_sim.solvers._soft_newton import (
    TreeSolver,
    cone_directions,
    cone_impulse,
    cone_stiffness,
    pyramid_directions,
    pyramid_impulse,
    pyramid_stiffness,
    regularised_directions,
    regularised_impulse,
    regularised_stiffness,
)
from contact_sim.solvers._springs import SpringWork, newton_step

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
MU, R, EDGE, V_HAT = 0.7, (0.3, 0.5), 0.4, np.array([0.1, -0.05, 0.2])
PLACE, SPRING = (-1e-3, 0.4, 0.02), (1e-3, 1e4, 3.0)


def laws(form):
    """γ(u), directions and H at u of a form, as functions."""
    if form == 'cone':
        return (
            lambda u: cone_impulse(V_HAT - u, MU, R),
            lambda u: cone_directions(V_HAT - u, MU, R, 3.0),
            lambda u: cone_stiffness(V_HAT - u, MU, R),
        )
    if form == 'pyramid':
        return (
            lambda u: pyramid_impulse(V_HAT - u, MU, EDGE),
            lambda u: pyramid_directions(V_HAT - u, MU, EDGE),
            lambda u: pyramid_stiffness(V_HAT - u, MU, EDGE),
        )
    lagged = form == 'lagged'
    return (
        lambda u: regularised_impulse(lagged, u, MU, PLACE, SPRING),
        lambda u: regularised_directions(lagged, u, MU, PLACE, SPRING, 3.0),
        lambda u: regularised_stiffness(lagged, u, MU, PLACE, SPRING),
    )


@pytest.mark.parametrize('form', ['cone', 'pyramid', 'lagged', 'similar'])
@pytest.mark.parametrize('seed', range(20))
def test_directions_and_stiffness_are_the_derivative_of_the_impulse(form, seed):
    rng, delta = np.random.default_rng(seed), 1e-7
    u = rng.uniform(-0.5, 0.5, 3)
    impulse, directions, stiffness_of = laws(form)
    H = np.empty((3, 3))
    for k, change in enumerate(delta * np.eye(3)):
        after, before = np.array(impulse(u + change)), np.array(impulse(u - change))
        H[:, k] = (before - after) / (2.0 * delta)
    *vectors, softness = directions(u)
    kept = [k for k in range(3) if softness[k] < np.inf]
    E = np.array([vectors[k] for k in kept]).reshape(-1, 3)
    gram = E @ E.T
    assert gram == pytest.approx(np.eye(len(kept)), abs=1e-12)
    stiffness = np.array([1.0 / softness[k] for k in kept])
    assert E.T @ (stiffness[:, None] * E) == pytest.approx(H, rel=1e-5, abs=1e-5)
    h11, h12, h22, h13, h23, h33 = stiffness_of(u)
    block = np.array([[h11, h12, h13], [h12, h22, h23], [h13, h23, h33]])
    assert block == pytest.approx(H, rel=1e-5, abs=1e-5)
    assert block == pytest.approx(E.T @ (stiffness[:, None] * E), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize('seed', range(10))
def test_newton_on_springs_solves_the_whole_system_also_where_rows_have_no_slope(seed):
    rng, nc, ns = np.random.default_rng(seed), 3, 3
    n = 3 * nc + ns
    J, slope = rng.standard_normal((n, n + 2)), rng.standard_normal((n, 3))
    slope[9:, 1:] = 0.0
    slope[3 * (seed % 3) :][:3] = slope[9 + seed % 3] = 0.0
    G, S, defect = J @ J.T, np.zeros((n, n)), rng.standard_normal(n)
    for r in range(0, 9, 3):
        S[r : r + 3, r : r + 3] = slope[r : r + 3]
    S[range(9, n), range(9, n)] = slope[9:, 0]
    work = SpringWork(
        *np.empty((7, n)),
        slope=slope,
        matrix=np.empty((n, n)),
        row=np.empty(n, np.int64),
        lagged_force=np.empty(nc),
        stiffness=np.empty((n, 3)),
        tree=TreeSolver(0, 0, (0, 0, 0)),
    )
    work.step[:] = defect
    assert newton_step(G, nc, work)
    assert work.step == pytest.approx(np.linalg.solve(np.eye(n) - S @ G, defect), rel=1e-8)
