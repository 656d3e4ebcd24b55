"""Interval rows under every time-stepping model: dry friction, limits, bilateral rows."""

from __future__ import annotations

import numpy as np
import pytest

from contact_sim import ContactProblem, InvalidInput, law_residuals
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.step._problem import Cone, Interval

H = 1e-3
EXACT = ('ncp', 'anitescu', 'lcp', 'null_space')
TIME_STEPPING = [
    name for name, model in CONTACT_MODELS.items() if issubclass(model, TimeSteppingModel)
]
OPTIONS = {'compliant': {'stiffness': 1e4}}
DRY = 0.05


def answered(name, problem):
    return CONTACT_MODELS[name](**OPTIONS.get(name, {})).solve(problem)


def mechanism(seed, intervals, contact=False):
    """Return the problem of unit rows on a random mechanism; intervals are (lower, upper, gap)."""
    rng = np.random.default_rng(seed)
    nv = 8
    A = rng.standard_normal((nv, nv + 3))
    v = rng.standard_normal(nv)
    blocks = [
        Interval(rng.standard_normal((1, nv)), lower, upper, gap, [bias])
        for lower, upper, gap, bias in intervals
    ]
    if contact:
        blocks.insert(1, Cone(rng.standard_normal((3, nv)), 0.6, 0.0, np.zeros(3)))
    return ContactProblem.from_blocks(blocks, A @ A.T, v, v, H)


def velocities(problem, solution):
    """Return u⁺ and the impulses of the interval rows."""
    u = problem.delassus @ solution.impulse + problem.free_velocity
    return u[3 * problem.n_contacts :], solution.impulse[3 * problem.n_contacts :]


@pytest.mark.parametrize('contact', [False, True])
@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('name', EXACT)
def test_exact_models_keep_the_law_of_every_interval(name, seed, contact):
    rows = [(-DRY, DRY, 0.0, 0.0), (0.0, np.inf, 0.0, 0.0), (-np.inf, np.inf, 0.0, 0.0),
            (-np.inf, 0.0, 0.0, 0.0)]  # fmt: skip
    problem = mechanism(seed, rows, contact and name != 'null_space')
    solution = answered(name, problem)
    assert solution.solver.converged
    u, x = velocities(problem, solution)
    assert abs(x[0]) <= DRY * (1 + 1e-12)
    assert abs(u[0]) < 1e-8 or x[0] == pytest.approx(-DRY * np.sign(u[0]), rel=1e-12)
    assert abs(u[2]) < 1e-8
    for sign, k in ((1.0, 1), (-1.0, 3)):
        assert sign * x[k] >= 0.0
        assert sign * u[k] > -1e-8
        assert abs(x[k] * u[k]) < 1e-8
    residuals = law_residuals(problem, solution.impulse)
    assert residuals.interval <= 1e-15
    if name == 'ncp':
        assert residuals.ncp <= 1e-9 * np.abs(solution.impulse).max()


@pytest.mark.parametrize('name', EXACT)
def test_rows_that_are_bilateral_equal_a_projection(name):
    free = (-np.inf, np.inf, 0.0, 0.0)
    problem = mechanism(3, [free, free, free])
    expected = -np.linalg.solve(problem.delassus, problem.free_velocity)
    assert np.allclose(answered(name, problem).impulse, expected, rtol=1e-9)


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('name', ['sap', 'todorov', 'compliant'])
def test_soft_models_answer_every_interval(name, seed):
    rows = [(-DRY, DRY, 0.0, 0.0), (0.0, np.inf, -1e-3, 0.0), (-np.inf, np.inf, 2e-3, 0.0)]
    problem = mechanism(seed, rows)
    solution = answered(name, problem)
    assert solution.solver.converged
    assert np.isfinite(solution.impulse).all()
    u, x = velocities(problem, solution)
    assert abs(x[0]) <= DRY
    assert x[1] >= 0.0
    assert abs(u[2]) < np.abs(problem.free_velocity[2]) or abs(x[2]) > 0.0


