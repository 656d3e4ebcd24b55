"""Quadruped on some of its feet.

With J of the feet that stand, J_b its columns of the base:

    base controllable    iff rank J_b = 6
    internal constraints     rank J - rank J_b
    uncontrollable motions   6 - rank J_b

Three joints a leg: every set of so many feet has the same ranks. What two feet leave is the
rotation about the line through them, and their one internal force acts along that line. With all
legs stretched no joint moves a foot along its leg: rank J_j falls to 8, J and J_b keep theirs.

Observe that the third foot makes the base controllable and the fourth only adds internal forces.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import RobotModel, analyse_support, load_robot
from textbook.quantity import Quantity

SOURCE = 'ETH floating base, contact constraints: table of the quadruped'
ROBOT = 'quadruped'

TABLE = {0: (0, 0, 0, 6), 1: (3, 3, 0, 3), 2: (6, 5, 1, 1), 3: (9, 6, 3, 0), 4: (12, 6, 6, 0)}
"""Feet to rank J, rank J_b, internal constraints, uncontrollable motions."""
WHAT = 'rank J', 'rank J_b', 'internal', 'uncontrollable'


@cache
def robot() -> RobotModel:
    """Return our quadruped."""
    return load_robot(ROBOT)


def ranks(feet: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return the numbers of the table for a set of feet."""
    s = analyse_support(robot(), robot().reference_configuration(), feet)
    return s.rank, s.base_rank, s.internal_constraints, s.uncontrollable_base_dof


def along_the_line(feet: tuple[int, ...]) -> tuple[float, float]:
    """Return |cos| of the motion that two feet leave with their line, and the force's moment."""
    s = analyse_support(robot(), robot().reference_configuration(), feet)
    (motion,) = s.uncontrollable_base_directions
    first, second = s.stance.position
    line = (second - first) / np.linalg.norm(second - first)
    force = np.concatenate([s.stance.frame[0] @ line, -s.stance.frame[1] @ line])
    return abs(motion.direction @ line), float(np.abs(s.base_jacobian.T @ force).max())


def stretched() -> tuple[int, int, int]:
    """Return rank J_j, rank J, rank J_b with straight legs."""
    q = robot().with_joint_positions(robot().reference_configuration(), np.zeros(12))
    s = analyse_support(robot(), q, range(4))
    return s.joint_rank, s.rank, s.base_rank


def quantities() -> list[Quantity]:
    """Return the table over all sets of feet, the line of two feet, and straight legs."""
    pairs = [along_the_line(feet) for feet in combinations(range(4), 2)]
    cosines, moments = zip(*pairs, strict=True)
    return [
        *(Quantity('E7', f'any {count} feet: {", ".join(WHAT)}', [numbers],
                   np.unique([ranks(feet) for feet in combinations(range(4), count)], axis=0), 0.0)
          for count, numbers in TABLE.items()),
        Quantity('E7', 'two feet: |cos| of what they leave with their line', np.ones(6), cosines,
                 1e-9),
        Quantity('E7', 'two feet: wrench on the base of a force along their line', np.zeros(6),
                 moments, 1e-9),
        Quantity('E5', 'straight legs: rank J_j, J, J_b', (8, 12, 6), stretched(), 0.0),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the table."""
    axes = figure.subplots()
    counts: NDArray[np.intp] = np.arange(5)
    table = np.array([ranks(tuple(range(count))) for count in counts])
    for column, what in enumerate(WHAT):
        axes.bar(counts + 0.2 * (column - 1.5), table[:, column], 0.2, label=what)
    axes.set(xlabel='feet', ylabel='number', title=robot().name)
    axes.legend()
