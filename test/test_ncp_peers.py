"""The methods of other engines under ncp: what they get right, and where they fail."""

import numpy as np
import pytest
from problems import GRAVITY, box_stack, random_problem
from robots import cube, pose

from contact_sim import ContactProblem, InvalidInput, Ncp, Simulator, law_residuals

SEEDS = range(60)


@pytest.mark.parametrize('seed', SEEDS)
def test_staggered_projections_end_at_the_exact_law(seed):
    problem = random_problem(seed)
    solution = Ncp(solver='staggered', max_sweeps=5000).solve(problem)
    assert solution.solver.converged
    assert law_residuals(problem, solution.impulse).ncp <= 1e-9


def test_projected_gauss_seidel_is_exact_where_it_converges():
    converged = 0
    for seed in SEEDS:
        problem = random_problem(seed)
        solution = Ncp(solver='pgs', max_sweeps=5000).solve(problem)
        if solution.solver.converged:
            converged += 1
            assert law_residuals(problem, solution.impulse).ncp <= 1e-8
    assert converged >= 0.8 * len(SEEDS)


@pytest.mark.parametrize(('ratio', 'share'), [(1e1, 1.0), (1e3, 0.719), (1e6, 0.0026)])
def test_projected_gauss_seidel_loses_heavy_stacks(ratio, share):
    # X8: share of the weight that reaches the bottom after 5 000 sweeps
    problem, mass = box_stack(ratio)
    solution = Ncp(solver='pgs', max_sweeps=5000).solve(problem)
    bottom = solution.impulse[2:12:3].sum() / problem.time_step
    assert bottom / (mass.sum() * GRAVITY) == pytest.approx(share, rel=0.02)
    assert not solution.solver.converged


def coupled_contact():
    """One sliding contact whose normal and tangent couple."""
    G = np.array([[5.0, -0.5, -1.2], [-0.5, 4.0, 0.8], [-1.2, 0.8, 6.0]])
    return ContactProblem.from_delassus(G, [1.5, 0.4, -1.0], [0.4])


def test_raisim_takes_the_least_energy_not_the_most_dissipation():
    problem = coupled_contact()
    raisim = Ncp(solver='raisim').solve(problem)
    exact = Ncp().solve(problem)
    assert raisim.solver.converged
    G, inverse = problem.delassus, np.linalg.inv(problem.delassus)

    def energy(impulse):
        w = G @ impulse + problem.g
        return 0.5 * w @ inverse @ w

    for impulse in (raisim.impulse, exact.impulse):
        w = G @ impulse + problem.g
        assert w[2] == pytest.approx(0.0, abs=1e-9)
        assert np.hypot(impulse[0], impulse[1]) == pytest.approx(0.4 * impulse[2], rel=1e-9)
    assert energy(raisim.impulse) < energy(exact.impulse) - 1e-9
    assert law_residuals(problem, exact.impulse).ncp <= 1e-10
    assert law_residuals(problem, raisim.impulse).ncp > 1e-4


def test_raisim_is_exact_where_normal_and_tangent_do_not_couple():
    problem = ContactProblem.from_delassus(np.diag([2.0, 2.0, 3.0]), [1.0, 0.5, -1.0], [0.3])
    raisim, exact = Ncp(solver='raisim').solve(problem), Ncp().solve(problem)
    assert raisim.impulse == pytest.approx(exact.impulse, abs=1e-7)


@pytest.mark.parametrize('solver', ['pgs', 'staggered'])
def test_sliding_cube_stops_at_the_right_place(solver):
    sim = Simulator(cube(), Ncp(solver=solver, max_sweeps=2000), friction=0.4)
    sim.reset(pose(z=0.1), np.array([1.0, 0, 0, 0, 0, 0]))
    for _ in range(400):
        sim.step(np.zeros(0))
    assert sim.q[0] == pytest.approx(0.12692126, rel=5e-3)


def test_unknown_solver_is_refused():
    with pytest.raises(InvalidInput, match=r'NcpParameters\.solver'):
        Ncp(solver='magic')
