"""Rates of success of the cases of a verdict, and what they say of each factor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contact_sim.verdict._plan import EXACT, REFERENCE, Factor, Row, counted
from contact_sim.verdict._statistics import Effect, Rate, effect, rate

OF_ITSELF = ('controller_error', 'hung', 'crashed')
"""Outcomes after which there is nothing to ask about contact."""


@dataclass(frozen=True)
class Margin:
    """How far one factor may go, everything else as stated."""

    factor: str
    label: str
    law: str
    bears: float
    """Farthest value at which it still works, before it fails; NaN: not even the nominal one."""
    fails: float
    """Nearest value at which it fails; NaN: none was found."""
    text: str


class Table:
    """Rates by factor, level and law; runs of a case that are equal to the bit count once.

    Runs that say nothing about contact do not count, and `notes` says why. `aside` is the law that
    was taken out of it, see `_holding`.
    """

    def __init__(self, rows: Iterable[Row], aside: str = '') -> None:
        self.aside = aside
        kept: dict[tuple[object, ...], Row] = {}
        for row in rows:
            same = row.get('hash', '') or (row['seed'], row.get('end_time'))
            kept.setdefault((*case_of(row), same), row)
        every_run_of_itself = all(row['outcome'] in OF_ITSELF for row in kept.values())
        notes: dict[str, int] = {}
        self.rows: list[Row] = list(kept.values())
        if not every_run_of_itself:
            self.rows, notes = counted(self.rows)
        self.notes = tuple(f'{why} ({n} runs)' for why, n in notes.items())
        self._by_case: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            self._by_case.setdefault(case_of(row), []).append(row)

    def case(self, law: str, factor: str = '', level: float | str = '') -> list[Row]:
        """Return the rows of a case."""
        return self._by_case.get((factor, str(level), law), [])

    def rate(self, law: str, factor: str = '', level: float | str = '') -> Rate:
        """Return the rate of a case."""
        return rate_of(self.case(law, factor, level))

    def laws(self) -> list[str]:
        """Return the laws under which the stated case was run."""
        return [law for factor, _, law in self._by_case if not factor]

    def levels(self, factor: str, law: str) -> list[float]:
        """Return the levels of a factor that were run."""
        rows = [row for row in self.rows if row['factor'] == factor]
        return sorted({float(row['level']) for row in rows if row['contact_model'] == law})

    @property
    def stated(self) -> list[Row]:
        """Rows of the stated case under all laws."""
        return [row for row in self.rows if not row['factor']]

    @property
    def every_law(self) -> str:
        """How the laws under which it works are called."""
        return f'every law but {self.aside}' if self.aside else 'every law'

    def without(self, law: str) -> Table:
        """Return the table without the runs under a law."""
        return Table((row for row in self.rows if row['contact_model'] != law), law)


def case_of(row: Row) -> tuple[str, str, str]:
    """Return factor, level and law of a row."""
    return row['factor'], row['level_text'], row['contact_model']


def rate_of(rows: Sequence[Row]) -> Rate:
    """Return the rate of success of rows."""
    return rate(sum(bool(row['success']) for row in rows), len(rows))


def is_exact(law: str) -> bool:
    """Whether a law, or preset, breaks none at rigid contacts."""
    return law in EXACT


def reference_of(table: Table) -> str:
    """Return the law under which factors are varied."""
    laws = table.laws()
    return REFERENCE if REFERENCE in laws or not laws else laws[0]


def effects_of(table: Table, factors: Sequence[Factor]) -> tuple[Effect, ...]:
    """Return the effects of the law and of every factor, largest first.

    That of the law is from the stated case; that of a factor from the runs under the reference
    law in which nothing else deviates.
    """
    law, stated = reference_of(table), table.stated
    found = [effect('contact_model', [row['contact_model'] for row in stated],
                    [bool(row['success']) for row in stated])]  # fmt: skip
    for factor in factors:
        rows = [row for row in table.rows
                if row['contact_model'] == law and row['factor'] in ('', factor.name)]  # fmt: skip
        levels = [row['level_text'] for row in rows]
        if len(set(levels)) > 1:
            found.append(effect(factor.name, levels, [bool(row['success']) for row in rows]))
    return tuple(sorted(found, key=lambda x: (-x.share, x.p)))


def margins_of(table: Table, factors: Sequence[Factor]) -> tuple[Margin, ...]:
    """Return how far each factor went under the reference law."""
    law = reference_of(table)
    result = []
    for factor in factors:
        levels = [x for x in table.levels(factor.name, law) if factor.distance(x) > 0.0]
        if not levels:
            continue
        ends = [(factor.nominal, table.rate(law)),
                *((x, table.rate(law, factor.name, x))
                  for x in sorted(levels, key=factor.distance))]  # fmt: skip
        result.append(margin_of(factor, law, [(x, 2 * r.successes >= r.runs) for x, r in ends]))
    return tuple(result)


def margin_of(factor: Factor, law: str, ends: Sequence[tuple[float, bool]]) -> Margin:
    """Return the margin of a factor from (value, works) in the order of their distance."""
    bears, fails = math.nan, math.nan
    for value, works in ends:
        if not works:
            fails = value
            break
        bears = value
    if math.isnan(bears):
        text = 'fails already as stated'
    elif math.isnan(fails):
        text = f'works as far as was tried: {factor.text(bears)}'
    else:
        text = f'works at {factor.text(bears)}, fails at {factor.text(fails)}'
    return Margin(factor.name, factor.label, law, bears, fails, text)
