"""The numerical kernels against numpy and against their own definitions."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contact_sim.solvers._cone_problem import largest_eigenvalue, project_cone
from contact_sim.solvers._dense import eliminate, solve_eliminated, solve_symmetric

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
numbers = st.floats(-10.0, 10.0)
frictions = st.floats(0.0, 2.0)


@given(numbers, numbers, numbers, frictions)
@example(0.0, 0.0, -1.0, 0.0)
def test_projection_splits_a_vector_into_cone_and_polar_cone(t1, t2, n, mu):
    x = np.array([t1, t2, n])
    y = np.array(project_cone(t1, t2, n, mu))
    rest = x - y  # Moreau: y in K, x − y in the polar cone, orthogonal to each other
    scale = 1.0 + np.linalg.norm(x)
    assert y[2] >= 0.0
    assert np.hypot(y[0], y[1]) <= mu * y[2] + 1e-12 * scale
    assert mu * np.hypot(rest[0], rest[1]) <= -rest[2] + 1e-12 * scale
    assert abs(y @ rest) <= 1e-12 * scale**2


@given(numbers, numbers, numbers, frictions)
def test_projection_is_idempotent(t1, t2, n, mu):
    y = project_cone(t1, t2, n, mu)
    assert np.allclose(project_cone(*y, mu), y, atol=1e-12)


@given(st.lists(numbers, min_size=9, max_size=9))
def test_largest_eigenvalue_equals_numpy(entries):
    A = np.array(entries).reshape(3, 3)
    G = A @ A.T
    exact = np.linalg.eigvalsh(G)[-1]
    assert largest_eigenvalue(G, 0) == pytest.approx(exact, rel=1e-7, abs=1e-12)


@given(st.integers(1, 14), st.integers(0, 2**32 - 1))
def test_dense_systems_are_solved_as_by_numpy(m, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((m, m)) + 3.0 * np.eye(m), rng.standard_normal(m)
    room = np.full((m + 2, m + 2), np.nan)  # a system in the front of larger arrays
    for matrix, solve in ((A, eliminate), (A @ A.T + np.eye(m), solve_symmetric)):
        room[:m, :m] = matrix if solve is eliminate else np.triu(matrix)
        x = np.append(b, np.nan)
        solve(room, x, m)
        size = np.abs(matrix).max() * np.abs(x[:m]).max() + np.abs(b).max()
        assert np.allclose(matrix @ x[:m], b, rtol=0, atol=1e-11 * size)
        assert np.isnan(x[m])
    # again, with the factors of the last
    y = np.append(2.0 * b, np.nan)
    solve_eliminated(room, y, m)
    assert y[:m] == pytest.approx(2.0 * x[:m], rel=1e-9, abs=1e-11)
