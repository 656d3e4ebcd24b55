"""What is understood of a robot description: python -m contact_sim.inspect my.urdf."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from contact_sim.errors import ContactSimError
from contact_sim.inspect._drawing import draw
from contact_sim.inspect._report import (
    Source,
    inspect_robot,
    lines,
    run_next,
    standing_trial,
)
from contact_sim.robot._files import xacro_arguments
from contact_sim.robot._model import RobotModel


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(prog='python -m contact_sim.inspect', description=__doc__)
    result.add_argument('robot', help='URDF or xacro file, or a robot of the catalogue')
    result.add_argument('--feet', nargs='*', metavar='LINK', help='links of the feet')
    result.add_argument('--srdf', metavar='FILE', help='SRDF with poses and end effectors')
    result.add_argument('--fixed-base', action='store_true', help='without a floating base')
    result.add_argument(
        '--xacro-arguments', nargs='*', metavar='NAME:=VALUE', help='arguments of a xacro'
    )
    result.add_argument(
        '--no-trial', action='store_true', help='do not simulate whether it stands'
    )
    result.add_argument('--out', type=Path, default=Path('out'), metavar='DIR', help='of the PNG')
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0; 1 where the robot does not stand; 2, with one line of reason, where it cannot be loaded.
    """
    options = parser().parse_args(arguments)
    try:
        inspection = inspect_robot(
            Source(
                options.robot,
                None if options.feet is None else tuple(options.feet),
                options.srdf,
                not options.fixed_base,
                None if options.xacro_arguments is None
                else xacro_arguments(options.xacro_arguments) or {},
            )
        )  # fmt: skip
    except ContactSimError as error:
        print(f'{parser().prog}: {error}', file=sys.stderr)
        return 2
    print('\n'.join(lines(inspection)))
    print(f'\n{_drawn(inspection.robot, options.out)}')
    stands = True
    if not options.no_trial and inspection.robot.floating_base:
        trial = standing_trial(inspection.robot)
        stands = trial.stands
        print(f'\ntrial with default gains under ncp: {trial.why}')
    print('\n' + '\n'.join(run_next(inspection)))
    return 0 if stands else 1


def _drawn(robot: RobotModel, folder: Path) -> str:
    name = re.sub(r'[^\w.-]+', '_', robot.name) or 'robot'
    path = folder / f'inspect-{name}.png'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draw(robot, f'{robot.name}, {robot.total_mass:.4g} kg', path)
    except ImportError:
        return 'no picture: it needs matplotlib (pip install matplotlib)'
    except OSError as error:
        return f'no picture: {error}'
    return f'picture: {path}'


if __name__ == '__main__':
    sys.exit(main())
