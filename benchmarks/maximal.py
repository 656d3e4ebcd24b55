"""Cost of a step and drift of chains in reduced and in maximal coordinates, from 5 to 200 links.

    python benchmarks/maximal.py [--links 5 10 20 50 100 200] [--json figures.json]

Pinned chains of uniform rods, 1 kg and 1 m each, fall from the horizontal in space. `reduced` is a
step of the Simulator, `aba` Pinocchio's articulated-body algorithm and its `integrate`, both from
Python; `sparse` and `dense` are steps of the MaximalSimulator. Figures are CPU time, the least of
all steps, whose kinds alternate in blocks. An exponent is that of the number of links, over the
last two lengths. Drift is measured on the first length, for each stabilisation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from engines import stay_on_one_core, write_json

from contact_sim import RobotModel, Simulator
from contact_sim.constraints import Baumgarte, Projection
from contact_sim.maximal import MaximalSimulator

BLOCKS, BLOCK_STEPS = 6, 5
LONGEST_DENSE = 0.5
"""CPU time of a step after which dense systems of longer chains are left out [s]."""
KINDS = 'reduced', 'aba', 'sparse', 'dense'
SECONDS = 1.0
"""Of the runs whose drift is measured."""


def chain(links: int) -> RobotModel:
    """Return a pinned chain of uniform rods along x, which turn about y."""
    model, joint, place = pin.Model(), 0, pin.SE3.Identity()
    rod = pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), np.diag([1e-6, 1.0, 1.0]) / 12.0)
    for i in range(links):
        joint = model.addJoint(joint, pin.JointModelRY(), place, f'joint{i + 1}')
        model.appendBodyToJoint(joint, rod, pin.SE3.Identity())
        place = pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0]))
    return RobotModel.from_pinocchio(model, name=f'chain of {links}')


def articulated_body(robot: RobotModel, h: float = 1e-3) -> Callable[[], None]:
    """Return a semi-implicit step by Pinocchio."""
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    q, v, none = np.zeros(robot.nq), np.zeros(robot.nv), np.zeros(robot.nv)

    def step() -> None:
        nonlocal q, v
        v = v + h * pin.aba(model, data, q, v, none)
        q = pin.integrate(model, q, h * v)

    return step


def steppers(robot: RobotModel, dense: bool) -> dict[str, Callable[[], object]]:
    """Return one step of every kind."""
    reduced, none = Simulator(robot), np.zeros(robot.n_joints)
    reduced.reset(np.zeros(robot.nq))
    found: dict[str, Callable[[], object]] = {
        'reduced': lambda: reduced.step(none),
        'aba': articulated_body(robot),
        'sparse': MaximalSimulator(robot, stabilisation=Baumgarte(10.0)).step,
    }
    if dense:
        found['dense'] = MaximalSimulator(
            robot, stabilisation=Baumgarte(10.0), solver='dense'
        ).step
    return found


def least_times(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least CPU time of a step of each kind [µs]."""
    least = dict.fromkeys(steps, np.inf)
    for _ in range(BLOCKS):
        for kind, step in steps.items():
            for _ in range(BLOCK_STEPS):
                begin = time.process_time()
                step()
                spent = 1e6 * (time.process_time() - begin)
                least[kind] = min(least[kind], spent)
                if spent > 1e6 * LONGEST_DENSE:
                    break
    return least


def measured(links: int, dense: bool) -> dict[str, Any]:
    """Return sizes and times for a chain."""
    robot = chain(links)
    system = MaximalSimulator(robot).system
    sizes = {'links': links, 'unknowns': system.size, 'entries': int(system.matrix.nnz)}
    return sizes | least_times(steppers(robot, dense))


def exponents(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the growth exponent of each kind over the last two lengths that it has."""
    found = {}
    for kind in KINDS:
        had = [row for row in rows if kind in row][-2:]
        if len(had) == 2:
            longer = np.log(had[1]['links'] / had[0]['links'])
            found[kind] = float(np.log(had[1][kind] / had[0][kind]) / longer)
    return found


def drifts(links: int) -> dict[str, dict[str, float]]:
    """Return drift, its rate and the change of energy after SECONDS, for each stabilisation."""
    found = {}
    for name, stabilisation in (
        ('none', Baumgarte(0.0)), ('Baumgarte(10)', Baumgarte(10.0)),
        ('Baumgarte(50)', Baumgarte(50.0)), ('Projection', Projection()),
    ):  # fmt: skip
        sim = MaximalSimulator(chain(links), stabilisation=stabilisation)
        start = sim.energy
        for _ in range(round(SECONDS / sim.time_step)):
            report = sim.step()
        found[name] = {
            'drift': report.drift, 'rate': report.drift_rate, 'energy': report.energy - start
        }  # fmt: skip
    return found


def main() -> None:
    """Print the tables, and write them as JSON where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--links', nargs='+', type=int, default=[5, 10, 20, 50, 100, 200])
    parser.add_argument('--core', type=int, help='core to stay on; −1: any')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    stay_on_one_core(options.core)
    rows: list[dict[str, Any]] = []
    print(f'{"links":>5}{"unknowns":>10}{"entries":>9}' + ''.join(f'{k:>11}' for k in KINDS))
    for links in options.links:
        dense = not rows or rows[-1].get('dense', np.inf) < 1e6 * LONGEST_DENSE
        row = measured(links, dense)
        rows.append(row)
        cells = (f'{row[kind]:11.0f}' if kind in row else f'{"-":>11}' for kind in KINDS)
        print(f'{links:5d}{row["unknowns"]:10d}{row["entries"]:9d}' + ''.join(cells), flush=True)
    growth = exponents(rows)
    print(f'{"exponent":>24}' + ''.join(f'{growth.get(kind, np.nan):11.2f}' for kind in KINDS))
    found = drifts(options.links[0])
    print(f'\n{options.links[0]} links after {SECONDS:g} s, h = 1 ms')
    for name, one in found.items():
        print(
            f'{name:14} |h| {one["drift"]:9.2e}   |h rate| {one["rate"]:9.2e}   '
            f'energy {one["energy"]:+.3f} J'
        )
    write_json(options.json, {'rows': rows, 'exponents': growth, 'drifts': found})


if __name__ == '__main__':
    main()
