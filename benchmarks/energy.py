"""Energy of what falls: random drops on every ground, which must gain none beyond a bound.

    python benchmarks/energy.py [--drops 20] [--seconds 0.3] [--law ncp ... | all] [--jobs 2]

Loose bodies (box, cube, cylinder, capsule, ellipsoid, hull of a mesh), a stack of three boxes, and
robots without efforts, with self-collision and joint limits, are thrown at a plane, a height
field, its mesh, stairs, rails with gaps, and ground that is rough by 0.1 mm: random attitude,
random velocity, a little above the ground, e = 0. In each step the energy may rise by the work of
stabilisation and by what the integration makes of velocity products, `allowed` (theory 2.15).

A table per law has a row for each body and ground: drops, steps, the largest gain of energy in a
step [J/kg], the largest gain beyond what is allowed [J/kg], steps in which that is more than
rounding, runs that fell through or ended, steps that were not solved. Laws of
`guarantees.MAY_GAIN_ENERGY` have no bound. `--output` writes the table as it grows, as
Markdown and as JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from contact_sim import (
    InvalidInput,
    NonFiniteState,
    Plane,
    RobotModel,
    Simulator,
    contact_models,
    joined,
    load_robot,
    loose_box,
    loose_ellipsoid,
)
from contact_sim.collision._terrain import TerrainLike, as_terrain
from contact_sim.contact_models.guarantees import MAY_GAIN_ENERGY
from contact_sim.robot._standing_pose import lowest_heights
from contact_sim.terrain import HeightField, boxes

FRICTION, CHUNK = 0.6, 100
ROUNDING = 1e-9
"""Gain beyond what is allowed that counts as rounding of energies and solvers [J/kg]."""
REST, STILL = 1e-10, 20
"""Kinetic energy [J/kg] of a body at rest, and steps at rest after which a drop ends."""
Array = NDArray[np.float64]


@dataclass
class Row:
    """What happened in all drops of one body on one ground under one law."""

    law: str
    ground: str
    body: str
    drops: int = 0
    steps: int = 0
    largest: float = 0.0
    """Largest gain in a step [J/kg]."""
    excess: float = 0.0
    """Largest gain in a step beyond what is allowed [J/kg]."""
    beyond: int = 0
    """Steps that gain more than is allowed and rounding."""
    through: int = 0
    """Runs that fell through the ground."""
    ended: int = 0
    """Runs that ended, because they were not finite."""
    unsolved: int = 0
    """Steps that the solver did not solve."""
    worst: int = -1
    """Seed of the largest excess, or gain where none is bounded."""

    def add(self, other: Row) -> None:
        """Add what happened in other drops."""
        sign = (other.excess, other.largest) > (self.excess, self.largest)
        self.worst = other.worst if sign else self.worst
        for field in ('drops', 'steps', 'beyond', 'through', 'ended', 'unsolved'):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.largest = max(self.largest, other.largest)
        self.excess = max(self.excess, other.excess)


# What the energy may gain.


def allowed(robot: RobotModel, record: Any) -> float:
    """Return by how much the energy may rise in a step at most [J], see theory 2.15.

    Args:
        robot: the robot, without efforts, on ground at rest, e = 0.
        record: `StepReport.record` of the step.
    """
    return stabilisation(record) + integration(robot, record)


def stabilisation(record: Any) -> float:
    """Return −λᵀ b, and the work of bilateral constraints [J]."""
    work = -float(record.impulse @ record.bias)
    if len(record.bilateral_impulse):
        work += float(record.bilateral_impulse @ (record.bilateral_jacobian @ record.v_next))
    return work


def integration(robot: RobotModel, record: Any) -> float:
    """Return how much energy the integration of smooth motion may add at most [J]."""
    model, h = robot.pinocchio_model, float(record.time_step[0])
    bodies = model.inertias[1:]
    if model.njoints * 6 - 6 == model.nv and not any(Y.lever.any() for Y in bodies):
        # free bodies about their centres of mass: ½ h² |ω × I ω|² in the norm of I⁻¹
        total = 0.0
        for Y, w in zip(bodies, record.v_start.reshape(-1, 6)[:, 3:], strict=True):
            moment = np.cross(w, Y.inertia @ w)
            total += 0.5 * h * h * float(moment @ np.linalg.solve(Y.inertia, moment))
        return total
    # others: with M, C v + g, T and U of Pinocchio, from (q, v) to (q⁺, v⁺)
    data, v, after = model.createData(), record.v_start, record.v_next
    M = symmetric(pin.crba(model, data, record.q_start))
    effects = pin.nonLinearEffects(model, data, record.q_start, v)
    change = pin.computePotentialEnergy(model, data, record.q)
    change -= pin.computePotentialEnergy(model, data, record.q_start)
    M_after, dv = symmetric(pin.crba(model, data, record.q)), after - v
    change += 0.5 * float(record.v @ M_after @ record.v - after @ M @ after)
    turning = M @ record.transport - effects
    return float(change + h * after @ turning - 0.5 * dv @ M @ dv)


def symmetric(upper: Array) -> Array:
    """Return a matrix of which Pinocchio fills the upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


