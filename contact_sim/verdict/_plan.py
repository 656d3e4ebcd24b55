"""What to run next: the case as stated under every law first, then what may decide the outcome.

A *case* is a trial without its seed. It deviates from the stated case in one factor, so that a
change of the outcome has one possible reason. Seed 0 runs a case exactly as stated. Every other
seed draws a spread around it (SPREAD), the same for every case and law: differences between cases
are differences between the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from contact_sim.campaign import Trial
from contact_sim.campaign._controllers import control_period
from contact_sim.contact_models import as_contact_model, contact_models, presets

Row = Mapping[str, Any]
"""Inputs and outcome of a trial, with `factor` and `level` of its case."""

EXACT = ('ncp', 'hybrid')
"""Laws that break none at rigid contacts, up to O(h²): the side of reality on rigid ground."""
REFERENCE = EXACT[0]
"""Law under which all other factors are varied."""
FIRST = (*EXACT[:1], 'todorov', 'sap', 'compliant', 'lcp', 'anitescu', 'null_space', 'hybrid')
"""Order of the laws: very different ones first, the slow one last."""
SPREAD = {'friction': 0.05, 'mass_scale': 0.02}
"""Largest relative change by a seed other than 0."""
START_SPREAD = 0.1
"""Its change of the start state, in the unit of `Trial.start`."""
SEEDS = 4
"""Runs of a case from which a rate of 0 or 1 has an interval on one side of one half."""
MOST_SEEDS = 12
REFINEMENTS = 4
"""Halvings between a value that works and one that fails."""


@dataclass(frozen=True)
class Factor:
    """A quantity that is varied alone."""

    name: str
    """Field of `Trial`."""
    cause: str
    """Cause of a failure that only this factor decides."""
    label: str
    unit: str
    scale: float
    """Shown values are those of the field times this."""
    nominal: float
    levels: tuple[float, ...]
    """Values that a sound controller should bear, from the nearest on."""
    better: tuple[float, ...]
    """Values that are tried where the stated case fails, from the nearest on."""
    reach: float
    """Farthest value that the search for margins tries."""
    resolution: float = 0.0
    """Values are whole multiples of it; 0: any."""

    def distance(self, value: float) -> float:
        """Return how far a value is from the nominal one, 1 at `reach`, negative for better."""
        return (value - self.nominal) / (self.reach - self.nominal)

    def at(self, distance: float) -> float:
        """Return the value at a distance, to four digits."""
        value = self.nominal + distance * (self.reach - self.nominal)
        if self.resolution > 0.0:
            value = self.resolution * round(value / self.resolution)
        return float(f'{value:.4g}')

    def text(self, value: float) -> str:
        """Return a value with its unit."""
        return f'{self.scale * value:.3g} {self.unit}'.strip()


def factors_of(nominal: Trial, mass: float, friction: float) -> tuple[Factor, ...]:
    """Return the factors of a case.

    Args:
        nominal: the case as stated.
        mass: of the robot [kg]; pushes are stated for its momentum.
        friction: of the stated case [-].
    """

    def times(value: float, *shares: float) -> tuple[float, ...]:
        return tuple(float(f'{share * value:.4g}') for share in shares)

    def steps(*shares: float) -> tuple[float, ...]:
        """Return time steps of which there is a whole number in the period of a ROS program."""
        period = control_period(nominal.controller)
        return tuple(x for x in times(h, *shares) if abs(period / x - round(period / x)) < 1e-6)

    h, mu = nominal.time_step, friction
    pushes = [float(f'{speed * mass:.2g}') for speed in (0.1, 0.25, 1.5)]
    return (
        Factor('time_step', 'integration', 'time step', 'ms', 1e3, h,
               steps(2.0, 5.0), steps(0.5, 0.25), 10.0 * h),
        Factor('delay', 'latency', 'delay of commands', 'ms', 1e3, 0.0,
               (0.005, 0.01, 0.02), (), 0.1, h),
        Factor('noise', 'sensing', 'noise of the state', 'times the standard', 1.0,
               0.0, (1.0, 2.0), (), 10.0),
        Factor('friction', 'conditions', 'friction', '', 1.0, mu,
               times(mu, 0.75, 0.5), times(mu, 1.25, 1.75), 0.05 * mu),
        Factor('mass_scale', 'conditions', 'mass', "times the robot's", 1.0, 1.0,
               (1.1, 1.2), (0.9, 0.75), 2.0),
        Factor('push', 'conditions', 'push', 'N s', 1.0, 0.0, (pushes[0], pushes[1]), (),
               pushes[2]),
        Factor('roughness', 'conditions', 'rough ground', 'mm', 1e3, 0.0,
               (0.002, 0.005), (), 0.03),
        Factor('start', 'conditions', 'change of the start', 'times the standard', 1.0, 0.0,
               (0.5, 1.0), (), 5.0),
    )  # fmt: skip


LOOP = 'control_period'
"""Factor: commands are held for `level` s while the physics keeps its step."""
OWN_DELAY = 'own_delay'
"""Factor: the controller without the delay that it has in itself."""
WITHOUT = 'without'
"""Factor: the same law with one artefact taken out of it; the level names its residual."""
SOLVER = 'solver'
"""Factor: the same law with more iterations of its solver."""

CURES: dict[str, dict[str, tuple[tuple[str, float | str], ...]]] = {
    'slip': {
        'todorov': (('cone', 'elliptic'), ('impratio', 100.0), ('noslip_iterations', 5)),
        'sap': (('stiction_tolerance', 1e-7), ('sigma', 1e-6)),
    },
    'penetration': {
        'todorov': (('time_constant', 0.004),),
        'sap': (('stiffness', 1e8),),
        'compliant': (('penetration', 1e-5),),
    },
}
"""Residual: law: parameters with which that law breaks it a hundred times less."""
MORE_ITERATIONS: dict[str, tuple[tuple[str, float | str], ...]] = {
    'ncp': (('max_admm_iterations', 50000), ('max_sweeps', 50000)),
}


@dataclass(frozen=True)
class Run:
    """One trial of a case."""

    trial: Trial
    factor: str = ''
    """What deviates from the stated case, '' for nothing but the law."""
    level: float | str = ''

    def columns(self) -> dict[str, Any]:
        """Return the columns that a row has besides those of its trial."""
        level = self.level
        number = math.nan if isinstance(level, str) else float(level)
        return {'factor': self.factor, 'level': number, 'level_text': str(level)}


Key = tuple[str, str, str, int]


def key_of(row: Row) -> Key:
    """Return what tells a run from others: factor, level, law and seed."""
    return row['factor'], row['level_text'], row['contact_model'], int(row['seed'])


@dataclass(frozen=True)
class Settings:
    """What may be run."""

    nominal: Trial
    laws: tuple[str, ...]
    factors: tuple[Factor, ...]
    friction: float
    """Of the stated case."""
    variants: Mapping[tuple[str, float], str]
    """(LOOP or OWN_DELAY, level): the controller that does so, as `load_controller` takes it."""
    seeds: int = SEEDS
    """Of a case whose outcome matters."""
    most_seeds: int = MOST_SEEDS

    @property
    def reference(self) -> str:
        """Law under which the other factors are varied."""
        return REFERENCE if REFERENCE in self.laws else self.laws[0]

    def factor(self, name: str) -> Factor | None:
        """Return a factor by name."""
        return next((factor for factor in self.factors if factor.name == name), None)

    def run(
        self, law: str, seed: int = 0, factor: str = '', level: float | str = '',
        parameters: tuple[tuple[str, float | str], ...] = (),
    ) -> Run:  # fmt: skip
        """Return a run: the stated case, the spread of its seed, and one deviation."""
        trial = replace(self.nominal, contact_model=law, seed=self.nominal.seed + seed)
        if parameters:
            trial = replace(trial, parameters=parameters)
        values: dict[str, Any] = {'friction': self.friction, 'mass_scale': trial.mass_scale}
        controller = self.variants.get((factor, level), '') if not isinstance(level, str) else ''
        if controller:
            trial = replace(trial, controller=controller)
        elif self.factor(factor) is not None and not isinstance(level, str):
            values[factor] = level
        if seed:
            random = np.random.default_rng([self.nominal.seed, seed])
            for name, spread in SPREAD.items():
                values[name] *= 1.0 + spread * random.uniform(-1.0, 1.0)
            values.setdefault('start', START_SPREAD)
        elif factor != 'friction':
            values.pop('friction')
        return Run(replace(trial, **values), factor, level)


def laws_in_order(laws: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the names of laws in the order in which they are run.

    None: all contact models, and the presets of engines that are no model at its defaults.
    """
    names = (*contact_models(), *_other_laws()) if laws is None else tuple(laws)
    place = {name: k for k, name in enumerate(FIRST)}
    return tuple(sorted(names, key=lambda name: place.get(name, len(place))))


