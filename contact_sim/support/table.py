"""The quadruped table of theory E5 and E7 for any robot: what each set of feet holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from numpy.typing import ArrayLike

from contact_sim.errors import InvalidInput
from contact_sim.robot.model import RobotModel
from contact_sim.support.analysis import Support, analyse_support
from contact_sim.support.feet import foot_indices

LARGEST = 12
"""Feet of which every subset can be listed: 4096 rows."""
HEADER = (
    'feet', 'rows', 'rank J', 'rank J_b', 'internal', 'uncontrollable', 'base moves in',
    'conditioning', 'margin [m]',
)  # fmt: skip


def stances(feet: Sequence[int]) -> list[tuple[int, ...]]:
    """Return every subset of `feet`, the smallest first.

    Raises:
        InvalidInput: more than LARGEST feet.
    """
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
    """Return the table of `robot` at q (nq,): every subset of all feet, or the stance `feet`.

    Raises:
        UnknownName: a foot that does not exist.
        InvalidInput: a foot listed twice, too many feet, a configuration that cannot be used.
    """
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
