"""Cones and intervals: the fast path, Gauss-Seidel and ADMM against each other and against QPs."""

import numpy as np
import pytest
from cone_entry import solve_cones
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import interpreted
from scipy.optimize import lsq_linear

from contact_sim.solvers._cone_methods import (
    admm,
    fill_newton_system,
    guess_active_set,
    take_step,
)
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    LARGEST_SCALE,
    NONFINITE,
    Rows,
    cone_work,
)
from contact_sim.solvers._cone_solver import solve_cones as solve_with_scratch
from contact_sim.solvers._soft_newton import minimise_linear as compiled_newton
from contact_sim.solvers._soft_newton import newton_work as compiled_newton_work

minimise_linear, newton_work = interpreted()(compiled_newton), interpreted()(compiled_newton_work)
TOLERANCE = 1e-10
LIMITS = 50, 50, 1000
BOUNDS = {
    'box': lambda size: (-size, size),
    'shifted box': lambda size: (0.5 * size, 2.0 * size),
    'at least': lambda size: (0.0, np.inf),
    'at most': lambda size: (-np.inf, 0.0),
    'bilateral': lambda size: (-np.inf, np.inf),
    'nothing': lambda size: (0.0, 0.0),
}


def random_rows(seed, contacts, kinds, rank=None):
    """Return a problem with `contacts` cones and one scalar row of each of `kinds`."""
    rng = np.random.default_rng(seed)
    n = 3 * contacts + len(kinds)
    A = rng.standard_normal((n, n + 2 if rank is None else rank))
    g = rng.standard_normal(n) if rank is None else A @ rng.standard_normal(rank)
    bounds = [BOUNDS[kind](rng.uniform(0.0, 0.3)) for kind in kinds]
    lower, upper = np.array(bounds, dtype=float).reshape(-1, 2).T.copy()
    mu = rng.uniform(0.0, 1.2, contacts) * (rng.uniform(size=contacts) < 0.9)
    return Rows(A @ A.T, g, mu, lower, upper)


def natural_map(rows, impulse, associated):
    """Return the natural map and the size of a typical impulse [N s], by numpy."""
    G, g, mu, nc = rows.delassus, rows.g, rows.friction, len(rows.friction)
    w, rho, moved = G @ impulse + g, 1.0 / np.diag(G), impulse.copy()
    for r, friction in zip(range(0, 3 * nc, 3), mu, strict=True):
        block = slice(r, r + 3)
        rho[block] = 1.0 / np.linalg.eigvalsh(G[block, block])[-1]
        shift = (1.0 - associated) * friction * np.hypot(*w[r : r + 2])
        aim = impulse[block] - rho[r] * (w[block] + [0.0, 0.0, shift])
        slip, normal = np.hypot(*aim[:2]), aim[2]
        if slip > friction * normal:  # outside the cone: onto it, or to its apex
            normal = max(0.0, (normal + friction * slip) / (1.0 + friction**2))
            scale = friction * normal / slip if slip > 0.0 else 0.0
            aim = np.array([*scale * aim[:2], normal])
        moved[block] = aim
    rest = slice(3 * nc, None)
    moved[rest] = np.clip(impulse[rest] - rho[rest] * w[rest], rows.lower, rows.upper)
    change = impulse - moved
    contacts = np.linalg.norm(change[: 3 * nc].reshape(nc, 3), axis=1)
    alone = np.abs(rho * g).max(initial=0.0)
    size = max(min(np.abs(impulse).max(initial=0.0), LARGEST_SCALE * alone), alone)
    return max([0.0, *contacts, *np.abs(change[rest])]), size


def fast(rows, impulse, associated):
    code, _, residual = solve_cones(rows, impulse, TOLERANCE, LIMITS, associated)
    return code in (CONVERGED, CONVERGED_BY_FALLBACK), residual


def gauss_seidel(rows, impulse, associated):
    code, _, residual = solve_cones(rows, impulse, TOLERANCE, (0, 2000, 0), associated)
    return code == CONVERGED, residual


def by_admm(rows, impulse, associated):
    _, residual, converged = admm(rows, impulse, TOLERANCE, 50000, associated)
    return converged, residual


def by_modes(rows, impulse, associated):
    code, _, residual = solve_cones(rows, impulse, TOLERANCE, (0, 0, 0), associated)
    return code == CONVERGED, residual


