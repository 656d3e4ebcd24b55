"""The figure and the page of a verdict: one HTML file that needs no other one and no network."""

from __future__ import annotations

import base64
import html
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from contact_sim.compare._runs import KEPT, UNITS
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.verdict._decision import (
    ARTEFACTS,
    Verdict,
    breaks,
    first_reason,
)
from contact_sim.verdict._plan import LOOP, OWN_DELAY, SOLVER, WITHOUT, Factor, Row
from contact_sim.verdict._rates import Table, is_exact, reference_of
from contact_sim.verdict._statistics import CONFIDENCE, Rate

INK, GREY, LINE = '#222222', '#8a8a8a', '#dddad4'
WORKS, FAILS = '#0072B2', '#D55E00'
BEFORE_FAILURE = 0.5
"""The viewer opens a recording this long before its end [s]."""
SET_ASIDE = 'holds feet: set aside'
"""Of a law that holds feet as no ground can."""
WIDTH, TITLE_POINTS = 11.0, 1150.0
"""Of the figure [inch]; size of the font of its title times the letters in a line."""
MOST_FAILURES = 12
"""Failed runs that the page names."""


@dataclass(frozen=True)
class Investigation:
    """What was asked, and how far it came."""

    controller: str
    robot: str
    scenario: str
    meaning: str
    """Of the scenario, with its goal."""
    command: str
    """That repeats it."""
    elapsed: float
    """Wall time [s]."""
    budget: float
    finished: str
    """Why it has ended, '' while it goes on."""


# --- The figure


