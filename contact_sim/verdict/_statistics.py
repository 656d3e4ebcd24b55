"""Rates of success with their intervals, and how much of the outcome a factor explains."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from contact_sim._types import Array
from contact_sim.errors import InvalidInput

CONFIDENCE = 0.95
"""Of all intervals."""
RESAMPLES = 999
"""Permutations and draws behind an effect."""


@dataclass(frozen=True)
class Rate:
    """Successes among runs, with the Wilson interval of the probability of success."""

    successes: int
    runs: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Successes over runs, NaN without runs."""
        return self.successes / self.runs if self.runs else np.nan

    @property
    def works(self) -> bool:
        """Whether the whole interval lies above one half."""
        return self.low > 0.5

    @property
    def fails(self) -> bool:
        """Whether the whole interval lies below one half."""
        return self.high < 0.5

    @property
    def undecided(self) -> bool:
        """Whether one half is inside the interval."""
        return not (self.works or self.fails)

    def __str__(self) -> str:
        interval = f'{100 * self.low:.0f} to {100 * self.high:.0f} %'
        return f'{self.successes} of {self.runs} ({interval})'


def rate(successes: int, runs: int) -> Rate:
    """Return a rate with its interval; without runs it reaches from 0 to 1.

    Raises:
        InvalidInput: more successes than runs, or negative numbers.
    """
    if not 0 <= successes <= runs:
        raise InvalidInput(f'successes = {successes} of {runs} runs: expected 0 to {runs}')
    if runs == 0:
        return Rate(0, 0, 0.0, 1.0)
    interval = stats.binomtest(successes, runs).proportion_ci(CONFIDENCE, 'wilson')
    return Rate(successes, runs, float(interval.low), float(interval.high))


def p_of_difference(one: Rate, other: Rate) -> float:
    """Return the two-sided p-value of Fisher's exact test that both rates are the same.

    It counts the permutations of the runs between the two groups, so it needs no normal
    distribution and holds for few runs.
    """
    if not one.runs or not other.runs:
        return 1.0
    table = [[r.successes, r.runs - r.successes] for r in (one, other)]
    return float(stats.fisher_exact(table).pvalue)


def p_of_even(found: Rate) -> float:
    """Return the two-sided p-value of the binomial test that success and failure are as likely."""
    return float(stats.binomtest(found.successes, found.runs).pvalue) if found.runs else 1.0


@dataclass(frozen=True)
class Effect:
    """Share of the variance of success that the levels of one factor explain."""

    factor: str
    share: float
    """η²: variance of the rates between the levels over the variance of all runs, 0 to 1."""
    low: float
    """Lower end of its interval: 2.5 % of the draws of the rates from their posterior."""
    high: float
    """Upper end."""
    p: float
    """Share of permutations of the outcomes that explain as much: 1 where all runs end alike."""
    runs: int
    levels: int

    def __str__(self) -> str:
        return (
            f'{100 * self.share:.0f} % ({100 * self.low:.0f} to {100 * self.high:.0f} %), '
            f'p = {self.p:.2g}, {self.runs} runs at {self.levels} levels'
        )


def effect(
    factor: str, levels: Sequence[Hashable], success: Sequence[bool], seed: int = 0
) -> Effect:
    """Return the effect of a factor on success.

    Args:
        factor: its name.
        levels: of each run, any values.
        success: of each run.
        seed: of the permutations and draws.

    Raises:
        InvalidInput: lists of different lengths.
    """
    if len(levels) != len(success):
        raise InvalidInput(f'{factor}: {len(levels)} levels for {len(success)} outcomes')
    names = {level: k for k, level in enumerate(dict.fromkeys(levels))}
    codes = np.array([names[level] for level in levels], dtype=int)
    y = np.array(success, dtype=float)
    if len(names) < 2 or y.min() == y.max():
        return Effect(factor, 0.0, 0.0, 0.0, 1.0, len(y), len(names))
    member = np.eye(len(names))[codes]
    count = member.sum(axis=0)

    def share(sample: Array) -> Array:
        mean, total = sample.mean(axis=-1, keepdims=True), sample.var(axis=-1)
        between = (count * (sample @ member / count - mean) ** 2).sum(axis=-1) / len(y)
        return np.asarray(between / total)

    random = np.random.default_rng(seed)
    observed = float(share(y))
    permuted = share(random.permuted(np.tile(y, (RESAMPLES, 1)), axis=1))
    p = (1 + np.count_nonzero(permuted >= observed - 1e-12)) / (1 + RESAMPLES)
    successes = y @ member
    drawn = random.beta(successes + 0.5, count - successes + 0.5, (RESAMPLES, len(names)))
    mean = drawn @ count / len(y)
    between = ((drawn - mean[:, None]) ** 2 @ count) / len(y)
    low, high = np.quantile(between / (mean * (1.0 - mean)), [0.025, 0.975])
    return Effect(factor, observed, float(low), float(high), p, len(y), len(names))
