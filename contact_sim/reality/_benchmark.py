"""Fit every law to the same training trials, and rank the laws on held-out ones."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields, count, finite
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.errors import InvalidInput, of_type, one_line
from contact_sim.reality._experiments import Experiment, Measure
from contact_sim.reality._laws import Law

CONFIDENCE = 0.95
"""Of all intervals."""
RESAMPLES = 999
PENALTY = 1e3
"""Error of a trial whose simulation stopped."""


@checked_fields
@dataclass(frozen=True)
class Effort:
    """How much simulation a fit may cost: (generations + 1) · population · parameters runs."""

    population: int = 5
    """Candidates per parameter, rounded up to a power of two in all."""
    generations: int = 7
    seed: int = 1

    def __post_init__(self) -> None:
        count('population', self.population)
        count('generations', self.generations)


@dataclass(frozen=True)
class Mean:
    """A mean over trials, with its bootstrap interval of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f'{self.value:.3g} ({self.low:.3g} to {self.high:.3g})'


def mean_of(errors: Sequence[float] | Array, seed: int = 1) -> Mean:
    """Return the mean of errors of trials with its interval; one trial has no interval.

    Raises:
        InvalidInput: no errors, or some that are not finite.
    """
    values = np.asarray(errors, dtype=float)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InvalidInput('errors: expected finite numbers, one per trial')
    value = float(values.mean())
    if len(values) == 1:
        return Mean(value, -np.inf, np.inf)
    if np.ptp(values) == 0.0:
        return Mean(value, value, value)
    drawn = stats.bootstrap(
        (values,), np.mean, confidence_level=CONFIDENCE, n_resamples=RESAMPLES,
        method='percentile', random_state=np.random.default_rng(seed), batch=500,
    ).confidence_interval  # fmt: skip
    return Mean(value, float(drawn.low), float(drawn.high))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Errors of one law, or one peer, on the held-out trials."""

    name: str
    values: Mapping[str, float]
    """Parameters, by name."""
    errors: Array
    """Shape (held-out trials, measures)."""
    model: str = ''
    """Name of the contact model; of a peer its engine."""
    fitted: bool = True
    peer: bool = False
    same_as: tuple[str, ...] = ()
    training_error: float = np.nan
    """Mean of the first measure on the training trials; NaN without a fit."""

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class Ranking:
    """All outcomes of one data set."""

    experiment: str
    title: str
    measures: tuple[Measure, ...]
    training: tuple[int, ...]
    held_out: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    facts: Mapping[str, float] = field(default_factory=dict)
    """What the data show without a simulation."""

    def fitted(self) -> list[Outcome]:
        """Return the fitted laws, best first by the mean of the first measure."""
        laws = [one for one in self.outcomes if one.fitted and not one.peer]
        return sorted(laws, key=lambda one: float(one.errors[:, 0].mean()))

    def behind(self, outcome: Outcome) -> Mean:
        """Return how far a law is behind the best one, from the differences trial by trial."""
        return mean_of(outcome.errors[:, 0] - self.fitted()[0].errors[:, 0])

    def save(self, path: Path) -> None:
        """Write all of it as JSON, at once or not at all."""
        content: dict[str, Any] = {
            'experiment': self.experiment, 'title': self.title,
            'measures': [vars(one) for one in self.measures],
            'training': self.training, 'held_out': self.held_out, 'facts': dict(self.facts),
            'outcomes': [
                {**vars(one), 'errors': np.round(one.errors, 6).tolist(),
                 'values': dict(one.values)}
                for one in self.outcomes
            ],
        }  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            'w', encoding='utf-8', dir=path.parent, delete=False
        ) as file:
            json.dump(content, file)
        os.replace(file.name, path)

    @classmethod
    def load(cls, path: Path) -> Ranking:
        """Read what `save` wrote.

        Raises:
            InvalidInput: a file that is missing or has other contents.
        """
        try:
            content = json.loads(_reading.file_text(path))
            outcomes = tuple(
                Outcome(**{
                    **one, 'errors': np.array(one['errors'], dtype=float),
                    'same_as': tuple(one['same_as']),
                })
                for one in content['outcomes']
            )  # fmt: skip
            return cls(
                content['experiment'], content['title'],
                tuple(Measure(**one) for one in content['measures']),
                tuple(content['training']), tuple(content['held_out']), outcomes,
                content['facts'],
            )  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f'{path}: no ranking ({error!r})') from error

    __repr__ = one_line


@checked
def fit(
    experiment: Experiment,
    law: Law,
    training: Sequence[int],
    friction: float,
    effort: Effort | None = None,
) -> tuple[Array, float]:
    """Return values of the free parameters with the least mean error, and that error.

    The first measure is minimised by differential evolution from a Sobol sample and the values at
    which the law starts: rollouts through impacts have no useful gradient, and whole generations
    are simulated side by side.

    Args:
        experiment: what is simulated.
        law: with its free parameters.
        training: trials.
        friction: μ to start from.
        effort: default: `Effort()`.
    """
    of_type('law', law, Law)
    chosen = effort or Effort()

    def values_at(shares: Array) -> Array:
        columns = [one.value(share) for one, share in zip(law.free, shares, strict=True)]
        return np.array(columns)

    def loss(shares: Array) -> Array:
        """Return the mean error of candidates (parameters, candidates)."""
        rows = values_at(shares.reshape(len(law.free), -1)).T
        errors = experiment.errors([law.candidate(row) for row in rows], training)[:, :, 0]
        return np.asarray(np.where(np.isfinite(errors), errors, PENALTY).mean(axis=1))

    first = start_of(law, friction)
    shares = [one.share(min(max(first[one.name], one.low), one.high)) for one in law.free]
    result = optimize.differential_evolution(
        loss, [(0.0, 1.0)] * len(law.free), popsize=chosen.population, init='sobol', x0=shares,
        maxiter=chosen.generations, seed=np.random.default_rng(chosen.seed), vectorized=True,
        updating='deferred', polish=False, tol=0.0,
    )  # fmt: skip
    return values_at(np.asarray(result.x)), float(result.fun)


@checked
def outcomes_of(
    experiment: Experiment,
    law: Law,
    training: Sequence[int],
    held_out: Sequence[int],
    friction: float,
    effort: Effort | None = None,
) -> tuple[Outcome, Outcome]:
    """Fit a law to the training trials; return it on held-out ones, fitted and at its defaults.

    Args:
        experiment: what is simulated.
        law: under test.
        training: trials for the fit.
        held_out: other trials.
        friction: μ of the law at its defaults.
        effort: of the fit, see `fit`.

    Raises:
        InvalidInput: trials that are in both parts, or do not exist.
    """
    both = set(training) & set(held_out)
    if both:
        raise InvalidInput(f'trial {min(both)} is a training trial and held out')
    finite('friction', friction)
    values, error = fit(experiment, law, training, friction, effort)
    pair = law.candidate(values), law.default(friction)
    found, untouched = (experiment.errors([one], held_out)[0] for one in pair)
    names = [one.name for one in law.free]
    return (
        Outcome(
            law.name, dict(zip(names, values.tolist(), strict=True)), stopped(found),
            law.model, True, False, law.same_as, error,
        ),
        Outcome(
            law.name, start_of(law, friction), stopped(untouched), law.model, False, False,
            law.same_as,
        ),
    )  # fmt: skip


def start_of(law: Law, friction: float) -> dict[str, float]:
    """Return the free parameters at their defaults: no restitution, this friction."""
    parameters = vars(CONTACT_MODELS[law.model](**dict(law.fixed)).parameters)
    return {one.name: float(parameters.get(one.name, 0.0)) for one in law.free} | {
        'friction': friction
    }


def stopped(errors: Array) -> Array:
    """Return errors with `PENALTY` where a simulation stopped."""
    return np.where(np.isfinite(errors), errors, PENALTY)


def split(n: int, training: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return training trials, evenly spread over n, and all others.

    Raises:
        InvalidInput: training < 1, or no trial is left.
    """
    count('training', training)
    if training >= n:
        raise InvalidInput(f'training = {training}: expected fewer than {n} trials')
    chosen = {int(i) for i in np.linspace(0, n, training, endpoint=False)}
    return tuple(sorted(chosen)), tuple(i for i in range(n) if i not in chosen)