def draw(verdict: Verdict, factors: Sequence[Factor], about: Investigation) -> Any:
    """Return the figure: rates by law, one factor at a time, effects, and where runs part."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    table = Table(verdict.rows)
    parting = verdict.parting is not None and bool(verdict.parting.times)
    laws, rows = table.laws(), max(len(table.laws()), len(factors), 4)
    style = {'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False}
    with plt.rc_context(style):
        height = 0.36 * rows + 1.9 + (1.9 if parting else 0.0)
        figure = plt.figure(figsize=(WIDTH, height))
        top = 1.0 - 1.15 / height
        grid = figure.add_gridspec(
            2 if parting else 1, 3, width_ratios=(1.0, 1.5, 0.8), wspace=0.78,
            hspace=2.0 / (0.36 * rows + 1.3),
            left=0.135, right=0.935, top=top, bottom=0.55 / height,
            height_ratios=(0.36 * rows, 1.3) if parting else (1.0,),
        )  # fmt: skip
        draw_laws(figure.add_subplot(grid[0, 0]), table, laws, verdict.set_aside)
        draw_factors(figure.add_subplot(grid[0, 1]), table, factors)
        draw_effects(figure.add_subplot(grid[0, 2]), verdict, factors)
        if parting:
            draw_parting(figure.add_subplot(grid[1, :]), verdict)
        title = f'{about.controller}, {about.robot}, {about.scenario}: {verdict.headline}'
        colour = WORKS if verdict.cause == 'none' else INK
        size = min(15.0, TITLE_POINTS / len(title))
        figure.text(0.012, 1.0 - 0.16 / height, title, va='top', fontsize=size, weight='bold',
                    color=colour)  # fmt: skip
        figure.text(0.012, 1.0 - 0.5 / height, subtitle(verdict), va='top', color=GREY)
    return figure


def subtitle(verdict: Verdict) -> str:
    """Return how sure it is and of how many runs, in one line."""
    if verdict.cause == 'cannot_tell':
        return f'{verdict.why}; {len(verdict.rows)} runs'
    p = 1.0 - verdict.confidence
    test = f'p = {p:.2g}: ' if p > 0.0 else ''
    return f'{test}{verdict.why}; {len(verdict.rows)} runs'


def draw_laws(axes: Any, table: Table, laws: Sequence[str], set_aside: str = '') -> None:
    """Draw the rate of the stated case under each law, exact laws first, grey if set aside."""
    order = sorted(laws, key=lambda law: (not is_exact(law), laws.index(law)))
    axes.axvline(0.5, color=LINE, linewidth=1.0, zorder=0)
    for k, law in enumerate(order):
        draw_rate(axes, table.rate(law), k, law == set_aside)
    axes.set_ylim(len(order) - 0.4, -0.6)
    labels = [
        f'{law}\n{SET_ASIDE if law == set_aside else "exact" if is_exact(law) else may(law)}'
        for law in order
    ]
    axes.set_yticks(range(len(order)), labels, fontsize=8)
    axes.set_xlim(-0.04, 1.04)
    axes.set_xticks([0.0, 0.5, 1.0], ['0', 'half', 'all'])
    axes.tick_params(axis='y', length=0)
    axes.spines['left'].set_visible(False)
    axes.set_title('runs that work, by contact law', fontsize=10, loc='left', color=INK)


def may(law: str) -> str:
    """Return in a word or two which laws of contact a model may break."""
    short = {'slip': 'creeps', 'force_at_distance': 'glides', 'cone': 'over cone',
             'penetration': 'sinks'}  # fmt: skip
    return ', '.join(short[residual] for residual in breaks(law)) or 'pyramid'


def draw_rate(axes: Any, found: Rate, k: int, set_aside: bool = False) -> None:
    """Draw a rate with its interval at height k."""
    if not found.runs:
        axes.text(0.5, k, 'not counted', ha='center', va='center', color=GREY, fontsize=8)
        return
    colour = GREY if set_aside else WORKS if found.share > 0.5 else FAILS
    axes.hlines(k, found.low, found.high, color=colour, linewidth=2.0, alpha=0.45)
    axes.plot(found.share, k, 'o', color=colour, markersize=7, clip_on=False)
    left = found.share > 0.5
    axes.annotate(
        f'{found.successes}/{found.runs}', (found.low if left else found.high, k),
        (-5 if left else 5, 0), textcoords='offset points', va='center', fontsize=8,
        ha='right' if left else 'left', color=INK,
    )  # fmt: skip


def draw_factors(axes: Any, table: Table, factors: Sequence[Factor]) -> None:
    """Draw for each factor which of its values work, as shares of the range that was tried."""
    from matplotlib.lines import Line2D

    law = reference_of(table)
    for k, factor in enumerate(factors):
        levels = table.levels(factor.name, law)
        end = factor.distance(factor.levels[-1])
        axes.hlines(k, 0.0, 1.0, color=LINE, linewidth=1.0, zorder=0)
        points = [(factor.nominal, table.rate(law))]
        points += [(x, table.rate(law, factor.name, x)) for x in levels]
        for x, found in points:
            if found.runs and -1.0 <= factor.distance(x) / end <= 1.3:
                works = found.share >= 0.5
                axes.plot(
                    factor.distance(x) / end, k, 'o' if works else 'X', markersize=8,
                    color=WORKS if works else FAILS,
                    fillstyle='full' if found.successes in (0, found.runs) else 'left',
                )  # fmt: skip
        value = factor.scale * factor.levels[-1]
        unit = factor.unit if len(factor.unit) < 5 else '×'
        axes.text(1.04, k, f'{value:.3g} {unit}', va='center', fontsize=8, color=GREY)
    axes.set_ylim(len(factors) - 0.4, -0.6)
    axes.set_yticks(range(len(factors)), [factor.label for factor in factors], fontsize=8)
    axes.tick_params(axis='y', length=0)
    axes.spines['left'].set_visible(False)
    axes.set_xlim(-0.35 if any_better(table, factors, law) else -0.05, 1.03)
    axes.set_xticks([0.0, 1.0], ['as stated', 'end of the range'])
    axes.set_title(f'one factor at a time, under {law}', fontsize=10, loc='left', color=INK)
    handles = [
        Line2D([], [], color=WORKS, marker='o', linestyle='', label='works'),
        Line2D([], [], color=FAILS, marker='X', linestyle='', label='fails'),
    ]
    axes.legend(handles=handles, loc='lower right', bbox_to_anchor=(1.5, 0.99), ncols=2,
                frameon=False, fontsize=8, columnspacing=0.6, handletextpad=0.0)  # fmt: skip


def any_better(table: Table, factors: Sequence[Factor], law: str) -> bool:
    """Whether values better than the stated ones were tried."""
    return any(f.distance(x) < 0.0 for f in factors for x in table.levels(f.name, law))


def draw_effects(axes: Any, verdict: Verdict, factors: Sequence[Factor]) -> None:
    """Draw the share of the variance that each factor explains, with interval and p-value."""
    labels = {factor.name: factor.label for factor in factors} | {'contact_model': 'contact law'}
    shown = verdict.effects
    for k, effect in enumerate(shown):
        strong = effect.p < 0.05
        colour = INK if strong else GREY
        axes.hlines(k, effect.low, effect.high, color=colour, linewidth=2.0, alpha=0.4)
        axes.plot(effect.share, k, 'o', color=colour, markersize=6, clip_on=False)
        axes.text(1.06, k, f'p = {effect.p:.2g}' if effect.p < 1.0 else '—', fontsize=8,
                  va='center', color=colour)  # fmt: skip
    axes.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    axes.set_yticks(range(len(shown)), [labels.get(e.factor, e.factor) for e in shown], fontsize=8)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xticks([0.0, 0.5, 1.0], ['0', '50 %', '100 %'])
    axes.tick_params(axis='y', length=0)
    axes.spines['left'].set_visible(False)
    axes.set_title('share of the outcome', fontsize=10, loc='left', color=INK)


def draw_parting(axes: Any, verdict: Verdict) -> None:
    """Draw the distance of two runs over time, and where they part."""
    parting = verdict.parting
    assert parting is not None
    distance = np.maximum(np.array(parting.distances), 1e-12)
    axes.plot(parting.times, distance, color=INK, linewidth=1.5)
    axes.set_yscale('log')
    marks = ((parting.time, 'differ', 0.5), (parting.mode_time, parting.mode_what, 0.3),
             (parting.matters_time, 'it matters', 0.3))  # fmt: skip
    for time, text, height in marks:
        if np.isfinite(time):
            axes.axvline(time, color=FAILS, linewidth=1.0, linestyle=(0, (3, 2)))
            axes.annotate(
                f'{text}, {time:.3f} s', (time, height), (5, 0), va='center', fontsize=8,
                xycoords=axes.get_xaxis_transform(), textcoords='offset points', color=FAILS,
                bbox={'color': 'white', 'pad': 1.0},
            )  # fmt: skip
    axes.set_xlabel('time [s]')
    axes.set_ylabel('base apart [m]', fontsize=9)
    axes.set_title(f'where {parting.names[0]} and {parting.names[1]} part, the same seed',
                   fontsize=10, loc='left', color=INK)  # fmt: skip


# --- The page

PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 75rem; margin: 2rem auto;
       padding: 0 1.5rem; background: #fff }
h1 { font-size: 1.9rem; margin: 0 0 .3rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem }
.statement { font-size: 1.15rem; max-width: 60rem } .grey { color: #6b6b6b }
.loud { background: #D55E00; color: #fff; padding: .2rem .6rem; border-radius: .3rem }
img { width: 100%; height: auto; margin-top: 1rem }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e5e2dc;
         vertical-align: top }
th { font-weight: 600 } .works { color: #0072B2 } .fails { color: #D55E00 }
code { font: .85rem ui-monospace, monospace; background: #f5f3ef; padding: .1rem .35rem;
       border-radius: .2rem; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { img { background: #fff } }
</style></head><body>
<p class="grey">$asked</p>
<h1>$headline</h1>
<p class="statement">$statement</p>
<p class="grey">$sure</p>
<img alt="$alt" src="data:image/png;base64,$figure">
$sections
<p class="grey">$progress<br>Repeat: <code>$command</code></p>
</body></html>
""")


