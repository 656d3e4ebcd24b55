"""`python -m contact_sim.verdict my_controller.py:Walk`: controller or contact law?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from contact_sim._command_line import parser_with_examples
from contact_sim.campaign import SCENARIOS
from contact_sim.contact_models import model_names
from contact_sim.errors import ContactSimError
from contact_sim.robot._catalogue import default_robot
from contact_sim.verdict._decision import Verdict
from contact_sim.verdict._investigation import verdict
from contact_sim.verdict._page import subtitle


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    scenarios = '\n'.join(f'  {x.name:6} {x.meaning}' for x in SCENARIOS.values())
    result = parser_with_examples(
        'python -m contact_sim.verdict',
        'Run a controller under every contact law, time steps and disturbances, and say what '
        'decides its outcome: in words, one figure and a page.',
        (
            'stance --scenario push --budget 90s',
            'my_controller.py:Walk --robot my.urdf --scenario trot',
            'trot --scenario slip --laws ncp sap mujoco --search',
        ),
        f'\nscenarios:\n{scenarios}',
    )
    add = result.add_argument
    add(
        'controller',
        help='stance, balance, trot, hold, module:callable, file.py:callable, policy.yaml; or '
        'a ROS program, ros:module or "ros:command line", at 250 Hz "ros@250:command line"',
    )
    add('--robot', default=default_robot(), help='catalogue name, URDF or xacro file')
    add(
        '--feet', nargs='+', metavar='LINK', help='links that are its feet, where they are unknown'
    )
    add('--check-meshes', action=argparse.BooleanOptionalAction, default=True,
        help='refuse a robot whose meshes are not on this machine')  # fmt: skip
    add('--scenario', default='stand', help=f'{", ".join(SCENARIOS)}, or a YAML file')
    add('--budget', default='5min', metavar='TIME', help='wall time, such as 90s or 5min')
    add('--output', type=Path, default=Path('out/verdict'), metavar='DIR')
    add('--search', action='store_true',
        help='look for the smallest disturbance under which it fails')  # fmt: skip
    add('--laws', nargs='+', metavar='LAW',
        help='contact models and presets of engines, default: all that differ, of '
        + ' '.join(model_names()))  # fmt: skip
    add('--factors', nargs='*', metavar='FACTOR',
        help='what is varied besides the law, default: time_step delay noise friction mass_scale '
        'push roughness start')  # fmt: skip
    add('--seconds', type=float, metavar='S', help='simulated time of a run [s]')
    add('--seeds', type=int, default=12, metavar='N', help='largest number of runs of a case')
    add('--seed', type=int, default=0, metavar='N', help='of everything random')
    add('--jobs', type=int, metavar='N', help='processes, default: one per core')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        0; 1 with one line of reason where it cannot be run.
    """
    options = parser().parse_args(arguments)
    try:
        found = verdict(
            options.controller, options.robot, options.scenario, options.budget, options.output,
            options.laws, options.factors, options.seeds, options.seconds, options.seed,
            options.jobs, options.search, lambda line: print(line, flush=True), options.feet,
            options.check_meshes,
        )  # fmt: skip
    except ContactSimError as error:
        print(f'contact_sim.verdict: {error}', file=sys.stderr)
        return 1
    print(text(found))
    return 0


def text(found: Verdict) -> str:
    """Return a verdict for the terminal."""
    lines = ['', found.headline, '', found.statement, '']
    lines.append(f'  {subtitle(found)}')
    lines += [f'  {evidence}' for evidence in found.evidence]
    if found.parting is not None:
        lines.append(f'  {found.parting.statement}')
    lines += [f'  margin, {m.label} under {m.law}: {m.text}' for m in found.margins]
    for worst in found.counterexamples:
        again = 'same to the bit' if worst.repeats else 'NOT THE SAME when run again'
        lines.append(f'  fails under {worst.law} with {worst.text} ({again}): {worst.reason}')
    lines += [f'  {note}' for note in found.notes]
    return '\n'.join(lines + ([f'\nwrote {found.page}'] if found.page else []))


if __name__ == '__main__':
    sys.exit(main())
