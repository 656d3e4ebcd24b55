"""`make demo`: a robot lands and stands, or trots, over real ROS 2, judged from its topics alone.

Starts the simulation and a controller as two processes, watches for some simulated seconds, prints
a table and writes demo.json and demo.png. For `--demo stance` the robot falls from a small height;
for `--demo trot` it walks and turns as `cmd_vel` says, in lockstep with its controller.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError
from contact_sim.robot._catalogue import default_robot, robots
from contact_sim.ros.demo._figure import draw
from contact_sim.ros.demo._run import (
    FRICTION,
    Track,
    complaints,
    facts,
    judge,
    judge_trot,
    observe,
)

WATCH = (
    'watch it in a browser: python -m contact_sim.view {0.robot}, or with ROS '
    'ros2 launch contact_sim {0.demo}_demo.launch.py robot:={0.robot} viewer:=true'
)
SHORTEST = 1.0
"""Seconds below which there is nothing to judge: the robot has to land first."""


def print_table(result: dict[str, Any]) -> None:
    """Print the figures."""
    for name, value in result.items():
        if name != 'messages':
            text = f'{value:.4g}' if isinstance(value, float) else str(value)
            unit = {'m': 'm', 'seconds': 's'}.get(name.rsplit('_', 1)[-1], '')
            print(f'  {name.removesuffix("_m"):<20} {text:>12} {unit}')
    print('  messages')
    for topic, count in result['messages'].items():
        print(f'    {topic:<32} {count:>6}')


def run_and_judge(options: argparse.Namespace, logs: Path) -> int:
    """Run the demo, write its results and return the exit code."""
    run = observe(options.robot, options.demo, options.contact_model, options.seconds, logs)
    track = Track(run.robot, run.observer, run.begin, run.seconds)
    if not len(track.time):
        raise TimeoutError('no step was seen on all topics')
    result = judge(run, track)
    if options.demo == 'trot':
        del result['weight_error'], result['foot_drift_m']  # feet that step have none
        result |= judge_trot(track)
    print_table(result)
    (options.out / 'demo.json').write_text(json.dumps(result, indent=2) + '\n', encoding='utf-8')
    draw(run.robot, track, FRICTION, facts(result), options.out / 'demo.png')
    print(WATCH.format(options))
    wrong = complaints(result, float(run.robot.reference_configuration()[2]))
    for complaint in wrong:
        print(f'demo: {complaint}', file=sys.stderr)
    return 1 if wrong else 0


def watched_seconds(text: str) -> float:
    """Return the value of --seconds.

    Raises:
        ArgumentTypeError: too short to land and stand, or not a number.
    """
    value = float(text)
    if not SHORTEST <= value < np.inf:
        raise argparse.ArgumentTypeError(f'{text}: expected at least {SHORTEST:g} s')
    return value


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 only if nothing is wrong with the run."""
    parser = argparse.ArgumentParser(
        'python -m contact_sim.ros.demo', description=__doc__.splitlines()[0]
    )
    parser.add_argument('--robot', default=default_robot(), help='one of ' + ', '.join(robots()))
    parser.add_argument('--demo', default='stance', choices=('stance', 'trot'))
    parser.add_argument('--contact-model', default='ncp', choices=contact_models())
    parser.add_argument(
        '--seconds', type=watched_seconds, default=5.0, help='simulated time to watch'
    )
    parser.add_argument('--out', type=Path, default=Path('out'), help='folder for the results')
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='contact_sim_demo_') as folder:
        try:
            return run_and_judge(options, Path(folder))
        except (ContactSimError, TimeoutError) as error:
            print(f'demo: {error}', file=sys.stderr)
            for log in sorted(Path(folder).glob('*.log')):
                tail = log.read_text(encoding='utf-8', errors='replace')[-2000:]
                print(f'--- {log.name}\n{tail}', file=sys.stderr)
            return 1


if __name__ == '__main__':
    sys.exit(main())