def write(verdict: Verdict, factors: Sequence[Factor], about: Investigation, folder: Path) -> Path:
    """Write verdict.html and verdict.png in a folder; return the page.

    The text `Description` of the picture has the answer and the evidence as the command prints it.
    Each file is complete at any time: it replaces the one before.
    """
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, data = draw(verdict, factors, about), io.BytesIO()
    words = {'Description': '\n'.join([verdict.statement, *map(str, verdict.evidence)])}
    figure.savefig(data, format='png', dpi=150, facecolor='white', metadata=words)
    plt.close(figure)
    replace_file(folder / 'verdict.png', data.getvalue())
    page = page_text(verdict, factors, about, data.getvalue())
    replace_file(folder / 'verdict.html', page.encode())
    return folder / 'verdict.html'


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside its place, then put it there."""
    beside = path.with_name(f'.{path.name}.new')
    beside.write_bytes(content)
    beside.replace(path)


def page_text(
    verdict: Verdict, factors: Sequence[Factor], about: Investigation, figure: bytes
) -> str:
    """Return the page as HTML."""
    text = html.escape
    headline = text(verdict.headline)
    if verdict.artefact:
        headline = f'<span class="loud">{headline}</span>'
    asked = f'{about.controller} with {about.robot}, scenario {about.scenario}: {about.meaning}'
    of = f'{about.elapsed:.0f} s of {about.budget:.0f} s'
    progress = f'Finished after {of}: {about.finished}.' if about.finished else (
        f'Still running, {of}: this page is written anew as results come in.')  # fmt: skip
    sections = [
        section('Evidence', evidence_table(verdict)),
        section('By contact law', laws_table(verdict)),
        section('One factor at a time', factors_table(verdict, factors)),
        section('How far each factor may go', margins_table(verdict)),
        section('Where two runs part', parting_text(verdict)),
        section('Smallest disturbance under which it fails', counterexamples_table(verdict)),
        section('Failed runs', failures_table(verdict, factors)),
        section('Also', ''.join(f'<p>{text(note)}</p>' for note in verdict.notes)),
    ]
    return PAGE.substitute(
        title=text(f'{about.controller}: {verdict.headline}'), asked=text(asked),
        headline=headline, statement=text(verdict.statement), sure=text(subtitle(verdict)),
        alt=text(verdict.statement), figure=base64.b64encode(figure).decode(),
        sections='\n'.join(filter(None, sections)), progress=text(progress),
        command=text(about.command),
    )  # fmt: skip


def section(title: str, body: str) -> str:
    """Return a section, '' without a body."""
    return f'<h2>{html.escape(title)}</h2>\n{body}' if body else ''


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; cells that begin with `<` are HTML already."""
    if not rows:
        return ''

    def cells(tag: str, row: Sequence[str]) -> str:
        inside = (cell if cell.startswith('<') else html.escape(cell) for cell in row)
        return '<tr>' + ''.join(f'<{tag}>{cell}</{tag}>' for cell in inside) + '</tr>'

    return '<table>' + cells('th', head) + ''.join(cells('td', row) for row in rows) + '</table>'


