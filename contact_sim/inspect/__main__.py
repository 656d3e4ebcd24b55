"""Inspect a robot description: python -m contact_sim.inspect my.urdf."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull, QhullError

from contact_sim._command_line import parser_with_examples
from contact_sim._types import Array
from contact_sim.errors import ContactSimError
from contact_sim.inspect._inspection import (
    Source,
    balance_trial,
    inspect_robot,
    lines,
    run_next,
    standing_trial,
)
from contact_sim.robot._files import xacro_arguments
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING, lowest_heights
from contact_sim.robot._trees import data_of


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = parser_with_examples(
        'python -m contact_sim.inspect',
        'Inspect a robot description: what was read, what was chosen, whether it stands.',
        (
            'my_robot.urdf',
            'my_robot.urdf --feet FL_foot FR_foot RL_foot RR_foot --no-trial',
            'my_robot.urdf.xacro --xacro-arguments mass:=3 --out out',
        ),
    )
    result.add_argument('robot', help='URDF or xacro file, or a robot of the catalogue')
    result.add_argument('--feet', nargs='*', metavar='LINK', help='links of the feet')
    result.add_argument('--srdf', metavar='FILE', help='SRDF with poses and end effectors')
    result.add_argument('--fixed-base', action='store_true', help='without a floating base')
    result.add_argument(
        '--xacro-arguments', nargs='*', metavar='NAME:=VALUE', help='arguments of a xacro'
    )
    result.add_argument(
        '--no-trial', action='store_true', help='do not simulate whether it stands'
    )
    result.add_argument('--out', type=Path, default=Path('out'), metavar='DIR', help='of the PNG')
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0; 1 where the robot stands neither held nor under Balance; 2, with one line of reason,
        where it cannot be loaded.
    """
    options = parser().parse_args(arguments)
    try:
        inspection = inspect_robot(
            Source(
                options.robot,
                None if options.feet is None else tuple(options.feet),
                options.srdf,
                not options.fixed_base,
                None if options.xacro_arguments is None
                else xacro_arguments(options.xacro_arguments) or {},
            )
        )  # fmt: skip
    except ContactSimError as error:
        print(f'{parser().prog}: {error}', file=sys.stderr)
        return 2
    print('\n'.join(lines(inspection)))
    robot = inspection.robot
    name = re.sub(r'[^\w.-]+', '_', robot.name) or 'robot'
    path = options.out / f'inspect-{name}.png'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(robot, f'{robot.name}, {robot.total_mass:.4g} kg', path)
        print(f'\npicture: {path}')
    except ImportError:
        print('\nno picture: it needs matplotlib (pip install matplotlib)')
    except OSError as error:
        print(f'\nno picture: {error}')
    stands = True
    if not options.no_trial and robot.floating_base:
        held, balanced = standing_trial(robot), balance_trial(robot)
        stands = held.stands or balanced.stands
        print(f'\ntrial with default gains under ncp: {held.why}')
        print(f'trial with the controller Balance under ncp: {balanced.why}')
    print('\n' + '\n'.join(run_next(inspection)))
    return 0 if stands else 1


# --- The robot in its standing pose, from the side, from the front and from above

INK, GREY, BLUE, ORANGE = '#222222', '#8a8a8a', '#0072B2', '#D55E00'
VIEWS = (('from the left', 0, 2), ('from the front', 1, 2), ('from above', 0, 1))
"""Title and world axes of a view."""
ON_GROUND = 1e-3
"""Height up to which a contact point supports [m]."""


def draw(robot: RobotModel, title: str, path: Path) -> None:
    """Write the figure as PNG: bodies as lines between joints, masses, and the support polygon."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    model, q = robot.pinocchio_model, robot.reference_configuration(STANDING)
    data = data_of(model)
    mass = pin.centerOfMass(model, data, q).copy()
    with plt.rc_context({'font.size': 9, 'axes.spines.top': False, 'axes.spines.right': False}):
        figure, panels = plt.subplots(1, 3, figsize=(13.0, 5.2), layout='constrained')
        for axes, (name, i, j) in zip(panels, VIEWS, strict=True):
            _bodies(axes, model, data, i, j)
            _feet(axes, robot, data, q, i, j)
            axes.plot(mass[i], mass[j], 'P', color=ORANGE, markersize=9, zorder=5)
            if j == 2:
                axes.axhline(0.0, color=GREY, linewidth=1.0, zorder=0)
                axes.axvline(mass[i], color=ORANGE, linewidth=0.8, linestyle=(0, (3, 3)))
            axes.set_aspect('equal', 'datalim')
            axes.set_title(name, loc='left', color=INK)
            axes.set_xlabel(f'{"xyz"[i]} [m]')
            axes.set_ylabel(f'{"xyz"[j]} [m]')
        key = panels[0]
        key.plot([], [], 'o', color=BLUE, label='contact points')
        key.plot([], [], 'P', color=ORANGE, label='centre of mass')
        key.scatter([], [], s=60, color=GREY, alpha=0.35, label='masses')
        key.legend(frameon=False, fontsize=8, loc='upper right')
        figure.suptitle(title, x=0.01, ha='left', fontsize=12, weight='bold')
        figure.savefig(path, dpi=110, facecolor='white')
        plt.close(figure)


def _bodies(axes: Any, model: pin.Model, data: pin.Data, i: int, j: int) -> None:
    """Draw a line from each joint to that which carries it, and discs for the masses."""
    for k in range(1, model.njoints):
        place, above = data.oMi[k].translation, int(model.parents[k])
        if above > 0:
            start = data.oMi[above].translation
            axes.plot([start[i], place[i]], [start[j], place[j]], '-', color=INK, linewidth=2.0)
            axes.plot(place[i], place[j], 'o', color=INK, markersize=3.0)
        inertia = model.inertias[k]
        centre = data.oMi[k].act(inertia.lever)
        size = 900.0 * inertia.mass / max(pin.computeTotalMass(model), 1e-12)
        axes.scatter(centre[i], centre[j], s=size, color=GREY, alpha=0.35, linewidths=0, zorder=1)


def _feet(axes: Any, robot: RobotModel, data: pin.Data, q: Array, i: int, j: int) -> None:
    """Draw the contact points; from above with the hull of those on the ground."""
    if not robot.contact_points:
        return
    model = robot.pinocchio_model
    low = lowest_heights(model, robot.contact_points, q)
    pin.forwardKinematics(model, data, q)
    places = np.array(
        [data.oMi[model.getJointId(p.joint)].act(p.offset) for p in robot.contact_points]
    )
    heights = places[:, 2] - np.array([p.radius for p in robot.contact_points])
    seen = np.column_stack([places[:, :2], heights])
    axes.plot(seen[:, i], seen[:, j], 'o', color=BLUE, markersize=4.0, zorder=4)
    standing = seen[low < low.min() + ON_GROUND][:, [i, j]]
    if j != 2 and len(standing) >= 3:
        try:
            corners = standing[ConvexHull(standing).vertices]
        except QhullError:
            return
        axes.fill(*corners.T, color=BLUE, alpha=0.12, zorder=0)


if __name__ == '__main__':
    sys.exit(main())