def _other_laws() -> tuple[str, ...]:
    defaults = [as_contact_model(name).parameters for name in contact_models()]
    return tuple(name for name in presets() if as_contact_model(name).parameters not in defaults)


# --- The order of the runs


class Wanted(NamedTuple):
    """Arguments of `Settings.run`."""

    law: str
    seed: int = 0
    factor: str = ''
    level: float | str = ''
    parameters: tuple[tuple[str, float | str], ...] = ()


def candidates(settings: Settings, rows: Sequence[Row]) -> Iterator[Wanted]:
    """Yield the runs that are wanted, most informative first; the rows say what is known."""
    s, law = settings, settings.reference
    for name in s.laws:
        yield Wanted(name)
    known = Outcomes(rows)
    works = known.clearly('', '', law)
    yield from _spread(s, law, s.seeds)
    if works is False:
        yield from _remedies(s, known)
    elif known.mixed('', '', law):
        yield from _spread(s, law, s.most_seeds)
    if known.laws_differ():
        for name in s.laws:
            yield from _spread(s, name, s.seeds)
        yield from _cures(s, known)
        yield from _confirmations(s, known)
    early = ('time_step', 'delay', 'noise')
    late = tuple(factor.name for factor in s.factors if factor.name not in early)
    for group in (early, late):
        for factor in s.factors:
            if factor.name in group and works is not False:
                for level in factor.levels:
                    yield Wanted(law, 0, factor.name, level)
        yield from _loops(s, known)
    # cases that ended otherwise than the stated one: more seeds, then the limit
    for factor in s.factors:
        for level in known.levels(factor.name, law):
            if works and known.mostly(False, factor.name, level, law):
                for seed in range(1, s.seeds):
                    yield Wanted(law, seed, factor.name, level)
    if known.unsolved() and law in MORE_ITERATIONS:
        for seed in range(s.seeds):
            yield Wanted(law, seed, SOLVER, 1.0, MORE_ITERATIONS[law])
    if works:
        for factor in s.factors:
            yield from _refinements(s, known, factor)
    for name in s.laws:
        yield from _spread(s, name, s.seeds)
    for factor in s.factors if works else ():
        for level in factor.levels:
            for seed in range(1, s.seeds):
                yield Wanted(law, seed, factor.name, level)
    for other in s.laws[1:3] if works else ():
        for factor in s.factors:
            for level in factor.levels[-1:]:
                yield Wanted(other, 0, factor.name, level)
    if works:
        yield from _together(s, known)
    for name in s.laws:
        yield from _spread(s, name, s.most_seeds)


