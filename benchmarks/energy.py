"""Energy of what falls: random drops on every ground, which must not gain any in a step.

    python benchmarks/energy.py [--drops 20] [--seconds 0.8] [--models ncp ...] [--jobs 2]

Loose bodies (box, cube, cylinder, capsule, hull of a mesh), a stack of three boxes, and go1
without efforts are dropped in random attitudes with random velocities, e = 0, on a plane, a height
field, its mesh, stairs, rails with gaps, and ground that is rough by 0.1 mm. A row for each body,
ground and model: steps with contact, largest gain of energy in a step [J per kg], steps that gain
more than 1 µJ/kg and 1 mJ/kg, runs that fell through or ended, steps that were not solved.
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull

from contact_sim import (
    NonFiniteState,
    Plane,
    RobotModel,
    Simulator,
    joined,
    load_robot,
    loose_box,
)
from contact_sim.collision._terrain import TerrainLike, as_terrain
from contact_sim.robot._standing_pose import lowest_heights
from contact_sim.terrain import HeightField, boxes

GRAVITY, FRICTION = 9.81, 0.6
LITTLE, MUCH = 1e-6, 1e-3
"""Gains that are counted [J/kg]."""


@dataclass
class Row:
    """What happened in all drops of one body on one ground."""

    steps: int = 0
    """Steps with a contact."""
    largest: float = 0.0
    """Largest gain in a step [J/kg]."""
    little: int = 0
    """Steps that gain more than LITTLE."""
    much: int = 0
    """Steps that gain more than MUCH."""
    through: int = 0
    """Runs that fell through the ground."""
    ended: int = 0
    """Runs that ended, because they were not finite."""
    unsolved: int = 0
    """Steps that the solver did not solve."""


def grounds() -> dict[str, TerrainLike]:
    """Return the grounds by name."""
    x = 0.05 * np.arange(60)
    hills = HeightField(0.06 * np.sin(2 * x)[:, None] * np.cos(3 * x)[None], 0.05, (-1.5, -1.5))
    steps = range(8)
    grate = np.arange(-1.0, 1.0, 0.12)
    rough = 1e-4 * np.random.default_rng(1).standard_normal((60, 60))
    return {
        'plane': Plane(),
        'field': hills,
        'mesh': hills.as_mesh(),
        'stairs': boxes(
            [[-2.0, -1.5, -0.5], *([0.25 * i, -1.5, -0.5] for i in steps)],
            [[0.0, 1.5, 0.0], *([0.25 * i + 0.25, 1.5, 0.08 * i + 0.001] for i in steps)],
        ),
        'rails': boxes(
            [[-3.0, -3.0, -0.5], *([a - 0.02, -1.0, -0.06] for a in grate)],
            [[3.0, 3.0, -0.06], *([a + 0.02, 1.0, 0.0] for a in grate)],
        ),
        'rough': HeightField(rough, 0.05, (-1.5, -1.5)),
    }


def body(geometry: str, moments: tuple[float, float, float]) -> RobotModel:
    """Return a loose body of 1 kg."""
    x, y, z = moments
    return load_robot(
        '<robot name="body"><link name="body"><inertial><mass value="1"/>'
        f'<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<collision><geometry>{geometry}</geometry></collision></link></robot>',
        feet=(),
    )


def pebble() -> RobotModel:
    """Return a loose convex mesh of 24 corners."""
    points = np.random.default_rng(3).standard_normal((24, 3))
    points *= [[0.1, 0.07, 0.05]] / np.linalg.norm(points, axis=1)[:, None]
    hull = ConvexHull(points)
    lines = [f'v {x} {y} {z}' for x, y, z in points]
    lines += [f'f {a + 1} {b + 1} {c + 1}' for a, b, c in hull.simplices]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, 'pebble.obj')
        file.write_text('\n'.join(lines), encoding='utf-8')
        return body(f'<mesh filename="{file}"/>', (0.003, 0.005, 0.006))


@cache
def bodies() -> dict[str, RobotModel]:
    """Return what is dropped by name."""
    box = loose_box((0.2, 0.15, 0.1), 1.0)
    return {
        'box': loose_box((0.3, 0.2, 0.1), 1.0),
        'cube': loose_box((0.1, 0.1, 0.1), 1.0),
        'cylinder': body('<cylinder radius="0.08" length="0.2"/>', (0.00493, 0.00493, 0.0032)),
        'capsule': body('<capsule radius="0.04" length="0.2"/>', (0.0045, 0.0045, 0.0008)),
        'pebble': pebble(),
        'stack': joined({'a': box, 'b': box, 'c': box}, against_each_other=True),
        'go1': load_robot('go1'),
    }


def drops(name: str, ground: str, model: str, first: int, last: int, seconds: float) -> Row:
    """Return what happened in the drops with seeds from `first` to `last`."""
    robot, terrain, row = bodies()[name], as_terrain(grounds()[ground]), Row()
    sim = Simulator(robot, model, terrain, friction=FRICTION)
    mass, bases = robot.total_mass, robot.nq // 7 if name == 'stack' else 1
    for seed in range(first, last):
        rng = np.random.default_rng(seed)
        q, v = sim.standing_configuration().copy(), np.zeros(robot.nv)
        place = rng.uniform(-0.6, 0.6, 2)
        turn = rng.standard_normal(4)
        for k in range(bases):
            q[7 * k : 7 * k + 2] = place + 0.02 * k
            q[7 * k + 2] = 0.101 * k
            if bases == 1:
                q[3:7] = turn / np.linalg.norm(turn)
        if bases == 1:
            q[2] = 0.0
            v[:6] = np.r_[rng.uniform(-0.5, 0.5, 3), rng.uniform(-3.0, 3.0, 3)]
        points = (*robot.contact_points, *robot.body_points)
        low = lowest_heights(robot.pinocchio_model, points, q).min()
        top = max(terrain.height(*place), 0.0) + 0.12 + rng.uniform(0.0, 0.1)
        q[2 : 7 * bases : 7] += top - low
        sim.reset(q, v)
        before = np.inf
        try:
            for _ in range(round(seconds / sim.time_step)):
                report = sim.step(np.zeros(robot.n_joints))
                # ½ vᵀ M v − g · Σ m c
                now = (report.record.energy[0] + GRAVITY * report.record.energy[3]) / mass
                touching = len(report.pairs) or (report.contacts.gap < 0.005).any()
                if touching and np.isfinite(before):
                    gain = float(now - before)
                    row.steps += 1
                    row.largest = max(row.largest, gain)
                    row.little += gain > LITTLE
                    row.much += gain > MUCH
                row.unsolved += not report.solver.converged
                before = now
            row.through += bool(report.record.energy[3] / mass < -0.5)
        except NonFiniteState:
            row.ended += 1
    return row


def added(rows: list[Row]) -> Row:
    """Return the rows of several processes as one."""
    total = Row()
    for row in rows:
        for field in ('steps', 'little', 'much', 'through', 'ended', 'unsolved'):
            setattr(total, field, getattr(total, field) + getattr(row, field))
        total.largest = max(total.largest, row.largest)
    return total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--drops', type=int, default=20, help='of each body on each ground')
    parser.add_argument('--seconds', type=float, default=0.8)
    parser.add_argument('--models', nargs='+', default=['ncp'])
    parser.add_argument('--bodies', nargs='+', default=list(bodies()))
    parser.add_argument('--grounds', nargs='+', default=list(grounds()))
    parser.add_argument('--jobs', type=int, default=2)
    chosen = parser.parse_args()
    print('| model | ground | body | steps | largest gain [J/kg] | > 1 µJ/kg | > 1 mJ/kg |'
          ' through | ended | unsolved |')  # fmt: skip
    print('|---|---|---|--:|--:|--:|--:|--:|--:|--:|')
    edges = np.linspace(0, chosen.drops, chosen.jobs + 1).astype(int).tolist()
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for model, ground, name in product(chosen.models, chosen.grounds, chosen.bodies):
            parts = [
                pool.submit(drops, name, ground, model, a, b, chosen.seconds)
                for a, b in pairwise(edges)
            ]
            row = added([part.result() for part in parts])
            print(
                f'| {model} | {ground} | {name} | {row.steps} | {row.largest:.1e} | {row.little}'
                f' | {row.much} | {row.through} | {row.ended} | {row.unsolved} |',
                flush=True,
            )


if __name__ == '__main__':
    main()