def rate_cell(found: Rate) -> str:
    """Return a rate in its colour."""
    kind = 'works' if found.works else 'fails' if found.fails else ''
    return f'<span class="{kind}">{html.escape(str(found))}</span>'


def evidence_table(verdict: Verdict) -> str:
    """Return the numbers that the statement rests on, and the effects."""
    first = html_table(
        ('runs', f'that work, with the Wilson interval ({100 * CONFIDENCE:.0f} %)'),
        [(e.text, rate_cell(e.rate)) for e in verdict.evidence],
    )
    second = html_table(
        ('factor', 'share of the variance of success that it explains, permutation test'),
        [(effect.factor, str(effect)) for effect in verdict.effects],
    )
    return f'{first}<p></p>{second}' if second else first


def laws_table(verdict: Verdict) -> str:
    """Return rates and largest residuals of the stated case by law."""
    table = Table(verdict.rows)
    rows = []
    for law in table.laws():
        case = table.case(law)
        worst = []
        for residual in LAWS:
            values = [float(row.get(f'{residual}_max', np.nan)) for row in case]
            largest = max((x for x in values if np.isfinite(x)), default=np.nan)
            broken = any(row.get(f'{residual}_broken', False) for row in case)
            mark = f'<span class="{"fails" if broken else "grey"}">{largest:.1e}</span>'
            worst.append(mark if np.isfinite(largest) else '—')
        rate = rate_cell(table.rate(law))
        if law == verdict.set_aside:
            rate = f'{rate} <span class="grey">{SET_ASIDE}</span>'
        rows.append((law, rate, *worst, first_reason(case)))
    names = [f'{ARTEFACTS[x][0] if x in ARTEFACTS else x} [{UNITS[x]}]' for x in LAWS]
    return html_table(('law', 'works', *names, 'first failure'), rows) + (
        '<p class="grey">Largest residual of each law of contact; coloured where it is beyond '
        f'its limit ({", ".join(f"{k} {v:g}" for k, v in KEPT.items())}; all but penetration and '
        'slip per kg).</p>'
    )  # fmt: skip


