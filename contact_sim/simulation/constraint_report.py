"""The bilateral constraints of a step: what they took, and what they missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays.step_data import StepData
from contact_sim.constraints.resolved import ConstraintTable
from contact_sim.robot.constraints import Constraint

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ConstraintState:
    """One constraint in a step; rows as its class says, world axes."""

    force: Array
    """Mean force [N], torque [N m] or effort of every row on the robot, shape (rows,)."""
    error: Array
    """h after the step [m, rad], shape (rows,); 0 for what is driven."""
    rate: Array
    """ḣ after the step [m/s, rad/s], less the speed that is asked for, shape (rows,)."""

    @property
    def drift(self) -> float:
        """|h| [m, rad]."""
        return float(np.linalg.norm(self.error))

    @property
    def drift_rate(self) -> float:
        """|ḣ| [m/s, rad/s]."""
        return float(np.linalg.norm(self.rate))


class ConstraintReport(Mapping[str, ConstraintState]):
    """The constraints of a step by their names."""

    def __init__(self, record: StepData, table: ConstraintTable) -> None:
        self._record = record
        self.described: tuple[Constraint, ...] = tuple(table.constraints)
        """The constraints themselves, in the order of their names."""
        self._rows = {
            constraint.name: slice(int(row[1]), int(row[1] + row[2]))
            for constraint, row in zip(table.constraints, table.indices, strict=True)
        }

    def __getitem__(self, name: str) -> ConstraintState:
        """Return a constraint by its name."""
        record, rows = self._record, self._rows[name]
        return ConstraintState(
            record.bilateral_impulse[rows] / float(record.time_step[0]),
            record.bilateral_error[rows],
            record.bilateral_rate[rows],
        )

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return the number of constraints."""
        return len(self._rows)
