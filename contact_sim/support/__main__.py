"""Analyse sets of feet: python -m contact_sim.support --robot anymal_b [--feet ...]."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import combinations

from numpy.typing import ArrayLike

from contact_sim._command_line import parser_with_examples
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING
from contact_sim.support._analysis import Support, analyse_support
from contact_sim.support._stance_dynamics import foot_indices

# --- The table of theory E5 and E7: one row per set of feet

LARGEST = 12
"""Feet of which every subset can be listed: 4096 rows."""
HEADER = (
    'feet', 'rows', 'rank J', 'rank J_b', 'internal', 'uncontrollable', 'base moves in',
    'conditioning', 'margin [m]',
)  # fmt: skip


def stances(feet: Sequence[int]) -> list[tuple[int, ...]]:
    """Return every subset of `feet`, the smallest first; InvalidInput beyond LARGEST feet."""
    if len(feet) > LARGEST:
        raise InvalidInput(
            f'{len(feet)} feet have {2 ** len(feet)} subsets; name at most {LARGEST} with --feet'
        )
    return [some for count in range(len(feet) + 1) for some in combinations(feet, count)]


def row_of(support: Support) -> tuple[str, ...]:
    """Return the cells of one stance, as in HEADER."""
    margin = f'{support.margin:+.4f}' if support.feet else '-'
    numbers = (
        len(support.contact_jacobian), support.rank, support.base_rank,
        support.internal_constraints, support.uncontrollable_base_dof, support.base_mobility,
    )  # fmt: skip
    feet = ' '.join(support.feet) or '(flight)'
    return (feet, *(str(n) for n in numbers), f'{support.conditioning:.3g}', margin)


def support_table(robot: RobotModel, q: ArrayLike, feet: Iterable[str | int] | None = None) -> str:
    """Return the table of `robot` at q (nq,): every subset of all feet, or the stance `feet`."""
    everything = range(len(robot.contact_points))
    chosen = stances(everything) if feet is None else [foot_indices(robot, feet)]
    supports = [analyse_support(robot, q, some) for some in chosen]
    rows = [HEADER, *(row_of(support) for support in supports)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    lines = [
        row[0].ljust(widths[0])
        + ''.join(f'  {c.rjust(w)}' for c, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    lines.insert(1, '-' * len(lines[0]))
    if robot.floating_base and feet is not None:
        lines += ['', 'motions of the base that these feet cannot act on:']
        motions = supports[0].uncontrollable_base_directions
        lines += [f'  {motion.name}' for motion in motions] or ['  none']
    return '\n'.join(lines)


# --- The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0, or 2 with the reason where the input cannot be used."""
    parser = parser_with_examples(
        'python -m contact_sim.support',
        'Analyse sets of feet: what a robot on them can and cannot control.',
        ('--robot anymal_b', '--robot go1 --feet FL_foot RR_foot'),
    )
    parser.add_argument('--robot', default='anymal_b', help='catalogue name, .urdf or .xacro file')
    parser.add_argument('--feet', nargs='*', metavar='FOOT', help='one stance (default: all)')
    parser.add_argument('--pose', default=STANDING, help='reference pose (default: standing)')
    parser.add_argument('--fixed-base', action='store_true', help='without a floating base')
    options = parser.parse_args(arguments)
    try:
        robot = load_robot(options.robot, floating_base=not options.fixed_base)
        q = robot.reference_configuration(options.pose)
        feet = options.feet and [int(foot) if foot.isdecimal() else foot for foot in options.feet]
        table = support_table(robot, q, feet)
    except ContactSimError as error:
        print(f'{parser.prog}: {error}', file=sys.stderr)
        return 2
    names = ', '.join(point.name for point in robot.contact_points) or 'none'
    print(f'{robot.name}, pose {options.pose!r}, {robot.n_joints} joints, feet: {names}\n')
    print(table)
    return 0


if __name__ == '__main__':
    sys.exit(main())
