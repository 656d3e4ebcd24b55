"""The contacts between bodies that acted in a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays.fields import Sizes
from contact_sim.collision.keys import NO_FEATURE
from contact_sim.collision.pool import CONTACTS
from contact_sim.robot.solids import Collisions
from contact_sim.simulation.contact_report import ContactTable

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
NONE: Indices = np.zeros(0, dtype=np.int64)


class PairReport(ContactTable):
    """Contacts between bodies near each other, one row each, as they were when the step began.

    Forces are those of the second body on the first, velocities those of the first on the second.

    Args:
        buffer: step data.
        sizes: of the simulation.
        collisions: solids and pairs of the robot.
    """

    __slots__ = ('_buffer', '_collisions', '_places', '_slots', 'solids')

    def __init__(self, buffer: Array, sizes: Sizes, collisions: Collisions) -> None:
        self._buffer, self._places, self._collisions = buffer, sizes.layout, collisions
        self._slots, used = NONE, NONE
        if sizes.n_pair_slots:
            features = self._all('feature_start')[sizes.n_ground :]
            held = np.flatnonzero(features != NO_FEATURE)
            self._slots, used = sizes.n_ground + held, features[held].astype(np.int64) // CONTACTS
        self.solids: Indices = collisions.ordered[used]
        """First and second solid of each contact, indices into `robot.collisions.solids`, (n, 2).
        """

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.solids)

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Names of both solids of each contact, length n."""
        solids = self._collisions.solids
        return tuple((solids[i].name, solids[j].name) for i, j in self.solids.tolist())

    @property
    def position(self) -> Array:
        """Contact points on the first body [m], world, shape (n, 3)."""
        return self._field('position_start')

    @property
    def normal(self) -> Array:
        """Normals out of the second body, world, shape (n, 3)."""
        return self._field('frame_start')[:, 2]

    @property
    def gap(self) -> Array:
        """Signed distance [m], negative when penetrating, shape (n,)."""
        return self._field('gap_start')

    def acting_on(self, links: Iterable[str]) -> Array:
        """Return 1 for contacts that push the first body where that is one of these links.

        −1 where it is the second one, 0 for the others, shape (n,).
        """
        names = set(links)
        chosen = np.array([solid.frame in names for solid in self._collisions.solids])
        first, second = chosen[self.solids].T
        pushed: Array = first.astype(float) - second.astype(float)
        return pushed

    def load_on(self, links: Iterable[str]) -> float:
        """Return the sum of the normal forces on links [N]; pulls count 0."""
        return float(np.abs(self.acting_on(links)) @ self.normal_force.clip(min=0.0))

    def _all(self, name: str) -> Array:
        start, stop, shape = self._places[name]
        whole: Array = self._buffer[start:stop].reshape(shape)
        return whole

    def _field(self, name: str) -> NDArray[Any]:
        chosen: NDArray[Any] = self._all(name)[self._slots]
        return chosen
