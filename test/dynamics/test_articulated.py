"""Articulated bodies against dense algebra with the mass matrix of Pinocchio, on random trees."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from dynamics.test_rigid_body import (
    SUPPORTED,
    joint_of,
    placement,
    random_state,
    random_tree,
    terms_of,
)

from contact_sim.arrays._fields import BASE_NUMBERS, BODY_NUMBERS, FACTOR_NUMBERS
from contact_sim.dynamics._articulated import (
    articulate,
    base_columns,
    bodies_energy,
    half_solves,
    inertia_diagonal,
    inertia_product,
    is_deep,
    products,
    solve_articulated,
)
from contact_sim.solvers._delassus import EVERYWHERE

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
RELATIVE = 1e-10


def heavy_tree(seed):
    """Return a model of up to eight joints, each of whose bodies has a mass."""
    rng = np.random.default_rng(seed)
    model, branch = random_tree(seed), []
    for joint in range(1, model.njoints):
        pin.seed(seed * 100 + joint)
        model.appendBodyToJoint(joint, pin.Inertia.Random(), placement(rng))
        branch.append(joint)
    return model


class Articulated:
    """The factor of a model at a state, and the dense matrix M̂ that it stands for."""

    def __init__(self, model, seed):
        self.rng = rng = np.random.default_rng(1000 + seed)
        q, self.v = random_state(model, rng)
        self.terms = t = terms_of(model, q, self.v)
        tree, nv = t.tree, model.nv
        self.parent, self.nv = tree.dof_parent, nv
        self.bodies = tree.parent, tree.v_index, t.columns, t.inertia
        damping, h = rng.uniform(0.0, 1.0, nv), 0.01
        self.added = tree.armature + rng.uniform(0.1, 0.2, nv)
        factor = np.full((nv, FACTOR_NUMBERS), np.nan)
        body = np.full((len(tree.kind), BODY_NUMBERS), np.nan)
        articulate(*self.bodies, self.added, (h, damping), body, factor)
        self.motion = tree.dof_parent, t.columns, factor
        self.force = np.full((nv, 6), np.nan)
        data = model.createData()
        self.M = np.triu(pin.crba(model, data, q))
        self.M += np.triu(self.M, 1).T
        np.fill_diagonal(self.M, np.diag(self.M) - tree.armature)
        self.whole = self.M + np.diag(self.added - h * damping)
        self.armature = tree.armature

    def jacobian(self, row_leaf):
        """Return Jᵀ with random entries on the branches of rows."""
        Jt = np.zeros((self.nv, len(row_leaf)))
        for a, leaf in enumerate(row_leaf):
            if leaf == EVERYWHERE:
                Jt[:, a] = self.rng.normal(size=self.nv)
            while leaf >= 0:
                Jt[leaf, a] = self.rng.normal()
                leaf = self.parent[leaf]
        return Jt


def assert_near(found, expected):
    scale = np.abs(expected).max(initial=0.0)
    assert np.abs(np.asarray(found) - expected).max(initial=0.0) <= RELATIVE * scale


@pytest.mark.parametrize('seed', range(2 * len(SUPPORTED)))
def test_solves_are_those_with_the_mass_matrix_of_pinocchio(seed):
    own = Articulated(heavy_tree(seed), seed)
    for _ in range(3):
        x = own.rng.normal(size=own.nv)
        found = x.copy()
        solve_articulated(own.motion, own.force, found)
        assert_near(found, np.linalg.solve(own.whole, x))


@pytest.mark.parametrize('seed', range(2 * len(SUPPORTED)))
def test_half_solves_and_their_products(seed):
    """Y = L⁻ᵀ Jᵀ of the factor along the tree, from a Cholesky factor in reversed order."""
    own, n = Articulated(heavy_tree(seed), seed), 11
    rng = own.rng
    leaves = rng.integers(-1, own.nv, 3)
    row_leaf = np.array([*np.repeat(leaves[:2], 3), leaves[2], EVERYWHERE, own.nv - 1, EVERYWHERE,
                         leaves[0]])  # fmt: skip
    row_of = rng.permutation(n)
    Jt = own.jacobian(row_leaf)
    stored = np.zeros((own.nv, n + 2))
    stored[:, row_of] = Jt
    Y, G = np.zeros(own.nv * n), np.full((n, n), np.nan)
    half_solves(own.motion, stored.ravel(), n + 2, (row_of, row_leaf, n), own.force, Y)
    products(own.parent, row_leaf, n, Y, G)
    backwards = np.linalg.cholesky(own.whole[::-1, ::-1])[::-1, ::-1]  # M = Lᵀ L, this is Lᵀ
    assert_near(Y.reshape(own.nv, n), np.linalg.solve(backwards, Jt))
    assert_near(1.0 / own.motion[2][:, 6], np.diag(backwards))
    assert_near(G, Jt.T @ np.linalg.solve(own.whole, Jt))
    assert np.array_equal(G, G.T)


@pytest.mark.parametrize('seed', range(2 * len(SUPPORTED)))
def test_products_diagonal_and_energy_of_the_mass_matrix(seed):
    own = Articulated(heavy_tree(seed), seed)
    nb, t = len(own.terms.tree.kind), own.terms
    scratch, out = np.full((nb, 6), np.nan), np.full(own.nv, np.nan)
    inertia_product(own.bodies, own.added, own.v, scratch, out)
    assert_near(out, (own.M + np.diag(own.added)) @ own.v)
    M = own.M + np.diag(own.armature)
    assert_near(bodies_energy(own.bodies, own.armature, own.v, scratch), 0.5 * own.v @ M @ own.v)
    inertia_diagonal(own.bodies, own.armature, t.composite, out)
    assert_near(out, np.diag(M))


def test_columns_of_free_bases():
    """Of two trees on free flyers, with branches: the columns that carry their momentum."""
    rng = np.random.default_rng(5)
    model, ends = pin.Model(), []
    for tree in range(2):
        base = model.addJoint(0, joint_of('FreeFlyer', rng), placement(rng), f'base_{tree}')
        joints = [base]
        for k in range(4):
            joint, before = joint_of(['RX', 'PY', 'Spherical', 'RZ'][k], rng), [0, 1, 0, 3][k]
            joints.append(model.addJoint(joints[before], joint, placement(rng), f'{tree}_{k}'))
        for joint in joints:
            pin.seed(10 * tree + joint)
            model.appendBodyToJoint(joint, pin.Inertia.Random(), placement(rng))
        ends.append(model.nv)
    model.armature = rng.uniform(0.0, 0.1, model.nv)
    own = Articulated(model, 0)
    t, M = own.terms, own.M + np.diag(own.armature)
    inertia_diagonal(own.bodies, own.armature, t.composite, np.empty(own.nv))
    for first, end in ((0, ends[0]), (ends[0], ends[1])):
        out = np.full((own.nv, BASE_NUMBERS), np.nan)
        base_columns(own.bodies, own.parent, t.composite, own.armature, (first, end), out)
        assert_near(
            np.tril(out[first : first + 6, :6]), np.tril(M[first : first + 6, first : first + 6])
        )
        assert_near(out[first + 6 : end, :6], M[first + 6 : end, first : first + 6])
        assert (out[first:end, 6] == 1.0).all()


def test_long_chains_are_deep_and_robots_with_legs_are_not():
    chain = np.arange(-1, 199)
    legs = [-1, 0, 1, 2, 3, 4, *(k - 1 if k % 7 else 5 for k in range(7 * 8))]
    assert is_deep(chain)
    assert not is_deep(np.array(legs))
    assert not is_deep(np.zeros(0, dtype=np.int64))