def factors_table(verdict: Verdict, factors: Sequence[Factor]) -> str:
    """Return the rate at each level of each factor."""
    table, rows = Table(verdict.rows), []
    for law in table.laws():
        for factor in factors:
            for level in sorted(table.levels(factor.name, law), key=factor.distance):
                case = table.case(law, factor.name, level)
                found, why = table.rate(law, factor.name, level), first_reason(case)
                rows.append((factor.label, factor.text(level), law, rate_cell(found), why))
        for name, words in ((LOOP, 'commands are held for'), (OWN_DELAY, 'without a delay of'),
                            (SOLVER, 'more iterations of the solver')):  # fmt: skip
            for level in table.levels(name, law):
                value = '' if name == SOLVER else f'{1e3 * level:g} ms'
                case = table.case(law, name, level)
                rate = rate_cell(table.rate(law, name, level))
                rows.append((words, value, law, rate, first_reason(case)))
        for residual in ARTEFACTS:
            if case := table.case(law, WITHOUT, residual):
                rate = rate_cell(table.rate(law, WITHOUT, residual))
                words = f'without {ARTEFACTS[residual][0]}'
                rows.append(('the law', words, law, rate, first_reason(case)))
    return html_table(('factor', 'value', 'law', 'works', 'first failure'), rows)


def margins_table(verdict: Verdict) -> str:
    """Return how far each factor may go, by law."""
    return html_table(
        ('factor', 'law', 'everything else as stated'),
        [(margin.label, margin.law, margin.text) for margin in verdict.margins],
    )


def parting_text(verdict: Verdict) -> str:
    """Return where two runs part, with the residuals there."""
    parting = verdict.parting
    if parting is None:
        return ''
    rows = [
        (f'{law} [{UNITS[law]}]', *(f'{values[law]:.2e}' for values in parting.residuals))
        for law in LAWS
    ]  # fmt: skip
    return f'<p>{html.escape(parting.statement)}</p>' + html_table(
        ('residual where it matters', *parting.names), rows
    )


def counterexamples_table(verdict: Verdict) -> str:
    """Return the counterexamples of the search."""
    rows = [
        (
            c.law, f'{c.size:.2f}', c.text, c.reason,
            'yes' if c.repeats else '<span class="fails">no</span>', c.row_hash,
            view_command({'recording': str(c.recording), 'end_time': np.inf})
            if c.recording else '',
        )
        for c in verdict.counterexamples
    ]  # fmt: skip
    heads = 'law', 'size', 'disturbance', 'failure', 'same to the bit', 'hash', 'see it'
    return html_table(heads, rows)


def failures_table(verdict: Verdict, factors: Sequence[Factor]) -> str:
    """Return failed runs with a recording, and the command that shows each."""
    by_name = {factor.name: factor for factor in factors}

    def case(row: Row) -> tuple[str, str]:
        factor = by_name.get(row['factor'])
        if factor is None:
            return row['factor'].replace('_', ' ') or 'as stated', row['level_text']
        return factor.label, factor.text(row['level'])

    failed = [row for row in verdict.rows if not row['success'] and row.get('recording')]
    failed.sort(key=lambda row: row['factor'] != verdict.factor and bool(row['factor']))
    rows = [
        (
            *case(row), row['contact_model'], str(int(row['seed'])), row['reason'],
            view_command(row),
        )
        for row in failed[:MOST_FAILURES]
    ]  # fmt: skip
    more = len(failed) - MOST_FAILURES
    rest = f'<p class="grey">and {more} more in runs/</p>' if more > 0 else ''
    return html_table(('case', 'value', 'law', 'seed', 'what happened', 'see it'), rows) + rest


def view_command(row: Mapping[str, Any]) -> str:
    """Return the command that opens the recording of a failed run shortly before its end."""
    end = float(row['end_time'])
    at = max(end - BEFORE_FAILURE, 0.0) if np.isfinite(end) else 0.0
    path = shlex.quote(str(row['recording']))
    return f'<code>python -m contact_sim.view {html.escape(path)} --at {at:.2f}</code>'
