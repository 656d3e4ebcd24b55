"""Identical runs under every contact model: how many different hashes come out?

    python benchmarks/determinism.py [--runs 100] [--seconds 5] [--models ncp sap] [--json FILE]
    python benchmarks/determinism.py --ros    node and controller as processes, in lockstep
    python benchmarks/determinism.py --free   the same in real time, repeated from recordings
                                              --times 10: ten runs of each pair of processes

Each run is a new simulation and a new controller, pushed in the middle; its hash is that of all
its states. One hash per model is the only right answer. Free runs do differ, as their commands
arrive when they arrive, but each must be repeated to the bit from its recording. They need a
machine that keeps up; how low the base ever was shows whether the robot fell.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from gaits import GAITS, chosen, gait

import contact_sim
from contact_sim.replay import Recording
from contact_sim.replay._replayer import ReplayedStep, repeat
from contact_sim.testing import Trial

ROBOT = 'go1'
FORCE = (0.0, 25.0, 0.0)
PUSH = 0.1
CONTROL_STEPS = 2
"""Physics steps of 1 ms per command."""
RATES = ('publish_rate.joint_states', 'publish_rate.odom')
UNHEARD = dict.fromkeys((f'publish_rate.{name}' for name in ('imu', 'wrenches')), 0.0)


def of_model(model: str) -> dict[str, Any]:
    """Return the same choice as ROS parameters."""
    return {'contact.model': model, 'contact.null_space.release': True, **UNHEARD}


def run_in_process(model: str, name: str, seconds: float, record: Path) -> None:
    """Simulate and record one run."""
    robot = contact_sim.load_robot(ROBOT)
    sim = contact_sim.Simulator(robot, chosen(model))
    with closing(Trial(sim, gait(name, robot), record, CONTROL_STEPS)) as trial:
        trial.advance(0.5 * seconds)
        trial.push(robot.base_frame, FORCE, PUSH)
        trial.advance(0.5 * seconds)


def run_free(model: str, name: str, seconds: float, record: Path, times: int = 1) -> None:
    """Run node and gait as processes in real time, neither waiting for the other."""
    from gait_session import gait_session
    from geometry_msgs.msg import WrenchStamped

    simulation = {'robot': ROBOT, 'record': record, **of_model(model)}
    simulation |= dict.fromkeys(RATES, 1000.0 / CONTROL_STEPS)
    with gait_session(simulation, {'robot': ROBOT, 'gait': name}) as client:
        pushes = client.node.create_publisher(WrenchStamped, 'external_wrench', 1)
        client.set({'push.duration': PUSH, 'push.axes': 'world'})
        push = WrenchStamped()
        push.header.frame_id = contact_sim.load_robot(ROBOT).base_frame
        push.wrench.force.y = FORCE[1]
        client.step(CONTROL_STEPS)  # in which they meet: no run
        for _ in range(times):
            client.reset()
            client.reset_time()
            client.pause(False)
            client.spin(0.5 * seconds)
            pushes.publish(push)
            client.spin(0.5 * seconds)
            client.pause()


def run_in_lockstep(model: str, name: str, seconds: float, record: Path, times: int = 1) -> None:
    """Start the node and the gait as processes, and record one run, or several one by one."""
    from contact_sim.testing._lockstep_trial import LockstepTrial

    node = Path(__file__).with_name('gait_node.py')
    with tempfile.TemporaryDirectory() as logs:
        trial = LockstepTrial(
            [node], Path(logs), ROBOT, CONTROL_STEPS, parameters=of_model(model),
            controller_parameters={'gait': name},
        )  # fmt: skip
        with closing(trial):
            for _ in range(times):
                trial.restart()
                trial.advance(0.5 * seconds)
                trial.push(contact_sim.load_robot(ROBOT).base_frame, FORCE, PUSH)
                trial.advance(0.5 * seconds)
        trial.recording.replace(record)


def digests_of(recording: Recording) -> list[str]:
    """Return one hash of all states for every run in a recording: they begin with a reset.

    What comes before the first reset is no run; without resets all is one.
    """
    states = np.concatenate([chunk.hashes for chunk in recording.chunks()])
    resets = sorted({event['step'] for event in recording.events if event['kind'] == 'reset'})
    digests = []
    for run in np.split(states, resets)[1:] if resets else [states]:
        digests.append(hashlib.blake2b(run.astype('<u8').tobytes(), digest_size=16).hexdigest())
    return digests


def repeated(recording: Recording) -> tuple[bool, float]:
    """Repeat a recording; return whether it is equal, and how low the base ever was [m]."""
    lowest = np.inf

    def look(step: ReplayedStep) -> None:
        nonlocal lowest
        if step.report is not None:
            lowest = min(lowest, float(step.report.q[2]))

    return repeat(recording, look).equal, lowest


def measure(model: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the figures of one model."""
    record, digests, begin = folder / 'run.npz', set(), time.perf_counter()
    steps, equal, runs, lowest = sys.maxsize, 0, 0, np.inf
    while runs < options.runs:
        times = min(options.times, options.runs - runs)
        if options.ros or options.free:
            run = run_free if options.free else run_in_lockstep
            run(model, options.gait, options.seconds, record, times)
        else:
            run_in_process(model, options.gait, options.seconds, record)
        recording = Recording(record)
        found = digests_of(recording)
        runs += len(found)
        digests |= set(found)
        steps = min(steps, recording.steps // len(found))  # a free run on a busy machine is late
        same, low = repeated(recording)
        equal += len(found) if same else 0
        lowest = min(lowest, low)
    return {
        'model': model,
        'runs': runs,
        'steps': steps,
        'hashes': sorted(digests),
        'repeated': equal,
        'lowest_m': lowest,
        'wall_s': time.perf_counter() - begin,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if any model has more than one hash."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--runs', type=int, default=100, help='per contact model')
    parser.add_argument('--seconds', type=float, default=5.0, help='simulated time of a run')
    models = contact_sim.contact_models()
    parser.add_argument('--models', nargs='+', default=models, choices=models)
    parser.add_argument('--gait', default='trot', choices=GAITS)
    how = parser.add_mutually_exclusive_group()
    how.add_argument('--ros', action='store_true', help='over ROS, in lockstep')
    how.add_argument('--free', action='store_true', help='over ROS, in real time, repeated')
    parser.add_argument('--times', type=int, default=1, help='runs of the same processes')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args(arguments)
    if options.times > 1 and not (options.ros or options.free):
        parser.error('--times needs --ros or --free')
    rows = []
    print(f'{"model":12}{"runs":>6}{"steps":>8}{"hashes":>8}{"repeated":>10}{"lowest":>8}  hash')
    with tempfile.TemporaryDirectory(prefix='contact_sim_determinism_') as folder:
        for model in options.models:
            row = measure(model, options, Path(folder))
            rows.append(row)
            found = row['hashes']
            counts = f'{row["runs"]:6}{row["steps"]:8}{len(found):8}{row["repeated"]:10}'
            print(f'{model:12}{counts}{row["lowest_m"]:8.3f}  {found[0]}', flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + '\n', encoding='utf-8')
    good = all(row['repeated'] == row['runs'] for row in rows)
    return 0 if good and (options.free or all(len(row['hashes']) == 1 for row in rows)) else 1


if __name__ == '__main__':
    sys.exit(main())
