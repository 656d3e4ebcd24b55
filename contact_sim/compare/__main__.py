"""`python -m contact_sim.compare --robot go1 --scenario slide`: every model, a table, a figure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from contact_sim._command_line import one_of, parser_with_examples
from contact_sim.compare._runs import (
    KEPT,
    UNITS,
    ModelRun,
    as_json,
    compare,
    steps_of,
    text,
    write,
)
from contact_sim.compare._scenarios import GRAVITY, SCENARIOS, Scenario, scenario_of
from contact_sim.contact_models import contact_models, model_names
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.errors import ContactSimError
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    scenarios = '\n'.join(f'  {name:6} {s.meaning}' for name, s in SCENARIOS.items())
    result = parser_with_examples(
        'python -m contact_sim.compare',
        'Run contact models on the same scenario: a table, a CSV and a JSON file, and a figure.',
        (
            '--robot go1 --scenario slide',
            '--robot my_robot.urdf --scenario drop --models ncp sap mujoco --time-step 0.002',
        ),
        f'\nscenarios:\n{scenarios}',
    )
    result.add_argument(
        '--robot', default=default_robot(), help='catalogue name, URDF or xacro file'
    )
    result.add_argument(
        '--scenario', default='slide', type=one_of('scenario', SCENARIOS), metavar='SCENARIO',
        help='one of ' + ' '.join(SCENARIOS),
    )  # fmt: skip
    result.add_argument(
        '--models', nargs='+', type=one_of('contact model', model_names()), metavar='MODEL',
        help='contact models or presets of engines: ' + ' '.join(model_names()) +
        '; default: all models',
    )  # fmt: skip
    result.add_argument('--time-step', type=float, default=1e-3, metavar='S', help='h [s]')
    result.add_argument('--duration', type=float, metavar='S', help='simulated time [s]')
    result.add_argument('--out', type=Path, default=Path('out'), metavar='DIR')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 with one line of reason where it cannot be done."""
    options = parser().parse_args(arguments)
    h = options.time_step
    try:
        robot = load_robot(options.robot)
        scenario = scenario_of(options.scenario, options.duration)
        models = options.models or contact_models()
        options.out.mkdir(parents=True, exist_ok=True)
        total = len(models) * steps_of(scenario, h) if h > 0.0 else 0
        with tqdm(total=total, unit='step', leave=False) as bar:

            def progress(model: str) -> None:
                if bar.desc != f'{model}: ':
                    bar.set_description(model)
                bar.update()

            runs = compare(robot, scenario, models, h, progress)
    except (ContactSimError, OSError) as error:
        print(f'contact_sim.compare: {error}', file=sys.stderr)
        return 1
    print(text(scenario, runs))
    path = options.out / f'compare-{robot.name}-{scenario.name}'
    facts = {'robot': robot.name, 'time_step': h}
    written = [*write(path, scenario, runs, facts)]
    try:
        draw(scenario, runs, robot, facts, path.with_suffix('.png'))
        written.append(path.with_suffix('.png'))
    except ImportError:
        print('no figure: it needs matplotlib (pip install matplotlib)', file=sys.stderr)
    print('\nwrote ' + ', '.join(map(str, written)))
    return 0


# --- The figure: one row per model, read from left to right
#
# What happened over time beside the reference; the number that tells the models apart beside its
# analytic value; the cost of a step; which laws were broken, and how badly.

INK, GREY, LINE = '#222222', '#8a8a8a', '#dddad4'
BLUE, BROKEN = '#0072B2', '#D55E00'
LABELS = {
    'penetration': 'pene-\ntration', 'signorini': 'Signo-\nrini',
    'force_at_distance': 'force at\ndistance', 'cone': 'friction\ncone',
    'dissipation': 'dissi-\npation', 'ncp': 'all in one\n(ncp)', 'slip': 'stiction\n',
    'momentum': 'momen-\ntum',
}  # fmt: skip
WIDTH = 10.5
"""Of the figure [inch]: text of 8 points is legible where a page shows it 800 pixels wide."""
DECADES = 8.0
"""Powers of ten above its limit at which the mark of a broken law is largest."""


