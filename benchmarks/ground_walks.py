"""Blind walks over real ground, and what its contacts cost.

    python benchmarks/ground_walks.py [--robots go1 anymal_b] [--models ncp todorov sap] [--cost]

walks     ten seconds of the package's trot at 0.3 m/s up a slope of 10 degrees, over blocks that
          differ by 3 cm, and up and down three stairs of 5 cm: distance, deepest contact, steps
          that were not solved.
cost      µs per step of a standing robot under ncp on the plane, on a field of 1 000 x 1 000
          heights and on stairs; blocks of steps alternate between them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_sim import Simulator, load_robot
from contact_sim.control._trot import Trot, TrotTuning
from contact_sim.robot._actuators import holding
from contact_sim.terrain import HeightField, Terraces, TerrainGenerator, TriangleMesh

STEPS, SPEED = 10_000, 0.3
SWING = {'go1': 0.35}
"""Height of a swing over the standing height, where steps of 5 cm are more than it clears."""


def slope() -> HeightField:
    """Return ground that is level at first, then rises at 10 degrees."""
    rise = np.tan(np.radians(10.0))
    return HeightField.of_function(
        lambda x, y: rise * np.maximum(x - 0.5, 0.0) + 0.0 * y, (8.0, 4.0), 0.05, (-2.0, -2.0)
    )


def grid() -> Any:
    """Return blocks that differ by up to 3 cm."""
    kind = {'grid_width': 0.45, 'grid_height_range': (0.015, 0.015), 'platform_width': 1.0}
    return TerrainGenerator(
        size=(10.0, 10.0), border_width=2.0, sub_terrains={'random_grid': kind}
    ).generate()


def stairs() -> TriangleMesh:
    """Return three steps of 5 cm up, and down again."""
    heights = np.array([0.0, 0.05, 0.1, 0.15, 0.1, 0.05, 0.0])[:, None]
    cuts = np.array([-2.0, *(0.6 + 0.35 * np.arange(6)), 9.0])
    return Terraces(cuts, np.array([-2.0, 2.0]), heights).as_mesh()


def sloped_stairs() -> HeightField:
    """Return the same steps as a height field, with slopes of 5 cm in place of the walls."""
    heights = np.array([0.0, 0.05, 0.1, 0.15, 0.1, 0.05, 0.0])
    cuts = 0.6 + 0.35 * np.arange(6)
    return HeightField.of_function(
        lambda x, y: heights[np.searchsorted(cuts, x)] + 0.0 * y, (11.0, 4.0), 0.05, (-2.0, -2.0)
    )


GROUNDS: dict[str, Callable[[], Any]] = {'slope': slope, 'grid': grid, 'stairs': stairs}


@dataclass(frozen=True)
class Walk:
    """How a walk went."""

    distance: float
    """Along x [m]."""
    upright: float
    """Vertical part of the vertical of the base at the end [-]."""
    depth: float
    """Deepest contact at the end of a step [m]."""
    unsolved: int
    """Steps that were not solved."""


def walk(name: str, ground: str, model: str) -> Walk:
    """Return how a robot walks over a ground of GROUNDS."""
    robot = load_robot(name)
    sim = Simulator(robot, model, GROUNDS[ground]())
    controller = Trot(robot, tuning=TrotTuning(swing_height=SWING.get(name, 0.2)))
    controller.velocity = (SPEED, 0.0, 0.0)
    unsolved, depth, start = 0, 0.0, float(sim.q[0])
    for _ in range(STEPS):
        report = sim.step(controller.effort(sim.time, sim.q, sim.v))
        unsolved += not report.solver.converged
        depth = max(depth, -float(report.contacts.gap.min()))
    x, y = sim.q[3:5]
    upright = 1.0 - 2.0 * (x * x + y * y)
    return Walk(float(sim.q[0]) - start, float(upright), depth, unsolved)


def cost(name: str, blocks: int = 30, steps: int = 200) -> dict[str, float]:
    """Return µs per step on plane, field and stairs, medians over alternating blocks."""
    heights = np.random.default_rng(0).uniform(0.0, 0.02, (1000, 1000))
    robot = load_robot(name)
    grounds: dict[str, Any] = {
        'plane': 'plane',
        'flat field': HeightField(np.zeros((1000, 1000)), 0.05, (-25.0, -25.0)),
        'rough field': HeightField(heights, 0.05, (-25.0, -25.0)),
        'stairs': stairs(),
    }
    sims = {key: Simulator(robot, 'ncp', ground) for key, ground in grounds.items()}
    stand = holding(robot.joint_positions(sims['plane'].q), *robot.default_gains)
    times: dict[str, list[float]] = {key: [] for key in sims}
    for block in range(blocks + 5):
        for key, sim in sims.items():
            start = time.perf_counter()
            sim.follow(stand, steps)
            if block >= 5:
                times[key].append(1e6 * (time.perf_counter() - start) / steps)
    return {key: statistics.median(values) for key, values in times.items()}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--robots', nargs='+', default=['go1', 'anymal_b'])
    parser.add_argument('--models', nargs='+', default=['ncp', 'todorov', 'sap'])
    parser.add_argument('--cost', action='store_true', help='only what it costs')
    chosen = parser.parse_args()
    for name in chosen.robots:
        found = cost(name)
        print(name, *(f'{key} {value:.1f} µs' for key, value in found.items()), sep='  ')
    if chosen.cost:
        return
    print(f'{"robot":10}{"ground":10}{"model":10}{"m":>8}{"upright":>9}{"mm deep":>9}  unsolved')
    for name in chosen.robots:
        for ground in GROUNDS:
            for model in chosen.models:
                way = walk(name, ground, model)
                print(
                    f'{name:10}{ground:10}{model:10}{way.distance:8.3f}{way.upright:9.4f}'
                    f'{1e3 * way.depth:9.3f}  {way.unsolved}'
                )


if __name__ == '__main__':
    main()
