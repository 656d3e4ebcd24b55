"""The bilateral constraints of a simulation, which may come and go between steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contact_sim.constraints.described import Constraint
from contact_sim.constraints.resolved import (
    check_start,
    constraint_table,
    where_it_is,
)
from contact_sim.contact.given_rows import GivenRows, settled
from contact_sim.contact.workspace import Workspace
from contact_sim.errors import InvalidInput, UnknownName

Array = NDArray[np.float64]
ASSEMBLY_ROUNDS, ASSEMBLED = 100, 1e-12
"""Newton steps that close the loops of a reference pose; error [m, rad] that counts as closed."""


def held(work: Workspace, constraints: Sequence[Constraint], q: Array) -> None:
    """Let the constraints of a workspace hold where the robot is at q (nq,).

    Args:
        work: made for these constraints.
        constraints: as the user gave them, some without a place.
        q: where.

    Raises:
        InvalidInput: a constraint that removes no freedom, or with an error that is none of a
            step.
    """
    placed = [where_it_is(work.robot, constraint, q) for constraint in constraints]
    work.table = table = constraint_table(work.robot, work.tree, placed)
    work.fill_constraints()
    GivenRows(work).place(q)
    for constraint, row in zip(placed, table.indices, strict=True):
        rows = slice(row[1], row[1] + row[2])
        error, jacobian = work.data.bilateral_error[rows], work.data.bilateral_jacobian[rows]
        check_start(constraint, error, jacobian)


def assembled(work: Workspace, q: Array) -> Array:
    """Return the configuration near q (nq,) in which closed loops are closed.

    Raises:
        InvalidInput: there is none near.
    """
    if not work.table.constraints:
        return q
    closed, error = settled(work, q, ASSEMBLY_ROUNDS, ASSEMBLED)
    if error > ASSEMBLED:
        raise InvalidInput(
            f'constraints: the reference pose cannot be moved onto them, {error:.3g} m or rad are '
            'left: reset(q) with a configuration in which they hold'
        )
    return closed


def without(constraints: Sequence[Constraint], which: str | Constraint) -> tuple[Constraint, ...]:
    """Return all constraints but one, given or by its name.

    Raises:
        UnknownName: there is none of that name.
    """
    name = which.name if isinstance(which, Constraint) else which
    rest = tuple(constraint for constraint in constraints if constraint.name != name)
    if len(rest) == len(constraints):
        raise UnknownName('constraint', name, [constraint.name for constraint in constraints])
    return rest