def draw(
    scenario: Scenario,
    runs: Sequence[ModelRun],
    robot: RobotModel,
    facts: Mapping[str, Any],
    path: Path,
    unit: str = '',
    cost: str = 'µs per step',
) -> None:
    """Write the figure as PNG; its text `Description` has the numbers as the JSON file has them.

    Args:
        scenario: what was run.
        runs: one per row.
        robot: limits of most laws are per kg of its mass.
        facts: further entries of the numbers; `time_step` [s] is in the title.
        path: file to write.
        unit: model whose time of a step is 1; '': times are in µs.
        cost: heading of the times.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    count = len(runs)
    title = (
        f'{robot.name}, {scenario.name}: {scenario.meaning}; h = {1e3 * facts["time_step"]:g} ms'
    )
    style = {'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False}
    with plt.rc_context(style):
        height = 0.62 * count + 2.0
        figure = plt.figure(figsize=(WIDTH, height))
        grid = figure.add_gridspec(
            count, 4, width_ratios=(1.9, 2.2, 1.0, 4.9), hspace=0.0, wspace=0.09, left=0.115,
            right=0.995, top=1.0 - 1.25 / height, bottom=0.62 / height,
        )  # fmt: skip
        draw_traces([figure.add_subplot(grid[k, 0]) for k in range(count)], scenario, runs)
        panels = [figure.add_subplot(grid[:, k]) for k in (1, 2, 3)]
        for axes in panels:  # their rows lie beside those of the traces
            axes.set_ylim(count - 0.5, -0.5)
            axes.set_yticks([])
            axes.spines['left'].set_visible(False)
            for k in range(1, count):
                axes.axhline(k - 0.5, color=LINE, linewidth=0.8, zorder=0)
        draw_headline(panels[0], scenario, runs)
        draw_cost(panels[1], runs, unit)
        heading(panels[1], cost)
        draw_laws(panels[2], runs, robot.total_mass)
        figure.text(0.012, 1.0 - 0.2 / height, title, va='top', fontsize=15, weight='bold')
        numbers = {'Description': as_json(scenario, runs, facts)}
        figure.savefig(path, dpi=160, facecolor='white', metadata=numbers)
        plt.close(figure)


def heading(axes: Any, text: str) -> None:
    """Write what a column shows above it."""
    axes.set_title(text, fontsize=10, color=INK, loc='left', pad=8)


def draw_traces(axes: Sequence[Any], scenario: Scenario, runs: Sequence[ModelRun]) -> None:
    """Draw what happened over time, one row per model on common axes."""
    kind = {'drop': 'height', 'slide': 'forward', 'trot': 'forward'}.get(scenario.name, 'slipped')
    values = [np.array(getattr(run.trace, kind)) for run in runs]
    known = np.concatenate([v[np.isfinite(v)] for v in values] + [np.zeros(1)])
    low, high = known.min(), max(known.max(), 1e-3)
    margin = 0.18 * (high - low)
    for k, (ax, run, value) in enumerate(zip(axes, runs, values, strict=True)):
        draw_reference(ax, scenario, kind)
        ax.plot(run.trace.time, value, color=BROKEN if run.outcome else BLUE, linewidth=1.8)
        ax.set_xlim(0.0, scenario.duration)
        ax.set_ylim(low - margin, high + margin)
        ax.set_yticks([0.0, float(f'{high:.1g}')] if low > -0.1 * high else [0.0])
        ax.tick_params(axis='y', labelsize=8, colors=GREY, length=2)
        ax.spines['left'].set_color(LINE)
        ax.spines['bottom'].set_color(LINE)
        ax.set_ylabel(run.model, rotation=0, ha='right', va='center', labelpad=10,
                      fontsize=11, weight='bold', color=INK)  # fmt: skip
        if run.outcome:
            ax.text(0.98, 0.9, run.outcome[:58], transform=ax.transAxes, ha='right', va='top',
                    fontsize=8, color=BROKEN, weight='bold')  # fmt: skip
        if k < len(runs) - 1:
            ax.set_xticks([])
    axes[-1].set_xlabel('time [s]')
    heading(axes[0], scenario.trace)


def draw_reference(ax: Any, scenario: Scenario, kind: str) -> None:
    """Draw the analytic course in grey, where there is one."""
    time = np.linspace(0.0, scenario.duration, 200)
    style = {'color': GREY, 'linewidth': 1.0, 'linestyle': (0, (3, 2))}
    if scenario.name == 'slide':
        ax.plot(
            time, np.maximum(scenario.speed - scenario.friction * GRAVITY * time, 0.0), **style
        )
    elif kind == 'forward':
        ax.axhline(scenario.speed, **style)
    elif kind == 'slipped':
        ax.axhline(0.0, **style)


def draw_headline(axes: Any, scenario: Scenario, runs: Sequence[ModelRun]) -> None:
    """Draw the measure of the scenario; a line marks the analytic value."""
    expected = scenario.expected()
    values = np.array([run.headline(scenario) for run in runs])
    known = values[np.isfinite(values)]
    axes.axvline(expected, color=GREY, linewidth=1.2, linestyle=(0, (3, 2)), zorder=1)
    middle = 0.5 * max(known.max(initial=0.0), expected)
    for k, value in enumerate(values):
        if not np.isfinite(value):
            axes.text(0.5, k, '—', transform=axes.get_yaxis_transform(), ha='center',
                      va='center', color=GREY)  # fmt: skip
            continue
        axes.plot(value, k, 'o', color=BLUE, markersize=7, zorder=3)
        label = '0' if abs(value) < 1e-6 else f'{value:.4g}'
        if expected:
            label += f' ({signed_percent(value / expected - 1.0)})'
        axes.annotate(label, (value, k), (-9, 0) if value > middle else (9, 0), va='center',
                      ha='right' if value > middle else 'left', textcoords='offset points',
                      fontsize=8, color=INK)  # fmt: skip
    everything = np.array([*known, expected, 0.0])
    low, high = everything.min(), everything.max()
    span = max(high - low, 1e-6)
    axes.set_xlim(low - 0.12 * span, high + 0.15 * span)
    axes.locator_params(axis='x', nbins=4)
    heading(axes, f'{scenario.headline}\n{scenario.reference} {expected:.5g}')


def signed_percent(share: float) -> str:
    """Return a relative error as docs/which_model.md has it: −0.39 %, 0 %."""
    text = f'{100.0 * share:+.2f}'
    return ('0' if float(text) == 0.0 else text.replace('-', '−').removesuffix('.00')) + ' %'


def draw_cost(axes: Any, runs: Sequence[ModelRun], unit: str) -> None:
    """Draw wall time per step on a logarithmic axis, in µs or in units of a model."""
    times = {run.model: run.measures.step_time for run in runs}
    values = [time / times[unit] if unit else time for time in times.values()]
    known = [value for value in values if np.isfinite(value)] or [10.0, 100.0]
    axes.set_xscale('log')
    axes.set_xlim(min(known) / 1.8, max(known) * 2.2)
    for k, value in enumerate(values):
        if np.isfinite(value):
            axes.hlines(k, min(known) / 1.8, value, color=LINE, linewidth=3, zorder=1)
            axes.plot(value, k, 'o', color=INK, markersize=6, zorder=3)
            label = f'{value:.2f}' if unit and value < 9.995 else f'{value:.{1 if unit else 0}f}'
            axes.annotate(label, (value, k), (7, 0), va='center', fontsize=8.5,
                          textcoords='offset points', color=INK)  # fmt: skip
    axes.tick_params(axis='x', which='both', bottom=False, labelbottom=False)
    axes.spines['bottom'].set_visible(False)


def draw_laws(axes: Any, runs: Sequence[ModelRun], mass: float) -> None:
    """Draw a matrix of laws: a small dot where kept, a square with its residual where broken."""
    axes.set_xlim(-0.5, len(LAWS) - 0.5)
    for k, run in enumerate(runs):
        for column, law in enumerate(LAWS):
            if law not in run.laws:
                axes.text(column, k, '—', ha='center', va='center', color=GREY)
            elif not run.broken[law]:
                axes.plot(column, k, 'o', color=GREY, markersize=3.5)
            else:
                limit = KEPT[law] * (1.0 if law in ('penetration', 'slip') else mass)
                decades = np.log10(max(run.laws[law] / limit, 1.0))
                size = 5.0 + 12.0 * min(decades / DECADES, 1.0)
                axes.plot(column, k - 0.1, 's', color=BROKEN, markersize=size)
                axes.text(column, k + 0.43, quantity(law, run.laws[law]), ha='center',
                          va='bottom', fontsize=7.5, color=INK)  # fmt: skip
    axes.xaxis.tick_top()
    axes.spines['bottom'].set_visible(False)
    axes.set_xticks(range(len(LAWS)), [LABELS[law] for law in LAWS], fontsize=8)
    axes.tick_params(axis='x', length=0)
    below = {'transform': axes.transAxes, 'va': 'top', 'fontsize': 9}
    axes.text(0.0, -0.02, '■ law broken, with its largest residual', color=BROKEN, **below)
    axes.text(0.62, -0.02, '● law kept', color=GREY, **below)


def quantity(law: str, value: float) -> str:
    """Return a residual in a unit in which it is short."""
    unit = UNITS[law]
    for prefix, scale in (('', 1.0), ('m', 1e-3), ('µ', 1e-6)):
        if value >= (0.1 if unit == 'N s' else 1.0) * scale:  # a long unit, a short number
            return f'{value / scale:.{0 if value >= 10.0 * scale else 1}f} {prefix}{unit}'
    return f'{value:.0e} {unit}'


if __name__ == '__main__':
    sys.exit(main())
