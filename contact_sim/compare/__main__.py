"""`python -m contact_sim.compare --robot go1 --scenario slide`: every model, a table, a figure."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

from contact_sim.compare._figure import draw
from contact_sim.compare._runs import compare, steps_of, text, write
from contact_sim.compare._scenarios import SCENARIOS, scenario_of
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._loading import load_robot


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    scenarios = '\n'.join(f'  {name:6} {s.meaning}' for name, s in SCENARIOS.items())
    result = argparse.ArgumentParser(
        prog='python -m contact_sim.compare',
        description='Run contact models on the same scenario: a table, a CSV and a JSON file, and '
        'a figure.',
        epilog=f'scenarios:\n{scenarios}',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        '--robot', default=default_robot(), help='catalogue name, URDF or xacro file'
    )
    result.add_argument('--scenario', default='slide', choices=list(SCENARIOS))
    result.add_argument(
        '--models', nargs='+', choices=contact_models(), metavar='MODEL',
        help='contact models, default: all of ' + ' '.join(contact_models()),
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
        title = f'{robot.name}, {scenario.name}: {scenario.meaning}; h = {1e3 * h:g} ms'
        draw(scenario, runs, title, robot.total_mass, path.with_suffix('.png'))
        written.append(path.with_suffix('.png'))
    except ImportError:
        print('no figure: it needs matplotlib (pip install matplotlib)', file=sys.stderr)
    print('\nwrote ' + ', '.join(map(str, written)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
