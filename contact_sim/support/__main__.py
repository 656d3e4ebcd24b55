"""Print what sets of feet hold: python -m contact_sim.support --robot anymal_b [--feet ...]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from contact_sim.errors import ContactSimError
from contact_sim.robot.model import STANDING
from contact_sim.robot.urdf import load_robot
from contact_sim.support.table import support_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0, or 2 with the reason where the input cannot be used."""
    parser = argparse.ArgumentParser(prog='python -m contact_sim.support', description=__doc__)
    parser.add_argument('--robot', default='anymal_b', help='catalogue name, .urdf or .xacro file')
    parser.add_argument('--feet', nargs='*', metavar='FOOT', help='one stance (default: all)')
    parser.add_argument('--pose', default=STANDING, help='reference pose (default: standing)')
    parser.add_argument('--fixed-base', action='store_true', help='without a floating base')
    given = parser.parse_args(arguments)
    try:
        robot = load_robot(given.robot, floating_base=not given.fixed_base)
        q = robot.reference_configuration(given.pose)
        feet = None if given.feet is None else [_foot(name) for name in given.feet]
        table = support_table(robot, q, feet)
    except ContactSimError as error:
        print(f'{parser.prog}: {error}', file=sys.stderr)
        return 2
    names = ', '.join(point.name for point in robot.contact_points) or 'none'
    print(f'{robot.name}, pose {given.pose!r}, {robot.n_joints} joints, feet: {names}\n')
    print(table)
    return 0


def _foot(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


if __name__ == '__main__':
    sys.exit(main())
