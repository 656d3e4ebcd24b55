"""Tables in Markdown and figures of rankings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim.reality._benchmark import Outcome, Ranking, mean_of

INK, GREY, LAW, PEER = '#222222', '#8a8a8a', '#0072B2', '#D55E00'
UNITS = {
    'stiffness': 'N/m', 'time_constant': 's', 'dissipation': 's/m', 'relaxation_time': 's',
}  # fmt: skip
NOT_APART = 'not apart'


def table(ranking: Ranking) -> str:
    """Return a ranking as a table in Markdown, best law first, then the peers."""
    first = ranking.measures[0]
    others = ranking.measures[1:]
    defaults = {one.name: one for one in ranking.outcomes if not one.fitted and not one.peer}
    head = [
        'law', f'{first.name} [{first.unit}], fitted', 'behind the best', 'at defaults',
        *(f'{one.name} [{one.unit}]' for one in others), 'fitted values',
    ]  # fmt: skip
    rows = [head, ['---', *('--:' for _ in head[1:-1]), '---']]
    for outcome in ranking.fitted():
        default = defaults.get(outcome.name)
        rows.append([
            name_of(outcome), str(mean_of(outcome.errors[:, 0])), _behind(ranking, outcome),
            '' if default is None else f'{default.errors[:, 0].mean():.3g}',
            *(f'{outcome.errors[:, i].mean():.3g}' for i in range(1, len(ranking.measures))),
            values_of(outcome.values, outcome.model),
        ])  # fmt: skip
    for outcome in (one for one in ranking.outcomes if one.peer):
        rows.append([
            f'*{outcome.model}* as `{outcome.name}`, '
            f'{"fitted values" if outcome.fitted else "its defaults"}',
            str(mean_of(outcome.errors[:, 0])) if outcome.fitted else '', '',
            '' if outcome.fitted else f'{outcome.errors[:, 0].mean():.3g}',
            *(f'{outcome.errors[:, i].mean():.3g}' for i in range(1, len(ranking.measures))),
            values_of(outcome.values, outcome.model),
        ])  # fmt: skip
    return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows)


def name_of(outcome: Outcome) -> str:
    """Return the name of a law with the presets that are the same."""
    names = ', '.join(f'`{name}`' for name in (outcome.name, *outcome.same_as))
    return names if outcome.name == outcome.model else f'{names} ({outcome.model})'


def _behind(ranking: Ranking, outcome: Outcome) -> str:
    """Return how far a law is behind the best one, where the interval says that it is."""
    if outcome is ranking.fitted()[0]:
        return 'best'
    difference = ranking.behind(outcome)
    return str(difference) if difference.low > 0.0 else NOT_APART


TICKS = (1.0, 2.0, 3.0, 5.0)
"""Of a decade, which are labelled."""


def values_of(values: Mapping[str, float], model: str) -> str:
    """Return parameters in words."""
    parts = []
    for name, value in values.items():
        unit = UNITS.get(name, '')
        if name == 'stiffness' and model == 'compliant' and 'dissipation' in values:
            unit = 'N/m^1.5'  # Hertz; kelvin_voigt has a damping ratio and N/m
        parts.append(f'{"μ" if name == "friction" else name} {value:.3g} {unit}'.strip())
    return ', '.join(parts)


def facts_table(ranking: Ranking) -> str:
    """Return the facts of a data set as a table in Markdown."""
    rows = ['| fact | value |', '|---|--:|']
    rows += [f'| {name} | {value:.4g} |' for name, value in ranking.facts.items()]
    return '\n'.join(rows)


def draw(ranking: Ranking) -> Any:
    """Return a figure: errors of all laws on held-out trials, fitted and at their defaults.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    fitted = ranking.fitted()[::-1]
    defaults = {one.name: one for one in ranking.outcomes if not one.fitted and not one.peer}
    peers = [one for one in ranking.outcomes if one.peer]
    style = {'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            1, 2, figsize=(11.0, 0.34 * len(fitted) + 1.5), sharey=True,
            gridspec_kw={'width_ratios': (1.5, 1.0)}, layout='constrained',
        )  # fmt: skip
        for i, one in enumerate(fitted):
            mean = mean_of(one.errors[:, 0])
            axes[0].plot([mean.low, mean.high], [i, i], color=LAW, lw=2.5)
            axes[0].plot(mean.value, i, 'o', color=LAW, label='fitted' if i == 0 else None)
            if one.name in defaults:
                axes[0].plot(
                    defaults[one.name].errors[:, 0].mean(), i, 'o', mfc='white', mec=GREY,
                    label='at defaults' if i == 0 else None,
                )  # fmt: skip
            quartiles = np.percentile(one.errors[:, 0], [5, 25, 50, 75, 95])
            axes[1].plot(quartiles[[0, 4]], [i, i], color=GREY, lw=1)
            axes[1].plot(quartiles[[1, 3]], [i, i], color=LAW, lw=4)
            axes[1].plot(quartiles[2], i, '|', color=INK, ms=11)
        rows = {name: i for i, one in enumerate(fitted) for name in (one.name, *one.same_as)}
        labelled = False
        for one in peers:
            if one.name in rows:
                axes[0].plot(
                    one.errors[:, 0].mean(), rows[one.name], 'x', color=PEER, ms=8, mew=1.8,
                    label=None if labelled else 'the engine itself',
                )  # fmt: skip
                labelled = True
        axes[0].set_yticks(range(len(fitted)), [', '.join((one.name, *one.same_as))
                                                for one in fitted])  # fmt: skip
        measure = ranking.measures[0]
        axes[0].set_xlabel(f'{measure.name} [{measure.unit}], mean and interval of 95 %')
        axes[1].set_xlabel('trials: 5, 25, 50, 75, 95 %')
        for panel in axes:
            scale_errors(panel)
        axes[0].legend(frameon=False, fontsize=9)
        figure.suptitle(
            f'{ranking.title}: {len(ranking.held_out)} held-out trials, laws fitted to '
            f'{len(ranking.training)} others', color=INK,
        )  # fmt: skip
    return figure


def scale_errors(panel: Any) -> None:
    """Give axes a logarithmic scale with ticks as 20, 30, 100 and not 2 × 10¹."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    panel.set_xscale('log')
    panel.xaxis.set_major_locator(LogLocator(subs=TICKS))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:g}'))
    panel.xaxis.set_minor_locator(NullLocator())
    if len([x for x in panel.get_xticks() if np.prod(panel.get_xlim() - x) < 0.0]) < 3:
        panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def write(ranking: Ranking, folder: Path) -> list[Path]:
    """Write table and figure of a ranking; return the files.

    The text `Description` of the picture has the table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / f'{ranking.experiment}.md'
    parts = [f'## {ranking.title}', table(ranking)]
    if ranking.facts:
        parts.append(facts_table(ranking))
    text.write_text('\n\n'.join(parts) + '\n', encoding='utf-8')
    picture = folder / f'{ranking.experiment}.png'
    figure = draw(ranking)
    words = {'Description': table(ranking)}
    figure.savefig(picture, dpi=140, facecolor='white', metadata=words)
    from matplotlib import pyplot as plt

    plt.close(figure)
    return [text, picture]
