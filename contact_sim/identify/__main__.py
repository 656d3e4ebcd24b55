"""`python -m contact_sim.identify run.mcap --robot go1 --fit friction armature`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from contact_sim._command_line import one_of, parser_with_examples
from contact_sim.contact_models import ContactModel, as_contact_model, model_names
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.identify._fit import identify
from contact_sim.identify._parameters import Setup
from contact_sim.judge import Steps, from_mcap, from_recording
from contact_sim.judge.__main__ import is_arrays
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel

ACCEPTED = """
files: .mcap or a folder of rosbag2 with /odom and joint_states of every step; a recording of this
package (.npz), whose robot is used if none is named; arrays (.npz): time, q, v, effort.

parameters: friction, restitution, delay; armature, joint_friction, viscous_friction,
torque_constant (all joints with one value; `name:joint` or `name:pattern` for some); mass, com_x,
com_y, com_z, ixx, iyy, izz, ixy, ixz, iyz (of the root; `name:link` for others); parameters of the
contact model such as stiffness, dissipation, time_constant.
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = parser_with_examples(
        'python -m contact_sim.identify',
        'Identify friction, contact, inertia and actuators from a log: estimates with intervals '
        'of 95 %, what the log does not tell apart, errors on held-out segments.',
        (
            'run.mcap --robot go1 --fit friction armature',
            "run.npz --fit torque_constant 'joint_friction:*_calf_joint' delay",
            'steps.npz --robot my.urdf --model compliant --set stiffness=1e5 dissipation=1 '
            '--fit friction stiffness dissipation',
        ),
        ACCEPTED,
    )
    add = result.add_argument
    add('file', type=Path, help='.mcap, folder of rosbag2, recording or arrays')
    add('--robot', help='name in the catalogue, URDF or xacro; default: the one in the file')
    add('--fixed-base', action='store_true', help='the root link of --robot does not move')
    add('--fit', nargs='+', required=True, metavar='PARAMETER', help='see below')
    add('--model', type=one_of('contact model', model_names()), metavar='MODEL', default='ncp',
        help='contact model; default: ncp')  # fmt: skip
    add('--set', nargs='+', default=[], metavar='NAME=VALUE', dest='values',
        help='parameters of the contact model to start from')  # fmt: skip
    add('--friction', type=float, default=0.8, metavar='MU', help='to start from; default: 0.8')
    add('--restitution', type=float, default=0.0, metavar='E', help='to start from; default: 0')
    add('--segment', type=float, default=0.1, metavar='S', help='length of a segment')
    add('--segments', type=int, default=12, metavar='N', help='most segments')
    add('--held-out', type=float, default=0.25, metavar='SHARE', help='of the segments')
    add('--noise', type=float, nargs=2, metavar=('Q', 'V'),
        help='deviations of configurations and velocities; default: estimated')  # fmt: skip
    add('--starts', type=int, default=4, metavar='N', help='number of starts')
    add('--threads', type=int, help='default: all cores')
    add('--json', action='store_true', help='print JSON')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 with one line of reason where it cannot be done."""
    options = parser().parse_args(arguments)
    try:
        robot, log = read(options)
        setup = Setup(
            robot, _model(options), friction=options.friction, restitution=options.restitution
        )
        found = identify(
            setup, log, options.fit, segment=options.segment, segments=options.segments,
            held_out=options.held_out, starts=options.starts, threads=options.threads,
            noise=None if options.noise is None else tuple(options.noise),
        )  # fmt: skip
    except (ContactSimError, ImportError, OSError) as error:
        print(f'python -m contact_sim.identify: {error}', file=sys.stderr)
        return 1
    print(json.dumps(found.as_dict(), indent=2) if options.json else found.table())
    return 0


def _model(options: argparse.Namespace) -> ContactModel:
    """Return the contact model with the parameters that are set."""
    model = as_contact_model(options.model)
    values = dict(vars(model.parameters))
    for text in options.values:
        name, equals, value = text.partition('=')
        if not equals or name not in values:
            raise InvalidInput(f'--set {text!r}: expected NAME=VALUE, NAME of {", ".join(values)}')
        kind = type(values[name])
        try:
            values[name] = kind(value) if kind is not bool else value == 'true'
        except ValueError as error:
            raise InvalidInput(f'--set {text!r}: expected a {kind.__name__}') from error
    return type(model)(**values)


def read(options: argparse.Namespace) -> tuple[RobotModel, Steps]:
    """Return robot and steps of the file."""
    path: Path = options.file
    robot = None
    if options.robot is not None:
        robot = load_robot(options.robot, floating_base=not options.fixed_base)
    if path.is_dir() or path.suffix == '.mcap':
        if robot is None:
            raise InvalidInput(f'{path}: which robot? --robot go1, say')
        return robot, from_mcap(robot, path)
    if is_arrays(path):
        steps = Steps.load(path)
        if robot is None and not steps.robot:
            raise InvalidInput(f'{path}: which robot? it has no entry `robot`: --robot go1, say')
        return robot or load_robot(steps.robot), steps
    recorded, steps = from_recording(path)
    return robot or recorded, steps


if __name__ == '__main__':
    sys.exit(main())
