"""The numbers of a comparison: as text, as CSV, as JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contact_sim.compare.runs import Run
from contact_sim.compare.scenarios import Scenario
from contact_sim.contact_models.guarantees import LAWS

COLUMNS = {
    'step_time': ('µs/step', '.0f'),
    'iterations': ('iter', '.1f'),
    'converged': ('solved', '.1%'),
    'creep': ('creep mm/s', '.2g'),
    'weight': ('F/mg', '.4f'),
    'energy_change': ('ΔE J', '.3g'),
    'actuation': ('joints J', '.3g'),
    'contact_work': ('contact J', '.3g'),
    'integration': ('rest J', '.1g'),
}
"""Field of Measures: heading, format."""
UNITS = {
    'penetration': 'm', 'signorini': 'J', 'force_at_distance': 'N s', 'cone': 'N s',
    'dissipation': 'J', 'ncp': 'N s', 'slip': 'm/s', 'momentum': 'N s',
}  # fmt: skip
BROKEN = '*'


def rows(scenario: Scenario, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one flat dictionary per run: what CSV and JSON files hold."""
    return [
        {
            'model': run.model,
            'outcome': run.outcome or 'ok',
            'headline': run.headline(scenario),
            'expected': scenario.expected(),
            **asdict(run.measures),
            **{law: run.laws.get(law, math.nan) for law in LAWS},
            'broken': ' '.join(law for law in LAWS if run.broken.get(law, False)),
        }
        for run in runs
    ]


def text(scenario: Scenario, runs: Sequence[Run]) -> str:
    """Return two tables for the terminal: measures, and the largest residual of every law."""
    expected = scenario.expected()
    first = [['model', scenario.headline, 'error', *(name for name, _ in COLUMNS.values()), '']]
    second = [['model', *(f'{law} {UNITS[law]}' for law in LAWS)]]
    for run in runs:
        value = run.headline(scenario)
        error = value / expected - 1.0 if expected else math.nan
        cells = [number(getattr(run.measures, key), form) for key, (_, form) in COLUMNS.items()]
        first.append([run.model, number(value, '.5g'), number(error, '+.2%'), *cells, run.outcome])
        second.append([run.model, *(residual(run, law) for law in LAWS)])
    return (
        f'{scenario.name}: {scenario.meaning}; {scenario.headline}, {scenario.reference} '
        f'{expected:.5g}\n\n{aligned(first)}'
        f'\n\nlargest residual of each law ({BROKEN} broken)\n\n{aligned(second)}'
    )


def residual(run: Run, law: str) -> str:
    """Return a residual with a mark if the law counts as broken."""
    if law not in run.laws:
        return '-'
    return f'{run.laws[law]:.1e}{BROKEN if run.broken[law] else " "}'


def number(value: float, form: str) -> str:
    """Return a number, '-' where there is none."""
    return '-' if math.isnan(value) else format(value, form)


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with columns of equal width, numbers to the right."""
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    last = len(widths) - 1
    lines = [
        '  '.join(
            cell.ljust(width) if k == 0 or (k == last and not cell[:1].isdigit())
            else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]  # fmt: skip
    return '\n'.join([lines[0], '-' * max(map(len, lines)), *lines[1:]])


def write(
    path: Path, scenario: Scenario, runs: Sequence[Run], facts: dict[str, Any]
) -> tuple[Path, Path]:
    """Write `path`.csv and `path`.json; return both paths.

    Args:
        path: without suffix.
        scenario: what was run.
        runs: what came out.
        facts: what else readers of the JSON file should know.
    """
    numbers = rows(scenario, runs)
    table, document = path.with_suffix('.csv'), path.with_suffix('.json')
    with table.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, list(numbers[0]))
        writer.writeheader()
        writer.writerows(numbers)
    plain = [{key: _jsonable(value) for key, value in row.items()} for row in numbers]
    everything = {**facts, 'scenario': asdict(scenario), 'runs': plain}
    document.write_text(json.dumps(everything, indent=2, ensure_ascii=False) + '\n', 'utf-8')
    return table, document


def _jsonable(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