def _spread(s: Settings, law: str, seeds: int) -> Iterator[Wanted]:
    for seed in range(1, seeds):
        yield Wanted(law, seed)


def _remedies(s: Settings, known: Outcomes) -> Iterator[Wanted]:
    """Yield what may make a failing case work."""
    law = s.reference
    wanted: list[tuple[str, float]] = [key for key in s.variants if key[0] == OWN_DELAY]
    wanted += [(factor.name, level) for factor in s.factors for level in factor.better]
    for seed in range(s.seeds):
        for name, level in wanted:
            if seed == 0 or known.mostly(True, name, level, law):
                yield Wanted(law, seed, name, level)


def _cures(s: Settings, known: Outcomes) -> Iterator[Wanted]:
    """Yield laws that end otherwise than the reference, with one artefact taken out of them."""
    right = known.mostly(True, '', '', s.reference)
    for residual, laws in CURES.items():
        for law, parameters in laws.items():
            if law in s.laws and known.mostly(not right, '', '', law):
                for seed in range(s.seeds):
                    yield Wanted(law, seed, WITHOUT, residual, parameters)


def _confirmations(s: Settings, known: Outcomes) -> Iterator[Wanted]:
    """Yield as many more runs of the reference and of each law that ends otherwise."""
    right = known.clearly('', '', s.reference)
    others = [law for law in s.laws if right is not None and known.clearly('', '', law) != right]
    for law in (s.reference, *others) if others else ():
        yield from _spread(s, law, min(2 * s.seeds, s.most_seeds))


def _loops(s: Settings, known: Outcomes) -> Iterator[Wanted]:
    """Yield the stated case with commands held as long as a time step at which it fails."""
    for name, level in s.variants:
        if name == LOOP and known.mostly(False, 'time_step', level, s.reference):
            for seed in range(s.seeds):
                yield Wanted(s.reference, seed, LOOP, level)


def _together(s: Settings, known: Outcomes) -> Iterator[Wanted]:
    """Yield more runs of factors with which another law fails and the reference does not."""
    for factor in s.factors:
        level = factor.levels[-1]
        failing = [law for law in s.laws if known.mostly(False, factor.name, level, law)]
        if failing and known.mostly(True, factor.name, level, s.reference):
            for law in s.laws:
                yield Wanted(law, 0, factor.name, level)
            for law in (s.reference, *failing):
                for seed in range(1, 2 * s.seeds):
                    yield Wanted(law, seed, factor.name, level)


