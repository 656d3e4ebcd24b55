"""`python -m contact_sim.judge run.npz`: how well a trajectory keeps the laws of contact."""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from pathlib import Path

from contact_sim import _reading
from contact_sim._command_line import one_of
from contact_sim.collision._terrain import InclinedPlane, Plane
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.judge._score import VELOCITIES, judge
from contact_sim.judge._sources import from_mcap, from_recording
from contact_sim.judge._steps import Steps
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel

EXAMPLES = """\
examples:
  python -m contact_sim.judge run.npz                    a recording of this package, replayed
  python -m contact_sim.judge run.npz --model todorov    the same efforts under another model
  python -m contact_sim.judge steps.npz --robot go1      arrays of any engine
  python -m contact_sim.judge run.mcap --robot go1 --friction 0.8 --slope 0.1
  python -m contact_sim.judge run.npz --json --check     for scripts: exit 1 beyond a limit

entries of a file of arrays, n steps, m slots for contacts; all but the first three are optional:
  time (n+1), q (n+1, nq), v (n+1, nv)     states in Pinocchio's convention, start included
  effort (n, joints)                       joint efforts that acted [N m]
  bodies (names), body (n, m)              links that touch; place in `bodies`, -1: empty slot
  point, normal, force (n, m, 3)           world, at the start of the step; force on the body [N]
  gap, next_gap, friction (n, m)           signed distance before and after the step [m], mu [-]
  external (n, nv)                         further generalized forces
  contact_velocity (n, m, 3), active (n, m), interval_impulse (n, ns), time_step (n), robot,
  source, notes                            see contact_sim.judge.Steps
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(
        prog='python -m contact_sim.judge',
        description='Score a trajectory by the residuals of the laws of contact: largest value, '
        'percentiles, and when a limit is exceeded first.',
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = result.add_argument
    add('file', type=Path, help='.npz: a recording or arrays of steps; .mcap: topics of the node')
    add('--robot', help='name in the catalogue, URDF or xacro; default: the one in the file')
    add('--model', type=one_of('contact model', contact_models()), metavar='MODEL',
        help='replay a recording under this contact model')  # fmt: skip
    add('--velocity', choices=VELOCITIES, default=VELOCITIES[0],
        help='which velocities the laws are about; default: those of the motion')  # fmt: skip
    add('--friction', type=float, default=0.8, metavar='MU', help='of an MCAP file; default: 0.8')
    add('--slope', type=float, default=0.0, metavar='RAD',
        help='of the ground of an MCAP file; default: 0')  # fmt: skip
    add('--save', type=Path, metavar='FILE', help='write the steps as arrays, .npz')
    add('--json', action='store_true', help='print JSON')
    add('--check', action='store_true', help='end with 1 if a limit is exceeded')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 with one line of reason where it cannot be done."""
    options = parser().parse_args(arguments)
    try:
        robot, steps = read(options)
        if options.save:
            steps.save(options.save)
        score = judge(robot, steps, options.velocity)
    except (ContactSimError, ImportError, OSError) as error:
        print(f'python -m contact_sim.judge: {error}', file=sys.stderr)
        return 1
    print(json.dumps(score.as_dict(), indent=2) if options.json else score.table())
    return int(options.check and bool(score.broken))


def read(options: argparse.Namespace) -> tuple[RobotModel, Steps]:
    """Return robot and steps of the file."""
    path: Path = options.file
    robot = None if options.robot is None else load_robot(options.robot)
    _reading.regular_file(path)
    if path.suffix == '.mcap':
        if robot is None:
            raise InvalidInput(f'{path}: which robot? --robot go1, say')
        ground = InclinedPlane(options.slope) if options.slope else Plane()
        return robot, from_mcap(robot, path, ground, options.friction)
    if is_arrays(path):
        if options.model:
            raise InvalidInput(f'{path}: arrays cannot be replayed: --model is for recordings')
        steps = Steps.load(path)
        if robot is None and not steps.robot:
            raise InvalidInput(f'{path}: which robot? it has no entry `robot`: --robot go1, say')
        return robot or load_robot(steps.robot), steps
    recorded, steps = from_recording(path, options.model)
    return recorded, steps


def is_arrays(path: Path) -> bool:
    """Return whether a file holds arrays of steps, not a recording."""
    try:
        with _reading.opened_zip(path) as file:
            return not any(name.startswith(('header', 'initial/')) for name in file.namelist())
    except zipfile.BadZipFile:  # a recording whose process was killed, or anything
        return False


if __name__ == '__main__':
    sys.exit(main())
