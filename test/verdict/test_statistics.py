"""Rates, intervals and effects against numbers from the literature and against enumeration."""

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contact_sim import InvalidInput
from contact_sim.verdict._statistics import effect, p_of_difference, p_of_even, rate

Z = 1.959963984540054


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_that_of_wilson(numbers):
    k, n = numbers
    found, share = rate(k, n), k / n
    centre = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    assert found.low == pytest.approx(max(centre - half, 0.0), abs=1e-9)
    assert found.high == pytest.approx(min(centre + half, 1.0), abs=1e-9)
    assert found.low - 1e-12 <= found.share <= found.high + 1e-12
    assert found.works + found.fails + found.undecided == 1


def test_four_runs_are_enough_and_three_are_not():
    assert rate(4, 4).works
    assert rate(0, 4).fails
    assert rate(3, 3).undecided
    assert rate(3, 4).undecided


def test_without_runs_nothing_is_known():
    assert (rate(0, 0).low, rate(0, 0).high, rate(0, 0).undecided) == (0.0, 1.0, True)
    assert np.isnan(rate(0, 0).share)


def test_more_successes_than_runs_are_refused():
    with pytest.raises(InvalidInput, match='5 of 4 runs: expected 0 to 4'):
        rate(5, 4)


def test_fishers_test_counts_permutations():
    """4 of 4 against 0 of 4: 2 of the 70 ways to choose 4 of 8 are as extreme."""
    assert p_of_difference(rate(4, 4), rate(0, 4)) == pytest.approx(2 / comb(8, 4), rel=1e-9)
    assert p_of_difference(rate(4, 4), rate(0, 0)) == 1.0
    assert p_of_even(rate(0, 8)) == pytest.approx(2 / 2**8, rel=1e-9)


def test_the_effect_is_the_share_of_the_variance_between_levels():
    levels, success = ['a'] * 5 + ['b'] * 5, [1, 1, 1, 1, 0] + [1, 0, 0, 0, 0]
    found = effect('x', levels, [bool(x) for x in success])
    assert found.share == pytest.approx(0.3**2 / 0.25, rel=1e-12)  # rates 0.8 and 0.2 about 0.5
    assert found.low < found.share < found.high
    as_extreme = sum(
        abs(sum(success[k] for k in chosen) - 2.5) >= 1.5 for chosen in combinations(range(10), 5)
    )
    assert found.p == pytest.approx(as_extreme / comb(10, 5), abs=0.05)


def test_p_values_of_nothing_are_uniform():
    random = np.random.default_rng(1)
    levels = list(range(4)) * 10
    p = [effect('x', levels, random.random(40) < 0.5, seed=k).p for k in range(200)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize('success', [[True] * 6, [False] * 6])
def test_outcomes_that_are_all_alike_have_no_effect(success):
    found = effect('x', [0, 1] * 3, success)
    assert (found.share, found.p) == (0.0, 1.0)


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(InvalidInput, match='2 levels for 1 outcomes'):
        effect('x', [1, 2], [True])
