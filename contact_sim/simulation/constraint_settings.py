"""The bilateral constraints of a simulation, which may come and go between steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.constraints.resolved import (
    check_start,
    constraint_table,
    where_it_is,
)
from contact_sim.contact.given_rows import GivenRows, settled
from contact_sim.contact.workspace import Workspace
from contact_sim.dynamics.integrators import MOMENTUM
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.robot.constraints import Constraint, checked_constraints
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
ASSEMBLY_ROUNDS, ASSEMBLED = 100, 1e-12
"""Newton steps that close the loops of a reference pose; error [m, rad] that counts as closed."""


class ConstraintSettings(ABC):
    """Bilateral constraints of a simulation that come and go."""

    robot: RobotModel
    terrain: Terrain
    _workspace: Workspace
    _constraints: tuple[Constraint, ...]
    """As the user gave them, some without a place."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The bilateral constraints that hold, with their places; assign others between steps.

        Those that hold already stay where they are.
        """
        return self._workspace.table.constraints

    @constraints.setter
    def constraints(self, constraints: Sequence[Constraint]) -> None:
        given, now = checked_constraints(constraints), self._workspace.data.q.copy()
        placed = placed_at(self.robot, given, self.constraints, now)
        work = self._workspace.under(self.terrain, placed)
        check_integrator(work)
        held(work, placed, now)
        self._go_on_with(work, self.terrain)
        self._constraints = given

    @abstractmethod
    def _go_on_with(self, work: Workspace, ground: Terrain) -> None:
        """Step in other arrays from now on."""

    def add_constraint(self, constraint: Constraint) -> None:
        """Let a bilateral constraint hold from the next step on.

        Raises:
            InvalidInput: no constraint, one that removes no freedom, of a name that is there, or
                whose error is none of a step.
            UnknownName: a frame or joint that does not exist.
        """
        self.constraints = (*self._constraints, constraint)

    def remove_constraint(self, constraint: str | Constraint) -> None:
        """Let a constraint go, itself or by its name.

        Raises:
            UnknownName: none of that name holds.
        """
        self.constraints = without(self._constraints, constraint)


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
    if tuple(placed) != work.table.constraints:
        work.table = constraint_table(work.robot, work.tree, placed)
        work.fill_constraints()
    table = work.table
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


def placed_at(
    robot: RobotModel,
    given: Sequence[Constraint],
    holding: Sequence[Constraint],
    q: Array,
) -> list[Constraint]:
    """Return constraints with their places: those that hold already where they are, else at q."""
    there = {one.name: one for one in holding}
    placed = []
    for one in given:
        now = there.get(one.name)
        place = where_it_is(robot, one, q)
        same = now is not None and getattr(one, 'at', 0) is None and type(now) is type(one)
        placed.append(now if now is not None and same else place)
    return placed


def check_integrator(work: Workspace) -> None:
    """Raise InvalidInput where bases carry the momentum that constraints take."""
    if work.table.constraints and work.integrator[0] == MOMENTUM:
        raise InvalidInput(
            "integrator = 'momentum': unsupported with constraints, which take momentum; use "
            "'semi_implicit'"
        )
