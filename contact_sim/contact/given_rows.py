"""Bilateral rows at a configuration, from Python: those of functions h(q), and projections.

The slow way, for what is asked once or cannot be compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.constraints.kinds import LAW, PROJECTED
from contact_sim.contact.bilateral import place_bilateral
from contact_sim.errors import InvalidInput, shown
from contact_sim.robot.constraints import Holonomic

Array = NDArray[np.float64]
SPAN = 1e-6
"""Way along v over which H is differenced, relative to 1 [rad or m]."""
LONGEST = 0.3
"""Largest change of a coordinate in one Newton step [rad or m]."""


class GivenRows:
    """Fills the rows of constraints that are functions, in a workspace."""

    def __init__(self, workspace: Any) -> None:
        self._work = workspace
        self._functions = workspace.table.given

    def update(self, q: Array, v: Array) -> None:
        """Fill h, H and Ḣ v at q (nq,), v (nv,).

        Raises:
            InvalidInput: a function returns another shape, or what is not finite.
        """
        work, model = self._work, self._work.model
        speed = float(np.abs(v).max(initial=0.0))
        for first, constraint in self._functions:
            rows = slice(first, first + constraint.rows)
            self._place(constraint, rows, q)
            work.bilateral_drift[rows] = 0.0
            if speed > 0.0:
                dt = SPAN / speed
                ahead, behind = (
                    jacobian_of(constraint, pin.integrate(model, q, sign * dt * v), model.nv)
                    for sign in (1.0, -1.0)
                )
                work.bilateral_drift[rows] = (ahead - behind) @ v / (2.0 * dt)

    def place(self, q: Array) -> None:
        """Fill h and H of all rows at q (nq,), which becomes that of the workspace."""
        self._work.data.q[:] = q
        place_bilateral(*self._work.arrays)
        for first, constraint in self._functions:
            self._place(constraint, slice(first, first + constraint.rows), q)

    def _place(self, constraint: Holonomic, rows: slice, q: Array) -> None:
        data = self._work.data
        data.bilateral_error[rows] = error_of(constraint, q)
        data.bilateral_jacobian[rows] = jacobian_of(constraint, q, self._work.model.nv)


def settled(work: Any, q: Array, rounds: int, tolerance: float = 1e-13) -> tuple[Array, float]:
    """Return q moved onto the projected constraints of a workspace, and the error left there.

    Newton steps q ← q ⊕ −H⁺ h; the configuration of the workspace becomes that.

    Args:
        work: a Workspace.
        q: where to begin, shape (nq,).
        rounds: most steps.
        tolerance: error [m, rad] at which they end.

    Raises:
        InvalidInput: as `GivenRows.update`.
    """
    rows, data, table = GivenRows(work), work.data, work.table
    projected = np.repeat(table.laws[:, LAW] == PROJECTED, table.indices[:, 2])
    worst = np.inf
    for count in range(rounds + 1):
        rows.place(q)
        error = data.bilateral_error[projected]
        worst = float(np.abs(error).max(initial=0.0))
        if worst <= tolerance or count == rounds:
            break
        step = -np.linalg.pinv(data.bilateral_jacobian[projected], rcond=1e-9) @ error
        longest = float(np.abs(step).max(initial=0.0))
        if longest == 0.0:
            break
        q = pin.integrate(work.model, q, step * min(1.0, LONGEST / longest))
    return q, worst


def error_of(constraint: Holonomic, q: Array) -> Array:
    """Return h(q), shape (rows,).

    Raises:
        InvalidInput: something else.
    """
    return _checked(f'{constraint.name!r}: error(q)', constraint.error(q.copy()), constraint.rows)


def jacobian_of(constraint: Holonomic, q: Array, nv: int) -> Array:
    """Return H(q), shape (rows, nv).

    Raises:
        InvalidInput: something else.
    """
    name = f'{constraint.name!r}: jacobian(q)'
    return _checked(name, constraint.jacobian(q.copy()), constraint.rows, nv)


def _checked(name: str, value: Any, *shape: int) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f'constraint {name} returned {shown(value)}: expected numbers'
        ) from error
    if array.shape != shape:
        raise InvalidInput(f'constraint {name} has the shape {array.shape}, expected {shape}')
    if not np.isfinite(array).all():
        raise InvalidInput(f'constraint {name} is not finite')
    return array
