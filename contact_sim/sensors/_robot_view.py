"""The report of a step, restricted to one of several joined robots."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.arrays._views import StepData
from contact_sim.errors import summary
from contact_sim.robot._several_robots import RobotPart
from contact_sim.simulation._report import ContactReport, PairReport, StepReport


class ContactsView(ContactReport):
    """The contacts of one robot with the ground.

    One row per contact, in the order of the robot's contact points and body points.
    """

    __slots__ = ('_chosen', '_whole')

    def __init__(self, whole: ContactReport, chosen: slice | NDArray[np.intp]) -> None:
        self._whole, self._chosen, self._features = whole, chosen, whole._features
        self.names = (
            whole.names[chosen]
            if isinstance(chosen, slice)
            else tuple(whole.names[k] for k in chosen.tolist())
        )

    def _field(self, name: str) -> Array:
        return self._whole._field(name)[self._chosen]


class PairsView:
    """The contacts between bodies, with the links of one robot under its own names."""

    def __init__(self, whole: PairReport, part: RobotPart) -> None:
        self._whole, self._part = whole, part
        self.force, self.position = whole.force, whole.position

    def __len__(self) -> int:
        """Return the number of contacts of all robots."""
        return len(self._whole)

    def acting_on(self, links: Iterable[str]) -> Array:
        """Return on which of the links a contact acts, as `PairReport.acting_on`."""
        return self._whole.acting_on(map(self._part.qualified_name, links))

    def load_on(self, links: Iterable[str]) -> float:
        """Return the sum of the normal forces on links [N], as `PairReport.load_on`."""
        return self._whole.load_on(map(self._part.qualified_name, links))

    def __repr__(self) -> str:
        return summary(self, robot=self._part.name, contacts=len(self))


class RecordView:
    """The step data of one robot that sensors read, and the clock."""

    def __init__(self, whole: StepData, part: RobotPart) -> None:
        self._whole, self._part = whole, part

    @property
    def clock(self) -> Array:
        """Time after the step [s], time at the last reset [s], steps since then, shape (3,)."""
        return self._whole.clock

    @property
    def time_step(self) -> Array:
        """Time step h [s], shape (1,)."""
        return self._whole.time_step

    @property
    def gravity(self) -> Array:
        """Gravity in world [m/s²], shape (3,)."""
        return self._whole.gravity

    @property
    def q_start(self) -> Array:
        """Configuration before the step, shape (nq,)."""
        return self._whole.q_start[self._part.q]

    @property
    def v_start(self) -> Array:
        """Velocity before the step, shape (nv,)."""
        return self._whole.v_start[self._part.v]

    def __repr__(self) -> str:
        return summary(self, robot=self._part.name)


class RobotView:
    """The part of one robot in the report of a step: its state, efforts and contacts.

    Sensors of `part.robot` read it as they would the report of that robot alone.
    """

    @checked
    def __init__(self, whole: StepReport, part: RobotPart) -> None:
        self._whole, self._part = whole, part

    @property
    def time(self) -> float:
        """Simulated time after the step [s]."""
        return self._whole.time

    @property
    def q(self) -> Array:
        """Configuration after the step, shape (nq,)."""
        return self._whole.q[self._part.q]

    @property
    def v(self) -> Array:
        """Velocity after the step, shape (nv,)."""
        return self._whole.v[self._part.v]

    @property
    def effort(self) -> Array:
        """Joint effort applied, after saturation [N m], shape (n_joints,)."""
        return self._whole.effort[self._part.joints]

    @property
    def record(self) -> RecordView:
        """Further step data that sensors need."""
        return RecordView(self._whole.record, self._part)

    @property
    def contacts(self) -> ContactsView:
        """Contacts of the robot with the ground."""
        features = self._whole.record.sizes.features
        return ContactsView(self._whole.contacts, _slots(self._part, features))

    @property
    def pairs(self) -> PairsView:
        """Contacts of the robot with other bodies."""
        return PairsView(self._whole.pairs, self._part)

    def __repr__(self) -> str:
        return summary(self, robot=self._part.name, time=self.time)


@lru_cache
def _slots(part: RobotPart, features: int) -> slice | NDArray[np.intp]:
    """Return which contacts are of a robot; a slice, which copies nothing, where they can be."""
    each = max(features, 1)
    slots = (each * part.contact_points[:, None] + np.arange(each)).ravel()
    first = int(slots[0]) if len(slots) else 0
    in_a_row = np.array_equal(slots, first + np.arange(len(slots)))
    return slice(first, first + len(slots)) if in_a_row else slots


Report = StepReport | RobotView
"""What sensors read: the report of a step, or the view of one robot."""
