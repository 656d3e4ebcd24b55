"""Factor and Delassus matrix along the kinematic tree against dense numpy, on random trees."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim import load_robot
from contact_sim.solvers._delassus import (
    EVERYWHERE,
    add_row_forces,
    delassus,
    delassus_diagonal,
    factorise,
    fill_row_products,
    limbs_of,
    solve,
    solve_factor,
    solve_transposed,
)

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
EPS = np.finfo(float).eps


def branch(parent, leaf):
    """Dofs from `leaf` to the root; all of them where the row may have entries anywhere."""
    if leaf == EVERYWHERE:
        return list(range(len(parent)))
    dofs = []
    while leaf >= 0:
        dofs.append(leaf)
        leaf = parent[leaf]
    return dofs


@st.composite
def trees(draw):
    """Return (parent, M): a random tree and a mass matrix with its sparsity, some dofs heavy."""
    nv = draw(st.integers(1, 20))
    chains = draw(st.booleans())  # long branches as of legs, or bushes
    parent = np.array(
        [draw(st.integers(max(-1, k - 3) if chains else -1, k - 1)) for k in range(nv)],
        dtype=np.int64,
    )
    roots = draw(st.sampled_from([(), (0,), (0,), (0, 9), (3,), (0, 6, 12)]))
    for first in roots:
        base = np.arange(first, min(first + 6, nv))  # six dofs on which those behind them hang
        parent[base] = base - 1
        parent[first : first + 1] = -1
        parent[first + 6 :] = np.maximum(parent[first + 6 :], first + 5)
    for k in draw(st.lists(st.integers(6, 20), max_size=2)):  # trees of one dof between the others
        parent[k : k + 1] = -1
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    L = np.zeros((nv, nv))
    for k in range(nv):
        L[k, branch(parent, k)] = rng.standard_normal(len(branch(parent, k)))
        L[k, k] = rng.uniform(0.3, 1.5)
    armature = 10.0 ** rng.uniform(-3.0, draw(st.sampled_from([-3.0, 4.0])), nv)
    return parent, L.T @ L + np.diag(armature)


@given(trees(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_factor_and_solution_equal_numpy(tree, seed):
    parent, M = tree
    nv, tree = len(M), (parent, *limbs_of(parent))
    above = np.triu(np.full((nv, nv), np.nan), 1)  # neither read nor written
    factor = np.tril(M) + above
    factorise(factor, tree)
    assert np.array_equal(np.isnan(factor), np.isnan(above))
    L = np.tril(factor, -1) + np.eye(nv)
    D = np.diag(1.0 / np.diag(factor))
    assert np.allclose(L.T @ D @ L, M, rtol=0, atol=50 * nv * EPS * np.abs(M).max())
    for k in range(nv):  # the sparsity of the tree stays
        others = sorted(set(range(nv)) - set(branch(parent, k)))
        assert not L[k, others].any()
    b = np.random.default_rng(seed).standard_normal(nv)
    x, halves = b.copy(), b.copy()
    solve(factor, tree, x)
    solve_transposed(factor, tree, halves)
    assert np.allclose(L.T @ halves, b, atol=1e-9 * (1.0 + np.abs(halves).max()))
    solve_factor(factor, tree, halves)
    assert np.array_equal(x, halves)
    size = np.abs(M).max() * np.abs(x).max() + 1.0
    assert np.allclose(M @ x, b, rtol=0, atol=1e3 * nv * EPS * size)


def long_trees():
    """Parents of trees with long limbs: on a trunk, alone, several, with branches, in turn."""
    run = np.arange(-1, 59)
    branched = run.copy()
    branched[[30, 45, 50]] = 12, 40, 3
    joined = run.copy()
    joined[[20]] = -1
    no_trunk = run.copy()
    no_trunk[2] = 0
    in_turn = np.arange(-2, 58).clip(min=-1)
    return [run, branched, joined, no_trunk, in_turn]


@pytest.mark.parametrize('parent', long_trees())
def test_long_limbs_equal_elimination_of_one_dof_at_a_time_to_the_bit(parent):
    parent, nv = parent.astype(np.int64), len(parent)
    rng = np.random.default_rng(4)
    L = np.zeros((nv, nv))
    for k in range(nv):
        L[k, branch(parent, k)] = rng.standard_normal(len(branch(parent, k)))
    factor = np.tril(L.T @ L + np.eye(nv))
    plain, x = factor.copy(), rng.standard_normal(nv)
    y, tree = x.copy(), (parent, *limbs_of(parent))
    factorise(factor, tree)
    solve(factor, tree, x)
    for k in range(nv - 1, -1, -1):
        inverse, above = 1.0 / plain[k, k], branch(parent, k)[1:]
        shares = {i: plain[k, i] * inverse for i in above}
        for i in above:
            for j in branch(parent, i):
                plain[i, j] -= shares[i] * plain[k, j]
        for i in above:
            plain[k, i] = shares[i]
        plain[k, k] = inverse
    assert np.array_equal(factor, plain)
    for i in range(nv - 1, -1, -1):
        for j in branch(parent, i)[1:]:
            y[j] -= plain[i, j] * y[i]
    trunk = 6 if limbs_of(parent)[1] else 0
    for i in range(nv):
        y[i] *= plain[i, i]
        limb = [j for j in branch(parent, i)[1:] if j >= trunk or i < trunk]
        rest = [j for j in branch(parent, i)[1:] if j < trunk <= i]
        for j in [*(limb if i >= trunk else limb[::-1]), *rest[::-1]]:
            y[i] -= plain[i, j] * y[j]
    assert np.array_equal(x, y)


@st.composite
def row_leaves(draw, nv, parent):
    """Return last dofs of the rows: contacts, joints of a leg, single rows, rows anywhere."""
    leaves = []
    for kind in draw(st.lists(st.sampled_from(['contact', 'chain', 'single', 'any']), max_size=6)):
        leaf = draw(st.integers(-1, nv - 1))
        if kind == 'contact':
            leaves += [leaf] * 3
        elif kind == 'chain':
            leaves += branch(parent, leaf)[2::-1]
        else:
            leaves.append(leaf if kind == 'single' else EVERYWHERE)
    return leaves


@given(st.data())
@settings(deadline=None)
def test_delassus_matrix_equals_numpy(data):
    parent, M = data.draw(trees())
    nv = len(M)
    leaves = data.draw(row_leaves(nv, parent))
    n, rng = len(leaves), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    J = np.zeros((n, nv))
    for r, leaf in enumerate(leaves):
        J[r, branch(parent, leaf)] = rng.standard_normal(len(branch(parent, leaf)))
    row_of = rng.permutation(n + 2)[:n].astype(np.int64)  # columns of others lie between
    columns = rng.standard_normal((nv, n + 2))
    columns[:, row_of] = J.T
    factor = np.tril(M)
    for k in range(nv):  # what lies between branches is not read
        factor[k, sorted(set(range(k)) - set(branch(parent, k)))] = np.nan
    factorise(factor, (parent, *limbs_of(parent)))
    Y, G = np.full((nv, n), np.nan), np.full((n, n), np.nan)
    row_leaf = np.array([*leaves, 7], dtype=np.int64)
    delassus(columns, factor, (parent, *limbs_of(parent)), row_of, row_leaf, n, Y, G)
    exact = J @ np.linalg.solve(M, J.T)
    bound = 1e3 * nv * EPS * np.linalg.cond(M) * np.abs(exact).max(initial=0.0)
    assert np.allclose(G, exact, rtol=0, atol=bound + 1e-300)
    assert np.array_equal(G, G.T)
    # accelerations of the rows and, with forces f of the rows, of the dofs, from half a solve each
    tree, b, f = (parent, *limbs_of(parent)), rng.standard_normal(nv), rng.standard_normal(n)
    x, of_rows = b.copy(), np.full(n, np.nan)
    solve_transposed(factor, tree, x)
    fill_row_products((factor, tree, row_leaf, Y), x, of_rows)
    free = np.linalg.solve(M, b)
    size = np.abs(J).sum(axis=1).max(initial=0.0) * np.abs(free).max()
    assert np.allclose(of_rows, J @ free, rtol=0, atol=1e3 * nv * EPS * np.linalg.cond(M) * size)
    add_row_forces((factor, tree, row_leaf, Y), f, x)
    solve_factor(factor, tree, x)
    pushed = np.linalg.solve(M, b + J.T @ f)
    size = np.abs(np.linalg.inv(M)).max() * (np.abs(b).max() + np.abs(J.T @ f).max(initial=0.0))
    assert np.allclose(x, pushed, rtol=0, atol=1e3 * nv * EPS * np.linalg.cond(M) * size)
    # the diagonal alone
    Y[:], diagonal, row_leaf = np.nan, np.full((n, n), np.nan), np.array([*leaves, 7], np.int64)
    delassus_diagonal(
        columns, factor, (parent, *limbs_of(parent)), row_of, row_leaf, n, Y, diagonal
    )
    assert np.allclose(np.diag(diagonal), np.diag(exact), rtol=0, atol=bound + 1e-300)
    assert np.isnan(diagonal[~np.eye(n, dtype=bool)]).all()


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8', 'quadruped'])
def test_factor_solves_with_the_mass_matrix_of_a_robot(name):
    robot = load_robot(name)
    model = robot.pinocchio_model
    data = model.createData()
    q = robot.reference_configuration('standing')
    lower = np.tril(np.array(pin.crba(model, data, q)).T)
    parent = np.array(list(data.parents_fromRow)[: model.nv], dtype=np.int64)
    M = lower + np.tril(lower, -1).T
    factor, tree = lower.copy(), (parent, *limbs_of(parent))
    factorise(factor, tree)
    x = np.random.default_rng(1).standard_normal(robot.nv)
    y = x.copy()
    solve(factor, tree, y)
    assert np.allclose(M @ y, x, rtol=0, atol=1e-9)