@pytest.mark.parametrize('gap', [-2e-3, 0.0, 3e-3])
def test_a_bilateral_row_of_sap_is_a_spring_and_damper(gap):
    k, tau = 1e5, 0.02
    model = CONTACT_MODELS['sap'](stiffness=k, relaxation_time=tau, beta=0.0)
    problem = mechanism(1, [(-np.inf, np.inf, gap, 0.0)])
    u, x = velocities(problem, model.solve(problem))
    # the law of a contact without its cut: γ/h = −k (φ + (h + τ) u)
    assert x[0] / H == pytest.approx(-k * (gap + (H + tau) * u[0]), rel=1e-7)


@pytest.mark.parametrize('gap', [-2e-3, 0.0, 3e-3])
def test_a_bilateral_row_of_compliant_is_a_spring_and_damper(gap):
    k, zeta = 1e4, 0.5
    model = CONTACT_MODELS['compliant'](stiffness=k, damping_ratio=zeta, normal_law='linear')
    problem = mechanism(1, [(-np.inf, np.inf, gap, 0.0)])
    u, x = velocities(problem, model.solve(problem))
    damping = 2.0 * zeta * np.sqrt(k / problem.delassus[0, 0])
    assert x[0] / H == pytest.approx(-k * (gap + H * u[0]) - damping * u[0], rel=1e-7)


def test_a_bilateral_row_of_todorov_is_soft_by_its_impedance():
    problem = mechanism(1, [(-np.inf, np.inf, 0.0, 0.0)])
    u, x = velocities(problem, CONTACT_MODELS['todorov']().solve(problem))
    d, d_max, tau = 0.9, 0.95, 0.02
    R = (1.0 - d) / d * problem.delassus[0, 0]
    v_hat = problem.start_velocity[0] * (1.0 - H * 2.0 / (d_max * tau))
    assert u[0] + R * x[0] == pytest.approx(v_hat, rel=1e-9)


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'lower': 1.0, 'upper': 0.0}, 'lower <= upper'),
        ({'lower': np.nan, 'upper': 0.0}, 'lower <= upper'),
        ({'lower': 0.0, 'upper': np.nan}, 'lower <= upper'),
        ({'lower': np.inf, 'upper': np.inf}, 'no finite impulse'),
        ({'lower': 0.0, 'upper': 1.0, 'gap': np.nan}, 'gap'),
        ({'lower': 0.0, 'upper': 1.0, 'jacobian': np.ones((2, 3))}, 'expected 1 rows'),
        ({'lower': 0.0, 'upper': 1.0, 'bias': [np.inf]}, 'finite'),
    ],
)
def test_bad_intervals_are_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        Interval(**{'jacobian': np.ones((1, 3)), **values})


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'friction': -0.1}, 'friction'),
        ({'friction': np.nan}, 'friction'),
        ({'jacobian': np.ones((2, 4))}, 'expected 3 rows'),
        ({'bias': np.zeros(2)}, 'expected 3 rows'),
    ],
)
def test_bad_cones_are_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        Cone(**{'jacobian': np.ones((3, 4)), 'friction': 0.5, **values})


def test_problems_name_the_interval_whose_bounds_are_crossed():
    with pytest.raises(InvalidInput, match=r'interval 1 has lower = 2\.0, upper = 1\.0'):
        ContactProblem.from_delassus(
            np.eye(2), np.zeros(2), [], lower=[0.0, 2.0], upper=[1.0, 1.0]
        )


def test_blocks_of_a_problem_are_those_it_was_made_of(tmp_path):
    problem = mechanism(2, [(-DRY, DRY, 0.0, 0.0), (0.0, np.inf, 1e-3, 0.5)], contact=True)
    problem.save(tmp_path / 'problem.npz')
    loaded = ContactProblem.load(tmp_path / 'problem.npz')
    again = ContactProblem.from_blocks(
        loaded.blocks, problem.inertia, problem.velocity, problem.free_motion, H
    )
    assert [type(block).__name__ for block in loaded.blocks] == ['Cone', 'Interval', 'Interval']
    for name in ('delassus', 'bias', 'friction', 'lower', 'upper', 'gap', 'interval_gap'):
        assert np.array_equal(getattr(again, name), getattr(problem, name)), name


def test_blocks_must_fit():
    row = Interval(np.ones((1, 3)), 0.0, 1.0)
    for blocks, message in (([row], '3 columns, expected 2'), (['cone'], 'expected a Cone')):
        with pytest.raises(InvalidInput, match=message):
            ContactProblem.from_blocks(blocks, np.eye(2), np.zeros(2), np.zeros(2), H)
