"""Snapshot: the state of a simulation between two steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything the next steps depend on besides robot, terrain and commands."""

    robot: str
    buffer: Array
    """The step data, see `arrays.step_data`."""
    friction: Array
    """Outside of regions, shape (nc,)."""
    restitution: Array
    """Outside of regions, shape (nc,)."""
    stabilisation: Array
    contact_model: ContactModel

    def check_fits(self, robot: str, buffer: Array) -> None:
        """Raise InvalidInput unless it is one of `robot` with as many numbers as `buffer`."""
        if self.robot != robot:
            raise InvalidInput(f'snapshot of robot {self.robot!r}: expected one of {robot!r}')
        if self.buffer.shape != buffer.shape:
            raise InvalidInput(
                f'snapshot of {len(self.buffer)} numbers, expected {len(buffer)}: the robot had '
                'other contact points or the ground other features'
            )
