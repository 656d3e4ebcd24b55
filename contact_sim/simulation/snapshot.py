"""Snapshot: the state of a simulation between two steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact_models.protocol import ContactModel

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
