"""The contacts of a step: forces, positions, gaps, velocities and modes, per contact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import Arrays, frames, vector
from contact_sim.solvers.borrowed import borrowed
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]
OPEN, STICK, SLIP = 0, 1, 2
STICTION_SPEED = 1e-9
"""Tangential speed below which a loaded contact counts as sticking [m/s]."""


class ContactReport:
    """Contacts at the end of a step, one row per contact, open ones included.

    Args:
        buffer: step data.
        layout: layout array of the simulation.
        places: first and last place and shape of the fields of the step data.
        names: names of the contacts.
    """

    __slots__ = ('_arrays', '_places', 'names')

    def __init__(
        self,
        buffer: Array,
        layout: NDArray[np.int64],
        places: dict[str, Any],
        names: tuple[str, ...],
    ) -> None:
        self._arrays, self._places = (buffer, layout), places
        self.names = names
        """Names of the contacts: of the contact points, in the order of `robot.contact_points`;
        where the terrain has several features, with the feature."""

    @property
    def force(self) -> Array:
        """Force on the robot [N], world, impulse / h, shape (nc, 3)."""
        values: Array = forces(*self._arrays)
        return values

    @property
    def velocity(self) -> Array:
        """Velocity of the robot's contact points after the step [m/s], world, shape (nc, 3)."""
        values: Array = velocities(*self._arrays)
        return values

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
        """Friction coefficients [-], shape (nc,)."""
        return self._field('friction')

    @property
    def normal_force(self) -> Array:
        """Normal forces on the robot [N], shape (nc,)."""
        values: Array = normal_forces(*self._arrays)
        return values

    @property
    def slip_speed(self) -> Array:
        """Tangential speed after the step [m/s], shape (nc,)."""
        values: Array = slip_speeds(*self._arrays)
        return values

    @property
    def mode(self) -> NDArray[np.int64]:
        """0 open, 1 stick, 2 slip, shape (nc,)."""
        values: NDArray[np.int64] = modes(*self._arrays)
        return values

    def _field(self, name: str) -> Array:
        start, stop, shape = self._places[name]
        return self._arrays[0][start:stop].reshape(shape)


@kernel
def step_of(buffer, layout):
    """Return step data as the front of the arrays of a simulation."""
    places = borrowed(layout)
    return Arrays(borrowed(buffer), places[0], places)


@kernel
def in_world(frame, u, scale):
    """Return contact-frame rows times `scale` in world axes, shape (nc, 3)."""
    out = np.empty((frame.shape[0], 3))
    for i in range(frame.shape[0]):
        for k in range(3):
            total = 0.0
            for row in range(3):
                total += frame[i, row, k] * u[3 * i + row]
            out[i, k] = scale * total
    return out


@kernel
def forces(buffer, layout):
    """Return the force of every contact [N], world, shape (nc, 3)."""
    step = step_of(buffer, layout)
    scale = 1.0 / vector(step, f.TIME_STEP)[0]
    return in_world(frames(step, f.FRAME_START), vector(step, f.IMPULSE), scale)


@kernel
def velocities(buffer, layout):
    """Return the velocity of every contact point [m/s], world, shape (nc, 3)."""
    step = step_of(buffer, layout)
    return in_world(frames(step, f.FRAME_START), vector(step, f.U_NEXT), 1.0)


@kernel
def normal_forces(buffer, layout):
    """Return λ_n / h of every contact [N], shape (nc,)."""
    step = step_of(buffer, layout)
    impulse, h = vector(step, f.IMPULSE), vector(step, f.TIME_STEP)[0]
    out = np.empty(vector(step, f.GAP).shape[0])
    for i in range(out.shape[0]):
        out[i] = impulse[3 * i + 2] / h
    return out


@kernel
def slip_speeds(buffer, layout):
    """Return |u_t| of every contact [m/s], shape (nc,)."""
    step = step_of(buffer, layout)
    u = vector(step, f.U_NEXT)
    out = np.empty(vector(step, f.GAP).shape[0])
    for i in range(out.shape[0]):
        out[i] = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
    return out


@kernel
def modes(buffer, layout):
    """Return the mode of every contact."""
    step = step_of(buffer, layout)
    impulse, u = vector(step, f.IMPULSE), vector(step, f.U_NEXT)
    out = np.empty(vector(step, f.GAP).shape[0], np.int64)
    for i in range(out.shape[0]):
        slip = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
        out[i] = mode_of(impulse[3 * i + 2], slip)
    return out


@kernel
def mode_of(normal_impulse, slip_speed):
    """Return the mode of a contact; null_space may pull, so loaded means a force at all."""
    if normal_impulse == 0.0:
        return OPEN
    return SLIP if slip_speed > STICTION_SPEED else STICK
