"""The contacts of a step with the ground: forces, positions, gaps, velocities and modes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.keys import NO_FEATURE

Array = NDArray[np.float64]


class ContactTable(ABC):
    """What acted at contacts in a step, one row each, for whoever knows the rows of a field."""

    __slots__ = ()

    @property
    def force(self) -> Array:
        """Force [N], world, impulse / h, shape (n, 3): on the robot, or on the first body."""
        return self._field('contact_force')

    @property
    def velocity(self) -> Array:
        """Velocity of the contact points after the step [m/s], world, shape (n, 3)."""
        return self._field('contact_velocity')

    @property
    def friction(self) -> Array:
        """Friction coefficients that acted in the step [-], shape (n,)."""
        return self._field('friction')

    @property
    def normal_force(self) -> Array:
        """Normal forces [N], shape (n,)."""
        return self._field('normal_force')

    @property
    def slip_speed(self) -> Array:
        """Tangential speed after the step [m/s], shape (n,)."""
        return self._field('slip_speed')

    @property
    def mode(self) -> NDArray[np.int64]:
        """0 open, 1 stick, 2 slip, shape (n,)."""
        return self._field('contact_mode').astype(np.int64)

    @property
    def immovable(self) -> NDArray[np.bool_]:
        """Whether no motion of the robot can open a contact that the step met, shape (n,).

        Its force is not determined, and it was left out: it carries nothing. Where the gap is not
        positive, the status of the step is IMMOVABLE.
        """
        return np.asarray(self._field('active') < 0.0)

    @abstractmethod
    def _field(self, name: str) -> NDArray[Any]:
        """Return the rows of a field of the step data."""


class ContactReport(ContactTable):
    """Contacts with the ground at the end of a step, one row each, open ones included.

    Args:
        buffer: step data.
        places: first and last place and shape of their part of the fields of the step data.
        names: names of the contacts.
        features: contacts that each contact point may have.
    """

    __slots__ = ('_buffer', '_features', '_places', 'names')

    def __init__(
        self, buffer: Array, places: dict[str, Any], names: tuple[str, ...], features: int
    ) -> None:
        self._buffer, self._places, self._features = buffer, places, max(features, 1)
        self.names = names
        """Names of the contacts: of the contact points, in the order of `robot.contact_points`;
        where the terrain has several features, with the feature."""

    @property
    def position(self) -> Array:
        """Contact points after the step [m], world, shape (nc, 3)."""
        return self._field('position')

    @property
    def normal(self) -> Array:
        """Normals out of the ground after the step, world, shape (nc, 3)."""
        return self._field('frame')[:, 2]

    @property
    def gap(self) -> Array:
        """Signed distance after the step [m], negative when penetrating, shape (nc,)."""
        return self._field('gap')

    @property
    def turn(self) -> Array:
        """Angle by which the ground turned under each contact in the step [rad], shape (nc,).

        From the normal along which it acted to the nearest of those that its contact point has
        after the step; 0 where it has none then. On edges and curved ground it is small. Where a
        point inside a body crosses its medial axis the normal flips (theory T11): this says so.
        """
        slots = (-1, self._features)
        before = self._field('frame_start')[:, 2].reshape(*slots, 3)
        cosine = np.einsum('psi,pti->pst', before, self.normal.reshape(*slots, 3))
        held = self._field('feature').reshape(*slots) != NO_FEATURE
        nearest = np.where(held[:, None, :], cosine, -1.0).max(axis=2)
        known = (self._field('feature_start').reshape(*slots) != NO_FEATURE) & held.any(
            axis=1, keepdims=True
        )
        return np.where(known, np.arccos(np.clip(nearest, -1.0, 1.0)), 0.0).ravel()

    def _field(self, name: str) -> Array:
        start, stop, shape = self._places[name]
        return self._buffer[start:stop].reshape(shape)
