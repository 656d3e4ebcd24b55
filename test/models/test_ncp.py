"""The exact-cone model on contact problems: residuals, difficult cases, bad input."""

import numpy as np
import pytest
from problems import (
    GRAVITY,
    box_stack,
    nearly_coincident_contacts,
    random_problem,
    two_dependent_contacts,
)

from contact_sim import ContactProblem, InvalidInput, Ncp, law_residuals
from contact_sim.solvers._cone_methods import admm
from contact_sim.solvers._cone_problem import Rows
from contact_sim.step._problem import SolverStatus

SEEDS = range(60)


def next_velocity(problem, impulse):
    return problem.delassus @ impulse + problem.free_velocity


def solved_by_admm(problem):
    """Impulses of the fallback alone, from a cold start."""
    impulse = np.zeros(problem.n_rows)
    bounds = problem.lower.copy(), problem.upper.copy()
    rows = Rows(problem.delassus, problem.g, problem.friction, *bounds)
    _, _, converged = admm(rows, impulse, 1e-10, 20000, 0.0)
    assert converged
    return impulse


def signorini_coulomb_violation(problem, impulse):
    """Largest violation of the law, written out: an oracle that shares no code with the judge."""
    u = (next_velocity(problem, impulse) + problem.bias).reshape(-1, 3)
    worst = 0.0
    for force, w, mu in zip(impulse.reshape(-1, 3), u, problem.friction, strict=True):
        tangential = np.hypot(force[0], force[1])
        slip = np.hypot(w[0], w[1])
        worst = max(worst, -w[2], -force[2], abs(w[2] * force[2]), tangential - mu * force[2])
        worst = max(worst, abs(mu * force[2] * slip + force[0] * w[0] + force[1] * w[1]))
    return worst


@pytest.mark.parametrize('contacts', [1, 2, 5])
@pytest.mark.parametrize('seed', SEEDS)
def test_random_problems_obey_the_law(seed, contacts):
    problem = random_problem(1000 * contacts + seed, contacts)
    solution = Ncp().solve(problem)
    assert solution.solver.converged
    assert signorini_coulomb_violation(problem, solution.impulse) <= 1e-8
    assert law_residuals(problem, solution.impulse).ncp <= 1e-8


@pytest.mark.parametrize(
    'solve',
    [lambda problem: Ncp().solve(problem).impulse, solved_by_admm],
    ids=['default', 'admm'],
)
@pytest.mark.parametrize(
    ('singular', 'rank'), [(nearly_coincident_contacts, 5), (two_dependent_contacts, 3)]
)
def test_singular_problem_reaches_its_residual(solve, singular, rank):
    # theory 2.11
    problem = singular()
    assert np.linalg.matrix_rank(problem.delassus, tol=1e-8) == rank
    impulse = solve(problem)
    assert law_residuals(problem, impulse).ncp <= 1e-8
    # energies here are of order 20 J: 5e-8 of it
    assert signorini_coulomb_violation(problem, impulse) <= 1e-6


@pytest.mark.parametrize('ratio', [1e1, 1e3, 1e6])
def test_stack_heavy_on_top_carries_its_weight(ratio):
    problem, mass = box_stack(ratio)
    solution = Ncp().solve(problem)
    bottom = solution.impulse[2:12:3].sum() / problem.time_step
    assert solution.solver.converged
    assert bottom == pytest.approx(mass.sum() * GRAVITY, rel=1e-7)
    assert np.abs(next_velocity(problem, solution.impulse)).max() <= 1e-8


def test_stack_without_fallback_reports_honestly():
    problem, _ = box_stack(1e6)
    solution = Ncp(max_points=0, max_sweeps=1, max_admm_iterations=0).solve(problem)
    assert solution.solver.status is SolverStatus.MAX_ITERATIONS
    assert not solution.solver.converged
    assert law_residuals(problem, solution.impulse).ncp > 1e-8


def test_fallback_says_so():
    problem, _ = box_stack(1e6)
    solution = Ncp(max_points=0, max_sweeps=3).solve(problem)
    assert solution.solver.status is SolverStatus.CONVERGED_BY_FALLBACK


def test_warm_start_changes_iterations_not_velocity():
    problem, _ = box_stack(1e3)
    cold = Ncp().solve(problem)
    warm = Ncp().solve(problem, cold.impulse)
    assert warm.solver.iterations < cold.solver.iterations
    u, w = next_velocity(problem, cold.impulse), next_velocity(problem, warm.impulse)
    assert np.abs(u - w).max() <= 1e-9


def test_dry_friction_rows_stop_or_saturate():
    # one axle, inertia 1: the box [−0.1, 0.1] N m s stops 0.05 rad/s and slows 1 rad/s
    stopped = ContactProblem.from_delassus([[1.0]], [0.05], [], lower=[-0.1], upper=[0.1])
    slowed = ContactProblem.from_delassus([[1.0]], [1.0], [], lower=[-0.1], upper=[0.1])
    assert Ncp().solve(stopped).impulse == pytest.approx([-0.05], abs=1e-12)
    assert Ncp().solve(slowed).impulse == pytest.approx([-0.1], abs=1e-12)


def test_saved_problem_is_the_same(tmp_path):
    problem, _ = box_stack(1e1, boxes=2)
    problem.save(tmp_path / 'failing_step.npz')
    again = ContactProblem.load(tmp_path / 'failing_step.npz')
    assert np.array_equal(Ncp().solve(problem).impulse, Ncp().solve(again).impulse)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'friction': [-0.1, 0.5]}, 'friction'),
        ({'delassus': np.ones((6, 5))}, 'delassus'),
        ({'g': np.full(6, np.nan)}, 'finite'),
        ({'delassus': np.triu(np.ones((6, 6)))}, 'symmetric'),
        ({'friction': [0.5]}, 'shape'),
    ],
)
def test_bad_problems_are_refused(change, message):
    good = {'delassus': np.eye(6), 'g': np.zeros(6), 'friction': [0.5, 0.5]}
    with pytest.raises(InvalidInput, match=message):
        ContactProblem.from_delassus(**{**good, **change})


def test_missing_problem_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match='nowhere'):
        ContactProblem.load(tmp_path / 'nowhere.npz')


@pytest.mark.parametrize(
    ('parameter', 'value'),
    [('tolerance', 0.0), ('tolerance', np.nan), ('max_sweeps', 0), ('max_sweeps', 1.5)],
)
def test_bad_parameters_name_themselves(parameter, value):
    with pytest.raises(InvalidInput, match=f'NcpParameters.{parameter}'):
        Ncp(**{parameter: value})
