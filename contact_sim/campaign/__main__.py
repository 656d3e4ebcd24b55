"""`python -m contact_sim.campaign stance --models all --friction 0.2 0.8 --seeds 20`: a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from contact_sim.campaign._campaign import BACKENDS, Campaign, product, sample, sobol, summary
from contact_sim.campaign._controllers import FORMS
from contact_sim.campaign._isolation import Limits
from contact_sim.campaign._scenarios import SCENARIOS
from contact_sim.campaign._table import read_rows
from contact_sim.campaign._trial import Trial
from contact_sim.contact_models import contact_models, model_names
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName

RANGES = {
    'friction': 'Coulomb coefficient of the ground [-]',
    'mass_scale': 'masses over those that the controller knows [-]',
    'delay': 'time from a state to the command for it [s]',
    'noise': 'size of the noise in what the controller sees [-]',
    'push': 'horizontal impulse on the base [N s]',
    'roughness': 'rms height of rough ground [m]',
    'start': 'size of a random change of the start [-]',
}
"""Factors that may be drawn from a range, with their meaning."""
EXAMPLES = """examples:
  python -m contact_sim.campaign stance --models all --friction 0.2 0.8 --seeds 20
      20 draws of the friction, each under all contact models
  python -m contact_sim.campaign trot --scenario trot --models ncp sap --mass-scale 0.9 1.1
      --push 0 10 --seeds 64 --design sobol --workers 4 --out trot.parquet
  python -m contact_sim.campaign my_package.walk:Controller --scenario my_scenario.yaml --seeds 10
  python -m contact_sim.campaign walk.py:step --backend dask --scheduler tcp://10.0.0.1:8786
  python -m contact_sim.campaign --show trot.parquet --by scenario
      the table so far, also while a campaign is running

The same command again goes on where the last one was interrupted.
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    scenarios = '\n'.join(
        f'  {name:7} {s.meaning}; goal: {s.goal}' for name, s in SCENARIOS.items()
    )
    result = argparse.ArgumentParser(
        prog='python -m contact_sim.campaign',
        description='Run a controller in many trials under several contact models; write one row '
        'per trial into a folder of Parquet files, and print the share of successes.',
        epilog=f'controllers: {FORMS}\n\nscenarios:\n{scenarios}\n\n{EXAMPLES}',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add('controllers', nargs='*', metavar='CONTROLLER', help='see below')
    add('--robot', nargs='+', default=['go1'], help='catalogue names, URDF or xacro files')
    add('--feet', nargs='+', default=[], metavar='LINK', help='links that are the feet of --robot')
    add('--check-meshes', action=argparse.BooleanOptionalAction, default=True,
        help='refuse a robot whose meshes are not on this machine')  # fmt: skip
    add('--scenario', nargs='+', default=['stand'], help='names below, or YAML files')
    add(
        '--models', nargs='+', default=['all'], metavar='MODEL',
        help='contact models, or presets of engines, of ' + ' '.join(model_names())
        + '; default: all models',
    )  # fmt: skip
    add(
        '--parameter', nargs='+', default=[], metavar='NAME=VALUE',
        help='parameters of the contact model, where there is only one',
    )  # fmt: skip
    add('--time-step', nargs='+', type=float, default=[1e-3], metavar='S', help='h [s]')
    add('--seconds', type=float, metavar='S', help='duration, default: that of the scenario')
    for name, meaning in RANGES.items():
        add(
            '--' + name.replace('_', '-'), nargs='+', type=float, metavar='X',
            help=f'{meaning}: one value, or the ends of a range',
        )  # fmt: skip
    add('--seeds', type=int, default=1, metavar='N', help='draws from the ranges, seeds 0 to N-1')
    add('--design', choices=('random', 'sobol'), default='random', help='how ranges are drawn')
    add('--design-seed', type=int, default=0, metavar='K', help='seed of the draws')
    add('--workers', type=int, metavar='N', help='trials at a time, default: one per core')
    add('--backend', default='threading', help='of joblib: ' + ', '.join(BACKENDS))
    add('--scheduler', metavar='ADDRESS', help='of a running Dask cluster')
    add('--batch', type=int, default=32, metavar='N', help='most trials that step together')
    add('--wall-limit', type=float, metavar='S', help='wall-clock time of a trial [s]')
    add('--memory-limit', type=float, default=4096.0, metavar='MB', help='memory of a worker [MB]')
    add('--out', type=Path, default=Path('campaign.parquet'), metavar='FOLDER')
    add('--by', default='contact_model', metavar='COLUMN', help='groups of the summary')
    add('--show', type=Path, metavar='FOLDER', help='only print the summary of a table')
    add('--quiet', action='store_true', help='no progress bar')
    return result


def trials_of(options: argparse.Namespace) -> list[Trial]:
    """Return the trials that the options describe.

    Raises:
        ContactSimError: a value that is not allowed.
    """
    if not options.controllers:
        raise InvalidInput(f'no controller is given: expected {FORMS}')
    models = list(contact_models()) if options.models == ['all'] else options.models
    for model in models:
        if model not in model_names():
            raise UnknownName('contact model', model, ['all', *model_names()])
    values: dict[str, Any] = {
        'controller': options.controllers, 'robot': options.robot, 'scenario': options.scenario,
        'contact_model': models, 'time_step': options.time_step, 'seconds': options.seconds,
        'parameters': tuple(map(_parameter, options.parameter)), 'feet': ','.join(options.feet),
    }  # fmt: skip
    drawn = False
    for name in RANGES:
        ends = getattr(options, name)
        if ends is None:
            continue
        if len(ends) > 2:
            raise InvalidInput(f'--{name.replace("_", "-")}: expected one value or two, {ends}')
        values[name] = tuple(ends) if len(ends) == 2 else ends[0]
        drawn = drawn or len(ends) == 2
    if not drawn:
        return product(**values, seed=range(options.seeds))
    draw = sobol if options.design == 'sobol' else sample
    return draw(options.seeds, options.design_seed, **values)


def _parameter(text: str) -> tuple[str, float | int | str]:
    name, equals, value = text.partition('=')
    if not (name and equals):
        raise InvalidInput(f'--parameter {text}: expected NAME=VALUE')
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 with one line of reason where it cannot be done."""
    options = parser().parse_args(arguments)
    needed = ['success', 'outcome', options.by]
    try:
        if options.show is not None:
            print(summary(read_rows(options.show, needed), options.by))
            return 0
        trials = trials_of(options)
        campaign = Campaign(
            tuple(trials), options.out, options.workers, options.backend, options.batch,
            Limits(options.wall_limit, options.memory_limit), options.check_meshes,
        )  # fmt: skip
        if options.scheduler is not None:
            from distributed import Client

            with Client(options.scheduler):
                campaign.run(not options.quiet)
        else:
            campaign.run(not options.quiet)
        rows = campaign.rows(needed)
        print(summary(rows, options.by))
        print(f'\n{len(rows)} rows in {options.out}')
    except KeyboardInterrupt:
        print(
            f'contact_sim.campaign: interrupted; what is done is in {options.out}, the same '
            'command goes on',
            file=sys.stderr,
        )
        return 130
    except (ContactSimError, ImportError, OSError) as error:
        print(f'contact_sim.campaign: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
