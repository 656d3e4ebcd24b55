"""The contacts of a step: forces, positions, gaps, velocities and modes, per contact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class ContactReport:
    """Contacts at the end of a step, one row per contact, open ones included.

    Args:
        buffer: step data.
        places: first and last place and shape of the fields of the step data.
        names: names of the contacts.
    """

    __slots__ = ('_buffer', '_places', 'names')

    def __init__(self, buffer: Array, places: dict[str, Any], names: tuple[str, ...]) -> None:
        self._buffer, self._places = buffer, places
        self.names = names
        """Names of the contacts: of the contact points, in the order of `robot.contact_points`;
        where the terrain has several features, with the feature."""

    @property
    def force(self) -> Array:
        """Force on the robot [N], world, impulse / h, shape (nc, 3)."""
        return self._field('contact_force')

    @property
    def velocity(self) -> Array:
        """Velocity of the robot's contact points after the step [m/s], world, shape (nc, 3)."""
        return self._field('contact_velocity')

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
    def friction(self) -> Array:
        """Friction coefficients that acted in the step [-], shape (nc,)."""
        return self._field('friction')

    @property
    def normal_force(self) -> Array:
        """Normal forces on the robot [N], shape (nc,)."""
        return self._field('normal_force')

    @property
    def slip_speed(self) -> Array:
        """Tangential speed after the step [m/s], shape (nc,)."""
        return self._field('slip_speed')

    @property
    def mode(self) -> NDArray[np.int64]:
        """0 open, 1 stick, 2 slip, shape (nc,)."""
        return self._field('contact_mode').astype(np.int64)

    def _field(self, name: str) -> Array:
        start, stop, shape = self._places[name]
        return self._buffer[start:stop].reshape(shape)