# Grounds and bodies.


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
    """Return loose bodies by name."""
    box = loose_box((0.2, 0.15, 0.1), 1.0)
    return {
        'box': loose_box((0.3, 0.2, 0.1), 1.0),
        'cube': loose_box((0.1, 0.1, 0.1), 1.0),
        'cylinder': body('<cylinder radius="0.08" length="0.2"/>', (0.00493, 0.00493, 0.0032)),
        'capsule': body('<capsule radius="0.04" length="0.2"/>', (0.0045, 0.0045, 0.0008)),
        'ellipsoid': loose_ellipsoid((0.12, 0.08, 0.05), 1.0),
        'pebble': pebble(),
        'stack': joined({'a': box, 'b': box, 'c': box}, against_each_other=True),
    }


ROBOTS = 'go1', 'solo12', 'anymal_c', 'four_bar_quadruped'


@cache
def dropped(name: str) -> RobotModel:
    """Return what is dropped; robots touch the ground and themselves with all their links."""
    if name in ROBOTS:
        return load_robot(name, body_contacts=True).with_self_collision()
    return bodies()[name]


@cache
def simulator(name: str, ground: str, law: str) -> Simulator:
    """Return the simulator of a cell of the table."""
    return Simulator(dropped(name), law, as_terrain(grounds()[ground]), friction=FRICTION)


# Drops.


def thrown(sim: Simulator, name: str, seed: int) -> tuple[Array, Array]:
    """Return configuration and velocity of a drop: a little above the ground, e = 0."""
    rng, robot = np.random.default_rng(seed), sim.robot
    q, v = sim.standing_configuration().copy(), np.zeros(robot.nv)
    place, turn = rng.uniform(-0.6, 0.6, 2), rng.standard_normal(4)
    down = rng.uniform(-2.0, 0.0)
    if name == 'stack':  # as it stands, the upper boxes off the middle
        for k in range(3):
            q[7 * k : 7 * k + 2] = place + rng.uniform(-0.03, 0.03, 2)
            q[7 * k + 2] = 0.102 * k + rng.uniform(0.0, 2e-3)
            v[6 * k + 2] = down
    else:
        q[:3], q[3:7] = [*place, 0.0], turn / np.linalg.norm(turn)
        v[:6] = rng.uniform(-3.0, 3.0, 6) * [0.2, 0.2, 0.0, 1.0, 1.0, 1.0]
        v[:3] += pin.Quaternion(q[3:7]).matrix().T @ [0.0, 0.0, down]
    points = (*robot.contact_points, *robot.body_points)
    low = lowest_heights(robot.pinocchio_model, points, q).min()
    # over the highest ground below it
    reach = 0.5 if name in ROBOTS else 0.15
    around = [(a, b) for a in (-reach, 0.0, reach) for b in (-reach, 0.0, reach)]
    top = max(0.0, *(sim.terrain.height(place[0] + a, place[1] + b) for a, b in around))
    heights = slice(2, 21 if name == 'stack' else 3, 7)
    q[heights] += top - low + rng.uniform(0.0, 0.02)
    while True:  # an edge of the ground may be in a body whose corners are all above it
        sim.reset(q, v)
        pairs = sim.step(np.zeros(robot.n_joints)).pairs
        depth = -float(pairs.gap[pairs.on_ground].min(initial=0.0))
        if depth <= 0.0:
            return q, v
        q[heights] += depth + 1e-3


def drops(name: str, ground: str, law: str, first: int, last: int, seconds: float) -> Row:
    """Return what happened in the drops with seeds from `first` to `last`."""
    row = Row(law, ground, name)
    try:
        sim = simulator(name, ground, law)
    except InvalidInput:
        return row  # not on this ground
    for seed in range(first, last):
        one = Row(law, ground, name, drops=1, worst=seed)
        try:
            drop(sim, *thrown(sim, name, seed), seconds, law not in MAY_GAIN_ENERGY, one)
        except NonFiniteState:
            one.ended += 1
        row.add(one)
    return row


