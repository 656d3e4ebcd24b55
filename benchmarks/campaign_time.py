"""Trials per minute of a campaign, next to as many runs of MuJoCo with the same controller.

    python benchmarks/campaign_time.py [--trials 2000] [--seconds 5] [--workers N] [--json FILE]

go1 trots at 0.3 m/s under each of the contact models in turn, with a friction and a scale of its
masses that are drawn for each trial; MuJoCo runs the same draws with its default options, as often
as all models together. Both control in every step of 1 ms, from Python, in as many processes, and
both build the robot anew for every trial. A campaign, besides, evaluates the residuals and bands
of every step, writes its rows, and can be interrupted. The engines take turns, in rounds; starting
processes counts, so a small number of trials is not worth measuring.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import engines
import joblib
import numpy as np
from engines import HAVE_MUJOCO, TIME_STEP, write_json

import contact_sim
from contact_sim.campaign import Campaign, Trial, sample, summary
from contact_sim.campaign._trial import robot_of
from contact_sim.control import Trot
from contact_sim.simulation._worlds import with_masses

SPEED = 0.3
"""Commanded [m/s], as in the scenario 'trot'."""
FRICTION, MASS = (0.4, 0.9), (0.9, 1.1)
"""Ranges of the draws."""


def mujoco_run(friction: float, mass_scale: float, seconds: float) -> float:
    """Trot in MuJoCo; return the distance covered [m]."""
    robot = robot_of('go1')
    masses = [inertia.mass for inertia in list(robot.pinocchio_model.inertias)[1:]]
    peer = engines.MujocoPeer(
        with_masses(robot, mass_scale * np.array(masses)), friction, TIME_STEP
    )
    start = robot.reference_configuration()
    peer.reset(start, robot.joint_positions(start))
    trot = Trot(robot)
    trot.velocity = SPEED, 0.0, 0.0
    for k in range(round(seconds / TIME_STEP)):
        peer.set_effort(trot.effort(k * TIME_STEP, *peer.state(robot)))
        peer.step()
    return float(peer.data.qpos[0])


def campaign_minutes(trials: Sequence[Trial], workers: int) -> tuple[float, list[dict[str, Any]]]:
    """Return the wall time of a campaign [min], and its rows."""
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(tuple(trials), Path(folder) / 'rows', workers)
        begin = time.perf_counter()
        campaign.run(progress=False)
        return (time.perf_counter() - begin) / 60.0, campaign.rows()


def mujoco_minutes(trials: Sequence[Trial], workers: int) -> tuple[float, list[float]]:
    """Return the wall time of the same draws in MuJoCo [min], and the distances [m]."""
    begin = time.perf_counter()
    with joblib.parallel_config('loky', n_jobs=workers):
        distances = joblib.Parallel()(
            joblib.delayed(mujoco_run)(trial.friction, trial.mass_scale, trial.seconds)
            for trial in trials
        )
    joblib.externals.loky.get_reusable_executor().shutdown()  # each round starts its processes
    return (time.perf_counter() - begin) / 60.0, distances


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--trials', type=int, default=2000)
    parser.add_argument('--seconds', type=float, default=5.0)
    parser.add_argument('--workers', type=int, default=os.cpu_count() or 1)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    models = list(contact_sim.contact_models())
    draws = max(options.trials // len(models), options.rounds)
    trials = sample(
        draws, controller='trot', scenario='trot', contact_model=models, friction=FRICTION,
        mass_scale=MASS, seconds=options.seconds,
    )  # fmt: skip
    mujoco_run(0.8, 1.0, 0.01)  # compiles the controller
    ours = theirs = 0.0
    rows: list[dict[str, Any]] = []
    distances: list[float] = []
    for k in range(options.rounds):
        part = trials[k :: options.rounds]
        spent, new = campaign_minutes(part, options.workers)
        ours += spent
        rows += new
        if HAVE_MUJOCO:
            spent, ends = mujoco_minutes(part, options.workers)
            theirs += spent
            distances += ends
    print(summary(rows))
    figures = {
        'trials': len(rows), 'seconds': options.seconds, 'workers': options.workers,
        'campaign': len(rows) / ours,
        'mujoco': len(distances) / theirs if distances else float('nan'),
        'success': float(np.mean([row['success'] for row in rows])),
        'mujoco_distance': float(np.median(distances)) if distances else float('nan'),
        'campaign_distance': float(np.median([row['distance'] for row in rows])),
    }  # fmt: skip
    print(
        f'\n{figures["trials"]} trials of {options.seconds:g} s, {options.workers} processes: '
        f'{figures["campaign"]:.0f} per minute, MuJoCo {figures["mujoco"]:.0f} per minute'
    )
    print(
        f'median distance {figures["campaign_distance"]:.2f} m, MuJoCo '
        f'{figures["mujoco_distance"]:.2f} m'
    )
    write_json(options.json, figures)


if __name__ == '__main__':
    main()
