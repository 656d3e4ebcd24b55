"""The numerical kernels against numpy and against their own definitions."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contact_sim import load_robot
from contact_sim.dynamics.terms import DynamicsTerms
from contact_sim.solvers.cone import largest_eigenvalue, project_cone
from contact_sim.solvers.tree import factorise, solve_factor, solve_transposed_columns

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


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8', 'quadruped'])
def test_tree_factor_solves_with_the_mass_matrix(name):
    robot = load_robot(name)
    terms = DynamicsTerms(robot.pinocchio_model, np.array([0.0, 0.0, -9.81]))
    terms.update_configuration(robot.reference_configuration('standing'))
    lower = np.tril(terms.inertia)
    M = lower + np.tril(lower, -1).T
    L = lower.copy()
    factorise(L, terms.dof_parent)
    L = np.tril(L)
    assert np.allclose(L.T @ L, M, rtol=0, atol=1e-12 * np.abs(M).max())
    X = np.random.default_rng(1).standard_normal((robot.nv, 5))
    Y = X.copy()
    solve_transposed_columns(L, terms.dof_parent, Y)
    columns = [Y[:, k].copy() for k in range(5)]
    for column in columns:
        solve_factor(L, terms.dof_parent, column)
    assert np.allclose(M @ np.array(columns).T, X, rtol=0, atol=1e-9)