def by_points(rows, impulse, associated):
    code, _, residual = solve_cones(rows, impulse, TOLERANCE, (50, 0, 0), associated)
    return code == CONVERGED, residual


SOLVERS = (fast, gauss_seidel, by_points, by_admm, by_modes)
kinds = st.lists(st.sampled_from(sorted(BOUNDS)), max_size=5)
seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(0, 4), kinds, st.sampled_from([0.0, 1.0]), st.booleans())
@settings(deadline=None, max_examples=300)
def test_what_a_solver_accepts_passes_the_judge(seed, contacts, kinds, associated, warm):
    rows = random_rows(seed, contacts, kinds)
    n = len(rows.g)
    guess = np.random.default_rng(seed).standard_normal(n) if warm else np.zeros(n)
    for solver in SOLVERS:
        impulse = guess.copy()
        converged, residual = solver(rows, impulse, associated)
        assert np.isfinite(impulse).all(), solver.__name__
        judged, scale = natural_map(rows, impulse, associated)
        assert judged == pytest.approx(residual, rel=1e-3, abs=1e-13 * (1.0 + scale))
        if converged:
            assert judged <= 1.01 * TOLERANCE * scale, solver.__name__


@pytest.mark.parametrize('associated', [0.0, 1.0])
def test_solvers_converge_to_the_same_velocity(associated):
    done, names = dict.fromkeys(SOLVERS, 0), sorted(BOUNDS)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        chosen = [names[i] for i in rng.integers(0, len(names), rng.integers(0, 6))]
        rows = random_rows(seed, int(rng.integers(0, 4)), chosen)
        velocity = {}
        for solver in SOLVERS:
            impulse = np.zeros(len(rows.g))
            if solver(rows, impulse, associated)[0]:
                done[solver] += 1
                velocity[solver] = rows.delassus @ impulse + rows.g
        if associated == 1.0:  # with Coulomb's law there may be several answers
            for w in velocity.values():
                assert np.allclose(w, next(iter(velocity.values())), rtol=0, atol=1e-7), seed
    assert done[fast] >= 148
    assert done[by_admm] >= 140
    assert done[gauss_seidel] >= 130


@given(seeds, st.integers(1, 3), kinds.filter(lambda kinds: 'bilateral' in kinds))
@settings(deadline=None, max_examples=100)
def test_bilateral_rows_equal_their_elimination(seed, contacts, kinds):
    rows = random_rows(seed, contacts, kinds)
    held = np.isinf(np.concatenate([np.zeros(3 * contacts), rows.upper - rows.lower]))
    held[3 * contacts :] &= np.isinf(rows.lower) & np.isinf(rows.upper)
    rest, G = ~held, rows.delassus
    gain = np.linalg.solve(G[np.ix_(held, held)], G[held]).T
    reduced = (G - gain @ G[held])[np.ix_(rest, rest)]
    keep = rest[3 * contacts :]
    g = (rows.g - gain @ rows.g[held])[rest]
    small = Rows(reduced, g, rows.friction, rows.lower[keep].copy(), rows.upper[keep].copy())
    impulse, fewer = np.zeros(len(rows.g)), np.zeros(len(small.g))
    assert fast(rows, impulse, 1.0)[0]
    assert fast(small, fewer, 1.0)[0]
    size = 1.0 + np.abs(impulse).max()
    tolerance = 1e-9 * np.linalg.cond(G) * size
    w = G @ impulse + rows.g
    assert np.abs(w[held]).max() <= 1e-8 * np.abs(G).max() * size
    assert np.allclose(impulse[rest], fewer, rtol=0, atol=tolerance)
    exact = -np.linalg.solve(G[np.ix_(held, held)], rows.g[held] + G[np.ix_(held, rest)] @ fewer)
    assert np.allclose(impulse[held], exact, rtol=0, atol=tolerance)


def bounded_least_squares(G, g, lower, upper):
    """Minimise ½ λᵀ G λ + gᵀ λ over a box by scipy."""
    root = np.linalg.cholesky(G).T
    answer = lsq_linear(
        root, -np.linalg.solve(root.T, g), (lower, upper), method='bvls', tol=1e-14
    )
    return answer.x


