"""The smallest disturbance under which a controller fails: along each factor, then jointly.

The joint search begins with steps along the slope of the margin, and goes on by CMA-ES from there.

A disturbance is a point whose coordinates are the distances of its factors from their nominal
values, each 1 at the `reach` of its factor; its size is the length of that vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim._types import Array
from contact_sim.campaign import Trial
from contact_sim.errors import InvalidInput, one_line
from contact_sim.verdict._plan import Factor, Row
from contact_sim.verdict._slope import shortened, smaller_failure

DISTURBANCES = ('push', 'friction', 'delay', 'mass_scale', 'roughness', 'start')
"""Factors of the search."""
BISECTIONS = 5
"""Halvings along each factor: the limit is known to 1/32 of its reach."""
GENERATION = 6
"""Points of a generation of CMA-ES."""
GENERATIONS = 8
SPREAD = 0.15
"""First standard deviation of CMA-ES."""
NEGLIGIBLE = 0.02
"""Coordinate below which a factor is set to its nominal value, if it still fails then."""


@dataclass(frozen=True)
class Counterexample:
    """A small disturbance under which the controller fails."""

    law: str
    trial: Trial
    size: float
    """Length of the disturbance; 1 is the reach of one factor."""
    parts: tuple[tuple[str, float], ...]
    """Factors that deviate, and their values."""
    text: str
    reason: str
    """Of the failure."""
    row_hash: str
    repeats: bool
    """Whether a second run of the trial ended in the same state, to the bit."""
    evaluations: int
    """Runs of the search under this law."""
    recording: Path | None = None

    __repr__ = one_line


Evaluate = Callable[[Sequence[Trial]], Sequence[Row]]
"""Runs trials and returns their rows, in order; fewer where time is up."""


def disturbed(nominal: Trial, factors: Sequence[Factor], point: Sequence[float]) -> Trial:
    """Return the trial at a point."""
    values: dict[str, Any] = {
        f.name: f.at(x) for f, x in zip(factors, point, strict=True) if x != 0.0
    }
    return replace(nominal, **values)


def limit_along(
    evaluate: Evaluate, nominal: Trial, factors: Sequence[Factor]
) -> dict[str, list[tuple[float, bool]]]:
    """Return (value, works) of every run along each factor alone, in order of distance.

    Bisection between the nominal value, which works, and the reach; a factor that does not make
    it fail at its reach has no limit. All factors are halved together, so they run side by side.
    """
    ends: dict[str, list[tuple[float, bool]]] = {factor.name: [] for factor in factors}
    open_: dict[str, tuple[float, float]] = {}
    for round_ in range(BISECTIONS + 1):
        points = {
            factor.name: 1.0 if not round_ else 0.5 * sum(open_[factor.name])
            for factor in factors if not round_ or factor.name in open_
        }  # fmt: skip
        chosen = [factor for factor in factors if factor.name in points]
        trials = [disturbed(nominal, [factor], [points[factor.name]]) for factor in chosen]
        for factor, row in zip(chosen, evaluate(trials), strict=False):
            if row['outcome'] == 'refused':
                open_.pop(factor.name, None)
                continue
            x, works = points[factor.name], bool(row['success'])
            ends[factor.name].append((x, works))
            low, high = open_.get(factor.name, (0.0, 1.0))
            if not round_ and works:
                continue
            open_[factor.name] = (x, high) if works else (low, x)
    return {
        factor.name: [(factor.at(x), works) for x, works in sorted(ends[factor.name])]
        for factor in factors
    }


def smallest_failure(
    evaluate: Evaluate,
    nominal: Trial,
    factors: Sequence[Factor],
    limits: Mapping[str, float],
    record: Callable[[Trial], tuple[Row, Path | None]],
) -> Counterexample | None:
    """Return a small disturbance under which it fails, None if none was found.

    Args:
        evaluate: runs trials.
        nominal: the case that works, with the law that is searched.
        factors: that may deviate.
        limits: distance at which each factor alone makes it fail, where it does.
        record: runs a trial once more, with a recording.

    Raises:
        InvalidInput: CMA-ES is not installed.
    """
    try:
        import cma
    except ImportError as error:
        raise InvalidInput(
            "--search needs the package 'cma': pip install 'contact_sim[verdict]'"
        ) from error
    failures = _Failures(evaluate, nominal, factors)
    for k, factor in enumerate(factors):
        if factor.name in limits:
            failures.note(limits[factor.name] * np.eye(len(factors))[k])
    start = failures.descend()
    strategy = cma.CMAEvolutionStrategy(
        start, SPREAD,
        {'bounds': [0.0, 1.0], 'seed': nominal.seed + 1, 'popsize': GENERATION, 'verbose': -9},
    )  # fmt: skip
    failures.search(strategy)
    if failures.best is None:
        return None
    failures.shrink()
    return failures.counterexample(record)


def margin_left(row: Row) -> float:
    """Return how far a run was from failing [-], negative where it failed.

    A run that is refused says nothing about the controller: it counts as one that works.
    """
    fails = not row['success'] and row['outcome'] != 'refused'
    margin = float(row.get('margin', np.nan))
    size = abs(margin) if np.isfinite(margin) else 1.0  # without steps
    return -max(size, 1e-9) if fails else size


class _Failures:
    """Runs points of the search, and keeps the smallest one that fails."""

    def __init__(self, evaluate: Evaluate, nominal: Trial, factors: Sequence[Factor]) -> None:
        self._evaluate, self._nominal, self._factors = evaluate, nominal, factors
        self._seen: dict[tuple[float, ...], float] = {}
        self._count = 0
        self.best: Array | None = None

    def note(self, point: Array) -> None:
        """Keep a point that fails, if none that is smaller is known."""
        if self.best is None or np.linalg.norm(point) < np.linalg.norm(self.best):
            self.best = point

    def margins(self, points: Sequence[Array]) -> Array:
        """Return the margin at each point [-], negative where it fails; NaN where time is up."""
        rounded = [tuple(float(f'{x:.4g}') for x in point) for point in points]
        new = sorted(set(rounded) - set(self._seen))
        rows = self._evaluate([disturbed(self._nominal, self._factors, p) for p in new])
        self._count += len(rows)
        for point, row in zip(new, rows, strict=False):
            self._seen[point] = margin_left(row)
            if self._seen[point] < 0.0:
                self.note(np.array(point))
        return np.array([self._seen.get(point, np.nan) for point in rounded])

    def fails(self, points: Sequence[Array]) -> list[bool]:
        """Return for each point whether it fails; False too where time is up."""
        return [bool(margin < 0.0) for margin in self.margins(points)]

    def descend(self) -> Array:
        """Go to a smaller failure along the slope of the margin; return where CMA-ES begins.

        Where no factor alone makes it fail, it begins on the diagonal: all factors at once.
        """
        n = len(self._factors)
        if self.best is None and self.fails([np.ones(n)])[0]:
            self.note(shortened(self.margins, np.ones(n)))
        if self.best is None:
            return np.full(n, 0.5)
        self.note(smaller_failure(self.margins, self.best))
        return self.best

    def search(self, strategy: Any) -> None:
        """Let CMA-ES look for smaller failures."""
        for _ in range(GENERATIONS):
            points, before = [np.array(x) for x in strategy.ask()], self._count
            answers = self.fails(points)
            if self._count == before:
                return  # time is up
            # a failure is the better the smaller it is; else outwards, towards a failure
            values = [
                float(np.linalg.norm(p)) if bad
                else 2.0 * np.sqrt(len(p)) - float(np.linalg.norm(p))
                for p, bad in zip(points, answers, strict=True)
            ]  # fmt: skip
            strategy.tell(points, values)

    def shrink(self) -> None:
        """Take out factors that are not needed, and go towards the nominal case."""
        assert self.best is not None
        for k in range(len(self._factors)):
            if 0.0 < self.best[k] < NEGLIGIBLE:
                self.fails([np.where(np.arange(len(self.best)) == k, 0.0, self.best)])
        low, high, direction = 0.0, 1.0, self.best.copy()
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.fails([middle * direction])[0] else (middle, high)

    def counterexample(self, record: Callable[[Trial], tuple[Row, Path | None]]) -> Counterexample:
        """Run the best failure twice more, with a recording, and return it."""
        assert self.best is not None
        factors, best = self._factors, self.best.tolist()
        trial = disturbed(self._nominal, factors, best)
        row, recording = record(trial)
        again, _ = record(trial)
        deviating = [(f, f.at(x)) for f, x in zip(factors, best, strict=True) if x]
        return Counterexample(
            law=self._nominal.contact_model,
            trial=trial,
            size=float(np.linalg.norm(best)),
            parts=tuple((f.name, value) for f, value in deviating),
            text=', '.join(f'{f.label} {f.text(value)}' for f, value in deviating),
            reason=str(row['reason']),
            row_hash=str(row['hash']),
            repeats=bool(row['hash']) and row['hash'] == again['hash'] and not row['success'],
            evaluations=self._count,
            recording=recording,
        )
