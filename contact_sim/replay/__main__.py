"""`python -m contact_sim.replay run.npz`: replay a recorded run and verify it bit by bit.

Ends with 0 if every step is the same, else with 1, and names the first step that is not. With
`--model sap` it then repeats the run under another contact model and says how far apart they get.
With `--mcap`, `--csv` or `--parquet` it writes the run, or the one under `--model`, into files.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from contact_sim._command_line import one_of, parser_with_examples
from contact_sim.contact_models import model_names
from contact_sim.errors import ContactSimError
from contact_sim.replay._export import RATES, Targets, export, parsed_rates
from contact_sim.replay._recording import Recording, describe_change
from contact_sim.replay._replayer import Comparison, Outcome, compare, repeat
from contact_sim.robot._loading import load_robot

LISTED = 20
"""Changes that are listed one by one."""


def description(recording: Recording) -> list[str]:
    """Describe a recording in words."""
    header, steps = recording.header, recording.steps
    robot, model = header['robot']['name'], header['contact_model']['name']
    lines = [f'{recording.path}: {robot}, {model}, {steps} steps of {header["time_step"]:g} s']
    events = recording.events
    for event in events[:LISTED]:
        lines.append(f'  before step {event["step"] + 1}: {describe_change(event)}')
    more = len(events) - LISTED
    return [*lines, f'  and {more} more changes'] if more > 0 else lines


def as_json(recording: Recording, outcome: Outcome, comparison: Comparison | None) -> str:
    """Return everything as JSON."""
    result: dict[str, Any] = {
        'equal': outcome.equal,
        'steps': outcome.steps,
        'first_difference': outcome.first_difference,
        'difference': outcome.difference,
        'damage': outcome.damage,
        'digest': outcome.digest,
        'other_versions': recording.other_versions,
        'robot': recording.header['robot']['name'],
        'contact_model': recording.header['contact_model']['name'],
    }
    if comparison is not None:
        result['comparison'] = {
            'contact_model': comparison.other,
            'largest_base_distance_m': float(comparison.base.max(initial=0.0)),
            'last_base_distance_m': float(comparison.base[-1:].sum()),
            'largest_joint_difference_rad': float(comparison.joints.max(initial=0.0)),
            'apart_from_s': comparison.apart_from(),
            'end': comparison.end,
        }
    return json.dumps(result, indent=2)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = parser_with_examples(
        'python -m contact_sim.replay',
        'Repeat a recorded run and compare every step to the bit; export it.',
        (
            'run.npz                        # 0 where every step is the same, else 1',
            'run.npz --model sap            # how far apart the run under sap gets',
            'run.npz --mcap run.mcap --rate 100 --csv run.csv',
        ),
    )
    add = result.add_argument
    add('recording', type=Path, help='file written with record:=FILE')
    add('--model', type=one_of('contact model', model_names()), metavar='MODEL',
        help='another contact model as well: ' + ' '.join(model_names()))  # fmt: skip
    add('--robot', help='refuse unless this robot (name or file) was recorded')
    add('--json', action='store_true', help='print JSON')
    add = result.add_argument_group('files to write').add_argument
    add('--mcap', type=Path, metavar='FILE', help='ROS 2 messages, as of the node')
    add('--csv', type=Path, metavar='FILE', help='table of the numbers')
    add('--parquet', type=Path, metavar='FILE', help='the same table in columns')
    add('--rate', action='append', default=[], metavar='HZ',
        help='default: every step; markers=25 for one of ' + ', '.join(RATES))  # fmt: skip
    add('--ground-truth', action='store_true', help='~/ground_truth in MCAP beside the sensors')
    add('--overwrite', action='store_true', help='replace files that are there')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Repeat a recording; return 0 if it is the same to the bit."""
    options = parser().parse_args(arguments)
    try:
        recording = Recording(options.recording)
        for version in recording.other_versions:
            print(f'replay: recorded with {version}: last bits may differ', file=sys.stderr)
        if options.robot:
            recording.check_robot(load_robot(options.robot))
        targets = Targets(
            options.mcap, options.csv, options.parquet, *parsed_rates(options.rate),
            options.ground_truth, options.overwrite,
        )  # fmt: skip
        if targets.paths:
            done = export(recording, targets, options.model)
            for path in targets.paths.values():
                print(f'{path}: {done.steps} steps, {path.stat().st_size / 1e6:.1f} MB')
            differing = done.first_difference
            if differing is not None:
                text = f'from step {differing} on they differ from the recording'
                print(f'replay: {text}', file=sys.stderr)
            if done.damage:
                print(f'replay: {done.damage}', file=sys.stderr)
            return 0 if differing is None and not done.damage else 1
        outcome = repeat(recording)
        comparison = compare(recording, options.model) if options.model else None
    except ContactSimError as error:
        print(f'replay: {error}', file=sys.stderr)
        return 1
    if options.json:
        print(as_json(recording, outcome, comparison))
        return 0 if outcome.equal else 1
    lines = description(recording)
    if outcome.equal:
        text = f'{outcome.steps} steps repeated, every state equal to the bit'
        lines.append(f'{text}; hash of the run {outcome.digest}')
    else:
        lines += [text for text in (outcome.difference, outcome.damage) if text]
        lines.append(f'{outcome.steps} steps repeated, equal to the bit')
    print('\n'.join([*lines, *(comparison.lines() if comparison else [])]))
    return 0 if outcome.equal else 1


if __name__ == '__main__':
    sys.exit(main())