@given(seeds, st.lists(st.sampled_from(sorted(set(BOUNDS) - {'nothing'})), min_size=1, max_size=9))
@settings(deadline=None, max_examples=60)
def test_intervals_alone_are_a_quadratic_program(seed, kinds):
    rows = random_rows(seed, 0, kinds)
    exact = bounded_least_squares(rows.delassus, rows.g, rows.lower, rows.upper)
    for solver in (fast, gauss_seidel, by_points, by_admm):
        impulse = np.zeros(len(rows.g))
        converged, _ = solver(rows, impulse, 0.0)
        if converged or solver is fast:
            tolerance = 1e-8 * np.linalg.cond(rows.delassus) * (1.0 + np.abs(exact).max())
            assert np.allclose(impulse, exact, rtol=0, atol=tolerance), solver.__name__


@given(seeds, st.lists(st.sampled_from(sorted(set(BOUNDS) - {'nothing'})), min_size=1, max_size=9))
@settings(deadline=None, max_examples=60)
def test_compliant_intervals_are_a_quadratic_program(seed, kinds):
    rows, rng = random_rows(seed, 0, kinds), np.random.default_rng(seed)
    n = len(rows.g)
    R, v_hat, impulse = rng.uniform(0.01, 2.0, n), rng.standard_normal(n), np.zeros(n)
    _, _, converged = minimise_linear(
        rows, v_hat, R, impulse, newton_work(len(R)), 1e-12, 200, False
    )
    G, g = rows.delassus + np.diag(R), rows.g - v_hat
    exact = bounded_least_squares(G, g, rows.lower, rows.upper)
    assert converged
    assert np.allclose(impulse, exact, rtol=0, atol=1e-8 * (1.0 + np.abs(exact).max()))


def compliant_pyramids(seed, contacts, kinds):
    """Solve random pyramids n ± μ t_i: steps, γ, and γ of the program of edges."""
    rows, rng = random_rows(seed, contacts, kinds), np.random.default_rng(seed)
    mu = np.maximum(rows.friction, 1e-5)
    rows = Rows(rows.delassus, rows.g, mu, rows.lower, rows.upper)
    n, m = len(rows.g), 4 * contacts
    R, v_hat = rng.uniform(0.01, 2.0, n), rng.standard_normal(n)
    D, edge_R = np.zeros((n, m + len(kinds))), np.zeros(m + len(kinds))
    for i in range(contacts):
        R[3 * i : 3 * i + 3] = R[3 * i] * mu[i] ** 2  # as MuJoCo's
        sides = mu[i] * np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
        D[3 * i : 3 * i + 3, 4 * i : 4 * i + 4] = np.vstack([sides, np.ones(4)])
        edge_R[4 * i : 4 * i + 4] = R[3 * i]
    D[3 * contacts :, m:], edge_R[m:] = np.eye(len(kinds)), R[3 * contacts :]
    lower, upper = np.zeros(m), np.full(m, np.inf)
    beta = bounded_least_squares(
        D.T @ rows.delassus @ D + np.diag(edge_R), D.T @ (rows.g - v_hat),
        np.concatenate([lower, rows.lower]), np.concatenate([upper, rows.upper]),
    )  # fmt: skip
    impulse, work = rng.standard_normal(n), newton_work(n)
    steps, _, converged = minimise_linear(rows, v_hat, R, impulse, work, 1e-12, 200, True)
    assert converged
    return steps, impulse, D @ beta


@given(
    seeds,
    st.integers(1, 4),
    st.lists(st.sampled_from(sorted(set(BOUNDS) - {'nothing'})), max_size=3),
)
@settings(deadline=None, max_examples=200)
def test_compliant_pyramids_are_a_quadratic_program_of_their_edges(seed, contacts, kinds):
    _, impulse, exact = compliant_pyramids(seed, contacts, kinds)
    assert np.allclose(impulse, exact, rtol=0, atol=1e-7 * (1.0 + np.abs(exact).max()))


def test_newton_ends_once_it_knows_which_edges_push():
    """The cost is a parabola per set of edges: with a wrong derivative it takes hundreds."""
    steps = [compliant_pyramids(seed, 4, ['box'])[0] for seed in range(100)]
    assert np.median(steps) <= 8
    assert max(steps) <= 20