def drop(sim: Simulator, q: Array, v: Array, seconds: float, bounded: bool, row: Row) -> None:
    """Follow one drop."""
    robot, mass, still = sim.robot, sim.robot.total_mass, 0
    efforts, gravity = np.zeros(robot.n_joints), sim.last_report.record.gravity
    sim.reset(q, v)
    for _ in range(round(seconds / sim.time_step)):
        report = sim.step(efforts)
        record = report.record
        # ½ vᵀ M v − g · Σ m c
        change = record.energy - record.energy_start
        gain = float(change[0] - gravity @ change[1:])
        row.steps += 1
        row.largest = max(row.largest, gain / mass)
        row.unsolved += not report.solver.converged
        if bounded and gain > 0.0:
            excess = gain - stabilisation(record)
            if excess > 0.1 * ROUNDING * mass:
                excess -= integration(robot, record)
            row.excess = max(row.excess, excess / mass)
            row.beyond += excess > ROUNDING * mass
        still = still + 1 if record.energy[0] < REST * mass else 0
        if still == STILL:
            break
    row.through += bool(record.energy[3] / mass < -0.5)


# The table.

COLUMNS = {
    'law': 'law',
    'body': 'body',
    'ground': 'ground',
    'drops': 'drops',
    'steps': 'steps',
    'largest': 'largest gain [J/kg]',
    'excess': 'beyond the bound [J/kg]',
    'beyond': 'steps beyond',
    'through': 'through',
    'ended': 'ended',
    'unsolved': 'unsolved',
    'worst': 'seed',
}


def line(row: Row) -> str:
    """Return a row of the table."""
    cells = asdict(row) | {'largest': f'{row.largest:.1e}', 'excess': f'{row.excess:.1e}'}
    if row.law in MAY_GAIN_ENERGY:
        cells |= {'excess': 'none', 'beyond': ''}
    return f'| {" | ".join(str(cells[name]) for name in COLUMNS)} |'


def written(rows: Sequence[Row], rate: float) -> str:
    """Return the table as Markdown."""
    head = [f'| {" | ".join(COLUMNS.values())} |', '|---|---|---|' + '--:|' * (len(COLUMNS) - 3)]
    total = sum(row.drops for row in rows)
    return '\n'.join([*head, *map(line, rows), '', f'{total} drops, {rate:.1f} per second.', ''])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--drops', type=int, default=20, help='of each body on each ground')
    parser.add_argument('--first', type=int, default=0, help='seed of the first drop')
    parser.add_argument('--seconds', type=float, default=0.3)
    parser.add_argument('--law', nargs='+', default=['ncp'], help='names, or all')
    parser.add_argument('--bodies', nargs='+', default=[*bodies(), *ROBOTS])
    parser.add_argument('--grounds', nargs='+', default=list(grounds()))
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--output', type=Path, help='folder of energy.md and energy.json')
    chosen = parser.parse_args()
    laws = contact_models() if chosen.law == ['all'] else chosen.law
    rows = {
        (law, name, ground): Row(law, ground, name)
        for law in laws
        for name in chosen.bodies
        for ground in chosen.grounds
        if name != 'ellipsoid' or ground == 'plane'
    }
    last, began = chosen.first + chosen.drops, time.perf_counter()
    with ProcessPoolExecutor(chosen.jobs) as pool:
        waiting = {}
        for law, name, ground in rows:
            for a in range(chosen.first, last, CHUNK):
                work = name, ground, law, a, min(a + CHUNK, last), chosen.seconds
                waiting[pool.submit(drops, *work)] = law, name, ground
        for part in as_completed(waiting):
            row = rows[waiting[part]]
            row.add(part.result())
            done = [one for one in rows.values() if one.drops]
            rate = sum(one.drops for one in done) / (time.perf_counter() - began)
            if row.drops == chosen.drops:
                print(line(row), flush=True)
                if chosen.output:
                    chosen.output.mkdir(parents=True, exist_ok=True)
                    (chosen.output / 'energy.md').write_text(written(done, rate), 'utf-8')
                    (chosen.output / 'energy.json').write_text(
                        json.dumps([asdict(one) for one in done], indent=1), 'utf-8'
                    )
    print(written(list(rows.values()), rate))


if __name__ == '__main__':
    main()
