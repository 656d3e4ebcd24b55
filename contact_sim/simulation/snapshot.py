"""Snapshot: the state of a simulation between two steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import real_array, within
from contact_sim.robot.constraints import Constraint

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
    constraints: tuple[Constraint, ...] = ()
    """With their places."""

    def check_fits(self, now: Snapshot) -> None:
        """Raise InvalidInput unless it can follow on `now`, one of the same simulation."""
        if not isinstance(self.robot, str) or self.robot != now.robot:
            raise InvalidInput(
                f'snapshot of robot {shown(self.robot)}: expected one of {now.robot!r}'
            )
        numbers = {}
        for name in ('buffer', 'friction', 'restitution', 'stabilisation'):
            given, expected = (
                real_array(f'snapshot: {name}', getattr(self, name)),
                getattr(now, name),
            )
            if given.shape != expected.shape:
                raise InvalidInput(
                    f'snapshot: {name} of {given.size} numbers, expected {expected.size}: the '
                    'robot had other contact points or the ground other features'
                )
            numbers[name] = given
        within('snapshot: friction', numbers['friction'], np.inf)
        within('snapshot: restitution', numbers['restitution'], 1.0)
        within('snapshot: baumgarte', numbers['stabilisation'][0], 1.0)
        within('snapshot: restitution_threshold', numbers['stabilisation'][1], np.inf)
