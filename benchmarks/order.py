"""How fast each time-stepping law converges as h → 0: a robot drops and is caught by its legs.

    python benchmarks/order.py [--robot go1] [--laws ncp sap] [--grounds plane] [--json FILE]

The robot falls from a small height with a velocity forwards and its legs under joint PD, lands on
all feet one after the other, and stands or slips. Grounds: the plane, a height field of gentle
waves, and stairs with the front feet one step up.

error     of the state after 0.5 s: how far the body that is farthest off is from where the
          reference has it [mm]
order     p where errors go with hᵖ: slope of log error over log h, least squares from 1 ms on
floor     error at twice the step of the reference: what the others may be off by
to ncp    how far the references of a law and of ncp are apart [mm]

The reference is the same law with a step of 1/32 of the smallest, so an error is that of the time
step alone, not that of the law: a soft law tends to another motion than a rigid one. Impacts make
velocities jump at instants that steps only meet to within h: order 1 is the most to expect.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from engines import write_json
from numpy.typing import NDArray

from contact_sim import RobotModel, Sap, Simulator, load_robot
from contact_sim.robot import holding
from contact_sim.terrain import HeightField, Terraces, TriangleMesh

Array = NDArray[np.float64]
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
"""h [s]."""
FINE = STEPS[-1] / 32
"""h of the reference [s]."""
SECONDS, FRICTION, DROP, FORWARDS = 0.5, 0.8, 0.01, 0.2
"""Duration [s], μ, height of the lowest foot [m], speed at the start [m/s]."""
DAMPING = 0.25
"""Share of the damping of the robot's gains: explicit joint PD is stable at 4 ms with it."""
LAWS: dict[str, Any] = {
    'ncp': 'ncp',
    'lcp': 'lcp',
    'anitescu': 'anitescu',
    'todorov': 'todorov',
    'sap': 'sap',
    'sap, similar': Sap(approximation='similar'),
    'sap, acts_ahead': Sap(acts_ahead=True),
    'compliant': 'compliant',
}


def waves() -> HeightField:
    """Return waves of ±2 cm and 1 m in both directions, cells of 5 cm."""
    k = 2.0 * np.pi
    return HeightField.of_function(
        lambda x, y: 0.02 * np.sin(k * x + 0.5) * np.cos(k * y + 0.3),
        (4.0, 4.0),
        0.05,
        (-2.0, -2.0),
    )


def stairs() -> TriangleMesh:
    """Return steps of 3 cm, each 25 cm deep, of which the first rises at x = 0.05 m."""
    cuts = np.array([-3.0, 0.05, 0.3, 0.55, 3.0])
    heights = 0.03 * np.arange(4.0)[:, None]
    return Terraces(cuts, np.array([-2.0, 2.0]), heights).as_mesh()


GROUNDS: dict[str, Callable[[], Any]] = {
    'plane': lambda: 'plane',
    'waves': waves,
    'stairs': stairs,
}


def places(robot: RobotModel, q: Array) -> Array:
    """Return where the bodies and feet are [m], shape (n, 3)."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return np.array([frame.translation for frame in data.oMf])


def motion(robot: RobotModel, law: Any, ground: Any, time_step: float) -> Array:
    """Return the configuration after the drop, shape (nq,)."""
    sim = Simulator(robot, law, ground, friction=FRICTION, time_step=time_step)
    q, v = robot.reference_configuration(), np.zeros(robot.nv)
    q[2] += 0.2  # above all that there is
    sim.reset(q)
    q[2] += DROP - sim.last_report.contacts.gap.min()
    v[0] = FORWARDS
    sim.reset(q, v)
    stiffness, damping = robot.default_gains
    legs = holding(robot.joint_positions(q), stiffness, DAMPING * damping)
    sim.follow(legs, round(SECONDS / time_step))
    return sim.q


def order(errors: Array) -> float:
    """Return the slope of log error over log h over the last four steps."""
    return float(np.polyfit(np.log(STEPS[2:]), np.log(np.maximum(errors[2:], 1e-12)), 1)[0])


def apart(found: Array, exact: Array) -> float:
    """Return the largest distance between the same bodies in two motions [mm]."""
    return 1e3 * float(np.linalg.norm(found - exact, axis=1).max())


def measure(robot: RobotModel, laws: Sequence[str], ground: str) -> list[dict[str, Any]]:
    """Return the errors [mm] over STEPS, the order and the floor [mm] of each law on a ground."""
    surface, references = GROUNDS[ground](), dict[str, Array]()
    rows: list[dict[str, Any]] = []
    for name in laws:
        law = LAWS[name]
        exact, *found = (
            places(robot, motion(robot, law, surface, h)) for h in (FINE, 2.0 * FINE, *STEPS)
        )
        floor, *errors = (apart(one, exact) for one in found)
        references[name] = exact
        rows.append(
            {'ground': ground, 'law': name, 'errors_mm': errors, 'order': order(np.array(errors)),
             'floor_mm': floor}
        )  # fmt: skip
    if 'ncp' in references:
        for row in rows:
            row['to_ncp_mm'] = apart(references[row['law']], references['ncp'])
    return rows


def in_words(error: float) -> str:
    """Return an error in millimetres with two digits."""
    return f'{error:.0f}' if error >= 10.0 else f'{error:.2g}'


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table in Markdown."""
    heads = ' | '.join(f'{1e3 * h:g} ms' for h in STEPS)
    print(f'| ground | law | {heads} | order | floor | to ncp |')
    print('|---|---|' + '--:|' * (len(STEPS) + 3))
    for row in rows:
        cells = ' | '.join(map(in_words, row['errors_mm']))
        ends = (
            f'{row["order"]:.2f} | {row["floor_mm"]:.1g} | {in_words(row.get("to_ncp_mm", nan))}'
        )
        print(f'| {row["ground"]} | {row["law"]} | {cells} | {ends} |')


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--laws', nargs='+', choices=LAWS, default=list(LAWS))
    parser.add_argument('--grounds', nargs='+', choices=GROUNDS, default=list(GROUNDS))
    parser.add_argument('--json', type=Path, help='file for the same figures')
    chosen = parser.parse_args()
    robot, begin = load_robot(chosen.robot), time.monotonic()
    rows = [row for ground in chosen.grounds for row in measure(robot, chosen.laws, ground)]
    print_table(rows)
    print(f'\n{chosen.robot}, errors in mm after {SECONDS:g} s; {time.monotonic() - begin:.0f} s')
    write_json(chosen.json, rows)


if __name__ == '__main__':
    main()
