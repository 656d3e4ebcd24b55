"""Robots that fall on their backs under every model, and what contacts of the body cost.

    python benchmarks/body_falls.py [--robots go1 ...] [--models ncp ...] [--cost]

falls     every robot dropped upside down from 0.5 m, its joints held, 3 s: speed at the end,
          largest depth on the way and at the end, error of the weight, steps not solved.
cost      µs per step of go1 under ncp: standing with its feet only, standing with contacts of the
          whole body (about 40, four of which touch), lying on its side. Blocks of steps alternate.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np

from contact_sim import Simulator, contact_models, load_robot, robots
from contact_sim.robot._actuators import holding
from contact_sim.simulation._report import StepReport

HEIGHT, SECONDS, STEP, GRAVITY = 0.5, 3.0, 1e-3, 9.81
LINKS = (
    'trunk',
    *(f'{leg}_{part}' for leg in ('FL', 'FR', 'RL', 'RR') for part in ('thigh', 'calf')),
)
FEW_CORNERS = 4
"""Links and corners of each with which go1 has 40 contact points."""
SIDEWAYS, UPSIDE_DOWN = (0.7071067811865476, 0.0, 0.0, 0.7071067811865476), (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Fall:
    """How a fall went."""

    speed: float
    """Largest velocity at the end [m/s, rad/s]."""
    deepest: float
    """Deepest contact of the whole fall [m]."""
    depth: float
    """Deepest contact at the end [m]."""
    weight: float
    """Sum of all vertical forces at the end over the weight, less 1 [-]."""
    unsolved: int
    """Steps that the solver did not solve."""


def dropped(sim: Simulator, attitude: tuple[float, float, float, float], height: float) -> None:
    """Put the robot at rest over the plane, turned to `attitude` (x, y, z, w)."""
    q = sim.standing_configuration()
    q[2], q[3:7] = 0.0, attitude
    sim.reset(q)
    q[2] = height - sim.last_report.contacts.gap.min()
    sim.reset(q)


def fall(name: str, model: str) -> Fall:
    """Drop a robot on its back; return how it went."""
    robot = load_robot(name).with_body_contacts()
    sim = Simulator(robot, model, friction=0.8, time_step=STEP)
    dropped(sim, UPSIDE_DOWN, HEIGHT)
    hold = holding(robot.joint_positions(sim.q), *robot.default_gains)
    reports: list[StepReport] = [sim.follow(hold, 1) for _ in range(round(SECONDS / STEP))]
    last = reports[-1]
    carried = last.links.force[:, 2].sum() / (GRAVITY * robot.total_mass)
    return Fall(
        float(np.abs(last.v).max()),
        max(-float(report.contacts.gap.min()) for report in reports),
        -float(last.contacts.gap.min()),
        float(carried - 1.0),
        sum(not report.solver.converged for report in reports),
    )


def cost(blocks: int = 30, steps: int = 200) -> dict[str, float]:
    """Return µs per step of go1, medians over alternating blocks."""
    feet = load_robot('go1')
    body = feet.with_body_contacts(LINKS, FEW_CORNERS)
    sims = {
        'feet only': Simulator(feet),
        f'{len(body.candidates)} candidates': Simulator(body),
        'on its side': Simulator(body),
    }
    dropped(sims['on its side'], SIDEWAYS, 1e-3)
    hold = holding(feet.joint_positions(sims['feet only'].q), *feet.default_gains)
    times: dict[str, list[float]] = {key: [] for key in sims}
    for block in range(blocks + 5):
        for key, sim in sims.items():
            start = time.perf_counter()
            sim.follow(hold, steps)
            if block >= 5:
                times[key].append(1e6 * (time.perf_counter() - start) / steps)
    return {key: statistics.median(values) for key, values in times.items()}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--robots', nargs='+', default=list(robots()))
    parser.add_argument('--models', nargs='+', default=list(contact_models()))
    parser.add_argument('--cost', action='store_true', help='only what it costs')
    chosen = parser.parse_args()
    print(*(f'{key} {value:.1f} µs' for key, value in cost().items()), sep='  ')
    if chosen.cost:
        return
    print(
        f'{"robot":12}{"model":12}{"speed":>9}{"mm deep":>9}{"at rest":>9}{"weight":>10}  unsolved'
    )
    for name in chosen.robots:
        for model in chosen.models:
            end = fall(name, model)
            print(
                f'{name:12}{model:12}{end.speed:9.1e}{1e3 * end.deepest:9.4f}'
                f'{1e3 * end.depth:9.4f}{end.weight:10.1e}  {end.unsolved}',
                flush=True,
            )


if __name__ == '__main__':
    main()
