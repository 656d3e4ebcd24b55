"""Robots that fall on their backs under every model, and what contacts of the body cost.

    python benchmarks/body_falls.py [--robots go1 ...] [--models ncp ...] [--cost]

falls     every robot dropped upside down from 0.5 m, its joints held, 3 s: speed at the end,
          largest depth on the way and at the end, error of the weight, steps not solved.
cost      µs per step of go1 under ncp: standing with its feet only, standing with bodies, which
          touch nothing, fallen on its side, and fallen across stairs, beside MuJoCo with the same
          shapes. Blocks of steps alternate. Then the mean step of robots that tumble: dropped in
          random attitudes, with new random targets of all joints every 0.2 s.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from contact_sim import RobotModel, Simulator, contact_models, load_robot, robots
from contact_sim.robot._actuators import JointCommand, holding
from contact_sim.robot._standing_pose import lowest_heights
from contact_sim.simulation._report import StepReport
from contact_sim.terrain import boxes

Corners = tuple[Sequence[float], Sequence[float]]
HEIGHT, SECONDS, STEP, GRAVITY, FRICTION = 0.5, 3.0, 1e-3, 9.81, 0.8
STAIRS = [
    ([-1.0 + 0.25 * k, -1.5, 0.0], [-0.75 + 0.25 * k, 1.5, 0.08 * k + 0.001]) for k in range(8)
]
"""Least and largest corners of the steps [m]."""
FLOOR = ([-6.0, -6.0, -0.5], [6.0, 6.0, 0.0])
DROP, TUMBLE, SWING, BLOCK = 0.6, 2.0, 0.6, 200
"""Height [m], seconds, largest way of a joint [rad] and steps with the same targets, tumbling."""
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
    robot, q = sim.robot, sim.standing_configuration()
    q[2], q[3:7] = 0.0, attitude
    points = (*robot.contact_points, *robot.body_points)
    q[2] = height - lowest_heights(robot.pinocchio_model, points, q).min()
    sim.reset(q)


def fall(name: str, model: str) -> Fall:
    """Drop a robot on its back; return how it went."""
    robot = load_robot(name).with_body_contacts()
    sim = Simulator(robot, model, friction=FRICTION, time_step=STEP)
    dropped(sim, UPSIDE_DOWN, HEIGHT)
    hold = holding(robot.joint_positions(sim.q), *robot.default_gains)
    reports: list[StepReport] = [sim.follow(hold, 1) for _ in range(round(SECONDS / STEP))]
    last = reports[-1]
    carried = last.links.force[:, 2].sum() / (GRAVITY * robot.total_mass)
    return Fall(
        float(np.abs(last.v).max()),
        max(-float(report.pairs.gap.min(initial=0.0)) for report in reports),
        -float(last.pairs.gap.min(initial=0.0)),
        float(carried - 1.0),
        sum(not report.solver.converged for report in reports),
    )


def cost(blocks: int = 30, steps: int = 200) -> dict[str, tuple[float, float]]:
    """Return µs per step of go1 and of MuJoCo, NaN without it: medians over alternating blocks."""
    feet, body = load_robot('go1', body_contacts=False), load_robot('go1')
    stairs = boxes(*(np.array(STAIRS)[:, k] for k in range(2)))
    sims = {
        'standing, feet only': Simulator(feet, friction=FRICTION),
        'standing': Simulator(body, friction=FRICTION),
        'fallen': Simulator(body, friction=FRICTION),
        'fallen on stairs': Simulator(body, terrain=stairs, friction=FRICTION),
    }
    dropped(sims['fallen'], SIDEWAYS, 1e-3)
    dropped(sims['fallen on stairs'], SIDEWAYS, 0.5)
    hold = holding(feet.joint_positions(sims['standing'].q), *feet.default_gains)
    peers = {key: peer(key, sim, hold) for key, sim in sims.items()}
    times: dict[str, tuple[list[float], list[float]]] = {key: ([], []) for key in sims}
    for block in range(blocks + 10):
        for key, sim in sims.items():
            for number, into in enumerate(times[key]):
                start = time.perf_counter()
                if number == 0:
                    sim.follow(hold, steps)
                else:
                    peers[key](steps)
                if block >= 10:  # they have come to rest
                    into.append(1e6 * (time.perf_counter() - start) / steps)
    return {key: (statistics.median(a), statistics.median(b)) for key, (a, b) in times.items()}


def tumbling(name: str, steps: Sequence[Corners], falls: int = 20) -> tuple[float, float]:
    """Return the mean µs per step of a robot that tumbles over boxes, and of MuJoCo, NaN without.

    The ground is a plane where there are no boxes, else a floor with them.
    """
    robot, random = load_robot(name), np.random.default_rng(0)
    corners = np.array([FLOOR, *steps])
    ground = boxes(corners[:, 0], corners[:, 1]) if steps else 'plane'
    sim = Simulator(robot, terrain=ground, friction=FRICTION)
    middle = robot.joint_positions(sim.standing_configuration())
    other = mujoco_of(robot, holding(middle, *robot.default_gains), steps)
    times: tuple[list[float], list[float]] = [], []
    for fall in range(falls + 1):
        attitude = random.normal(size=4)
        dropped(sim, tuple(attitude / np.linalg.norm(attitude)), DROP)
        if other is not None:
            other.reset(sim.q, robot.joint_positions(sim.q))
        for _ in range(round(TUMBLE / BLOCK / STEP)):
            hold = holding(
                middle + random.uniform(-SWING, SWING, len(middle)), *robot.default_gains
            )
            if other is not None:
                other.set_targets(hold.position)
            runs = [partial(sim.follow, hold), *([other.step] if other is not None else [])]
            for into, run in zip(times, runs, strict=False):
                start = time.perf_counter()
                run(BLOCK)
                if fall > 0:  # the first one loads what steps need
                    into.append((time.perf_counter() - start) / BLOCK)
    ours, theirs = (1e6 * statistics.mean(each) if each else float('nan') for each in times)
    return ours, theirs


def peer(key: str, sim: Simulator, hold: JointCommand) -> Callable[[int], None]:
    """Return what advances MuJoCo from the same state by a number of steps."""
    robot, stairs = sim.robot, STAIRS if 'stairs' in key else ()
    other = mujoco_of(robot, hold, stairs, 'feet' not in key)
    if other is None:
        return lambda _: None
    other.reset(sim.q, robot.joint_positions(sim.q))
    other.set_targets(hold.position)
    advance: Callable[[int], None] = other.step
    return advance


def mujoco_of(
    robot: RobotModel, hold: JointCommand, steps: Sequence[Corners], whole_body: bool = True
) -> Any | None:
    """Return a robot in MuJoCo with the gains of `hold`, None without MuJoCo."""
    try:
        from mujoco_peer import MujocoPeer
    except ImportError:
        return None
    gains = (hold.stiffness, hold.damping)
    return MujocoPeer(robot, FRICTION, STEP, gains=gains, whole_body=whole_body, steps=steps)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--robots', nargs='+', default=list(robots()))
    parser.add_argument('--models', nargs='+', default=list(contact_models()))
    parser.add_argument('--cost', action='store_true', help='only what it costs')
    chosen = parser.parse_args()
    for key, (ours, theirs) in cost().items():
        print(f'{key:22} {ours:7.1f} µs   MuJoCo {theirs:7.1f} µs')
    for name in ('go1', 'anymal_b'):
        for ground, steps in (('plane', ()), ('stairs', STAIRS)):
            ours, theirs = tumbling(name, steps)
            what = f'{name} tumbles, {ground}'
            print(f'{what:22} {ours:7.1f} µs   MuJoCo {theirs:7.1f} µs', flush=True)
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
