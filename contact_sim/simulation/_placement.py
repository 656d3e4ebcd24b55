"""Constraints whose place was left open, held where the robot is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from contact_sim._types import Array, Indices
from contact_sim.constraints._constraint_rows import (
    DOF_A,
    DOF_B,
    FUNCTION,
    JOINTS,
    KIND,
    check_start,
    constraint_table,
    with_reference_pose,
)
from contact_sim.dynamics._integration import MOMENTUM
from contact_sim.errors import InvalidInput
from contact_sim.robot._constraints import Constraint, FrameAnchor, JointLock, PointAnchor
from contact_sim.robot._coordinates import frozen
from contact_sim.step._bilateral_rows import PythonConstraints, project_configuration
from contact_sim.step._workspace import Workspace

PLACEABLE = PointAnchor | FrameAnchor | JointLock
"""Constraints whose place may be left open."""
ASSEMBLY_ROUNDS, ASSEMBLED = 100, 1e-12
"""Newton steps that close the loops of a reference pose; error [m, rad] that counts as closed."""


def check_integrator(work: Workspace) -> None:
    """Raise InvalidInput where bases carry momentum and constraints may take it from them."""
    if work.integrator[0] != MOMENTUM:
        return
    parent, free = work.tree.dof_parent, set(work.tree.free_flyer_v.tolist())
    for constraint, row in zip(work.table.constraints, work.table.indices, strict=True):
        if row[KIND] == JOINTS:
            continue
        bases = {base_of(int(row[k]), parent) for k in (DOF_A, DOF_B)}
        if row[KIND] == FUNCTION or (len(bases) > 1 and not bases.isdisjoint(free)):
            raise InvalidInput(
                f"integrator = 'momentum': constraint {constraint.name!r} may take momentum from "
                "a base, as all do but those within one robot; use 'semi_implicit'"
            )


def base_of(dof: int, parent: Indices) -> int:
    """Return the first dof of the tree that a dof belongs to, −1 for the world."""
    while dof >= 0 and parent[dof] >= 0:
        dof = int(parent[dof])
    return dof


def place(work: Workspace, constraints: Sequence[Constraint], q: Array) -> None:
    """Let constraints whose place was left open hold where the robot is at q (nq,).

    `work` was made for these constraints, perhaps at another place.
    """
    placed = [with_reference_pose(work.robot, own, q) for own in constraints]
    if tuple(placed) != work.table.constraints:
        work.table = constraint_table(work.robot, work.tree, placed)
        work.fill_constraints()


def place_checked(work: Workspace, constraints: Sequence[Constraint], q: Array) -> None:
    """As `place`, and raise InvalidInput for constraints that cannot hold at q.

    That is one that removes no freedom, or whose error is more than a step can take out.
    """
    place(work, constraints, q)
    table = work.table
    PythonConstraints(work).place(q)
    for constraint, (_, first, number, *_) in zip(table.constraints, table.indices, strict=True):
        rows = slice(first, first + number)
        error, jacobian = work.data.bilateral_error[rows], work.data.bilateral_jacobian[rows]
        check_start(constraint, error, jacobian)


def with_place_of(holding: Constraint | None, declared: Constraint) -> Constraint:
    """Return `declared` with the place of `holding`, if it has none and they are otherwise one."""
    if not (isinstance(declared, PLACEABLE) and isinstance(holding, PLACEABLE)):
        return declared
    if declared.at is not None:
        return declared
    before: Any = holding
    same = replace(before, at=None, name=declared.name, stabilisation=declared.stabilisation)
    return replace(declared, at=before.at) if same == declared else declared


def closed_configuration(work: Workspace, declared: Sequence[Constraint], q: Array) -> Array:
    """Return the configuration near q (nq,) in which constraints hold, read-only.

    Raises:
        InvalidInput: there is none near.
    """
    place(work, declared, q)
    closed, error = project_configuration(work, q, ASSEMBLY_ROUNDS, ASSEMBLED)
    if error > ASSEMBLED:
        raise InvalidInput(
            'constraints: the reference pose cannot be moved onto them, '
            f'{error:.3g} m or rad are left: reset(q) with a configuration in which they hold'
        )
    return frozen(closed)