@pytest.mark.parametrize('solver', [fast, gauss_seidel, by_points, by_admm])
def test_redundant_bilateral_rows_are_held_without_nan(solver):
    for seed in range(20):
        rows = random_rows(seed, 1, ['bilateral'] * 6, rank=5)
        impulse = np.zeros(9)
        converged, _ = solver(rows, impulse, 0.0)
        assert converged, seed
        w = rows.delassus @ impulse + rows.g
        assert np.abs(w[3:]).max() <= 1e-8 * (1.0 + np.abs(impulse).max()), seed


def test_the_answer_as_guess_hardly_changes():
    for seed in range(40):
        rows = random_rows(seed, 3, ['box', 'at least', 'bilateral'])
        impulse = np.zeros(len(rows.g))
        if fast(rows, impulse, 0.0)[0]:
            again = impulse.copy()
            code, iterations, _ = solve_cones(rows, again, TOLERANCE, LIMITS, 0.0)
            assert (code, iterations) == (CONVERGED, 0)
            assert again == pytest.approx(impulse, rel=0.0, abs=TOLERANCE * np.abs(impulse).max())


@pytest.mark.parametrize('associated', [0.0, 1.0])
def test_the_modes_of_the_step_before_are_enough_for_the_next(associated):
    solved = asked = 0
    for seed in range(100):
        rows = random_rows(seed, 3, ['box', 'at least', 'bilateral'])
        impulse = np.zeros(len(rows.g))
        if fast(rows, impulse, associated)[0]:
            rows.g[:] += 1e-3 * np.random.default_rng(seed).standard_normal(len(rows.g))
            asked += 1
            solved += by_modes(rows, impulse, associated)[0]
    assert asked >= 95
    assert solved >= 0.95 * asked


@interpreted()
@pytest.mark.parametrize('associated', [0.0, 1.0])
def test_the_matrix_of_the_modes_is_the_derivative_of_their_equations(associated):
    # one contact slips against the direction of its friction, one sticks, one row is held
    for seed in range(10):
        rows = random_rows(seed, 2, ['bilateral'])
        rows.friction[:] = 0.3, 0.8
        impulse = np.array([0.3, 0.1, np.hypot(0.3, 0.1) / 0.3, 0.05, 0.02, 0.9, 0.2])
        m, matrix, _ = equations(rows, impulse, associated)
        assert m == 6
        for unknown in range(m):
            step, values = np.zeros(7), []
            for step[unknown] in (1e-6, -1e-6):
                moved, work = impulse.copy(), cone_work(7)
                guess_active_set(rows, moved, work)
                take_step(rows, moved, work._replace(step=step.copy()), m, 1.0)
                values.append(equations(rows, moved, associated)[2])
            column = (values[0] - values[1]) / 2e-6
            assert np.allclose(matrix[:, unknown], column, rtol=1e-6, atol=1e-6), seed


def equations(rows, impulse, associated):
    """Return (number of unknowns, matrix of the Newton step, values of the equations)."""
    work, w = cone_work(len(impulse)), rows.delassus @ impulse + rows.g
    m, slips = guess_active_set(rows, impulse, work)
    assert slips
    fill_newton_system(rows, impulse, w, work, m, associated)
    return m, work.matrix[:m, :m], -work.step[:m]


@interpreted()
def test_scratch_may_be_larger_than_the_problem():
    rows, exact, roomy = random_rows(5, 3, ['box', 'bilateral']), np.zeros(11), np.zeros(11)
    solve_with_scratch(rows, exact, cone_work(11), TOLERANCE, LIMITS, 0.0)
    work = cone_work(20)
    for array in work[:9]:
        array[...] = np.nan
    solve_with_scratch(rows, roomy, work, TOLERANCE, LIMITS, 0.0)
    assert np.array_equal(exact, roomy)


@pytest.mark.parametrize('where', ['g', 'impulse'])
def test_not_a_number_is_a_status(where):
    rows, impulse = random_rows(1, 2, ['bilateral', 'at least']), np.zeros(8)
    (rows.g if where == 'g' else impulse)[2] = np.nan
    code, _, residual = solve_cones(rows, impulse, TOLERANCE, LIMITS, 0.0)
    assert code == NONFINITE
    assert np.isnan(residual)
    assert not impulse.any()
