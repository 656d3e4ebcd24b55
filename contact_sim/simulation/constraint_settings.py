"""The bilateral constraints of a simulation, which may come and go between steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.constraints.described import Constraint, FrameAnchor, JointLock, PointAnchor
from contact_sim.constraints.resolved import (
    ConstraintTable,
    check_start,
    checked_constraints,
    constraint_table,
    where_it_is,
)
from contact_sim.contact.given_rows import GivenRows, settled
from contact_sim.contact.workspace import Workspace
from contact_sim.dynamics.integrators import MOMENTUM
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.numbers import real_array
from contact_sim.robot.configuration import frozen
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.snapshot import Snapshot

Array = NDArray[np.float64]
PLACED = PointAnchor | FrameAnchor | JointLock
"""Constraints that may find a place for themselves."""
ASSEMBLY_ROUNDS, ASSEMBLED = 100, 1e-12
"""Newton steps that close the loops of a reference pose; error [m, rad] that counts as closed."""


class ConstraintSettings(ABC):
    """Bilateral constraints of a simulation that come and go."""

    robot: RobotModel
    terrain: Terrain
    _workspace: Workspace
    _stepper: Any
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
        self._hold_at(self._workspace.data.q.copy(), checked_constraints(constraints))

    def _hold_at(self, q: Array, given: tuple[Constraint, ...]) -> None:
        """Let other constraints hold at q (nq,), to which the robot moves."""
        placed = placed_at(self.robot, given, self.constraints, q)
        work = self._workspace.under(self.terrain, placed)
        check_integrator(work)
        held(work, placed, q)
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

    @property
    def given_constraints(self) -> tuple[Constraint, ...]:
        """The constraints that hold, as they were given: some without a place."""
        return self._constraints

    def assembled(self, q: ArrayLike) -> Array:
        """Return the configuration near q (nq,) in which closed loops are closed, read-only.

        Constraints without a place hold where the robot is at q. The simulation stays as it is.

        Raises:
            InvalidInput: there is none near, or q is none.
        """
        start = self.robot.checked_configuration(q)
        if not self._constraints:
            return start
        work, before = self._workspace, self._workspace.table
        now = work.data.buffer.copy()
        try:
            move_places(work, self._constraints, start)
            closed, error = settled(work, start, ASSEMBLY_ROUNDS, ASSEMBLED)
        finally:
            self._return_to(before, now)
        if error > ASSEMBLED:
            raise InvalidInput(
                'constraints: the reference pose cannot be moved onto them, '
                f'{error:.3g} m or rad are left: reset(q) with a configuration in which they hold'
            )
        return frozen(closed)

    def _hold_as_in(self, snapshot: Snapshot) -> None:
        """Let the constraints of a snapshot hold in its state, where that is not so already.

        Those that had no place of their own have none again.
        """
        placed = checked_constraints(snapshot.constraints)
        if placed == self.constraints:
            return
        start = self._workspace.sizes.layout['q'][0]
        buffer = real_array('snapshot: buffer', snapshot.buffer)
        q = self.robot.checked_configuration(buffer[start : start + self.robot.nq])
        known = {one.name: one for one in self._constraints}
        self._hold_at(q, placed)
        pairs = [(one, known.get(one.name, one)) for one in placed]
        self._constraints = tuple(
            given if with_place_of(one, given) == one else one for one, given in pairs
        )

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """Leave constraints and configuration as they are where what is done raises."""
        before, now = self._workspace.table, self._workspace.data.buffer.copy()
        try:
            yield
        except ContactSimError:
            self._return_to(before, now)
            raise

    def _return_to(self, table: ConstraintTable, buffer: Array) -> None:
        work = self._workspace
        work.table = table
        work.fill_constraints()
        work.data.buffer[:] = buffer
        self._stepper.update_contacts()


def move_places(work: Workspace, constraints: Sequence[Constraint], q: Array) -> None:
    """Let those constraints of a workspace that name no place hold where the robot is at q (nq,).

    Args:
        work: made for these constraints.
        constraints: as the user gave them.
        q: where.

    Raises:
        UnknownName: a frame or joint that the robot does not have.
    """
    placed = [where_it_is(work.robot, constraint, q) for constraint in constraints]
    if tuple(placed) != work.table.constraints:
        work.table = constraint_table(work.robot, work.tree, placed)
        work.fill_constraints()


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
    move_places(work, constraints, q)
    table = work.table
    GivenRows(work).place(q)
    for constraint, row in zip(table.constraints, table.indices, strict=True):
        rows = slice(row[1], row[1] + row[2])
        error, jacobian = work.data.bilateral_error[rows], work.data.bilateral_jacobian[rows]
        check_start(constraint, error, jacobian)


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
    return [where_it_is(robot, with_place_of(there.get(one.name), one), q) for one in given]


def with_place_of(holding: Constraint | None, given: Constraint) -> Constraint:
    """Return a constraint without a place with that of one which holds the same, if it does."""
    if not isinstance(given, PLACED) or not isinstance(holding, PLACED) or given.at is not None:
        return given
    before: Any = holding
    same = replace(before, at=None, name=given.name, stabilisation=given.stabilisation)
    return replace(given, at=before.at) if same == given else given


def check_integrator(work: Workspace) -> None:
    """Raise InvalidInput where bases carry the momentum that constraints take."""
    if work.table.constraints and work.integrator[0] == MOMENTUM:
        raise InvalidInput(
            "integrator = 'momentum': unsupported with constraints, which take momentum; use "
            "'semi_implicit'"
        )
