"""Small quadratic programs and dense systems, against the conditions that define their answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from contact_sim.solvers._dense import eliminate_right_sides, solve_qp

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
TOLERANCE = 1e-9


def random_program(seed, n, m, spread):
    """Return H, g, C, lower and upper with limits around a point: some meet, some are one-sided.

    The unconstrained minimum lies far outside, so that many limits are active.
    """
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-spread, spread, size=n)
    H = root @ root.T + 1e-6 * np.eye(n)
    C = rng.normal(size=(m, n))
    C[rng.random(m) < 0.2] = C[0]  # rows that say the same
    inside = rng.normal(size=n)
    lower = C @ inside - rng.uniform(0.01, 1.0, size=m)
    upper = C @ inside + rng.uniform(0.01, 1.0, size=m)
    lower[rng.random(m) < 0.3] = -1e20
    return H, -H @ (10.0 * rng.normal(size=n)), C, lower, upper


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 32), st.floats(0.0, 1.0))
def test_the_answer_keeps_the_limits_and_only_limits_push_it(seed, n, m, spread):
    """Karush-Kuhn-Tucker: the gradient is a sum of normals of active limits that push inwards."""
    H, g, C, lower, upper = random_program(seed, n, m, spread)
    x, found = solve_qp(H, g, C, lower, upper, TOLERANCE)
    assert found
    reached = C @ x
    assert (reached <= upper + 1e-7).all()
    assert (reached >= lower - 1e-7).all()
    at_upper, at_lower = reached > upper - 1e-7, reached < lower + 1e-7
    normals = np.concatenate([-C[at_upper], C[at_lower]]).T
    gradient = H @ x + g
    scale = max(1.0, np.abs(g).max())
    pushes = linprog(
        np.repeat([0.0, 1.0], [normals.shape[1], 2 * n]),
        A_eq=np.hstack([normals, np.eye(n), -np.eye(n)]),
        b_eq=gradient / scale,
        bounds=(0.0, None),
    )
    unexplained = pushes.x[normals.shape[1] :].sum()
    assert unexplained <= 1e-6


def test_equations_are_met():
    """Of all points with x + y + z = 3 and x = y, (1, 1, 1) is nearest to the origin."""
    C = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]])
    b = np.array([3.0, 0.0])
    x, found = solve_qp(np.eye(3), np.zeros(3), C, b, b, TOLERANCE)
    assert found
    np.testing.assert_allclose(x, 1.0, atol=1e-14)


def test_an_active_limit_is_let_go_again():
    """From (2, 0.6), y ≤ 0.5 is first exceeded least; in the end only x + y ≤ 1 holds."""
    C = np.array([[1.0, 1.0], [0.2, 1.0]])
    x, found = solve_qp(
        np.eye(2), -np.array([2.0, 0.6]), C, np.full(2, -1e20), np.array([1.0, 0.5]), TOLERANCE
    )
    assert found
    np.testing.assert_allclose(x, [1.2, -0.2], atol=1e-14)


def test_limits_that_contradict_each_other_are_reported():
    rng = np.random.default_rng(3)
    for n in (1, 3, 12):
        C = rng.normal(size=(n + 2, n))
        C[-1] = -C[:-1].sum(axis=0)
        upper = np.full(n + 2, -0.1)  # the rows sum to zero, their limits to less
        _, found = solve_qp(
            np.eye(n), rng.normal(size=n), C, np.full(n + 2, -1e20), upper, TOLERANCE
        )
        assert not found


@pytest.mark.parametrize('H', [-np.eye(2), np.full((2, 2), np.nan), np.zeros((2, 2))])
def test_a_cost_without_minimum_is_reported(H):
    limits = np.eye(2), -np.ones(2), np.ones(2)
    assert not solve_qp(H, np.ones(2), *limits, TOLERANCE)[1]


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 13))
def test_elimination(seed, n, m):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
    A[rng.random((n, n)) < 0.3] = 0.0
    A += np.eye(n)[rng.permutation(n)]  # zeros on the diagonal: rows have to change places
    expected = np.linalg.solve(A, B)
    X = B.copy()
    assert eliminate_right_sides(A.copy(), X)
    tolerance = 1e-13 * np.linalg.cond(A) * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(X, expected, atol=tolerance)


def test_singular_systems_are_reported():
    assert not eliminate_right_sides(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(2))
    assert not eliminate_right_sides(np.zeros((3, 3)), np.eye(3))