def _refinements(s: Settings, known: Outcomes, factor: Factor) -> Iterator[Wanted]:
    """Yield the middle of the value that works and the one that fails, until it is known."""
    law = s.reference
    ends = {level: known.mostly(True, factor.name, level, law)
            for level in known.levels(factor.name, law)}  # fmt: skip
    worked = [x for x, ok in ends.items() if ok and factor.distance(x) > 0.0]
    failed = [x for x, ok in ends.items() if ok is False and factor.distance(x) > 0.0]
    if not failed or not known.mostly(True, '', '', law):
        return
    high = min(failed, key=factor.distance)
    below = [x for x in worked if factor.distance(x) < factor.distance(high)]
    low = max(below, key=factor.distance, default=factor.nominal)
    done = len(ends) - len(factor.levels)
    middle = factor.at(0.5 * (factor.distance(low) + factor.distance(high)))
    if done < REFINEMENTS and middle not in (low, high):
        yield Wanted(law, 0, factor.name, middle)


def law_of(name: str) -> str:
    """Return the contact model of a name, which may be that of a preset."""
    preset = presets().get(name)
    return name if preset is None else preset.model


def not_counted(row: Row) -> str:
    """Return why a run says nothing about the controller, '' if it does."""
    law = row['contact_model']
    if row['outcome'] == 'refused':
        return f'{law} refused: {row["reason"]}'
    if row['outcome'] == 'hung':
        return f'{law}: not counted, it was too slow: {row["reason"]}'
    if law_of(law) == 'null_space' and not row['success'] and row.get('unsolved', 0) > 0:
        return (
            'null_space: not counted where it fails after steps for which it says itself that no '
            'contact can hold the feet so'
        )
    return ''


def counted(rows: Iterable[Row]) -> tuple[list[Row], dict[str, int]]:
    """Return the rows that say something about the controller, and how many others by reason.

    Of a case most of whose runs say nothing, the others say nothing either.
    """
    reasons: dict[str, int] = {}
    cases: dict[tuple[str, str, str], list[tuple[Row, str]]] = {}
    for row in rows:
        cases.setdefault(key_of(row)[:3], []).append((row, not_counted(row)))
    kept = []
    for case in cases.values():
        silent = [why for _, why in case if why]
        if 2 * len(silent) > len(case):
            reasons[silent[0]] = reasons.get(silent[0], 0) + len(case)
            continue
        kept += [row for row, why in case if not why]
        for why in silent:
            reasons[why] = reasons.get(why, 0) + 1
    return kept, reasons


class Outcomes:
    """Successes by case."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._of: dict[tuple[str, str, str], list[bool]] = {}
        self._levels: dict[tuple[str, str], dict[float, None]] = {}
        self._unsolved = False
        for row in counted(rows)[0]:
            factor, level, law, _ = key_of(row)
            self._of.setdefault((factor, level, law), []).append(bool(row['success']))
            if factor and not math.isnan(row['level']):
                self._levels.setdefault((factor, law), {})[row['level']] = None
            self._unsolved |= not row['success'] and row.get('unsolved', 0) > 0

    def mostly(self, success: bool, factor: str, level: float | str, law: str) -> bool | None:
        """Return whether at least half of the runs of a case ended so; None without runs."""
        ended = self._of.get((factor, str(level), law))
        if not ended:
            return None
        return 2 * sum(x is success for x in ended) >= len(ended)

    def clearly(self, factor: str, level: float | str, law: str) -> bool | None:
        """Return whether nearly all runs of a case work; None where they are mixed, or none."""
        ended = self._of.get((factor, str(level), law), [])
        share = sum(ended) / len(ended) if ended else 0.5
        return True if share > 0.75 else False if share < 0.25 else None

    def mixed(self, factor: str, level: float | str, law: str) -> bool:
        """Whether a case sometimes works and sometimes fails."""
        return len(set(self._of.get((factor, str(level), law), []))) == 2

    def levels(self, factor: str, law: str) -> list[float]:
        """Return the levels of a factor that were run."""
        return list(self._levels.get((factor, law), {}))

    def laws_differ(self) -> bool:
        """Whether the stated case works under one law and fails under another."""
        ends = {s for (factor, _, _), all_of in self._of.items() if not factor for s in all_of}
        return len(ends) == 2

    def unsolved(self) -> bool:
        """Whether a run failed in which a solve did not converge."""
        return self._unsolved


def next_run(settings: Settings, rows: Sequence[Row], pending: set[Key]) -> Run | None:
    """Return the next run, None where nothing more is wanted.

    Args:
        settings: what may be run.
        rows: of the runs so far.
        pending: keys of the runs that were begun, ended or not.
    """
    first = settings.nominal.seed
    for wanted in candidates(settings, rows):
        key = wanted.factor, str(wanted.level), wanted.law, first + wanted.seed
        if key not in pending:
            return settings.run(*wanted)
    return None
