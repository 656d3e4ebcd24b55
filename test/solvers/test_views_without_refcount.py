"""Views without reference counts: the same memory, no owner."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest

from contact_sim.solvers._jit import without_refcount


@numba.njit
def sum_chain(rows, parent, out):
    """Add up the rows from the last one to the root, in a way in which views outlive a loop."""
    k = rows.shape[0] - 1
    row = rows[k]
    while k >= 0:
        row = rows[k]
        for j in range(row.shape[0]):
            out[j] += row[j]
        k = parent[k]
    return row[0]


@numba.njit
def sum_chain_of_views(rows, parent, out):
    return sum_chain(without_refcount(rows), without_refcount(parent), without_refcount(out))


@numba.njit
def hand_back(x):
    return without_refcount(x)


STRIDED = np.arange(24.0).reshape(4, 6)[:, ::2]


@pytest.mark.parametrize('rows', [STRIDED.copy(), STRIDED], ids=['contiguous', 'strided'])
def test_views_are_the_same_memory(rows):
    parent, out = np.array([-1, 0, 1, 1]), np.ones(3)
    counts = [sys.getrefcount(array) for array in (rows, parent, out)]
    assert sum_chain_of_views(rows, parent, out) == rows[0, 0]
    np.testing.assert_array_equal(out, 1.0 + rows[3] + rows[1] + rows[0])
    assert [sys.getrefcount(array) for array in (rows, parent, out)] == counts


def test_nobody_owns_a_view():
    """Numba hands an array that it got back as the same object; this one it cannot trace."""
    rows = STRIDED.copy()
    found = hand_back(rows)
    assert found is not rows
    assert found.base is None
    assert not found.flags.owndata
    assert np.shares_memory(found, rows)


def test_only_arrays_have_views():
    with pytest.raises(numba.TypingError):
        hand_back(1.0)
